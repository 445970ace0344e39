"""The binomial distribution: successes in n trials."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import real_inexact, rounded_once
from primal.scipy.stats.peaks import log_split


@rounded_once
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: log C(n, k) + k log p + (n - k) log(1 - p).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([0, 2]), 5, 0.25)
    Array([-1.4384105, -1.3330498], dtype=float32, weak_type=True)
    """
    k, n, p, loc = real_inexact("binom.logpmf", k, n, p, loc)
    y = k - loc
    ok = ~((y < 0) | (y > n))  # so that nan stays nan
    y = jnp.where(ok, y, 0)
    return jnp.where(ok, log_split(y, n - y, p), -jnp.inf)


@rounded_once
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: C(n, k) p^k (1 - p)^(n-k).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1, 3]), 2, 0.5)
    Array([0.25000006, 0.5       , 0.        ], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, p, loc))
