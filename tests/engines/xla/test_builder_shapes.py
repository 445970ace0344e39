"""Constants, shape changes and indexing of the builder against NumPy."""

import ml_dtypes
import numpy as np
import pytest

from primal.base import dtype_table, dtypes
from primal.engines.xla.builder import Builder, tensor
from primal.engines.xla.builder.types import array_literal, scalar_literal
from primal.ir.avals import Aval
from tests.engines.xla.lab import client, one, run

F4, I4 = np.dtype("f4"), np.dtype("i4")
X = np.arange(24.0, dtype="f4").reshape(2, 3, 4)
ABSENT = (dtypes.int1, dtypes.uint1, dtypes.float6_e2m3fn, dtypes.float6_e3m2fn)
HELD = [d for d in dtype_table.all_dtypes if d not in ABSENT]


def _same(got, want) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", HELD, ids=str)
def test_constants_of_every_dtype_are_exact(dtype) -> None:
    small = [1, 0, 1] if dtype.name in ("bool", "int2", "uint2") else [1, 2, 4]
    values = np.array(small).astype(dtype)
    many = np.tile(values, 10).reshape(5, 6)
    splat = np.full((2, 2), values[0])
    empty = np.empty((0, 3), dtype)
    cases = (values, many, splat, empty, values[0])
    got = run(lambda b: [b.constant(c) for c in cases])
    for g, c in zip(got, cases, strict=True):
        _same(g, np.asarray(c))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ml_dtypes.bfloat16, "c8", "c16"])
def test_special_numbers_keep_their_bits(dtype) -> None:
    values = [np.nan, np.inf, -np.inf, -0.0, 1e-30, 3.141592653589793, 65504.0, 1e-7]
    with np.errstate(over="ignore"):
        arrays = [np.asarray(v).astype(dtype) for v in values]
    got = run(lambda b: [b.constant(a) for a in arrays])
    for g, a in zip(got, arrays, strict=True):
        _same(g, a)
    stacked = np.stack(arrays)
    _same(one(lambda b: b.constant(stacked)), stacked)


def test_extreme_integers() -> None:
    arrays = [np.array([np.iinfo(t).min, np.iinfo(t).max], t) for t in ("i1", "i8", "u8", "u4")]
    got = run(lambda b: [b.constant(a) for a in arrays] + [b.constant(a[1]) for a in arrays])
    for g, a in zip(got, arrays + [a[1] for a in arrays], strict=True):
        _same(g, np.asarray(a))


@pytest.mark.parametrize("dtype", ABSENT, ids=str)
def test_dtypes_that_xla_lacks_are_refused(dtype) -> None:
    with pytest.raises(TypeError, match=r"\[xla\] expected a dtype that XLA knows"):
        tensor(Aval((7,), dtype))
    with pytest.raises(TypeError, match=r"\[xla\] expected a dtype that XLA knows"):
        one(lambda b: b.constant(np.ones(3).astype(dtype)))
    with pytest.raises(TypeError, match=r"\[xla\] expected a dtype that XLA knows"):
        client().put(np.ones(3).astype(dtype), client().devices[0])


def test_literals() -> None:
    assert scalar_literal(True, np.dtype(bool)) == "true"
    assert scalar_literal(1, F4) == "1.000000e+00"
    assert scalar_literal(1 / 3, np.dtype("f8")) == "3.33333333333333315e-01"
    assert scalar_literal(0.1, np.dtype("f8")) == "1.000000e-01"
    assert scalar_literal(-np.inf, F4) == "0xFF800000"
    assert scalar_literal(1 - 2j, np.dtype("c8")) == "(1.000000e+00, -2.000000e+00)"
    assert array_literal(np.array([[1, 2], [3, 4]]), I4) == "[[1, 2], [3, 4]]"
    assert array_literal(np.zeros((0, 2)), F4) == ""


def test_constants_are_written_once_per_block_and_only_when_named() -> None:
    b = Builder()
    x = b.fresh(Aval((4,), F4))
    one_ = b.constant(1.0, F4)
    assert b.lines == []
    b.add(x, one_)
    b.add(x, b.constant(1.0, F4))
    # Broadcast, a constant is a splat of the bigger type: the scalar is never written.
    assert [line for line in b.lines if "constant" in line] == [
        "%1 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>"
    ]
    minus, plus = b.constant(-0.0, F4), b.constant(0.0, F4)
    assert minus.name != plus.name


