"""Order and search: sorting, sets, counting, middle values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float, python_scalar_dtype, to_inexact_dtype
from primal.base.native import BFLOAT16, FLOAT32, extension, is_finite, is_plain, widened
from primal.numpy.direct.operands import (
    ANY,
    as_dtype,
    common_dtype,
    count,
    dtype_of,
    exact,
    is_array,
    is_axis,
)
from primal.ops.index.sort import (
    has_zeros_of_both_signs,
    sorted_along,
    stable_order,
    stable_orders,
)
from primal.runtime.array import ArrayImpl

LONG, BLOCK = 2048, 32768
# So many numbers of 32 bits have a sum that float64 holds.
MOST_WHOLE = 1 << 20
HALF, DIGITS = np.array(1 << 31, np.uint64), np.array(32, np.uint64)
_least, _greatest = np.minimum.reduce, np.maximum.reduce


def _places(row: Any, x: Any, side: str) -> Any:
    """row.searchsorted(x, side), of many numbers a tenth of its time: 100,000 among as many float32
    1.0 ms, NumPy 12.7."""
    if extension is not None and side in ("left", "right"):
        found = extension.places(row, x, side == "right")
        if found is not None:
            return found
    return row.searchsorted(x, side)


@exact(2)
def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Callable[..., Any] | None:
    """Places in a vector that ascends; in one that does not, both are free to say anything."""
    dtype = common_dtype((a, v)) if type(v) is ArrayImpl else dtype_of((a, v), ANY)
    if dtype is None or type(a) is not ArrayImpl or sorter is not None or a.aval.ndim != 1:
        return None
    if type(v) is ArrayImpl:

        def run(a: Any, v: Any) -> Any:
            # Beside a nan NumPy has another order of complex numbers.
            if dtype.kind == "c" and not (is_finite(a) and is_finite(v)):
                return None
            return _places(as_dtype(a, dtype), as_dtype(v, dtype), side)

        return run
    v = np.asarray(v, dtype)
    return lambda a: a.searchsorted(v, side)


@exact(2)
def digitize(
    x: Any, bins: Any, right: bool = False, *, method: Any = None
) -> Callable[..., Any] | None:
    """Places among edges that rise or fall."""
    dtype = common_dtype((x, bins))
    if dtype is None or dtype.kind == "c" or bins.aval.ndim != 1 or not bins.aval.size:
        return None
    n = bins.aval.size
    side: Any = "left" if right else "right"

    def run(x: Any, bins: Any) -> Any:
        x, bins = as_dtype(x, dtype), as_dtype(bins, dtype)
        if bins[-1] >= bins[0]:
            return _places(bins, x, side)
        return n - bins[::-1].searchsorted(x, side)

    return run


@exact(2)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, **_: Any
) -> Callable[..., Any] | None:
    """Each of a few elements beside each of a few others; more as NumPy looks for them."""
    if type(element) is not ArrayImpl or type(test_elements) is not ArrayImpl:
        return None
    if dtype_of((element, test_elements), ANY) is None:
        return None
    if not test_elements.aval.size:
        return None
    if element.aval.size * test_elements.aval.size > 4096:
        if element.aval.dtype.kind == "c":
            return lambda x, tests: (
                np.isin(x, tests, invert=invert) if is_plain(x) and is_plain(tests) else None
            )
        return lambda x, tests: np.isin(x, tests, invert=invert)

    def run(x: Any, tests: Any) -> Any:
        found = np.equal(x[..., None], tests.reshape(-1)).any(-1)
        return ~found if invert else found

    return run


@exact(1)
def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Callable[..., Any] | None:
    """Stable order, without the elements in it."""
    if not is_array(a, ANY) or not a.aval.ndim:
        return None
    if kind is not None or order is not None or descending or dtype is not None:
        return None
    if axis is None:
        return lambda x: stable_orders((x.ravel(),), 0)
    at = axis % a.aval.ndim
    return lambda x: stable_orders((x,), at)


@exact(1)
def sort(a: Any, axis: int = -1, **options: Any) -> Callable[..., Any] | None:
    """Elements in order; equal elements that can be told apart are zeros of two signs."""
    if not is_array(a, ANY):
        return None
    if options.get("kind") is not None or options.get("descending") or axis is None:
        return None
    if options.get("order") is not None or not a.aval.ndim:
        return None
    at = axis % a.aval.ndim
    return lambda x: sorted_along(x, at)


@exact(1)
def argpartition(a: Any, kth: int, axis: int = -1) -> Callable[..., Any] | None:
    """The stable order, and those after the kth as they come."""
    if not is_array(a, "biufe") or not a.aval.size or type(kth) is not int or type(axis) is not int:
        return None
    at = axis % a.aval.ndim
    after = (*(slice(None),) * at, slice(kth % a.aval.shape[at] + 1, None))

    def run(x: Any) -> Any:
        order = stable_order(x, at)
        order[after].sort(at)
        return order

    return run


@exact(1)
def lexsort(keys: Any, axis: int = -1) -> Callable[..., Any] | None:
    """The stable order of several arrays; one alone is `argsort`."""
    if type(keys) not in (tuple, list) or len(keys) < 2 or type(axis) is not int:
        return None
    if not all(is_array(k, "biuf") and k.aval.ndim for k in keys):
        return None
    at = axis % keys[0].aval.ndim
    return lambda *keys: stable_orders(keys[::-1], at)


@exact(1)
def partition(a: Any, kth: int, axis: int = -1) -> Callable[..., Any] | None:
    """All in order, but those after the kth the other way round."""
    if not is_array(a, "biufe") or not a.aval.size or type(kth) is not int or type(axis) is not int:
        return None
    at = axis % a.aval.ndim
    k = kth % a.aval.shape[at]
    before = (slice(None),) * at
    after, reversed = (*before, slice(k + 1, None)), (*before, slice(None, k, -1))

    def run(x: Any) -> Any:
        if x.dtype.kind == "f" and has_zeros_of_both_signs(x):
            return None  # which may be in both parts
        out = sorted_along(x, at)
        out[after] = out[reversed]
        return out

    return run


def _firsts(ordered: Any) -> Any:
    """Which of the ordered elements differ from the one before; None if there is a nan."""
    if ordered[-1] != ordered[-1]:
        return None
    first = np.empty(ordered.size, bool)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


@exact(1)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Callable[..., Any] | None:
    """The different elements, and what else is asked for; of equal ones the first."""
    if not is_array(ar, ANY) or not ar.aval.size or size is not None or fill_value is not None:
        return None
    shape = ar.aval.shape
    if type(axis) is int and not (return_index or return_inverse or return_counts):
        # NumPy compares slices as they are read, and would tell zeros apart by their signs.
        return lambda x: np.unique(x, axis=axis) if is_plain(x) else None
    if axis is not None:
        return None
    if not (return_index or return_inverse or return_counts):
        if ar.aval.dtype.kind not in "fc":
            return np.unique

        def values(x: Any) -> Any:
            ordered = sorted_along(x.ravel(), 0)
            first = _firsts(ordered)
            return None if first is None else ordered[first]

        return values

    def counted(x: Any) -> Any:
        ordered = sorted_along(x.ravel(), 0)
        first = _firsts(ordered)
        if first is None:
            return None
        starts = first.nonzero()[0]
        return ordered[starts], np.append(starts[1:], x.size) - starts

    if not (return_index or return_inverse):
        return counted

    def run(x: Any) -> Any:
        x = x.ravel()
        order = stable_order(x, 0)
        ordered = x[order]
        first = _firsts(ordered)
        if first is None:
            return None
        out = [ordered[first]]
        if return_index:
            out.append(order[first])
        if return_inverse:
            inverse = np.empty(x.size, np.intp)
            inverse[order] = first.cumsum() - 1
            out.append(inverse.reshape(shape))
        if return_counts:
            starts = first.nonzero()[0]
            out.append(np.append(starts[1:], x.size) - starts)
        return out

    return run


@exact(2)
def union1d(ar1: Any, ar2: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The elements of either of two vectors of one dtype."""
    if dtype_of((ar1, ar2)) is None or not is_array(ar1) or not is_array(ar2):
        return None
    run = unique(ar1 if ar1.aval.size else ar2, size=size)
    return None if run is None else lambda x, y: run(np.concatenate((x, y), axis=None))


