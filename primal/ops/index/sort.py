"""Order: sort, argmax, argmin, top_k.

Numbers ascend, -0 equals 0, and every nan comes after everything else, whatever its sign; complex
numbers are ordered by real, then imaginary part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.monoids import identity
from primal.base.native import extension, is_plain, narrowed, widened
from primal.ir.avals import Aval
from primal.ir.op import INDEX, REDUCTION, Never, Op, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.index.gather import take_along
from primal.ops.shape import iota, moveaxis
from primal.ops.spread import broadcast_axis
from primal.ops.types import NOT_LINEAR, canonical_axes, check_dtype
from primal.ops.words import zero_derivative

REAL = (np.integer, np.floating, np.bool_)
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)

# Below this length `top_k` gains nothing by packing.
_SHORT = 128
# Up to so many elements, in rows up to so long, nothing is faster than a stable sort of NumPy's.
_FEW, _ROW = 1024, 512
_BYTES = 128
# NumPy's networks sort rows up to so long in half the time of the extension, but those of float16;
# of 8 bytes half as long ones.
_NETWORK = 512
# So long rows of complex numbers NumPy sorts as fast. Beside nan its order is another, and zeros of
# two signs are to keep theirs.
_PAIRS = 1024


# Orders on NumPy arrays.


def _comparable(x: Any) -> Any:
    """x in a dtype that NumPy sorts: ml_dtypes' floats and small integers widened, exactly."""
    if dtypes.is_narrow_float(x.dtype) and x.dtype.kind == "V":
        return widened(x)
    return x.astype(np.int32) if x.dtype.kind == "V" else x


def _as_bits(x: Any, zeros_equal: bool) -> Any:
    """uint32 ordered as x is, for dtypes of at most 32 bits."""
    if x.dtype.kind == "f":
        # Whole passes only where something asks for them: 3 ms for a million, not 19.
        x = x.astype(np.float32, copy=False)
        if zeros_equal:
            x = x + np.float32(0)
        unordered = np.isnan(x)
        if unordered.any():
            x = np.where(unordered, np.float32(np.nan), x)
        bits = np.ascontiguousarray(x).view(np.uint32)
        # All bits of the negative ones are flipped, of the others the sign alone.
        flip = (bits.view(np.int32) >> 31).view(np.uint32)
        flip |= np.uint32(0x80000000)
        flip ^= bits
        return flip.reshape(x.shape)
    if x.dtype.kind == "i":
        return x.astype(np.int32).view(np.uint32) ^ np.uint32(0x80000000)
    return x.astype(np.uint32)


def _packed(bits: Any, axis: int) -> Any:
    """Bits and positions along the last axis as one integer: distinct, so any sort is stable.

    NumPy sorts integers with vector instructions: a million take 8 ms, a stable argsort of floats
    110 ms.
    """
    moved = _last(bits, axis).astype(np.uint64, order="C")
    moved <<= np.uint64(32)
    moved |= np.arange(moved.shape[-1], dtype=np.uint64)
    return moved


def _positions(packed: Any, axis: int) -> Any:
    found = (packed & np.uint64(0xFFFFFFFF)).view(np.int64)
    return _last(found, axis)


def _last(x: Any, axis: int) -> Any:
    # In a pair with the last one, so that this is its own inverse; moveaxis takes 3 µs.
    return x if axis == x.ndim - 1 else x.swapaxes(axis, -1)


def _fits_bits(dtype: Any) -> bool:
    return bool(dtype.kind in "iufb" and dtype.itemsize <= 4)


def stable_orders(keys: Sequence[Any], axis: int) -> Any:
    """The stable order of several keys, the first of which matters most.

    One key after the other, the last one first: 100,000 pairs of float32 take 2 ms, np.lexsort 18.
    """
    if len(keys) == 1 and keys[0].dtype.kind == "c":
        (x,) = keys
        if x.shape[axis] <= _PAIRS and is_plain(x):
            return x.argsort(axis, "stable")
    parts: list[Any] = []
    for k in keys:
        whole = k.dtype.kind != "c" or (extension is not None and k.dtype == np.complex64)
        parts.extend((k,) if whole else (k.real, k.imag))
    order = stable_order(parts.pop(), axis)
    for k in reversed(parts):
        ordered = k[order] if k.ndim == 1 else np.take_along_axis(k, order, axis)
        again = stable_order(ordered, axis)
        order = order[again] if k.ndim == 1 else np.take_along_axis(order, again, axis)
    return order


