"""Reductions over axes: sums, means, extrema, logic, and their variants that skip nan.

Integers narrower than the default are summed in the default integer; floats of 16 bits are
accumulated in float32 and rounded once.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.monoids import highest, lowest
from primal.ir.state import axis_size
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.elementary import conjugate, sqrt
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    DTypeLike,
    array_operand,
    asked_dtype,
    broadcast_shapes,
    check_out,
    convert,
    in_float32,
    operand,
    promote_dtypes,
    to_shape,
    warn_of_parts,
)
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.ufuncs import as_bool
from primal.ops import collective
from primal.ops import elementwise as ops
from primal.ops import reduce as rooms
from primal.ops.shape import transpose
from primal.ops.spread import broadcast_in_dim, reduce_sum
from primal.ops.types import axes_given, canonical_axes, static_flag

Axis = Any  # None, an int, or a tuple of ints
FLOAT32 = np.dtype(np.float32)


def as_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """An axis argument (None: all, int, or several) as sorted non-negative axes."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(canonical_axes(name, axes_given(axis), ndim)))


def split_axes(name: str, axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(the axes of the array, the names of axes of a vmap, pmap or shard_map around the call)."""
    if axis is None:
        return tuple(range(ndim)), ()
    given = (axis,) if isinstance(axis, str) else axes_given(axis)
    names = tuple([a for a in given if isinstance(a, str)])
    if len(set(names)) < len(names):
        raise ValueError(
            f"[{name}] expected distinct axes, got {given}: duplicate value in 'axis'."
        )
    return as_axes(name, [a for a in given if not isinstance(a, str)], ndim), names


def as_axis(name: str, axis: Any, ndim: int) -> int:
    """One axis as a non-negative int; ValueError when out of bounds."""
    return canonical_axes(name, (axis,), ndim)[0]


def _accumulator(dtype: Any) -> Any:
    """The dtype in which a sum of a dtype is computed."""
    return FLOAT32 if dtypes.is_narrow_float(dtype) else dtype


def summed_dtype(x: Any, widen: bool) -> Any:
    dtype = x.aval.dtype
    if dtype == BOOL:
        return dtypes.python_scalar_dtype(int)
    if widen and dtypes.issubdtype(dtype, np.integer):
        default = dtypes.python_scalar_dtype(int)
        if dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(default):
            unsigned = dtypes.issubdtype(dtype, np.unsignedinteger)
            return np.dtype(f"uint{default.itemsize * 8}") if unsigned else default
    return dtype


def with_axes(reduced: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """A reduction's result, with the axes put back at size 1 if `keepdims`."""
    if keepdims is False or not static_flag("keepdims keepdims", keepdims):
        return reduced
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    target = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return broadcast_in_dim(reduced, shape=target, broadcast_dimensions=kept)


def mask_operand(name: str, where: Any) -> Any:
    """The argument `where`; ValueError unless it holds booleans."""
    mask = operand(name, where)
    if mask.aval.dtype != BOOL:
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array; got where.dtype={mask.aval.dtype}"
        )
    return mask


def masked(name: str, x: Any, where: Any, value: Any) -> Any:
    """x with `value` where the mask is false; the mask broadcasts with x."""
    mask = mask_operand(name, where)
    shape = broadcast_shapes(x.aval.shape, mask.aval.shape)
    fill = literal(value, x.aval.dtype, False)
    return ops.select_n(to_shape(mask, shape), to_shape(fill, shape), to_shape(x, shape))


_across = {
    reduce_sum: collective.psum,
    rooms.reduce_max: collective.pmax,
    rooms.reduce_min: collective.pmin,
}


