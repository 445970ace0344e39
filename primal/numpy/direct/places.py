"""Elements by their places: taking, joining, splitting, coordinates, windows."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.coordinates import unravelled
from primal.base.dtypes import is_narrow_float, python_scalar_dtype, to_inexact_dtype
from primal.base.native import chosen, empty, extension, is_finite, widened
from primal.numpy.direct.operands import (
    MOVED,
    Direct,
    as_dtype,
    common_dtype,
    count,
    dtype_of,
    is_array,
    is_axis,
    rounded_once,
)
from primal.ops.window.cumulative import cumsum
from primal.runtime.array import ArrayImpl


def take(
    a: Any, indices: Any, axis: Any = None, out: None = None, mode: Any = None, **options: Any
) -> Callable[..., Any] | None:
    """Elements at places within bounds."""
    if not is_array(a, MOVED) or not is_array(indices, "i") or options or out is not None:
        return None
    if mode not in (None, "fill", "clip") or not (axis is None or type(axis) is int):
        return None
    n = a.aval.size if axis is None else a.aval.shape[axis]
    outside = _outside(indices.aval.dtype, n)
    # "raise" makes a copy of what it may write to.
    return lambda x, i: None if outside(i) else x.take(i, axis, mode="clip")


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, **options: Any
) -> Callable[..., Any] | None:
    """Elements along an axis, where every index is within bounds."""
    if type(arr) is not ArrayImpl or type(indices) is not ArrayImpl or options:
        return None
    if dtype_of((arr,), MOVED) is None or indices.aval.dtype != np.int32 or type(axis) is not int:
        return None
    if mode not in (None, "fill", "clip") or arr.aval.ndim != indices.aval.ndim:
        return None
    shape, n = list(arr.aval.shape), arr.aval.shape[axis]
    axis %= len(shape)
    if 0 in shape or [*shape[:axis], *shape[axis + 1 :]] != [
        k for d, k in enumerate(indices.aval.shape) if d != axis
    ]:
        return None
    shape[axis] = 1
    grid = np.ogrid[tuple(map(slice, shape))]
    before, after = tuple(grid[:axis]), tuple(grid[axis + 1 :])
    outside = _outside(indices.aval.dtype, n)
    return lambda x, i: None if outside(i) else x[(*before, i, *after)]


def packbits(a: Any, axis: int | None = None, bitorder: Any = "big") -> Callable[..., Any] | None:
    """Eight bits each. Of wider integers NumPy takes fifteen times as long as of booleans."""
    if not is_array(a, "biu") or not a.aval.ndim:
        return None
    return lambda x: np.packbits(x if x.dtype.itemsize == 1 else x != 0, axis, bitorder)


def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: Any = "big"
) -> Callable[..., Any] | None:
    """The bits of bytes."""
    if not is_array(a, "u") or not a.aval.ndim:
        return None
    return lambda x: np.unpackbits(x, axis, count, bitorder)


def fill_diagonal(
    a: Any, val: Any, wrap: bool = False, *, inplace: bool = True
) -> Callable[..., Any] | None:
    """A number on the diagonal of a copy."""
    if inplace or wrap or not is_array(a, MOVED) or not a.aval.size:
        return None
    if dtype_of((a, val), MOVED) is None and not (a.aval.dtype == np.bool_ and type(val) is bool):
        return None

    def run(x: Any, value: Any = val) -> Any:
        out = x.copy()
        np.fill_diagonal(out, value)
        return out

    return run


def resize(a: Any, new_shape: Any) -> Callable[..., Any] | None:
    """The elements in order, again and again."""
    if not is_array(a, MOVED) or not a.aval.size:
        return None
    shape = new_shape if type(new_shape) is tuple else (new_shape,)
    if not all(type(n) is int for n in shape):
        return None
    total = math.prod(shape)
    times = -(-total // a.aval.size)

    def run(x: Any) -> Any:
        flat = x.ravel()
        whole = flat if times < 2 else np.concatenate((flat,) * times)
        # Of memory that is the operand's, a copy.
        return (whole if times > 1 else whole[:total].copy())[:total].reshape(shape)

    return run


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, **options: Any
) -> Callable[..., Any] | None:
    """Whole numbers, in one pass over them."""
    made = python_scalar_dtype(int) if dtype is None else dtype
    if not all(type(n) is int and abs(n) < 1 << 31 for n in (start, stop, step) if n is not None):
        return None
    if options or not isinstance(made, np.dtype) or made.kind != "i" or made.itemsize < 4:
        return None
    return lambda: np.arange(start, stop, step, dtype=made)


# Numbers that a function makes at a time, so that they stay in the cache.
PIECE = 16384


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    **options: Any,
) -> Callable[..., Any] | None:
    """Numbers at equal distances between two, in fewer passes over them."""
    if dtype is not None and not (type(dtype) is str or isinstance(dtype, np.dtype)):
        return None
    if retstep or (dtype is not None and np.dtype(dtype).kind != "f"):
        return None
    if type(start) not in (int, float) or type(stop) not in (int, float) or options:
        return None
    if type(num) is not int or not 3 <= num < 1 << 24 or type(endpoint) is not bool:
        return None
    dtype = python_scalar_dtype(float)
    one = dtype.type
    div = num - 1 if endpoint else num
    unit = 2.0 ** -math.ceil(math.log2(div))
    low, high = one(start) * one(unit), one(stop) * one(unit)
    whole, scale = one(div), one(div * unit)

    def fill(inner: Any, places: Any) -> None:
        np.subtract(whole, places, inner)
        inner *= low
        places *= high
        inner += places
        inner /= scale

    def run() -> Any:
        out = empty((num,), dtype)
        out[0] = start
        if endpoint:
            out[-1] = stop
        if extension is not None:
            extension.ramp(out[1:div], low, high, whole, scale)
            return out
        places = np.arange(1, min(PIECE, div - 1) + 1, dtype=dtype)
        if div <= PIECE:
            fill(out[1:div], places)
        else:
            room = np.empty_like(places)
            for first in range(0, div - 1, PIECE):
                n = min(PIECE, div - 1 - first)
                fill(out[first + 1 : first + n + 1], np.add(places[:n], one(first), room[:n]))
        return out

    return run


# Bytes from which on np.block is faster than joining rows and then columns, which copies twice: it
# takes 7 µs to look at its lists, and gains where the memory is fresh.
LARGE = 1 << 20


def block(arrays: Any) -> Callable[..., Any] | None:
    """Nested lists of arrays of one dtype, each copied once."""
    found: list[Any] = []

    def taken_apart(x: Any) -> Any:
        if type(x) is list:
            return [taken_apart(item) for item in x]
        found.append(x)
        return len(found) - 1

    if type(arrays) is not list:
        return None
    nested = taken_apart(arrays)
    if not all(is_array(x, MOVED) for x in found) or dtype_of(tuple(found), MOVED) is None:
        return None
    if sum([x.aval.size for x in found]) * found[0].aval.dtype.itemsize < LARGE:
        return None

    def put_together(x: Any, hosts: Any) -> Any:
        return [put_together(i, hosts) for i in x] if type(x) is list else hosts[x]

    return lambda *hosts: np.block(put_together(nested, hosts))


def unstack(x: Any, /, *, axis: int = 0) -> Callable[..., Any] | None:
    """The slices of an axis."""
    if not is_array(x, MOVED) or not x.aval.ndim:
        return None
    return lambda x: tuple(np.moveaxis(x, axis, 0).copy())


def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Callable[..., Any] | None:
    """The places of what is not 0, all of them."""
    if not is_array(a, MOVED) or not a.aval.ndim or size is not None or fill_value is not None:
        return None
    return lambda x: x.nonzero()


def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Callable[..., Any] | None:
    """The places of what is not 0 as rows."""
    if nonzero(a, size=size, fill_value=fill_value) is None:
        return None
    return lambda x: np.array(x.nonzero()).T


def where(
    condition: Any, x: Any = None, y: Any = None, /, **options: Any
) -> Callable[..., Any] | None:
    """With a condition alone, `nonzero`."""
    return nonzero(condition, **options) if x is None and y is None else None


def extract(
    condition: Any, arr: Any, *, size: Any = None, **options: Any
) -> Callable[..., Any] | None:
    """What a mask of the same size names."""
    if not is_array(condition, "b") or not is_array(arr, MOVED) or size is not None or options:
        return None
    if condition.aval.size != arr.aval.size:
        return None
    return lambda mask, x: x.ravel().compress(mask.ravel())


def compress(
    condition: Any, a: Any, axis: Any = None, *, size: Any = None, **options: Any
) -> Callable[..., Any] | None:
    """What a mask of the axis' length names."""
    if not is_array(condition, "b") or not is_array(a, MOVED) or size is not None or options:
        return None
    if condition.aval.ndim != 1 or not (axis is None or type(axis) is int):
        return None
    if condition.aval.size != (a.aval.size if axis is None else a.aval.shape[axis]):
        return None
    return lambda mask, x: x.compress(mask, axis)


