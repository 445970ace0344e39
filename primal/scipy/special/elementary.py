"""Logarithms, entropies and power transforms, with their limits where a factor is 0."""

from __future__ import annotations

import math
from typing import Any

import primal.numpy as jnp
from primal import nn
from primal.api.control import custom_jvp
from primal.base.expansions import ODD_PARTS
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered, remembered_as
from primal.ops.elementwise import logistic
from primal.scipy.operands import digits, horner, inexact, real_inexact, rounded_once, strong
from primal.scipy.special.doubles import in_doubles


@remembered
def expit(x: ArrayLike) -> Array:
    """The logistic function 1 / (1 + exp(-x)).

    Element by element; operands broadcast, and integers count as floats.

    >>> expit(jnp.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return logistic(*inexact("expit", x))


@custom_jvp
def _logit(x: Any) -> Any:
    one = x.dtype.type(1) if x.ndim else 1  # arrays give a strong type
    less = one - x
    odds = x / less
    # Next to 1 the odds are rounded: the logarithm is scaled by how far they are from 1 in truth,
    # (2x - 1)/(1 - x), over how far rounded, as Kahan has log1p by log.
    middle = (x > 0.25) & (x < 0.75) & (odds != 1)
    rounded = jnp.where(middle, (odds - one) * less, one)
    return jnp.log(odds) * jnp.where(middle, (2 * x - one) / rounded, one)


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _logit(x), dx / (x * (1 - x))  # the chain rule has ∞·0 at 0 and 1


@remembered
@rounded_once
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of `expit`; nan outside [0, 1].

    Element by element; operands broadcast, and integers count as floats.

    >>> logit(jnp.array([0.5, 1.0]))
    Array([ 0., inf], dtype=float32)
    """
    (x,) = inexact("logit", x)
    return _logit(x)


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    zero = (x == 0) & (y == y)
    return jnp.where(zero, jnp.zeros_like(x * y), x * jnp.log(jnp.where(zero, jnp.ones_like(y), y)))


def _share(x: Any, base: Any) -> Any:
    """x / base, the slope of x·log(base) by the base: 0 where x is, as the product is for all."""
    zero = (x == 0) & (base == base)
    return x / jnp.where(zero, jnp.ones_like(base), base)


_xlogy.defjvps(lambda t, _, x, y: t * jnp.log(y), lambda t, _, x, y: t * _share(x, y))


@remembered
@rounded_once
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x·log(y), and 0 where x is 0; nan where either is.

    Element by element; operands broadcast, and integers count as floats.

    >>> xlogy(jnp.array([0.0, 2.0]), 0.0)
    Array([  0., -inf], dtype=float32)
    """
    return _xlogy(*inexact("xlogy", x, y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    zero = (x == 0) & (y == y)
    safe = jnp.where(zero, jnp.zeros_like(y), y)
    return jnp.where(zero, jnp.zeros_like(x * y), x * jnp.log1p(safe))


_xlog1py.defjvps(
    lambda t, _, x, y: t * jnp.log1p(y), lambda t, _, x, y: t * _share(x, 1 + y)
)


@remembered
@rounded_once
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x·log(1 + y), and 0 where x is 0; nan where either is.

    Element by element; operands broadcast, and integers count as floats.

    >>> xlog1py(jnp.array([0.0, 2.0]), -1.0)
    Array([  0., -inf], dtype=float32)
    """
    return _xlog1py(*inexact("xlog1py", x, y))


@custom_jvp
def _xlogx(x: Any) -> Any:
    return _xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _xlogx(x), dx * (jnp.log(x) + 1)


@remembered
@rounded_once
def entr(x: ArrayLike) -> Array:
    """-x·log(x); 0 at 0, -inf below.

    Element by element; operands broadcast, and integers count as floats.

    >>> entr(jnp.array([0.0, 1.0, -1.0]))
    Array([ -0.,  -0., -inf], dtype=float32)
    """
    (x,) = real_inexact("entr", x, error=ValueError)
    below = x < 0
    safe = jnp.where(below, 1.0, x)
    return jnp.where(below, -jnp.inf, -_xlogx(safe))


