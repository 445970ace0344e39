"""Whether numbers are finite, and none -0: both halves, of every dtype of NumPy's and layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from primal.base import native

SPECIAL = 0.0, -0.0, 1.0, -1.0, 1e-7, np.inf, -np.inf, np.nan


def arrays(dtype: str) -> Iterator[Any]:
    for shape in ((), (1,), (0,), (5,), (3, 4), (1000,)):
        for value in SPECIAL:
            x = np.ones(shape, dtype)
            for part in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
                x[...] = 1
                part[(-1,) * x.ndim if x.size else ...] = value
                yield from (x, x.T, x[..., ::-1] if x.ndim else x)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_both_halves_look_at_every_number(dtype: str) -> None:
    for x in arrays(dtype):
        parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
        finite = bool(np.isfinite(x).all())
        plain = finite and not any((np.signbit(p) & (p == 0)).any() for p in parts)
        with np.errstate(invalid="ignore"):
            assert native._is_finite(x) == native.is_finite(x) == finite
            assert native._is_plain(x) == native.is_plain(x) == plain
