"""Elementwise functions built from several operations, with care for overflow, nan and derivatives.

Where a formula breaks down at some values, the operands are replaced there before it is applied:
replacing only the result would leave nan in its derivative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.api.control.custom import custom_jvp
from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.elementary import inexact, isfinite, isinf
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    broadcast_shapes,
    check_arraylike,
    check_out,
    common_shape,
    convert,
    in_float32,
    operand,
    promote_args_inexact,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_shapes,
    to_shape,
    warn_of_parts,
)
from primal.numpy.remembered import remembered, remembered_as
from primal.ops import elementwise as ops
from primal.ops.choose import bitcast_convert_type
from primal.ops.reduce import reduce_and


def _together(name: str, *args: Any) -> tuple[Any, ...]:
    """Operands of one inexact dtype and of one shape."""
    given = promote_args_inexact(name, *args)
    shape = common_shape(name, *given)
    return tuple([to_shape(x, shape) for x in given])


def _const(value: float, like: Any) -> Any:
    return literal(value, like.aval.dtype, True)


def _full(value: float, like: Any) -> Any:
    return to_shape(_const(value, like), like.aval.shape)


def _scalars_weak(x: Any) -> Any:
    """The same, weak only if it is a scalar."""
    return _strong(x) if x.aval.ndim else x


def _strong(x: Any) -> Any:
    """The same with a dtype of its own: such functions answer scalars with an array of theirs."""
    return convert(x, x.aval.dtype)


# Two real numbers as a point or as exponents.


@remembered
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in [-π, π].

    Element by element; integers and booleans count as floats of the default dtype, x1 and x2
    broadcast.

    >>> jnp.arctan2(jnp.array([1., -1.]), 0.)
    Array([ 1.5707964, -1.5707964], dtype=float32)
    """
    return ops.atan2(*promote_args_inexact("arctan2", x1, x2))


atan2 = arctan2


@remembered
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of a complex number, in radians or degrees.

    Of integers and booleans in floats of the default dtype.

    >>> jnp.angle(jnp.array([1j, -1]))
    Array([1.5707964, 3.1415927], dtype=float32)
    """
    given = operand("angle", z)
    x = inexact("angle", given)
    if given.aval.dtype.kind in "biu":
        x = convert(x, dtypes.canonicalize_dtype(float))
    if x.aval.dtype.kind == "c":
        out = ops.atan2(ops.imag(x), ops.real(x))
    else:
        out = ops.atan2(_full(0, x), x)
    out = ops.mul(out, _const(180 / np.pi, out)) if deg else out
    return _strong(out) if deg or (x.aval.dtype.kind != "c" and not x.aval.ndim) else out


@remembered_as(direct.hypot)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """√(x1² + x2²) without overflow in between; TypeError for complex numbers.

    Raises ValueError for complex numbers.

    >>> jnp.hypot(3., 4.)
    Array(5., dtype=float32, weak_type=True)
    """
    x, y = _together("hypot", x1, x2)
    if x.aval.dtype.kind == "c":
        raise ValueError("jnp.hypot is not supported for complex inputs: use abs(x) and abs(y).")
    return _scalars_weak(in_float32(_hypot, x, y))


def _hypot(x: Any, y: Any) -> Any:
    x, y = ops.abs(x), ops.abs(y)
    infinite = ops.bitwise_or(isinf(x), isinf(y))
    big, small = ops.max(x, y), ops.min(x, y)
    plain = ops.bitwise_or(ops.eq(big, _const(0, big)), infinite)
    ratio = ops.select_n(
        plain, ops.div(small, ops.select_n(plain, big, _full(1, big))), _full(0, big)
    )
    out = ops.mul(big, ops.sqrt(ops.add(_const(1, ratio), ops.square(ratio))))
    return ops.select_n(infinite, out, _full(np.inf, out))


@remembered_as(direct.logaddexp)
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.logaddexp(1000., 1000.)
    Array(1000.6932, dtype=float32, weak_type=True)
    """
    x, y = _together("logaddexp", x1, x2)
    if x.aval.dtype.kind == "c":
        return _scalars_weak(_complex_logaddexp(x, y))
    return in_float32(_logaddexp, x, y)


