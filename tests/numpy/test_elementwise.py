"""Elementwise functions against NumPy, over dtypes and shapes."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.api import grad, jit, vmap
from primal.base import dtypes
from primal.base.native import extension

SHAPES = [(), (0,), (5,), (2, 1, 3)]
# Relative tolerance per dtype: a few units of the last place.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-12,
             "complex64": 5e-6}  # fmt: skip

# name -> (low, high) of the operands where the function is smooth and real
UNARY: dict[str, tuple[float, float]] = {
    "exp": (-3, 3), "exp2": (-3, 3), "expm1": (-3, 3), "log": (0.1, 9), "log2": (0.1, 9),
    "log10": (0.1, 9), "log1p": (-0.9, 9), "sqrt": (0.1, 9), "cbrt": (-9, 9), "sin": (-6, 6),
    "cos": (-6, 6), "tan": (-1, 1), "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9),
    "arctan": (-6, 6), "sinh": (-3, 3), "cosh": (-3, 3), "tanh": (-3, 3), "arcsinh": (-6, 6),
    "arccosh": (1.1, 9), "arctanh": (-0.9, 0.9), "sinc": (-3, 3), "deg2rad": (-90, 90),
    "rad2deg": (-3, 3), "radians": (-90, 90), "degrees": (-3, 3), "absolute": (-9, 9),
    "fabs": (-9, 9), "sign": (-9, 9), "negative": (-9, 9), "positive": (-9, 9),
    "square": (-9, 9), "reciprocal": (0.5, 9), "floor": (-9, 9), "ceil": (-9, 9),
    "trunc": (-9, 9), "rint": (-9, 9), "round": (-9, 9), "isfinite": (-9, 9), "isnan": (-9, 9),
    "isinf": (-9, 9), "signbit": (-9, 9), "isposinf": (-9, 9), "isneginf": (-9, 9),
    "nan_to_num": (-9, 9), "spacing": (0.5, 9), "i0": (-3, 3), "angle": (-9, 9), "real": (-9, 9),
    "imag": (-9, 9), "conj": (-9, 9), "isreal": (-9, 9), "iscomplex": (-9, 9),
    "logical_not": (-1, 1),
}  # fmt: skip
COMPLEX = (
    "exp expm1 log log10 log2 sqrt sin cos tan sinh cosh tanh arcsin arctan absolute negative "
    "square reciprocal isfinite isnan isinf real imag conj isreal iscomplex angle round positive"
).split()
INTEGERS = (
    "negative positive absolute square sign invert bitwise_not floor ceil trunc round isnan "
    "isinf isfinite signbit real imag conj bitwise_count logical_not"
).split()

BINARY: dict[str, tuple[float, float]] = {
    "add": (-9, 9), "subtract": (-9, 9), "multiply": (-9, 9), "divide": (0.5, 9),
    "true_divide": (0.5, 9), "power": (0.5, 3), "float_power": (0.5, 3), "maximum": (-9, 9),
    "minimum": (-9, 9), "fmax": (-9, 9), "fmin": (-9, 9), "arctan2": (-9, 9), "hypot": (-9, 9),
    "logaddexp": (-9, 9), "logaddexp2": (-9, 9), "fmod": (0.5, 9), "remainder": (0.5, 9),
    "mod": (0.5, 9), "floor_divide": (0.5, 9), "copysign": (-9, 9), "heaviside": (-9, 9),
    "nextafter": (-9, 9), "equal": (-9, 9), "not_equal": (-9, 9), "less": (-9, 9),
    "less_equal": (-9, 9), "greater": (-9, 9), "greater_equal": (-9, 9), "logical_and": (-1, 1),
    "logical_or": (-1, 1), "logical_xor": (-1, 1), "isclose": (-9, 9),
}  # fmt: skip
INTEGER_PAIRS = (
    "add subtract multiply maximum minimum floor_divide remainder fmod equal less greater_equal "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm logical_and power"
).split()


def drawn(name: str, span: tuple[float, float], shape: Any, dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, len(name)])
    low, high = span
    value = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        value = value + 1j * rng.uniform(low, high, shape)
    if np.dtype(dtype).kind in "iu":
        value = rng.integers(1, 7, shape)
    return np.asarray(value).astype(dtype)


def check(got: Any, want: Any, dtype: str) -> None:
    for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else ((got, want),):
        assert g.shape == np.shape(w)
        if np.asarray(w).dtype == bool:
            assert g.dtype == bool
        tolerance = TOLERANCE.get(dtype, 0)
        np.testing.assert_allclose(
            np.asarray(g).astype(np.complex128 if g.dtype.kind == "c" else np.float64),
            np.asarray(w), rtol=tolerance, atol=tolerance,
        )  # fmt: skip


def numpy_of(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(np, name)
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: str) -> None:
    for shape in SHAPES:
        x = drawn(name, UNARY[name], shape, dtypes.as_dtype(dtype))
        got = getattr(jnp, name)(x)
        wide = x.astype(np.float64)
        if name in ("nan_to_num", "positive", "spacing", "imag"):
            if dtype != "float32":
                continue
            wide = x
        check(got, numpy_of(name)(wide), dtype)
        assert got.dtype in (x.dtype, np.bool_)


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("spacing", "nan_to_num")])
def test_unary_in_64_bits(name: str, x64: None) -> None:
    x = drawn(name, UNARY[name], (4,), np.float64)
    got = getattr(jnp, name)(x)
    assert got.dtype in (np.float64, np.bool_)
    want = numpy_of(name)(x)
    np.testing.assert_allclose(got, want, rtol=5e-8 if name == "i0" else 1e-13, atol=1e-15)


@pytest.mark.parametrize("name", COMPLEX)
def test_unary_of_complex_numbers(name: str) -> None:
    for shape in SHAPES:
        x = drawn(name, (0.2, 1.5), shape, np.complex64)
        check(getattr(jnp, name)(x), numpy_of(name)(x.astype(np.complex128)), "complex64")


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
@pytest.mark.parametrize("name", INTEGERS)
def test_unary_of_integers_keeps_the_dtype(name: str, dtype: str) -> None:
    x = np.array([0, 1, 2, 5, 7]).astype(dtype)
    if dtype.startswith("int"):
        x = np.concatenate([x, -x])
    got, want = getattr(jnp, name)(x), numpy_of(name)(x)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == np.asarray(want).dtype


@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "arctan", "sinc", "deg2rad", "cbrt"])
def test_integers_and_booleans_become_float32(name: str) -> None:
    for x in (np.arange(4), np.array([True, False]), np.arange(3, dtype=np.uint8)):
        got = getattr(jnp, name)(x)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, numpy_of(name)(x.astype(float)), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: str) -> None:
    kind = dtypes.as_dtype(dtype)
    for left, right in [((3,), (3,)), ((2, 1, 3), (4, 1)), ((), (3,)), ((0, 2), (2,))]:
        x = drawn(name, BINARY[name], left, kind, 1)
        y = drawn(name, BINARY[name], right, kind, 2)
        got = getattr(jnp, name)(x, y)
        if name == "nextafter":
            if dtype == "float32":
                np.testing.assert_array_equal(got, np.nextafter(x, y))
            continue
        if name in ("fmod", "remainder", "mod", "floor_divide") and dtype != "float32":
            continue  # a rounded operand may cross a multiple
        check(got, numpy_of(name)(x.astype(np.float64), y.astype(np.float64)), dtype)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
@pytest.mark.parametrize("name", INTEGER_PAIRS)
def test_binary_of_integers(name: str, dtype: str) -> None:
    x = np.array([0, 1, 3, 6, 7], dtype)
    y = np.array([[1], [2], [3]], dtype)
    if dtype.startswith("int") and name not in ("left_shift", "right_shift", "power"):
        x = np.concatenate([x, -x])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = numpy_of(name)(x, y)
    got = getattr(jnp, name)(x, y)
    np.testing.assert_array_equal(got, want)
    assert got.dtype in (x.dtype, np.bool_)


def test_integer_division_by_zero() -> None:
    x = jnp.array([5, 0, -5])
    np.testing.assert_array_equal(jnp.remainder(x, 0), [0, 0, 0])
    np.testing.assert_array_equal(jnp.floor_divide(jnp.uint8(7), jnp.uint8(2)), 3)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8"])
def test_floors_by_known_numbers(dtype: str) -> None:
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    x = np.array([*range(max(-70, info.min), 70), *ends], dtype)
    for n in (1, 2, 3, 7, 64, 100, 127):
        want = x // n
        for f in (lambda x, n=n: x // n, primal.jit(lambda x, n=n: jnp.divmod(x, n)[0])):
            got = f(jnp.asarray(x))
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_and_remainders_are_those_of_programs(dtype: str, x64: None) -> None:
    """To the last bit: of any numbers, of such beside multiples, and of large whole quotients."""

    def results(x: Any, y: Any) -> Any:
        return jnp.fmod(x, y), jnp.remainder(x, y), jnp.floor_divide(x, y), *jnp.divmod(x, y)

    rng, bits = np.random.default_rng(0), {"float32": "u4", "float64": "u8"}[dtype]
    ends = [0, -0.0, np.inf, -np.inf, np.nan, 1, -3, 2.5, 1e-45, 3e38, 2**24 - 1, 2**28, 0.1]
    y = rng.uniform(-2, 2, 500)
    most = 2.0 ** rng.uniform(0, 28 if dtype == "float32" else 56, 500)
    beside = (y * np.rint(most)).astype(dtype)
    pairs = [
        np.meshgrid(ends, ends),
        rng.integers(0, np.iinfo(bits).max, (2, 2000), dtype=bits).view(dtype),
        (beside, y),
        (np.nextafter(beside, rng.choice([-np.inf, np.inf], 500).astype(dtype)), y),
    ]
    with np.errstate(invalid="ignore"):
        x, y = [np.concatenate([np.ravel(p[i]) for p in pairs]).astype(dtype) for i in (0, 1)]
        rest = np.fmod(x, y)
    for b in (y, y[7]):
        for found, whole in zip(results(x, b), jit(results)(x, b), strict=True):
            assert np.asarray(found).shape == np.asarray(whole).shape
            np.testing.assert_array_equal(found, whole)
            at = ~np.isnan(whole)
            assert (np.signbit(found) == np.signbit(whole))[at].all()
    np.testing.assert_array_equal(jnp.fmod(x, y), rest)
    np.testing.assert_array_equal(jnp.fmod(x[::-3], y[::-3]), rest[::-3])


def test_what_of_float32_is_computed_in_vectors() -> None:
    """Lengths are those of float64 rounded once, neighbours and parts NumPy's."""
    rng = np.random.default_rng(0)
    ends = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, 3e38, *2.0 ** np.arange(-149, 128)]
    x = np.concatenate([ends, rng.normal(size=600) * 10.0 ** rng.integers(-44, 38, 600)])
    x, y = x.astype(np.float32), rng.permutation(x).astype(np.float32)
    with np.errstate(all="ignore"):
        lengths = np.hypot(np.float64(x), y).astype(np.float32)
        neighbours = np.nextafter(x, y)
    np.testing.assert_array_max_ulp(jnp.hypot(x, y), lengths, int(extension is None))
    np.testing.assert_array_equal(jnp.hypot(x[::-2], y[::-2]), jnp.hypot(x, y)[::-2])
    found = np.asarray(jnp.nextafter(x, y))
    np.testing.assert_array_equal(found, neighbours)
    assert (np.signbit(found) == np.signbit(neighbours))[~np.isnan(found)].all()
    assert jnp.hypot(x[:0], 1).shape == (0,) and jnp.hypot(jnp.float32(3), 4) == 5
    for v in (x, np.float64(x), np.float32([[-3, 3], [-2.5, 0]]).T):
        for found, whole in zip(jnp.modf(v), np.modf(v), strict=True):
            np.testing.assert_array_equal(found, whole)
            at = ~np.isnan(whole)
            assert (np.signbit(found) == np.signbit(whole))[at].all()


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_signs_of_remainders(name: str) -> None:
    values = np.array([-7.5, -7, -2, -0.5, 0.0, 0.5, 2, 7, 7.5, np.inf, -np.inf], np.float32)
    x, y = np.meshgrid(values, values[values != 0])
    with np.errstate(all="ignore"):
        want = numpy_of(name)(x, y)
    got = np.asarray(getattr(jnp, name)(x, y))
    finite = np.isfinite(x) & np.isfinite(y)
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-6)
    whole = x[finite].astype(np.int32), y[finite].astype(np.int32)
    kept = whole[1] != 0
    np.testing.assert_array_equal(
        getattr(jnp, name)(whole[0][kept], whole[1][kept]),
        numpy_of(name)(whole[0][kept], whole[1][kept]),
    )


