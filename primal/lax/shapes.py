"""Operations that move, repeat and contract elements, with positional parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.avals import canonical_shape
from primal.ir.trace import PYTHON_SCALARS, Array, aval_of, literal
from primal.lax.alike import alike
from primal.numpy.remembered import remembered, remembered_but_wide
from primal.ops import shape as _ops
from primal.ops import spread as _spread
from primal.ops.choose import convert_element_type as _convert
from primal.ops.elementwise.convert import number_as, whole_as
from primal.ops.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    canonical_precision,
    check_preferred,
    later_dtype,
    one_dtype,
    product,
)
from primal.ops.types import canonical_axes, shape_of, static_int, static_ints
from primal.runtime import guards
from primal.runtime.eager import as_array
from primal.runtime.refusals import in_words

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
    | DotAlgorithmPreset
)  # fmt: skip


@remembered
@in_words
def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The operand repeated along new leading dimensions.

    >>> broadcast(jnp.arange(2), (3,)).tolist()
    [[0, 1], [0, 1], [0, 1]]
    """
    shape = shape_of(operand)
    sizes = canonical_shape(sizes, "broadcast")
    if not sizes and isinstance(operand, Array):
        return operand
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return _spread.broadcast_in_dim(operand, shape=(*sizes, *shape), broadcast_dimensions=dims)


