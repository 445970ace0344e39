"""How gather and scatter name dimensions, what they do out of bounds, and the checks of both."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primal.base import dtypes
from primal.base.errors import UnhashableArgumentError
from primal.base.limits import iinfo
from primal.ops.types import is_hashable

Shape = tuple[int, ...]


class GatherDimensionNumbers(NamedTuple):
    """Which dimensions of operand, indices and result of a gather belong together.

    The last dimension of `indices` holds one start per entry of `start_index_map`; its other
    dimensions are the batch of the result, in order.

    * `offset_dims`: the result's dimensions that run over the window, increasing.
    * `collapsed_slice_dims`: operand dimensions of window size 1 that the result lacks.
    * `start_index_map`: the operand dimension that each entry of a start vector indexes.
    * `operand_batching_dims`, `start_indices_batching_dims`: pairs of dimensions of operand and
      indices that run together; the window has size 1 there and the result lacks the operand's.

    >>> numbers = GatherDimensionNumbers((1,), (0,), (0,))
    >>> lax.gather(jnp.arange(6).reshape(2, 3), jnp.array([[1]]), numbers, (1, 3))
    Array([[3, 4, 5]], dtype=int32)
    """

    offset_dims: Shape
    collapsed_slice_dims: Shape
    start_index_map: Shape
    operand_batching_dims: Shape = ()
    start_indices_batching_dims: Shape = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which dimensions of operand, indices and updates of a scatter belong together.

    The mirror image of `GatherDimensionNumbers`: `update_window_dims` are the offset dimensions,
    `inserted_window_dims` the collapsed ones, `scatter_dims_to_operand_dims` the start index map.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[1]]), jnp.ones(1), numbers)
    Array([0., 1., 0.], dtype=float32)
    """

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()


class GatherScatterMode(enum.Enum):
    """What happens to a window that does not lie inside the operand.

    * `CLIP`: it is moved until it does.
    * `FILL_OR_DROP`: gather returns a fill value for the whole window, scatter drops it.
    * `PROMISE_IN_BOUNDS`: the caller promises that there is none; memory is safe regardless (gather
      clips, scatter drops), and derivatives assume the promise.
    * `ONE_HOT`: as a product with one-hot vectors: gather returns zeros, scatter drops.

    >>> lax.GatherScatterMode.from_any("clip")
    <GatherScatterMode.CLIP: 1>
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode named by 'clip', 'fill', 'drop', 'promise_in_bounds' or 'one_hot'.

        None is FILL_OR_DROP. A ValueError tells an unknown name.

        >>> str(GatherScatterMode.from_any('clip'))
        'GatherScatterMode.CLIP'
        """
        if isinstance(s, GatherScatterMode):
            return s
        try:
            return _BY_NAME[s]
        except (KeyError, TypeError):
            raise ValueError(
                f"[mode] expected 'clip', 'fill', 'drop', 'promise_in_bounds', 'one_hot' or None, "
                f'got {s!r}: Unknown gather mode "{s}"'
            ) from None


CLIP = GatherScatterMode.CLIP
FILL_OR_DROP = GatherScatterMode.FILL_OR_DROP
PROMISE_IN_BOUNDS = GatherScatterMode.PROMISE_IN_BOUNDS
ONE_HOT = GatherScatterMode.ONE_HOT

_BY_NAME: dict[Any, GatherScatterMode] = {
    "clip": CLIP,
    "fill": FILL_OR_DROP,
    "drop": FILL_OR_DROP,
    "promise_in_bounds": PROMISE_IN_BOUNDS,
    "one_hot": ONE_HOT,
    None: FILL_OR_DROP,
}


def default_fill(dtype: Any) -> Any:
    """What a gather fills in: nan, the least signed, the greatest unsigned integer, True."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == np.bool_:
        return True
    info = iinfo(dtype)
    return int(info.min) if dtypes.issubdtype(dtype, np.signedinteger) else int(info.max)


def static_fill(name: str, value: Any, dtype: Any) -> Any:
    """The number that a gather fills in; None for the default.

    ValueError for what has axes; TypeError for what is no number, and for complex numbers among
    real ones.
    """
    if value is None or isinstance(dtype, dtypes.KeyType):
        return value
    if np.ndim(value):
        raise ValueError(
            f"[{name}] expected a number of {dtype.name} as fill_value, got {value!r}: fill_value "
            "argument to indexed get() must be a scalar."
        )
    found = value.item() if hasattr(value, "item") else value
    numbers = complex if dtypes.issubdtype(dtype, np.complexfloating) else float
    if isinstance(found, int | float | numbers):
        return found
    kind = TypeError if is_hashable(found) else UnhashableArgumentError
    raise kind(
        f"[{name}] expected a number of {dtype.name} as fill_value, got {found!r}: fill_value "
        "must be a scalar."
    )


def scatter_numbers(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The numbers of the scatter that is the transpose of a gather."""
    return ScatterDimensionNumbers(*numbers)


