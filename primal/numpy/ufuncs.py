"""Arithmetic and comparisons, element by element.

Operands are promoted to one dtype and broadcast against each other. Each function is one operation
on the promoted operands wherever the language has that operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.direct.operands import EXPONENT_BITS
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    array_operand,
    common_shape,
    convert,
    from_literal,
    operand,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes_inexact,
    promote_shapes,
    promoted_dtype,
    to_shape,
)
from primal.numpy.remembered import remembered, remembered_as
from primal.ops import elementwise as ops
from primal.runtime.array import ArrayImpl

# Sums and products. Booleans add by `or` and multiply by `and`, as in NumPy.


@remembered
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x + y, element by element; `or` for booleans.

    Operands broadcast and promote. Raises TypeError for lists and for shapes that do not fit.

    >>> jnp.add(jnp.arange(3), 0.5)
    Array([0.5, 1.5, 2.5], dtype=float32, weak_type=True)
    """
    x, y = promote_args("add", x, y)
    return (ops.bitwise_or if x.dtype == BOOL else ops.add)(x, y)


@remembered
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x - y, element by element; TypeError for booleans.

    >>> jnp.subtract(jnp.array([3, 5]), 1)
    Array([2, 4], dtype=int32)
    """
    return ops.sub(*promote_args("subtract", x, y))


@remembered
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x · y, element by element; `and` for booleans.

    >>> jnp.multiply(jnp.array([3, 5]), jnp.array([[2], [10]]))
    Array([[ 6, 10],
           [30, 50]], dtype=int32)
    """
    x, y = promote_args("multiply", x, y)
    return (ops.bitwise_and if x.dtype == BOOL else ops.mul)(x, y)


