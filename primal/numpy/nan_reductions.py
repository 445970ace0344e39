"""Reductions that leave nan out."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.monoids import highest, lowest
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.elementary import isnan, sqrt
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    broadcast_shapes,
    check_out,
    to_shape,
)
from primal.numpy.reductions import (
    Axis,
    all,
    mask_operand,
    masked,
    max,
    mean,
    min,
    prod,
    strong,
    sum,
    variance,
)
from primal.numpy.remembered import remembered, remembered_as
from primal.ops import elementwise as ops


def _filled_nan(name: str, a: Any, value: Any) -> tuple[Any, Any]:
    """(a with nan replaced, where a is nan), or (a, None) for dtypes that have no nan."""
    x = strong(array_operand(name, a))
    dtype = x.aval.dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        return x, None
    bad = isnan(x)
    fill = value(dtype) if callable(value) else value
    return ops.select_n(bad, x, to_shape(literal(fill, dtype, False), x.aval.shape)), bad


@remembered_as(direct.nansum)
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`sum` that counts nan as 0.

    Axes, masks and dtypes as there.

    >>> jnp.nansum(jnp.array([1., jnp.nan]))
    Array(1., dtype=float32)
    """
    check_out("nansum", out)
    return sum(_filled_nan("nansum", a, 0)[0], axis, dtype, None, keepdims, initial, where)


@remembered
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`prod` that counts nan as 1.

    Axes, masks and dtypes as there.

    >>> jnp.nanprod(jnp.array([2., jnp.nan]))
    Array(2., dtype=float32)
    """
    check_out("nanprod", out)
    return prod(_filled_nan("nanprod", a, 1)[0], axis, dtype, None, keepdims, initial, where)


@remembered_as(direct.nanmax)
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`max` that skips nan; nan where there is nothing else.

    Axes, masks and dtypes as there.

    >>> jnp.nanmax(jnp.array([1., jnp.nan]))
    Array(1., dtype=float32)
    """
    check_out("nanmax", out)
    return _nan_extremum("nanmax", max, lowest, a, axis, keepdims, initial, where)


@remembered_as(direct.nanmin)
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`min` that skips nan; nan where there is nothing else.

    Axes, masks and dtypes as there.

    >>> jnp.nanmin(jnp.array([1., jnp.nan]))
    Array(1., dtype=float32)
    """
    check_out("nanmin", out)
    return _nan_extremum("nanmin", min, highest, a, axis, keepdims, initial, where)


def _nan_extremum(
    name: str,
    reduce: Any,
    identity: Any,
    a: Any,
    axis: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Array:
    x, bad = _filled_nan(name, a, identity)
    out = reduce(x, axis, None, keepdims, initial, where)
    if bad is None or initial is not None:
        return out
    empty = all(bad, axis, keepdims=keepdims, where=where)
    return ops.select_n(empty, out, to_shape(literal(np.nan, out.dtype, False), out.shape))


def _valid(name: str, a: Any, where: Any) -> Any:
    """The mask of what a nan-skipping mean counts; None where that is everything."""
    if not dtypes.issubdtype(array_operand(name, a).aval.dtype, np.inexact):
        return where
    good = ops.bitwise_not(isnan(array_operand(name, a)))
    if where is None:
        return good
    mask, shape = mask_operand(name, where), good.aval.shape
    if broadcast_shapes(shape, mask.aval.shape) != shape:
        raise ValueError(
            f"[{name}] expected where to broadcast to shape {shape}, got shape {mask.aval.shape}."
        )
    return ops.bitwise_and(to_shape(good, shape), to_shape(mask, shape))


@remembered_as(direct.nanmean)
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """`mean` over what is not nan.

    Axes, masks and dtypes as there.

    >>> jnp.nanmean(jnp.array([1., jnp.nan, 3.]))
    Array(2., dtype=float32)
    """
    check_out("nanmean", out)
    return mean(a, axis, dtype, None, keepdims, where=_valid("nanmean", a, where))


@remembered_as(direct.nanvar)
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """`var` over what is not nan.

    Axes, masks and dtypes as there.

    >>> jnp.nanvar(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    check_out("nanvar", out)
    valid = _valid("nanvar", a, where)
    x = array_operand("nanvar", a)
    if valid is not None:
        x = masked("nanvar", x, valid, 0)
    return variance("nanvar", x, axis, dtype, ddof, keepdims, valid, mean, None)


@remembered_as(direct.nanstd)
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """`std` over what is not nan.

    Axes, masks and dtypes as there.

    >>> jnp.nanstd(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    check_out("nanstd", out)
    return sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))
