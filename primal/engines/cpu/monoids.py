"""What reductions start from, and the dtype they add up in."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import monoids
from primal.engines.cpu.lanes import NARROW


def accumulator(monoid: str, dtype: str) -> str:
    """The dtype a reduction adds up in. float32 sums in float64: no blocks, no order to regret."""
    if dtype in NARROW:
        return "f8" if monoid == "add" else "f4"
    return "f8" if (monoid, dtype) == ("add", "f4") else dtype


def identity(monoid: str, dtype: str) -> Any:
    """The value that changes nothing, as a Python number."""
    return monoids.identity(monoid, np.dtype(dtype)).item()


def repeated(monoid: str, number: Any, count: int) -> Any:
    """So many times the same number, reduced, in its dtype.

    >>> repeated("add", np.float32(0.5), 3), repeated("multiply", np.int8(3), 6)
    (np.float32(1.5), np.int8(-39))
    """
    if monoid == "xor":
        return number if count % 2 else number ^ number
    if monoid not in ("add", "multiply"):
        return number
    if number.dtype.kind in "iu":
        times = int(number) * count if monoid == "add" else pow(int(number), count, 1 << 64)
        return np.uint64(times % (1 << 64)).astype(number.dtype)
    wide = np.float64(number)
    with np.errstate(all="ignore"):
        if monoid == "multiply":
            return (wide**count).astype(number.dtype)
        # Sums begin with 0, to which -0 adds nothing; one number is its own sum.
        return number if count == 1 else (wide * count + 0.0).astype(number.dtype)
