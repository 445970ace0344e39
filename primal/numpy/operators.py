"""The operators of arrays: what `x + y` does, fast where nothing needs deciding.

An operator knows, per aval, whether its op takes two operands of that aval as they are, and which
Literal a Python scalar becomes beside it. What it has not met goes through the function of the same
name, which promotes and checks; what that accepted without a conversion is remembered.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.limits import iinfo
from primal.base.native import FEW_NARROW, IN_VECTORS
from primal.ir.op import Op
from primal.ir.state import state
from primal.ir.trace import Array, Literal, literal
from primal.numpy import contraction, quotients, ufuncs
from primal.numpy.elementary import abs as absolute
from primal.numpy.promotion import scalar_literal
from primal.ops import elementwise as ops
from primal.runtime import guards
from primal.runtime.array import ArrayImpl

NUMBERS = (np.number,)
INEXACT = (np.inexact,)
REAL = (np.integer, np.floating, np.bool_)
BITS = (np.integer, np.bool_)
ANY = (np.generic,)
# Asked first: whether x is one of eight classes takes half a microsecond.
KNOWN = frozenset({ArrayImpl, np.ndarray, int, float, bool, complex})
NUMPYS = frozenset({np.dtype(code).type for code in "?bhilBHILefdFD"})
# Containers that Python would compare by identity, or repeat, which nobody means.
CONTAINERS = frozenset({list, tuple, dict, set})


def _accepts(x: Any) -> bool:
    """Whether an operator takes an operand; others get their own turn, or Python's TypeError."""
    return x.__class__ in KNOWN or isinstance(
        x, Array | np.ndarray | np.generic | bool | int | float | complex | Literal
    ) or hasattr(x, "__jax_array__")


def _scalar(value: Any, aval: Any, kinds: tuple[Any, ...]) -> Any:
    """The Literal of a Python scalar that takes the array's dtype, or None where it does not."""
    dtype = aval.dtype
    if not any(dtypes.issubdtype(dtype, k) for k in kinds):
        return None
    if dtypes.issubdtype(dtype, np.integer):
        if type(value) is not int:
            return None
        info = iinfo(dtype)
        if not int(info.min) <= value <= int(info.max):
            return None
    elif not dtypes.issubdtype(dtype, np.inexact):
        return None
    return literal(value, dtype, True)


