"""Objects and functions that build indices: mgrid, r_, ix_, unravel_index, ravel_multi_index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes, errors
from primal.base.config import numpy_dtype_promotion
from primal.base.limits import finfo, iinfo
from primal.ir.trace import Array, concrete_or_error, literal
from primal.numpy import direct, quotients, ufuncs
from primal.numpy.creation import asarray, filled
from primal.numpy.index_forms import known_mask, known_values
from primal.numpy.joining import concatenate, stack
from primal.numpy.nonzeros import as_index_array
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    convert,
    promote_dtypes,
    with_rank,
)
from primal.numpy.ranges import arange, linspace, meshgrid
from primal.numpy.remembered import remembered_as
from primal.numpy.shapes import broadcast_arrays, swapaxes
from primal.numpy.taking import modulo
from primal.ops.choose import clamp
from primal.ops.shape import reshape, transpose
from primal.ops.types import axes_given, check_sequence, static_ints
from primal.runtime.refusals import in_words

s_ = np.s_
index_exp = np.index_exp


# Grids.


def _steps(name: str, key: slice) -> Array:
    """What a slice stands for: arange, or linspace with an imaginary step that counts."""
    start, stop, step = (_entry(name, part, getattr(key, part)) for part in
                         ("start", "stop", "step"))
    start = 0 if start is None else start
    if stop is None:
        raise ValueError(f"[{name}] expected slices with a stop, got {key}.")
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, 1 if step is None else step)


def _entry(name: str, part: str, value: Any) -> Any:
    try:
        return concrete_or_error(value, "item") if isinstance(value, Array) else value
    except errors.ConcretizationTypeError as error:
        raise errors.ConcretizationTypeError(f"slice {part} of jnp.{name}: {error}") from None


class _Grid:
    """What mgrid and ogrid are."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name = name
        self._sparse = sparse

    def __repr__(self) -> str:
        return f"<primal.numpy.{self._name}>"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _steps(self._name, key)
        with numpy_dtype_promotion("standard"):  # rows are not the caller's numbers
            rows = promote_dtypes(self._name, *[_steps(self._name, k) for k in key])
        out = meshgrid(*rows, indexing="ij", sparse=self._sparse)
        if self._sparse:
            return out
        return stack(out, axis=0) if out else filled((0,), 0, dtypes.python_scalar_dtype(int))


mgrid = _Grid("mgrid", sparse=False)
"""Coordinates of a grid: `mgrid[0:2, 0:3]` has shape (2, 2, 3). A step of `5j` means 5 points.

>>> jnp.mgrid[0:2, 0:2][1]
Array([[0, 1],
       [0, 1]], dtype=int32)
"""

ogrid = _Grid("ogrid", sparse=True)
"""Coordinates of a grid as arrays that broadcast: one of shape (2, 1), one of shape (1, 3), …

>>> jnp.ogrid[0:2, 0:2][0]
Array([[0],
       [1]], dtype=int32)
"""


# Concatenation by indexing.


class _Join:
    """What r_ and c_ are; `axis`, `rank` and `place` are NumPy's axis, ndmin and trans1d."""

    def __init__(self, name: str, axis: int, rank: int, place: int) -> None:
        self._name = name
        self._directive = (axis, rank, place, "")

    def __repr__(self) -> str:
        return f"<primal.numpy.{self._name}>"

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, rank, place, matrix = self._directive
        if items and isinstance(items[0], str):
            axis, rank, place, matrix = self._read(items.pop(0))
        parts = [self._part(item, rank, place) for item in items]
        if not parts:
            raise ValueError(f"[{self._name}] expected at least one array, got none.")
        whole = concatenate(parts, axis=axis)
        if matrix:
            flat = whole.ndim < 2
            whole = with_rank(whole, 2)
            whole = whole if matrix == "r" or not flat else transpose(whole, permutation=(1, 0))
        return whole

    def _read(self, text: str) -> tuple[int, int, int, str]:
        axis, rank, place, _ = self._directive
        if text in ("r", "c"):
            return axis, rank, place, text
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(
                f"[{self._name}] expected a directive 'r', 'c' or up to three integers "
                f"'axis,ndmin,trans1d', got {text!r}: unknown special directive."
            )
        given = (*numbers, *(axis, rank, place)[len(numbers) :])
        return given[0], given[1], given[2], ""

    def _part(self, item: Any, rank: int, place: int) -> Any:
        if isinstance(item, str):
            raise ValueError("special directives must be the first entry.")
        if isinstance(item, slice):
            x = with_rank(_steps(self._name, item), rank)
            return swapaxes(x, -1, place) if place != -1 and rank > 1 else x
        x = array_operand(self._name, asarray(item))
        own = x.ndim
        x = with_rank(x, max(rank, 1))
        if place == -1 or not 0 < own < rank:
            return x
        missing = rank - own
        first = place if place >= 0 else place + missing + 1
        order = list(range(rank))
        moved = (*order[:first], *order[missing:], *order[first:missing])
        return x if moved == tuple(order) else transpose(x, permutation=moved)


r_ = _Join("r_", 0, 1, -1)
"""Arrays, slices and scalars joined along the first axis: `r_[1:3, 7]`.

A leading string 'axis,ndmin,trans1d' changes the axis, the least rank, and where the axes of
lower-ranked arrays go.

>>> jnp.r_[0:3, 7]
Array([0, 1, 2, 7], dtype=int32)
"""

c_ = _Join("c_", -1, 2, 0)
"""Arrays, slices and scalars joined as columns.

>>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])]
Array([[1, 3],
       [2, 4]], dtype=int32)
"""


# Conversions between forms of indices.


