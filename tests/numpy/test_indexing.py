"""Reading elements: forms, programs, errors, and the figures that documents print."""

import numpy as np
import pytest

from primal.api import grad, jit, vmap
from primal.base import dtypes, errors
from primal.base.config import config
from primal.control.call import call
from primal.numpy.at import IndexUpdateHelper
from primal.numpy.index_forms import parse
from primal.numpy.indexing import READ, getitem, read
from primal.ops.spread import reduce_sum
from primal.runtime.array import ArrayImpl
from primal.runtime.eager import as_array
from primal.transforms.stage import stage

X1 = np.arange(8, dtype=np.float32)
X2 = np.arange(12, dtype=np.float32).reshape(3, 4)
X3 = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


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
    (X1, I[5:1:-2]),
    (X1, I[5:1]),
    (X1, I[-100:100]),
    (X1, I[7:-100:-3]),
    (X1, I[np.int32(3)]),
    (X1, I[np.array(3)]),
    (X1, I[np.uint8(3) :]),
    (X1, I[()]),
    (X1, I[...]),
    (X1, I[None]),
    (X1, I[..., None, None]),
    (X1, I[np.array([], np.int32)]),
    (X1, I[[0, 2],]),
    (X1, I[(0, 2),]),
    (X1, I[[],]),
    (X1, I[X1 > 3]),
    (X1, I[True]),
    (X1, I[False]),
    (X1, I[np.True_]),
    (X2, I[1, 2]),
    (X2, I[:, -1]),
    (X2, I[..., 0]),
    (X2, I[1:, ::-2]),
    (X2, I[[0, 1], [1, -1]]),
    (X2, I[np.array([[0], [2]]), np.array([1, 3])]),
    (X2, I[:, np.array([1, 1, 0])]),
    (X2, I[X2 > 3]),
    (X2, I[np.array([True, False, True])]),
    (X2, I[:, np.array([True, False, True, True])]),
    (X2, I[np.array([True, False, True]), np.array([True, False, True, False])]),
    (X2, I[True, 0]),
    (X2, I[:, True]),
    (X2, I[True, False]),
    (X2, I[True, np.array([0, 1])]),
    (X3, I[0, ..., None, 1:3]),
    (X3, I[:, ::-1, 1]),
    (X3, I[0, :, np.array([0, 1])]),
    (X3, I[:, 0, np.array([0, 1])]),
    (X3, I[np.array([0, 1]), 1:, np.array([0, 1])]),
    (X3, I[np.array([0, 1]), None, np.array([0, 1])]),
    (X3, I[None, np.array([0, 1]), ::-2, np.array([2, -1])]),
    (X3, I[:, np.array([[0, 2]]), 1:4:2]),
    (X3, I[1, np.array([0, 1]), :]),
    (X3, I[np.array([1]), np.ones((3, 4), bool)]),
    (X3, I[np.array([True, False]), :, np.array([3])]),
    (X3, I[X3 > 30]),
    (np.float32(3).reshape(()), I[()]),
    (np.float32(3).reshape(()), I[...]),
    (np.float32(3).reshape(()), I[None]),
    (np.float32(3).reshape(()), I[True]),
    (np.zeros((3, 0), np.float32), I[0]),
    (np.zeros((3, 0), np.float32), I[np.array([0, 2])]),
    (np.zeros((0,), np.float32), I[1:]),
    (np.zeros((0,), np.float32), I[np.zeros((0,), np.int32)]),
    (np.zeros((0, 3), np.float32), I[:, 1]),
]


def general(x, index):
    """The path of traced operands, on concrete ones."""
    return read(x, parse(index, x.shape), READ)


@pytest.mark.parametrize(("value", "index"), FORMS, ids=lambda v: repr(v)[:40])
def test_every_form_is_numpys_on_both_paths(value, index):
    want = value[index]
    x = as_array(value)
    for got in (getitem(x, index), general(x, index)):
        assert type(got) is ArrayImpl
        assert got.dtype == value.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize(("value", "index"), FORMS, ids=lambda v: repr(v)[:40])