def _fold(
    name: str,
    op: Any,
    x: Any,
    axis: Axis,
    keepdims: bool,
    initial: Any,
    where: Any,
    identity: Any,
    combine: Any,
) -> Any:
    """One reduction of an operand of its final dtype; `identity` is None where there is none."""
    # Axes are the operand's own, also where the mask has more.
    axes, names = split_axes(name, axis, x.aval.ndim)
    if where is not None:
        if identity is None:
            if initial is None:
                raise ValueError(
                    f"reduction operation {name} does not have an identity, so to use a where mask "
                    "one has to specify 'initial'"
                )
            extreme = lowest if op is rooms.reduce_max else highest
            identity = extreme(x.aval.dtype)
        x = masked(name, x, where, identity)
    shape = x.aval.shape
    if identity is None and initial is None and builtins.any(shape[a] == 0 for a in axes):
        raise ValueError(
            f"zero-size array to reduction operation {name} which has no identity. Give an "
            "`initial` value."
        )
    out = with_axes(op(x, axes=axes), shape, axes, keepdims)
    if names:
        across = _across.get(op)
        if across is None:
            raise NotImplementedError(f"Named reductions not implemented for jnp.{name}()")
        out = across(out, axes=names)
    if initial is not None:
        start = operand(name, initial)
        if start.aval.ndim:
            raise ValueError(
                f"initial value must be a scalar. Got array of shape {start.aval.shape}"
            )
        warn_of_parts(start.aval.dtype, x.aval.dtype)
        out = combine(convert(start, x.aval.dtype), out)
    return out


# Sums and products.


@remembered
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum over axes: out[k] = initial + Σ a[k, r] over the r where the mask holds.

    The dtype is a's, but booleans and narrow integers are summed as int32 (or uint32). Raises
    TypeError for lists, ValueError for axes that do not exist.

    >>> jnp.sum(jnp.arange(6).reshape(2, 3), axis=1)
    Array([ 3, 12], dtype=int32)
    """
    check_out("sum", out)
    x, target = _number_operand("sum", a, dtype, promote_integers)
    op, add = (rooms.reduce_or, ops.bitwise_or) if target == BOOL else (reduce_sum, ops.add)
    return convert(_fold("sum", op, x, axis, keepdims, initial, where, 0, add), target)


@remembered
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product over axes: out[k] = initial · Π a[k, r].

    >>> jnp.prod(jnp.array([[1., 2.], [3., 4.]]), axis=0)
    Array([3., 8.], dtype=float32)
    """
    check_out("prod", out)
    x, target = _number_operand("prod", a, dtype, promote_integers)
    logical = target == BOOL
    op, mul = (rooms.reduce_and, ops.bitwise_and) if logical else (rooms.reduce_prod, ops.mul)
    return convert(_fold("prod", op, x, axis, keepdims, initial, where, 1, mul), target)


def _number_operand(name: str, a: Any, dtype: Any, widen: bool) -> tuple[Any, Any]:
    """(a in the dtype its sum is computed in, the dtype of the result)."""
    x = array_operand(name, a)
    if dtype is None:
        target = summed_dtype(x, widen)
    else:
        target = asked_dtype(name, x.aval.dtype, dtype)
    return as_bool(x) if target == BOOL else convert(x, _accumulator(target)), target


# Extrema.


@remembered
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The maximum over axes; nan if any is nan.

    Elements that attain it share its derivative equally. Raises ValueError where there is nothing
    to compare and no `initial`.

    >>> jnp.max(jnp.array([[1, 5], [7, 3]]), axis=0)
    Array([7, 5], dtype=int32)
    """
    check_out("max", out)
    x = strong(array_operand("max", a))
    return _fold("max", rooms.reduce_max, x, axis, keepdims, initial, where, None, ops.max)


@remembered
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The minimum over axes; nan if any is nan.

    >>> jnp.min(jnp.array([[1, 5], [7, 3]]), axis=0)
    Array([1, 3], dtype=int32)
    """
    check_out("min", out)
    x = strong(array_operand("min", a))
    return _fold("min", rooms.reduce_min, x, axis, keepdims, initial, where, None, ops.min)


amax, amin = max, min


def strong(x: Any) -> Any:
    return convert(x, x.aval.dtype)


