"""Arrays from values, filled arrays, ranges, grids and triangles."""

import io
import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.api import grad, jit, make_jaxpr
from primal.base import dtypes, errors
from primal.ir.trace import Array


def same(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.asarray(got), want)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"), (1.5, "float32"), (True, "bool"), (1j, "complex64"), ([], "float32"),
        ([[1, 2], [3, 4]], "int32"), ((1, 2.5), "float32"), ([True, 2], "int32"),
        ([1, 1j], "complex64"), (np.float64(1), "float32"), (np.arange(3), "int32"),
        (np.arange(3, dtype=np.uint8), "uint8"), ([np.int8(1), 2], "int8"),
        ([np.float16(1), 2.5], "float16"), ([np.ones(2), np.zeros(2)], "float32"),
        ([[], []], "float32"), (range(3), "int32"), (memoryview(b"ab"), "uint8"),
        ([np.array([1, 2]), [3, 4]], "int32"), ([[np.float32(1)], [2]], "float32"),
    ],
    ids=lambda x: repr(x).split(" at 0x")[0],
)  # fmt: skip
def test_array_of_values(value: Any, dtype: str) -> None:
    for make in (jnp.array, jnp.asarray):
        out = make(value)
        assert out.dtype == dtype
        same(out, np.asarray(value).astype(dtype))
    traced = jit(lambda: jnp.array(value))()
    assert traced.dtype == dtype


def test_array_of_arrays() -> None:
    x = jnp.arange(3)
    same(jnp.array([x, x]), [[0, 1, 2]] * 2)
    same(jnp.array([[x[0], 1.5], [2, x[1]]]), [[0, 1.5], [2, 1]])
    same(jnp.array([x[0], True]), [0, 1])
    same(jnp.array([(x[0],), [x[1]]]), [[0], [1]])
    with pytest.raises(TypeError, match="Cannot concatenate"):
        jnp.array([x, jnp.ones((2, 3))])
    with pytest.raises(ValueError, match="inhomogeneous"):
        jit(lambda v: jnp.array([v, v[0]]))(x)


def test_array_of_traced_values() -> None:
    printed = str(make_jaxpr(lambda x: jnp.array([jnp.min(x), jnp.max(x)]))(jnp.ones((3, 4))))
    for line in (
        "reduce_min[axes=(0, 1)] a", "reduce_max[axes=(0, 1)] a", "concatenate[dimension=0] d e",
        "d:f32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] b",
    ):  # fmt: skip
        assert line in printed
    out = jit(lambda v: jnp.array([[v, 1], [2.5, v]]))(2)
    assert out.dtype == np.float32 and not out.weak_type
    same(out, [[2, 1], [2.5, 2]])
    same(grad(lambda v: (jnp.array([v, 2 * v]) ** 2).sum())(3.0), 30.0)


def test_explicit_dtypes() -> None:
    same(jnp.array([1.7, -1.7], dtype=int), [1, -1])
    same(jnp.array(5, dtype=bool), True)
    assert jnp.array(1, dtype="bfloat16").dtype == dtypes.bfloat16
    assert jnp.array(np.ones(2), dtype=float).dtype == np.float32
    assert jnp.asarray(jnp.arange(2), dtype=jnp.float32).dtype == np.float32
    for make in (jnp.array, jnp.asarray, jnp.zeros, jnp.ones):
        with pytest.warns(UserWarning, match="float64 .* will be truncated to dtype float32"):
            assert make(1, dtype="float64").dtype == np.float32
    for wrong in (lambda: jnp.array([300], dtype="uint8"), lambda: jnp.array(-1, dtype="uint8"),
                  lambda: jnp.array(2**40), lambda: jnp.array([[1], [-(2**40)]]),
                  lambda: jnp.array([-1, 2**63])):  # fmt: skip
        with pytest.raises(OverflowError):
            wrong()
    same(jnp.array([2**70, 1.5]), np.float32([2**70, 1.5]))
    with pytest.raises(TypeError, match="real"):
        jnp.array([1j], dtype=float)


