"""Elementwise functions: out[i] depends on the operands at i only.

Operands have one dtype, which Python scalars adopt, and shapes that are equal, scalar, or of equal
rank with sizes equal or 1. TypeError for others; the functions of primal.numpy promote.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, aval_of, literal
from primal.lax.alike import alike
from primal.numpy.remembered import remembered
from primal.ops import elementwise as ops
from primal.ops.elementwise import RoundingMethod as RoundingMethod
from primal.ops.types import static_int
from primal.runtime.refusals import in_words


def neg(x: Any) -> Array:
    """The negative, -x.

    Numbers of any dtype, which is kept. Unsigned integers wrap.

    >>> lax.neg(jnp.array([1., -2.]))
    Array([-1.,  2.], dtype=float32)
    """
    return ops.neg(x)


def sign(x: Any) -> Array:
    """The sign: x/|x|, and 0 (of the same sign) at 0; NaN of NaN.

    Numbers of any dtype, which is kept.

    >>> lax.sign(jnp.array([-3., 0., 2.]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return ops.sign(x)


def abs(x: Any) -> Array:
    """The absolute value |x|; of a complex number the modulus, which is real.

    Signed integers, floats, complex numbers. The derivative at 0 is 1, for complex numbers 0.

    >>> lax.abs(jnp.array([-3., 2.]))
    Array([3., 2.], dtype=float32)
    """
    return ops.abs(x)


def square(x: Any) -> Array:
    """The square, x·x.

    Numbers of any dtype, which is kept.

    >>> lax.square(jnp.array([3., -2.]))
    Array([9., 4.], dtype=float32)
    """
    return ops.square(x)


def reciprocal(x: Any) -> Array:
    """The reciprocal, 1/x.

    Floats and complex numbers; the dtype is kept.

    >>> lax.reciprocal(jnp.array([2., 4.]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return ops.integer_pow(x, y=-1)


def add(x: Any, y: Any) -> Array:
    """The sum, x + y.

    Numbers of any dtype, which is kept. Integers wrap.

    >>> lax.add(jnp.array([1., 2.]), 3.)
    Array([4., 5.], dtype=float32)
    """
    return ops.add(*alike("add", x, y))


def sub(x: Any, y: Any) -> Array:
    """The difference, x - y.

    Numbers of any dtype, which is kept. Integers wrap.

    >>> lax.sub(jnp.array([1., 2.]), 3.)
    Array([-2., -1.], dtype=float32)
    """
    return ops.sub(*alike("sub", x, y))


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Array:
    """The product, x·y.

    Numbers of any dtype, which is kept, or rounded once to `out_dtype`. Integers wrap.

    >>> lax.mul(jnp.array([1., 2.]), 3.)
    Array([3., 6.], dtype=float32)
    """
    if out_dtype is None:
        return ops.mul(*alike("mul", x, y))
    wanted = dtypes.canonicalize_dtype(out_dtype)
    wide = dtypes.promote_types(aval_of(x).dtype, wanted)
    weak = aval_of(x).weak_type and aval_of(y).weak_type
    return _as(ops.mul(_as(x, wide), _as(y, wide)), wanted, weak)


def div(x: Any, y: Any) -> Array:
    """The quotient, x/y; of integers truncated toward zero.

    Numbers of any dtype, which is kept. An integer over 0 is -1 (all bits set).

    >>> lax.div(jnp.array([-7, 7]), 2)
    Array([-3,  3], dtype=int32)
    """
    return ops.div(*alike("div", x, y))


def rem(x: Any, y: Any) -> Array:
    """The remainder x - y·trunc(x/y), with the sign of x.

    Real numbers of one dtype. An integer's remainder by 0 is itself.

    >>> lax.rem(jnp.array([-7, 7]), 3)
    Array([-1,  1], dtype=int32)
    """
    return ops.rem(*alike("rem", x, y))


def max(x: Any, y: Any) -> Array:
    """The larger of x and y; NaN if either is.

    Numbers of one dtype and bool, complex ones by real, then imaginary part. Equal operands share
    the derivative.

    >>> lax.max(jnp.array([1., 5.]), 3.)
    Array([3., 5.], dtype=float32)
    """
    return ops.max(*alike("max", x, y))


def min(x: Any, y: Any) -> Array:
    """The smaller of x and y; NaN if either is.

    Numbers of one dtype and bool, complex ones by real, then imaginary part. Equal operands share
    the derivative.

    >>> lax.min(jnp.array([1., 5.]), 3.)
    Array([1., 3.], dtype=float32)
    """
    return ops.min(*alike("min", x, y))


def eq(x: Any, y: Any) -> Array:
    """Whether x = y; NaN equals nothing.

    Operands of any one dtype; the result is bool.

    >>> lax.eq(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return ops.eq(*alike("eq", x, y))


def ne(x: Any, y: Any) -> Array:
    """Whether x ≠ y; NaN differs from everything.

    Operands of any one dtype; the result is bool.

    >>> lax.ne(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return ops.ne(*alike("ne", x, y))


def lt(x: Any, y: Any) -> Array:
    """Whether x < y.

    Real numbers and bool of one dtype; the result is bool.

    >>> lax.lt(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return ops.lt(*alike("lt", x, y))


def le(x: Any, y: Any) -> Array:
    """Whether x ≤ y.

    Real numbers and bool of one dtype; the result is bool.

    >>> lax.le(jnp.array([1, 2]), 2)
    Array([ True,  True], dtype=bool)
    """
    return ops.le(*alike("le", x, y))


def gt(x: Any, y: Any) -> Array:
    """Whether x > y.

    Real numbers and bool of one dtype; the result is bool.

    >>> lax.gt(jnp.array([1, 3]), 2)
    Array([False,  True], dtype=bool)
    """
    return ops.gt(*alike("gt", x, y))


def ge(x: Any, y: Any) -> Array:
    """Whether x ≥ y.

    Real numbers and bool of one dtype; the result is bool.

    >>> lax.ge(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return ops.ge(*alike("ge", x, y))


def floor(x: Any) -> Array:
    """The largest integer ≤ x.

    Floats; the dtype is kept.

    >>> lax.floor(jnp.array([1.5, -1.5]))
    Array([ 1., -2.], dtype=float32)
    """
    return ops.floor(x)


def ceil(x: Any) -> Array:
    """The smallest integer ≥ x.

    Floats; the dtype is kept.

    >>> lax.ceil(jnp.array([1.5, -1.5]))
    Array([ 2., -1.], dtype=float32)
    """
    return ops.ceil(x)


def is_finite(x: Any) -> Array:
    """Whether x is neither infinite nor NaN.

    Floats; the result is bool.

    >>> lax.is_finite(jnp.array([1., jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return ops.is_finite(x)


def nextafter(x1: Any, x2: Any) -> Array:
    """The float next to x1 in the direction of x2.

    Floats of one dtype. It has no derivative.

    >>> lax.nextafter(jnp.array([1.]), 2.)
    Array([1.0000001], dtype=float32)
    """
    return ops.nextafter(*alike("nextafter", x1, x2))


def real(x: Any) -> Array:
    """The real part.

    Complex numbers; the result is a float. C-linear: its transpose is not conjugated.

    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return ops.real(x)


def imag(x: Any) -> Array:
    """The imaginary part.

    Complex numbers; the result is a float.

    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return ops.imag(x)


def complex(x: Any, y: Any) -> Array:
    """The complex number x + i·y.

    float32 or float64 parts of one dtype.

    >>> lax.complex(jnp.array([1.]), jnp.array([2.]))
    Array([1.+2.j], dtype=complex64)
    """
    return ops.complex(*alike("complex", x, y))


def conj(x: Any) -> Array:
    """The complex conjugate; a float becomes complex.

    float32, float64 and complex numbers.

    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    return ops.conj(x)


def bitwise_not(x: Any) -> Array:
    """Every bit inverted; of bool, not x.

    Integers and bool; the dtype is kept.

    >>> lax.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return ops.bitwise_not(x)


def bitwise_and(x: Any, y: Any) -> Array:
    """Bits set in both; of bool, x and y.

    Integers and bool; the dtype is kept.

    >>> lax.bitwise_and(jnp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return ops.bitwise_and(*alike("bitwise_and", x, y))


def bitwise_or(x: Any, y: Any) -> Array:
    """Bits set in either; of bool, x or y.

    Integers and bool; the dtype is kept.

    >>> lax.bitwise_or(jnp.array([6, 5]), 3)
    Array([7, 7], dtype=int32)
    """
    return ops.bitwise_or(*alike("bitwise_or", x, y))


def bitwise_xor(x: Any, y: Any) -> Array:
    """Bits set in exactly one; of bool, x ≠ y.

    Integers and bool; the dtype is kept.

    >>> lax.bitwise_xor(jnp.array([6, 5]), 3)
    Array([5, 6], dtype=int32)
    """
    return ops.bitwise_xor(*alike("bitwise_xor", x, y))


def shift_left(x: Any, y: Any) -> Array:
    """Bits moved y places up, x·2^y; 0 for y beyond the width.

    Integers; the dtype is kept.

    >>> lax.shift_left(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    return ops.shift_left(*alike("shift_left", x, y))


def shift_right_arithmetic(x: Any, y: Any) -> Array:
    """Bits moved y places down, the sign repeated above: ⌊x/2^y⌋.

    Integers; the dtype is kept.

    >>> lax.shift_right_arithmetic(jnp.array([-8, 8]), 1)
    Array([-4,  4], dtype=int32)
    """
    return ops.shift_right_arithmetic(*alike("shift_right_arithmetic", x, y))


def shift_right_logical(x: Any, y: Any) -> Array:
    """Bits moved y places down, zeros above.

    Integers; the dtype is kept.

    >>> lax.shift_right_logical(jnp.array([-8, 8]), 1)
    Array([2147483644,          4], dtype=int32)
    """
    return ops.shift_right_logical(*alike("shift_right_logical", x, y))


def population_count(x: Any) -> Array:
    """The number of bits that are 1.

    Integers; the dtype is kept.

    >>> lax.population_count(jnp.array([7, -1]))
    Array([ 3, 32], dtype=int32)
    """
    return ops.population_count(x)


def clz(x: Any) -> Array:
    """The number of zero bits above the highest 1.

    Integers; the dtype is kept.

    >>> lax.clz(jnp.array([1, -1]))
    Array([31,  0], dtype=int32)
    """
    return ops.clz(x)


def mulhi(x: Any, y: Any, /) -> Array:
    """The upper half of the product's bits: ⌊x·y/2^w⌋ for integers of w bits.

    Integers of one dtype, which is kept. TypeError for others.

    >>> lax.mulhi(jnp.array([2**30, -(2**30)]), 8)
    Array([ 2, -2], dtype=int32)
    """
    dtype = aval_of(x).dtype
    weak = type(x) is int and type(y) is int
    for v in (x, y):
        if aval_of(v).dtype != dtype or type(v) is bool:
            raise TypeError(
                f"[mulhi] expected operands of one dtype, got {aval_of(x).dtype.name} and "
                f"{aval_of(y).dtype.name}."
            )
    bits = dtypes.itemsize_bits(dtype)
    kind = dtypes.KIND.get(dtype, "")
    if kind not in ("i", "u"):
        raise TypeError(f"[mulhi] expected integers, got {dtype.name}.")
    x, y = [literal(v, dtype) if type(v) is int else v for v in (x, y)]
    if bits < 64:
        wide = np.dtype(f"{kind}{bits // 4 or 1}")
        product = ops.mul(_as(x, wide), _as(y, wide))
        upper = ops.shift_right_logical(product, literal(bits, wide))
        return ops.convert_element_type(upper, new_dtype=dtype, weak_type=weak)
    # By halves: with x = a·2³² + b and y = c·2³² + d, the carries of a·d + b·c + ⌊b·d/2³²⌋.
    half, low = literal(32, dtype), literal(2**32 - 1, dtype)
    down = ops.shift_right_arithmetic if kind == "i" else ops.shift_right_logical
    a, c = down(x, half), down(y, half)
    b, d = ops.bitwise_and(x, low), ops.bitwise_and(y, low)
    first = ops.add(ops.mul(a, d), ops.shift_right_logical(ops.mul(b, d), half))
    second = ops.add(ops.mul(b, c), ops.bitwise_and(first, low))
    return ops.add(ops.mul(a, c), ops.add(down(first, half), down(second, half)))


def _as(x: Any, dtype: Any, weak: bool = False) -> Any:
    return ops.convert_element_type(x, new_dtype=dtype, weak_type=weak)


@in_words
def pow(x: Any, y: Any) -> Array:
    """The power x^y.

    x of a float or complex dtype; y of the same or of an integer one. At x = 0 the derivative by y
    is taken as its limit for y > 0, which is 0.

    >>> lax.pow(jnp.array([2., 9.]), 0.5)
    Array([1.4142135, 3.       ], dtype=float32)
    """
    if type(y) is int:
        y = literal(y, "int32")
    exponent = aval_of(y)
    if type(x) in (float, builtins.complex) and dtypes.issubdtype(exponent.dtype, np.integer):
        x = literal(x, aval_of(x).dtype, exponent.weak_type)
    return ops.pow(*alike("pow", x, y))


def integer_pow(x: Any, y: int) -> Array:
    """The power x^y of a fixed integer y, by repeated squaring.

    Numbers of any dtype, which is kept; TypeError for negative y and integer x.

    >>> lax.integer_pow(jnp.array([2., 3.]), 3)
    Array([ 8., 27.], dtype=float32)
    """
    return ops.integer_pow(x, y=static_int("integer_pow y", y))


def round(x: Any, rounding_method: RoundingMethod | int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer; halves go away from zero, or to even.

    Floats; the dtype is kept. ValueError for what is no `RoundingMethod`.

    >>> lax.round(jnp.array([0.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """
    return ops.round(x, rounding_method=RoundingMethod(rounding_method))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """The nearest float of fewer bits, ties to even, in the operand's dtype.

    What is too large becomes infinite, what is below the smallest normal number zero. Floats;
    ValueError unless exponent_bits ≥ 1 and mantissa_bits ≥ 0.

    >>> lax.reduce_precision(jnp.array([1.1, 70000.]), exponent_bits=5, mantissa_bits=10)
    Array([1.0996094,       inf], dtype=float32)
    """
    return ops.reduce_precision(
        operand,
        exponent_bits=static_int("reduce_precision exponent_bits", exponent_bits),
        mantissa_bits=static_int("reduce_precision mantissa_bits", mantissa_bits),
    )


@remembered
def clamp(min: Any, x: Any, max: Any) -> Array:
    """x held between bounds: min where x < min, max where x > max, else x.

    Numbers of one dtype, complex ones in the order of `max`; the bounds are scalar or of x's shape.
    A bound that holds takes the derivative. TypeError for others.

    >>> lax.clamp(0., jnp.array([-1., 0.5, 2.]), 1.)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    shape = aval_of(x).shape
    for name, bound in (("min", min), ("max", max)):
        have = aval_of(bound).shape
        if have not in ((), shape):
            raise TypeError(
                f"[clamp] expected `{name}` to be scalar or of shape {shape}, got {have}: clamp "
                f"requires {name}.shape == operand.shape or {name}.shape == ()."
            )
    alike("clamp", min, x, max)
    if type(x) in (bool, int, float):
        return ops.clamp(min, x, max)
    dtype = aval_of(x).dtype
    bounds = [literal(v, dtype) if type(v) in (int, float) else v for v in (min, max)]
    return ops.clamp(bounds[0], x, bounds[1])


def select_n(which: Any, *cases: Any) -> Array:
    """cases[which], elementwise.

    `which` is bool for up to two cases or an integer, scalar or of the cases' shape; indices beyond
    the ends choose the first or last. Cases have one shape and dtype. TypeError otherwise.
    ValueError without cases.

    >>> lax.select_n(jnp.array([0, 2]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6]))
    Array([1, 6], dtype=int32)
    """
    if not cases:
        raise ValueError("[select_n] expected at least one case, got none.")
    shapes = [aval_of(c).shape for c in cases]
    if len(set(shapes)) > 1:
        raise TypeError(
            f"[select_n] expected cases of one shape, got {shapes}: select cases must have the "
            "same shapes. Broadcast first, or use primal.numpy.where."
        )
    have = aval_of(which).shape
    if have not in ((), shapes[0]):
        raise TypeError(
            f"[select_n] expected `which` to be scalar or of the cases' shape {shapes[0]}, got "
            f"{have}."
        )
    dtype = aval_of(which).dtype
    if dtype.kind in "iu" and dtype != np.int32:
        # Indices beyond the cases choose the last one, in any dtype.
        top = literal(len(cases) - 1, dtype)
        which = _as(ops.clamp(literal(0, dtype), which, top), np.dtype(np.int32))
    if len(cases) == 2 and dtype.kind in "iu":
        which = ops.gt(which, 0)
    return ops.select_n(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """on_true where pred holds, else on_false.

    `pred` is bool, scalar or of the cases' shape; the cases have one shape and dtype. TypeError
    otherwise: primal.numpy.where broadcasts and promotes.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)
