"""Exponentials, logarithms, powers and hyperbolic functions as vector code.

The polynomials are minimax ones, or interpolate at Chebyshev's points, fitted with 200 bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from primal.base.expansions import LOG
from primal.engines.cpu.code import float_text
from primal.engines.cpu.functions.floats import FORM, Floats, by_library, library, wider

Double = tuple[float, ...]
# (exp(r) - 1 - r) / r² for |r| <= 0.35, in powers of r.
_EXP: dict[str, Double] = {
    "f4": (0.5000000082633091, 0.1666666687283369, 0.04166625401631162, 0.008333261510174115,
           0.0013947211277902257, 0.0001991995819026599),
    "f8": (0.5, 0.16666666666666666, 0.04166666666666672, 0.008333333333333342,
           0.0013888888888862003, 0.0001984126984123471, 2.480158736699825e-05,
           2.75573192926604e-06, 2.755723882128612e-07, 2.5052037711630056e-08,
           2.0925347043686256e-09, 1.609584683381075e-10),
}  # fmt: skip
# (log(1 + t) - t) / t² for t from -1/4 to 1/2, in powers of t.
_LOG_NARROW: Double = (
    -0.5000000082249731, 0.3333345444280919, -0.2500005460081319, 0.19990606784880946,
    -0.16647766616257537, 0.14482060294427193, -0.13162235554963703, 0.10448344673088424,
    -0.04490971780744793,
)  # fmt: skip
# `LOG` for |s| <= 0.172, to 1e-13 of the logarithm.
_LOG_MIDDLE: Double = (0.6666666666739509, 0.3999999877011546, 0.28571760080388536,
                       0.22191049731047807, 0.19369457307490315)  # fmt: skip
# tanh(x) of float32 as x·p(x²)/q(x²) up to 9.02, where it is 1; error 1.3e-9 before rounding.
_TANH_RATIONAL: tuple[Double, Double] = (
    (0.9999999986964386, 0.13679921996791577, 0.0038683363279819285, 2.8007625872974616e-05,
     3.0585398472279016e-08, -1.2203721281300511e-11),
    (1.0, 0.4701325405900814, 0.02724587046988135, 0.0003938646029368262, 1.2873779289344812e-06),
)  # fmt: skip
# The cube root of 1.5 + t for |t| <= 0.5.
_CBRT: Double = (
    1.1447142409232494, 0.2543808751133377, -0.05652885003706718, 0.020940280474254,
    -0.009311464605297332, 0.004498672262035308, -0.0023027066073608815,
    0.0015314908589070945, -0.0009107465957361251,
)  # fmt: skip
# (2·atanh(s)/s - 2 - 2/3·z) / z² in powers of z = s², for |s| <= 0.172.
_ATANH: Double = (
    0.4, 0.2857142857142857, 0.2222222222222222, 0.18181818181818182, 0.15384615384615402,
    0.1333333333332907, 0.11764705882982268, 0.10526315727309693, 0.09523813719990182,
    0.0869545816342424, 0.08006033525438869, 0.0728720093768635, 0.08267759427756877,
)  # fmt: skip
# log 2 in parts; products of the first part with exponents are exact.
_LN2 = {"f4": (0.693145751953125, 1.4286068203094173e-06),
        "f8": (0.6931471803691238, 1.9082149292705877e-10)}  # fmt: skip
# (sinh(x) - x) / x³ in powers of x², for |x| <= 1.
_SINH: Double = (1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800)
_INV_LN2 = 1.4426950408889634


def reduced(f: Floats, x: str) -> tuple[tuple[str, str], str]:
    """n, as a float and as an integer, and r with x = n·log 2 + r, |r| <= log(2)/2."""
    n, number = f.nearest(x, _INV_LN2)
    high, low = _LN2[f.dtype]
    return (n, number), f.fma(n, -low, f.fma(n, -high, x))


def exp(f: Floats, x: str) -> str:
    n, r = reduced(f, _held_in(f, x, (-104.5, 89.0), (-746.0, 710.0)))
    return f.scale(exp_of_small(f, r), n, f.above(x, -104.5, -746.0))


def _held_in(f: Floats, x: str, narrow: tuple[float, float], wide: tuple[float, float]) -> str:
    """Arguments of exponentials that end at 0 and infinity; AVX-512's `scale` takes any below."""
    if f.avx512:
        return f.least(x, narrow[1], wide[1])
    return f.within(x, narrow, wide)


