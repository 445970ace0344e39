"""Programs compiled by the cpu engine beside NumPy's run of the same jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from primal.base.config import enable_x64
from primal.engines.cpu import CpuEngine, _llvm
from primal.engines.cpu import program as programs
from primal.engines.cpu.program import CpuExecutable
from primal.engines.cpu.run import calls
from primal.ir.avals import Aval
from primal.ir.evaluate import quietly, run_numpy
from primal.ir.jaxpr import ClosedJaxpr
from primal.transforms.simplify import simplify
from primal.transforms.stage import stage

engine = CpuEngine()
Flat = Callable[..., list[Any]]
HALF = pytest.mark.skipif(
    not _llvm.compiler().half, reason="no instruction converts float16, which is left to NumPy"
)
"""Of tests that no library step computes with float16."""


def program(f: Flat, xs: Sequence[Any], name: str = "lab") -> ClosedJaxpr:
    """The simplified program of f for operands like xs."""
    with enable_x64(True):
        closed = stage(f, [Aval(np.shape(x), np.asarray(x).dtype) for x in xs], name)
        return simplify(closed, "kernel")


def built(f: Flat, *xs: Any) -> CpuExecutable:
    """The executable of f for operands like xs."""
    return engine.compile(program(f, xs), name="lab")


def numpy_run(f: Flat, *xs: Any) -> list[Any]:
    """The meaning of the program."""
    closed = program(f, xs)
    return quietly(run_numpy, (closed.jaxpr, closed.consts, [np.asarray(x) for x in xs]), {})


def ulps(got: Any, want: Any) -> float:
    """The largest distance in units of the last place of `want`; NaN and infinities must agree."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.dtype, want.dtype)
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return 0.0
    finite = np.isfinite(want)
    np.testing.assert_array_equal(np.where(finite, 0, got), np.where(finite, 0, want))
    # Floats of one sign are numbered in order by their bits.
    word = np.dtype(f"i{got.dtype.itemsize}")
    g, w = [np.ascontiguousarray(a[finite]).view(word).astype(object) for a in (got, want)]
    low = int(np.iinfo(word).min)
    apart = [abs((low - a if a < 0 else a) - (low - b if b < 0 else b))
             for a, b in zip(g, w, strict=True) if a != b]  # fmt: skip
    return float(max(apart, default=0))


@contextmanager
def spoiled(byte: int = 0x7F) -> Iterator[None]:
    """Memory of results and intermediate values holds such bytes before a program writes it.

    Floats of them are huge, so that what is not written, or read before, is seen.
    """

    def empty(shape: Any, dtype: Any) -> Any:
        out = np.empty(shape, dtype)
        out.reshape(-1).view(np.uint8)[...] = byte if out.dtype != np.bool_ else 1
        return out

    def arena(size: int) -> Any:
        out = fresh(size)
        out[...] = byte
        return out

    fresh = calls.arena
    with patch.object(programs, "empty", empty), patch.object(calls, "arena", arena):
        yield


def agree(f: Flat, *xs: Any, within: float = 0) -> CpuExecutable:
    """Compile and run f; every output is within so many ulps of NumPy's, integers equal."""
    made = built(f, *xs)
    with spoiled():
        found = made.execute(list(xs))
    for got, want in zip(found, numpy_run(f, *xs), strict=True):
        assert ulps(got, want) <= within, f"{got}\nfor\n{want}"
    return made


def kernels_used(made: CpuExecutable) -> int:
    """How many groups became kernels."""
    return len(made.plan.instances)
