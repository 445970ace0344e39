"""The public names of indexing and sorting: arguments, defaults, printed forms, errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from primal import ShapeDtypeStruct, eval_shape, lax
from primal import numpy as jnp
from primal.api import grad, jit, jvp, make_jaxpr, vmap
from primal.base.config import enable_x64
from primal.lax.dynamic import _starts
from primal.numpy.index_forms import dynamic_positions
from primal.ops import elementwise
from tests.ops.laws import agree, check_derivatives, eager, same

X = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
TAKE = lax.GatherDimensionNumbers((1,), (0,), (0,))
ITEMS = lax.ScatterDimensionNumbers((), (0,), (0,))


# gather and scatter.


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
def test_indices_of_giants_are_counted_in_64_bits(dtype: str, x64: bool) -> None:
    """Of dimensions that int32 cannot count; without their memory: the positions alone."""
    n = 2**31 + 17
    given = np.array([3, 2**31 + 16 if dtype == "uint32" else -1], dtype)
    with enable_x64(x64):
        for by in (lambda f: f, jit):
            got = by(lambda i: dynamic_positions(i, n, True))(jnp.asarray(given))
            np.testing.assert_array_equal(got, [3, n - 1])
            for k, want in zip(given, (3, n - 1), strict=True):
                (start,) = by(lambda i: _starts("dynamic_slice", (n,), (i,), True))(jnp.asarray(k))
                assert int(start) == want
        for known in (-1, n - 1):
            assert _starts("dynamic_slice", (n,), (known,), True)[0].val == n - 1


def test_modes_of_gather() -> None:
    i = np.array([[1], [7], [-1]], np.int32)
    clipped = X[[1, 2, 0]]
    filled = np.where([[True], [False], [False]], clipped, np.nan).astype(np.float32)


    def taking(mode: Any, **kwargs: Any) -> Any:
        return lambda x, i: lax.gather(x, i, TAKE, (1, 4), mode=mode, **kwargs)

    for mode, want in [(None, clipped), ("clip", clipped), ("promise_in_bounds", clipped),
                       ("fill", filled), (lax.GatherScatterMode.FILL_OR_DROP, filled)]:
        same(agree(taking(mode), X, i), [want], 0)
    got = agree(taking("fill", fill_value=5), X, i)
    same(got, [np.nan_to_num(filled, nan=5)], 0)


def test_modes_of_scatter() -> None:
    i, u = np.array([[1], [7]], np.int32), -X[:2]

    def setting(mode: Any) -> Any:
        return lambda x, i, u: lax.scatter(x, i, u, ROWS, mode=mode)

    for mode in (None, "drop", "fill", "promise_in_bounds"):
        same(agree(setting(mode), X, i, u), [np.stack([X[0], u[0], X[2]])], 0)
    got = agree(setting("clip"), X, i, u)
    same(got, [np.stack([X[0], u[0], u[1]])], 0)


def test_printed_gather() -> None:
    shown = str(make_jaxpr(lambda x, i: lax.gather(x, i, TAKE, (1, 4), mode="fill"))(
        X, np.zeros((2, 1), np.int32)
    ))
    assert "c:f32[2,4] = gather[" in shown
    for line in (
        "dimension_numbers=GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), "
        "start_index_map=(0,), operand_batching_dims=(), start_indices_batching_dims=())",
        "fill_value=nan", "indices_are_sorted=False", "slice_sizes=(1, 4)",
        "mode=GatherScatterMode.FILL_OR_DROP", "unique_indices=False",
    ):
        assert line in shown


@pytest.mark.parametrize(
    ("f", "name"),
    [(lax.scatter, "scatter"), (lax.scatter_add, "scatter-add"), (lax.scatter_sub, "scatter-sub"),
     (lax.scatter_mul, "scatter-mul"), (lax.scatter_min, "scatter-min"),
     (lax.scatter_max, "scatter-max")],
)
def test_names_and_defaults_of_scatters(f: Any, name: str) -> None:
    (eqn,) = make_jaxpr(lambda x, i, u: f(x, i, u, ROWS))(X, np.zeros((2, 1), np.int32), X[:2]).eqns
    assert eqn.primitive.name == name
    assert eqn.params == {
        "dimension_numbers": ROWS, "indices_are_sorted": False, "unique_indices": False,
        "mode": lax.GatherScatterMode.FILL_OR_DROP,
    }


def test_equal_calls_share_one_key() -> None:
    traced = [
        make_jaxpr(lambda x, i: lax.gather(x, i, TAKE, [1, 4], mode="fill"))(
            X, np.zeros((2, 1), np.int32)
        ).eqns[0].params
        for _ in range(2)
    ]
    assert hash(tuple(traced[0].items())) == hash(tuple(traced[1].items()))
    assert tuple(traced[0].items()) == tuple(traced[1].items())


def test_scatter_apply() -> None:
    i = np.array([[1], [1], [5], [0]], np.int32)

    def f(x: Any, i: Any) -> Any:
        return lax.scatter_apply(
            x, i, lambda v: elementwise.add(elementwise.mul(v, 2.0), 1.0), ROWS,
            update_shape=(4, 4),
        )

    same(agree(f, X, i), [np.stack([2 * X[0] + 1, 4 * X[1] + 3, X[2]])], 0)
    want = np.stack([2 * X[0] + 1, 2 * X[1] + 1, 8 * X[2] + 7])
    stacked = np.stack([i, np.array([[0], [1], [2], [2]], np.int32) + [[0], [0], [0], [0]]])
    stacked[1, :, 0] = [0, 1, 2, 2]
    got = vmap(f, in_axes=(None, 0))(X, stacked.astype(np.int32))
    same([np.asarray(got[0])], eager(f, X, i), 0)
    assert np.asarray(got[1])[2].tolist() == (4 * X[2] + 3).tolist() != want[2].tolist()


def test_scatter_apply_with_programs_inside() -> None:
    i = np.array([[1], [1]], np.int32)
    inner = jit(lambda v: elementwise.add(v, 1.0))
    got = agree(
        lambda x, i: lax.scatter_apply(x, i, inner, ITEMS, update_shape=(2,)), X[0], i
    )
    same(got, [np.array([0, 3, 2, 3], np.float32)], 0)


def test_scatter_apply_of_unique_indices_differentiates() -> None:
    i = np.array([[2], [9], [0]], np.int32)

    def f(x: Any) -> Any:
        return lax.scatter_apply(
            x, i, elementwise.sin, ROWS, update_shape=(3, 4), unique_indices=True
        )

    same(agree(f, X), [np.stack([np.sin(X[0]), X[1], np.sin(X[2])])], 1e-6)
    check_derivatives(f, X)


def test_errors_of_scatter_apply() -> None:
    i = np.array([[1]], np.int32)
    with pytest.raises(TypeError, match="scalars"):
        lax.scatter_apply(X, i, lambda v: elementwise.gt(v, 0.0), ROWS, update_shape=(1, 4))
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        jvp(lambda x: lax.scatter_apply(x, i, elementwise.sin, ROWS, update_shape=(1, 4)),
            (X,), (X,))
    with pytest.raises(NotImplementedError, match="traced value"):
        jit(lambda x, y: lax.scatter_apply(
            x, i, lambda v: elementwise.add(v, y), ROWS, update_shape=(1, 4)
        ))(X, np.float32(1))


def test_index_take() -> None:
    i, j = np.array([-1, 4, 2], np.int32), np.array([0, -1, 9], np.int32)
    same(agree(lambda x, i: lax.index_take(x, (i,), (0,)), X, i), [X[i % 3]], 0)
    same(agree(lambda x, i: lax.index_take(x, (i,), (1,)), X, i), [X[:, i % 4].T], 0)
    got = agree(lambda x, i, j: lax.index_take(x, (i, j), (0, 1)), X, i, j)
    same(got, [X[i % 3, j % 4]], 0)
    small = np.array([200], np.uint8)
    same(agree(lambda x, i: lax.index_take(x, (i,), (0,)), X, small), [X[[200 % 3]]], 0)


# Dynamic slices.


def test_negative_starts_count_from_the_end() -> None:
    for f in (lambda x, i: lax.dynamic_slice(x, (i, -2), (2, 2)),
              lambda x, i: lax.dynamic_slice(x, [i, np.int32(2)], (2, 2))):
        same(agree(f, X, np.int32(-2)), [X[1:3, 2:4]], 0)
    vector = np.array([-2, 2], np.int32)
    same(agree(lambda x, v: lax.dynamic_slice(x, v, (2, 2)), X, vector), [X[1:3, 2:4]], 0)
    got = agree(
        lambda x, i: lax.dynamic_slice(x, (i, 2), (2, 2), allow_negative_indices=False),
        X, np.int32(-2),
    )
    same(got, [X[0:2, 2:4]], 0)
    got = agree(
        lambda x, i: lax.dynamic_slice(x, (i, -2), (2, 2), allow_negative_indices=(False, True)),
        X, np.int32(-2),
    )
    same(got, [X[0:2, 2:4]], 0)


def test_known_starts_need_no_operations() -> None:
    jaxpr = make_jaxpr(lambda x: lax.dynamic_slice(x, (0, -1), (2, 2)))(X)
    assert [e.op.name for e in jaxpr.eqns] == ["dynamic_slice"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.int64])
def test_starts_of_every_dtype(dtype: Any) -> None:
    x = np.arange(300, dtype=np.float32)
    signed = np.dtype(dtype).kind == "i"
    with enable_x64(True):
        start = np.array(-1 if signed else 250, dtype)
        want = x[295:] if signed else x[250:255]
        same(agree(lambda x, s: lax.dynamic_slice(x, (s,), (5,)), x, start), [want], 0)


def test_starts_beyond_any_dtype_are_clamped() -> None:
    for start, want in [(10**30, X[2:]), (-(10**30), X[:1])]:
        got = np.asarray(lax.dynamic_slice(X, (start, 0), (1, 4)))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_in_dim_forms(axis: int) -> None:
    one = np.int32(1)
    at = axis % 2
    take = X.take([1, 2], at)
    got = agree(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis), X, one)
    same(got, [take], 0)
    got = agree(lambda x, i: lax.dynamic_index_in_dim(x, i, axis), X, one)
    same(got, [X.take([1], at)], 0)
    got = agree(lambda x, i: lax.dynamic_index_in_dim(x, i, axis, keepdims=False), X, one)
    same(got, [X.take(1, at)], 0)
    want = X.copy()
    np.moveaxis(want, at, 0)[1:3] = 0
    got = agree(
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, axis), X, 0 * take, one
    )
    same(got, [want], 0)
    want = X.copy()
    np.moveaxis(want, at, 0)[1] = 0
    for update in (0 * X.take(1, at), 0 * X.take([1], at)):
        got = agree(
            lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, axis), X, update, one
        )
        same(got, [want], 0)


def test_gradient_of_a_dynamic_slice_is_an_update() -> None:
    shown = make_jaxpr(grad(lambda x, i: lax.reduce_sum(
        lax.dynamic_slice(x, (i, 0), (2, 2)), (0, 1)
    )))(X, np.int32(1))
    names = [e.op.name for e in shown.eqns]
    assert "dynamic_update_slice" in names and "scatter-add" not in names


def test_errors_of_dynamic_slices() -> None:
    for error, match, call in [
        (ValueError, "Length of slice indices", lambda: lax.dynamic_slice(X, (1,), (2, 2))),
        (ValueError, "one start and size", lambda: lax.dynamic_slice(X, (1, 1), (2,))),
        (TypeError, "less than or equal", lambda: lax.dynamic_slice(X, (1, 1), (4, 2))),
        (TypeError, "same type", lambda: lax.dynamic_slice(X, (1.0, 1), (2, 2))),
        (TypeError, "scalar", lambda: lax.dynamic_slice(X, (np.zeros(2, int), 1), (2, 2))),
        (TypeError, "vector", lambda: lax.dynamic_slice(X, np.array(1), (2, 2))),
        (TypeError, "one dtype", lambda: lax.dynamic_update_slice(X, X[:1] > 0, (1, 1))),
        (TypeError, "rank", lambda: lax.dynamic_update_slice(X, X[0], (1, 1))),
        (IndexError, "out of bounds", lambda: lax.dynamic_index_in_dim(X, 1, 2)),
        (TypeError, "dimensions", lambda: lax.dynamic_update_index_in_dim(X, X[0, 0], 1, 1)),
    ]:
        with pytest.raises(error, match=match):
            call()


# Order.


def test_sort_returns_what_it_is_given() -> None:
    assert lax.sort(X[0]).shape == (4,)
    assert type(lax.sort((X, X))) is tuple and len(lax.sort([X])) == 1
    keys, values = lax.sort_key_val(-X, X, 0)
    np.testing.assert_array_equal(np.asarray(values), X[::-1])
    assert type(lax.top_k(X, 2)) is list
    (eqn,) = make_jaxpr(lambda x: lax.sort((x, x), dimension=-2, num_keys=2))(X).eqns
    assert eqn.params == {"dimension": 0, "is_stable": True, "num_keys": 2}
    with pytest.raises(TypeError, match="at least one"):
        lax.sort(())


def test_approximate_extrema_are_exact() -> None:
    x = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
    order = np.argsort(-x, 1)[:, :4]
    values, places = lax.approx_max_k(x, 4)
    np.testing.assert_array_equal(np.asarray(places), order)
    np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, order, 1))
    values, places = lax.approx_min_k(x, 4, reduction_dimension=0 - 1)
    np.testing.assert_array_equal(np.asarray(places), np.argsort(x, 1)[:, :4])
    values, _ = lax.approx_min_k(x, 2, reduction_dimension=0)
    np.testing.assert_array_equal(np.asarray(values), np.sort(x, 0)[:2])


# What JAX 0.10.2 returns without aggregation: (size, k, recall) -> sizes for a vector, a matrix.
LEFT_OVER = {
    (100, 5, 0.95): (100, 100),
    (1000, 1, 0.95): (1000, 128),
    (1000, 5, 0.5): (1000, 256),
    (1000, 50, 0.95): (1000, 1000),
    (1000, 50, 0.5): (1000, 256),
    (5000, 1, 0.95): (1024, 128),
    (5000, 5, 0.95): (2048, 256),
    (5000, 50, 0.95): (2048, 1280),
    (100000, 50, 0.95): (2048, 1664),
    (100000, 50, 0.5): (2048, 256),
}


def test_sizes_without_aggregation() -> None:
    for (n, k, recall), (vector, matrix) in LEFT_OVER.items():
        for shape, want in [((n,), vector), ((2, n), matrix)]:
            closed = make_jaxpr(lambda x, k=k, recall=recall: lax.approx_max_k(
                x, k, recall_target=recall, aggregate_to_topk=False
            ))(np.zeros(shape, np.float32))
            assert closed.out_avals[0].shape[-1] == want, (n, k, recall, shape)


def test_errors_of_approximations() -> None:
    for match, call in [
        ("reduction dimension", lambda: lax.approx_min_k(X, 5)),
        ("floating", lambda: lax.approx_max_k(X.astype(np.int32), 2)),
        ("recall_target", lambda: lax.approx_max_k(X, 2, recall_target=2.0)),
        ("override", lambda: lax.approx_max_k(X, 2, reduction_input_size_override=1)),
    ]:
        with pytest.raises(ValueError, match=match):
            call()


# The peer.

PROGRAM = """
import json, numpy as np, {module}
{imports}
x = np.arange(12, dtype=np.float32).reshape(3, 4)
i = np.array([[1], [7], [1], [-1]], np.int32)
u = np.array([[5, -1, 2, 7], [1, 1, 1, 1], [5, 5, 9, -3], [2, 2, 2, 2]], np.float32)
S = lax.ScatterDimensionNumbers((1,), (0,), (0,))
w = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)
odd = np.array([0., -0., np.nan, 1, -1, np.inf, -np.inf], np.float32)
found = {{}}
def keep(name, *values):
    values = [np.atleast_1d(np.asarray(v)).astype(complex) for v in values]
    found[name] = [v.view(float).tolist() for v in values]
