"""The distribution of one trial: 1 with probability p, else 0."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import rounded_once, settled


def _legal(p: Array) -> Array:
    return (p >= 0) & (p <= 1)


@rounded_once
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: k log p + (1 - k) log(1 - p).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([0, 1]), 0.3)
    Array([-0.35667497, -1.2039728 ], dtype=float32)
    """
    k, p, loc = settled("bernoulli.logpmf", k, p, loc)
    k = k - loc
    log = special.xlogy(k, p) + special.xlog1py(1 - k, -p)
    return jnp.where((k == 0) | (k == 1) | jnp.isnan(k), log, -jnp.inf)


@rounded_once
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: p for k = 1, 1 - p for k = 0.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1, 2]), 0.25)
    Array([0.75, 0.25, 0.  ], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))


@rounded_once
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([0, 1]), 0.3)
    Array([0.7, 1. ], dtype=float32)
    """
    k, p = settled("bernoulli.cdf", k, p)
    out = jnp.where(k < 1, 1 - p, jnp.ones_like(k))
    out = jnp.where(jnp.isnan(k), k, jnp.where(k < 0, jnp.zeros_like(k), out))
    return jnp.where(_legal(p), out, jnp.nan)


@rounded_once
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(q)) = q; nan beyond [0, 1].

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> ppf(jnp.array([0.5, 0.9]), 0.3)
    Array([0., 1.], dtype=float32)
    """
    q, p = settled("bernoulli.ppf", q, p)
    ok = _legal(p) & (q >= 0) & (q <= 1)
    return jnp.where(ok, jnp.where(q <= 1 - p, jnp.zeros_like(q), jnp.ones_like(q)), jnp.nan)
