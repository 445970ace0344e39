"""Order: sort, argsort, extremal indices, binary search, partitions."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.elementary import isnan
from primal.numpy.indexing import getitem
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    check_out,
    convert,
    operand,
    promote_dtypes,
    to_shape,
)
from primal.numpy.reductions import all as all_true
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import expand_dims, flip, part, ravel
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.index import sort as rooms
from primal.ops.types import check_sequence, static_flag

INT32 = np.dtype(np.int32)
_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """(the array, its axis to sort along); flattened when there is none."""
    x = array_operand(name, a)
    if axis is None:
        return ravel(x), 0
    return x, as_axis(name, axis, x.aval.ndim)


def _check_kind(name: str, kind: Any, order: Any) -> None:
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to "
            "specify sort stability."
        )


@remembered_as(direct.sort)
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements along an axis in ascending order; flattened for axis None.

    nan comes last; complex numbers go by real part, then imaginary part.

    >>> jnp.sort(jnp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
    """
    _check_kind("sort", kind, order)
    x, at = _along("sort", a, axis)
    stable = static_flag("sort stable", stable)
    (out,) = rooms.sort(x, dimension=at, is_stable=stable, num_keys=1)
    out = convert(out, x.aval.dtype, x.aval.weak_type)
    return flip(out, at) if static_flag("sort descending", descending) else out


@remembered_as(direct.argsort)
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that would sort along an axis; equal elements keep their order.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _check_kind("argsort", kind, order)
    x, at = _along("argsort", a, axis)
    stable = static_flag("argsort stable", stable)
    out = sort_indices(x, at, stable, static_flag("argsort descending", descending))
    if dtype is None:
        return out
    target = dtypes.check_user_dtype_supported(dtype, "argsort")
    return convert(out, target)


def sort_indices(x: Any, at: int, stable: bool = True, descending: bool = False) -> Any:
    """The permutation that sorts x along an axis."""
    dtype = dtypes.python_scalar_dtype(int)
    index = shape_ops.iota(shape=x.aval.shape, dtype=dtype, dimension=at)
    if descending:
        # Reversed before and after, so that equal elements keep their order all the same.
        x, index = flip(x, at), flip(index, at)
    _, out = rooms.sort(x, index, dimension=at, is_stable=bool(stable), num_keys=1)
    return flip(out, at) if descending else out


