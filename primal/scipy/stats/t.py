"""Student's t distribution of df degrees of freedom."""

from __future__ import annotations

import math

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.scipy.operands import rounded_once, settled
from primal.scipy.stats.peaks import log_half_step
from primal.scipy.stats.supports import for_positive


@rounded_once
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: log Γ((df + 1)/2) - log Γ(df/2) - ½ log(π df) - log scale -
    (df + 1)/2 log(1 + z²/df), z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]), 3.0)
    Array([-1.1609743, -2.6954846], dtype=float32)
    """
    x, df, loc, scale = settled("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    half = df / 2
    level = log_half_step(half) - 0.5 * math.log(2 * math.pi) - jnp.log(scale)
    return for_positive(level - (half + 0.5) * jnp.log1p(z * z / df), df)


@rounded_once
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: proportional to (1 + z²/df)^(-(df + 1)/2), z = (x - loc)/scale.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(0.0, 1.0)
    Array(0.31830987, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, df, loc, scale))
