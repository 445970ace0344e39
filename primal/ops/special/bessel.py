"""Modified Bessel functions of the first kind, scaled: i0e(x) = e^-|x|·I₀(x), i1e likewise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.limits import finfo
from primal.base.native import chosen
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import abs, add, div, gt, lt, mul, neg, rsqrt, select_n, sign, sub
from primal.ops.elementwise.make import unary
from primal.ops.special import tables
from primal.ops.special.error import horner, in_blocks
from primal.ops.special.native import kernel_formula
from primal.ops.special.polynomials import polynomial
from primal.ops.special.terms import NumpyTerms, hlo_formula, hlo_without_octets, in_c
from primal.ops.types import FLOATING
from primal.ops.words import constant, each, each_out


def _scaled(order: int, xp: Any, x: Any) -> Any:
    """√(1 + |x|)·i0e(x), or √(1 + |x|)³·i1e(x)/x, in (|x| - 6)/(|x| + 6)."""
    both = ((tables.I0E, tables.I0E_64), (tables.I1E, tables.I1E_64))[order]
    size = xp.abs(x)
    inside = xp.where(size < math.inf, size, 0.0)
    root = xp.inverse_root(1.0 + inside)
    out = xp.polynomial(both[xp.dtype == np.float64], (inside - 6.0) / (inside + 6.0)) * root
    end: Any = 0.0
    if order:
        out = out * (root * x) * root
        end = xp.where(x < 0.0, -0.0, 0.0)
    out = xp.where(size == math.inf, end, out)
    return xp.where(xp.isnan(x), x, out)


_i0e, _i1e = functools.partial(_scaled, 0), functools.partial(_scaled, 1)


class _Doubles(NumpyTerms):
    """The vocabulary of formulas on NumPy's float64, whose results have the digits of float32."""

    dtype: Any = np.dtype(np.float32)
    where: Callable[..., Any] = staticmethod(chosen)

    @staticmethod
    def polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
        """The sum of c_i·x^i."""
        return horner(np.array(coefficients[::-1]), np.asarray(x))

    @staticmethod
    def inverse_root(x: Any) -> Any:
        """1/√x of positive numbers."""
        return 1.0 / np.sqrt(x)


class _OfDoubles(_Doubles):
    """Of float64, with all its digits."""

    dtype = np.dtype(np.float64)


def _eager(formula: Any, name: str, *rows: tuple[float, ...]) -> Any:
    """The formula, as in kernels, which SciPy's function takes ten times as long as and has fewer
    digits than."""

    def of_block(x: Any) -> Any:
        terms = _OfDoubles if x.dtype == np.float64 else _Doubles
        return formula(terms, x.astype(np.float64)).astype(x.dtype)

    return in_c(f"bessel_{name}", lambda x: in_blocks(of_block, x), *rows)


def _two_pieces(size: Any, near: Any, far: Any) -> Any:
    """Polynomials in (2s - 6)/(s + 6) up to s = 12, in 24/s - 1 beyond; each of float32 and 64."""
    one, six, twelve = constant(1, size), constant(6, size), constant(12, size)
    close, double = lt(size, twelve), aval_of(size).dtype == np.float64
    low, high = select_n(close, one, size), select_n(close, size, twelve)
    return select_n(
        close,
        polynomial(sub(div(constant(24, size), high), one), coefficients=far[double]),
        polynomial(div(sub(add(low, low), six), add(low, six)), coefficients=near[double]),
    )


def _apart(x: Any) -> Any:
    """i0e(|x|) - i1e(|x|), of which a difference would leave no digit where |x| is large."""
    size = abs(x)
    finite = lt(size, constant(math.inf, x))
    inside = select_n(finite, constant(0, x), size)
    level = _two_pieces(
        inside,
        (tables.I0E_I1E_NEAR, tables.I0E_I1E_NEAR_64),
        (tables.I0E_I1E_FAR, tables.I0E_I1E_FAR_64),
    )
    root = rsqrt(add(inside, constant(1, x)))
    return select_n(finite, constant(0, x), mul(mul(level, root), mul(root, root)))


def bessel_i1_slope(x: Any) -> Any:
    """e^-|x|·I₁'(x), by itself: as a sum of i0e and i1e/x it would take two of such."""
    top = constant(float(finfo(aval_of(x).dtype).max), x)
    size = select_n(gt(abs(x), top), abs(x), top)
    level = _two_pieces(
        size,
        (tables.I1_SLOPE_NEAR, tables.I1_SLOPE_NEAR_64),
        (tables.I1_SLOPE_FAR, tables.I1_SLOPE_FAR_64),
    )
    return mul(level, rsqrt(add(size, constant(1, x))))


def _i0e_slope(t: Any, x: Any) -> Any:
    return mul(t, neg(mul(sign(x), _apart(x))))


bessel_i0e = unary(
    "bessel_i0e",
    FLOATING,
    _eager(_i0e, "i0e", tables.I0E, tables.I0E_64),
    each(_i0e_slope),
    hlo_formula(_i0e),
    kernel=kernel_formula(_i0e),
    folds=False,
)


def _i1e_slope(t: Any, out: Any, x: Any) -> Any:
    # I₁' = I₀ - I₁/x, whose quotient tends to 1/2 at 0; of the scaled one I₁ more is taken away.
    dtype = aval_of(x).dtype
    tiny = literal(float(finfo(dtype).eps), dtype)
    apart = gt(abs(x), tiny)
    safe = select_n(apart, tiny, x)
    slope = sub(_apart(safe), div(out, safe))
    return mul(t, select_n(apart, literal(0.5, dtype), slope))


bessel_i1e = unary(
    "bessel_i1e",
    FLOATING,
    _eager(_i1e, "i1e", tables.I1E, tables.I1E_64),
    each_out(_i1e_slope),
    hlo_without_octets("bessel_i1e"),
    kernel=kernel_formula(_i1e),
    folds=False,
)