def _logaddexp(x: Any, y: Any) -> Any:
    big, apart = _apart(x, y)
    return ops.add(big, ops.log1p(ops.exp(apart)))


_LOG_2 = math.log(2)


@remembered_as(direct.logaddexp2)
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.logaddexp2(1000., 1000.)
    Array(1001., dtype=float32, weak_type=True)
    """
    x, y = _together("logaddexp2", x1, x2)
    if x.aval.dtype.kind == "c":
        out = _complex_logaddexp(_scaled(x, _LOG_2), _scaled(y, _LOG_2))
        return _scaled(out, 1 / _LOG_2)
    return _scalars_weak(in_float32(_logaddexp2, x, y))


def _scaled(x: Any, by: float) -> Any:
    """Both parts of a complex number times a real one: a product of complex ones has inf * 0."""
    parts = ops.real(x), ops.imag(x)
    return ops.complex(*[ops.mul(p, _const(by, p)) for p in parts])


def _logaddexp2(x: Any, y: Any) -> Any:
    big, apart = _apart(x, y)
    tail = ops.log1p(ops.exp2(apart))
    return ops.add(big, ops.div(tail, _const(_LOG_2, tail)))


def _apart(x: Any, y: Any) -> tuple[Any, Any]:
    """(the larger, the smaller minus the larger), the latter 0 for two equal infinities.

    Chosen by one comparison: the second derivatives of min and max would be lost at ties.
    """
    less = ops.lt(x, y)
    big, small = ops.select_n(less, x, y), ops.select_n(less, y, x)
    same = ops.bitwise_and(ops.eq(x, y), isinf(x))
    return big, ops.select_n(same, ops.sub(small, big), _full(0, big))


def _complex_logaddexp(x: Any, y: Any) -> Any:
    larger = ops.ge(ops.real(x), ops.real(y))
    big, small = ops.select_n(larger, y, x), ops.select_n(larger, x, y)
    apart = ops.sub(small, big)
    apart = ops.select_n(ops.ne(apart, apart), apart, _full(0, apart))
    out = ops.add(big, ops.log1p(ops.exp(apart)))
    # The imaginary part is an angle: brought back to [-π, π].
    turns = ops.imag(out)
    turns = ops.atan2(ops.sin(turns), ops.cos(turns))
    return ops.complex(ops.real(out), turns)


@remembered_as(direct.sinc)
def sinc(x: ArrayLike, /) -> Array:
    """sin(πx) / (πx), and 1 at 0.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.sinc(jnp.array([0., 0.5]))
    Array([1.        , 0.63661975], dtype=float32)
    """
    x = inexact("sinc", x)
    return _scalars_weak(in_float32(_sinc, x))


@custom_jvp
def _sinc(x: Any) -> Any:
    u = ops.mul(x, _const(np.pi, x))
    zero = ops.eq(u, _const(0, u))
    out = ops.select_n(zero, ops.div(ops.sin(u), u), _full(1, u))
    if u.aval.dtype.kind == "c":
        return out
    return ops.select_n(_beyond(x, u), out, _full(0, u))


def _beyond(x: Any, u: Any) -> Any:
    """Where u = πx is infinite and x is not: there floats are whole numbers."""
    infinity = _const(math.inf, u)
    return ops.bitwise_and(ops.eq(ops.abs(u), infinity), ops.lt(ops.abs(x), infinity))


@_sinc.defjvp
def _sinc_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _sinc(x), ops.mul(t, _sinc_slope(x))


def _sinc_slope(x: Any) -> Any:
    """π(cos u - sin(u)/u)/u of u = πx."""
    u = ops.mul(x, _const(np.pi, x))
    size = ops.abs(u)
    near = ops.lt(size, literal(1, size.aval.dtype, True))
    # Near 0 the quotient is a difference over powers of u, which are 0 before u is: of its own
    # series all derivatives are right.
    inner = ops.select_n(near, _full(0, u), u)
    square = ops.square(inner)
    terms = [
        math.pi * (-1) ** k * 2 * k / math.factorial(2 * k + 1)
        for k in range(1, 11 if size.aval.dtype.itemsize == 8 else 7)
    ]
    series = _const(terms[-1], u)
    for term in terms[-2::-1]:
        series = ops.add(ops.mul(square, series), _const(term, u))

    real = u.aval.dtype.kind != "c"
    beyond = _beyond(x, u) if real else near
    safe = ops.select_n(ops.bitwise_or(near, beyond), u, _full(1, u))
    quotient = ops.div(ops.sub(ops.cos(safe), ops.div(ops.sin(safe), safe)), safe)
    quotient = ops.select_n(beyond, ops.mul(quotient, _const(math.pi, u)), _full(0, u))
    return ops.select_n(near, quotient, ops.mul(inner, series))


@remembered_as(direct.heaviside)
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 below 0, 1 above, x2 at 0, element by element; nan for nan.

    >>> jnp.heaviside(jnp.array([-1., 0., 1.]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    given = operand("heaviside", x1)
    x, y = _together("heaviside", given, x2)
    step = ops.select_n(ops.gt(x, _const(0, x)), _full(0, x), _full(1, x))
    step = ops.select_n(ops.eq(x, _const(0, x)), step, y)
    out = ops.select_n(ops.ne(x, x), step, x)
    return _strong(out) if given.aval.ndim else out


# The parts of a floating-point number.


def _float_dtype(name: str, dtype: Any) -> None:
    if dtype.kind == "c":
        raise ValueError(f"jnp.{name} is not defined for complex inputs.")
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"[{name}] expected a real floating dtype, got {dtype.name}.")


@remembered_as(direct.signbit)
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set: True for negative numbers and -0.

    >>> jnp.signbit(jnp.array([-1., -0., 0.]))
    Array([ True,  True, False], dtype=bool)
    """
    x = operand("signbit", x)
    dtype = x.aval.dtype
    if dtype == BOOL or dtypes.issubdtype(dtype, np.integer):
        return ops.lt(x, literal(0, dtype, False)) if dtype != BOOL else ops.bitwise_xor(x, x)
    _float_dtype("signbit", dtype)
    bits = bitcast_convert_type(x, new_dtype=np.dtype(f"int{dtype.itemsize * 8}"))
    return ops.lt(bits, literal(0, bits.aval.dtype, True))


