"""Arithmetic and the functions every program uses: operands of one dtype, result of their shape.

Type rule: equal dtypes; shapes equal, or scalar, or of equal rank with sizes equal or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, Op, Word, by_kind
from primal.ir.trace import ZERO, literal
from primal.ops.spread import broadcast_to
from primal.ops.types import (
    ANY,
    FLOATING,
    INEXACT,
    INTEGRAL,
    NOT_LINEAR,
    NUMERIC,
    is_linear,
    nary,
    shape_of,
)
from primal.ops.words import each, each_out, linear, unbroadcast, zero_derivative

BOOL = np.dtype(np.bool_)


def unary(
    name: str,
    kinds: tuple[Any, ...],
    impl: Callable[..., Any],
    jvp: Any,
    hlo: Any,
    kernel: Any = None,
    transpose: Any = NOT_LINEAR,
    out: Callable[[Any], Any] | None = None,
) -> Op:
    """An elementwise op with one operand; string rules name the builder's operation."""
    return Op(
        name=name,
        kind=ELEMENTWISE,
        type=nary(name, *kinds, out=out),
        impl=impl,
        jvp=jvp,
        transpose=transpose,
        batch=by_kind,
        shard=by_kind,
        hlo=(lambda b, x: b.unary(hlo, x)) if isinstance(hlo, str) else hlo,
        kernel=kernel if kernel is not None else (lambda k, x: k.unary(name, x)),
    )


def binary(
    name: str,
    kinds: tuple[Any, ...],
    impl: Callable[..., Any],
    jvp: Any,
    hlo: Any,
    transpose: Any = NOT_LINEAR,
    out: Callable[[Any], Any] | None = None,
) -> Op:
    """An elementwise op with two operands; string rules name the builder's operation."""
    return Op(
        name=name,
        kind=ELEMENTWISE,
        type=nary(name, *kinds, out=out),
        impl=impl,
        jvp=jvp,
        transpose=transpose,
        batch=by_kind,
        shard=by_kind,
        hlo=(lambda b, x, y: b.binary(hlo, x, y)) if isinstance(hlo, str) else hlo,
        kernel=lambda k, x, y: k.binary(name, x, y),
    )


# Linear ops: neg, add, sub; mul and div are linear in one operand.


def _neg_transpose(ct: Any, x: Any) -> Any:
    return (neg(ct),)


neg = unary("neg", NUMERIC, np.negative, linear, "negate", transpose=_neg_transpose)


def _add_transpose(ct: Any, x: Any, y: Any) -> Any:
    return (
        unbroadcast(ct, x.shape) if is_linear(x) else None,
        unbroadcast(ct, y.shape) if is_linear(y) else None,
    )


add = binary(
    "add",
    NUMERIC,
    np.add,
    each(lambda t, x, y: t, lambda t, x, y: t),
    "add",
    transpose=_add_transpose,
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


mul = binary(
    "mul",
    NUMERIC,
    np.multiply,
    each(lambda t, x, y: mul(t, y), lambda t, x, y: mul(x, t)),
    "multiply",
    transpose=_mul_transpose,
)


def _div_impl(x: Any, y: Any) -> Any:
    dtype = np.result_type(x, y) if not hasattr(x, "dtype") else x.dtype
    if dtype.kind not in "iu":
        return np.true_divide(x, y)
    # Integers: truncation toward zero, and -1 where the divisor is zero, as XLA defines.
    y_safe = np.where(y == 0, np.ones_like(y), y)
    quotient = np.floor_divide(x, y_safe)
    if dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * y_safe != x)).astype(dtype)
    return np.where(y == 0, np.array(-1).astype(dtype), quotient).astype(dtype)


def _div_transpose(ct: Any, x: Any, y: Any) -> Any:
    return unbroadcast(div(ct, y), x.shape), None


div = binary(
    "div",
    NUMERIC,
    _div_impl,
    each(lambda t, x, y: div(t, y), lambda t, x, y: mul(mul(neg(t), x), integer_pow(y, y=-2))),
    "divide",
    transpose=_div_transpose,
)


# Comparisons: dtype bool; real and complex numbers for eq and ne, real ones for the rest.


def _comparison(name: str, kinds: tuple[Any, ...], impl: Any, direction: str) -> Op:
    return binary(
        name,
        kinds,
        impl,
        zero_derivative,
        lambda b, x, y: b.compare(x, y, direction),
        out=lambda dtype: BOOL,
    )


