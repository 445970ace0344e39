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
from primal.ir.trace import Array, Tracer, aval_of
from primal.ops import elementwise
from primal.ops.choose import convert_element_type, select_n
from primal.ops.index import gather as _gather
from primal.ops.index import scatter as _scatter
from primal.ops.index.numbers import (
    FILL_OR_DROP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    default_fill,
    static_fill,
    window_sizes,
)
from primal.ops.shape import concatenate, reshape
from primal.ops.spread import broadcast_to, full_like_aval, zeros_like_aval
from primal.ops.types import canonical_axes, static_ints
from primal.runtime.refusals import in_words
from primal.transforms.batch import Axis, batch_jaxpr
from primal.transforms.stage import stage

Mode = str | GatherScatterMode | None


@in_words
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
) -> Array:
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
    else:
        fill_value = static_fill("gather", fill_value, aval_of(operand).dtype)
    sizes, x = static_ints("gather slice_sizes", slice_sizes), aval_of(operand)
    if 0 in aval_of(start_indices).shape and len(sizes) == x.ndim:
        # No window is read, so that it need not fit: an empty table may be asked for nothing.
        room = tuple([max(n, size) for n, size in zip(x.shape, sizes, strict=True)])
        if room != x.shape:
            operand = broadcast_to(np.zeros((), x.dtype), room)
    return _gather.gather(
        operand,
        start_indices,
        dimension_numbers=_plain(GatherDimensionNumbers, dimension_numbers),
        slice_sizes=sizes,
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


@in_words
def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
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


@in_words
def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
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


@in_words
def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """operand with updates subtracted: out[scatter_indices[b] + w] -= updates[b, w].

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.zeros(3), jnp.array([[1], [1]]), jnp.array([5., 6.]), numbers)
    Array([  0., -11.,   0.], dtype=float32)
    """
    return _scattered(
        _scatter.scatter_sub, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )


@in_words
def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
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


@in_words
def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
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


@in_words
def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
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


@in_words
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
) -> Array:
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


@in_words
def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """src at index arrays along `axes`, taken modulo the sizes: out[i, r] = src[idxs[i], r].

    `idxs` are integer arrays of one shape, one per axis, else TypeError; their dimensions lead.

    >>> lax.index_take(jnp.arange(6).reshape(3, 2), (jnp.array([-1, 3]),), (0,))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    aval = aval_of(src)
    axes = canonical_axes("index_take", axes, aval.ndim)
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
    i = widened(i)
    aval = aval_of(i)
    n = full_like_aval(aval.strong(), max(size, 1))
    rest = elementwise.rem(i, n)
    if not dtypes.issubdtype(aval.dtype, np.signedinteger):
        return rest
    below = elementwise.lt(rest, zeros_like_aval(aval.strong()))
    return select_n(below, rest, elementwise.add(rest, n))


def widened(i: Any) -> Any:
    """An index as an integer of at least 32 bits, in which sizes can be added to it."""
    dtype = aval_of(i).dtype
    if dtypes.issubdtype(dtype, np.integer) and dtypes.itemsize_bits(dtype) < 32:
        return convert_element_type(i, new_dtype=np.dtype(np.int32), weak_type=False)
    return i
