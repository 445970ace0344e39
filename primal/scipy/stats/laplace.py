"""Laplace's distribution."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import rounded_once, settled


@rounded_once
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: -|z| - log(2 scale), z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]))
    Array([-1.1931472, -2.6931472], dtype=float32)
    """
    x, loc, scale = settled("laplace.logpdf", x, loc, scale)
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


@rounded_once
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: exp(-|z|)/(2 scale), z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]))
    Array([0.30326533, 0.06766764], dtype=float32)
    """
    x, loc, scale = settled("laplace.pdf", x, loc, scale)
    return jnp.exp(-jnp.abs(x - loc) / scale) / (2 * scale)


@rounded_once
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.8160603], dtype=float32)
    """
    x, loc, scale = settled("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z < 0, tail, 1 - tail)