def exp_of_small(f: Floats, r: str) -> str:
    return f.add(f.fma(f.square(r), f.poly(r, _EXP[f.dtype]), r), 1.0)


def _small_less_1(f: Floats, r: str) -> str:
    """exp(r) - 1 for small r. That r² is no factor of its own leaves nothing to be subnormal."""
    return f.fma(f.mul(r, f.poly(r, _EXP[f.dtype])), r, r)


def exp2(f: Floats, x: str) -> str:
    some = f.above(x, -151.0, -1076.0)
    x = _held_in(f, x, (-151.0, 129.0), (-1076.0, 1025.0))
    n = f.nearest(x)
    return f.scale(exp_of_small(f, f.mul(f.sub(x, n[0]), 0.6931471805599453)), n, some)


def expm1(f: Floats, x: str) -> str:
    # Below, the result is -1 to all digits; above, infinite.
    (_, n), r = reduced(f, f.within(x, (-18.0, 89.0), (-38.0, 710.0)))
    q = _small_less_1(f, r)
    # 2^n·q + (2^n - 1), with everything halved, as 2^n may be too large alone.
    mantissa, bias, _ = FORM[f.dtype]
    s = f.unbits(f.iop("shl", f.iop("add", n, bias - 1), mantissa))
    out = f.mul(f.fma(s, q, f.sub(s, 0.5)), 2.0)
    # Halving would lose the last subnormal.
    here = f.c.new(f"icmp eq {f.it} {n}, zeroinitializer")
    return f.signed(f.where(here, q, out), x)


def log_parts(f: Floats, x: str, least: float = math.sqrt(0.5)) -> tuple[str, str]:
    """e and m with x = m·2^e, least <= m < 2·least, for positive normal x."""
    mantissa = FORM[f.dtype][0]
    bits = f.bits(x)
    # Counting from the bits of the least m, the exponent field steps at its multiples by 2^k.
    form = np.float32 if f.dtype == "f4" else np.float64
    above = f.iop("sub", bits, int(form(least).view(f.int.replace("i", "int"))))
    e = f.iop("ashr", above, mantissa)
    m = f.unbits(f.iop("sub", bits, f.iop("shl", e, mantissa)))
    return f.c.new(f"sitofp {f.it} {e} to {f.t}"), m


def log_parts_of_any(f: Floats, x: str, least: float = math.sqrt(0.5)) -> tuple[str, str]:
    """The same of subnormal x too: its bits count how many of the least one it is.

    To multiply it by a power of 2 takes the CPU 100 cycles.
    """
    mantissa, bias, _ = FORM[f.dtype]
    tiny = f.test("olt", x, 2.0 ** (1 - bias))
    counted = f.c.new(f"sitofp {f.it} {f.bits(x)} to {f.t}")
    e, m = log_parts(f, f.where(tiny, counted, x), least)
    return f.where(tiny, f.sub(e, float(bias - 1 + mantissa)), e), m


def _log_parts(f: Floats, x: str) -> tuple[str, str]:
    """-e and m with x = m·2^e, 3/4 <= m < 3/2.

    Of AVX-512, whose instructions for it know every float, e is infinite where log x is, and m NaN
    where it is NaN.
    """
    if not f.avx512:
        e, m = log_parts_of_any(f, x, 0.75)
        return f.sub(0.0, e), m
    # From 3/4 on, of negative numbers NaN, of either zero 1.
    m = f.masked("getmant", x, ("i32", "15"))
    return f.sub(f.masked("getexp", m), f.masked("getexp", x)), m


def log_of(f: Floats, g: str, minus_e: str, none: str = "") -> str:
    """e·log 2 + log(1 + g), -1/4 <= g <= 1/2; `none`: the lanes whose square counts for nothing.

    -e as +0 keeps a g of -0: all that is added to it is -0 then.
    """
    if f.dtype == "f4":
        # By atanh, as below, it takes a division, and as long.
        square = f.square_but(none, g) if none else f.mul(g, g)
        small = f.mul(square, f.poly(g, _LOG_NARROW))
        if f.c.module.fma:
            return f.fma(minus_e, -math.log(2), f.add(g, small))
    high, low = _LN2[f.dtype]
    if f.dtype == "f4":
        small = f.sub(small, f.mul(minus_e, low))
        return f.sub(f.add(g, small), f.mul(minus_e, high))
    h = f.where(none, 0.0, g) if none else g
    s = f.over(h, f.add(h, 2.0))
    z = f.mul(s, s)
    rest = f.mul(z, f.poly(z, LOG))
    half_square = f.mul(f.mul(h, 0.5), h)
    small = f.fma(s, f.add(half_square, rest), f.mul(minus_e, -low))
    return f.fma(minus_e, -high, f.sub(g, f.sub(half_square, small)))


