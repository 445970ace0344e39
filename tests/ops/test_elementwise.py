"""Elementwise ops: values against NumPy and between engines over dtypes and special values."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal.numpy as jnp
from primal.base import dtypes
from primal.base.limits import finfo, iinfo
from primal.base.native import extension
from primal.ops import choose
from primal.ops import elementwise as ops
from primal.ops.elementwise import RoundingMethod
from tests.ops.laws import agree, compiled, eager

RNG = np.random.default_rng(0)
BF16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8, np.int32, np.uint32]
WIDE_INTEGERS = [*INTEGERS, np.int64, np.uint64]
FLOATS = [BF16, np.float16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]

UNARY_FLOAT = [
    "acosh", "acos", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "exp", "exp2",
    "expm1", "floor", "log", "log1p", "logistic", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh",
    "abs", "neg", "sign", "square",
]  # fmt: skip
NUMPY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "neg": np.negative,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


def floats(dtype: Any, n: int = 80) -> np.ndarray[Any, Any]:
    """Special and random values; no subnormals, which XLA flushes to zero."""
    info = finfo(dtype)
    special = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 2.5, -2.5, 1.5, 1e-3, np.nan, np.inf, -np.inf]
    special += [float(info.max), -float(info.max)]
    rng = np.random.default_rng(0)
    values = [*special, *(rng.standard_normal(n) * 3), *np.exp(rng.uniform(-6, 6, n))]
    return np.array(values).astype(dtype)


def integers(dtype: Any, n: int = 40) -> np.ndarray[Any, Any]:
    info = iinfo(dtype)
    low, high = int(info.min), int(info.max)
    values = [0, 1, 2, 3, high, high - 1, low, low + 1, *([-1, -2] if low else [])]
    rng = np.random.default_rng(0)
    values += [int(v) for v in rng.integers(max(low, -(2**62)), min(high, 2**62), n)]
    return np.array(values, np.int64 if low else np.uint64).astype(dtype)


def units(got: Any, want: Any) -> Any:
    """The distance in units of the last place of `want`; equal special values are at 0."""
    info = finfo(want.dtype)
    g, w = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        tiny = float(info.tiny)
        unit = 2.0 ** np.floor(np.log2(np.maximum(np.abs(w), tiny))) * float(info.eps)
        off = np.abs(g - w) / unit
        flushed = (g == 0) & (np.abs(w) < tiny) | (w == 0) & (np.abs(g) < tiny)
    return np.where((g == w) | (np.isnan(g) & np.isnan(w)) | flushed, 0.0, off)


def close(got: Any, want: Any, ulps: float, what: str = "") -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    off = units(got, want)
    worst = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
    assert off.ravel()[worst] <= ulps, (
        f"{what}: {got.ravel()[worst]} for {want.ravel()[worst]} at {worst}"
    )


def every(names: list[str]) -> Any:
    """One program of many ops: compiling takes longer than anything else here."""
    return lambda *xs: [getattr(ops, name)(*xs) for name in names]


@pytest.fixture(autouse=True)
def _floating_point_silence() -> Iterator[None]:
    """The oracles overflow and divide by zero too."""
    with np.errstate(all="ignore"):
        yield


# What XLA itself is off by, in units of the last place.
XLA_UNITS = {"atanh": 200, "log1p": 200, "sinh": 60, "cosh": 60, "tanh": 8}


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_of_floats(dtype: Any, x64: None) -> None:
    x = floats(dtype)
    got = eager(every(UNARY_FLOAT), x)
    two = compiled(every(UNARY_FLOAT), x)
    for name, one, other in zip(UNARY_FLOAT, got, two, strict=True):
        want = NUMPY.get(name, getattr(np, name, None))(x.astype(np.float64)).astype(dtype)
        if name == "sign":
            want = np.where(x == 0, x, want)
        close(one, want, 4, name)  # NumPy's own error: 3 units in tan of float32
        close(other, one, XLA_UNITS.get(name, 4), f"xla {name}")


@pytest.mark.parametrize("dtype", COMPLEX)
def test_unary_of_complex_numbers(dtype: Any, x64: None) -> None:
    names = [n for n in UNARY_FLOAT if n not in ("cbrt", "ceil", "floor")]
    x = (RNG.standard_normal(60) + 1j * RNG.standard_normal(60)).astype(dtype)
    single = dtype == np.complex64
    got = agree(every(names), x, tol=1e-5 if single else 1e-12)
    for name, one in zip(names, got, strict=True):
        want = NUMPY.get(name, getattr(np, name, None))(x.astype(np.complex128))
        if name == "sign":
            want = x / np.abs(x)
        np.testing.assert_allclose(one, want, rtol=2e-5 if single else 1e-12, err_msg=name)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum,
    "min": np.minimum, "atan2": np.arctan2, "pow": np.power, "rem": np.fmod,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_binary_of_floats(dtype: Any, x64: None) -> None:
    values = floats(dtype, 20)
    x, y = [v.ravel() for v in np.meshgrid(values, values)]
    got = eager(every(list(BINARY)), x, y)
    two = compiled(every(list(BINARY)), x, y)
    for (name, fun), one, other in zip(BINARY.items(), got, two, strict=True):
        if dtype != np.float64:
            close(one, fun(x.astype(np.float64), y.astype(np.float64)).astype(dtype), 2, name)
        close(other, one, 3, f"xla {name}")


@pytest.mark.parametrize("dtype", [*WIDE_INTEGERS, *FLOATS, np.bool_])
def test_comparisons(dtype: Any, x64: None) -> None:
    if dtype is np.bool_:
        values = np.array([True, False])
    else:
        values = floats(dtype, 4) if dtypes.KIND[np.dtype(dtype)] == "f" else integers(dtype, 10)
    x, y = [v.ravel() for v in np.meshgrid(values, values)]
    names = ["eq", "ne", "lt", "le", "gt", "ge"]
    for name, got in zip(names, agree(every(names), x, y), strict=True):
        np.testing.assert_array_equal(got, getattr(operator, name)(x, y), err_msg=name)


def wrapped(values: list[int], dtype: Any) -> Any:
    """Python integers as the dtype keeps them: modulo 2^bits."""
    info = iinfo(dtype)
    span = 2**info.bits
    low = int(info.min)
    kept = [(v - low) % span + low for v in values]
    return np.array(kept, np.int64 if low else np.uint64).astype(dtype)


def truncated(x: int, y: int) -> int:
    return -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": truncated,
    "rem": lambda x, y: x if y == 0 else x - y * truncated(x, y),
    "max": lambda x, y: x if x > y else y,
    "min": lambda x, y: x if x < y else y,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}


@pytest.mark.parametrize("dtype", WIDE_INTEGERS)
def test_binary_of_integers(dtype: Any, x64: None) -> None:
    """Against Python's integers, which know no width: division by zero and the least integer."""
    values = integers(dtype, 12)
    x, y = [v.ravel() for v in np.meshgrid(values, values)]
    for (name, fun), got in zip(
        ARITHMETIC.items(), agree(every(list(ARITHMETIC)), x, y), strict=True
    ):
        want = [fun(int(a), int(b)) for a, b in zip(x, y, strict=True)]
        np.testing.assert_array_equal(got, wrapped(want, dtype), err_msg=name)


