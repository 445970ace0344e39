"""take, put, compress and their kin against NumPy, eagerly and inside programs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from primal import enable_x64
from primal.api import grad, jit, vmap
from primal.base import errors
from primal.numpy import diagonals, editing, index_tricks, taking
from primal.numpy.ranges import triu
from primal.ops.spread import reduce_sum
from primal.runtime.eager import as_array

X1 = np.arange(8, dtype=np.float32)
X2 = np.arange(12, dtype=np.float32).reshape(3, 4)
X3 = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
EAGER_AND_JIT = [lambda f: f, jit]


def same(got, want):
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_array_equal(np.asarray(got), want)


# take.


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("index", [1, -1, [0, 1, -2], [[1, 1], [0, -2]], []])
def test_take_is_numpys(run, axis, index):
    i = np.array(index, np.int32)
    for x in (X2, X3):
        same(run(lambda a, i, axis=axis: taking.take(a, i, axis))(x, i), np.take(x, i, axis))


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
def test_take_out_of_bounds(run):
    x, i = as_array(X1), np.array([10, -10, -1, 1])
    same(run(lambda x, i: taking.take(x, i))(x, i), [np.nan, np.nan, 7, 1])
    same(run(lambda x, i: taking.take(x, i, mode="fill", fill_value=3))(x, i), [3, 3, 7, 1])
    for mode in ("clip", "wrap"):
        same(run(lambda x, i, m=mode: taking.take(x, i, mode=m))(x, i), np.take(X1, i, mode=mode))
    ints = as_array(X1.astype(np.int32))
    same(run(lambda x, i: taking.take(x, i))(ints, i), [-(2**31), -(2**31), 7, 1])
    same(taking.take(x, 12), np.nan)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_take_wraps_by_sizes_beyond_the_index_dtype(dtype):
    x, i = np.arange(70000), np.array([-1, 127, 5]).astype(dtype)
    same(jit(lambda i: taking.take(x, i, mode="wrap"))(i), np.take(x, i, mode="wrap"))


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_unsigned_indices_beyond_int64_are_no_negative_ones(run, dtype):
    with enable_x64(True):
        x = as_array(np.arange(1, 6).astype(dtype))
        far = [2**64 - 1, 2**64 - 2, 2**63, 2**63 - 1, 4]
        i, nan = as_array(np.array(far, np.uint64)), np.nan
        for read in (taking.take, lambda x, i, mode: x.at[i].get(mode=mode)):
            same(run(lambda x, i, f=read: f(x, i, mode="fill"))(x, i), [nan, nan, nan, nan, 5])
            same(run(lambda x, i, f=read: f(x, i, mode="clip"))(x, i), [5] * 5)
        wrapped = run(lambda x, i: taking.take(x, i, mode="wrap"))(x, i)
        same(wrapped, [k % 5 + 1 for k in far])


def test_take_errors():
    x = as_array(X1)
    with pytest.raises(TypeError, match="take requires ndarray or scalar arguments"):
        taking.take(x, [0])
    with pytest.raises(ValueError, match="integer type"):
        taking.take(x, np.array([1.0]))
    with pytest.raises(IndexError, match="non-empty"):
        taking.take(np.zeros((0,), np.float32), np.array([0]))
    with pytest.raises(NotImplementedError, match="'raise' mode"):
        taking.take(x, 1, mode="raise")
    with pytest.raises(ValueError, match="Invalid mode"):
        taking.take(x, 1, mode="promise_in_bounds")
    with pytest.raises(ValueError, match="out of bounds"):
        taking.take(x, 1, axis=3)
    with pytest.raises(NotImplementedError, match="'out'"):
        taking.take(x, 1, out=x)


def test_derivative_and_vmap_of_take():
    x, i = as_array(X2), np.array([0, 2, 2])
    got = grad(lambda a: reduce_sum(taking.take(a, i, 0), axes=(0, 1)))(x)
    same(got, np.array([1, 0, 2])[:, None] * np.ones((3, 4)))
    same(vmap(lambda a: taking.take(a, i[:2]))(X2), X2[:, i[:2]])


# Along an axis.


@given(st.data())
def test_take_along_axis_is_numpys(data):
    rank = data.draw(st.integers(1, 3))
    shape = tuple(data.draw(st.integers(1, 3)) for _ in range(rank))
    axis = data.draw(st.integers(0, rank - 1))
    index_shape = [data.draw(st.sampled_from([n, 1])) for n in shape]
    index_shape[axis] = data.draw(st.integers(0, 4))
    n = shape[axis]
    size = int(np.prod(index_shape))
    flat = [data.draw(st.integers(-n, n - 1)) for _ in range(size)]
    i = np.array(flat, np.int32).reshape(index_shape)
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    want = np.take_along_axis(x, np.broadcast_to(i, [
        i.shape[d] if d == axis else m for d, m in enumerate(shape)]), axis)
    same(taking.take_along_axis(x, i, axis), want)
    got = vmap(lambda a: taking.take_along_axis(a, i, axis))(np.stack([x, x + 1]))
    same(got, np.stack([want, want + 1]))


def test_take_along_axis_broadcasts_the_array_too():
    i = np.array([[0, 2], [1, 1]])
    same(taking.take_along_axis(X2[:1], i, 1), np.take_along_axis(X2[[0, 0]], i, 1))
    same(jit(lambda i: taking.take_along_axis(X2[:1], i, 1))(i),
         np.take_along_axis(X2[[0, 0]], i, 1))


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
def test_take_along_axis_out_of_bounds(run):
    i = np.array([[0, 1], [3, 9], [-1, -9]])
    f = taking.take_along_axis
    same(run(lambda x, i: f(x, i, 1))(X2, i), [[0, 1], [7, np.nan], [11, np.nan]])
    same(run(lambda x, i: f(x, i, 1, mode="clip"))(X2, i), [[0, 1], [7, 7], [11, 8]])
    same(run(lambda x, i: f(x, i, None))(X2, np.array([0, 11, 20])), [0, 11, np.nan])
    got = run(lambda x, i: f(x, i, 1, wrap_negative_indices=False))(X2, i[2:])
    same(got, np.full((3, 2), np.nan))


def test_take_along_axis_errors():
    f = taking.take_along_axis
    with pytest.raises(ValueError, match="same number of dimensions"):
        f(X2, np.array([0]), 1)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        f(X2, np.array([[0], [1]]), 1)
    with pytest.raises(TypeError, match="integer type"):
        f(X2, np.array([[0.0]]), 1)
    with pytest.raises(ValueError, match="mode"):
        f(X2, np.array([[0]]), 1, mode="wrap")
    with pytest.raises(IndexError):
        f(np.zeros((0, 2), np.float32), np.array([[0, 0]]), 0, mode="clip")


def test_derivative_of_take_along_axis():
    i = np.array([[0, 0], [3, 1], [2, 2]])
    got = grad(lambda a: reduce_sum(taking.take_along_axis(a, i, 1), axes=(0, 1)))(as_array(X2))
    want = np.zeros((3, 4))
    np.add.at(want, (np.arange(3)[:, None], i), 1)
    same(got, want)


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
def test_put_along_axis(run):
    i = np.array([[0], [1], [3]])
    want = X2.copy()
    np.put_along_axis(want, i, -5, 1)
    same(run(lambda x, i: taking.put_along_axis(x, i, -5, 1, inplace=False))(X2, i), want)
    same(taking.put_along_axis(X2, i + 9, -5, 1, inplace=False), X2)
    got = taking.put_along_axis(X2, np.array([0, 5]), np.array([7, 8]), None, inplace=False)
    assert got[0, 0] == 7 and got[1, 1] == 8
    with pytest.raises(ValueError, match="inplace=False"):
        taking.put_along_axis(X2, i, -5, 1)


# put, place.


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
def test_put(run):
    i, v = np.array([0, 5, -1, 20]), np.array([-1, -2, -3, -4], np.float32)
    for mode in ("wrap", "clip"):
        for values in (v, v[:2], v[0], np.arange(9, dtype=np.float32)):
            want = X2.copy()
            np.put(want, i, values, mode=mode)
            got = run(lambda x, i, v, m=mode: taking.put(x, i, v, m, inplace=False))(X2, i, values)
            same(got, want)
    want = X2.copy()
    np.put(want, i[:3], v)
    same(taking.put(X2, i[:3], v, inplace=False), want)
    same(taking.put(X2, i[:0], v, inplace=False), X2)
    for call in (lambda: taking.put(X2, i, v), lambda: taking.put(X2, i, v, "zoo", inplace=False)):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
def test_place(run):
    for vals in (np.array([1, 2], np.float32), np.float32(9), np.arange(20, dtype=np.float32)):
        for mask in (X2 > 4, X2 > 40, X2 > -1):
            want = X2.copy()
            np.place(want, mask, vals)
            got = run(lambda x, m, v: taking.place(x, m, v, inplace=False))(X2, mask, vals)
            same(got, want)
    with pytest.raises(ValueError, match="same size"):
        taking.place(X1, np.ones(3), 1.0, inplace=False)
    with pytest.raises(ValueError, match="empty"):
        taking.place(X1, X1 > 2, np.zeros(0), inplace=False)
    with pytest.raises(ValueError, match="inplace=False"):
        taking.place(X1, X1 > 2, 1.0)


# compress, extract.


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_compress(axis):
    c = np.array([True, False, True])
    same(taking.compress(c, X2, axis), np.compress(c, X2, axis))
    same(taking.compress(c.astype(int), X2, axis), np.compress(c, X2, axis))
    assert taking.compress(np.zeros(9, bool), X2, axis).size == 0
    for size in (0, 1, 2, 3):
        whole = np.compress(c, X2, axis)
        at = 0 if axis is None else axis
        pad = [(0, 3) if d == at else (0, 0) for d in range(whole.ndim)]
        want = np.take(np.pad(whole, pad, constant_values=7), range(size), at)
        f = lambda c, x, n=size: taking.compress(c, x, axis, size=n, fill_value=7)  # noqa: E731
        same(f(c, X2), want)
        same(jit(f)(c, X2), want)


def test_compress_errors():
    with pytest.raises(ValueError, match="out of bounds"):
        taking.compress(np.ones(9, bool), X2, 0)
    with pytest.raises(ValueError, match="1D"):
        taking.compress(np.ones((1, 3), bool), X2, 0)
    with pytest.raises(TypeError, match="compress requires ndarray"):
        taking.compress([True], X2, 0)
    with pytest.raises(errors.ConcretizationTypeError, match="size"):
        jit(lambda c: taking.compress(c, X2, 0))(np.ones(3, bool))


def test_extract():
    same(taking.extract(X2 > 3, X2), np.extract(X2 > 3, X2))
    same(taking.extract(X1 > 3, X1, size=6, fill_value=-1), [4, 5, 6, 7, -1, -1])
    same(jit(lambda x: taking.extract(x > 3, x, size=2))(X1), [4, 5])


# Diagonals.


@given(st.data())
def test_diagonal_is_numpys(data):
    rank = data.draw(st.integers(2, 4))
    shape = tuple(data.draw(st.integers(0, 4)) for _ in range(rank))
    one, two = data.draw(st.permutations(range(rank)))[:2]
    k = data.draw(st.integers(-5, 5))
    x = np.arange(int(np.prod(shape))).reshape(shape)
    same(diagonals.diagonal(x, k, one, two), np.diagonal(x, k, one, two))


def test_derivative_of_diagonal_and_errors():
    got = grad(lambda a: reduce_sum(diagonals.diagonal(a, 1), axes=(0,)))(as_array(X2))
    same(got, np.eye(3, 4, 1))
    with pytest.raises(ValueError, match="at least two"):
        diagonals.diagonal(X1)
    with pytest.raises(ValueError, match="axes"):
        diagonals.diagonal(X2, 0, 1, 1)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 3), (2, 2, 2), (0, 3)])
@pytest.mark.parametrize("val", [5, np.array([7, 8]), np.arange(9)])
def test_fill_diagonal(shape, val):
    want = np.zeros(shape, np.int32)
    if want.size:
        for i, v in zip(range(min(shape)), np.resize(val, min(shape)), strict=True):
            want[(i,) * len(shape)] = v
    same(diagonals.fill_diagonal(np.zeros(shape, np.int32), val, inplace=False), want)


def test_fill_diagonal_errors():
    for options, error in [({}, NotImplementedError), ({"wrap": True, "inplace": False},
                                                       NotImplementedError)]:
        with pytest.raises(error):
            diagonals.fill_diagonal(X2, 0, **options)
    for shape in ((3,), (2, 3, 2)):
        with pytest.raises(ValueError):
            diagonals.fill_diagonal(np.zeros(shape), 0, inplace=False)


def test_indices_of_triangles_and_diagonals():
    for n, k, m in [(3, 0, None), (3, 1, 4), (4, -2, 2)]:
        for ours, theirs in [(diagonals.tril_indices, np.tril_indices),
                             (diagonals.triu_indices, np.triu_indices)]:
            for got, want in zip(ours(n, k, m), theirs(n, k, m), strict=True):
                assert got.dtype == np.int32
                same(got, want)
    for got, want in zip(diagonals.tril_indices_from(X2, -1), np.tril_indices_from(X2, -1),
                         strict=True):
        same(got, want)
    for got, want in zip(diagonals.triu_indices_from(X2), np.triu_indices_from(X2), strict=True):
        same(got, want)
    for got, want in zip(diagonals.diag_indices(3, 3), np.diag_indices(3, 3), strict=True):
        same(got, want)
    assert len(diagonals.diag_indices_from(np.zeros((2, 2, 2)))) == 3
    for got, want in zip(diagonals.mask_indices(3, triu, 1), np.mask_indices(3, np.triu, 1),
                         strict=True):
        same(got, want)
    assert diagonals.mask_indices(3, triu, size=4)[0].shape == (4,)
    for bad in (lambda: diagonals.tril_indices_from(X1), lambda: diagonals.diag_indices(-1),
                lambda: diagonals.diag_indices_from(X1), lambda: diagonals.diag_indices_from(X2)):
        with pytest.raises(ValueError):
            bad()


# delete, insert.


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("obj", [0, -1, np.array([0, 2, 0]), np.array([], np.int32), slice(1, 3),
                                 slice(None, None, -2)], ids=repr)
def test_delete_is_numpys(axis, obj):
    same(editing.delete(X2, obj, axis), np.delete(X2, obj, axis))
    same(jit(lambda x: editing.delete(x, obj, axis))(X2), np.delete(X2, obj, axis))


def test_delete_by_masks_and_traced_indices():
    mask = np.array([True, False, True])
    same(editing.delete(X2, mask, 0), X2[~mask])
    f = jit(lambda x, i: editing.delete(x, i, 1, assume_unique_indices=True))
    same(f(X2, np.array([1, -1])), X2[:, [0, 2]])
    with pytest.raises(ValueError, match="out of bounds"):
        editing.delete(X1, 30)
    with pytest.raises(ValueError, match="mask"):
        editing.delete(X1, mask)
    with pytest.raises(ValueError, match="integer or bool"):
        editing.delete(X1, 1.0)
    with pytest.raises(errors.ConcretizationTypeError, match="obj"):
        jit(lambda i: editing.delete(X1, i))(np.array([1, 1]))
    with pytest.raises(TypeError):
        editing.delete(X1, [1])


@given(st.data())
def test_insert_is_numpys(data):
    axis = data.draw(st.sampled_from([None, 0, 1]))
    n = X2.size if axis is None else X2.shape[axis]
    indices = st.integers(-n, n)
    obj = data.draw(indices | st.lists(indices, min_size=1, max_size=4).map(np.array))
    count = int(np.size(obj))
    if axis is None:
        shapes = [(), (count,)]
    elif np.ndim(obj) == 0:
        shapes = [(), (X2.shape[1 - axis],)]
    else:
        full = list(X2.shape)
        full[axis] = count
        shapes = [(), tuple(full)]
    shape = data.draw(st.sampled_from(shapes))
    v = np.arange(100, 100 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    want = np.insert(X2, obj, v, axis)
    same(editing.insert(X2, obj, v, axis), want)
    same(jit(lambda i: editing.insert(X2, i, v, axis))(obj), want)


def test_insert_details():
    same(editing.insert(X1, 2, np.array([5, 6, 7])), np.insert(X1, 2, [5, 6, 7]))
    same(editing.insert(X2, slice(0, 2), 5, 0), np.insert(X2, slice(0, 2), 5, 0))
    rows = np.ones((2, 4), np.float32)
    same(editing.insert(X2, np.array([0]), rows, 0), np.insert(X2, [0], rows, 0))
    same(editing.insert(X1, 30, 2.5), [*X1, 2.5])
    same(editing.insert(X1, np.array([30, 2]), 2.5), [0, 1, 2.5, 2, 3, 4, 5, 6, 7, 2.5])
    assert editing.insert(np.arange(5), 1, 2.5).dtype == np.int32
    for obj in (np.array([[1]]), X1 > 5, 1.5):
        with pytest.raises(ValueError):
            editing.insert(X1, obj, 1.0)
    with pytest.raises(ValueError, match="broadcast"):
        editing.insert(X1, np.array([1, 2]), np.ones(3))
    with pytest.raises(TypeError):
        editing.insert(X1, [1], 1.0)


# Index tricks.


def test_ix():
    for args in [(np.array([0, 1]), np.array([2, 3, 0])), (np.array([True, False, True]),
                                                          np.array([1]))]:
        for got, want in zip(index_tricks.ix_(*args), np.ix_(*args), strict=True):
            same(got, want)
    with pytest.raises(ValueError, match="1-dimensional"):
        index_tricks.ix_(np.array([[0]]))
    with pytest.raises(TypeError):
        index_tricks.ix_([0])
    assert index_tricks.ix_(np.array([]))[0].dtype == np.int32


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
@pytest.mark.parametrize("shape", [(9000,), (9000, 1), (1, 9000), (3, 3000, 1), (60, 150, 1, 1)])
def test_many_places(run, shape):
    """NumPy has wrong coordinates of many places whose last dimension is 1."""
    with enable_x64(True):
        i = np.random.default_rng(0).integers(0, 35, shape)
        rows, columns = run(lambda i: index_tricks.unravel_index(i, (5, 7)))(as_array(i))
        same(rows, i // 7)
        same(columns, i % 7)
        same(run(lambda *m: index_tricks.ravel_multi_index(m, (5, 7), "clip"))(rows, columns), i)


@pytest.mark.parametrize("run", EAGER_AND_JIT, ids=["eager", "jit"])
def test_unravel_and_ravel(run):
    dims = (3, 4, 2)
    i = np.arange(24)
    got = run(lambda i: index_tricks.unravel_index(i, dims))(i)
    for g, w in zip(got, np.unravel_index(i, dims), strict=True):
        same(g, w)
    for mode in ("clip", "wrap", "ignore"):
        back = run(lambda *m, mode=mode: index_tricks.ravel_multi_index(m, dims, mode))(*got)
        same(back, i)
    outside = run(lambda i: index_tricks.unravel_index(i, (3, 4)))(np.array([12, -1, -20]))
    same(outside[0], [2, 2, 0])
    same(outside[1], [3, 3, 0])
    # More elements than 32 bits count, and positions of fewer bits than sizes have.
    i = np.int32([3, -3, 2**31 - 1])
    wide = run(lambda i: index_tricks.unravel_index(i, (50_000, 60_000)))(i)
    same(wide[0], [0, 49_999, 35_791])
    same(wide[1], [3, 59_997, 23_647])
    assert run(lambda i: index_tricks.unravel_index(i, (500, 500)))(np.uint8(200))[1].dtype == "u1"
    assert run(lambda: index_tricks.unravel_index(-1, (3, 4)))()[0].weak_type
    m = (np.array([0, -1, 5]), np.array([1, 5, 2]))
    for mode in ("wrap", "clip"):
        for order in "CF":
            f = lambda *m, k=mode, o=order: index_tricks.ravel_multi_index(m, (3, 4), k, o)  # noqa: E731
            same(run(f)(*m), np.ravel_multi_index(m, (3, 4), mode, order))


def test_ravel_errors():
    f = index_tricks.ravel_multi_index
    m = (np.array([0, 2]), np.array([1, 4]))
    with pytest.raises(ValueError, match="invalid entry"):
        f(m, (3, 4))
    with pytest.raises(errors.ConcretizationTypeError, match="mode='wrap'"):
        jit(lambda a: f((a, a), (3, 4)))(m[0])
    for bad in (lambda: f(m, (3,)), lambda: f(m, (3, 5), "X"), lambda: f(m, (3, 5), order="X"),
                lambda: f((m[0] * 1.0, m[1]), (3, 5)), lambda: f(m, (10**6, 10**6))):
        with pytest.raises(ValueError):
            bad()
    assert f(m, (3, 5), dtype="int8").dtype == np.int8
    for bad in (lambda: index_tricks.unravel_index(7j, (3, 4)),
                lambda: index_tricks.unravel_index(7, (3, -4))):
        with pytest.raises((TypeError, ValueError)):
            bad()


def test_grids():
    g, n = index_tricks.mgrid, np.mgrid
    for key in (np.s_[0:3, 1:3], np.s_[:3], np.s_[0:1:3j], np.s_[0:1:0.5, 0:2], np.s_[2:5:2, 1:4]):
        got = g[key]
        np.testing.assert_allclose(got, n[key])
        o, want = index_tricks.ogrid[key], np.ogrid[key]
        for a, b in zip(o, want, strict=True) if isinstance(key, tuple) else [(o, want)]:
            np.testing.assert_allclose(a, b)
            assert a.shape == b.shape
    assert g[0:3, 1:3].dtype == np.int32 and g[0:1:0.5].dtype == np.float32
    with pytest.raises(errors.ConcretizationTypeError, match="slice stop of jnp.mgrid"):
        jit(lambda n: g[:n])(3)
    assert "mgrid" in repr(g) and index_tricks.s_[1:2, None] == (slice(1, 2), None)
    assert index_tricks.index_exp[1] == (1,)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[np.array([1, 2]), 5, 6.0, np.array([3, 4])],
        np.s_[0:3, -1:1:5j],
        np.s_["0,2", np.array([1, 2]), np.array([3, 4])],
        np.s_["1,2,0", np.array([1, 2]), np.array([3, 4])],
        np.s_["0,3,1", np.array([1, 2]), np.array([3, 4])],
        np.s_["-1", np.array([1, 2]), 2:4],
        np.s_[[1, 2], 3],
        np.s_[2:5],
    ],
    ids=repr,
)
def test_joining_by_indexing(key):
    got, want = index_tricks.r_[key], np.r_[key]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[np.array([1, 2]), np.array([3, 4])],
        np.s_[np.array([[1, 2]]), 0, 5],
        np.s_[1:3, 2:4],
        np.s_[0:1:3j],
        np.s_[7],
    ],
    ids=repr,
)
def test_joining_columns_by_indexing(key):
    got, want = index_tricks.c_[key], np.c_[key]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want)


def test_directives():
    a, b = np.array([1, 2]), np.array([3, 4])
    same(index_tricks.r_["r", a, b], [[1, 2, 3, 4]])
    same(index_tricks.r_["c", a, b], [[1], [2], [3], [4]])
    with pytest.raises(ValueError, match="unknown special directive"):
        index_tricks.r_["zoo", a]
    with pytest.raises(ValueError, match="first entry"):
        index_tricks.r_[a, "r"]
    with pytest.raises(ValueError, match="at least one array"):
        index_tricks.r_[()]
