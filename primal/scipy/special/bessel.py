"""Bessel functions of integer order."""

from __future__ import annotations

from typing import Any

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.bessel import bessel_i1
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered
from primal.ops import special as ops
from primal.scipy.operands import inexact, real_inexact, rounded_once


@remembered
@rounded_once
def i0(x: ArrayLike) -> Array:
    """I₀(x) = 1/π ∫₀^π exp(x cos t) dt, the modified Bessel function of the first kind.

    Element by element; operands broadcast, and integers count as floats.

    >>> i0(jnp.array([0.0, 1.0]))
    Array([1.      , 1.266066], dtype=float32)
    """
    return jnp.i0(*real_inexact("i0", x))


@remembered
def i0e(x: ArrayLike) -> Array:
    """e^-|x| I₀(x).

    Element by element; operands broadcast, and integers count as floats.

    >>> i0e(jnp.array([0.0, 100.0]))
    Array([1.        , 0.03994438], dtype=float32)
    """
    return ops.bessel_i0e(*real_inexact("i0e", x))


@remembered
@rounded_once
def i1(x: ArrayLike) -> Array:
    """I₁(x) = 1/π ∫₀^π exp(x cos t) cos t dt, the derivative of I₀.

    Element by element; operands broadcast, and integers count as floats.

    >>> i1(jnp.array([0.0, 1.0]))
    Array([0.        , 0.56515914], dtype=float32)
    """
    return bessel_i1(*real_inexact("i1", x))


@remembered
def i1e(x: ArrayLike) -> Array:
    """e^-|x| I₁(x).

    Element by element; operands broadcast, and integers count as floats.

    >>> i1e(jnp.array([0.0, 100.0]))
    Array([0.        , 0.03974415], dtype=float32)
    """
    return ops.bessel_i1e(*real_inexact("i1e", x))


@remembered
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """J₀(z) … J_v(z), stacked along a new first axis, by Miller's backward recurrence.

    Jₖ₋₁ = (2k/z) Jₖ - Jₖ₊₁ from k = n_iter down, scaled so that J₀ + 2 Σ J₂ₖ = 1; so n_iter has to
    be well above both v and |z|. Raises ValueError for a negative order, or unless n_iter exceeds
    it. Olver, 1964; NIST DLMF 3.6, 10.74(iv).

    >>> bessel_jn(1.0, v=1)
    Array([0.76519763, 0.44005054], dtype=float32)
    """
    (z,) = inexact("bessel_jn", z)
    if not isinstance(v, int) or v < 0:
        raise ValueError(f"[bessel_jn] expected an order v of at least 0, got {v!r}.")
    if n_iter <= v:
        raise ValueError(f"[bessel_jn] expected n_iter above v={v}, got {n_iter}.")
    zero = z == 0
    over = 2 / jnp.where(zero, 1, z)
    # Scaled down where it grows too large: only ratios count.
    limit = 1e12 if z.dtype.itemsize < 8 else 1e100
    after, now = jnp.zeros_like(z), jnp.full_like(z, 1e-30)
    total = jnp.zeros_like(z)
    kept: list[Any] = []
    for k in range(n_iter, 0, -1):
        after, now = now, over * k * now - after
        large = jnp.abs(now) > limit
        shrink = jnp.where(large, 1 / limit, 1.0).astype(z.dtype)
        after, now, total = after * shrink, now * shrink, total * shrink
        kept = [j * shrink for j in kept]
        if (k - 1) % 2 == 0:
            total = total + (now if k == 1 else 2 * now)
        if k - 1 <= v:
            kept.insert(0, now)
    out = jnp.stack([j / total for j in kept])
    at_zero = jnp.stack([jnp.full_like(z, float(k == 0)) for k in range(v + 1)])
    return jnp.where(zero, at_zero, out)


__all__ = ["bessel_jn", "i0", "i0e", "i1", "i1e"]
