"""Weak types, orders, empty arrays and kinds of errors that are as JAX's and easily are not."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax

WEAK = jnp.full((3, 3), 2.0)
ROW = jnp.full(3, 2.0)
WHOLE = jnp.arange(1, 4)

KEEPING = {
    "tril": lambda: jnp.tril(WEAK), "triu": lambda: jnp.triu(WEAK, 1),
    "diag": lambda: jnp.diag(ROW), "pad": lambda: jnp.pad(ROW, 1), "sort": lambda: jnp.sort(ROW),
    "sort descending": lambda: jnp.sort(ROW, descending=True),
    "polyadd": lambda: jnp.polyadd(ROW, jnp.ones(2, int)),
    "gradient": lambda: jnp.gradient(ROW), "hypot": lambda: jnp.hypot(2.0, 3.0),
    "heaviside": lambda: jnp.heaviside(2.0, 0.5), "deg2rad": lambda: jnp.deg2rad(2.0),
    "power of a Python bool": lambda: jnp.power(1, True),
    "squareplus": lambda: primal.nn.squareplus(1.0),
}  # fmt: skip
SETTLING = {
    "hypot": lambda: jnp.hypot(2.5, WHOLE), "heaviside": lambda: jnp.heaviside(WHOLE, 0.5),
    "sinc": lambda: jnp.sinc(ROW), "deg2rad": lambda: jnp.deg2rad(ROW),
    "logaddexp": lambda: jnp.logaddexp(1j, WHOLE), "vander": lambda: jnp.vander(ROW),
    "cross": lambda: jnp.cross(WHOLE, ROW), "power": lambda: jnp.power(jnp.full(3, 2), WHOLE > 1),
    "power of a bool": lambda: jnp.power(2, jnp.array(True)), "pow": lambda: lax.pow(ROW, WHOLE),
}  # fmt: skip


@pytest.mark.parametrize("name", KEEPING)
def test_weak(name: str) -> None:
    assert KEEPING[name]().weak_type


@pytest.mark.parametrize("name", SETTLING)
def test_not_weak(name: str) -> None:
    assert not SETTLING[name]().weak_type


def test_a_causal_mask_leaves_bfloat16_alone() -> None:
    mask = jnp.triu(jnp.full((4, 4), -jnp.inf), 1)
    assert (jnp.ones((4, 4), "bfloat16") + mask).dtype == jnp.bfloat16


def test_partitions_are_written_as_in_the_documentation() -> None:
    x = jnp.array([6, 8, 4, 3, 1, 9, 7, 5, 2, 3])
    assert jnp.partition(x, 4).tolist() == [1, 2, 3, 3, 4, 9, 8, 7, 6, 5]
    assert jnp.argpartition(x, 4).tolist() == [4, 8, 3, 9, 2, 0, 1, 5, 6, 7]
    rows = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)
    for k, axis in ((0, 0), (3, 0), (6, 1), (-2, -1)):
        got = np.asarray(jnp.partition(rows, k, axis))
        want = np.sort(rows, axis)
        at = k % rows.shape[axis]
        np.testing.assert_array_equal(np.sort(got, axis), want)
        np.testing.assert_array_equal(np.take(got, at, axis), np.take(want, at, axis))
        places = np.asarray(jnp.argpartition(rows, k, axis))
        taken = np.take_along_axis(rows, places, axis)
        np.testing.assert_array_equal(np.sort(taken, axis), want)
        np.testing.assert_array_equal(np.take(taken, at, axis), np.take(want, at, axis))


def test_of_matrices_without_elements() -> None:
    empty = jnp.zeros((0, 3))
    for order in (1, 2, np.inf, "fro", "nuc"):
        assert jnp.linalg.norm(empty, order) == 0
    assert jnp.linalg.matrix_rank(empty) == 0 and jnp.linalg.matrix_rank(empty, 0.5) == 0
    assert jnp.cov(empty).shape == (0, 0)
    with pytest.raises(ValueError, match=r"expected a matrix with elements, got shape \(0, 3\)"):
        jnp.linalg.cond(empty)


@pytest.mark.parametrize("name", ["svd", "svdvals", "qr", "eig", "eigvals", "cholesky", "eigh"])
def test_vectors_are_no_matrices_to_factorise(name: str) -> None:
    with pytest.raises(TypeError, match=r"got \(3,\)"):
        getattr(jnp.linalg, name)(jnp.ones(3))
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        jnp.linalg.inv(jnp.ones(3))


def test_refusals() -> None:
    with pytest.raises(TypeError, match="frexp"):
        jnp.frexp(1j)
    with pytest.raises(ValueError, match="complex"):
        jnp.interp(1j, jnp.arange(3.0), jnp.arange(3.0))
    assert jnp.bincount(jnp.array([True, False, True])).tolist() == [1, 2]


def test_sums_asked_for_booleans() -> None:
    x = jnp.array([[0.0, 2.0], [0.0, 0.0]])
    assert jnp.sum(x, axis=1, dtype=bool).tolist() == [True, False]
    assert jnp.prod(x, axis=0, dtype=bool).tolist() == [False, False]
    assert jnp.cumsum(x[0], dtype=bool).tolist() == [False, True]
    assert jnp.cumprod(jnp.array([3, 0, 1]), dtype=bool).tolist() == [True, False, False]
    assert jnp.sum(x, dtype=bool, initial=True).dtype == jnp.trace(x, dtype=bool).dtype == bool


@pytest.mark.parametrize(
    "function",
    [jnp.sum, jnp.prod, jnp.mean, jnp.cumsum, jnp.nansum, jnp.add.reduce,
     lambda z, dtype: jnp.stack([z], dtype=dtype), lambda z, dtype: jnp.hstack([z], dtype=dtype),
     lambda z, dtype: jnp.concatenate([z, z], dtype=dtype),
     lambda z, dtype: jnp.linspace(0, z, 3, dtype=dtype),
     lambda z, dtype: jnp.trace(jnp.diag(z), dtype=dtype),
     lambda z, dtype: jnp.einsum("i->", z, preferred_element_type=dtype)],
)  # fmt: skip
def test_imaginary_parts_are_not_lost_silently(function) -> None:
    z = jnp.array([1j, 2.0])
    for _ in range(3):
        with pytest.warns(jnp.ComplexWarning, match="discards the imaginary part"):
            assert function(z, dtype="float32").dtype == jnp.float32


def test_interpolated_values_have_the_wider_dtype() -> None:
    low = jnp.array([0.0, 1.0, 4.0], "bfloat16")
    assert jnp.interp(jnp.float32(1.5), jnp.arange(3.0), low).dtype == jnp.float32
    assert jnp.interp(low, low, low).dtype == jnp.bfloat16
    # Whole numbers become floats of the default dtype by themselves.
    half = jnp.array([0.0, 1.0, 4.0], "float16")
    whole = jnp.arange(3)
    assert jnp.interp(half, half, whole).dtype == jnp.float32
    for x, beside_whole in ((1, jnp.float32), (1.5, jnp.float16), (half, jnp.float16)):
        assert jnp.interp(x, whole, half).dtype == beside_whole
        assert jnp.interp(x, half, half).dtype == jnp.float16
    assert jnp.interp(1.5, half, half, left=jnp.float32(2)).dtype == jnp.float32


def test_angles_of_integers_are_floats_of_the_default_dtype(x64: None) -> None:
    for dtype in ("bool", "uint8", "int32", "int64"):
        assert jnp.angle(jnp.ones(2, dtype)).dtype == np.float64
    assert jnp.angle(jnp.ones(2, "float32")).dtype == jnp.angle(jnp.ones(2, "complex64")).dtype
    assert jnp.angle(-1).dtype == np.float64


def test_places_are_int32_in_64_bits_too(x64: None) -> None:
    x = jnp.arange(5)
    assert x.dtype == jnp.argsort(x).dtype == jnp.int64
    assert jnp.searchsorted(x, 2).dtype == jnp.digitize(x, x).dtype == jnp.int32
    assert jnp.argpartition(x, 2).dtype == jnp.int32
    assert jnp.tri(2).dtype == jnp.float32


def test_extrema_in_another_dtype() -> None:
    assert jnp.minimum.reduce(jnp.ones((2, 3)), dtype="float16").dtype == jnp.float16


def test_lists_are_no_indices_of_ufuncs() -> None:
    with pytest.raises(TypeError, match=r"\[add.at\] expected an array or a tuple"):
        jnp.add.at(jnp.zeros(3), [0, 1], 1.0, inplace=False)
    with pytest.raises(TypeError, match="add.reduceat requires ndarray or scalar"):
        jnp.add.reduceat(jnp.ones(5), [0, 2])


def test_arrays_of_keys() -> None:
    keys = primal.random.split(primal.random.key(0))
    for function in (jnp.zeros, jnp.empty, jnp.ones):
        assert function(2, keys.dtype).dtype == keys.dtype
    assert primal.random.key_data(jnp.ones(2, keys.dtype)).tolist() == [[1, 1], [1, 1]]


def test_printing_options() -> None:
    x = jnp.array([1.23456])
    with jnp.printoptions(precision=2):
        assert str(x) == "[1.23]" and repr(x) == "Array([1.23], dtype=float32)"
    before = jnp.get_printoptions()["precision"]
    jnp.set_printoptions(precision=3)
    assert str(x) == "[1.235]"
    jnp.set_printoptions(precision=before)
    assert str(x) == "[1.23456]"


@pytest.mark.parametrize("dtype", ["uint4", "int8", "uint8", "uint16", "uint32", "int32"])
@pytest.mark.parametrize("value", [-8.0, -0.5, 1e12, float("inf"), float("nan"), 2.5])
def test_scalars_become_whole_as_arrays_do(dtype: str, value: float) -> None:
    want = jnp.array([value]).astype(dtype)[0]
    ones = jnp.ones(2, dtype)
    same = {
        "pad": jnp.pad(ones, 1, constant_values=value)[0],
        "ramp": jnp.pad(ones, 1, mode="linear_ramp", end_values=value)[0],
        "full_like": jnp.full_like(ones, value)[0],
    }
    for name, got in same.items():
        assert got.dtype == want.dtype and int(got) == int(want), name


def test_edges_and_counts_of_bins_side_by_side() -> None:
    x, y = np.array([0.0, 1, 2, 3, 4]), np.array([4.0, 1, 0, 3, 2])
    bins = [2, np.array([0, 1.5, 4])]
    for got, want in zip(jnp.histogram2d(x, y, bins), np.histogram2d(x, y, bins), strict=True):
        np.testing.assert_allclose(got, want)


def test_polynomials_over_booleans() -> None:
    p = jnp.array([True, False, True])
    for unroll in (1, 16):
        got = jnp.polyval(p, jnp.array([True, False]), unroll=unroll)
        assert got.dtype == bool and got.tolist() == [True, True]


def test_what_rounding_leaves_of_a_remainder_is_dropped() -> None:
    u = np.array([1.1, 2.3, -0.7, 4.9], np.float32)
    v = np.array([0.3], np.float32)
    rest = jnp.polydiv(u, v, trim_leading_zeros=True)[1]
    assert rest.shape == (0,)
    assert jnp.polydiv(u, v)[1].shape == u.shape


def test_masks_are_stripped_by_array_alone() -> None:
    x = np.ma.array([1, 2], mask=[True, False])
    assert jnp.array(x).tolist() == [1, 2]
    for f in (jnp.asarray, jnp.sin, primal.jit(jnp.asarray)):
        with pytest.raises(ValueError, match="masked"):
            f(x)


def test_memory_is_shared_where_no_copy_is_wanted() -> None:
    host = np.arange(3, dtype=np.float32)
    x = jnp.asarray(host, copy=False)
    host[0] = 7
    assert x.tolist() == [7, 1, 2] and primal.jit(lambda x: x + 1)(x).tolist() == [8, 2, 3]
    assert host.flags.writeable and not np.asarray(x).flags.writeable
    # As in JAX, what must be converted is, on the CPU.
    assert jnp.asarray([1, 2], copy=False).tolist() == [1, 2]
    assert jnp.asarray(host[::-1], copy=False).tolist() == [2, 1, 7]
    assert jnp.asarray(host, dtype=int, copy=False).tolist() == [7, 1, 2]
    assert jnp.asarray(x, copy=False) is x


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_complex_infinities_and_zeros(name: str) -> None:
    parts = [0.0, -0.0, 1.5, -np.inf, np.inf]
    z = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
    for got in (getattr(jnp, name)(z), primal.jit(getattr(jnp, name))(z)):
        np.testing.assert_allclose(got.real, want.real, rtol=1e-6)
        np.testing.assert_allclose(got.imag, want.imag, rtol=1e-6)


class Offers:
    """An object that becomes an array by __jax_array__ alone."""

    def __init__(self, x: object) -> None:
        self.x = x

    def __jax_array__(self) -> object:
        return jnp.asarray(self.x)

    def __array__(self, *args: object, **keywords: object) -> np.ndarray:
        raise AssertionError("__array__ was called")


def test_objects_that_become_arrays_are_asked_by_jax_array_only() -> None:
    z, shift = np.array([1j, -1]), np.array(1)
    np.testing.assert_array_equal(jnp.angle(Offers(z)), jnp.angle(z))
    np.testing.assert_array_equal(jnp.roll(Offers(z), Offers(shift)), np.roll(z, 1))
    assert jnp.iscomplexobj(Offers(z)) and jnp.isrealobj(Offers(shift))


def test_a_rank_counts_beyond_a_share_of_the_largest_or_beyond_a_limit() -> None:
    x = np.diag([20.0, 3.0, 0.4]).astype(np.float32)
    for limit in (0.01, 0.1, 0.5, 2.0, 5.0):
        assert jnp.linalg.matrix_rank(x, tol=limit) == np.linalg.matrix_rank(x, tol=limit)
        assert jnp.linalg.matrix_rank(x, rtol=limit) == np.linalg.matrix_rank(x, rtol=limit)


def test_the_type_of_bfloat16_and_limits_of_numbers() -> None:
    one = primal.dtypes.bfloat16(1.5)
    assert one.dtype == jnp.bfloat16 and jnp.ones(2, primal.dtypes.bfloat16).dtype == jnp.bfloat16
    assert jnp.iinfo(3).max == np.iinfo(3).max


def test_arrays_are_not_exported_to_other_devices() -> None:
    x = jnp.ones(2)
    assert np.from_dlpack(x, device="cpu").tolist() == [1, 1]
    with pytest.raises(BufferError, match="own device"):
        x.__dlpack__(dl_device=(2, 0))


def test_the_symmetric_difference_has_the_nan_of_each_array() -> None:
    nan = np.nan
    cases = [([nan, 1], [nan]), ([1, 2], [nan, nan, 2]), ([nan], [nan]), ([], [nan])]
    for a, b in cases:
        x, y = np.array(a, np.float32), np.array(b, np.float32)
        want = np.setxor1d(np.unique(x), np.unique(y))
        np.testing.assert_array_equal(jnp.setxor1d(x, y), want)
        known = primal.jit(lambda x, y: jnp.setxor1d(x, y, size=4, fill_value=7))(x, y)
        np.testing.assert_array_equal(known, np.append(want, [7] * (4 - len(want))))
    none = jnp.zeros(0)
    assert jnp.setxor1d(none, none, size=2).tolist() == [0, 0]
    for f in (jnp.setxor1d, jnp.intersect1d, jnp.setdiff1d, jnp.union1d):
        assert f(none, none, size=2, fill_value=7.5).tolist() == [7.5, 7.5]
    values, *places = jnp.intersect1d(none, none, size=2, fill_value=3, return_indices=True)
    assert values.tolist() == [3, 3] and [p.tolist() for p in places] == [[0, 0], [0, 0]]


def test_sizes_of_resize_are_not_negative() -> None:
    for shape in (-1, (2, -3)):
        with pytest.raises(ValueError, match="must be non-negative"):
            jnp.resize(jnp.arange(3), shape)
