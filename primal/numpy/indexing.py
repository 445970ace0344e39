"""Reading elements: `x[index]` in every NumPy form.

Static ints and slices become slice and squeeze, traced scalars dynamic_slice, index arrays one
gather. Reads out of bounds come from the nearest element; negative indices count from the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primal.base.config import settings
from primal.ir.avals import Aval
from primal.ir.state import state
from primal.ir.trace import Array, aval_of
from primal.numpy.index_forms import (
    NEW,
    Form,
    Span,
    dynamic_positions,
    is_array,
    parse,
    position,
    positions,
    start_indices,
    uniform_starts,
)
from primal.numpy.promotion import scalar_literal
from primal.ops.index.arrays import as_starts
from primal.ops.index.dynamic import dynamic_slice
from primal.ops.index.gather import gather
from primal.ops.index.numbers import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    default_fill,
)
from primal.ops.shape import reshape, rev, squeeze
from primal.ops.shape import slice as slice_op
from primal.ops.spread import broadcast_in_dim
from primal.runtime import guards, watch
from primal.runtime.array import ArrayImpl
from primal.runtime.eager import EagerTrace


class Hints(NamedTuple):
    """What is said about indices: their order, that none repeats, what out of bounds means."""

    sorted: bool
    unique: bool
    mode: GatherScatterMode
    wrap: bool

    @property
    def fills(self) -> bool:
        """Whether reads out of bounds give a fill value, not the nearest element."""
        return self.mode is FILL_OR_DROP or self.mode is ONE_HOT


# Out of bounds the nearest element is read, and no gradient arrives.
READ = Hints(False, False, PROMISE_IN_BOUNDS, True)
BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def getitem(x: Array, index: Any) -> Any:
    """x[index]: NumPy's indexing, with reads out of bounds from the nearest element.

    For an index tuple of ints, slices, None and Ellipsis the result is the corresponding part of
    x; integer arrays broadcast against each other and their dimensions replace those that they
    index (in front, where slices stand between them); masks select where they are true.

    Raises IndexError for too many indices, for traced masks, whose results have no shape, and, with
    the setting `check_static_indices`, for Python's and NumPy's integers out of bounds; TypeError
    for lists, strings and floats as indices.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> x[1, ::-1]
    Array([5, 4, 3], dtype=int32)
    >>> x[:, jnp.array([0, 9])]
    Array([[0, 2],
           [3, 5]], dtype=int32)
    """
    if guards.ever:
        guards.as_index(index)
    # The test of `is_eager_array`, inlined: this is the path of every `x[0]`.
    if x.__class__ is ArrayImpl and state.trace.__class__ is EagerTrace and not watched():
        found = read_numpy(x, index)
        if found is not None:
            return found
    form = parse(index, x.aval.shape)
    if settings().check_static_indices:
        _check_bounds(form)
    return read(x, form, READ)


def _check_bounds(form: Form) -> None:
    """IndexError for an integer, known by itself, that is out of bounds."""
    for d, (n, entry) in enumerate(zip(form.shape, form.dims, strict=True)):
        if type(entry) is int and not -n <= entry < n:
            raise IndexError(
                f"[index] expected an index in [{-n}, {n}) along dimension {d}, got {entry}: index "
                f"{entry} is out of bounds for axis {d} with size {n}, which the setting "
                "check_static_indices asks about."
            )


def watched() -> bool:
    """Whether results are looked at, as operations do."""
    return watch.ever and bool(settings().watches)


def is_eager_array(x: Any) -> bool:
    """Whether x is a concrete array outside of transformations."""
    return x.__class__ is ArrayImpl and state.trace.__class__ is EagerTrace


def read_numpy(x: Any, index: Any) -> ArrayImpl | None:
    """The result by NumPy's own indexing; None for what only the general path does.

    In bounds both mean the same. NumPy's IndexError out of bounds, like any of its complaints,
    sends the index to the general path, which knows the answer or the better message.
    """
    host = x.host
    if host is None:
        if x.placement is not None:
            return None
        host = x.numpy()
    kind = index.__class__
    if kind is tuple:
        for item in index:
            if item.__class__ not in BASIC:
                index = numpy_index(index)
                if index is None:
                    return None
                break
    elif kind not in BASIC:
        index = numpy_index((index,))
        if index is None:
            return None
    try:
        out = host[index]
    except Exception:
        return None
    if out.__class__ is not np.ndarray:
        out = np.asarray(out, host.dtype)
    aval = x.aval
    return ArrayImpl(Aval(out.shape, aval.dtype, aval.weak_type), out)


def numpy_index(index: Any) -> tuple[Any, ...] | None:
    """An index tuple for NumPy, or None where values are unknown or meanings might differ.

    NumPy itself would read numbers from 2**63 on as negative ones.
    """
    items = []
    for item in index:
        kind = item.__class__
        if kind in BASIC:
            items.append(item)
        elif kind is ArrayImpl:
            if item.host is None or item.aval.dtype.kind not in "iub":
                return None
            item = item.host
            items.append(as_starts(item) if item.dtype.kind == "u" else item)
        elif kind is np.ndarray:
            items.append(as_starts(item) if item.dtype.kind == "u" else item)
        elif kind is bool or isinstance(item, np.integer | np.bool_):
            items.append(item)
        else:
            return None
    return tuple(items)


def read(x: Any, form: Form, hints: Hints, fill_value: Any = None) -> Any:
    """The part of x that a parsed index names."""
    x = grow(x, form)
    if not form.advanced and not (hints.fills and _may_leave(form, hints.wrap)):
        return _read_basic(x, form, hints)
    shape = form.result_shape()
    if 0 in shape:
        return _nothing(x, shape)
    for d, (n, entry) in enumerate(zip(form.shape, form.dims, strict=True)):
        if n == 0 and type(entry) is not Span:
            if not hints.fills:
                raise empty_axis(d)
            # Every index is out of bounds there.
            dtype = aval_of(x).dtype
            fill = default_fill(dtype) if fill_value is None else fill_value
            return broadcast_in_dim(
                scalar_literal(fill, dtype, False), shape=shape, broadcast_dimensions=()
            )
    return _read_gather(x, form, hints, fill_value)


def grow(x: Any, form: Form) -> Any:
    """x with the dimensions of size 1 that boolean scalars index."""
    if not form.grown:
        return x
    dims = tuple([d for d in range(len(form.shape)) if d not in form.grown])
    return broadcast_in_dim(x, shape=form.shape, broadcast_dimensions=dims)


def empty_axis(d: int) -> IndexError:
    """The error of an integer that indexes dimension d, which has no elements."""
    return IndexError(
        f"[index] expected a dimension with elements, got none along dimension {d}: index is out "
        f"of bounds for axis {d} with size 0"
    )


def _may_leave(form: Form, wrap: bool) -> bool:
    """Whether a scalar index is, or might be, out of bounds."""
    for n, entry in zip(form.shape, form.dims, strict=True):
        if type(entry) is int:
            if not 0 <= position(entry, n, wrap) < n:
                return True
        elif is_array(entry):
            return True
    return False


def _nothing(x: Any, shape: tuple[int, ...]) -> Any:
    """An empty array of x's dtype, derived from x: no value can show that a gather was skipped."""
    zeros = (0,) * len(aval_of(x).shape)
    return reshape(
        slice_op(x, start_indices=zeros, limit_indices=zeros, strides=None), shape=shape
    )


