"""Modified Bessel functions of the first kind, scaled: i0e(x) = e^-|x|·I₀(x), i1e likewise."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from primal.base.dtypes import finfo
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import abs, add, gt, integer_pow, mul, select_n, sign, sub
from primal.ops.elementwise.make import unary
from primal.ops.special.native import kernel_formula
from primal.ops.special.terms import by_scipy, hlo_formula, hlo_without_octets, scipy_special
from primal.ops.types import FLOATING
from primal.ops.words import each_out

# For engines: Chebyshev series in |x|/4 - 1 up to 8, of i1e over x; beyond, of √x·i0e and √x·i1e,
# in 16/|x| - 1.


@functools.cache
def _series(order: int, dtype: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Both series' coefficients to the precision of a dtype, from SciPy's values at Chebyshev
    nodes; computed once, and only by who compiles the function."""
    nodes = np.cos(np.pi * (np.arange(128) + 0.5) / 128)
    fun = (scipy_special().i0e, scipy_special().i1e)[order]
    near, far = 4 * (nodes + 1), 16 / (nodes + 1)
    limit = float(np.finfo(dtype).eps) / 8
    found = []
    for values in (fun(near) / near**order, fun(far) * np.sqrt(far)):
        # Whole turns are left out before there is rounding.
        turns = np.outer(np.arange(40), 2 * np.arange(128) + 1) % 512
        transform = np.cos(np.pi * turns / 256)
        c = transform @ values * (2 / 128)
        c[0] /= 2
        found.append(tuple(float(v) for v in c[: int(np.flatnonzero(np.abs(c) > limit)[-1]) + 1]))
    return found[0], found[1]


def _scaled(order: int, xp: Any, x: Any) -> Any:
    near, far = _series(order, xp.dtype)
    size = xp.abs(x)
    inside = xp.where(size > 8.0, 8.0, size)
    outside = xp.where((size > 8.0) & (size < math.inf), size, 8.0)
    root = xp.inverse_root(outside)
    tail = xp.chebyshev(far, 16.0 * root * root - 1.0) * root
    tail = xp.where(size == math.inf, 0.0, tail)
    centre = xp.chebyshev(near, inside * 0.25 - 1.0)
    if order:
        tail, centre = xp.where(x < 0.0, -tail, tail), centre * x
    return xp.where(xp.isnan(x), x, xp.where(size > 8.0, tail, centre))


_i0e, _i1e = functools.partial(_scaled, 0), functools.partial(_scaled, 1)


def _i0e_slope(t: Any, out: Any, x: Any) -> Any:
    return mul(t, sub(bessel_i1e(x), mul(sign(x), out)))


bessel_i0e = unary(
    "bessel_i0e",
    FLOATING,
    by_scipy("i0e"),
    each_out(_i0e_slope),
    hlo_formula(_i0e),
    kernel=kernel_formula(_i0e),
)


def _i1e_slope(t: Any, out: Any, x: Any) -> Any:
    # I₁' = I₀ - I₁/x, whose quotient tends to 1/2 at 0.
    dtype = aval_of(x).dtype
    tiny = literal(float(finfo(dtype).eps), dtype)
    apart = gt(abs(x), tiny)
    safe = select_n(apart, tiny, x)
    slope = sub(
        bessel_i0e(safe), mul(out, add(sign(safe), integer_pow(safe, y=-1)))
    )
    return mul(t, select_n(apart, literal(0.5, dtype), slope))


bessel_i1e = unary(
    "bessel_i1e",
    FLOATING,
    by_scipy("i1e", signed=True),
    each_out(_i1e_slope),
    hlo_without_octets("bessel_i1e"),
    kernel=kernel_formula(_i1e),
)