def log_edges(f: Floats, x: str, out: str) -> str:
    """The values of log at 0, at infinity and NaN, and below 0, by the argument of log."""
    if f.avx512:
        return out
    out = f.where(f.test("oeq", x, 0.0), -float("inf"), out)
    out = f.where(f.test("olt", x, 0.0), float("nan"), out)
    return f.where(f.test("olt", x, float("inf")), out, x)


def log(f: Floats, x: str) -> str:
    e, m = _log_parts(f, x)
    return log_edges(f, x, log_of(f, f.sub(m, 1.0), e))


def log1p_of_some(f: Floats, x: str, u: str) -> str:
    """log(1 + x), and u = 1 + x; but for the edges.

    e·log 2 + log(2^-e·x + (2^-e - 1)), which rounds once before the logarithm, and not at all where
    e is 0. Large x are 1 + x to all digits.
    """
    minus_e, m = _log_parts(f, u)
    scale = f.iop("add", f.iop("sub", f.bits(m), f.bits(u)), f.bits(f.k(1.0)))
    scale = f.unbits(scale)
    # Taking 0 away leaves an x of -0.
    g = f.fma(x, scale, f.neg(f.sub(1.0, scale)))
    large = f.test("ogt", x, 2.0**30 if f.dtype == "f4" else 2.0**60)
    # To make a subnormal square takes the CPU 100 cycles.
    none = f.test("ult", f.abs(x), 2.0**-30 if f.dtype == "f4" else 2.0**-60)
    return log_of(f, f.where(large, f.sub(m, 1.0), g), minus_e, none)


def log1p(f: Floats, x: str) -> str:
    u = f.add(x, 1.0)
    return log_edges(f, u, log1p_of_some(f, x, u))


def tanh(f: Floats, x: str) -> str:
    size = f.abs(x)
    if f.dtype == "f4" and f.c.module.width == 64 and f.c.lanes == 16:
        return _tanh_by_pieces(f, x, size)
    if f.dtype == "f4":
        # A quotient of polynomials, as exact as XLA's; by exp, to one unit, it takes twice as long.
        near = f.where(f.test("ogt", size, 9.02), 9.02, size)
        z = f.square(near)
        over, under = _TANH_RATIONAL
        out = f.over(f.mul(near, f.poly(z, over)), f.poly(z, under))
        return f.signed(f.where(f.test("ogt", out, 1.0), 1.0, out), x)
    # (1 - t)/(1 + t) with t = exp(-2|x|) = 2^n·(1 + q); at n = 0 the numerator is -q.
    near = f.where(f.test("ogt", size, 20.0), 20.0, size)
    (_, n), r = reduced(f, f.mul(near, -2.0))
    q = _small_less_1(f, r)
    power = f.power_of_two(n)
    over = f.fma(f.neg(power), q, f.sub(1.0, power))
    return f.signed(f.over(over, f.fma(power, q, f.add(power, 1.0))), x)


_TANH_SHIFT, _TANH_ONE = 0.75, 9.2
"""What is added before pieces are counted; from the other on tanh of float32 is 1."""


def _tanh_by_pieces(f: Floats, x: str, size: str) -> str:
    """tanh of float32 by a polynomial of degree four per piece of the axis, to two units.

    The pieces are eighths of what lies between powers of two of |x| + 0.75: from 1/16 long at zero
    to 1 at the end, 32 in all, so that five bits of that sum count them. Two registers hold one
    coefficient of all pieces, and an instruction of AVX-512 takes to each lane that of its piece.
    """
    near = f.where(f.test("ogt", size, _TANH_ONE), _TANH_ONE, size)
    piece = f.iop("lshr", f.bits(f.add(near, _TANH_SHIFT)), 20)
    centre, *coefficients = [
        f.c.call(
            "llvm.x86.avx512.vpermi2var.ps.512", f.t, (f.t, _held(row[:16])), (f.it, piece),
            (f.t, _held(row[16:])),
        )
        for row in _tanh_pieces()
    ]  # fmt: skip
    t = f.sub(near, centre)
    out = coefficients[-1]
    for a in reversed(coefficients[:-1]):
        out = f.fma(out, t, a)
    return f.signed(out, x)