@pytest.mark.parametrize("dtype", WIDE_INTEGERS)
def test_shifts(dtype: Any, x64: None) -> None:
    info = iinfo(dtype)
    values = integers(dtype, 12)
    distances = [0, 1, info.bits - 1, *([info.bits] if info.bits <= int(info.max) else [])]
    distances += [int(info.max), *([-1] if int(info.min) else [])]
    x, y = [v.ravel() for v in np.meshgrid(values, np.array(distances).astype(dtype))]
    mask = 2**info.bits - 1
    want: dict[str, list[int]] = {"left": [], "arithmetic": [], "logical": []}
    for a, d in zip([int(v) for v in x], [int(v) & mask for v in y], strict=True):
        signed = a & mask
        signed -= 2**info.bits if signed >> (info.bits - 1) else 0
        d = min(d, info.bits)
        want["left"].append(a << d)
        want["arithmetic"].append(signed >> d)
        want["logical"].append((a & mask) >> d)
    names = ["shift_left", "shift_right_arithmetic", "shift_right_logical"]
    for values_, got in zip(want.values(), agree(every(names), x, y), strict=True):
        np.testing.assert_array_equal(got, wrapped(values_, dtype))


@pytest.mark.parametrize("dtype", WIDE_INTEGERS)
def test_unary_of_integers(dtype: Any, x64: None) -> None:
    x = integers(dtype)
    bits = iinfo(dtype).bits
    mask = 2**bits - 1
    cases = {
        "neg": lambda v: -v,
        "sign": lambda v: (v > 0) - (v < 0),
        "square": lambda v: v * v,
        "bitwise_not": lambda v: ~v,
        "population_count": lambda v: (v & mask).bit_count(),
        "clz": lambda v: bits - (v & mask).bit_length(),
    }
    if int(iinfo(dtype).min):
        cases["abs"] = abs
    for (name, fun), got in zip(cases.items(), agree(every(list(cases)), x), strict=True):
        np.testing.assert_array_equal(got, wrapped([fun(int(v)) for v in x], dtype), err_msg=name)


