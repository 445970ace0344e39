"""Updates at an index: every method, modes, casts, repeated indices, programs, derivatives."""

import warnings

import numpy as np
import pytest

from primal.api import grad, jit, jvp, vmap
from primal.base import dtypes, errors
from primal.base.config import config
from primal.control.call import call
from primal.numpy import ufuncs
from primal.numpy.at import IndexUpdateHelper as At
from primal.numpy.index_forms import parse
from primal.numpy.index_updates import cast_values, write
from primal.numpy.indexing import Hints
from primal.ops.elementwise import mul, sin
from primal.ops.index.gather import scatter_add
from primal.ops.index.numbers import CLIP, FILL_OR_DROP, GatherScatterMode
from primal.ops.index.scatter import scatter, scatter_max, scatter_min, scatter_mul, scatter_sub
from primal.ops.spread import reduce_sum
from primal.runtime.eager import as_array
from primal.transforms.stage import stage

X1 = np.arange(1, 9, dtype=np.float32)
X2 = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
X3 = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)

# Method, the ufunc that `ufunc.at` makes it, the op of the general path.
OPS = {
    "set": (None, scatter),
    "add": (np.add, scatter_add),
    "subtract": (np.subtract, scatter_sub),
    "multiply": (np.multiply, scatter_mul),
    "mul": (np.multiply, scatter_mul),
    "min": (np.minimum, scatter_min),
    "max": (np.maximum, scatter_max),
    "divide": (np.divide, None),
    "power": (np.power, None),
}


@pytest.fixture(params=["xla", "cpu"])
def engine(request):
    before = config.cpu_engine
    config.update("cpu_engine", request.param)
    yield
    config.update("cpu_engine", before)


class Form:
    """`Form()[...]` is the index between the brackets."""

    def __getitem__(self, index):
        return index


I = Form()  # noqa: E741

FORMS = [
    (X1, I[0]),
    (X1, I[-1]),
    (X1, I[:2]),
    (X1, I[::-1]),
    (X1, I[::3]),
    (X1, I[5:1:-2]),
    (X1, I[5:1]),
    (X1, I[...]),
    (X1, I[()]),
    (X1, I[None, 2:4]),
    (X1, I[np.array([0, -1, 3])]),
    (X1, I[[0, 2],]),
    (X1, I[np.arange(8) > 3]),
    (X1, I[True]),
    (X1, I[False]),
    (X2, I[1, 2]),
    (X2, I[:, -1]),
    (X2, I[1:, ::-2]),
    (X2, I[::2, ::3]),
    (X2, I[1, 1:3]),
    (X2, I[np.array([[0], [2]]), np.array([1, 3])]),
    (X2, I[:, np.array([1, 0])]),
    (X2, I[X2 > 3]),
    (X2, I[np.array([True, False, True]), 1]),
    (X3, I[0, ..., None, 1:3]),
    (X3, I[0, :, np.array([0, 1])]),
    (X3, I[:, 0, np.array([0, 1])]),
    (X3, I[np.array([0, 1]), 1:, np.array([0, 1])]),
    (X3, I[None, np.array([0, 1]), ::-2, np.array([2, -1])]),
    (X3, I[::-1, np.array([[0, 2]]), 1:4:2]),
    (X3, I[np.array([[0], [1]]), ::2, np.array([0, 3])]),
    (np.float32(3).reshape(()), I[()]),
    (np.zeros((3, 0), np.float32), I[0]),
    (np.zeros((0, 3), np.float32), I[np.array([0])]),
]


def oracle(x, index, values, ufunc):
    if ufunc is np.divide:
        x = x.astype(np.float32)
    out = np.array(x)
    if x.size == 0:
        return out
    if ufunc is None:
        out[index] = values
    else:
        ufunc.at(out, index, values)
    return out


def values_for(x, index, seed=0):
    rng = np.random.default_rng(seed)
    shape = np.empty(x.shape)[index].shape if x.size else ()
    return rng.integers(1, 4, shape).astype(x.dtype)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(("value", "index"), FORMS, ids=lambda v: repr(v)[:40])