for op in ("scatter", "scatter_add", "scatter_sub", "scatter_min", "scatter_max"):
    # Of clipped windows that are not inside, JAX differentiates other ones than it writes.
    for mode in ("drop",) if op[-3:] in ("min", "max") else ("clip", "drop"):
        f = lambda x, u: getattr(lax, op)(x, i, u, S, mode=mode)
        keep(op + mode, f(x, u), *grad(lambda x, u: lax.reduce_sum(
            lax.mul(f(x, u), w), (0, 1)), (0, 1))(x, u))
for mode in ("clip", "fill", "promise_in_bounds"):
    G = lax.GatherDimensionNumbers((1,), (), (0,))
    keep("gather" + mode, lax.gather(x, i, lax.GatherDimensionNumbers((1, 2), (), (0,)), (2, 3),
                                     mode=mode))
keep("sort", lax.sort(odd), *lax.sort((odd, np.arange(7))), *lax.top_k(odd, 5))
keep("arg", lax.argmax(odd, 0, np.int32), lax.argmin(odd, 0, np.int32))
keep("slices", lax.dynamic_slice(x, (-1, 9), (2, 2)), lax.dynamic_slice_in_dim(x, -3, 2, 1),
     lax.dynamic_update_slice(x, x[:2, :2], (2, -1)))
