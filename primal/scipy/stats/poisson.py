"""Poisson's distribution of mean mu."""

from __future__ import annotations

import math

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import real_inexact, rounded_once, settled
from primal.scipy.stats.peaks import log_poisson

LARGE, SUMMED = 50.0, 160
"""From which mean on the entropy is its asymptotic series, and how many terms are summed below."""


@rounded_once
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: k log mu - mu - log k!.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpmf(jnp.array([0, 3]), 2.5)
    Array([-2.5      , -1.5428873], dtype=float32, weak_type=True)
    """
    k, mu, loc = real_inexact("poisson.logpmf", k, mu, loc)
    y = k - loc
    ok = (y >= 0) & (jnp.floor(y) == y)
    y = jnp.where(ok, y, 0)
    return jnp.where(ok, log_poisson(y, mu), -jnp.inf)


@rounded_once
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k: mu^k e^-mu / k!.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pmf(jnp.array([0, 1]), 1.0)
    Array([0.36787945, 0.36787942], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, mu, loc))


@rounded_once
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([0, 3]), 2.5)
    Array([0.082085 , 0.7575761], dtype=float32)
    """
    k, mu, loc = settled("poisson.cdf", k, mu, loc)
    y = jnp.floor(k - loc)
    out = special.gammaincc(jnp.maximum(y, 0) + 1, mu)
    return jnp.where(y < 0, jnp.zeros_like(out), out)


@rounded_once
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy, -Σ p log p.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> entropy(1.0)
    Array(1.3048422, dtype=float32)
    """
    mu, loc = real_inexact("poisson.entropy", mu, loc)
    shape = jnp.broadcast_shapes(mu.shape, loc.shape)
    small = jnp.where(mu < LARGE, mu, 1)
    k = jnp.arange(SUMMED, dtype=mu.dtype)
    log = logpmf(k, jnp.expand_dims(small, -1))
    total = -jnp.sum(jnp.exp(log) * log, axis=-1)
    # Stirling: the terms left out are below mu^-4.
    large = jnp.where(mu < LARGE, LARGE, mu)
    series = 0.5 * jnp.log(2 * math.pi * math.e * large) - 1 / (12 * large)
    series = series - 1 / (24 * large**2) - 19 / (360 * large**3)
    out = jnp.where(mu < LARGE, total, series)
    out = jnp.where(mu < 0, jnp.nan, jnp.where(mu == 0, 0, out))
    return jnp.broadcast_to(out, shape)
