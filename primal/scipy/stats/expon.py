"""The exponential distribution."""

from __future__ import annotations

import primal.numpy as jnp
from primal import nn
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import inexact, real_inexact, rounded_once
from primal.scipy.stats.supports import within


@rounded_once
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: -z - log scale for z = (x - loc)/scale ≥ 0, -inf below.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]))
    Array([-0.5, -2. ], dtype=float32)
    """
    x, loc, scale = real_inexact("expon.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(z < 0, -jnp.inf, -z - jnp.log(scale))


@rounded_once
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-z)/scale for z = (x - loc)/scale ≥ 0.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]))
    Array([0.60653067, 0.13533528], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@rounded_once
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logsf(jnp.array([0.5, 2.0]))
    Array([-0.5, -2. ], dtype=float32)
    """
    x, loc, scale = real_inexact("expon.logsf", x, loc, scale)
    z = (x - loc) / scale
    return -jnp.where(z < 0, 0, z)


@rounded_once
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([0.5, 2.0]))
    Array([0.60653067, 0.13533528], dtype=float32)
    """
    return jnp.exp(logsf(x, loc, scale))


@rounded_once
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([-1.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    return -jnp.expm1(logsf(x, loc, scale))


@rounded_once
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logcdf(jnp.array([0.5, 2.0]))
    Array([-0.93275213, -0.14541346], dtype=float32)
    """
    x, loc, scale = real_inexact("expon.logcdf", x, loc, scale)
    return within((x - loc) / scale, 0, None, nn.log1mexp, -jnp.inf, 0)


@rounded_once
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(q)) = q; nan beyond [0, 1].

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> ppf(jnp.array([0.25, 0.5]))
    Array([0.28768206, 0.6931472 ], dtype=float32)
    """
    q, loc, scale = inexact("expon.ppf", q, loc, scale)
    inside = (q >= 0) & (q <= 1)
    return jnp.where(inside, loc - scale * jnp.log1p(-q), jnp.nan)
