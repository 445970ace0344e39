"""What rules with `symbolic_zeros=True` see."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.pytree import tree_map
from primal.ir.avals import Aval, Typed
from primal.ir.trace import aval_of
from primal.ops.spread import zeros_like_aval


class SymbolicZero(Typed):
    """A tangent or cotangent known to be zero, with its shape and dtype, and no values.

    >>> SymbolicZero(Aval((3,), "float32"))
    SymbolicZero(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def instantiate(self) -> Any:
        """The zeros as an array."""
        return zeros_of(self.aval)

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(aval_of(val).tangent())

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


def zeros_of(aval: Aval) -> Any:
    """The zero tangent of a value of this aval: NumPy's float0 where there is no other."""
    tangent = aval.tangent()
    if tangent.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return zeros_like_aval(tangent)


class CustomVJPPrimal:
    """An argument of a fwd rule: its `value`, and whether it is `perturbed` (differentiated).

    >>> CustomVJPPrimal(1.0, True).perturbed
    True
    """

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value, as an array or, with `symbolic_zeros`, as a SymbolicZero.

    >>> primal.custom_derivatives.zero_from_primal(jnp.ones(2))
    Array([0., 0.], dtype=float32)
    """
    zero = SymbolicZero.from_primal_value(val)
    return zero if symbolic_zeros else zero.instantiate()


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The tree of values of a tree of `CustomVJPPrimal`.

    >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, True)])
    [1.0]
    """
    return tree_map(lambda x: x.value, tree)
