"""Operations on NumPy's own dtypes as expressions, for programs that run as Python source.

An `impl` serves every dtype and form of its operation, and asks which one it has. In a program the
avals are known, so the question is answered once: a division of floats is `np.true_divide`, a
reshape a method of the array. Saves 0.1 to 0.4 µs an operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import KIND
from primal.base.native import FLOAT16, FLOAT32, IN_VECTORS, broadcast, narrowed, widened
from primal.ir.avals import Aval
from primal.ir.jaxpr import Eqn, Var
from primal.ir.op import SHAPE, Bound
from primal.ir.trace import Literal
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import div
from primal.ops.spread import broadcast_in_dim, reduce_sum


def phrase(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    """The expression for an equation of operands with these names; None where `impl` is to run."""
    if eqn.op is convert_element_type:
        old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
        if old in IN_VECTORS and new == FLOAT32:
            return f"{bound(widened)}({data[0]})"
        if new in IN_VECTORS and old == FLOAT32:
            return f"{bound(narrowed)}({data[0]}, {bound(new)})"
    moves = eqn.op.kind is SHAPE and all(
        isinstance(v.aval.dtype, np.dtype) for v in (*eqn.invars, *eqn.outvars)
    )
    if not moves and not all(_is_native(v.aval) for v in (*eqn.invars, *eqn.outvars)):
        return None
    if eqn.op.written is not None:
        return eqn.op.written(eqn, data, bound)
    ufunc = ufunc_of(eqn)
    return None if ufunc is None else f"{bound(ufunc)}({', '.join(data)})"


def is_call(expression: str, data: Sequence[str], scope: dict[str, Any]) -> bool:
    """Whether it calls one of NumPy's functions on these operands, for a result of its own."""
    name, _, given = expression.partition("(")
    if broadcast is not None and scope.get(name) is broadcast:
        name, _, given = given.partition(", ")
    return isinstance(scope.get(name), np.ufunc) and given == f"{', '.join(data)})"


# Elements of a result from which on blocks take less than NumPy's rows (100 x 10 0.6 us, not 1.5).
BLOCKS = 512


def in_blocks(
    eqn: Eqn, expression: str, lazy: set[Var], scope: dict[str, Any], bound: Bound
) -> str:
    """The call of a ufunc by `broadcast`, where operands have sizes of 1 and others more."""
    name, _, given = expression.partition("(")
    if broadcast is None or not isinstance(scope.get(name), np.ufunc):
        return expression
    shapes = {v.aval.shape for v in eqn.invars if v.aval.ndim}
    narrow = len(shapes) > 1 or not lazy.isdisjoint([v for v in eqn.invars if type(v) is Var])
    if not narrow or len(eqn.invars) < 2 or eqn.outvars[0].aval.size < BLOCKS:
        return expression
    return f"{bound(broadcast)}({name}, {given}"


# Bytes from which on memory is used again: a fresh page costs more than to fill it.
LARGE = 1 << 14


def size_of(aval: Aval) -> int:
    """Its bytes."""
    return aval.size * int(aval.dtype.itemsize)


def places(
    eqns: Sequence[Eqn], calls: Sequence[bool], outvars: Sequence[Any]
) -> tuple[list[Var | None], list[list[Var]]]:
    """Per equation, the operand in whose memory the result may be put, as nothing else reads it,
    and the large results that are read there for the last time.

    `calls` says of which equations the expression is a call of a ufunc: such results have memory
    of their own, and such readers leave no views of it.
    """
    last: dict[Any, int] = dict.fromkeys(outvars, len(eqns))
    seen = set(outvars)
    ours: set[Any] = set()
    for i, (eqn, call) in enumerate(zip(eqns, calls, strict=True)):
        for v in eqn.invars:
            if type(v) is not Literal:
                last[v] = max(last.get(v, 0), i)
                if not call:
                    seen.add(v)
        ours.update([v for v in eqn.outvars if size_of(v.aval) >= LARGE])
        if not call:
            seen.update(eqn.outvars)
    found: list[Var | None] = []
    dying: list[list[Var]] = []
    for i, (eqn, call) in enumerate(zip(eqns, calls, strict=True)):
        dead: list[Any] = [v for v in dict.fromkeys(eqn.invars) if v in ours and last[v] == i]
        aval = eqn.outvars[0].aval
        fits = [
            v
            for v in dead
            if call
            and v not in seen
            and v.aval.shape == aval.shape
            and v.aval.dtype == aval.dtype
        ]
        found.append(fits[0] if fits else None)
        dying.append(dead)
    return found, dying