def _held(row: Sequence[float]) -> str:
    """A register of numbers."""
    return "<" + ", ".join([f"float {float_text(a, 'float')}" for a in row]) + ">"


@functools.cache
def _tanh_pieces() -> list[list[float]]:
    """The middles of the pieces, then the coefficients of each power of the distance from there.

    Interpolated at Chebyshev's points; next to zero x + x²·p(x), so that small numbers stay.
    """
    first = int(np.float32(_TANH_SHIFT).view(np.int32)) >> 20
    rows = np.zeros((6, 32))
    for i in range(32):
        borders = np.array([first + i, first + i + 1], np.int32) << 20
        low, high = borders.view(np.float32).astype(float) - _TANH_SHIFT
        count = 5 if i else 3
        points = np.cos(np.pi * (np.arange(count) + 0.5) / count) * (high - low) / 2
        middle = (low + high) / 2 if i else 0.0
        points += (low + high) / 2 - middle
        values = np.tanh(middle + points)
        if not i:
            values = (values - points) / points**2
        found = np.linalg.solve(np.vander(points, count, increasing=True), values)
        rows[:, (first + i) % 32] = [middle, *[0.0, 1.0][i * 2 :], *found]
    numbers: list[list[float]] = rows.tolist()
    return numbers


def logistic(f: Floats, x: str) -> str:
    # Not 1 / (1 + e^-x): that is 0 where e^-x is infinite, and its divisor may be any number.
    t = exp(f, f.neg(f.abs(x)))
    return f.over(f.where(f.test("olt", x, 0.0), t, 1.0), f.add(t, 1.0))


# Powers. x^y = exp(y·log|x|) with the logarithm in two floats, as y may multiply its error by 745.


def _two_sum(f: Floats, big: str, small: str) -> tuple[str, str]:
    """big + small and what rounding took, |big| >= |small| or big = 0."""
    s = f.add(big, small)
    return s, f.add(f.sub(big, s), small)


def _log_in_two(f: Floats, x: str) -> tuple[str, str]:
    """log x of positive finite float64 as high + low, to 2⁻⁶⁴ of it."""
    e, m = log_parts_of_any(f, x)
    g = f.sub(m, 1.0)
    d, d_low = f.add(g, 2.0), ""
    d_low = f.sub(g, f.sub(d, 2.0))
    s = f.div(g, d)
    s_low = f.div(f.sub(f.fma(f.neg(s), d, g), f.mul(s, d_low)), d)
    z = f.mul(s, s)
    z_low = f.add(f.fma(s, s, f.neg(z)), f.mul(f.mul(s, 2.0), s_low))
    third, third_low = 0.6666666666666666, 3.700743415417188e-17
    q = f.mul(z, f.poly(z, _ATANH))
    c = f.add(q, third)
    c_low = f.add(f.add(f.sub(third, c), q), third_low)
    w = f.mul(z, c)
    w_low = f.add(f.fma(z, c, f.neg(w)), f.fma(z, c_low, f.mul(z_low, c)))
    t = f.add(w, 2.0)
    t_low = f.add(f.add(f.sub(2.0, t), w), w_low)
    h = f.mul(s, t)
    h_low = f.add(f.fma(s, t, f.neg(h)), f.fma(s, t_low, f.mul(s_low, t)))
    high, low = 0.6931471804855391, 7.440617110012397e-11
    total, lost = _two_sum(f, f.mul(e, high), h)
    return _two_sum(f, total, f.add(f.add(lost, h_low), f.mul(e, low)))


def power(f: Floats, x: str, y: str) -> str:
    """x^y with the special values of IEEE 754."""
    if f.dtype == "f4":
        return _power_of_floats(f.widened(), x, y)
    if not f.c.module.fma:
        # Products in two floats need it.
        return by_library(f.c, library(f.c, "pow", 2), x, y)
    size = f.abs(x)
    high, low = _log_in_two(f, size)
    p = f.mul(y, high)
    p_low = f.fma(y, low, f.fma(y, high, f.neg(p)))
    # Far outside, where the low part is no number, only the bound counts.
    p_low = f.where(f.test("olt", f.abs(p), 800.0), p_low, 0.0)
    n, r = reduced(f, f.within(p, (0, 0), (-746.0, 710.0)))
    some = f.above(p, 0.0, -746.0)
    raised = f.scale(exp_of_small(f, f.add(r, p_low)), n, some)
    return _power_edges(f, x, y, raised)