@remembered
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The maximum minus the minimum, over axes.

    >>> jnp.ptp(jnp.array([3, 8, 1]))
    Array(7, dtype=int32)
    """
    check_out("ptp", out)
    x = array_operand("ptp", a)
    return ops.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


# Logic.


@remembered
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements over axes are non-zero; True of none.

    >>> jnp.all(jnp.array([[1, 0], [1, 1]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    check_out("all", out)
    x = convert(as_bool(array_operand("all", a)), BOOL)
    return _fold("all", rooms.reduce_and, x, axis, keepdims, None, where, True, ops.bitwise_and)


@remembered
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether any element over axes is non-zero; False of none.

    >>> jnp.any(jnp.array([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    check_out("any", out)
    x = convert(as_bool(array_operand("any", a)), BOOL)
    return _fold("any", rooms.reduce_or, x, axis, keepdims, None, where, False, ops.bitwise_or)


@remembered_as(direct.count_nonzero)
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of non-zero elements over axes.

    >>> jnp.count_nonzero(jnp.array([3, 0, 1]))
    Array(2, dtype=int32)
    """
    return sum(as_bool(array_operand("count_nonzero", a)), axis, keepdims=keepdims)


# Means and spreads.


def _count(name: str, x: Any, axis: Axis, where: Any, keepdims: bool, dtype: Any) -> Any:
    """How many elements are averaged: a Python int, or an array where a mask decides."""
    shape = x.aval.shape
    if where is None:
        axes, names = split_axes(name, axis, len(shape))
        return math.prod([shape[a] for a in axes]) * math.prod(map(axis_size, names))
    mask = mask_operand(name, where)
    if broadcast_shapes(shape, mask.aval.shape) != shape:
        raise ValueError(
            f"[{name}] expected where to broadcast to shape {shape}, got shape {mask.aval.shape}."
        )
    ones = convert(to_shape(mask, shape), dtype)
    return sum(ones, axis, keepdims=keepdims)


def _divided(x: Any, count: Any) -> Any:
    return ops.div(x, literal(count, x.aval.dtype, True) if isinstance(count, int) else count)


@remembered
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean over axes: Σ a / n; nan of nothing. Integers give float32.

    With an integer `dtype` the sum is one of integers, and so is the quotient, towards 0.

    >>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    check_out("mean", out)
    x, work, target = _mean_operand("mean", a, dtype)
    if dtypes.issubdtype(target, np.integer):
        total = sum(a, axis, target, keepdims=keepdims, where=where)
        work = summed_dtype(total, True)
        return convert(
            _divided(convert(total, work), _count("mean", x, axis, where, keepdims, work)), target
        )
    count = _count("mean", x, axis, where, keepdims, work)
    return convert(_divided(sum(x, axis, keepdims=keepdims, where=where), count), target)


def _no_bools(name: str, dtype: Any) -> Any:
    if dtype == BOOL:
        raise TypeError(f"[{name}] expected a dtype of numbers, which are divided, got bool.")
    return dtype


