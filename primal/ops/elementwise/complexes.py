"""Functions of complex64 by their real parts in float64, rounded once.

NumPy's loops over complex numbers go number by number through the C library, which takes 11 (`exp`)
to 20 times (`atan`) as long as vectors in C (`base/fast/complexes.c`), and without the extension
1.6 to 7 times as long as the same formulas over blocks of numbers, which follow. In float64 no
square of a float32 leaves the range, products of two are exact, and most of what a careful function
of two floats has to avoid does not happen. Numbers that are not finite, and few of them where there
is no extension, are the C library's of complex128, whose special values are C99's as those of
complex64 are, so that one number gives the same alone and among many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.native import extension, is_finite
from primal.ops.elementwise.make import instead_of

COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)
FEW = 256
"""Numbers that take less time one by one than the calls of a dozen ufuncs do."""
BLOCK = 4096
"""Numbers whose parts, a dozen arrays of float64, stay in the nearer caches."""

Parts = tuple[Any, Any]
_LOG2 = math.log(2)
LARGE = 300.0
"""An exponent beyond which no float32 factor brings e to its power back into float32's range,
while the power's square is in float64's."""


def parts_of(
    ufunc: Any, parts: Callable[..., Parts], inner: Any = None, wide: Any = None
) -> Any:
    """The function of one operand, or `inner`, by the parts of finite complex64; of complex128
    `wide`, if there is one."""
    other = ufunc if inner is None else inner
    by_parts = _by_parts(parts, other)

    def impl(x: Any) -> Any:
        return other(x) if x.dtype is not COMPLEX64 else by_parts(x)

    if not isinstance(ufunc, np.ufunc):
        return impl
    if wide is None:
        return instead_of(ufunc, impl, but=(COMPLEX64,))

    def impl_of_both(x: Any) -> Any:
        return wide(x) if x.dtype is COMPLEX128 else impl(x)

    return instead_of(ufunc, impl_of_both, but=(COMPLEX64, COMPLEX128))


def _by_parts(parts: Callable[..., Parts], other: Any) -> Any:
    """The function of complex64 of one shape; of what is not finite `other`."""
    name = parts.__name__

    def in_c(*xs: Any) -> Any:
        xs = tuple(map(np.asarray, xs))  # numbers of NumPy's too
        return _mend(extension.by_parts(name, *xs), other, *xs)

    def in_blocks(*xs: Any) -> Any:
        if xs[0].size < FEW:
            return other(*[x.astype(COMPLEX128) for x in xs]).astype(COMPLEX64)
        out = np.empty(xs[0].shape, COMPLEX64)
        flat, operands = out.reshape(-1), [x.reshape(-1) for x in xs]
        for start in range(0, flat.size, BLOCK):
            some = [x[start : start + BLOCK] for x in operands]
            into = flat[start : start + BLOCK]
            given = [p.astype(np.float64) for x in some for p in (x.real, x.imag)]
            into.real, into.imag = parts(*given)
            _mend(into, other, *some)
        return out

    return in_blocks if extension is None else in_c


def _mend(out: Any, other: Any, *xs: Any) -> Any:
    """Results of what is not finite are those of `other`."""
    if not all(map(is_finite, xs)):
        odd = ~np.logical_and.reduce([np.isfinite(x) for x in xs])
        out[odd] = other(*[x[odd].astype(COMPLEX128) for x in xs])
    return out


def _bounded(x: Any) -> Any:
    return np.minimum(np.maximum(x, -LARGE), LARGE)


def exp(a: Any, b: Any) -> Parts:
    size = np.exp(_bounded(a))
    return size * np.cos(b), size * np.sin(b)


def exp2(a: Any, b: Any) -> Parts:
    return exp(a * _LOG2, b * _LOG2)


def _hyperbolic(x: Any) -> Parts:
    """sinh and cosh, as far as products with parts of float32 tell."""
    sinh = np.sinh(_bounded(x))
    return sinh, np.sqrt(sinh * sinh + 1)


def expm1(a: Any, b: Any) -> Parts:
    a, sin, cos = _bounded(a), np.sin(b), np.cos(b)
    right = cos > 0
    less = np.where(right, sin * sin / np.where(right, 1 + cos, 1), 1 - cos)
    less[less < 2.0**-151] = 0  # what float32 does not hold takes no sign from a zero
    return np.expm1(a) * cos - less, np.exp(a) * sin


def sin(a: Any, b: Any) -> Parts:
    sinh, cosh = _hyperbolic(b)
    return np.sin(a) * cosh, np.cos(a) * sinh


def cos(a: Any, b: Any) -> Parts:
    sinh, cosh = _hyperbolic(b)
    return np.cos(a) * cosh, -(np.sin(a) * sinh)


def sinh(a: Any, b: Any) -> Parts:
    sinh, cosh = _hyperbolic(a)
    return sinh * np.cos(b), cosh * np.sin(b)


def cosh(a: Any, b: Any) -> Parts:
    sinh, cosh = _hyperbolic(a)
    return cosh * np.cos(b), sinh * np.sin(b)


def tanh(a: Any, b: Any) -> Parts:
    (sinh, cosh), sin, cos = _hyperbolic(a), np.sin(b), np.cos(b)
    scale = 1 / (sinh * sinh + cos * cos)
    return sinh * cosh * scale, sin * cos * scale


def tan(a: Any, b: Any) -> Parts:
    return tanh(b, a)[::-1]


def logistic(a: Any, b: Any) -> Parts:
    """(e^a + cos b + i sin b) / (2 (cosh a + cos b)), whose sums next to the poles are differences:
    of expm1 a, sinh a/2 and the cosine of half the angle none is lost."""
    a, half = _bounded(a), b * 0.5
    sin, cos, sinh = np.sin(half), np.cos(half), np.sinh(a * 0.5)
    cos_2, scale = cos * cos * 2, sinh * sinh * 4
    scale += cos_2 + cos_2
    # 0 has no sign, as the sum with 1 has taken it from e^-z.
    return (np.expm1(a) + cos_2) / scale, sin * cos * 2 / scale + 0.0


def sqrt(a: Any, b: Any) -> Parts:
    size = np.abs(a)
    large = np.sqrt((np.sqrt(a * a + b * b) + size) * 0.5)
    small = b / np.maximum(large + large, 1e-300)
    left = a < 0
    return np.where(left, np.abs(small), large), np.where(left, np.copysign(large, b), small)


def rsqrt(a: Any, b: Any) -> Parts:
    size, (real, imag) = np.sqrt(a * a + b * b), sqrt(a, b)
    return np.where(size > 0, real / size, np.inf), -imag / size


def log(a: Any, b: Any) -> Parts:
    high, low = np.abs(a), np.abs(b)
    high, low = np.maximum(high, low), np.minimum(high, low)
    # The modulus's square less 1, which is exact but for one rounding next to 1; of small numbers
    # a power of two as large does that.
    tiny = high < 0.1
    some = np.count_nonzero(tiny) > 0
    if some:
        scale = np.where(tiny, 2.0**160, 1.0)
        high, low = high * scale, low * scale
    size = np.log1p((high - 1) * (high + 1) + low * low) * 0.5
    if some:
        size -= tiny * (160 * np.log(2.0))
    return size, np.arctan2(b, a)


def log1p(a: Any, b: Any) -> Parts:
    moved = a + 1
    size = moved * moved + b * b  # exact next to -1 but for one rounding
    level = np.where(size < 0.5, np.log(size) * 0.5, log_of_modulus(a, (a * a, b * b), 0))
    return level, np.arctan2(b, moved)


def log_of_modulus(a: Any, squares: Any, lost: Any) -> Any:
    """log|1 + a + b j| = log1p(a^2 + 2a + b^2) / 2, of squares that lost something to rounding."""
    (square, other), twice = squares, a + a
    total = square + twice
    part = total - twice
    lost = lost + ((twice - (total - part)) + (square - part))
    return np.log1p((total + other) + lost) * 0.5


def _roots(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """The parts of sqrt(1 - z) and sqrt(1 + z) (W. Kahan, Much Ado About Nothing's Sign Bit), of z
    in the first quadrant, where no product of them is taken from another."""
    return *sqrt(1 - a, -b), *sqrt(1 + a, b)


def asin(a: Any, b: Any) -> Parts:
    x, y = np.abs(a), np.abs(b)
    p, q, r, s = _roots(x, y)
    real, imag = np.arctan2(x, p * r - q * s), np.arcsinh(p * s - q * r)
    return np.copysign(real, a), np.copysign(imag, b)


def acos(a: Any, b: Any) -> Parts:
    p, q, r, s = _roots(a, np.abs(b))
    return np.arctan2(p, r) * 2, -np.copysign(np.arcsinh(p * s - q * r), b)


def asinh(a: Any, b: Any) -> Parts:
    return asin(b, a)[::-1]


def acosh(a: Any, b: Any) -> Parts:
    real, imag = acos(a, b)
    return np.abs(imag), np.copysign(real, b)


def atanh(a: Any, b: Any) -> Parts:
    x, y = np.abs(a), np.abs(b)
    less, square = 1 - x, y * y
    real = np.log1p(4 * x / (less * less + square)) * 0.25
    imag = np.arctan2(y + y, less * (1 + x) - square) * 0.5
    return np.copysign(real, a), np.copysign(imag, b)


def atan(a: Any, b: Any) -> Parts:
    return atanh(b, a)[::-1]


def pow(a: Any, b: Any, c: Any, d: Any) -> Parts:
    size, angle = log(a, b)
    return exp(c * size - d * angle, c * angle + d * size)


def power(other: Any) -> Any:
    """x^y of more complex64 than a few. `other` multiplies where exponents are small whole numbers
    and knows the powers of 0: its own are all of those."""
    by_parts = _by_parts(pow, other)

    def of_many(x: Any, y: Any) -> Any:
        whole = (y.imag == 0) & (np.abs(y.real) < 100) & (np.rint(y.real) == y.real)
        own = whole | (x == 0)
        if own.all():
            return other(x, y).astype(COMPLEX64)
        x, y = np.broadcast_arrays(x, y)
        out = by_parts(x, y)
        if own.any():
            out[own] = other(x[own], y[own])
        return out

    return of_many