def stable_order(x: Any, axis: int) -> Any:
    """The places of real numbers in ascending order, equal ones in the order they have; of complex
    ones of 64 bits, where the extension is.

    NumPy's stable sort has no vector code but for integers of 8 and 16 bits, which it counts.
    """
    found = None if extension is None else extension.order(_last(x, axis))
    if found is not None:
        return _last(found, axis)
    n = x.shape[axis]
    narrow = x.dtype.itemsize < 4 and x.dtype.kind != "f"
    if (x.size <= _FEW and n <= _ROW) or narrow or n < 2:
        return np.argsort(x, axis=axis, kind="stable")
    if _fits_bits(x.dtype):
        return _positions(np.sort(_packed(_as_bits(x, True), axis), axis=-1), axis)
    return _repaired(x, axis)


def _repaired(x: Any, axis: int) -> Any:
    """The order by vector code, and equal elements put back into theirs.

    100,000 float64 take 1.8 ms, a stable sort of NumPy's 37.
    """
    moved = _last(x, axis)
    order = moved.argsort(-1)
    ordered = np.take_along_axis(moved, order, -1)
    tied = np.zeros(order.shape, bool)
    np.equal(ordered[..., 1:], ordered[..., :-1], out=tied[..., 1:])
    if x.dtype.kind == "f" and np.count_nonzero(ordered[..., -1] != ordered[..., -1]):
        nan = ordered != ordered
        tied[..., 1:] |= nan[..., 1:] & nan[..., :-1]
    if np.count_nonzero(tied):
        # In runs of equal elements: which run, and which element, as one number.
        follows, flat = tied.ravel(), order.ravel()
        among = follows.copy()
        among[:-1] |= follows[1:]
        places = among.nonzero()[0]
        run = np.cumsum(~follows[places])
        run <<= 32
        run |= flat[places]
        run.sort()
        flat[places] = run & 0xFFFFFFFF
        order = flat.reshape(order.shape)
    return _last(order, axis)


# sort: all operands reordered alike, by the first `num_keys` of them.


def _sort_type(*xs: Aval, dimension: int, is_stable: bool, num_keys: int) -> tuple[Aval, ...]:
    if not xs:
        raise TypeError("[sort] expected at least one operand, got none.")
    if any(x.shape != xs[0].shape for x in xs):
        raise TypeError(
            f"[sort] expected operands of equal shapes, got {', '.join(str(x.shape) for x in xs)}: "
            "Arguments to sort must have equal shapes."
        )
    canonical_axes("sort", (dimension,), xs[0].ndim)
    if not 1 <= num_keys <= len(xs):
        raise ValueError(
            f"[sort] expected num_keys between 1 and the number of operands, {len(xs)}, got "
            f"{num_keys}: num_keys must be between 1 and len(operand)={len(xs)}."
        )
    for x in xs[:num_keys]:
        check_dtype("sort", x, (*REAL, np.complexfloating))
    return xs


