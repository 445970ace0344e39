"""`pad`, in all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.api.vectorize import vmap
from primal.base import dtypes
from primal.ir.trace import Array, Tracer, literal
from primal.numpy import direct
from primal.numpy.indexing import getitem
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    convert,
    from_literal,
    operand,
    to_shape,
)
from primal.numpy.ranges import linspace
from primal.numpy.reductions import max as largest
from primal.numpy.reductions import mean
from primal.numpy.reductions import min as least
from primal.numpy.remembered import remembered_as
from primal.numpy.shapes import moveaxis, part
from primal.numpy.statistics import median
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.spread import broadcast_in_dim

# Mode -> the keyword arguments it takes.
MODES: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}
RUNS = 6
"""Pieces of an axis up to which they are joined instead of gathered."""
STATISTICS = {"maximum": largest, "minimum": least, "mean": mean, "median": median}


@remembered_as(direct.pad)
def pad(
    array: ArrayLike,
    pad_width: Any,
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """The array with elements added before and after along every axis.

    `pad_width`: one number, (before, after), or such a pair per axis, all static; a dict gives
    pairs for some axes. Modes: constant (`constant_values`), edge, empty, linear_ramp
    (`end_values`), maximum, mean, median, minimum (`stat_length`), reflect, symmetric
    (`reflect_type`), wrap, or a function. Raises ValueError for negative widths and unknown
    arguments, NotImplementedError for unknown modes.

    >>> jnp.pad(jnp.array([1, 2]), 1)
    Array([0, 1, 2, 0], dtype=int32)
    >>> jnp.pad(jnp.array([1, 2, 3]), (2, 0), mode="reflect")
    Array([3, 2, 1, 2, 3], dtype=int32)
    """
    x = array_operand("pad", array)
    widths = _widths(pad_width, x.aval.ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode not in MODES:
        raise NotImplementedError(
            f"Unimplemented padding mode {mode!r} for np.pad. The modes are {', '.join(MODES)}."
        )
    unknown = set(kwargs) - set(MODES[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    if mode in ("constant", "empty"):
        return _constant(x, widths, kwargs.get("constant_values", 0))
    if mode == "linear_ramp":
        return _ramps(x, widths, kwargs.get("end_values", 0))
    if mode in STATISTICS:
        return _statistics(x, widths, mode, kwargs.get("stat_length"))
    return _repeated(x, widths, mode, kwargs.get("reflect_type", "even"))


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        full = [(0, 0)] * rank
        for axis, pair in pad_width.items():
            full[axis] = (pair, pair) if isinstance(pair, int) else tuple(pair)
        pad_width = full
    if isinstance(pad_width, Tracer):
        int(pad_width)  # raises the error that says how to make a value static
    given = np.asarray(pad_width)
    try:
        pairs = np.broadcast_to(given, (rank, 2)) if given.size else np.zeros((rank, 2), int)
    except ValueError:
        raise ValueError(
            f"jnp.pad: pad_width with nd={rank} has unsupported shape {given.shape}. Valid shapes "
            f"are ({rank}, 2), (1, 2), (2,), (1,), or ()."
        ) from None
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError("`pad_width` must be of integral type.")
    if (pairs < 0).any():
        raise ValueError("index can't contain negative values")
    return [(int(a), int(b)) for a, b in pairs]


def _values(name: str, given: Any, x: Any) -> list[tuple[Any, Any]]:
    """An argument (scalar, pair, or pair per axis) as scalars of x's dtype, per axis."""
    rank, dtype = x.aval.ndim, x.aval.dtype
    if isinstance(given, tuple | list):
        nested = [v if isinstance(v, tuple | list) else (v,) for v in given]
        if not any(isinstance(v, tuple | list) for v in given):
            nested = [tuple(given)]
        pairs = [(v[0], v[-1]) for v in nested]
        pairs = pairs * rank if len(pairs) == 1 else pairs
    else:
        v = operand("pad", given)
        if v.aval.ndim == 0:
            pairs = [(v, v)] * rank
        else:
            full = to_shape(v, (rank, 2))
            pairs = [(full[i, 0], full[i, 1]) for i in range(rank)]
    if len(pairs) != rank:
        raise ValueError(f"[pad] expected `{name}` for {rank} axes, got {given}.")

    def scalar(v: Any) -> Any:
        return convert(operand("pad", v), dtype)

    return [(scalar(a), scalar(b)) for a, b in pairs]