@remembered_as(direct.copysign)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """|x1| with the sign of x2, element by element.

    Raises TypeError for complex numbers.

    >>> jnp.copysign(jnp.array([1., -2.]), -1.)
    Array([-1., -2.], dtype=float32)
    """
    x, y = _together("copysign", x1, x2)
    if x.aval.dtype.kind == "c":
        raise TypeError("copysign does not support complex-valued inputs")
    size = ops.abs(x)
    out = ops.select_n(signbit(y), size, ops.neg(size))
    return convert(out, out.aval.dtype, x.aval.weak_type and y.aval.weak_type)


@remembered
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The next number that floats can hold, from x towards y.

    >>> jnp.nextafter(1., 2.) - 1. == jnp.finfo(jnp.float32).eps
    Array(True, dtype=bool)
    """
    return ops.nextafter(*promote_args_inexact("nextafter", x, y))


@remembered_as(direct.spacing)
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from 0, with x's sign.

    >>> jnp.spacing(jnp.float32(1)) == jnp.finfo(jnp.float32).eps
    Array(True, dtype=bool)
    """
    (x,) = promote_dtypes_inexact("spacing", x)
    _float_dtype("spacing", x.aval.dtype)
    away = ops.select_n(signbit(x), _full(np.inf, x), _full(-np.inf, x))
    return _strong(ops.sub(ops.nextafter(x, away), x))


