"""Communication over named axes: reductions, gathers, permutations, the index on an axis.

Under vmap the named axis is a dimension of the array, and each op becomes arithmetic on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.effects import NamedAxis
from primal.ir.op import COLLECTIVE, Never, Op, by_kind
from primal.ir.state import axis_size
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import mul
from primal.ops.reduce import reduce_max, reduce_min
from primal.ops.shape import concatenate, iota, moveaxis, slice, transpose
from primal.ops.spread import broadcast_axis, reduce_sum, zeros_like_aval
from primal.ops.types import NOT_LINEAR, NUMERIC, check_dtype
from primal.ops.words import linear


def named_effects(params: dict[str, Any]) -> frozenset[Any]:
    """The named axes an equation communicates over."""
    return frozenset(NamedAxis(name) for name in params["axes"])


def unbound(op: str) -> Any:
    """The rule of an engine for an axis that no vmap has bound."""

    def rule(*args: Any, axes: Any = (), **params: Any) -> Any:
        raise NameError(
            f"[{op}] unbound axis name: {axes[0] if axes else '?'}. Name the axis in a surrounding "
            "vmap, pmap or shard_map."
        )

    return rule


def without(axes: tuple[Any, ...], name: Any) -> tuple[Any, ...]:
    """The axes but the named one."""
    return tuple([a for a in axes if a != name])


# psum: the sum over named axes.


def _psum_type(x: Aval, *, axes: tuple[Any, ...]) -> Aval:
    check_dtype("psum", x, NUMERIC)
    for name in axes:
        axis_size(name)
    return x.strong()


def _psum_batch(axis: Any, args: Any, dims: Any, *, axes: tuple[Any, ...]) -> Any:
    (x,), (d,) = args, dims
    if axis.name is None or axis.name not in axes:
        return psum(x, axes=axes), d
    rest = without(axes, axis.name)
    if d is None:
        # Every example holds the same value, so the sum is a product with the size.
        out = mul(x, literal(axis.size, aval_of(x).dtype, False))
    else:
        out = reduce_sum(x, axes=(d,))
    return (psum(out, axes=rest) if rest else out), None


psum: Op = Op(
    name="psum",
    kind=COLLECTIVE,
    type=_psum_type,
    impl=unbound("psum"),
    jvp=linear,
    transpose=lambda ct, x, *, axes: (psum(ct, axes=axes),),
    batch=_psum_batch,
    shard=by_kind,
    hlo=unbound("psum"),
    kernel=unbound("psum"),
    effects=named_effects,
)


# pmax, pmin: the extreme over named axes.


def _extreme(name: str, reduce: Op) -> Op:
    def type_rule(x: Aval, *, axes: tuple[Any, ...]) -> Aval:
        for axis in axes:
            axis_size(axis)
        return x.strong()

    def batch(axis: Any, args: Any, dims: Any, *, axes: tuple[Any, ...]) -> Any:
        (x,), (d,) = args, dims
        if axis.name is None or axis.name not in axes:
            return op(x, axes=axes), d
        rest = without(axes, axis.name)
        out = x if d is None else reduce(x, axes=(d,))
        return (op(out, axes=rest) if rest else out), None

    op = Op(
        name=name,
        kind=COLLECTIVE,
        type=type_rule,
        impl=unbound(name),
        jvp=Never(
            f"[{name}] expected no differentiation: the extreme over devices has no derivative "
            "rule. Use all_gather and max or min instead."
        ),
        transpose=NOT_LINEAR,
        batch=batch,
        shard=by_kind,
        hlo=unbound(name),
        kernel=unbound(name),
        effects=named_effects,
    )
    return op


pmax = _extreme("pmax", reduce_max)
pmin = _extreme("pmin", reduce_min)


# all_gather <-> reduce_scatter: all values of the axis along a new dimension; its transpose sums
# over the axis and keeps each one's own part.


def _gather_type(x: Aval, *, axes: tuple[Any, ...], dim: int, size: int) -> Aval:
    axis_size(axes[0])
    return Aval((*x.shape[:dim], size, *x.shape[dim:]), x.dtype)


def _gather_batch(axis: Any, args: Any, dims: Any, *, axes: Any, dim: int, size: int) -> Any:
    (x,), (d,) = args, dims
    if axes != (axis.name,):
        before = d + (dim <= d)
        return all_gather(x, axes=axes, dim=dim + (dim > d), size=size), before
    return (broadcast_axis(x, size, dim) if d is None else moveaxis(x, d, dim)), None


all_gather: Op = Op(
    name="all_gather",
    kind=COLLECTIVE,
    type=_gather_type,
    impl=unbound("all_gather"),
    jvp=linear,
    transpose=lambda ct, x, *, axes, dim, size: (
        reduce_scatter(ct, axes=axes, dim=dim, size=size),
    ),
    batch=_gather_batch,
    shard=by_kind,
    hlo=unbound("all_gather"),
    kernel=unbound("all_gather"),
    effects=named_effects,
)


def _scatter_type(x: Aval, *, axes: tuple[Any, ...], dim: int, size: int) -> Aval:
    axis_size(axes[0])
    check_dtype("reduce_scatter", x, NUMERIC)
    if x.shape[dim] != size:
        raise ValueError(
            f"[reduce_scatter] expected dimension {dim} of the size of the axis, {size}, got shape "
            f"{x.shape}."
        )
    return Aval((*x.shape[:dim], *x.shape[dim + 1 :]), x.dtype)


def _scatter_batch(axis: Any, args: Any, dims: Any, *, axes: Any, dim: int, size: int) -> Any:
    (x,), (d,) = args, dims
    if axes != (axis.name,):
        at = dim + (dim >= d)
        return reduce_scatter(x, axes=axes, dim=at, size=size), d - (dim < d)
    if d is None:
        return mul(x, literal(size, aval_of(x).dtype, False)), dim
    return reduce_sum(x, axes=(d,)), dim


reduce_scatter: Op = Op(
    name="reduce_scatter",
    kind=COLLECTIVE,
    type=_scatter_type,
    impl=unbound("reduce_scatter"),
    jvp=linear,
    transpose=lambda ct, x, *, axes, dim, size: (all_gather(ct, axes=axes, dim=dim, size=size),),
    batch=_scatter_batch,
    shard=by_kind,
    hlo=unbound("reduce_scatter"),
    kernel=unbound("reduce_scatter"),
    effects=named_effects,
)


# ppermute: each (source, destination) of `perm` sends its value; who receives none gets zeros.


def _ppermute_type(x: Aval, *, axes: tuple[Any, ...], perm: tuple[tuple[int, int], ...]) -> Aval:
    size = axis_size(axes[0])
    sources, targets = [s for s, _ in perm], [t for _, t in perm]
    for group in (sources, targets):
        if len(set(group)) != len(group) or not all(0 <= i < size for i in group):
            raise ValueError(
                f"[ppermute] expected distinct sources and destinations in [0, {size}), got {perm}."
            )
    return x.strong()


def _ppermute_batch(axis: Any, args: Any, dims: Any, *, axes: Any, perm: Any) -> Any:
    (x,), (d,) = args, dims
    if axes != (axis.name,):
        return ppermute(x, axes=axes, perm=perm), d
    if d is None:
        x, d = broadcast_axis(x, axis.size, 0), 0
    source = {t: s for s, t in perm}
    shape = aval_of(x).shape
    parts = []
    at = 0
    while at < axis.size:
        first = source.get(at)
        count = 1
        while at + count < axis.size and (
            source.get(at + count) == (None if first is None else first + count)
        ):
            count += 1
        if first is None:
            parts.append(
                zeros_like_aval(Aval((*shape[:d], count, *shape[d + 1 :]), aval_of(x).dtype))
            )
        else:
            start = tuple(first if i == d else 0 for i in range(len(shape)))
            limit = tuple(first + count if i == d else n for i, n in enumerate(shape))
            parts.append(slice(x, start_indices=start, limit_indices=limit, strides=None))
        at += count
    return concatenate(*parts, dimension=d), d


def _ppermute_transpose(ct: Any, x: Any, *, axes: Any, perm: Any) -> Any:
    return (ppermute(ct, axes=axes, perm=tuple([(t, s) for s, t in perm])),)


ppermute: Op = Op(
    name="ppermute",
    kind=COLLECTIVE,
    type=_ppermute_type,
    impl=unbound("ppermute"),
    jvp=linear,
    transpose=_ppermute_transpose,
    batch=_ppermute_batch,
    shard=by_kind,
    hlo=unbound("ppermute"),
    kernel=unbound("ppermute"),
    effects=named_effects,
)


# all_to_all: part i of my split dimension goes to example i, whose parts line up along concat.


def _all_to_all_type(x: Aval, *, axes: tuple[Any, ...], split: int, concat: int) -> Aval:
    size = axis_size(axes[0])
    if x.shape[split] != size:
        raise ValueError(
            f"[all_to_all] expected dimension {split} of the size of the axis, {size}, got shape "
            f"{x.shape}."
        )
    rest = [n for i, n in enumerate(x.shape) if i != split]
    rest.insert(concat, size)
    return Aval(tuple(rest), x.dtype)


def _all_to_all_batch(
    axis: Any, args: Any, dims: Any, *, axes: Any, split: int, concat: int
) -> Any:
    (x,), (d,) = args, dims
    if axes != (axis.name,):
        x = moveaxis(x, d, 0)
        # Behind the batch dimension, which takes no part.
        return all_to_all(x, axes=axes, split=split + 1, concat=concat + 1), 0
    if d is None:
        x, d = broadcast_axis(x, axis.size, 0), 0
    x = moveaxis(x, d, 0)
    rest = [i for i in range(1, aval_of(x).ndim) if i != split + 1]
    rest.insert(concat, 0)
    return transpose(x, permutation=(split + 1, *rest)), 0


all_to_all: Op = Op(
    name="all_to_all",
    kind=COLLECTIVE,
    type=_all_to_all_type,
    impl=unbound("all_to_all"),
    jvp=linear,
    transpose=lambda ct, x, *, axes, split, concat: (
        all_to_all(ct, axes=axes, split=concat, concat=split),
    ),
    batch=_all_to_all_batch,
    shard=by_kind,
    hlo=unbound("all_to_all"),
    kernel=unbound("all_to_all"),
    effects=named_effects,
)


# axis_index: the position on a named axis, int32.


def _axis_index_type(*, axes: tuple[Any, ...]) -> Aval:
    axis_size(axes[0])
    return Aval((), np.dtype(np.int32))


def _axis_index_batch(axis: Any, args: Any, dims: Any, *, axes: tuple[Any, ...]) -> Any:
    return iota(shape=(axis.size,), dtype=np.dtype(np.int32), dimension=0), 0


axis_index: Op = Op(
    name="axis_index",
    kind=COLLECTIVE,
    type=_axis_index_type,
    impl=unbound("axis_index"),
    jvp=Never("[axis_index] expected no differentiation, as it has no operands."),
    transpose=Never("[axis_index] expected no transposition, as it has no operands."),
    batch=_axis_index_batch,
    shard=by_kind,
    hlo=unbound("axis_index"),
    kernel=unbound("axis_index"),
    effects=named_effects,
)
