"""Window functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.avals import canonical_shape
from primal.ir.trace import Array
from primal.numpy.bessel import i0
from primal.numpy.choosing import where
from primal.numpy.creation import filled
from primal.numpy.promotion import ArrayLike, array_operand, convert, operand
from primal.numpy.ranges import arange
from primal.numpy.remembered import remembered
from primal.ops import elementwise as ops
from primal.ops.types import static_whole


def _window(name: str, M: Any) -> tuple[int, Any, Any]:
    """(the number of points, 0 … M - 1 as floats, a window of one point or none)."""
    count = static_whole(f"{name} M", M)
    dtype = dtypes.python_scalar_dtype(float)
    if count <= 1:
        return count, None, filled(canonical_shape((count,), name), 1, dtype)
    return count, arange(count, dtype=dtype), None


@remembered
def bartlett(M: int) -> Array:
    """The triangular window 1 - |2n/(M - 1) - 1|.

    A vector of M floats of the default dtype; n counts from 0.

    >>> jnp.bartlett(3)
    Array([0., 1., 0.], dtype=float32)
    """
    count, n, short = _window("bartlett", M)
    return short if n is None else 1 - abs(2 * n + 1 - count) / (count - 1)


@remembered
def hanning(M: int) -> Array:
    """The window 0.5 (1 - cos(2πn/(M - 1))).

    A vector of M floats of the default dtype; n counts from 0.

    >>> jnp.hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    count, n, short = _window("hanning", M)
    return short if n is None else 0.5 * (1 - ops.cos(2 * np.pi * n / (count - 1)))


@remembered
def hamming(M: int) -> Array:
    """The window 0.54 - 0.46 cos(2πn/(M - 1)).

    A vector of M floats of the default dtype; n counts from 0.

    >>> jnp.hamming(3)
    Array([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    count, n, short = _window("hamming", M)
    return short if n is None else 0.54 - 0.46 * ops.cos(2 * np.pi * n / (count - 1))


@remembered
def blackman(M: int) -> Array:
    """The window 0.42 - 0.5 cos(2πn/(M - 1)) + 0.08 cos(4πn/(M - 1)).

    A vector of M floats of the default dtype; n counts from 0.

    >>> jnp.blackman(3).shape
    (3,)
    """
    count, n, short = _window("blackman", M)
    if n is None:
        return short
    turn = 2 * np.pi * n / (count - 1)
    return 0.42 - 0.5 * ops.cos(turn) + 0.08 * ops.cos(2 * turn)


@remembered
def kaiser(M: int, beta: ArrayLike) -> Array:
    """The window I0(β √(1 - ((2n - M + 1)/(M - 1))²)) / I0(β).

    A vector of M floats of the default dtype; n counts from 0.
    Raises ValueError for a complex beta.

    >>> jnp.kaiser(3, 0.)
    Array([1., 1., 1.], dtype=float32)
    """
    count, n, short = _window("kaiser", M)
    if n is None:
        return short
    b = operand("kaiser", beta, 1)
    if b.aval.dtype.kind == "c":
        raise ValueError("[kaiser] expected real numbers as beta, got complex ones.")
    b = convert(b, n.dtype)
    half = 0.5 * (count - 1)
    inside = 1 - ((n - half) / half) ** 2
    return i0(b * ops.sqrt(where(inside > 0, inside, 0))) / i0(array_operand("kaiser", b))
