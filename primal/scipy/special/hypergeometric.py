"""The hypergeometric functions ₁F₁ and ₂F₁ of real arguments."""

from __future__ import annotations

import functools
from typing import Any

import primal.numpy as jnp
from primal.api import jvp
from primal.api.control import custom_jvp, while_loop
from primal.api.control.symbolic import SymbolicZero
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered_as
from primal.ops import special as ops
from primal.scipy.operands import epsilon, real_inexact, rounded_once
from primal.scipy.special.doubles import in_doubles
from primal.scipy.special.gammas import gammasgn

MAX_TERMS = 10_000
"""Terms of a series at most; what has not converged by then is nan."""


def _summed(ratio: Any, slopes: Any, like: Any) -> tuple[Any, ...]:
    """Σ tₖ with t₀ = 1 and tₖ = tₖ₋₁·ratio(k), and its derivatives by parameters.

    slopes(k) are ratio(k) · d log ratio(k) / d parameter. Ends when all terms, of the derivatives
    too, are below the last digit: where the sum is a polynomial its derivatives are none.
    """
    small = epsilon(like) / 4

    def unsettled(term: Any, total: Any, by: Any, totals: Any) -> Any:
        out = jnp.abs(term) > small * jnp.abs(total)
        for b, t in zip(by, totals, strict=True):
            out = out | (jnp.abs(b) > small * jnp.maximum(jnp.abs(t), jnp.abs(total)))
        return out

    def going(state: Any) -> Any:
        k, *rest = state
        return (k < MAX_TERMS) & jnp.any(unsettled(*rest))

    def step(state: Any) -> Any:
        k, term, total, by, totals = state
        r = ratio(k)
        # The product rule, with the ratio's slope not divided by the ratio, which may be 0.
        by = tuple([b * r + term * s for b, s in zip(by, slopes(k), strict=True)])
        term = term * r
        totals = tuple([t + b for t, b in zip(totals, by, strict=True)])
        return k + 1, term, total + term, by, totals

    one = jnp.ones_like(like)
    zeros = tuple([jnp.zeros_like(like) for _ in slopes(jnp.ones((), like.dtype))])
    _, term, total, by, totals = while_loop(
        going, step, (jnp.ones((), like.dtype), one, one, zeros, zeros)
    )
    nan = unsettled(term, total, by, totals)
    return tuple([jnp.where(nan, jnp.nan, v) for v in (total, *totals)])


def _forwards(fun: Any) -> Any:
    """An elementwise function with a loop inside, for derivatives of any order and both modes.

    Its slopes by each argument are taken in forward mode and are functions of the same kind.
    """
    function = custom_jvp(fun)

    def rule(primals: Any, tangents: Any) -> Any:
        out = function(*primals)
        moved = [jnp.zeros_like(v) for v in out]
        for i, tangent in enumerate(tangents):
            if isinstance(tangent, SymbolicZero):
                continue
            slopes = _slopes(fun, i)(*primals)
            moved = [m + s * tangent for m, s in zip(moved, slopes, strict=True)]
        return out, tuple(moved)

    function.defjvp(rule, symbolic_zeros=True)
    return function


@functools.cache
def _slopes(fun: Any, by: int) -> Any:
    def slopes(*xs: Any) -> Any:
        units = [jnp.full_like(x, i == by) for i, x in enumerate(xs)]
        return jvp(fun, xs, tuple(units))[1]

    return _forwards(slopes)


@_forwards
def _series_1f1(a: Any, b: Any, x: Any) -> tuple[Any, ...]:
    """Value and derivatives by a and b, for x ≥ 0."""
    return _summed(
        lambda k: (a + k - 1) / (b + k - 1) * x / k,
        lambda k: (
            x / k / (b + k - 1),
            -(a + k - 1) / (b + k - 1) ** 2 * x / k,
        ),
        a + b + x,
    )


@custom_jvp
def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    # Kummer: F(a, b, x) = eˣ F(b - a, b, -x). The series of positive x does not alternate.
    low = x < 0
    value = _series_1f1(jnp.where(low, b - a, a), b, jnp.abs(x))[0]
    return jnp.where(low, jnp.exp(jnp.where(low, x, 0)) * value, value)


