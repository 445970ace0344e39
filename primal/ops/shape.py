"""Ops that move elements: reshape, transpose, squeeze, slice <-> pad, concatenate, rev."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import KeyType
from primal.ir.avals import Aval, canonical_shape
from primal.ir.op import SHAPE, Bound, Never, Op, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import select_n, sub
from primal.ops.spread import (
    broadcast_axis,
    broadcast_in_dim,
    full_like_aval,
    reduce_sum,
    zeros_like_aval,
)
from primal.ops.types import canonical_axes, is_linear
from primal.ops.words import linear

# reshape: the same elements in row-major order.


def _reshape_type(x: Aval, *, shape: tuple[int, ...]) -> Aval:
    out = Aval(canonical_shape(shape, "reshape"), x.dtype, x.weak_type)
    if out.size != x.size:
        raise TypeError(
            f"[reshape] expected a shape of {x.size} elements for an operand of shape {x.shape}, "
            f"got {shape} with {out.size}: cannot reshape array of shape {x.shape} (size {x.size})"
            f" into shape {shape} (size {out.size})"
        )
    return out


def _reshape_batch(axis: Any, args: Any, dims: Any, *, shape: tuple[int, ...]) -> Any:
    (x,), (d,) = args, dims
    have = aval_of(x).shape
    # Where the result too has so many elements before and behind, nothing need be transposed.
    around = math.prod(have[:d]), math.prod(have[d + 1 :])
    for at in range(len(shape) + 1):
        if (math.prod(shape[:at]), math.prod(shape[at:])) == around:
            return reshape(x, shape=(*shape[:at], axis.size, *shape[at:])), at
    return reshape(moveaxis(x, d, 0), shape=(axis.size, *shape)), 0


def _reshape_written(eqn: Any, names: Sequence[str], bound: Bound) -> str:
    return f"{names[0]}.reshape({eqn.outvars[0].aval.shape})"


reshape: Op = Op(
    name="reshape",
    kind=SHAPE,
    type=_reshape_type,
    impl=lambda x, *, shape: x.reshape(shape),
    jvp=linear,
    transpose=lambda ct, x, *, shape: (reshape(ct, shape=x.shape),),
    batch=_reshape_batch,
    shard=by_kind,
    hlo=lambda b, x, *, shape: b.reshape(x, shape),
    kernel=lambda k, x, *, shape: k.reshape(x, shape),
    written=_reshape_written,
)


# transpose: dimension i of the result is dimension permutation[i] of the operand.


def _transpose_type(x: Aval, *, permutation: tuple[int, ...]) -> Aval:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            f"[transpose] expected a permutation of the axes of shape {x.shape}, got "
            f"{permutation}: transpose permutation isn't a permutation of operand dimensions."
        )
    return Aval(tuple([x.shape[i] for i in permutation]), x.dtype, x.weak_type)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The inverse permutation."""
    return tuple([permutation.index(i) for i in range(len(permutation))])


def _transpose_batch(axis: Any, args: Any, dims: Any, *, permutation: tuple[int, ...]) -> Any:
    (x,), (d,) = args, dims
    moved = (d, *[p + (p >= d) for p in permutation])
    return transpose(x, permutation=moved), 0


transpose: Op = Op(
    name="transpose",
    kind=SHAPE,
    type=_transpose_type,
    impl=lambda x, *, permutation: x.transpose(permutation),
    jvp=linear,
    transpose=lambda ct, x, *, permutation: (transpose(ct, permutation=inverse(permutation)),),
    batch=_transpose_batch,
    shard=by_kind,
    hlo=lambda b, x, *, permutation: b.transpose(x, permutation),
    kernel=lambda k, x, *, permutation: k.transpose(x, permutation),
    ahead=lambda outlook, eqn: outlook.transposed(eqn, eqn.params["permutation"]),
    written=lambda eqn, names, bound: f"{names[0]}.transpose({eqn.params['permutation']})",
)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """x with one axis moved."""
    if source == destination:
        return x
    order = [i for i in range(aval_of(x).ndim) if i != source]
    order.insert(destination, source)
    return transpose(x, permutation=tuple(order))


# squeeze: without the named dimensions, which have size 1.


