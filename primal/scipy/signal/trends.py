"""Removing trends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.ops.types import canonical_axes
from primal.runtime.refusals import in_words
from primal.scipy.operands import beside, inexact


@in_words
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """The data less its mean (type 'constant') or its least-squares line along an axis.

    Lines are fitted separately between the breakpoints bp. Shape kept, integers become floats.
    ValueError for another type or breakpoints outside the axis, NotImplementedError with
    overwrite_data.

    >>> detrend(jnp.array([1., 2., 4.]), type="constant").round(3)
    Array([-1.333, -0.333,  1.667], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    (x,) = inexact("detrend", jnp.asarray(data) if isinstance(data, list | tuple) else data)
    if type == "constant":
        return x - jnp.mean(x, axis=axis, keepdims=True)
    (place,) = canonical_axes("detrend", (axis,), x.ndim)
    n = x.shape[place]
    points = np.unique(np.concatenate([[0], np.atleast_1d(np.asarray(bp, int)), [n]]))
    if points[0] < 0 or points[-1] > n:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis."
        )
    y = jnp.moveaxis(x, place, -1)
    parts = [_without_line(y[..., a:b]) for a, b in zip(points[:-1], points[1:], strict=True)]
    return jnp.moveaxis(jnp.concatenate(parts, axis=-1), -1, place) if parts else x


def _without_line(x: Any) -> Any:
    """x less its projection on 1 and on the centred points, which are orthogonal."""
    n = x.shape[-1]
    steps = np.arange(n) - (n - 1) / 2
    unit = beside(x, steps / max(np.sqrt(np.sum(steps**2)), 1e-30))
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x - jnp.sum(x * unit, axis=-1, keepdims=True) * unit
