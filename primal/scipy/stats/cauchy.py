"""Cauchy's distribution."""

from __future__ import annotations

import math

import primal.numpy as jnp
from primal.base.limits import finfo
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import analytic, rounded_once


@rounded_once
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: -log(π scale (1 + z²)), z = (x - loc)/scale.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]))
    Array([-1.3678734, -2.7541678], dtype=float32)
    """
    x, loc, scale = analytic("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    spread = jnp.log1p(z * z) if jnp.iscomplexobj(z) else _spread(z)
    return -spread - jnp.log(scale) - math.log(math.pi)


def _spread(z: Array) -> Array:
    """log(1 + z²), also where z² is beyond all floats."""
    # Where 1 is below half a unit of the square.
    far = jnp.abs(z) > 2 / math.sqrt(finfo(z.dtype).eps)
    near = jnp.where(far, 1.0, z)
    return jnp.where(far, 2 * jnp.log(jnp.abs(jnp.where(far, z, 1.0))), jnp.log1p(near * near))


@rounded_once
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: 1/(π scale (1 + z²)), z = (x - loc)/scale.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]))
    Array([0.2546479 , 0.06366198], dtype=float32)
    """
    x, loc, scale = analytic("cauchy.pdf", x, loc, scale)
    # Not scale·(1 + z²), whose square overflows where a small scale makes up for it.
    apart = x - loc
    return 1 / (math.pi * (scale + apart * (apart / scale)))


@rounded_once
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5 , 0.75], dtype=float32)
    """
    x, loc, scale = analytic("cauchy.cdf", x, loc, scale)
    # Unlike ½ + arctan(z)/π this keeps the digits of the lower tail.
    return jnp.arctan2(jnp.ones_like(x * loc * scale), (loc - x) / scale) / math.pi


@rounded_once
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> logcdf(jnp.array([0.5, 2.0]))
    Array([-0.43450737, -0.15968017], dtype=float32)
    """
    return _log_of(cdf(x, loc, scale), sf(x, loc, scale))


@rounded_once
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> sf(jnp.array([0.5, 2.0]))
    Array([0.3524164 , 0.14758362], dtype=float32)
    """
    x, loc, scale = analytic("cauchy.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


@rounded_once
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> logsf(jnp.array([0.5, 2.0]))
    Array([-1.0429418, -1.9133604], dtype=float32)
    """
    return _log_of(sf(x, loc, scale), cdf(x, loc, scale))


def _log_of(p: Array, rest: Array) -> Array:
    """log p, of p and 1 - p: the smaller of the two has the digits."""
    most = p > 0.5
    return jnp.where(most, jnp.log1p(-jnp.where(most, rest, 0)), jnp.log(jnp.where(most, 1, p)))


def _quantile(q: Array) -> Array:
    """tan(π (q - ½)), and near the ends, where that loses all digits, its cotangent's inverse."""
    at = q.real
    middle, low = abs(at - 0.5) < 0.25, at < 0.5
    # Adding 0 makes +0 of -0, whose quotient would have the other sign.
    nearest = jnp.where(low, q, 1 - q) + 0
    slope = jnp.tan(math.pi * jnp.where(middle, q - 0.5, nearest))
    return jnp.where(middle, slope, jnp.where(low, -1, 1) / jnp.where(middle, 1, slope))


@rounded_once
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(q)) = q; infinite at 0 and 1.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> ppf(jnp.array([0.25, 0.5]))
    Array([-1.,  0.], dtype=float32)
    """
    q, loc, scale = analytic("cauchy.ppf", q, loc, scale)
    return loc + scale * _quantile(q)


@rounded_once
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`: P(X > isf(q)) = q; infinite at 0 and 1.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> isf(jnp.array([0.25, 0.5]))
    Array([1., 0.], dtype=float32)
    """
    q, loc, scale = analytic("cauchy.isf", q, loc, scale)
    return loc - scale * _quantile(q)