@exact(2)
def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: Any = None, fill_value: Any = None
) -> Callable[..., Any] | None:
    """The different elements of one vector that another has not."""
    if assume_unique:
        return None
    return _differences(ar1, ar2, size=size)


def _of_numbers(function: Any) -> Any:
    def direct(
        ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False, *,
        size: Any = None, fill_value: Any = None,
    ) -> Callable[..., Any] | None:  # fmt: skip
        """Of numbers; neither nan, which is in no set, nor -0, as the first of two zeros counts."""
        if dtype_of((ar1, ar2), ANY) is None or not is_array(ar1, ANY):
            return None
        if type(ar2) is not ArrayImpl:
            return None
        if return_indices or size is not None:
            return None
        if ar1.aval.dtype.kind not in "fc":
            return lambda x, y: function(x, y)

        def run(x: Any, y: Any) -> Any:
            return function(x, y) if is_plain(x) and is_plain(y) else None

        return run

    return direct


intersect1d = exact(2)(_of_numbers(np.intersect1d))
setxor1d = exact(2)(_of_numbers(np.setxor1d))
_differences = _of_numbers(np.setdiff1d)


def _has_few_digits(x: Any) -> bool:
    """Whether numbers of 64 bits are in the range of int32 or, unsigned, below 2**32."""
    signed = x.dtype.kind == "i"
    return not count(np.right_shift(x.view(np.uint64) + HALF if signed else x, DIGITS))


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Callable[..., Any] | None:
    """How often each number occurs, or the sum of its weights; negative ones are left."""
    if not is_array(x, "i") or not (weights is None or is_array(weights, "fiuew")):
        return None
    if length is not None or out_sharding is not None or type(minlength) is not int:
        return None
    whole = weights is not None and weights.aval.dtype.kind in "iu"
    narrow = weights is not None and is_narrow_float(weights.aval.dtype)
    if whole and x.aval.size > MOST_WHOLE:
        return None
    wide = whole and weights.aval.dtype.itemsize > 4

    def run(x: Any, w: Any = None) -> Any:
        if wide and not _has_few_digits(w):
            return None
        try:
            out = np.bincount(x, widened(w) if narrow else w, minlength)
        except ValueError:
            return None
        return out.astype(np.int64) if whole else out  # which wraps, as integers do

    return run


