"""squareplus, of numbers whose squares overflow and where it is a difference, and its slopes."""

from __future__ import annotations

from typing import Any

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.ir.trace import Array
from primal.nn.functions import as_number
from primal.numpy import direct
from primal.numpy.promotion import in_float32, promote_dtypes_inexact
from primal.numpy.remembered import remembered_as


@remembered_as(direct.squareplus)
def squareplus(x: Any, b: Any = 4) -> Array:
    """(x + √(x² + b)) / 2 (Barron, 2021).

    Element by element, of the shape of x.

    >>> nn.squareplus(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    array, b = as_number("squareplus", x), jnp.asarray(b)
    if array.dtype.kind in "biuc" or b.dtype.kind == "c":
        return (array + jnp.sqrt(jnp.square(array) + b)) / 2
    return in_float32(_squareplus, *promote_dtypes_inexact("squareplus", array, b))


def _half_root(x: Array, b: Array) -> tuple[Array, Array, Array]:
    """√(x² + b)/2, that and |x|/2, and what makes the sum's square finite."""
    # The square overflows long before x: a power of 2 less leaves all digits.
    most = int(jnp.finfo(x.dtype).maxexp) // 2
    size = jnp.abs(x)
    large = size > 2.0 ** (most - 2)
    scale = jnp.where(large, 2.0 ** (-most), 1.0)
    root = jnp.sqrt(jnp.square(x * scale) + b * scale * scale)
    half = root / 2 * jnp.where(large, 2.0**most, 1.0)
    return half, size / 2 + half, scale


@custom_jvp
def _squareplus(x: Array, b: Array) -> Array:
    _, total, _ = _half_root(x, b)
    # Below 0 the sum is a difference: its product with the other one is b/4.
    below = x < 0
    return jnp.where(below, b / 4 / jnp.where(below, total, 1), total)


def _slope(t: Any, _: Array, x: Array, b: Array) -> Array:
    """What the value is to the root, by one division; those of the steps take two."""
    half, total, scale = _half_root(x, b)
    below = x < 0
    over = jnp.where(below, b * scale / 4, total)
    return t * (over / jnp.where(below, total * scale * half, half) / 2)


_squareplus.defjvps(_slope, lambda t, _, x, b: t * (0.125 / _half_root(x, b)[0]))
