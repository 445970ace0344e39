"""Arrays put together and taken apart: concatenate, stack, split, tile, repeat."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from primal.ir.trace import Array, concrete_or_error, literal
from primal.numpy import direct
from primal.numpy.creation import as_shape, filled, placed
from primal.numpy.indexing import getitem
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    asked_dtype,
    check_arraylike,
    check_out,
    convert,
    operand,
    promote_dtypes,
    promoted_dtype,
    to_shape,
    with_rank,
)
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, expand_dims, part, ravel
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.spread import broadcast_in_dim
from primal.ops.types import axes_given, iterates, static, static_int, static_whole
from primal.ops.window.cumulative import cumsum


def _sequence(name: str, arrays: Any, verb: str) -> list[Any]:
    """The operands of a joining function."""
    if not iterates(arrays):
        raise TypeError(f"[{name}] expected a sequence of arrays, got {type(arrays)}.")
    out = list(arrays)
    if not out:
        raise ValueError(f"Need at least one array to {verb}.")
    return out


def _rows(name: str, arrays: Any, verb: str) -> Any:
    """An array, which counts as the sequence of its rows; None for other sequences."""
    if not hasattr(arrays, "aval") and not isinstance(arrays, np.ndarray):
        return None
    whole = array_operand(name, arrays)
    if whole.aval.ndim == 0:
        kind = TypeError if name == "stack" else ValueError
        raise kind(f"[{name}] expected a sequence of arrays, got an array without axes.")
    if not whole.aval.shape[0]:
        raise ValueError(f"Need at least one array to {verb}.")
    return whole


def _joined_rows(name: str, x: Any, row: tuple[int, ...], axis: int, dtype: Any) -> Array:
    """The rows of an array, each in the shape `row`, one after the other along an axis of it.

    One transposition, however many they are: as operands they would be one operation each.
    """
    (x,) = _joined_dtype(name, [x], dtype)
    if not row:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    at = as_axis(name, axis, len(row))
    n = x.aval.shape[0]
    x = shape_ops.moveaxis(shape_ops.reshape(x, shape=(n, *row)), 0, at)
    return shape_ops.reshape(x, shape=(*row[:at], n * row[at], *row[at + 1 :]))


def _joined_dtype(name: str, operands: list[Any], dtype: Any) -> list[Any]:
    if dtype is None:
        return promote_dtypes(name, *operands)
    given = [operand(name, x, i) for i, x in enumerate(operands)]
    target = asked_dtype(name, promoted_dtype(given)[0], dtype)
    return [convert(x, target) for x in given]


@remembered
def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays one after the other along an axis; flattened first with axis=None.

    Their other sizes must agree; their dtypes promote. Raises ValueError for nothing to join,
    TypeError for different numbers of dimensions.

    >>> jnp.concatenate([jnp.arange(2), jnp.ones(1)])
    Array([0., 1., 1.], dtype=float32)
    """
    rows = _rows("concatenate", arrays, "concatenate")
    if rows is not None:
        if axis is None:
            return ravel(_joined_dtype("concatenate", [rows], dtype)[0])
        return _joined_rows("concatenate", rows, rows.aval.shape[1:], axis, dtype)
    items = _sequence("concatenate", arrays, "concatenate")
    if axis is None:
        return concatenate([ravel(x) for x in items], 0, dtype)
    operands = _joined_dtype("concatenate", items, dtype)
    shapes = [x.aval.shape for x in operands]
    if not shapes[0]:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    at = as_axis("concatenate", axis, len(shapes[0]))
    for have in shapes:
        if len(have) != len(shapes[0]):
            raise TypeError(
                "Cannot concatenate arrays with different numbers of dimensions: got "
                f"{', '.join(map(str, shapes))}."
            )
        if have[:at] != shapes[0][:at] or have[at + 1 :] != shapes[0][at + 1 :]:
            raise TypeError(
                f"Cannot concatenate arrays with shapes that differ in dimensions other than the "
                f"one being concatenated: concatenating along dimension {at} for shapes "
                f"{', '.join(map(str, shapes))}."
            )
    if len(operands) == 1:
        return operands[0]
    return shape_ops.concatenate(*operands, dimension=at)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """`concatenate` under the array API's name.

    >>> jnp.concat([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    return concatenate(arrays, axis)


@remembered
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape along a new axis; ValueError where shapes differ.

    Raises NotImplementedError for `out`.

    >>> jnp.stack([jnp.arange(2), jnp.ones(2)], axis=1)
    Array([[0., 1.],
           [1., 1.]], dtype=float32)
    """
    check_out("stack", out)
    rows = _rows("stack", arrays, "stack")
    if rows is not None:
        (rows,) = _joined_dtype("stack", [rows], dtype)
        return shape_ops.moveaxis(rows, 0, as_axis("stack", axis, rows.aval.ndim))
    items = _sequence("stack", arrays, "stack")
    operands = _joined_dtype("stack", items, dtype)
    first = operands[0].aval.shape
    for x in operands:
        if x.aval.ndim != len(first):
            raise ValueError(
                "Cannot stack arrays with different numbers of dimensions: got "
                f"{', '.join(str(y.aval.shape) for y in operands)}."
            )
        if x.aval.shape != first:
            raise ValueError(
                f"All input arrays must have the same shape: {first} and {x.aval.shape} differ."
            )
    at = as_axis("stack", axis, len(first) + 1)
    return shape_ops.concatenate(*[_with_axis(x, at) for x in operands], dimension=at)


