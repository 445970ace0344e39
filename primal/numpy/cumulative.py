"""Running sums and products, and differences between neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.choosing import where
from primal.numpy.creation import array, filled
from primal.numpy.elementary import isnan
from primal.numpy.joining import concatenate
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    DTypeLike,
    array_operand,
    asked_dtype,
    check_arraylike,
    convert,
    from_literal,
    in_float32,
    operand,
    promote_args_inexact,
    promote_dtypes,
    promote_dtypes_inexact,
    promoted_dtype,
    to_shape,
)
from primal.numpy.reductions import as_axis, check_out, summed_dtype
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import broadcast_to, moveaxis, part, ravel, reshape
from primal.numpy.sorting import count_below
from primal.numpy.ufuncs import as_bool, multiply, not_equal, subtract
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.index import sort as orders
from primal.ops.types import axes_given, static_int
from primal.ops.window import cumulative as rooms


def _cumulate(
    name: str, op: Any, a: Any, axis: Any, dtype: Any, out: Any, fill: int | None = None
) -> Array:
    check_out(name, out)
    x = array_operand(name, a)
    if fill is not None and dtypes.issubdtype(x.aval.dtype, np.inexact):
        other = to_shape(literal(fill, x.aval.dtype, False), x.aval.shape)
        x = ops.select_n(isnan(x), x, other)
    if axis is None or not x.aval.ndim:
        x, axis = ravel(x), 0 if axis is None else axis
    target = x.aval.dtype if dtype is None else asked_dtype(name, x.aval.dtype, dtype)
    at = as_axis(name, axis, x.aval.ndim)
    if target != BOOL:
        return op(convert(x, target), axis=at, reverse=False)
    # Of booleans, how many; asked for booleans, whether any or all were so far.
    counts = op(convert(as_bool(x), dtypes.python_scalar_dtype(int)), axis=at, reverse=False)
    return counts if dtype is None else as_bool(counts)


@remembered
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running sums along an axis, or of the flattened array: out[k] = Σ_{i ≤ k} a[i].

    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _cumulate("cumsum", rooms.cumsum, a, axis, dtype, out)


@remembered
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running products along an axis, or of the flattened array.

    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulate("cumprod", rooms.cumprod, a, axis, dtype, out)


@remembered_as(direct.nancumsum)
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """`cumsum` that counts nan as 0.

    Axes and dtypes as there.

    >>> jnp.nancumsum(jnp.array([1., jnp.nan, 3.]))
    Array([1., 1., 4.], dtype=float32)
    """
    return _cumulate("nancumsum", rooms.cumsum, a, axis, dtype, out, 0)


@remembered
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """`cumprod` that counts nan as 1.

    Axes and dtypes as there.

    >>> jnp.nancumprod(jnp.array([2., jnp.nan, 3.]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _cumulate("nancumprod", rooms.cumprod, a, axis, dtype, out, 1)


def _array_api(
    name: str, op: Any, x: Any, axis: Any, dtype: Any, include_initial: bool, start: int
) -> Array:
    x = array_operand(name, x)
    if x.aval.ndim == 0:
        raise ValueError("The input must be non-scalar to take a cumulative reduction.")
    if axis is None:
        if x.aval.ndim > 1:
            raise ValueError(
                f"The input array has rank {x.aval.ndim}, however axis was not set to an explicit "
                "value. The axis argument is only optional for one-dimensional arrays."
            )
        axis = 0
    if dtype is None:
        dtype = summed_dtype(x, True)
    out = _cumulate(name, op, x, axis, dtype, None)
    if include_initial:
        at = as_axis(name, axis, x.aval.ndim)
        shape = tuple([1 if i == at else n for i, n in enumerate(out.shape)])
        out = shape_ops.concatenate(filled(shape, start, out.dtype), out, dimension=at)
    return out


@remembered
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Running sums along an axis; with `include_initial` a 0 comes first.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _array_api("cumulative_sum", rooms.cumsum, x, axis, dtype, include_initial, 0)


@remembered
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Running products along an axis; with `include_initial` a 1 comes first.

    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _array_api("cumulative_prod", rooms.cumprod, x, axis, dtype, include_initial, 1)


# Differences.


@remembered
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Differences of neighbours along an axis, n times: out[k] = a[k + 1] - a[k].

    Of booleans, whether they differ. Raises ValueError for a negative n and for scalars.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    x = array_operand("diff", a)
    n = static_int("diff n", n)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if x.aval.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    if n == 0:
        return x
    at = as_axis("diff", axis, x.aval.ndim)
    edge = tuple([1 if i == at else size for i, size in enumerate(x.aval.shape)])
    parts = [x]
    for place, extra in ((0, prepend), (2, append)):
        if extra is not None:
            y = operand("diff", extra)
            y = broadcast_to(y, edge) if y.aval.ndim == 0 else y
            parts.insert(0 if place == 0 else len(parts), y)
    x = concatenate(parts, at)
    combine = not_equal if x.dtype == BOOL else subtract
    for _ in range(min(n, x.shape[at])):
        size = x.shape[at]
        x = combine(part(x, at, min(1, size), size), part(x, at, 0, max(size - 1, 0)))
    return x


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Differences of neighbours in the flattened array, with values put before and after.

    Raises TypeError for booleans, which have no differences.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    x = ravel(ary)
    if x.dtype == bool:
        raise TypeError("[ediff1d] expected numbers, got booleans. Use diff, or astype(int) first.")
    out = diff(x)
    dtype = x.dtype
    if to_begin is not None:
        out = concatenate([convert(ravel(to_begin), dtype), out])
    if to_end is not None:
        out = concatenate([out, convert(ravel(to_end), dtype)])
    return out


@remembered
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Any = None, edge_order: int | None = None
) -> Any:
    """Derivatives of samples along axes: central differences, one-sided at the ends.

    Distances are 1 by default; a scalar, one scalar per axis, or coordinates per axis. One axis
    gives an array, several a list. Raises NotImplementedError for an edge_order other than 1,
    ValueError for axes of fewer than two elements, TypeError for a wrong number of distances.

    >>> jnp.gradient(jnp.array([1., 4., 9.]))
    Array([3., 4., 5.], dtype=float32)
    """
    if edge_order is not None and edge_order != 1:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    (x,) = promote_args_inexact("gradient", f)
    rank = x.aval.ndim
    if axis is None:
        axes = tuple(range(rank))
    else:
        axes = tuple([as_axis("gradient", a, rank) for a in axes_given(axis)])
    if not axes:
        return []
    if any(x.aval.shape[a] < 2 for a in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are "
            "required."
        )
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(
            f"Invalid number ({len(varargs)}) of spacing arguments for {len(axes)} axes."
        )
    spacings: list[Any] = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs)
    spacings = spacings or [None] * len(axes)
    out = [_slope(x, a, h) for a, h in zip(axes, spacings, strict=True)]
    return out[0] if len(axes) == 1 else out


