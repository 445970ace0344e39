"""Where an array is not zero: results whose length depends on values, or is given as `size`."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes, errors
from primal.ir.avals import Aval
from primal.ir.trace import Array, Tracer, literal
from primal.numpy import direct
from primal.numpy.at import IndexUpdateHelper
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    convert,
    from_literal,
    promote_dtypes,
    to_shape,
    with_rank,
)
from primal.numpy.remembered import remembered_as
from primal.numpy.ufuncs import as_bool
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.types import axes_given, canonical_axes, static_int
from primal.ops.window.cumulative import cumsum
from primal.runtime.array import from_numpy
from primal.runtime.refusals import in_words


def concrete(
    name: str,
    x: Any,
    what: str = "size",
    error: type[errors.ConcretizationTypeError] = errors.ConcretizationTypeError,
) -> Any:
    """The NumPy array of a value; the error names the argument that would help."""
    value = from_literal(x)
    while isinstance(value, Tracer):
        inner = value.concrete()
        if inner is None:
            raise error(
                f"[{name}] expected values that are known while tracing, or a {what}, got neither: "
                "Abstract tracer value encountered where concrete value is expected: traced array "
                f"with shape {value.aval.str_short()}. The {what} argument of jnp.{name} must be "
                f"statically specified to use jnp.{name} within JAX transformations, because the "
                f"length of the result depends on values. {value.origin()}"
            )
        value = inner
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def static_size(name: str, size: Any) -> int:
    """A `size` argument as a non-negative int."""
    count = static_int(f"{name} size", size)
    if count < 0:
        raise TypeError(f"[{name}] expected a non-negative size, got {count}.")
    return count


def as_index_array(host: Any) -> Array:
    """NumPy's 64-bit positions as an array of the default integer."""
    dtype = dtypes.python_scalar_dtype(int)
    return from_numpy(np.ascontiguousarray(host).astype(dtype), Aval(host.shape, dtype))


@remembered_as(direct.nonzero)
def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]:
    """The indices of the non-zero elements, one array per dimension.

    Their number depends on values: under transformations give `size`; the result is cut to it, or
    filled up with `fill_value` (0 by default; a tuple gives one per dimension; floats make the
    indices floats). Raises ValueError for scalars and for a `fill_value` of another length,
    TypeError for keys.

    >>> jnp.nonzero(jnp.array([3, 0, 5]))
    (Array([0, 2], dtype=int32),)
    """
    x = array_operand("nonzero", a)
    if isinstance(x.aval.dtype, dtypes.KeyType):
        raise TypeError(
            f"[nonzero] expected numbers or booleans, got keys of dtype {x.aval.dtype.name}."
        )
    if x.aval.ndim == 0:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() "
            "instead."
        )
    have = x.aval.shape
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(have)
    if len(fills) != len(have) or np.ndim(fill_value) and fills is not fill_value:
        raise ValueError(
            f"fill_value must be a scalar or a tuple of length {len(have)}, got {fill_value}."
        )
    if size is None:
        places = [as_index_array(i) for i in np.nonzero(concrete("nonzero", x))]
        # As with a size, the dtype is that of both.
        return tuple([
            index if fill is None else from_literal(promote_dtypes("nonzero", index, fill)[0])
            for index, fill in zip(places, fills, strict=True)
        ])  # fmt: skip
    size = static_size("nonzero", size)
    flat, found = first_true(shape_ops.reshape(as_bool(x), shape=(x.aval.size,)), size)
    out = []
    stride = x.aval.size
    dtype = flat.aval.dtype
    for axis, (n, fill) in enumerate(zip(have, fills, strict=True)):
        stride = stride // n if n else 0
        index = ops.div(flat, literal(stride, dtype, True)) if stride > 1 else flat
        if axis:
            index = ops.rem(index, literal(max(n, 1), dtype, True))
        index = convert(index, dtype)
        fill, index = promote_dtypes("nonzero", 0 if fill is None else fill, index)
        out.append(ops.select_n(found, to_shape(fill, (size,)), index))
    return tuple(out)


def first_true(mask: Any, size: int) -> tuple[Any, Any]:
    """(positions of the first `size` true elements, which of these are there)."""
    dtype = dtypes.python_scalar_dtype(int)
    n = mask.aval.size
    count = shape_ops.iota(shape=(size,), dtype=dtype, dimension=0)
    if n == 0:
        return count, ops.lt(count, literal(0, dtype, True))
    rank = cumsum(convert(mask, dtype), axis=0, reverse=False)
    # True element number k goes to place k; the others out of bounds, where they are dropped.
    place = ops.select_n(
        mask,
        to_shape(literal(size, dtype, True), (n,)),
        ops.sub(rank, literal(1, dtype, True)),
    )
    position = shape_ops.iota(shape=(n,), dtype=dtype, dimension=0)
    zeros = to_shape(literal(0, dtype, False), (size,))
    taken = IndexUpdateHelper(zeros)[place].set(position, mode="drop")
    total = shape_ops.slice(rank, start_indices=(n - 1,), limit_indices=(n,), strides=None)
    return taken, ops.lt(count, total)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the non-zero elements of the flattened array; `size` as for `nonzero`.

    >>> jnp.flatnonzero(jnp.array([[0, 1], [2, 0]]))
    Array([1, 2], dtype=int32)
    """
    x = array_operand("flatnonzero", a)
    flat = shape_ops.reshape(x, shape=(x.aval.size,))
    return nonzero(flat, size=size, fill_value=fill_value)[0]


@remembered_as(direct.argwhere)
def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the non-zero elements, one row each; `size` as for `nonzero`.

    >>> jnp.argwhere(jnp.array([[0, 1], [2, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    x = array_operand("argwhere", a)
    found = nonzero(with_rank(x, 1), size=size, fill_value=fill_value)
    if x.aval.ndim == 0:
        count = found[0].aval.shape[0]
        return shape_ops.reshape(
            shape_ops.slice(found[0], start_indices=(0,), limit_indices=(0,), strides=None),
            shape=(count, 0),
        )
    columns = [shape_ops.reshape(i, shape=(*i.aval.shape, 1)) for i in found]
    return columns[0] if len(columns) == 1 else shape_ops.concatenate(*columns, dimension=1)


@in_words
def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Array:
    """The array without the zeros at the front ('f' in `trim`) and the back ('b').

    Along all axes by default. Values must be concrete. Raises ValueError for other letters than f
    and b.

    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    x = array_operand("trim_zeros", filt)
    if not isinstance(trim, str) or not set(trim.lower()) <= {"f", "b"}:
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    places = np.argwhere(concrete("trim_zeros", x))
    rank = x.aval.ndim
    axes = range(rank) if axis is None else canonical_axes("trim_zeros", axes_given(axis), rank)
    start, stop = [0] * x.aval.ndim, list(x.aval.shape)
    for a in axes:
        found = places[:, a] if len(places) else np.zeros(0, int)
        if not len(found):
            stop[a] = 0
            continue
        if "f" in trim.lower():
            start[a] = int(found.min())
        if "b" in trim.lower():
            stop[a] = int(found.max()) + 1
    return shape_ops.slice(
        x, start_indices=tuple(start), limit_indices=tuple(stop), strides=None
    )
