"""The error function, its complement and its inverse.

erf(x) = 2/√π ∫₀ˣ exp(-s²) ds. float32 needs no SciPy: `normal` and `gelu` should not wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float
from primal.base.native import extension
from primal.ir.trace import aval_of
from primal.ops.elementwise import (
    RoundingMethod,
    add,
    clamp,
    exp,
    mul,
    neg,
    round,
    square,
    sub,
)
from primal.ops.elementwise.make import unary
from primal.ops.special.terms import by_scipy, hlo_without_octets, scipys
from primal.ops.types import FLOATING
from primal.ops.words import constant, each, each_out

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def single(*coefficients: float) -> Any:
    """Coefficients for `horner`."""
    return np.array(coefficients, np.float32)


def by_numpy(coefficients: Any, x: Any) -> Any:
    """Σ cᵢ·xⁱ by Horner's rule; highest degree first, of at least two."""
    out = x * coefficients[0]
    out += coefficients[1]
    for c in coefficients[2:]:
        out *= x
        out += c
    return out


horner: Callable[[Any, Any], Any] = by_numpy if extension is None else extension.horner
"""Σ cᵢ·xⁱ of float64 if x is, else of float32; highest degree first."""


# erf on [0, 1] as x + x·p(x²), beyond as 1 - exp(q(|x|)); 1 from 3.92 on. Fitted to SciPy's values
# by weighted least squares, error 2e-9; with rounding at most 2 units of the last place.
_ERF_INSIDE = single(
    7.8538533e-05, -0.000801019119, 0.00518832741, -0.0268538118, 0.112835851, -0.376126258,
    0.128379166,
)  # fmt: skip
_ERF_OUTSIDE = single(
    0.000186381084, -0.00294767631, 0.0218381339, -0.103106896, -0.638144674, -1.12708928,
    -0.000341500865,
)  # fmt: skip


_FLAT = 3.92

# Many passes over a block that stays in the cache take half the time.
_BLOCK = 1 << 14


def in_blocks(of_block: Callable[..., Any], *xs: Any, block: int = _BLOCK) -> Any:
    """A function of the numbers of arrays of one shape, in pieces."""
    (x, *_) = xs
    if x.size <= block:
        return of_block(*xs)
    flat, out = [v.reshape(-1) for v in xs], np.empty(x.size, x.dtype)
    for i in range(0, x.size, block):
        out[i : i + block] = of_block(*[v[i : i + block] for v in flat])
    return out.reshape(x.shape)


def _erf_by_numpy(x: Any) -> Any:
    squared = x * x
    inside = horner(_ERF_INSIDE, squared)
    inside *= x
    inside += x
    outside = np.exp(horner(_ERF_OUTSIDE, np.minimum(np.abs(x), _FLAT)))
    outside = np.copysign(1 - outside, x)
    return np.where(squared < 1, inside, outside)


def _erf_in_c(x: Any) -> Any:
    return extension.erf(x, _ERF_INSIDE, _ERF_OUTSIDE, _FLAT, np.exp)


_erf_block: Callable[[Any], Any] = _erf_by_numpy if extension is None else _erf_in_c

_erf_64 = by_scipy("erf")


def _erf_impl(x: Any) -> Any:
    if x.dtype == np.float64:
        return _erf_64(x)
    if is_narrow_float(x.dtype):
        return in_blocks(_erf_block, x.astype(np.float32)).astype(x.dtype)
    return in_blocks(_erf_block, x)


def squared(x: Any) -> tuple[Any, Any]:
    """x² for |x| ≤ 64: the float, and what it lacks, which an exponential multiplies by x²."""
    whole = round(mul(x, constant(64, x)), rounding_method=RoundingMethod.TO_NEAREST_EVEN)
    near = mul(whole, constant(1 / 64, x))
    rest, rounded = sub(x, near), square(x)
    lacking = add(mul(mul(near, constant(2, x)), rest), square(rest))
    return rounded, add(sub(square(near), rounded), lacking)


def _gauss(t: Any, x: Any, scale: float) -> Any:
    if aval_of(x).dtype.itemsize < 4:  # whose squares of rounded numbers are rounded themselves
        return mul(constant(scale, t), mul(t, exp(neg(square(x)))))
    rounded, rest = squared(clamp(constant(-64, x), x, constant(64, x)))
    level = mul(exp(neg(rounded)), sub(constant(1, x), rest))
    return mul(constant(scale, t), mul(t, level))


