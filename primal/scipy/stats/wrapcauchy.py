"""Cauchy's distribution wrapped around the circle."""

from __future__ import annotations

import math

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import real_inexact, rounded_once


@rounded_once
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density: log(1 - c²) - log(2π (1 + c² - 2c cos x)) on [0, 2π].

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]), 0.5)
    Array([-1.1378193, -2.6360729], dtype=float32)
    """
    x, c = real_inexact("wrapcauchy.logpdf", x, c)
    # 1 + c² - 2c cos x = (1 - c)² + 4c sin²(x/2), of positive terms.
    apart = (1 - c) * (1 - c) + 4 * c * jnp.sin(x / 2) ** 2
    log = jnp.log((1 - c) * (1 + c) / apart) - math.log(2 * math.pi)
    ok = (c > 0) & (c < 1)
    inside = (x >= 0) & (x <= 2 * math.pi)
    return jnp.where(ok, jnp.where(inside, log, -jnp.inf), jnp.nan)


@rounded_once
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density: (1 - c²) / (2π (1 + c² - 2c cos x)) on [0, 2π].

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(0.0, 0.5)
    Array(0.47746485, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, c))
