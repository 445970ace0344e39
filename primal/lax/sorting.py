"""Order with JAX's positional signatures: sort, top_k, argmax and their relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, aval_of
from primal.numpy.remembered import remembered
from primal.ops.elementwise import neg
from primal.ops.index import sort as _sort
from primal.ops.types import canonical_axes, counted_axes, static_int
from primal.runtime.refusals import in_words


@remembered
@in_words
def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Elements in ascending order along a dimension; several operands are reordered alike.

    The first `num_keys` operands of a sequence are compared, lexicographically. -0 equals 0, nan
    comes last, complex numbers go by real, then imaginary part. Returns an array for an array and
    a tuple for a sequence. TypeError for unequal shapes, ValueError for a bad dimension or
    num_keys.

    >>> lax.sort(jnp.array([3., jnp.nan, 1.]))
    Array([ 1.,  3., nan], dtype=float32)
    >>> lax.sort((jnp.array([2, 1, 2]), jnp.array([5, 6, 4])), num_keys=2)
    (Array([1, 2, 2], dtype=int32), Array([6, 4, 5], dtype=int32))
    """
    several = isinstance(operand, list | tuple)
    operands = list(operand) if several else [operand]
    if not operands:
        raise TypeError("[sort] expected at least one operand, got none.")
    (axis,) = canonical_axes("sort", (dimension,), aval_of(operands[0]).ndim)
    outs = _sort.sort(
        *operands,
        dimension=axis,
        is_stable=bool(is_stable),
        num_keys=static_int("sort num_keys", num_keys),
    )
    return tuple(outs) if several else outs[0]


@remembered
@in_words
def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """`keys` ascending along a dimension, and `values` reordered alike.

    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([0, 1, 2]))
    (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32))
    """
    k, v = sort((keys, values), dimension, is_stable, 1)
    return k, v


@remembered
@in_words
def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Array]:
    """The k greatest elements along an axis, descending, and their int32 indices.

    Of equal elements the first come first; nan counts as greatest. ValueError for k beyond the
    size and for complex operands.

    >>> lax.top_k(jnp.array([1, 3, 2]), 2)
    [Array([3, 2], dtype=int32), Array([1, 2], dtype=int32)]
    """
    (axis,) = canonical_axes("top_k", (axis,), aval_of(operand).ndim)
    return list(_sort.top_k(operand, k=static_int("top_k k", k), axis=axis))


@remembered
@in_words
def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The index of the first maximum along an axis; the first nan counts as one.

    Real numbers and bool; the axis is removed. ValueError for an empty axis, TypeError for an
    `index_dtype` that is no integer.

    >>> lax.argmax(jnp.array([1., jnp.nan, 3.]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    return _arg(_sort.argmax, operand, axis, index_dtype)


@remembered
@in_words
def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The index of the first minimum along an axis; the first nan counts as one.

    As `argmax`.

    >>> lax.argmin(jnp.array([[3, 1], [0, 2]]), 1, jnp.int32)
    Array([1, 0], dtype=int32)
    """
    return _arg(_sort.argmin, operand, axis, index_dtype)


def _arg(op: Any, operand: Any, axis: int, index_dtype: Any) -> Any:
    axes = counted_axes(op.name, (axis,), aval_of(operand).ndim)
    found = dtypes.check_user_dtype_supported(index_dtype, op.name)
    return op(operand, axes=axes, index_dtype=found)


@in_words
def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The k greatest elements along a dimension and their indices: here exact, so recall is 1.

    With `aggregate_to_topk=False` as many as an approximation of that recall would leave to
    aggregate. Floating dtypes; ValueError otherwise, and for k beyond the size.

    >>> lax.approx_max_k(jnp.array([1., 3., 2.]), 2)
    [Array([3., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    axis, kept = _approximate(
        "approx_max_k", operand, k, reduction_dimension, recall_target,
        reduction_input_size_override, aggregate_to_topk,
    )
    values, places = top_k(operand, kept, axis=axis)
    return [values, places]


@in_words
def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The k least elements along a dimension, ascending, and their indices: here exact.

    As `approx_max_k`.

    >>> lax.approx_min_k(jnp.array([1., 3., 2.]), 2)
    [Array([1., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    axis, kept = _approximate(
        "approx_min_k", operand, k, reduction_dimension, recall_target,
        reduction_input_size_override, aggregate_to_topk,
    )
    values, places = top_k(neg(operand), kept, axis=axis)
    return [neg(values), places]


def _approximate(
    name: str, x: Any, k: int, dimension: int, recall: float, override: int, aggregate: bool
) -> tuple[int, int]:
    """The axis, and how many elements of it are returned."""
    aval = aval_of(x)
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise ValueError(
            f"[{name}] expected a floating dtype, got {aval.dtype.name}: operand must be a "
            "floating type."
        )
    (axis,) = canonical_axes(name, (dimension,), aval.ndim)
    size, k = aval.shape[axis], static_int("k", k)
    if not 0 < k <= size:
        raise ValueError(
            f"[{name}] expected 0 < k <= {size}, the size of the reduction dimension, got {k}."
        )
    if not 0 < recall <= 1:
        raise ValueError(f"[{name}] expected a recall_target in (0, 1], got {recall}.")
    if 0 <= override < size:
        raise ValueError(
            f"[{name}] expected a reduction_input_size_override of at least {size}, the size of "
            f"the reduction dimension, or -1, got {override}."
        )
    if aggregate:
        return axis, k
    return axis, max(k, _left_over(size, max(override, size), aval.ndim, k, recall))


def _left_over(size: int, logical: int, rank: int, k: int, recall: float) -> int:
    """How many candidates remain where the input is cut into bins that keep one element each.

    With m bins the expected recall is about exp((1 - k) / m); bins come in tiles of the TPU, 128
    lanes, or 8 of those for vectors, and the number of elements per bin is a power of two.
    """
    tile = 1024 if rank == 1 else 128
    if size <= tile:
        return size
    if k <= 1:
        return tile
    bins = int((1 - k) / math.log(recall)) if recall < 1 else logical
    per_bin = 1 << ((logical // min(max(bins, tile), logical)).bit_length() - 1)
    tiles = -(-size // tile)
    return size if per_bin == 1 else -(-tiles // per_bin) * tile