def _power_of_floats(f: Floats, x: str, y: str) -> str:
    """x^y of float32 in float64, with as many terms as float32 takes and no subnormals."""
    x, y = f.widen(x), f.widen(y)
    e, m = log_parts(f, f.abs(x))
    s = f.over(f.sub(m, 1.0), f.add(m, 1.0))
    z = f.mul(s, s)
    log = f.fma(e, math.log(2), f.mul(s, f.fma(z, f.poly(z, _LOG_MIDDLE), 2.0)))
    (_, n), r = reduced(f, f.within(f.mul(y, log), (0, 0), (-104.5, 89.0)))
    small = f.add(f.fma(f.mul(r, r), f.poly(r, _EXP["f4"]), r), 1.0)
    return f.narrowed(_power_edges(f, x, y, f.mul(small, f.power_of_two(n))))


def _power_edges(f: Floats, x: str, y: str, out: str) -> str:
    """|x|^y with its value at 0, 1 and infinities, and the sign."""
    size, infinite = f.abs(x), float("inf")
    down = f.test("olt", y, 0.0)
    out = f.where(f.test("oeq", size, 0.0), f.where(down, infinite, 0.0), out)
    out = f.where(f.test("oeq", size, infinite), f.where(down, 0.0, infinite), out)
    out = f.where(f.test("oeq", size, 1.0), 1.0, out)
    whole = f.test("oeq", f.rint(y), y)
    half = f.mul(y, 0.5)
    odd = f.both(whole, f.test("one", f.rint(half), half))
    negative = f.test("olt", f.signed(f.k(1.0), x), 0.0)
    out = f.where(f.both(negative, odd), f.neg(out), out)
    broken = f.both(f.test("olt", x, 0.0), f.test("une", f.rint(y), y))
    broken = f.both(broken, f.test("one", size, infinite))
    out = f.where(broken, float("nan"), out)
    out = f.where(f.test("uno", x, y), float("nan"), out)
    out = f.where(f.test("oeq", y, 0.0), 1.0, out)
    return f.where(f.test("oeq", x, 1.0), 1.0, out)


def cbrt(f: Floats, x: str) -> str:
    """x = m·2^k·8^q with k < 3: a polynomial of m times a cube root of 2^k, and Newton's step.

    The polynomial's relative error is 3.6e-9: float32 needs no more.
    """
    if f.dtype == "f4":
        g = f.widened()
        return f.narrowed(_cbrt(g, g.widen(x), False))
    size = f.abs(x)
    tiny = f.test("olt", size, 2.0**-1022)
    out = _cbrt(f, f.where(tiny, f.mul(x, 2.0**54), x), True)
    return f.where(tiny, f.mul(out, 2.0**-18), out)


def _cbrt(f: Floats, x: str, exact: bool) -> str:
    """The cube root of float64, none of them subnormal."""
    c, bits = f.c, f.bits(f.abs(x))
    exponent = f.iop("lshr", bits, 52)
    # Of numbers below 2^11 a third, rounded down. 1023 is three times 341.
    third = f.iop("lshr", f.iop("mul", exponent, 21846), 16)
    k = f.iop("sub", exponent, f.iop("mul", third, 3))
    fraction = f.iop("and", bits, 2**52 - 1)
    y = f.poly(f.sub(f.unbits(f.iop("or", fraction, 1023 << 52)), 1.5), _CBRT)
    one, two = (c.new(f"icmp eq {f.it} {k}, {c.const(f.int, str(i))}") for i in (1, 2))
    y = f.mul(y, f.where(one, 2 ** (1 / 3), f.where(two, 2 ** (2 / 3), 1.0)))
    if exact:
        m = f.unbits(f.iop("or", fraction, f.iop("shl", f.iop("add", k, 1023), 52)))
        lacking = f.fma(f.neg(f.mul(y, y)), y, m)
        y = f.fma(f.mul(y, f.div(1 / 3, m)), lacking, y)
    y = f.mul(y, f.unbits(f.iop("shl", f.iop("add", third, 1023 - 341), 52)))
    # Zeros, infinities and nan are their own.
    return f.where(f.test("ueq", f.mul(x, 0.5), x), x, f.signed(y, x))


# Hyperbolic functions by halves of exp(|x|), which do not overflow before the results do.


def _half_exp(f: Floats, size: str) -> str:
    (n, number), r = reduced(f, f.within(size, (0.0, 90.0), (0.0, 711.0)))
    return f.scale(exp_of_small(f, r), (f.sub(n, 1.0), f.iop("sub", number, 1)), normal=True)


