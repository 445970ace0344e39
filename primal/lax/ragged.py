"""ragged_dot: a product of which each group of rows has a matrix of its own; scaled_dot."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, aval_of, literal
from primal.lax.shapes import dot_general
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import bitwise_and, ge, lt, mul, select_n, sub
from primal.ops.shape import iota, moveaxis, reshape, transpose
from primal.ops.spread import broadcast_in_dim
from primal.ops.window.cumulative import cumsum
from primal.runtime.refusals import in_words


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Dimensions of `ragged_dot_general`: those of dot_general, lhs's ragged one, rhs's group one.

    >>> lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)).lhs_ragged_dimensions
    (0,)
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Any
    rhs_group_dimensions: Any

    def __post_init__(self) -> None:
        (lc, rc), (lb, rb) = self.dot_dimension_numbers
        numbers = ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
        object.__setattr__(self, "dot_dimension_numbers", numbers)
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@in_words
def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """out[i] = lhs[i] rhs[g], g the group that row i is in: the first group_sizes[0] are in 0, …

    lhs (m, k), rhs (g, k, n), integers group_sizes (g,); the result (m, n) is 0 in rows beyond all
    groups. TypeError where shapes or dtypes do not fit.

    >>> lax.ragged_dot(jnp.ones((3, 1)), jnp.array([[[1.]], [[5.]]]), jnp.array([1, 2]))
    Array([[1.],
           [5.],
           [5.]], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset
    )


