"""dynamic_slice <-> dynamic_update_slice: one window of known size at a start known at run time.

Starts are scalars of one integer dtype, clamped so that the window lies inside the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import INDEX, Bound, Op, by_kind
from primal.ir.trace import ZERO, Literal, aval_of, literal
from primal.ops.index.gather import gather, hlo_starts
from primal.ops.index.numbers import (
    CLIP,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    Shape,
)
from primal.ops.index.scatter import scatter
from primal.ops.shape import concatenate, moveaxis, reshape
from primal.ops.spread import broadcast_axis, broadcast_to, zeros_like_aval
from primal.ops.types import is_linear

# dynamic_slice.


def _check_starts(name: str, x: Aval, sizes: Shape, starts: Sequence[Aval]) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ValueError(
            f"[{name}] expected one start and size per dimension of shape {x.shape}, got "
            f"{len(starts)} starts and sizes {sizes}: Length of slice indices must match number "
            "of operand dimensions."
        )
    if any(not 0 <= n <= m for n, m in zip(sizes, x.shape, strict=True)):
        raise TypeError(
            f"[{name}] expected a window that fits an operand of shape {x.shape}, got {sizes}: "
            "slice sizes must be less than or equal to operand shape, an update shape must be "
            "smaller than operand shape."
        )
    if any(s.ndim for s in starts):
        raise TypeError(
            f"[{name}] expected scalar starts, one per dimension, got shapes "
            f"{', '.join(str(s.shape) for s in starts)}."
        )
    if len({s.dtype for s in starts}) > 1 or any(s.dtype.kind not in "iu" for s in starts):
        raise TypeError(
            f"[{name}] expected starts that are integers of the same type, got "
            f"{', '.join(s.dtype.name for s in starts)}."
        )


def _slice_type(x: Aval, *starts: Aval, slice_sizes: Shape) -> Aval:
    _check_starts("dynamic_slice", x, slice_sizes, starts)
    return Aval(slice_sizes, x.dtype, x.weak_type)


def _corner(shape: Shape, sizes: Shape, starts: Sequence[Any]) -> tuple[slice, ...]:
    found = []
    for n, size, start in zip(shape, sizes, starts, strict=True):
        s = min(max(int(start), 0), n - size)
        found.append(slice(s, s + size))
    return tuple(found)


def _slice_impl(x: Any, *starts: Any, slice_sizes: Shape) -> Any:
    x = np.asarray(x)
    return x[_corner(x.shape, slice_sizes, starts)]


def _slice_jvp(primals: Any, tangents: Any, *, slice_sizes: Shape) -> Any:
    x, *starts = primals
    t = tangents[0]
    out = dynamic_slice(x, *starts, slice_sizes=slice_sizes)
    return out, t if t is ZERO else dynamic_slice(t, *starts, slice_sizes=slice_sizes)


def _slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: Shape) -> Any:
    zeros = zeros_like_aval(Aval(x.shape, aval_of(ct).dtype))
    return dynamic_update_slice(zeros, ct, *starts), *[None] * len(starts)


def _with_start(starts: Sequence[Any], at: int) -> list[Any]:
    dtype = aval_of(starts[0]).dtype if starts else np.dtype(np.int32)
    return [*starts[:at], literal(0, dtype, False), *starts[at:]]


def _start_vectors(axis: Any, starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """The starts of all examples, of shape (examples, number of dimensions)."""
    columns = []
    for s, d in zip(starts, dims, strict=True):
        column = broadcast_to(s, (axis.size,)) if d is None else s
        columns.append(reshape(column, shape=(axis.size, 1)))
    return columns[0] if len(columns) == 1 else concatenate(*columns, dimension=1)


def _slice_batch(axis: Any, args: Any, dims: Any, *, slice_sizes: Shape) -> Any:
    (x, *starts), (d, *ds) = args, dims
    if all(e is None for e in ds):
        sizes = (*slice_sizes[:d], axis.size, *slice_sizes[d:])
        return dynamic_slice(x, *_with_start(starts, d), slice_sizes=sizes), d
    rank = len(slice_sizes)
    own = tuple(range(rank))
    if d is None:
        numbers = GatherDimensionNumbers(tuple(range(1, rank + 1)), (), own)
        sizes = slice_sizes
    else:
        numbers = GatherDimensionNumbers(
            tuple(range(1, rank + 1)), (), tuple([i + (i >= d) for i in own]), (d,), (0,)
        )
        sizes = (*slice_sizes[:d], 1, *slice_sizes[d:])
    out = gather(
        x,
        _start_vectors(axis, starts, ds),
        dimension_numbers=numbers,
        slice_sizes=sizes,
        # With an operand per example no two windows meet.
        indices_are_sorted=d is not None,
        unique_indices=d is not None,
        mode=CLIP,
        fill_value=None,
    )
    return out, 0


def _slice_hlo(b: Any, x: Any, *starts: Any, slice_sizes: Shape) -> Any:
    return b.dynamic_slice(x, [hlo_starts(b, s) for s in starts], slice_sizes)


dynamic_slice = Op(
    name="dynamic_slice",
    kind=INDEX,
    type=_slice_type,
    impl=_slice_impl,
    jvp=_slice_jvp,
    transpose=_slice_transpose,
    batch=_slice_batch,
    shard=by_kind,
    hlo=_slice_hlo,
    kernel=lambda k, x, *starts, slice_sizes: k.dynamic_slice(x, starts, slice_sizes),
)


# dynamic_update_slice: operand with the window replaced.


def _update_type(x: Aval, update: Aval, *starts: Aval) -> Aval:
    if x.dtype != update.dtype:
        raise TypeError(
            f"[dynamic_update_slice] expected operand and update of one dtype, got "
            f"{x.dtype.name} and {update.dtype.name}: lax.dynamic_update_slice requires arguments "
            "to have the same dtypes. Convert first with convert_element_type."
        )
    if x.ndim != update.ndim:
        raise TypeError(
            f"[dynamic_update_slice] expected an update of the rank of the operand, got shape "
            f"{update.shape} for {x.shape}: update must have the same rank as operand."
        )
    _check_starts("dynamic_update_slice", x, update.shape, starts)
    return Aval(x.shape, x.dtype, x.weak_type and update.weak_type)


def _update_impl(x: Any, update: Any, *starts: Any) -> Any:
    return _with_part(x, update, _corner(np.shape(x), np.shape(update), starts))


def _with_part(x: Any, part: Any, at: tuple[slice, ...]) -> Any:
    out = np.array(x, order="C")
    out[at] = part
    return out


def _update_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    x, update, *starts = eqn.invars
    if not all(type(s) is Literal for s in starts):
        return None
    at = _corner(x.aval.shape, update.aval.shape, [s.host for s in starts])
    return f"{bound(_with_part)}({names[0]}, {names[1]}, {bound(at)})"


def _update_jvp(primals: Any, tangents: Any) -> Any:
    x, update, *starts = primals
    t, u, *_ = tangents
    out = dynamic_update_slice(x, update, *starts)
    if t is ZERO and u is ZERO:
        return out, ZERO
    t = zeros_like_aval(aval_of(out)) if t is ZERO else t
    u = zeros_like_aval(aval_of(update)) if u is ZERO else u
    return out, dynamic_update_slice(t, u, *starts)


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> Any:
    shape = update.shape if is_linear(update) else aval_of(update).shape
    dtype = aval_of(ct).dtype
    ct_x = ct_update = None
    if is_linear(x):
        ct_x = dynamic_update_slice(ct, zeros_like_aval(Aval(shape, dtype)), *starts)
    if is_linear(update):
        ct_update = dynamic_slice(ct, *starts, slice_sizes=shape)
    return ct_x, ct_update, *[None] * len(starts)


def _update_batch(axis: Any, args: Any, dims: Any) -> Any:
    (x, update, *starts), (d, du, *ds) = args, dims
    if d is None:
        x, d = broadcast_axis(x, axis.size, 0), 0
    if all(e is None for e in ds):
        update = broadcast_axis(update, axis.size, d) if du is None else moveaxis(update, du, d)
        return dynamic_update_slice(x, update, *_with_start(starts, d)), d
    update = broadcast_axis(update, axis.size, 0) if du is None else moveaxis(update, du, 0)
    rank = aval_of(x).ndim - 1
    numbers = ScatterDimensionNumbers(
        tuple(range(1, rank + 1)), (), tuple([i + (i >= d) for i in range(rank)]), (d,), (0,)
    )
    out = scatter(
        x,
        _start_vectors(axis, starts, ds),
        update,
        dimension_numbers=numbers,
        indices_are_sorted=True,
        unique_indices=True,
        mode=CLIP,
    )
    return out, d


def _update_hlo(b: Any, x: Any, update: Any, *starts: Any) -> Any:
    return b.dynamic_update_slice(x, update, [hlo_starts(b, s) for s in starts])


dynamic_update_slice = Op(
    name="dynamic_update_slice",
    kind=INDEX,
    type=_update_type,
    impl=_update_impl,
    jvp=_update_jvp,
    transpose=_update_transpose,
    batch=_update_batch,
    shard=by_kind,
    hlo=_update_hlo,
    kernel=lambda k, x, update, *starts: k.dynamic_update_slice(x, update, starts),
    written=_update_written,
)
