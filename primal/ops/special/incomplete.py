"""Incomplete gamma and beta functions.

P(a, x) = γ(a, x)/Γ(a) (igamma), Q = 1 - P (igammac), ∂P/∂a (igamma_grad_a), the derivative of a
gamma variate by its shape (random_gamma_grad), I_x(a, b) (regularized_incomplete_beta), and their
derivatives of any order by a and b.

With D = x^a·e^-x/Γ(a + 1), the power series P = D·Σ cₙ, cₙ = x·cₙ₋₁/(a + n), serves up to
x = max(a, 1); beyond, the continued fraction Q = D·a·K by Lentz's method in Thompson and Barnett's
form. Derivatives by a are these formulas on jets.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from primal.base.expansions import GAMMA_MOVES, ODD_PARTS
from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, Op, by_kind, library
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import add, div, exp, log, log1p, mul, neg, sub
from primal.ops.elementwise.make import binary
from primal.ops.special.gamma import digamma, lgamma, polygamma
from primal.ops.special.jets import JetTerms
from primal.ops.special.native import kernel_word
from primal.ops.special.terms import NumpyTerms, by_formula, by_scipy, hlo_formula, scipys
from primal.ops.special.written import on_arrays
from primal.ops.types import FLOATING, NOT_LINEAR, nary
from primal.ops.words import each, each_out

# Near x = a some 6·√a terms are needed: enough for a = 10⁶ in float32.
LIMIT = 10000
LOG_TWO_PI = math.log(2 * math.pi)


def log_density(xp: Any, a: Any, x: Any, more: Any = None) -> Any:
    """log(x^a·e^-x/Γ(a + 1)), without a·log(x) and log Γ cancelling each other for large a.

    `more` is a + 1 where the caller has it whole: next to a = -1 the sum would be a few bits.
    """
    large = a > 20.0
    safe = xp.where(large, a, 20.0)
    ratio = (x - safe) / safe
    inverse = 1.0 / safe
    square = inverse * inverse
    stirling = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    # log(1 + r) - r cancels by its own series in z = r/(2 + r), where |z| is at most a third. A
    # small quotient x/a is lost in its difference from 1, which has no slope at 0 either.
    apart = (ratio < -0.5) | (ratio > 1.0)
    near = xp.where(apart, 0.0, ratio)
    z = near / (near + 2.0)
    square_of_z = z * z
    odd = functools.reduce(lambda total, c: total * square_of_z + c, ODD_PARTS[::-1])
    cubes = square_of_z * z * odd
    far = xp.log(xp.where(apart, x, 1.0)) - xp.log(xp.where(apart, safe, 1.0))
    # Not a·(log(x/a) - ratio), whose slope by a would have no digit of log(x/a) beside x/a.
    change = xp.where(apart, safe * far - (x - safe), safe * (cubes - z * near))
    by_stirling = change - 0.5 * (LOG_TWO_PI + xp.log(safe)) - stirling
    small = xp.where(large, 1.0, a)
    beyond = small + 1.0 if more is None else xp.where(large, 2.0, more)
    return xp.where(large, by_stirling, small * xp.log(x) - x - xp.lgamma(beyond))


def _series(xp: Any, a: Any, x: Any, active: Any) -> Any:
    """Σ cₙ."""
    one = x * 0.0 + 1.0

    def step(i: Any, fixed: Any, c: Any, total: Any) -> Any:
        a, x = fixed
        c = c * x / (a + i)
        return xp.moves(c, total), (c, total + c)

    return xp.loop(step, active, (a, x), (one, one), LIMIT)[1]


def _guard(xp: Any, v: Any) -> Any:
    """v, away from 0, as a divisor in Lentz's method."""
    return xp.where(xp.abs(v) < 1e-30, 1e-30, v)


def _fraction(xp: Any, a: Any, x: Any, active: Any) -> Any:
    """K = 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - …)))."""

    # K is the product of c·d over the steps, c kept as its inverse r.
    def step(i: Any, fixed: Any, r: Any, d: Any, k: Any) -> Any:
        a, x = fixed
        num, b = (a - i) * i, x + 1.0 - a + 2.0 * i
        d = 1.0 / _guard(xp, b + num * d)
        c = _guard(xp, b + num * r)
        new = k * (c * d)
        return xp.moves((new - k) * 0.25, new), (1.0 / c, d, new)

    d = 1.0 / _guard(xp, x + 1.0 - a)
    return xp.loop(step, active, (a, x), (x * 0.0, d, d), LIMIT)[2]