def _slopes_1f1(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """The derivatives by a and b of the series for |x|, and what it is multiplied by."""
    low = x < 0
    _, by_a, by_b = _series_1f1(jnp.where(low, b - a, a), b, jnp.abs(x))
    return by_a, by_b, jnp.exp(jnp.where(low, x, 0))


def _hyp1f1_by_a(da: Any, _: Any, a: Any, b: Any, x: Any) -> Any:
    by_a, _, scale = _slopes_1f1(a, b, x)
    return da * jnp.where(x < 0, -scale * by_a, by_a)


def _hyp1f1_by_b(db: Any, _: Any, a: Any, b: Any, x: Any) -> Any:
    by_a, by_b, scale = _slopes_1f1(a, b, x)
    return db * jnp.where(x < 0, scale * (by_a + by_b), by_b)


_hyp1f1.defjvps(
    _hyp1f1_by_a, _hyp1f1_by_b, lambda t, _, a, b, x: t * (a / b * _hyp1f1(a + 1, b + 1, x))
)


@remembered_as(in_doubles("hyp1f1", positive=True, of_double=True))
@rounded_once
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's function ₁F₁(a; b; x) = Σ (a)ₖ xᵏ / ((b)ₖ k!), by its series.

    Differentiable in all arguments, any number of times. NIST DLMF 13.2, 13.3.

    >>> hyp1f1(1.0, 1.0, jnp.array([0.0, 1.0]))
    Array([1.      , 2.718282], dtype=float32)
    """
    return _hyp1f1(*jnp.broadcast_arrays(*real_inexact("hyp1f1", a, b, x, error=ValueError)))


@custom_jvp
def _series_2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    return _summed(
        lambda k: (a + k - 1) * (b + k - 1) / (c + k - 1) * x / k, lambda k: (), a + b + c + x
    )[0]


@_forwards
def _series_2f1_with_slopes(a: Any, b: Any, c: Any, x: Any) -> Any:
    def slopes(k: Any) -> tuple[Any, ...]:
        p, q, r = a + k - 1, b + k - 1, c + k - 1
        return q / r * x / k, p / r * x / k, -p * q / r**2 * x / k, p * q / r / k

    return _summed(lambda k: (a + k - 1) * (b + k - 1) / (c + k - 1) * x / k, slopes, a + b + c + x)


@_series_2f1.defjvp
def _series_2f1_jvp(primals: Any, tangents: Any) -> Any:
    out, *slope = _series_2f1_with_slopes(*primals)
    return out, sum([d * v for d, v in zip(slope, tangents, strict=True)])


def _gauss(a: Any, b: Any, c: Any) -> Any:
    """F(a, b; c; 1) = Γ(c) Γ(c - a - b) / (Γ(c - a) Γ(c - b))."""
    return _ratio(c, c - a - b, c - a, c - b)


def _poles(x: Any) -> Any:
    """Where Γ has none."""
    return (x <= 0) & (jnp.floor(x) == x)


def _product(p: Any, q: Any, r: Any, s: Any) -> Any:
    """Γ(p) Γ(q) / (Γ(r) Γ(s)) away from poles."""
    sign = gammasgn(p) * gammasgn(q) * gammasgn(r) * gammasgn(s)
    return sign * jnp.exp(ops.lgamma(p) + ops.lgamma(q) - ops.lgamma(r) - ops.lgamma(s))


@custom_jvp
def _ratio(p: Any, q: Any, r: Any, s: Any) -> Any:
    """Γ(p) Γ(q) / (Γ(r) Γ(s)); 0 at the poles of the denominator."""
    pole = _poles(r) | _poles(s)
    return jnp.where(pole, 0, _product(p, q, jnp.where(pole, 1, r), jnp.where(pole, 1, s)))


@_ratio.defjvp
def _ratio_jvp(primals: Any, tangents: Any) -> Any:
    p, q, r, s = primals
    dp, dq, dr, ds = tangents
    at_r, at_s = _poles(r), _poles(s)
    out = _ratio(p, q, r, s)
    away = [jnp.where(at, 1, v) for at, v in ((at_r, r), (at_s, s))]
    rate = ops.digamma(p) * dp + ops.digamma(q) * dq
    rate = rate - ops.digamma(away[0]) * dr - ops.digamma(away[1]) * ds
    slope = jnp.where(at_r | at_s, 0, out) * rate
    # d(1/Γ)/dx at x = -n is (-1)ⁿ n!.
    for at, v, dv, other in ((at_r & ~at_s, r, dr, away[1]), (at_s & ~at_r, s, ds, away[0])):
        n = jnp.where(at, -v, 0)
        sign = jnp.where(n % 2 == 0, 1.0, -1.0).astype(n.dtype)
        slope = slope + jnp.where(at, sign * _product(p, q, other, 1.0) * _factorial(n), 0) * dv
    return out, slope


def _factorial(n: Any) -> Any:
    return jnp.exp(ops.lgamma(n + 1))


def _by_cases(a: Any, b: Any, c: Any, x: Any) -> Any:
    # Pfaff: F(a, b; c; x) = (1 - x)^-a F(a, c - b; c; x/(x - 1)) brings x < 0 into (0, 1).
    low = x < 0
    safe = jnp.where(low, x, 0)
    z = jnp.where(low, safe / (safe - 1), x)
    p, q = a, jnp.where(low, c - b, b)
    front = jnp.where(low, (1 - safe) ** -a, 1)
    # Near 1 by 1 - z where c - a - b is no integer; otherwise the series is summed all the way.
    gap = c - p - q
    steep = (z > 0.9) & (z < 1) & (jnp.abs(gap - jnp.round(gap)) > 1e-3)
    inside = jnp.abs(z) < 1
    near = _series_2f1(p, q, c, jnp.where(inside & ~steep, z, 0))
    far = _near_one(steep, p, q, c, z)
    ends = (_ends(a) | _ends(b)) & (x > 0)
    finite = (z == 1) & (gap > 0)
    at_one = jnp.where(finite, _gauss(*_where(finite, p, q, c)), jnp.inf)
    out = front * jnp.where(steep, far, jnp.where(z == 1, at_one, near))
    out = jnp.where(ends, _polynomial(a, b, c, jnp.where(ends, x, 0)), out)
    return jnp.where((x > 1) & ~ends, jnp.inf, out)


def _where(mask: Any, p: Any, q: Any, c: Any) -> tuple[Any, ...]:
    """Parameters where needed, elsewhere some at which nothing is infinite, nor a derivative."""
    return tuple([jnp.where(mask, v, v0) for v, v0 in ((p, 0.25), (q, 0.25), (c, 1.25))])


def _near_one(steep: Any, p: Any, q: Any, c: Any, z: Any) -> Any:
    """Through 1 - z, DLMF 15.8.4."""
    p, q, c = _where(steep, p, q, c)
    y = jnp.where(steep, 1 - z, 0.5)
    g = c - p - q
    return _gauss(p, q, c) * _series_2f1(p, q, 1 - g, y) + (
        y**g * _ratio(c, -g, p, q) * _series_2f1(c - p, c - q, 1 + g, y)
    )


def _ends(a: Any) -> Any:
    """Whether the series is a polynomial."""
    return (a <= 0) & (jnp.floor(a) == a) & (a > -MAX_TERMS)


def _polynomial(a: Any, b: Any, c: Any, x: Any) -> Any:
    safe = (_ends(a) | _ends(b)) & (x != 0)
    return _series_2f1(jnp.where(safe, a, 0), b, c, x)


@custom_jvp
def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    return _by_cases(a, b, c, x)


def _hyp2f1_jvp(primals: Any, tangents: Any) -> Any:
    a, b, c, x = primals
    *parameters, dx = tangents
    if all(isinstance(t, SymbolicZero) for t in parameters):
        out, slope = _hyp2f1(*primals), jnp.zeros_like(x)
    else:
        moved = [jnp.zeros_like(x) if isinstance(t, SymbolicZero) else t for t in parameters]
        out, slope = jvp(lambda p, q, r: _by_cases(p, q, r, x), (a, b, c), tuple(moved))
    if not isinstance(dx, SymbolicZero):
        slope = slope + dx * a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x)
    return out, slope.astype(out.dtype)


_hyp2f1.defjvp(_hyp2f1_jvp, symbolic_zeros=True)


@rounded_once
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's function ₂F₁(a, b; c; x) = Σ (a)ₖ (b)ₖ xᵏ / ((c)ₖ k!) for x ≤ 1, inf beyond.

    By its series, Pfaff's transformation for x < 0, and 1 - x near 1. Differentiable in all
    arguments, any number of times. NIST DLMF 15.2, 15.4, 15.8.

    >>> hyp2f1(1.0, 1.0, 2.0, jnp.array([0.0, 0.5]))
    Array([1.       , 1.3862946], dtype=float32)
    """
    return _hyp2f1(*jnp.broadcast_arrays(*real_inexact("hyp2f1", a, b, c, x)))


__all__ = ["hyp1f1", "hyp2f1"]