def test_every_update_is_the_ufunc_at_the_index(name, value, index):
    ufunc, op = OPS[name]
    x = as_array(value)
    before = np.array(value)
    for values in (2, values_for(value, index)):
        want = oracle(value, index, values, ufunc)
        got = getattr(At(x)[index], name)(values)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-6)
        np.testing.assert_array_equal(x, before)
        if op is not None and value.size:
            form = parse(index, x.shape)
            v = cast_values(x, values, name)
            general = write(x, form, v, op, Hints(False, False, FILL_OR_DROP, True))
            if 0 not in form.result_shape():
                np.testing.assert_array_equal(general, got)


@pytest.mark.parametrize("name", ["set", "add", "min", "multiply"])
@pytest.mark.parametrize(("value", "index"), FORMS, ids=lambda v: repr(v)[:40])
def test_every_update_is_the_same_inside_programs(engine, name, value, index):
    x, y = as_array(value), as_array(values_for(value, index))
    program = stage(lambda a, b: [getattr(At(a)[index], name)(b)], [x.aval, y.aval])
    (got,) = call(x, y, jaxpr=program, name="write")
    np.testing.assert_array_equal(got, oracle(value, index, y.numpy(), OPS[name][0]))


# The figures of the documents.


def test_the_examples_of_documents():
    x = as_array(np.eye(2, dtype=np.float32))
    x = At(x)[0, 0].set(2)
    x = At(x)[:, -1].multiply(-3)
    np.testing.assert_array_equal(x, [[2, 0], [0, -3]])
    assert str(At(as_array(np.arange(5)))[0].set(9)) == "[9 1 2 3 4]"


# Repeated indices.


def test_repeated_indices_accumulate():
    x = as_array(X1)
    i = np.array([1, 1, 1])
    y = np.array([7, 8, 9], np.float32)
    for run in (lambda f: f, jit):
        def do(name, run=run):
            return np.asarray(run(lambda a, b: getattr(At(a)[i], name)(b))(x, y))[1]

        assert do("set") == 9
        assert do("add") == 26
        assert do("subtract") == -22
        assert do("multiply") == 2 * 7 * 8 * 9
        np.testing.assert_allclose(do("divide"), 2 / (7 * 8 * 9), rtol=1e-6)
        assert do("min") == 2
        assert do("max") == 9
    got = At(x)[i].power(np.array([1, 2, 2], np.float32))
    np.testing.assert_allclose(np.asarray(got)[1], 16)


# Out of bounds.

OUTSIDE = np.array([10, -20, -1, 2])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mode", [None, "drop", "fill", "promise_in_bounds"])
def test_writes_out_of_bounds_are_dropped(mode, traced):
    run = jit if traced else (lambda f: f)
    x = as_array(np.arange(5))
    got = run(lambda a, i: At(a)[i].set(9, mode=mode))(x, OUTSIDE)
    np.testing.assert_array_equal(got, [0, 1, 9, 3, 9])
    got = run(lambda a, i: At(a)[i].add(9, mode=mode))(x, OUTSIDE)
    np.testing.assert_array_equal(got, [0, 1, 11, 3, 13])
    for i in (10, -10):
        np.testing.assert_array_equal(run(lambda a, i=i: At(a)[i].set(9, mode=mode))(x), x)
        np.testing.assert_array_equal(run(lambda a, i=i: At(a)[i].add(9, mode=mode))(x), x)
    if mode != "promise_in_bounds":
        np.testing.assert_array_equal(run(lambda a, i: At(a)[i].set(9, mode=mode))(x, 10), x)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mode", ["clip", GatherScatterMode.CLIP])
def test_clipped_writes_hit_the_nearest_element(mode, traced):
    run = jit if traced else (lambda f: f)
    x = as_array(np.arange(5))
    got = run(lambda a, i: At(a)[i].set(9, mode=mode))(x, OUTSIDE)
    np.testing.assert_array_equal(got, [9, 1, 9, 3, 9])
    for i, at in ((10, 4), (-10, 0)):
        want = np.arange(5)
        want[at] = 9
        np.testing.assert_array_equal(run(lambda a, i=i: At(a)[i].set(9, mode=mode))(x), want)
        np.testing.assert_array_equal(run(lambda a, i: At(a)[i].set(9, mode=mode))(x, i), want)
        np.testing.assert_array_equal(
            run(lambda a, i, at=at: At(a)[i].add(9 - at, mode=mode))(x, i), want
        )