def test_64_bits(x64: None) -> None:
    assert jnp.array(1).dtype == np.int64 and jnp.array([1.0]).dtype == np.float64
    assert float(jnp.array(0.1)) == 0.1 and jnp.zeros(1).dtype == np.float64
    assert jnp.arange(3).dtype == np.int64 and jnp.array(2**40) == 2**40


@pytest.mark.parametrize(
    "value",
    ["a", b"ab", object(), {1: 2}, {1, 2}, ["a"], [object()]],
    ids=lambda x: repr(x).split(" at 0x")[0],
)
def test_values_without_numbers(value: Any) -> None:
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        jnp.array(value)


def test_bad_values() -> None:
    for value in (None, [None], [1, None]):
        with pytest.raises((ValueError, TypeError)):
            jnp.array(value)
    with pytest.raises(ValueError, match="inhomogeneous"):
        jnp.array([1, [2, 3]])
    with pytest.raises(NotImplementedError, match="order"):
        jnp.array([1], order="F")


def test_copies() -> None:
    host = np.ones(3, np.float32)
    x = jnp.asarray(host)
    host[0] = 5
    same(x, [1, 1, 1])
    assert jnp.asarray(x) is x and jnp.array(x) is not x
    y = jnp.array(x)
    x.delete()
    same(y, [1, 1, 1])
    same(jnp.copy(y), [1, 1, 1])
    assert jnp.array(3, ndmin=2).shape == (1, 1)


class Offers:
    def __jax_array__(self) -> Array:
        return jnp.arange(2)


class Converts:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.arange(2.0)


def test_protocols() -> None:
    same(jnp.array(Offers()), [0, 1])
    same(jnp.array([Offers(), Offers()]), [[0, 1], [0, 1]])
    same(jnp.array(Converts()), [0, 1])
    same(jnp.from_dlpack(np.arange(3, dtype=np.float32)), [0, 1, 2])
    same(jnp.frombuffer(b"\x01\x02", dtype=jnp.uint8), [1, 2])
    same(jnp.fromstring("1,2", sep=","), [1, 2])
    same(jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int), [[0, 1], [1, 2]])


@pytest.mark.parametrize("shape", [(), 3, (2, 3), [2, 1], np.int64(2), np.array([2, 2]), (0, 4)],
                         ids=lambda x: repr(x).split(" at 0x")[0])  # fmt: skip
def test_filled(shape: Any) -> None:
    for dtype in (None, int, bool, "bfloat16", "complex64"):
        kind = np.float32 if dtype is None else dtypes.canonicalize_dtype(dtype)
        for ours, theirs in ((jnp.zeros, np.zeros), (jnp.ones, np.ones)):
            out = ours(shape, dtype)
            assert out.dtype == kind and not out.weak_type
            same(out, theirs(shape, kind))
        assert jnp.empty(shape, dtype).shape == np.empty(shape).shape
    same(jnp.full(shape, 7), np.full(shape, 7))
    same(jnp.full(shape, 2.5, int), np.full(shape, 2))


def test_like() -> None:
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    for ours, theirs in ((jnp.zeros_like, np.zeros_like), (jnp.ones_like, np.ones_like),
                         (jnp.empty_like, np.zeros_like)):  # fmt: skip
        out = ours(x)
        assert out.dtype == np.int16
        same(out, theirs(x))
        assert ours(x, float).dtype == np.float32 and ours(x, shape=(4,)).shape == (4,)
        assert ours(2.0).weak_type
    same(jnp.full_like(x, 2.7), np.full_like(x, 2))
    same(jnp.full_like(x, jnp.array([1, 2, 3])), [[1, 2, 3]] * 2)
    spec = make_spec()
    assert jnp.zeros_like(spec).shape == (2, 5)


def make_spec() -> Any:
    from primal.api import ShapeDtypeStruct

    return ShapeDtypeStruct((2, 5), np.float32)


