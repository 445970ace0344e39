"""reduce_window_sum, _max, _min: elements of each window combined; and what their derivatives are.

The derivative of an extremum over windows reads (select_and_gather_add) or adds to
(select_and_scatter_add) the first element that attains it; the two are each other's transpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import caches, dtypes
from primal.base.coordinates import unravelled
from primal.base.extrema import maximum, minimum
from primal.base.monoids import identity
from primal.ir.avals import Aval
from primal.ir.op import WINDOW, Bound, Op, Word, by_kind, library
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise.choice import complex_extremum
from primal.ops.shape import moveaxis, pad
from primal.ops.spread import broadcast_axis, zeros_like_aval
from primal.ops.types import NOT_LINEAR, NUMERIC, check_dtype
from primal.ops.window.views import (
    Ints,
    Pairs,
    adjoint_edges,
    check_window,
    spread_and_padded,
    window_view,
    windows_in,
)

Arrays = Sequence[Any]

# A window of at most this many places along a dimension is combined place by place, with NumPy
# running over whole arrays; a longer one is left to NumPy's reduction.
_SHORT = 32


def counts(
    shape: tuple[int, ...],
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pairs,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Ints:
    """How many windows there are along each dimension."""
    return tuple(
        [
            windows_in(*row)
            for row in zip(
                shape, window_dimensions, window_strides, padding, base_dilation, window_dilation,
                strict=True,
            )
        ]
    )  # fmt: skip


def _checked(name: str, x: Aval, kinds: Any, window: dict[str, Any]) -> Ints:
    check_dtype(name, x, kinds)
    check_window(name, x.ndim, **window)
    return counts(x.shape, **window)


def _type(name: str, kinds: Any) -> Any:
    def rule(x: Aval, **window: Any) -> Aval:
        return Aval(_checked(name, x, kinds, window), x.dtype, x.weak_type)

    return rule


def _impl(ufunc: Any, monoid: str) -> Any:
    def impl(x: Any, **window: Any) -> Any:
        return planned(x.shape, x.dtype, **window)(x)

    @caches.memo
    def planned(
        shape: Ints,
        dtype: Any,
        *,
        window_dimensions: Ints,
        window_strides: Ints,
        padding: Pairs,
        base_dilation: Ints,
        window_dilation: Ints,
    ) -> Callable[[Any], Any]:
        """`impl` for a shape and dtype: what it decides took three times as long as windows of 24
        numbers."""
        work = np.dtype(np.float32) if dtypes.is_narrow_float(dtype) else dtype
        sizes = counts(
            shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
        )
        if 0 in sizes:
            return lambda x: np.zeros(sizes, dtype)
        neutral = identity(monoid, dtype).astype(work)
        # The monoids are commutative, so that windows separate into their dimensions.
        along = [
            _along(ufunc, axis, size, window, stride, dilate)
            for axis, (size, window, stride, dilate) in enumerate(
                zip(sizes, window_dimensions, window_strides, window_dilation, strict=True)
            )
            if window > 1 or stride > 1
        ]
        # All sums begin with 0.
        begins = ufunc is np.add and work.kind in "fc" and math.prod(window_dimensions) > 1

        plain = all(p == (0, 0) for p in padding) and all(s == 1 for s in base_dilation)

        def run(given: Any) -> Any:
            given = x = given.astype(work, copy=False)
            if not plain:
                x = spread_and_padded(x, neutral, padding, base_dilation)
            for step in along:
                x = step(x)
            if begins:
                x = x + work.type(0)
            return x.astype(dtype, copy=x is given)

        return run

    impl.planned = planned  # type: ignore[attr-defined]
    return impl


def _written(eqn: Any, names: Sequence[str], bound: Bound) -> str:
    aval = eqn.invars[0].aval
    return f"{bound(eqn.op.impl.planned(aval.shape, aval.dtype, **eqn.params))}({names[0]})"


def _along(
    ufunc: Any, axis: int, size: int, window: int, stride: int, dilate: int
) -> Callable[[Any], Any]:
    """A function that combines the windows along one axis."""
    if window <= _SHORT:
        lead, covered = (slice(None),) * axis, (size - 1) * stride + 1
        first, *rest = [
            (*lead, slice(k * dilate, k * dilate + covered, stride)) for k in range(window)
        ]

        def place_by_place(x: Any) -> Any:
            if not rest:
                return np.array(x[first])
            out = ufunc(x[first], x[rest[0]])
            for at in rest[1:]:
                ufunc(out, x[at], out=out)
            return out

        return place_by_place

    def at_once(x: Any) -> Any:
        moved = np.moveaxis(x, axis, -1)
        view = window_view(moved, (size,), (window,), (stride,), (dilate,), moved.ndim - 1)
        return np.moveaxis(ufunc.reduce(view, axis=-1, dtype=x.dtype), -1, axis)

    return at_once


def hlo_window(window: dict[str, Any]) -> dict[str, Any]:
    """The parameters under the builder's names."""
    return {
        "window": window["window_dimensions"],
        "strides": window["window_strides"],
        "padding": window["padding"],
        "base_dilation": window["base_dilation"],
        "window_dilation": window["window_dilation"],
    }