def test_negative_indices_that_do_not_wrap_are_out_of_bounds():
    x = as_array(np.arange(5.0, dtype=np.float32))
    options = {"wrap_negative_indices": False}
    for i in (-1, np.array([-1])):
        np.testing.assert_array_equal(At(x)[i].set(9, **options), x)
        np.testing.assert_array_equal(At(x)[i].add(9, **options), x)
        assert np.all(np.isnan(At(x)[i].get(mode="fill", **options)))
        assert np.all(np.asarray(At(x)[i].get(**options)) == 0)
    np.testing.assert_array_equal(At(x)[-2:].set(9, **options), [0, 1, 2, 9, 9])


def test_get_fills_by_dtype():
    for dtype, want in [
        ("float32", np.nan),
        ("int32", -(2**31)),
        ("uint8", 255),
        ("int8", -128),
        ("bool", True),
    ]:
        x = as_array(np.zeros(5, dtype))
        for i in (9, np.array([9])):
            for mode in ("fill", "drop"):
                got = At(x)[i].get(mode=mode)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, np.full(np.shape(i), want, dtype))
    x = as_array(X1)
    np.testing.assert_array_equal(At(x)[OUTSIDE].get(mode="fill", fill_value=7), [7, 7, 8, 3])
    np.testing.assert_array_equal(At(x)[OUTSIDE].get(mode="clip"), [8, 1, 8, 3])
    np.testing.assert_array_equal(At(x)[OUTSIDE].get(fill_value=7), [8, 1, 8, 3])
    np.testing.assert_array_equal(
        At(as_array(np.zeros((0, 2), np.float32)))[3].get(mode="fill", fill_value=1), [1, 1]
    )
    np.testing.assert_array_equal(
        jit(lambda a, i: At(a)[i].get(mode="fill", fill_value=np.float32(2)))(x, 9), 2
    )
    for value in ((0, 0), [0], np.array([7])):
        with pytest.raises(ValueError, match="fill_value .*must be a scalar"):
            At(x)[9].get(mode="fill", fill_value=value)


def test_unknown_modes():
    x = as_array(X1)
    for use in (lambda m: At(x)[1].get(mode=m), lambda m: At(x)[1].set(1, mode=m)):
        for mode in ("wrap", "CLIP", 1):
            with pytest.raises(ValueError, match="mode"):
                use(mode)


# Casts and shapes of values.


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        ("int32", 1.5, 1),
        ("int32", np.float32(-1.5), -1),
        ("int32", float("nan"), 0),
        ("float32", 1j, 0),
        ("bfloat16", np.float32(1.5), 1.5),
        ("bfloat16", np.float16(1.5), 1.5),
        ("int8", np.int32(300), 44),
        ("bool", 5, True),
        ("bool", 0.0, False),
    ],
)
def test_unsafe_casts_warn(dtype, value, want):
    x = as_array(np.ones(3).astype(dtypes.as_dtype(dtype)))
    for use in (value, np.asarray(value) if isinstance(value, np.generic) else value):
        with pytest.warns(FutureWarning, match="scatter inputs have incompatible types"):
            got = At(x)[0].set(use)
        assert got.dtype == x.dtype and np.asarray(got)[0] == want


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        ("float32", 1, 1.0),
        ("float32", np.float64(1.5), 1.5),
        ("float32", True, 1.0),
        ("bfloat16", 1.5, 1.5),
        ("int8", 300, 44),
        ("uint8", -1, 255),
        ("int32", True, 1),
        ("int32", np.int8(3), 3),
        ("complex64", 2, 2),
        ("complex64", 1j, 1j),
        ("float32", 1e300, np.inf),
    ],
)
def test_safe_casts_do_not_warn(dtype, value, want):
    x = as_array(np.ones(3).astype(dtypes.as_dtype(dtype)))
    for run in (lambda f: f, jit):
        got = run(lambda a: At(a)[0].set(value))(x)
        assert got.dtype == x.dtype and np.asarray(got)[0] == want