def test_bad_shapes() -> None:
    for wrong in (2.5, "a", (2, "b"), None, (1, 2.5)):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
            jnp.zeros(wrong)
    with pytest.raises(TypeError, match="non-?negative"):
        jnp.ones((2, -1))
    for f in (lambda n: jnp.zeros(n), lambda n: jnp.ones((n, 2)), lambda n: jnp.full((n,), 1.0)):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
            jit(f)(3)
        with pytest.raises(TypeError, match="argument n of the function.*static_argnums"):
            jit(f)(3)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        jnp.full((2, 2), jnp.arange(3))


ARANGES: list[tuple[Any, ...]] = [
    (5,), (0,), (-3,), (2, 8), (8, 2), (2, 9, 3), (9, 2, -3), (5.0,), (0, 1, 0.25), (1, 0, -0.25),
    (0.5, 3), (np.int8(3),), (0, 10, np.float32(2.5)), (2, 2), (-2, 2),
]  # fmt: skip


@pytest.mark.parametrize("args", ARANGES, ids=lambda x: repr(x).split(" at 0x")[0])
def test_arange(args: tuple[Any, ...]) -> None:
    want = np.arange(*args)
    out = jnp.arange(*args)
    np.testing.assert_allclose(out, want, rtol=1e-6)
    np.testing.assert_allclose(jit(lambda: jnp.arange(*args))(), want, rtol=1e-6)
    for dtype in ("float16", "int8", "complex64"):
        assert jnp.arange(*args, dtype=dtype).dtype == dtype


def test_arange_is_a_rule_not_a_constant() -> None:
    assert "iota" in str(make_jaxpr(lambda: jnp.arange(1000))())
    same(jnp.arange(jnp.array(3)), [0, 1, 2])
    same(jnp.arange(start=2, stop=4), [2, 3])
    same(jnp.arange(5, step=2), [0, 2, 4])
    assert int(jnp.arange(2**31 - 2, 2**31 - 1)[0]) == 2**31 - 2


def test_arange_needs_concrete_scalars() -> None:
    with pytest.raises(errors.ConcretizationTypeError, match="jnp.arange argument 'stop'"):
        jit(lambda n: jnp.arange(n))(3)
    with pytest.raises(errors.ConcretizationTypeError, match="linspace num"):
        jit(lambda n: jnp.linspace(0, 1, n))(3)
    with pytest.raises(ValueError, match="scalar"):
        jnp.arange(jnp.ones(2))
    with pytest.raises(ZeroDivisionError):
        jnp.arange(1, 2, 0)
    with pytest.raises(TypeError):
        jnp.arange("a")


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 5, 50])
def test_spaces(num: int, endpoint: bool) -> None:
    for start, stop in [(0, 1), (-3.5, 7), (5, 5), (2, -2)]:
        out = jnp.linspace(start, stop, num, endpoint)
        np.testing.assert_allclose(
            out, np.linspace(start, stop, num, endpoint), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_array_equal(
            jnp.linspace(start, stop, num, endpoint, dtype=int).astype(float),
            np.floor(np.asarray(out)),
        )
    np.testing.assert_allclose(jnp.logspace(0, 3, num, endpoint), np.logspace(0, 3, num, endpoint),
                               rtol=1e-5)  # fmt: skip
    np.testing.assert_allclose(jnp.geomspace(1, 256, num, endpoint),
                               np.geomspace(1, 256, num, endpoint), rtol=1e-5)  # fmt: skip
    if num > 1 and endpoint:
        np.testing.assert_allclose(jnp.geomspace(-1, -9, num), np.geomspace(-1, -9, num), rtol=1e-5)


def test_linspace_of_arrays() -> None:
    low, high = np.zeros((2, 1), np.float32), np.arange(3, dtype=np.float32)
    for axis in (0, 1, -1):
        np.testing.assert_allclose(jnp.linspace(low, high, 4, axis=axis),
                                   np.linspace(low, high, 4, axis=axis), rtol=1e-6)  # fmt: skip
    out, step = jnp.linspace(0, 1, 5, retstep=True)
    assert float(step) == 0.25 and len(out) == 5
    with pytest.raises(ValueError, match="must be non-negative"):
        jnp.linspace(0, 1, -1)
    same(grad(lambda v: jnp.linspace(0.0, v, 3).sum())(2.0), 1.5)


@pytest.mark.parametrize("k", [-3, -1, 0, 2, 5])
@pytest.mark.parametrize(
    "size", [(3, None), (2, 4), (4, 2), (0, 3)], ids=lambda x: repr(x).split(" at 0x")[0]
)
def test_triangles(size: tuple[int, Any], k: int) -> None:
    same(jnp.eye(*size, k), np.eye(*size, k))
    same(jnp.tri(*size, k), np.tri(*size, k))
    n, m = size[0], size[0] if size[1] is None else size[1]
    x = np.arange(2 * n * m, dtype=np.float32).reshape(2, n, m)
    same(jnp.tril(x, k), np.tril(x, k))
    same(jnp.triu(x, k), np.triu(x, k))
    same(jnp.diagonal(x, k, 1, 2), np.diagonal(x, k, 1, 2))
    same(jnp.trace(x, k, 1, 2), np.trace(x, k, 1, 2))
    for ours, theirs in ((jnp.tril_indices, np.tril_indices), (jnp.triu_indices, np.triu_indices)):
        for a, b in zip(ours(n, k, m), theirs(n, k, m), strict=True):
            same(a, b)
    v = np.arange(3)
    same(jnp.diag(v, k), np.diag(v, k))
    same(jnp.diagflat(x[0], k), np.diagflat(x[0], k))
    same(jnp.diag(x[0], k), np.diag(x[0], k))


@pytest.mark.parametrize("offset", [-9, -4, -1, 0, 1, 2, 7, np.int64(1)])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (0, 3), (3, 0)])
def test_a_trace_reads_the_square_that_its_diagonal_crosses(shape: Any, offset: Any) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (*shape, 2)).astype(np.float32)
    same(jit(lambda x: jnp.trace(x, offset))(x), np.trace(x, offset))
    slope = jit(grad(lambda x: jnp.trace(x, offset).sum()))(x)
    want = np.eye(*shape, int(offset), dtype=np.float32)
    same(slope, np.repeat(want[..., None], 2, -1))
    length = len(np.diagonal(x[..., 0], offset))
    program = make_jaxpr(lambda x: jnp.trace(x, offset))(x).jaxpr
    picks = [e.outvars[0].aval.shape for e in program.eqns if e.primitive.name == "select_n"]
    assert picks == [(2, length, length)]


