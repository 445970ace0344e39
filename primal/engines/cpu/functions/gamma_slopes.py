"""How the incomplete gamma function and a gamma variate move with their shape; of float32 in
float64, with fewer terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from primal.base.expansions import GAMMA_MOVES, ODD_PARTS
from primal.engines.cpu.functions.exponentials import exp, log, log1p, power
from primal.engines.cpu.functions.floats import Floats, branch, wider
from primal.engines.cpu.functions.gammas import (
    FINE,
    LARGE,
    LIMIT,
    LOG_TWO_PI,
    PSI,
    STIRLING,
    either,
    log_density,
    repeated,
    without,
)
from primal.engines.cpu.functions.polygammas import log_gamma, psi

_INF, _NAN = float("inf"), float("nan")
SERIES = 2.0**-54
"""What does not count beside a float64."""
FRACTION = 2.0**-50
"""The same of the fraction, whose last values differ by what they are rounded by."""
# Enough for float32.
_FEW_MOVES = tuple([c[:n] for c, n in zip(GAMMA_MOVES[:2], (4, 1), strict=True)])


def fine_density(f: Floats, a: str, x: str) -> tuple[str, str, str]:
    """log(x^a·e^-x/Γ(a + 1)) and its derivative by a, with the digits of float64; log Γ(a + 1) of
    a up to 20."""
    large = f.test("ogt", a, 20.0)
    safe, small = f.where(large, a, 20.0), f.where(large, 1.0, a)
    ratio = f.div(f.sub(x, safe), safe)
    apart = either(f, f.test("olt", ratio, -0.5), f.test("ogt", ratio, 1.0))
    near = f.where(apart, 0.0, ratio)
    z = f.div(near, f.add(near, 2.0))
    square = f.mul(z, z)
    lost = f.sub(f.mul(f.mul(square, z), f.poly(square, ODD_PARTS)), f.mul(z, near))
    log_x, log_safe = log(f, x), log(f, safe)
    log_ratio = f.where(apart, f.sub(log_x, log_safe), log1p(f, near))
    inverse = f.div(1.0, safe)
    square = f.mul(inverse, inverse)
    rest = f.fma(f.add(log_safe, LOG_TWO_PI), 0.5, f.mul(inverse, f.poly(square, STIRLING)))
    lost = f.where(apart, f.sub(log_ratio, ratio), lost)
    more = f.add(small, 1.0)
    gamma = log_gamma(f, more)
    little = f.sub(f.fma(small, log_x, f.neg(x)), gamma)
    level = f.where(large, f.fma(safe, lost, f.neg(rest)), little)
    # ψ(a + 1) is ψ(a) and 1/a, and that is log a, less the first terms.
    rest = f.mul(inverse, f.fma(inverse, f.poly(square, PSI), -0.5))
    change = f.where(large, f.add(log_ratio, rest), f.sub(log_x, psi(f, more)))
    return level, change, gamma


def _far_density(f: Floats, a: str, x: str, gamma: str) -> str:
    """x^a·e^-x/Γ(a + 1) within some twenty units, where its logarithm is a number of hundreds; of
    shapes from 20 on in sixteenths, which stay within the exponents of floats."""
    large = f.test("ogt", a, 20.0)
    safe, small = f.where(large, a, 20.0), f.where(large, 1.0, a)
    ratio, less = f.div(x, safe), f.sub(safe, x)
    # What both were rounded by, times the shape.
    lost = f.div(f.fma(f.neg(ratio), safe, x), ratio)
    back = f.sub(less, safe)
    lost = f.add(lost, f.sub(f.sub(safe, f.sub(less, back)), f.add(x, back)))
    inverse = f.div(1.0, safe)
    stirling = f.mul(inverse, f.poly(f.mul(inverse, inverse), STIRLING))
    part = f.mul(safe, 0.0625)
    raised = power(f, f.where(large, ratio, f.least(x, 1e5, 1e5)), f.where(large, part, small))
    fall = exp(f, f.where(large, f.mul(less, 0.0625), f.mul(x, -0.5)))
    gauss = f.mul(raised, fall)
    rest = exp(f, f.where(large, f.sub(lost, stirling), f.neg(gamma)))
    direct = f.mul(f.mul(gauss, rest), fall)
    for _ in range(4):
        gauss = f.mul(gauss, gauss)
    gauss = f.div(f.mul(gauss, rest), f.sqrt(f.mul(safe, 2 * math.pi)))
    return f.where(large, gauss, direct)


def _series_slope(
    f: Floats, a: str, x: str, active: str, digits: float
) -> tuple[str, str]:
    """The series and its derivative by a."""

    def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        inverse = f.div(1.0, f.add(a, i))
        term = f.mul(f.mul(state[0], x), inverse)
        slope = f.mul(f.sub(f.mul(state[1], x), term), inverse)
        total, by_a = f.add(state[2], term), f.add(state[3], slope)
        more = f.test("ogt", f.abs(slope), f.mul(f.abs(by_a), digits))
        return more, (term, slope, total, by_a)

    zero, one = f.k(0.0), f.k(1.0)
    _, _, total, by_a = repeated(f, active, [one, zero, one, zero], step, LIMIT)
    return total, by_a


def _fraction_slope(
    f: Floats, a: str, x: str, active: str, digits: float
) -> tuple[str, str]:
    """The fraction and its derivative by a."""
    from_a = f.sub(f.add(x, 1.0), a)
    # There the first quotient is all of it, and the products of the next would overflow.
    far = f.test("ogt", from_a, 2.0**200)
    active = without(f, active, far)

    def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        p0, q0, s0, t0, p1, q1, s1, t1, before, _ = state
        down, by = f.mul(i, f.sub(a, i)), f.fma(i, 2.0, from_a)
        p, q = f.fma(p1, by, f.mul(p0, down)), f.fma(q1, by, f.mul(q0, down))
        s, t = (
            f.add(f.fma(u1, by, f.mul(u0, down)), f.fma(v0, i, f.neg(v1)))
            for u0, v0, u1, v1 in ((s0, p0, s1, p1), (t0, q0, t1, q1))
        )
        # The fraction itself ends next to whole a, where its derivative goes on.
        out = f.div(p, q)
        slope = f.div(f.sub(s, f.mul(out, t)), q)
        more = f.test("ogt", f.abs(f.sub(slope, before)), f.mul(f.abs(slope), digits))
        scale = f.where(f.test("ogt", f.abs(q), 2.0**250), 2.0**-300, 1.0)
        return more, [*[f.mul(v, scale) for v in (p1, q1, s1, t1, p, q, s, t)], slope, out]

    zero, one = f.k(0.0), f.k(1.0)
    state = [zero, one, zero, zero, one, from_a, zero, f.k(-1.0), zero, zero]
    *_, slope, out = repeated(f, active, state, step, LIMIT)
    first = f.div(1.0, from_a)
    return f.where(far, first, out), f.where(far, f.mul(first, first), slope)


def _slope(f: Floats, a: str, x: str, variate: bool, fine: bool) -> str:
    """∂P/∂a, or that over -∂P/∂x = -D·a/x: how a variate moves with its shape."""
    inside = f.both(f.test("ogt", x, 0.0), f.test("ogt", a, 0.0))
    inside = f.both(inside, f.both(f.test("olt", x, _INF), f.test("olt", a, _INF)))
    given = a, x
    a, x = f.where(inside, a, 1.0), f.where(inside, x, 0.5)
    beyond = f.both(f.test("ogt", x, 1.0), f.test("ogt", x, a))
    # Next to large shapes, where the series is long, by powers of x/a - 1 (Cornish and Fisher).
    ratio = f.div(f.sub(x, a), a)
    large = f.both(f.test("ogt", a, LARGE), f.test("olt", f.abs(ratio), 0.01))
    usual = without(f, inside, large)
    level, change, *gamma = fine_density(f, a, x) if fine else log_density(f, a, x)
    total, by_a = _series_slope(f, a, x, without(f, usual, beyond), SERIES if fine else FINE)
    below = f.fma(change, total, by_a)
    total, by_a = _fraction_slope(f, a, x, f.both(usual, beyond), FRACTION if fine else FINE)
    above = f.neg(f.fma(a, f.fma(change, total, by_a), total))
    out = f.where(beyond, above, below)
    inverse, moved = f.div(1.0, a), f.k(0.0)
    for c in (GAMMA_MOVES if fine else _FEW_MOVES)[::-1]:
        moved = f.fma(moved, inverse, f.poly(ratio, c))
    over = f.div(a, x)
    out = f.where(large, f.neg(f.mul(moved, over)), out)
    if variate:
        # x/a may be beyond all floats, and out·x below those with all digits.
        first, second = f.where(beyond, out, 1.0), f.where(beyond, 1.0, out)
        out = f.neg(f.mul(f.div(f.mul(first, x), a), second))
    else:
        density = exp(f, level)
        if fine:
            far = f.both(f.test("olt", level, -20.0), f.test("ogt", level, -760.0))
            far = f.both(far, f.test("olt", a, 5e4))
            density = branch(f, far, density, lambda: _far_density(f, a, x, *gamma))
        out = f.mul(out, density)
    a, x = given
    positive = f.both(f.test("ogt", a, 0.0), f.test("olt", a, _INF))
    edge = f.both(f.test("oeq", x, 0.0), f.test("ogt", a, 0.0))
    if not variate:
        edge = either(f, edge, f.both(f.test("oeq", x, _INF), positive))
    return f.where(inside, out, f.where(edge, 0.0, _NAN))


def _slope_of_floats(variate: bool) -> Callable[..., str]:
    return lambda f, a, x: _slope(f, a, x, variate, False)


@wider(_slope_of_floats(False))
def igamma_grad_a(f: Floats, a: str, x: str) -> str:
    return _slope(f, a, x, False, True)


@wider(_slope_of_floats(True))
def random_gamma_grad(f: Floats, a: str, x: str) -> str:
    return _slope(f, a, x, True, True)
