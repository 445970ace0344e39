"""Elementwise operations: the records themselves where they take no parameters.

Operands have one dtype and equal shapes (or are scalars, or of equal rank with sizes equal or 1).
Python scalars take the dtype of the other operands.
"""

from __future__ import annotations

from typing import Any

from primal.base import dtypes
from primal.base.pytree import tree_map
from primal.ir.trace import Array, aval_of
from primal.ops import choose as _choose
from primal.ops import elementwise as _ops
from primal.ops.choose import clamp as clamp
from primal.ops.choose import max as max
from primal.ops.choose import min as min
from primal.ops.choose import select_n as select_n
from primal.ops.elementwise import RoundingMethod as RoundingMethod
from primal.ops.elementwise import abs as abs
from primal.ops.elementwise import acos as acos
from primal.ops.elementwise import acosh as acosh
from primal.ops.elementwise import add as add
from primal.ops.elementwise import asin as asin
from primal.ops.elementwise import asinh as asinh
from primal.ops.elementwise import atan as atan
from primal.ops.elementwise import atan2 as atan2
from primal.ops.elementwise import atanh as atanh
from primal.ops.elementwise import bitwise_and as bitwise_and
from primal.ops.elementwise import bitwise_not as bitwise_not
from primal.ops.elementwise import bitwise_or as bitwise_or
from primal.ops.elementwise import bitwise_xor as bitwise_xor
from primal.ops.elementwise import ceil as ceil
from primal.ops.elementwise import clz as clz
from primal.ops.elementwise import complex as complex
from primal.ops.elementwise import conj as _conj
from primal.ops.elementwise import cosh as cosh
from primal.ops.elementwise import div as div
from primal.ops.elementwise import eq as eq
from primal.ops.elementwise import floor as floor
from primal.ops.elementwise import ge as ge
from primal.ops.elementwise import gt as gt
from primal.ops.elementwise import imag as imag
from primal.ops.elementwise import is_finite as is_finite
from primal.ops.elementwise import le as le
from primal.ops.elementwise import lt as lt
from primal.ops.elementwise import mul as mul
from primal.ops.elementwise import ne as ne
from primal.ops.elementwise import neg as neg
from primal.ops.elementwise import nextafter as nextafter
from primal.ops.elementwise import population_count as population_count
from primal.ops.elementwise import pow as pow
from primal.ops.elementwise import real as real
from primal.ops.elementwise import rem as rem
from primal.ops.elementwise import shift_left as shift_left
from primal.ops.elementwise import shift_right_arithmetic as shift_right_arithmetic
from primal.ops.elementwise import shift_right_logical as shift_right_logical
from primal.ops.elementwise import sign as sign
from primal.ops.elementwise import sinh as sinh
from primal.ops.elementwise import square as square
from primal.ops.elementwise import sub as sub
from primal.ops.special import bessel_i0e as bessel_i0e
from primal.ops.special import bessel_i1e as bessel_i1e
from primal.ops.special import digamma as digamma
from primal.ops.special import erf as erf
from primal.ops.special import erf_inv as erf_inv
from primal.ops.special import erfc as erfc
from primal.ops.special import igamma as igamma
from primal.ops.special import igammac as igammac
from primal.ops.special import lgamma as lgamma
from primal.ops.special import polygamma as polygamma
from primal.ops.special import zeta as zeta


def _with_accuracy(op: Any) -> Any:
    """The function of an op that takes an accuracy; engines here compute all at their best."""

    def function(x: Any, *, accuracy: Any = None) -> Any:
        return op(x)

    function.__name__ = op.name
    function.__doc__ = f"{op.name}(x), elementwise, for float and complex dtypes."
    return function


cbrt = _with_accuracy(_ops.cbrt)
cos = _with_accuracy(_ops.cos)
exp = _with_accuracy(_ops.exp)
exp2 = _with_accuracy(_ops.exp2)
expm1 = _with_accuracy(_ops.expm1)
log = _with_accuracy(_ops.log)
log1p = _with_accuracy(_ops.log1p)
logistic = _with_accuracy(_ops.logistic)
rsqrt = _with_accuracy(_ops.rsqrt)
sin = _with_accuracy(_ops.sin)
sqrt = _with_accuracy(_ops.sqrt)
tan = _with_accuracy(_ops.tan)
tanh = _with_accuracy(_ops.tanh)


def conj(x: Any) -> Any:
    """The complex conjugate; of a real number, that number as a complex one."""
    if dtypes.kind_of(aval_of(x).dtype) == "f":
        return complex(x, mul(x, 0.0))
    return _conj(x)


def integer_pow(x: Any, y: int) -> Any:
    """x to an integer power, by multiplication.

    >>> lax.integer_pow(jnp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    """
    return _ops.integer_pow(x, y=y)


def reciprocal(x: Any) -> Any:
    """1 / x."""
    return _ops.integer_pow(x, y=-1)


def round(x: Any, rounding_method: Any = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """To the nearest integer; halves away from zero, or to even."""
    return _ops.round(x, rounding_method=RoundingMethod(rounding_method))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Rounded to a float format of fewer bits, in the same dtype."""
    return _ops.reduce_precision(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """Each element in another dtype; complex to real drops the imaginary part.

    >>> lax.convert_element_type(jnp.array([1.5, 2.0]), jnp.int32)
    Array([1, 2], dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(new_dtype, "convert_element_type")
    dtype = dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True)
    aval = aval_of(operand)
    if isinstance(operand, Array) and aval.dtype == dtype and not aval.weak_type:
        return operand
    return _choose.convert_element_type(operand, new_dtype=dtype, weak_type=False)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The same bits in another dtype; a last dimension comes or goes where widths differ."""
    return _choose.bitcast_convert_type(operand, new_dtype=dtypes.canonicalize_dtype(new_dtype))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """on_true where pred, else on_false; no broadcasting but of a scalar pred.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def stop_gradient(x: Any) -> Any:
    """x, as a constant for derivatives: ∂stop_gradient(x)/∂x = 0. Takes trees.

    >>> primal.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def one(leaf: Any) -> Any:
        if dtypes.to_tangent_dtype(aval_of(leaf).dtype) == dtypes.float0:
            return leaf
        return _choose.stop_gradient(leaf)

    return tree_map(one, x)
