"""Pareto's distribution of exponent b."""

from __future__ import annotations

from typing import Any

import primal.numpy as jnp
from primal import nn
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import analytic, real_inexact, rounded_once, settled
from primal.scipy.stats.supports import within


@rounded_once
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: log b - log scale - (b + 1) log z, z = (x - loc)/scale ≥ 1.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([1.5, 2.0]), 3.0)
    Array([-0.5232481, -1.6739764], dtype=float32)
    """
    x, b, loc, scale = settled("pareto.logpdf", x, b, loc, scale)
    z = (x - loc) / scale
    log = jnp.log(b) - jnp.log(scale) - (b + 1) * jnp.log(jnp.where(z < 1, 1, z))
    return jnp.where(z < 1, -jnp.inf, log)


@rounded_once
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: b / (scale z^(b+1)) for z = (x - loc)/scale ≥ 1.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([1.5, 2.0]), 3.0)
    Array([0.5925926, 0.1875   ], dtype=float32)
    """
    x, b, loc, scale = settled("pareto.pdf", x, b, loc, scale)
    z = (x - loc) / scale
    return jnp.where(z < 1, 0, b / scale * jnp.where(z < 1, 1, z) ** -(b + 1))


@rounded_once
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logsf(jnp.array([1.5, 2.0]), 3.0)
    Array([-1.2163953, -2.0794415], dtype=float32)
    """
    return _log_tail(*settled("pareto.logsf", x, b, loc, scale))


def _log_tail(x: Any, b: Any, loc: Any, scale: Any) -> Array:
    z = (x - loc) / scale
    return -b * jnp.log(jnp.where(z < 1, 1, z))


@rounded_once
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([1.5, 2.0]), 3.0)
    Array([0.29629627, 0.125     ], dtype=float32)
    """
    x, b, loc, scale = settled("pareto.sf", x, b, loc, scale)
    z = (x - loc) / scale
    return jnp.where(z < 1, 1, z) ** -b


@rounded_once
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([0.5, 2.0]), 1.0)
    Array([0. , 0.5], dtype=float32)
    """
    return -jnp.expm1(logsf(x, b, loc, scale))


@rounded_once
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logcdf(jnp.array([1.5, 2.0]), 3.0)
    Array([-0.35139793, -0.13353139], dtype=float32)
    """
    x, b, loc, scale = real_inexact("pareto.logcdf", x, b, loc, scale)
    below = -_log_tail(x, b, loc, scale)
    return within(below, float(jnp.finfo(below.dtype).tiny), None, nn.log1mexp, -jnp.inf, 0)


@rounded_once
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(q)) = q; nan beyond [0, 1].

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> ppf(jnp.array([0.25, 0.5]), 3.0)
    Array([1.1006423, 1.2599211], dtype=float32)
    """
    q, b, loc, scale = analytic("pareto.ppf", q, b, loc, scale)
    inside = (q >= 0) & (q <= 1)
    value = loc + scale * jnp.exp(-jnp.log1p(-q) / b)
    return jnp.where(inside, value, jnp.nan)