def test_every_form_is_the_same_inside_programs(engine, value, index):
    x = as_array(value)
    program = stage(lambda a: [getitem(a, index)], [x.aval])
    (got,) = call(x, jaxpr=program, name="read")
    want = value[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(np.asarray(got), want)


def test_index_arrays_of_ours_are_as_numpys():
    x = as_array(X3)
    i, m = as_array(np.array([1, 0])), as_array(np.array([True, False, True]))
    np.testing.assert_array_equal(getitem(x, i).numpy(), X3[[1, 0]])
    np.testing.assert_array_equal(getitem(x, (slice(None), m)).numpy(), X3[:, [0, 2]])
    np.testing.assert_array_equal(getitem(x, as_array(np.int32(1))).numpy(), X3[1])
    np.testing.assert_array_equal(getitem(x, ([as_array(1), 0],)).numpy(), X3[[1, 0]])
    np.testing.assert_array_equal(getitem(x, slice(as_array(1), None)).numpy(), X3[1:])


# Out of bounds.


@pytest.mark.parametrize("traced", [False, True])
def test_reads_out_of_bounds_come_from_the_nearest_element(traced):
    x = as_array(np.arange(5))
    run = jit if traced else (lambda f: f)
    assert str(getitem(x, 10)) == "4"
    for i, want in ((10, 4), (-10, 0), (-1, 4), (2**40, 4), (-(2**40), 0)):
        assert int(run(lambda a, i=i: getitem(a, i))(x)) == want
    index = np.array([10, -10, -1, 2])
    np.testing.assert_array_equal(run(getitem)(x, index), [4, 0, 4, 2])
    np.testing.assert_array_equal(run(lambda a: getitem(a, index))(x), [4, 0, 4, 2])
    for i, want in ((10, 4), (-10, 0), (-1, 4)):
        assert int(run(getitem)(x, i)) == want


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int32"])
def test_index_dtypes_too_narrow_for_the_dimension_keep_their_meaning(dtype):
    x = np.arange(70000, dtype=np.int32)
    info = np.iinfo(dtype)
    index = np.array([0, 1, info.max, info.min, max(info.min, -1)], dtype)
    wide = index.astype(np.int64)
    want = x[np.clip(np.where(wide < 0, wide + 70000, wide), 0, 69999)]
    np.testing.assert_array_equal(getitem(as_array(x), index).numpy(), want)
    np.testing.assert_array_equal(jit(getitem)(x, index), want)
    np.testing.assert_array_equal(jit(getitem)(x, index[2]), want[2])


EMPTY = [
    ((0, 3), I[0], True),
    ((3, 0, 2), I[:, 0, 0], True),
    ((0, 3), I[np.array([0])], False),
    ((0, 3), I[[5], 0], False),
]


@pytest.mark.parametrize(("shape", "index", "alone"), EMPTY, ids=repr)
def test_integers_index_nothing_in_an_empty_dimension(shape, index, alone):
    x = as_array(np.zeros(shape, np.float32))
    with pytest.raises(IndexError, match="out of bounds for axis . with size 0"):
        getitem(x, index)
    if alone:
        with pytest.raises(IndexError, match="out of bounds for axis . with size 0"):
            x.at[index].set(1.0)
    else:  # updates by arrays drop what lies outside
        assert x.at[index].set(1.0).shape == shape


# Programs.


def primitives(f, *values):
    avals = [as_array(v).aval for v in values]
    return [eqn.op.name for eqn in stage(lambda *a: [f(*a)], avals).jaxpr.eqns]


@pytest.mark.parametrize(
    ("value", "index", "want"),
    [
        (X1, I[1], ["slice", "squeeze"]),
        (X1, I[10], ["dynamic_slice", "squeeze"]),
        (X1, I[:2], ["slice"]),
        (X1, I[:], []),
        (X1, I[...], []),
        (X1, I[::-1], ["rev"]),
        (X1, I[::-2], ["slice", "rev"]),
        (X1, I[None], ["broadcast_in_dim"]),
        (X2, I[1, 2], ["slice", "squeeze"]),
        (X3, I[0, ..., None, 1:3], ["slice", "squeeze", "broadcast_in_dim"]),
        (X3, I[:, ::-1, 1], ["slice", "rev", "squeeze"]),
        (X2, I[np.array([0, 1])], ["gather"]),
    ],
)
def test_static_indices_are_slices(value, index, want):
    assert primitives(lambda x: getitem(x, index), value) == want


def test_traced_scalars_are_dynamic_slices():
    got = primitives(lambda x, i: getitem(x, (i, slice(1, 3))), X2, np.int32(1))
    assert got == ["lt", "add", "select_n", "dynamic_slice", "squeeze"]


def test_the_jaxpr_of_a_static_index():
    text = str(stage(lambda x: [getitem(x, 1)], [as_array(X1).aval]).jaxpr)
    assert "slice[limit_indices=(2,) start_indices=(1,)] a" in text
    assert "squeeze[dimensions=(0,)] b" in text


def test_results_keep_dtype_and_weak_type():
    weak = as_array(3.0)
    for got in (getitem(weak, None), getitem(getitem(weak, None), np.array([0]))):
        assert got.weak_type and got.dtype == np.float32
    assert not getitem(as_array(X1), 0).weak_type


@pytest.mark.parametrize("dtype", ["bool", "int4", "u1", "bfloat16", "float8_e4m3fn", "complex64"])
def test_every_kind_of_dtype_on_both_paths(dtype):
    value = np.arange(6).astype(dtypes.as_dtype(dtype)).reshape(2, 3)
    x = as_array(value)
    for index in (I[1], I[1, 2], I[:, ::-1], I[np.array([1, 0])], I[0, np.array([2, 0])]):
        for got in (getitem(x, index), general(x, index), jit(lambda a, i=index: getitem(a, i))(x)):
            assert got.dtype == value.dtype
            np.testing.assert_array_equal(
                np.asarray(got).astype("c8"), value.astype("c8")[index]
            )


# Transformations.


def test_gradient_goes_to_the_elements_read():
    x = as_array(X1)
    index = np.array([1, 1, -1])
    got = grad(lambda a: getitem(getitem(a, index), 0) + 3 * getitem(getitem(a, index), 2))(x)
    want = np.zeros(8)
    want[1], want[7] = 1, 3
    np.testing.assert_array_equal(got, want)


def test_gradient_out_of_bounds():
    # Where clipping was asked for it goes where the value came from; else, as in JAX, nowhere.
    x, away = as_array(X1), np.array([10, -20])
    clipped = [1, 0, 0, 0, 0, 0, 0, 1]

    def clipping(a, i):
        return IndexUpdateHelper(a)[i].get(mode="clip")

    for part, want in ((clipping, clipped), (getitem, [0] * 8)):

        def total(a, i, part=part):
            return reduce_sum(part(a, i), axes=(0,))

        np.testing.assert_array_equal(grad(lambda a, f=total: f(a, away))(x), want)
        np.testing.assert_array_equal(jit(grad(total))(x, away), want)


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0), (1, 0)])
@pytest.mark.parametrize("index_shape", [(), (2,)])
def test_vmap_is_a_loop(in_axes, index_shape):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 5) if in_axes[0] is None else (3, 4, 5)).astype(np.float32)
    if in_axes[0] == 1:
        x = x.transpose(1, 0, 2)
    i = rng.integers(-6, 6, index_shape if in_axes[1] is None else (3, *index_shape))
    got = vmap(lambda a, j: getitem(a, (slice(1, None), j)), in_axes)(as_array(x), as_array(i))
    rows = [
        getitem(
            as_array(x if in_axes[0] is None else np.take(x, k, in_axes[0])),
            (slice(1, None), i if in_axes[1] is None else i[k]),
        )
        for k in range(3)
    ]
    np.testing.assert_array_equal(got, np.stack(rows))