def binary(
    op: Op, function: Callable[[Any, Any], Any], kinds: tuple[Any, ...]
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The operator method of an op and its reflection; `kinds` are the dtypes op takes as is."""
    direct: set[Any] = set()
    scalars: dict[Any, Any] = {}

    symbol = {"eq": "==", "ne": "!=", "mul": "*"}.get(op.name)

    def refuse(self: Any, other: Any) -> Any:
        """The other operand gets its turn; containers are errors where Python would take them."""
        if symbol and other.__class__ in CONTAINERS:
            raise TypeError(
                f"unsupported operand type(s) for {symbol}: {type(self).__name__!r} and "
                f"{type(other).__name__!r}. Convert it first: primal.numpy.array(...)."
            )
        return NotImplemented

    def meet(self: Any, other: Any) -> Any:
        """What to put beside self, remembered; None where the function must decide."""
        # More are left to the functions, which compute them in float32 (`widening`): sums of 1,000
        # float16 take NumPy 4.7 us, and so 2.6.
        many = self.aval.dtype in IN_VECTORS and self.aval.size > FEW_NARROW
        if many and type(self) is ArrayImpl:
            return None
        if type(other) in (int, float):
            found = _scalar(other, self.aval, kinds)
            # 0.0 == -0.0 and nan != nan would find the wrong Literal.
            if found is not None and (type(other) is int or (other == other and other)):
                if len(scalars) > 4096:
                    scalars.clear()
                scalars[other, type(other), self.aval] = found
            return found
        if type(other) in NUMPYS:
            dtype = self.aval.dtype
            takes = any(dtypes.issubdtype(dtype, k) for k in kinds) and not self.aval.weak_type
            if not takes or dtypes.canonicalize_dtype(other.dtype) is not dtype:
                return None
            return scalar_literal(other, dtype, False)
        aval = getattr(other, "aval", None)
        if aval is self.aval and any(dtypes.issubdtype(aval.dtype, k) for k in kinds):
            direct.add(aval)
            return other
        return None

    def forward(self: Any, other: Any) -> Any:
        kind = other.__class__
        if guards.ever:
            guards.beside_operator(other)
        if kind is float or kind is int:
            beside = scalars.get((other, kind, self.aval))
            if beside is not None:
                return state.trace.process(op, (self, beside), {})
        elif kind is ArrayImpl or isinstance(other, Array):
            aval = other.aval
            if aval is not self.aval:
                return function(self, other)
            if aval in direct:
                return state.trace.process(op, (self, other), {})
        elif kind not in NUMPYS:
            return function(self, other) if _accepts(other) else refuse(self, other)
        beside = meet(self, other)
        return function(self, other) if beside is None else op(self, beside)

    def reflected(self: Any, other: Any) -> Any:
        kind = other.__class__
        if guards.ever:
            guards.beside_operator(other)
        if kind is float or kind is int or kind in NUMPYS:
            beside = scalars.get((other, kind, self.aval))
            if beside is not None:
                return state.trace.process(op, (beside, self), {})
            beside = meet(self, other)
            if beside is not None:
                return op(beside, self)
        elif not _accepts(other):
            return refuse(self, other)
        return function(other, self)

    return forward, reflected


def _plain(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Operator methods that always call the function."""

    def forward(self: Any, other: Any) -> Any:
        return function(self, other) if _accepts(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return function(other, self) if _accepts(other) else NotImplemented

    return forward, reflected


def _power(self: Any, other: Any) -> Any:
    if other.__class__ is int and dtypes.issubdtype(self.aval.dtype, np.number):
        return ops.integer_pow(self, y=other)
    return ufuncs.power(self, other) if _accepts(other) else NotImplemented


def _reflected_power(self: Any, other: Any) -> Any:
    return ufuncs.power(other, self) if _accepts(other) else NotImplemented


def _round(self: Any, ndigits: int | None = None) -> Any:
    if ndigits is None:
        return self.round().astype(int)
    return self.round(operator.index(ndigits))


def install(cls: Any) -> None:
    """Give a class the operators."""
    pairs = {
        "add": binary(ops.add, ufuncs.add, NUMBERS),
        "sub": binary(ops.sub, ufuncs.subtract, NUMBERS),
        "mul": binary(ops.mul, ufuncs.multiply, NUMBERS),
        "truediv": binary(ops.div, ufuncs.true_divide, INEXACT),
        "matmul": _plain(contraction.matmul),
        "floordiv": _plain(quotients.floor_divide),
        "mod": _plain(quotients.remainder),
        "divmod": _plain(quotients.divmod),
        "pow": (_power, _reflected_power),
        "and": binary(ops.bitwise_and, ufuncs.bitwise_and, BITS),
        "or": binary(ops.bitwise_or, ufuncs.bitwise_or, BITS),
        "xor": binary(ops.bitwise_xor, ufuncs.bitwise_xor, BITS),
        "lshift": _plain(ufuncs.left_shift),
        "rshift": _plain(ufuncs.right_shift),
    }
    for name, (forward, reflected) in pairs.items():
        _set(cls, f"__{name}__", forward)
        _set(cls, f"__r{name}__", reflected)
    comparisons = {
        "eq": (ops.eq, ufuncs.equal, ANY),
        "ne": (ops.ne, ufuncs.not_equal, ANY),
        "lt": (ops.lt, ufuncs.less, REAL),
        "le": (ops.le, ufuncs.less_equal, REAL),
        "gt": (ops.gt, ufuncs.greater, REAL),
        "ge": (ops.ge, ufuncs.greater_equal, REAL),
    }
    for name, (op, function, kinds) in comparisons.items():
        _set(cls, f"__{name}__", binary(op, function, kinds)[0])
    _set(cls, "__neg__", lambda self: ops.neg(self))
    _set(cls, "__pos__", lambda self: self)
    _set(cls, "__abs__", lambda self: absolute(self))
    _set(cls, "__invert__", lambda self: ops.bitwise_not(self))
    _set(cls, "__round__", _round)


def _set(cls: Any, name: str, method: Callable[..., Any]) -> None:
    method.__name__ = name
    method.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, method)
