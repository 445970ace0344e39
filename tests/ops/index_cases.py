"""Definitions of gather and scatter as loops over elements, and random instances of both."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from primal.ops.index.numbers import (
    CLIP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)


class Case(NamedTuple):
    """One instance: a gather of these, and the scatter that is its mirror image."""

    operand: Any
    indices: Any
    numbers: GatherDimensionNumbers
    sizes: tuple[int, ...]
    out: tuple[int, ...]

    @property
    def scatter_numbers(self) -> ScatterDimensionNumbers:
        return ScatterDimensionNumbers(*self.numbers)


def random_case(
    rng: Any, dtype: Any = np.float32, index_dtype: Any = np.int32, inside: bool = False
) -> Case:
    """Random numbers and shapes of rank up to 4, with indices in and out of bounds."""
    rank = int(rng.integers(0, 5))
    shape = [int(n) for n in rng.integers(1, 5, rank)]
    if rank and rng.random() < 0.05:
        shape[int(rng.integers(rank))] = 0
    roles = rng.choice(["batching", "collapsed", "window"], rank, p=[0.2, 0.35, 0.45])
    roles = [r if n or r != "collapsed" else "window" for r, n in zip(roles, shape, strict=True)]
    batching = tuple([d for d in range(rank) if roles[d] == "batching"])
    collapsed = tuple([d for d in range(rank) if roles[d] == "collapsed"])
    free = [d for d in range(rank) if roles[d] != "batching"]
    mapped = tuple([int(d) for d in rng.permutation(free) if rng.random() < 0.75])
    batch_rank = len(batching) + int(rng.integers(0, 3))
    batch = [int(n) for n in rng.integers(1, 4, batch_rank)]
    places = tuple([int(i) for i in rng.permutation(batch_rank)[: len(batching)]])
    for d, i in zip(batching, places, strict=True):
        batch[i] = shape[d]
    sizes = [
        1 if r != "window" else int(rng.integers(min(n, 1), n + 1))
        for r, n in zip(roles, shape, strict=True)
    ]
    windows = [sizes[d] for d in range(rank) if roles[d] == "window"]
    out_rank = len(windows) + batch_rank
    offset = tuple(sorted(int(i) for i in rng.choice(out_rank, len(windows), replace=False)))
    numbers = GatherDimensionNumbers(offset, collapsed, mapped, batching, places)
    operand = random_array(rng, tuple(shape), dtype)
    info = np.iinfo(index_dtype)
    starts = np.zeros((*batch, len(mapped)), np.dtype(index_dtype))
    for k, d in enumerate(mapped):
        top = shape[d] - sizes[d]
        drawn = rng.integers(0 if inside else -2, top + (1 if inside else 3), batch)
        starts[..., k] = np.clip(drawn, int(info.min), int(info.max)).astype(index_dtype)
        if not inside:
            wild = rng.random(batch) < 0.1
            ends = np.array([int(info.min), int(info.max)], index_dtype)
            starts[..., k] = np.where(wild, ends[rng.integers(0, 2, batch)], starts[..., k])
    left, right = iter(windows), iter(batch)
    out = tuple([next(left) if i in offset else next(right) for i in range(out_rank)])
    return Case(operand, starts, numbers, tuple(sizes), out)


def random_array(rng: Any, shape: Any, dtype: Any) -> Any:
    """Small numbers, exact in every dtype, with repetitions."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    drawn = rng.integers(0 if dtype.kind == "u" else -3, 4, shape)
    if dtype.kind == "c":
        return (drawn + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    return np.asarray(drawn).astype(dtype)


def places(
    shape: Any, out: Any, indices: Any, numbers: Any, sizes: Any, mode: GatherScatterMode
) -> Any:
    """Per index of the result (or updates), in order: the index of the operand, None outside."""
    offset, collapsed, mapped, batching, index_batching = numbers
    kept = [d for d in range(len(shape)) if d not in collapsed and d not in batching]
    for at in itertools.product(*map(range, out)):
        b = tuple([i for p, i in enumerate(at) if p not in offset])
        start = [0] * len(shape)
        inside = True
        for k, d in enumerate(mapped):
            asked, top = int(indices[(*b, k)]), shape[d] - sizes[d]
            start[d] = min(max(asked, 0), top)
            inside = inside and asked == start[d]
        for d, i in zip(batching, index_batching, strict=True):
            start[d] = b[i]
        for d, p in zip(kept, offset, strict=True):
            start[d] += at[p]
        yield at, tuple(start) if inside or mode is CLIP else None, tuple(start)


def gather_loop(case: Case, mode: GatherScatterMode, fill: Any) -> Any:
    """The gather, element by element."""
    out = np.zeros(case.out, case.operand.dtype)
    for at, where, clipped in places(
        case.operand.shape, case.out, case.indices, case.numbers, case.sizes, mode
    ):
        if where is None and mode is PROMISE_IN_BOUNDS:
            where = clipped
        out[at] = case.operand[where] if where is not None else fill
    return out


def scatter_loop(case: Case, updates: Any, mode: GatherScatterMode, combine: Any) -> Any:
    """The scatter, element by element in the order of windows."""
    out = case.operand.copy()
    offset = case.numbers.offset_dims
    found = list(
        places(case.operand.shape, case.out, case.indices, case.numbers, case.sizes, mode)
    )
    found.sort(key=lambda f: [i for p, i in enumerate(f[0]) if p not in offset])
    for at, where, _ in found:
        if where is not None:
            out[where] = combine(out[where], updates[at])
    return out
