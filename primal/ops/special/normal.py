"""The normal distribution function of arrays, by operations that fuse."""

from __future__ import annotations

import math
from typing import Any

from primal.ir.trace import aval_of
from primal.ops.elementwise import abs, add, div, exp, gt, min, mul, select_n, sub
from primal.ops.special import tables
from primal.ops.special.error import squared
from primal.ops.special.polynomials import polynomial
from primal.ops.words import constant


def _near(x: Any) -> Any:
    """x ≥ 0, but no farther than where Gaussians have long been 0."""
    return min(x, constant(64, x))


def gauss(x: Any) -> Any:
    """exp(-x²/2)."""
    # Of |x|, so that Φ and its slope share it.
    rounded, rest = squared(_near(abs(x)))
    level = exp(mul(constant(-0.5, x), rounded))
    return mul(level, sub(constant(1, x), mul(constant(0.5, x), rest)))


def scaled_erfc(x: Any) -> Any:
    """exp(x²)·erfc(x) of finite x ≥ 0."""
    wide = aval_of(x).dtype.itemsize == 8
    k = constant(3 if wide else 1.5, x)
    coefficients = tables.ERFCX_64 if wide else tables.ERFCX
    # One quotient: it takes as long as thirty other operations.
    inverse = div(constant(1, x), add(x, k))
    level = polynomial(mul(sub(x, k), inverse), coefficients=tuple(coefficients))
    return mul(level, inverse)


def lower_normal(x: Any) -> Any:
    """Φ(x) = ½ exp(-x²/2)·erfcx(-x/√2) up to 0, 1 less that of -x above.

    Through erfc(-x/√2), whose operand is rounded, 70 units would be lost far below in float32.
    """
    half, one = constant(0.5, x), constant(1, x)
    at = mul(_near(abs(x)), constant(math.sqrt(0.5), x))
    tail = mul(mul(half, gauss(x)), scaled_erfc(at))
    return select_n(gt(x, constant(0, x)), tail, sub(one, tail))