@remembered_as(in_doubles("rel_entr", positive=True, of_double=True))
@rounded_once
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p·log(p / q); 0 where p is 0 and q is not negative, inf where either is negative, or q is 0.

    Element by element; operands broadcast, and integers count as floats.

    >>> rel_entr(jnp.array([0.0, 1.0]), jnp.array([1.0, 0.0]))
    Array([ 0., inf], dtype=float32)
    """
    p, q = real_inexact("rel_entr", p, q, error=ValueError)
    p, q = strong(p, q) if p.ndim else (p, q)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    log = _rel(jnp.where(both, p, 1), jnp.where(both, q, 1))
    return jnp.where(both, log, jnp.where(none, jnp.zeros_like(log), jnp.full_like(log, jnp.inf)))


@custom_jvp
def _rel(p: Any, q: Any) -> Any:
    # Not p·log p - p·log q, which cancels, and overflows before the result does.
    return p * _log_ratio(p, q)


_rel.defjvps(lambda t, _, p, q: t * (_log_ratio(p, q) + 1), lambda t, _, p, q: t * -(p / q))


@custom_jvp
def _kl(p: Any, q: Any) -> Any:
    # log(1 + r) - r, by its series in z = r/(2 + r) where they are close: r = (q - p)/p.
    apart = q - p
    near = _close(p, q)
    z = jnp.where(near, (0.5 * apart) / (0.5 * q + 0.5 * p), 0)
    series = z * z * z * horner(ODD_PARTS[: digits(p, 8, 17)], z * z)
    return jnp.where(near, z * apart - p * series, p * _log_ratio(p, q) + apart)


def _close(p: Any, q: Any) -> Any:
    return (p > 0.5 * q) & (q > 0.5 * p)


def _log_ratio(p: Any, q: Any) -> Any:
    """log(p/q) of positive numbers, whose quotient may be none, or near 1."""
    near, ratio = _close(p, q), p / q
    held = (ratio > float(jnp.finfo(ratio.dtype).tiny)) & (ratio < jnp.inf)
    far = jnp.where(held, jnp.log(jnp.where(held, ratio, 1)), jnp.log(p) - jnp.log(q))
    return jnp.where(near, jnp.log1p(jnp.where(near, (p - q) / q, 0)), far)


_kl.defjvps(lambda t, _, p, q: t * _log_ratio(p, q), lambda t, _, p, q: t * ((q - p) / q))


@remembered
@rounded_once
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p·log(p / q) - p + q, a term of the Kullback-Leibler divergence.

    Element by element; operands broadcast, and integers count as floats.

    >>> kl_div(jnp.array([0.0, 1.0]), jnp.array([1.0, 1.0]))
    Array([1., 0.], dtype=float32)
    """
    p, q = real_inexact("kl_div", p, q, error=ValueError)
    p, q = strong(p, q) if p.ndim else (p, q)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    inside = _kl(jnp.where(both, p, 1), jnp.where(both, q, 1))
    edge = jnp.where(none, jnp.zeros_like(inside), jnp.full_like(inside, jnp.inf))
    return jnp.where(both, inside, edge - p + q)


