"""The beta distribution on [loc, loc + scale]."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import settled
from primal.scipy.stats.supports import for_positive, within
from primal.scipy.stats.tails import log_beta_tail, log_of


def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the density: (a - 1) log z + (b - 1) log(1 - z) - log B(a, b) - log
    scale, z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([0.5232482 , 0.40546513], dtype=float32)
    """
    x, a, b, loc, scale = settled("beta.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    ok = ~((z < 0) | (z > 1))  # so that nan stays nan
    z = jnp.where(ok, z, 0.5)
    log = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z)
    log = log - special.betaln(a, b) - jnp.log(scale)
    return for_positive(jnp.where(ok, log, -jnp.inf), a, b, scale)


def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The density: z^(a-1) (1 - z)^(b-1) / (B(a, b) scale), z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([1.6875001, 1.5      ], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


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


def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([0.25, 0.5]), 2.0, 3.0)
    Array([0.73828125, 0.3125    ], dtype=float32)
    """
    x, a, b, loc, scale = settled("beta.sf", x, a, b, loc, scale, error=ValueError)
    z = (loc - x) / scale + 1
    return for_positive(within(z, 0, 1, lambda z: special.betainc(b, a, z), 0, 1), a, b, scale)


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
