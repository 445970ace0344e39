"""Sets of elements: unique, unions, membership. Lengths depend on values, or are given as `size`.

All results come sorted. Under transformations `size` is needed; a result is then cut to it, or
filled up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.creation import array, filled
from primal.numpy.indexing import getitem
from primal.numpy.joining import concatenate
from primal.numpy.nonzeros import concrete, first_true, static_size
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    array_operand,
    broadcast_shapes,
    convert,
    operand,
    promote_dtypes,
    to_shape,
)
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import expand_dims, moveaxis, part, ravel
from primal.numpy.sorting import count_below
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.index import sort as orders
from primal.ops.reduce import reduce_and, reduce_or
from primal.ops.window.cumulative import cumsum

COMPARED = 32
"""Test elements up to which each element is compared with all of them."""


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


@remembered_as(direct.unique)
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The different elements (slices along an axis), sorted; and, if asked for, more.

    In this order: the index of the first of each, the index into the result of each element, how
    often each occurs. With `size`, missing ones are `fill_value` (default: the smallest element)
    with count 0.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x = array_operand("unique", ar)
    have = x.aval.shape
    if axis is None:
        rows: Any = shape_ops.reshape(x, shape=(x.aval.size,))
    else:
        rows = moveaxis(x, as_axis("unique", axis, x.aval.ndim), 0)
    found = _unique(rows, size, fill_value, equal_nan)
    values = found.values
    if axis is not None:
        values = moveaxis(values, 0, as_axis("unique", axis, x.aval.ndim))
    inverse = found.inverse_indices
    if axis is None:
        inverse = shape_ops.reshape(inverse, shape=have)
    out = [values]
    for wanted, extra in (
        (return_index, found.indices),
        (return_inverse, inverse),
        (return_counts, found.counts),
    ):
        if wanted:
            out.append(extra)
    return out[0] if len(out) == 1 else tuple(out)


def _unique(rows: Any, size: int | None, fill_value: Any, equal_nan: bool) -> UniqueAll:
    n = rows.aval.shape[0]
    index = dtypes.python_scalar_dtype(int)
    wide = rows.aval.shape[1:]
    flat = shape_ops.reshape(rows, shape=(n, int(np.prod(wide, dtype=int))))
    width = flat.aval.shape[1]
    order = shape_ops.iota(shape=(n,), dtype=index, dimension=0)
    if n and width:
        columns = [
            shape_ops.squeeze(part(flat, 1, i, i + 1), dimensions=(1,)) for i in range(width)
        ]
        order = orders.sort(*columns, order, dimension=0, is_stable=True, num_keys=width)[-1]
        flat = getitem(flat, order)
    first = _is_first(flat, equal_nan)
    if size is None:
        count = int(np.count_nonzero(concrete("unique", first)))
    else:
        count = static_size("unique", size)
        if count and not n and fill_value is None:
            raise ValueError(
                f"jnp.unique: for zero-sized input with nonzero size argument, fill_value must be "
                f"specified, got size={size}."
            )
    place, found = first_true(first, count)
    rank = ops.sub(cumsum(convert(first, index), axis=0, reverse=False), literal(1, index, True))
    inverse = filled((n,), 0, index).at[order].set(rank) if n else order
    values = getitem(getitem(rows, order), place) if n else filled((count, *wide), 0, rows.dtype)
    indices = getitem(order, place) if n else filled((count,), 0, index)
    hits = filled((count,), 0, index).at[rank].add(1, mode="drop") if n else indices
    if size is not None:
        if fill_value is not None:
            fill = _fill("unique", fill_value, values.shape, rows.dtype)
            mask = shape_ops.reshape(found, shape=(count, *([1] * len(wide))))
            mask = to_shape(mask, values.shape)
            values = ops.select_n(mask, to_shape(fill, values.shape), values)
    return UniqueAll(values, indices, inverse, hits)


def _is_first(flat: Any, equal_nan: bool) -> Any:
    """Which rows of a sorted matrix differ from the row before."""
    n = flat.aval.shape[0]
    if n == 0:
        return filled((0,), False, BOOL)
    one, other = part(flat, 0, 1, n), part(flat, 0, 0, n - 1)
    differ = ops.ne(one, other)
    if equal_nan and dtypes.issubdtype(flat.aval.dtype, np.inexact):
        both = ops.bitwise_and(ops.ne(one, one), ops.ne(other, other))
        differ = ops.bitwise_and(differ, ops.bitwise_not(both))
    start = filled((1,), True, BOOL)
    return shape_ops.concatenate(start, reduce_or(differ, axes=(1,)), dimension=0)


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAll:
    """`unique` with indices, inverse indices and counts; nan differs from nan.

    Arrays in one dimension, sorted; of the static length `size` where given.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueAll(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """`unique` with counts; nan differs from nan.

    Arrays in one dimension, sorted; of the static length `size` where given.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
    Array([1, 3], dtype=int32)
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """`unique` with inverse indices; nan differs from nan.

    Arrays in one dimension, sorted; of the static length `size` where given.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(*found)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """`unique` alone; nan differs from nan.

    Arrays in one dimension, sorted; of the static length `size` where given.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


@remembered_as(direct.union1d)
def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of either array, sorted, each once.

    >>> jnp.union1d(jnp.array([1, 3]), jnp.array([3, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, y = promote_dtypes("union1d", ar1, ar2)
    both = concatenate([ravel(x), ravel(y)])
    return unique(both, size=size, fill_value=fill_value)


@remembered_as(direct.isin)
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among the test elements; nan is among none.

    `method` and `assume_unique` are accepted for other libraries' sake: many test elements are
    sorted, then searched. Raises ValueError for unknown methods.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"invalid argument method={method!r}; expected one of ('auto', 'compare_all', "
            "'binary_search', 'sort')"
        )
    x, tests = promote_dtypes("isin", element, test_elements)
    shape = x.aval.shape
    if tests.aval.size == 0:
        return filled(shape, invert, BOOL)
    flat = ravel(tests)
    if flat.aval.size <= COMPARED:
        # Vectors of elements meet one test after another: 333333 x 3 int16 and 20 tests took 2.3
        # ms with the tests last, and take 0.27.
        wide = (flat.aval.size, x.aval.size)
        same = ops.eq(to_shape(ravel(x), wide), to_shape(expand_dims(flat, 1), wide))
        out = shape_ops.reshape(reduce_or(same, axes=(0,)), shape=shape)
        return convert(ops.bitwise_not(out) if invert else out, BOOL)
    (ordered,) = orders.sort(flat, dimension=0, is_stable=False, num_keys=1)
    last = literal(flat.aval.size - 1, np.dtype(np.int32), True)
    near = getitem(ordered, ops.min(count_below(ordered, x, False), last))
    out = convert(ops.eq(near, to_shape(x, shape)), BOOL)
    return ops.bitwise_not(out) if invert else out


@remembered_as(direct.intersect1d)
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The elements that both arrays have, sorted; with `return_indices` also where they are.

    >>> jnp.intersect1d(jnp.array([1, 3, 2]), jnp.array([3, 2, 5]))
    Array([2, 3], dtype=int32)
    """
    x, y = promote_dtypes("intersect1d", ar1, ar2)
    x, y = ravel(x), ravel(y)
    left = _unique(x, None if size is None else x.size, None, True)
    real = ops.gt(left.counts, literal(0, left.counts.dtype, True))
    common = ops.bitwise_and(isin(left.values, y), real)
    values, place, found = _kept("intersect1d", left.values, common, size, fill_value)
    if not return_indices:
        return values
    index = dtypes.python_scalar_dtype(int)
    order = shape_ops.iota(shape=(y.size,), dtype=index, dimension=0)
    ordered, where = orders.sort(y, order, dimension=0, is_stable=True, num_keys=1)
    second = getitem(where, count_below(ordered, values, False)) if y.size else place
    first = getitem(left.indices, place) if x.size else place
    sizes = literal(x.size, index, False), literal(y.size, index, False)
    return (
        values,
        ops.select_n(found, to_shape(sizes[0], first.shape), first),
        ops.select_n(found, to_shape(sizes[1], second.shape), second),
    )


@remembered_as(direct.setdiff1d)
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of the first array that the second has not, sorted.

    >>> jnp.setdiff1d(jnp.array([1, 3, 2]), jnp.array([3, 5]))
    Array([1, 2], dtype=int32)
    """
    own = operand("setdiff1d", ar1).aval
    x, y = promote_dtypes("setdiff1d", ar1, ar2)
    x = ravel(x)
    if assume_unique:
        values, only = x, isin(x, y, invert=True)
    else:
        left = _unique(x, None if size is None else x.size, None, True)
        real = ops.gt(left.counts, literal(0, left.counts.dtype, True))
        values, only = left.values, ops.bitwise_and(isin(left.values, y, invert=True), real)
    fill = None if fill_value is None else _fill("setdiff1d", fill_value, (), own.dtype)
    values = convert(values, own.dtype, own.weak_type)
    return _kept("setdiff1d", values, only, size, fill)[0]


@remembered_as(direct.setxor1d)
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements that exactly one of the arrays has, sorted; nan, equal to nothing, of each.

    >>> jnp.setxor1d(jnp.array([1, 3, 2]), jnp.array([3, 5]))
    Array([1, 2, 5], dtype=int32)
    """
    x, y = promote_dtypes("setxor1d", ar1, ar2)
    x, y = ravel(x), ravel(y)
    both = concatenate([x, y])
    found = _unique(both, None if size is None else both.size, None, True)
    here, there = isin(found.values, x), isin(found.values, y)
    real = ops.gt(found.counts, literal(0, found.counts.dtype, True))
    one = ops.bitwise_and(ops.bitwise_xor(here, there), real)
    values = convert(found.values, found.values.dtype)
    if dtypes.issubdtype(both.dtype, np.inexact) and both.size:
        # nan is in neither by comparison, and belongs to the difference: last, once of each array.
        nans = [reduce_or(ops.ne(v, v), axes=(0,)) for v in (x, y)]
        twice = shape_ops.reshape(ops.bitwise_and(*nans), shape=(1,))
        nan = ops.bitwise_and(ops.ne(values, values), real)
        one = concatenate([ops.bitwise_or(one, nan), twice])
        values = concatenate([values, filled((1,), np.nan, values.dtype)])
    return _kept("setxor1d", values, one, size, fill_value)[0]


def _kept(name: str, values: Any, mask: Any, size: Any, fill_value: Any) -> tuple[Any, Any, Any]:
    """(the values where the mask holds, their places, which of `size` results are there)."""
    if size is None:
        count = int(np.count_nonzero(concrete(name, mask)))
    else:
        count = static_size(name, size)
    place, found = first_true(mask, count)
    if values.shape[0] == 0:
        # With one element that is not chosen, what stands in for elements is as for others.
        values = filled((1,), 0, values.dtype)
    out = getitem(values, place)
    if size is None:
        return out, place, found
    if fill_value is None:
        # The least of the results; where there is none, places say nothing.
        first = found[:1]
        fill: Any = ops.select_n(first, filled(first.shape, 0, values.dtype), out[:1])
    else:
        out, fill = promote_dtypes(name, out, fill_value)
        fill = _fill(name, fill, out.shape, fill.aval.dtype)
    return ops.select_n(found, to_shape(fill, out.shape), out), place, found


def _fill(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """What stands for missing results of this shape; ValueError where it does not fit them."""
    fill = convert(operand(name, value), dtype)
    if broadcast_shapes(fill.aval.shape, shape) != shape:
        raise ValueError(
            f"[{name}] expected a fill_value that fits results of shape {shape}, got shape "
            f"{fill.aval.shape}."
        )
    return fill


@remembered
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements. Lists are accepted here.

    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1., 2.]))
    Array(True, dtype=bool)
    """
    x, y = array(a1, copy=False), array(a2, copy=False)
    if x.shape != y.shape:
        return filled((), False, BOOL)
    x, y = promote_dtypes("array_equal", x, y)
    same = ops.eq(x, y)
    if equal_nan and dtypes.issubdtype(x.aval.dtype, np.inexact):
        same = ops.bitwise_or(same, ops.bitwise_and(ops.ne(x, x), ops.ne(y, y)))
    return _all(same)


def _all(same: Any) -> Array:
    return convert(reduce_and(same, axes=tuple(range(same.aval.ndim))), BOOL)


@remembered
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape with equal elements.

    >>> jnp.array_equiv(jnp.array([1, 1]), jnp.array([1]))
    Array(True, dtype=bool)
    """
    x, y = array(a1, copy=False), array(a2, copy=False)
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return filled((), False, BOOL)
    x, y = promote_dtypes("array_equiv", x, y)
    same = ops.eq(to_shape(x, shape), to_shape(y, shape))
    return _all(same)