def _regions(xp: Any, a: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Where the formulas apply, where the fraction does, and operands that are safe elsewhere."""
    inside = (x > 0.0) & (a > 0.0) & (x < math.inf) & (a < math.inf)
    beyond = inside & (x > 1.0) & (x > a)
    return inside, beyond, xp.where(inside, a, 1.0), xp.where(inside, x, 0.5)


def _incomplete(xp: Any, a: Any, x: Any, lower: bool) -> Any:
    inside, beyond, sa, sx = _regions(xp, a, x)
    density = xp.exp(log_density(xp, sa, sx))
    small = density * _series(xp, sa, sx, inside & ~beyond)
    large = density * sa * _fraction(xp, sa, sx, beyond)
    if lower:
        out = xp.where(beyond, 1.0 - large, small)
        none, all_ = 0.0, 1.0
    else:
        out = xp.where(beyond, large, 1.0 - small)
        none, all_ = 1.0, 0.0
    # Edges: P(a, 0) = 0, P(a, ∞) = 1, P(0, x) = 1, P(∞, x) = 0; 0 and 0, or ∞ and ∞, say nothing.
    out = xp.where(inside, out, none)
    out = xp.where((a == 0.0) | (x == math.inf), all_, out)
    bad = (x < 0.0) | (a < 0.0) | xp.isnan(a + x) | ((a == 0.0) & (x == 0.0))
    bad = bad | ((a == math.inf) & (x == math.inf))
    return xp.where(bad, math.nan, out)


# Next to large shapes the series would need more than `LIMIT` terms.
_NEAR_LARGE = 1e6, 0.01


def _by_moves(under: Any, a: Any, x: Any, order: int) -> Any:
    """∂ⁿP/∂aⁿ over D, from ∂P/∂a = -D·(a/x)·G."""
    xp = JetTerms(under, order - 1)
    moved = xp.variable(a)
    level = log_density(xp, moved, x)
    apart, inverse = (x - moved) / moved, 1.0 / moved
    total = inverse * 0.0
    for c in GAMMA_MOVES[::-1]:
        total = total * inverse + functools.reduce(lambda sum_, v: sum_ * apart + v, c[::-1])
    return xp.derivative(-(xp.exp(level - xp.start(level)) * (moved / x) * total))


def _gamma_slope(
    under: Any, a: Any, x: Any, order: int, variate: bool, density: Any = None
) -> Any:
    """∂ⁿP/∂aⁿ, or that over -∂P/∂x = -D·a/x, for n = 1 how a variate moves with its shape.

    `density` gives D from its logarithm, if not the exponential.
    """
    inside, beyond, sa, sx = _regions(under, a, x)
    large, close = _NEAR_LARGE
    near = inside & (sa > large) & (under.abs(sx - sa) < close * sa)
    usual = inside & ~near
    xp = JetTerms(under, order)
    moved = xp.variable(sa)
    # D is kept apart from how it changes: it underflows where the quotient does not.
    level = log_density(xp, moved, sx)
    change = xp.exp(level - xp.start(level))
    below = change * _series(xp, moved, sx, usual & ~beyond)
    above = -(change * moved * _fraction(xp, moved, sx, usual & beyond))
    ratio = under.where(beyond, xp.derivative(above), xp.derivative(below))
    at = under.where(near, sa, large), under.where(near, sx, large)
    ratio = under.where(near, _by_moves(under, *at, order), ratio)
    if variate:
        out = ratio * (-sx / sa)
    elif density is None:
        out = ratio * under.exp(xp.start(level))
    else:
        out = ratio * density(sa, sx, xp.start(level))
    edge = under.where((x == 0.0) & (a > 0.0), 0.0, math.nan)
    if not variate:
        edge = under.where((x == math.inf) & (a > 0.0) & (a < math.inf), 0.0, edge)
    return under.where(inside, out, edge)


def _lower(xp: Any, a: Any, x: Any) -> Any:
    return _incomplete(xp, a, x, True)


def _upper(xp: Any, a: Any, x: Any) -> Any:
    return _incomplete(xp, a, x, False)


def _density(a: Any, x: Any) -> Any:
    """∂P/∂x = x^(a-1)·e^-x/Γ(a)."""

    def formula(xp: Any, a: Any, x: Any) -> Any:
        # 0·log 0 of the exponential distribution, whose density at 0 is 1.
        corner = (x == 0.0) & (a == 1.0)
        found = xp.exp(log_density(xp, a - 1.0, xp.where(corner, 1.0, x), a))
        return xp.where(corner, xp.exp(-x), found)

    return on_arrays(formula, aval_of(x).dtype, a, x)


# Beyond this shape SciPy's 2,000 terms are too few for a tail, which begins for it at 4.5·√a.
_LARGE, _TAIL = 5e4, 4.5
# Temme's uniform expansion ("The asymptotic expansion of the incomplete gamma functions", 1979):
# Taylor coefficients of its first two terms by η, which cancel in closed form near 0.
_TEMME = (
    (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515),
    (-1 / 540, -1 / 288, 1 / 378, -77 / 77760, 1 / 4860),
)


def _tail(a: Any, x: Any, lower: bool) -> Any:
    """P or Q far from x = a, for a so large that two terms are enough."""
    u = (x - a) / a
    half = np.maximum(u - np.log1p(u), 0.0)
    eta = np.copysign(np.sqrt(2 * half), u)
    small = np.abs(eta) < 0.1
    near = [sum(c * eta**k for k, c in enumerate(row)) for row in _TEMME]
    safe, at = np.where(small, 1.0, eta), np.where(small, 1.0, u)
    first = np.where(small, near[0], 1 / at - 1 / safe)
    second = 1 / safe**3 - 1 / at**3 - 1 / at**2 - 1 / (12 * at)
    second = np.where(small, near[1], second)
    rest = np.exp(-a * half) / np.sqrt(2 * math.pi * a) * (first + second / a)
    sign = -1 if lower else 1
    normal = scipys("erfc")(sign * np.copysign(np.sqrt(a * half), u))
    return 0.5 * normal + sign * rest


def _product_error(x: Any, y: Any, rounded: Any) -> Any:
    """x·y less its rounded value, by Dekker's halves (1971)."""
    (a, b), (c, d) = [(h := v * 134217729.0 - (v * 134217729.0 - v), v - h) for v in (x, y)]
    return ((a * c - rounded) + a * d + b * c) + b * d


def _far_density(a: Any, x: Any) -> Any:
    """x^a·e^-x/Γ(a + 1) within some twenty units: its logarithm would be rounded as a number of
    many hundreds. For a from 20 on, in sixteenths, which stay within the exponents of floats."""
    large = a > 20
    small = np.where(large, 1.0, a)
    half, near = np.exp(-0.5 * x), np.minimum(x, 1e5)
    direct = half * near**small / scipys("gamma")(small + 1) * half
    safe = np.where(large, a, 20.0)
    ratio, less = x / safe, safe - x
    product = ratio * safe
    lost = (x - product - _product_error(ratio, safe, product)) / ratio
    back = less - safe
    lost = lost + ((safe - (less - back)) - (x + back))
    inverse = 1 / safe
    square = inverse * inverse
    terms = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    gauss = ratio ** (0.0625 * safe) * np.exp(0.0625 * less)
    for _ in range(3):
        gauss = gauss * gauss
    stirling = np.exp(-inverse * terms) / np.sqrt(2 * math.pi * safe)
    return np.where(large, gauss * gauss * (1 + lost) * stirling, direct)


def _density_of(a: Any, x: Any, level: Any) -> Any:
    """D, whose logarithm `level` is rounded as the large number that it is in tails."""
    far = (level < -20.0) & (level > -760.0) & (a <= _LARGE)
    out = np.array(np.exp(level))
    if np.count_nonzero(far):
        out[far] = _far_density(a[far], x[far])
    return out


def _far(a: Any, x: Any, lower: bool) -> Any:
    """P or Q far from x = a, on the side where it is small."""
    level = log_density(NumpyTerms, a, x)
    counts = level > -760.0
    safe, at = np.where(counts, a, 1.0), np.where(counts, x, 0.5 if lower else 2.0)
    if lower:
        rest = _series(NumpyTerms, safe, at, counts)
    else:
        rest = safe * _fraction(NumpyTerms, safe, at, counts)
    return np.where(counts, _far_density(safe, at) * rest, 0.0)


def _by_scipy(name: str, lower: bool) -> Any:
    fun = by_scipy(name)

    def precise(a: Any, x: Any, out: Any) -> Any:
        # There SciPy takes the exponential of a·log(x) - x - log Γ(a + 1).
        far = (x < 0.8 * a) if lower else (x > 1.25 * a) & (x > 1.5)
        far &= (a > 0) & (a <= _LARGE) & (x > 0) & (x < np.inf)
        if np.count_nonzero(far):
            # What it rounds is less than some ten units where these are small.
            far &= a * np.abs(np.log(np.where(far, x, 1.0))) + x > 20
        if np.count_nonzero(far):
            both = [v[far] for v in np.broadcast_arrays(a, x)]
            out[far] = _far(both[0], both[1], lower)
        return out

    def impl(a: Any, x: Any) -> Any:
        out = fun(a, x)
        if a.dtype == np.float64:
            out = precise(a, x, np.asarray(out))
        large = a > _LARGE
        if np.count_nonzero(a) == a.size and not np.count_nonzero(large):
            return out
        unknown = ((a == 0) & (x == 0)) | ((a == np.inf) & (x == np.inf))
        out = np.where(unknown, np.array(np.nan, x.dtype), out)
        wide = np.asarray(a, np.float64), np.asarray(x, np.float64)
        far = np.abs(wide[1] - wide[0]) >= _TAIL * np.sqrt(wide[0])
        far &= large & (a < np.inf) & (x > 0) & (x < np.inf)
        if np.count_nonzero(far):
            a, x = [v[far] for v in np.broadcast_arrays(*wide)]
            out[far] = _tail(a, x, lower)
        return out

    return impl


igamma = binary(
    "igamma",
    FLOATING,
    _by_scipy("gammainc", True),
    each(
        lambda t, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, a, x: mul(t, _density(a, x)),
    ),
    hlo_formula(_lower),
    kernel=kernel_word("igamma"),
    folds=False,
)
igammac = binary(
    "igammac",
    FLOATING,
    _by_scipy("gammaincc", False),
    each(
        lambda t, a, x: neg(mul(t, igamma_grad_a(a, x))),
        lambda t, a, x: neg(mul(t, _density(a, x))),
    ),
    hlo_formula(_upper),
    kernel=kernel_word("igammac"),
    folds=False,
)


# With p the density of the gamma distribution, ∂P/∂x = p, ∂p/∂a = p·u with u = log x - ψ(a), and so
# ∂ⁿp/∂aⁿ = p·Bₙ. With Rₙ = -(∂ⁿP/∂aⁿ)/p, R₁ is how a variate moves with its shape.


def _by_density(a: Any, x: Any, order: int) -> Any:
    """Bₙ: B₀ = 1, Bₙ = Σ C(n-1, k)·u⁽ᵏ⁾·Bₙ₋₁₋ₖ."""
    dtype = aval_of(a).dtype
    slopes = [sub(log(x), digamma(a))]
    slopes += [neg(polygamma(literal(k, dtype), a)) for k in range(1, order)]
    found: list[Any] = [1.0]
    for n in range(1, order + 1):
        parts = [
            mul(mul(slopes[k], found[n - 1 - k]), float(math.comb(n - 1, k))) for k in range(n)
        ]
        found.append(functools.reduce(add, parts))
    return found[order]


def _slope(a: Any, x: Any, order: int, variate: bool) -> Any:
    """∂ⁿP/∂aⁿ, or Rₙ."""
    if order > 1:
        return igamma_derivative(a, x, order=order, variate=variate)
    return random_gamma_grad(a, x) if variate else igamma_grad_a(a, x)


def _slope_by_a(t: Any, out: Any, a: Any, x: Any, *, order: int, variate: bool) -> Any:
    more = _slope(a, x, order + 1, variate)
    if variate:
        more = sub(more, mul(out, sub(log(x), digamma(a))))
    return mul(t, more)


def _slope_by_x(t: Any, out: Any, a: Any, x: Any, *, order: int, variate: bool) -> Any:
    density = _by_density(a, x, order)
    if not variate:
        return mul(t, mul(_density(a, x), density))
    bend = sub(div(sub(a, literal(1, aval_of(a).dtype)), x), 1.0)
    return neg(mul(t, add(density, mul(out, bend))))


def _slope_op(name: str, order: int, variate: bool) -> Op:
    """The record of the first derivative, under a name of its own."""
    formula = functools.partial(_gamma_slope, order=order, variate=variate)
    return binary(
        name,
        FLOATING,
        by_formula(functools.partial(formula, density=_density_of)),
        each_out(
            functools.partial(_slope_by_a, order=order, variate=variate),
            functools.partial(_slope_by_x, order=order, variate=variate),
        ),
        hlo_formula(formula),
        kernel=kernel_word(name, fine=True),
        folds=False,
    )


igamma_grad_a: Op = _slope_op("igamma_grad_a", 1, variate=False)
random_gamma_grad = _slope_op("random_gamma_grad", 1, variate=True)


def _derivative_type(a: Aval, x: Aval, *, order: int, variate: bool) -> Aval:
    return nary("igamma_derivative", *FLOATING)(a, x)  # type: ignore[no-any-return]


igamma_derivative = Op(
    name="igamma_derivative",
    kind=ELEMENTWISE,
    type=_derivative_type,
    impl=by_formula(_gamma_slope),
    jvp=each_out(_slope_by_a, _slope_by_x),
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=hlo_formula(_gamma_slope),
    kernel=library,
    folds=False,
)


# regularized_incomplete_beta: I_x(a, b) = x^a·(1-x)^b/(a·B(a, b))·F, F the continued fraction
# 1/(1+ d₁/(1+ d₂/(1+ …))), which converges for x < (a + 1)/(a + b + 2); beyond, 1 - I_{1-x}(b, a).


def _beta_fraction(xp: Any, a: Any, b: Any, x: Any, active: Any) -> Any:
    def step(m: Any, fixed: Any, c: Any, d: Any, f: Any) -> Any:
        a, b, x = fixed
        twice = m + m
        even = (b - m) * m * x / ((a + (twice - 1.0)) * (a + twice))
        d, c = 1.0 / _guard(xp, 1.0 + even * d), _guard(xp, 1.0 + even / c)
        f = f * (c * d)
        odd = -((a + m) * (a + b + m)) * x / ((a + twice) * (a + (twice + 1.0)))
        d, c = 1.0 / _guard(xp, 1.0 + odd * d), _guard(xp, 1.0 + odd / c)
        new = f * (c * d)
        return xp.moves((new - f) * 0.25, new), (c, d, new)

    d = 1.0 / _guard(xp, 1.0 - (a + b) * x / (a + 1.0))
    return xp.loop(step, active, (a, b, x), (x * 0.0 + 1.0, d, d), 2000)[2]


def _beta_regions(xp: Any, a: Any, b: Any, x: Any) -> tuple[Any, ...]:
    """Where the formula applies, and operands that are safe elsewhere."""
    inside = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    return inside, xp.where(inside, a, 1.0), xp.where(inside, b, 1.0), xp.where(inside, x, 0.5)


def _beta_inside(xp: Any, a: Any, b: Any, x: Any, swapped: Any, z: Any, active: Any) -> Any:
    p, q = xp.where(swapped, b, a), xp.where(swapped, a, b)
    f = _beta_fraction(xp, p, q, z, active)
    # x^a·(1-x)^b/(p·B(a, b)) by densities at their peaks: logarithms of Γ would cancel.
    both = a + b
    level = log_density(xp, a, both * x) + log_density(xp, b, both * (1.0 - x))
    part = xp.exp(level - log_density(xp, both, both)) * (q / both) * f
    return xp.where(swapped, 1.0 - part, part)


def _betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    inside, sa, sb, sx = _beta_regions(xp, a, b, x)
    swapped = sx > (sa + 1.0) / (sa + sb + 2.0)
    z = xp.where(swapped, 1.0 - sx, sx)
    out = _beta_inside(xp, sa, sb, sx, swapped, z, inside)
    # Edges: the ends of [0, 1]; all mass at 1 for a = ∞ or b = 0, at 0 for b = ∞ or a = 0.
    low = ((a == 0.0) | (b == math.inf)) & (x > 0.0)
    edge = xp.where(low | (x == 1.0), 1.0, 0.0)
    out = xp.where(inside, out, edge)
    bad = (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0) | xp.isnan(a + b + x)
    bad = bad | ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))
    return xp.where(bad, math.nan, out)


