"""Scatters: which code combines windows into an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu import _llvm
from primal.engines.cpu.graph import (
    IN_REGISTERS,
    NATIVE,
    Value,
    is_narrow,
    is_zero,
    size_of,
    transposed,
)
from primal.engines.cpu.kernels import takes
from primal.engines.cpu.kernels.takes import INT32
from primal.engines.cpu.routines import gathers, moves, pieces, windows
from primal.ir.avals import Aval

HALF, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)
FEW = 16
"""Elements of windows of arrays of twice as many that are updated as they are: a loop would copy
the array where they are made of it. Arrays of as many lie in registers of loops, where to put
pieces together costs nothing (500 turns of a Laplacian by `.at[1:-1].add` of 16 numbers 13 to
3.7 us)."""
MOST_BESIDE = 2
"""Elements of a row for one between the first that is updated and the last, up to which all are
put together again."""
RUN_COST, COST = 40, 4
"""What a window, and an element of it, cost to convert there and back where they lie, beside an
element of a whole array."""


def scatter(
    k: Any, word: str, x: Value, indices: Value, updates: Value, **params: Any
) -> Value:  # fmt: skip
    """x with windows combined in by a word of two operands, or 'set'."""
    found = _known_window(k, word, x, indices, updates, **params)
    found = found or _in_turn(k, word, x, indices, updates, **params)
    if found is not None:
        return found
    # Sums and products are rounded once, at the end; extrema need no rounding, so no other array:
    # rows of 1000 x 1000 float16 took 520 us. Where the CPU does not convert float16, which
    # comparisons of them do too, NumPy takes them.
    known = x.dtype != HALF or _llvm.compiler().half
    exact = ("set", "max", "min") if known else ("set",)
    rounds = word not in exact and is_narrow(x.dtype)
    if rounds and known and _are_few(updates.size, size_of(params["sizes"]), x.size):
        return _touched(k, word, x, indices, updates, **params)
    if rounds:
        wide, more = k.convert(x, FLOAT32), updates if known else k.convert(updates, FLOAT32)
        narrow: Value = k.convert(k.scatter(word, wide, indices, more, **params), x.dtype)
        return narrow
    flat = takes.flat_scatter(k, x, indices, updates, **params)
    if flat is None:
        whole: Value = moves.scatter(k, x, indices, updates, word, **params)
    else:
        line, starts, values, numbers = flat
        whole = k.reshape(moves.scatter(k, line, starts, values, word, **numbers), x.shape)
    made = x.node.word == "complex" and x.is_node
    nothing = all(map(is_zero, x.node.args if made else (x,)))
    if k.woven and word == "add" and nothing and whole.strides is None:
        k.scattered[whole.node] = indices, updates, params
    return whole


def _are_few(updates: int, window: int, size: int) -> bool:
    """Whether converting what is updated, there and back, takes less than all of the array."""
    return updates // window * RUN_COST + updates * COST <= size


def _touched(
    k: Any, word: str, x: Value, indices: Value, updates: Value, **params: Any
) -> Value:  # fmt: skip
    """A scatter into an array of narrow floats, of which float32 holds what is updated, no more.

    The others are never written there: a thousand sums into a million float16 took 410 us, of
    which converting the array was all.
    """
    found = takes.flat_scatter(k, x, indices, updates, **params)
    line, starts, values, numbers = found or (x, indices, updates, params)
    windows = {"dimension_numbers": numbers["dimension_numbers"], "fill": None,
               "slice_sizes": numbers["sizes"], "shape": values.shape}  # fmt: skip
    old = k.convert(k.gather(line, starts, **windows), FLOAT32)
    wide = moves.scatter(k, Aval(line.shape, FLOAT32), starts, old, "set", **numbers)
    wide = moves.scatter(k, wide, starts, values, word, **numbers)
    new = k.convert(k.gather(wide, starts, **windows), x.dtype)
    whole = moves.scatter(k, line, starts, new, "set", **numbers)
    return whole if found is None else k.reshape(whole, x.shape)


def added_to(k: Any, x: Value, y: Value) -> Value | None:
    """x + y, where both are windows that were added to zeros for this alone: all in one array.

    The derivative of reading an array at several places is a sum of such: at four corners of 500
    points of 1000 x 1000 float64 it took 1.65 ms, of which 1.4 were zeros and their sums. Other
    operands may hold -0, to which adding zeros does something.
    """
    if x.shape != y.shape or any(len(v.parts) > 1 for v in (x, y)):
        return None
    if any(v.strides or v.node not in k.scattered for v in (x, y)):
        return None
    for one, other in ((x, y), (y, x)):
        found = k.scattered[other.node]
        if found is not None:
            indices, updates, params = found
            k.woven = False
            out = scatter(k, "add", one, indices, updates, **params)
            k.scattered[out.node] = None
            return out
    return None


def _known_window(
    k: Any, word: str, x: Value, indices: Value, updates: Value, *, dimension_numbers: Any,
    sizes: Sequence[int], drops: bool,
) -> Value | None:  # fmt: skip
    """A window at a known place: what it will hold, put there; else None.

    Who computes that writes it where it belongs: 100 steps of Maxwell's equations on 128 x 128 by
    `.at[1:-1, 1:-1].add` took 930 us with updates of their own, and takes 530 (JAX 660).
    """
    size = size_of(sizes)
    if size <= FEW and x.size > max(FEW, 2 * size):
        return None
    if word == "add" and x.node.word == "literal" and not any(x.node.attr):
        return None  # a sum of such is one array
    first, inside = gathers.known_start(k, x, indices, dimension_numbers, sizes)
    if first is None:
        return None
    if drops and not inside:
        return x
    stop = [a + n for a, n in zip(first, sizes, strict=True)]
    piece = k.reshape(updates, tuple(sizes))
    if word != "set":
        piece = k.binary(word, k.slice(x, first, stop, [1] * x.ndim), piece)
    where = [k.literal(start, INT32) for start in first]
    return windows.dynamic_update_slice(k, x, piece, where)


def _in_turn(
    k: Any, word: str, x: Value, indices: Value, updates: Value, *, dimension_numbers: Any,
    sizes: Sequence[int], drops: bool,
) -> Value | None:  # fmt: skip
    """Every second element of rows, or one of a few, nearly from end to end: put together with
    those between; else None.

    All lines of the cache are touched anyway (`x.at[:, ::2].set(1)` of 1000 x 1000 float32 took 650
    us, and takes 87, JAX 470; of int8 355 and 23, JAX 360).
    """
    offset, gone, mapped, batching, _ = dimension_numbers
    d = x.ndim - 1
    if batching or not tuple(gone) == tuple(mapped) == (d,) or indices.ndim != 2:
        return None
    if x.size <= IN_REGISTERS or x.dtype not in NATIVE or x.steps()[d] not in (0, 1):
        return None
    if tuple(sizes[:d]) != x.shape[:d]:
        return None
    begin, (step,) = windows.progression(takes.column(k, indices, 0)) or (0, (0,))
    n, count = x.shape[d], indices.shape[0]
    if begin < 0 or not 1 < step <= pieces.CLOSE or count < 2 or n > MOST_BESIDE * count * step:
        return None
    low, last = begin % step, begin + step * (count - 1)
    start, stop = begin - low, last - low + step
    if last >= n:
        return None
    if stop + low >= n:
        stop = n

    def between(of: Value, start: int, stop: int, apart: int = 1) -> Value:
        first, last, steps = [0] * x.ndim, list(of.shape), [1] * x.ndim
        first[d], last[d], steps[d] = start, stop, apart
        out: Value = k.slice(of, first, last, steps)
        return out

    (other,) = [i for i in range(x.ndim) if i not in offset]
    new = transposed(updates, [*offset, other])
    if word != "set":
        new = k.binary(word, between(x, begin, last + 1, step), new)

    def part(i: int, first: int, last: int) -> Value:
        if i == low:
            return between(new, first, last)
        i += start
        return between(x, i + first * step, i + (last - 1) * step + 1, step)

    out = pieces.in_turn(k, (*x.shape[:d], stop - start), d, step, part)
    sides = [between(x, 0, start)] if start else []
    sides = [*sides, out, *([between(x, stop, n)] if stop < n else [])]
    return pieces.concatenate(k, sides, d)
