"""The geometric distribution: trials up to the first success."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import rounded_once, settled


@rounded_once
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: log p + (k - 1) log(1 - p).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([1, 3]), 0.25)
    Array([-1.3862944, -1.9616585], dtype=float32)
    """
    k, p, loc = settled("geom.logpmf", k, p, loc)
    y = k - loc
    ok = ~(y <= 0)  # so that nan stays nan
    log = special.xlog1py(jnp.where(ok, y, 1) - 1, -p) + jnp.log(p)
    return jnp.where(ok, log, -jnp.inf)


@rounded_once
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: p (1 - p)^(k-1) for k ≥ 1.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1, 2]), 0.5)
    Array([0.  , 0.5 , 0.25], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))
