"""The neutral elements of the monoids that reductions, scans and windows combine by.

A monoid has the name it has in the operations of an engine: add, multiply, maximum, minimum, and,
or, xor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes


def identity(monoid: str, dtype: Any) -> Any:
    """The value e with e ∘ x = x for all x of the dtype, as a NumPy scalar.

    The dtype is one the monoid is defined for.

    >>> identity("maximum", np.dtype("i1")), identity("and", np.dtype("u1"))
    (np.int8(-128), np.uint8(255))
    """
    if monoid == "maximum":
        return lowest(dtype)
    if monoid == "minimum":
        return highest(dtype)
    if monoid == "and":
        return dtype.type(-1) if dtypes.kind_of(dtype) == "i" else highest(dtype)
    return dtype.type(1 if monoid == "multiply" else 0)


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
        info = dtypes.iinfo(dtype)
        return np.asarray(int(info.min if side < 0 else info.max)).astype(dtype)[()]
    info = dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        value = np.asarray(side * np.inf).astype(dtype)
    if np.isinf(value):
        return value[()]
    # Some 8-bit floats have no infinity and turn it into nan.
    return np.asarray(info.min if side < 0 else info.max).astype(dtype)[()]
