"""Formulas for the CPU's kernels: elementwise words that fuse.

The arithmetic is float64, so that all digits of float32 stay, next to zeros too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float
from primal.ir.builders import Unsupported
from primal.ops.special.terms import HloTerms, Term

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_UNARY = {"negate": "neg", "exponential": "exp", "log": "log", "log_plus_one": "log1p",
          "sqrt": "sqrt", "abs": "abs", "not_": "not"}  # fmt: skip
_BINARY = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "and_": "and",
           "or_": "or"}  # fmt: skip


class _Words:
    """The words of kernels under the names that `Term` and `HloTerms` use."""

    def __init__(self, k: Any) -> None:
        self.k = k

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in _UNARY:
            return lambda x: self.k.unary(_UNARY[name], x)
        if name in _BINARY:
            return lambda x, y: self.k.binary(_BINARY[name], x, y)
        raise AttributeError(name)

    def compare(self, x: Any, y: Any, direction: str) -> Any:
        return self.k.binary(direction.lower(), x, y)

    def select(self, mask: Any, x: Any, y: Any) -> Any:
        return self.k.select_n(mask, y, x)

    def full_like(self, x: Any, value: float) -> Any:
        return self.k.literal(value, x.dtype)


class KernelTerms(HloTerms):
    """The vocabulary of formulas in kernels: in float64, series as long as float32 needs."""

    def __init__(self, k: Any, shape: tuple[int, ...], dtype: Any = FLOAT32) -> None:
        super().__init__(_Words(k), dtype, shape)

    def polynomial(self, coefficients: Sequence[float], x: Term) -> Term:
        """The sum of c_i·x^i."""
        out = self.full(coefficients[-1])
        for c in coefficients[-2::-1]:
            out = self.fma(out, x, self.full(c))
        return out

    def fma(self, x: Term, y: Term, z: Term) -> Term:
        """x·y + z."""
        return Term(self.b, self.b.k.fma(x.value, y.value, z.value))

    def inverse_root(self, x: Term) -> Term:
        """1/√x of positive numbers; where float32 is asked for, its digits twice."""
        k = self.b.k
        if self.dtype == FLOAT64:
            return Term(self.b, k.unary("rsqrt", x.value))
        near = k.convert(k.unary("rsqrt", k.convert(x.value, FLOAT32)), FLOAT64)
        half = Term(self.b, k.binary("mul", x.value, self.full(0.5).value))
        out = Term(self.b, near)
        return out * (1.5 - half * out * out)  # type: ignore[no-any-return]

    def full(self, value: float) -> Term:
        """A constant."""
        return Term(self.b, self.b.k.literal(value, FLOAT64))


def kernel_formula(formula: Callable[..., Term]) -> Callable[..., Any]:
    """A `kernel` rule that is a formula."""

    def kernel(k: Any, x: Any) -> Any:
        xp = KernelTerms(k, x.shape, FLOAT64 if x.dtype == FLOAT64 else FLOAT32)
        out = formula(xp, Term(xp.b, k.convert(x, FLOAT64)))
        return k.convert(out.value, x.dtype)

    return kernel


def kernel_word(name: str, fine: bool = False) -> Callable[..., Any]:
    """A `kernel` rule that is a word of the operands; float64, but of a `fine` word, is left to the
    library."""

    def kernel(k: Any, *xs: Any) -> Any:
        dtype = xs[0].dtype
        if dtype == FLOAT64 and fine:
            return k.element(name, list(xs), FLOAT64)
        if dtype != FLOAT32 and not is_narrow_float(dtype):
            raise Unsupported(f"{name} of {dtype}")
        return k.convert(k.element(name, [k.convert(x, FLOAT32) for x in xs], FLOAT32), dtype)

    return kernel