@remembered_as(direct.modf)
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """(fraction, whole part), both with x's sign.

    Raises NotImplementedError for `out`. Two arrays of x's shape and dtype, floats for integers.

    >>> jnp.modf(jnp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    check_out("modf", out)
    (x,) = promote_dtypes_inexact("modf", x)
    # Of the size, whose fraction is +0 or more: copysign of a zero has not the slope of x - whole.
    negative = signbit(x)
    size = ops.select_n(negative, x, ops.neg(x))
    whole = ops.floor(size)
    fraction = ops.select_n(isinf(size), ops.sub(size, whole), _full(0, x))
    fraction, whole = [ops.select_n(negative, part, ops.neg(part)) for part in (fraction, whole)]
    return fraction, whole


# dtype -> (integer dtype of its bits, bits of the fraction, bias of the exponent)
_LAYOUT = {
    dtypes.float16: (dtypes.int16, 10, 15),
    dtypes.bfloat16: (dtypes.int16, 7, 127),
    dtypes.float32: (dtypes.int32, 23, 127),
    dtypes.float64: (dtypes.int64, 52, 1023),
}


@remembered_as(direct.ldexp)
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 · 2**x2 exactly, element by element; x2 is integer.

    Raises ValueError for complex numbers and for exponents that are no integers.

    >>> jnp.ldexp(jnp.array([1., 3.]), 4)
    Array([16., 48.], dtype=float32)
    """
    n = operand("ldexp", x2, 1)
    if not (dtypes.issubdtype(n.aval.dtype, np.integer) or n.aval.dtype == BOOL):
        raise ValueError(
            f"ldexp not supported for input types {(operand('ldexp', x1).aval.dtype, n.aval.dtype)}"
            ": the exponents must be integers."
        )
    (x,) = promote_dtypes_inexact("ldexp", x1)
    dtype = x.aval.dtype
    if dtype.kind == "c":
        raise ValueError("ldexp does not support complex-valued inputs")
    work = dtypes.float32 if dtypes.is_narrow_float(dtype) else dtype
    x, n = promote_shapes("ldexp", [convert(x, work), convert(n, dtypes.int32)])
    # A power of two per step stays in range; four steps reach from the smallest to the largest.
    _, _, bias = _LAYOUT[work]
    for _ in range(4):
        low, high = literal(1 - bias, dtypes.int32, True), literal(bias, dtypes.int32, True)
        step = ops.min(ops.max(n, low), high)
        x = ops.mul(x, _power_of_two(step, work))
        n = ops.sub(n, step)
    return convert(x, dtype)


def _power_of_two(n: Any, dtype: Any) -> Any:
    """2**n for exponents of normal numbers, from its bits."""
    bits, fraction, bias = _LAYOUT[dtype]
    exponent = ops.add(convert(n, bits), literal(bias, bits, True))
    return bitcast_convert_type(
        ops.shift_left(exponent, literal(fraction, bits, True)), new_dtype=dtype
    )


