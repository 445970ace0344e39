"""Gumbel's distribution of the smallest of many values."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import real_inexact, rounded_once
from primal.scipy.stats.supports import for_positive
from primal.scipy.stats.tails import log_less_gumbel


@rounded_once
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: -z - e^-z - log scale, z = (loc - x)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]))
    Array([-1.1487212, -5.3890557], dtype=float32)
    """
    x, loc, scale = real_inexact("gumbel_l.logpdf", x, loc, scale)
    z = (loc - x) / scale
    return for_positive(-(z + jnp.exp(-z)) - jnp.log(scale), scale)


@rounded_once
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-z - exp(-z))/scale, z = (loc - x) /scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]))
    Array([0.31704196, 0.00456628], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@rounded_once
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logsf(jnp.array([0.5, 2.0]))
    Array([-1.6487212, -7.3890557], dtype=float32)
    """
    x, loc, scale = real_inexact("gumbel_l.logsf", x, loc, scale)
    return for_positive(-jnp.exp(-((loc - x) / scale)), scale)


@rounded_once
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([0.5, 2.0]))
    Array([0.19229566, 0.00061798], dtype=float32)
    """
    return jnp.exp(logsf(x, loc, scale))


@rounded_once
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.63212055, 0.934012  ], dtype=float32)
    """
    return -jnp.expm1(logsf(x, loc, scale))


@rounded_once
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logcdf(jnp.array([0.5, 2.0]))
    Array([-0.2135592 , -0.00061817], dtype=float32)
    """
    x, loc, scale = real_inexact("gumbel_l.logcdf", x, loc, scale)
    return for_positive(log_less_gumbel((loc - x) / scale), scale)


@rounded_once
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(q)) = q; nan beyond [0, 1].

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> ppf(jnp.array([0.25, 0.5]))
    Array([-1.2458994 , -0.36651292], dtype=float32)
    """
    p, loc, scale = real_inexact("gumbel_l.ppf", p, loc, scale)
    inside = (p >= 0) & (p <= 1)
    return jnp.where(inside, loc + scale * jnp.log(-jnp.log1p(-p)), jnp.nan)