def test_full_and_iota() -> None:
    got = run(
        lambda b: (
            b.full((2, 3), 7, I4), b.full((), 2.5, F4), b.full((0, 2), 1, F4),
            b.iota((2, 3), I4, 1), b.iota((3,), "c8", 0), b.iota((2,), bool, 0),
            b.full_like(b.iota((2, 2), F4, 0), -1),
        )
    )  # fmt: skip
    want = (
        np.full((2, 3), 7, I4), np.array(2.5, F4), np.empty((0, 2), F4),
        np.tile(np.arange(3, dtype=I4), (2, 1)), np.arange(3).astype("c8"),
        np.array([False, True]), np.full((2, 2), -1, F4),
    )  # fmt: skip
    for g, w in zip(got, want, strict=True):
        _same(g, w)


def test_shape_changes() -> None:
    got = run(
        lambda b, x: (
            b.broadcast_in_dim(x, (5, 2, 3, 4), (1, 2, 3)),
            b.broadcast_in_dim(b.reshape(x, (2, 1, 12)), (2, 6, 12), (0, 1, 2)),
            b.broadcast_in_dim(b.scalar(3.0, F4), (2, 2), ()),
            b.broadcast_to(x, (2, 2, 3, 4)),
            b.reshape(x, (6, 4)),
            b.reshape(x, (2, 3, 4)),
            b.transpose(x, (2, 0, 1)),
            b.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)),
            b.slice(x, (1, 2, 3), (1, 3, 4)),
            b.pad(x, b.scalar(-1.0, F4), ((1, 0, 0), (0, -1, 0), (0, 0, 2))),
            b.concatenate((x, x, b.slice(x, (0, 0, 0), (2, 1, 4))), 1),
            b.reverse(x, (0, 2)),
        ),
        X,
    )
    padded = np.full((3, 2, 10), -1.0, "f4")
    padded[1:, :, ::3] = X[:, :2]
    want = (
        np.broadcast_to(X, (5, 2, 3, 4)),
        np.broadcast_to(X.reshape(2, 1, 12), (2, 6, 12)),
        np.full((2, 2), 3, "f4"),
        np.broadcast_to(X, (2, 2, 3, 4)),
        X.reshape(6, 4),
        X,
        X.transpose(2, 0, 1),
        X[:, 1:, ::2],
        X[1:1, 2:, 3:],
        padded,
        np.concatenate([X, X, X[:, :1]], 1),
        X[::-1, :, ::-1],
    )
    for g, w in zip(got, want, strict=True):
        _same(g, w)


@pytest.mark.parametrize("dtype", [dtypes.int2, dtypes.uint2, dtypes.int4], ids=str)
def test_concatenate_of_narrow_integers(dtype) -> None:
    x = np.array([0, 1, 1]).astype(dtype)
    _same(one(lambda b, v: b.concatenate((v, v), 0), x), np.concatenate([x, x]))


def test_dynamic_slices_clamp() -> None:
    starts = [np.array(i, I4) for i in (1, 5, -3)]
    block, updated, scalar = run(
        lambda b, x, *s: (
            b.dynamic_slice(x, s, (1, 2, 3)),
            b.dynamic_update_slice(x, b.full((1, 2, 3), 0, F4), s),
            b.dynamic_slice(b.scalar(4.0, F4), (), ()),
        ),
        X,
        *starts,
    )
    _same(block, X[1:2, 1:3, 0:3])
    want = X.copy()
    want[1:2, 1:3, 0:3] = 0
    _same(updated, want)
    assert scalar == 4.0


def test_gather_rows_and_points() -> None:
    x = np.arange(20.0, dtype="f4").reshape(5, 4)
    rows = np.array([[3], [0], [9], [-1]], I4)
    points = np.array([[[0, 1], [4, 3]]], I4)
    got = run(
        lambda b, v, r, p: (
            b.gather(v, r, offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,),
                     slice_sizes=(1, 4)),
            b.gather(v, p, offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1),
                     slice_sizes=(1, 1)),
            b.gather(v, r, offset_dims=(0, 1), collapsed_slice_dims=(), start_index_map=(0,),
                     slice_sizes=(2, 4), indices_are_sorted=False),
            b.gather(v, b.constant(np.array([2, 1], I4)), offset_dims=(), start_index_map=(0, 1),
                     collapsed_slice_dims=(0, 1), slice_sizes=(1, 1)),
        ),
        x, rows, points,
    )  # fmt: skip
    _same(got[0], x[[3, 0, 4, 0]])
    _same(got[1], x[points[..., 0], points[..., 1]])
    _same(got[2], np.stack([x[[3, 4]], x[[0, 1]], x[[3, 4]], x[[0, 1]]], 2))
    _same(got[3], x[2, 1])


