"""Dynamic slices with JAX's positional signatures: read and written where operands say."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.limits import iinfo
from primal.ir.trace import Array, aval_of, literal
from primal.lax.indexing import widened
from primal.numpy.remembered import remembered
from primal.ops import elementwise
from primal.ops.choose import convert_element_type, select_n
from primal.ops.index import dynamic as _dynamic
from primal.ops.shape import reshape, squeeze
from primal.ops.shape import slice as slice_op
from primal.ops.types import canonical_axes, static_ints
from primal.runtime import guards
from primal.runtime.refusals import in_words


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
    if guards.ever:
        for s in start_indices:
            guards.incoming(s)
    known = [type(s) is int or isinstance(s, np.integer) for s in start_indices]
    traced, dtype = _of_one_dtype(name, shape, start_indices, known)
    flags = (
        [bool(allow_negative)] * len(shape)
        if not isinstance(allow_negative, Sequence | np.ndarray)
        else list(allow_negative)
    )
    rest = iter(traced)
    out = []
    for s, k, n, wrap in zip(start_indices, known, shape, flags, strict=True):
        if k:
            out.append(_known(name, int(s), n, wrap, dtype))
            continue
        start = next(rest)
        if aval_of(start).weak_type and aval_of(start).dtype != dtype:
            start = convert_element_type(start, new_dtype=dtype, weak_type=False)
        if wrap and dtypes.issubdtype(aval_of(start).dtype, np.signedinteger):
            start = _wrapped(start, n)
        out.append(start)
    return out


def _of_one_dtype(
    name: str, shape: Sequence[int], starts: Sequence[Any], known: Sequence[bool]
) -> tuple[list[Any], Any]:
    """The starts that are not known, and the dtype that all will have."""
    typed = {
        aval_of(s).dtype
        for s in starts
        if isinstance(s, np.integer) or not (type(s) is int or aval_of(s).weak_type)
    }
    if len(typed) > 1:
        raise TypeError(
            f"[{name}] expected starts that are scalar integers of the same type, got "
            f"{', '.join(sorted([d.name for d in typed]))}. Convert them with astype."
        )
    traced = [widened(s) for s, k in zip(starts, known, strict=True) if not k]
    for s in traced:
        if aval_of(s).ndim or not dtypes.issubdtype(aval_of(s).dtype, np.integer):
            raise TypeError(
                f"[{name}] expected starts that are scalar integers of the same type, got "
                f"{aval_of(s).short()}: start_indices arguments to {name} must be scalars."
            )
    strong = [aval_of(s).dtype for s in traced if not aval_of(s).weak_type]
    dtype = strong[0] if strong else dtypes.canonicalize_dtype(np.int32)
    if not strong and any(k and not -(2**31) <= int(s) < 2**31
                          for s, k in zip(starts, known, strict=True)):
        dtype = dtypes.canonicalize_dtype(np.int64)
    if max(shape, default=0) >= 2**31 and dtype.itemsize < 8:
        # 32 bits have no number for the last elements, nor one to add to negative ones.
        dtype = np.dtype(np.int64)
        traced = [convert_element_type(s, new_dtype=dtype, weak_type=False) for s in traced]
    return traced, dtype


def _known(name: str, value: int, n: int, wrap: bool, dtype: Any) -> Any:
    """A start that is known among n elements."""
    if value < 0 and not wrap:
        raise ValueError(
            f"[{name}] expected a start from 0 on, got {value}: Index {value} is out of bounds for "
            f"dimension {n} if allow_negative_indices=False."
        )
    value = value + n if value < 0 else value
    if not 0 <= value < 2**31:
        # Clamping comes later anyway, so a start beyond the dtype may stop at its end.
        limits = iinfo(dtype)
        value = min(max(value, int(limits.min)), int(limits.max))
    return literal(value, dtype, False)


def _wrapped(start: Any, n: int) -> Any:
    """A start, counted from the end of n elements where it is negative."""
    # Literals rather than Python numbers, which take eager execution's slow path.
    dtype = aval_of(start).dtype
    below = elementwise.lt(start, literal(0, dtype))
    return select_n(below, start, elementwise.add(start, literal(n, dtype)))


@remembered
@in_words
def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
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


@remembered
@in_words
def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """operand with the window of `update`'s shape at a start known at run time replaced.

    Starts as in `dynamic_slice`; operand and update have one dtype and rank.

    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (3,))
    Array([0., 0., 1., 1.], dtype=float32)
    """
    shape = aval_of(operand).shape
    starts = _starts("dynamic_update_slice", shape, start_indices, allow_negative_indices)
    return _dynamic.dynamic_update_slice(operand, update, *starts)


@remembered
@in_words
def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_slice` along one axis: `slice_size` elements from `start_index`.

    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = canonical_axes("dynamic_slice_in_dim", (axis,), len(shape))[0]
    starts: list[Any] = [0] * len(shape)
    starts[axis] = start_index
    sizes = (*shape[:axis], operator.index(slice_size), *shape[axis + 1 :])
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


@remembered
@in_words
def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """One element along an axis, clamped into it; without `keepdims` the axis is removed.

    >>> lax.dynamic_index_in_dim(jnp.arange(5), -1, keepdims=False)
    Array(4, dtype=int32)
    """
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    if keepdims:
        return out
    gone = canonical_axes("dynamic_index_in_dim", (axis,), aval_of(out).ndim)
    return squeeze(out, dimensions=gone)


@remembered
@in_words
def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_update_slice` with a start along one axis and 0 along the others.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    ndim = aval_of(operand).ndim
    starts: list[Any] = [0] * ndim
    starts[canonical_axes("dynamic_update_slice_in_dim", (axis,), ndim)[0]] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


@in_words
def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """operand with one element along an axis replaced; `update` may lack that axis.

    The index is held in bounds. TypeError for updates of other ranks.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 2)), jnp.ones(2), 1, 0)
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    aval, have = aval_of(operand), aval_of(update)
    axis = canonical_axes("dynamic_update_index_in_dim", (axis,), aval.ndim)[0]
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
