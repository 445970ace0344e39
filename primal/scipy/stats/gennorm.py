"""The generalized normal distribution."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import real_inexact, rounded_once


@rounded_once
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density: log beta - log(2 Γ(1/beta)) - |x|^beta.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]), 1.5)
    Array([-0.94438577, -3.4192595 ], dtype=float32)
    """
    x, beta = real_inexact("gennorm.logpdf", x, beta)
    return jnp.log(beta / 2) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


@rounded_once
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density: beta exp(-|x|^beta) / (2 Γ(1/beta)).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]), 1.5)
    Array([0.3889184 , 0.03273666], dtype=float32)
    """
    return jnp.exp(logpdf(x, beta))


@rounded_once
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(0.0, 2.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x, beta = real_inexact("gennorm.cdf", x, beta)
    tail = 0.5 * special.gammaincc(1 / beta, jnp.abs(x) ** beta)
    return jnp.where(beta > 0, jnp.where(x < 0, tail, 1 - tail), jnp.nan)
