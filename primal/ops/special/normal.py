"""The normal distribution function of arrays, by operations that fuse."""

from __future__ import annotations

import math
from typing import Any

from primal.ir.trace import aval_of
from primal.ops.elementwise import abs, add, clamp, div, exp, gt, mul, select_n, sub
from primal.ops.special import tables
from primal.ops.special.error import squared
from primal.ops.special.polynomials import polynomial
from primal.ops.words import constant


def _near(x: Any) -> Any:
    """x, but no farther from 0 than where Gaussians have long been 0."""
    return clamp(constant(-64, x), x, constant(64, x))


def gauss(x: Any) -> Any:
    """exp(-x²/2)."""
    rounded, rest = squared(_near(x))
    level = exp(mul(constant(-0.5, x), rounded))
    return mul(level, sub(constant(1, x), mul(constant(0.5, x), rest)))


def scaled_erfc(x: Any) -> Any:
    """exp(x²)·erfc(x) of finite x ≥ 0."""
    wide = aval_of(x).dtype.itemsize == 8
    k = constant(3 if wide else 2, x)
    coefficients = tables.ERFCX_64 if wide else tables.ERFCX
    level = polynomial(div(sub(x, k), add(x, k)), coefficients=tuple(coefficients))
    half = constant(0.5, x)
    return div(mul(level, half), add(x, half))


def lower_normal(x: Any) -> Any:
    """Φ(x) = ½ exp(-x²/2)·erfcx(-x/√2) up to 0, 1 less that of -x above.

    Through erfc(-x/√2), whose operand is rounded, 70 units would be lost far below in float32.
    """
    at = _near(abs(x))
    half, one = constant(0.5, x), constant(1, x)
    tail = mul(mul(half, gauss(at)), scaled_erfc(mul(at, constant(math.sqrt(0.5), x))))
    return select_n(gt(x, constant(0, x)), tail, sub(one, tail))
