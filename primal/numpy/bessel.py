"""Modified Bessel functions of the first kind, of orders 0 and 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.api.control.custom import custom_jvp
from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.trace import Array
from primal.numpy.choosing import where
from primal.numpy.promotion import ArrayLike, in_float32, promote_dtypes_inexact
from primal.numpy.remembered import remembered
from primal.ops import elementwise as ops
from primal.ops.special.bessel import bessel_i0e, bessel_i1_slope, bessel_i1e


@remembered
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0; ValueError for complex numbers.

    >>> jnp.i0(0.)
    Array(1., dtype=float32, weak_type=True)
    """
    (v,) = promote_dtypes_inexact("i0", x)
    if not dtypes.issubdtype(v.aval.dtype, np.floating):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {v.aval.dtype.name}")
    return in_float32(_i0, v)


@custom_jvp
def _i0(x: Any) -> Any:
    return unscaled(x, bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> Any:
    """I0' = I1. The product above would have the wrong derivative at 0, where |x| has none."""
    (x,), (t,) = primals, tangents
    return _i0(x), t * bessel_i1(x)


@custom_jvp
def bessel_i1(x: Any) -> Any:
    """I₁ of a floating array."""
    return unscaled(x, bessel_i1e(x))


@bessel_i1.defjvp
def _i1_jvp(primals: Any, tangents: Any) -> Any:
    """The slopes of the factors would be the difference of two that are infinite too early."""
    (x,), (t,) = primals, tangents
    return bessel_i1(x), t * unscaled(x, bessel_i1_slope(x))


def unscaled(x: Any, scaled: Any) -> Any:
    """A scaled Bessel function times e^|x|, which alone is infinite where their product is not
    (float32 from 88.7 on, I₀ from 91.9)."""
    size = ops.abs(x)
    far = size > math.floor(math.log(float(finfo(x.dtype).max)))
    power = ops.exp(where(far, size / 2, size))
    made = scaled * power
    return where(far, made * power, made)
