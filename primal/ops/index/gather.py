"""gather <-> scatter-add, each the other's transpose, and what all scatters share.

gather: for every start vector s in `indices`, the window operand[s : s + slice_sizes].
scatter: operand with the windows `updates` combined in at those places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.avals import Aval
from primal.ir.op import INDEX, Op, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.index.arrays import gather_array, scatter_array
from primal.ops.index.numbers import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    Shape,
    batched_shape,
    check_index_dtype,
    check_numbers,
    default_fill,
    gather_numbers,
    scatter_numbers,
    window_dims,
    window_sizes,
)
from primal.ops.shape import moveaxis, reshape
from primal.ops.spread import broadcast_axis, broadcast_to, full_like_aval, zeros_like_aval
from primal.ops.types import NUMERIC, check_dtype, is_linear

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


def inserted(dims: Shape, at: int) -> Shape:
    """Dimensions after a new one was inserted at `at`."""
    return tuple([d + (d >= at) for d in dims])


# gather.


def _gather_type(
    x: Aval,
    indices: Aval,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    **params: Any,
) -> Aval:
    check_index_dtype("gather", indices.dtype)
    check_numbers("gather", x.shape, indices.shape, dimension_numbers)
    if len(slice_sizes) != x.ndim:
        raise TypeError(
            f"[gather] expected one slice size per dimension of shape {x.shape}, got "
            f"{slice_sizes}: Gather op must have one slice size for every input dimension."
        )
    for d, n in enumerate(slice_sizes):
        narrow = d in dimension_numbers.collapsed_slice_dims
        batching = d in dimension_numbers.operand_batching_dims
        if (n != 1) if narrow or batching else not 0 <= n <= x.shape[d]:
            part = "batching" if batching else "collapse slice"
            rule = (
                f"Gather op can only {part} dims with bound 1, but bound is {n}"
                if 0 <= n <= x.shape[d]
                else f"Slice size at index {d} in gather op is out of range"
            )
            raise TypeError(
                f"[gather] expected slice sizes of at most the sizes of the operand, and 1 at "
                f"collapsed and batching dimensions, got {slice_sizes} for shape {x.shape} and "
                f"{dimension_numbers}: {rule}."
            )
        if narrow and not x.shape[d]:
            raise TypeError(
                f"[gather] expected something to gather from, got shape {x.shape} and slice sizes "
                f"{slice_sizes}."
            )
    windows = [slice_sizes[d] for d in window_dims(x.ndim, dimension_numbers)]
    shape = batched_shape(dimension_numbers.offset_dims, windows, indices.shape[:-1])
    return Aval(shape, x.dtype, x.weak_type)


def _gather_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices = primals
    out = gather(x, indices, **params)
    t = tangents[0]
    if t is ZERO:
        return out, ZERO
    if params["mode"] is FILL_OR_DROP:
        params = {**params, "fill_value": 0}
    return out, gather(t, indices, **params)


def _gather_transpose(
    ct: Any,
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    fill_value: Any,
    **params: Any,
) -> Any:
    zeros = zeros_like_aval(Aval(x.shape, aval_of(ct).dtype))
    numbers = scatter_numbers(dimension_numbers)
    return scatter_add(zeros, indices, ct, dimension_numbers=numbers, **params), None


def _gather_batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    **params: Any,
) -> Any:
    (x, indices), (d, di) = args, dims
    offset, collapsed, mapped, batching, index_batching = dimension_numbers
    if d is not None:
        collapsed, mapped = inserted(collapsed, d), inserted(mapped, d)
        batching = inserted(batching, d)
    if di is not None:
        indices = moveaxis(indices, di, 0)
        index_batching = inserted(index_batching, 0)
        params["indices_are_sorted"] = False
    if d is None:
        # The windows of different examples may overlap.
        params["unique_indices"] = False
        offset = inserted(offset, 0)
        out = 0
    elif di is None:
        # The batch dimension becomes one of the window, at its place among the operand's.
        before = sum(w < d for w in window_dims(aval_of(x).ndim - 1, dimension_numbers))
        if before == 0:  # in front, where batches are wanted mostly
            out = 0
        else:
            last = len(offset) + aval_of(indices).ndim - 1
            out = offset[before] if before < len(offset) else last
        offset = (*offset[:before], out, *inserted(offset[before:], out))
        slice_sizes = (*slice_sizes[:d], axis.size, *slice_sizes[d:])
    else:
        at = sum(b < d for b in batching)
        batching = (*batching[:at], d, *batching[at:])
        index_batching = (*index_batching[:at], 0, *index_batching[at:])
        slice_sizes = (*slice_sizes[:d], 1, *slice_sizes[d:])
        offset = inserted(offset, 0)
        out = 0
    numbers = GatherDimensionNumbers(offset, collapsed, mapped, batching, index_batching)
    result = gather(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params)
    return result, out


def hlo_starts(b: Any, indices: Any) -> Any:
    """Indices as signed integers wide enough for any size.

    XLA clamps in the dtype of the indices, where the size of the operand may not fit, and reads
    big unsigned ones as negative.
    """
    dtype = indices.dtype
    unsigned = dtypes.issubdtype(dtype, np.unsignedinteger)
    if dtypes.itemsize_bits(dtype) < 32:
        return b.convert(indices, INT32)
    if unsigned:
        signed = INT32 if dtypes.itemsize_bits(dtype) == 32 else INT64
        top = b.full_like(indices, int(np.iinfo(signed).max))
        return b.convert(b.minimum(indices, top), signed)
    return indices


def _limits(b: Any, starts: Any, limits: list[int]) -> Any:
    """The greatest starts, as a value of the shape of `starts`."""
    top = int(np.iinfo(starts.dtype).max)
    values = np.minimum(np.array(limits, np.int64), top).astype(starts.dtype)
    constant = b.constant(values, starts.dtype)
    return b.broadcast_in_dim(constant, starts.shape, (starts.ndim - 1,))


def _gather_hlo(
    b: Any,
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    fill_value: Any,
) -> Any:
    (out_aval,) = b.outs
    if not out_aval.size:
        return b.full(out_aval.shape, 0, out_aval.dtype)
    starts = hlo_starts(b, indices)
    offset, collapsed, mapped, batching, index_batching = dimension_numbers
    out = b.gather(
        x,
        starts,
        offset_dims=offset,
        collapsed_slice_dims=collapsed,
        start_index_map=mapped,
        slice_sizes=slice_sizes,
        operand_batching_dims=batching,
        start_indices_batching_dims=index_batching,
        indices_are_sorted=indices_are_sorted,
    )
    if mode not in (FILL_OR_DROP, ONE_HOT) or not mapped:
        return out
    limits = _limits(b, starts, [x.shape[d] - slice_sizes[d] for d in mapped])
    inside = b.and_(
        b.compare(starts, b.full_like(starts, 0), "GE"), b.compare(starts, limits, "LE")
    )
    inside = b.reduce("and", inside, (starts.ndim - 1,))
    kept = [d for d in range(len(out_aval.shape)) if d not in offset]
    mask = b.broadcast_in_dim(inside, out_aval.shape, kept)
    fill = 0 if mode is ONE_HOT else default_fill(x.dtype) if fill_value is None else fill_value
    return b.select(mask, out, b.full_like(out, np.asarray(fill).astype(x.dtype)[()]))


def _gather_kernel(
    k: Any,
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    mode: Any,
    fill_value: Any,
    **params: Any,
) -> Any:
    out = _gather_type(
        x.aval, indices.aval, dimension_numbers=dimension_numbers, slice_sizes=slice_sizes
    )
    fill = None
    if mode is ONE_HOT:
        fill = 0
    elif mode is FILL_OR_DROP:
        fill = default_fill(x.dtype) if fill_value is None else fill_value
    return k.gather(
        x,
        indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=slice_sizes,
        fill=fill,
        shape=out.shape,
    )


gather: Op = Op(
    name="gather",
    kind=INDEX,
    type=_gather_type,
    impl=gather_array,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=_gather_batch,
    shard=by_kind,
    hlo=_gather_hlo,
    kernel=_gather_kernel,
)


# What all scatters share.


def scatter_type(name: str, kinds: tuple[Any, ...]) -> Callable[..., Aval]:
    """Type rule of a scatter of dtypes of those kinds."""

    def type_rule(
        x: Aval,
        indices: Aval,
        updates: Aval,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Any,
    ) -> Aval:
        if x.dtype != updates.dtype:
            raise TypeError(
                f"[{name}] expected operand and updates of one dtype, got {x.dtype.name} and "
                f"{updates.dtype.name}: lax.{name} requires arguments to have the same dtypes. "
                "Convert first with convert_element_type."
            )
        check_dtype(name, x, kinds)
        check_index_dtype(name, indices.dtype)
        check_numbers(name, x.shape, indices.shape, dimension_numbers)
        windows = window_dims(x.ndim, dimension_numbers)
        batch = indices.shape[:-1]
        rank = len(windows) + len(batch)
        if updates.ndim != rank:
            raise TypeError(
                f"[{name}] expected updates of {rank} dimensions, {len(batch)} of the indices and "
                f"{len(windows)} of the window, got shape {updates.shape}: Updates tensor must be "
                f"of rank {rank}; got {updates.ndim}."
            )
        sizes = window_sizes(x.shape, updates.shape, dimension_numbers)
        want = batched_shape(
            dimension_numbers.update_window_dims, [sizes[d] for d in windows], batch
        )
        if updates.shape != want:
            raise TypeError(
                f"[{name}] expected updates of shape {want} for indices of shape {indices.shape}, "
                f"got {updates.shape}: Bounds of the scatter dimensions of updates must be the "
                "same as the bounds of the corresponding dimensions of scatter indices."
            )
        for d, n in enumerate(sizes):
            # Where the window has no such dimension, an empty one is one that no index is in.
            if n > x.shape[d] and d in windows:
                raise TypeError(
                    f"[{name}] expected windows that fit an operand of shape {x.shape}, got "
                    f"windows of shape {sizes}: Bounds of the window dimensions of updates must "
                    "not exceed the bounds of the corresponding dimensions of operand."
                )
        return Aval(x.shape, x.dtype, x.weak_type and updates.weak_type)

    return type_rule


def scatter_impl(ufunc: Any) -> Callable[..., Any]:
    """NumPy rule of a scatter that combines by a ufunc, or sets (None)."""

    def impl(x: Any, indices: Any, updates: Any, **params: Any) -> Any:
        return scatter_array(x, indices, updates, ufunc, **params)

    return impl


def batch_scatter(
    scatter: Callable[..., Any],
    axis: Any,
    args: Any,
    dims: Any,
    dimension_numbers: ScatterDimensionNumbers,
    params: dict[str, Any],
) -> Any:
    """Batching rule of the scatter `scatter(x, indices, updates, dimension_numbers=, **params)`."""
    (x, indices, updates), (d, di, du) = args, dims
    if d is None:
        x, d = broadcast_axis(x, axis.size, 0), 0
    offset, gone, mapped, batching, index_batching = dimension_numbers
    gone, mapped, batching = inserted(gone, d), inserted(mapped, d), inserted(batching, d)
    if di is None:
        # The batch dimension becomes one of the window, at its place among the operand's.
        before = sum(w < d for w in window_dims(aval_of(x).ndim - 1, dimension_numbers))
        at = offset[before] if before < len(offset) else len(offset) + aval_of(indices).ndim - 1
        offset = (*offset[:before], at, *inserted(offset[before:], at))
    else:
        indices = moveaxis(indices, di, 0)
        params["indices_are_sorted"] = False
        index_batching = inserted(index_batching, 0)
        pos = sum(b < d for b in batching)
        batching = (*batching[:pos], d, *batching[pos:])
        index_batching = (*index_batching[:pos], 0, *index_batching[pos:])
        offset, at = inserted(offset, 0), 0
    updates = broadcast_axis(updates, axis.size, at) if du is None else moveaxis(updates, du, at)
    numbers = ScatterDimensionNumbers(offset, gone, mapped, batching, index_batching)
    return scatter(x, indices, updates, dimension_numbers=numbers, **params), d


def scatter_batch(op_of: Callable[[], Op]) -> Callable[..., Any]:
    """`batch_scatter` as the rule of an op."""

    def batch(
        axis: Any, args: Any, dims: Any, *, dimension_numbers: Any, **params: Any
    ) -> Any:
        return batch_scatter(op_of(), axis, args, dims, dimension_numbers, params)

    return batch


def hlo_scatter(
    b: Any,
    x: Any,
    indices: Any,
    updates: Any,
    body: Any,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
) -> Any:
    """StableHLO of a scatter whose region is `body`: a monoid, 'set' or a function."""
    starts = hlo_starts(b, indices)
    offset, gone, mapped, batching, index_batching = dimension_numbers
    alone = all(n == 1 or i in index_batching for i, n in enumerate(indices.shape[:-1]))
    if mode is CLIP:
        sizes = window_sizes(x.shape, updates.shape, dimension_numbers)
        limits = _limits(b, starts, [x.shape[d] - sizes[d] for d in mapped])
        starts = b.clamp(b.full_like(starts, 0), starts, limits)
    (out,) = b.scatter(
        [x],
        starts,
        [updates],
        body,
        update_window_dims=offset,
        inserted_window_dims=gone,
        scatter_dims_to_operand_dims=mapped,
        input_batching_dims=batching,
        scatter_indices_batching_dims=index_batching,
        indices_are_sorted=indices_are_sorted,
        # Windows that clamping moved may meet others, unless each operand has but one.
        unique_indices=(unique_indices and mode is not CLIP) or alone,
    )
    return out


def scatter_hollow(op_of: Callable[[], Op]) -> Callable[..., Any]:
    """The scatter of indices or updates without elements (`x.at[:].add(y)`) as one with some.

    XLA 0.10 rewrites a scatter without index dimensions: of several updates it applies one, and
    with a scalar operand it stops; the CPU compiler called NumPy for 57 us. So a dimension of size
    1 is indexed.
    """

    def hollow(
        x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, **params: Any
    ) -> Any:
        if not aval_of(updates).size:
            return x
        shape, kept = aval_of(x).shape, aval_of(indices)
        offset, gone, _, batching, index_batching = dimension_numbers
        numbers = ScatterDimensionNumbers(
            offset, (0, *inserted(gone, 0)), (0,), inserted(batching, 0), index_batching
        )
        first = full_like_aval(Aval((*kept.shape[:-1], 1), kept.dtype), 0)
        params["mode"] = PROMISE_IN_BOUNDS
        out = op_of()(
            reshape(x, shape=(1, *shape)), first, updates, dimension_numbers=numbers, **params
        )
        return reshape(out, shape=shape)

    return hollow


def scatter_hlo(body: Any) -> Callable[..., Any]:
    """`hlo_scatter` as the rule of an op."""

    def hlo(b: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
        return hlo_scatter(b, x, indices, updates, body, **params)

    return hlo


def scatter_kernel(word: str) -> Callable[..., Any]:
    """The compiler's rule of a scatter that combines by a word of two operands, or 'set'."""

    def kernel(
        k: Any,
        x: Any,
        indices: Any,
        updates: Any,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: Any,
        **params: Any,
    ) -> Any:
        return k.scatter(
            word,
            x,
            indices,
            updates,
            dimension_numbers=dimension_numbers,
            sizes=window_sizes(x.shape, updates.shape, dimension_numbers),
            drops=mode is not CLIP,
        )

    return kernel


