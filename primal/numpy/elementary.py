"""Functions of one operand, element by element: exponentials, trigonometry, rounding, parts.

Integer and boolean operands become floats where the function is one of real numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.state import state
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    check_out,
    from_literal,
    in_float32,
    operand,
    promote_dtypes_inexact,
)
from primal.numpy.remembered import remembered, remembered_as
from primal.ops import elementwise as ops
from primal.ops.spread import full_like_aval

_floating: set[Any] = set()  # avals seen here that need no conversion
_promoted = remembered(promote_dtypes_inexact)


def inexact(name: str, x: Any) -> Any:
    """x as an operand of a floating or complex dtype."""
    if x.__class__ is np.ndarray:
        x = operand(name, x)
    try:
        if x.aval in _floating:
            return x
    except AttributeError:
        pass  # a scalar
    (out,) = _promoted(name, x)
    if out is x:
        _floating.add(x.aval)
    return out


# Exponentials and logarithms.


def exp(x: ArrayLike, /) -> Array:
    """e to the power x, element by element.

    >>> jnp.exp(jnp.array([0., -jnp.inf]))
    Array([1., 0.], dtype=float32)
    """
    return state.trace.process(ops.exp, (inexact("exp", x),), {})


def exp2(x: ArrayLike, /) -> Array:
    """2 to the power x.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.exp2(jnp.array([0., 3.]))
    Array([1., 8.], dtype=float32)
    """
    return state.trace.process(ops.exp2, (inexact("exp2", x),), {})


@remembered_as(direct.expm1)
def expm1(x: ArrayLike, /) -> Array:
    """exp(x) - 1 without loss of digits near 0.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.expm1(1e-8)
    Array(1.e-08, dtype=float32, weak_type=True)
    """
    return state.trace.process(ops.expm1, (inexact("expm1", x),), {})


def log(x: ArrayLike, /) -> Array:
    """The natural logarithm; nan for negative reals, -inf at 0.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.log(jnp.array([1., 0., -1.]))
    Array([  0., -inf,  nan], dtype=float32)
    """
    return state.trace.process(ops.log, (inexact("log", x),), {})


def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x) without loss of digits near 0.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.log1p(1e-8)
    Array(1.e-08, dtype=float32, weak_type=True)
    """
    return state.trace.process(ops.log1p, (inexact("log1p", x),), {})


@remembered_as(direct.log2)
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.log2(jnp.array([1., 8.]))
    Array([0., 3.], dtype=float32)
    """
    return log_to(inexact("log2", x), 2.0)


@remembered_as(direct.log10)
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.log10(jnp.array([1., 100.]))
    Array([0., 2.], dtype=float32)
    """
    return log_to(inexact("log10", x), 10.0)


def log_to(x: Any, base: float) -> Array:
    """The logarithm to a base, by operations: for functions that are staged, which would else give
    other numbers once they are."""
    return in_float32(lambda x: _log_to(x, base), x)


def _log_to(x: Any, base: float) -> Any:
    # As a logarithm of one dtype, not a scalar's: the result is never weak.
    log = ops.log(x)
    if x.aval.dtype.kind != "c":
        return ops.div(log, literal(np.log(base), x.aval.dtype, False))
    # By parts: a quotient of complex numbers has NaN beside infinities.
    parts = ops.real(log), ops.imag(log)
    divisor = literal(np.log(base), parts[0].aval.dtype, False)
    return ops.complex(*(ops.div(part, divisor) for part in parts))


def sqrt(x: ArrayLike, /) -> Array:
    """The square root; nan for negative reals.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.sqrt(jnp.array([4, 9]))
    Array([2., 3.], dtype=float32)
    """
    return state.trace.process(ops.sqrt, (inexact("sqrt", x),), {})


def cbrt(x: ArrayLike, /) -> Array:
    """The cube root, also of negative reals.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.cbrt(jnp.array([1., -8.]))
    Array([ 1., -2.], dtype=float32)
    """
    return state.trace.process(ops.cbrt, (inexact("cbrt", x),), {})


# Trigonometry.


def sin(x: ArrayLike, /) -> Array:
    """The sine of x in radians.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.sin(jnp.array([0., jnp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return state.trace.process(ops.sin, (inexact("sin", x),), {})


def cos(x: ArrayLike, /) -> Array:
    """The cosine of x in radians.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.cos(jnp.array([0., jnp.pi]))
    Array([ 1., -1.], dtype=float32)
    """
    return state.trace.process(ops.cos, (inexact("cos", x),), {})


def tan(x: ArrayLike, /) -> Array:
    """The tangent of x in radians.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.tan(0.)
    Array(0., dtype=float32, weak_type=True)
    """
    return state.trace.process(ops.tan, (inexact("tan", x),), {})


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.tanh(jnp.array([0., jnp.inf]))
    Array([0., 1.], dtype=float32)
    """
    return state.trace.process(ops.tanh, (inexact("tanh", x),), {})


