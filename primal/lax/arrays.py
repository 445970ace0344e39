"""Small words of `lax` about whole arrays: stacks, values in programs, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.pytree import register_pytree_node, tree_leaves
from primal.ir.avals import canonical_shape
from primal.ir.trace import Array, aval_of
from primal.lax.shapes import broadcast_in_dim, concatenate, expand_dims, full, index_in_dim
from primal.ops.choose import convert_element_type as _convert
from primal.ops.types import canonical_axes, shape_of
from primal.runtime.eager import as_array
from primal.runtime.refusals import in_words


@in_words
def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Operands of one shape and dtype along a new dimension.

    ValueError where shapes differ or the axis is out of bounds, TypeError where dtypes differ.
    IndexError without operands.

    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if len(operands) == 0:
        raise IndexError("[stack] expected at least one operand, got none: list index out of range")
    avals = [aval_of(x) for x in operands]
    for a in avals:
        if a.shape != avals[0].shape:
            raise ValueError(
                f"[stack] expected operands of one shape, got {avals[0].shape} and {a.shape}."
            )
        if a.dtype != avals[0].dtype:
            raise TypeError(
                f"[stack] expected operands of one dtype, got {avals[0].dtype.name} and "
                f"{a.dtype.name}."
            )
    (place,) = canonical_axes("stack", (axis,), avals[0].ndim + 1)
    parts = [expand_dims(x, (place,)) for x in operands]
    return parts[0] if len(parts) == 1 else concatenate(parts, place)


@in_words
def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices along a dimension, without it.

    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    shape = aval_of(x).shape
    (place,) = canonical_axes("unstack", (axis,), len(shape))
    return tuple([index_in_dim(x, i, place, keepdims=False) for i in range(shape[place])])


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """The array repeated along leading dimensions and dimensions of size 1, in another's shape.

    ValueError if the other has fewer dimensions, or sizes do not fit.

    >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    shape, wanted = shape_of(arr), shape_of(like_arr)
    fits = len(shape) <= len(wanted) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(wanted), strict=False)
    )
    if not fits:
        raise ValueError(
            f"[broadcast_like] expected a shape that broadcasts to {wanted}, got {shape}."
        )
    return broadcast_in_dim(arr, wanted, range(len(wanted) - len(shape), len(wanted)))


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array whose values are not promised; they are zeros.

    >>> lax.empty((2,), jnp.float32)
    Array([0., 0.], dtype=float32)
    """
    return full(shape, 0, dtype, sharding=out_sharding)


def stage(x: Any, /) -> Any:
    """The value as an array, or as a value of the program being traced.

    >>> lax.stage(1)
    Array(1, dtype=int32, weak_type=True)
    """
    if hasattr(x, "aval"):
        return x
    aval = aval_of(x)
    return _convert(x, new_dtype=aval.dtype, weak_type=aval.weak_type)


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an int32 vector.

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return as_array(np.array(canonical_shape(shape, "shape_as_value"), np.int32))


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Nothing: values that nobody reads are dropped by every engine, this use included.

    TypeError for what is no tree of arrays.

    >>> dce_sink(jnp.arange(3))
    """
    for leaf in tree_leaves(val):
        aval_of(leaf)


class Token:
    """A value that orders effects and holds nothing: a tree without leaves.

    The effects of a program run in its order already, so nothing waits for a token.
    """

    __slots__ = ()


register_pytree_node(Token, lambda token: ((), None), lambda _, leaves: Token())


def create_token(_: Any = None) -> Token:
    """A token without a past.

    >>> type(lax.create_token()).__name__
    'Token'
    """
    return Token()


def after_all(*operands: Token) -> Token:
    """A token behind all of the given ones. TypeError for anything else.

    >>> type(lax.after_all(lax.create_token(), lax.create_token())).__name__
    'Token'
    """
    for x in operands:
        if not isinstance(x, Token):
            raise TypeError(f"[after_all] expected tokens, got {type(x).__name__}.")
    return Token()
