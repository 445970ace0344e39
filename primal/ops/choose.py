"""Ops whose operands have several dtypes: select_n, clamp, convert_element_type and bit casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.avals import Aval
from primal.ir.op import MIXED, Never, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.elementwise import ORDERED, binary, bitwise_and, eq, gt, lt, mul
from primal.ops.shape import moveaxis, reshape
from primal.ops.spread import add_any, broadcast_axis, broadcast_to, full_like_aval, zeros_like_aval
from primal.ops.types import broadcast_shapes, is_linear
from primal.ops.words import each_out

BOOL = np.dtype(np.bool_)

# select_n: cases[which], elementwise; `which` is bool for two cases, int32 for more.


def _select_type(which: Aval, *cases: Aval) -> Aval:
    if not cases:
        raise TypeError("[select_n] expected at least one case, got none.")
    if which.dtype != BOOL and which.dtype != np.int32:
        raise TypeError(f"[select_n] expected `which` of bool or int32, got {which.dtype.name}.")
    if which.dtype == BOOL and len(cases) > 2:
        raise TypeError(f"[select_n] expected at most 2 cases for bool, got {len(cases)}.")
    first = cases[0]
    for c in cases:
        if c.dtype != first.dtype or c.shape != first.shape:
            raise TypeError(
                f"[select_n] expected cases of one shape and dtype, got "
                f"{', '.join(c.short() for c in cases)}."
            )
    if which.shape not in ((), first.shape) and broadcast_shapes(
        "select_n", (which, first)
    ) != first.shape:
        raise TypeError(
            f"[select_n] expected `which` to be scalar or of the cases' shape {first.shape}, got "
            f"{which.shape}."
        )
    weak = all(c.weak_type for c in cases)
    return Aval(first.shape, first.dtype, weak)


def _select_impl(which: Any, *cases: Any) -> Any:
    if len(cases) == 1:
        return np.array(cases[0])
    if len(cases) == 2:
        index = which if which.dtype == BOOL else which != 0
        return np.where(index, cases[1], cases[0])
    return np.choose(np.broadcast_to(np.clip(which, 0, len(cases) - 1), cases[0].shape), cases)


def _select_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    which, *cases = primals
    out = select_n(which, *cases)
    ts = tangents[1:]
    if all(t is ZERO for t in ts):
        return out, ZERO
    filled = [
        zeros_like_aval(aval_of(c).strong()) if t is ZERO else t
        for c, t in zip(cases, ts, strict=True)
    ]
    return out, select_n(which, *filled)


def _select_transpose(ct: Any, which: Any, *cases: Any) -> Any:
    zeros = zeros_like_aval(aval_of(ct).strong())
    results: list[Any] = [None]
    for i, c in enumerate(cases):
        if not is_linear(c):
            results.append(None)
            continue
        results.append(select_n(which, *[ct if j == i else zeros for j in range(len(cases))]))
    return results


def _select_batch(axis: Any, args: Any, dims: Any) -> Any:
    to = next(d for d in dims if d is not None)
    which, *cases = args
    scalar_which = aval_of(which).ndim == (dims[0] is not None)
    if dims[0] is None and scalar_which:
        return select_n(which, *_aligned_cases(axis, cases, dims[1:], to)), to
    cases = _aligned_cases(axis, cases, dims[1:], to)
    shape = aval_of(cases[0]).shape
    if scalar_which:
        placed = [1] * len(shape)
        placed[to] = axis.size
        which = reshape(which, shape=tuple(placed))
    elif dims[0] is None:
        have = aval_of(which).shape
        which = reshape(which, shape=(*have[:to], 1, *have[to:]))
    else:
        which = moveaxis(which, dims[0], to)
    return select_n(broadcast_to(which, shape), *cases), to


def _aligned_cases(axis: Any, cases: Any, dims: Any, to: int) -> list[Any]:
    return [
        broadcast_axis(c, axis.size, to) if d is None else moveaxis(c, d, to)
        for c, d in zip(cases, dims, strict=True)
    ]


select_n = Op(
    name="select_n",
    kind=MIXED,
    type=_select_type,
    impl=_select_impl,
    jvp=_select_jvp,
    transpose=_select_transpose,
    batch=_select_batch,
    shard=by_kind,
    hlo=lambda b, which, *cases: b.select_n(which, *cases),
    kernel=lambda k, which, *cases: k.select_n(which, *cases),
)


# convert_element_type: each element in another dtype; complex to real drops the imaginary part.


def _convert_type(x: Aval, *, new_dtype: Any, weak_type: bool) -> Aval:
    if dtypes.issubdtype(x.dtype, dtypes.extended) or dtypes.issubdtype(new_dtype, dtypes.extended):
        if x.dtype != new_dtype:
            raise TypeError(
                f"[convert_element_type] expected number dtypes, got {x.dtype.name} to "
                f"{new_dtype.name}."
            )
    return Aval(x.shape, new_dtype, weak_type)


def _convert_impl(x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    x = np.asarray(x)
    if x.dtype == new_dtype:
        return x
    if x.dtype.kind == "c" and new_dtype.kind != "c":
        if new_dtype == BOOL:
            return x != 0
        x = x.real
    if dtypes.issubdtype(x.dtype, np.floating) and dtypes.issubdtype(new_dtype, np.integer):
        return _float_to_int(x, new_dtype)
    return x.astype(new_dtype)


def _float_to_int(x: Any, dtype: Any) -> Any:
    """Saturating, with NaN to 0, as XLA converts; NumPy's result is undefined there."""
    info = dtypes.iinfo(dtype)
    wide = x.astype(np.float64)
    low, high = float(int(info.min)), float(int(info.max))
    inside = np.clip(np.nan_to_num(wide, nan=0.0), low, high)
    below = inside < high
    out = np.where(below, inside, 0).astype(dtype)
    return np.where(below, out, np.array(int(info.max)).astype(dtype))


