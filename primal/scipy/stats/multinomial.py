"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike, from_literal, in_float32, promote_dtypes
from primal.runtime.refusals import in_words
from primal.scipy import special
from primal.scipy.operands import real_inexact


@in_words
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """log n! + Σ xᵢ log pᵢ - log xᵢ!, the logarithm of the probability of the counts x along the
    last axis.

    Raises ValueError for counts that are no integers.

    >>> logpmf(jnp.array([1, 0, 2]), 3, jnp.array([0.2, 0.3, 0.5]))
    Array(-1.89712, dtype=float32)
    """
    return _share(x, n, p, lambda log: log)


@in_words
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the counts x: n! Π pᵢ^xᵢ / xᵢ! where Σx = n.

    Counts lie along the last axis of x, p is a vector.

    >>> pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(0.5, dtype=float32)
    """
    return _share(x, n, p, jnp.exp)


def _share(x: Any, n: Any, p: Any, of: Any) -> Any:
    (p,) = real_inexact("multinomial.logpmf", p)
    x, n = map(from_literal, promote_dtypes("multinomial.logpmf", x, n))
    if not jnp.isdtype(x.dtype, ("integral", "bool")):
        raise ValueError(
            f"x and n must be of integer type; got x.dtype={x.dtype.name}, n.dtype={n.dtype.name}: "
            "[multinomial] expected counts, which astype(int) makes of floats."
        )
    legal = jnp.equal(jnp.sum(x, axis=-1), n) & jnp.all(x >= 0, axis=-1)

    def share(p: Any) -> Any:
        counts = jnp.maximum(x, 0).astype(p.dtype)
        total = special.gammaln(n.astype(p.dtype) + 1)
        log = total + jnp.sum(special.xlogy(counts, p) - special.gammaln(counts + 1), axis=-1)
        return of(jnp.where(legal, log, -jnp.inf))

    return in_float32(share, p)