def test_divmod_and_parts() -> None:
    x = np.array([7.25, -7.25, 0.5], np.float32)
    for got, want in zip(jnp.divmod(x, 2), np.divmod(x, np.float32(2)), strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(jnp.modf(x), np.modf(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_fraction_of_whole_numbers_has_slope_1_too() -> None:
    x = jnp.array([0.0, -0.0, -1.0, 1.0, -2.5, jnp.nan])
    for transform in (vmap, lambda f: jit(vmap(f))):
        assert transform(grad(lambda v: jnp.modf(v)[0]))(x).tolist() == [1.0] * 6
        assert transform(grad(lambda v: jnp.modf(v)[1]))(x).tolist() == [0.0] * 6
    for f in (jnp.modf, jit(jnp.modf)):
        for got, want in zip(f(x), np.modf(np.asarray(x)), strict=True):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got)[:5], np.signbit(want)[:5])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_frexp_and_ldexp_are_inverse(dtype: str, x64: None) -> None:
    kind = dtypes.as_dtype(dtype)
    x = np.array([1.5, -0.3, 0.0, 1e-7, 300.0]).astype(kind)
    mantissa, exponent = jnp.frexp(x)
    want = np.frexp(x.astype(np.float64))
    np.testing.assert_array_equal(np.asarray(mantissa).astype(np.float64), want[0])
    np.testing.assert_array_equal(exponent, want[1])
    np.testing.assert_array_equal(jnp.ldexp(mantissa, exponent), jnp.asarray(x))


def test_ldexp_reaches_from_smallest_to_largest() -> None:
    tiny = np.float32(np.finfo(np.float32).smallest_subnormal)
    assert jnp.ldexp(tiny, 149 + 127) == np.float32(2.0**127)
    assert jnp.ldexp(np.float32(1), 1000) == np.inf
    assert jnp.ldexp(np.float32(1), -1000) == 0


def test_exceptional_values() -> None:
    nan, inf = np.nan, np.inf
    np.testing.assert_array_equal(jnp.hypot(np.float32([inf, nan, 0, 3e30]),
                                            np.float32([nan, 1, 0, 4e30])),
                                  np.float32([inf, nan, 0, 5e30]))  # fmt: skip
    np.testing.assert_array_equal(jnp.logaddexp(np.float32([-inf, inf, nan, -inf]),
                                                np.float32([-inf, inf, 0, 0])),
                                  [-inf, inf, nan, 0])  # fmt: skip
    np.testing.assert_array_equal(jnp.maximum(np.float32([nan, 1]), np.float32([1, nan])),
                                  [nan, nan])  # fmt: skip
    np.testing.assert_array_equal(jnp.fmax(np.float32([nan, 1, nan]), np.float32([1, nan, nan])),
                                  [1, 1, nan])  # fmt: skip
    np.testing.assert_array_equal(jnp.fmin(np.float32([nan, 1, nan]), np.float32([1, nan, nan])),
                                  [1, 1, nan])  # fmt: skip
    np.testing.assert_array_equal(jnp.sign(np.float32([nan, -0.0])), [nan, 0])
    np.testing.assert_array_equal(jnp.nan_to_num(np.float32([nan, inf, -inf])),
                                  np.nan_to_num(np.float32([nan, inf, -inf])))  # fmt: skip
    # One after the other, where NumPy replaces what was there at first.
    high = float(np.finfo(np.float32).max)
    for given, expected in (
        ({"nan": inf}, [high, high, -high]), ({"nan": 1e39, "posinf": 3}, [3, 3, -high]),
        ({"nan": -inf, "neginf": 2}, [2, high, 2]), ({"posinf": -inf}, [0, -high, -high]),
        ({"posinf": nan}, [0, nan, -high]), ({"neginf": inf}, [0, high, inf]),
    ):  # fmt: skip
        for x in (np.float32([nan, inf, -inf]), np.complex64([nan, inf, -inf])):
            for run in (jnp.nan_to_num, primal.jit(jnp.nan_to_num, static_argnames=given)):
                np.testing.assert_array_equal(run(jnp.asarray(x), **given), expected)


def test_complex_order_is_by_real_then_imaginary_part() -> None:
    x = np.array([1 + 2j, 1 + 1j, 2, 1 + 2j], np.complex64)
    y = np.array([1 + 1j, 1 + 2j, 1, 1 + 2j], np.complex64)
    for name in ("less", "less_equal", "greater", "greater_equal", "maximum", "minimum"):
        np.testing.assert_array_equal(getattr(jnp, name)(x, y), numpy_of(name)(x, y))


@pytest.mark.parametrize(
    "name",
    ["hypot", "logaddexp", "logaddexp2", "sinc", "i0", "heaviside", "float_power", "copysign"],
)
def test_derivatives_by_differences(name: str, x64: None) -> None:
    function = getattr(jnp, name)
    n = 1 if name in ("sinc", "i0") else 2
    at = [np.array([0.7, 1.3, -0.4])[: 3 - (name == "float_power")], np.array([1.1, 0.2, 0.9])]
    args = [a[:2] for a in at[:n]]
    step = 1e-6

    def value(*xs: Any) -> Any:
        return jnp.sum(function(*xs))

    for i in range(n):
        slope = np.asarray(grad(value, i)(*[jnp.asarray(a) for a in args]))
        for k in range(len(slope)):
            ends = []
            for side in (step, -step):
                moved = [a.copy() for a in args]
                moved[i][k] += side
                ends.append(float(value(*moved)))
            assert slope[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_derivatives_at_the_awkward_points(x64: None) -> None:
    assert grad(jnp.sinc)(0.0) == 0
    assert float(grad(grad(jnp.sinc))(0.0)) == pytest.approx(-(np.pi**2) / 3)
    assert grad(jnp.i0)(0.0) == 0
    assert float(grad(grad(jnp.i0))(0.0)) == pytest.approx(0.5)
    assert [float(v) for v in grad(jnp.logaddexp, (0, 1))(2.0, 2.0)] == [0.5, 0.5]
    for base, fun in ((np.e, jnp.logaddexp), (2, jnp.logaddexp2)):
        twice = float(grad(grad(lambda v, f=fun: f(v, -v)))(0.0))
        assert twice == pytest.approx(np.log(base))
    assert [float(v) for v in grad(jnp.maximum, (0, 1))(2.0, 2.0)] == [0.5, 0.5]
    assert not np.isnan(grad(jnp.logaddexp)(-np.inf, -np.inf))
    assert grad(lambda v: v**2)(0.0) == 0 and grad(lambda v: v**0)(0.0) == 0


@pytest.mark.parametrize("base", [np.e, 2.0])
def test_sums_of_complex_powers_beside_none(base: float) -> None:
    """-inf adds nothing: log2 of 2^-inf + 2^x was x + 1, as -inf + 0j times a number has a NaN."""
    f = jnp.logaddexp if base == np.e else jnp.logaddexp2
    x = np.complex64([1, 0, 2 - 1j, -3 + 2j, -np.inf])
    for g in (f, jit(f)):
        for got in (g(np.complex64(-np.inf), x), g(x, np.complex64(-np.inf))):
            np.testing.assert_allclose(got, x, rtol=1e-6)
        assert (np.real(g(x, np.complex64(np.inf))) == np.inf).all()
        some = np.complex64([0.3 + 1j, -2, 1 - 0.5j])
        want = np.log(base ** np.complex128(some) + base ** np.complex128(some[::-1]))
        np.testing.assert_allclose(g(some, some[::-1]), want / np.log(base), rtol=1e-5)
    total = np.log(np.sum(base ** np.arange(4.0))) / np.log(base)
    np.testing.assert_allclose(f.reduce(np.arange(4).astype(np.complex64)), total, rtol=1e-6)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "hypot", "logaddexp", "power",
                                  "gcd", "copysign", "isclose"])  # fmt: skip