def _hlo(monoid: str) -> Any:
    def hlo(b: Any, x: Any, **window: Any) -> Any:
        (out,) = b.outs
        if 0 in out.shape:
            return b.full(out.shape, 0, out.dtype)
        if 0 in x.shape:  # windows of padding alone
            return b.full(out.shape, identity(monoid, x.dtype), out.dtype)
        if x.dtype.kind == "c" and monoid != "add":
            init, pick = b.constant(identity(monoid, x.dtype), x.dtype), complex_extremum(monoid)
            return b.reduce_window_with([x], [init], pick, **hlo_window(window))[0]
        return b.reduce_window(monoid, x, **hlo_window(window))

    return hlo


def with_axis(window: dict[str, Any], at: int) -> dict[str, Any]:
    """The parameters for operands with one more dimension, which windows do not span."""
    extra = {"padding": (0, 0)}
    return {k: (*v[:at], extra.get(k, 1), *v[at:]) for k, v in window.items()}


def _batch(op: Op) -> Any:
    def batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        window = {k: v for k, v in params.items() if k != "select"}
        rest = {k: v for k, v in params.items() if k == "select"}
        to = next(d for d in dims if d is not None)
        moved = [
            broadcast_axis(x, axis.size, to) if d is None else moveaxis(x, d, to)
            for x, d in zip(args, dims, strict=True)
        ]
        return op(*moved, **with_axis(window, to), **rest), to

    return batch


def _kernel(name: str, monoid: str) -> Any:
    def kernel(k: Any, x: Any, **window: Any) -> Any:
        shape = _checked(name, x.aval, NUMERIC, window)
        return k.reduce_window(monoid, x, shape, window)

    return kernel


def _pooling(name: str, ufunc: Any, jvp: Any, monoid: str, transpose: Any = NOT_LINEAR) -> Op:
    return Op(
        name=name,
        kind=WINDOW,
        type=_type(name, NUMERIC),
        impl=_impl(ufunc, monoid),
        jvp=jvp,
        transpose=transpose,
        batch=Word(_batch),
        shard=by_kind,
        hlo=_hlo(monoid),
        kernel=_kernel(name, monoid),
        written=_written,
    )


# The sum is linear; its transpose sums windows of the cotangent, reversed.


def _sum_jvp(primals: Arrays, tangents: Arrays, **window: Any) -> Any:
    (x,), (t,) = primals, tangents
    return reduce_window_sum(x, **window), reduce_window_sum(t, **window)