_REPEATING = ("edge", "reflect", "symmetric", "wrap")


def pad(
    array: Any, pad_width: Any, mode: Any = "constant", **options: Any
) -> Callable[..., Any] | None:
    """Elements repeated: along one axis after the other the operations copy all of them."""
    if not is_array(array, MOVED) or mode not in _REPEATING or options:
        return None
    return lambda x: np.pad(x, pad_width, mode)


def roll(a: Any, shift: Any, axis: Any = None) -> Callable[..., Any] | None:
    """Along several axes: one after the other, all would be copied as often."""
    given = (shift, axis)
    if not is_array(a, MOVED) or not all(type(n) in (tuple, list) and len(n) > 1 for n in given):
        return None
    if not all(type(i) is int for n in given for i in n):
        return None
    return lambda x: np.roll(x, shift, axis)


def _shifted(run: Callable[..., Any]) -> Direct:
    def direct(x: Any, axes: Any = None) -> Callable[..., Any] | None:
        """Along all axes of an array with several."""
        if not is_array(x, MOVED) or x.aval.ndim < 2 or axes is not None:
            return None
        return lambda x: run(x)

    return direct


fftshift, ifftshift = _shifted(np.fft.fftshift), _shifted(np.fft.ifftshift)


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Callable[..., Any] | None:
    """How many elements are not 0."""
    if not is_array(a, MOVED) or keepdims or not is_axis(axis):
        return None
    return lambda x: count(x, axis)


