"""Coordinates of places, as NumPy should give them."""

from __future__ import annotations

from typing import Any

import numpy as np


def unravelled(at: Any, shape: Any) -> tuple[Any, ...]:
    """Coordinates, in an array of `shape`, of places counted row by row; ValueError beyond it.

    `np.unravel_index` asks for them in one line: of more than 8192 places of 64 bits, of which the
    last dimension is 1, it gives wrong ones, as it walks through its buffers (NumPy 2.4).
    """
    if at.ndim < 2:
        return np.unravel_index(at, shape)
    return tuple([k.reshape(at.shape) for k in np.unravel_index(at.reshape(-1), shape)])