def _slope(x: Any, at: int, spacing: Any) -> Any:
    if spacing is None:
        return in_float32(lambda x: _differences(x, at), x)
    h = operand("gradient", spacing)
    if h.aval.ndim and h.aval.shape != x.aval.shape[at : at + 1]:
        raise ValueError("Spacing arguments must be scalars or 1D arrays of the axis' size.")
    h = convert(h, x.aval.dtype, x.aval.weak_type)
    return in_float32(lambda x, h: _differences(x, at, h), x, h)


def _differences(x: Any, at: int, h: Any = None) -> Any:
    n = x.aval.shape[at]
    if h is None or h.aval.ndim == 0:
        first, last = [_step(x, at, i) for i in (0, n - 2)]
        # Not the mean of both steps: a nan in the middle is in neither neighbour's way.
        inner = part(x, at, 2, n) - part(x, at, 0, n - 2)
        if h is not None:
            first, last, inner = [ops.div(v, h) for v in (first, last, inner)]
        inner = ops.div(inner, 2.0)
    else:
        gaps = diff(h)
        shape = tuple([n - 1 if i == at else 1 for i in range(x.aval.ndim)])
        gaps = shape_ops.reshape(gaps, shape=shape)
        steps = ops.div(part(x, at, 1, n) - part(x, at, 0, n - 1), gaps)
        left, right = part(gaps, at, 0, n - 2), part(gaps, at, 1, n - 1)
        weighted = ops.add(
            ops.mul(part(steps, at, 0, n - 2), right), ops.mul(part(steps, at, 1, n - 1), left)
        )
        inner = ops.div(weighted, ops.add(left, right))
        first, last = part(steps, at, 0, 1), part(steps, at, n - 2, n - 1)
    return shape_ops.concatenate(first, inner, last, dimension=at)


def _step(x: Any, at: int, i: int) -> Any:
    """x[i + 1] - x[i] along an axis."""
    return part(x, at, i + 1, i + 2) - part(x, at, i, i + 1)


@remembered
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral of samples along an axis by the trapezoidal rule.

    Raises IndexError for no samples.

    >>> jnp.trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    if x is None:
        check_arraylike("trapezoid", y, dx)
        # Whole samples become floats by themselves, not beside the step's.
        (values,) = promote_dtypes_inexact("trapezoid", y)
        values, step = map(from_literal, promote_dtypes("trapezoid", values, dx))
    else:
        check_arraylike("trapezoid", y, x, dx)
        # Not broadcast against each other: places of one dimension lie along `axis`.
        values, step = map(from_literal, promote_dtypes_inexact("trapezoid", y, x))
    at = as_axis("trapezoid", axis, values.aval.ndim)
    if values.aval.shape[at] == 0 and x is None and step.aval.ndim == 0:
        raise IndexError("[trapezoid] expected samples along the axis, got none.")

    def of(values: Any, step: Any) -> Any:
        if x is not None and step.aval.ndim == 1:
            step = diff(step)
        elif x is not None:
            step = moveaxis(diff(step, axis=axis), axis, -1)
        return _trapezoids(values, step, at)

    return in_float32(of, values, step)