def arcsin(x: ArrayLike, /) -> Array:
    """The inverse sine, in [-π/2, π/2]; nan outside [-1, 1].

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.arcsin(jnp.array([0., 2.]))
    Array([ 0., nan], dtype=float32)
    """
    return state.trace.process(ops.asin, (inexact("arcsin", x),), {})


def arccos(x: ArrayLike, /) -> Array:
    """The inverse cosine, in [0, π]; nan outside [-1, 1].

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.arccos(jnp.array([1., 2.]))
    Array([ 0., nan], dtype=float32)
    """
    return state.trace.process(ops.acos, (inexact("arccos", x),), {})


def arctan(x: ArrayLike, /) -> Array:
    """The inverse tangent, in [-π/2, π/2].

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.arctan(jnp.array([0., jnp.inf]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return state.trace.process(ops.atan, (inexact("arctan", x),), {})


@remembered_as(direct.sinh)
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.sinh(jnp.array([0., jnp.inf]))
    Array([ 0., inf], dtype=float32)
    """
    return state.trace.process(ops.sinh, (inexact("sinh", x),), {})


@remembered_as(direct.cosh)
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.cosh(jnp.array([0., jnp.inf]))
    Array([ 1., inf], dtype=float32)
    """
    return state.trace.process(ops.cosh, (inexact("cosh", x),), {})


def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic sine.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.arcsinh(jnp.array([0., jnp.inf]))
    Array([ 0., inf], dtype=float32)
    """
    return state.trace.process(ops.asinh, (inexact("arcsinh", x),), {})


def arccosh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic cosine; nan below 1.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.arccosh(jnp.array([1., 0.]))
    Array([ 0., nan], dtype=float32)
    """
    return state.trace.process(ops.acosh, (inexact("arccosh", x),), {})


def arctanh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic tangent; nan outside [-1, 1].

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.arctanh(jnp.array([0., 1.]))
    Array([ 0., inf], dtype=float32)
    """
    return state.trace.process(ops.atanh, (inexact("arctanh", x),), {})


asin, acos, atan = arcsin, arccos, arctan
asinh, acosh, atanh = arcsinh, arccosh, arctanh


@remembered
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.deg2rad(180.)
    Array(3.1415927, dtype=float32, weak_type=True)
    """
    x = inexact("deg2rad", x)
    return in_float32(lambda x: _times(x, np.pi / 180), x)


@remembered
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.rad2deg(jnp.pi)
    Array(180., dtype=float32, weak_type=True)
    """
    x = inexact("rad2deg", x)
    return in_float32(lambda x: _times(x, 180 / np.pi), x)


def _times(x: Any, number: float) -> Any:
    return ops.mul(x, literal(number, x.aval.dtype, x.aval.weak_type and not x.aval.ndim))


radians, degrees = deg2rad, rad2deg


# Sign, magnitude, rounding.


