"""The error function and its kin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float
from primal.ir.trace import literal
from primal.ops.elementwise import div, exp, mul, neg, square
from primal.ops.elementwise.make import unary
from primal.ops.types import FLOATING
from primal.ops.words import each, each_out

_SMALL = 32


def _scipy(name: str, scalar: Any = None) -> Any:
    """The rule that calls a function of scipy.special, in float32 or float64.

    SciPy is imported when first needed (160 ms); for a few elements the standard library's function
    `scalar` does without it.
    """

    def impl(x: Any) -> Any:
        dtype = x.dtype
        if scalar is not None and x.size <= _SMALL:
            values = [scalar(v) for v in np.ravel(x).astype(np.float64).tolist()]
            return np.array(values).reshape(np.shape(x)).astype(dtype)
        from scipy import special

        work = x.astype(np.float32) if is_narrow_float(dtype) else x
        return np.asarray(getattr(special, name)(work)).astype(dtype, copy=False)

    return impl


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

# erf(x) = 2/√π ∫₀ˣ exp(-t²) dt, erfc = 1 - erf.
erf = unary(
    "erf",
    FLOATING,
    _scipy("erf", math.erf),
    each(lambda t, x: mul(t, mul(literal(_TWO_OVER_ROOT_PI, t.dtype), exp(neg(square(x)))))),
    "erf",
)
erfc = unary(
    "erfc",
    FLOATING,
    _scipy("erfc", math.erfc),
    each(lambda t, x: mul(t, mul(literal(-_TWO_OVER_ROOT_PI, t.dtype), exp(neg(square(x)))))),
    "erfc",
)

# Polynomials in w = -log(1 - x²) for the center and the tails: M. Giles, "Approximating the erfinv
# function", GPU Computing Gems, 2010.
_CENTER = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _horner(coefficients: tuple[float, ...], w: Any) -> Any:
    p = np.full_like(w, coefficients[0])
    for c in coefficients[1:]:
        p *= w
        p += np.float32(c)
    return p


def _erf_inv_impl(x: Any) -> Any:
    if x.dtype == np.float64:
        from scipy import special

        return np.asarray(special.erfinv(x))
    dtype = x.dtype
    y = np.asarray(x, np.float32)
    w = -np.log1p(-y * y)
    p = np.asarray(_horner(_CENTER, w - np.float32(2.5)))
    tail = ~(w < 5)
    if tail.any():
        p = np.where(tail, _horner(_TAIL, np.sqrt(w) - np.float32(3)), p)
    out = np.where(np.abs(y) == 1, y * np.float32(np.inf), p * y)
    return out.astype(dtype, copy=False)


erf_inv = unary(
    "erf_inv",
    FLOATING,
    _erf_inv_impl,
    each_out(
        lambda t, out, x: mul(
            t, div(literal(1, t.dtype), mul(literal(_TWO_OVER_ROOT_PI, t.dtype),
                                            exp(neg(square(out)))))
        )
    ),
    "erf_inv",
)
