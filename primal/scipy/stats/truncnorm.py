"""The normal distribution cut to [loc + a·scale, loc + b·scale]."""

from __future__ import annotations

import primal.numpy as jnp
from primal import nn
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered
from primal.scipy.operands import real_inexact
from primal.scipy.special import log_ndtr
from primal.scipy.stats import norm
from primal.scipy.stats.supports import within

# Gauss and Legendre's points between 0 and 1 and weights, of eight.
_POINTS = (
    (0.18343464249564978, 0.36268378337836166),
    (0.525532409916329, 0.3137066458778869),
    (0.7966664774136267, 0.22238103445337443),
    (0.9602898564975362, 0.10122853629037706),
)


@remembered
def _log_mass(a: Array, b: Array) -> Array:
    """log(Φ(b) - Φ(a)): of a narrow interval by its middle, else from the tail that has digits."""
    upper = a + b > 0
    low, high = jnp.where(upper, -b, a), jnp.where(upper, -a, b)
    # There the difference of two values of log Φ lost up to 10⁵ units; eight points lose none.
    narrow = (high - low) * jnp.maximum(1, -low) < 1
    apart = jnp.where(narrow, 1, high)
    less = jnp.where(narrow, 0, low)
    big, gap = log_ndtr(apart), log_ndtr(apart) - log_ndtr(less)
    empty = gap <= 0
    wide = jnp.where(empty, -jnp.inf, big + nn.log1mexp(jnp.where(empty, 1, gap)))
    return jnp.where(narrow, _narrow(jnp.where(narrow, low, 0), jnp.where(narrow, high, 1)), wide)


def _narrow(low: Array, high: Array) -> Array:
    """log of ∫ φ(m + t) dt over |t| < r, φ(m + t) = φ(m)·exp(-m·t - t²/2); of nothing, without a
    slope, as that would be an infinite one times the exponential's 0."""
    empty = high == low
    middle, radius = (low + high) / 2, jnp.where(empty, 1, (high - low) / 2)
    total = sum(
        weight * jnp.exp(-0.5 * (at := radius * point) * at) * jnp.cosh(middle * at)
        for point, weight in _POINTS
    )
    return jnp.where(empty, -jnp.inf, norm.logpdf(middle) + jnp.log(2 * radius * total))


def _checked(out: Array, a: Array, b: Array) -> Array:
    return jnp.where(a >= b, jnp.nan, out)


@remembered
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the density: log φ(z) - log scale - log(Φ(b) - Φ(a)), z = (x -
    loc)/scale in [a, b].

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(4)
    Array([-0.5372, -0.6622], dtype=float32)
    """
    x, a, b, loc, scale = real_inexact("truncnorm.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    log = norm.logpdf(x, loc, scale) - _log_mass(a, b)
    return _checked(jnp.where((z < a) | (z > b), -jnp.inf, log), a, b)


@remembered
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The density: that of the normal over the mass between a and b.

    Operands broadcast; lists and complex numbers are TypeErrors. φ(z) / (scale (Φ(b) - Φ(a))) for a
    ≤ z = (x - loc)/scale ≤ b.

    >>> pdf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(4)
    Array([0.5844, 0.5157], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@remembered
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logcdf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(4)
    Array([-0.6931, -0.2479], dtype=float32)
    """
    x, a, b, loc, scale = real_inexact("truncnorm.logcdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    log = within(z, a, b, lambda z: _log_mass(a, z) - _log_mass(a, b), -jnp.inf, 0)
    return _checked(log, a, b)


@remembered
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(0.0, -1.0, 1.0).round(4)
    Array(0.5, dtype=float32)
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


@remembered
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logsf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(4)
    Array([-0.6931, -1.5162], dtype=float32)
    """
    x, a, b, loc, scale = real_inexact("truncnorm.logsf", x, a, b, loc, scale)
    z = (x - loc) / scale
    log = within(z, a, b, lambda z: _log_mass(z, b) - _log_mass(a, b), 0, -jnp.inf)
    return _checked(log, a, b)


@remembered
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([0.0, 0.5]), -1.0, 1.0).round(4)
    Array([0.5   , 0.2195], dtype=float32)
    """
    return jnp.exp(logsf(x, a, b, loc, scale))