def _constant(x: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    pairs = _values("constant_values", values, x)
    if not pairs:
        return x
    first = pairs[0][0]
    if all(v is first or _same(v, first) for pair in pairs for v in pair):
        config = tuple([(a, b, 0) for a, b in widths])
        out = shape_ops.pad(x, first, padding_config=config)
        return convert(out, x.aval.dtype, x.aval.weak_type)
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, pairs, strict=True)):
        for width, value, left in ((before, low, True), (after, high, False)):
            config = tuple([
                (width * left, width * (not left), 0) if i == axis else (0, 0, 0)
                for i in range(x.aval.ndim)
            ])  # fmt: skip
            x = shape_ops.pad(x, value, padding_config=config)
    return x


def _same(v: Any, other: Any) -> bool:
    return hasattr(v, "val") and hasattr(other, "val") and bool(v.val == other.val)


def _check_not_empty(mode: str, n: int, width: tuple[int, int]) -> None:
    if n == 0 and any(width):
        raise ValueError(f"Cannot apply '{mode}' padding to empty axis")


def _repeated(x: Any, widths: list[tuple[int, int]], mode: str, kind: str) -> Any:
    """Modes whose elements are those of the array: one index vector per axis, by NumPy's own."""
    if kind not in ("even", "odd"):
        raise ValueError(f"[pad] expected reflect_type 'even' or 'odd', got {kind!r}.")
    for axis, width in enumerate(widths):
        n = x.aval.shape[axis]
        _check_not_empty(mode, n, width)
        if not any(width):
            continue
        reflected: Any = mode
        index = np.pad(np.arange(n), width, mode=reflected)
        before = x
        x = _taken(x, axis, index)
        if kind == "odd" and mode in ("reflect", "symmetric"):
            x = _odd(x, before, width, axis, mode)
    return x


def _taken(x: Any, axis: int, index: Any) -> Any:
    """The elements at static indices: few runs up, down or in place are slices, joined."""
    steps = np.diff(index)
    runs: list[tuple[int, int, int]] = []
    at = 0
    while at < len(index) and len(runs) <= RUNS:
        step = int(steps[at]) if at < len(steps) and abs(steps[at]) <= 1 else 1
        others = np.flatnonzero(steps[at:] != step)
        stop = at + int(others[0]) + 1 if others.size else len(index)
        runs.append((int(index[at]), step, stop - at))
        at = stop
    if len(runs) > RUNS:
        return getitem(x, (slice(None),) * axis + (index,))
    parts = []
    for first, step, count in runs:
        last = first + step * (count - 1)
        piece = part(x, axis, min(first, last), max(first, last) + 1)
        if step == 0:
            shape = tuple([count if i == axis else m for i, m in enumerate(x.aval.shape)])
            piece = to_shape(piece, shape)
        parts.append(shape_ops.rev(piece, dimensions=(axis,)) if step < 0 else piece)
    return shape_ops.concatenate(*parts, dimension=axis) if len(parts) > 1 else parts[0]


def _odd(x: Any, original: Any, width: tuple[int, int], axis: int, mode: str) -> Any:
    """Mirrored through the edge values as well: x = sign · mirrored + a · first + b · last."""
    n = original.aval.shape[axis]
    place = np.arange(-width[0], n + width[1])
    period = 2 * n if mode == "symmetric" else max(2 * (n - 1), 1)
    turns, inside = np.divmod(place, period)
    falling = inside >= n
    sign = np.where(falling, -1, 1)
    if n == 1 and mode == "reflect":
        sign, turns, falling = np.ones_like(sign), np.zeros_like(turns), np.zeros_like(falling)
    last = 2 * turns + 2 * falling
    dtype = x.aval.dtype
    shape = tuple([len(place) if i == axis else 1 for i in range(x.aval.ndim)])

    def weights(values: Any) -> Any:
        return from_literal(operand("pad", values.astype(np.int32).reshape(shape)))

    def edge(at: int) -> Any:
        return part(original, axis, at, at + 1)

    total = ops.mul(x, convert(weights(sign), dtype))
    total = ops.add(total, ops.mul(edge(n - 1), convert(weights(last), dtype)))
    return ops.sub(total, ops.mul(edge(0), convert(weights(2 * turns), dtype)))


