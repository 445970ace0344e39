"""Functions of integers: common divisors and multiples, packed bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.api.control.loops import while_loop
from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    array_operand,
    broadcast_shapes,
    convert,
    operand,
    promote_dtypes,
    to_shape,
)
from primal.numpy.reductions import any as any_true
from primal.numpy.reductions import as_axis
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered_as
from primal.numpy.shapes import part, ravel
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.types import static_int

UINT8 = np.dtype(np.uint8)


def _integers(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    x, y = promote_dtypes(name, x1, x2)
    if not dtypes.issubdtype(x.aval.dtype, np.integer):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    shape = broadcast_shapes(x.aval.shape, y.aval.shape)
    if shape:  # weak results are of scalars only
        x, y = convert(x, x.aval.dtype), convert(y, y.aval.dtype)
    return to_shape(x, shape), to_shape(y, shape)


@remembered_as(direct.gcd)
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor, element by element, by Euclid's algorithm (Elements, VII.2).

    >>> jnp.gcd(jnp.array([12, -6]), 9)
    Array([3, 3], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    weak, found = x.aval.weak_type and y.aval.weak_type, x.aval.dtype
    x, y = _magnitude(x), _magnitude(y)
    dtype = x.aval.dtype
    zero, one = literal(0, dtype, False), to_shape(literal(1, dtype, False), x.aval.shape)

    def unfinished(pair: Any) -> Any:
        return any_true(ops.ne(pair[1], zero))

    def step(pair: Any) -> Any:
        a, b = pair
        done = ops.eq(b, zero)
        rest = ops.rem(a, ops.select_n(done, b, one))
        return ops.select_n(done, b, a), ops.select_n(done, rest, b)

    return convert(while_loop(unfinished, step, (x, y))[0], found, weak)


def _magnitude(x: Any) -> Any:
    """The absolute value, unsigned, as that of the least signed number is no signed one."""
    dtype = x.aval.dtype
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return convert(x, dtype)
    return convert(ops.abs(x), np.dtype("u" + dtype.name))


@remembered_as(direct.lcm)
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple, element by element.

    >>> jnp.lcm(jnp.array([4, 0]), 6)
    Array([12,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    weak, found = x.aval.weak_type and y.aval.weak_type, x.aval.dtype
    x, y = _magnitude(x), _magnitude(y)
    dtype = x.aval.dtype
    d = gcd(x, y)
    zero = literal(0, dtype, False)
    one = to_shape(literal(1, dtype, False), d.aval.shape)
    quotient = ops.div(y, ops.select_n(ops.eq(d, zero), d, one))
    return convert(ops.mul(x, quotient), found, weak)


@remembered_as(direct.packbits)
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Groups of eight non-zero or zero elements as the bits of uint8; the last filled with zeros.

    Raises TypeError unless the elements are integers or booleans.

    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    x = array_operand("packbits", a)
    if not (dtypes.issubdtype(x.aval.dtype, np.integer) or x.aval.dtype == BOOL):
        raise TypeError("Expected an input array of integer or boolean data type")
    shifts = _shifts("packbits", bitorder)
    if axis is None:
        x, axis = ravel(x), 0
    at = as_axis("packbits", axis, x.aval.ndim)
    bits = convert(ops.ne(x, literal(0, x.aval.dtype, False)), UINT8)
    shape, n = bits.aval.shape, bits.aval.shape[at]
    config = tuple([(0, -n % 8 if d == at else 0, 0) for d in range(len(shape))])
    bits = shape_ops.pad(bits, literal(0, UINT8, False), padding_config=config)
    bits = shape_ops.reshape(bits, shape=(*shape[:at], -(-n // 8), 8, *shape[at + 1 :]))
    by = operand("packbits", shifts.reshape(8, *(1,) * (len(shape) - at - 1)))
    placed = ops.shift_left(bits, to_shape(by, bits.aval.shape))
    return total(placed, at + 1, promote_integers=False)


@remembered_as(direct.unpackbits)
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of uint8 numbers as zeros and ones, eight for each; `count` cuts or fills up.

    Raises TypeError for other dtypes than uint8.

    >>> jnp.unpackbits(jnp.array([3], jnp.uint8))
    Array([0, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    x = array_operand("unpackbits", a)
    if x.aval.dtype != UINT8:
        raise TypeError("Expected an input array of unsigned byte data type")
    shifts = _shifts("unpackbits", bitorder)
    if axis is None:
        x, axis = ravel(x), 0
    at = as_axis("unpackbits", axis, x.aval.ndim)
    before, n, behind = x.aval.shape[:at], x.aval.shape[at], x.aval.shape[at + 1 :]
    shape = (*before, n, 8, *behind)
    wide = to_shape(shape_ops.reshape(x, shape=(*before, n, 1, *behind)), shape)
    by = operand("unpackbits", shifts.reshape(8, *(1,) * len(behind)))
    bits = ops.shift_right_logical(wide, to_shape(by, shape))
    bits = ops.bitwise_and(bits, literal(1, UINT8, False))
    bits = shape_ops.reshape(bits, shape=(*before, n * 8, *behind))
    if count is not None:
        wanted = static_int("unpackbits count", count)
        wanted = wanted if wanted >= 0 else n * 8 + wanted
        if wanted > n * 8:
            config = [(0, (wanted - n * 8) * (d == at), 0) for d in range(bits.aval.ndim)]
            bits = shape_ops.pad(bits, literal(0, UINT8, False), padding_config=tuple(config))
        else:
            bits = part(bits, at, 0, wanted)
    return bits


def _shifts(name: str, bitorder: str) -> Any:
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r} in {name}.")
    shifts = np.arange(8, dtype=np.uint8)
    return shifts[::-1].copy() if bitorder == "big" else shifts