@pytest.mark.parametrize("name", ["set", "add", "multiply", "max"])
@pytest.mark.parametrize("index", [I[3], I[2:5], I[np.array([1, 1, -2])]], ids=repr)
@pytest.mark.parametrize("mode", [None, "drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 200, 1], np.uint8), np.array([1.1, 1e30, -0.0]), np.float16(0.1), [1, 2, 0.5],
        np.array(True), np.int64(7), [True, False, True],
    ],
    ids=repr,
)  # fmt: skip
def test_values_of_another_dtype_are_converted_first(name, index, mode, values):
    if np.ndim(values) and isinstance(index, int):
        return
    x = as_array(X1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = getattr(At(x)[index], name)(values, mode=mode)
        jitted = jit(lambda a, v: getattr(At(a)[index], name)(v, mode=mode))(x, values)
    given = np.asarray(values).astype(np.float32)
    want = getattr(At(x)[index], name)(given)
    assert got.dtype == np.float32 and not got.weak_type
    for found in (got, jitted):
        assert np.asarray(found).tobytes() == np.asarray(want).tobytes()


def test_python_ints_that_fit_no_index_of_theirs():
    with pytest.raises(OverflowError, match="too large"):
        At(as_array(np.arange(3)))[0].set(2**40)


def test_results_keep_the_weak_type_of_the_array():
    weak = as_array(3.0)
    for got in (
        At(weak)[()].set(2.0),
        At(weak)[()].set(np.float32(2)),
        At(weak)[()].add(2.0),
        At(weak)[()].apply(lambda v: mul(v, v)),
        At(weak)[()].get(mode="clip"),
        At(weak)[None].max(1.0),
    ):
        assert got.weak_type and got.dtype == np.float32
    assert not At(as_array(X1))[0].set(2.0).weak_type


def test_values_may_be_sequences():
    x = as_array(X1)
    for values in ([1.0, 2.0], (1, 2), [as_array(1.0), 2.0]):
        np.testing.assert_array_equal(np.asarray(At(x)[3:5].set(values))[3:5], [1, 2])
    with pytest.raises(TypeError):
        At(x)[0].set("a")
    with pytest.raises((TypeError, ValueError)):
        At(x)[0].set(None)
    with pytest.raises(TypeError):
        At(x)[0].set(object())


@pytest.mark.parametrize("shape", [(3,), (1, 2), (1, 1, 2), (2, 2)])
@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_values_that_do_not_broadcast(shape, run):
    x = as_array(X1)
    for index in (slice(2), np.array([0, 1])):
        with pytest.raises(ValueError, match="broadcast"):
            run(lambda a, b, i=index: At(a)[i].set(b))(x, np.ones(shape, np.float32))
        with pytest.raises(ValueError, match="broadcast"):
            run(lambda a, b, i=index: At(a)[i].add(b))(x, np.ones(shape, np.float32))
    with pytest.raises(ValueError, match="broadcast"):
        run(lambda a, b: At(a)[0].set(b))(x, np.ones(shape, np.float32))


def test_booleans_have_no_sum():
    x = as_array(np.zeros(3, bool))
    for name in ("add", "multiply", "subtract", "power", "divide"):
        with pytest.raises(TypeError):
            getattr(At(x)[0], name)(True)
    assert np.asarray(At(x)[0].max(True)).tolist() == [True, False, False]


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_unsafe_values_are_combined_in_the_common_dtype(run):
    big = 2**24 + 1
    x = as_array(np.array([1, 2, big]))
    for name, value, want in [
        ("subtract", 0.5, 0), ("multiply", 2.5, 2), ("add", 1.5, 2), ("min", 0.5, 0),
        ("max", 1.5, 1),
    ]:  # fmt: skip
        for index in (0, np.array([0, 9])):
            with pytest.warns(FutureWarning):
                got = run(lambda a, n=name, v=value, i=index: getattr(At(a)[i], n)(v))(x)
            # The others are not touched: big is no float32.
            assert got.dtype == x.dtype and np.asarray(got).tolist() == [want, 2, big]
    with pytest.warns(FutureWarning):
        assert At(as_array(np.ones(2, bool)))[0].subtract(1).dtype == bool


def test_keywords_and_shardings():
    ref = At(as_array(X1))[0]
    with pytest.raises(TypeError, match="unexpected keyword"):
        ref.set(1, fill_value=2)
    with pytest.raises(NotImplementedError, match="out_sharding"):
        ref.set(1, out_sharding="x")
    ref.set(1, out_sharding=None, unique_indices=True, indices_are_sorted=True)
    assert "IndexUpdateRef(Array(" in repr(ref) and "IndexUpdateHelper(" in repr(At(ref.array))


def test_traced_masks_teach():
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="where"):
        jit(lambda a, m: At(a)[m].set(0.0))(X1, X1 > 3)


