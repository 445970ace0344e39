"""Other shapes of the same elements: reshape, transpose, broadcast, new and dropped axes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from primal.base import dtypes
from primal.base.source import user_stacklevel
from primal.ir.avals import canonical_shape
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.creation import as_shape, placed
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    broadcast_shapes,
    convert,
    from_literal,
    operand,
    to_shape,
    warn_of_parts,
    with_rank,
)
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered, remembered_as
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.index.dynamic import dynamic_slice
from primal.ops.spread import broadcast_in_dim
from primal.ops.types import (
    axes_given,
    canonical_axes,
    iterates,
    static_count,
    static_int,
    static_ints,
)
from primal.runtime.refusals import in_words


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions, as the object itself says, else of the array NumPy makes of it.

    Warns of lists, and of all that is neither an array nor a number and has no shape of its own.

    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    own = getattr(a, "shape", None)
    if own is not None:
        return tuple(own)
    if hasattr(a, "__jax_array__"):
        return shape(a.__jax_array__())
    if not isinstance(a, str | bytes | bool | int | float | complex):
        warnings.warn(
            f"shape requires ndarray or scalar arguments, got {type(a)} at position 0. In a "
            "future release this will be an error.",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of dimensions.

    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along an axis (or axes).

    >>> jnp.size(jnp.zeros((2, 3))), jnp.size(jnp.zeros((2, 3)), 1)
    (6, 3)
    """
    have = shape(a)
    axes = range(len(have)) if axis is None else axes_given(axis)
    total = 1
    for i in canonical_axes("size", axes, len(have)):
        total *= have[i]
    return total


