"""Products that fade below the normal numbers are those of NumPy, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal import lax
from primal.base.config import enable_x64, flush_subnormals
from primal.ops.window.cumulative import linear_recurrence
from tests.engines.cpu.lab import built

RNG = np.random.default_rng(5)
N = 300
SPICES = ["none", "zeros", "big", "inf", "tiny", "nan"]


def drawn(dtype: str, spice: str, columns: int) -> Any:
    """Factors around 1 of both signs, some of them rare ones."""
    info = np.finfo(dtype)
    x = RNG.uniform(0.4, 1.6, (N, columns)) * RNG.choice([-1, 1], (N, columns))
    x[:, 0] = 1  # beside what fades what does not
    x = x.astype(dtype)
    x[0] = (RNG.uniform(-1, 1, columns) * 2.0 ** RNG.integers(-5, 6, columns)) * info.tiny
    rare = {"zeros": 0, "big": info.max / 4, "inf": np.inf, "tiny": info.tiny / 8, "nan": np.nan}
    if spice in rare:
        x[RNG.integers(1, N, 4), RNG.integers(0, columns, 4)] = rare[spice]
    return x


def same(got: Any, want: Any) -> None:
    """Equal bits, or both not a number."""
    bits = f"u{want.itemsize}"
    alike = got.view(bits) == np.ascontiguousarray(want).view(bits)
    assert (alike | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("spice", SPICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(dtype: str, spice: str, reverse: bool) -> None:
    with enable_x64(True), np.errstate(all="ignore"):
        x = drawn(dtype, spice, 19)
        if reverse:
            x = x[::-1].copy()
        (down,) = built(lambda x: [lax.cumprod(x, 0, reverse=reverse)], x).execute([x])
        turned = np.ascontiguousarray(x.T)
        (along,) = built(lambda x: [lax.cumprod(x, 1, reverse=reverse)], turned).execute([turned])
        order = slice(None, None, -1 if reverse else 1)
        want = np.multiply.accumulate(x[order], 0)[order]
        same(down, want)
        same(np.ascontiguousarray(along.T), want)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("spice", SPICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recurrences(dtype: str, spice: str, late: bool) -> None:
    with enable_x64(True), np.errstate(all="ignore"):
        a = drawn(dtype, spice, 6)
        b = (RNG.standard_normal(a.shape) * np.finfo(dtype).tiny).astype(dtype)
        b[RNG.random(a.shape) < 0.7] = 0
        want = b.copy()
        for k in range(1, N):
            want[k] += a[k - late] * want[k - 1]

        def f(axis: int) -> Any:
            given = {"axis": axis, "reverse": False, "late": late}
            return lambda a, b: [linear_recurrence(a, b, **given)]

        same(built(f(0), a, b).execute([a, b])[0], want)
        rows = [np.ascontiguousarray(v.T) for v in (a, b)]
        same(np.ascontiguousarray(built(f(1), *rows).execute(rows)[0].T), want)


def test_flushed() -> None:
    x = np.full(9000, 0.9, np.float32)
    with flush_subnormals(True):
        (got,) = built(lambda x: [lax.cumprod(x, 0)], x).execute([x])
    assert not ((got != 0) & (got < np.finfo(np.float32).tiny)).any()