def _halves(f: Floats, size: str) -> tuple[str, str]:
    """exp(size)/2 and exp(-size)/2, the latter where it shows beside the former."""
    half = _half_exp(f, size)
    if f.dtype == "f8":
        return half, f.div(0.25, half)
    return half, f.over(0.25, f.where(f.test("ogt", half, 2.0**59), 2.0**59, half))


def cosh(f: Floats, x: str) -> str:
    return f.add(*_halves(f, f.abs(x)))


def sinh(f: Floats, x: str) -> str:
    size = f.abs(x)
    far = f.sub(*_halves(f, size))
    if f.dtype == "f4":
        z = f.square(x)
        near = f.fma(f.mul(z, f.poly(z, _SINH)), size, size)
        return f.signed(f.where(f.test("olt", size, 1.0), near, far), x)
    t = expm1(f, f.where(f.test("olt", size, 1.0), size, 1.0))
    near = f.mul(f.add(t, f.div(t, f.add(t, 1.0))), 0.5)
    return f.signed(f.where(f.test("olt", size, 1.0), near, far), x)


_BIG = 2.0**60
"""Where x + sqrt(x² ± 1) is 2x to all digits, and x² does not overflow yet."""
_LITTLE = 2.0**-60
"""Where x² shows nowhere beside x."""


def _log_above(f: Floats, x: str, like: str) -> str:
    """log x for x >= 1, or `like` where that is infinite or no number."""
    e, m = log_parts(f, x, 0.75)
    out = log_of(f, f.sub(m, 1.0), f.neg(e))
    return f.where(f.test("olt", like, float("inf")), out, like)


# In float64 nothing overflows that float32 holds, and what a logarithm near 1 loses is still there:
# formulas of one root or quotient serve, where those of float64 need three.


def asinh_in_float64(f: Floats, x: str) -> str:
    size = f.abs(x)
    square = f.mul(size, size)
    out = _log_above(f, f.add(size, f.sqrt(f.add(square, 1.0))), size)
    small = f.fma(f.mul(square, size), -1 / 6, size)
    return f.signed(f.where(f.test("olt", size, 1e-3), small, out), x)


@wider(asinh_in_float64)
def asinh(f: Floats, x: str) -> str:
    size = f.abs(x)
    big = f.test("oge", size, _BIG)
    a = f.where(big, 1.0, size)
    square = f.square_but(f.test("olt", a, _LITTLE), a)
    sum_ = f.add(a, f.div(square, f.add(f.sqrt(f.add(square, 1.0)), 1.0)))
    out = log1p(f, f.where(big, size, sum_))
    return f.signed(f.where(big, f.add(out, 0.6931471805599453), out), x)


def acosh_in_float64(f: Floats, x: str) -> str:
    # The square of a float32 is exact.
    out = _log_above(f, f.add(x, f.sqrt(f.sub(f.mul(x, x), 1.0))), x)
    return f.where(f.test("olt", x, 1.0), float("nan"), out)


@wider(acosh_in_float64)
def acosh(f: Floats, x: str) -> str:
    big = f.test("oge", x, _BIG)
    t = f.sub(f.where(big, 1.0, x), 1.0)
    near = f.add(t, f.sqrt(f.fma(t, t, f.mul(t, 2.0))))
    out = log1p(f, f.where(big, x, near))
    out = f.where(big, f.add(out, 0.6931471805599453), out)
    return f.where(f.test("olt", x, 1.0), float("nan"), out)


def atanh_in_float64(f: Floats, x: str) -> str:
    size = f.abs(x)
    square = f.mul(size, size)
    ratio = f.div(f.add(size, 1.0), f.sub(1.0, size))
    out = f.mul(_log_above(f, ratio, ratio), 0.5)
    out = f.where(f.test("ule", size, 1.0), out, float("nan"))
    small = f.fma(f.mul(square, size), 1 / 3, size)
    return f.signed(f.where(f.test("olt", size, 1e-3), small, out), x)


@wider(atanh_in_float64)
def atanh(f: Floats, x: str) -> str:
    size = f.abs(x)
    double = f.add(size, size)
    square = f.where(f.test("olt", size, _LITTLE), 0.0, f.mul(double, size))
    out = log1p(f, f.add(double, f.div(square, f.sub(1.0, size))))
    out = f.where(f.test("ogt", size, 1.0), float("nan"), out)
    return f.signed(f.mul(out, 0.5), x)
