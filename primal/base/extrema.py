"""The greater and the lesser of numbers as IEEE 754-2019 has them: -0 is below 0, and NaN wins.

NumPy returns either zero where 0 and -0 meet, by the instructions of the CPU and the place in the
array. All engines have to agree, so whoever runs on NumPy takes these instead of its ufuncs. The
extension has ufuncs of float32 and float64 that take NumPy's time, and of complex numbers, which
NumPy compares one by one (100,000 complex64 560 us, here 45). Without it, and for narrower
floats, a result without a zero costs one look at it, and one with zeros up to seven times that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base.native import IN_VECTORS, extension, narrowed, widened

__all__ = ["Extremum", "clamp", "maximum", "minimum"]

EXACT = frozenset([np.dtype(name) for name in ("f4", "f8", "c8", "c16") if extension is not None])
"""The dtypes of the extension's ufuncs."""


class Extremum:
    """`np.maximum` or `np.minimum`, and what these have for arrays, with signs of zeros.

    Where the greatest of some numbers is a zero, all others are zeros or negative: it is -0 if all
    have the sign, and the least is -0 if any has it.
    """

    def __init__(self, ufunc: Any, signs: Any) -> None:
        self.ufunc, self._signs = ufunc, signs
        self._exact: Any = getattr(extension, ufunc.__name__, None)

    def of(self, dtype: Any) -> Any:
        """This, or a ufunc that does the same for a dtype."""
        if dtype in EXACT:
            return self._exact
        return self if dtype.kind in "fV" else self.ufunc

    def __call__(self, x: Any, y: Any, out: Any = None, casting: Any = "same_kind") -> Any:
        if x.dtype in EXACT:
            return self._exact(x, y, out=out, casting=casting)
        if x.dtype in IN_VECTORS and out is None:
            return narrowed(self._exact(widened(x), widened(y)), x.dtype)
        found = self.ufunc(x, y)
        if _has_zeros(found):
            number = _number(y)
            if number is None:
                number = _number(x)
            if number == 0 and self._signs is np.logical_and and math.copysign(1, number) > 0:
                found += found.dtype.type(0)  # relu: what is greater is nowhere -0
            elif number is None or number == 0:
                found = _signed(found, self._signs(np.signbit(x), np.signbit(y)))
        if out is None:
            return found
        # `out` may be an operand, whose signs were asked for.
        np.copyto(out, found, casting)
        return out

    def reduce(self, x: Any, axis: Any = 0, dtype: Any = None) -> Any:
        """The extrema along axes."""
        if x.dtype in EXACT:
            return self._exact.reduce(x, axis=axis, dtype=dtype)
        if x.dtype in IN_VECTORS:
            return narrowed(self._exact.reduce(widened(x), axis=axis), x.dtype)
        out = self.ufunc.reduce(x, axis=axis, dtype=dtype)
        if _has_zeros(out):
            return _signed(out, self._signs.reduce(np.signbit(x), axis=axis))
        return out

    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None) -> Any:
        """The extrema so far along an axis."""
        if x.dtype in EXACT:
            return self._exact.accumulate(x, axis=axis, dtype=dtype)
        if x.dtype in IN_VECTORS:
            return narrowed(self._exact.accumulate(widened(x), axis=axis), x.dtype)
        out = self.ufunc.accumulate(x, axis=axis, dtype=dtype)
        if _has_zeros(out):
            return _signed(out, self._signs.accumulate(np.signbit(x), axis=axis))
        return out

    def at(self, x: Any, index: Any, values: Any) -> None:
        """x[index] and the values, written to x one after the other."""
        if x.dtype.kind not in "fV":
            self.ufunc.at(x, index, values)
            return
        # Not by the extension's ufuncs: NumPy's have loops for indices, five times as fast, which
        # those of booleans lack too. A zero that met no other is the element's own.
        signs = np.signbit(x).view(np.uint8) if _has_zeros(values) else None
        self.ufunc.at(x, index, values)
        if signs is not None and _has_zeros(x):
            join = np.minimum if self._signs is np.logical_and else np.maximum
            join.at(signs, index, np.signbit(values).view(np.uint8))
            _signed(x, signs != 0)


maximum = Extremum(np.maximum, np.logical_and)
minimum = Extremum(np.minimum, np.logical_or)


def clamp(low: Any, x: Any, high: Any) -> Any:
    """min(max(x, low), high)"""
    if x.dtype in EXACT:
        return extension.clamp(low, x, high)
    if x.dtype in IN_VECTORS:
        return narrowed(extension.clamp(widened(low), widened(x), widened(high)), x.dtype)
    if x.size > 1024 and x.dtype.isbuiltin == 1 and not (np.ndim(low) and np.ndim(high)):
        out = np.clip(x, low, high)  # which has vector code for bounds that are numbers
    else:  # and these for arrays: of 100,000 bytes 6 and 3 us, the other way round 60 and 70
        out = np.maximum(x, low)
        out = np.minimum(out, high, out=out if out.shape == np.shape(high) != () else None)
    if _has_zeros(out):  # whose signs a second look at the bounds tells
        out = minimum(maximum(x, low), high)
    return out


def _has_zeros(x: Any) -> bool:
    """Whether floats hold a zero; integers have one of them."""
    kind = x.dtype.kind
    if kind == "f":
        # Counting takes a third of the time where calls count, and thrice where memory does.
        return np.count_nonzero(x) != x.size if x.size < 1024 else not x.all()
    return kind == "V" and "float" in x.dtype.name and bool((x == 0).any())


def _number(x: Any) -> float | None:
    """The number that an operand is, if it is one."""
    return None if type(x) is np.ndarray and x.ndim else float(x)


def _signed(x: Any, negative: Any) -> Any:
    """x with zeros of those signs, written to it if it is an array."""
    x = np.asarray(x)
    np.add(x, x.dtype.type(0), out=x)  # which makes -0 zeros
    # By their bits: assigning where a mask is set takes twenty times as long.
    bits = x.view(f"u{x.dtype.itemsize}")
    signs = ((x == 0) & negative).astype(bits.dtype)
    np.bitwise_or(bits, signs << bits.dtype.type(8 * x.dtype.itemsize - 1), out=bits)
    return x