# apply.


def double(v):
    return mul(v, 2.0)


def test_apply_is_once_per_mention():
    for run in (lambda f: f, jit):
        x = as_array(X1)
        got = run(lambda a: At(a)[np.array([2, 2, 2, 0])].apply(double))(x)
        np.testing.assert_array_equal(got, [2, 2, 24, 4, 5, 6, 7, 8])
        got = run(lambda a: At(a)[np.array([20])].apply(double))(x)
        np.testing.assert_array_equal(got, X1)
        got = run(lambda a: At(a)[np.array([1, 2])].apply(double, unique_indices=True))(x)
        np.testing.assert_array_equal(got, [1, 4, 6, 4, 5, 6, 7, 8])
        got = run(lambda a: At(a)[::-3].apply(sin))(x)
        want = X1.copy()
        want[::-3] = np.sin(want[::-3])
        np.testing.assert_allclose(got, want, rtol=1e-6)
        got = run(lambda a: At(a)[1].apply(lambda v: 2.0))(x)
        np.testing.assert_array_equal(got, [1, 2, 3, 4, 5, 6, 7, 8])
        assert run(lambda a: At(a)[5:5].apply(double))(x).shape == (8,)


def test_apply_sees_scalars_of_the_arrays_dtype():
    seen = []

    def look(v):
        seen.append((v.shape, v.dtype.name))
        return v

    At(as_array(X2))[1].apply(look)
    At(as_array(X3))[np.array([0, 0])].apply(look)
    assert seen == [((), "float32"), ((), "int32")]


def test_apply_wants_the_same_dtype_back():
    for index in (1, np.array([1, 1])):
        with pytest.raises(TypeError, match=r"\[at.apply\] expected a function from f32\[\]"):
            At(as_array(X1))[index].apply(lambda v: ufuncs.greater(v, 1))


def test_derivative_of_apply():
    x = as_array(X1)
    got = grad(lambda a: reduce_sum(At(a)[2:4].apply(lambda v: mul(v, v)), axes=(0,)))(x)
    np.testing.assert_allclose(got, [1, 1, 6, 8, 1, 1, 1, 1])
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        grad(lambda a: reduce_sum(At(a)[np.array([1])].apply(sin), axes=(0,)))(x)


# Derivatives.


@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "power",
                                  "min", "max"])
@pytest.mark.parametrize("index", [I[1], I[1:6:2], I[::-1], I[np.array([0, 3, 5])]])
def test_derivatives_are_finite_differences(name, index, x64):
    x = as_array(X1.astype(np.float64))
    part = X1[index]
    y = as_array(np.random.default_rng(1).uniform(0.5, 9.7, part.shape))
    t = as_array(np.cos(np.arange(8.0)))
    u = as_array(np.sin(1 + np.arange(part.size, dtype=np.float64)).reshape(part.shape))

    def f(a, b):
        return getattr(At(a)[index], name)(b, unique_indices=True)

    _, got = jvp(f, (x, y), (t, u))
    h = 1e-6
    move = lambda s: np.asarray(  # noqa: E731
        f(as_array(x.numpy() + s * t.numpy()), as_array(y.numpy() + s * u.numpy()))
    )
    np.testing.assert_allclose(got, (move(h) - move(-h)) / (2 * h), rtol=1e-6, atol=1e-7)
    gx, gy = grad(lambda a, b: reduce_sum(mul(f(a, b), t), axes=(0,)), (0, 1))(x, y)
    total = np.sum(gx.numpy() * t.numpy()) + np.sum(gy.numpy() * u.numpy())
    np.testing.assert_allclose(total, np.sum(np.asarray(got) * t.numpy()), rtol=1e-10)