# (1 + 2x)·exp(x²)·erfc(x) in powers of (x - 2)/(x + 2), for x up to 10.1; as in kernels.
_ERFC = single(
    2.6485837e-05, -0.0003646319, -0.0012533801, 0.0012733957, 0.008638431, -0.008044608,
    -0.05420514, 0.16405316, -0.16603136, -0.09276389, 1.2769784,
)  # fmt: skip
_ERFC_END = 10.1
_EXPM1 = single(1 / 120, 1 / 24, 1 / 6, 0.5, 1)
"""(exp(r) - 1)/r for |r| < 0.17."""


def _erfc_by_numpy(x: Any) -> Any:
    size = np.minimum(np.abs(x), np.float32(_ERFC_END))
    # x² is near², which is a float, and a rest, whose exponential is a series: rounded, x² would
    # leave five digits. Adding 3·2¹⁶ rounds to 64ths.
    near = (size + np.float32(196608)) - np.float32(196608)
    rest = (near - size) * (near + size)
    grown = rest * np.asarray(horner(_EXPM1, rest))
    body = np.asarray(horner(_ERFC, (size - 2) / (size + 2)))
    body /= size + size + 1
    body += body * grown
    body *= np.exp(-(near * near))
    return np.where(x < 0, 2 - body, body)


def _erfc_in_c(x: Any) -> Any:
    return extension.erfc(x, _ERFC, _ERFC_END, np.exp)


_erfc_block: Callable[[Any], Any] = _erfc_by_numpy if extension is None else _erfc_in_c
_erfc_wide = by_scipy("erfc")


def _erfc_impl(x: Any) -> Any:
    if x.dtype != np.float64:
        x32 = np.asarray(x, np.float32)
        return in_blocks(_erfc_block, x32).astype(x.dtype, copy=False)
    out = np.asarray(_erfc_wide(x))
    # SciPy rounds x² in exp(-x²): 150 units at 24. Its scaled function has all digits.
    far = (x > 2) & (x < 27)
    if np.count_nonzero(far):
        at = x[far]
        near = np.rint(at * 64) / 64
        gauss = np.exp(-near * near) * np.exp((near - at) * (near + at))
        out[far] = scipys("erfcx")(at) * gauss
    return out


erf = unary(
    "erf",
    FLOATING,
    _erf_impl,
    each(lambda t, x: _gauss(t, x, TWO_OVER_ROOT_PI)),
    "erf",
    folds=False,
)
erfc = unary(
    "erfc",
    FLOATING,
    _erfc_impl,
    each(lambda t, x: _gauss(t, x, -TWO_OVER_ROOT_PI)),
    hlo_without_octets("erfc"),
    folds=False,
)


# erf_inv: Giles's approximation ("Approximating the erfinv function", 2012), in w = -log(1 - x²);
# XLA takes the same, so that engines draw the same normal numbers. Near ±1 it loses 4 digits of 7.
_GILES_CENTRE = single(
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
    -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_GILES_TAIL = single(
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
    0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


_TAIL_FROM = 5


def _erf_inv_by_numpy(x: Any) -> Any:
    x = np.asarray(x)
    w = np.multiply(x, x, out=np.empty_like(x))
    np.negative(w, out=w)
    np.log1p(w, out=w)
    np.negative(w, out=w)
    out = np.asarray(horner(_GILES_CENTRE, w - np.float32(2.5)))
    tail = w >= _TAIL_FROM
    if tail.any():
        out[tail] = horner(_GILES_TAIL, np.sqrt(w[tail]) - np.float32(3))
    out *= x
    edge = np.abs(x) == 1
    return np.where(edge, x * np.float32(np.inf), out) if edge.any() else out


def _erf_inv_in_c(x: Any) -> Any:
    return extension.erf_inv(x, _GILES_CENTRE, _GILES_TAIL, _TAIL_FROM, np.log1p)


_erf_inv_block: Callable[[Any], Any] = _erf_inv_by_numpy if extension is None else _erf_inv_in_c
_erf_inv_64 = by_scipy("erfinv", signed=True)


def _erf_inv_impl(x: Any) -> Any:
    if x.dtype == np.float64:
        return _erf_inv_64(x)
    if is_narrow_float(x.dtype):
        return in_blocks(_erf_inv_block, x.astype(np.float32)).astype(x.dtype)
    return in_blocks(_erf_inv_block, x)


erf_inv = unary(
    "erf_inv",
    FLOATING,
    _erf_inv_impl,
    each_out(lambda t, out, x: mul(constant(1 / TWO_OVER_ROOT_PI, t), mul(t, exp(square(out))))),
    "erf_inv",
    folds=False,
)