def _sort_impl(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    arrays = [np.asarray(x) for x in xs]
    if len(arrays) == 1:
        (x,) = arrays
        wide = _comparable(x)
        out = sorted_along(wide, dimension)
        short = dtypes.is_narrow_float(x.dtype) and wide is not x
        return [narrowed(out, x.dtype) if short else out.astype(x.dtype, copy=False)]
    order = stable_orders([_comparable(x) for x in arrays[:num_keys]], dimension)
    if order.ndim == 1:
        return [x[order] for x in arrays]
    return [np.take_along_axis(x, order, dimension) for x in arrays]


def in_order(x: Any, axis: int) -> Any:
    """A copy of real numbers, sorted along an axis; zeros of two signs are equal."""
    longest = _NETWORK if x.dtype.itemsize < 8 else _NETWORK // 2
    if extension is not None and (x.shape[axis] > longest or x.dtype == np.float16):
        found = extension.in_order(_last(x, axis))
        if found is not None:
            return _last(found, axis)
    out = x.copy("K")
    # Many bytes are counted. By vectors NumPy 2.4 has few different float16 out of order.
    counted = x.dtype.itemsize == 1 and x.shape[axis] > _BYTES
    out.sort(axis, "stable" if counted or x.dtype == np.float16 else None)
    return out


def sorted_along(x: Any, axis: int) -> Any:
    """A copy of numbers, sorted along an axis; zeros of two signs keep their order.

    No other equal elements can be told apart, so that vector code may sort.
    """
    if x.dtype.kind == "c":
        if x.shape[axis] <= _PAIRS and is_plain(x):
            out = x.copy()
            out.sort(axis)
            return out
        order = stable_orders((x,), axis)
        return x[order] if x.ndim == 1 else np.take_along_axis(x, order, axis)
    out = in_order(x, axis)
    if x.dtype.kind != "f":
        return out
    if extension is not None:
        extension.zeros_in_order(out, x, axis)
    elif has_zeros_of_both_signs(x):
        return np.take_along_axis(x, stable_order(x, axis), axis)
    return out


def has_zeros_of_both_signs(x: Any) -> bool:
    """Whether floats hold 0 and -0."""
    zeros = x.size - np.count_nonzero(x)
    return bool(zeros) and 0 < np.count_nonzero(np.signbit(x) & (x == 0)) < zeros


def _counted(shape: tuple[int, ...], dimension: int) -> Any:
    dtype = INT32 if shape[dimension] < 2**31 else INT64
    return iota(shape=shape, dtype=dtype, dimension=dimension)


def _sort_jvp(primals: Any, tangents: Any, *, dimension: int, **params: Any) -> Any:
    _sort_type(*[aval_of(x) for x in primals], dimension=dimension, **params)  # before places
    shape = aval_of(primals[0]).shape
    if all(t is ZERO for t in tangents) or not aval_of(primals[0]).size or shape[dimension] == 1:
        return sort(*primals, dimension=dimension, **params), list(tangents)
    places = _counted(shape, dimension)
    *outs, order = sort(*primals, places, dimension=dimension, **params)
    return outs, [
        t if t is ZERO else take_along(t, order, dimension, unique=True) for t in tangents
    ]


def _sort_batch(axis: Any, args: Any, dims: Any, *, dimension: int, **params: Any) -> Any:
    to = next(d for d in dims if d is not None)
    xs = [
        broadcast_axis(x, axis.size, to) if d is None else moveaxis(x, d, to)
        for x, d in zip(args, dims, strict=True)
    ]
    outs = sort(*xs, dimension=dimension + (dimension >= to), **params)
    return outs, [to] * len(outs)


def _whole_bytes(dtype: Any) -> Any:
    """The dtype to order elements in: XLA compiles no sort of integers narrower than a byte."""
    if dtype == np.bool_:
        return np.dtype(np.uint8)
    if dtypes.issubdtype(dtype, np.integer) and dtypes.itemsize_bits(dtype) < 8:
        return np.dtype(np.int8 if dtypes.issubdtype(dtype, np.signedinteger) else np.uint8)
    return dtype


def _sort_hlo(b: Any, *xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    wide = [b.convert(x, _whole_bytes(x.dtype)) for x in xs]
    outs = b.sort(wide, dimension, num_keys=num_keys, stable=is_stable)
    return [b.convert(o, x.dtype) for o, x in zip(outs, xs, strict=True)]


sort = Op(
    name="sort",
    kind=INDEX,
    type=_sort_type,
    impl=_sort_impl,
    jvp=_sort_jvp,
    transpose=Never("[sort] expected a linear operation, got sort, which is not."),
    batch=_sort_batch,
    shard=by_kind,
    hlo=_sort_hlo,
    kernel=lambda k, *xs, dimension, is_stable, num_keys: k.sort(xs, dimension, num_keys),
    multiple=True,
)


# argmax and argmin: the place of the first extremum along an axis; the first nan is one.


def _arg_type(name: str) -> Callable[..., Aval]:
    def type_rule(x: Aval, *, axes: tuple[int, ...], index_dtype: Any) -> Aval:
        check_dtype(name, x, REAL)
        (axis,) = canonical_axes(name, axes, x.ndim)
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError(
                f"[{name}] expected an integer index_dtype, got {np.dtype(index_dtype).name}: "
                "index_dtype must be an integer type."
            )
        if not x.shape[axis]:
            raise ValueError(
                f"[{name}] expected something along the axis, got shape {x.shape} and axis {axis}: "
                f"{name} requires a non-empty reduced dimension."
            )
        return Aval((*x.shape[:axis], *x.shape[axis + 1 :]), index_dtype)

    return type_rule


def _arg_impl(find: Callable[..., Any]) -> Callable[..., Any]:
    def impl(x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        return np.asarray(find(_comparable(np.asarray(x)), axis=axes[0])).astype(index_dtype)

    return impl


def _arg_batch(op_of: Callable[[], Op]) -> Callable[..., Any]:
    def batch(axis: Any, args: Any, dims: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        (x,), (d,) = args, dims
        shifted = axes[0] + (axes[0] >= d)
        return op_of()(x, axes=(shifted,), index_dtype=index_dtype), d - (shifted < d)

    return batch


def _arg_hlo(direction: str) -> Callable[..., Any]:
    def body(b: Any, best: Any, at: Any, x: Any, i: Any) -> Any:
        better, tied = b.compare(best, x, direction), b.compare(best, x, "EQ")
        if dtypes.issubdtype(x.dtype, np.floating):
            best_nan, x_nan = b.compare(best, best, "NE"), b.compare(x, x, "NE")
            better = b.or_(better, b.and_(best_nan, b.not_(x_nan)))
            tied = b.or_(tied, b.and_(best_nan, x_nan))
        stay = b.or_(better, b.and_(tied, b.compare(at, i, "LE")))
        return [b.select(stay, best, x), b.select(stay, at, i)]

    def hlo(b: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        (out,) = b.outs
        if not out.size:
            return b.full(out.shape, 0, index_dtype)
        # Counted in a dtype that can: the asked one may be too narrow, and wraps at the end.
        count = INT64 if dtypes.itemsize_bits(index_dtype) == 64 else INT32
        places = b.iota(x.shape, count, axes[0])
        # The element that every other one beats or ties.
        worst = identity("maximum" if direction == "GT" else "minimum", x.dtype)
        inits = [b.constant(worst, x.dtype), b.constant(0, count)]
        _, at = b.reduce_with([x, places], inits, axes, body)
        return b.convert(at, index_dtype)

    return hlo


def _arg(name: str, find: Callable[..., Any], direction: str) -> Op:
    how = direction.lower()
    op = Op(
        name=name,
        kind=REDUCTION,
        type=_arg_type(name),
        impl=_arg_impl(find),
        jvp=zero_derivative,
        transpose=NOT_LINEAR,
        batch=_arg_batch(lambda: op),
        shard=by_kind,
        hlo=_arg_hlo(direction),
        kernel=lambda k, x, *, axes, index_dtype: k.place_of(how, x, axes[0], index_dtype),
    )
    return op


argmax = _arg("argmax", np.argmax, "GT")
argmin = _arg("argmin", np.argmin, "LT")


# top_k: the k greatest along an axis, descending, and their places; of equals the first come
# first. A nan counts as greatest and 0 as greater than -0.


def _top_k_type(x: Aval, *, k: int, axis: int) -> tuple[Aval, Aval]:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError(
            "[top_k] expected a dtype with an order, got a complex one: top_k is not compatible "
            "with complex inputs."
        )
    check_dtype("top_k", x, REAL)
    canonical_axes("top_k", (axis,), x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(
            f"[top_k] expected 0 <= k <= {x.shape[axis]}, the size along axis {axis} of shape "
            f"{x.shape}, got k={k}: k argument to top_k must be nonnegative and no larger than "
            "that size."
        )
    if x.shape[axis] > np.iinfo(np.int32).max:
        raise ValueError(
            f"[top_k] expected at most {np.iinfo(np.int32).max} elements along an axis, as indices "
            f"are int32, got shape {x.shape}."
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return Aval(shape, x.dtype, x.weak_type), Aval(shape, INT32, x.weak_type)


def _descending(x: Any) -> Any:
    """Unsigned integers that order the greatest first, for dtypes of 64 bits."""
    if x.dtype.kind == "f":
        bits = np.where(x == x, x, np.nan).view(np.uint64)
        sign = np.uint64(1 << 63)
        return ~np.where(bits & sign, ~bits, bits | sign)
    if x.dtype.kind == "i":
        return ~(x.view(np.uint64) ^ np.uint64(1 << 63))
    return ~x


# Rows from so many elements on are searched for candidates first.
LONG = 16384


def _top_k_impl(x: Any, *, k: int, axis: int) -> Any:
    x = np.asarray(x)
    wide = _comparable(x)
    n = x.shape[axis]
    if n >= LONG and 0 < k <= n // 64:
        rows = np.moveaxis(wide, axis, -1)
        order = np.empty((*rows.shape[:-1], k), np.int64)
        for at in np.ndindex(rows.shape[:-1]):
            order[at] = _first_of_long(rows[at], k)
        order = np.moveaxis(order, -1, axis)
    else:
        order = _top_k_order(wide, k, axis)
    best = x[order] if x.ndim == 1 else np.take_along_axis(x, order, axis)
    return best, order.astype(np.int32)


def _first_of_long(row: Any, k: int) -> Any:
    """The places of the k greatest, among what is not below the k-th greatest of a sample.

    A tenth of the time that it takes to partition a million floats.
    """
    sample = row[:: max(row.size // max(4096, 16 * k), 1)]
    at = sample.size - k
    bound = np.partition(sample, at)[at]  # NaN come last, as they should
    places = np.flatnonzero(~(row < bound))
    return places[_top_k_order(row[places], k, 0)]


def _top_k_order(wide: Any, k: int, axis: int) -> Any:
    if wide.shape[axis] <= _SHORT and (key := _reversed(wide)) is not None:
        return key.argsort(axis, kind="stable")[(slice(None),) * axis + (slice(0, k),)]
    if _fits_bits(wide.dtype):
        packed = _packed(~_as_bits(wide, False), axis)
        if 0 < k < packed.shape[-1] // 8:
            packed = np.partition(packed, k - 1, axis=-1)[..., :k]
        return _positions(np.sort(packed, axis=-1)[..., :k], axis)
    moved = np.ascontiguousarray(np.moveaxis(wide, axis, -1))
    first = stable_order(_descending(moved), moved.ndim - 1)[..., :k]
    return np.moveaxis(first, -1, axis)


def _reversed(x: Any) -> Any:
    """Numbers in the order of those of x from above; None for zeros and what is not finite."""
    if x.dtype.kind in "iu":
        return ~x
    if x.dtype.kind == "f" and np.count_nonzero(x) == x.size and not np.count_nonzero(x - x):
        return -x
    return None


def _top_k_jvp(primals: Any, tangents: Any, *, k: int, axis: int) -> Any:
    (x,), (t,) = primals, tangents
    values, places = top_k(x, k=k, axis=axis)
    return [values, places], [take_along(t, places, axis, unique=True), ZERO]


def _top_k_batch(batch_axis: Any, args: Any, dims: Any, *, k: int, axis: int) -> Any:
    (x,), (d,) = args, dims
    return top_k(x, k=k, axis=axis + (axis >= d)), [d, d]


def _top_k_hlo(b: Any, x: Any, *, k: int, axis: int) -> Any:
    values, places = b.outs
    if not values.size:
        return [b.full(values.shape, 0, values.dtype), b.full(places.shape, 0, places.dtype)]
    last = x.ndim - 1
    order = [d for d in range(x.ndim) if d != axis] + [axis]
    back = [order.index(d) for d in range(x.ndim)]
    if dtypes.issubdtype(x.dtype, np.floating):
        # XLA would put nan of the negative sign last; and 0/0 has that sign on many machines.
        x = b.select(b.compare(x, x, "NE"), b.full_like(x, np.nan), x)
    x, asked = b.convert(x, _whole_bytes(x.dtype)), x.dtype
    if axis != last:
        x = b.transpose(x, order)
    best, at = b.top_k(x, k)
    outs = [b.convert(best, asked), at]
    return outs if axis == last else [b.transpose(o, back) for o in outs]


top_k = Op(
    name="top_k",
    kind=INDEX,
    type=_top_k_type,
    impl=_top_k_impl,
    jvp=_top_k_jvp,
    transpose=Never("[top_k] expected a linear operation, got top_k, which is not."),
    batch=_top_k_batch,
    shard=by_kind,
    hlo=_top_k_hlo,
    kernel=lambda b, x, *, k, axis: b.top_k(x, k, axis),
    multiple=True,
)
