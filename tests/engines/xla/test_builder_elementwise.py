"""Every elementwise method of the builder against NumPy or SciPy."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special as special

from tests.engines.xla.lab import one, run

F4, F8, I4, U4 = np.dtype("f4"), np.dtype("f8"), np.dtype("i4"), np.dtype("u4")
X = np.array([-0.9, -0.25, 0.0, 0.3, 0.8])
POSITIVE = np.array([0.2, 1.0, 1.7, 4.5, 30.0])
ABOVE_ONE = POSITIVE + 1.0
ANY = np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 7.25])

UNARY = {
    "negate": (np.negative, ANY),
    "sign": (np.sign, ANY),
    "abs": (np.abs, ANY),
    "floor": (np.floor, ANY),
    "ceil": (np.ceil, ANY),
    "round_nearest_even": (np.rint, ANY),
    "round_nearest_afz": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), ANY),
    "exponential": (np.exp, ANY),
    "exponential_minus_one": (np.expm1, X),
    "log": (np.log, POSITIVE),
    "log_plus_one": (np.log1p, X),
    "logistic": (special.expit, ANY),
    "tanh": (np.tanh, ANY),
    "sine": (np.sin, ANY),
    "cosine": (np.cos, ANY),
    "tan": (np.tan, X),
    "sqrt": (np.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "cbrt": (np.cbrt, ANY),
    "asin": (np.arcsin, X),
    "acos": (np.arccos, X),
    "atan": (np.arctan, ANY),
    "sinh": (np.sinh, ANY),
    "cosh": (np.cosh, ANY),
    "asinh": (np.arcsinh, ANY),
    "acosh": (np.arccosh, ABOVE_ONE),
    "atanh": (np.arctanh, X),
    "erf": (special.erf, ANY),
    "erfc": (special.erfc, ANY),
    "erf_inv": (special.erfinv, X),
    "lgamma": (special.gammaln, POSITIVE),
    "digamma": (special.digamma, POSITIVE),
    "bessel_i1e": (special.i1e, ANY),
    "square": (np.square, ANY),
    "is_finite": (np.isfinite, np.array([1.0, np.inf, -np.inf, np.nan])),
    "real": (np.real, ANY),
    "imag": (np.imag, ANY),
}


def test_unary_methods_match_numpy() -> None:
    names = list(UNARY)
    args = [UNARY[n][1] for n in names]
    results = run(lambda b, *xs: [getattr(b, n)(x) for n, x in zip(names, xs, strict=True)], *args)
    for name, x, got in zip(names, args, results, strict=True):
        np.testing.assert_allclose(got, UNARY[name][0](x), rtol=1e-8, atol=1e-12, err_msg=name)


def test_unary_by_name() -> None:
    x = np.array([True, False])
    np.testing.assert_array_equal(one(lambda b, v: b.unary("not", v), x), ~x)
    np.testing.assert_allclose(one(lambda b, v: b.unary("sine", v), X), np.sin(X), rtol=1e-12)


def test_integer_bits() -> None:
    x = np.array([0, 1, 2, 255, -1], I4)
    pop, zeros, inverted = run(lambda b, v: (b.popcnt(v), b.count_leading_zeros(v), b.not_(v)), x)
    assert pop.tolist() == [0, 1, 1, 8, 32]
    assert zeros.tolist() == [32, 31, 30, 24, 0]
    np.testing.assert_array_equal(inverted, ~x)


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "remainder": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "atan2": np.arctan2,
    "next_after": np.nextafter,
}


@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (3, 4)), ((3, 4), ()), ((), (3, 4)), ((3, 4), (3, 1)), ((), ())]
)
def test_binary_methods_broadcast_as_the_ir_does(left, right) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=left), rng.normal(size=right)
    results = run(lambda b, u, v: [b.binary(n, u, v) for n in BINARY], x, y)
    for name, got in zip(BINARY, results, strict=True):
        np.testing.assert_allclose(got, BINARY[name](x, y), rtol=1e-12, err_msg=name)


def test_powers_and_special_functions_of_two_operands() -> None:
    x, n = np.array([0.5, 1.5, 3.0]), np.array([2.0, 1.0, 3.0])
    power, poly, zeta = run(
        lambda b, u, v: (b.power(u, v), b.polygamma(v, u), b.zeta(b.add(v, b.scalar(1.5, F8)), u)),
        x,
        n,
    )
    np.testing.assert_allclose(power, x**n, rtol=1e-12)
    np.testing.assert_allclose(poly, special.polygamma(n.astype(int), x), rtol=1e-8)
    np.testing.assert_allclose(zeta, special.zeta(n + 1.5, x), rtol=1e-8)


def test_logic_and_shifts() -> None:
    x, y = np.array([12, -7, 255], I4), np.array([3, 2, 4], I4)
    u = x.view(U4)
    got = run(
        lambda b, p, q, r: (
            b.and_(p, q), b.or_(p, q), b.xor(p, q), b.shift_left(p, q),
            b.shift_right_arithmetic(p, q), b.shift_right_logical(r, b.convert(q, U4)),
        ),
        x, y, u,
    )  # fmt: skip
    want = (x & y, x | y, x ^ y, x << y, x >> y, u >> y.astype(U4))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_complex_parts() -> None:
    z = np.array([1 + 2j, -3 - 4j, 0j])
    re, im, size, conj, back, flipped = run(
        lambda b, v: (
            b.real(v), b.imag(v), b.abs(v), b.conj(v), b.complex(b.real(v), b.imag(v)),
            b.binary("complex", b.imag(v), b.real(v)),
        ),
        z,
    )  # fmt: skip
    np.testing.assert_array_equal(re, z.real)
    np.testing.assert_array_equal(im, z.imag)
    np.testing.assert_allclose(size, np.abs(z))
    np.testing.assert_array_equal(conj, np.conj(z))
    np.testing.assert_array_equal(back, z)
    np.testing.assert_array_equal(flipped, z.imag + 1j * z.real)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "f4", "f8", "c8", ml_dtypes.bfloat16])
def test_compare(dtype) -> None:
    x = np.array([0, 1, 1]).astype(dtype)
    y = np.array([1, 1, 0]).astype(dtype)
    names = ["EQ", "NE"] if x.dtype.kind == "c" else ["EQ", "NE", "LT", "LE", "GT", "GE"]
    compare = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal,
               "GT": np.greater, "GE": np.greater_equal}  # fmt: skip
    got = run(lambda b, u, v: [b.compare(u, v, n) for n in names], x, y)
    for name, g in zip(names, got, strict=True):
        np.testing.assert_array_equal(g, compare[name](x, y), err_msg=name)


def test_compare_knows_nan_and_unsigned_and_total_order() -> None:
    x = np.array([np.nan, -0.0, 1.0], F4)
    y = np.array([np.nan, 0.0, np.nan], F4)
    eq, lt, total = run(
        lambda b, u, v: (
            b.compare(u, v, "eq"), b.compare(u, v, "lt"), b.compare(u, v, "lt", total_order=True)
        ),
        x, y,
    )  # fmt: skip
    assert eq.tolist() == [False, True, False]
    assert lt.tolist() == [False, False, False]
    assert total.tolist() == [False, True, True]
    big, small = np.array([2**31], U4), np.array([1], U4)
    assert not one(lambda b, u, v: b.compare(u, v, "LT"), big, small)[0]


def test_compare_refuses_other_directions() -> None:
    with pytest.raises(ValueError, match=r"\[compare\] expected one of EQ"):
        one(lambda b, x: b.compare(x, x, "<"), X)


def test_select_and_clamp() -> None:
    p, x, y = np.array([True, False, True]), np.arange(3.0), np.arange(3.0) * 10
    got = run(
        lambda b, q, u, v: (
            b.select(q, u, v),
            b.select(b.constant(True), u, v),
            b.select(q, u, b.scalar(7.0, F8)),
            b.clamp(b.scalar(0.5, F8), u, b.scalar(1.5, F8)),
            b.clamp(u, v, b.scalar(15.0, F8)),
        ),
        p, x, y,
    )  # fmt: skip
    want = (np.where(p, x, y), x, np.where(p, x, 7.0), np.clip(x, 0.5, 1.5), np.clip(y, x, 15))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_select_n() -> None:
    cases = [np.full(4, float(i)) for i in range(3)]
    which = np.array([0, 2, 1, 2], I4)
    np.testing.assert_array_equal(
        one(lambda b, w, *cs: b.select_n(w, *cs), which, *cases), which.astype(float)
    )
    pair = one(lambda b, w, *cs: b.select_n(w, *cs), which > 0, *cases[:2])
    np.testing.assert_array_equal(pair, (which > 0).astype(float))


@pytest.mark.parametrize("source", ["?", "i4", "u1", "f4", "f8", "c8", "f2", ml_dtypes.bfloat16])
@pytest.mark.parametrize("target", ["?", "i2", "u4", "f4", "f8", "c16", ml_dtypes.bfloat16])
def test_convert(source, target) -> None:
    x = np.array([0, 1, 2.5, 7]).astype(source)
    want = x.real if x.dtype.kind == "c" and np.dtype(target).kind not in "cb" else x
    got = one(lambda b, v: b.convert(v, target), x)
    np.testing.assert_array_equal(got, want.astype(target))


def test_convert_to_bool_is_unequal_to_zero() -> None:
    x = np.array([0.0, 0.25, np.nan, -1.0], F4)
    assert one(lambda b, v: b.convert(v, bool), x).tolist() == [False, True, True, True]
    z = np.array([0j, 1j], "c8")
    assert one(lambda b, v: b.convert(v, bool), z).tolist() == [False, True]


def test_bitcast_convert() -> None:
    x = np.array([1.0, -2.5], F4)
    bits, narrow = run(lambda b, v: (b.bitcast_convert(v, U4), b.bitcast_convert(v, "u1")), x)
    np.testing.assert_array_equal(bits, x.view(U4))
    np.testing.assert_array_equal(narrow, x.view("u1").reshape(2, 4))
    np.testing.assert_array_equal(one(lambda b, v: b.bitcast_convert(v, F4), narrow), x)


def test_reduce_precision() -> None:
    x = np.array([1.0 + 2**-12, np.pi], F4)
    got = one(lambda b, v: b.reduce_precision(v, 8, 7), x)
    np.testing.assert_array_equal(got, x.astype(ml_dtypes.bfloat16).astype(F4))


def test_what_xla_lacks_for_some_dtypes() -> None:
    u = np.array([0, 1, 200], "u1")
    size, sign, square, conj = run(lambda b, v: (b.abs(v), b.sign(v), b.square(v), b.conj(v)), u)
    np.testing.assert_array_equal(size, u)
    assert sign.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(square, u * u)
    np.testing.assert_array_equal(conj, u)
    z = np.array([1 + 1j, complex(np.inf, 1), complex(1, np.nan), complex(0, -np.inf)])
    np.testing.assert_array_equal(one(lambda b, v: b.is_finite(v), z), np.isfinite(z))


def test_what_would_end_the_process_is_refused() -> None:
    z = np.ones(2, "c8")
    with pytest.raises(TypeError, match=r"\[remainder\] expected real operands, got complex64"):
        one(lambda b, v: b.remainder(v, v), z)
    for x, target in ((z, "f4"), (np.ones(2, bool), "u1"), (np.ones(2, "f4"), "c8")):
        with pytest.raises(
            TypeError, match=r"\[bitcast_convert\] expected dtypes that are neither"
        ):
            one(lambda b, v, t=target: b.bitcast_convert(v, t), x)
    same = one(lambda b, v: b.bitcast_convert(v, "c8"), z)
    np.testing.assert_array_equal(same, z)
