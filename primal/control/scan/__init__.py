"""scan: a program run along the leading axis of arrays, with values carried from step to step.

(carry, y[i]) = f(consts, carry, x[i]) for i in 0 … length-1, or backwards with `reverse`. Its
adjoint is a scan in the other direction, so that reverse mode needs nothing but scan.

A linear scan is one whose active operands are all linear; what linearisation needs of each step
is stacked, what is the same in every step is handed over once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import physical_dtype
from primal.control.programs import (
    Mask,
    check_operands,
    flip,
    pick,
    rearrange,
    same_type,
    settle,
    split,
    trim,
    unpick,
)
from primal.control.scan.parts import backward_body, known_and_rest, split_body
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr, Eqn
from primal.ir.op import CONTROL, HigherOrder, Op, by_kind
from primal.ir.state import ambient
from primal.ir.trace import ZERO, aval_of
from primal.ops.shape import moveaxis
from primal.ops.spread import add_any, broadcast_axis, zeros_like_aval
from primal.ops.types import is_linear
from primal.transforms.batch import batch_jaxpr
from primal.transforms.jvp import instantiate, jvp_jaxpr, no_weaker
from primal.transforms.transpose import linear_outputs


def _stacked(aval: Aval, length: int) -> Aval:
    return Aval((length, *aval.shape), aval.dtype, aval.weak_type)


def _scan_type(
    *avals: Aval,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int,
) -> tuple[Aval, ...]:
    wanted = jaxpr.in_avals
    whole = num_consts + num_carry
    check_operands(
        "scan", "operand", avals, [*wanted[:whole], *[_stacked(a, length) for a in wanted[whole:]]]
    )
    carry, ys = split(jaxpr.out_avals, num_carry)
    for i, (a, b) in enumerate(zip(wanted[num_consts:whole], carry, strict=True)):
        if not same_type(a, b):
            raise TypeError(f"[scan] expected {a.short()} as carry output {i}, got {b.short()}.")
    return (*carry, *[_stacked(y, length) for y in ys])


def _scan_impl(
    *args: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    consts, carry, xs = split(args, num_consts, num_carry)
    ys = [
        np.empty((length, *a.shape), physical_dtype(a.dtype)) for a in jaxpr.out_avals[num_carry:]
    ]
    for i in reversed(range(length)) if reverse else range(length):
        outs = run_numpy(jaxpr.jaxpr, jaxpr.consts, [*consts, *carry, *[x[i, ...] for x in xs]])
        carry = outs[:num_carry]
        for y, out in zip(ys, outs[num_carry:], strict=True):
            y[i] = out
    return [*carry, *ys]


def _scan_jvp(
    primals: Any,
    tangents: Any,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> Any:
    num_ys = len(jaxpr.out_avals) - num_carry
    nz_consts, nz_init, nz_xs = split([t is not ZERO for t in tangents], num_consts, num_carry)

    def pushed(nz: Mask) -> tuple[ClosedJaxpr, Mask]:
        return jvp_jaxpr(jaxpr, (*nz_consts, *nz, *nz_xs), (*nz, *[False] * num_ys))

    nz_carry = settle(nz_init, lambda nz: pushed(nz)[1][:num_carry])
    both, nz_out = pushed(nz_carry)
    counts = [num_consts, num_carry, len(nz_xs), sum(nz_consts), sum(nz_carry), sum(nz_xs)]
    body = rearrange(
        both,
        interleaved(counts, (0, 3, 1, 4, 2, 5)),
        interleaved([num_carry, num_ys, sum(nz_carry), sum(nz_out[num_carry:])], (0, 2, 1, 3)),
    )
    consts, init, xs = split(primals, num_consts, num_carry)
    t_consts, t_init, t_xs = split(tangents, num_consts, num_carry)
    t_init = [
        instantiate(t, aval_of(x)) if nz else t
        for t, x, nz in zip(t_init, init, nz_carry, strict=True)
    ]
    operands = [
        *consts, *pick(t_consts, nz_consts), *init, *pick(t_init, nz_carry),
        *xs, *pick(t_xs, nz_xs),
    ]  # fmt: skip
    results = scan(
        *operands,
        jaxpr=body,
        num_consts=num_consts + sum(nz_consts),
        num_carry=num_carry + sum(nz_carry),
        **params,
    )
    carry, t_carry, ys, t_ys = split(results, num_carry, sum(nz_carry), num_ys)
    moving = iter([*t_carry, *t_ys])
    return [*carry, *ys], [next(moving) if nz else ZERO for nz in nz_out]


def interleaved(counts: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Positions that put consecutive groups of these sizes into another order."""
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return tuple([starts[g] + i for g in order for i in range(counts[g])])


