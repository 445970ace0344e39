"""Products that fade below the normal numbers are those of NumPy, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal import lax
from primal.base.config import enable_x64, flush_subnormals
from primal.engines.cpu.routines import recurrences
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


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("stretch", [1, 7, 99, 300])
def test_recurrences_in_stretches(
    stretch: int, dtype: str, kept: bool, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step each, so that signals are looked for between; the results are those of one step."""
    a = drawn("float32", "none", 5)
    b = RNG.standard_normal(a.shape).astype(dtype)
    if dtype == "complex64":
        a, b = (0.7 + 0.5j) * a, b * (1 - 2j)
    a = a.real > 0 if kept else a.astype(dtype)
    b = b.astype(dtype)
    for axis, given in ((0, [a, b]), (1, [np.ascontiguousarray(v.T) for v in (a, b)])):
        for late in (False, True):

            def f(a: Any, b: Any, axis: int = axis, late: bool = late) -> list[Any]:
                return [linear_recurrence(a, b, axis=axis, reverse=reverse, late=late)]

            whole = built(f, *given)
            with monkeypatch.context() as patch:
                patch.setattr(recurrences, "ROUND", stretch)
                made = built(f, *given)
            assert len(made.plan.steps) - len(whole.plan.steps) == -(-N // stretch) - 1
            got, want = [p.execute(given)[0] for p in (made, whole)]
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


def test_flushed() -> None:
    x = np.full(9000, 0.9, np.float32)
    with flush_subnormals(True):
        (got,) = built(lambda x: [lax.cumprod(x, 0)], x).execute([x])
    assert not ((got != 0) & (got < np.finfo(np.float32).tiny)).any()
