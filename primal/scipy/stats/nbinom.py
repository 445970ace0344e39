"""The negative binomial distribution: failures before the n-th success."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import rounded_once, settled
from primal.scipy.stats.peaks import log_split


@rounded_once
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: log C(k + n - 1, k) + n log p + k log(1 - p).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([0, 2]), 3, 0.5)
    Array([-2.0794415, -1.6739767], dtype=float32)
    """
    k, n, p, loc = settled("nbinom.logpmf", k, n, p, loc)
    y = k - loc
    ok = ~(y < 0)  # so that nan stays nan
    y = jnp.where(ok, y, 0)
    return jnp.where(ok, log_split(n, y, p) - jnp.log1p(y / n), -jnp.inf)


@rounded_once
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: C(k + n - 1, k) p^n (1 - p)^k.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1]), 1, 0.5)
    Array([0.49999997, 0.25      ], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, p, loc))
