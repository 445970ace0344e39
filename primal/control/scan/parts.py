"""Programs derived from the body of a scan: halves of a linearisation, the way back."""

from __future__ import annotations

from typing import Any

from primal.base.structures import structure
from primal.control.programs import (
    Mask,
    computable,
    flip,
    part_of,
    pick,
    rearrange,
    settle,
    split,
)
from primal.control.scan.sums import Late, in_windows, later
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.trace import Literal
from primal.transforms.linearize import LinearizedJaxpr, linearize_jaxpr
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage
from primal.transforms.transpose import split_linear, transpose_jaxpr


@structure
class Plan:
    """A body split for linearisation.

    `known`: the body with residuals as further ys. `invariant`: consts -> residuals that are the
    same in every step. `linear`: the body of the linear scan, whose consts are (forwarded consts,
    invariant residuals, tangents of consts) and whose xs are (forwarded xs, `stacked` outputs of
    the known scan, tangents of xs).
    """

    known: ClosedJaxpr
    invariant: ClosedJaxpr
    linear: ClosedJaxpr
    forwarded_consts: tuple[int, ...]
    forwarded_xs: tuple[int, ...]
    stacked: tuple[int, ...]
    carry_active: Mask
    out_active: Mask


@memo_on_jaxpr
def split_body(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, active: Mask) -> Plan:
    num_outs = len(jaxpr.out_avals)
    a_consts, a_init, a_xs = split(active, num_consts, num_carry)

    def halves(mask: Mask) -> LinearizedJaxpr:
        force = (*mask, *[False] * (num_outs - num_carry))
        return linearize_jaxpr(jaxpr, (*a_consts, *mask, *a_xs), force)

    a_carry = settle(a_init, lambda mask: halves(mask).out_active[:num_carry])
    found = halves(a_carry)
    body = found.known.jaxpr
    outs, residuals = split(body.outvars, num_outs)
    still = set(body.constvars) | set(body.invars[:num_consts])
    invariant_eqns = computable(body.eqns, still)
    fixed = [v in still for v in residuals]
    forwarded_consts, forwarded_carry, forwarded_xs = (
        [(k, i) for k, i in enumerate(found.forwarded) if low <= i < high]
        for low, high in (
            (0, num_consts),
            (num_consts, num_consts + num_carry),
            (num_consts + num_carry, len(active)),
        )
    )
    # What the steps put out already is not stacked twice.
    stacks = [*outs[num_carry:]]
    wanted = [*[body.invars[i] for _, i in forwarded_carry], *pick(residuals, flip(fixed))]
    stacks.extend(v for v in dict.fromkeys(wanted) if v not in stacks)
    invariant_vars = pick(residuals, fixed)
    # The linear program takes (forwarded, residuals, tangents); scan wants consts, carry, xs.
    first = len(found.forwarded)
    places = range(first, first + len(residuals))
    counts = sum(a_consts), sum(a_carry), sum(a_xs)
    t_consts, t_carry, t_xs = split(
        range(first + len(residuals), first + len(residuals) + sum(counts)), *counts[:2]
    )
    order = [
        *[k for k, _ in forwarded_consts], *pick(places, fixed), *t_consts,
        *t_carry,
        *[k for k, _ in forwarded_xs], *[k for k, _ in forwarded_carry],
        *pick(places, flip(fixed)), *t_xs,
    ]  # fmt: skip
    return Plan(
        part_of(found.known, body.invars, [*outs[:num_carry], *stacks], body.eqns),
        part_of(found.known, body.invars[:num_consts], invariant_vars, invariant_eqns),
        rearrange(found.linear, tuple(order), tuple(range(sum(found.out_active)))),
        tuple([i for _, i in forwarded_consts]),
        tuple([i for _, i in forwarded_xs]),
        tuple([num_carry + stacks.index(v) for v in wanted]),
        a_carry,
        found.out_active,
    )


@memo_on_jaxpr
def backward_body(
    jaxpr: ClosedJaxpr, num_carry: int, linear: Mask, given: Mask, num_consts: int
) -> Late:
    """The body of the transposed scan, and what is left for afterwards.

    Consts: those not linear. Carry: (sums of the cotangents of linear consts, cotangents of the
    carry). xs: (those not linear, cotangents of ys). ys: cotangents of linear xs, then what the
    late sums need.
    """
    step = transpose_jaxpr(jaxpr, linear, (*[True] * num_carry, *given))
    l_consts, _, l_xs = split(linear, num_consts, num_carry)
    num_fixed, num_sums = num_consts - sum(l_consts), sum(l_consts)
    num_x = len(l_xs) - sum(l_xs)
    fixed, x_avals, ct_avals = split(step.in_avals, num_fixed, num_x)
    ct_carry_avals, ct_y_avals = split(ct_avals, num_carry)
    late = later(step, num_sums, num_carry, num_fixed, len(ct_y_avals))
    step, num_sums = late.body, late.terms.count(None)
    sum_avals = step.out_avals[:num_sums]
    step, added = in_windows(step, num_sums)

    def backward(*args: Any) -> list[Any]:
        consts, sums, cts, x, ct_ys = split(args, num_fixed, num_sums, num_carry, num_x)
        results = iter(eval_closed(step, *consts, *x, *cts, *ct_ys))
        totals = [how.to(total, results) for how, total in zip(added, sums, strict=True)]
        return [*totals, *results]

    avals = [*fixed, *sum_avals, *ct_carry_avals, *x_avals, *ct_y_avals]
    return Late(stage(backward, avals, f"backward({jaxpr.jaxpr.debug})"), late.terms)


@memo_on_jaxpr
def known_and_rest(
    closed: ClosedJaxpr, num_consts: int, num_carry: int, linear: Mask
) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
    jaxpr = closed.jaxpr
    still, active, moving = split_linear(jaxpr, linear)
    l_consts, l_carry, l_xs = split(linear, num_consts, num_carry)
    consts, carry, xs = split(jaxpr.invars, num_consts, num_carry)
    outer = {*jaxpr.constvars, *consts, *xs}
    outs = [v for v in jaxpr.outvars[num_carry:] if type(v) is not Literal and v not in moving]
    residuals = list(
        dict.fromkeys(
            v
            for v in [*[v for e in active for v in e.invars], *outs]
            if type(v) is not Literal and v not in moving and v not in outer
        )
    )
    known_in = [v for v, is_lin in zip(jaxpr.invars, linear, strict=True) if not is_lin]
    known_out = [*pick(jaxpr.outvars[:num_carry], flip(l_carry)), *residuals]
    known = part_of(closed, known_in, known_out, still)
    rest = part_of(
        closed,
        [*consts, *pick(carry, l_carry), *residuals, *xs],
        [*pick(jaxpr.outvars[:num_carry], l_carry), *jaxpr.outvars[num_carry:]],
        active,
    )
    return known, rest, len(residuals)