def test_gather_with_batching_dims() -> None:
    x = np.arange(24.0, dtype="f4").reshape(4, 6)
    i = np.array([5, 0, 2, 3], I4)
    got = one(
        lambda b, v, k: b.gather(
            v, b.reshape(k, (4, 1)), offset_dims=(), collapsed_slice_dims=(1,),
            operand_batching_dims=(0,), start_indices_batching_dims=(0,), start_index_map=(1,),
            slice_sizes=(1, 1),
        ),
        x, i,
    )  # fmt: skip
    _same(got, x[np.arange(4), i])


@pytest.mark.parametrize("how", ["set", "add", "multiply", "maximum", "region"])
def test_scatter_combines_and_drops(how) -> None:
    x = np.arange(10.0, dtype="f4").reshape(5, 2)
    rows = np.array([[1], [3], [7]], I4)
    new = np.array([[10, 20], [30, 40], [50, 60]], "f4")

    def build(b, v, r, u):
        body = (lambda c, p, q: c.subtract(p, q)) if how == "region" else how
        return b.scatter(
            [v], r, [u], body, update_window_dims=(1,), inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,), unique_indices=True,
        )  # fmt: skip

    combine = {"set": lambda p, q: q, "add": np.add, "multiply": np.multiply,
               "maximum": np.maximum, "region": np.subtract}[how]  # fmt: skip
    want = x.copy()
    want[[1, 3]] = combine(x[[1, 3]], new[:2])
    _same(one(build, x, rows, new), want)


def test_scatter_of_several_operands() -> None:
    x, y = np.zeros(4, "f4"), np.zeros(4, "i4")
    at = np.array([[2], [2]], I4)
    got = run(
        lambda b, p, q, i, u, v: b.scatter(
            [p, q], i, [u, v], lambda c, s, t, m, n: (c.add(s, m), c.maximum(t, n)),
            update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,),
        ),
        x, y, at, np.array([1, 2], "f4"), np.array([7, 5], "i4"),
    )  # fmt: skip
    assert got[0].tolist() == [0, 0, 3, 0]
    assert got[1].tolist() == [0, 0, 7, 0]


def test_sort_orders_zeros_and_nans_as_numpy() -> None:
    x = np.array([3.0, -np.nan, -0.0, 0.0, -1.0, np.nan, np.inf, 0.0], "f4")
    index = np.arange(8, dtype="i4")
    values, order = run(lambda b, v, i: b.sort([v, i], 0), x, index)
    np.testing.assert_array_equal(values, np.sort(x))
    assert order.tolist() == [4, 2, 3, 7, 0, 6, 1, 5]  # stable: -0 before 0 as they came


@pytest.mark.parametrize("dtype", ["i4", "u1", "?", "c8", ml_dtypes.bfloat16])
def test_sort_dtypes(dtype) -> None:
    x = np.array([[3, 1, 2], [0, 5, 4]]).astype(dtype)
    if dtype == "c8":
        x = x + np.array([1j, -1j, 0], "c8")
    np.testing.assert_array_equal(one(lambda b, v: b.sort([v], 1), x), np.sort(x, 1))


def test_sort_by_two_keys_and_by_a_comparator() -> None:
    a = np.array([1, 0, 1, 0, 1], "i4")
    c = np.array([5, 4, 3, 2, 1], "f4")
    keys = run(lambda b, p, q: b.sort([p, q], 0, num_keys=2), a, c)
    order = np.lexsort((c, a))
    _same(keys[0], a[order])
    _same(keys[1], c[order])
    down = one(lambda b, v: b.sort([v], 0, comparator=lambda d, p, q: d.compare(p, q, "GT")), c)
    _same(down, np.sort(c)[::-1])


def test_top_k() -> None:
    x = np.array([[3, 9, 4], [8, 1, 2]], "f4")
    values, where = run(lambda b, v: b.top_k(v, 2), x)
    assert values.tolist() == [[9, 4], [8, 2]]
    assert where.tolist() == [[1, 2], [0, 2]]


def test_keys_are_their_physical_integers() -> None:
    key = dtypes.KeyType("threefry2x32", "uint64")
    b = Builder()
    x = b.fresh(Aval((4,), key))
    y = b.reshape(x, (2, 2))
    assert y.type == "tensor<2x2xui64>"
    assert y.dtype == key
    assert b.bitcast_convert(x, "u4").type == "tensor<4x2xui32>"
