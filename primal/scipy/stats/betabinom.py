"""The binomial distribution whose p has a beta distribution."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import rounded_once, settled
from primal.scipy.stats.peaks import log_split


@rounded_once
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: log C(n, k) + log B(k + a, n - k + b) - log B(a, b).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([0, 2]), 5, 2.0, 3.0)
    Array([-1.7917597, -1.4350848], dtype=float32)
    """
    k, n, a, b, loc = settled("betabinom.logpmf", k, n, a, b, loc)
    y = jnp.floor(k) - loc
    y = y.astype(y.dtype) if y.ndim else y
    ok = ~((y < 0) | (y > n))  # so that nan stays nan
    y = jnp.where(ok, y, 0)
    # A binomial distribution whose p is drawn from that of beta, and what is known of p after that:
    # powers of any p cancel, and this one leaves the smallest terms.
    # Of hits, or of misses where these are fewer: beside a large a the share of hits rounds to 1.
    legal = (n >= 0) & (a > 0) & (b > 0)
    z = n - y
    fewer = z + b < y + a
    y, z = jnp.where(fewer, z, y), jnp.where(fewer, y, z)
    a, b = jnp.where(fewer, b, a), jnp.where(fewer, a, b)
    p = (y + a) / (n + a + b)
    log = log_split(y, z, p) + log_split(a, b, p) - log_split(y + a, z + b, p)
    log = log + jnp.log(a / (a + b) / p) + jnp.log(b / (z + b))
    return jnp.where(legal, jnp.where(ok, log, -jnp.inf), jnp.nan)


@rounded_once
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: C(n, k) B(k + a, n - k + b) / B(a, b).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1, 3]), 2, 1.0, 1.0)
    Array([0.33333325, 0.33333334, 0.        ], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, a, b, loc))
