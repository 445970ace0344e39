"""Counting: how often integers occur, histograms in any number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.choosing import where
from primal.numpy.creation import array, asarray, filled, placed
from primal.numpy.cumulative import diff
from primal.numpy.joining import concatenate
from primal.numpy.nonzeros import concrete
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    convert,
    operand,
    promote_dtypes_inexact,
)
from primal.numpy.ranges import linspace
from primal.numpy.reductions import max as largest
from primal.numpy.reductions import min as smallest
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import ravel
from primal.numpy.sorting import searchsorted
from primal.ops import elementwise as ops
from primal.ops.types import static_int
from primal.runtime.refusals import in_words


@remembered_as(direct.bincount)
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each non-negative integer occurs (or the sum of its weights).

    The length of the result depends on values: give `length` under transformations; integers beyond
    it are dropped, negative ones count as 0. Raises TypeError unless x has integers, ValueError
    unless it is a vector of the weights' shape.

    >>> jnp.bincount(jnp.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)
    """
    v = array_operand("bincount", x)
    v = convert(v, np.dtype(np.int32)) if v.aval.dtype.kind == "b" else v
    if not dtypes.issubdtype(v.aval.dtype, np.integer):
        raise TypeError(f"x argument to bincount must have an integer type; got {v.dtype.name}")
    if v.aval.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    if length is None:
        host = concrete("bincount", v, "length")
        most = int(host.max()) + 1 if host.size else 0
        n = max(static_int("bincount minlength", minlength), most)
    else:
        n = static_int("bincount length", length)
    if weights is None:
        w: Any = array(1, dtypes.python_scalar_dtype(int))
    else:
        w = array_operand("bincount", weights, 1)
        if w.aval.shape != v.aval.shape:
            raise ValueError("shape of weights must match shape of x.")
    place = ops.max(v, literal(0, v.aval.dtype, True))
    return placed(filled((n,), 0, w.dtype).at[place].add(w, mode="drop"), None, out_sharding)