def _counted(x: Any, edges: Any) -> Any:
    """How many elements lie between edges at equal distances, which contain them all; None where
    these are so close that rounding moves places by more than one.

    Places by division, and those that rounding moved are moved back; in blocks that stay in the
    cache. A search per element takes ten times as long.
    """
    bins = edges.size - 1
    share = bins / (edges[-1] - edges[0])
    # Division is monotone: what is between two edges is between their places.
    if not np.abs((edges - edges[0]) * share - np.arange(bins + 1)).max() < 0.5:
        return None
    counts = np.zeros(bins, np.intp)
    for start in range(0, x.size, BLOCK):
        part = x[start : start + BLOCK]
        place = ((part - edges[0]) * share).astype(np.int32)
        np.minimum(place, bins - 1, out=place)
        place -= part < edges[place]
        place += (part >= edges[place + 1]) & (place < bins - 1)
        counts += np.bincount(place, minlength=bins)
    return counts


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: Any = None
) -> Callable[..., Any] | None:
    """How many elements lie in each of equal bins from the smallest element to the largest."""
    if not is_array(a, "bfiuew") or not a.aval.size or type(bins) is not int or bins < 1:
        return None
    if range is not None or weights is not None or density:
        return None
    dtype = to_inexact_dtype(a.aval.dtype)
    # The arithmetic of `linspace`, to the bit.
    unit = 2.0 ** -math.ceil(math.log2(bins))
    half = is_narrow_float(dtype)
    work = FLOAT32 if half else dtype
    scale, whole = work.type(unit), work.type(bins * unit)
    above = np.arange(1, bins, dtype=work)
    below = work.type(bins) - above

    def run(x: Any) -> Any:
        x = widened(x) if half else as_dtype(x, dtype)
        low, high = work.type(_least(x, None)), work.type(_greatest(x, None))
        if not -np.inf < low < high < np.inf:
            return None
        edges = np.empty(bins + 1, dtype)
        edges[0], edges[-1] = low, high
        edges[1:-1] = (low * scale * below + high * scale * above) / whole
        ends = widened(edges) if half else edges
        counts = _counted(x.ravel(), ends) if x.size > LONG and bins < LONG else None
        if counts is not None:
            return counts, edges
        counts = np.bincount(_places(ends, x.ravel(), "right"), minlength=bins + 2)
        # The last bin has its upper edge, beyond which nothing is.
        counts[bins] += counts[bins + 1]
        return counts[1:-1], edges

    return run


def _around(x: Any, at: int, low: int, high: int) -> tuple[Any, Any, Any]:
    """The rows at two places beside each other, or at one, of x in order, and the last one.

    Where there is a nan, the last one is.
    """
    before = (slice(None),) * at
    if x.shape[at] > LONG:
        # Of one place NumPy has vector code, of two a sort of all is faster.
        parts = x.copy()
        parts.partition(low, at)
        below, rest = parts[(*before, low)], parts[(*before, slice(high, None))]
        above = below if low == high else _least(rest, at)
        # Of zeros, which are equal, one of the other sign may have come there.
        zero = x.dtype.kind == "f" and not (below.all() and above.all())
        if not (zero and has_zeros_of_both_signs(x)):
            return below, above, np.maximum(below, _greatest(rest, at))
    ordered = sorted_along(x, at)
    below, above, last = [ordered[(*before, i)] for i in (low, high, -1)]
    return below, above, last


