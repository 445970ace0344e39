"""Running functions in every way there is, and comparing what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

import primal.runtime.programs  # noqa: F401  (installs what runs programs)
from primal.base import dtypes
from primal.base.config import cpu_engine, enable_x64
from primal.base.limits import finfo
from primal.control.call import call
from primal.ir.check import check_closed
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr
from primal.runtime import devices
from primal.runtime.eager import as_array
from primal.transforms.simplify import program_key
from primal.transforms.stage import stage
from tests.engines.cpu.lab import spoiled

Array = Any
Flat = Callable[..., list[Any]]

# The engines that run programs here. The CPU compiler joins where it is registered.
ENGINES = ("reference", "xla", "cpu")


def engines() -> list[str]:
    """The engines that this installation has."""
    return [e for e in ENGINES if e in ("reference", "xla") or e in devices._host_engines]


def host(x: Any) -> np.ndarray[Any, Any]:
    """The NumPy array of a result."""
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


def arrays(xs: Sequence[Any]) -> list[Any]:
    """NumPy values as arrays of the library."""
    return [as_array(np.asarray(x)) for x in xs]


@contextmanager
def width(xs: Sequence[Any]) -> Iterator[None]:
    """64 bits switched on where an operand needs them."""
    wide = any(np.asarray(x).dtype in _WIDE for x in xs)
    with enable_x64(wide):
        yield


_WIDE = {np.dtype(d) for d in ("f8", "c16", "i8", "u8")}


def eager(f: Flat, xs: Sequence[Any]) -> list[Array]:
    """The results, op by op, those of loops too, which outside of jit are programs otherwise."""
    with cpu_engine("reference"):
        return [host(o) for o in f(*arrays(xs))]


def staged(f: Flat, xs: Sequence[Any]) -> ClosedJaxpr:
    """The program of f for these operands, checked."""
    closed = stage(f, [a.aval for a in arrays(xs)], getattr(f, "__name__", "law"))
    check_closed(closed)
    return closed


def run(closed: ClosedJaxpr, xs: Sequence[Any], engine: str) -> list[Array]:
    """The program compiled and run by one engine, that of ours on memory full of rubbish."""
    with cpu_engine(engine), spoiled() if engine == "cpu" else nullcontext():
        return [host(o) for o in call(*arrays(xs), jaxpr=closed, name="law", inline=False)]


def run_together(
    programs: Sequence[tuple[str, ClosedJaxpr, Sequence[Any]]], engine: str
) -> list[list[Array]]:
    """Several programs compiled as one, which costs one compilation; by themselves if that fails.

    So an error names the program it came from. A program that stands there again, with other
    operands, is compiled once and run again.
    """
    same: dict[Any, list[int]] = {}
    for i, (_, closed, _) in enumerate(programs):
        consts = tuple([np.asarray(c).tobytes() for c in closed.consts])
        same.setdefault((program_key(closed), consts), []).append(i)
    runs = max(map(len, same.values()), default=0)
    # Those that stand there less often run again with their last operands.
    rounds = [[at[min(r, len(at) - 1)] for at in same.values()] for r in range(runs)]

    def everything(*xs: Any) -> list[Any]:
        outs: list[Any] = []
        at = 0
        for i in rounds[0]:
            _, closed, own = programs[i]
            outs.extend(eval_closed(closed, *xs[at : at + len(own)]))
            at += len(own)
        return outs

    results: list[list[Array]] = [[] for _ in programs]
    try:
        joined: Any = None
        for members in rounds:
            flat = [x for i in members for x in programs[i][2]]
            joined = joined or staged(everything, flat)
            outs = iter(run(joined, flat, engine))
            for i in members:
                results[i] = [next(outs) for _ in programs[i][1].out_avals]
    except Exception:
        for i, (what, closed, own) in enumerate(programs):
            try:
                results[i] = run(closed, own, engine)
            except Exception as e:
                raise AssertionError(f"{what} fails on {engine}: {e}") from e
    return results


def close(
    got: Sequence[Any], want: Sequence[Any], what: str, ulps: float = 0.0, near: float = 0.0
) -> None:
    """Equal shapes and dtypes; values equal up to `ulps`, relative to their size or `near`."""
    assert len(got) == len(want), f"{what}: {len(got)} results for {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        _close(host(g), host(w), f"{what}, result {i}", ulps, near)


def _close(g: Array, w: Array, what: str, ulps: float, near: float) -> None:
    assert g.shape == w.shape, f"{what}: shape {g.shape} for {w.shape}"
    assert g.dtype == w.dtype, f"{what}: dtype {g.dtype} for {w.dtype}"
    if not dtypes.issubdtype(g.dtype, np.inexact):
        if g.dtype.kind == "V":
            g, w = g.astype(np.int32), w.astype(np.int32)
        np.testing.assert_array_equal(g, w, err_msg=what)
        return
    info = finfo(g.dtype)
    eps, tiny = float(info.eps), float(info.tiny)
    near_values(g, w, ulps * eps, max(near, tiny), what)


def near_values(g: Array, w: Array, tol: float, near: float, what: str) -> None:
    """|g - w| <= tol·max(|w|, near), nan where nan and inf where inf."""
    wide = np.complex128 if g.dtype.kind == "c" or w.dtype.kind == "c" else np.float64
    g, w = g.astype(wide), w.astype(wide)
    bad = np.isnan(g) != np.isnan(w)
    with np.errstate(all="ignore"):
        far = np.isinf(w) | np.isinf(g)
        bad |= far & ~np.isnan(w) & (g != w)
        error = np.where(far | np.isnan(w), 0, np.abs(g - w))
        bad |= error > tol * np.maximum(np.where(far | np.isnan(w), 0, np.abs(w)), near)
    if bad.any():
        at = tuple(int(i[0]) for i in np.nonzero(bad)) if bad.ndim else ()
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {bad.size} values differ, first at {at}: got {g[at]}, "
            f"expected {w[at]} (off by {error[at]:.3g}, allowed "
            f"{tol * max(float(np.abs(w[at])), near):.3g})"
        )
