"""Reductions of two numbers as words of two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.graph import Value, is_narrow
from primal.engines.cpu.plan.around import is_made

OF_VECTORS = 2048
"""Bytes of an array up to which loops reduce it in registers: eight odd-even sorts of 64 float32
take 2.6 us so, and 7.1 by halves."""
MANY = 1024
"""Sums from which code for two is worth it where there is code for all lengths."""
EXTREMA = {"maximum": "max", "minimum": "min"}


def reduced(k: Any, monoid: str, x: Value, axes: Sequence[int]) -> Value | None:
    """The reduction of an array along an axis of two; None where that does not suit.

    Who computes extrema as words writes them where they belong: 500 turns of an odd-even sort of
    1000 float32 took 1,210 us, and take 80 (JAX 610). So it is in loops alone, and of arrays in
    memory, as other reductions along the axis share a pass. A sum of two float32, or of narrow
    ones rounded to float32 first, is the same: no float64 as for more of them (variances of 333,333
    x 2 float32 354 to 83 us, sums of complex64 307 to 90, JAX 110).
    """
    if [x.shape[d] for d in axes] != [2]:
        return None
    word = None
    if monoid == "add" and x.dtype in (np.float32, np.complex64) and x.size >= 2 * MANY:
        word = monoid
    elif is_made(x):
        return None
    elif monoid == "add" and is_narrow(x.dtype):
        word = monoid
    elif k.path and x.size * x.node.dtype.itemsize > OF_VECTORS:
        word = EXTREMA.get(monoid)
    if word is None:
        return None
    kept = tuple([n for d, n in enumerate(x.shape) if d not in axes])
    parts = []
    for at in range(2):
        start = [at * (d in axes) for d in range(x.ndim)]
        limit = [at + 1 if d in axes else n for d, n in enumerate(x.shape)]
        parts.append(k.reshape(k.slice(x, start, limit, (1,) * x.ndim), kept))
    out: Value = k.binary(word, *parts)
    # Sums begin with 0, so that of -0 is 0.
    return k.binary(word, out, k.literal(0, x.dtype)) if word == "add" else out
