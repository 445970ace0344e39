"""Gumbel's distribution of the largest of many values."""

from __future__ import annotations

import primal.numpy as jnp
from primal import nn
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import real_inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = real_inexact("gumbel_r.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -(z + jnp.exp(-z)) - jnp.log(scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-z - exp(-z))/scale, z = (x - loc) /scale."""
    return jnp.exp(logpdf(x, loc, scale))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    x, loc, scale = real_inexact("gumbel_r.logcdf", x, loc, scale)
    return -jnp.exp(-((x - loc) / scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values up to x.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.36787942, 0.69220066], dtype=float32)
    """
    return jnp.exp(logcdf(x, loc, scale))


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x."""
    return -jnp.expm1(logcdf(x, loc, scale))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return nn.log1mexp(-logcdf(x, loc, scale))


def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile: the inverse of `cdf`."""
    p, loc, scale = real_inexact("gumbel_r.ppf", p, loc, scale)
    inside = (p >= 0) & (p <= 1)
    return jnp.where(inside, loc + scale * -jnp.log(-jnp.log(p)), jnp.nan)
