"""The normal distribution."""

from __future__ import annotations

import math

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.ops.special.normal import gauss
from primal.scipy import special
from primal.scipy.operands import analytic, real_inexact, rounded_once


@rounded_once
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: -z²/2 - log(scale √2π), z = (x - loc)/scale.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]))
    Array([-1.0439385, -2.9189386], dtype=float32)
    """
    x, loc, scale = analytic("norm.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -0.5 * (z * z + math.log(2 * math.pi)) - jnp.log(scale)


@rounded_once
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-z²/2) / (scale √2π), z = (x - loc)/scale.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> pdf(0.0)
    Array(0.3989423, dtype=float32, weak_type=True)
    """
    x, loc, scale = analytic("norm.pdf", x, loc, scale)
    if x.dtype.kind == "c":
        return jnp.exp(logpdf(x, loc, scale))
    # The exponential of a rounded logarithm would have few digits far away.
    return gauss((x - loc) / scale) / (math.sqrt(2 * math.pi) * scale)


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists, complex numbers and floats of 16 bits are TypeErrors.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.8413448], dtype=float32)
    """
    x, loc, scale = real_inexact("norm.cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists, complex numbers and floats of 16 bits are TypeErrors.

    >>> logcdf(jnp.array([0.5, 2.0]))
    Array([-0.3689464 , -0.02301291], dtype=float32)
    """
    x, loc, scale = real_inexact("norm.logcdf", x, loc, scale)
    return special.log_ndtr((x - loc) / scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(q)) = q; nan beyond [0, 1].

    Operands broadcast; lists, complex numbers and shares of other dtypes than float32 and float64
    are TypeErrors.

    >>> ppf(0.975)
    Array(1.9599646, dtype=float32)
    """
    found = special.ndtri(q)
    z, loc, scale = real_inexact("norm.ppf", found, loc, scale)
    return z * scale + loc


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists, complex numbers and floats of 16 bits are TypeErrors.

    >>> sf(jnp.array([0.5, 2.0]))
    Array([0.30853754, 0.02275013], dtype=float32)
    """
    x, loc, scale = real_inexact("norm.sf", x, loc, scale)
    return special.ndtr((loc - x) / scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists, complex numbers and floats of 16 bits are TypeErrors.

    >>> logsf(jnp.array([0.5, 2.0])).round(4)
    Array([-1.1759, -3.7832], dtype=float32)
    """
    x, loc, scale = real_inexact("norm.logsf", x, loc, scale)
    return special.log_ndtr((loc - x) / scale)


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`: P(X > isf(q)) = q; nan beyond [0, 1].

    Operands broadcast; lists, complex numbers and shares of other dtypes than float32 and float64
    are TypeErrors.

    >>> isf(jnp.array([0.25, 0.5]))
    Array([0.67448974, 0.        ], dtype=float32)
    """
    found = special.ndtri(q)
    z, loc, scale = real_inexact("norm.isf", found, loc, scale)
    return loc - z * scale