@in_words
def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Index arrays for the grid of one-dimensional ones: x[ix_(i, j)][a, b] = x[i[a], j[b]].

    Masks stand for the positions where they are true. Raises ValueError for other dimensions.

    >>> x = jnp.arange(9).reshape(3, 3)
    >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
    Array([[1, 2],
           [7, 8]], dtype=int32)
    """
    out = []
    for at, arg in enumerate(args):
        i = array_operand("ix_", arg, at)
        if i.ndim != 1:
            raise ValueError(
                f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {i.shape}"
            )
        if i.dtype == np.bool_:
            i = as_index_array(np.nonzero(known_mask(i))[0])
        elif i.size == 0:
            i = as_index_array(np.zeros(0, np.int32))
        out.append(reshape(i, shape=tuple([i.size if k == at else 1 for k in range(len(args))])))
    return tuple(out)


@remembered_as(direct.unravel_index)
def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Per dimension, the coordinates of positions in the flattened array of a shape.

    Negative positions count from the end; those out of bounds mean the nearest element. Raises
    TypeError for complex indices, ValueError for negative sizes.

    >>> jnp.unravel_index(jnp.array([3, 11]), (3, 4))
    (Array([0, 2], dtype=int32), Array([3, 3], dtype=int32))
    """
    i = array_operand("unravel_index", indices)
    if i.dtype.kind == "c" or isinstance(i.dtype, dtypes.KeyType):
        raise TypeError(f"[unravel_index] expected real indices, got {i.dtype.name}.")
    sizes = static_ints("unravel_index shape", axes_given(shape))
    if not all(n >= 0 for n in sizes):
        raise ValueError(f"[unravel_index] expected non-negative sizes, got {tuple(sizes)}.")
    if i.dtype == np.bool_:
        i = convert(i, dtypes.python_scalar_dtype(int), True)
    asked = i.dtype
    whole = dtypes.issubdtype(asked, np.integer)
    if whole and dtypes.itemsize_bits(asked) < 32:
        i = convert(i, dtypes.python_scalar_dtype(int))
    # Remainders of negative positions are what they are from the end; there may be more elements
    # than the dtype can count.
    total, info = math.prod(sizes), (iinfo if whole else finfo)(i.dtype)
    lowest = literal(max(-total, info.min), i.dtype, True)
    highest = literal(min(max(total - 1, 0), info.max), i.dtype, True)
    i = clamp(lowest, i, highest)
    out = []
    for n in reversed(sizes):
        place = quotients.remainder(i, max(n, 1))
        out.append(place if i.dtype == asked else convert(place, asked))
        i = quotients.floor_divide(i, max(n, 1))
    return tuple(reversed(out))


@remembered_as(direct.ravel_multi_index)
def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The position in the flattened array of the element at the coordinates.

    mode 'clip' or 'wrap' brings coordinates into bounds, 'ignore' trusts them, and 'raise', which
    needs concrete ones, raises ValueError. order 'F' counts columns first. TypeError for what is no
    sequence.

    >>> jnp.ravel_multi_index((jnp.array([0, 2]), jnp.array([1, 3])), (3, 4))
    Array([ 1, 11], dtype=int32)
    """
    sizes = static_ints("ravel_multi_index dims", dims)
    check_sequence("ravel_multi_index", "index arrays, one per dimension", multi_index)
    if len(multi_index) != len(sizes):
        raise ValueError(
            f"[ravel_multi_index] expected one index array per dimension, got "
            f"{len(multi_index)} for dims {tuple(sizes)}."
        )
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(
            f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'."
        )
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    found = [array_operand("ravel_multi_index", i, at) for at, i in enumerate(multi_index)]
    for i in found:
        if not dtypes.issubdtype(i.dtype, np.integer):
            raise ValueError(f"[ravel_multi_index] expected integer indices, got {i.dtype.name}: "
                             f"dtype={i.dtype!r} is not an integer type.")
    target = dtypes.python_scalar_dtype(int) if dtype is None else (
        dtypes.check_user_dtype_supported(dtype, "ravel_multi_index")
    )
    if not dtypes.issubdtype(target, np.integer):
        raise ValueError(f"dtype={target!r} is not an integer type.")
    if math.prod(sizes) - 1 > int(iinfo(target).max):
        raise ValueError(
            f"jnp.ravel_multi_index: dtype={target!r} not large enough to hold flattened index for "
            f"dims={tuple(sizes)}. Use the dtype argument to pass a suitable dtype."
        )
    if mode == "raise":
        for i, n in zip(found, sizes, strict=True):
            values = known_values(i)
            if values is None:
                raise errors.ConcretizationTypeError(
                    "[ravel_multi_index] expected concrete coordinates with mode='raise', got "
                    f"traced ones of shape {i.aval.short()}. Use mode='wrap', 'clip' or 'ignore'."
                )
            if values.size and not (0 <= values.min() and values.max() < n):
                raise ValueError(
                    f"invalid entry in coordinates array: expected values in [0, {n}). Use "
                    "mode='wrap' or mode='clip' to bring them into bounds."
                )
    total: Any = None
    stride = 1
    pairs = list(zip(broadcast_arrays(*found), sizes, strict=True)) if found else []
    for i, n in reversed(pairs) if order == "C" else pairs:
        if mode == "wrap":
            i = modulo(i, n)
        elif mode == "clip":
            i = clamp(literal(0, i.dtype, True), i, literal(max(n - 1, 0), i.dtype, True))
        part = ufuncs.multiply(convert(i, target), stride)
        total = part if total is None else ufuncs.add(total, part)
        stride *= n
    return filled((), 0, target) if total is None else total
