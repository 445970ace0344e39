"""The logistic distribution."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import analytic, inexact, rounded_once


@rounded_once
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: -z - 2 log(1 + e^-z) - log scale, z = (x - loc)/scale.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]))
    Array([-1.448154, -2.253856], dtype=float32)
    """
    x, loc, scale = analytic("logistic.logpdf", x, loc, scale)
    z = (x - loc) / scale
    half = z / 2
    half = half.astype(half.dtype) if half.ndim else half
    return -2 * jnp.logaddexp(half, -half) - jnp.log(scale)


@rounded_once
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-z)/(scale (1 + exp(-z))²), z = (x - loc)/scale.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]))
    Array([0.23500371, 0.10499359], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@rounded_once
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(x)) = x; nan beyond [0, 1].

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> ppf(jnp.array([0.25, 0.5]))
    Array([-1.0986123,  0.       ], dtype=float32)
    """
    x, loc, scale = analytic("logistic.ppf", x, loc, scale)
    return special.logit(x) * scale + loc


@rounded_once
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> sf(jnp.array([0.5, 2.0]))
    Array([0.37754068, 0.11920293], dtype=float32)
    """
    x, loc, scale = inexact("logistic.sf", x, loc, scale)
    return special.expit((loc - x) / scale)


@rounded_once
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`: P(X > isf(x)) = x; nan beyond [0, 1].

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> isf(jnp.array([0.25, 0.5]))
    Array([1.0986123, 0.       ], dtype=float32)
    """
    x, loc, scale = analytic("logistic.isf", x, loc, scale)
    return loc - special.logit(x) * scale


@rounded_once
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.7310586], dtype=float32)
    """
    x, loc, scale = inexact("logistic.cdf", x, loc, scale)
    return special.expit((x - loc) / scale)