@pytest.mark.parametrize("power", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, ml_dtypes.int4])
def test_integer_powers_wrap(power: int, dtype: Any) -> None:
    x = integers(dtype, 10)
    (got,) = agree(lambda x: ops.integer_pow(x, y=power), x)
    np.testing.assert_array_equal(got, wrapped([int(v) ** power for v in x], dtype))


@pytest.mark.parametrize("power", [-3, -2, -1, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("dtype", [BF16, np.float32, np.complex64])
def test_powers_of_floats(power: int, dtype: Any) -> None:
    x = np.array([0.5, -1.25, 3.0, 2.0]).astype(dtype)
    (got,) = agree(lambda x: ops.integer_pow(x, y=power), x, tol=1e-6 if dtype != BF16 else 1e-2)
    wide = x.astype(np.complex128 if dtype == np.complex64 else np.float64) ** power
    np.testing.assert_allclose(
        got.astype(wide.dtype), wide, rtol=1e-2 if dtype == BF16 else 1e-6
    )


def test_negative_powers_of_integers_are_refused() -> None:
    with pytest.raises(TypeError, match="negative powers"):
        ops.integer_pow(np.arange(3, dtype=np.int32), y=-1)


@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_rounding(dtype: Any) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, -0.0, np.inf, -np.inf, np.nan, 8388607.5,
                  0.49999997]).astype(dtype)  # fmt: skip
    (even,) = agree(lambda x: ops.round(x, rounding_method=RoundingMethod.TO_NEAREST_EVEN), x)
    np.testing.assert_array_equal(even.astype(np.float32), np.rint(x.astype(np.float32)))
    (away,) = agree(lambda x: ops.round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO), x)
    wide = x.astype(np.float64)
    whole = np.trunc(wide)
    with np.errstate(invalid="ignore"):
        want = np.where(np.abs(wide - whole) >= 0.5, whole + np.sign(wide), whole)
    np.testing.assert_array_equal(away.astype(np.float64), want.astype(dtype).astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_neighbours(dtype: Any, x64: None) -> None:
    x = np.array([1.0, -1.0, 1.0, 3.0, np.inf, np.nan]).astype(dtype)
    y = np.array([2.0, 2.0, -5.0, 3.0, 0.0, 1.0]).astype(dtype)
    (got,) = agree(ops.nextafter, x, y, tol=0)
    np.testing.assert_array_equal(got, np.nextafter(x, y))


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32])
def test_after_one_zero_comes_the_other(dtype: Any) -> None:
    x, y = np.array([0.0, -0.0], dtype), np.array([-0.0, 0.0], dtype)
    (got,) = agree(ops.nextafter, x, y, tol=0)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(y))


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (8, 23), (4, 3), (2, 0), (11, 52)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_reduce_precision(bits: tuple[int, int], dtype: Any, x64: None) -> None:
    x = floats(dtype, 100)
    f = lambda x: ops.reduce_precision(x, exponent_bits=bits[0], mantissa_bits=bits[1])  # noqa: E731
    (got,) = eager(f, x)
    np.testing.assert_array_equal(got, compiled(f, x)[0])
    if bits == (5, 10) and dtype == np.float32:
        with np.errstate(over="ignore"):
            half = x.astype(np.float16)
        normal = (np.abs(half) >= np.finfo(np.float16).tiny) | ~np.isfinite(half)
        np.testing.assert_array_equal(got[normal], half[normal].astype(np.float32))


