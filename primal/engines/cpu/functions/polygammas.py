"""log Γ and its derivatives ψ and ψ⁽ᵐ⁾, and Hurwitz's zeta; of float32 in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

from primal.base.expansions import NEXT_TO_TWO, NEXT_TO_ZERO, PSI, STIRLING, ZERO_OF_PSI
from primal.engines.cpu.functions.exponentials import exp, log, power
from primal.engines.cpu.functions.floats import Floats, branch, wide, wider
from primal.engines.cpu.functions.gammas import either, repeated, without
from primal.engines.cpu.functions.trigonometry import cos, sin

_INF, _NAN = float("inf"), float("nan")
_FROM = 8
_HALF_LOG = 0.5 * math.log(2 * math.pi)
# B₂ₖ/(2k)!
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)  # fmt: skip
# Terms that are added before Euler's and Maclaurin's formula, and of it: good to 4e-12, and to all
# digits of float64.
_FEW, _MANY = (6, 5), (10, 10)


@wide
def log_gamma(f: Floats, x: str) -> str:
    """log |Γ(x)|: 4 units, but for the zeros of x < 0, where the error is 2⁻⁵⁰."""
    left = f.test("olt", x, 0.0)
    y = f.where(left, f.sub(1.0, x), x)
    # Up or down to 2 + d, next to which both zeros are those of d and of one logarithm.
    low, up, small = (f.test("olt", y, v) for v in (0.5, 1.5, float(_FROM)))
    d = f.where(low, y, f.where(up, f.sub(y, 1.0), f.sub(y, 2.0)))
    product = f.where(low, f.mul(y, f.add(y, 1.0)), f.where(up, y, 1.0))
    for i in range(1, _FROM - 1):
        far = f.test("oge", y, i + 1.5)
        d = f.where(far, f.sub(y, i + 2.0), d)
        product = f.where(far, f.mul(product, f.sub(y, float(i))), product)
    level = log(f, f.where(small, product, y))
    near = f.fma(d, f.poly(d, NEXT_TO_TWO), f.where(up, f.neg(level), level))
    inverse = f.div(1.0, f.where(small, float(_FROM), y))
    rest = f.fma(inverse, f.poly(f.mul(inverse, inverse), STIRLING), _HALF_LOG - 0.5)
    out = f.where(small, near, f.fma(f.sub(y, 0.5), f.sub(level, 1.0), rest))

    def mirrored() -> str:
        # Γ(x) is 1/x next to 0, where π·x may be subnormal.
        tiny = f.test("ogt", x, -1e-300)
        size = f.abs(sin(f, f.mul(f.sub(x, f.rint(x)), math.pi)))
        size = f.where(tiny, f.abs(x), size)
        return f.sub(f.sub(f.where(tiny, 0.0, math.log(math.pi)), log(f, size)), out)

    out = branch(f, left, out, mirrored)
    # All numbers from 2**52 on are whole: poles, if below 0.
    pole = f.both(f.test("ole", x, 0.0), f.test("oeq", x, f.rint(x)))
    return f.where(either(f, pole, f.test("oeq", x, _INF)), _INF, out)


@wide
def psi(f: Floats, x: str) -> str:
    """ψ(x), the derivative of log Γ; NaN at its poles. Errors as above."""
    left = f.test("olt", x, 0.0)
    y = f.where(left, f.sub(1.0, x), x)
    # Up or down to [1, 2], by a sum of inverses: the logarithmic derivative of a product.
    low, small = (f.test("olt", y, v) for v in (1.0, float(_FROM)))
    at = f.where(low, f.add(y, 1.0), y)
    product, slope = f.where(low, y, 1.0), f.where(low, -1.0, 0.0)
    for i in range(1, _FROM - 1):
        far, factor = f.test("oge", y, i + 1.0), f.sub(y, float(i))
        at = f.where(far, factor, at)
        slope = f.where(far, f.fma(slope, factor, product), slope)
        product = f.where(far, f.mul(product, factor), product)
    off = f.sub(f.sub(at, ZERO_OF_PSI[0]), ZERO_OF_PSI[1])
    beside = f.poly(f.where(small, f.sub(at, 1.5), 0.0), NEXT_TO_ZERO)
    near = f.fma(off, beside, f.div(slope, product))
    inverse = f.div(1.0, f.where(small, float(_FROM), y))
    square = f.mul(inverse, inverse)
    rest = f.fma(square, f.poly(square, PSI), f.mul(inverse, 0.5))
    out = f.where(small, near, f.sub(log(f, y), rest))
    part = f.sub(x, f.rint(x))

    def mirrored() -> str:
        angle = f.mul(part, math.pi)
        return f.sub(out, f.div(f.mul(cos(f, angle), math.pi), sin(f, angle)))

    out = branch(f, left, out, mirrored)
    pole = f.both(f.test("ole", x, 0.0), f.test("oeq", part, 0.0))
    return f.where(either(f, pole, f.test("oeq", x, -_INF)), _NAN, out)


def _fallen(f: Floats, x: str, at: str, fine: bool) -> str:
    """at^-x of positive numbers; where it is not fine, to as many digits as x·log(at) leaves."""
    return power(f, at, f.neg(x)) if fine else exp(f, f.neg(f.mul(x, log(f, at))))


def _summed(f: Floats, x: str, q: str, fine: bool) -> str:
    """ζ(x, q) by Euler and Maclaurin, for x > 1 and q > 0."""
    terms, corrections = _MANY if fine else _FEW

    def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        term = _fallen(f, x, f.add(q, f.sub(i, 1.0)), fine)
        return f.c.const("i1", "true"), (f.add(state[0], term),)

    (total,) = repeated(f, f.c.const("i1", "true"), [f.k(0.0)], step, terms)
    w = f.add(q, float(terms))
    last = _fallen(f, x, w, fine)
    # The integral from w on, which still is a number where its integrand is none.
    small = f.test("olt", last, 1e-290)
    rest = branch(f, small, f.mul(last, w), lambda: _fallen(f, f.sub(x, 1.0), w, fine))
    total = f.add(total, f.fma(last, 0.5, f.div(rest, f.sub(x, 1.0))))
    x = f.where(f.test("olt", x, 1e4), x, 1e4)  # beyond, there is nothing left to correct
    # Each term from the one before: two more factors above, w² below.
    inverse = f.div(1.0, w)
    square, term = f.mul(inverse, inverse), f.mul(f.mul(x, last), inverse)
    for k, b in enumerate(_BERNOULLI[:corrections], 1):
        total = f.fma(term, b, total)
        factors = f.mul(f.add(x, 2.0 * k - 1), f.add(x, 2.0 * k))
        term = f.mul(term, f.mul(factors, square))
    return total


def _zeta(f: Floats, x: str, q: str, fine: bool) -> str:
    every = f.both(f.test("ogt", x, 1.0), f.test("olt", x, _INF))
    ordinary = f.both(every, f.both(f.test("ogt", q, 0.0), f.test("olt", q, _INF)))
    whole_x, whole_q = (f.test("oeq", v, f.rint(v)) for v in (x, q))
    negative = f.both(every, f.both(whole_x, f.test("olt", q, 0.0)))
    negative = without(f, negative, whole_q)
    # The terms of q < 0 are added one by one, each with the one as far above 0, which for odd x
    # it all but cancels next to halves.
    steps = f.c.intrinsic("ceil", f.scalar, f.neg(q))
    twice = f.add(steps, steps)
    start = f.where(negative, f.add(q, twice), f.where(ordinary, q, 1.0))
    sx = f.where(f.both(every, f.test("oeq", x, x)), x, 2.0)
    out = _summed(f, sx, start, fine)
    half = f.mul(x, 0.5)
    even = f.both(whole_x, f.test("oeq", half, f.rint(half)))

    def more() -> str:
        def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
            at = f.add(q, f.sub(i, 1.0))
            term = _fallen(f, sx, f.abs(at), fine)
            term = f.where(even, term, f.neg(term))
            mirrored = _fallen(f, sx, f.add(q, f.sub(twice, i)), fine)
            return f.test("olt", i, steps), (f.add(state[0], f.add(term, mirrored)),)

        return repeated(f, negative, [out], step, 1_000_000)[0]

    out = branch(f, negative, out, more)
    out = f.where(either(f, ordinary, negative), out, _NAN)
    # x = 1 diverges, ∞ leaves one term; q = ∞ leaves none. Poles have a sign for even x.
    ends = f.where(f.test("olt", q, 1.0), _INF, f.where(f.test("oeq", q, 1.0), 1.0, 0.0))
    out = f.where(f.test("oeq", x, _INF), ends, out)
    out = f.where(f.both(f.test("ogt", x, 1.0), f.test("oeq", q, _INF)), 0.0, out)
    pole = f.both(f.both(f.test("ogt", x, 1.0), f.test("ole", q, 0.0)), whole_q)
    even = f.both(even, f.test("olt", x, _INF))
    out = f.where(pole, f.where(even, _INF, _NAN), out)
    out = f.where(f.test("oeq", x, 1.0), _INF, out)
    return f.where(f.test("uno", x, q), _NAN, out)


def _zeta_of_floats(f: Floats, x: str, q: str) -> str:
    return _zeta(f, x, q, False)


@wider(_zeta_of_floats)
def zeta(f: Floats, x: str, q: str) -> str:
    return _zeta(f, x, q, True)


def _slope(f: Floats, x: str, q: str, fine: bool) -> str:
    """∂ζ(x, q)/∂x for x > 1, q > 0: the terms above, each times its logarithmic derivative."""
    inside = f.both(f.test("ogt", x, 1.0), f.test("olt", x, _INF))
    inside = f.both(inside, f.both(f.test("ogt", q, 0.0), f.test("olt", q, _INF)))
    x, q = f.where(inside, x, 2.0), f.where(inside, q, 1.0)
    terms, corrections = _MANY if fine else _FEW

    def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        at = f.add(q, f.sub(i, 1.0))
        term = f.mul(_fallen(f, x, at, fine), log(f, at))
        return f.c.const("i1", "true"), (f.sub(state[0], term),)

    (total,) = repeated(f, f.c.const("i1", "true"), [f.k(0.0)], step, terms)
    w = f.add(q, float(terms))
    level, last = log(f, w), _fallen(f, x, w, fine)
    inverse, beyond = f.div(1.0, w), f.div(1.0, f.sub(x, 1.0))
    rest = f.mul(f.mul(f.mul(last, w), beyond), f.add(level, beyond))
    total = f.sub(total, f.fma(f.mul(last, level), 0.5, rest))
    x = f.where(f.test("olt", x, 1e4), x, 1e4)
    square, power = f.mul(inverse, inverse), f.mul(last, inverse)
    term = f.mul(x, power)
    slope = f.sub(power, f.mul(term, level))
    for k, b in enumerate(_BERNOULLI[:corrections], 1):
        total = f.fma(slope, b, total)
        first, second = f.add(x, 2.0 * k - 1), f.add(x, 2.0 * k)
        product = f.mul(first, second)
        slope = f.mul(f.fma(slope, product, f.mul(term, f.add(first, second))), square)
        term = f.mul(term, f.mul(product, square))
    return f.where(inside, total, _NAN)


def _slope_of_floats(f: Floats, x: str, q: str) -> str:
    return _slope(f, x, q, False)


@wider(_slope_of_floats)
def zeta_slope(f: Floats, x: str, q: str) -> str:
    return _slope(f, x, q, True)


def _factorial(f: Floats, n: str) -> str:
    """n! of whole n >= 0: what each product is rounded by is kept, and so are all digits."""

    def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        out = f.mul(state[0], i)
        rest = f.fma(state[1], i, f.fma(state[0], i, f.neg(out)))
        return f.test("olt", i, n), (out, rest)

    out, rest = repeated(f, f.test("oge", n, 1.0), [f.k(1.0), f.k(0.0)], step, 172)
    return f.where(f.test("olt", out, _INF), f.add(out, rest), _INF)


def _polygamma(f: Floats, m: str, x: str, fine: bool) -> str:
    """(-1)^(m+1)·m!·ζ(m + 1, x) for whole m > 0, ψ for m = 0."""
    half = f.mul(m, 0.5)
    even = f.both(f.test("oeq", half, f.rint(half)), f.test("olt", m, _INF))
    out = f.mul(_factorial(f, m), _zeta(f, f.add(m, 1.0), x, fine))
    out = f.where(even, f.neg(out), out)
    out = branch(f, f.test("oeq", m, 0.0), out, lambda: psi(f, x))
    pole = f.both(f.test("ole", x, 0.0), f.test("oeq", x, f.rint(x)))
    unknown = either(f, f.both(even, pole), f.test("olt", m, 0.0))
    return f.where(either(f, unknown, f.test("une", m, f.rint(m))), _NAN, out)


def _polygamma_of_floats(f: Floats, m: str, x: str) -> str:
    return _polygamma(f, m, x, False)


@wider(_polygamma_of_floats)
def polygamma(f: Floats, m: str, x: str) -> str:
    return _polygamma(f, m, x, True)