def _beta_slope(under: Any, a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    """∂ⁱ⁺ʲI_x/∂aⁱ∂bʲ: jets along a whose coefficients are jets along b."""
    inside, sa, sb, sx = _beta_regions(under, a, b, x)
    swapped = sx > (sa + 1.0) / (sa + sb + 2.0)
    z = under.where(swapped, 1.0 - sx, sx)
    inner = JetTerms(under, orders[1])
    outer = JetTerms(inner, orders[0])
    moved = outer.variable(sa), outer.constant(inner.variable(sb))
    found = _beta_inside(outer, *moved, sx, swapped, z, inside)
    out = inner.derivative(outer.derivative(found))
    edge = under.where((a > 0.0) & (b > 0.0) & ((x == 0.0) | (x == 1.0)), 0.0, math.nan)
    return under.where(inside, out, edge)


def _beta_density(a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    """∂ⁱ⁺ʲ/∂aⁱ∂bʲ of ∂I_x/∂x = x^(a-1)·(1-x)^(b-1)/B(a, b)."""
    one, dtype = literal(1, aval_of(x).dtype), aval_of(x).dtype
    total = add(a, b)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(total))
    density = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))

    @functools.cache
    def slope(i: int, j: int) -> Any:
        """Of the logarithm of the density."""
        order = literal(i + j - 1, dtype)
        both = polygamma(order, total)
        if i and j:
            return both
        own = sub(both, polygamma(order, a if i else b))
        return own if i + j > 1 else add(own, log(x) if i else log1p(neg(x)))

    @functools.cache
    def bell(i: int, j: int) -> Any:
        """Of the density, over the density."""
        if i + j == 0:
            return 1.0
        # One differentiation is that of the exponent, the others are shared out.
        first, (m, n) = (1, 0) if i else (0, 1), (i - 1, j) if i else (i, j - 1)
        parts = [
            mul(mul(slope(first[0] + p, first[1] + q), bell(m - p, n - q)),
                float(math.comb(m, p) * math.comb(n, q)))
            for p in range(m + 1) for q in range(n + 1)
        ]  # fmt: skip
        return functools.reduce(add, parts)

    return mul(exp(sub(density, log_beta)), bell(*orders))