def repeat(a: Any, repeats: Any, axis: Any = None, **options: Any) -> Callable[..., Any] | None:
    """Each element as often as one number says."""
    if not is_array(a, MOVED) or type(repeats) is not int or options:
        return None
    return (lambda x: x.repeat(repeats, axis)) if axis is None or type(axis) is int else None


def delete(arr: Any, obj: Any, axis: Any = None, **options: Any) -> Callable[..., Any] | None:
    """All but one element of a vector."""
    if not is_array(arr, MOVED) or type(obj) is not int or arr.aval.ndim != 1 or options:
        return None
    at = obj % arr.aval.size
    return lambda x: np.concatenate((x[:at], x[at + 1 :]))


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Callable[..., Any] | None:
    """A number before an element of a vector, or before a slice of an array."""
    if not is_array(arr, MOVED) or type(obj) is not int or not arr.aval.ndim:
        return None
    if not (type(axis) is int or (axis is None and arr.aval.ndim == 1)):
        return None
    dtype = dtype_of((arr, values), MOVED)
    if arr.aval.dtype == np.bool_ and type(values) in (bool, int):
        dtype = arr.aval.dtype  # other than 0 is true
    if dtype is None or type(values) is ArrayImpl:
        return None
    shape = list(arr.aval.shape)
    along = 0 if axis is None else axis % len(shape)
    n, shape[along] = shape[along], 1
    at = max(0, min(n, obj + n if obj < 0 else obj))
    one = np.broadcast_to(np.asarray(values, dtype), shape)
    before = (slice(None),) * along
    head, tail = (*before, slice(at)), (*before, slice(at, None))
    return lambda x: np.concatenate((x[head], one, x[tail]), along)


def reduceat(ufunc: np.ufunc) -> Direct:
    """Sums or products of numbers between places within bounds."""

    def direct(a: Any, indices: Any, *, axis: Any = 0) -> Callable[..., Any] | None:
        if not is_array(a, MOVED) or not is_array(indices, "i") or type(axis) is not int:
            return None
        if not a.aval.ndim or indices.aval.ndim != 1 or not indices.aval.size:
            return None
        dtype, outside = a.aval.dtype, _outside(indices.aval.dtype, a.aval.shape[axis])
        if is_narrow_float(dtype):  # in float32, as reductions are
            return lambda x, i: None if outside(i) else ufunc.reduceat(widened(x), i, axis)
        wide = np.intp if dtype == np.bool_ else dtype
        return lambda x, i: None if outside(i) else ufunc.reduceat(x, i, axis, wide)

    return direct


def choose(
    a: Any, choices: Any, out: None = None, mode: str = "raise"
) -> Callable[..., Any] | None:
    """Elements of one of a few arrays, where the places are within bounds."""
    if not is_array(a, "i") or type(choices) not in (tuple, list) or len(choices) > 31:
        return None
    if not all(is_array(x, MOVED) for x in choices) or dtype_of(tuple(choices), MOVED) is None:
        return None
    outside = _outside(a.aval.dtype, len(choices))
    # "raise" makes a copy of what it may write to.
    return lambda a, *choices: None if outside(a) else a.choose(choices, mode="clip")


