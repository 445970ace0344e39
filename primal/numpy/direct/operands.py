"""What the operands must be for NumPy to mean the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.config import settings
from primal.base.dtypes import KIND, python_scalar_dtype, to_inexact_dtype
from primal.base.native import BFLOAT16, FLOAT16, FLOAT32, widened
from primal.base.promotion import lattice_result
from primal.ir.avals import Aval
from primal.ops.elementwise.convert import in_bytes
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
    for what moves numbers, compares them or is exact; bfloat16 where it has a w, for what moves
    them. What is exact has that by way of float32 (`exact`).
    """
    if type(x) is not ArrayImpl:
        return False
    dtype = x.aval.dtype
    if dtype == BFLOAT16:
        return "w" in kinds
    return (
        isinstance(dtype, np.dtype)
        and dtype.isbuiltin == 1
        and dtype.kind in kinds
        and (dtype != np.float16 or "e" in kinds)
    )


ANY = "biufce"
MOVED = ANY + "w"


def is_axis(axis: Any) -> bool:
    """Whether it is None, a number, or a tuple of numbers."""
    if type(axis) is tuple:
        return all(type(i) is int for i in axis)
    return axis is None or type(axis) is int


def reduced_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that one names, or several, or None."""
    given = range(rank) if axis is None else (axis,) if type(axis) is int else axis
    return tuple(sorted({i % rank for i in given}))


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
        elif type(x) is not ArrayImpl and (type(x) not in (int, float) or KIND[dtype] not in "fc"):
            return None
    return dtype


def elementwise(of_floats: bool = False, **by_kind: Callable[..., Any] | None) -> Direct:
    """A function of arrays and scalars, named per kind of their dtype: `f=np.floor`.

    One `of_floats` takes integers and booleans as the floats that the language promotes them to.
    Operands of several dtypes are promoted first.
    `e` is the function of float16, `w` that of bfloat16 as float32, whose result is rounded once,
    or `w_own` one of bfloat16 itself.
    None where there is none.
    """
    of_wide = by_kind.get("w")
    by_kind["w"] = by_kind.get("w_own") if of_wide is None else _of_wide(of_wide)

    def direct(*args: Any) -> Callable[..., Any] | None:
        dtype = dtype_of(args, MOVED)
        mixed = dtype is None
        if mixed and (dtype := _promoted(args)) is None:
            return None
        run, wide = by_kind.get(_KINDS.get(dtype, dtype.kind)), dtype
        if of_floats and dtype.kind in "biu":
            run, wide = by_kind["f"], to_inexact_dtype(dtype)
        if run is None:
            return None
        if settings().numpy_rank_promotion != "allow":
            ranks = {x.aval.ndim for x in args if type(x) is ArrayImpl}
            if len(ranks - {0}) > 1:
                return None
        if mixed or wide is not dtype:
            run = _of_dtypes(run, dtype, wide)
        if len(args) == 1 or all(type(x) is ArrayImpl for x in args):
            return run
        x, y = args
        if type(x) is ArrayImpl:
            y = np.asarray(y, wide)
            return lambda a: run(a, y)
        x = np.asarray(x, wide)
        return lambda a: run(x, a)

    return direct


def _of_dtypes(function: Any, dtype: Any, wide: Any) -> Callable[..., Any]:
    """The function of operands in the dtype that they promote to, computed in another one."""
    if wide is dtype:
        return lambda *hosts: function(*[as_dtype(x, dtype) for x in hosts])
    return lambda *hosts: function(*[as_dtype(as_dtype(x, dtype), wide) for x in hosts])


def _promoted(args: tuple[Any, ...]) -> Any:
    """The dtype of an expression over arrays and scalars of several dtypes that NumPy has."""
    pairs = []
    for x in args:
        if type(x) in (int, float):
            pairs.append((python_scalar_dtype(type(x)), True))
        elif is_array(x, MOVED):
            pairs.append((x.aval.dtype, x.aval.weak_type))
        else:
            return None
    dtype, _ = lattice_result(pairs)
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        if not all(ends.min <= x <= ends.max for x in args if type(x) is int):
            return None
    return dtype


_KINDS = {np.dtype(np.float16): "e", BFLOAT16: "w"}
FLOAT64 = np.dtype(np.float64)


def by_wide(function: Any) -> Any:
    """A function of float16 that is computed in float32 and rounded once."""
    return lambda *xs: function(*[widened(x) for x in xs])


def _of_wide(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *hosts: function(*[widened(x) if x.dtype == BFLOAT16 else x for x in hosts])


def exact(values: int) -> Callable[[Direct], Direct]:
    """A direct function that rounds nothing also of bfloat16, as of float32, which has its numbers.

    The first `values` arguments hold numbers, those after them say how.
    """

    def decorate(direct: Direct) -> Direct:
        def both(*args: Any, **kwargs: Any) -> Callable[..., Any] | None:
            given = [_as_wide(x) for x in args[:values]]
            if all(x is y for x, y in zip(given, args, strict=False)):
                return direct(*args, **kwargs)
            if not all(map(_has_all_digits, given)):
                return None
            run = direct(*given, *args[values:], **kwargs)
            return None if run is None else _of_wide(run)

        return functools.update_wrapper(both, direct)

    return decorate


def _has_all_digits(x: Any) -> bool:
    # Scalars and integers beside bfloat16 are to be rounded to it first.
    return type(x) in (tuple, list) or (type(x) is ArrayImpl and x.aval.dtype.kind not in "iu")


def rounded_once(values: int) -> Callable[[Direct], Direct]:
    """A direct function of floats also of whole numbers: in float64, as NumPy takes them.

    Of float32, to which the language promotes them, exp(-100) is subnormal and slow (softplus of
    1,000 such 33 µs, in float64 10), and each step would round. float16 as in `halves_too`.
    """
    return lambda direct: _by_way_of(
        FLOAT64, lambda x: is_array(x, "biu"), values, halves_too(values)(direct)
    )


def halves_too(values: int) -> Callable[[Direct], Direct]:
    """A direct function of floats also of float16, where it has none: in float32, rounded once."""
    return lambda direct: _by_way_of(
        FLOAT32, lambda x: is_array(x, "fe") and x.aval.dtype == FLOAT16, values, direct
    )


def _by_way_of(
    wide: Any, fits: Callable[[Any], bool], values: int, direct: Direct
) -> Direct:
    def both(*args: Any, **kwargs: Any) -> Callable[..., Any] | None:
        given = args[:values]
        if not given or not all(map(fits, given)):
            return direct(*args, **kwargs)
        if wide is FLOAT32 and (run := direct(*args, **kwargs)) is not None:
            return run
        floats = [_standing_for(x, wide) for x in given]
        run = direct(*floats, *args[values:], **kwargs)
        if run is None:
            return None
        return _of_dtypes(run, wide, wide) if wide is FLOAT64 else by_wide(run)

    return functools.update_wrapper(both, direct)


def _standing_for(x: ArrayImpl, dtype: Any) -> ArrayImpl:
    """An array of its shape in another dtype, for decisions alone."""
    return ArrayImpl(Aval(x.shape, dtype), np.broadcast_to(dtype.type(0), x.shape))


def _as_wide(x: Any) -> Any:
    """An array of float32 of its shape in the place of one of bfloat16, for decisions alone."""
    if type(x) is tuple or type(x) is list:
        items = [_as_wide(item) for item in x]
        return x if all(a is b for a, b in zip(items, x, strict=True)) else items
    if type(x) is not ArrayImpl or x.aval.dtype != BFLOAT16:
        return x
    return _standing_for(x, FLOAT32)


def common_dtype(arrays: tuple[Any, ...], kinds: str = ANY) -> Any:
    """What arrays promote to where that is the dtype of one of them: all have it, or it is the
    one dtype of floats among them, or that of complex numbers with parts of it.
    """
    if not all(is_array(x, kinds) for x in arrays):
        return None
    found = {x.aval.dtype for x in arrays}
    floats = {dtype for dtype in found if dtype.kind == "f"}
    pairs = {dtype for dtype in found if dtype.kind == "c"}
    if pairs:
        floats = pairs if floats <= {dtype.type(0).real.dtype for dtype in pairs} else set()
    wanted = found if len(found) == 1 else floats
    return next(iter(wanted)) if len(wanted) == 1 else None


def as_dtype(x: Any, dtype: Any) -> Any:
    """x itself where it has the dtype."""
    return x if x.dtype is dtype else in_bytes(x).astype(dtype)