def _mean_around(x: Any, at: int) -> tuple[Any, Any]:
    """The middle row of x in order, or the mean of two in a float dtype; and the last one."""
    n = x.shape[at]
    below, above, last = _around(x, at, (n - 1) // 2, n // 2)
    if n % 2:
        return below, last
    if x.dtype.kind in "iu":
        below, above = [v.astype(to_inexact_dtype(x.dtype)) for v in (below, above)]
    return _mean(below, above), last


def _mean(low: Any, high: Any) -> Any:
    total = low + high
    return np.where(np.isfinite(total), total * 0.5, low * 0.5 + high * 0.5)


def median(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Callable[..., Any] | None:
    """The middle element along axes, or of all."""
    if not is_array(a, "biufew") or not is_axis(axis) or not a.aval.size:
        return None
    if keepdims or out is not None:
        return None
    rank, shape = a.aval.ndim, a.aval.shape
    dtype = to_inexact_dtype(a.aval.dtype)
    if type(axis) is tuple:
        axes = [i % rank for i in axis]
        kept = [i for i in range(rank) if i not in axes]
        order, at, moved = (*kept, *axes), len(kept), (*[shape[i] for i in kept], -1)
    else:
        order, at, moved = None, 0 if axis is None else axis % rank, shape
    # Whole numbers are put in order as they are: rounded to floats they keep it.
    whole = a.aval.dtype.kind in "iu"

    def run(x: Any) -> Any:
        x = widened(x) if x.dtype == BFLOAT16 else x
        x = x.transpose(order).reshape(moved) if order else x.ravel() if axis is None else x
        if whole:
            return _mean_around(x, at)[0].astype(dtype, copy=False)
        middle, last = _mean_around(as_dtype(x, FLOAT32 if dtype == BFLOAT16 else dtype), at)
        return np.where(last != last, last, middle) if count(last != last) else middle

    return run


def _shared(dtype: Any, n: int, share: Any) -> tuple[int, int, Callable[[Any, Any], Any]]:
    """What lies at a share of n ordered rows: the places of two, and their mean (below, above)."""
    top = dtype.type(n - 1)
    position = top * share
    low, high = (min(max(f(position), dtype.type(0)), top) for f in (np.floor, np.ceil))
    weight = np.array(position - np.floor(position))
    rest = dtype.type(1) - weight

    def mean(below: Any, above: Any) -> Any:
        # Both products, so that inf stays inf where the weight of the other one is 0.
        equal = (below == above) & (below != 0)
        return np.where(equal, below, below * rest + above * weight)

    # A float may round the number of rows up.
    return min(int(low), n - 1), min(int(high), n - 1), mean


def _quantile(share_of: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def direct(
        a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
        method: str = "linear", keepdims: bool = False, **options: Any,
    ) -> Callable[..., Any] | None:  # fmt: skip
        if not is_array(a, "f") or not a.aval.size or type(q) not in (int, float):
            return None
        if a.aval.dtype.itemsize < 4:
            return None
        if not (axis is None or type(axis) is int) or method != "linear" or keepdims or out:
            return None
        if overwrite_input or any(x is not None for x in options.values()):
            return None
        share = share_of(q, a.aval.dtype)
        if not np.isfinite(share):
            return None
        at = 0 if axis is None else axis % a.aval.ndim
        n = a.aval.size if axis is None else a.aval.shape[at]
        low, high, mean = _shared(a.aval.dtype, n, share)

        def run(x: Any) -> Any:
            below, above, last = _around(x.ravel() if axis is None else x, at, low, high)
            out = mean(below, above)
            return np.where(last != last, last, out) if count(last != last) else out

        return run

    return direct


def _of_hundred(q: Any, dtype: Any) -> Any:
    kind = python_scalar_dtype(float).type
    return dtype.type(kind(q) / kind(100))


quantile = _quantile(lambda q, dtype: dtype.type(q))
percentile = _quantile(_of_hundred)


def nanmedian(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Callable[..., Any] | None:
    """The middle of the elements that are numbers."""
    if not is_array(a, "biuf") or axis is not None or keepdims or out is not None:
        return None
    dtype = to_inexact_dtype(a.aval.dtype)

    def run(x: Any) -> Any:
        x = as_dtype(x, dtype).ravel()
        if count(x == x) < x.size:
            x = x[x == x]
        return _mean_around(x, 0)[0] if x.size else None

    return run