def _mean_operand(name: str, a: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """(a in the dtype to compute in, that dtype, the dtype of the result)."""
    x = array_operand(name, a)
    own = dtypes.to_inexact_dtype(x.aval.dtype)
    target = own if dtype is None else _no_bools(name, asked_dtype(name, own, dtype))
    work = _accumulator(target if dtypes.issubdtype(target, np.inexact) else own)
    return convert(x, work), work, target


@remembered_as(direct.var)
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The variance over axes: Σ |a - mean|² / (n - ddof); nan where that is not positive.

    Of complex numbers it is real. `correction` is another name of `ddof`.

    >>> jnp.var(jnp.array([1., 3.]))
    Array(1., dtype=float32)
    """
    check_out("var", out)
    return variance("var", a, axis, dtype, ddof, keepdims, where, mean, correction)


def variance(
    name: str,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    given: Any,
    correction: Any,
) -> Array:
    if correction is not None:
        if not isinstance(ddof, int) or ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = array_operand(name, a)
    if isinstance(x.aval.dtype, dtypes.KeyType):
        raise TypeError(f"[{name}] expected numbers, got keys of dtype {x.aval.dtype.name}.")
    own = dtypes.to_inexact_dtype(x.aval.dtype)
    target = dtypes.to_real_dtype(own)
    if dtype is not None:
        target = _no_bools(name, dtypes.check_user_dtype_supported(dtype, name))
        if own.kind == "c" and target.kind != "c":
            raise ValueError(
                f"[{name}] expected a complex dtype for complex operands, got {target.name}: does "
                "not yet support real dtype parameters for them. Leave dtype out: the variance is "
                "real."
            )
        if dtypes.issubdtype(target, np.inexact):
            own = target
    x = convert(x, _accumulator(own))
    if given is None:
        center = mean(x, axis, keepdims=True, where=where)
    else:
        center = array_operand(name, given)
        warn_of_parts(center.aval.dtype, x.aval.dtype)
        center = convert(center, x.aval.dtype)
        if not keepdims and center.aval.ndim < x.aval.ndim and center.aval.ndim:
            axes, _ = split_axes(name, axis, x.aval.ndim)
            if center.aval.ndim == x.aval.ndim - len(axes):
                center = with_axes(center, x.aval.shape, axes, True)
    apart = ops.sub(x, center)
    squares = ops.real(ops.mul(apart, conjugate(apart))) if own.kind == "c" else ops.square(apart)
    work = squares.aval.dtype
    total = sum(squares, axis, keepdims=keepdims, where=where)
    count = _count(name, x, axis, where, keepdims, work)
    if isinstance(count, int) and isinstance(ddof, int | float):
        rest = count - ddof
        divisor = literal(rest if rest > 0 else np.nan, work, True)
        return convert(ops.div(total, divisor), target)
    if isinstance(count, int):
        count = literal(count, work, True)
    freedom = convert(operand(name, ddof), work)
    shape = broadcast_shapes(count.aval.shape, total.aval.shape, freedom.aval.shape)
    total = to_shape(total, shape)
    rest = ops.sub(to_shape(count, shape), to_shape(freedom, shape))
    nan = to_shape(literal(np.nan, work, True), shape)
    positive = ops.gt(rest, literal(0, work, True))
    return convert(ops.select_n(positive, nan, ops.div(total, rest)), target)


@remembered_as(direct.std)
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The standard deviation over axes: the square root of `var`.

    Raises ValueError for a dtype of integers.

    >>> jnp.std(jnp.array([1., 3.]))
    Array(1., dtype=float32)
    """
    check_out("std", out)
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {np.dtype(dtype).name}")
    return sqrt(variance("std", a, axis, dtype, ddof, keepdims, where, mean, correction))


@remembered
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean over axes: Σ w·a / Σ w; with `returned` the pair (mean, Σ w).

    Weights have a's shape, or the sizes along `axis`, in its order. Raises ValueError otherwise.

    >>> jnp.average(jnp.array([1., 2.]), weights=jnp.array([3., 1.]))
    Array(1.25, dtype=float32)
    """
    if weights is None:
        x = array_operand("average", a)
        out = mean(x, axis, keepdims=keepdims)
        if not returned:
            return out
        count = x.aval.size // builtins.max(out.size, 1)
        return out, to_shape(literal(count, out.dtype, False), out.shape)
    x, w = promote_dtypes("average", a, weights)
    dtype = dtypes.to_inexact_dtype(x.aval.dtype)
    x, w = convert(x, dtype), convert(w, dtype)
    if x.aval.shape != w.aval.shape:
        if axis is None:
            raise ValueError("Axis must be specified when shapes of a and weights differ.")
        at = canonical_axes("average", axes_given(axis), x.aval.ndim)
        have = w.aval.shape
        if have != tuple([x.aval.shape[i] for i in at]):
            raise ValueError(
                "Length of weights not compatible with specified axis: weights have shape "
                f"{have}, a has shape {x.aval.shape}, axis is {axis}."
            )
        order = tuple(np.argsort(at).tolist())
        w = transpose(w, permutation=order)
        w = broadcast_in_dim(w, shape=x.aval.shape, broadcast_dimensions=tuple(sorted(at)))

    def of(x: Any, w: Any) -> tuple[Any, Any]:
        total = sum(w, axis, keepdims=keepdims)
        return ops.div(sum(ops.mul(x, w), axis, keepdims=keepdims), total), total

    both = in_float32(of, x, w)
    return both if returned else both[0]


# Without nan.