def test_parts_of_complex_numbers() -> None:
    z = np.array([1 + 2j, -3 - 0.5j, 0j], np.complex64)
    np.testing.assert_array_equal(agree(ops.real, z)[0], z.real)
    np.testing.assert_array_equal(agree(ops.imag, z)[0], z.imag)
    np.testing.assert_array_equal(agree(ops.conj, z)[0], z.conj())
    np.testing.assert_array_equal(agree(ops.abs, z)[0], np.abs(z))
    np.testing.assert_array_equal(agree(ops.complex, z.real, z.imag)[0], z)
    np.testing.assert_array_equal(agree(ops.conj, z.real)[0], z.real.astype(np.complex64))


def test_complex_extrema_are_lexicographic() -> None:
    values = np.array([1 + 2j, 1 - 2j, -1 + 5j, 2, complex(np.nan, 0)], np.complex64)
    x, y = [v.ravel() for v in np.meshgrid(values, values)]
    for op, fun in [(ops.max, np.maximum), (ops.min, np.minimum)]:
        (got,) = agree(op, x, y)
        np.testing.assert_array_equal(got, fun(x, y))


def test_infinite_quotients_of_sign() -> None:
    (got,) = agree(ops.sign, np.array([complex(np.inf, 1), complex(0, -np.inf)], np.complex64))
    assert got[0].imag == 0 and got[1].real == 0


@pytest.mark.parametrize("dtype", [np.int32, np.float32, BF16, ml_dtypes.int4, np.bool_])
def test_choice(dtype: Any) -> None:
    a, b, c = [(RNG.integers(0, 2, (3, 4)) + i).astype(dtype) for i in range(3)]
    mask = RNG.integers(0, 2, (3, 4)).astype(bool)
    np.testing.assert_array_equal(agree(ops.select_n, mask, a, b)[0], np.where(mask, b, a))
    scalar = np.array(True)
    np.testing.assert_array_equal(agree(ops.select_n, scalar, a, b)[0], b)
    which = np.array([[-1, 0, 1, 2], [3, 2, 1, 0], [0, 0, 9, 9]], np.int32)
    want = np.choose(np.clip(which, 0, 2), [v.astype(np.float64) for v in (a, b, c)])
    got = agree(ops.select_n, which, a, b, c)[0].astype(np.float64)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(agree(ops.select_n, np.int32(5), a)[0], a)


def test_clamp() -> None:
    x = np.array([-2, 0.5, 3, np.nan], np.float32)
    one, two = np.float32(1), np.full(4, 2, np.float32)
    np.testing.assert_array_equal(agree(ops.clamp, one, x, two)[0], np.clip(x, 1, 2))
    np.testing.assert_array_equal(
        agree(ops.clamp, two, x, one)[0], np.minimum(np.maximum(x, 2), 1)
    )


CONVERTIBLE = [
    np.bool_, ml_dtypes.int4, np.int8, np.uint8, np.int32, np.uint32, np.int64, BF16,
    ml_dtypes.float8_e4m3fn, np.float16, np.float32, np.float64, np.complex64,
]  # fmt: skip


def converted(news: list[Any]) -> Any:
    return lambda x: [
        ops.convert_element_type(x, new_dtype=np.dtype(new), weak_type=False) for new in news
    ]


