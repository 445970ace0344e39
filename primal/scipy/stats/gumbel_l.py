"""Gumbel's distribution of the smallest of many values."""

from __future__ import annotations

import primal.numpy as jnp
from primal import nn
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import real_inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = real_inexact("gumbel_l.logpdf", x, loc, scale)
    z = (loc - x) / scale
    return -(z + jnp.exp(-z)) - jnp.log(scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-z - exp(-z))/scale, z = (loc - x) /scale."""
    return jnp.exp(logpdf(x, loc, scale))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    x, loc, scale = real_inexact("gumbel_l.logsf", x, loc, scale)
    return -jnp.exp(-((loc - x) / scale))


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    return jnp.exp(logsf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.63212055, 0.934012  ], dtype=float32)
    """
    return -jnp.expm1(logsf(x, loc, scale))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return nn.log1mexp(-logsf(x, loc, scale))


def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of `cdf`."""
    p, loc, scale = real_inexact("gumbel_l.ppf", p, loc, scale)
    inside = (p >= 0) & (p <= 1)
    return jnp.where(inside, loc + scale * jnp.log(-jnp.log1p(-p)), jnp.nan)
