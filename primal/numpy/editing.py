"""delete and insert: copies of an array without some elements, or with more."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, aval_of, literal
from primal.numpy import direct
from primal.numpy.at import IndexUpdateHelper
from primal.numpy.index_forms import dynamic_positions
from primal.numpy.indexing import getitem
from primal.numpy.nonzeros import concrete, first_true
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    broadcast_shapes,
    convert,
    to_shape,
    with_rank,
)
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered_as
from primal.numpy.taking import flattened, index_operand, take
from primal.ops.choose import max as max_op
from primal.ops.choose import min as min_op
from primal.ops.choose import select_n
from primal.ops.elementwise import add, bitwise_and, bitwise_not, bitwise_or, eq, lt, sub
from primal.ops.shape import concatenate, iota, moveaxis, reshape
from primal.ops.spread import reduce_sum
from primal.ops.window.cumulative import cumsum

INT32 = np.dtype(np.int32)


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    x = array_operand(name, a)
    if axis is None:
        return flattened(x), 0
    return x, as_axis(name, axis, x.ndim)


# delete.


@remembered_as(direct.delete)
def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """A copy of arr without the elements that `obj` names along an axis (flattened by default).

    `obj` is an int, a slice, an array of ints or a mask of the axis' length. Its values must be
    known, as the length of the result depends on them; with assume_unique_indices=True an int array
    may be traced, and must name distinct elements. Raises IndexError out of bounds, for one index
    ValueError. Raises ValueError for a mask of another length and for indices that are no integers.

    >>> jnp.delete(jnp.arange(5), jnp.array([1, -1]))
    Array([0, 2, 3], dtype=int32)
    """
    x, axis = _along("delete", arr, axis)
    n = x.shape[axis]
    before = (slice(None),) * axis
    if isinstance(obj, slice):
        first, end, step = obj.indices(n)
        if step == 1 and first < end:
            return _without(x, axis, first, end)
        gone = np.arange(n)[obj]
        return getitem(x, (*before, np.delete(np.arange(n, dtype=INT32), gone)))
    i = array_operand("delete", obj, 1)
    if i.dtype == np.bool_:
        if i.shape != (n,):
            raise ValueError(
                f"[delete] expected a mask of shape ({n},), got {i.shape}: for boolean indices, "
                "obj must be one-dimensional with length matching specified axis."
            )
        return getitem(x, (*before, ~concrete("delete", i, "obj")))
    if not dtypes.issubdtype(i.dtype, np.integer):
        raise ValueError(
            f"[delete] expected obj of integers or booleans, got obj.dtype={i.dtype.name}; must be "
            "integer or bool."
        )
    if assume_unique_indices and i.ndim:
        return _delete_distinct(x, flattened(i), axis)
    at = concrete("delete", i, "obj").reshape(-1).astype(np.int64)
    outside = at[(at < -n) | (at >= n)]
    if outside.size:
        kind = ValueError if i.ndim == 0 else IndexError
        raise kind(f"index {outside[0]} is out of bounds for axis {axis} with size {n}")
    if i.ndim == 0:
        first = int(at[0]) % n
        return _without(x, axis, first, first + 1)
    return getitem(x, (*before, np.delete(np.arange(n, dtype=INT32), at)))


def _without(x: Any, axis: int, first: int, end: int) -> Any:
    before = (slice(None),) * axis
    parts = [getitem(x, (*before, slice(0, first))), getitem(x, (*before, slice(end, None)))]
    return concatenate(*parts, dimension=axis)


def _delete_distinct(x: Any, i: Any, axis: int) -> Any:
    n = x.shape[axis]
    kept = IndexUpdateHelper(to_shape(literal(True, np.dtype(bool), False), (n,)))[i].set(False)
    places, _ = first_true(kept, max(n - i.size, 0))
    return getitem(x, (*(slice(None),) * axis, places))


# insert.


@remembered_as(direct.insert)
def insert(
    arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
) -> Array:
    """A copy of arr with values inserted before the positions `obj` along an axis.

    `obj`, an int, a slice or a one-dimensional array of ints, counts positions of the original;
    those out of bounds mean its ends. Values broadcast, and take arr's dtype. Raises ValueError
    for other indices.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    >>> jnp.insert(jnp.zeros((2, 2)), jnp.array([0, 2]), 5, axis=1)
    Array([[5., 0., 0., 5.],
           [5., 0., 0., 5.]], dtype=float32)
    """
    x, axis = _along("insert", arr, axis)
    v = convert(array_operand("insert", values, 2), x.dtype, x.weak_type)
    n = x.shape[axis]
    i = np.arange(n)[obj] if isinstance(obj, slice) else index_operand("insert", obj, ValueError)
    rank = np.ndim(i)
    if rank > 1:
        raise ValueError(
            "jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; got shape "
            f"{np.shape(i)}."
        )
    v = with_rank(v, x.ndim)
    if rank == 0:
        v = moveaxis(v, 0, axis)
    known = isinstance(i, int | np.ndarray)
    if rank == 0 or np.size(i) == 1:
        count = v.aval.shape[axis]
        at = np.full(count, i) if known else to_shape(reshape(i, shape=()), (count,))
    else:
        at, count = i, int(np.size(i))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if broadcast_shapes(v.aval.shape, shape) != shape:
        raise ValueError(
            f"[insert] expected values that broadcast to shape {shape}, got {v.aval.shape}: "
            "Incompatible shapes for broadcasting."
        )
    if not count:
        return x
    v = to_shape(v, shape)
    joined = concatenate(x, v, dimension=axis)
    if known:
        wide = at.astype(np.int64)
        wide = np.clip(np.where(wide < 0, wide + n, wide), 0, n)
        # Stable, and originals after what is inserted before them.
        keys = np.concatenate([2 * np.arange(n) + 1, 2 * wide])
        source = np.argsort(keys, kind="stable").astype(INT32)
        return getitem(joined, (*(slice(None),) * axis, source))
    return take(joined, _insertion_order(at, n), axis, mode="clip")


def _insertion_order(at: Any, n: int) -> Any:
    """Where each element of the result comes from, in (originals, inserted); traced positions."""
    count = at.aval.shape[0]
    at = dynamic_positions(at, n, True)
    dtype = aval_of(at).dtype
    number = lambda value: to_shape(literal(value, dtype, False), (count,))  # noqa: E731
    at = min_op(max_op(at, number(0)), number(n))
    # Before inserted element j stand `at[j]` originals, and the inserted ones that come first.
    mine, other = reshape(at, shape=(count, 1)), reshape(at, shape=(1, count))
    j = iota(shape=(count, count), dtype=dtype, dimension=0)
    k = iota(shape=(count, count), dtype=dtype, dimension=1)
    earlier = bitwise_or(lt(other, mine), bitwise_and(eq(other, mine), lt(k, j)))
    place = add(at, reduce_sum(convert(earlier, dtype), axes=(1,)))
    total = n + count
    new = IndexUpdateHelper(to_shape(literal(False, np.dtype(bool), False), (total,)))[place].set(
        True
    )
    old = cumsum(convert(bitwise_not(new), dtype), axis=0, reverse=False)
    order = sub(old, literal(1, dtype, True))
    inserted = iota(shape=(count,), dtype=dtype, dimension=0)
    own = IndexUpdateHelper(to_shape(literal(0, dtype, False), (total,)))[place].set(
        add(inserted, literal(n, dtype, True))
    )
    return select_n(new, order, own)
