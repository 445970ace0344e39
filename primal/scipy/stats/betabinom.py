"""The binomial distribution whose p has a beta distribution."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import settled


def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: log C(n, k) + log B(k + a, n - k + b) - log B(a, b).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([0, 2]), 5, 2.0, 3.0)
    Array([-1.7917595, -1.4350843], dtype=float32)
    """
    k, n, a, b, loc = settled("betabinom.logpmf", k, n, a, b, loc)
    y = jnp.floor(k) - loc
    y = y.astype(y.dtype) if y.ndim else y
    ok = ~((y < 0) | (y > n))  # so that nan stays nan
    y = jnp.where(ok, y, 0)
    ways = -special.betaln(n - y + 1, y + 1) - jnp.log1p(n)
    log = ways + special.betaln(y + a, n - y + b) - special.betaln(a, b)
    legal = (n >= 0) & (a > 0) & (b > 0)
    return jnp.where(legal, jnp.where(ok, log, -jnp.inf), jnp.nan)


def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: C(n, k) B(k + a, n - k + b) / B(a, b).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1, 3]), 2, 1.0, 1.0)
    Array([0.33333334, 0.33333334, 0.        ], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, a, b, loc))
