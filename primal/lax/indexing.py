"""Indexing with JAX's positional signatures: gather, the scatters, dynamic slices."""

from __future__ import annotations

import functools
import operator as _operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed
from primal.ir.op import Op
from primal.ir.trace import Tracer, aval_of, literal
from primal.numpy.remembered import remembered
from primal.ops import elementwise
from primal.ops.choose import convert_element_type, select_n
from primal.ops.index import dynamic as _dynamic
from primal.ops.index import gather as _gather
from primal.ops.index import scatter as _scatter
from primal.ops.index.numbers import (
    FILL_OR_DROP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    default_fill,
    window_sizes,
)
from primal.ops.shape import concatenate, reshape, squeeze
from primal.ops.shape import slice as slice_op
from primal.ops.spread import full_like_aval, zeros_like_aval
from primal.ops.types import static_ints
from primal.transforms.batch import Axis, batch_jaxpr
from primal.runtime import guards
from primal.transforms.stage import stage

Mode = str | GatherScatterMode | None


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Mode = None,
    fill_value: Any = None,
) -> Any:
    """Windows of the operand: out[b, w] = operand[start_indices[b] + w], dimensions as numbered.

    `start_indices` has any integer dtype, its last dimension holds the start vectors. A window
    out of bounds is moved inside by 'clip', and by 'promise_in_bounds' and None, which presume
    that there is none; 'fill' fills it with `fill_value` (default: nan, the least signed, the
    greatest unsigned integer, True). TypeError when shapes and numbers do not fit.

    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), numbers, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    parsed = PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if parsed is not FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill(aval_of(operand).dtype)
    return _gather.gather(
        operand,
        start_indices,
        dimension_numbers=_plain(GatherDimensionNumbers, dimension_numbers),
        slice_sizes=static_ints("gather slice_sizes", slice_sizes),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=parsed,
        fill_value=fill_value,
    )


def _plain(cls: Any, numbers: Any) -> Any:
    """Dimension numbers of plain ints, whatever sequences and integers they were given as."""
    try:
        return _plain_known(cls, numbers)
    except TypeError:  # lists
        return cls(*[_ints(n) for n in numbers])


@functools.lru_cache(maxsize=1024)
def _plain_known(cls: Any, numbers: Any) -> Any:
    return cls(*[_ints(n) for n in numbers])


def _ints(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple([_operator.index(v) for v in values])


def _scattered(
    op: Op,
    operand: Any,
    indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Mode,
    **params: Any,
) -> Any:
    return op(
        operand,
        indices,
        updates,
        dimension_numbers=_plain(ScatterDimensionNumbers, dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        **params,
    )


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Any:
    """operand with windows replaced: out[scatter_indices[b] + w] = updates[b, w].

    Operand and updates have one dtype. Windows out of bounds are dropped, or moved inside by
    'clip'. Where updates meet, the last one stays (on GPUs: any). TypeError when shapes and
    numbers do not fit.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(jnp.zeros(3), jnp.array([[1], [7]]), jnp.array([5., 6.]), numbers)
    Array([0., 5., 0.], dtype=float32)
    """
    return _scattered(
        _scatter.scatter, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Any:
    """operand with updates added: out[scatter_indices[b] + w] += updates[b, w].

    Updates that meet are all added; otherwise as `scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[1], [1]]), jnp.array([5., 6.]), numbers)
    Array([ 0., 11.,  0.], dtype=float32)
    """
    return _scattered(
        _gather.scatter_add, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Any:
    """operand with updates subtracted: out[scatter_indices[b] + w] -= updates[b, w].

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.zeros(3), jnp.array([[1], [1]]), jnp.array([5., 6.]), numbers)
    Array([  0., -11.,   0.], dtype=float32)
    """
    return _scattered(
        _scatter.scatter_sub, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Any:
    """operand multiplied by updates: out[scatter_indices[b] + w] *= updates[b, w].

    Its derivative in the updates needs `unique_indices=True`, else NotImplementedError.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(jnp.ones(3), jnp.array([[1], [1]]), jnp.array([5., 6.]), numbers)
    Array([ 1., 30.,  1.], dtype=float32)
    """
    return _scattered(
        _scatter.scatter_mul, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Any:
    """The least of operand and updates: out[i] = min(out[i], updates[b, w]); nan wins.

    All that attain the minimum share its derivative equally.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(jnp.ones(3), jnp.array([[1], [1]]), jnp.array([5., -6.]), numbers)
    Array([ 1., -6.,  1.], dtype=float32)
    """
    return _scattered(
        _scatter.scatter_min, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Any:
    """The greatest of operand and updates: out[i] = max(out[i], updates[b, w]); nan wins.

    All that attain the maximum share its derivative equally.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(jnp.ones(3), jnp.array([[1], [1]]), jnp.array([5., -6.]), numbers)
    Array([1., 5., 1.], dtype=float32)
    """
    return _scattered(
        _scatter.scatter_max, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Any:
    """operand with `func` applied where windows are, once per window: out[i] = func(…(out[i])).

    `func` takes and returns a scalar of the operand's dtype, else TypeError; `update_shape` is that
    of updates. Differentiable with `unique_indices=True`, else NotImplementedError.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.ones(3), jnp.array([[1], [1]]), lambda x: 3 * x, numbers,
    ...                   update_shape=(2,))
    Array([1., 9., 1.], dtype=float32)
    """
    aval = aval_of(operand).strong()
    shape = _ints(update_shape)

    def scalar(x: Any) -> list[Any]:
        out = func(x)
        if aval_of(out).shape or aval_of(out).dtype != aval.dtype:
            raise TypeError(
                f"[scatter_apply] expected a function of scalars to scalars of {aval.dtype.name}, "
                f"got one that returns {aval_of(out).short()}."
            )
        return [out]

    closed = stage(scalar, [Aval((), aval.dtype)], getattr(func, "__name__", "func"))
    if not unique_indices:
        if any(isinstance(c, Tracer) for c in closed.consts):
            raise NotImplementedError(
                "[scatter_apply] expected a function of its argument alone where windows may meet, "
                "got one that also uses a traced value. Pass unique_indices=True if none meet."
            )
        like = zeros_like_aval(Aval(shape, aval.dtype))
        return _scattered(
            _scatter.scatter_apply, operand, scatter_indices, like, dimension_numbers,
            indices_are_sorted, unique_indices, mode, jaxpr=closed,
        )
    # Windows that do not meet: read them, map, write them back; every rule follows.
    numbers = _plain(ScatterDimensionNumbers, dimension_numbers)
    windows = gather(
        operand, scatter_indices, GatherDimensionNumbers(*numbers),
        window_sizes(aval.shape, shape, numbers),
        indices_are_sorted=indices_are_sorted, unique_indices=True,
        mode=GatherScatterMode.from_any(mode), fill_value=1,
    )
    size = aval_of(windows).size
    mapped, _ = batch_jaxpr(closed, Axis(None, size), (True,), (True,))
    (values,) = eval_closed(mapped, reshape(windows, shape=(size,)))
    return scatter(
        operand, scatter_indices, reshape(values, shape=aval_of(windows).shape), numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=True, mode=mode,
    )


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """src at index arrays along `axes`, taken modulo the sizes: out[i, r] = src[idxs[i], r].

    `idxs` are integer arrays of one shape, one per axis, else TypeError; their dimensions lead.

    >>> lax.index_take(jnp.arange(6).reshape(3, 2), (jnp.array([-1, 3]),), (0,))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    aval = aval_of(src)
    axes = tuple([a % aval.ndim for a in _ints(axes)])
    columns = []
    if len(idxs) != len(axes):
        raise TypeError(
            f"[index_take] expected as many index arrays as axes, got {len(idxs)} and {len(axes)}."
        )
    for i, a in zip(idxs, axes, strict=True):
        i_aval = aval_of(i)
        columns.append(reshape(_modulo(i, aval.shape[a]), shape=(*i_aval.shape, 1)))
    indices = columns[0]
    rank = aval_of(indices).ndim - 1
    if len(columns) > 1:
        indices = concatenate(*columns, dimension=rank)
    numbers = GatherDimensionNumbers(
        tuple(range(rank, rank + aval.ndim - len(axes))), tuple(sorted(axes)), axes
    )
    sizes = tuple([1 if d in axes else n for d, n in enumerate(aval.shape)])
    return gather(src, indices, numbers, sizes, mode=PROMISE_IN_BOUNDS)


def _modulo(i: Any, size: int) -> Any:
    """i modulo size, of the sign of size."""
    i = _widened(i)
    aval = aval_of(i)
    n = full_like_aval(aval.strong(), max(size, 1))
    rest = elementwise.rem(i, n)
    if not dtypes.issubdtype(aval.dtype, np.signedinteger):
        return rest
    below = elementwise.lt(rest, zeros_like_aval(aval.strong()))
    return select_n(below, rest, elementwise.add(rest, n))


def _widened(i: Any) -> Any:
    """An index as an integer of at least 32 bits, in which sizes can be added to it."""
    dtype = aval_of(i).dtype
    if dtypes.issubdtype(dtype, np.integer) and dtypes.itemsize_bits(dtype) < 32:
        return convert_element_type(i, new_dtype=np.dtype(np.int32), weak_type=False)
    return i


# Dynamic slices.


def _starts(
    name: str, shape: Sequence[int], start_indices: Any, allow_negative: bool | Sequence[bool]
) -> list[Any]:
    """One scalar per dimension, of one dtype; negative ones count from the end where allowed."""
    if not isinstance(start_indices, list | tuple):
        aval = aval_of(start_indices)
        if aval.ndim != 1:
            raise TypeError(
                f"[{name}] expected a sequence of scalars or a vector as start_indices, got shape "
                f"{aval.shape}."
            )
        start_indices = [
            squeeze(
                slice_op(start_indices, start_indices=(i,), limit_indices=(i + 1,), strides=None),
                dimensions=(0,),
            )
            for i in range(aval.shape[0])
        ]
    if len(start_indices) != len(shape):
        raise ValueError(
            f"[{name}] expected one start per dimension of shape {tuple(shape)}, got "
            f"{len(start_indices)}: Length of slice indices must match number of operand "
            f"dimensions ({len(start_indices)} vs {tuple(shape)})"
        )
    known = [type(s) is int or isinstance(s, np.integer) for s in start_indices]
    traced = [_widened(s) for s, k in zip(start_indices, known, strict=True) if not k]
    for s in traced:
        if aval_of(s).ndim or not dtypes.issubdtype(aval_of(s).dtype, np.integer):
            raise TypeError(
                f"[{name}] expected starts that are scalar integers of the same type, got "
                f"{aval_of(s).short()}."
            )
    strong = [aval_of(s).dtype for s in traced if not aval_of(s).weak_type]
    dtype = strong[0] if strong else dtypes.canonicalize_dtype(np.int32)
    if guards.ever:
        for s in start_indices:
            guards.incoming(s)
    if not strong and any(k and not -(2**31) <= int(s) < 2**31
                          for s, k in zip(start_indices, known, strict=True)):
        dtype = dtypes.canonicalize_dtype(np.int64)
    flags = (
        [bool(allow_negative)] * len(shape)
        if isinstance(allow_negative, bool | np.bool_)
        else list(allow_negative)
    )
    rest = iter(traced)
    out = []
    for s, k, n, wrap in zip(start_indices, known, shape, flags, strict=True):
        if k:
            value = int(s)
            if value < 0 and not wrap:
                raise ValueError(
                    f"[{name}] expected a start from 0 on, got {value}: Index {value} is out of "
                    f"bounds for dimension {n} if allow_negative_indices=False."
                )
            value = value + n if value < 0 else value
            if not 0 <= value < 2**31:
                # Clamping comes later anyway, so a start beyond the dtype may stop at its end.
                limits = dtypes.iinfo(dtype)
                value = min(max(value, int(limits.min)), int(limits.max))
            out.append(literal(value, dtype, False))
            continue
        start = next(rest)
        if aval_of(start).weak_type and aval_of(start).dtype != dtype:
            start = convert_element_type(start, new_dtype=dtype, weak_type=False)
        if wrap and dtypes.issubdtype(aval_of(start).dtype, np.signedinteger):
            start = _wrapped(start, n)
        out.append(start)
    return out


def _wrapped(start: Any, n: int) -> Any:
    """A start, counted from the end of n elements where it is negative."""
    # Literals rather than Python numbers, which take eager execution's slow path.
    dtype = aval_of(start).dtype
    below = elementwise.lt(start, literal(0, dtype))
    return select_n(below, start, elementwise.add(start, literal(n, dtype)))


@remembered
def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """The window operand[start : start + slice_sizes] at a start known at run time.

    `start_indices` is a sequence of integer scalars, or a vector, one per dimension. Negative
    starts count from the end, unless not allowed; then they are clamped so that the window lies
    inside. TypeError for windows wider than the operand.

    >>> lax.dynamic_slice(jnp.arange(6).reshape(2, 3), (0, 2), (2, 2))
    Array([[1, 2],
           [4, 5]], dtype=int32)
    """
    shape = aval_of(operand).shape
    starts = _starts("dynamic_slice", shape, start_indices, allow_negative_indices)
    sizes = static_ints("dynamic_slice slice_sizes", slice_sizes)
    return _dynamic.dynamic_slice(operand, *starts, slice_sizes=sizes)


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """operand with the window of `update`'s shape at a start known at run time replaced.

    Starts as in `dynamic_slice`; operand and update have one dtype and rank.

    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (3,))
    Array([0., 0., 1., 1.], dtype=float32)
    """
    shape = aval_of(operand).shape
    starts = _starts("dynamic_update_slice", shape, start_indices, allow_negative_indices)
    return _dynamic.dynamic_update_slice(operand, update, *starts)


def _axis(name: str, axis: Any, ndim: int) -> int:
    axis = _operator.index(axis)
    if not -ndim <= axis < ndim:
        raise IndexError(
            f"[{name}] expected an axis of a {ndim}-dimensional array, got {axis}: axis {axis} is "
            f"out of bounds for array of dimension {ndim}"
        )
    return axis % ndim


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_slice` along one axis: `slice_size` elements from `start_index`.

    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = _axis("dynamic_slice_in_dim", axis, len(shape))
    starts: list[Any] = [0] * len(shape)
    starts[axis] = start_index
    sizes = (*shape[:axis], _operator.index(slice_size), *shape[axis + 1 :])
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """One element along an axis, clamped into it; without `keepdims` the axis is removed.

    >>> lax.dynamic_index_in_dim(jnp.arange(5), -1, keepdims=False)
    Array(4, dtype=int32)
    """
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    if keepdims:
        return out
    return squeeze(out, dimensions=(_axis("dynamic_index_in_dim", axis, aval_of(out).ndim),))


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_update_slice` with a start along one axis and 0 along the others.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    ndim = aval_of(operand).ndim
    starts: list[Any] = [0] * ndim
    starts[_axis("dynamic_update_slice_in_dim", axis, ndim)] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """operand with one element along an axis replaced; `update` may lack that axis.

    The index is held in bounds. TypeError for updates of other ranks.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 2)), jnp.ones(2), 1, 0)
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    aval, have = aval_of(operand), aval_of(update)
    axis = _axis("dynamic_update_index_in_dim", axis, aval.ndim)
    if have.ndim != aval.ndim:
        if have.ndim + 1 != aval.ndim:
            raise TypeError(
                f"[dynamic_update_index_in_dim] expected an update of {aval.ndim} or "
                f"{aval.ndim - 1} dimensions, got shape {have.shape}."
            )
        update = reshape(update, shape=(*have.shape[:axis], 1, *have.shape[axis:]))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