@remembered
@in_words
def broadcast_in_dim(
    operand: Any,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """The operand in a larger shape: its dimension i becomes broadcast_dimensions[i].

    Sizes are those of the result there, or 1. Raises TypeError for other sizes and for dimensions
    named twice.

    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    dims = static_ints("broadcast_in_dim broadcast_dimensions", broadcast_dimensions)
    order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    # The op keeps the order of dimensions; lists of another length are its to refuse.
    if order != tuple(range(len(dims))) and len(order) == len(shape_of(operand)):
        operand, dims = _ops.transpose(operand, permutation=order), tuple(sorted(dims))
    target = canonical_shape(shape, "broadcast_in_dim")
    if isinstance(operand, Array) and operand.shape == target and dims == tuple(range(len(target))):
        return operand
    return _spread.broadcast_in_dim(operand, shape=target, broadcast_dimensions=dims)


@in_words
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape NumPy's broadcasting gives; ValueError where there is none.

    TypeError for negative sizes.

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sizes = [canonical_shape(tuple(s), "broadcast_shapes") for s in shapes]
    try:
        return np.broadcast_shapes(*sizes)
    except ValueError:
        raise ValueError(
            f"[broadcast_shapes] expected sizes equal or 1, aligned from the last, got {sizes}: "
            "Incompatible shapes for broadcasting."
        ) from None


@in_words
def broadcast_to_rank(x: Any, rank: int) -> Array:
    """x with leading dimensions of size 1, up to a rank.

    >>> broadcast_to_rank(jnp.arange(3), 2)
    Array([[0, 1, 2]], dtype=int32)
    """
    shape = shape_of(x)
    if len(shape) == rank:
        return as_array(x) if isinstance(x, np.ndarray) else x
    return reshape(x, (*(1,) * (rank - len(shape)), *shape))


@remembered
@in_words
def reshape(
    operand: Any, new_sizes: Any, dimensions: Any = None, *, out_sharding: Any = None
) -> Array:
    """The elements in row-major order in another shape.

    With `dimensions` those are brought in that order first. ValueError where the numbers of
    elements differ.

    >>> reshape(jnp.arange(4), (2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    sizes = (new_sizes,) if isinstance(new_sizes, int | np.integer) else new_sizes
    sizes = canonical_shape(sizes, "reshape")
    if math.prod(sizes) != math.prod(shape_of(operand)):
        raise ValueError(
            f"[reshape] expected a shape of as many elements as {shape_of(operand)}, got {sizes}."
        )
    if isinstance(operand, Array) and operand.shape == sizes:
        return operand
    return _ops.reshape(operand, shape=sizes)


@remembered
@in_words
def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The dimensions from start to stop as one.

    ValueError where the stop comes before the start.

    >>> collapse(jnp.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    shape = shape_of(operand)
    lo, hi, _ = slice_(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:"
            f"{stop_dimension}]"
        )
    size = int(np.prod(shape[lo:hi], dtype=int))
    return reshape(operand, (*shape[:lo], size, *shape[hi:]))


@remembered
@in_words
def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """Dimension i of the result is dimension permutation[i] of the operand.

    >>> transpose(jnp.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    order = static_ints("transpose permutation", permutation)
    if isinstance(operand, Array) and order == tuple(range(operand.ndim)):
        return operand
    return _ops.transpose(operand, permutation=order)


@remembered
@in_words
def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """Without the named dimensions, which have size 1.

    >>> squeeze(jnp.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    ndim = len(shape_of(array))
    axes = canonical_axes("squeeze", dimensions, ndim)
    if isinstance(array, Array) and not axes:
        return array
    return _ops.squeeze(array, dimensions=tuple(sorted(axes)))


@remembered
@in_words
def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """With new dimensions of size 1 at the given places of the result.

    >>> expand_dims(jnp.arange(3), (0, -1)).shape
    (1, 3, 1)
    """
    shape = shape_of(array)
    places = static_ints("expand_dims dimensions", dimensions)
    rank = len(shape) + len(places)
    axes = canonical_axes("expand_dims", places, rank)
    kept = tuple([i for i in range(rank) if i not in axes])
    sizes = iter(shape)
    target = tuple([1 if i in axes else next(sizes) for i in range(rank)])
    if isinstance(array, Array) and not axes:
        return array
    return _spread.broadcast_in_dim(array, shape=target, broadcast_dimensions=kept)


slice_ = slice


@remembered
@in_words
def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """operand[start:limit:stride] along every dimension.

    >>> lax.slice(jnp.arange(5), (1,), (4,))
    Array([1, 2, 3], dtype=int32)
    """
    starts = static_ints("slice start_indices", start_indices)
    steps = None if strides is None else static_ints("slice strides", strides)
    return _ops.slice(
        operand,
        start_indices=starts,
        limit_indices=static_ints("slice limit_indices", limit_indices),
        strides=None if steps == (1,) * len(starts) else steps,
    )


@remembered
@in_words
def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """operand[start:limit:stride] along one dimension.

    Bounds count from the end where negative. ValueError for a stride below 1.

    >>> slice_in_dim(jnp.arange(5), 1, None, stride=2)
    Array([1, 3], dtype=int32)
    """
    shape = shape_of(operand)
    axis = canonical_axes("slice_in_dim", (axis,), len(shape))[0]
    n = shape[axis]
    start = 0 if start_index is None else int(start_index)
    limit = n if limit_index is None else int(limit_index)
    start, limit = start + n * (start < 0), limit + n * (limit < 0)
    if stride < 1:
        raise ValueError(f"[slice_in_dim] expected a positive stride, got {stride}.")
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, limit, int(stride)
    return slice(operand, starts, limits, steps)


@in_words
def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """operand[index] along one dimension.

    With `keepdims` the dimension stays, of size 1. IndexError for an index out of bounds.

    >>> index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False)
    Array([2, 5], dtype=int32)
    """
    shape = shape_of(operand)
    axis = canonical_axes("index_in_dim", (axis,), len(shape))[0]
    n = shape[axis]
    at = static_int("index_in_dim index", index)
    if not -n <= at < n:
        raise IndexError(
            f"[index_in_dim] expected an index in [{-n}, {n}), got {index}: index {index} is "
            f"out of bounds for axis {axis} with size {n}"
        )
    row = slice_in_dim(operand, at % n, at % n + 1, 1, axis)
    return row if keepdims else squeeze(row, (axis,))


@remembered
@in_words
def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """The operand cut into parts of the given sizes along one dimension.

    ValueError where the sizes do not sum to that of the dimension.

    >>> [part.tolist() for part in split(jnp.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    shape = shape_of(operand)
    (axis,) = canonical_axes("split", (axis,), len(shape))
    parts = static_ints("split sizes", sizes)
    if sum(parts) != shape[axis] or any(n < 0 for n in parts):
        negative = any(n < 0 for n in parts)
        rule = (
            "Sizes passed to split must be nonnegative"
            if negative
            else f"Sum of sizes {sum(parts)} must be equal to dimension {axis}"
        )
        raise ValueError(
            f"[split] expected sizes of at least 0 whose sum is {shape[axis]}, got {parts} for "
            f"shape {shape} along axis {axis}: {rule}."
        )
    cuts = np.cumsum([0, *parts])
    return [
        slice_in_dim(operand, int(a), int(b), 1, axis)
        for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    ]


@remembered
@in_words
def pad(operand: Any, padding_value: Any, padding_config: Any) -> Array:
    """With (low, high, interior) elements of padding per dimension; negative ones remove.

    >>> lax.pad(jnp.array([1, 2]), 0, [(1, 0, 1)])
    Array([0, 1, 0, 2], dtype=int32)
    """
    try:
        config = tuple([(int(lo), int(hi), int(inner)) for lo, hi, inner in padding_config])
    except (TypeError, ValueError):
        raise (ValueError if hasattr(padding_config, "__len__") else TypeError)(
            "[pad] expected padding_config as triples (low, high, interior) of whole numbers, got "
            f"{padding_config!r}."
        ) from None
    if type(padding_value) in PYTHON_SCALARS:
        alike("pad", operand, padding_value)
        padding_value = literal(padding_value, aval_of(operand).dtype)
    return _ops.pad(operand, padding_value, padding_config=config)


@remembered
@in_words
def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Operands one after the other along a dimension.

    Shapes agree but along it. ValueError without operands, TypeError where they do not fit.

    >>> concatenate([jnp.arange(2), jnp.arange(3)], 0)
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    along = static_int("concatenate dimension", dimension)
    (first, *others) = operands
    if isinstance(first, Array) and not others and 0 <= along < first.ndim:
        return first
    return _ops.concatenate(*operands, dimension=along)


@remembered
@in_words
def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """Reversed along dimensions. TypeError for dimensions that are not there, or there twice.

    >>> rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    rank = len(shape_of(operand))
    dims = static_ints("rev dimensions", dimensions)
    if not all(0 <= d < rank for d in dims) or len(set(dims)) != len(dims):
        rule = "less than operand ndim and nonnegative" if len(set(dims)) == len(dims) else "unique"
        raise TypeError(
            f"[rev] expected distinct dimensions in [0, {rank}), got {dims}: rev dimensions must "
            f"be {rule}."
        )
    return _ops.rev(operand, dimensions=dims)


@remembered
@in_words
def tile(operand: Any, reps: Sequence[int]) -> Array:
    """The operand repeated reps[i] times along each dimension.

    TypeError for other numbers of repetitions than dimensions.

    >>> tile(jnp.arange(2), (2,))
    Array([0, 1, 0, 1], dtype=int32)
    """
    shape = shape_of(operand)
    if len(reps) != len(shape):
        raise TypeError(
            f"[tile] expected {len(shape)} repetitions, got {tuple(reps)}: reps length must be "
            "equal to the ndim of x."
        )
    pairs = [n for r, s in zip(reps, shape, strict=True) for n in (int(r), s)]
    spread = broadcast_in_dim(operand, pairs, range(1, 2 * len(shape), 2))
    return reshape(spread, [r * s for r, s in zip(reps, shape, strict=True)])


@remembered_but_wide
@in_words
def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array filled with a value.

    TypeError for a value that is no scalar, ValueError for None.

    >>> lax.full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    if fill_value is None:
        raise ValueError("[full] expected a number to fill with, got None.")
    if shape_of(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape "
            f"{shape_of(fill_value)}."
        )
    if guards.ever:
        guards.incoming(fill_value)
    sizes = canonical_shape((shape,) if isinstance(shape, int) else shape, "full")
    aval = aval_of(fill_value)
    if dtype is None:
        value = fill_value
    else:
        wanted = dtypes.canonicalize_dtype(dtypes.check_user_dtype_supported(dtype, "full"))
        whole = whole_as(fill_value, wanted)
        if whole is not None:
            value = literal(whole[()], wanted, False)
        elif type(fill_value) in PYTHON_SCALARS:
            value = number_as(fill_value, wanted) if type(fill_value) is float else fill_value
            value = literal(value, wanted, False)
        else:
            value = _convert(fill_value, new_dtype=wanted, weak_type=False)
    if type(value) in PYTHON_SCALARS:
        value = literal(value, aval.dtype, type(value) is not bool)
    return _spread.broadcast_in_dim(value, shape=sizes, broadcast_dimensions=())


@remembered_but_wide
@in_words
def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Array:
    """An array like x, filled with a value.

    >>> full_like(jnp.arange(3), 7)
    Array([7, 7, 7], dtype=int32)
    """
    aval = aval_of(x)
    if dtype is None and aval.weak_type and not shape_of(fill_value):
        fill_value = _convert(fill_value, new_dtype=aval.dtype, weak_type=True)
        return full(aval.shape if shape is None else shape, fill_value)
    return full(aval.shape if shape is None else shape, fill_value, dtype or aval.dtype)


@remembered
@in_words
def iota(dtype: Any, size: int) -> Array:
    """0, 1, …, size - 1.

    A vector of that dtype. ValueError without a dtype.

    >>> lax.iota(jnp.int32, 3)
    Array([0, 1, 2], dtype=int32)
    """
    if dtype is None:
        raise ValueError("[iota] expected a dtype, got None.")
    return broadcasted_iota(dtype, (size,), 0)


@remembered
@in_words
def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """0, 1, 2, … along a dimension, the same along the others.

    TypeError for dtypes that are no numbers.

    >>> broadcasted_iota("int32", (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    found = dtypes.canonicalize_dtype(dtypes.check_user_dtype_supported(dtype, "iota"))
    if dtypes.kind_of(found) not in "iufc":
        raise TypeError(f"iota does not accept dtype {found.name}. Accepted dtypes are numbers.")
    sizes = canonical_shape((shape,) if isinstance(shape, int) else shape, "iota")
    return _ops.iota(shape=sizes, dtype=found, dimension=static_int("iota dimension", dimension))


@remembered
@in_words
def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Vector and matrix products: the last dimension of lhs with the first of rhs.

    With dimension_numbers, `dot_general`. ValueError for other ranks without them.

    >>> lax.dot(jnp.array([1., 2.]), jnp.array([3., 4.]))
    Array(11., dtype=float32)
    """
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    left, right = shape_of(lhs), shape_of(rhs)
    if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
        raise ValueError(
            f"[dot] expected vectors or matrices whose last and first sizes agree, got shapes "
            f"{left} and {right}: dimension_numbers must be specified when not performing simple "
            "un-batched products."
        )
    dims = (((len(left) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dims, precision, preferred_element_type)


@remembered
@in_words
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """out[b, i, j] = Σ_c lhs[b, i, c]·rhs[b, j, c] with ((lhs c, rhs c), (lhs b, rhs b)).

    `precision` is a Precision, a pair of them, their names, or a DotAlgorithm or preset. Sums are
    in preferred_element_type, or the operands' dtype; operands of two dtypes take the wider.
    TypeError where shapes or dimensions do not fit.

    >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((4, 3)), (((1,), (1,)), ((), ()))).shape
    (2, 4)
    """
    if not dimension_numbers:
        return dot(lhs, rhs, precision=precision, preferred_element_type=preferred_element_type)
    (lc, rc), (lb, rb) = dimension_numbers
    contracted = [static_ints("dot_general contracting dimensions", d) for d in (lc, rc)]
    batch = [static_ints("dot_general batch dimensions", d) for d in (lb, rb)]
    dims = tuple(contracted), tuple(batch)
    preferred = (
        None
        if preferred_element_type is None
        else dtypes.check_user_dtype_supported(preferred_element_type, "dot_general")
    )
    lhs, rhs = [x if hasattr(x, "aval") else as_array(x) for x in (lhs, rhs)]
    if not isinstance(canonical_precision(precision), DotAlgorithm | DotAlgorithmPreset):
        dtype = later_dtype(lhs.dtype, rhs.dtype)
        check_preferred("dot_general", dtype, preferred, kinds=False)
    lhs, rhs = one_dtype(lhs, rhs, preferred)
    return product(lhs, rhs, dims, precision, preferred)


@remembered
@in_words
def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Matrix products of the last two dimensions, for each index of the others.

    out[..., i, k] = Σj lhs[..., i, j] rhs[..., j, k]. ValueError for ranks below 2, or that differ.

    >>> batch_matmul(jnp.ones((2, 1, 3)), jnp.ones((2, 3, 1))).tolist()
    [[[3.0]], [[3.0]]]
    """
    n = len(shape_of(lhs))
    if n < 2 or len(shape_of(rhs)) != n:
        raise ValueError(
            f"Arguments to batch_matmul must be at least 2D and of one rank, got {n}, "
            f"{len(shape_of(rhs))}"
        )
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)