def test_identity_and_errors() -> None:
    same(jnp.identity(3, int), np.identity(3, int))
    for f in (jnp.tril, jnp.triu):
        with pytest.raises(ValueError, match="at least 2D"):
            f(jnp.ones(3))
    with pytest.raises(ValueError, match="1d or 2d"):
        jnp.diag(jnp.ones((2, 2, 2)))
    with pytest.raises(ValueError):
        jnp.trace(jnp.ones(3))


def test_grids() -> None:
    a, b, c = np.arange(2), np.arange(3.0), np.arange(4)
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            ours = jnp.meshgrid(a, b, c, indexing=indexing, sparse=sparse)
            theirs = np.meshgrid(a, b, c, indexing=indexing, sparse=sparse)
            for x, y in zip(ours, theirs, strict=True):
                same(x, y)
    same(jnp.indices((2, 3)), np.indices((2, 3)))
    for x, y in zip(jnp.indices((2, 3), sparse=True), np.indices((2, 3), sparse=True), strict=True):
        same(x, y)
    assert jnp.meshgrid() == []
    with pytest.raises(ValueError, match="indexing"):
        jnp.meshgrid(a, indexing="ab")
    with pytest.raises(ValueError, match="must be 1D"):
        jnp.meshgrid(np.ones((2, 2)))
    same(jnp.vander(np.arange(3), 4), np.vander(np.arange(3), 4))
    same(jnp.vander(np.arange(3), increasing=True), np.vander(np.arange(3), increasing=True))
    for x, y in zip(jnp.diag_indices(3, 3), np.diag_indices(3, 3), strict=True):
        same(x, y)
    for x, y in zip(jnp.mask_indices(3, jnp.triu), np.mask_indices(3, np.triu), strict=True):
        same(x, y)
    for name in ("diag_indices_from", "tril_indices_from", "triu_indices_from"):
        square = np.ones((3, 3))
        for x, y in zip(getattr(jnp, name)(square), getattr(np, name)(square), strict=True):
            same(x, y)


