"""The optional C extension: found here or nowhere, None where it is absent.

Everything in it exists in Python too and means the same. `PRIMAL_NO_EXTENSION=1` leaves it out,
which is how the tests run that other half on machines that have a compiler.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.caches import register
from primal.base.dtype_table import bfloat16

VERSION = 78
"""What the sources beside it expect; another build is older or newer than they are."""

extension: Any = None
if os.environ.get("PRIMAL_NO_EXTENSION", "").strip().lower() in ("", "0", "false", "no"):
    try:
        from primal.base import _fast  # type: ignore[attr-defined, unused-ignore]
    except ImportError:  # never built here, or for another Python or NumPy
        pass
    else:
        if getattr(_fast, "VERSION", None) == VERSION:
            extension = _fast

KEPT = 1 << 16
"""Bytes from which on `empty` uses memory again."""

empty: Callable[[tuple[int, ...], Any], Any] = np.empty
"""An array of a shape and dtype; big ones in memory of dead ones, whose pages are there."""


def _is_finite(x: Any) -> bool:
    # Half the time of np.isfinite(x).all(), and nan counts as other than 0.
    return not np.count_nonzero(np.subtract(x, x))


def _is_plain(x: Any) -> bool:
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    return _is_finite(x) and not any(np.count_nonzero(np.signbit(p) & (p == 0)) for p in parts)


def room_like(x: Any, dtype: Any) -> Any:
    """Memory that is kept, for a ufunc's result of x's shape, whose elements lie as x's do.

    A transposed operand read against the order of its memory takes twenty times as long. None
    where its axes lie in another order than rows or columns: NumPy follows it in new memory.
    """
    flags, strides = x.flags, x.strides
    if flags.c_contiguous or 0 in strides or all(map(operator.ge, strides, strides[1:])):
        return empty(x.shape, dtype)
    return empty(x.shape[::-1], dtype).T if flags.f_contiguous else None


def same_room(x: Any) -> Any:
    """Memory for a ufunc's result of x's type, where that is kept; None for smaller arrays."""
    return None if x.nbytes < KEPT else room_like(x, x.dtype)


def packed(x: Any) -> Any:
    """x without gaps between its elements: most loops, and counting, have no vector code for those,
    and for 100,000 a copy takes 15 us of the 40 to 140 that it saves. Small ones as they are."""
    if x.nbytes < KEPT or x.flags.forc:
        return x
    out = room_like(x, x.dtype)
    if out is None:
        return x.copy(order="K")
    np.copyto(out, x)
    return out


FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)
BFLOAT16 = bfloat16

IN_VECTORS: frozenset[Any] = frozenset(
    () if extension is None else (FLOAT16, BFLOAT16) if extension.by_eights() else (BFLOAT16,)
)
"""The floats of two bytes that `widened` and `narrowed` take faster than NumPy's casts and
ml_dtypes', which go number by number: what is exact, or rounded once, is computed in float32."""
FEW_NARROW: int = 256 if extension is None else extension.FEW_NARROW
"""How many of them NumPy's own arithmetic takes no longer than the way through float32 (squares of
100,000 float16 take 365 us, and 26)."""


def _widened(x: Any) -> Any:
    return np.asarray(x).astype(FLOAT32)


def _narrowed(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)


widened: Callable[[Any], Any] = _widened if extension is None else extension.widened
"""Narrow floats as float32; those of two bytes in vectors."""
narrowed: Callable[[Any, Any], Any] = _narrowed if extension is None else extension.narrowed
"""float32 as a dtype of narrow floats, rounded to even; to two bytes in vectors."""


_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
SAME_AS_WIDE = frozenset({
    np.add, np.subtract, np.multiply, np.true_divide, np.sqrt, np.square, np.floor, np.ceil,
    np.rint, np.trunc, *_COMPARISONS,
})  # fmt: skip
"""What NumPy and ml_dtypes compute of two bytes in float32, and round once."""


def by_float32(ufunc: Any, *xs: Any) -> Any:
    """One of these functions of more floats of two bytes than a few."""
    wide = [widened(x) for x in xs]
    if ufunc in _COMPARISONS:
        return ufunc(*wide)
    room = wide[0] if len({x.shape for x in wide}) == 1 else None
    return narrowed(ufunc(*wide, out=room), xs[0].dtype)


def _rounded(x: Any, dtype: Any) -> Any:
    return _widened(_narrowed(x, dtype))


rounded: Callable[[Any, Any], Any] = _rounded if extension is None else extension.rounded
"""float32 rounded to the numbers of a dtype of two bytes, in its own memory where it may be."""


def of_two(
    name: str, other: Callable[..., Any], dtypes: tuple[Any, ...] = (FLOAT32,)
) -> Callable[..., Any]:
    """The extension's function of two operands of one dtype where that is float32, or one of
    `dtypes`, in vectors where NumPy goes number by number; `other` for others, and without it."""
    own = getattr(extension, name, None)
    if own is None:
        return other
    return lambda x, y: (own if x.dtype in dtypes else other)(x, y)


nextafter = of_two("nextafter", np.nextafter, (FLOAT32, np.dtype(np.float64)))
fmod = of_two("fmod", np.fmod)
"""np.fmod, which NumPy computes bit by bit (100,000 float32 take 1.8 ms, in vectors 0.2)."""

chosen: Callable[[Any, Any, Any], Any] = np.where if extension is None else extension.choose
"""chosen(mask, x, y): np.where of one dtype of NumPy's; of arrays without dimensions a number.
Without jumps: 100,000 float32 take 12 us, np.where 365 where the mask has no order."""

broadcast: Callable[..., Any] | None = None if extension is None else extension.broadcast
"""broadcast(ufunc, *operands, out=None): the ufunc's result, in blocks where operands have sizes
of 1 and NumPy calls its loop row by row (333,333 x 3 float32 minus a row 100 us, not 1,800)."""

is_finite: Callable[[Any], bool] = _is_finite
"""Whether no number of an array, of a dtype of NumPy's and however it lies, is inf or nan."""
is_plain: Callable[[Any], bool] = _is_plain
"""Whether none is -0 either; of complex numbers, no part."""
if extension is not None:
    is_finite, is_plain = extension.is_finite, extension.is_plain
    empty = extension.empty
    register(extension.drop_memory)
