"""Incomplete gamma and beta functions.

P(a, x) = γ(a, x)/Γ(a) (igamma), Q = 1 - P (igammac), ∂P/∂a (igamma_grad_a), the derivative of a
gamma variate by its shape (random_gamma_grad), and I_x(a, b) (regularized_incomplete_beta).

With D = x^a·e^-x/Γ(a + 1), the power series P = D·Σ cₙ, cₙ = x·cₙ₋₁/(a + n), serves up to
x = max(a, 1); beyond, the continued fraction Q = D·a·K by Lentz's method in Thompson and Barnett's
form. Both are differentiated by a along with their recurrences.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, Op, by_kind, library
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import add, div, exp, log, log1p, mul, neg, sub
from primal.ops.elementwise.make import binary
from primal.ops.special.gamma import digamma, lgamma
from primal.ops.special.terms import NumpyTerms, by_formula, by_scipy, hlo_formula
from primal.ops.spread import broadcast_to
from primal.ops.types import FLOATING, NOT_LINEAR, nary, shape_of
from primal.ops.words import each, each_out

# Near x = a some 6·√a terms are needed: enough for a = 10⁶ in float32.
LIMIT = 10000
LOG_TWO_PI = math.log(2 * math.pi)


def _log_density(xp: Any, a: Any, x: Any) -> Any:
    """log(x^a·e^-x/Γ(a + 1)), without a·log(x) and log Γ cancelling each other for large a."""
    large = a > 20.0
    safe = xp.where(large, a, 20.0)
    ratio = (x - safe) / safe
    inverse = 1.0 / safe
    square = inverse * inverse
    stirling = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    # log1p(-1) at x = 0 is -inf, as it should be.
    by_stirling = safe * (xp.log1p(ratio) - ratio) - 0.5 * (LOG_TWO_PI + xp.log(safe)) - stirling
    small = xp.where(large, 1.0, a)
    return xp.where(large, by_stirling, small * xp.log(x) - x - xp.lgamma(small + 1.0))


def _series(xp: Any, a: Any, x: Any, active: Any) -> tuple[Any, Any]:
    """Σ cₙ and Σ cₙ·hₙ, where hₙ = Σ 1/(a + k) up to n: the series and minus its derivative."""
    zero = x * 0.0
    one = zero + 1.0

    def step(i: Any, c: Any, h: Any, total: Any, weighted: Any) -> Any:
        shift = a + i
        c, h = c * x / shift, h + 1.0 / shift
        total, weighted = total + c, weighted + c * h
        more = (c > total * (xp.eps / 4)) | (c * h > weighted * (xp.eps / 4))
        return more, (c, h, total, weighted)

    _, _, total, weighted = xp.loop(step, active, (one, zero, one, zero), LIMIT)
    return total, weighted


def _fraction(xp: Any, a: Any, x: Any, active: Any) -> tuple[Any, Any]:
    """K = 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - …))) and ∂(log K)/∂a."""
    tiny = 1e-30
    zero = x * 0.0
    b0 = x + 1.0 - a
    b0 = xp.where(xp.abs(b0) < tiny, tiny, b0)

    # K is the product of c·d over the steps, c kept as its inverse r; dots are derivatives by a.
    def step(i: Any, r: Any, rdot: Any, d: Any, ddot: Any, k: Any, slope: Any) -> Any:
        num, b = i * (a - i), x + 1.0 - a + 2.0 * i
        down, downdot = b + num * d, i * d + num * ddot - 1.0
        c, cdot = b + num * r, i * r + num * rdot - 1.0
        down = xp.where(xp.abs(down) < tiny, tiny, down)
        c = xp.where(xp.abs(c) < tiny, tiny, c)
        d, r = 1.0 / down, 1.0 / c
        factor, change = c * d, cdot * r - downdot * d
        k, slope = k * factor, slope + change
        more = (xp.abs(factor - 1.0) > xp.eps) | (xp.abs(change) > xp.eps * xp.abs(slope))
        return more, (r, -cdot * r * r, d, -downdot * d * d, k, slope)

    d = 1.0 / b0
    _, _, _, _, k, slope = xp.loop(step, active, (zero, zero, d, d * d, d, d), LIMIT)
    return k, slope


def _regions(xp: Any, a: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Where the formulas apply, where the fraction does, and operands that are safe elsewhere."""
    inside = (x > 0.0) & (a > 0.0) & (x < math.inf) & (a < math.inf)
    beyond = inside & (x > 1.0) & (x > a)
    return inside, beyond, xp.where(inside, a, 1.0), xp.where(inside, x, 0.5)


