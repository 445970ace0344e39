"""Rounding to integers, to neighbours and to fewer bits."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from primal.base.limits import finfo
from primal.base.native import (
    BFLOAT16,
    FLOAT16,
    IN_VECTORS,
    extension,
    fmod,
    narrowed,
    same_room,
    widened,
)
from primal.base.native import nextafter as nextafters
from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, Never, Op, by_kind
from primal.ops.elementwise.arithmetic import BOOL, div, mul, neg, sign
from primal.ops.elementwise.make import binary, is_integer, unary
from primal.ops.elementwise.parts import abs
from primal.ops.types import FLOATING, NOT_LINEAR, check_dtype
from primal.ops.words import each, linear, zero_derivative


class RoundingMethod(enum.IntEnum):
    """How `round` treats numbers halfway between two integers.

    >>> RoundingMethod.TO_NEAREST_EVEN
    <RoundingMethod.TO_NEAREST_EVEN: 1>
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


floor = unary("floor", FLOATING, np.floor, zero_derivative, "floor")
ceil = unary("ceil", FLOATING, np.ceil, zero_derivative, "ceil")
is_finite = unary(
    "is_finite", FLOATING, np.isfinite, zero_derivative, "is_finite", out=lambda dtype: BOOL
)


# rem: x - y·trunc(x / y), with the sign of x; an integer's remainder by zero is itself.


def _rem_impl(x: Any, y: Any) -> Any:
    dtype = x.dtype
    if dtype == FLOAT16 or dtype == BFLOAT16:
        if dtype in IN_VECTORS and x.size + y.size > 16:
            if x.shape != y.shape:
                x, y = np.broadcast_arrays(x, y)
            return extension.half_rem(np.asarray(x), np.asarray(y))
        return narrowed(fmod(widened(x), widened(y)), dtype)  # which is exact
    if dtype.kind == "f" or not is_integer(dtype):
        return fmod(x, y)
    if np.count_nonzero(y) == y.size:
        out = np.fmod(x, y)
    elif dtype.kind in "iu":
        out = np.asarray(np.fmod(x, y))
        if x.shape == y.shape and x.ndim:
            at = np.nonzero(y == 0)
            out[at] = x[at]
        else:
            np.copyto(out, x, where=y == 0)
    else:
        zero = y == 0
        out = np.where(zero, x, np.fmod(x, np.where(zero, np.ones_like(y), y)))
    return out if out.dtype is dtype else out.astype(dtype)


def _rem_slope(t: Any, x: Any, y: Any) -> Any:
    ratio = div(x, y)
    return mul(neg(t), mul(sign(ratio), floor(abs(ratio))))


rem = binary(
    "rem", (np.integer, np.floating), _rem_impl, each(lambda t, x, y: t, _rem_slope), "remainder"
)


# round: to the nearest integer.


def _round_type(x: Aval, *, rounding_method: RoundingMethod) -> Aval:
    check_dtype("round", x, FLOATING)
    return x


# The float below a half: added, it rounds up exactly what is at or above a half.
HALVES = {np.dtype(t): np.nextafter(t(0.5), t(0)) for t in (np.float32, np.float64)}