def gather_numbers(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The numbers of the gather that reads what a scatter writes."""
    return GatherDimensionNumbers(*numbers)


@functools.cache
def window_dims(rank: int, numbers: Any) -> Shape:
    """The operand dimensions that the window keeps, of numbers of either kind."""
    _, gone, _, batching, _ = numbers
    return tuple([d for d in range(rank) if d not in gone and d not in batching])


def window_sizes(
    operand: Shape, updates: Shape, numbers: ScatterDimensionNumbers
) -> Shape:
    """The `slice_sizes` that belong to a scatter: 1 where updates lack the dimension."""
    sizes = [1] * len(operand)
    kept = window_dims(len(operand), numbers)
    for d, u in zip(kept, numbers.update_window_dims, strict=True):
        sizes[d] = updates[u]
    return tuple(sizes)


def check_numbers(name: str, operand: Shape, indices: Shape, numbers: Any) -> None:
    """TypeError unless the numbers, of either kind, fit the shapes."""
    offset, gone, mapped, batching, index_batching = numbers
    rank = len(operand)
    words = type(numbers)._fields
    op = "gather" if isinstance(numbers, GatherDimensionNumbers) else "scatter"

    def fail(expected: str, field: int, rule: str = "") -> None:
        raise TypeError(
            f"[{name}] expected {expected}, got {words[field]}={numbers[field]} for an operand of "
            f"shape {operand} and indices of shape {indices}{rule and ': '}{rule}."
        )

    if not indices:
        raise TypeError(
            f"[{name}] expected indices whose last dimension holds the start vectors, got a "
            "scalar. Reshape them to (1,)."
        )
    if indices[-1] != len(mapped):
        rule = (
            f"{op.capitalize()} op has {len(mapped)} elements in {words[2]} and the bound of "
            f"dimension index_vector_dim={len(indices) - 1} of indices is {indices[-1]}"
        )
        fail(f"{indices[-1]} entries, as many as the last dimension of indices", 2, rule)
    for field, dims, bound in ((1, gone, rank), (2, mapped, rank), (3, batching, rank),
                               (4, index_batching, len(indices) - 1)):
        if not all(0 <= d < bound for d in dims):
            mapping = "; domain" if op == "gather" else " mapping; domain"
            kind = mapping if field == 2 else f" set in {op} op; valid range"
            rule = f"Invalid {words[field]}{kind} is [0, {bound})"
            fail(f"dimensions in [0, {bound})", field, rule)
        if len(set(dims)) != len(dims):
            fail("each dimension at most once", field, f"{words[field]} in {op} op must not repeat")
    for field, dims in ((0, offset), (1, gone), (3, batching)):
        if any(a >= b for a, b in zip(dims, dims[1:], strict=False)):
            once = len(set(dims)) == len(dims)
            rule = f"{words[field]} in {op} op must {'be sorted' if once else 'not repeat'}"
            fail("increasing dimensions", field, rule)
    if set(batching) & (set(gone) | set(mapped)):
        other = words[1] if set(batching) & set(gone) else words[2]
        rule = f"{other} and {words[3]} in {op} op must be disjoint"
        fail("operand batching dimensions apart from the others", 3, rule)
    if len(batching) != len(index_batching):
        fail(f"{len(batching)} dimensions, one per operand batching dimension", 4)
    for d, i in zip(batching, index_batching, strict=True):
        if operand[d] != indices[i]:
            fail("batching dimensions of equal sizes", 3)
    out_rank = len(offset) + len(indices) - 1
    if len(offset) != rank - len(gone) - len(batching):
        kept = rank - len(gone) - len(batching)
        rule = (
            "All components of the offset index in a gather op must either be a offset dimension "
            "or explicitly collapsed"
            if op == "gather"
            else f"Scatter op has window of size {rank - kept + len(offset)}; doesn't match "
            f"operand of rank {rank}"
        )
        fail(f"{kept} dimensions, one per dimension of the window", 0, rule)
    for i, d in enumerate(offset):
        if not 0 <= d < out_rank:
            rule = (
                f"Offset dimension {i} in gather op is out of bounds"
                if op == "gather"
                else f"Invalid {words[0]} set in scatter op; valid range is [0, {out_rank})"
            )
            fail(f"dimensions in [0, {out_rank})", 0, rule)


def check_index_dtype(name: str, dtype: Any) -> None:
    """ValueError unless the dtype is of integers."""
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(
            f"[{name}] expected integer indices, got {dtype.name}: indices must have an integer "
            "type."
        )


def batched_shape(offset: Sequence[int], windows: Sequence[int], batch: Sequence[int]) -> Shape:
    """The shape with `windows` at the dimensions `offset` and `batch` at the others."""
    rank = len(windows) + len(batch)
    left, right = iter(windows), iter(batch)
    places = set(offset)
    return tuple([next(left) if i in places else next(right) for i in range(rank)])