ORDERED = (np.integer, np.floating, np.bool_)
eq = _comparison("eq", ANY, np.equal, "EQ")
ne = _comparison("ne", ANY, np.not_equal, "NE")
lt = _comparison("lt", ORDERED, np.less, "LT")
le = _comparison("le", ORDERED, np.less_equal, "LE")
gt = _comparison("gt", ORDERED, np.greater, "GT")
ge = _comparison("ge", ORDERED, np.greater_equal, "GE")


# Powers.


def _integer_pow_type(x: Aval, *, y: int) -> Aval:
    if not dtypes.issubdtype(x.dtype, np.number):
        raise TypeError(f"[integer_pow] expected a number dtype, got {x.dtype.name}.")
    if y < 0 and not dtypes.issubdtype(x.dtype, np.inexact):
        raise TypeError(
            f"[integer_pow] expected a non-negative power for {x.dtype.name}, got {y}: integers "
            "cannot be raised to negative powers. Convert to float first."
        )
    return x


def _integer_pow_impl(x: Any, *, y: int) -> Any:
    if y == 0:
        return np.ones_like(x)
    power, result, square_ = abs(y), None, x
    while power:
        if power & 1:
            result = square_ if result is None else result * square_
        power >>= 1
        if power:
            square_ = square_ * square_
    return np.true_divide(np.array(1, x.dtype), result).astype(x.dtype) if y < 0 else result


def _integer_pow_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, y: int) -> Any:
    (x,), (t,) = primals, tangents
    out = integer_pow(x, y=y)
    if y == 0:
        return out, ZERO
    slope = x if y == 2 else integer_pow(x, y=y - 1) if y != 1 else None
    if slope is None:
        return out, t
    return out, mul(t, mul(literal(y, t.dtype), slope))


def _integer_pow_expand(b: Any, x: Any, *, y: int) -> Any:
    power, result, square_ = abs(y), None, x
    while power:
        if power & 1:
            result = square_ if result is None else b.binary("multiply", result, square_)
        power >>= 1
        if power:
            square_ = b.binary("multiply", square_, square_)
    if result is None:
        return b.full_like(x, 1)
    return b.binary("divide", b.full_like(x, 1), result) if y < 0 else result


def _integer_pow_kernel(k: Any, x: Any, *, y: int) -> Any:
    return k.integer_pow(x, y)


integer_pow = Op(
    name="integer_pow",
    kind=ELEMENTWISE,
    type=_integer_pow_type,
    impl=_integer_pow_impl,
    jvp=_integer_pow_jvp,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=_integer_pow_expand,
    kernel=_integer_pow_kernel,
)

square = unary(
    "square",
    NUMERIC,
    np.square,
    each(lambda t, x: mul(t, mul(literal(2, t.dtype), x))),
    lambda b, x: b.binary("multiply", x, x),
)


# Exponentials and trigonometry.

exp = unary("exp", INEXACT, np.exp, each_out(lambda t, out, x: mul(t, out)), "exponential")
log = unary("log", INEXACT, np.log, each(lambda t, x: div(t, x)), "log")
expm1 = unary(
    "expm1",
    INEXACT,
    np.expm1,
    each_out(lambda t, out, x: mul(t, add(out, literal(1, t.dtype)))),
    "exponential_minus_one",
)
log1p = unary(
    "log1p",
    INEXACT,
    np.log1p,
    each(lambda t, x: div(t, add(x, literal(1, t.dtype)))),
    "log_plus_one",
)
sin = unary("sin", INEXACT, np.sin, each(lambda t, x: mul(t, cos(x))), "sine")
cos = unary("cos", INEXACT, np.cos, each(lambda t, x: neg(mul(t, sin(x)))), "cosine")
tan = unary(
    "tan",
    INEXACT,
    np.tan,
    each_out(lambda t, out, x: mul(t, add(literal(1, t.dtype), square(out)))),
    "tan",
)
tanh = unary(
    "tanh",
    INEXACT,
    np.tanh,
    each_out(lambda t, out, x: mul(t, mul(sub(literal(1, t.dtype), out), add(out, 1.0)))),
    "tanh",
)


def _logistic_impl(x: Any) -> Any:
    one = np.array(1, x.dtype)
    return np.true_divide(one, one + np.exp(-x)).astype(x.dtype)