def _more(index: int) -> Any:
    def rule(t: Any, a: Any, b: Any, x: Any, *, orders: tuple[int, int] = (0, 0)) -> Any:
        more = (orders[0] + 1, orders[1]) if index == 0 else (orders[0], orders[1] + 1)
        return mul(t, betainc_derivative(a, b, x, orders=more))

    return rule


def _beta_by_x(t: Any, a: Any, b: Any, x: Any, *, orders: tuple[int, int] = (0, 0)) -> Any:
    return mul(_beta_density(a, b, x, orders), t)


_scipy_beta = by_scipy("betainc")


def _beta_impl(a: Any, b: Any, x: Any) -> Any:
    a, b, x = np.broadcast_arrays(a, b, x)
    # In float64: SciPy's float32 loop underflows within, at 1e-36 of the result.
    out = _scipy_beta(*[np.asarray(v, np.float64) for v in (a, b, x)]).astype(x.dtype)
    edge = ~((a > 0) & (b > 0) & (a < np.inf) & (b < np.inf) & (x > 0) & (x < 1))
    if edge.any():
        dtype = x.dtype
        wide = [np.asarray(v, np.float64) for v in (a, b, x)]
        out = np.where(edge, _betainc(NumpyTerms, *wide).astype(dtype), out)
    return out


def _beta_type(a: Aval, b: Aval, x: Aval) -> Aval:
    return nary("regularized_incomplete_beta", *FLOATING)(a, b, x)  # type: ignore[no-any-return]


regularized_incomplete_beta = Op(
    name="regularized_incomplete_beta",
    kind=ELEMENTWISE,
    type=_beta_type,
    impl=_beta_impl,
    jvp=each(_more(0), _more(1), _beta_by_x),
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=hlo_formula(_betainc),
    kernel=kernel_word("betainc"),
    folds=False,
)


def _beta_derivative_type(a: Aval, b: Aval, x: Aval, *, orders: tuple[int, int]) -> Aval:
    return nary("betainc_derivative", *FLOATING)(a, b, x)  # type: ignore[no-any-return]


betainc_derivative = Op(
    name="betainc_derivative",
    kind=ELEMENTWISE,
    type=_beta_derivative_type,
    impl=by_formula(_beta_slope),
    jvp=each(_more(0), _more(1), _beta_by_x),
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=hlo_formula(_beta_slope),
    kernel=library,
    folds=False,
)
