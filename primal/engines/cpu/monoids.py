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