def read_written(
    x: Any,
    indices: Any,
    shape: Shape,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
) -> Any:
    """x where a scatter of updates of that shape writes; 0 for dropped windows."""
    return gather(
        x,
        indices,
        dimension_numbers=gather_numbers(dimension_numbers),
        slice_sizes=window_sizes(aval_of(x).shape, shape, dimension_numbers),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        fill_value=0 if mode is FILL_OR_DROP else None,
    )


# scatter-add: operand plus the updates; those that meet are summed.


def _scatter_add_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    t, _, u = tangents
    out = scatter_add(x, indices, updates, **params)
    if u is ZERO:
        return out, t
    if t is ZERO:
        t = zeros_like_aval(aval_of(out))
    return out, scatter_add(t, indices, u, **params)


def _scatter_add_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    ct_updates = None
    if is_linear(updates):
        ct_updates = read_written(ct, indices, updates.shape, **params)
    return ct if is_linear(x) else None, None, ct_updates


scatter_add: Op = Op(
    name="scatter-add",
    kind=INDEX,
    type=scatter_type("scatter_add", NUMERIC),
    impl=scatter_impl(np.add),
    jvp=_scatter_add_jvp,
    transpose=_scatter_add_transpose,
    batch=scatter_batch(lambda: scatter_add),
    shard=by_kind,
    hlo=scatter_hlo("add"),
    kernel=scatter_kernel("add"),
    hollow=scatter_hollow(lambda: scatter_add),
    ahead=lambda outlook, eqn: outlook.summed(eqn),
)


# Elements along one dimension.


def take_along(
    x: Any, indices: Any, axis: int, mode: Any = PROMISE_IN_BOUNDS, unique: bool = False
) -> Any:
    """out[.., i, ..] = x[.., indices[.., i, ..], ..] along `axis`; other dimensions agree."""
    shape, have = aval_of(indices).shape, aval_of(x).shape
    if have[axis] == 1 and mode is PROMISE_IN_BOUNDS:
        return broadcast_to(x, shape)  # whose derivative is a sum, not a scatter
    others = tuple([d for d in range(len(have)) if d != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(
        x,
        reshape(indices, shape=(*shape, 1)),
        dimension_numbers=numbers,
        slice_sizes=(1,) * len(have),
        indices_are_sorted=False,
        unique_indices=unique,
        mode=mode,
        fill_value=None,
    )


__all__ = [
    "batch_scatter",
    "gather",
    "hlo_scatter",
    "hlo_starts",
    "read_written",
    "scatter_add",
    "scatter_batch",
    "scatter_hlo",
    "scatter_impl",
    "scatter_type",
    "take_along",
]
