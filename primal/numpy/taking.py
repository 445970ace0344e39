"""Functions that select or replace elements by position or mask: take, put, compress, place."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.errors import TracerBoolConversionError
from primal.ir.trace import Array, literal
from primal.numpy import direct, quotients
from primal.numpy.at import IndexUpdateHelper
from primal.numpy.index_forms import parse
from primal.numpy.index_updates import cast_values
from primal.numpy.indexing import Hints, component, getitem, is_eager_array, read, read_numpy
from primal.numpy.nonzeros import concrete, first_true
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    check_out,
    convert,
    operand,
    scalar_literal,
    to_shape,
)
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered_as
from primal.numpy.ufuncs import as_bool
from primal.ops.choose import select_n
from primal.ops.elementwise import sub
from primal.ops.index.gather import gather
from primal.ops.index.numbers import (
    CLIP,
    FILL_OR_DROP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    static_fill,
)
from primal.ops.shape import concatenate, reshape
from primal.ops.window.cumulative import cumsum
from primal.runtime import guards
from primal.runtime.array import ArrayImpl
from primal.runtime.refusals import in_words


def immutable(name: str, inplace: bool) -> None:
    """ValueError for functions that NumPy runs in place."""
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because arrays are immutable. Pass "
            "inplace=False to instead return an updated array."
        )


def index_operand(name: str, indices: Any, error: type[Exception] = TypeError) -> Any:
    """An integer index as an int, NumPy's array where known, or a traced array."""
    if isinstance(indices, int) and not isinstance(indices, bool):
        return int(indices)
    i = operand(name, indices, 1)
    if not dtypes.issubdtype(i.aval.dtype, np.integer):
        raise error(
            f"[{name}] expected integer indices, got {i.aval.dtype.name}: indices must have an "
            "integer type. Convert them with .astype(int)."
        )
    if isinstance(indices, np.ndarray | np.generic):
        return np.asarray(indices)
    return i.host if type(i) is ArrayImpl and i.host is not None else i


def flattened(x: Any) -> Any:
    """x in one dimension."""
    return x if x.aval.ndim == 1 else reshape(x, shape=(x.aval.size,))


# take.


def _counts_as_index(indices: Any) -> bool:
    """Whether they are booleans, for 0 and 1, or none at all, of whatever dtype."""
    dtype = getattr(indices, "dtype", None)
    return indices is True or indices is False or dtype == np.bool_ or (
        dtype is not None and np.size(indices) == 0 and dtypes.issubdtype(dtype, np.floating)
    )