@remembered_as(direct.frexp)
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """(m, e) with x = m · 2**e and 0.5 <= |m| < 1; (x, 0) for 0, inf and nan.

    Raises TypeError for complex numbers.

    >>> jnp.frexp(jnp.array([8., 0.]))
    (Array([0.5, 0. ], dtype=float32), Array([4, 0], dtype=int32))
    """
    (x,) = promote_dtypes_inexact("frexp", x)
    dtype = x.aval.dtype
    if dtype.kind == "c":
        raise TypeError("[frexp] expected real numbers, got complex ones.")
    work = dtypes.float32 if dtypes.is_narrow_float(dtype) else dtype
    x = convert(x, work)
    bits, fraction, bias = _LAYOUT[work]
    # Subnormal numbers are scaled up first, so that their exponent is in its field.
    tiny = ops.lt(ops.abs(x), _const(float(np.finfo(work).tiny), x))
    up = ops.select_n(tiny, x, ops.mul(x, _const(2.0 ** (fraction + 1), x)))
    raw = bitcast_convert_type(up, new_dtype=bits)
    mask = literal(2 * bias + 1, bits, True)
    field = ops.bitwise_and(ops.shift_right_arithmetic(raw, literal(fraction, bits, True)), mask)
    exponent = ops.sub(field, literal(bias - 1, bits, True))
    zero = to_shape(literal(0, bits, False), exponent.aval.shape)
    lowered = ops.sub(exponent, literal(fraction + 1, bits, True))
    exponent = ops.select_n(tiny, exponent, lowered)
    plain = ops.bitwise_or(ops.eq(x, _const(0, x)), ops.bitwise_not(ops.is_finite(x)))
    exponent = convert(ops.select_n(plain, exponent, zero), dtypes.int32)
    mantissa = ops.select_n(plain, ldexp(x, ops.neg(exponent)), x)
    return convert(mantissa, dtype), exponent


# Closeness.


@remembered
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether |a - b| <= atol + rtol·|b|, element by element; equal infinities are close.

    Keys are close where they are equal. Raises TypeError for tolerances of another rank.

    >>> jnp.isclose(jnp.array([1., 2.]), jnp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    x, y = promote_dtypes("isclose", a, b)
    dtype = x.aval.dtype
    limits = [operand("isclose", v, 2 + i) for i, v in enumerate((rtol, atol))]
    shape = common_shape("isclose", x, y)
    if shape and any(v.aval.ndim not in (0, len(shape)) for v in limits):
        raise TypeError(
            f"[isclose] expected tolerances that are scalars or of {len(shape)} dimensions, got "
            f"shapes {limits[0].aval.shape} and {limits[1].aval.shape}."
        )
    shape = broadcast_shapes(shape, *[v.aval.shape for v in limits])
    # What depends on one operand alone is known before that is repeated.
    own_x, own_y = x, y if all(v.aval.ndim == 0 for v in limits) else to_shape(y, shape)
    x, y = to_shape(x, shape), to_shape(y, shape)
    if isinstance(dtype, dtypes.KeyType):
        return ops.eq(x, y)
    if not dtypes.issubdtype(dtype, np.inexact):
        work = dtypes.to_inexact_dtype(dtype)
        far = ops.abs(ops.sub(convert(x, work), convert(y, work)))
        return ops.le(far, to_shape(_tolerance(convert(own_y, work), limits), shape))
    near = ops.le(ops.abs(ops.sub(x, y)), to_shape(_tolerance(own_y, limits), shape))
    same = ops.eq(x, y)
    finite = ops.bitwise_and(to_shape(isfinite(own_x), shape), to_shape(isfinite(own_y), shape))
    out = ops.bitwise_or(same, ops.bitwise_and(near, finite))
    if equal_nan:
        out = ops.bitwise_or(out, ops.bitwise_and(ops.ne(x, x), ops.ne(y, y)))
    return out


def _tolerance(y: Any, limits: Any) -> Any:
    size = ops.abs(y)
    dtype = size.aval.dtype
    shape = size.aval.shape
    for v in limits:
        warn_of_parts(v.aval.dtype, dtype)
    r, a = [to_shape(convert(v, dtype), shape) for v in limits]
    return ops.add(a, ops.mul(r, size))


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether all elements are close in the sense of `isclose`.

    >>> jnp.allclose(jnp.array([1., 2.]), jnp.array([1.000001, 2.]))
    Array(True, dtype=bool)
    """
    check_arraylike("allclose", a, b)
    near = isclose(a, b, rtol, atol, equal_nan)
    return reduce_and(near, axes=tuple(range(near.ndim)))