def test_fill_diagonal() -> None:
    x = np.zeros((3, 4), np.float32)
    want = x.copy()
    np.fill_diagonal(want, [1, 2, 3])
    same(jnp.fill_diagonal(x, np.array([1, 2, 3]), inplace=False), want)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.fill_diagonal(x, 1)


def test_scalar_types() -> None:
    out = jnp.float32(1)
    assert isinstance(out, Array) and out.dtype == np.float32 and not out.weak_type
    assert jnp.int32 == np.int32 and hash(jnp.int32) == hash(np.int32) and jnp.int32 != jnp.int8
    assert np.dtype(jnp.bfloat16) == dtypes.bfloat16 and repr(jnp.float32).endswith("float32'>")
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(1.0, jnp.float32)
    assert jnp.bool is jnp.bool_ and jnp.issubdtype(jnp.int8, jnp.signedinteger)
    assert {jnp.float32: 1}[np.float32] == 1
    same(jnp.int8([1, 2]), [1, 2])
    assert jnp.finfo(jnp.float32).bits == 32 and jnp.iinfo(jnp.uint8).max == 255
    assert jnp.result_type(jnp.int32, jnp.float16) == np.float16
    assert jnp.isscalar(1) and not jnp.isscalar(jnp.ones(2)) and jnp.ndim(3) == 0
    assert jnp.isdtype(jnp.float32, "real floating") and jnp.can_cast("int8", "int16")


def test_files_and_texts() -> None:
    for value in (jnp.arange(3), jnp.ones((2, 2), "bfloat16"), jnp.array(1j)):
        file = io.BytesIO()
        jnp.save(file, value)
        file.seek(0)
        out = jnp.load(file)
        assert out.dtype == value.dtype
        same(out, np.asarray(value))
    assert jnp.array_repr(jnp.arange(2)) == "Array([0, 1], dtype=int32)"
    assert jnp.array_str(jnp.array([1 / 3]), precision=2) == "[0.33]"
    for name in ("fromfile", "fromiter"):
        with pytest.raises(NotImplementedError, match="non-pure"):
            getattr(jnp, name)("x")


def test_imaginary_parts_are_not_dropped_in_silence() -> None:
    z = np.array([1 + 2j, 3])
    for make in (
        lambda: jnp.asarray(z, "float32"),
        lambda: jnp.array(jnp.array(z), "float32"),
        lambda: jnp.asarray(np.complex64(1j), int),
        lambda: jnp.full(2, jnp.array(1j), "float32"),
        lambda: jnp.full_like(jnp.zeros(2), jnp.array(1j)),
    ):
        for _ in range(3):
            with pytest.warns(jnp.ComplexWarning, match="discards the imaginary part"):
                assert make().dtype.kind in "fi"


@pytest.mark.parametrize("value", [3213575472, 2**32 + 5, -(2**31) - 1, 2**70, 5])
def test_whole_numbers_keep_their_digits_in_the_dtype_asked_for(value):
    """Only a dtype that is asked for decides whether they fit, not the default one."""
    for dtype in (jnp.float32, jnp.complex64, jnp.bool_, jnp.uint32, jnp.int16):
        expected = np.array(value).astype(np.float64 if value == 2**70 else np.int64)
        fits = not jnp.issubdtype(dtype, jnp.integer)
        if not fits:
            info = jnp.iinfo(dtype)
            fits = int(info.min) <= value <= int(info.max)
        for make in (
            dtype,
            lambda v, d=dtype: jnp.asarray(v, d),
            lambda v, d=dtype: jnp.array([v], d),
        ):
            if fits:
                made = make(value)
                np.testing.assert_array_equal(made.ravel()[0], expected.astype(dtype))
                assert made.dtype == dtype and not made.weak_type
            else:
                with pytest.raises(OverflowError):
                    make(value)
        if value != 2**70:  # these wrap
            for made in (
                jnp.full((2,), value, dtype),
                jnp.full_like(jnp.ones(2, dtype), value),
                primal.lax.convert_element_type(value, dtype)[None],
                primal.jit(lambda d=dtype: jnp.full((1,), value, d))(),
            ):
                np.testing.assert_array_equal(made[0], expected.astype(dtype))
                assert made.dtype == dtype


