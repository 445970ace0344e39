"""The neutral elements of the monoids that reductions, scans and windows combine by.

A monoid has the name it has in the operations of an engine: add, multiply, maximum, minimum, and,
or, xor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import caches, dtypes
from primal.base.limits import finfo, iinfo


@caches.memo
def identity(monoid: str, dtype: Any) -> Any:
    """The value e with e ∘ x = x for all x of the dtype, as a NumPy scalar.

    The dtype is one the monoid is defined for. KeyError for other names.

    >>> identity("maximum", np.dtype("i1")), identity("and", np.dtype("u1"))
    (np.int8(-128), np.uint8(255))
    """
    return _IDENTITIES[monoid](dtype)


def lowest(dtype: Any) -> Any:
    """The identity of the maximum: -inf, or the smallest value where there is none."""
    return _extreme(dtype, -1)


def highest(dtype: Any) -> Any:
    """The identity of the minimum: inf, or the largest value where there is none."""
    return _extreme(dtype, 1)


def _extreme(dtype: Any, side: int) -> Any:
    if dtype == np.bool_:
        return np.bool_(side > 0)
    if dtype.kind == "c":
        part = dtype.type(0).real.dtype.type(side * np.inf)
        return dtype.type(complex(part, part))
    if dtypes.issubdtype(dtype, np.integer):
        info = iinfo(dtype)
        return np.asarray(int(info.min if side < 0 else info.max)).astype(dtype)[()]
    info = finfo(dtype)
    with np.errstate(all="ignore"):
        value = np.asarray(side * np.inf).astype(dtype)
    if np.isinf(value):
        return value[()]
    # Some 8-bit floats have no infinity and turn it into nan.
    return np.asarray(info.min if side < 0 else info.max).astype(dtype)[()]


def _all_bits(dtype: Any) -> Any:
    return dtype.type(-1) if dtypes.kind_of(dtype) == "i" else highest(dtype)


_IDENTITIES: dict[str, Callable[[Any], Any]] = {
    "add": lambda dtype: dtype.type(0),
    "multiply": lambda dtype: dtype.type(1),
    "maximum": lowest,
    "minimum": highest,
    "and": _all_bits,
    "or": lambda dtype: dtype.type(0),
    "xor": lambda dtype: dtype.type(0),
}
