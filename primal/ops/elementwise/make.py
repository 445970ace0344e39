"""How the records of elementwise ops are made, and what their NumPy rules have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.dtypes import KIND, is_narrow_float
from primal.base.native import BFLOAT16, IN_VECTORS, narrowed, widened
from primal.ir.op import ELEMENTWISE, Op, by_kind
from primal.ops.types import NOT_LINEAR, nary

Rule = Callable[..., Any]


def unary(
    name: str,
    kinds: tuple[Any, ...],
    impl: Rule,
    jvp: Any,
    hlo: Any,
    kernel: Any = None,
    transpose: Any = NOT_LINEAR,
    out: Callable[[Any], Any] | None = None,
    written: Rule | None = None,
    folds: bool = True,
) -> Op:
    """An elementwise op with one operand; string rules name the builder's operation."""
    return Op(
        name=name,
        kind=ELEMENTWISE,
        type=nary(name, *kinds, out=out),
        impl=impl,
        jvp=jvp,
        transpose=transpose,
        batch=by_kind,
        shard=by_kind,
        hlo=_by_name(hlo) if isinstance(hlo, str) else hlo,
        kernel=kernel if kernel is not None else (lambda k, x: k.unary(name, x)),
        word=name if kernel is None else None,
        written=written,
        folds=folds,
    )


def _by_name(name: str) -> Rule:
    # An accuracy is what the op `accurate` passes on.
    return lambda b, x, accuracy=None: b.unary(name, x, accuracy)


def binary(
    name: str,
    kinds: tuple[Any, ...],
    impl: Rule,
    jvp: Any,
    hlo: Any,
    kernel: Any = None,
    transpose: Any = NOT_LINEAR,
    out: Callable[[Any], Any] | None = None,
    written: Rule | None = None,
    folds: bool = True,
) -> Op:
    """An elementwise op with two operands; string rules name the builder's operation."""
    return Op(
        name=name,
        kind=ELEMENTWISE,
        type=nary(name, *kinds, out=out),
        impl=impl,
        jvp=jvp,
        transpose=transpose,
        batch=by_kind,
        shard=by_kind,
        hlo=(lambda b, x, y: b.binary(hlo, x, y)) if isinstance(hlo, str) else hlo,
        kernel=kernel if kernel is not None else (lambda k, x, y: k.binary(name, x, y)),
        word=name if kernel is None else None,
        written=written,
        folds=folds,
    )


# NumPy knows the integers of 4 bits and fewer only by way of int8, to which most ufuncs widen
# them. The wrapper costs 0.1 µs, so floats' own ufuncs (sin, add, …) go without it.


def instead_of(ufunc: Rule, impl: Any, but: tuple[np.dtype[Any], ...] = ()) -> Rule:
    # Where the dtype is known to be one that the ufunc keeps, the ufunc itself may run; not of the
    # dtypes `but`, whose results are others.
    impl.but = but
    made: Rule = functools.update_wrapper(impl, ufunc, assigned=(), updated=())
    return made


def keeps_dtype(ufunc: Rule) -> Rule:
    """The ufunc of one operand with its result in the operand's dtype."""

    def impl(x: Any) -> Any:
        out = ufunc(x)
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return instead_of(ufunc, impl)


def keeps_dtype2(ufunc: Rule) -> Rule:
    """The ufunc of two operands with its result in their dtype."""

    def impl(x: Any, y: Any) -> Any:
        out = ufunc(x, y)
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return instead_of(ufunc, impl)


IN_FLOAT32: set[Any] = set()
"""NumPy's functions that are computed so of bfloat16."""


def in_vectors(fun: Rule) -> Rule:
    """The function, whose bfloat16 are computed in float32 and rounded once, as ml_dtypes does one
    by one (tanh of 100,000 1,560 us, and 70). NumPy has vector code for those of float16."""
    if BFLOAT16 not in IN_VECTORS:
        return fun

    def impl(*xs: Any) -> Any:
        if xs[0].dtype is not BFLOAT16:
            return fun(*xs)
        return narrowed(fun(*map(widened, xs)), BFLOAT16)

    def impl_of_ufunc(x: Any) -> Any:
        if x.dtype is not BFLOAT16:
            return fun(x)
        wide = widened(x)
        return narrowed(fun(wide, wide), BFLOAT16)

    if not isinstance(fun, np.ufunc):
        return impl
    IN_FLOAT32.add(fun)
    return instead_of(fun, impl_of_ufunc)


def in_float32(fun: Rule) -> Rule:
    """A composed function in which floats of at most 16 bits are computed in float32."""

    def impl(x: Any) -> Any:
        dtype = x.dtype
        if dtype.itemsize <= 2 and is_narrow_float(dtype):
            return narrowed(fun(widened(x)), dtype)
        return fun(x)

    return impl


def signed_view(x: Any) -> Any:
    """The bits of integers as signed ones; those of 4 bits and fewer as the values in int8."""
    return x.view(f"i{x.dtype.itemsize}") if x.dtype.kind in "iu" else _wide(x, signed=True)


def unsigned_view(x: Any) -> Any:
    """The bits of integers as unsigned ones; those of 4 bits and fewer as the bits in uint8."""
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind in "iu" else _wide(x, signed=False)


def bits_of(dtype: Any) -> int:
    """The number of bits of an integer dtype."""
    return dtype.itemsize * 8 if dtype.kind in "iu" else int(dtype.name.lstrip("uint"))


def _wide(x: Any, signed: bool) -> Any:
    bits = bits_of(x.dtype)
    low = (x.astype(np.int8).view(np.uint8) & np.uint8(2**bits - 1)) if bits < 8 else x
    if not signed:
        return low
    up = np.uint8(8 - bits)
    return (low << up).view(np.int8) >> up.astype(np.int8)


def is_integer(dtype: Any) -> bool:
    """Whether a dtype is an integer of any width."""
    return KIND[dtype] in "iu"
