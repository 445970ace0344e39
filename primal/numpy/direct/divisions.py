"""Quotients and remainders."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.native import (
    BFLOAT16,
    FLOAT16,
    IN_VECTORS,
    extension,
    is_finite,
    of_two,
)
from primal.numpy.direct.operands import Direct, count, elementwise

# Over 0 a quotient of whole numbers has all bits set, from which that of signed numbers but 0 is
# rounded down; the remainder is 0, as in NumPy.


def _whole_quotient(x: Any, y: Any) -> Any:
    return _over_zero(np.floor_divide(x, y), x, y)


def _over_zero(out: Any, x: Any, y: Any) -> Any:
    if not y.ndim and y:
        return out
    if extension is not None and type(out) is np.ndarray:
        if extension.over_zero(out, *[_spread(v, out.shape) for v in (x, y)]):
            return out
    if count(y) == y.size:
        return out
    out, zero = np.asarray(out), y == 0
    np.copyto(out, -1 - (x != 0) if out.dtype.kind == "i" else ~out.dtype.type(0), where=zero)
    return out


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    out = np.empty(shape, x.dtype)  # written at once: np.broadcast_to takes 2.5 µs
    np.copyto(out, x)
    return out


# In the language a remainder of 0 has the sign of the dividend and a quotient of 0 that of the
# divisor; in NumPy, that of the divisor and that of both. The extension's are the language's.


def _floor_divide(x: Any, y: Any) -> Any:
    out = np.asarray(np.floor_divide(x, y))
    return out if give_zeros_signs(out, y) and _are_whole(out) else None


def _are_whole(out: Any) -> bool:
    """Whether the roundings of quotients leave no halves, which NumPy and the language put on
    different sides."""
    least = 2.0**22 if out.dtype.itemsize == 4 else 2.0**51
    return bool(np.maximum.reduce(np.abs(out), None, initial=0) < least)


def _remainder(x: Any, y: Any) -> Any:
    out = np.asarray(np.remainder(x, y))
    give_zeros_signs(out, x)
    return out


def _divmod(x: Any, y: Any) -> Any:
    out, rest = np.divmod(x, y)
    out, rest = np.asarray(out), np.asarray(rest)
    give_zeros_signs(rest, x)
    return (out, rest) if give_zeros_signs(out, y) and _are_whole(out) else None


def _signs_by_numpy(out: Any, x: Any) -> bool:
    if count(out) < out.size:
        np.copysign(out, x, where=out == 0, out=out)
    return is_finite(out)


def give_zeros_signs(out: Any, x: Any) -> bool:
    """Give zeros of `out` the signs of x, in place; whether all of it is finite."""
    if extension is None:
        return _signs_by_numpy(out, x)
    found = extension.zeros_like(out, _spread(x, out.shape) if x.size > 1 else x)
    return _signs_by_numpy(out, x) if found is None else found


def _integer_divmod(x: Any, y: Any) -> Any:
    out, rest = np.divmod(x, y)
    return _over_zero(out, x, y), rest


# Floats of two bytes NumPy and ml_dtypes divide number by number, and round fewer of the steps.


def _half_divmod(x: Any, y: Any) -> Any:
    if x.shape != y.shape:
        # Which takes 2 us of three.
        several = x.ndim and y.ndim
        shape = np.broadcast_shapes(x.shape, y.shape) if several else x.shape or y.shape
        x, y = _spread(x, shape), _spread(y, shape)
    return extension.half_divmod(x, y)


def _half_quotient(x: Any, y: Any) -> Any:
    return _half_divmod(x, y)[0]


def _half_rest(x: Any, y: Any) -> Any:
    return _half_divmod(x, y)[1]


def as_bytes(function: Any) -> Any:
    """Of booleans, which become integers, whose results of 0 and 1 a byte holds."""
    return lambda *xs: function(*[x.view(np.int8) for x in xs])


def _division(name: str, half: Any, wide: Any, whole: Any) -> Direct:
    """Of floats of two bytes, where the CPU has them in vectors, of wide ones and of integers."""
    e, w = [half if dtype in IN_VECTORS else None for dtype in (FLOAT16, BFLOAT16)]
    wide = of_two(name, wide)
    return elementwise(e=e, w_own=w, f=wide, i=whole, u=whole, b=as_bytes(whole))


floor_divide = _division("floor_divide", _half_quotient, _floor_divide, _whole_quotient)
remainder = _division("remainder", _half_rest, _remainder, np.remainder)
divmod = _division("divmod", _half_divmod, _divmod, _integer_divmod)