def _sum_transpose(
    ct: Any,
    x: Any,
    *,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pairs,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Any:
    outs, shape = aval_of(ct).shape, x.shape
    if 0 in outs or 0 in shape:
        return (zeros_like_aval(x.aval.strong()),)
    edges = [
        adjoint_edges(n, m, window, stride, lo, spread, dilate)
        for n, m, window, stride, (lo, _), spread, dilate in zip(
            shape, outs, window_dimensions, window_strides, padding, base_dilation,
            window_dilation, strict=True,
        )
    ]  # fmt: skip
    ones = (1,) * len(shape)
    # `pad` crops where edges are negative, which windows of XLA may not.
    config = tuple([(lo, hi, s - 1) for (lo, hi), s in zip(edges, window_strides, strict=True)])
    spread_ct = pad(ct, literal(0, aval_of(ct).dtype, False), padding_config=config)
    out = reduce_window_sum(
        spread_ct,
        window_dimensions=window_dimensions,
        window_strides=base_dilation,
        padding=((0, 0),) * len(shape),
        base_dilation=ones,
        window_dilation=window_dilation,
    )
    return (out,)


reduce_window_sum = _pooling("reduce_window_sum", np.add, _sum_jvp, "add", _sum_transpose)


# Extrema.


def _extremum_jvp(select: str) -> Any:
    def of(op: Op) -> Any:
        def jvp(primals: Arrays, tangents: Arrays, **window: Any) -> Any:
            (x,), (t,) = primals, tangents
            return op(x, **window), select_and_gather_add(t, x, select=select, **window)

        return jvp

    return Word(of)


reduce_window_max = _pooling("reduce_window_max", maximum, _extremum_jvp("ge"), "maximum")
reduce_window_min = _pooling("reduce_window_min", minimum, _extremum_jvp("le"), "minimum")


# select_and_gather_add <-> select_and_scatter_add. `select` is 'ge' or 'le': of two elements the
# first stays when it compares so with the second.

_ORDERED = (np.integer, np.floating)
_MONOID = {"ge": "maximum", "le": "minimum"}


def _chosen(x: Any, select: str, window: dict[str, Any]) -> tuple[Any, tuple[int, ...]]:
    """(flat positions in padded x of the chosen elements, shape of padded x)."""
    sizes = counts(x.shape, **window)
    edges = window["padding"], window["base_dilation"]
    worst = identity(_MONOID[select], x.dtype)
    real = spread_and_padded(np.ones(x.shape, bool), False, *edges)
    x = spread_and_padded(x, worst, *edges)
    if dtypes.is_narrow_float(x.dtype):
        x = x.astype(np.float32)
    shape, strides = window["window_dimensions"], window["window_strides"]
    dilation = window["window_dilation"]
    grid = np.indices(sizes, sparse=True)

    def first(x: Any, find: Any) -> Any:
        view = window_view(np.ascontiguousarray(x), sizes, shape, strides, dilation, 0)
        inside = unravelled(find(view.reshape((*sizes, math.prod(shape))), -1), shape)
        places = [g * s + k * d for g, s, k, d in zip(grid, strides, inside, dilation, strict=True)]
        return np.ravel_multi_index(tuple(places), x.shape)

    at = first(x, np.argmax if select == "ge" else np.argmin)
    padding = ~real.reshape(-1)[at]
    if padding.any():
        # All that such a window has is as bad as padding; what is infinite was chosen from it.
        at = np.where(padding, first(real, np.argmax), at)
    return at, x.shape


def _gather_type(t: Aval, x: Aval, *, select: str, **window: Any) -> Aval:
    sizes = _checked("select_and_gather_add", x, _ORDERED, window)
    if t.shape != x.shape or t.dtype != x.dtype:
        raise TypeError(
            f"[select_and_gather_add] expected tangents like the operand, got {t.short()} for "
            f"{x.short()}."
        )
    return Aval(sizes, t.dtype)


def _gather_impl(t: Any, x: Any, *, select: str, **window: Any) -> Any:
    sizes = counts(x.shape, **window)
    if 0 in sizes or 0 in x.shape:
        return np.zeros(sizes, t.dtype)
    at, _ = _chosen(x, select, window)
    return spread_and_padded(t, 0, window["padding"], window["base_dilation"]).reshape(-1)[at]


def _gather_jvp(primals: Arrays, tangents: Arrays, **params: Any) -> Any:
    (t, x), (dt, _) = primals, tangents
    # Which element is chosen does not change, almost everywhere.
    out = select_and_gather_add(t, x, **params)
    return out, (ZERO if dt is ZERO else select_and_gather_add(dt, x, **params))


def _gather_transpose(ct: Any, t: Any, x: Any, **params: Any) -> Any:
    return select_and_scatter_add(ct, x, **params), None


def _hlo_pick(select: str) -> Any:
    """The region that keeps one of two (value, place, …): a NaN, then the extremum, then the first.

    Padding comes behind everything, so that it is not chosen where an element is infinite.
    """

    def body(b: Any, *both: Any) -> Any:
        first, second = both[: len(both) // 2], both[len(both) // 2 :]
        (x, i, *_), (y, j, *_) = first, second
        before = b.compare(i, j, "LT")
        keep = b.and_(b.compare(x, y, "EQ"), before)
        keep = b.or_(keep, b.compare(x, y, select[0].upper() + "T"))
        if dtypes.issubdtype(x.dtype, np.floating):
            known = b.compare(y, y, "EQ")
            keep = b.or_(keep, b.and_(b.compare(x, x, "NE"), b.or_(known, before)))
        return [b.select(keep, u, v) for u, v in zip(first, second, strict=True)]

    return body


def _hlo_chosen(b: Any, x: Any, more: Sequence[Any], select: str, window: dict[str, Any]) -> Any:
    """Of each window the place of the chosen element in x, beyond x of one without elements, and
    what `more` has there."""
    place = np.dtype(np.int32)
    total = math.prod(x.shape)
    index = b.reshape(b.iota((total,), place, 0), x.shape)
    worst = identity(_MONOID[select], x.dtype)
    inits = [b.constant(worst, x.dtype), b.constant(total, place)]
    inits += [b.constant(0, v.dtype) for v in more]
    return b.reduce_window_with([x, index, *more], inits, _hlo_pick(select), **hlo_window(window))[
        1:
    ]


def _gather_hlo(b: Any, t: Any, x: Any, *, select: str, **window: Any) -> Any:
    (out,) = b.outs
    if 0 in out.shape or 0 in x.shape:
        return b.full(out.shape, 0, out.dtype)
    return _hlo_chosen(b, x, [t], select, window)[1]


select_and_gather_add = Op(
    name="select_and_gather_add",
    kind=WINDOW,
    type=_gather_type,
    impl=_gather_impl,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=Word(_batch),
    shard=by_kind,
    hlo=_gather_hlo,
    kernel=library,
)


def _scatter_type(source: Aval, x: Aval, *, select: str, **window: Any) -> Aval:
    sizes = _checked("select_and_scatter_add", x, _ORDERED, window)
    if source.shape != sizes or source.dtype != x.dtype:
        raise TypeError(
            f"[select_and_scatter_add] expected one source per window, {sizes} of "
            f"{x.dtype.name}, got {source.short()}."
        )
    return Aval(x.shape, source.dtype)


def _scatter_impl(source: Any, x: Any, *, select: str, **window: Any) -> Any:
    if not source.size or not x.size:
        return np.zeros(x.shape, source.dtype)
    at, shape = _chosen(x, select, window)
    at, total, weights = at.reshape(-1), math.prod(shape), source.reshape(-1)
    sums: Any
    if source.dtype.kind == "c":
        sums = np.bincount(at, weights.real, total) + 1j * np.bincount(at, weights.imag, total)
    elif dtypes.issubdtype(source.dtype, np.integer):
        # bincount adds in float64, which holds neither all of 64 bits nor sums that wrap.
        sums = np.zeros(total, np.uint64 if source.dtype == np.uint64 else np.int64)
        np.add.at(sums, at, weights.astype(sums.dtype))
    else:
        sums = np.bincount(at, weights.astype(np.float64), total)
    padded = sums.reshape(shape)
    inside = []
    for n, (lo, _), step in zip(x.shape, window["padding"], window["base_dilation"], strict=True):
        inside.append((n, lo, step))
    return _unpadded(padded, inside).astype(source.dtype)


def _unpadded(padded: Any, inside: Sequence[tuple[int, int, int]]) -> Any:
    """The elements of a padded and spread array; zeros for those that padding cropped."""
    out = np.zeros([n for n, _, _ in inside], padded.dtype)
    source, target = [], []
    for size, (n, lo, step) in zip(padded.shape, inside, strict=True):
        first = -(lo // step) if lo < 0 else 0
        last = min(n, (size - 1 - lo) // step + 1)
        target.append(slice(first, max(first, last)))
        start = lo + first * step
        source.append(slice(start, start + max(0, last - first) * step, step))
    if all(s.stop > s.start for s in target):
        out[tuple(target)] = padded[tuple(source)]
    return out


def _scatter_jvp(primals: Arrays, tangents: Arrays, **params: Any) -> Any:
    (source, x), (t, _) = primals, tangents
    out = select_and_scatter_add(source, x, **params)
    return out, (ZERO if t is ZERO else select_and_scatter_add(t, x, **params))


def _scatter_transpose(ct: Any, source: Any, x: Any, **params: Any) -> Any:
    return select_and_gather_add(ct, x, **params), None


def _scatter_hlo(b: Any, source: Any, x: Any, *, select: str, **window: Any) -> Any:
    if 0 in source.shape or 0 in x.shape:
        return b.full(x.shape, 0, source.dtype)
    edges, spread = window["padding"], window["base_dilation"]
    plain = all(d == 1 for d in (*window["window_dilation"], *spread))
    if plain and all(lo >= 0 and hi >= 0 for lo, hi in edges) and x.dtype.kind != "c":
        return b.select_and_scatter(
            x,
            source,
            b.constant(0, source.dtype),
            direction=select.upper(),
            window=window["window_dimensions"],
            strides=window["window_strides"],
            padding=edges,
        )
    return _scatter_by_index(b, source, x, select, window)


def _scatter_by_index(b: Any, source: Any, x: Any, select: str, window: dict[str, Any]) -> Any:
    """For dilated windows, which XLA's select_and_scatter does not know: find, then scatter."""
    # A window of padding alone chooses what is out of bounds and dropped.
    (at,) = _hlo_chosen(b, x, [], select, window)
    total = math.prod(x.shape)
    count = math.prod(source.shape)
    out = b.scatter(
        [b.full((total,), 0, source.dtype)],
        b.reshape(at, (count, 1)),
        [b.reshape(source, (count,))],
        "add",
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
    )[0]
    return b.reshape(out, x.shape)


select_and_scatter_add = Op(
    name="select_and_scatter_add",
    kind=WINDOW,
    type=_scatter_type,
    impl=_scatter_impl,
    jvp=_scatter_jvp,
    transpose=_scatter_transpose,
    batch=Word(_batch),
    shard=by_kind,
    hlo=_scatter_hlo,
    kernel=lambda k, source, x, *, select, **window: k.select_and_scatter_add(
        source, x, select, window
    ),
)