def abs(x: ArrayLike, /) -> Array:
    """The absolute value; of complex numbers the modulus, a real number.

    >>> jnp.abs(jnp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    x = operand("abs", x)
    dtype = x.aval.dtype
    if dtype == BOOL or dtypes.issubdtype(dtype, np.unsignedinteger):
        return from_literal(x)
    return ops.abs(x)


absolute = abs


@remembered
def fabs(x: ArrayLike, /) -> Array:
    """The absolute value in floating point; TypeError for complex numbers.

    >>> jnp.fabs(jnp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    x = inexact("fabs", x)
    if x.aval.dtype.kind == "c":
        raise TypeError(
            "ufunc 'fabs' does not support complex dtypes. Use abs, which gives the modulus."
        )
    return ops.abs(x)


@remembered
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 with the sign of x; x / |x| for complex numbers.

    >>> jnp.sign(jnp.array([-2., 0., 3.]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return ops.sign(operand("sign", x))


def floor(x: ArrayLike, /) -> Array:
    """The largest integer not above x, in x's dtype.

    >>> jnp.floor(jnp.array([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)
    """
    return _rounded("floor", ops.floor, x)


def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer not below x, in x's dtype.

    >>> jnp.ceil(jnp.array([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)
    """
    return _rounded("ceil", ops.ceil, x)


def _rounded(name: str, op: Any, x: Any) -> Array:
    x = operand(name, x)
    if dtypes.issubdtype(x.aval.dtype, np.integer) or x.aval.dtype == BOOL:
        return from_literal(x)
    return op(x)


@remembered_as(direct.trunc)
def trunc(x: ArrayLike) -> Array:
    """x without its fraction, in x's dtype.

    >>> jnp.trunc(jnp.array([-1.5, 1.5]))
    Array([-1.,  1.], dtype=float32)
    """
    x = operand("trunc", x)
    if dtypes.issubdtype(x.aval.dtype, np.integer) or x.aval.dtype == BOOL:
        return from_literal(x)
    negative = ops.lt(x, literal(0, x.aval.dtype, False))
    return ops.select_n(negative, ops.floor(x), ops.ceil(x))


# Classes of numbers: results are bool.


@remembered_as(direct.isfinite)
def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither inf nor nan; True for integers.

    >>> jnp.isfinite(jnp.array([1., jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    x = operand("isfinite", x)
    dtype = x.aval.dtype
    if dtype.kind == "c":
        return ops.bitwise_and(ops.is_finite(ops.real(x)), ops.is_finite(ops.imag(x)))
    return ops.is_finite(x) if dtypes.issubdtype(dtype, np.floating) else _constant(x, True)


@remembered_as(direct.isnan)
def isnan(x: ArrayLike, /) -> Array:
    """Whether x is nan; False for integers.

    >>> jnp.isnan(jnp.array([1., jnp.nan]))
    Array([False,  True], dtype=bool)
    """
    x = operand("isnan", x)
    return ops.ne(x, x)


@remembered_as(direct.isinf)
def isinf(x: ArrayLike, /) -> Array:
    """Whether x is inf or -inf, or has such a part; False for integers.

    >>> jnp.isinf(jnp.array([1., -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    x = operand("isinf", x)
    dtype = x.aval.dtype
    if dtype.kind == "c":
        return ops.bitwise_or(isinf(ops.real(x)), isinf(ops.imag(x)))
    if not dtypes.issubdtype(dtype, np.floating):
        return _constant(x, False)
    return ops.eq(ops.abs(x), literal(np.inf, dtype, False))


@remembered_as(direct.isposinf)
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is inf.

    Element by element; booleans of x's shape.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return _is_signed_inf("isposinf", x, np.inf, out)


@remembered_as(direct.isneginf)
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is -inf.

    Element by element; booleans of x's shape.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    return _is_signed_inf("isneginf", x, -np.inf, out)


def _is_signed_inf(name: str, x: Any, value: float, out: Any) -> Array:
    check_out(name, out)
    x = operand(name, x)
    dtype = x.aval.dtype
    if dtype.kind == "c":
        raise ValueError(f"{name} is not well defined for complex data types: {dtype.name}")
    if not dtypes.issubdtype(dtype, np.floating):
        return _constant(x, False)
    return ops.eq(x, literal(value, dtype, False))


def _constant(x: Any, value: bool) -> Array:
    return full_like_aval(x.aval.strong().with_dtype(BOOL), value)


# Parts of complex numbers.


def real(val: ArrayLike, /) -> Array:
    """The real part.

    Element by element; of x's shape and dtype, real for complex numbers.

    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    x = operand("real", val)
    return ops.real(x) if x.aval.dtype.kind == "c" else from_literal(x)


@remembered
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real numbers.

    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    x = operand("imag", val)
    return ops.imag(x) if x.aval.dtype.kind == "c" else full_like_aval(x.aval, 0)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real numbers are their own.

    >>> jnp.conjugate(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = operand("conjugate", x)
    return ops.conj(x) if x.aval.dtype.kind == "c" else from_literal(x)


conj = conjugate


@remembered_as(direct.iscomplex)
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    Element by element; booleans of x's shape.

    >>> jnp.iscomplex(jnp.array([1 + 1j, 1]))
    Array([ True, False], dtype=bool)
    """
    i = imag(x)
    return ops.ne(i, literal(0, i.dtype, i.ndim == 0))


@remembered_as(direct.isreal)
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    Element by element; booleans of x's shape.

    >>> jnp.isreal(jnp.array([1 + 1j, 1]))
    Array([False,  True], dtype=bool)
    """
    i = imag(x)
    return ops.eq(i, literal(0, i.dtype, i.ndim == 0))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    >>> jnp.iscomplexobj(1j)
    True
    """
    return x is not None and dtypes.issubdtype(_dtype_of_anything(x), np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    >>> jnp.isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


def _dtype_of_anything(x: Any) -> Any:
    if hasattr(x, "__jax_array__"):
        return operand("iscomplexobj", x).aval.dtype
    found = getattr(x, "dtype", None) or np.asarray(x).dtype
    if found == np.dtype(object):
        raise TypeError(f"[iscomplexobj] expected numbers, got {x!r} of dtype object.")
    return found