# Errors.


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (I[0, 0], IndexError, "Too many indices: array is 1-dimensional, but 2 were indexed"),
        (I[None, 0, ..., 0], IndexError, "Too many indices"),
        (I[np.ones((8, 1), bool)], IndexError, "Too many indices"),
        (I[..., ...], IndexError, "an index can only have a single ellipsis"),
        ([0, 1], TypeError, "Using a non-tuple sequence for multidimensional indexing"),
        ([], TypeError, "use `arr\\[array\\(seq\\)\\]` instead"),
        ("a", TypeError, "string indexing is not supported"),
        (1.0, TypeError, "Indexer must have integer or boolean type, got indexer with type float"),
        (1j, TypeError, "Indexer must have integer or boolean type"),
        (np.float32(1), TypeError, "got indexer with type float32"),
        (np.array([1.0]), TypeError, "Indexer must have integer or boolean type"),
        (I[[1.0],], TypeError, "Indexer must have integer or boolean type"),
        (I[["a"],], TypeError, "not a valid JAX array type"),
        ({}, IndexError, "only integers, slices"),
        ({1, 2}, IndexError, "only integers, slices"),
        (range(2), TypeError, "only integers, slices"),
        (I[1:2.0], TypeError, "cannot be interpreted as an integer"),
        (I[::0], ValueError, "slice step cannot be zero"),
        (np.array([True, False]), IndexError, "boolean index did not match shape"),
    ],
    ids=repr,
)
def test_errors_of_indices(index, error, text):
    x = as_array(X1)
    with pytest.raises(error, match=text):
        getitem(x, index)
    with pytest.raises(error, match=text):
        stage(lambda a: [getitem(a, index)], [x.aval])


def test_too_many_indices_of_a_scalar():
    with pytest.raises(IndexError, match="array is 0-dimensional, but 1 were indexed"):
        getitem(as_array(np.float32(1)), 0)


def test_index_arrays_that_do_not_broadcast():
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        getitem(as_array(X2), (np.array([0, 1]), np.array([0, 1, 2])))


def test_traced_masks_are_errors_that_teach():
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="primal.numpy.where") as caught:
        jit(lambda a, m: getitem(a, m))(X1, X1 > 3)
    assert "size=" in str(caught.value)
    assert isinstance(caught.value, IndexError)
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        jit(lambda a, m: getitem(a, m))(X1, np.True_)


def test_masks_whose_values_are_known_inside_grad():
    mask = as_array(X1 > 3)
    got = grad(lambda a: reduce_sum(getitem(a, mask), axes=(0,)))(as_array(X1))
    np.testing.assert_array_equal(got, (X1 > 3).astype(np.float32))


def test_traced_slice_bounds_are_errors_that_teach():
    for build in (lambda i: slice(i, None), lambda i: slice(None, i), lambda i: slice(i, i + 2)):
        with pytest.raises(IndexError, match="dynamic_slice"):
            stage(
                lambda a, i, build=build: [getitem(a, build(i))],
                [as_array(X1).aval, as_array(np.int32(1)).aval],
            )


def test_deleted_arrays_cannot_be_read():
    x = as_array(X1)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        getitem(x, 0)