@remembered_as(direct.take)
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The elements of a at positions along an axis (of the flattened array by default).

    out[.., *k, ..] = a[.., indices[k], ..]. Negative indices count from the end, and those out of
    bounds give `fill_value` (nan, the least signed or greatest unsigned integer, True). mode='clip'
    takes the nearest element instead (the first for negative ones), 'wrap' the index modulo the
    size. Raises TypeError for lists, IndexError for an empty axis. Raises NotImplementedError for
    `out` and mode 'raise', ValueError for unknown modes.

    >>> jnp.take(jnp.array([1., 2., 3.]), jnp.array([0, -1, 5]))
    Array([ 1.,  3., nan], dtype=float32)
    """
    check_out("take", out)
    if mode not in (None, "fill", "clip", "wrap"):
        if mode == "raise":
            raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
        raise ValueError(
            f"Invalid mode '{mode}' for np.take: expected 'fill', 'clip', 'wrap' or None."
        )
    if guards.ever:
        guards.incoming(indices)
    x = array_operand("take", a)
    if _counts_as_index(indices):
        indices = convert(array_operand("take", indices, 1), dtypes.python_scalar_dtype(int))
    i = index_operand("take", indices, ValueError)
    fill_value = static_fill("take", fill_value, x.aval.dtype)
    if axis is None:
        x, axis = flattened(x), 0
    axis = as_axis("take", axis, x.ndim)
    n = x.shape[axis]
    if n == 0 and np.size(i):
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    before = (slice(None),) * axis
    if mode in (None, "fill"):
        hints = Hints(indices_are_sorted, unique_indices, FILL_OR_DROP, True)
    else:
        hints = Hints(indices_are_sorted, unique_indices, CLIP, False)
    if mode == "wrap":
        i = modulo(i, n)
    if hints.wrap and is_eager_array(x):
        # In bounds nothing is filled, and NumPy reads the same.
        found = read_numpy(x, (*before, i))
        if found is not None:
            return found
    return read(x, parse((*before, i), x.shape), hints, fill_value)


def modulo(i: Any, n: int) -> Any:
    """Indices modulo a size; 0 for an empty dimension."""
    if isinstance(i, int | np.ndarray):
        values = np.asarray(i)
        if values.dtype != np.uint64:  # of which int64 does not hold the upper half
            values = values.astype(np.int64)
        return values % max(n, 1)
    if dtypes.itemsize_bits(i.aval.dtype) < 32:
        i = convert(i, np.dtype(np.int32))  # n must fit, too
    return quotients.remainder(i, max(n, 1))


# Along an axis.


@remembered_as(direct.take_along_axis)
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """out[.., i, ..] = arr[.., indices[.., i, ..], ..] along an axis; other dimensions broadcast.

    mode None or 'fill' gives `fill_value` out of bounds, as `take` does; 'clip' the nearest
    element. axis=None takes from the flattened array. Raises ValueError for unequal ranks,
    TypeError for indices that are not integers.

    >>> x = jnp.array([[3, 1, 2], [6, 5, 4]])
    >>> jnp.take_along_axis(x, jnp.array([[1], [2]]), axis=1)
    Array([[1],
           [4]], dtype=int32)
    """
    x = array_operand("take_along_axis", arr)
    i = array_operand("take_along_axis", indices, 1)
    if not dtypes.issubdtype(i.dtype, np.integer):
        raise TypeError(
            f"take_along_axis indices must be of integer type, got {i.dtype.name}. Convert them "
            "with .astype(int)."
        )
    if axis is None:
        if i.ndim != 1:
            raise ValueError(
                f"[take_along_axis] expected one-dimensional indices with axis=None, got shape "
                f"{i.shape}."
            )
        x, axis = flattened(x), 0
    if x.ndim != i.ndim:
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{i.ndim} vs. {x.ndim}"
        )
    axis = as_axis("take_along_axis", axis, x.ndim)
    chosen = GatherScatterMode.from_any(mode)
    fill_value = static_fill("take_along_axis", fill_value, x.aval.dtype)
    wrap = chosen is not PROMISE_IN_BOUNDS
    if wrap_negative_indices is not None:
        wrap = wrap_negative_indices
    return _along(x, i, axis, chosen, wrap, fill_value)


def _along(x: Any, i: Any, axis: int, mode: GatherScatterMode, wrap: bool, fill: Any) -> Any:
    """One gather: dimensions of equal sizes run together, broadcast ones stand still."""
    windows: list[int] = []
    collapsed: list[int] = []
    together: list[int] = []
    sizes: list[int] = []
    kept: list[int] = []
    shape: list[int] = []
    for d, (n, m) in enumerate(zip(x.shape, i.shape, strict=True)):
        shape.append(m if d == axis or n == 1 else n)
        if d != axis and m == 1:
            windows.append(d)
            sizes.append(n)
            continue
        kept.append(d)
        sizes.append(1)
        if d == axis or n == 1:
            collapsed.append(d)
        elif n == m:
            together.append(d)
        else:
            raise ValueError(
                f"[take_along_axis] expected shapes that broadcast but for axis {axis}, got "
                f"{x.shape} and {i.shape}: Incompatible shapes for broadcasting."
            )
    n = x.shape[axis]
    if 0 in shape:
        # Of x's dtype, and nothing to read.
        return getitem(reshape(_first_none(x), shape=(0,)), np.zeros(shape, np.int32))
    if n == 0:
        raise IndexError(
            f"[take_along_axis] expected elements along axis {axis}, got none: index is out of "
            f"bounds for axis {axis} with size 0"
        )
    known = type(i) is ArrayImpl and i.host is not None
    start = component(i.host if known else i, n, wrap)
    columns = start.reshape if known else lambda s: reshape(start, shape=s)
    batch = tuple([i.shape[d] for d in kept])
    return gather(
        x,
        columns((*batch, 1)),
        dimension_numbers=GatherDimensionNumbers(
            tuple(windows), tuple(collapsed), (axis,), tuple(together),
            tuple([kept.index(d) for d in together]),
        ),
        slice_sizes=tuple(sizes),
        mode=mode,
        fill_value=fill,
        indices_are_sorted=False,
        unique_indices=False,
    )  # fmt: skip


def _first_none(x: Any) -> Any:
    return getitem(flattened(x), slice(0, 0))


@in_words
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A copy of arr with out[.., indices[.., i, ..], ..] = values[.., i, ..] along an axis.

    Needs inplace=False. Indices out of bounds are dropped, or as `mode` says. axis=None puts into
    the flattened array. Raises ValueError where the numbers of dimensions differ.

    >>> x = jnp.zeros((2, 3))
    >>> jnp.put_along_axis(x, jnp.array([[1], [2]]), 7, axis=1, inplace=False)
    Array([[0., 7., 0.],
           [0., 0., 7.]], dtype=float32)
    """
    immutable("put_along_axis", inplace)
    x = array_operand("put_along_axis", arr)
    i = array_operand("put_along_axis", indices, 1)
    operand("put_along_axis", values, 2)  # no list
    if axis is None:
        flat = put_along_axis(flattened(x), i, values, 0, False, mode=mode)
        return reshape(flat, shape=x.shape)
    if x.ndim != i.ndim:
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{i.ndim} vs. {x.ndim}"
        )
    axis = as_axis("put_along_axis", axis, x.ndim)
    index: list[Any] = []
    for d, n in enumerate(x.shape):
        place = tuple([n if k == d else 1 for k in range(x.ndim)])
        index.append(i if d == axis else np.arange(n, dtype=np.int32).reshape(place))
    # Of Python's numbers as they came, NumPy's own assignment takes them.
    return IndexUpdateHelper(x)[tuple(index)].set(values, mode=mode)


