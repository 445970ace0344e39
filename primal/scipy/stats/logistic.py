"""The logistic distribution."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import real_inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = real_inexact("logistic.logpdf", x, loc, scale)
    z = (x - loc) / scale
    half = jnp.abs(z) / 2
    return -2 * jnp.logaddexp(half, -half) - jnp.log(scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-z)/(scale (1 + exp(-z))²), z = (x - loc)/scale."""
    return jnp.exp(logpdf(x, loc, scale))


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of `cdf`."""
    q, loc, scale = real_inexact("logistic.ppf", q, loc, scale)
    return special.logit(q) * scale + loc


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    x, loc, scale = real_inexact("logistic.sf", x, loc, scale)
    return special.expit((loc - x) / scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`."""
    q, loc, scale = real_inexact("logistic.isf", q, loc, scale)
    return loc - special.logit(q) * scale


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.7310586], dtype=float32)
    """
    x, loc, scale = real_inexact("logistic.cdf", x, loc, scale)
    return special.expit((x - loc) / scale)