def _squeeze_type(x: Aval, *, dimensions: tuple[int, ...]) -> Aval:
    axes = canonical_axes("squeeze", dimensions, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(
                f"[squeeze] expected dimensions of size 1, got dimension {a} of shape {x.shape}: "
                "cannot select an axis to squeeze out which has size not equal to one"
            )
    return Aval(tuple([n for i, n in enumerate(x.shape) if i not in axes]), x.dtype, x.weak_type)


def _squeeze_batch(axis: Any, args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> Any:
    (x,), (d,) = args, dims
    shifted = tuple([a + (a >= d) for a in dimensions])
    return squeeze(x, dimensions=shifted), d - sum(a < d for a in shifted)


squeeze: Op = Op(
    name="squeeze",
    kind=SHAPE,
    type=_squeeze_type,
    impl=lambda x, *, dimensions: x.squeeze(dimensions),
    jvp=linear,
    transpose=lambda ct, x, *, dimensions: (reshape(ct, shape=x.shape),),
    batch=_squeeze_batch,
    shard=by_kind,
    hlo=lambda b, x, *, dimensions: b.reshape(
        x, tuple(n for i, n in enumerate(x.aval.shape) if i not in dimensions)
    ),
    kernel=lambda k, x, *, dimensions: k.reshape(
        x, tuple(n for i, n in enumerate(x.aval.shape) if i not in dimensions)
    ),
    written=_reshape_written,
)


# slice: x[start:limit:stride] along every dimension. Its transpose is pad.


def _slice_rule(n: int, start: int, limit: int) -> str:
    if limit > n:
        return "slice limit_indices must be less than or equal to operand shape"
    if start > limit:
        return "slice limit_indices must be greater than or equal to start_indices"
    if start < 0:
        return "slice start_indices must have every element be nonnegative"
    return "slice strides must have every element be positive"


def _slice_type(x: Aval, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> Aval:
    if len(start_indices) != x.ndim or len(limit_indices) != x.ndim:
        raise ValueError(
            f"[slice] expected one start and limit per dimension of shape {x.shape}, got "
            f"{start_indices} and {limit_indices}: slice indices must have length equal to the "
            "number of dimensions of the operand."
        )
    steps = strides or (1,) * x.ndim
    if len(steps) != x.ndim:
        raise TypeError(
            f"[slice] expected one stride per dimension of shape {x.shape}, got {strides}: slice "
            "strides must have length equal to the number of dimensions of the operand."
        )
    for n, start, limit, step in zip(x.shape, start_indices, limit_indices, steps, strict=True):
        if not 0 <= start <= limit <= n or step < 1:
            raise TypeError(
                f"[slice] expected 0 <= start <= limit <= size and positive strides, got start "
                f"{start_indices}, limit {limit_indices}, strides {strides} for shape {x.shape}: "
                f"{_slice_rule(n, start, limit)}."
            )
    shape = tuple(
        [-(-(b - a) // s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True)]
    )
    return Aval(shape, x.dtype, x.weak_type)


def _slice_impl(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    steps = strides or (1,) * len(start_indices)
    index = tuple(
        [slice_(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True)]
    )
    return x[index]


slice_ = builtins.slice


def _slice_transpose(
    ct: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any = None
) -> Any:
    steps = strides or (1,) * len(start_indices)
    config = tuple(
        [
            (a, n - (a + (1 + (m - 1) * s if m else 0)), s - 1)
            for a, n, m, s in zip(start_indices, x.shape, ct.shape, steps, strict=True)
        ]
    )
    return (pad(ct, literal(0, ct.dtype, False), padding_config=config),)


def _slice_batch(
    axis: Any, args: Any, dims: Any, *, start_indices: Any, limit_indices: Any, strides: Any = None
) -> Any:
    (x,), (d,) = args, dims

    def with_axis(values: Any, value: int) -> Any:
        return (*values[:d], value, *values[d:])

    out = slice(
        x,
        start_indices=with_axis(start_indices, 0),
        limit_indices=with_axis(limit_indices, axis.size),
        strides=None if strides is None else with_axis(strides, 1),
    )
    return out, d


def _slice_written(eqn: Any, names: Sequence[str], bound: Bound) -> str:
    starts, stops = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    return f"{names[0]}[{bound(tuple(map(slice_, starts, stops, steps)))}]"


slice: Op = Op(
    name="slice",
    kind=SHAPE,
    type=_slice_type,
    impl=_slice_impl,
    jvp=linear,
    transpose=_slice_transpose,
    batch=_slice_batch,
    shard=by_kind,
    hlo=lambda b, x, *, start_indices, limit_indices, strides: b.slice(
        x, start_indices, limit_indices, strides or (1,) * len(start_indices)
    ),
    kernel=lambda k, x, *, start_indices, limit_indices, strides: k.slice(
        x, start_indices, limit_indices, strides or (1,) * len(start_indices)
    ),
    written=_slice_written,
)


# pad: (low, high, interior) per dimension; negative low and high remove elements.


def _pad_type(x: Aval, value: Aval, *, padding_config: Any) -> Aval:
    if x.dtype != value.dtype or value.ndim:
        raise (ValueError if value.ndim else TypeError)(
            f"[pad] expected a scalar padding value of dtype {x.dtype.name}, got {value.short()}: "
            f"padding_value must be {'a scalar' if value.ndim else 'same dtype'}."
        )
    few = len(padding_config) != x.ndim
    if few or any(i < 0 for _, _, i in padding_config):
        rule = "length of padding_config must equal the number of axes of operand"
        raise ValueError(
            f"[pad] expected (low, high, interior >= 0) for each dimension of shape {x.shape}, "
            f"got {padding_config}: "
            f"{rule if few else 'interior padding in padding_config must be nonnegative'}."
        )
    shape = tuple(
        [
            lo + hi + n + (n - 1) * inner if n else lo + hi
            for n, (lo, hi, inner) in zip(x.shape, padding_config, strict=True)
        ]
    )
    if any(n < 0 for n in shape):
        raise ValueError(
            f"[pad] expected a result without negative dimensions, got {shape} from shape "
            f"{x.shape} and padding {padding_config}: Dimension size after padding is not at least "
            "0."
        )
    return Aval(shape, x.dtype, x.weak_type and value.weak_type)


@functools.lru_cache(maxsize=1024)
def _pad_places(
    shape: tuple[int, ...], padding_config: Any
) -> tuple[tuple[int, ...], Any, Any, list[Any]]:
    """The shape of a padded array, the places of elements that stay, in both arrays, and the places
    around them: everywhere where there is padding between elements."""
    sizes = tuple([
        lo + hi + n + max(n - 1, 0) * i
        for n, (lo, hi, i) in zip(shape, padding_config, strict=True)
    ])  # fmt: skip
    source, target = [], []
    for n, size, (lo, _, inner) in zip(shape, sizes, padding_config, strict=True):
        step = inner + 1
        first = -(lo // step) if lo < 0 else 0
        last = min(n, (size - 1 - lo) // step + 1) if size else 0
        source.append(slice_(first, max(first, last)))
        start = lo + first * step
        target.append(slice_(start, start + max(0, last - first) * step, step))
    if not all(s.stop > s.start for s in source):
        return sizes, None, None, [...]
    if any(inner for *_, inner in padding_config):
        return sizes, tuple(source), tuple(target), [...]
    # Around the elements alone: half the time of filling all.
    around: list[Any] = []
    before: tuple[Any, ...] = ()
    for place, size in zip(target, sizes, strict=True):
        if place.start:
            around.append((*before, slice_(0, place.start)))
        if place.stop < size:
            around.append((*before, slice_(place.stop, size)))
        before = (*before, place)
    return sizes, tuple(source), tuple(target), around


def _pad_impl(x: Any, value: Any, *, padding_config: Any) -> Any:
    sizes, source, target, around = _pad_places(x.shape, padding_config)
    # As x lies: a transposed one is not turned.
    out = np.empty(sizes[::-1], x.dtype).T if x.flags.fnc else np.empty(sizes, x.dtype)
    for place in around:
        out[place] = value
    if source is not None:
        out[target] = x[source]
    return out


def _pad_jvp(primals: Any, tangents: Any, *, padding_config: Any) -> Any:
    x, value = primals
    t, u = tangents
    t = zeros_like_aval(aval_of(x)) if t is ZERO else t
    u = literal(0, x.dtype, False) if u is ZERO else u
    return pad(x, value, padding_config=padding_config), pad(t, u, padding_config=padding_config)


def _unpad(ct: Any, shape: Any, padding_config: Any) -> Any:
    negative = tuple((-lo, -hi, 0) for lo, hi, _ in padding_config)
    cropped = pad(ct, literal(0, ct.dtype, False), padding_config=negative)
    return slice(
        cropped,
        start_indices=(0,) * len(shape),
        limit_indices=aval_of(cropped).shape,
        strides=tuple(i + 1 for _, _, i in padding_config),
    )


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    shape = aval_of(x).shape
    kept = _unpad(ct, shape, padding_config)
    ct_value = None
    if is_linear(value):
        axes = tuple(range(len(shape)))
        total = reduce_sum(ct, axes=axes)
        ct_value = sub(total, reduce_sum(kept, axes=axes))
    return kept if is_linear(x) else None, ct_value


def _pad_batch(axis: Any, args: Any, dims: Any, *, padding_config: Any) -> Any:
    (x, value), (d, dv) = args, dims
    if d is None:
        x, d = broadcast_axis(x, axis.size, 0), 0
    with_axis = (*padding_config[:d], (0, 0, 0), *padding_config[d:])
    if dv is None:
        return pad(x, value, padding_config=with_axis), d
    # A padding value per example fills the places that a mask of ones leaves.
    flags = full_like_aval(Aval(aval_of(x).shape, np.dtype(np.bool_)), True)
    outside = literal(False, np.dtype(np.bool_), False)
    inside = pad(flags, outside, padding_config=with_axis)
    padded = pad(x, literal(0, aval_of(x).dtype, False), padding_config=with_axis)
    filled = broadcast_in_dim(value, shape=aval_of(padded).shape, broadcast_dimensions=(d,))
    return select_n(inside, filled, padded), d


def _pad_hollow(x: Any, value: Any, *, padding_config: Any) -> Any:
    shape = pad.type(aval_of(x), aval_of(value), padding_config=padding_config).shape
    return broadcast_in_dim(value, shape=shape, broadcast_dimensions=())


pad: Op = Op(
    name="pad",
    kind=SHAPE,
    type=_pad_type,
    impl=_pad_impl,
    jvp=_pad_jvp,
    transpose=_pad_transpose,
    batch=_pad_batch,
    shard=by_kind,
    hlo=lambda b, x, value, *, padding_config: b.pad(x, value, padding_config),
    kernel=lambda k, x, value, *, padding_config: k.pad(x, value, padding_config),
    ahead=lambda outlook, eqn: outlook.padded(eqn, eqn.params["padding_config"]),
    hollow=_pad_hollow,
)


# concatenate: operands one after the other along a dimension.


def _joining_rule(xs: Sequence[Aval]) -> str:
    if len({x.ndim for x in xs}) > 1:
        return "Cannot concatenate arrays with different numbers of dimensions"
    if len({x.dtype for x in xs}) > 1:
        return "lax.concatenate requires arguments to have the same dtypes"
    return (
        "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
        "concatenated"
    )


def _concatenate_type(*xs: Aval, dimension: int) -> Aval:
    if not xs:
        raise ValueError("[concatenate] expected at least one operand, got none.")
    first = xs[0]
    if not 0 <= dimension < first.ndim:
        raise TypeError(
            f"[concatenate] expected a dimension of shape {first.shape}, got {dimension}: "
            "concatenate dimension out of bounds."
        )
    for x in xs:
        rest = [(i, n) for i, n in enumerate(x.shape) if i != dimension]
        if x.dtype != first.dtype or rest != [
            (i, n) for i, n in enumerate(first.shape) if i != dimension
        ]:
            raise TypeError(
                f"[concatenate] expected operands equal in dtype and in shape but for dimension "
                f"{dimension}, got {', '.join(x.short() for x in xs)}: {_joining_rule(xs)}."
            )
    size = sum(x.shape[dimension] for x in xs)
    shape = (*first.shape[:dimension], size, *first.shape[dimension + 1 :])
    return Aval(shape, first.dtype, all(x.weak_type for x in xs))


def _concatenate_jvp(primals: Any, tangents: Any, *, dimension: int) -> Any:
    filled = [
        zeros_like_aval(aval_of(x)) if t is ZERO else t
        for x, t in zip(primals, tangents, strict=True)
    ]
    return concatenate(*primals, dimension=dimension), concatenate(*filled, dimension=dimension)


def _concatenate_transpose(ct: Any, *xs: Any, dimension: int) -> Any:
    results: list[Any] = []
    at = 0
    for x in xs:
        shape = aval_of(x).shape
        n = shape[dimension]
        if is_linear(x):
            start = tuple(at if i == dimension else 0 for i in range(len(shape)))
            limit = tuple(at + n if i == dimension else m for i, m in enumerate(shape))
            results.append(slice(ct, start_indices=start, limit_indices=limit, strides=None))
        else:
            results.append(None)
        at += n
    return results


def _concatenate_batch(axis: Any, args: Any, dims: Any, *, dimension: int) -> Any:
    to = next(d for d in dims if d is not None)
    xs = [
        broadcast_axis(x, axis.size, to) if d is None else moveaxis(x, d, to)
        for x, d in zip(args, dims, strict=True)
    ]
    return concatenate(*xs, dimension=dimension + (dimension >= to)), to


def _concatenate_hollow(*xs: Any, dimension: int) -> Any:
    some = [x for x in xs if aval_of(x).size]
    return some[0] if len(some) == 1 else concatenate(*some, dimension=dimension)


concatenate: Op = Op(
    name="concatenate",
    kind=SHAPE,
    type=_concatenate_type,
    impl=lambda *xs, dimension: np.concatenate(xs, dimension),
    jvp=_concatenate_jvp,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    shard=by_kind,
    hlo=lambda b, *xs, dimension: b.concatenate(xs, dimension),
    kernel=lambda k, *xs, dimension: k.concatenate(xs, dimension),
    written=lambda eqn, names, bound: (
        f"{bound(np.concatenate)}(({', '.join(names)},), {eqn.params['dimension']})"
    ),
    ahead=lambda outlook, eqn: outlook.joined(eqn),
    hollow=_concatenate_hollow,
)


# rev: reversed along dimensions.


def _rev_type(x: Aval, *, dimensions: tuple[int, ...]) -> Aval:
    canonical_axes("rev", dimensions, x.ndim)
    return x


def _rev_batch(axis: Any, args: Any, dims: Any, *, dimensions: tuple[int, ...]) -> Any:
    (x,), (d,) = args, dims
    return rev(x, dimensions=tuple([a + (a >= d) for a in dimensions])), d


rev: Op = Op(
    name="rev",
    kind=SHAPE,
    type=_rev_type,
    impl=lambda x, *, dimensions: x[
        tuple([slice_(None, None, -1 if d in dimensions else None) for d in range(x.ndim)])
    ],
    jvp=linear,
    transpose=lambda ct, x, *, dimensions: (rev(ct, dimensions=dimensions),),
    batch=_rev_batch,
    shard=by_kind,
    hlo=lambda b, x, *, dimensions: b.reverse(x, dimensions),
    kernel=lambda k, x, *, dimensions: k.rev(x, dimensions),
)


# iota: 0, 1, 2, … along a dimension.


# Of those that count as far as memory reaches NumPy makes each number for itself; others wrap.
_COUNTING = frozenset(map(np.dtype, ("i8", "f4", "f8")))


def _iota_impl(*, shape: tuple[int, ...], dtype: Any, dimension: int) -> Any:
    n = shape[dimension]
    counted = np.arange(n, dtype=dtype) if dtype in _COUNTING else np.arange(n).astype(dtype)
    if len(shape) == 1:
        return counted
    placed = tuple([n if i == dimension else 1 for i in range(len(shape))])
    return np.broadcast_to(counted.reshape(placed), shape)


def _iota_type(*, shape: tuple[int, ...], dtype: Any, dimension: int) -> Aval:
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"[iota] expected a dimension of shape {shape}, got {dimension}: iota dimension must "
            "be between 0 and len(shape)."
        )
    if isinstance(dtype, KeyType):
        raise TypeError(f"[iota] expected a dtype of numbers, got {dtype.name}.")
    return Aval(canonical_shape(shape, "iota"), dtype)


iota: Op = Op(
    name="iota",
    kind=SHAPE,
    type=_iota_type,
    impl=_iota_impl,
    jvp=Never("[iota] expected no differentiation, as it has no operands."),
    transpose=Never("[iota] expected no transposition, as it has no operands."),
    batch=Never("[iota] expected no batching, as it has no operands."),
    shard=by_kind,
    hlo=lambda b, *, shape, dtype, dimension: b.iota(shape, dtype, dimension),
    kernel=lambda k, *, shape, dtype, dimension: k.iota(shape, dtype, dimension),
)