def _ramps(x: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    dtype = x.aval.dtype
    for axis, ((before, after), ends) in enumerate(
        zip(widths, _values("end_values", values, x), strict=True)
    ):
        n = x.aval.shape[axis]
        _check_not_empty("linear_ramp", n, (before, after))
        edges = part(x, axis, 0, 1), part(x, axis, max(n - 1, 0), n)
        parts = [x]
        if before:
            parts.insert(0, _ramp(ends[0], edges[0], before, axis, dtype))
        if after:
            ramp = _ramp(ends[1], edges[1], after, axis, dtype)
            parts.append(shape_ops.rev(ramp, dimensions=(axis,)))
        x = shape_ops.concatenate(*parts, dimension=axis) if len(parts) > 1 else x
    return x


def _ramp(end: Any, edge: Any, count: int, axis: int, dtype: Any) -> Any:
    """`count` values from `end` up to, and without, the edge."""
    edge = shape_ops.squeeze(edge, dimensions=(axis,))
    whole = dtype if dtypes.issubdtype(dtype, np.integer) else None
    out = linspace(to_shape(end, edge.aval.shape), edge, count, endpoint=False, dtype=whole)
    return convert(moveaxis(out, 0, axis), dtype)


def _statistics(x: Any, widths: list[tuple[int, int]], mode: str, length: Any) -> Any:
    reduce: Any = STATISTICS[mode]
    rank, dtype = x.aval.ndim, x.aval.dtype
    if length is None:
        lengths = [(None, None)] * rank
    else:
        pairs = np.broadcast_to(np.asarray(length), (rank, 2))
        if (pairs < 1).any():
            raise ValueError("index can't contain negative values: stat_length must be positive.")
        lengths = [(int(a), int(b)) for a, b in pairs]
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, lengths, strict=True)):
        n = x.aval.shape[axis]
        _check_not_empty(mode, n, (before, after))
        first = part(x, axis, 0, n if low is None else np.minimum(low, n).item())
        last = part(x, axis, 0 if high is None else max(n - high, 0), n)
        parts = [x]
        for place, count, values in ((0, before, first), (2, after, last)):
            if not count:
                continue
            value = reduce(values, axis=axis, keepdims=True)
            if dtypes.issubdtype(dtype, np.integer) and value.dtype != dtype:
                value = ops.round(value, rounding_method=ops.RoundingMethod.TO_NEAREST_EVEN)
            shape = tuple([count if i == axis else m for i, m in enumerate(x.aval.shape)])
            wide = broadcast_in_dim(
                convert(value, dtype), shape=shape, broadcast_dimensions=tuple(range(rank))
            )
            parts.insert(place, wide)
        x = shape_ops.concatenate(*parts, dimension=axis) if len(parts) > 1 else x
    return x


def _by_function(x: Any, widths: list[tuple[int, int]], function: Any, kwargs: Any) -> Any:
    """A function of (padded vector, (before, after), axis, kwargs) returns the vector filled."""
    zero = literal(0, x.aval.dtype, False)
    x = shape_ops.pad(x, zero, padding_config=tuple([(a, b, 0) for a, b in widths]))
    for axis, width in enumerate(widths):
        rows = moveaxis(x, axis, -1)
        lead = rows.aval.shape[:-1]
        flat = shape_ops.reshape(rows, shape=(int(np.prod(lead, dtype=int)), rows.aval.shape[-1]))
        done = vmap(lambda v, w=width, i=axis: function(v, w, i, kwargs))(flat)
        x = moveaxis(shape_ops.reshape(done, shape=(*lead, done.shape[-1])), -1, axis)
    return x