def _with_axis(x: Any, at: int) -> Any:
    have = x.aval.shape
    return broadcast_in_dim(
        x,
        shape=(*have[:at], 1, *have[at:]),
        broadcast_dimensions=tuple([i + (i >= at) for i in range(len(have))]),
    )


@remembered_as(direct.unstack)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, without it.

    Raises ValueError for scalars.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = array_operand("unstack", x)
    if x.aval.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed")
    at = as_axis("unstack", axis, x.aval.ndim)
    return tuple([
        shape_ops.squeeze(part(x, at, i, i + 1), dimensions=(at,))
        for i in range(x.aval.shape[at])
    ])  # fmt: skip


@remembered
def vstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays of at least two dimensions one below the other.

    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    rows = _rows("vstack", tup, "stack")
    if rows is not None:
        row = rows.aval.shape[1:]
        return _joined_rows("vstack", rows, (1,) * (2 - len(row)) + row, 0, dtype)
    return concatenate([atleast_2d(x) for x in _sequence("vstack", tup, "stack")], 0, dtype)


@remembered
def hstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays side by side: along the second axis, or the only one.

    >>> jnp.hstack([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    rows = _rows("hstack", tup, "stack")
    if rows is not None:
        row = rows.aval.shape[1:] or (1,)
        return _joined_rows("hstack", rows, row, min(1, len(row) - 1), dtype)
    items = [atleast_1d(x) for x in _sequence("hstack", tup, "stack")]
    return concatenate(items, 0 if items[0].aval.ndim == 1 else 1, dtype)


@remembered
def dstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays of at least three dimensions along the third axis.

    >>> jnp.dstack([jnp.arange(2), jnp.arange(2)]).shape
    (1, 2, 2)
    """
    rows = _rows("dstack", tup, "stack")
    if rows is not None:
        row = rows.aval.shape[1:]
        deep = (*((1,) * (2 - len(row))), *row, 1) if len(row) < 3 else row
        return _joined_rows("dstack", rows, deep, 2, dtype)
    return concatenate([atleast_3d(x) for x in _sequence("dstack", tup, "stack")], 2, dtype)


@remembered
def column_stack(tup: Any) -> Array:
    """One-dimensional arrays as the columns of a matrix; matrices side by side.

    >>> jnp.column_stack([jnp.arange(2), jnp.ones(2, int)])
    Array([[0, 1],
           [1, 1]], dtype=int32)
    """
    rows = _rows("column_stack", tup, "stack")
    if rows is not None:
        row = rows.aval.shape[1:]
        column = row if len(row) > 1 else (*row, 1) if row else (1, 1)
        return _joined_rows("column_stack", rows, column, 1, None)
    out = []
    for x in _sequence("column_stack", tup, "stack"):
        x = array_operand("column_stack", x)
        out.append(expand_dims(with_rank(x, 1), 1) if x.aval.ndim < 2 else x)
    return concatenate(out, 1)


@remembered
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Values after an array, along an axis; both flattened by default.

    >>> jnp.append(jnp.arange(2), 5)
    Array([0, 1, 5], dtype=int32)
    """
    x, y = operand("append", arr), operand("append", values, 1)
    if axis is None:
        return concatenate([ravel(x), ravel(y)], 0)
    return concatenate([x, y], axis)


@remembered_as(direct.block)
def block(arrays: Any) -> Array:
    """An array from nested lists of blocks: the innermost lists join along the last axis.

    >>> jnp.block([[jnp.eye(1), jnp.zeros((1, 1))], [jnp.ones((1, 2))]])
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    # What is in no list keeps its rank, numbers too.
    return _block(arrays)[0] if isinstance(arrays, list | tuple) else array_operand("block", arrays)


def _block(xs: Any) -> tuple[Array, int]:
    if isinstance(xs, tuple):
        raise ValueError("jax.numpy.block does not allow tuples, got {xs}")
    if isinstance(xs, list):
        if not xs:
            raise ValueError("jax.numpy.block does not allow empty list arguments")
        parts, depths = zip(*[_block(x) for x in xs], strict=True)
        if any(d != depths[0] for d in depths):
            raise ValueError("Mismatched list depths in jax.numpy.block")
        depth = depths[0] + 1
        rank = max([depth, 1, *[x.aval.ndim for x in parts]])
        return concatenate([with_rank(x, rank) for x in parts], -depths[0] - 1), depth
    return array_operand("block", xs), 0


# Taking apart.


@remembered
def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Equal parts along an axis, or the parts between indices.

    Raises ValueError where the size is no multiple of the number of sections, ZeroDivisionError for
    none.

    >>> jnp.split(jnp.arange(4), [1, 3])
    [Array([0], dtype=int32), Array([1, 2], dtype=int32), Array([3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


@remembered
def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """`split` whose parts may differ in size by one.

    The parts are arrays of the dtype of `ary`.

    >>> [len(part) for part in jnp.array_split(jnp.arange(5), 2)]
    [3, 2]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def _split(name: str, ary: Any, sections: Any, axis: int) -> list[Array]:
    x = array_operand(name, ary)
    at = as_axis(name, axis, x.aval.ndim)
    n = x.aval.shape[at]
    if isinstance(sections, tuple | list) or np.ndim(getattr(sections, "aval", sections)) > 0:
        cuts = [static_int(f"{name} indices", i) for i in sections]
        bounds = [0, *[min(max(c + n, 0) if c < 0 else min(c, n), n) for c in cuts], n]
        spans = [(a, max(a, b)) for a, b in zip(bounds, bounds[1:], strict=False)]
    else:
        count = static_whole(f"{name} sections", sections)
        if count <= 0:
            kind = ZeroDivisionError if count == 0 else ValueError
            raise kind(f"number sections must be larger than 0, got {count}.")
        each, rest = divmod(n, count)
        if rest and name == "split":
            raise ValueError(
                f"array split does not result in an equal division: rest is {rest}. array_split "
                "allows parts of different sizes."
            )
        sizes = [each + 1] * rest + [each] * (count - rest)
        ends = np.cumsum([0, *sizes]).tolist()
        spans = list(zip(ends, ends[1:], strict=False))
    return [part(x, at, a, b) for a, b in spans]


@remembered
def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along the second axis, or the only one.

    >>> len(jnp.hsplit(jnp.zeros((2, 4)), 2))
    2
    """
    x = array_operand("hsplit", ary)
    return _split("split", x, indices_or_sections, 0 if x.aval.ndim == 1 else 1)


@remembered
def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along the first axis.

    >>> len(jnp.vsplit(jnp.zeros((2, 4)), 2))
    2
    """
    return _split("split", ary, indices_or_sections, 0)


@remembered
def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along the third axis.

    >>> len(jnp.dsplit(jnp.zeros((2, 4, 2)), 2))
    2
    """
    return _split("split", ary, indices_or_sections, 2)


# Repetition.


@remembered
def tile(A: ArrayLike, reps: Any) -> Array:
    """The whole array repeated along each axis.

    >>> jnp.tile(jnp.arange(2), (2, 2))
    Array([[0, 1, 0, 1],
           [0, 1, 0, 1]], dtype=int32)
    """
    x = array_operand("tile", A)
    given = tuple(reps) if np.ndim(reps) else (reps,)
    counts = tuple([_repetitions(r) for r in given])
    rank = max(len(counts), x.aval.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    x = with_rank(x, rank)
    have = x.aval.shape
    if all(c == 1 for c in counts):
        return x
    grown = broadcast_in_dim(
        x,
        shape=tuple([n for pair in zip(counts, have, strict=True) for n in pair]),
        broadcast_dimensions=tuple(range(1, 2 * rank, 2)),
    )
    return shape_ops.reshape(grown, shape=tuple([c * n for c, n in zip(counts, have, strict=True)]))


def _repetitions(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            "Shapes must be 1D sequences of concrete values of integer type, got "
            f"{value} as a number of repetitions."
        ) from None


@remembered_as(direct.repeat)
def repeat(
    a: ArrayLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Each element (or slice along an axis) repeated, by one number or by one number each.

    Several numbers must be concrete, unless `total_repeat_length` gives the size of the result: it
    is then cut, or filled up with the last element.

    >>> jnp.repeat(jnp.arange(3), jnp.array([2, 0, 1]))
    Array([0, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        out = repeat(a, repeats, axis, total_repeat_length=total_repeat_length)
        return placed(out, None, out_sharding)
    x = array_operand("repeat", a)
    if axis is None or not x.aval.ndim:
        x, axis = ravel(x), 0 if axis is None else axis
    at = as_axis("repeat", axis, x.aval.ndim)
    n = x.aval.shape[at]
    check_arraylike("repeat", a, repeats)
    if total_repeat_length is not None:
        length = static_int("repeat total_repeat_length", total_repeat_length)
        if length == 0:  # nothing is weak
            x = convert(x, x.aval.dtype)
        return _repeated_to(x, repeats, at, length)
    numbers = np.asarray(concrete_or_error(repeats, "repeats"))
    if numbers.size == 1:
        return _each_repeated(x, at, static_int("repeat repeats", numbers.item()))
    return _taken(x, np.repeat(np.arange(n), np.broadcast_to(numbers, (n,))), at)


def _each_repeated(x: Any, at: int, times: int) -> Array:
    if times < 0:
        raise ValueError(f"[repeat] repeats may not contain negative values, got {times}.")
    have = x.aval.shape
    grown = broadcast_in_dim(
        x,
        shape=(*have[: at + 1], times, *have[at + 1 :]),
        broadcast_dimensions=tuple([i + (i > at) for i in range(len(have))]),
    )
    return shape_ops.reshape(grown, shape=(*have[:at], have[at] * times, *have[at + 1 :]))


def _taken(x: Any, index: Any, at: int) -> Array:
    return getitem(x, (*(slice(None),) * at, index))


def _repeated_to(x: Any, counts: Any, at: int, length: int) -> Array:
    """Position t of the result holds element i, the number of ends (Σ counts up to i) at most t."""
    n = x.aval.shape[at]
    each = to_shape(operand("repeat", counts, 1), (n,))
    if each.aval.dtype.itemsize < 4:  # sums may be greater
        each = convert(each, np.dtype(np.int32))
    ends = cumsum(each, axis=0, reverse=False)
    # How many ends are at or before each place: comparing each with each took 15 s for 300,000.
    first = ops.max(ends, literal(0, ends.dtype, True))
    here = filled((length,), 0, ends.dtype).at[first].add(1, mode="drop")
    index = cumsum(here, axis=0, reverse=False)
    last = literal(max(n - 1, 0), ends.dtype, False)
    return _taken(x, ops.min(index, last), at)


@remembered_as(direct.resize)
def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements repeated in order as often as a new shape needs, or cut.

    Raises ValueError for negative sizes.

    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    x = ravel(a)
    given = axes_given(static("resize new_shape", "a tuple", new_shape))
    if any(isinstance(n, int | np.integer) and n < 0 for n in given):
        raise ValueError(
            "[resize] expected sizes from 0 on, got "
            f"{new_shape}: all elements of `new_shape` must be non-negative."
        )
    shape = as_shape(given)
    total = int(np.prod(shape, dtype=int))
    if total == 0 or x.size == 0:
        return filled(shape, 0, x.dtype)
    times = -(-total // x.size)
    rows = broadcast_in_dim(x, shape=(times, x.size), broadcast_dimensions=(1,))
    whole = shape_ops.reshape(rows, shape=(times * x.size,))
    return shape_ops.reshape(part(whole, 0, 0, total), shape=shape)