def _trapezoids(values: Any, step: Any, at: int) -> Array:
    n, last, rank = values.aval.shape[at], values.aval.ndim - 1, step.aval.ndim
    # Samples are added where they lie; steps of several dimensions broadcast with the axis last.
    if rank == 1 and at < last:
        step = reshape(step, (-1,) + (1,) * (last - at))
    elif rank > 1:
        values, at = moveaxis(values, at, -1), last
    pairs = part(values, at, min(1, n), n) + part(values, at, 0, max(n - 1, 0))
    return 0.5 * total(multiply(step, pairs), at - last - 1)


@remembered
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi
) -> Array:
    """Angles along an axis without jumps of more than half a period.

    Raises ValueError for complex numbers.

    >>> jnp.unwrap(jnp.array([0, 1, 6, 7]), period=6)
    Array([0, 1, 0, 1], dtype=int32)
    """
    x = array_operand("unwrap", p)
    if x.aval.dtype.kind == "c":
        raise ValueError("jnp.unwrap does not support complex inputs.")
    at = as_axis("unwrap", axis, x.aval.ndim)
    n = x.aval.shape[at]
    turn = array_operand("unwrap", period)
    if all(dtypes.issubdtype(v.aval.dtype, np.integer) for v in (x, turn)):
        half, rest = divmod(turn, 2)
        even = rest == 0
    else:
        half, even = turn / 2, True
        # Differences of unsigned integers would wrap around.
        x = convert(x, promoted_dtype([x, turn])[0])
    steps = diff(x, axis=at)
    near = (steps + half) % turn - half
    near = where((near == -half) & (steps > 0) & even, half, near)
    limit = half if discont is None else array_operand("unwrap", discont)
    change = where(abs(steps) < limit, 0, near - steps)
    tail = part(x, at, min(1, n), n) + cumsum(change, at)
    return concatenate([part(x, at, 0, min(1, n)), tail], at)


@remembered_as(direct.interp)
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Piecewise linear interpolation of the points (xp, fp), xp ascending, at x.

    Outside, the values at the ends, or `left` and `right` ('extrapolate' continues the line).
    Raises ValueError for complex x or xp, or unless xp and fp are vectors of one length.

    >>> jnp.interp(jnp.array([0.5, 3.]), jnp.array([0., 1.]), jnp.array([10., 20.]))
    Array([15., 20.], dtype=float32)
    """
    from_points = operand("interp", xp, 1)
    if from_points.aval.ndim != 1 or operand("interp", fp, 2).aval.shape != from_points.aval.shape:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    if "c" in (from_points.aval.dtype.kind, operand("interp", x).aval.dtype.kind):
        raise ValueError("jnp.interp: complex x values not supported.")
    return _interpolated(x, xp, fp, left, right, period)


def _interpolated(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Array:
    v, places = promote_dtypes_inexact("interp", x, xp)
    # Whole values become floats by themselves, as in JAX: beside float16 places, float32.
    values, *_ = promote_dtypes("interp", *promote_dtypes_inexact("interp", fp), v, places)
    real = dtypes.to_real_dtype(values.aval.dtype)
    v, places = [convert(a, real, a.aval.weak_type) for a in (v, places)]
    out = in_float32(lambda f, x, xp: _between(f, x, xp, period), values, v, places)
    if period is None:
        out = _beyond("left", left, ops.lt(v, places[0]), values[0], out)
        out = _beyond("right", right, ops.gt(v, places[-1]), values[-1], out)
    return out


def _between(values: Any, v: Any, places: Any, period: Any) -> Any:
    if period is not None:
        v, places, values = _periodic(v, places, values, period)
    index = count_below(places, v, True)
    one = literal(1, index.dtype, True)
    last = literal(max(places.aval.size - 1, 1), index.dtype, True)
    index = ops.min(ops.max(index, one), last)
    low = ops.sub(index, one)
    x0, x1 = places[low], places[index]
    f0, f1 = values[low], values[index]
    gap = ops.sub(x1, x0)
    tiny = ops.le(ops.abs(gap), literal(np.spacing(finfo(gap.dtype).eps), gap.dtype, True))
    safe = ops.select_n(tiny, gap, to_shape(literal(1, gap.dtype, True), gap.shape))
    ratio = convert(ops.div(ops.sub(v, x0), safe), values.aval.dtype)
    return ops.select_n(tiny, ops.add(f0, ops.mul(ratio, ops.sub(f1, f0))), f0)


def _beyond(name: str, given: Any, outside: Any, edge: Any, out: Any) -> Any:
    if isinstance(given, str):
        if given != "extrapolate":
            raise ValueError(
                f"the only valid string value of `{name}` is 'extrapolate', but got: {given!r}"
            )
        return out
    value, out = promote_dtypes("interp", edge if given is None else given, out)
    return ops.select_n(outside, out, to_shape(value, out.aval.shape))


def _periodic(v: Any, places: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    given = operand("interp", period)
    if given.aval.ndim:
        raise ValueError(f"period must be a scalar; got {period}")
    span = abs(array(period).astype(places.dtype))
    v, places = v % span, places % span
    places, values = orders.sort(places, values, dimension=0, is_stable=True, num_keys=1)
    places = concatenate([places[-1:] - span, places, places[:1] + span])
    return v, places, concatenate([values[-1:], values, values[:1]])
