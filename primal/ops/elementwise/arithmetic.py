"""Sums, products, quotients, comparisons, whole powers, signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.dtypes import KIND
from primal.base.native import (
    FEW_NARROW,
    FLOAT16,
    IN_VECTORS,
    by_float32,
    extension,
    is_finite,
    is_plain,
    narrowed,
    same_room,
    widened,
)
from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, Bound, Op, by_kind
from primal.ir.trace import ZERO, Literal
from primal.ops.elementwise.make import binary, instead_of, is_integer, keeps_dtype, unary
from primal.ops.spread import add_transpose
from primal.ops.types import ANY, NOT_LINEAR, NUMERIC, is_linear
from primal.ops.words import constant, each, linear, unbroadcast, zero_derivative

BOOL = np.dtype(np.bool_)
FEW = 512
"""Up to as many quotients of one complex number take longer to set out than to compute."""
ORDERED = (np.integer, np.floating, np.bool_)

# Linear ops: neg, add, sub; mul and div are linear in one operand.


def _neg_transpose(ct: Any, x: Any) -> Any:
    return (neg(ct),)


_neg_exact = keeps_dtype(np.negative)


def _neg_impl(x: Any) -> Any:
    if x.dtype.kind == "c" and x.ndim and x.flags.c_contiguous:
        # Its parts, for which NumPy has vectors (100,000 complex64 185 us, so 20).
        return np.negative(x.view(x.real.dtype)).view(x.dtype)
    return _neg_exact(x)


neg = unary(
    "neg",
    NUMERIC,
    instead_of(np.negative, _neg_impl),
    linear,
    "negate",
    transpose=_neg_transpose,
)


add = binary(
    "add",
    NUMERIC,
    np.add,
    each(lambda t, x, y: t, lambda t, x, y: t),
    "add",
    transpose=add_transpose,
)


def _sub_transpose(ct: Any, x: Any, y: Any) -> Any:
    return (
        unbroadcast(ct, x.shape) if is_linear(x) else None,
        unbroadcast(neg(ct), y.shape) if is_linear(y) else None,
    )


sub = binary(
    "sub",
    NUMERIC,
    np.subtract,
    each(lambda t, x, y: t, lambda t, x, y: neg(t)),
    "subtract",
    transpose=_sub_transpose,
)


def _mul_transpose(ct: Any, x: Any, y: Any) -> Any:
    if is_linear(x):
        return unbroadcast(mul(ct, y), x.shape), None
    return None, unbroadcast(mul(x, ct), y.shape)


mul: Op = binary(
    "mul",
    NUMERIC,
    np.multiply,
    each(lambda t, x, y: mul(t, y), lambda t, x, y: mul(x, t)),
    "multiply",
    transpose=_mul_transpose,
)


# Integers: quotients are truncated toward zero; division by zero gives -1 (all bits set), and the
# smallest integer over -1 is itself.


def _by_parts(x: Any, y: Any) -> Any:
    """x/y by the extension: of complex64 in double precision, where products are exact and none
    overflows, of complex128 as NumPy, a fifth of the time; what is not finite is for others."""
    if not x.ndim:
        x = np.full_like(y, x)
    elif y.ndim and x.shape != y.shape:
        x, y = np.broadcast_arrays(x, y)
    return extension.by_parts("div", x, np.asarray(y))


def _complex_quotient(x: Any, y: Any) -> Any:
    if extension is None or x.dtype != np.complex64:
        return _any_complex_quotient(x, y)
    out = _by_parts(x, y)
    if not is_finite(out):
        x, y = np.broadcast_arrays(x, y)
        odd = (y == 0) | ~(np.isfinite(x) & np.isfinite(y))
        out[odd] = _any_complex_quotient(x[odd], y[odd])
    return out


def _any_complex_quotient(x: Any, y: Any) -> Any:
    """x/y with C99's values at 0 and infinities (Annex G.5.1), as XLA's.

    What infinity divides is 0, infinity over a number infinite, and so is a number over 0; NumPy
    has NaN for both parts, and over 0 does not see the sign.
    """
    several = extension is not None and x.dtype == np.complex128 and (x.ndim or y.size > FEW)
    out = _by_parts(x, y) if several else np.true_divide(x, y)
    if is_finite(out):
        return out
    few = (np.maximum(abs(y.real), abs(y.imag)) < np.finfo(y.dtype).tiny) & (y != 0)
    if np.count_nonzero(few):
        # The inverse of such a number is infinite: both are made larger.
        large = out.real.dtype.type(2.0 ** (np.finfo(y.dtype).nmant + 1))
        out = np.where(few, np.true_divide(x * large, y * large), out)
    far, deep = np.isinf(x), np.isinf(y)
    if not (np.count_nonzero(far) or np.count_nonzero(deep)) and np.count_nonzero(y) == y.size:
        return out  # with a nan of an operand, as of `mean`
    out = np.asarray(out)
    places = np.isnan(out.real) & np.isnan(out.imag) | (y == 0)
    x, y = [np.broadcast_to(v, out.shape)[places] for v in (x, y)]
    found = out[places]
    (p, q), (r, s) = [[_direction(part) for part in (v.real, v.imag)] for v in (x, y)]
    zero, endless = out.real.dtype.type(0), out.real.dtype.type(np.inf)
    far, deep = np.isinf(x), np.isinf(y)
    cases = [
        (np.isfinite(x) & deep, zero, x.real * r + x.imag * s, x.imag * r - x.real * s),
        (far & np.isfinite(y), endless, p * y.real + q * y.imag, q * y.real - p * y.imag),
        (y == 0, np.copysign(endless, y.real), x.real, x.imag),
    ]
    for where, scale, re, im in cases:
        np.copyto(found.real, scale * re, where=where)
        np.copyto(found.imag, scale * im, where=where)
    out[places] = found
    return out


def _direction(part: Any) -> Any:
    """±1 where it is infinite, else ±0."""
    return np.copysign(np.isinf(part).astype(part.dtype), part)


def _div_impl(x: Any, y: Any) -> Any:
    dtype = x.dtype
    if dtype.kind == "c":
        return _complex_quotient(x, y)
    if dtype.kind == "f" or not is_integer(dtype):
        if dtype in IN_VECTORS and x.size + y.size > FEW_NARROW:
            return by_float32(np.true_divide, x, y)
        return np.true_divide(x, y)
    some = np.count_nonzero(y) < y.size
    if some:
        zero = y == 0
        y = np.where(zero, np.ones_like(y), y)
    out = np.floor_divide(x, y)
    if dtype.kind == "i" or (dtype.kind != "u" and KIND[dtype] == "i"):
        # Where floor and truncation differ (a negative quotient with a remainder), add one.
        below = out < 0
        if np.count_nonzero(below):
            out = out + (below & (out * y != x)).astype(dtype)
    if some:
        out = np.where(zero, ~np.zeros((), np.int8).astype(dtype), out)
    return out if out.dtype is dtype else out.astype(dtype)


def _div_transpose(ct: Any, x: Any, y: Any) -> Any:
    return unbroadcast(div(ct, y), x.shape), None


def _quotient_slope(x: Any, y: Any) -> Any:
    """-x/y², but y² leaves the range of floats where no slope does: of float16 from 256 on."""
    inverse = integer_pow(y, y=-1)
    return neg(mul(mul(x, inverse), inverse))


def _div_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    if eqn.invars[0].aval.dtype.kind != "f":
        return None
    return f"{bound(np.true_divide)}({', '.join(names)})"


div: Op = binary(
    "div",
    NUMERIC,
    _div_impl,
    each(lambda t, x, y: div(t, y), lambda t, x, y: mul(t, _quotient_slope(x, y))),
    "divide",
    transpose=_div_transpose,
    written=_div_written,
)


# Comparisons: dtype bool; any dtype for eq and ne, ordered ones for the rest.


def _ne_written(eqn: Any, names: Sequence[str], bound: Bound) -> str:
    x, y = eqn.invars
    if type(y) is Literal and not y.host and (x.aval.dtype.kind == "c" or x.aval.dtype == FLOAT16):
        # Two to five times as fast, for dtypes without vector code for comparisons.
        return f"{names[0]}.astype({bound(BOOL)})"
    return f"{bound(np.not_equal)}({', '.join(names)})"


def _comparison(
    name: str, kinds: tuple[Any, ...], impl: Any, direction: str, written: Any = None
) -> Op:
    return binary(
        name,
        kinds,
        impl,
        zero_derivative,
        lambda b, x, y: b.compare(x, y, direction),
        out=lambda dtype: BOOL,
        written=written,
    )


eq = _comparison("eq", ANY, np.equal, "EQ")
ne = _comparison("ne", ANY, np.not_equal, "NE", _ne_written)
lt = _comparison("lt", ORDERED, np.less, "LT")
le = _comparison("le", ORDERED, np.less_equal, "LE")
gt = _comparison("gt", ORDERED, np.greater, "GT")
ge = _comparison("ge", ORDERED, np.greater_equal, "GE")


# Powers by repeated squaring.


def _integer_pow_type(x: Aval, *, y: int) -> Aval:
    if not dtypes.issubdtype(x.dtype, np.number):
        raise TypeError(f"[integer_pow] expected a number dtype, got {x.dtype.name}.")
    if y < 0 and not dtypes.issubdtype(x.dtype, np.inexact):
        raise TypeError(
            f"[integer_pow] expected a non-negative power for {x.dtype.name}, got {y}: Integers "
            "cannot be raised to negative powers. Convert to float first."
        )
    return x


def _by_squaring(x: Any, power: int, multiply: Any) -> Any:
    result, squared = None, x
    while True:
        if power & 1:
            result = squared if result is None else multiply(result, squared)
        power >>= 1
        if not power:
            return result
        squared = multiply(squared, squared)


def _product(x: Any, y: Any) -> Any:
    return np.multiply(x, y, same_room(x))


def reciprocal(x: Any, room: Any = None) -> Any:
    """1/x of an array, in that memory."""
    if x.dtype.kind == "c":
        return _complex_quotient(np.ones((), x.dtype), x)
    # np.reciprocal of 100,000 float64 takes 64 us, a quotient 33.
    return np.divide(x.dtype.type(1), x, room)


def _integer_pow_impl(x: Any, *, y: int) -> Any:
    # Of two bytes both round once; more than a few are faster in float32.
    if y == 2 and (x.size <= FEW_NARROW or x.dtype not in IN_VECTORS):
        return np.multiply(x, x, out=same_room(x))
    if y == 0:
        return np.ones_like(x)
    if x.dtype.itemsize <= 2 and dtypes.is_narrow_float(x.dtype):
        return narrowed(_integer_pow_impl(widened(x), y=y), x.dtype)
    result = _by_squaring(x, y if y > 0 else -y, _product)
    return reciprocal(result, same_room(x)) if y < 0 else result


def _integer_pow_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, y: int) -> Any:
    (x,), (t,) = primals, tangents
    out = integer_pow(x, y=y)
    if y == 0:
        return out, ZERO
    if y == 1:
        return out, t
    slope = x if y == 2 else integer_pow(x, y=y - 1)
    return out, mul(t, mul(constant(y, t), slope))


def _integer_pow_hlo(b: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return b.full_like(x, 1)
    narrow = dtypes.is_narrow_float(x.dtype) and y not in (1, 2)
    base = b.convert(x, np.float32) if narrow else x
    result = _by_squaring(base, y if y > 0 else -y, b.multiply)
    if y < 0:
        result = b.divide(b.full_like(result, 1), result)
    return b.convert(result, x.dtype) if narrow else result


integer_pow: Op = Op(
    name="integer_pow",
    kind=ELEMENTWISE,
    type=_integer_pow_type,
    impl=_integer_pow_impl,
    jvp=_integer_pow_jvp,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=_integer_pow_hlo,
    kernel=lambda k, x, *, y: k.integer_pow(x, y),
)

square = unary(
    "square",
    NUMERIC,
    keeps_dtype(np.square),
    each(lambda t, x: mul(t, mul(constant(2, t), x))),
    lambda b, x: b.multiply(x, x),
)


# Sign: of zero zero, of NaN NaN; x/|x| for complex numbers.


def _sign_impl(x: Any) -> Any:
    kind = x.dtype.kind
    if kind == "f":
        # np.sign(-0.0) is 0.0; XLA and copysign keep the sign.
        if extension is not None and x.dtype.char in "fd":
            return extension.sign(x)
        if x.dtype.char in "fde":
            out = np.sign(x)
            if is_plain(x):
                return out
            if x.size > 1024:
                # copysign has no vector code; a search for what needs it has.
                bits = x.view(f"u{x.itemsize}")
                if not np.count_nonzero(bits == 1 << 8 * x.itemsize - 1):
                    return out
            return np.copysign(out, x)
        return np.where(x == 0, x, np.sign(x))
    if kind != "c":
        return _sign_exact(x)
    # By parts: NumPy's complex division would make inf/|z| of a finite part NaN.
    size = np.abs(x)
    if np.count_nonzero(size) < size.size:
        size = np.where(size == 0, np.ones((), size.dtype), size)
    out = np.empty(x.shape, x.dtype)
    np.divide(x.real, size, out.real)
    np.divide(x.imag, size, out.imag)
    return out


_sign_exact = keeps_dtype(np.sign)
sign = unary("sign", NUMERIC, _sign_impl, zero_derivative, "sign")