def test_programs_agree_with_eager(name: str) -> None:
    kind = np.int32 if name == "gcd" else np.float32
    x, y = drawn(name, (0.5, 3), (4, 3), kind, 1), drawn(name, (0.5, 3), (3,), kind, 2)
    function = getattr(jnp, name)
    want = np.asarray(function(x, y))
    np.testing.assert_allclose(jit(function)(x, y), want, rtol=1e-5)
    np.testing.assert_allclose(vmap(function, (0, None))(x, y), want, rtol=1e-5)


def test_small_floats_and_integers() -> None:
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        x = np.array([0.5, 1.0, 2.0]).astype(dtype)
        assert jnp.add(x, x).dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(jnp.add(x, x), np.float32), [1, 2, 4])
    x = np.array([1, 2, 3]).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(np.asarray(jnp.add(x, x), np.int32), [2, 4, 6])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_logarithms_of_powers_are_whole(dtype: str) -> None:
    k = np.arange(-4, 5)
    for name, base in (("log2", 2.0), ("log10", 10.0)):
        for run in (lambda f: f, jit):
            np.testing.assert_array_equal(run(getattr(jnp, name))(np.array(base**k, dtype)), k)


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_complex_infinities(name: str) -> None:
    """NumPy's: the part that is infinite leaves the other a number."""
    z = np.array([0, np.inf, -np.inf, complex(0, np.inf), complex(-3, np.inf)], np.complex64)
    with np.errstate(divide="ignore"):
        want = getattr(np, name)(z)
    for run in (lambda f: f, jit):
        np.testing.assert_allclose(run(getattr(jnp, name))(z), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sinc_near_0_and_far_away(dtype: str) -> None:
    """Slopes are the series' where the square of πx underflows; far away nothing is infinite."""
    tiny, far = [1e-30, -1e-22, 1e-9, 3e-4, 6e-3, 0.05], np.finfo(dtype).max * np.array([0.5, -1])
    with primal.enable_x64(True):
        x = jnp.asarray(tiny, dtype)
        slope = primal.grad(jnp.sinc)
        for run in (lambda f: f, primal.jit):
            first, second = (run(primal.vmap(f))(x) for f in (slope, primal.grad(slope)))
            u = np.pi * np.asarray(x, float)
            series = [(-1) ** k / math.factorial(2 * k + 1) for k in range(12)]
            want = [
                np.pi * sum(2 * k * c * u ** (2 * k - 1) for k, c in enumerate(series) if k),
                np.pi**2
                * sum(
                    2 * k * (2 * k - 1) * c * u ** (2 * k - 2) for k, c in enumerate(series) if k
                ),
            ]
            rtol = 8 * np.finfo(dtype).eps
            np.testing.assert_allclose(first, want[0], rtol=rtol)
            np.testing.assert_allclose(second, want[1], rtol=rtol)
            edges = run(jnp.sinc)(jnp.asarray([*far, np.inf, np.nan], dtype))
            assert np.all(np.abs(edges[:2]) < 1e-30) and np.isnan(edges[2:]).all()
            assert np.isfinite(run(primal.vmap(slope))(jnp.asarray(far, dtype))).all()


@pytest.mark.parametrize("engine", ["eager", "cpu", "xla", "reference"])
@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_extrema_that_leave_nans_out_take_a_nan_part_for_a_nan(name: str, engine: str) -> None:
    parts = [1.0, -2.0, np.inf, np.nan]
    x = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    x, y = np.repeat(x, x.size), np.tile(x, x.size)
    y, x = y[x != y], x[x != y]
    fun = getattr(jnp, name)
    with primal.config.flag("cpu_engine")("cpu" if engine == "eager" else engine):
        got = (fun if engine == "eager" else primal.jit(fun))(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_array_equal(
        np.asarray(got).view(np.float32), getattr(np, name)(x, y).view(np.float32)
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["log2", "log10", "logaddexp", "logaddexp2", "sinc"])
def test_floats_of_16_bits_are_rounded_once(name, dtype):
    """Of all numbers, outside of programs and in them: half a unit and what float32 rounds."""
    bits = np.arange(int(np.asarray(ml_dtypes.finfo(dtype).max).view(np.uint16)) + 1)
    x = np.concatenate([bits, bits + (1 << 15)]).astype(np.uint16).view(dtype)
    x = x[np.abs(x.astype(np.float64)) < 1e3] if name == "sinc" else x
    args = [x.astype(np.float64)]
    args = [args[0], args[0][::-1]] if name.startswith("logadd") else args
    with np.errstate(all="ignore"):
        wide = getattr(np, name)(*args)
        # Half a unit and what float32 rounds: of πx that is as much as of a sine near 0.
        eps, tiny = float(ml_dtypes.finfo(dtype).eps), float(ml_dtypes.finfo(dtype).tiny)
        unit = eps * np.exp2(np.floor(np.log2(np.maximum(np.abs(wide), tiny))))
    few = 0.52 * unit + (1e-4 if name == "sinc" else 0)
    for fun in (getattr(jnp, name), jit(getattr(jnp, name))):
        got = np.asarray(fun(*[jnp.asarray(a, dtype) for a in args]))
        assert got.dtype == dtype
        got = got.astype(np.float64)
        seen = np.isfinite(wide)
        np.testing.assert_array_equal(got[~seen], wide[~seen])
        assert (np.abs(got[seen] - wide[seen]) <= few[seen]).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_functions_of_several_operations_in_16_bits_are_rounded_once(dtype):
    """Beside float64 of the same numbers, also where squares or sums are infinite in 16 bits."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-5, 5, (6, 40)).astype(dtype).astype(np.float64)
    w = rng.uniform(0.125, 3, (6, 40)).astype(dtype).astype(np.float64)
    places = np.cumsum(rng.integers(1, 4, 40)).astype(np.float64)
    functions = [
        (lambda np, x, w: np.average(x, 1, weights=w), x, w),
        (lambda np, x, w: np.trapezoid(x, w, axis=0), x, w),
        (lambda np, x, w: np.trapezoid(x, dx=0.25), x, w),
        (lambda np, x, w: np.linspace(x, w, 17), x, w),
        (lambda np, x, w: np.logspace(0.25 * x, 0.5 * x, 7), x, w),
        (lambda np, x, w: np.i0(x[0]), x, w),
        (lambda np, x, w: np.hypot(x, w), x, w),
        (lambda np, x, w: np.interp(x, w, x[0]), x, places),
        (lambda np, x, w: np.interp(x, w, x[0], period=97.0), x, places),
        (lambda np, x, w: np.gradient(x, w, axis=1), x, places),
        (lambda np, x, w: np.gradient(x, 0.375, axis=0), x, places),
        (lambda np, x, w: np.rad2deg(x), x, w),
        (lambda np, x, w: np.polyval(x[0, :5], 0.25 * w), x, w),
        (lambda np, x, w: np.linalg.norm(x, axis=1), 64 * x, w),
        (lambda np, x, w: np.linalg.norm(x, 3, 1), x, w),
        (lambda np, x, w: np.cov(x), x, w),
        (lambda np, x, w: np.cov(x, aweights=w[0]), x, w),
        (lambda np, x, w: np.corrcoef(x), x, w),
    ]
    eps, tiny = float(ml_dtypes.finfo(dtype).eps), float(ml_dtypes.finfo(dtype).tiny)
    for i, (function, *args) in enumerate(functions):
        want = function(np, *args)
        unit = eps * np.exp2(np.floor(np.log2(np.maximum(np.abs(want), tiny))))
        for fun in (partial(function, jnp), jit(partial(function, jnp))):
            got = np.asarray(fun(*[jnp.asarray(a, dtype) for a in args]))
            assert got.dtype == dtype
            # Half a unit, and what float32 rounds of terms that cancel.
            assert (np.abs(got.astype(float) - want) <= 0.52 * unit + 1e-5).all(), i
    wide = jnp.linspace(jnp.ones(3, dtype), 2, 5, dtype="float32", retstep=True)
    assert [a.dtype for a in wide] == [np.float32] * 2
    assert jnp.trapezoid(jnp.ones(3, dtype), dx=jnp.float32(0.1)).dtype == np.float32


def test_float_power_of_whole_numbers_above_24_bits():
    """Of the float32 that they become, in each call and in programs."""
    x = jnp.array([16777217, 16777219, -33554435, 2147483647, 3])
    for y in (3, jnp.array([2, 3, 1, 4, -2])):
        want = np.asarray(x).astype(np.float32).astype(np.float64) ** np.asarray(y, np.float64)
        for fun in (jnp.float_power, jit(jnp.float_power), jnp.float_power):
            np.testing.assert_allclose(fun(x, y), want, rtol=2e-7)


def test_hypot_of_many() -> None:
    """Also where squares leave the range of floats, and of sizes of 1 beside others."""
    rng = np.random.default_rng(0)
    edges = [0.0, -0.0, 3.0, np.inf, -np.inf, np.nan, 5e-324, 1e-200, -1.7e308, 1e300]
    x = np.concatenate([edges, 10.0 ** rng.integers(-300, 300, 500) * rng.normal(size=500)])
    with primal.enable_x64(True), np.errstate(all="ignore"):
        for a, b in ((x[:, None], x), (x, x[::-1])):
            run = [np.asarray(jnp.hypot(jnp.asarray(a), jnp.asarray(b))) for _ in range(3)]
            for got in run:
                np.testing.assert_allclose(got, np.hypot(a, b), rtol=5e-16)