@remembered
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2, element by element, in floating point; integers and booleans become floats.

    Division by zero gives inf or nan.

    >>> jnp.true_divide(jnp.array([1, 0]), 0)
    Array([inf, nan], dtype=float32)
    """
    return ops.div(*promote_args_inexact("true_divide", x1, x2))


divide = true_divide


def negative(x: ArrayLike, /) -> Array:
    """-x, element by element; TypeError for booleans.

    >>> jnp.negative(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    return ops.neg(operand("negative", x))


def positive(x: ArrayLike, /) -> Array:
    """x itself.

    Element by element; of x's shape and dtype.

    >>> jnp.positive(jnp.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """
    return array_operand("positive", x)


@remembered
def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x, element by element, in floating point.

    >>> jnp.reciprocal(jnp.array([2, 0]))
    Array([0.5, inf], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("reciprocal", x)
    return ops.integer_pow(x, y=-1)


@remembered_as(direct.square)
def square(x: ArrayLike, /) -> Array:
    """x · x, element by element; booleans become integers.

    >>> jnp.square(jnp.array([-3, 2]))
    Array([9, 4], dtype=int32)
    """
    (x,) = promote_args_numeric("square", x)
    return ops.square(x)


# Extrema.


@remembered
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of x and y, element by element; nan where either is nan.

    Complex numbers compare by real part, then imaginary part.

    >>> jnp.maximum(jnp.array([1., jnp.nan]), 2.)
    Array([ 2., nan], dtype=float32)
    """
    return ops.max(*promote_args("maximum", x, y))


@remembered
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of x and y, element by element; nan where either is nan.

    >>> jnp.minimum(jnp.array([1., jnp.nan]), 2.)
    Array([ 1., nan], dtype=float32)
    """
    return ops.min(*promote_args("minimum", x, y))


@remembered_as(direct.fmax)
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, element by element; nan only where both are nan.

    >>> jnp.fmax(jnp.array([1., jnp.nan]), 0.)
    Array([1., 0.], dtype=float32)
    """
    return _ignoring_nan(ops.gt, *promote_args("fmax", x1, x2))


@remembered_as(direct.fmin)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, element by element; nan only where both are nan.

    >>> jnp.fmin(jnp.array([1., jnp.nan]), 0.)
    Array([0., 0.], dtype=float32)
    """
    return _ignoring_nan(ops.lt, *promote_args("fmin", x1, x2))


def _ignoring_nan(better: Any, x: Any, y: Any) -> Array:
    first = _compare(better, x, y)
    if x.aval.dtype.kind == "c":  # the order of real parts says nothing beside a nan
        first = ops.bitwise_and(first, ops.eq(x, x))
    if dtypes.issubdtype(x.aval.dtype, np.inexact):
        first = ops.bitwise_or(first, ops.ne(y, y))
    shape = common_shape("fmax", x, y)
    return ops.select_n(to_shape(first, shape), to_shape(y, shape), to_shape(x, shape))


# Comparisons: results are bool. Complex numbers are ordered by real part, then imaginary part.


@remembered
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x == y, element by element.

    >>> jnp.equal(jnp.arange(3), 1)
    Array([False,  True, False], dtype=bool)
    """
    return ops.eq(*promote_args("equal", x, y))


@remembered
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x != y, element by element.

    >>> jnp.not_equal(jnp.arange(3), 1)
    Array([ True, False,  True], dtype=bool)
    """
    return ops.ne(*promote_args("not_equal", x, y))


@remembered_as(direct.less)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x < y, element by element.

    >>> jnp.less(jnp.arange(3), 1)
    Array([ True, False, False], dtype=bool)
    """
    return _compare(ops.lt, *promote_args("less", x, y))


@remembered_as(direct.less_equal)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x <= y, element by element.

    >>> jnp.less_equal(jnp.arange(3), 1)
    Array([ True,  True, False], dtype=bool)
    """
    return _compare(ops.le, *promote_args("less_equal", x, y))


@remembered_as(direct.greater)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x > y, element by element.

    >>> jnp.greater(jnp.arange(3), 1)
    Array([False, False,  True], dtype=bool)
    """
    return _compare(ops.gt, *promote_args("greater", x, y))


@remembered_as(direct.greater_equal)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x >= y, element by element.

    >>> jnp.greater_equal(jnp.arange(3), 1)
    Array([False,  True,  True], dtype=bool)
    """
    return _compare(ops.ge, *promote_args("greater_equal", x, y))


def _compare(op: Any, x: Any, y: Any) -> Array:
    if x.aval.dtype.kind != "c":
        return op(x, y)
    re_x, re_y = ops.real(x), ops.real(y)
    tie = op(ops.imag(x), ops.imag(y))
    strict = ops.lt if op in (ops.lt, ops.le) else ops.gt
    return ops.bitwise_or(strict(re_x, re_y), ops.bitwise_and(ops.eq(re_x, re_y), tie))


# Logic: operands count as x != 0.


def _truth(name: str, *args: Any) -> list[Any]:
    operands = [operand(name, x, i) for i, x in enumerate(args)]
    weak = promoted_dtype(operands)[1] and not any(x.aval.ndim for x in operands)
    return promote_shapes(name, [convert(as_bool(x), BOOL, weak) for x in operands])


def as_bool(x: Any) -> Any:
    """x != 0 of an operand; booleans are themselves. TypeError for random keys."""
    dtype = x.aval.dtype
    if isinstance(dtype, dtypes.KeyType):
        raise TypeError(f"[truth] expected numbers or booleans, got keys of dtype {dtype.name}.")
    return x if dtype == BOOL else ops.ne(x, literal(0, dtype, True))


@remembered_as(direct.logical_and)
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both x and y are non-zero, element by element.

    >>> jnp.logical_and(jnp.arange(3), jnp.array([1, 1, 0]))
    Array([False,  True, False], dtype=bool)
    """
    return ops.bitwise_and(*_truth("logical_and", x, y))


@remembered_as(direct.logical_or)
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x or y is non-zero, element by element.

    >>> jnp.logical_or(jnp.arange(3), jnp.array([0, 1, 0]))
    Array([False,  True,  True], dtype=bool)
    """
    return ops.bitwise_or(*_truth("logical_or", x, y))


@remembered_as(direct.logical_xor)
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one of x and y is non-zero, element by element.

    >>> jnp.logical_xor(jnp.arange(3), jnp.array([0, 1, 0]))
    Array([False, False,  True], dtype=bool)
    """
    return ops.bitwise_xor(*_truth("logical_xor", x, y))


@remembered_as(direct.logical_not)
def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero, element by element.

    >>> jnp.logical_not(jnp.arange(3))
    Array([ True, False, False], dtype=bool)
    """
    return ops.bitwise_not(*_truth("logical_not", x))


# Bits.


@remembered
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in both x and y; TypeError for floats.

    >>> jnp.bitwise_and(jnp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return ops.bitwise_and(*promote_args("bitwise_and", x, y))


@remembered
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in x or y; TypeError for floats.

    >>> jnp.bitwise_or(jnp.array([6, 5]), 3)
    Array([7, 7], dtype=int32)
    """
    return ops.bitwise_or(*promote_args("bitwise_or", x, y))


@remembered
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in exactly one of x and y; TypeError for floats.

    >>> jnp.bitwise_xor(jnp.array([6, 5]), 3)
    Array([5, 6], dtype=int32)
    """
    return ops.bitwise_xor(*promote_args("bitwise_xor", x, y))


def invert(x: ArrayLike, /) -> Array:
    """The bits of x flipped: `not` for booleans, -x - 1 for signed integers.

    >>> jnp.invert(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return ops.bitwise_not(operand("invert", x))


bitwise_not = bitwise_invert = invert


@remembered
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of x moved up by y places; TypeError for floats.

    >>> jnp.left_shift(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    return ops.shift_left(*promote_args_numeric("left_shift", x, y))


@remembered
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of x1 moved down by x2 places; the sign of signed integers stays.

    >>> jnp.right_shift(jnp.array([8, -8]), 2)
    Array([ 2, -2], dtype=int32)
    """
    x, y = promote_args_numeric("right_shift", x1, x2)
    unsigned = dtypes.issubdtype(x.aval.dtype, np.unsignedinteger)
    return (ops.shift_right_logical if unsigned else ops.shift_right_arithmetic)(x, y)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


@remembered_as(direct.bitwise_count)
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits set in |x|, as uint8.

    >>> jnp.bitwise_count(jnp.array([7, 8]))
    Array([3, 1], dtype=uint8)
    """
    (x,) = promote_args_numeric("bitwise_count", x)
    if dtypes.issubdtype(x.aval.dtype, np.signedinteger):
        x = ops.abs(x)
    return convert(ops.population_count(x), dtypes.uint8)


# Powers.


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2, element by element.

    An integer known while tracing multiplies repeatedly, so that negative bases and derivatives at
    0 are exact. Raises TypeError for integers to a negative power of that kind.

    >>> jnp.power(jnp.array([-2., 3.]), 3)
    Array([-8., 27.], dtype=float32)
    """
    # Looked at here: what is remembered does not depend on values.
    if x2.__class__ is ArrayImpl and x2.aval.shape:
        return _power(x1, x2)
    static = _static_int(x2)
    return _power(x1, x2 if static is None else static)


@remembered_as(direct.power)
def _power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    if type(x2) is int:
        # The exponent is a parameter, so its dtype has no say in the result's.
        (x,) = promote_args_numeric("power", x1)
        return ops.integer_pow(from_literal(x), y=x2)
    if _is_integer(x2) and not _is_integer(x1):
        # Floats to integer powers: pow takes the integers as they are, and 0 ** 0 is 1.
        (x,) = promote_dtypes_inexact("power", x1)
        y = operand("power", x2, 1)
        promoted_dtype([x, y])  # refuses what numpy_dtype_promotion="strict" does
        weak = x.aval.weak_type and (y.aval.weak_type or y.aval.dtype == BOOL)
        if y.aval.dtype == BOOL:
            y = convert(y, dtypes.int32, weak)
        return ops.pow(*promote_shapes("power", [convert(x, x.aval.dtype, weak), y]))
    x, y = promote_args_numeric("power", x1, x2)
    if dtypes.issubdtype(x.aval.dtype, np.integer):
        return _integer_power(x, y)
    return ops.pow(x, y)


pow = power


def _static_int(x: Any) -> int | None:
    """An exponent whose value is known, if it is an integer scalar: one that can be an index, which
    arrays of bools cannot, but Python's can."""
    if isinstance(x, (int, np.integer)):
        return int(x)
    if isinstance(x, (ArrayImpl, np.ndarray)) and x.ndim == 0:
        return int(x) if dtypes.issubdtype(x.dtype, np.integer) else None
    return None


def _is_integer(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, int)
    return dtypes.issubdtype(dtype, np.integer) or dtype == BOOL


def _integer_power(x: Any, y: Any) -> Array:
    """Binary powering by the bits that are read of an exponent (`EXPONENT_BITS`).

    But 0 to any power except 0 is 0, whichever bits that has.
    """
    shape = common_shape("power", x, y)
    x, y = to_shape(x, shape), to_shape(y, shape)
    one = literal(1, x.aval.dtype, x.aval.weak_type and y.aval.weak_type)
    zero = literal(0, x.aval.dtype, False)
    gone = ops.bitwise_and(ops.eq(x, zero), ops.ne(y, zero))
    out = ops.select_n(gone, to_shape(one, shape), to_shape(zero, shape))
    for _ in range(EXPONENT_BITS):
        odd = ops.ne(ops.bitwise_and(y, one), zero)
        out = ops.select_n(odd, out, ops.mul(out, x))
        x, y = ops.mul(x, x), ops.shift_right_logical(y, one)
    return convert(out, out.aval.dtype)


@remembered_as(direct.float_power)
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y in floating point.

    Element by element; integers and booleans count as floats of the default dtype.

    >>> jnp.float_power(jnp.array([2, 3]), -1)
    Array([0.5       , 0.33333334], dtype=float32)
    """
    return ops.pow(*promote_args_inexact("float_power", x, y))