# Ints, slices and traced scalars.


def _read_basic(x: Any, form: Form, hints: Hints) -> Any:
    starts: list[Any] = []
    sizes: list[int] = []
    steps: list[int] = []
    flipped: list[int] = []
    gone: list[int] = []
    dynamic = False
    for d, (n, entry) in enumerate(zip(form.shape, form.dims, strict=True)):
        if type(entry) is Span:
            starts.append(entry.start)
            sizes.append(entry.extent)
            steps.append(entry.step)
            if entry.flipped:
                flipped.append(d)
            continue
        if n == 0:
            raise empty_axis(d)
        gone.append(d)
        sizes.append(1)
        steps.append(1)
        if type(entry) is int:
            at = position(entry, n, hints.wrap)
            if hints.mode is CLIP:
                at = min(max(at, 0), n - 1)
            dynamic = dynamic or not 0 <= at < n  # which clamps, and which `checkify` sees
            starts.append(at)
        else:
            dynamic = True
            starts.append(dynamic_positions(entry, n, hints.wrap))
    strides = None if all(s == 1 for s in steps) else tuple(steps)
    if dynamic:
        x = dynamic_slice(x, *uniform_starts(starts), slice_sizes=tuple(sizes))
        starts = [0] * len(starts)
    if strides is not None or tuple(sizes) != aval_of(x).shape:
        limits = tuple([a + n for a, n in zip(starts, sizes, strict=True)])
        x = slice_op(x, start_indices=tuple(starts), limit_indices=limits, strides=strides)
    if flipped:
        x = rev(x, dimensions=tuple(flipped))
    if gone:
        x = squeeze(x, dimensions=tuple(gone))
    return _with_new(x, [d for d in form.order if d == NEW or d not in gone])