@remembered_as(direct.lexsort)
def lexsort(keys: Sequence[ArrayLike] | Array, axis: int = -1) -> Array:
    """The indices that sort by several keys, the last being the first to decide.

    Raises TypeError without keys, ValueError for keys of different shapes.

    >>> jnp.lexsort((jnp.array([1, 0, 2]), jnp.array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    check_sequence("lexsort", "keys", keys)
    items = [array_operand("lexsort", keys[i], i) for i in range(len(keys))]
    if not items:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    shape = items[0].aval.shape
    if builtins.any(k.aval.shape != shape for k in items):
        raise ValueError(f"all keys need to be the same shape, got {[k.shape for k in items]}")
    if not shape:
        return literal_array(0)
    at = as_axis("lexsort", axis, len(shape))
    index = shape_ops.iota(shape=shape, dtype=dtypes.python_scalar_dtype(int), dimension=at)
    outs = rooms.sort(*items[::-1], index, dimension=at, is_stable=True, num_keys=len(items))
    return outs[-1]


def literal_array(value: int) -> Array:
    """An integer scalar array."""
    return to_shape(literal(value, dtypes.python_scalar_dtype(int), False), ())


def sort_complex(a: ArrayLike) -> Array:
    """The elements along the last axis in ascending order, as complex numbers.

    >>> jnp.sort_complex(jnp.array([2., 1.]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    out = sort(a)
    return convert(out, dtypes.to_complex_dtype(out.dtype))


# Extremal indices.


def _arg(name: str, op: Any, a: Any, axis: int | None, out: Any, keepdims: Any) -> Array:
    check_out(name, out)
    x = array_operand(name, a)
    rank = x.aval.ndim
    flat, at = _along(name, x, axis)
    if flat.aval.shape[at : at + 1] == (0,):
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if flat.aval.ndim == 0:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension 0")
    found = op(flat, axes=(at,), index_dtype=dtypes.python_scalar_dtype(int))
    if not keepdims:
        return found
    return expand_dims(found, at if axis is not None else tuple(range(rank)))


@remembered
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first maximum along an axis, or in the flattened array; nan is greatest.

    Raises ValueError for an empty axis.

    >>> jnp.argmax(jnp.array([[1, 5], [7, 3]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return _arg("argmax", rooms.argmax, a, axis, out, keepdims)


@remembered
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first minimum along an axis, or in the flattened array; nan counts as one.

    >>> jnp.argmin(jnp.array([[1, 5], [7, 3]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return _arg("argmin", rooms.argmin, a, axis, out, keepdims)


def _nan_arg(name: str, op: Any, fill: float, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    check_out(name, out)
    x = array_operand(name, a)
    if not dtypes.issubdtype(x.aval.dtype, np.inexact):
        return _arg(name, op, x, axis, None, keepdims)
    bad = isnan(x)
    x = ops.select_n(bad, x, to_shape(literal(fill, x.aval.dtype, False), x.aval.shape))
    found = _arg(name, op, x, axis, None, keepdims)
    empty = all_true(bad, axis=axis, keepdims=builtins.bool(keepdims))
    return ops.select_n(empty, found, to_shape(literal(-1, found.dtype, False), found.shape))


@remembered_as(direct.nanargmax)
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """`argmax` that skips nan; -1 where there is nothing else.

    Axes and dtypes as there.

    >>> jnp.nanargmax(jnp.array([jnp.nan, 1., 3.]))
    Array(2, dtype=int32)
    """
    return _nan_arg("nanargmax", rooms.argmax, -np.inf, a, axis, out, keepdims)


@remembered_as(direct.nanargmin)
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """`argmin` that skips nan; -1 where there is nothing else.

    Axes and dtypes as there.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 1., 3.]))
    Array(1, dtype=int32)
    """
    return _nan_arg("nanargmin", rooms.argmin, np.inf, a, axis, out, keepdims)


# Binary search.


@remembered_as(direct.searchsorted)
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Where to insert v into the ascending vector a: the number of elements below v.

    With side 'right', the number of those not above v. nan counts as greatest. `method` is accepted
    for other libraries' sake: the search halves, in log2(n) steps. Raises ValueError unless a is a
    vector, and for unknown sides and methods.

    >>> jnp.searchsorted(jnp.array([1, 3, 3, 5]), jnp.array([3, 6]))
    Array([1, 4], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(
            f"{side!r} is an invalid value for keyword 'side'. Expected one of ['left', 'right']."
        )
    if method not in _METHODS:
        raise ValueError(
            f"{method!r} is an invalid value for keyword 'method'. Expected one of {[*_METHODS]}."
        )
    x, y = promote_dtypes("searchsorted", a, v)
    if x.aval.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if sorter is not None:
        x = getitem(x, array_operand("searchsorted", sorter, 3))
    return count_below(x, y, side == "right")


def count_below(x: Any, y: Any, equal: bool) -> Any:
    """For each y the number of elements of the ascending vector x below (or equal to) it.

    The length of the prefix is built from its highest bit down: a bit stays if the element it ends
    at is below. So many gathers cost less than a loop would, and vmap and jit need no carry.
    """
    n, shape = x.aval.size, y.aval.shape
    count = to_shape(literal(0, INT32, False), shape)
    if n == 0:
        return count
    step = 1 << (n.bit_length() - 1)
    last = literal(n - 1, INT32, True)
    while step:
        longer = ops.add(count, literal(step, INT32, True))
        reached = getitem(x, ops.min(ops.sub(longer, literal(1, INT32, True)), last))
        below = ops.bitwise_not(_before(y, reached)) if equal else _before(reached, y)
        fits = ops.le(longer, literal(n, INT32, True))
        count = ops.select_n(ops.bitwise_and(below, fits), count, longer)
        step >>= 1
    return count


def _before(x: Any, y: Any) -> Any:
    """x < y in the order of sorting: nan is greatest, complex numbers go by their parts."""
    dtype = x.aval.dtype
    if dtype.kind == "c":
        re_x, re_y = ops.real(x), ops.real(y)
        tie = ops.bitwise_and(ops.eq(re_x, re_y), ops.lt(ops.imag(x), ops.imag(y)))
        return ops.bitwise_or(ops.lt(re_x, re_y), tie)
    less = ops.lt(x, y)
    if not dtypes.issubdtype(dtype, np.floating):
        return less
    return ops.bitwise_or(less, ops.bitwise_and(ops.ne(y, y), ops.eq(x, x)))


@remembered_as(direct.digitize)
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The index of the bin of each x: i with bins[i-1] <= x < bins[i].

    With `right`, bins[i-1] < x <= bins[i]. Bins may fall as well as rise. Raises ValueError unless
    bins is a vector.

    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([0., 1., 2.]))
    Array([1, 3], dtype=int32)
    """
    if method not in (None, *_METHODS):
        raise ValueError(f"invalid argument method={method!r}, expected one of {[*_METHODS]}")
    edges = array_operand("digitize", bins, 1)
    v = operand("digitize", x)
    if edges.aval.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {edges.shape}")
    n = edges.aval.size
    if n == 0:
        return to_shape(literal(0, INT32, False), v.aval.shape)
    side = "left" if right else "right"
    rising = searchsorted(edges, x, side)
    falling = searchsorted(flip(edges), x, side)
    up = ops.ge(edges[-1], edges[0])
    return ops.select_n(up, ops.sub(literal(n, falling.dtype, True), falling), rising)


# Partitions.


@remembered_as(direct.partition)
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements along an axis: the kth in its place, smaller ones before, larger ones after it.

    Those before it ascend and those after it descend, one order that a partition allows.

    >>> jnp.partition(jnp.array([3, 1, 4, 2]), 1)
    Array([1, 2, 4, 3], dtype=int32)
    """
    x, at = _along("partition", a, axis)
    n = x.aval.shape[at]
    k = _kth("partition", kth, n)
    out = sort(x, at)
    larger = flip(part(out, at, k + 1, n), at)
    return shape_ops.concatenate(part(out, at, 0, k + 1), larger, dimension=at)


@remembered_as(direct.argpartition)
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Indices that partition: of the smaller elements in their order, then of the kth, then others.

    >>> jnp.argpartition(jnp.array([3, 1, 4, 2]), 1)
    Array([1, 3, 0, 2], dtype=int32)
    """
    x, at = _along("argpartition", a, axis)
    n = x.aval.shape[at]
    k = _kth("argpartition", kth, n)
    out = sort_indices(x, at)
    larger = sort(part(out, at, k + 1, n), at)
    out = shape_ops.concatenate(part(out, at, 0, k + 1), larger, dimension=at)
    return convert(out, INT32)


def _kth(name: str, kth: int, n: int) -> int:
    if dtypes.issubdtype(operand(name, kth).aval.dtype, np.complexfloating):
        raise NotImplementedError(f"{name} for complex dtype is not implemented.")
    return as_axis(name, kth, n)