@pytest.mark.parametrize("old", CONVERTIBLE)
def test_conversions(old: Any, x64: None) -> None:
    x = np.array([0, 1, 2, 5, 7]).astype(old)
    plain = x.real if x.dtype.kind == "c" else x
    for new, got in zip(CONVERTIBLE, agree(converted(CONVERTIBLE), x), strict=True):
        want = plain.astype(new).astype(np.complex64)
        np.testing.assert_array_equal(got.astype(np.complex64), want, err_msg=str(new))


def test_complex_numbers_near_zero_and_infinite_exponentials(x64: None) -> None:
    """By series at small numbers, where log|1 + z| and e^z - 1 are 0; at real ones as of reals."""
    small = np.array([1e-12, 1e-12 + 1e-12j, -1e-9 + 1e-5j, -1e-30j])
    for got, sign in zip(
        agree(lambda z: [ops.log1p(z), ops.expm1(z)], small), (-1, 1), strict=True
    ):
        want = small + sign * small * small / 2 + small**3 / 3
        np.testing.assert_allclose(got.real, want.real, rtol=1e-9, atol=1e-40)
        np.testing.assert_allclose(got.imag, want.imag, rtol=1e-9)
    (ends,) = agree(ops.expm1, np.array([np.inf, -np.inf, 800, complex(np.nan, 0)]))
    np.testing.assert_array_equal(ends.real, [np.inf, -1, np.inf, np.nan])
    np.testing.assert_array_equal(ends.imag, [0, 0, 0, 0])


def test_complex_expm1_of_scalars(x64: None) -> None:
    for z in (0, 1, -0.5, 1j, np.inf, complex(-np.inf, 1)):
        (got,), (row,) = agree(ops.expm1, np.complex128(z)), agree(ops.expm1, np.array([z, 1j]))
        np.testing.assert_array_equal(got, row[0])


