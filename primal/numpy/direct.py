"""Eager calls that NumPy answers in one piece, with the same results to the last bit.

A function of a dozen operations takes a dozen calls of NumPy where NumPy has a function of its own
(`floor_divide`, `gcd`, `searchsorted`). `remembered(direct=...)` is given a function of the call's
arguments that returns what to run on their memory, or None where the meanings differ: other dtypes,
mixed operands, options. What is run may itself return None, for values where they differ, and then
the operations run after all. Tests hold both against each other on the values that are special.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.config import settings
from primal.runtime.array import ArrayImpl

Direct = Callable[..., Callable[..., Any] | None]
_count = np.count_nonzero


def _dtype_of(args: tuple[Any, ...]) -> Any:
    """The one dtype of the arrays among the arguments if NumPy has it and scalars adopt it."""
    found = {x.aval.dtype for x in args if type(x) is ArrayImpl}
    if len(found) != 1:
        return None
    (dtype,) = found
    if not isinstance(dtype, np.dtype) or dtype.isbuiltin != 1 or dtype == np.float16:
        return None
    for x in args:
        if type(x) is int and dtype.kind in "iu":
            if not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
                return None
        elif type(x) is not ArrayImpl and (type(x) not in (int, float) or dtype.kind != "f"):
            return None
    return dtype


def elementwise(**by_kind: Callable[..., Any]) -> Direct:
    """A function of arrays and scalars of one dtype, named per kind of dtype: `f=np.floor`."""

    def direct(*args: Any) -> Callable[..., Any] | None:
        dtype = _dtype_of(args)
        run = None if dtype is None else by_kind.get(dtype.kind)
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


def _unless_zero(function: Any) -> Callable[..., Any]:
    """An integer division where no divisor is 0: what that gives is not what NumPy says."""
    return lambda x, y: function(x, y) if _count(y) == y.size else None


def _finite(x: Any) -> bool:
    # Half the time of np.isfinite(x).all(), and nan counts as other than 0.
    return not _count(np.subtract(x, x))


def _floor_divide(x: Any, y: Any) -> Any:
    out = np.floor_divide(x, y)
    # Zeros and what is not finite have signs and cases of their own.
    return out if _count(out) == out.size and _finite(out) else None


def _remainder(x: Any, y: Any) -> Any:
    return _zeros_as(x, np.remainder(x, y))


def _zeros_as(x: Any, out: Any) -> Any:
    """NumPy gives a remainder of 0 the sign of the divisor, the language that of the dividend."""
    out = np.asarray(out)
    return out if _count(out) == out.size else np.copysign(out, x, where=out == 0, out=out)


def _divmod(x: Any, y: Any) -> Any:
    out, rest = np.divmod(x, y)
    return (out, _zeros_as(x, rest)) if _count(out) == out.size and _finite(out) else None


def _integer_divmod(x: Any, y: Any) -> Any:
    return np.divmod(x, y) if _count(y) == y.size else None


def _integer_power(x: Any, y: Any) -> Any:
    # Of other exponents the language takes six bits.
    return None if _count(y >> 6) else np.power(x, y)


def _modf(x: Any) -> Any:
    return np.modf(x) if _finite(x) else None


def _frexp(x: Any) -> Any:
    return np.frexp(x) if _finite(x) else None


floor_divide = elementwise(
    f=_floor_divide, i=_unless_zero(np.floor_divide), u=_unless_zero(np.floor_divide)
)
remainder = elementwise(f=_remainder, i=_unless_zero(np.remainder), u=_unless_zero(np.remainder))
divmod = elementwise(f=_divmod, i=_integer_divmod, u=_integer_divmod)
power = elementwise(i=_integer_power, u=_integer_power)
gcd = elementwise(i=np.gcd, u=np.gcd)
lcm = elementwise(i=np.lcm, u=np.lcm)
copysign = elementwise(f=np.copysign)
heaviside = elementwise(f=np.heaviside)
modf = elementwise(f=_modf)
frexp = elementwise(f=_frexp)


def ldexp(x: Any, n: Any, /) -> Callable[..., Any] | None:
    """x · 2**n for float32 or float64 and int32."""
    if type(x) is not ArrayImpl or type(n) is not ArrayImpl or n.aval.dtype != np.int32:
        return None
    return np.ldexp if _dtype_of((x,)) in (np.float32, np.float64) else None


def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Callable[..., Any] | None:
    """Places in a vector that ascends; in one that does not, both are free to say anything."""
    dtype = _dtype_of((a, v))
    if dtype is None or type(a) is not ArrayImpl or sorter is not None or a.aval.ndim != 1:
        return None
    if type(v) is ArrayImpl:
        return lambda a, v: a.searchsorted(v, side).astype(np.int32)
    v = np.asarray(v, dtype)
    return lambda a: a.searchsorted(v, side).astype(np.int32)


def digitize(
    x: Any, bins: Any, right: bool = False, *, method: Any = None
) -> Callable[..., Any] | None:
    """Places among edges that rise or fall."""
    if type(x) is not ArrayImpl or type(bins) is not ArrayImpl or _dtype_of((x, bins)) is None:
        return None
    n = bins.aval.size
    if bins.aval.ndim != 1 or not n:
        return None
    side: Any = "left" if right else "right"

    def run(x: Any, bins: Any) -> Any:
        if bins[-1] >= bins[0]:
            return bins.searchsorted(x, side).astype(np.int32)
        return (n - bins[::-1].searchsorted(x, side)).astype(np.int32)

    return run


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, **_: Any
) -> Callable[..., Any] | None:
    """Each of a few elements beside each of a few others."""
    if type(element) is not ArrayImpl or type(test_elements) is not ArrayImpl:
        return None
    if _dtype_of((element, test_elements)) is None:
        return None
    if element.aval.size * test_elements.aval.size > 4096 or not test_elements.aval.size:
        return None

    def run(x: Any, tests: Any) -> Any:
        found = np.equal(x[..., None], tests.reshape(-1)).any(-1)
        return ~found if invert else found

    return run


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, **options: Any
) -> Callable[..., Any] | None:
    """Elements along an axis, where every index is within bounds."""
    if type(arr) is not ArrayImpl or type(indices) is not ArrayImpl or options:
        return None
    if _dtype_of((arr,)) is None or indices.aval.dtype != np.int32 or type(axis) is not int:
        return None
    if mode not in (None, "fill", "clip") or arr.aval.ndim != indices.aval.ndim:
        return None
    n = arr.aval.shape[axis]

    def run(x: Any, i: Any) -> Any:
        if not i.size or i.min() < 0 or i.max() >= n:
            return None
        return np.take_along_axis(x, i, axis)

    return run


def packbits(a: Any, axis: int | None = None, bitorder: Any = "big") -> Callable[..., Any] | None:
    """Eight bits each."""
    if type(a) is not ArrayImpl or a.aval.dtype != np.bool_ or not a.aval.ndim:
        return None
    return lambda x: np.packbits(x, axis, bitorder)


def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Callable[..., Any] | None:
    """Stable order; of large arrays, the operation's own passes are faster."""
    if type(a) is not ArrayImpl or _dtype_of((a,)) is None or a.aval.dtype.kind not in "biuf":
        return None
    if kind is not None or order is not None or descending or dtype is not None:
        return None
    if a.aval.size > 4096 or not a.aval.ndim:
        return None
    return lambda x: x.argsort(axis, "stable").astype(np.int32)


def sort(a: Any, axis: int = -1, **options: Any) -> Callable[..., Any] | None:
    """Elements in order; equal elements that can be told apart are zeros of two signs."""
    if type(a) is not ArrayImpl or _dtype_of((a,)) is None or a.aval.dtype.kind not in "biuf":
        return None
    if options.get("kind") is not None or options.get("descending") or axis is None:
        return None
    if options.get("order") is not None or a.aval.size > 4096 or not a.aval.ndim:
        return None

    def run(x: Any) -> Any:
        out = x.copy()
        out.sort(axis, "stable")
        return out

    return run


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Callable[..., Any] | None:
    """A diagonal of a matrix, or of each of several."""
    if type(a) is not ArrayImpl or _dtype_of((a,)) is None:
        return None
    return lambda x: x.diagonal(offset, axis1, axis2)


def diag(v: Any, k: int = 0) -> Callable[..., Any] | None:
    """A matrix with a diagonal, or a matrix's diagonal."""
    return (lambda x: np.diag(x, k)) if type(v) is ArrayImpl and _dtype_of((v,)) else None