logistic = unary(
    "logistic",
    INEXACT,
    _logistic_impl,
    each_out(lambda t, out, x: mul(t, mul(out, sub(literal(1, t.dtype), out)))),
    "logistic",
)
sqrt = unary(
    "sqrt",
    INEXACT,
    np.sqrt,
    each_out(lambda t, out, x: mul(t, div(literal(0.5, t.dtype), out))),
    "sqrt",
)
rsqrt = unary(
    "rsqrt",
    INEXACT,
    lambda x: np.true_divide(np.array(1, x.dtype), np.sqrt(x)).astype(x.dtype),
    each_out(lambda t, out, x: mul(t, mul(literal(-0.5, t.dtype), div(out, x)))),
    "rsqrt",
)


# Sign, magnitude, rounding.


def _sign_impl(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, np.zeros((), x.dtype), x / np.where(size == 0, 1, size)).astype(
        x.dtype
    )


sign = unary("sign", NUMERIC, _sign_impl, zero_derivative, "sign")
floor = unary("floor", FLOATING, np.floor, zero_derivative, "floor")
ceil = unary("ceil", FLOATING, np.ceil, zero_derivative, "ceil")
is_finite = unary(
    "is_finite", FLOATING, np.isfinite, zero_derivative, "is_finite", out=lambda dtype: BOOL
)


def _real_dtype(dtype: Any) -> Any:
    return np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype


def _abs_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (x,), (t,) = primals, tangents
    out = abs(x)
    if x.dtype.kind != "c":
        return out, mul(t, sign(x))
    # d|x| = Re(conj(sign x)·dx); at 0 it is taken as 0.
    return out, real(mul(t, conj(sign(x))))


abs = unary(  # noqa: A001
    "abs", NUMERIC, np.abs, _abs_jvp, lambda b, x: b.abs(x), out=_real_dtype
)


# Complex numbers. `grad` follows the C-linear convention: transposes are not conjugated.

COMPLEX = (np.complexfloating,)


def _complex_dtype(dtype: Any) -> Any:
    return np.dtype(np.complex64 if dtype.itemsize == 4 else np.complex128)


def _complex_impl(x: Any, y: Any) -> Any:
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    out = np.empty(shape, _complex_dtype(np.asarray(x).dtype))
    out.real = x
    out.imag = y
    return out


def _zero_like(x: Any) -> Any:
    return broadcast_to(literal(0, x.dtype, False), shape_of(x))


real = unary(
    "real",
    COMPLEX,
    lambda x: np.real(x).copy(),
    linear,
    "real",
    transpose=lambda ct, x: (complex(ct, _zero_like(ct)),),
    out=_real_dtype,
)
imag = unary(
    "imag",
    COMPLEX,
    lambda x: np.imag(x).copy(),
    linear,
    "imag",
    # Im(x) = Re(-i·x), so its transpose is ct -> -i·ct.
    transpose=lambda ct, x: (complex(_zero_like(ct), neg(ct)),),
    out=_real_dtype,
)


def _complex_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    t, u = [
        _zero_like(x) if t is ZERO else t for x, t in zip(primals, tangents, strict=True)
    ]
    return complex(*primals), complex(t, u)


def _complex_transpose(ct: Any, x: Any, y: Any) -> Any:
    return (
        unbroadcast(real(ct), x.shape) if is_linear(x) else None,
        unbroadcast(imag(neg(ct)), y.shape) if is_linear(y) else None,
    )


complex = binary(  # noqa: A001
    "complex",
    (np.float32, np.float64),
    _complex_impl,
    _complex_jvp,
    "complex",
    transpose=_complex_transpose,
    out=_complex_dtype,
)


def _conj_transpose(ct: Any, x: Any) -> Any:
    return (conj(ct),)


conj = unary(
    "conj",
    COMPLEX,
    np.conjugate,
    linear,
    lambda b, x: b.binary("complex", b.unary("real", x), b.unary("negate", b.unary("imag", x))),
    transpose=_conj_transpose,
)


# Bits and logic.


def _logical(name: str, impl: Any, hlo: str) -> Op:
    return binary(name, INTEGRAL, impl, zero_derivative, hlo)


bitwise_and = _logical("and", np.bitwise_and, "and")
bitwise_or = _logical("or", np.bitwise_or, "or")
bitwise_xor = _logical("xor", np.bitwise_xor, "xor")
bitwise_not = unary("not", INTEGRAL, np.invert, zero_derivative, "not")