# put and place: values in cyclic order.


def cyclic(v: Any, count: int) -> Any:
    """The flattened values, repeated or cut to `count`."""
    flat = flattened(v)
    size = flat.aval.size
    if size < count:
        flat = concatenate(*[flat] * -(-count // size), dimension=0)
    return getitem(flat, slice(0, count)) if flat.aval.size != count else flat


@in_words
def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """A copy of a whose flattened elements at `ind` are the values v, repeated as needed.

    Needs inplace=False. Indices out of bounds go to the nearest element (mode None or 'clip'; under
    'clip' negative ones to the first) or modulo the size ('wrap'). Raises NotImplementedError for
    mode 'raise', ValueError for unknown modes.

    >>> jnp.put(jnp.zeros(4), jnp.array([0, 3]), jnp.array([1, 2]), inplace=False)
    Array([1., 0., 0., 2.], dtype=float32)
    """
    immutable("put", inplace)
    x = array_operand("put", a)
    i = index_operand("put", ind)
    values = array_operand("put", v, 2)
    if mode not in (None, "clip", "wrap"):
        if mode == "raise":
            raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    count = int(np.size(i))
    if not count or not x.size or not values.size:
        return x
    if mode == "wrap":
        i = modulo(i, x.size)
    i = np.reshape(i, -1) if isinstance(i, int | np.ndarray) else flattened(i)
    ref = IndexUpdateHelper(flattened(x))[i]
    done = ref.set(cyclic(values, count), mode="clip", wrap_negative_indices=mode is None)
    return reshape(done, shape=x.shape)


@in_words
def place(
    arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True
) -> Array:
    """A copy of arr whose k-th element with a true mask is vals[k mod len(vals)].

    Needs inplace=False. Raises ValueError for sizes that differ and for no values.

    >>> x = jnp.arange(4)
    >>> jnp.place(x, x > 1, jnp.array([8, 9]), inplace=False)
    Array([0, 1, 8, 9], dtype=int32)
    """
    x = array_operand("place", arr)
    m = array_operand("place", mask, 1)
    values = array_operand("place", vals, 2)
    immutable("place", inplace)
    if m.size != x.size:
        raise ValueError(
            f"place: arr and mask must be the same size, got {x.size} and {m.size} elements."
        )
    if not values.size:
        raise ValueError("Cannot place values from an empty array")
    if not x.size:
        return x
    chosen = flattened(as_bool(m))
    index = dtypes.python_scalar_dtype(int)
    rank = sub(cumsum(_as_int(chosen, index), axis=0, reverse=False), literal(1, index, True))
    values = flattened(cast_values(x, values, "place"))
    picked = getitem(values, modulo(rank, values.aval.size))
    return reshape(select_n(chosen, flattened(x), picked), shape=x.shape)


def _as_int(mask: Any, dtype: Any) -> Any:
    return select_n(mask, *[to_shape(literal(v, dtype, False), mask.aval.shape) for v in (0, 1)])


# By a condition.


@remembered_as(direct.compress)
def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """The slices of a along an axis (elements of the flattened array) where a condition is true.

    The condition is one-dimensional and may be shorter than the axis. Their number depends on
    values: under transformations give `size`; the result is cut to it, or filled up with
    `fill_value`. Raises ValueError unless the condition is a vector that is true within the axis
    only, and for a size beyond the axis.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(6).reshape(3, 2), axis=0)
    Array([[0, 1],
           [4, 5]], dtype=int32)
    """
    check_out("compress", out)
    c = array_operand("compress", condition)
    x = array_operand("compress", a, 1)
    if c.ndim != 1:
        raise ValueError(
            f"[compress] expected a one-dimensional condition, got shape {c.shape}: condition must "
            "be a 1D array"
        )
    if axis is None:
        x, axis = flattened(x), 0
    axis = as_axis("compress", axis, x.ndim)
    n = x.shape[axis]
    c = as_bool(c)
    if c.size > n:
        if concrete("compress", getitem(c, slice(n, None)), "condition").any():
            raise ValueError(
                f"[compress] expected a condition of at most {n} elements, got {c.size}: condition "
                "contains entries that are out of bounds"
            )
        c = getitem(c, slice(0, n))
    before = (slice(None),) * axis
    x = getitem(x, (*before, slice(0, c.size)))
    if size is None:
        held = concrete("compress", c, error=TracerBoolConversionError)
        return getitem(x, (*before, held))
    if not 0 <= size <= n:
        raise ValueError(f"[compress] expected a size from 0 to {n}, got {size}.")
    fill = scalar_or_array(x, fill_value)
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    if not c.size:
        return to_shape(fill, shape)
    places, found = first_true(c, size)
    taken = getitem(x, (*before, places))
    mask = reshape(found, shape=tuple([size if d == axis else 1 for d in range(x.ndim)]))
    return select_n(to_shape(mask, shape), to_shape(fill, shape), taken)


def scalar_or_array(x: Any, value: Any) -> Any:
    """A fill value as an operand of x's dtype."""
    if type(value) in (bool, int, float, complex):
        return scalar_literal(value, x.dtype, x.weak_type)
    return cast_values(x, value, "fill_value")


@remembered_as(direct.extract)
def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: Any = 0
) -> Array:
    """The elements of arr where a condition is true, in one dimension; `size` as for `compress`.

    >>> x = jnp.arange(5)
    >>> jnp.extract(x % 2 == 0, x)
    Array([0, 2, 4], dtype=int32)
    """
    c = flattened(array_operand("extract", condition))
    x = flattened(array_operand("extract", arr, 1))
    return compress(c, x, size=size, fill_value=fill_value)