def test_complex_expm1_of_infinite_numbers(x64: None) -> None:
    """As exp, C99 G.6.3.1: -1 at -inf whatever the angle, inf and an unknown angle at inf."""
    angles = [np.inf, -np.inf, np.nan]
    got = eager(ops.expm1, np.array([complex(r, a) for r in (-np.inf, np.inf) for a in angles]))[0]
    np.testing.assert_array_equal(got.real, [-1, -1, -1, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(abs(got.imag), [0, 0, 0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("new", CONVERTIBLE)
def test_booleans_are_0_and_1_however_they_lie(new: Any, x64: None) -> None:
    dtype = np.dtype(new)
    given = np.random.default_rng(0).integers(0, 2, (70, 40)).astype(bool)
    some = given[3, :7], given[::-1, 0], given[0, 0], given[:0]
    for x in (given, given.T, given[::2, ::3], *some):
        want = np.array([0, 1]).astype(dtype)[x.astype(np.int64)]
        for run in (eager, compiled):
            (got,) = run(converted([dtype]), x)
            assert got.dtype == dtype and np.array_equal(got, want)


def test_conversions_that_numpy_does_not_know(x64: None) -> None:
    narrow = [
        ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu,
        ml_dtypes.float4_e2m1fn,
    ]  # fmt: skip
    for old in narrow:
        x = np.array([1, 2, 4]).astype(old)
        for got in agree(converted(narrow), x):
            np.testing.assert_array_equal(got.astype(np.float32), [1, 2, 4])


@pytest.mark.parametrize("old", [np.float16, np.float32, np.float64, BF16])
def test_floats_saturate_as_integers(old: Any, x64: None) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -1.5, 1.5, -0.5, 127.5, 300]).astype(old)
    news = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]
    # All of them, and those that the machine's own conversion to 32 bits knows.
    for given in (x, x[5:]):
        for new, got in zip(news, agree(converted(news), given, tol=0), strict=True):
            info = np.iinfo(new)
            wide = [0 if np.isnan(v) else v for v in given.astype(np.float64)]
            want = [min(max(int(v) if np.isfinite(v) else v, info.min), info.max) for v in wide]
            assert [int(v) for v in got] == [int(w) for w in want], new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (np.float32, np.int32), (np.int32, np.float32), (np.float32, np.uint8),
        (np.uint8, np.float32), (np.uint16, np.uint64), (np.float64, np.uint32), (BF16, np.int16),
        (np.int8, ml_dtypes.int4), (ml_dtypes.uint4, np.int8), (ml_dtypes.int4, ml_dtypes.uint4),
        (ml_dtypes.int4, np.int16),
    ],
)  # fmt: skip
def test_bit_casts(old: Any, new: Any, x64: None) -> None:
    bits_old, bits_new = dtypes.itemsize_bits(old), dtypes.itemsize_bits(new)
    shape = (3, 2, bits_new // bits_old) if bits_new > bits_old else (3, 2)
    x = RNG.integers(0, 7, shape).astype(old)
    f = lambda x: choose.bitcast_convert_type(x, new_dtype=np.dtype(new))  # noqa: E731
    g = lambda x: choose.bitcast_convert_type(x, new_dtype=np.dtype(old))  # noqa: E731
    (there,) = agree(f, x)
    (back,) = agree(g, there)
    np.testing.assert_array_equal(back, x)
    if min(bits_old, bits_new) >= 8:
        assert there.tobytes() == x.tobytes()


def test_bit_casts_of_the_narrowest_floats_are_by_their_codes(x64: None) -> None:
    codes = np.arange(16, dtype=np.uint8)
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    numbers = np.concatenate([numbers, -numbers])  # those of float4_e2m1fn, in the order of codes
    narrow = np.dtype(ml_dtypes.float4_e2m1fn)

    def cast(x: Any, new: Any) -> Any:
        f = lambda x: choose.bitcast_convert_type(x, new_dtype=np.dtype(new))  # noqa: E731
        (out,) = agree(f, x)
        return out

    def is_numbers(x: Any) -> None:
        np.testing.assert_array_equal(x.astype(np.float64), numbers)
        np.testing.assert_array_equal(np.signbit(x.astype(np.float64)), numbers * 0 + (codes > 7))

    x = cast(codes.astype(ml_dtypes.uint4), narrow)
    is_numbers(x)
    is_numbers(cast(codes.astype(np.int8).astype(ml_dtypes.int4), narrow))
    is_numbers(cast(codes[::2] + 16 * codes[1::2], narrow).reshape(-1))
    np.testing.assert_array_equal(cast(x, ml_dtypes.uint4).astype(np.uint8), codes)
    halves = cast(x.reshape(4, 4), np.float16)
    assert halves.tobytes() == (codes[::2] + 16 * codes[1::2]).tobytes()


def test_bit_casts_that_do_not_fit() -> None:
    def cast(x: Any, new: Any) -> Any:
        return choose.bitcast_convert_type(x, new_dtype=np.dtype(new))

    with pytest.raises(ValueError, match="last dimension of size 4"):
        cast(np.zeros((2, 3), np.uint8), np.float32)
    with pytest.raises(TypeError, match="complex"):
        cast(np.zeros(2, np.complex64), np.float32)
    with pytest.raises(TypeError, match="bool"):
        cast(np.zeros(2, np.bool_), np.int8)
    with pytest.raises(TypeError, match="bool"):
        cast(np.zeros((2, 4), np.bool_), np.float32)


@pytest.mark.parametrize("shapes", [((2, 3), ()), ((), (2, 3)), ((2, 3), (1, 3)), ((2, 1), (1, 3)),
                                    ((0, 3), (1, 3)), ((), ()), ((1,), (1,))])  # fmt: skip
def test_shapes_that_broadcast(shapes: Any) -> None:
    x, y = [RNG.standard_normal(s).astype(np.float32) for s in shapes]
    (got,) = agree(ops.add, x, y)
    np.testing.assert_array_equal(got, x + y)


ERRORS = [
    ("sin", (np.int32,), "inexact"), ("bitwise_and", (np.float32,) * 2, "integer"),
    ("add", (np.float32, np.int32), "one dtype"), ("add", (np.bool_, np.bool_), "number"),
    ("lt", (np.complex64,) * 2, "floating"), ("floor", (np.complex64,), "floating"),
    ("clz", (np.float32,), "integer"), ("abs", (np.uint8,), "signedinteger"),
    ("rem", (np.complex64,) * 2, "floating"), ("complex", (np.float16,) * 2, "float32"),
    ("pow", (np.int32, np.int32), "inexact"), ("pow", (np.float32, np.float16), "exponent"),
    ("select_n", (np.float32,) * 3, "which"), ("clamp", (np.int32, np.float32, np.int32), "one dt"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kinds", "text"), ERRORS)
def test_dtypes_that_are_refused(name: str, kinds: Any, text: str) -> None:
    with pytest.raises(TypeError, match=rf"\[{name.replace('bitwise_', '')}\].*{text}"):
        getattr(ops, name)(*[np.ones(2, k) for k in kinds])


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(TypeError, match="equal rank"):
        ops.add(np.ones(2, np.float32), np.ones((2, 2), np.float32))
    with pytest.raises(TypeError, match="incompatible shapes"):
        ops.add(np.ones(2, np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float8_e4m3fn", "complex64"])
def test_powers_of_a_half_are_roots(dtype: str, shape: tuple[int, ...]) -> None:
    x = jnp.asarray(np.resize([4.0, 9.0, 0.25, 16.0, 1.0, 0.0], shape)).astype(dtype)
    for transposed in (x, x.T):
        found = jnp.power(transposed, jnp.asarray(0.5, dtype))
        assert found.dtype == x.dtype and found.shape == transposed.shape
        np.testing.assert_array_equal(np.asarray(found**2, np.complex64), transposed)


@pytest.mark.parametrize("dtype", [BF16, np.float16], ids=str)
@pytest.mark.parametrize(
    "name", "add sub mul div sqrt square floor ceil lt le gt ge eq ne".split()
)  # fmt: skip
def test_all_floats_of_two_bytes_at_once_are_as_each_alone(name, dtype):
    op = getattr(ops, name)
    numpys = {"sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "lt": np.less,
              "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
              "ne": np.not_equal}.get(name) or getattr(np, name)  # fmt: skip
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    given = [x, np.roll(x, 12345)][: numpys.nin]
    with np.errstate(all="ignore"):
        want = numpys(*given)
        last = numpys(*[v[-1] for v in given])
    for shape in ((1 << 16,), (256, 256)):
        for order in "CF":
            many = [np.asarray(v.reshape(shape), order=order) for v in given]
            got = np.asarray(op(*map(jnp.asarray, many)))
            assert got.dtype == want.dtype and got.shape == shape
            np.testing.assert_array_equal(
                got.reshape(-1).astype(np.float32), want.astype(np.float32)
            )
            if want.dtype == dtype:
                same = np.signbit(got.reshape(-1)) == np.signbit(want)
                assert (same | np.isnan(want)).all()
    alone = np.asarray(op(*[jnp.asarray(v[-1]) for v in given]))
    np.testing.assert_array_equal(alone.astype(np.float32), np.float32(last))


IN_FLOAT32 = """exp exp2 log log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
cbrt""".split()


@pytest.mark.skipif(extension is None, reason="without the extension ml_dtypes computes them")
@pytest.mark.parametrize("name", IN_FLOAT32)
def test_bfloat16_are_rounded_once(name):
    """Each of them, among many and alone, in the first call and in later ones."""
    op, numbers = getattr(ops, name), np.arange(1 << 16, dtype=np.uint16).view(BF16)
    x = jnp.asarray(numbers)
    found = [np.asarray(op(v)) for v in (x, x, x)]
    with np.errstate(all="ignore"):
        wanted = np.asarray(op(jnp.asarray(numbers.astype(np.float32)))).astype(BF16)
    for out in found:
        np.testing.assert_array_equal(out.astype(np.float32), wanted.astype(np.float32))
    for i in (16256, 16347, 49007):  # 1, 1.71 and one below 0
        one = np.asarray(op(x[i : i + 1]))
        np.testing.assert_array_equal(one.astype("f4"), wanted[i : i + 1].astype("f4"))