def _convert_jvp(primals: Any, tangents: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    (x,), (t,) = primals, tangents
    out = convert_element_type(x, new_dtype=new_dtype, weak_type=weak_type)
    if dtypes.to_tangent_dtype(new_dtype) != new_dtype:
        return out, ZERO
    return out, convert_element_type(t, new_dtype=new_dtype, weak_type=False)


def _convert_transpose(ct: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    return (convert_element_type(ct, new_dtype=x.dtype, weak_type=False),)


convert_element_type = Op(
    name="convert_element_type",
    kind=MIXED,
    type=_convert_type,
    impl=_convert_impl,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x, *, new_dtype, weak_type: b.convert(x, new_dtype),
    kernel=lambda k, x, *, new_dtype, weak_type: k.convert(x, new_dtype),
)


# copy: the same values in a buffer of their own.

copy = Op(
    name="copy",
    kind=MIXED,
    type=lambda x: x,
    impl=np.array,
    jvp=lambda primals, tangents: (copy(*primals), copy(*tangents)),
    transpose=lambda ct, x: (ct,),
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x: x,
    kernel=lambda k, x: k.copy(x),
)


# clamp: min(max(x, low), high); low and high are scalars or of x's shape.


def _clamp_type(low: Aval, x: Aval, high: Aval) -> Aval:
    if not low.dtype == x.dtype == high.dtype:
        raise TypeError(
            f"[clamp] expected operands of one dtype, got {low.dtype.name}, {x.dtype.name}, "
            f"{high.dtype.name}."
        )
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"[clamp] expected `{name}` to be scalar or of shape {x.shape}, got {bound.shape}."
            )
    return Aval(x.shape, x.dtype, x.weak_type and low.weak_type and high.weak_type)


def _clamp_jvp(primals: Any, tangents: Any) -> Any:
    low, x, high = primals
    out = clamp(low, x, high)
    inside = bitwise_and(gt(x, low), lt(x, high))
    masks = (gt(low, x), inside, lt(high, x))
    total: Any = ZERO
    for mask, t in zip(masks, tangents, strict=True):
        if t is not ZERO:
            part = select_n(mask, zeros_like_aval(aval_of(out).strong()),
                            broadcast_to(t, aval_of(out).shape))
            total = part if total is ZERO else add_any(total, part)
    return out, total


def _clamp_batch(axis: Any, args: Any, dims: Any) -> Any:
    low, x, high = args
    to = dims[1] if dims[1] is not None else 0
    x = broadcast_axis(x, axis.size, 0) if dims[1] is None else x
    shape = aval_of(x).shape
    bounds = []
    for bound, d in ((low, dims[0]), (high, dims[2])):
        if d is None and aval_of(bound).ndim:
            bound = broadcast_axis(bound, axis.size, to)
        elif d is not None and aval_of(bound).ndim == 1 and len(shape) > 1:
            placed = tuple(axis.size if i == to else 1 for i in range(len(shape)))
            bound = broadcast_to(reshape(bound, shape=placed), shape)
        elif d is not None:
            bound = moveaxis(bound, d, to)
        bounds.append(bound)
    return clamp(bounds[0], x, bounds[1]), to


clamp = Op(
    name="clamp",
    kind=MIXED,
    type=_clamp_type,
    impl=lambda low, x, high: np.minimum(np.maximum(x, low), high),
    jvp=_clamp_jvp,
    transpose=Never("[clamp] expected a linear operation, got clamp, which is not."),
    batch=_clamp_batch,
    shard=by_kind,
    hlo=lambda b, low, x, high: b.clamp(low, x, high),
    kernel=lambda k, low, x, high: k.clamp(low, x, high),
)


# max and min: at ties the derivative is shared equally.


def _extremum_jvp(op: Op) -> Any:
    def share(t: Any, mine: Any, other: Any, out: Any) -> Any:
        zero, half, one = (full_like_aval(aval_of(out).strong(), v) for v in (0, 0.5, 1))
        tied = select_n(eq(mine, other), one, half)
        return mul(t, select_n(eq(mine, out), zero, tied))

    return each_out(
        lambda t, out, x, y: share(t, x, y, out), lambda t, out, x, y: share(t, y, x, out)
    ).of(op)


max = binary("max", ORDERED, np.maximum, Word(_extremum_jvp), "maximum")  # noqa: A001
min = binary("min", ORDERED, np.minimum, Word(_extremum_jvp), "minimum")  # noqa: A001
