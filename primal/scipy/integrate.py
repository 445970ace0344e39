"""`primal.scipy.integrate`: integrals of samples."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.runtime.refusals import in_words

__all__ = ["trapezoid"]


@in_words
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral of samples along an axis by the trapezoidal rule.

    Σᵢ (xᵢ₊₁ - xᵢ)·(yᵢ + yᵢ₊₁)/2, where the places are `x` or lie `dx` apart. The shape is that of
    `y` without `axis`, the dtype floating. TypeError for lists.

    >>> trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=2.0)
    Array(8., dtype=float32)
    """
    return jnp.trapezoid(y, x, dx, axis)