def test_shapes_of_what_has_none():
    with pytest.warns(DeprecationWarning, match="shape requires ndarray"):
        assert jnp.shape(None) == () and jnp.ndim(None) == 0
    with pytest.warns(DeprecationWarning, match="shape requires ndarray"):
        assert jnp.shape({}) == () and jnp.size({}) == 1
    for text in ("a", b"a"):
        assert jnp.shape(text) == ()


def test_shapes_are_what_objects_say_of_themselves():
    class Offered:
        def __init__(self, x):
            self.x = x

        def __jax_array__(self):
            return self.x

    class Sized:
        shape = (2, 3)

    for x in (Sized(), primal.ShapeDtypeStruct((2, 3), float), Offered(jnp.ones((2, 3)))):
        assert (jnp.shape(x), jnp.ndim(x), jnp.size(x), jnp.size(x, 1)) == ((2, 3), 2, 6, 3)
        assert not jnp.isscalar(x)
    assert jnp.shape(np.array([None])) == (1,)
    assert jnp.isscalar(Offered(jnp.float32(1))) and jnp.isscalar(Offered(2.0))


@pytest.mark.parametrize("dtype", ["int4", "int8", "uint8", "int32", "uint32"])
def test_fills_are_converted_as_arrays_are(dtype: str) -> None:
    """What does not fit stops at the ends of the dtype, NaN is 0; NumPy's own casts wrap."""
    ends = jnp.iinfo(dtype)
    values = {np.nan: 0, np.inf: ends.max, -np.inf: ends.min, 1e20: ends.max, -1e20: ends.min}
    for value, wanted in {**values, 2.9: 2, -0.5: 0}.items():
        for made in (
            lax.full((2,), value, dtype),
            lax.full_like(jnp.zeros(2, dtype), value),
            jnp.full(2, value, dtype),
            jnp.full_like(jnp.zeros(2, dtype), value),
            jnp.full(2, np.float32(value), dtype),
            jit(lambda: jnp.full(2, value, dtype))(),  # noqa: B023
            jnp.full(2, jnp.float32(value)).astype(dtype),
        ):
            assert made.dtype == dtype
            assert np.asarray(made).astype("int64").tolist() == [int(wanted)] * 2
    assert jnp.full(2, jnp.nan, bool).tolist() == [True, True]


@pytest.mark.parametrize(("value", "dtype"), [
    (1e20, "int32"), (-1.5, "uint8"), ([1e20], "int32"), ([-1.5], "uint8"), (300.5, "int8"),
    ([[1.0], [300.5]], "int8"),
])  # fmt: skip
def test_floats_beyond_an_integer_dtype_overflow(value: Any, dtype: str) -> None:
    for f in (jnp.array, jnp.asarray):
        with pytest.raises(OverflowError, match=f"out of bounds for {dtype}"):
            f(value, dtype)
    assert jnp.array([2.7, -1.2], "int8").tolist() == [2, -1]


@pytest.mark.parametrize("dtype", [*"bhilqBHILQfdFD?"])
def test_lists_of_whatever_width_are_numpys(dtype: str, x64: None) -> None:
    """What NumPy makes of two numbers and a dtype is made of them here, or its kind of error."""
    wide = [
        2**63, 2**64 - 1, 2**40, -(2**40), 300, -1, 0, np.int64(2**40), np.uint64(2**63),
        np.int8(3), np.float64(1e40), np.float32(0.5), np.complex128(1e300), 1.5, 2j,
    ]  # fmt: skip
    for a, b in itertools.product(wide, wide):
        if {type(a), type(b)} <= {int, float, complex}:
            continue  # has rules of its own
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want: Any = np.array([a, b], dtype)
            except (OverflowError, TypeError) as e:
                with pytest.raises(type(e)):
                    jnp.array([a, b], dtype)
                continue
            got = np.asarray(jnp.array([a, b], dtype))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=str([a, b]))