print(json.dumps(found))
"""


@pytest.mark.filterwarnings("default")
def test_figures_agree_with_jax(peer: Any, fresh_process: Any) -> None:
    theirs = peer(PROGRAM.format(module="jax", imports="from jax import lax, grad"))
    ours = fresh_process(PROGRAM.format(
        module="primal",
        imports="from primal import lax, grad\nfrom primal.ops.elementwise import mul\nlax.mul=mul",
    ))
    want, got = json.loads(theirs.stdout), json.loads(ours.stdout)
    assert want.keys() == got.keys()
    for name in want:
        for a, b in zip(want[name], got[name], strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6, err_msg=name)


def test_negative_starts_that_are_not_allowed() -> None:
    x = jnp.arange(5)
    assert lax.dynamic_slice(x, (jnp.int32(-2),), (2,), allow_negative_indices=False).tolist() == [
        0, 1,
    ]  # fmt: skip
    for call in (
        lambda: lax.dynamic_slice(x, (-2,), (2,), allow_negative_indices=False),
        lambda: lax.dynamic_update_slice(x, x[:2], (-2,), allow_negative_indices=[False]),
        lambda: lax.dynamic_slice_in_dim(x, -1, 1, allow_negative_indices=False),
    ):
        with pytest.raises(ValueError, match=r"\[dynamic_\w+\] expected a start from 0 on"):
            call()


@pytest.mark.parametrize("mode", [None, "clip", "fill", "promise_in_bounds"])
def test_windows_without_a_dimension_that_is_empty(mode: Any) -> None:
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0, 1))
    x, at, update = jnp.ones((0, 2)), jnp.zeros((1, 2), "int32"), jnp.ones((1, 2))
    for scatter in (lax.scatter, lax.scatter_add, lax.scatter_max):
        f = lambda x, u, s=scatter: s(x, at, u, numbers, mode=mode)  # noqa: E731
        assert f(x, update).shape == jit(f)(x, update).shape == (0, 2)
    with pytest.raises(TypeError, match="windows that fit"):
        lax.scatter(x[:, :0], at, update, numbers, mode=mode)


def test_starts_of_two_types_are_refused() -> None:
    x, update = jnp.arange(12).reshape(3, 4), jnp.zeros((2, 2), "int32")
    for starts in (
        (np.int32(1), np.int16(2)),
        (jnp.int32(1), jnp.int16(2)),
        (jnp.array([1, 0], "uint32")[0], jnp.array(0, "int16")),
    ):
        with pytest.raises(TypeError, match="integers of the same type"):
            lax.dynamic_slice(x, starts, (2, 2))
        with pytest.raises(TypeError, match="integers of the same type"):
            jit(lax.dynamic_update_slice)(x, update, starts)
    for starts in ((1, np.int16(2)), (jnp.int8(1), 2), (np.int64(1), jnp.int32(2))):
        assert lax.dynamic_slice(x, starts, (2, 2)).tolist() == [[6, 7], [10, 11]]


def test_gathers_of_nothing_ask_nothing_of_the_operand() -> None:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    none = np.zeros((0, 1), int)

    def f(x: Any) -> Any:
        return lax.gather(x, none, numbers, (1, 4))

    for shape in ((0, 3), (2, 3)):
        x = jnp.ones(shape)
        assert f(x).shape == jit(f)(x).shape == (0, 4)
        np.testing.assert_array_equal(grad(lambda x: f(x).sum())(x), np.zeros(shape))
    with pytest.raises(TypeError, match="collapsed"):
        lax.gather(jnp.ones((0, 3)), none, numbers, (2, 3))
    with pytest.raises(TypeError, match="something to gather from"):
        lax.gather(jnp.ones((0, 3)), np.zeros((2, 1), int), numbers, (1, 3))


def test_indices_of_top_k_fit_int32() -> None:
    long = ShapeDtypeStruct((2**31,), np.float16)
    with pytest.raises(ValueError, match="int32"):
        eval_shape(lambda x: lax.top_k(x, 2), long)
