"""The gamma distribution of shape a."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike, convert
from primal.scipy import special
from primal.scipy.operands import real_inexact, rounded_once, settled
from primal.scipy.stats.peaks import log_gamma
from primal.scipy.stats.supports import for_positive, within
from primal.scipy.stats.tails import log_gamma_tail, log_of


@rounded_once
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: (a - 1) log z - z - log Γ(a) - log scale, z = (x -
    loc)/scale ≥ 0.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]), 2.0)
    Array([-1.1931473, -1.3068529], dtype=float32)
    """
    x, a, loc, scale = settled("gamma.logpdf", x, a, loc, scale)
    z = (x - loc) / scale
    ok = ~(z < 0)  # so that nan stays nan
    z = jnp.where(ok, z, 1)
    log = log_gamma(a, z) - jnp.log(scale)
    return for_positive(jnp.where(ok, log, -jnp.inf), a, scale)


@rounded_once
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: z^(a-1) e^-z / (Γ(a) scale), z = (x - loc)/scale ≥ 0.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]), 2.0)
    Array([0.30326527, 0.27067056], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, loc, scale))


@rounded_once
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([-1.0, 1.0]), 2.0)
    Array([0.        , 0.26424113], dtype=float32)
    """
    x, a, loc, scale = settled("gamma.cdf", x, a, loc, scale)
    z = (x - loc) / scale
    p = within(z, 0, None, lambda z: special.gammainc(a, z), 0, 1)
    return for_positive(p, a, scale)


@rounded_once
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X ≤ x), the logarithm of `cdf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logcdf(jnp.array([0.5, 2.0]), 2.0)
    Array([-2.4056814, -0.5208858], dtype=float32)
    """
    x, a, loc, scale = settled("gamma.logcdf", x, a, loc, scale)
    z = (x - loc) / scale
    p, rest = cdf(x, a, loc, scale), sf(x, a, loc, scale)
    return log_of(p, rest, lambda: log_gamma_tail(a, z, True))


@rounded_once
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X > x) = 1 - P(X ≤ x), the probability of values above x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> sf(jnp.array([0.5, 2.0]), 2.0)
    Array([0.909796  , 0.40600586], dtype=float32)
    """
    x, a, loc, scale = real_inexact("gamma.sf", x, a, loc, scale)
    z = (x - loc) / scale
    p = within(z, 0, None, lambda z: special.gammaincc(a, z), 1, 0)
    return for_positive(p, a, scale)


@rounded_once
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """log P(X > x), the logarithm of `sf`.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logsf(jnp.array([0.5, 2.0]), 2.0)
    Array([-0.09453489, -0.9013877 ], dtype=float32)
    """
    x, a, loc, scale = real_inexact("gamma.logsf", x, a, loc, scale)
    z = (x - loc) / scale
    p, rest = sf(x, a, loc, scale), cdf(x, a, loc, scale)
    out = log_of(p, rest, lambda: log_gamma_tail(a, z, False))
    return convert(out, out.dtype, p.weak_type)
