"""The χ² distribution: the sum of df squares of standard normals."""

from __future__ import annotations

from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import rounded_once, settled
from primal.scipy.stats import gamma


@rounded_once
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: that of gamma with a = df/2 and twice the scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]), 3.0)
    Array([-1.5155121, -1.572365 ], dtype=float32)
    """
    x, df, loc, scale = settled("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@rounded_once
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: that of gamma with a = df/2 and twice the scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]), 3.0)
    Array([0.21969566, 0.20755373], dtype=float32)
    """
    x, df, loc, scale = settled("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, df / 2, loc, 2 * scale)


@rounded_once
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([-1.0, 2.0]), 2.0)
    Array([0.        , 0.63212055], dtype=float32)
    """
    x, df, loc, scale = settled("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@rounded_once
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logcdf(jnp.array([0.5, 2.0]), 3.0)
    Array([-2.5119665, -0.8495828], dtype=float32)
    """
    x, df, loc, scale = settled("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@rounded_once
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([0.5, 2.0]), 3.0)
    Array([0.91889143, 0.5724067 ], dtype=float32)
    """
    x, df, loc, scale = settled("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


@rounded_once
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logsf(jnp.array([0.5, 2.0]), 3.0)
    Array([-0.08458732, -0.5579055 ], dtype=float32)
    """
    x, df, loc, scale = settled("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, df / 2, loc, 2 * scale)