@in_words
def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`dot_general` in groups along one ragged dimension of lhs, whose sizes are data.

    Where it is free, each group meets a slice of rhs's group dimension; where it is contracted,
    each group gives one product, along a new first dimension; a batch dimension leaves
    `dot_general`. group_sizes is (g,), or has leading dimensions: the batched ones, then those
    before the ragged one, in the order of dimension_numbers. Groups beyond the end are cut.
    TypeError where shapes, dtypes or dimensions do not fit. NotImplementedError for a group_offset.

    >>> by_rows = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> lax.ragged_dot_general(jnp.ones((3, 1)), jnp.ones((3, 1)), jnp.array([1, 2]), by_rows)
    Array([[[1.]],
    <BLANKLINE>
           [[2.]]], dtype=float32)
    """
    name = "ragged_dot_general"
    left, right, sizes = aval_of(lhs), aval_of(rhs), aval_of(group_sizes)
    numbers = ragged_dot_dimension_numbers
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    if group_offset is not None:
        raise NotImplementedError(
            f"[{name}] expected group_offset=None, got an array. Slice rhs and group_sizes instead."
        )
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise TypeError(f"[{name}] expected integer group sizes, got {sizes.dtype.name}.")
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            f"[{name}] expected exactly one ragged dimension of lhs, got "
            f"{numbers.lhs_ragged_dimensions}."
        )
    (ragged,) = numbers.lhs_ragged_dimensions
    if not 0 <= ragged < left.ndim or sizes.ndim == 0:
        raise TypeError(
            f"[{name}] expected a ragged dimension of lhs and group sizes of it, got dimension "
            f"{ragged} of shape {left.shape} and sizes of shape {sizes.shape}."
        )
    groups = sizes.shape[-1]
    free = ragged not in lc and ragged not in lb
    if len(numbers.rhs_group_dimensions) != (1 if free else 0):
        raise TypeError(
            f"[{name}] expected {'one group dimension' if free else 'no group dimensions'} of rhs "
            f"where the ragged dimension is {'free' if free else 'contracted or batched'}, got "
            f"{numbers.rhs_group_dimensions}."
        )
    if free and not 0 <= numbers.rhs_group_dimensions[0] < right.ndim:
        raise TypeError(
            f"[{name}] expected a group dimension of rhs in [0, {right.ndim}), got "
            f"{numbers.rhs_group_dimensions[0]}."
        )
    if free and right.shape[numbers.rhs_group_dimensions[0]] != groups:
        raise TypeError(
            f"[{name}] expected rhs group dimension size to be {groups}, got "
            f"{right.shape[numbers.rhs_group_dimensions[0]]}."
        )
    options = (precision, preferred_element_type)
    if ragged in lb:
        outer = [*lb[: list(lb).index(ragged)]]
    elif free:
        outer = [*lb, *[d for d in range(ragged) if d not in lc and d not in lb]]
    else:
        outer = [*lb, *lc[: list(lc).index(ragged)]]
    given, wanted = sizes.shape[:-1], tuple([left.shape[d] for d in outer])
    if given not in ((), wanted):
        raise TypeError(
            f"[{name}] expected group sizes of shape (g,) or with leading dimensions {wanted}, "
            f"got {sizes.shape}."
        )
    if ragged in lb:
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, *options)
    mask = _members(group_sizes, tuple(outer) if given else (), ragged, left.shape)
    whole = (groups, *left.shape)
    spread = broadcast_in_dim(lhs, shape=whole, broadcast_dimensions=tuple(range(1, len(whole))))
    none = broadcast_in_dim(literal(0, left.dtype, False), shape=whole, broadcast_dimensions=())
    parts = select_n(mask, none, spread)
    lc, lb = tuple([d + 1 for d in lc]), tuple([d + 1 for d in lb])
    if free:
        dims = (((0, *lc), (*numbers.rhs_group_dimensions, *rc)), (lb, rb))
        return dot_general(parts, rhs, dims, *options)
    out = dot_general(parts, rhs, ((lc, rc), (lb, rb)), *options)
    return moveaxis(out, len(lb), 0)


def _members(sizes: Any, dims: tuple[int, ...], ragged: int, shape: tuple[int, ...]) -> Any:
    """Which elements of lhs are in which group, (g, *shape of lhs); dims are those of sizes."""
    aval = aval_of(sizes)
    last = aval.ndim - 1
    ends = cumsum(sizes, axis=last, reverse=False)
    starts, places = sub(ends, sizes), (0, *[d + 1 for d in sorted(dims)])
    whole, order = (aval.shape[-1], *shape), (last, *sorted(range(last), key=dims.__getitem__))
    starts, ends = [
        broadcast_in_dim(transpose(x, permutation=order), shape=whole, broadcast_dimensions=places)
        for x in (starts, ends)
    ]
    index = iota(shape=whole, dtype=aval.dtype, dimension=ragged + 1)
    return bitwise_and(ge(index, starts), lt(index, ends))


@in_words
def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """(lhs · lhs_scale) (rhs · rhs_scale), where each element of a scale is for a block of lhs.

    Scales have the operands' shapes, but for contracted dimensions, which they divide. Without
    dimension_numbers matrices, or stacks of them, are multiplied. bfloat16 by default. ValueError
    where ranks need dimension_numbers, or scales do not divide their operand.

    >>> lax.scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=jnp.full((1, 2), 3.))
    Array([[12]], dtype=bfloat16)
    """
    rank = aval_of(lhs).ndim
    if dimension_numbers is None:
        if rank not in (2, 3) or aval_of(rhs).ndim != rank:
            raise ValueError(
                "[scaled_dot] expected two matrices, two stacks of them, or dimension_numbers, got "
                f"shapes {aval_of(lhs).shape} and {aval_of(rhs).shape}."
            )
        lead = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (lead, lead))
    (lc, rc), _ = dimension_numbers
    out = np.dtype(dtypes.bfloat16) if preferred_element_type is None else (
        dtypes.canonicalize_dtype(preferred_element_type)
    )  # fmt: skip
    left = _scaled(lhs, lhs_scale, lc, "lhs")
    right = _scaled(rhs, rhs_scale, rc, "rhs")
    product = dot_general(left, right, dimension_numbers, None, np.float32)
    return convert_element_type(product, new_dtype=out, weak_type=False)


def _scaled(x: Any, scale: Any, contracted: Any, side: str) -> Any:
    x = convert_element_type(x, new_dtype=np.dtype(np.float32), weak_type=False)
    if scale is None:
        return x
    shape, blocks = aval_of(x).shape, aval_of(scale).shape
    fits = len(shape) == len(blocks) and all(
        n == s or (d in contracted and s and n % s == 0)
        for d, (n, s) in enumerate(zip(shape, blocks, strict=True))
    )
    if not fits:
        raise ValueError(
            f"[scaled_dot] expected {side}_scale of shape {shape}, or dividing its contracted "
            f"dimensions {tuple(contracted)}, got {blocks}."
        )
    pairs = [m for n, s in zip(shape, blocks, strict=True) for m in (s, n // s if s else 0)]
    scale = convert_element_type(scale, new_dtype=np.dtype(np.float32), weak_type=False)
    spread = broadcast_in_dim(
        scale, shape=tuple(pairs), broadcast_dimensions=tuple(range(0, len(pairs), 2))
    )
    return mul(x, reshape(spread, shape=shape))