def _incomplete(xp: Any, a: Any, x: Any, lower: bool) -> Any:
    inside, beyond, sa, sx = _regions(xp, a, x)
    density = xp.exp(_log_density(xp, sa, sx))
    total, _ = _series(xp, sa, sx, inside & ~beyond)
    k, _ = _fraction(xp, sa, sx, beyond)
    small, large = density * total, density * sa * k
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


def _gamma_slope(xp: Any, a: Any, x: Any, variate: bool) -> Any:
    """∂P/∂a, or divided by -∂P/∂x = -D·a/x: how a variate moves with its shape."""
    inside, beyond, sa, sx = _regions(xp, a, x)
    total, weighted = _series(xp, sa, sx, inside & ~beyond)
    k, slope = _fraction(xp, sa, sx, beyond)
    digamma = xp.digamma(sa)
    # Of the series: D·(Σ cₙ·(log x - ψ(a + 1)) - Σ cₙ·hₙ), where ψ(a + 1) = ψ(a) + 1/a.
    series = (xp.log(sx) - digamma - 1.0 / sa) * total - weighted
    # Of the fraction: -∂Q/∂a, where Q = D·a·K and ∂log(D·a)/∂a = log x - ψ(a).
    fraction = -(xp.log(sx) - digamma + slope) * k * sa
    ratio = xp.where(beyond, fraction, series)
    factor = -sx / sa if variate else xp.exp(_log_density(xp, sa, sx))
    out = ratio * factor
    edge = xp.where((x == 0.0) & (a > 0.0), 0.0, math.nan)
    if not variate:
        edge = xp.where((x == math.inf) & (a > 0.0) & (a < math.inf), 0.0, edge)
    return xp.where(inside, out, edge)


def _lower(xp: Any, a: Any, x: Any) -> Any:
    return _incomplete(xp, a, x, True)


def _upper(xp: Any, a: Any, x: Any) -> Any:
    return _incomplete(xp, a, x, False)


def _density(a: Any, x: Any) -> Any:
    """∂P/∂x = x^(a-1)·e^-x/Γ(a)."""
    one = literal(1, aval_of(x).dtype)
    return exp(sub(add(neg(x), mul(sub(a, one), log(x))), lgamma(a)))


_scipy_lower, _scipy_upper = by_scipy("gammainc"), by_scipy("gammaincc")


def _edges(fun: Any) -> Any:
    def impl(a: Any, x: Any) -> Any:
        unknown = ((a == 0) & (x == 0)) | ((a == np.inf) & (x == np.inf))
        return np.where(unknown, np.array(np.nan, x.dtype), fun(a, x))

    return impl


igamma = binary(
    "igamma",
    FLOATING,
    _edges(_scipy_lower),
    each(
        lambda t, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, a, x: mul(t, _density(a, x)),
    ),
    hlo_formula(_lower),
    kernel=library,
)
igammac = binary(
    "igammac",
    FLOATING,
    _edges(_scipy_upper),
    each(
        lambda t, a, x: neg(mul(t, igamma_grad_a(a, x))),
        lambda t, a, x: neg(mul(t, _density(a, x))),
    ),
    hlo_formula(_upper),
    kernel=library,
)


def _slope_of_p(xp: Any, a: Any, x: Any) -> Any:
    return _gamma_slope(xp, a, x, variate=False)


def _slope_of_variate(xp: Any, a: Any, x: Any) -> Any:
    return _gamma_slope(xp, a, x, variate=True)


def _no_slope_by_a(name: str) -> Any:
    def rule(t: Any, a: Any, x: Any) -> Any:
        raise NotImplementedError(
            f"[{name}] expected a derivative by x alone, got one by a: second derivatives by a are "
            "not built."
        )

    return rule


