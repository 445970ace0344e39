"""Reductions that leave nan out: of arrays without, those that do not look for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import extrema
from primal.base.native import is_finite
from primal.numpy.direct.operands import count, is_array, is_axis
from primal.ops.spread import reduce_sum


def _nan_extreme(name: str) -> Callable[..., Any]:
    def direct(
        a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None
    ) -> Callable[..., Any] | None:
        if not is_array(a, "f") or not (axis is None or type(axis) is int) or keepdims:
            return None

        def run(x: Any) -> Any:
            return getattr(x, name)(axis) if is_finite(x) else None

        return run

    return direct


def _nan_extremum(extremum: Any, skipping: Any) -> Callable[..., Any]:
    def direct(
        a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
        where: Any = None,
    ) -> Callable[..., Any] | None:  # fmt: skip
        if not is_array(a, "f") or not is_axis(axis) or not a.aval.size:
            return None
        if keepdims or out is not None or initial is not None or where is not None:
            return None

        def run(x: Any) -> Any:
            found = skipping.reduce(x, axis=axis)
            if count(found) == found.size and not count(found != found):
                return found
            # The sign of a zero is NumPy's to choose, and where all is nan something is to be said.
            found = extremum.reduce(x, axis=axis)
            return None if count(found != found) else found

        return run

    return direct


nanmax = _nan_extremum(extrema.maximum, np.fmax)
nanmin = _nan_extremum(extrema.minimum, np.fmin)
nanargmax = _nan_extreme("argmax")
nanargmin = _nan_extreme("argmin")


def _sums(name: str) -> Callable[..., Any]:
    """nansum, nanmean, nanvar or nanstd, with the sums of `reduce_sum`."""

    def direct(
        a: Any, axis: Any = None, dtype: Any = None, out: None = None, *, ddof: Any = 0,
        keepdims: bool = False, **options: Any,
    ) -> Callable[..., Any] | None:  # fmt: skip
        if not is_array(a, "f") or not is_axis(axis) or not a.aval.size or type(ddof) is not int:
            return None
        if dtype is not None or out is not None or keepdims or options:
            return None
        rank = a.aval.ndim
        given = range(rank) if axis is None else (axis,) if type(axis) is int else axis
        axes = tuple(sorted({i % rank for i in given}))
        shape = tuple([1 if i in axes else n for i, n in enumerate(a.aval.shape)])
        n = math.prod([a.aval.shape[i] for i in axes])
        total: Any = reduce_sum.impl
        one = a.aval.dtype.type

        def run(x: Any) -> Any:
            finite = is_finite(x)
            if name == "sum":
                return total(x if finite else np.where(x == x, x, one(0)), axes=axes)
            if not finite:
                return None
            mean = np.divide(total(x, axes=axes), one(n))
            if name == "mean":
                return mean
            rest = np.subtract(x, np.reshape(mean, shape))
            rest *= rest
            var = np.divide(total(rest, axes=axes), one(n - ddof))
            return np.sqrt(var) if name == "std" else var

        return run if n > ddof else None

    return direct


nansum, nanmean, nanvar, nanstd = map(_sums, ("sum", "mean", "var", "std"))
