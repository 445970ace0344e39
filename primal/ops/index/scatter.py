"""The scatters beside scatter-add: set, subtract, multiply, least, greatest, apply a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.extrema import maximum, minimum
from primal.ir.avals import Aval
from primal.ir.evaluate import run_numpy
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.op import INDEX, HigherOrder, Never, Op, by_kind, library
from primal.ir.trace import ZERO, aval_of
from primal.ops.choose import convert_element_type, select_n
from primal.ops.choose import max as max_op
from primal.ops.elementwise import bitwise_or, div, eq, mul, ne, neg
from primal.ops.elementwise.choice import complex_extremum
from primal.ops.index.arrays import scatter_array
from primal.ops.index.gather import (
    batch_scatter,
    gather,
    hlo_scatter,
    read_written,
    scatter_add,
    scatter_batch,
    scatter_hlo,
    scatter_hollow,
    scatter_impl,
    scatter_kernel,
    scatter_type,
)
from primal.ops.index.numbers import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from primal.ops.shape import inverse, iota, reshape, transpose
from primal.ops.spread import add_any, full_like_aval, zeros_like_aval
from primal.ops.types import ANY, NUMERIC, is_linear


def _zeros(x: Any) -> Any:
    return zeros_like_aval(aval_of(x))


# scatter: the windows replaced. Where updates meet, the last one stays.
#
# XLA leaves open who wins, and on GPUs nobody knows; so derivatives find the winner themselves,
# by the greatest number that reaches an element, and make every update carry the winner's value.


def _batch_first(ndim: int, window: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation of updates that orders their elements as they are written."""
    return (*[d for d in range(ndim) if d not in window], *window)


