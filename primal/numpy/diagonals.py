"""Diagonals, triangles by index, and helpers that build indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.creation import array, filled
from primal.numpy.direct.operands import small_exponent
from primal.numpy.indexing import getitem
from primal.numpy.joining import stack
from primal.numpy.nonzeros import nonzero
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    check_out,
    convert,
    operand,
    to_shape,
)
from primal.numpy.ranges import arange, diagonal_number, rows_columns
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import moveaxis, ravel
from primal.numpy.ufuncs import power
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.spread import broadcast_in_dim
from primal.ops.types import canonical_axes, static_flag, static_int
from primal.runtime.refusals import in_words


def _matrices(name: str, a: Any, axis1: int, axis2: int) -> Any:
    x = array_operand(name, a)
    if x.aval.ndim < 2:
        raise ValueError(f"{name} requires an array of at least two dimensions.")
    first, second = canonical_axes(name, (axis1, axis2), x.aval.ndim)
    return moveaxis(x, (first, second), (-2, -1))


@remembered_as(direct.diagonal)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements a[i, i + offset] of two axes, as a new last axis.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    x = _matrices("diagonal", a, axis1, axis2)
    n, m = x.aval.shape[-2:]
    k = static_int("diagonal offset", offset)
    length = max(0, min(n + min(k, 0), m - max(k, 0)))
    # Every (m + 1)-th element of the rows in a row: no gather, and its gradient is a pad.
    first = max(k, 0) - min(k, 0) * m
    rows = shape_ops.reshape(x, shape=(*x.aval.shape[:-2], n * m))
    return getitem(rows, (..., slice(first, first + length * (m + 1), m + 1)))


@remembered_as(direct.diag)
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with a vector on diagonal k, or the diagonal k of a matrix.

    Raises ValueError for other numbers of dimensions.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = array_operand("diag", v)
    k = static_int("diag k", k)
    if x.aval.ndim == 2:
        return diagonal(x, k)
    if x.aval.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    zero = literal(0, x.aval.dtype, x.aval.weak_type)
    rows = shape_ops.pad(x, zero, padding_config=((max(0, -k), max(0, k), 0),)) if k else x
    n = rows.aval.shape[0]
    i, j = rows_columns((n, n))
    hit = ops.eq(ops.add(i, literal(k, i.dtype, False)), j)
    column = broadcast_in_dim(rows, shape=(n, n), broadcast_dimensions=(0,))
    return ops.select_n(hit, to_shape(zero, (n, n)), column)


@remembered_as(direct.diagflat)
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the flattened elements on diagonal k.

    >>> jnp.diagflat(jnp.array([[1], [2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    out = diag(ravel(v), k)
    return convert(out, out.aval.dtype)  # strong


@remembered_as(direct.trace)
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal: Σ_i a[i, i + offset].

    Of arrays with more dimensions, one sum for each matrix in axis1 and axis2.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    check_out("trace", out)
    x = _matrices("trace", a, axis1, axis2)
    if isinstance(offset, int | np.integer):
        # Of 333333 x 3 the square that the diagonal crosses: all of it took 780 us (JAX 550). Of
        # the diagonal alone the sum reads less still, but its gradients are pads and reshapes: of
        # trace(exp(x)), 1000 x 1000, 750 us, not 190.
        n, m = x.aval.shape[-2:]
        k = max(-n, min(int(offset), m))
        size = min(n + min(k, 0), m - max(k, 0))
        first = [max(-k, 0), max(k, 0)]
        if size < max(n, m):
            x, offset = getitem(x, (..., *[slice(i, i + size) for i in first])), 0
    i, j = rows_columns(x.aval.shape)
    hit = ops.eq(ops.add(i, diagonal_number("trace", offset)), j)
    kept = ops.select_n(hit, filled(x.aval.shape, 0, x.aval.dtype), x)
    return total(kept, axis=(-2, -1), dtype=dtype)


@remembered_as(direct.fill_diagonal)
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """The array with `val`, repeated as often as needed, on its main diagonal.

    Arrays are immutable, so `inplace` must be False. Raises NotImplementedError for inplace or
    wrap, ValueError below two dimensions and where sizes differ.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5., inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError(
            "JAX arrays are immutable, must use inplace=False: jnp.fill_diagonal returns a copy."
        )
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    x = array_operand("fill_diagonal", a)
    if x.aval.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.aval.ndim > 2 and len(set(x.aval.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(x.aval.shape)
    values = operand("fill_diagonal", val, 1)
    if not values.aval.size:
        raise ValueError(f"[fill_diagonal] expected a value or more, got shape {values.shape}.")
    if values.aval.ndim:
        flat = shape_ops.reshape(values, shape=(values.aval.size,))
        values = getitem(flat, np.arange(n) % values.aval.size)
    i = np.arange(n)
    return x.at[(i,) * x.aval.ndim].set(values)


# Indices.


@in_words
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of `ndim` dimensions of size n.

    Raises ValueError for negative n or ndim.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = static_int("diag_indices n", n), static_int("diag_indices ndim", ndim)
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (arange(n),) * ndim


@in_words
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array whose sizes are all equal.

    Raises ValueError below two dimensions and where sizes differ.

    >>> jnp.diag_indices_from(jnp.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = operand("diag_indices_from", arr).aval.shape
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], len(shape))


def _triangle_indices(lower: bool, n: int, k: int, m: int | None) -> tuple[Array, Array]:
    name = "tril_indices" if lower else "triu_indices"
    n, k = static_int(f"{name} n", n), static_int(f"{name} k", k)
    columns_of = n if m is None else static_int(f"{name} m", m)
    mask = np.tri(n, columns_of, k if lower else k - 1, dtype=bool)
    rows, columns = np.nonzero(mask if lower else ~mask)
    return array(rows), array(columns)


@remembered
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices on and below diagonal k of an n × m matrix.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _triangle_indices(True, n, k, m)


@remembered
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices on and above diagonal k of an n × m matrix.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _triangle_indices(False, n, k, m)


def _two_sizes(name: str, arr: Any) -> tuple[int, int]:
    shape = operand(name, arr).aval.shape
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape[0], shape[1]


@in_words
def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of a matrix.

    >>> jnp.tril_indices_from(jnp.zeros((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _two_sizes("tril_indices_from", arr)
    return tril_indices(n, k, m)


@in_words
def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of a matrix.

    >>> jnp.triu_indices_from(jnp.zeros((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, m = _two_sizes("triu_indices_from", arr)
    return triu_indices(n, k, m)


@in_words
def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """The indices where `mask_func(ones((n, n)), k)` is non-zero.

    Two vectors of integers. TypeError for what is no function.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    if not callable(mask_func):
        raise TypeError(f"[mask_indices] expected a function as mask_func, got {mask_func!r}.")
    n = static_int("mask_indices n", n)
    return nonzero(mask_func(filled((n, n), 1, dtypes.python_scalar_dtype(int)), k), size=size)


@remembered_as(direct.vander)
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of a vector, falling from N - 1 to 0 (rising if `increasing`).

    Raises ValueError unless x is a vector, and for a negative N.

    >>> jnp.vander(jnp.array([1, 2]), 3)
    Array([[1, 1, 1],
           [4, 2, 1]], dtype=int32)
    """
    x = array_operand("vander", x)
    if x.aval.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    n = x.aval.size if N is None else static_int("vander N", N)
    if n < 0:
        raise ValueError("N must be nonnegative")
    rising = static_flag("vander increasing", increasing)
    exponents = range(n) if rising else range(n - 1, -1, -1)
    if not n:
        return filled((x.aval.size, 0), 0, x.aval.dtype)
    if x.aval.dtype.kind in "iu":
        powers = np.array([small_exponent(e) for e in exponents], x.aval.dtype)
        return power(getitem(x, (slice(None), None)), powers[None])
    out = stack([power(x, e) for e in exponents], axis=1)
    return convert(out, out.aval.dtype)
