"""What the operands must be for NumPy to mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.config import settings
from primal.base.dtypes import to_inexact_dtype
from primal.runtime.array import ArrayImpl

Direct = Callable[..., Callable[..., Any] | None]
count = np.count_nonzero

EXPONENT_BITS = 6
"""What the language reads of exponents of whole numbers that are no known scalar, beside whether
they are 0: beyond 63 only powers of 0 and ±1 fit."""


def small_exponent(n: int) -> int:
    """A known exponent as a number that every integer dtype holds and that reads the same."""
    size = 1 << EXPONENT_BITS
    return n if n < size else size + n % size


def is_array(x: Any, kinds: str = "biufc") -> bool:
    """Whether x is an array of a dtype of these kinds that NumPy computes in.

    float16, in which NumPy rounds elsewhere than the operations, counts where `kinds` has an e:
    for what moves numbers, compares them or is exact.
    """
    if type(x) is not ArrayImpl:
        return False
    dtype = x.aval.dtype
    return (
        isinstance(dtype, np.dtype)
        and dtype.isbuiltin == 1
        and dtype.kind in kinds
        and (dtype != np.float16 or "e" in kinds)
    )


ANY = "biufce"


def is_axis(axis: Any) -> bool:
    """Whether it is None, a number, or a tuple of numbers."""
    if type(axis) is tuple:
        return all(type(i) is int for i in axis)
    return axis is None or type(axis) is int


def dtype_of(args: tuple[Any, ...], kinds: str = "biufc") -> Any:
    """The one dtype of the arrays among the arguments if NumPy has it and scalars adopt it."""
    found = {x.aval.dtype for x in args if type(x) is ArrayImpl}
    if len(found) != 1 or not all(is_array(x, kinds) for x in args if type(x) is ArrayImpl):
        return None
    (dtype,) = found
    for x in args:
        if type(x) is int and dtype.kind in "iu":
            if not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
                return None
        elif type(x) is not ArrayImpl and (type(x) not in (int, float) or dtype.kind not in "fc"):
            return None
    return dtype


def elementwise(of_floats: bool = False, **by_kind: Callable[..., Any]) -> Direct:
    """A function of arrays and scalars of one dtype, named per kind of dtype: `f=np.floor`.

    One `of_floats` takes integers as the floats that the language promotes them to. `e` is the
    function of float16.
    """

    def direct(*args: Any) -> Callable[..., Any] | None:
        dtype = dtype_of(args, ANY)
        if of_floats and dtype is not None and dtype.kind in "iu":
            run = by_kind["f"]
            if not all(type(x) is ArrayImpl for x in args):
                return None
            wide = to_inexact_dtype(dtype)
            return lambda *hosts: run(*[x.astype(wide) for x in hosts])
        run = None if dtype is None else by_kind.get("e" if dtype == np.float16 else dtype.kind)
        if run is None or settings().numpy_rank_promotion != "allow":
            return None
        if len(args) == 1 or all(type(x) is ArrayImpl for x in args):
            return run
        x, y = args
        if type(x) is ArrayImpl:
            y = np.asarray(y, dtype)
            return lambda a: run(a, y)
        x = np.asarray(x, dtype)
        return lambda a: run(x, a)

    return direct


def common_dtype(arrays: tuple[Any, ...]) -> Any:
    """What arrays promote to where that is the dtype of one of them: all have it, or it is the
    one dtype of floats among them.
    """
    if not all(is_array(x, "biufe") for x in arrays):
        return None
    found = {x.aval.dtype for x in arrays}
    floats = {dtype for dtype in found if dtype.kind == "f"}
    wanted = found if len(found) == 1 else floats
    return next(iter(wanted)) if len(wanted) == 1 else None


def as_dtype(x: Any, dtype: Any) -> Any:
    """x itself where it has the dtype."""
    return x if x.dtype is dtype else x.astype(dtype)
