"""Von Mises' distribution on the circle."""

from __future__ import annotations

import math

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy import special
from primal.scipy.operands import real_inexact, rounded_once


@rounded_once
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density: kappa cos x - log(2π I₀(kappa)).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]), 2.0)
    Array([-0.9067055, -3.4941645], dtype=float32)
    """
    x, kappa = real_inexact("vonmises.logpdf", x, kappa)
    # cos(x) - 1 = -2 sin²(x/2) beside the scaled Bessel function: nothing overflows or cancels.
    log = -2 * kappa * jnp.sin(x / 2) ** 2 - jnp.log(2 * math.pi * special.i0e(kappa))
    return jnp.where(kappa > 0, log, jnp.nan)


@rounded_once
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density: exp(kappa cos x) / (2π I₀(kappa)).

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(0.0, 1.0)
    Array(0.34171048, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, kappa))