@remembered
def histogram_bin_edges(
    a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None
) -> Array:
    """The edges of equal bins from the smallest to the largest element (or over a range).

    Raises NotImplementedError for rules named by a string, ValueError for bins or ranges of other
    shapes.

    >>> jnp.histogram_bin_edges(jnp.array([0., 2.]), 2)
    Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    x = ravel(array_operand("histogram_bin_edges", a))
    dtype = dtypes.to_inexact_dtype(x.dtype)
    given = array_operand("histogram_bin_edges", bins, 1)
    if given.ndim == 1:
        return given.astype(dtype)
    if given.ndim > 1:
        raise ValueError("`bins` must be 1d, when an array")
    count = static_int("histogram bins", bins)
    if range is None:
        ends = array([smallest(x), largest(x)]) if x.size else array([0.0, 1.0])
    else:
        ends = asarray(range)
    if ends.shape != (2,):
        raise ValueError(f"`range` must be either None or a sequence of scalars, got {range}")
    ends = ends.astype(dtype)
    flat = ops.eq(ends[0], ends[1])
    low = where(flat, ends[0] - 0.5, ends[0])
    high = where(flat, ends[1] + 0.5, ends[1])
    return linspace(low, high, count + 1, dtype=dtype)


@remembered_as(direct.histogram)
def histogram(
    a: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """(how many elements, or how much weight, each bin holds; the edges of the bins).

    The last bin includes its upper edge. With `density` the integral over the bins is 1. Raises
    ValueError for weights of another shape.

    >>> jnp.histogram(jnp.array([0., 1., 2.]), 2)[0]
    Array([1., 2.], dtype=float32)
    """
    x = array_operand("histogram", a)
    if weights is None:
        w = filled(x.aval.shape, 1, dtypes.to_inexact_dtype(x.dtype))
    else:
        x, w = promote_dtypes_inexact("histogram", x, weights)
        if x.aval.shape != w.aval.shape:
            raise ValueError("weights should have the same shape as a.")
    edges = histogram_bin_edges(x, bins, range)
    counts = _binned(ravel(x), edges, ravel(w))
    if density:
        counts = counts / diff(edges).astype(counts.dtype) / total(counts)
    return counts, edges


def _binned(x: Any, edges: Any, w: Any) -> Array:
    n = edges.shape[0] - 1
    x = convert(x, edges.dtype)
    place = searchsorted(edges, x, "right")
    place = where(x == edges[-1], n, place)
    # Bin 0 collects what lies below, bin n + 1 what lies above.
    return filled((n + 2,), 0, w.dtype).at[place].add(w)[1:-1]


@in_words
def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """The histogram of points, one row each, over boxes; and the edges per dimension.

    Raises ValueError unless bins and ranges are one per dimension.
    Raises ValueError for what is no matrix.

    >>> jnp.histogramdd(jnp.array([[0., 0.], [1., 1.]]), 2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    points = array_operand("histogramdd", sample)
    if points.aval.ndim != 2:
        raise ValueError(
            f"[histogramdd] expected points as the rows of a matrix, got shape {points.shape}."
        )
    count, dims = points.shape
    if range is not None and (
        not hasattr(range, "__len__")
        or len(range) != dims
        or any(r is not None and not (hasattr(r, "__len__") and len(r) == 2) for r in range)
    ):
        raise ValueError(
            f"For sample.shape={points.shape}, range must be a sequence of {dims} "
            f"pairs or Nones; got {range}"
        )
    many = isinstance(bins, list | tuple) or np.ndim(getattr(bins, "aval", bins)) > 0
    per_dim = list(bins) if many else [bins] * dims
    if len(per_dim) != dims:
        raise ValueError("should be a bin for each dimension.")
    edges, places, sizes = [], [], []
    for i, b in enumerate(per_dim):
        column = points[:, i]
        e = histogram_bin_edges(column, b, None if range is None else range[i], weights)
        column = convert(column, e.dtype)
        place = searchsorted(e, column, "right")
        places.append(where(column == e[-1], place - 1, place))
        edges.append(e)
        sizes.append(e.shape[0] + 1)
    flat: Any = 0
    for place, size in zip(places, sizes, strict=True):
        flat = flat * size + place
    if weights is None:
        inexact = dtypes.to_inexact_dtype(points.dtype)
        w = filled((count,), 1, inexact if density else dtypes.python_scalar_dtype(int))
    else:
        _, w = promote_dtypes_inexact("histogramdd", points, weights)
    if w.shape != (count,):
        raise ValueError(
            f"[histogramdd] expected one weight for each of {count} samples, got weights of shape "
            f"{w.shape}: should have one weight for each sample."
        )
    counts = filled((int(np.prod(sizes)),), 0, w.dtype).at[flat].add(w).reshape(sizes)
    counts = counts[(slice(1, -1),) * dims]
    if density:
        counts = counts / total(counts)
        for i, e in enumerate(edges):
            widths = diff(e).astype(counts.dtype)
            counts = counts / widths.reshape([-1 if j == i else 1 for j in _range(dims)])
    return counts, edges


_range = range


@in_words
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """`histogramdd` of points given as two vectors: (counts, edges along x, edges along y).

    Raises ValueError unless x and y are vectors of one length.
    Raises TypeError where the shapes of x and y differ.

    >>> jnp.histogram2d(jnp.array([0., 1.]), jnp.array([0., 1.]), 2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    a, b = operand("histogram2d", x), operand("histogram2d", y, 1)
    if a.aval.shape != b.aval.shape or a.aval.ndim != 1:
        kind = TypeError if a.aval.shape != b.aval.shape else ValueError
        raise kind(
            f"[histogram2d] expected vectors of one length, got shapes {a.aval.shape} and "
            f"{b.aval.shape}: x and y must be one-dimensional arrays of equal size."
        )
    points = concatenate([a[:, None], b[:, None]], 1)
    many = isinstance(bins, list | tuple) or np.ndim(getattr(bins, "aval", bins)) > 0
    if many and len(bins) not in (1, 2):
        edges = asarray(bins)
        bins = [edges, edges]
    counts, (ex, ey) = histogramdd(points, bins, range, weights, density)
    return counts, ex, ey