def completed_shape(name: str, have: tuple[int, ...], wanted: Any) -> tuple[int, ...]:
    """The target of a reshape, its one -1 filled in."""
    if not isinstance(wanted, tuple | list):
        wanted = tuple(wanted) if iterates(wanted) else (wanted,)
    unknown = [i for i, n in enumerate(wanted) if type(n) is int and n == -1]
    if not unknown:
        unknown = [i for i, n in enumerate(wanted) if not hasattr(n, "aval") and n == -1]
    if len(unknown) > 1:
        raise TypeError(
            "can only specify one unknown axis size with a `-1` value, got "
            f"{tuple(wanted)}."
        )
    if not unknown:
        return canonical_shape(wanted, name)
    at = unknown[0]
    rest = canonical_shape([n for i, n in enumerate(wanted) if i != at], name)
    total, known = 1, 1
    for n in have:
        total *= n
    for n in rest:
        known *= n
    if known == 0 or total % known:
        raise TypeError(
            f"cannot reshape array of shape {have} (size {total}) into shape {tuple(wanted)}: "
            f"{total} elements do not divide by {known}."
        )
    return (*rest[:at], total // known, *rest[at:])


@remembered
def reshape(
    a: ArrayLike,
    shape: Any,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Array:
    """The elements in row-major order (column-major for order 'F') in another shape.

    One size may be -1; arrays do not change, so `copy` says nothing. Raises TypeError where the
    number of elements differs, NotImplementedError for order 'A', ValueError for unknown orders.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return placed(reshape(a, shape, order, copy=copy), None, out_sharding)
    x = array_operand("reshape", a)
    target = completed_shape("reshape", x.aval.shape, shape)
    if order == "C":
        return x if target == x.aval.shape else shape_ops.reshape(x, shape=target)
    if order == "F":
        turned = _reversed_axes(x)
        return _reversed_axes(shape_ops.reshape(turned, shape=target[::-1]))
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def _reversed_axes(x: Any) -> Any:
    n = x.aval.ndim
    return x if n < 2 else shape_ops.transpose(x, permutation=tuple(range(n))[::-1])


@remembered
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one dimension.

    Raises NotImplementedError for order 'K'.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    x = array_operand("ravel", a)
    return placed(reshape(x, (x.aval.size,), order), None, out_sharding)


@remembered
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The axes in another order, reversed by default: out[i, j, …] = a[…, j, i].

    Raises TypeError where axes are no permutation.

    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = array_operand("transpose", a)
    n = x.aval.ndim
    if axes is None:
        return _reversed_axes(x)
    turned = tuple([as_axis("transpose", i, n) for i in static_ints("transpose axes", axes)])
    if sorted(turned) != list(range(n)):
        raise TypeError(
            f"[transpose] expected a permutation of the {n} axes of shape {x.aval.shape}, got "
            f"{tuple(axes)}: transpose permutation isn't a permutation of operand dimensions."
        )
    if turned == tuple(range(n)):
        return x
    return shape_ops.transpose(x, permutation=turned)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """`transpose` with the order given.

    The result is the array with its axes in that order.
    Raises TypeError where axes are no permutation.

    >>> jnp.permute_dims(jnp.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    x = array_operand("permute_dims", a)
    turned = static_ints("permute_dims axes", axes)
    if sorted(turned) != list(range(x.aval.ndim)):
        raise TypeError(
            f"[permute_dims] expected a permutation of the {x.aval.ndim} axes, got {turned}."
        )
    return transpose(x, turned)


@in_words
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes swapped; ValueError below two dimensions.

    >>> jnp.matrix_transpose(jnp.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = array_operand("matrix_transpose", x)
    n = x.aval.ndim
    if n < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={n}")
    return shape_ops.transpose(x, permutation=(*range(n - 2), n - 1, n - 2))


@remembered
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two axes swapped.

    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = array_operand("swapaxes", a)
    n = x.aval.ndim
    i, j = as_axis("swapaxes", axis1, n), as_axis("swapaxes", axis2, n)
    order = list(range(n))
    order[i], order[j] = order[j], order[i]
    return x if i == j else shape_ops.transpose(x, permutation=tuple(order))


@remembered
def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """Axes moved to new places; the others keep their order.

    Raises ValueError unless there are as many sources as destinations.

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = array_operand("moveaxis", a)
    n = x.aval.ndim
    sources, targets = axes_given(source), axes_given(destination)
    if len(sources) != len(targets):
        raise ValueError(
            f"Inconsistent number of elements: {len(sources)} vs {len(targets)} in source "
            f"{source} and destination {destination}."
        )
    moved = canonical_axes("moveaxis", sources, n)
    places = canonical_axes("moveaxis", targets, n)
    order = [i for i in range(n) if i not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    permutation = tuple(order)
    if permutation == tuple(range(n)):
        return x
    return shape_ops.transpose(x, permutation=permutation)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """An axis moved before another.

    Raises ValueError for a start beyond the axes.

    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = array_operand("rollaxis", a)
    n = x.aval.ndim
    start = static_int("rollaxis start", start)
    if not -n <= start <= n:
        raise ValueError(f"start must be in [-{n},{n}]; got {start}")
    at = as_axis("rollaxis", axis, n)
    start = start + n if start < 0 else start
    return moveaxis(x, at, start - (start > at))


@remembered
def squeeze(a: ArrayLike, axis: Any = None) -> Array:
    """Without axes of size 1: all of them, or those named (ValueError where one is larger).

    >>> jnp.squeeze(jnp.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """
    x = array_operand("squeeze", a)
    have = x.aval.shape
    if axis is None:
        axes = tuple([i for i, n in enumerate(have) if n == 1])
    else:
        axes = canonical_axes("squeeze", axes_given(axis), len(have))
    return shape_ops.squeeze(x, dimensions=tuple(sorted(axes))) if axes else x


@remembered
def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """New axes of size 1 at places of the result.

    >>> jnp.expand_dims(jnp.zeros(3), (0, -1)).shape
    (1, 3, 1)
    """
    x = array_operand("expand_dims", a)
    given = axes_given(axis)
    rank = x.aval.ndim + len(given)
    new = canonical_axes("expand_dims", given, rank)
    if not new:
        return x
    kept = tuple([i for i in range(rank) if i not in new])
    sizes = iter(x.aval.shape)
    target = tuple([1 if i in new else next(sizes) for i in range(rank)])
    return broadcast_in_dim(x, shape=target, broadcast_dimensions=kept)


@remembered
def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: Any = None) -> Array:
    """The array repeated along new leading axes and axes of size 1.

    Raises ValueError where the shapes do not fit.

    >>> jnp.broadcast_to(jnp.arange(2), (3, 2))
    Array([[0, 1],
           [0, 1],
           [0, 1]], dtype=int32)
    """
    x = operand("broadcast_to", array)
    target = as_shape(shape)
    have = x.aval.shape
    tail = target[len(target) - len(have) :] if have else ()
    if len(have) > len(target) or any(n not in (1, m) for n, m in zip(have, tail, strict=True)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {have} and requested shape {target}. "
            "Dimensions are aligned from the last, and must be equal or 1."
        )
    return placed(to_shape(x, target), None, out_sharding)


@remembered
def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Arrays broadcast against each other, to one shape.

    >>> [a.shape for a in jnp.broadcast_arrays(jnp.zeros(3), jnp.zeros((2, 1)))]
    [(2, 3), (2, 3)]
    """
    operands = [operand("broadcast_arrays", x, i) for i, x in enumerate(args)]
    target = broadcast_shapes(*[x.aval.shape for x in operands])
    return [to_shape(x, target) for x in operands]


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays of at least one dimension; several operands give a list.

    >>> jnp.atleast_1d(1.)
    Array([1.], dtype=float32, weak_type=True)
    """
    return _at_least("atleast_1d", arys, lambda x: with_rank(x, 1))


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays of at least two dimensions: new ones come first.

    >>> jnp.atleast_2d(jnp.arange(3)).shape
    (1, 3)
    """
    return _at_least("atleast_2d", arys, lambda x: with_rank(x, 2))


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays of at least three dimensions: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1).

    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)
    """

    def grow(x: Any) -> Any:
        n = x.aval.ndim
        if n == 1:
            return expand_dims(x, (0, 2))
        return expand_dims(x, 2) if n == 2 else with_rank(x, 3)

    return _at_least("atleast_3d", arys, grow)


def _at_least(name: str, arys: Sequence[Any], grow: Any) -> Any:
    out = [from_literal(grow(operand(name, x, i))) for i, x in enumerate(arys)]
    return out[0] if len(out) == 1 else out


# Order of elements along axes.


@remembered
def flip(m: ArrayLike, axis: Any = None) -> Array:
    """The elements in reverse order along axes (all by default).

    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), 1)
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = array_operand("flip", m)
    n = x.aval.ndim
    if axis is None:
        axes = tuple(range(n))
    else:
        axes = canonical_axes("flip", axes_given(axis), n)
    return shape_ops.rev(x, dimensions=axes)


def fliplr(m: ArrayLike) -> Array:
    """`flip` along the second axis.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(array_operand("fliplr", m), 1)


def flipud(m: ArrayLike) -> Array:
    """`flip` along the first axis.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(array_operand("flipud", m), 0)


@remembered
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The plane of two axes turned by k quarters, from the first axis to the second.

    Raises ValueError below two dimensions and for equal axes.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = array_operand("rot90", m)
    if x.aval.ndim < 2:
        raise ValueError(
            f"rot90 requires its first argument to have ndim at least two, but got first argument "
            f"of shape {x.aval.shape}."
        )
    plane = canonical_axes("rot90", axes, x.aval.ndim)
    if len(plane) != 2:
        raise ValueError(f"[rot90] expected the two axes of a plane, got axes={axes}.")
    first, second = plane
    k = static_count("rot90 k", k) % 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, (first, second))
    if k == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


@remembered_as(direct.roll)
def roll(a: ArrayLike, shift: Any, axis: Any = None) -> Array:
    """The elements moved by `shift` places along axes, around the end; flattened without axes.

    Several shifts go with several axes. A traced shift is taken modulo the size as well. Raises
    ValueError unless there are as many shifts as axes.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = array_operand("roll", a)
    if axis is None and x.aval.ndim == 1:
        axis = 0
    if axis is None:
        flat = shape_ops.reshape(x, shape=(x.aval.size,))
        return shape_ops.reshape(roll(flat, shift, 0), shape=x.aval.shape)
    if hasattr(shift, "__jax_array__"):
        shift = operand("roll", shift, 1)
    if np.ndim(getattr(shift, "aval", shift)) > 1:
        raise ValueError(
            "[roll] expected shifts of at most one dimension: 'shift' and 'axis' arguments to roll "
            "must be scalars or 1D arrays."
        )
    axes: Any = axes_given(axis)
    shifts: Any = shift if isinstance(shift, tuple | list) else None
    if shifts is None:
        given = operand("roll", shift, 1)
        shifts = [shift] if given.aval.ndim == 0 else [given[i] for i in range(given.aval.size)]
    counts = len(axes), len(shifts)
    axes = list(axes) * counts[1] if counts[0] == 1 else list(axes)
    shifts = list(shifts) * counts[0] if counts[1] == 1 else list(shifts)
    if len(axes) != len(shifts):
        raise ValueError(f"[roll] expected as many shifts as axes, got {shift} and {axis}.")
    for s, i in zip(shifts, axes, strict=True):
        x = _rolled(x, s, as_axis("roll", i, x.aval.ndim))
    return x


def _rolled(x: Any, shift: Any, axis: int) -> Any:
    n = x.aval.shape[axis]
    if n == 0:
        return x
    try:
        by = operator.index(shift) % n
    except TypeError:
        return _rolled_by_array(x, shift, axis)
    if by == 0:
        return x
    return shape_ops.concatenate(
        part(x, axis, n - by, n), part(x, axis, 0, n - by), dimension=axis
    )


def _rolled_by_array(x: Any, shift: Any, axis: int) -> Any:
    """As a part of two copies side by side, so that a traced shift needs no gather."""
    from_shift = operand("roll", shift, 1)
    have = x.aval.shape
    n = have[axis]
    kind = from_shift.aval.dtype.kind
    if kind not in "biu" or dtypes.itemsize_bits(from_shift.aval.dtype) < 32:
        # Fractions are cut off, and imaginary parts with a warning, as JAX's are.
        warn_of_parts(from_shift.aval.dtype, np.dtype(np.int32))
        from_shift = ops.real(from_shift) if kind == "c" else from_shift
        from_shift = convert(from_shift, np.dtype(np.int32))
    at = ops.rem(ops.sub(n, ops.rem(from_shift, n)), n)
    zero = literal(0, at.aval.dtype, False)
    starts = [at if i == axis else zero for i in range(len(have))]
    twice = shape_ops.concatenate(x, x, dimension=axis)
    return dynamic_slice(twice, *starts, slice_sizes=have)


def part(x: Any, axis: int, start: int, stop: int, step: int = 1) -> Any:
    """x[start:stop:step] along an axis, for bounds that are there."""
    have = x.aval.shape
    n = len(have)
    return shape_ops.slice(
        x,
        start_indices=tuple([start if i == axis else 0 for i in range(n)]),
        limit_indices=tuple([stop if i == axis else have[i] for i in range(n)]),
        strides=None if step == 1 else tuple([step if i == axis else 1 for i in range(n)]),
    )


def iterable(y: Any) -> bool:
    """Whether a value can be iterated over.

    >>> jnp.iterable(jnp.arange(3)), jnp.iterable(1)
    (True, False)
    """
    return iterates(y)