# With p the density of the gamma distribution, ∂P/∂x = p and ∂ log p/∂a = log x - ψ(a); a variate
# moves by r = -(∂P/∂a)/p.
igamma_grad_a: Op = binary(
    "igamma_grad_a",
    FLOATING,
    by_formula(_slope_of_p),
    each(
        _no_slope_by_a("igamma_grad_a"),
        lambda t, a, x: mul(t, mul(_density(a, x), sub(log(x), digamma(a)))),
    ),
    hlo_formula(_slope_of_p),
    kernel=library,
)
random_gamma_grad = binary(
    "random_gamma_grad",
    FLOATING,
    by_formula(_slope_of_variate),
    each_out(
        lambda t, out, a, x: _no_slope_by_a("random_gamma_grad")(t, a, x),
        lambda t, out, a, x: mul(
            t,
            sub(
                sub(digamma(a), log(x)),
                mul(out, sub(div(sub(a, literal(1, aval_of(a).dtype)), x), 1.0)),
            ),
        ),
    ),
    hlo_formula(_slope_of_variate),
    kernel=library,
)


# regularized_incomplete_beta: I_x(a, b) = x^a·(1-x)^b/(a·B(a, b))·F, F the continued fraction
# 1/(1+ d₁/(1+ d₂/(1+ …))), which converges for x < (a + 1)/(a + b + 2); beyond, 1 - I_{1-x}(b, a).


def _beta_fraction(xp: Any, a: Any, b: Any, x: Any, active: Any) -> Any:
    tiny = 1e-30

    def guard(v: Any) -> Any:
        return xp.where(xp.abs(v) < tiny, tiny, v)

    def step(m: Any, c: Any, d: Any, f: Any) -> Any:
        twice = m + m
        even = m * (b - m) * x / ((a + twice - 1.0) * (a + twice))
        d, c = 1.0 / guard(1.0 + even * d), guard(1.0 + even / c)
        f = f * c * d
        odd = -(a + m) * (a + b + m) * x / ((a + twice) * (a + twice + 1.0))
        d, c = 1.0 / guard(1.0 + odd * d), guard(1.0 + odd / c)
        factor = c * d
        return xp.abs(factor - 1.0) > xp.eps, (c, d, f * factor)

    one = x * 0.0 + 1.0
    d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0))
    _, _, f = xp.loop(step, active, (one, d, d), 2000)
    return f


def _betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    inside = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    sa, sb, sx = xp.where(inside, a, 1.0), xp.where(inside, b, 1.0), xp.where(inside, x, 0.5)
    swapped = sx > (sa + 1.0) / (sa + sb + 2.0)
    p, q = xp.where(swapped, sb, sa), xp.where(swapped, sa, sb)
    z = xp.where(swapped, 1.0 - sx, sx)
    f = _beta_fraction(xp, p, q, z, inside)
    log_beta = xp.lgamma(sa) + xp.lgamma(sb) - xp.lgamma(sa + sb)
    head = xp.exp(sa * xp.log(sx) + sb * xp.log1p(-sx) - log_beta) / p
    out = xp.where(swapped, 1.0 - head * f, head * f)
    # Edges: the ends of [0, 1]; all mass at 1 for a = ∞ or b = 0, at 0 for b = ∞ or a = 0.
    low = ((a == 0.0) | (b == math.inf)) & (x > 0.0)
    edge = xp.where(low | (x == 1.0), 1.0, 0.0)
    out = xp.where(inside, out, edge)
    bad = (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0) | xp.isnan(a + b + x)
    bad = bad | ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))
    return xp.where(bad, math.nan, out)


def _betainc_jvp(primals: Any, tangents: Any) -> Any:
    a, b, x = primals
    if tangents[0] is not ZERO or tangents[1] is not ZERO:
        raise ValueError(
            "[regularized_incomplete_beta] expected a derivative by x only: Betainc gradient with "
            "respect to a and b not supported. Stop them with lax.stop_gradient."
        )
    out = regularized_incomplete_beta(a, b, x)
    t = tangents[2]
    if t is ZERO:
        return out, ZERO
    one = literal(1, aval_of(x).dtype)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    log_density = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return out, broadcast_to(mul(exp(sub(log_density, log_beta)), t), shape_of(out))


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
    jvp=_betainc_jvp,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=hlo_formula(_betainc),
    kernel=library,
)