@remembered
@rounded_once
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x^λ - 1) / λ, and log(x) where λ is 0 (Box and Cox, 1964).

    Element by element; operands broadcast, and integers count as floats.

    >>> boxcox(jnp.array([2.0, 2.0]), jnp.array([0.0, 2.0]))
    Array([0.6931472, 1.5      ], dtype=float32)
    """
    x, lmbda = jnp.broadcast_arrays(*inexact("boxcox", x, lmbda))
    return _transformed(x, jnp.zeros_like(x), jnp.log(x), lmbda)


@remembered
@rounded_once
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """((1 + x)^λ - 1) / λ, and log(1 + x) where λ is 0.

    Element by element; operands broadcast, and integers count as floats.

    >>> boxcox1p(jnp.array([1.0, 1.0]), jnp.array([0.0, 2.0]))
    Array([0.6931472, 1.5      ], dtype=float32)
    """
    x, lmbda = jnp.broadcast_arrays(*inexact("boxcox1p", x, lmbda))
    high = 1 + x
    large = jnp.abs(x) > 1
    low = jnp.where(large, 1 - (high - x), x - (high - 1))
    low = jnp.where(jnp.isfinite(high), low, 0)
    return _transformed(high, low, jnp.log1p(x), lmbda)


@custom_jvp
def _transformed(high: Any, low: Any, log: Any, lmbda: Any) -> Any:
    """(b^λ - 1) / λ of a base b = high + low, whose logarithm is `log`."""
    # exp would multiply the rounding of λ·log by that number: 84 units in float64.
    far = _is_far(log, lmbda)
    power, by = _power(high, low, log, lmbda), jnp.where(far, lmbda, 1)
    pole = (lmbda == 0) & jnp.isinf(log)
    product = jnp.where(far | pole, 0, lmbda * log)
    # What the next term, product² / 6, adds is rounded away.
    small = jnp.abs(product) < math.sqrt(float(jnp.finfo(log.dtype).eps)) / 4
    safe = jnp.where(small, 1, lmbda)
    near = jnp.where(small, log * (1 + product / 2), jnp.expm1(product) / safe)
    return jnp.where(far, (power - 1) / by, near)


def _is_far(log: Any, lmbda: Any) -> Any:
    return jnp.abs(lmbda * log) > 1


def _power(high: Any, low: Any, log: Any, by: Any) -> Any:
    """The base to a power; what 1 + x was rounded by counts beside an exponent that is large."""
    part = jnp.where(low == 0, 0, by * (low / high))
    return high**by * jnp.where(part == 0, 1, jnp.exp(part))


def _slope_by_base(t: Any, out: Any, high: Any, low: Any, log: Any, lmbda: Any) -> Any:
    # λ - 1 is rounded, which the logarithm of a small base multiplies.
    power = _power(high, low, log, lmbda)
    usual = (jnp.abs(power) > float(jnp.finfo(out.dtype).tiny)) & jnp.isfinite(power)
    usual = usual & (high != 0)
    base, by = jnp.where(usual, high, 1), jnp.where(usual, 1, lmbda - 1)
    slope = jnp.where(usual, power / base, _power(high, low, log, by))
    return t * jnp.where(jnp.isnan(out), out, slope)


def _slope_by_exponent(t: Any, out: Any, high: Any, low: Any, log: Any, lmbda: Any) -> Any:
    # log²·Σ pᵏ / (k!·(k + 2)) for p = λ·log up to 1, where (b^λ·log - out) / λ cancels.
    far = _is_far(log, lmbda)
    product = jnp.where(far, 0, lmbda * log)
    near = log * log * horner(_SLOPES[: digits(log, 11, 18)], product)
    by = jnp.where(far, lmbda, 1)
    power = _power(high, low, log, lmbda)
    total = jnp.where(power == 0, 0, power * log)
    return t * jnp.where(far, (total - out) / by, near)


_SLOPES = [1 / (math.factorial(k) * (k + 2)) for k in range(18)]
_transformed.defjvps(_slope_by_base, None, None, _slope_by_exponent)


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """exp(x) / Σ exp(x) over `axis`, by default all.

    >>> softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    return nn.softmax(inexact("softmax", x)[0], axis=_axes(x, axis))


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """x - log(Σ exp(x)) over `axis`, by default all.

    >>> log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return nn.log_softmax(inexact("log_softmax", x)[0], axis=_axes(x, axis))


def _axes(x: Any, axis: Any) -> Any:
    return tuple(range(jnp.ndim(x))) if axis is None else axis
