"""The beta distribution on [loc, loc + scale]."""

from __future__ import annotations

import math
from typing import Any

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.ir.trace import Array
from primal.lax import stop_gradient
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import rounded_once, settled
from primal.scipy.special.gammas import psi_less
from primal.scipy.stats.peaks import log_power_of_zero, log_split, power_slope
from primal.scipy.stats.supports import for_positive, within
from primal.scipy.stats.tails import log_beta_tail, log_of


@rounded_once
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the density: (a - 1) log z + (b - 1) log(1 - z) - log B(a, b) - log
    scale, z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([0.5232482, 0.4054649], dtype=float32)
    """
    x, a, b, loc, scale = settled("beta.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    ok = ~((z < 0) | (z > 1))  # so that nan stays nan
    z = jnp.where(ok, z, 0.5)
    log = _log_density(z, a, b) - jnp.log(scale)
    return for_positive(jnp.where(ok, log, -jnp.inf), a, b, scale)


@rounded_once
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The density: z^(a-1) (1 - z)^(b-1) / (B(a, b) scale), z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([1.6875001, 1.4999995], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@rounded_once
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([0.5, 2.0]), 1.0, 2.0)
    Array([0.75, 1.  ], dtype=float32)
    """
    x, a, b, loc, scale = settled("beta.cdf", x, a, b, loc, scale, error=ValueError)
    z = (x - loc) / scale
    return for_positive(within(z, 0, 1, lambda z: special.betainc(a, b, z), 0, 1), a, b, scale)


@rounded_once
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logcdf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([-1.3404849 , -0.37469345], dtype=float32)
    """
    x, a, b, loc, scale = settled("beta.logcdf", x, a, b, loc, scale, error=ValueError)
    z = (x - loc) / scale
    p, rest = cdf(x, a, b, loc, scale), sf(x, a, b, loc, scale)
    return log_of(p, rest, lambda: log_beta_tail(a, b, z))


@rounded_once
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([0.73828125, 0.3125    ], dtype=float32)
    """
    x, a, b, loc, scale = settled("beta.sf", x, a, b, loc, scale, error=ValueError)
    z = (x - loc) / scale
    return for_positive(within(z, 0, 1, lambda z: _above(z, a, b), 1, 0), a, b, scale)


@custom_jvp
def _log_density(z: Any, a: Any, b: Any) -> Any:
    """That of z from 0 to 1, with slopes in which nothing cancels next to these."""
    ends = (z == 0) | (z == 1)
    at = jnp.where(ends, 0.5, z)
    # Not the logarithm of the inverse, which is infinite where z is subnormal or a / b is.
    log = log_split(a, b, at) + (jnp.log(b) - jnp.log(at * (1 - at) * (1 + b / a)))
    # An infinite limit, or where the power is the 0-th, b or a.
    zero, one = log_power_of_zero(a - 1) + jnp.log(b), log_power_of_zero(b - 1) + jnp.log(a)
    return jnp.where(ends, jnp.where(z == 0, zero, one), log)


_log_density.defjvps(
    lambda t, out, z, a, b: t * (power_slope(a, z) - power_slope(b, 1 - z)),
    lambda t, out, z, a, b: t * (jnp.log(z) - psi_less(a, b)),
    lambda t, out, z, a, b: t * (jnp.log1p(-z) - psi_less(b, a)),
)


def _above(z: Any, a: Any, b: Any) -> Any:
    """1 - I_z(a, b) for z from 0 to 1: I of 1 - z as it is rounded and the density times what that
    lacks, or where that is no small part of z, a difference."""
    y = 1 - z
    lost = (1 - y) - z
    near = z < math.sqrt(jnp.finfo(z.dtype).eps)
    p = special.betainc(jnp.where(near, a, b), jnp.where(near, b, a), jnp.where(near, z, y))
    inside = ~near & (z < 1)
    density = jnp.exp(_log_density(jnp.where(inside, z, 0.5), a, b))
    return jnp.where(near, 1 - p, p + stop_gradient(jnp.where(inside, lost * density, 0)))


@rounded_once
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logsf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([-0.3034304, -1.1631508], dtype=float32)
    """
    x, a, b, loc, scale = settled("beta.logsf", x, a, b, loc, scale, error=ValueError)
    z = (loc - x) / scale + 1
    p, rest = sf(x, a, b, loc, scale), cdf(x, a, b, loc, scale)
    return log_of(p, rest, lambda: log_beta_tail(b, a, z))