# Linearisation.


def _scan_linearize(
    trace: Any,
    primals: Any,
    tangents: Any,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> Any:
    unchanged = [
        out is given
        for out, given in zip(
            jaxpr.jaxpr.outvars[:num_carry], jaxpr.jaxpr.invars[num_consts:], strict=False
        )
    ]
    if any(unchanged):
        # A carry that every step hands on is loop-invariant: as a const it is not stacked.
        return _linearize_unchanged(
            trace, primals, tangents, unchanged, jaxpr, num_consts, num_carry, params
        )
    active = tuple([t is not ZERO for t in tangents])
    plan = split_body(jaxpr, num_consts, num_carry, active)
    num_outs = len(jaxpr.out_avals)
    with ambient(trace.parent):
        results = scan(
            *primals, jaxpr=plan.known, num_consts=num_consts, num_carry=num_carry, **params
        )
        if not any(plan.out_active):
            return results[:num_outs], [ZERO] * num_outs
        invariant = eval_closed(plan.invariant, *primals[:num_consts])
        t_consts, t_init, t_xs = split(tangents, num_consts, num_carry)
        given_init = primals[num_consts : num_consts + num_carry]
        init = [
            instantiate(t, aval_of(x))
            for t, x, active in zip(t_init, given_init, plan.carry_active, strict=True)
            if active
        ]
    consts = [
        *[primals[i] for i in plan.forwarded_consts],
        *invariant,
        *[t for t in t_consts if t is not ZERO],
    ]
    xs = [
        *[primals[i] for i in plan.forwarded_xs],
        *[results[i] for i in plan.stacked],
        *[t for t in t_xs if t is not ZERO],
    ]
    moving = iter(
        scan(
            *consts, *init, *xs,
            jaxpr=plan.linear, num_consts=len(consts), num_carry=len(init), **params,
        )
    )  # fmt: skip
    return results[:num_outs], [next(moving) if a else ZERO for a in plan.out_active]


def _linearize_unchanged(
    trace: Any,
    primals: Any,
    tangents: Any,
    unchanged: Sequence[bool],
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    params: Any,
) -> Any:
    changing = flip(unchanged)
    carries = range(num_consts, num_consts + num_carry)
    order = [
        *range(num_consts),
        *pick(carries, unchanged),
        *pick(carries, changing),
        *range(num_consts + num_carry, len(primals)),
    ]
    num_ys = len(jaxpr.out_avals) - num_carry
    kept = [*pick(range(num_carry), changing), *range(num_carry, num_carry + num_ys)]
    outs, touts = _scan_linearize(
        trace,
        [primals[i] for i in order],
        [tangents[i] for i in order],
        jaxpr=rearrange(jaxpr, tuple(order), tuple(kept)),
        num_consts=num_consts + sum(unchanged),
        num_carry=num_carry - sum(unchanged),
        **params,
    )
    mask = [*unchanged, *[False] * num_ys]
    whole = unpick(mask, pick(primals[num_consts : num_consts + num_carry], unchanged), outs)
    moved = unpick(mask, pick(tangents[num_consts : num_consts + num_carry], unchanged), touts)
    return whole, moved


# Transposition.


def _scan_transpose(
    cts: Any, *args: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **params: Any
) -> Any:
    linear = [is_linear(a) for a in args]
    l_consts, l_init, l_xs = split(linear, num_consts, num_carry)
    l_carry, _ = _linear_outputs(linear, jaxpr, num_consts, num_carry)
    consts, init, xs = split(args, num_consts, num_carry)
    if not all(l_carry):
        jaxpr, extra = _run_known_part(
            jaxpr, num_consts, num_carry, (*l_consts, *l_carry, *l_xs), args, params
        )
        # Cotangents of what is not linear have nowhere to go.
        cts = [*pick(cts[:num_carry], l_carry), *cts[num_carry:]]
        xs, l_xs = [*extra, *xs], [*[False] * len(extra), *l_xs]
        init_linear, num_carry = pick(l_init, l_carry), sum(l_carry)
    else:
        init_linear = list(l_init)
    given = tuple([c is not ZERO for c in cts[num_carry:]])
    mask = (*l_consts, *[True] * num_carry, *l_xs)
    late = backward_body(jaxpr, num_carry, mask, given, num_consts)
    linear_consts = [a for a in consts if is_linear(a)]
    accumulators = [
        zeros_like_aval(a.aval.tangent())
        for a, terms in zip(linear_consts, late.terms, strict=True)
        if terms is None
    ]
    ct_carry = [
        instantiate(c, a) for c, a in zip(cts[:num_carry], jaxpr.out_avals, strict=False)
    ]
    params = {**params, "reverse": not params["reverse"]}
    stacks = [*pick(xs, flip(l_xs)), *pick(cts[num_carry:], given)]
    results = scan(
        *pick(consts, flip(l_consts)),
        *accumulators,
        *ct_carry,
        *stacks,
        jaxpr=late.body,
        num_consts=num_consts - len(linear_consts),
        num_carry=len(accumulators) + num_carry,
        **params,
    )
    summed, ct_init, ys = split(results, len(accumulators), num_carry)
    sums = iter(summed)
    ct_consts = [
        next(sums)
        if terms is None
        else functools.reduce(add_any, [term.value(stacks, ys) for term in terms])
        for terms in late.terms
    ]
    ct_xs = ys[: sum(l_xs)]
    backward = [*ct_consts, *pick(ct_init, init_linear), *ct_xs]
    found = iter(no_weaker(backward, cts, jaxpr.out_avals))
    return [next(found) if is_linear(a) else None for a in args]


def _linear_outputs(
    linear: Sequence[bool], jaxpr: ClosedJaxpr, num_consts: int, num_carry: int
) -> tuple[Mask, Mask]:
    """Which carries and which stacked outputs depend on the linear inputs."""
    consts, init, xs = split(linear, num_consts, num_carry)

    def outputs(carry: Mask) -> Mask:
        return linear_outputs(jaxpr, (*consts, *carry, *xs))

    carry = settle(init, lambda mask: outputs(mask)[:num_carry])
    return carry, outputs(carry)[num_carry:]


def _scan_mixes(
    linear: Sequence[bool], *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **params: Any
) -> Mask:
    carry, ys = _linear_outputs(linear, jaxpr, num_consts, num_carry)
    return (*carry, *ys)


def _run_known_part(
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    linear: Mask,
    args: Any,
    params: Any,
) -> tuple[ClosedJaxpr, list[Any]]:
    """Run what does not depend on linear operands, when some carries (a counter, say) do not.

    Returns the linear rest of the body, with stacked residuals as leading xs, and those stacks.
    """
    known, rest, num_ys = known_and_rest(jaxpr, num_consts, num_carry, linear)
    operands = [a for a, is_lin in zip(args, linear, strict=True) if not is_lin]
    l_consts, l_carry, _ = split(linear, num_consts, num_carry)
    results = scan(
        *operands,
        jaxpr=known,
        num_consts=num_consts - sum(l_consts),
        num_carry=num_carry - sum(l_carry),
        **params,
    )
    return rest, results[len(results) - num_ys :]


# Batching, dead code, engines.


def _scan_batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> Any:
    num_ys = len(jaxpr.out_avals) - num_carry
    b_consts, b_init, b_xs = split([d is not None for d in dims], num_consts, num_carry)

    def over(mask: Mask) -> tuple[ClosedJaxpr, Mask]:
        return batch_jaxpr(jaxpr, axis, (*b_consts, *mask, *b_xs), (*mask, *[False] * num_ys))

    b_carry = settle(b_init, lambda mask: over(mask)[1][:num_carry])
    body, out_batched = over(b_carry)
    whole = num_consts + num_carry
    operands = []
    for i, (a, d) in enumerate(zip(args, dims, strict=True)):
        if d is not None:
            operands.append(moveaxis(a, d, 0 if i < whole else 1))
        elif num_consts <= i < whole and b_carry[i - num_consts]:
            operands.append(broadcast_axis(a, axis.size, 0))
        else:
            operands.append(a)
    outs = scan(*operands, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **params)
    return outs, [
        (0 if i < num_carry else 1) if b else None for i, b in enumerate(out_batched)
    ]


def _scan_dce(used: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    jaxpr: ClosedJaxpr = eqn.params["jaxpr"]
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    used_ys = used[num_carry:]

    def trimmed(mask: Mask) -> tuple[ClosedJaxpr, Mask]:
        keep = (*[False] * num_consts, *mask, *[False] * (len(eqn.invars) - num_consts - num_carry))
        return trim(jaxpr, (*mask, *used_ys), keep)

    carry = settle(
        used[:num_carry], lambda mask: trimmed(mask)[1][num_consts : num_consts + num_carry]
    )
    smaller, used_in = trimmed(carry)
    if not any(carry) and not any(used_ys) and not smaller.jaxpr.effects:
        return [False] * len(eqn.invars), None
    params = {
        **eqn.params,
        "jaxpr": smaller,
        "num_consts": sum(used_in[:num_consts]),
        "num_carry": sum(carry),
    }
    new = eqn.replace(
        invars=pick(eqn.invars, used_in),
        outvars=pick(eqn.outvars, (*carry, *used_ys)),
        params=params,
        effects=smaller.jaxpr.effects,
    )
    return list(used_in), new


def _scan_hlo(
    b: Any,
    *operands: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    consts, init, xs = split(operands, num_consts, num_carry)
    y_avals = b.outs[num_carry:]
    index = np.dtype(np.int32)

    def step(i: Any, carry: Sequence[Any], ys: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        at = b.subtract(b.constant(length - 1, index), i) if reverse else i
        zero = b.constant(0, index)
        items = [
            b.reshape(
                b.dynamic_slice(x, [at, *[zero] * (x.ndim - 1)], (1, *x.shape[1:])), x.shape[1:]
            )
            for x in xs
        ]
        outs = b.inline(jaxpr, *consts, *carry, *items, part="while/body")
        written = [
            b.dynamic_update_slice(y, b.reshape(o, (1, *o.shape)), [at, *[zero] * o.ndim])
            for y, o in zip(ys, outs[num_carry:], strict=True)
        ]
        return outs[:num_carry], written

    def steps(
        first: Any, count: int, carry: Sequence[Any], ys: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        for k in range(count):
            i = b.add(first, b.constant(k, index)) if k else first
            carry, ys = step(i, carry, ys)
        return carry, ys

    ys: Sequence[Any] = [b.full(a.shape, 0, physical_dtype(a.dtype)) for a in y_avals]
    per_trip = min(max(unroll, 1), max(length, 1))
    looped = length // per_trip * per_trip
    if looped <= per_trip:
        carry, ys = steps(b.constant(0, index), length, init, ys)
        return [*carry, *ys]

    def condition(b: Any, i: Any, *rest: Any) -> Any:
        return b.compare(i, b.constant(looped, index), "LT")

    def body(b: Any, i: Any, *rest: Any) -> list[Any]:
        carry, ys = steps(i, per_trip, rest[:num_carry], rest[num_carry:])
        return [b.add(i, b.constant(per_trip, index)), *carry, *ys]

    results = b.while_(condition, body, [b.constant(0, index), *init, *ys])
    carry, ys = steps(
        b.constant(looped, index),
        length - looped,
        results[1 : num_carry + 1],
        results[num_carry + 1 :],
    )
    return [*carry, *ys]


def _scan_kernel(
    k: Any,
    *operands: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    consts, init, xs = split(operands, num_consts, num_carry)
    invars, outvars = jaxpr.jaxpr.invars[num_consts:], jaxpr.jaxpr.outvars[:num_carry]
    # What every step hands on is no carry: it stays where it is.
    still = [a is b for a, b in zip(outvars, invars, strict=False)]

    def body(k: Any, *args: Any) -> list[Any]:
        carry, items = split(args, num_carry - sum(still))
        outs = k.inline(jaxpr, *consts, *unpick(still, pick(init, still), carry), *items)
        return [*pick(outs[:num_carry], flip(still)), *outs[num_carry:]]

    stacked = [_stacked(a.strong(), length) for a in jaxpr.out_avals[num_carry:]]
    results = k.scan(body, pick(init, flip(still)), xs, stacked, length, reverse)
    carry, ys = split(results, num_carry - sum(still))
    return [*unpick(still, pick(init, still), carry), *ys]


def _scan_hoist(
    part: Any, operands: list[Any], params: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    consts, init, xs = split(operands, params["num_consts"], params["num_carry"])
    if not params["length"]:
        return operands, params
    body = params["jaxpr"]
    given = body.jaxpr.invars[len(consts) :]
    still = [
        x if new is old else None
        for x, new, old in zip(init, body.jaxpr.outvars, given, strict=False)
    ]
    rest, more = part(body, [*consts, *still, *[None] * len(xs)])
    consts = [*more, *consts]
    return [*consts, *init, *xs], {**params, "jaxpr": rest, "num_consts": len(consts)}


def _scan_effects(params: dict[str, Any]) -> Any:
    return params["jaxpr"].effects


scan = Op(
    name="scan",
    kind=CONTROL,
    type=_scan_type,
    impl=_scan_impl,
    jvp=_scan_jvp,
    transpose=_scan_transpose,
    batch=_scan_batch,
    shard=by_kind,
    hlo=_scan_hlo,
    kernel=_scan_kernel,
    higher=HigherOrder(
        linearize=_scan_linearize,
        dce=_scan_dce,
        mixes=_scan_mixes,
        hoist=_scan_hoist,
    ),
    multiple=True,
    effects=_scan_effects,
)
