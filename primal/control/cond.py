"""cond: one of several programs, chosen by an index.

out = branches[index](operands), index clamped to the branches there are. All branches take the
same operands and return the same types; a transformation of the op transforms each branch and
then makes their results agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.control.guarded import guarded, may_vary
from primal.control.programs import (
    Mask,
    check_operands,
    flip,
    pick,
    same_type,
    trim,
)
from primal.ir.avals import Aval
from primal.ir.effects import is_io
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Var
from primal.ir.op import CONTROL, HigherOrder, Op, by_kind, no_effects
from primal.ir.state import ambient
from primal.ir.trace import ZERO, Literal, aval_of
from primal.ops.choose import clamp, select_n
from primal.ops.elementwise import eq
from primal.ops.reduce import reduce_or
from primal.ops.shape import moveaxis
from primal.ops.spread import broadcast_in_dim, zeros_like_aval
from primal.ops.types import is_linear
from primal.transforms.batch import batch_jaxpr, materialize
from primal.transforms.jvp import jvp_jaxpr, no_weaker
from primal.transforms.linearize import LinearizedJaxpr, linearize_jaxpr
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage
from primal.transforms.transpose import linear_outputs, transpose_jaxpr

INT32 = np.dtype(np.int32)
Branches = tuple[ClosedJaxpr, ...]


def _cond_type(index: Aval, *avals: Aval, branches: Branches) -> tuple[Aval, ...]:
    if index.shape or index.dtype != INT32:
        raise TypeError(f"[cond] expected an int32 scalar as index, got {index.short()}.")
    for i, branch in enumerate(branches):
        check_operands("cond", f"branch {i}'s operand", avals, branch.in_avals)
        for k, (a, b) in enumerate(zip(branches[0].out_avals, branch.out_avals, strict=True)):
            if not same_type(a, b):
                raise TypeError(
                    f"[cond] expected outputs of the same types from all branches, got "
                    f"{a.short()} from branch 0 and {b.short()} from branch {i} as output {k}."
                )
    return tuple(branches[0].out_avals)


def _cond_impl(index: Any, *args: Any, branches: Branches) -> list[Any]:
    chosen = branches[min(max(int(index), 0), len(branches) - 1)]
    return run_numpy(chosen.jaxpr, chosen.consts, args)


def _union(masks: Sequence[Mask]) -> Mask:
    return tuple([any(column) for column in zip(*masks, strict=True)])


def _cond_jvp(primals: Any, tangents: Any, *, branches: Branches) -> Any:
    index, *operands = primals
    nonzero = tuple([t is not ZERO for t in tangents[1:]])
    mask = _union([jvp_jaxpr(b, nonzero)[1] for b in branches])
    pushed = tuple([jvp_jaxpr(b, nonzero, mask)[0] for b in branches])
    results = cond(index, *operands, *pick(tangents[1:], nonzero), branches=pushed)
    moving = iter(results[len(mask) :])
    return results[: len(mask)], [next(moving) if m else ZERO for m in mask]


# Linearisation.


@structure
class _Plan:
    """Branches split for linearisation, with one list of residuals that serves them all.

    `known`: each branch with the shared residuals as further outputs. `linear`: each takes
    (forwarded operands, residuals, tangents).
    """

    known: Branches
    linear: Branches
    forwarded: tuple[int, ...]
    out_active: Mask


def _plan(branches: Branches, active: Mask) -> _Plan:
    first, *rest = branches
    return _plan_for(first, tuple(rest), active)


@memo_on_jaxpr
def _plan_for(first: ClosedJaxpr, rest: Branches, active: Mask) -> _Plan:
    branches = (first, *rest)
    out_active = _union([linearize_jaxpr(b, active).out_active for b in branches])
    halves = [linearize_jaxpr(b, active, out_active) for b in branches]
    forwarded = tuple(sorted({i for h in halves for i in h.forwarded}))
    slots, placed = shared_slots([h.known.out_avals[len(out_active) :] for h in halves])
    known = [
        padded(h.known, len(out_active), slots, places)
        for h, places in zip(halves, placed, strict=True)
    ]
    in_avals = first.in_avals
    forwarded_avals = [in_avals[i] for i in forwarded]
    linear = [
        _widened(h, forwarded, forwarded_avals, slots, places)
        for h, places in zip(halves, placed, strict=True)
    ]
    return _Plan(tuple(known), tuple(linear), forwarded, out_active)


def shared_slots(residuals: Sequence[Sequence[Aval]]) -> tuple[list[Aval], list[list[int]]]:
    """Places shared by the residuals of all branches, and each residual's place.

    Only one branch runs, so residuals of one type in different branches use the same place.
    """
    slots: list[Aval] = []
    placed: list[list[int]] = []
    for avals in residuals:
        taken: set[int] = set()
        mine = []
        for a in avals:
            k = next((k for k, s in enumerate(slots) if same_type(s, a) and k not in taken), None)
            if k is None:
                k = len(slots)
                slots.append(a.strong())
            taken.add(k)
            mine.append(k)
        placed.append(mine)
    return slots, placed


def padded(
    known: ClosedJaxpr, num_outs: int, slots: Sequence[Aval], places: Sequence[int]
) -> ClosedJaxpr:
    """The known half with its residuals in the shared places and zeros in the others."""

    def run(*args: Any) -> list[Any]:
        results = eval_closed(known, *args)
        mine = dict(zip(places, results[num_outs:], strict=True))
        padded = [mine[k] if k in mine else zeros_like_aval(a) for k, a in enumerate(slots)]
        return [*results[:num_outs], *padded]

    return stage(run, known.in_avals, known.jaxpr.debug)


def _widened(
    half: LinearizedJaxpr,
    forwarded: tuple[int, ...],
    forwarded_avals: Sequence[Aval],
    slots: Sequence[Aval],
    places: Sequence[int],
) -> ClosedJaxpr:
    """The linear half taking the forwarded operands and residuals of all branches."""
    jaxpr = half.linear.jaxpr
    mine, residuals, tangents = (
        jaxpr.invars[: len(half.forwarded)],
        jaxpr.invars[len(half.forwarded) : len(half.forwarded) + half.num_residuals],
        jaxpr.invars[len(half.forwarded) + half.num_residuals :],
    )
    own = dict(zip(half.forwarded, mine, strict=True))
    at = dict(zip(places, residuals, strict=True))
    invars = [
        *[own.get(i) or Var(a) for i, a in zip(forwarded, forwarded_avals, strict=True)],
        *[at.get(k) or Var(a) for k, a in enumerate(slots)],
        *tangents,
    ]
    return ClosedJaxpr(jaxpr.replace(invars=invars), half.linear.consts)


def _cond_linearize(trace: Any, primals: Any, tangents: Any, *, branches: Branches) -> Any:
    index, *operands = primals
    active = tuple([t is not ZERO for t in tangents[1:]])
    plan = _plan(branches, active)
    with ambient(trace.parent):
        results = cond(index, *operands, branches=plan.known)
    num_outs = len(plan.out_active)
    outs = results[:num_outs]
    if not any(plan.out_active):
        return outs, [ZERO] * num_outs
    moving = iter(
        cond(
            index,
            *[operands[i] for i in plan.forwarded],
            *results[num_outs:],
            *pick(tangents[1:], active),
            branches=plan.linear,
        )
    )
    return outs, [next(moving) if a else ZERO for a in plan.out_active]


# Transposition, batching, dead code, engines.


def _cond_transpose(cts: Any, index: Any, *args: Any, branches: Branches) -> Any:
    linear = tuple([is_linear(a) for a in args])
    given = tuple([c is not ZERO for c in cts])
    backward = tuple([transpose_jaxpr(b, linear, given) for b in branches])
    results = cond(index, *pick(args, flip(linear)), *pick(cts, given), branches=backward)
    found = iter(no_weaker(results, cts, branches[0].out_avals))
    return [None, *[next(found) if m else None for m in linear]]


def _cond_mixes(linear: Sequence[bool], *, branches: Branches) -> Mask:
    return _union([linear_outputs(b, tuple(linear[1:])) for b in branches])


def _cond_batch(axis: Any, args: Any, dims: Any, *, branches: Branches) -> Any:
    index, *operands = args
    batched = tuple([d is not None for d in dims[1:]])
    moved = [
        a if d is None else moveaxis(a, d, 0) for a, d in zip(operands, dims[1:], strict=True)
    ]
    if dims[0] is None:
        mask = _union([batch_jaxpr(b, axis, batched)[1] for b in branches])
        programs = tuple([batch_jaxpr(b, axis, batched, mask)[0] for b in branches])
        outs = cond(index, *moved, branches=programs)
        return outs, [0 if m else None for m in mask]
    # Examples that choose differently: every branch runs for all of them.
    _refuse_effects(branches)
    same = _passed_on(branches)
    which = clamp(np.int32(0), index, np.int32(len(branches) - 1))
    guards = len(branches) > 1 and may_vary(moved)
    results = []
    for i, b in enumerate(branches):
        if guards:
            mine = eq(which, np.int32(i))
            program, mask = batch_jaxpr(guarded(b, batched), axis, (True, False, *batched))
            outs = eval_closed(program, mine, reduce_or(mine, axes=(0,)), *moved)
        else:
            program, mask = batch_jaxpr(b, axis, batched)
            outs = eval_closed(program, *moved)
        results.append([
            materialize(o, axis, 0 if m else None, 0) if k is None else o
            for o, m, k in zip(outs, mask, same, strict=True)
        ])  # fmt: skip
    chosen = [
        _choose(which, column) if i is None else _value(operands[i])
        for i, column in zip(same, zip(*results, strict=True), strict=True)
    ]
    return chosen, [0 if i is None else dims[1 + i] for i in same]


def _passed_on(branches: Branches) -> list[int | None]:
    """Per output, the operand that it is in every branch, if there is one."""
    places = []
    for b in branches:
        index: dict[Any, int] = {v: i for i, v in enumerate(b.jaxpr.invars)}
        places.append([None if type(v) is Literal else index.get(v) for v in b.jaxpr.outvars])
    return [column[0] if len(set(column)) == 1 else None for column in zip(*places, strict=True)]


def _value(x: Any) -> Any:
    """An operand as a result, which literals are not."""
    return broadcast_in_dim(x, shape=(), broadcast_dimensions=()) if type(x) is Literal else x


def _choose(which: Any, cases: Sequence[Any]) -> Any:
    aval = aval_of(cases[0])
    if len(cases) == 1:
        return cases[0]
    mask = broadcast_in_dim(which, shape=aval.shape, broadcast_dimensions=(0,))
    return select_n(mask, *cases)


def _refuse_effects(branches: Branches) -> None:
    effects = [e for e in _effects_of(branches) if is_io(e)]
    if effects:
        raise NotImplementedError(
            "[cond] expected branches without IO effects under vmap with a predicate that differs "
            "between examples, as both branches run then for all of them: IO effect not supported "
            f"in vmap-of-cond; got {', '.join(sorted(map(repr, effects)))}."
        )


def _cond_dce(used: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    branches: Branches = eqn.params["branches"]
    if not any(used) and not _effects_of(branches):
        return [False] * len(eqn.invars), None
    outs, nothing = tuple(used), (False,) * (len(eqn.invars) - 1)
    needed = _union([trim(b, outs, nothing)[1] for b in branches])
    smaller = tuple([trim(b, outs, needed)[0] for b in branches])
    used_in = [True, *needed]
    new = eqn.replace(
        invars=pick(eqn.invars, used_in),
        outvars=pick(eqn.outvars, used),
        params={"branches": smaller},
        effects=_effects_of(smaller),
    )
    return used_in, new


def _cond_hlo(b: Any, index: Any, *operands: Any, branches: Branches) -> list[Any]:
    # StableHLO takes the last branch for any index out of range, the lower side included.
    last = b.constant(len(branches) - 1, INT32)
    chosen = b.clamp(b.constant(0, INT32), index, last)

    def region(i: int) -> Any:
        return lambda b: b.inline(branches[i], *operands, part=f"cond/branch_{i}_fun")

    return b.case(chosen, [region(i) for i in range(len(branches))])


def _cond_kernel(k: Any, index: Any, *operands: Any, branches: Branches) -> list[Any]:
    def region(branch: ClosedJaxpr) -> Any:
        return lambda k: k.inline(branch, *operands)

    return k.case(index, [region(branch) for branch in branches])


def _effects_of(branches: Branches) -> Any:
    return no_effects.union(*[b.jaxpr.effects for b in branches])


cond = Op(
    name="cond",
    kind=CONTROL,
    type=_cond_type,
    impl=_cond_impl,
    jvp=_cond_jvp,
    transpose=_cond_transpose,
    batch=_cond_batch,
    shard=by_kind,
    hlo=_cond_hlo,
    kernel=_cond_kernel,
    higher=HigherOrder(
        linearize=_cond_linearize, dce=_cond_dce, mixes=_cond_mixes, in_place=True
    ),
    multiple=True,
    effects=lambda params: _effects_of(params["branches"]),
)