def _with_new(x: Any, layout: list[Any]) -> Any:
    """x with dimensions of size 1 at NEW; each other entry stands for one dimension."""
    if NEW not in layout:
        return x
    kept = tuple([at for at, entry in enumerate(layout) if entry != NEW])
    sizes = iter(aval_of(x).shape)
    shape = tuple([1 if entry == NEW else next(sizes) for entry in layout])
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=kept)


# Index arrays.


def _read_gather(x: Any, form: Form, hints: Hints, fill_value: Any) -> Any:
    batch = form.index_shape
    components: list[Any] = []
    mapped: list[int] = []
    collapsed: list[int] = []
    sizes: list[int] = []
    for d, (n, entry) in enumerate(zip(form.shape, form.dims, strict=True)):
        if type(entry) is Span:
            sizes.append(entry.extent)
            if entry.extent == n:
                continue
            mapped.append(d)
            components.append(entry.start)
            continue
        sizes.append(1)
        collapsed.append(d)
        mapped.append(d)
        components.append(component(entry, n, hints.wrap))
    layout = form.layout()
    rank = len(batch)
    offset: list[int] = []
    at = 0
    for entry in layout:
        if entry == "index":
            at += rank
        elif entry != NEW:
            offset.append(at)
            at += 1
    alone = not form.advanced
    out = gather(
        x,
        start_indices(components, batch),
        dimension_numbers=GatherDimensionNumbers(
            tuple(offset), tuple(collapsed), tuple(mapped), (), ()
        ),
        slice_sizes=tuple(sizes),
        mode=hints.mode,
        fill_value=fill_value,
        indices_are_sorted=hints.sorted or alone,
        unique_indices=hints.unique or alone,
    )
    spans = [d for d in layout if d != NEW and d != "index"]
    strided = [form.dims[d].step for d in spans]
    if any(s != 1 for s in strided):
        whole = aval_of(out).shape
        steps = [1] * len(whole)
        for place, step in zip(offset, strided, strict=True):
            steps[place] = step
        zeros = (0,) * len(whole)
        out = slice_op(out, start_indices=zeros, limit_indices=whole, strides=tuple(steps))
    flipped = [p for p, d in zip(offset, spans, strict=True) if form.dims[d].flipped]
    if flipped:
        out = rev(out, dimensions=tuple(flipped))
    expanded: list[Any] = []
    for entry in layout:
        expanded.extend(["index"] * rank if entry == "index" else [entry])
    return _with_new(out, expanded)


def component(entry: Any, n: int, wrap: bool) -> Any:
    """One column of start indices: an int, NumPy's array where known, or a traced array.

    What is out of bounds stays so: gather and scatter know what to do, and `checkify` sees it.
    """
    if type(entry) is int:
        return position(entry, n, wrap)
    if isinstance(entry, np.ndarray):
        return positions(entry, n, wrap)
    return dynamic_positions(entry, n, wrap)