def _round_impl(x: Any, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    if x.dtype in HALVES:
        out = np.copysign(HALVES[x.dtype], x, same_room(x))
        room = out if x.ndim else None
        return np.trunc(np.add(x, out, room), room)
    if x.dtype in (FLOAT16, BFLOAT16):
        return narrowed(_round_impl(widened(x), rounding_method=rounding_method), x.dtype)
    # Not floor(|x| + 0.5), which rounds the float below 0.5 up; x - trunc(x) is exact.
    whole = np.trunc(x)
    half = np.abs(x - whole) >= 0.5
    return np.where(half, whole + np.copysign(np.ones((), x.dtype), x), whole).astype(x.dtype)


def _round_hlo(b: Any, x: Any, *, rounding_method: RoundingMethod) -> Any:
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    return b.round_nearest_even(x) if even else b.round_nearest_afz(x)


def _round_kernel(k: Any, x: Any, *, rounding_method: RoundingMethod) -> Any:
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    return k.unary("round_nearest_even" if even else "round_nearest_afz", x)


round = Op(
    name="round",
    kind=ELEMENTWISE,
    type=_round_type,
    impl=_round_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=_round_hlo,
    kernel=_round_kernel,
)


def _nextafter_impl(x: Any, y: Any) -> Any:
    out = nextafters(x, y)
    if x.dtype != FLOAT16:
        return out
    # Of two zeros the second one, as for all floats but NumPy's float16.
    return np.where(np.equal(widened(x), widened(y)), y, out)


nextafter = binary(
    "nextafter",
    FLOATING,
    _nextafter_impl,
    Never("[nextafter] expected no differentiation: steps between floats have no derivative."),
    "next_after",
)


# reduce_precision: x rounded (nearest, ties to even) to a float of that many exponent and mantissa
# bits. What is too large becomes infinite, what is too small zero: there are no subnormal results.


def _reduce_precision_type(x: Aval, *, exponent_bits: int, mantissa_bits: int) -> Aval:
    check_dtype("reduce_precision", x, FLOATING)
    if float(finfo(x.dtype).min) > 0:
        raise TypeError(
            f"[reduce_precision] expected a dtype with a sign, got {x.dtype.name}: it holds powers "
            "of two only."
        )
    if exponent_bits < 1 or mantissa_bits < 0:
        wrong = "exponent_bits must be positive"
        raise ValueError(
            f"[reduce_precision] expected exponent_bits >= 1 and mantissa_bits >= 0, got "
            f"{exponent_bits} and {mantissa_bits}: "
            f"{wrong if exponent_bits < 1 else 'mantissa_bits must be non-negative'}."
        )
    return x


def _reduce_precision_impl(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    info = finfo(x.dtype)
    have = info.nmant
    word = np.dtype(f"u{x.dtype.itemsize}").type
    bits = np.array(x).view(word)
    if mantissa_bits < have:
        dropped = have - mantissa_bits
        # Adding just under half a unit of the last kept bit, and one more if that bit is odd,
        # carries exactly where rounding to nearest even goes up; carries reach the exponent.
        odd = (bits >> word(dropped)) & word(1)
        bits = (bits + (odd + word((1 << (dropped - 1)) - 1))) & word(~((1 << dropped) - 1) & (
            (1 << (8 * x.dtype.itemsize)) - 1))
    if exponent_bits < info.nexp:
        bias, new_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        field = word(((1 << info.nexp) - 1) << have)
        exponent = bits & field
        signs = bits & word(1 << (info.nexp + have))
        bits = np.where(exponent > word((bias + new_bias) << have), signs | field, bits)
        bits = np.where(exponent <= word((bias - new_bias) << have), signs, bits)
    return np.where(np.isnan(x), x, bits.astype(word, copy=False).view(x.dtype))


def _reduce_precision_kernel(k: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    """The steps of the `impl`."""
    info = finfo(x.dtype)
    have, unsigned = info.nmant, np.dtype(f"u{x.dtype.itemsize}")
    bits = k.bitcast(x, unsigned)

    def word(value: int) -> Any:
        return k.literal(value, unsigned)

    if mantissa_bits < have:
        dropped = have - mantissa_bits
        odd = k.binary("and", k.binary("shift_right_logical", bits, word(dropped)), word(1))
        up = k.binary("add", odd, word((1 << (dropped - 1)) - 1))
        kept = ((1 << (8 * x.dtype.itemsize)) - 1) ^ ((1 << dropped) - 1)
        bits = k.binary("and", k.binary("add", bits, up), word(kept))
    if exponent_bits < info.nexp:
        bias, new_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        field = word(((1 << info.nexp) - 1) << have)
        exponent = k.binary("and", bits, field)
        signs = k.binary("and", bits, word(1 << (info.nexp + have)))
        over = k.binary("gt", exponent, word((bias + new_bias) << have))
        bits = k.select_n(over, bits, k.binary("or", signs, field))
        under = k.binary("le", exponent, word((bias - new_bias) << have))
        bits = k.select_n(under, bits, signs)
    return k.select_n(k.binary("ne", x, x), k.bitcast(bits, x.dtype), x)


reduce_precision: Op = Op(
    name="reduce_precision",
    kind=ELEMENTWISE,
    type=_reduce_precision_type,
    impl=_reduce_precision_impl,
    jvp=linear,
    transpose=lambda ct, x, **params: (reduce_precision(ct, **params),),
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x, *, exponent_bits, mantissa_bits: b.reduce_precision(
        x, exponent_bits, mantissa_bits
    ),
    kernel=_reduce_precision_kernel,
)