def _winners(x: Any, indices: Any, updates: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    """(number of each update, number of the one that wins its place), both of their shape."""
    aval = aval_of(updates)
    dtype = np.dtype(np.int32 if aval.size < 2**31 - 1 else np.int64)
    order = _batch_first(aval.ndim, params["dimension_numbers"].update_window_dims)
    counted = iota(shape=(aval.size,), dtype=dtype, dimension=0)
    counted = reshape(counted, shape=tuple([aval.shape[d] for d in order]))
    own = transpose(counted, permutation=inverse(order))
    # Below every number, so that whoever comes wins.
    nobody = full_like_aval(Aval(aval_of(x).shape, dtype), -1)
    won = scatter_max(nobody, indices, own, **params)
    return own, read_written(won, indices, aval.shape, **params)


def _winning_values(updates: Any, winner: Any, params: dict[str, Any]) -> Any:
    """The update of that number, at every place of the updates."""
    aval = aval_of(updates)
    order = _batch_first(aval.ndim, params["dimension_numbers"].update_window_dims)
    return gather(
        reshape(transpose(updates, permutation=order), shape=(aval.size,)),
        reshape(winner, shape=(*aval.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (0,), (0,)),
        slice_sizes=(1,),
        indices_are_sorted=False,
        unique_indices=False,
        mode=PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _scatter_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    t, _, u = tangents
    if t is ZERO and u is ZERO:
        return scatter(x, indices, updates, **params), ZERO
    if u is ZERO:
        out = scatter(x, indices, updates, **params)
        return out, scatter(t, indices, _zeros(updates), **params)
    if not params["unique_indices"] and aval_of(updates).size:
        own, winner = _winners(x, indices, updates, params)
        updates = _winning_values(updates, winner, params)
        out = scatter(x, indices, updates, **params)
        u = select_n(eq(own, winner), zeros_like_aval(aval_of(u)), u)
        cleared = zeros_like_aval(aval_of(out).strong())
        if t is not ZERO:
            cleared = scatter(t, indices, zeros_like_aval(aval_of(u)), **params)
        return out, scatter_add(cleared, indices, u, **params)
    out = scatter(x, indices, updates, **params)
    t = _zeros(out) if t is ZERO else t
    return out, scatter(t, indices, u, **params)


def _scatter_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    ct_x = ct_updates = None
    like = Aval(updates.shape, aval_of(ct).dtype)
    if is_linear(x):
        ct_x = scatter(ct, indices, zeros_like_aval(like), **params)
    if is_linear(updates):
        ct_updates = read_written(ct, indices, updates.shape, **params)
        if not params["unique_indices"] and like.size:
            own, winner = _winners(ct, indices, ct_updates, params)
            ct_updates = select_n(eq(own, winner), zeros_like_aval(like), ct_updates)
    return ct_x, None, ct_updates


scatter: Op = Op(
    name="scatter",
    kind=INDEX,
    type=scatter_type("scatter", ANY),
    impl=scatter_impl(None),
    jvp=_scatter_jvp,
    transpose=_scatter_transpose,
    batch=scatter_batch(lambda: scatter),
    shard=by_kind,
    hlo=scatter_hlo("set"),
    kernel=scatter_kernel("set"),
    hollow=scatter_hollow(lambda: scatter),
)


# scatter-sub: operand minus the updates.


def _scatter_sub_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    t, _, u = tangents
    out = scatter_sub(x, indices, updates, **params)
    if u is ZERO:
        return out, t
    return out, scatter_sub(_zeros(out) if t is ZERO else t, indices, u, **params)


def _scatter_sub_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    ct_updates = None
    if is_linear(updates):
        ct_updates = neg(read_written(ct, indices, updates.shape, **params))
    return ct if is_linear(x) else None, None, ct_updates


scatter_sub: Op = Op(
    name="scatter-sub",
    kind=INDEX,
    type=scatter_type("scatter_sub", NUMERIC),
    impl=scatter_impl(np.subtract),
    jvp=_scatter_sub_jvp,
    transpose=_scatter_sub_transpose,
    batch=scatter_batch(lambda: scatter_sub),
    shard=by_kind,
    hlo=scatter_hlo(lambda b, x, y: b.subtract(x, y)),
    kernel=scatter_kernel("sub"),
    hollow=scatter_hollow(lambda: scatter_sub),
)


# scatter-mul: operand times the updates; linear in the operand.


def _scatter_mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    t, _, u = tangents
    out = scatter_mul(x, indices, updates, **params)
    total = t if t is ZERO else scatter_mul(t, indices, updates, **params)
    if u is ZERO:
        return out, total
    if not params["unique_indices"]:
        raise NotImplementedError(
            "[scatter_mul] expected unique_indices=True where the updates are differentiated, got "
            "False: scatter_mul gradients are only implemented if `unique_indices=True`. Pass it "
            "if no two windows meet."
        )
    read = read_written(x, indices, aval_of(updates).shape, **params)
    part = scatter_add(_zeros(out), indices, mul(read, u), **params)
    return out, part if total is ZERO else add_any(total, part)


def _scatter_mul_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    if is_linear(updates):
        raise NotImplementedError(
            "[scatter_mul] expected a function linear in the operand, got one linear in the "
            "updates. Take its derivative, which is expressed by scatter_add."
        )
    return scatter_mul(ct, indices, updates, **params), None, None


scatter_mul: Op = Op(
    name="scatter-mul",
    kind=INDEX,
    type=scatter_type("scatter_mul", NUMERIC),
    impl=scatter_impl(np.multiply),
    jvp=_scatter_mul_jvp,
    transpose=_scatter_mul_transpose,
    batch=scatter_batch(lambda: scatter_mul),
    shard=by_kind,
    hlo=scatter_hlo("multiply"),
    kernel=scatter_kernel("mul"),
    hollow=scatter_hollow(lambda: scatter_mul),
)


# scatter-min and scatter-max: all that attain an extremum share its derivative equally.


def _attains(x: Any, extremum: Any, dtype: Any) -> Any:
    """1 where x equals the extremum or is nan, else 0."""
    hit = bitwise_or(eq(x, extremum), ne(x, x))
    return convert_element_type(hit, new_dtype=dtype, weak_type=False)


def _scatter_extremum_jvp(op: Op, primals: Any, tangents: Any, params: dict[str, Any]) -> Any:
    x, indices, updates = primals
    t, _, u = tangents
    out = op(x, indices, updates, **params)
    if t is ZERO and u is ZERO:
        return out, ZERO
    dtype, shape = aval_of(out).dtype, aval_of(updates).shape
    mine = _attains(x, out, dtype)
    theirs = _attains(updates, read_written(out, indices, shape, **params), dtype)
    # An element nobody wrote to equals itself, so its count is 1.
    count = scatter_add(mine, indices, theirs, **params)
    total: Any = ZERO
    if t is not ZERO:
        total = mul(t, div(mine, count))
    if u is not ZERO:
        shared = read_written(count, indices, shape, **params)
        # 0 only where a window was dropped.
        shared = max_op(shared, full_like_aval(aval_of(shared), 1))
        start = _zeros(out) if total is ZERO else total
        total = scatter_add(start, indices, mul(u, div(theirs, shared)), **params)
    return out, total


def _extremum(name: str, ufunc: Any, body: str, word: str) -> Op:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        return _scatter_extremum_jvp(op, primals, tangents, params)

    def hlo(b: Any, x: Any, *args: Any, **params: Any) -> Any:
        rule = scatter_hlo(complex_extremum(body) if x.dtype.kind == "c" else body)
        return rule(b, x, *args, **params)

    op = Op(
        name=name,
        kind=INDEX,
        type=scatter_type(name.replace("-", "_"), ANY),
        impl=scatter_impl(ufunc),
        jvp=jvp,
        transpose=Never(f"[{name}] expected a linear operation, got {name}, which is not."),
        batch=scatter_batch(lambda: op),
        shard=by_kind,
        hlo=hlo,
        kernel=scatter_kernel(word),
        hollow=scatter_hollow(lambda: op),
    )
    return op


scatter_min = _extremum("scatter-min", minimum, "minimum", "min")
scatter_max = _extremum("scatter-max", maximum, "maximum", "max")


# scatter-apply: a function of scalars applied where windows are, once per window. `like` has the
# shape of the updates and is not read.


def _scatter_apply_type(x: Aval, indices: Aval, like: Aval, *, jaxpr: Any, **params: Any) -> Aval:
    return scatter_type("scatter_apply", ANY)(x, indices, like, **params)


def _scatter_apply_impl(
    x: Any, indices: Any, like: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    ones = np.ones(np.shape(like), np.int32)
    times = scatter_array(np.zeros(np.shape(x), np.int32), indices, ones, np.add, **params)
    out = np.array(x, order="C")
    flat, left = out.reshape(-1), times.reshape(-1)
    places = np.flatnonzero(left)
    consts = [np.asarray(c) for c in jaxpr.consts]
    program = jaxpr.jaxpr
    # Elementwise ops on scalars are the same ops on vectors.
    at_once = all(eqn.op.kind.elementwise for eqn in program.eqns) and all(
        not c.shape for c in consts
    )
    while len(places):
        for part in [places] if at_once else places[:, None]:
            given = flat[part] if at_once else flat[part[0]]
            flat[part] = run_numpy(program, consts, (given,))[0]
        left[places] -= 1
        places = places[left[places] > 0]
    return out


def _scatter_apply_batch(
    axis: Any, args: Any, dims: Any, *, dimension_numbers: Any, **params: Any
) -> Any:
    return batch_scatter(scatter_apply, axis, args, dims, dimension_numbers, params)


def _scatter_apply_hlo(
    b: Any, x: Any, indices: Any, like: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    return hlo_scatter(
        b, x, indices, like, lambda b, old, new: b.inline(jaxpr, old), **params
    )


_TIMES_UNKNOWN = Never(
    "[scatter_apply] expected unique_indices=True where it is differentiated, got False: the "
    "number of applications per element is known only at run time. Pass it if no two windows "
    "meet."
)

scatter_apply: Op = Op(
    name="scatter-apply",
    kind=INDEX,
    type=_scatter_apply_type,
    impl=_scatter_apply_impl,
    jvp=_TIMES_UNKNOWN,
    transpose=Never("[scatter_apply] expected a linear operation, got one that is not."),
    batch=_scatter_apply_batch,
    shard=by_kind,
    hlo=_scatter_apply_hlo,
    kernel=library,
    hollow=scatter_hollow(lambda: scatter_apply),
    higher=HigherOrder(
        linearize=_TIMES_UNKNOWN, dce=Never("[scatter_apply] expected its one result to be used.")
    ),
)
