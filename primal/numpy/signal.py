"""Convolution and correlation of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array
from primal.numpy import direct
from primal.numpy.elementary import conjugate
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    convert,
    promote_dtypes_inexact,
)
from primal.numpy.remembered import remembered_as
from primal.numpy.shapes import flip
from primal.ops import shape as shape_ops
from primal.ops.precision import check_preferred, plain_precision
from primal.ops.window.convolution import ConvDimensionNumbers, conv_general_dilated

PLAIN = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))


@remembered_as(direct.convolve)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """out[k] = Σ_i a[i] · v[k - i] of two vectors.

    mode 'full' has all n + m - 1 points, 'same' max(n, m), 'valid' those of full overlap. Integers
    become floats. Raises ValueError for empty or higher-dimensional operands.

    >>> jnp.convolve(jnp.array([1., 2.]), jnp.array([1., 10.]))
    Array([ 1., 12., 20.], dtype=float32)
    """
    x, y = promote_dtypes_inexact("convolve", a, v)
    _check("convolve", x, y, mode)
    return _convolved("convolve", x, y, mode, precision, preferred_element_type)


@remembered_as(direct.correlate)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """out[k] = Σ_i a[i + k] · conj(v[i]) of two vectors; modes as for `convolve`.

    >>> jnp.correlate(jnp.array([1., 2., 3.]), jnp.array([0., 1.]))
    Array([2., 3.], dtype=float32)
    """
    x, y = promote_dtypes_inexact("correlate", a, v)
    _check("correlate", x, y, mode)
    swapped = x.aval.shape[0] < y.aval.shape[0]
    turned = flip(conjugate(y))
    out = _convolved("correlate", x, turned, mode, precision, preferred_element_type)
    if mode == "same" and swapped:
        # NumPy keeps the points around the centre of the longer operand, read from its end.
        other = _convolved(
            "correlate", flip(conjugate(x)), y, mode, precision, preferred_element_type
        )
        return flip(conjugate(other))
    return out


def _check(name: str, x: Any, y: Any, mode: str) -> None:
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if x.aval.size == 0 or y.aval.size == 0:
        raise ValueError(
            f"{name}: inputs cannot be empty, got shapes {x.aval.shape} and {y.aval.shape}."
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError("mode must be one of ['full', 'same', 'valid']")


def _convolved(name: str, x: Any, y: Any, mode: str, precision: Any, preferred: Any) -> Any:
    if x.aval.shape[0] < y.aval.shape[0]:
        x, y = y, x
    n = y.aval.shape[0]
    padding = {"valid": (0, 0), "same": (n // 2, n - n // 2 - 1), "full": (n - 1, n - 1)}[mode]
    dtype, weak = x.aval.dtype, x.aval.weak_type and y.aval.weak_type
    if preferred is not None:
        wanted, weak = dtypes.check_user_dtype_supported(preferred, name), False
        check_preferred(name, dtype, wanted, kinds=True)
        dtype = wanted
    kernel = flip(y)
    out = conv_general_dilated(
        shape_ops.reshape(x, shape=(1, 1, x.aval.shape[0])),
        shape_ops.reshape(kernel, shape=(1, 1, n)),
        window_strides=(1,),
        padding=(padding,),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
        dimension_numbers=PLAIN,
        feature_group_count=1,
        batch_group_count=1,
        precision=plain_precision(precision),
        preferred_element_type=None if preferred is None else np.dtype(dtype),
    )
    return convert(shape_ops.reshape(out, shape=(out.shape[2],)), dtype, weak)