def _is_native(aval: Aval) -> bool:
    dtype = aval.dtype
    return isinstance(dtype, np.dtype) and dtype.isbuiltin == 1


def ufunc_of(eqn: Eqn) -> Any:
    """NumPy's function that an elementwise operation is on these dtypes, if there is one."""
    dtype = eqn.invars[0].aval.dtype if eqn.invars else None
    if not isinstance(dtype, np.dtype) or dtype.isbuiltin != 1:
        return None
    found = function_of(eqn)
    if dtype in getattr(eqn.op.impl, "but", ()):
        return None
    # Of booleans some make numbers.
    made = dtype.kind == "b" and found is not eqn.op.impl and found not in _OF_BOOLEANS
    return None if made else found


def function_of(eqn: Eqn) -> Any:
    """NumPy's function that an elementwise operation is of floats, if there is one."""
    if eqn.params:
        return None
    if eqn.op is div:
        return np.true_divide
    impl = eqn.op.impl
    found = impl if isinstance(impl, np.ufunc) else getattr(impl, "__wrapped__", None)
    return found if isinstance(found, np.ufunc) else None


_OF_BOOLEANS = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert)


def broadcasts(eqn: Eqn) -> bool:
    """Whether operands with sizes of 1 do where the whole is meant, if one operand is whole."""
    if not eqn.op.kind.elementwise:
        return False
    written = eqn.op.written
    names = [""] * len(eqn.invars)
    return ufunc_of(eqn) is not None if written is None else written(eqn, names, str) is not None


def lazily(eqns: Sequence[Eqn], outvars: Sequence[Any]) -> set[Var]:
    """Results of broadcasts whose every reader broadcasts itself, by a whole operand beside."""
    lazy = {
        e.outvars[0] for e in eqns if e.op is broadcast_in_dim and _is_native(e.outvars[0].aval)
    }
    lazy -= {v for v in outvars if type(v) is not Literal}
    for eqn in eqns:
        read = lazy.intersection([v for v in eqn.invars if type(v) is not Literal])
        if not read or eqn.op is broadcast_in_dim:
            lazy -= read
            continue
        shape = eqn.outvars[0].aval.shape
        if not broadcasts(eqn) or all(v in lazy or v.aval.shape != shape for v in eqn.invars):
            lazy -= read
    return lazy


def converted_by_readers(
    eqns: Sequence[Eqn], invars: Sequence[Any], outvars: Sequence[Any]
) -> set[Var]:
    """Results of conversions of operands whose one reader is a ufunc, or a sum of whole numbers,
    that converts by itself: in pieces that stay in the cache (a million complex64 times float32
    0.8 ms, not 1.26)."""
    readers: dict[Any, list[Eqn]] = {}
    for eqn in eqns:
        for v in eqn.invars:
            if type(v) is not Literal:
                readers.setdefault(v, []).append(eqn)
    given: dict[Any, Any] = {
        e.outvars[0]: e.invars[0].aval.dtype
        for e in eqns
        if e.op is convert_element_type
        and e.invars[0] in invars
        and e.outvars[0] not in outvars
        and len(readers.get(e.outvars[0], ())) == 1
        and _is_native(e.invars[0].aval)
        and e.invars[0].aval.dtype != FLOAT16
    }
    found = set()
    for var in given:
        (reader,) = readers[var]
        vs: Sequence[Any] = reader.invars
        if reader.op is reduce_sum:  # which names the dtype; of whole numbers any order will do
            whole = all(KIND[dtype] in "biu" for dtype in (given[var], var.aval.dtype))
            if whole and phrase(reader, [""], str) is not None:
                found.add(var)
            continue
        if reader.op.written is not None or reader.op.multiple or ufunc_of(reader) is None:
            continue
        own = {v.aval.dtype for v in vs}
        seen = [v.aval.dtype if type(v) is Literal else given.get(v, v.aval.dtype) for v in vs]
        # Some operand has the dtype, to which NumPy takes the others.
        if own == {var.aval.dtype} and own & set(seen) and np.result_type(*seen) in own:
            found.add(var)
    return found