def test_derivative_of_repeated_set_goes_to_the_value_that_stays():
    i = np.array([1, 1, 2])
    got = grad(lambda y: reduce_sum(At(as_array(X1))[i].set(y), axes=(0,)))(
        as_array(np.ones(3, np.float32))
    )
    np.testing.assert_array_equal(got, [0, 1, 1])


# Vectorisation.


@pytest.mark.parametrize("name", ["set", "add", "multiply", "max"])
@pytest.mark.parametrize("in_axes", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)])
def test_vmap_is_a_loop(name, in_axes):
    rng = np.random.default_rng(0)
    shapes = [(4, 5), (2,), (3, 2)]
    x, i, y = (
        rng.integers(-6, 6, (3, *s) if a == 0 else s) for s, a in zip(shapes, in_axes, strict=True)
    )
    x, y = x.astype(np.float32), y.astype(np.float32)

    def f(a, j, b):
        return getattr(At(a)[slice(1, None), j], name)(b)

    got = vmap(f, in_axes)(as_array(x), as_array(i), as_array(y))
    rows = [
        f(*[as_array(v if a is None else v[k]) for v, a in zip((x, i, y), in_axes, strict=True)])
        for k in range(3)
    ]
    np.testing.assert_array_equal(got, np.stack(rows))


# Programs.


def primitives(f, *values):
    avals = [as_array(v).aval for v in values]
    return [eqn.op.name for eqn in stage(lambda *a: [f(*a)], avals).jaxpr.eqns]


def test_static_updates_are_slice_updates_and_others_scatters():
    spread = "broadcast_in_dim"
    assert primitives(lambda a: At(a)[1].set(2.0), X1) == [spread, "dynamic_update_slice"]
    assert primitives(lambda a: At(a)[:2].set(2.0), X1) == [spread, "dynamic_update_slice"]
    assert primitives(lambda a, b: At(a)[::-1].set(b), X1, X1) == ["rev", "dynamic_update_slice"]
    assert primitives(lambda a: At(a)[9].set(2.0), X1) == [spread, "scatter"]
    assert primitives(lambda a: At(a)[1].add(2.0), X1) == [spread, "scatter-add"]
    names = primitives(lambda a, i: At(a)[i].add(2.0), X1, np.array([0, 1]))
    assert names == ["lt", "add", "select_n", spread, spread, "scatter-add"]
    names = primitives(lambda a, i: At(a)[i].set(2.0, mode="clip"), X1, np.int32(1))
    assert names[-1] == "dynamic_update_slice"


def test_concrete_updates_are_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = as_array(np.full(3, 3e38, np.float32))
        assert np.isinf(np.asarray(At(x)[0].add(3e38))[0])
        assert np.isnan(np.asarray(At(x)[0].set(np.nan))[0])


def test_clip_hint_is_the_default_of_get():
    x = as_array(X1)
    np.testing.assert_array_equal(At(x)[OUTSIDE].get(), At(x)[OUTSIDE].get(mode=CLIP))


def test_imaginary_parts_of_updates_are_not_dropped_in_silence():
    x, z = as_array(np.ones(3, np.float32)), as_array(np.ones(3, np.complex64))
    for use in (lambda: At(x)[0].set(1j), lambda: At(x)[:].add(z), lambda: At(x)[0].mul(1j)):
        with pytest.warns(FutureWarning), pytest.warns(np.exceptions.ComplexWarning):
            assert use().dtype == np.float32
