"""Scalar types (`jnp.float32` and so on), constants, and questions about dtypes.

A scalar type equals NumPy's of that name, has its `dtype`, and makes arrays when called.
"""

from __future__ import annotations

from builtins import bool as _bool
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array
from primal.numpy.creation import asarray
from primal.numpy.promotion import is_arraylike


class ScalarType(type):
    """The type of `jnp.float32` and its like: `jnp.float32(x)` is `asarray(x, float32)`."""

    dtype: Any

    def __call__(cls, x: Any) -> Array:
        return asarray(x, dtype=cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> _bool:
        return cls is other or cls.dtype.type == other or (
            isinstance(other, ScalarType) and cls.dtype == other.dtype
        )

    def __ne__(cls, other: object) -> _bool:
        return not cls == other

    def __instancecheck__(cls, instance: Any) -> _bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'primal.numpy.{cls.__name__}'>"

    def __reduce__(cls) -> str:
        return cls.__name__


_WIDE = frozenset({"int64", "uint64", "float64", "complex128"})


def _scalar(dtype: Any) -> ScalarType:
    name = dtype.name
    use = f"jnp.{name}(0).dtype == jnp.{name}"
    if dtype.name in _WIDE:
        use = f"with primal.enable_x64():\n...     {use}"
    doc = (
        f"The dtype {dtype.name} as a type: calling it converts to an array of that dtype.\n\n"
        f">>> {use}\nTrue"
    )
    body = {"dtype": dtype, "__doc__": doc, "__module__": __name__}
    return ScalarType(name, (), body)


bool_ = _scalar(dtypes.bool_)
int2, int4 = _scalar(dtypes.int2), _scalar(dtypes.int4)
int8, int16, int32, int64 = map(
    _scalar, (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
)
uint2, uint4 = _scalar(dtypes.uint2), _scalar(dtypes.uint4)
uint8, uint16, uint32, uint64 = map(
    _scalar, (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
)
int1, uint1 = _scalar(dtypes.int1), _scalar(dtypes.uint1)
float4_e2m1fn = _scalar(dtypes.float4_e2m1fn)
float6_e2m3fn, float6_e3m2fn = _scalar(dtypes.float6_e2m3fn), _scalar(dtypes.float6_e3m2fn)
float8_e3m4, float8_e4m3 = _scalar(dtypes.float8_e3m4), _scalar(dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn, float8_e4m3fnuz = _scalar(dtypes.float8_e4m3fn), _scalar(dtypes.float8_e4m3fnuz)
float8_e5m2, float8_e5m2fnuz = _scalar(dtypes.float8_e5m2), _scalar(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar(dtypes.float8_e8m0fnu)
bfloat16, float16 = _scalar(dtypes.bfloat16), _scalar(dtypes.float16)
float32, float64 = _scalar(dtypes.float32), _scalar(dtypes.float64)
complex64, complex128 = _scalar(dtypes.complex64), _scalar(dtypes.complex128)

bool = bool_

# NumPy's names; the widths without a number are the 64-bit ones, which the switch narrows.
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

generic, number, integer = np.generic, np.number, np.integer
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating = np.inexact, np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning

pi, e, euler_gamma = np.pi, np.e, np.euler_gamma
inf, nan, newaxis = np.inf, np.nan, None


def issubdtype(arg1: Any, arg2: Any) -> _bool:
    """Whether a dtype is, or lies below, another in NumPy's hierarchy.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    return dtypes.issubdtype(arg1, arg2)


def isdtype(dtype: Any, kind: Any) -> _bool:
    """Whether a dtype is of a kind of the array API, or equal to a dtype.

    >>> jnp.isdtype(jnp.int8, "signed integer")
    True
    """
    return dtypes.isdtype(dtype, kind)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> _bool:
    """Whether a dtype casts to another under NumPy's rule.

    >>> jnp.can_cast(jnp.int32, jnp.float64)
    True
    """
    return dtypes.can_cast(from_, to, casting)


def promote_types(a: Any, b: Any) -> Any:
    """The least upper bound of two dtypes.

    >>> jnp.promote_types(jnp.int32, jnp.float16)
    dtype('float16')
    """
    return dtypes.promote_types(a, b)


def result_type(*args: Any) -> Any:
    """The dtype of an expression over arrays, scalars and dtypes.

    >>> jnp.result_type(jnp.int32(1), 2.0)
    dtype('float32')
    """
    return dtypes.result_type(*args)


def isscalar(element: Any) -> _bool:
    """Whether a value is a scalar, an array of no dimensions included.

    >>> jnp.isscalar(1.5), jnp.isscalar(jnp.array([1.5]))
    (True, False)
    """
    if np.isscalar(element):
        return True
    if hasattr(element, "__jax_array__"):
        return isscalar(element.__jax_array__())
    return is_arraylike(element) and np.ndim(getattr(element, "aval", element)) == 0