def test_lists_hold_numbers_wider_than_the_default() -> None:
    for wide in (np.int64(2**40), np.array(2**40), np.float64(2**40), 2**40):
        assert jnp.array([wide, 1], "float32").tolist() == [2.0**40, 1.0]
        assert jnp.asarray([[wide], [0]], bool).tolist() == [[True], [False]]
    assert jnp.array([np.array([2**40, 1]), np.array([2, 3])], "float32")[0, 0] == 2.0**40


@pytest.mark.parametrize("beside", [
    np.float32(1), np.array(1.0), np.float64(1), jnp.array(1.0), jnp.float32(1), np.complex64(1),
    np.float16(1), jnp.bfloat16(1),
], ids=lambda x: type(x).__name__ + str(x.dtype))  # fmt: skip
def test_whole_numbers_beyond_the_default_beside_floats_are_floats(beside: Any) -> None:
    for value in (2**31, -(2**31) - 1, 2**63, 2**64 - 1):
        made = jnp.array([beside, value])
        assert made.dtype == jnp.array([beside, 1]).dtype
        with np.errstate(over="ignore"):
            want = np.array([1.0, float(value)]).astype(made.dtype)
        assert np.array_equal(made, want)
    with pytest.raises(OverflowError, match="2147483648"):
        jnp.array([np.int32(1), 2**31])


def test_lists_of_python_integers_fill_uint64(x64: None) -> None:
    assert jnp.array([2**63, 0], "uint64").tolist() == [2**63, 0]
    assert jnp.asarray([[2**64 - 1], [1]], "uint64").tolist() == [[2**64 - 1], [1]]
    assert jnp.array([2**63, 0], "float32").tolist() == [2.0**63, 0]
    assert jnp.array([jnp.uint64(3), 2**64 - 1]).tolist() == [3, 2**64 - 1]
    for values in ([2**64, 0], [2**63, -1]):
        with pytest.raises(OverflowError, match="uint64"):
            jnp.array(values, "uint64")


@pytest.mark.parametrize("wide", [np.int64(2**40), np.uint64(2**40), np.array(2**40), 2**40])
def test_fills_and_conversions_see_all_digits_of_whole_numbers(wide: Any) -> None:
    """Not those that are left in the default dtype."""
    makers: list[Any] = [
        lambda d: jnp.full(2, wide, d), lambda d: jnp.full_like(jnp.ones(2), wide, d),
        lambda d: jnp.full(2, fill_value=wide, dtype=d),
        lambda d: lax.full((2,), wide, d), lambda d: lax.convert_element_type(wide, d)[None],
        lambda d: jnp.array([wide, wide], d), lambda d: jit(lambda: jnp.full(2, wide, d))(),
    ]  # fmt: skip
    for made in makers:
        for dtype, value in [("float32", 2.0**40), ("bool", True), ("complex64", 2.0**40 + 0j)]:
            for _ in range(3):  # what is called again has a program of its own
                assert made(dtype).dtype == dtype and made(dtype)[0] == value
    pair = jnp.full((2, 2), np.array([2**40, 5]), "float32")
    assert pair.tolist() == [[2.0**40, 5], [2.0**40, 5]]


def test_ranges_between_numbers_that_are_differentiated() -> None:
    def of_start(a: Any) -> Any:
        return jnp.sum(jnp.arange(a, 5.0) * jnp.array([1.0, 2, 3, 4]))

    def of_step(a: Any) -> Any:
        return jnp.sum(jnp.arange(0.0, 2.0, a) ** 2)

    assert float(grad(lambda n: jnp.arange(n).sum())(3.0)) == 0  # the length is no slope
    assert float(grad(of_start)(1.0)) == 10
    assert float(grad(of_step)(0.5)) == 2 * 0.5 * (1 + 4 + 9)
    assert float(grad(lambda a: jnp.arange(a, 3.0).sum())(0.0)) == 3
    with pytest.raises(errors.ConcretizationTypeError):
        jit(jnp.arange)(3)
