"""What distributions do at the ends of their support and beyond, where derivatives are 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import primal.numpy as jnp


def within(
    z: Any, low: Any, high: Any, value: Callable[[Any], Any], before: Any, after: Any
) -> Any:
    """value(z) for low ≤ z ≤ high, `before` below and `after` above; high=None: below infinity.

    `value` never sees a z from outside, so that no ∞·0 of its derivative comes back.
    """
    under = z < low
    over = z > (float(jnp.finfo(z.dtype).max) if high is None else high)
    inside = value(jnp.where(over | under, 0.5 if high is None else (low + high) / 2, z))
    return jnp.where(under, before, jnp.where(over, after, inside))


def for_positive(value: Any, *parameters: Any) -> Any:
    """The value where the parameters are positive, nan where there is no such distribution."""
    for p in parameters:
        value = jnp.where(p > 0, value, jnp.nan)
    return value
