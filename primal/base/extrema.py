"""The greater and the lesser of numbers as IEEE 754-2019 has them: -0 is below 0, and NaN wins.

NumPy returns either zero where 0 and -0 meet, by the instructions of the CPU and the place in the
array. All engines have to agree, so whoever runs on NumPy takes these instead of its ufuncs. A
result that holds no zero costs one look at it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Extremum", "has_zeros", "maximum", "minimum", "plus_zero"]


class Extremum:
    """`np.maximum` or `np.minimum`, and what these have for arrays, with signs of zeros.

    Where the greatest of some numbers is a zero, all others are zeros or negative: it is -0 if all
    have the sign, and the least is -0 if any has it.
    """

    def __init__(self, ufunc: Any, signs: Any) -> None:
        self.ufunc, self._signs = ufunc, signs

    def __call__(self, x: Any, y: Any, out: Any = None, casting: Any = "same_kind") -> Any:
        found = self.ufunc(x, y)
        if has_zeros(found):
            number = _number(y)
            if number is None:
                number = _number(x)
            if number == 0 and self._signs is np.logical_and and math.copysign(1, number) > 0:
                found = plus_zero(found)  # relu: what is greater is nowhere -0
            elif number is None or number == 0:
                found = _signed(found, self._signs(np.signbit(x), np.signbit(y)))
        if out is None:
            return found
        # `out` may be an operand, whose signs were asked for.
        np.copyto(out, found, casting)
        return out

    def reduce(self, x: Any, axis: Any = 0, dtype: Any = None) -> Any:
        """The extrema along axes."""
        out = self.ufunc.reduce(x, axis=axis, dtype=dtype)
        if has_zeros(out):
            return _signed(out, self._signs.reduce(np.signbit(x), axis=axis))
        return out

    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None) -> Any:
        """The extrema so far along an axis."""
        out = self.ufunc.accumulate(x, axis=axis, dtype=dtype)
        if has_zeros(out):
            return _signed(out, self._signs.accumulate(np.signbit(x), axis=axis))
        return out

    def at(self, x: Any, index: Any, values: Any) -> None:
        """x[index] and the values, written to x one after the other."""
        if x.dtype.kind not in "fV":
            self.ufunc.at(x, index, values)
            return
        signs = np.signbit(x)
        self.ufunc.at(x, index, values)
        if has_zeros(x):
            self._signs.at(signs, index, np.signbit(values))
            _signed(x, signs)


maximum = Extremum(np.maximum, np.logical_and)
minimum = Extremum(np.minimum, np.logical_or)


def has_zeros(x: Any) -> bool:
    """Whether floats hold a zero; integers have one of them."""
    kind = x.dtype.kind
    if kind == "f":
        # Counting takes a third of the time where calls count, and thrice where memory does.
        return np.count_nonzero(x) != x.size if x.size < 1024 else not x.all()
    return kind == "V" and "float" in x.dtype.name and bool((x == 0).any())


def plus_zero(x: Any) -> Any:
    """x without the signs of its zeros, in place if it is an array."""
    x += x.dtype.type(0)
    return x


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
