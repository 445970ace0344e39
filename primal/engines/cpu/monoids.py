"""What reductions start from, and the dtype they add up in."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.engines.cpu.lanes import NARROW


def accumulator(monoid: str, dtype: str) -> str:
    """The dtype a reduction adds up in. float32 sums in float64: no blocks, no order to regret."""
    if dtype in NARROW:
        return "f8" if monoid == "add" else "f4"
    return "f8" if (monoid, dtype) == ("add", "f4") else dtype


def identity(monoid: str, dtype: str) -> Any:
    """The value that changes nothing."""
    if monoid in ("add", "or", "xor"):
        return 0
    if monoid == "multiply":
        return 1
    if monoid == "and":
        return -1
    low = monoid == "maximum"
    if dtype == "b1":
        return not low
    if dtype[0] == "f":
        return -np.inf if low else np.inf
    info = np.iinfo(np.dtype(dtype))
    return info.min if low else info.max
