"""The binomial distribution: successes in n trials."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import real_inexact


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: log C(n, k) + k log p + (n - k) log(1 - p).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([0, 2]), 5, 0.25)
    Array([-1.4384103, -1.3330498], dtype=float32, weak_type=True)
    """
    k, n, p, loc = real_inexact("binom.logpmf", k, n, p, loc)
    y = k - loc
    ok = ~((y < 0) | (y > n))  # so that nan stays nan
    y = jnp.where(ok, y, 0)
    ways = -special.betaln(n - y + 1, y + 1) - jnp.log1p(n)
    log = ways + special.xlogy(y, p) + special.xlog1py(n - y, -p)
    return jnp.where(ok, log, -jnp.inf)


def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: C(n, k) p^k (1 - p)^(n-k).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1, 3]), 2, 0.5)
    Array([0.25, 0.5 , 0.  ], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, p, loc))
