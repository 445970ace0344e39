"""Reductions that leave nan out: of arrays without, those that do not look for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import extrema
from primal.base.native import FLOAT16, chosen, is_finite, widened
from primal.ir.avals import Aval
from primal.numpy.direct.operands import Direct, count, exact, is_array, is_axis, reduced_axes
from primal.ops.spread import reduce_sum

Run = Callable[[Any], Any]


def _over_axes(run_of: Callable[[Aval, Any, int], Run | None], kinds: str = "f") -> Direct:
    """Of floats, or these kinds, over axes, without options: `run_of(aval, axis, ddof)` runs."""

    def direct(a: Any, axis: Any = None, *more: Any, ddof: Any = 0, **options: Any) -> Run | None:
        if not is_array(a, kinds) or not is_axis(axis) or not a.aval.size or type(ddof) is not int:
            return None
        keepdims = options.pop("keepdims", False)
        if more or type(keepdims) is not bool or any(x is not None for x in options.values()):
            return None
        run = run_of(a.aval, axis, ddof)
        if run is None or not keepdims:
            return run
        shape = a.aval.shape
        axes = reduced_axes(axis, len(shape))
        kept = tuple([1 if i in axes else n for i, n in enumerate(shape)])
        return lambda x: None if (found := run(x)) is None else np.reshape(found, kept)

    return direct


def _place(name: str) -> Direct:
    def run_of(aval: Aval, axis: Any, ddof: int) -> Run:
        return lambda x: getattr(x, name)(axis) if is_finite(x) else None

    return _over_axes(run_of)


def _is_sure(found: Any) -> bool:
    # Neither 0 nor nan; of one number without NumPy's loops, which take 0.5 µs each.
    if found.dtype.kind == "c":
        return _is_sure(found.real) and _is_sure(found.imag)
    if isinstance(found, np.generic):
        return bool(found) and bool(found == found)
    return count(found) == found.size and not count(found != found)


def _extremum(extremum: Any, skipping: Any) -> Direct:
    def run_of(aval: Aval, axis: Any, ddof: int) -> Run:
        half, parts = aval.dtype == FLOAT16, aval.dtype.kind == "c"

        def run(x: Any) -> Any:
            x = widened(x) if half else x
            found = skipping.reduce(x, axis=axis)
            if _is_sure(found):
                return found
            if parts:
                return None
            # The sign of a zero is NumPy's to choose, and where all is nan something is to be said.
            found = extremum.reduce(x, axis=axis)
            return None if count(found != found) else found

        return run

    return _over_axes(run_of, "fce")


nanmax = exact(1)(_extremum(extrema.maximum, np.fmax))
nanmin = exact(1)(_extremum(extrema.minimum, np.fmin))
nanargmax = exact(1)(_place("argmax"))
nanargmin = exact(1)(_place("argmin"))


def _sums(name: str) -> Direct:
    """nansum, nanmean, nanvar or nanstd, with the sums of `reduce_sum`."""

    def run_of(aval: Aval, axis: Any, ddof: int) -> Run | None:
        rank = aval.ndim
        axes = reduced_axes(axis, rank)
        shape = tuple([1 if i in axes else n for i, n in enumerate(aval.shape)])
        terms = math.prod([aval.shape[i] for i in axes])
        total: Any = reduce_sum.impl
        one = aval.dtype.type
        if aval.dtype.kind == "c" and name in ("var", "std"):
            # NumPy's, which writes no conjugates.
            spread = _spread(getattr(np, name), axis, ddof)
            return (lambda x: spread(x) if is_finite(x) else None) if terms > ddof else None
        all_terms, all_free = one(terms), one(terms - ddof)

        def run(x: Any) -> Any:
            good = None
            if not is_finite(x):
                good = x == x
                x = chosen(good, x, one(0))
            if name == "sum":
                return total(x, axes=axes)
            if good is None:
                n, free = all_terms, all_free
            else:
                counted = np.count_nonzero(good, axes)
                if not is_finite(x) or np.min(counted) <= ddof:
                    return None  # with infinities, or of too few
                n, free = np.asarray(counted, one), np.asarray(counted - ddof, one)
            mean = np.divide(total(x, axes=axes), n)
            if name == "mean":
                return mean
            rest = np.subtract(x, np.reshape(mean, shape))
            if good is not None:
                rest *= good
            rest *= rest
            var = np.divide(total(rest, axes=axes), free)
            return np.sqrt(var) if name == "std" else var

        return run if name == "sum" or terms > ddof else None

    return _over_axes(run_of, "fc")


def _spread(function: Any, axis: Any, ddof: int) -> Run:
    return lambda x: function(x, axis, ddof=ddof)


def _spreads(function: Any) -> Direct:
    """Of complex numbers, whose conjugates the operations would write."""

    def run_of(aval: Aval, axis: Any, ddof: int) -> Run | None:
        terms = math.prod([aval.shape[i] for i in reduced_axes(axis, aval.ndim)])
        return _spread(function, axis, ddof) if terms > ddof else None

    return _over_axes(run_of, "c")


var, std = _spreads(np.var), _spreads(np.std)
nansum, nanmean, nanvar, nanstd = map(_sums, ("sum", "mean", "var", "std"))
