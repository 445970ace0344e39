"""Formulas for the CPU's kernels, of 16- and 32-bit floats: elementwise words that fuse.

The arithmetic is float64, so that all digits of float32 stay, next to zeros too; of float64 itself
SciPy has the better formulas, and takes longer.
"""

from __future__ import annotations

import math
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

    def chebyshev(self, coefficients: Sequence[float], x: Term) -> Term:
        """As a polynomial, where float32 is asked for: its coefficients lose two digits."""
        if self.dtype == FLOAT32:
            return self.polynomial(np.polynomial.chebyshev.cheb2poly(coefficients).tolist(), x)
        twice, after, last = x + x, self.full(0.0), self.full(0.0)
        for c in coefficients[:0:-1]:
            after, last = self.fma(twice, after, c - last), after
        return self.fma(x, after, coefficients[0] - last)

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

    def sine(self, x: Term) -> Term:
        """sin x."""
        return Term(self.b, self.b.k.unary("sin", x.value))

    def cosine(self, x: Term) -> Term:
        """cos x."""
        return Term(self.b, self.b.k.unary("cos", x.value))

    def nearest(self, x: Term) -> Term:
        """The nearest whole number."""
        return Term(self.b, self.b.k.unary("round_nearest_even", x.value))


def kernel_formula(formula: Callable[..., Term], wide: bool = False) -> Callable[..., Any]:
    """A `kernel` rule that is a formula; float64 is left to the library unless it is `wide`."""

    def kernel(k: Any, x: Any) -> Any:
        if x.dtype != FLOAT32 and not is_narrow_float(x.dtype) and not wide:
            raise Unsupported(f"a formula for {x.dtype}")
        xp = KernelTerms(k, x.shape, FLOAT64 if x.dtype == FLOAT64 else FLOAT32)
        out = formula(xp, Term(xp.b, k.convert(x, FLOAT64)))
        return k.convert(out.value, x.dtype)

    return kernel


def kernel_word(name: str) -> Callable[..., Any]:
    """A `kernel` rule that is a word of the operands; float64 is left to the library."""

    def kernel(k: Any, *xs: Any) -> Any:
        dtype = xs[0].dtype
        if dtype != FLOAT32 and not is_narrow_float(dtype):
            raise Unsupported(f"{name} of {dtype}")
        return k.convert(k.element(name, [k.convert(x, FLOAT32) for x in xs], FLOAT32), dtype)

    return kernel


def zeta_kernel(k: Any, x: Any, q: Any) -> Any:
    """ζ, in float64 too."""
    if x.dtype == FLOAT64:
        return k.binary("zeta_of_doubles", x, q)
    return kernel_word("zeta")(k, x, q)


def polygamma_kernel(k: Any, m: Any, x: Any) -> Any:
    """(-1)^(m+1)·m!·ζ(m + 1, x) for whole m > 0, ψ for m = 0; float64 is left to the library."""
    if x.dtype != FLOAT32 and not is_narrow_float(x.dtype):
        raise Unsupported(f"polygamma of {x.dtype}")
    xp = KernelTerms(k, x.shape)
    order, at = [Term(xp.b, k.convert(v, FLOAT64)) for v in (m, x)]
    above = order + 1.0
    zeta = Term(xp.b, k.binary("zeta", above.value, at.value))
    half = order * 0.5
    even = half == xp.nearest(half)
    size = xp.exp(log_gamma(xp, above)) * zeta
    out = xp.where(order == 0.0, psi(xp, at), xp.where(even, -size, size))
    pole = even & (at <= 0.0) & (at == xp.nearest(at))
    unknown = (order < 0.0) | ~(order == xp.nearest(order)) | pole
    return k.convert(xp.where(unknown, math.nan, out).value, x.dtype)


# Stirling's series from 8 on, to 1e-16; below, by the product of x, x + 1, …, x + 7.
_LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
              -3617 / 122400, 43867 / 244188)  # fmt: skip
_PSI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160,
        43867 / 14364)  # fmt: skip
FROM = 8


def log_gamma(xp: KernelTerms, x: Term) -> Term:
    """log |Γ(x)|."""
    left = x < 0.0
    y = xp.where(left, 1.0 - x, x)
    small = y < float(FROM)
    product = z = xp.where(small, y, 1.0)
    for i in range(1, FROM):
        product = product * (z + float(i))
    far = xp.where(small, y + float(FROM), y)
    inverse = 1.0 / far
    out = (far - 0.5) * xp.log(far) - far + 0.5 * math.log(2 * math.pi)
    out = out + inverse * xp.polynomial(_LOG_GAMMA, inverse * inverse)
    out = xp.where(small, out - xp.log(product), out)
    size = xp.abs(xp.sine((x - xp.nearest(x)) * math.pi))
    out = xp.where(left, math.log(math.pi) - xp.log(size) - out, out)
    # The zeros have no digits to lose, but signs of rounding errors to show.
    out = xp.where((x == 1.0) | (x == 2.0), 0.0, out)
    return xp.where(xp.abs(x) == math.inf, math.inf, out)


def psi(xp: KernelTerms, x: Term) -> Term:
    """ψ(x), the derivative of log Γ; NaN at its poles."""
    left = x < 0.0
    y = xp.where(left, 1.0 - x, x)
    small = y < float(FROM)
    z = xp.where(small, y, 1.0)
    # The logarithmic derivative of the product, by one quotient.
    product, slope = z, xp.full(1.0)
    for i in range(1, FROM):
        factor = z + float(i)
        product, slope = product * factor, slope * factor + product
    far = xp.where(small, y + float(FROM), y)
    inverse = 1.0 / far
    square = inverse * inverse
    out = xp.log(far) - 0.5 * inverse - square * xp.polynomial(_PSI, square)
    out = xp.where(small, out - slope / product, out)
    part = x - xp.nearest(x)
    angle = part * math.pi
    out = xp.where(left, out - math.pi * xp.cosine(angle) / xp.sine(angle), out)
    return xp.where((x <= 0.0) & (part == 0.0), math.nan, out)