def _outside(dtype: Any, n: int) -> Callable[[Any], Any]:
    """A function of integers of a dtype: whether some is not in [0, n)."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    # The upper half of the unsigned numbers are the negative ones.
    limit = np.array(min(n, 1 << (8 * dtype.itemsize - 1)), unsigned)
    return lambda i: count(np.greater_equal(i.view(unsigned), limit))


def unravel_index(indices: Any, shape: Any) -> Callable[..., Any] | None:
    """Coordinates of places within bounds."""
    if not is_array(indices, "i"):
        return None

    def run(i: Any) -> Any:
        try:
            return unravelled(i, shape)
        except ValueError:
            return None

    return run


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str = "raise", order: Any = "C", *, dtype: Any = None
) -> Callable[..., Any] | None:
    """The place of coordinates within bounds."""
    if type(multi_index) not in (tuple, list) or not all(is_array(i, "i") for i in multi_index):
        return None
    if dtype is not None or type(dims) is not tuple:
        return None

    def run(*coordinates: Any) -> Any:
        try:
            return np.ravel_multi_index(coordinates, dims, order=order)
        except ValueError:
            return None

    return run


def _of_finite(function: Any, a: Any, v: Any, mode: Any) -> Any:
    # What is beyond the ends counts as 0, and 0 times inf is nan.
    return function(a, v, mode) if is_finite(a) and is_finite(v) else None


def _sliding(function: Callable[..., Any], default: str) -> Callable[..., Any]:
    def direct(a: Any, v: Any, mode: Any = default, **options: Any) -> Callable[..., Any] | None:
        if any(x is not None for x in options.values()):
            return None
        dtype = common_dtype((a, v), MOVED)
        if dtype is None:
            return None
        if dtype.kind == "c":
            return lambda a, v: _of_finite(function, as_dtype(a, dtype), as_dtype(v, dtype), mode)
        if a.aval.dtype != v.aval.dtype:
            return None
        if a.aval.dtype.kind in "biu":
            # Results are floats, so sums must not leave the range of whole numbers.
            wide = to_inexact_dtype(a.aval.dtype)
            return lambda a, v: function(a.astype(wide), v.astype(wide), mode)
        if is_narrow_float(a.aval.dtype):
            # Sums in float32, as those of the operations, and as NumPy's are.
            return lambda a, v: _of_finite(function, widened(a), widened(v), mode)
        return lambda a, v: _of_finite(function, a, v, mode)

    return direct


@rounded_once(1)
def poly(seq_of_zeros: Any) -> Callable[..., Any] | None:
    """Of a few finite numbers, whose products of sums are `convolve`'s."""
    x = seq_of_zeros
    if not is_array(x, "fcew") or x.aval.ndim != 1 or not x.aval.size:
        return None
    narrow = is_narrow_float(x.aval.dtype)

    def run(x: Any) -> Any:
        x = widened(x) if narrow else x
        return np.poly(x) if is_finite(x) else None

    return run


convolve = _sliding(np.convolve, "full")
correlate = _sliding(np.correlate, "valid")


def nancumsum(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None
) -> Callable[..., Any] | None:
    """Running sums in which nan counts as 0."""
    if not is_array(a, "fc") or dtype is not None:
        return None
    total: Any = cumsum.impl
    rank, zero = a.aval.ndim, np.zeros((), a.aval.dtype)

    def run(x: Any) -> Any:
        x = chosen(x == x, x, zero)
        if axis is None or not rank:
            return total(x.ravel(), axis=0, reverse=False)
        return total(x, axis=axis % rank, reverse=False)

    return run


# Without what np.interp asks about complex numbers and periods: half its time.
_interp = getattr(sys.modules.get("numpy._core.multiarray"), "interp", np.interp)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Callable[..., Any] | None:
    """Between points that rise, with finite values."""
    dtype = common_dtype((x, xp, fp))
    if dtype is None or dtype.kind != "f" or xp.aval.size < 2:
        return None
    if left is not None or right is not None or period is not None:
        return None
    least = np.asarray(np.spacing(np.finfo(dtype).eps))

    def run(x: Any, xp: Any, fp: Any) -> Any:
        xp = as_dtype(xp, dtype)
        gaps = np.subtract(xp[1:], xp[:-1])
        wide = gaps > least
        if count(wide) < wide.size and (not wide[-1] or count(gaps[~wide])):
            return None  # where points are close, but not where they repeat
        if not is_finite(fp):
            return None
        return _interp(x, xp, fp)

    return run
