"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions and their inverses.

NumPy's ufuncs are the meaning. Floats of at most 16 bits are computed in float32 and rounded once,
by NumPy inside the ufunc, bfloat16 beside it (`in_vectors`), by XLA in its own expansions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float
from primal.base.limits import finfo
from primal.base.native import is_finite, is_plain, same_room
from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, Bound, Op, by_kind
from primal.ir.trace import Literal, aval_of, literal
from primal.ops.elementwise import complexes
from primal.ops.elementwise.arithmetic import (
    add,
    div,
    eq,
    gt,
    integer_pow,
    lt,
    mul,
    neg,
    reciprocal,
    square,
    sub,
)
from primal.ops.elementwise.choice import max as larger
from primal.ops.elementwise.choice import select_n
from primal.ops.elementwise.convert import as_dtype, convert_element_type
from primal.ops.elementwise.make import binary, in_float32, in_vectors, is_integer, unary
from primal.ops.elementwise.parts import abs
from primal.ops.types import FLOATING, INEXACT, NOT_LINEAR, broadcast_shapes, check_dtype
from primal.ops.words import constant, each, each_alike, each_out


def _one(t: Any) -> Any:
    return literal(1, aval_of(t).dtype)


def _of(ufunc: Any, by_parts: Any, wide: Any = None) -> Any:
    return complexes.parts_of(ufunc, by_parts, in_vectors(ufunc), wide)


# Exponentials and logarithms.

exp = unary(
    "exp",
    INEXACT,
    _of(np.exp, complexes.exp),
    each_out(lambda t, out, x: mul(t, out)),
    "exponential",
)


def _exp2_hlo(b: Any, x: Any, accuracy: Any = None) -> Any:
    # Not e^(x·log 2): at x = 100 the rounded exponent puts the power off by dozens of ulps.
    return b.power(b.full_like(x, 2), x, accuracy)


exp2 = unary(
    "exp2",
    INEXACT,
    _of(np.exp2, complexes.exp2),
    each_out(lambda t, out, x: mul(constant(math.log(2), t), mul(t, out))),
    _exp2_hlo,
)


def _log_of_wide(x: Any) -> Any:
    """Many complex128 by parts, as NumPy's go one by one, 100 ns each; C99's values are its own."""
    if x.size <= complexes.FEW * 4:
        return np.log(x)
    out = np.empty(x.shape, x.dtype)
    flat, into = x.reshape(-1), out.reshape(-1)
    for start in range(0, flat.size, complexes.BLOCK):
        some = slice(start, start + complexes.BLOCK)
        _log_by_parts(flat[some], into[some])
    return out


def _log_by_parts(x: Any, out: Any) -> None:
    a, b, size = np.array(x.real), np.array(x.imag), np.abs(x)
    level = np.log(size)
    near = np.abs(size - 1.75) < 1.25  # whose logarithm has few digits of the modulus
    if np.count_nonzero(near):
        parts = np.abs(a[near]), np.abs(b[near])
        above, low = np.maximum(*parts) - 1, np.minimum(*parts)
        squares, lost = zip(*map(_square, (above, low)), strict=True)
        level[near] = complexes.log_of_modulus(above, squares, lost[0] + lost[1])
    out.real, out.imag = level, np.arctan2(b, a)
    odd = ~((size > 1e-300) & (size < np.inf))
    if np.count_nonzero(odd):
        out[odd] = np.log(x[odd])


log = unary(
    "log",
    INEXACT,
    _of(np.log, complexes.log, _log_of_wide),
    each(lambda t, x: div(t, x)),
    "log",
)


# NumPy's expm1 of complex numbers has an imaginary part e^x·0, NaN where e^x is infinite, which it
# may be although no part of the product is, and is NaN at -inf + inf j, where e^x is 0 (C99
# G.6.3.1). Its log1p is log|1 + x|, which is 0 for small x, and infinite where the modulus is.


def _written_of_reals(ufunc: Any) -> Any:
    def written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
        return None if eqn.outvars[0].aval.dtype.kind == "c" else f"{bound(ufunc)}({names[0]})"

    return written


_LOG_OF_LARGEST = {
    dtype: np.log(np.finfo(dtype).max) for dtype in map(np.dtype, (np.complex64, np.complex128))
}


def _expm1_impl(x: Any) -> Any:
    out = np.asarray(np.expm1(x))  # an array, also of a scalar: parts are set
    if x.dtype.kind == "c":
        a, b = x.real, x.imag
        # Both exponentials of all take longer than all the rest.
        if a.size and not np.maximum.reduce(np.abs(a), None) < _LOG_OF_LARGEST[x.dtype]:
            far = np.isinf(a) | np.isinf(np.exp(a))
            out = np.where(far, np.exp(x) - np.float32(1), out)
        if np.count_nonzero(b) < b.size:
            out.imag = np.where(b == 0, b, out.imag)
    return out


def _log1p_impl(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.log1p(x)
    x = np.asarray(x)
    if is_finite(x):
        # NumPy's logarithm of complex numbers goes one by one, 50 ns each.
        found = _log1p_by_parts(x)
        if found is not None:
            return found
    return _log1p_of_any(x)


def _log1p_by_parts(x: Any) -> Any:
    """None where a modulus is infinite or 0."""
    a, b = x.real, x.imag
    moved = np.array(x)
    moved.real += 1
    size = np.abs(moved)
    if not (is_finite(size) and np.count_nonzero(size) == size.size):
        return None
    out = np.empty(x.shape, x.dtype)
    out.real = np.log(size)
    out.imag = np.arctan2(b, moved.real)
    near = np.abs(size - 1) < 0.5  # whose logarithm has few digits of the modulus
    if np.count_nonzero(near):
        a, b = a[near], b[near]
        squares, lost = zip(*map(_square, (a, b)), strict=True)
        out.real[near] = complexes.log_of_modulus(a, squares, lost[0] + lost[1])
    return out


def _square(x: Any) -> tuple[Any, Any]:
    """x^2 rounded, and what is lost (T. J. Dekker, Numer. Math. 18, 1971)."""
    wide = x * float((1 << 27) + 1)
    high = wide - (wide - x)
    low = x - high
    out = x * x
    return out, ((high * high - out) + 2 * high * low) + low * low


def _log1p_of_any(x: Any) -> Any:
    a, b = x.real, x.imag
    out = np.array(x)
    out.real += 1
    out = np.asarray(np.log(out))
    small = np.maximum(np.abs(a), np.abs(b)) < 0.5
    close = np.log1p(np.where(small, a * (a + 2) + b * b, 0))
    out.real = np.where(small, close * 0.5, out.real)
    return out


expm1 = unary(
    "expm1",
    INEXACT,
    in_vectors(complexes.parts_of(_expm1_impl, complexes.expm1)),
    # Of out + 1 far below 0 no digit would be left.
    each_alike(lambda t, call, x: mul(t, call(exp, x))),
    "exponential_minus_one",
    written=_written_of_reals(np.expm1),
)
log1p = unary(
    "log1p",
    INEXACT,
    in_vectors(complexes.parts_of(_log1p_impl, complexes.log1p)),
    each(lambda t, x: div(t, add(x, _one(t)))),
    "log_plus_one",
    written=_written_of_reals(np.log1p),
)


def _logistic_impl(x: Any) -> Any:
    room = same_room(x)
    power = np.exp(np.negative(x, room), room)
    if is_finite(power):
        return reciprocal(np.add(power, 1, room), room)
    out = reciprocal(power + 1)
    # Where e^-x is infinite, e^x is a subnormal number still. Zeros beside it have no sign.
    return np.where(np.isinf(power) & np.isfinite(x), np.exp(x + 0), out)


logistic = unary(
    "logistic",
    INEXACT,
    in_float32(complexes.parts_of(_logistic_impl, complexes.logistic)),
    # From 17 on no digit of float32 is left; out·logistic(-x), which has all, takes twice the time.
    each_out(lambda t, out, x: mul(t, mul(out, sub(_one(t), out)))),
    "logistic",
)


# Roots.

sqrt = unary(
    "sqrt",
    INEXACT,
    complexes.parts_of(np.sqrt, complexes.sqrt),
    each_out(lambda t, out, x: mul(t, div(constant(0.5, t), out))),
    "sqrt",
)


def _rsqrt_impl(x: Any) -> Any:
    room = same_room(x)
    out = reciprocal(np.sqrt(x, room), room)
    if x.dtype.kind != "c":
        return out
    # In the right half, on the other side of the real axis, also where that is seen by a zero.
    found = np.empty(x.shape, x.dtype)
    found.real, found.imag = np.abs(out.real), -np.copysign(out.imag, x.imag)
    return found


rsqrt = unary(
    "rsqrt",
    INEXACT,
    in_float32(complexes.parts_of(_rsqrt_impl, complexes.rsqrt)),
    each_out(lambda t, out, x: mul(t, mul(constant(-0.5, t), div(out, x)))),
    "rsqrt",
)
cbrt = unary(
    "cbrt",
    FLOATING,
    in_vectors(np.cbrt),
    each_out(lambda t, out, x: mul(t, mul(constant(1 / 3, t), integer_pow(out, y=-2)))),
    "cbrt",
)


# Trigonometric functions and their inverses.

sin = unary(
    "sin",
    INEXACT,
    _of(np.sin, complexes.sin),
    each_alike(lambda t, call, x: mul(t, call(cos, x))),
    "sine",
)
cos: Op = unary(
    "cos",
    INEXACT,
    _of(np.cos, complexes.cos),
    each_alike(lambda t, call, x: neg(mul(t, call(sin, x)))),
    "cosine",
)
tan = unary(
    "tan",
    INEXACT,
    _of(np.tan, complexes.tan),
    each_out(lambda t, out, x: mul(t, add(constant(1, t), square(out)))),
    "tan",
)


def _one_less_square(x: Any) -> Any:
    """1 - x²: of the rounded square few digits would be left next to 1."""
    one = constant(1, x)
    return mul(sub(one, x), add(one, x))


asin = unary(
    "asin",
    INEXACT,
    _of(np.arcsin, complexes.asin),
    each(lambda t, x: mul(t, rsqrt(_one_less_square(x)))),
    "asin",
)
acos = unary(
    "acos",
    INEXACT,
    _of(np.arccos, complexes.acos),
    each(lambda t, x: mul(t, neg(rsqrt(_one_less_square(x))))),
    "acos",
)


def _atan_slope(t: Any, x: Any) -> Any:
    """t / (1 + x²), whose square leaves the range of float16 from 256 on."""
    dtype = aval_of(x).dtype
    if is_narrow_float(dtype):
        t, x = [as_dtype(v, np.dtype(np.float32)) for v in (t, x)]
    return as_dtype(div(t, add(constant(1, t), square(x))), dtype)


atan = unary("atan", INEXACT, _of(np.arctan, complexes.atan), each(_atan_slope), "atan")


def _atan2_impl(y: Any, x: Any) -> Any:
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    # The angle of x + i·y for complex parts: exp(i·angle) = (x + i·y) / sqrt(x² + y²).
    turned = div.impl(x + 1j * y, sqrt.impl(x * x + y * y))
    return (-1j * log.impl(turned)).astype(y.dtype)


def _over_squares(t: Any, other: Any, y: Any, x: Any) -> Any:
    """t·other/(x² + y²), of which the squares alone may leave the range of floats."""
    dtype = aval_of(x).dtype
    if dtype.kind == "c":
        return mul(t, div(other, add(square(y), square(x))))
    if is_narrow_float(dtype):  # that of float16 begins at 256
        other, y, x = [as_dtype(v, np.dtype(np.float32)) for v in (other, y, x)]
    size = larger(abs(y), abs(x))
    wide, half = aval_of(size).dtype, finfo(aval_of(size).dtype).maxexp // 2
    small, large = [literal(2.0**n, wide) for n in (4 - half, half - 1)]
    up, down = [literal(2.0**n, wide) for n in (half * 7 // 4, -half - 2)]
    scale = select_n(lt(size, small), select_n(gt(size, large), _one(size), down), up)
    y, x, other = mul(y, scale), mul(x, scale), mul(other, scale)
    slope = mul(div(other, add(square(y), square(x))), scale)
    # An angle does not move where a part is infinite, whatever the quotient says.
    slope = select_n(eq(size, literal(math.inf, wide)), slope, literal(0.0, wide))
    return mul(t, as_dtype(slope, dtype))


atan2 = binary(
    "atan2",
    INEXACT,
    in_vectors(_atan2_impl),
    each(
        lambda t, y, x: _over_squares(t, x, y, x),
        lambda t, y, x: _over_squares(t, neg(y), y, x),
    ),
    "atan2",
)


# Hyperbolic functions and their inverses.

sinh = unary(
    "sinh",
    INEXACT,
    _of(np.sinh, complexes.sinh),
    each(lambda t, x: mul(t, cosh(x))),
    "sinh",
)
cosh: Op = unary(
    "cosh",
    INEXACT,
    _of(np.cosh, complexes.cosh),
    each(lambda t, x: mul(t, sinh(x))),
    "cosh",
)
tanh = unary(
    "tanh",
    INEXACT,
    _of(np.tanh, complexes.tanh),
    each_out(lambda t, out, x: mul(add(t, mul(t, out)), sub(_one(t), out))),
    "tanh",
)


def _shrinking(x: Any) -> Any:
    """1, and where x² would overflow a power of two that x is to be multiplied by."""
    dtype = aval_of(x).dtype
    half = finfo(dtype).maxexp // 2
    large = gt(x, literal(2.0 ** (half - 1), dtype))
    return select_n(large, _one(x), literal(2.0**-half, dtype))


def _asinh_slope(t: Any, x: Any) -> Any:
    """t / √(x² + 1)."""
    if aval_of(x).dtype.kind == "c":
        return mul(t, rsqrt(add(square(x), _one(x))))
    scale = _shrinking(abs(x))
    total = add(square(mul(x, scale)), square(scale))
    return mul(t, mul(rsqrt(total), scale))


asinh = unary("asinh", INEXACT, _of(np.arcsinh, complexes.asinh), each(_asinh_slope), "asinh")


def _acosh_slope(t: Any, x: Any) -> Any:
    """t / √(x - 1) / √(x + 1), not of x² - 1: the branch cut on (-1, 1) needs them apart, and so
    do digits next to 1.

    Of real numbers one root is enough (gradient of 100,000 float64 125 to 62 µs, JAX 60): below 1
    the second factor is positive, so that the product is not, and large ones are scaled, as their
    product would be infinite.
    """
    one = _one(x)
    if aval_of(x).dtype.kind == "c":
        return mul(t, mul(rsqrt(sub(x, one)), rsqrt(add(x, one))))
    scale = _shrinking(x)
    product = mul(mul(sub(x, one), scale), mul(add(larger(x, one), one), scale))
    return mul(t, mul(rsqrt(product), scale))


acosh = unary(
    "acosh",
    INEXACT,
    _of(np.arccosh, complexes.acosh),
    each(_acosh_slope),
    "acosh",
)
atanh = unary(
    "atanh",
    INEXACT,
    _of(np.arctanh, complexes.atanh),
    each(lambda t, x: mul(integer_pow(add(_one(t), x), y=-1), div(t, sub(_one(t), x)))),
    "atanh",
)


# pow: x^y for y of x's dtype or an integer one.


def _pow_type(x: Aval, y: Aval) -> Aval:
    check_dtype("pow", x, INEXACT)
    if y.dtype != x.dtype and not is_integer(y.dtype):
        raise TypeError(
            f"[pow] expected an exponent of the base's dtype or an integer one, got "
            f"{x.dtype.name} to the power {y.dtype.name}."
        )
    weak = x.weak_type and y.weak_type
    return Aval(broadcast_shapes("pow", (x, y)), x.dtype, weak)


def _complex_power(x: Any, y: Any) -> Any:
    # In complex128, as `float_power` is: closer, and in a third of the time.
    out = np.float_power(x, y)
    # The C library gives the zeros of infinite operands the sign bit of a NaN.
    if np.count_nonzero(out) < np.size(out):
        lost = (out == 0) & ~(np.isfinite(x) & np.isfinite(y))
        out = np.where(lost, 0, out) if lost.any() else out
    return out


_power_of_many = complexes.power(_complex_power)


def _pow_impl(x: Any, y: Any) -> Any:
    y = y if y.dtype is x.dtype else y.astype(x.dtype)
    if x.dtype.kind == "c" and y.size == 1 and y.ndim <= x.ndim and y == 0.5 and is_plain(x):
        # NumPy's `**` takes a complex root too, in a third of the time and closer.
        return sqrt.impl(x)
    if x.dtype.kind == "c":
        if x.dtype == np.complex64 and x.size + y.size > complexes.FEW:
            return _power_of_many(x, y)
        out = _complex_power(x, y)
        return out if out.dtype == x.dtype else out.astype(x.dtype)
    if x.dtype.kind != "f":
        return np.power(x, y)
    # NumPy takes a root where one exponent of 0.5 serves several numbers, and then says -0 of -0
    # and NaN of -inf.
    if y.size == 1:
        if y != 0.5:
            return np.power(x, y)
        return _root(x if y.ndim <= x.ndim else np.reshape(x, y.shape))
    shape = x.shape
    if y.shape != shape:
        pairs = zip(shape, y.shape, strict=True)
        shape = tuple([m if n == 1 else n for n, m in pairs]) if x.ndim == y.ndim else y.shape
    if y.shape != shape or 0 in y.strides:
        given, y = y, np.empty(shape, y.dtype)
        np.copyto(y, given)
    return np.power(x, y)


def _root(x: Any) -> Any:
    """x to the power 0.5, in a twentieth of the time."""
    if is_plain(x):
        return np.sqrt(x, out=same_room(x))
    x = np.asarray(np.add(x, x.dtype.type(0), out=same_room(x)))
    endless = np.equal(x, x.dtype.type(-np.inf))
    out = np.sqrt(x, x)
    if np.count_nonzero(endless):
        np.copyto(out, x.dtype.type(np.inf), where=endless)
    return out


def _pow_base(t: Any, out: Any, x: Any, y: Any) -> Any:
    if not is_integer(aval_of(y).dtype):
        one = literal(1, aval_of(y).dtype, not isinstance(y, Literal))
        return mul(t, mul(y, pow(x, sub(y, one))))
    # An integer exponent 0 means the constant 1, whose slope is 0 at x = 0 too.
    zero, one = literal(0, aval_of(y).dtype), literal(1, aval_of(y).dtype)
    lower = pow(x, sub(select_n(eq(y, zero), y, one), one))
    times = convert_element_type(y, new_dtype=aval_of(x).dtype, weak_type=False)
    return mul(t, mul(times, lower))


def _pow_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:
    # log(0)·0^y is taken as 0, its limit for y > 0.
    safe = select_n(eq(x, literal(0, aval_of(x).dtype)), x, literal(1, aval_of(x).dtype))
    return mul(t, mul(log(safe), out))


pow = Op(
    name="pow",
    kind=ELEMENTWISE,
    type=_pow_type,
    impl=_pow_impl,
    jvp=each_out(_pow_base, _pow_exponent),
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x, y: b.power(x, b.convert(y, x.dtype)),
    kernel=lambda k, x, y: k.binary("pow", x, k.convert(y, x.dtype)),
)
