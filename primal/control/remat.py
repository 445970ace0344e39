"""remat: a program whose inner values are computed again by derivatives instead of being kept.

Differentiation splits the program in two. The known half computes the outputs and what the policy
saves; the other half, an op of its own with `differentiated`, takes the inputs, what was saved and
the tangents (after transposition: cotangents), and computes the rest again. Before an engine sees
that half, its operands pass an `optimization_barrier` (`prevent_cse`), so that no compiler notices
that it repeats what the first half did, and so that it starts when its cotangents are there.

A policy is asked, per equation of the known half, whether its results may be kept:
`policy(op, *avals, **params)` -> bool, `Saveable`, `Recompute` or `Offloadable`. Programs that were
called are asked about equation by equation; so are the bodies of scans, whose kept values are
stacked, and the branches of conds, which share the places of what they keep.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.control.cond import padded, shared_slots
from primal.control.programs import Mask, check_operands, pick, split, trim
from primal.ir.avals import Aval
from primal.ir.effects import is_io
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.op import CONTROL, Expand, HigherOrder, Op, by_kind
from primal.ir.state import ambient
from primal.ir.trace import ZERO, Literal
from primal.ops.barrier import optimization_barrier
from primal.ops.shape import moveaxis
from primal.ops.types import is_linear
from primal.transforms.batch import batch_jaxpr
from primal.transforms.dce import dce_jaxpr
from primal.transforms.jvp import jvp_jaxpr
from primal.transforms.linearize import linearize_jaxpr
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.transpose import linear_outputs, transpose_jaxpr

Policy = Callable[..., Any]


# Answers of policies beside True and False.


class Saveable:
    """The results of the equation may be kept."""

    def __repr__(self) -> str:
        return "Saveable"


class Recompute:
    """The results of the equation are to be computed again."""

    def __repr__(self) -> str:
        return "Recompute"


@structure
class Offloadable:
    """The results may be kept in memory of the kind `dst`.

    Every device here has one memory for arrays, so they are kept where they are.
    """

    src: str
    dst: str


def keeps(answer: Any) -> bool:
    """Whether what a policy answered means that results may be kept; TypeError for no answer."""
    if answer is Saveable or isinstance(answer, Saveable | Offloadable):
        return True
    if answer is Recompute or isinstance(answer, Recompute):
        return False
    if not isinstance(answer, bool | np.bool_):
        raise TypeError(
            "[checkpoint] expected a policy to return a bool, Saveable, Recompute or "
            f"Offloadable(src, dst), got {answer!r} of {type(answer)}."
        )
    return bool(answer)


def asked(policy: Policy, eqn: Eqn) -> Any:
    """What a policy answers for an equation."""
    return policy(eqn.op, *[v.aval for v in eqn.invars], **eqn.params)


# Rules.


def _remat_type(*avals: Aval, jaxpr: ClosedJaxpr, **params: Any) -> tuple[Aval, ...]:
    check_operands("checkpoint", "operand", avals, jaxpr.in_avals)
    return tuple(jaxpr.out_avals)


def _remat_impl(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return run_numpy(jaxpr.jaxpr, jaxpr.consts, args)


def _widened(prevent_cse: bool | Mask, more: int) -> bool | Mask:
    """`prevent_cse` of a program that takes further operands, all of which are to be barred."""
    return (*prevent_cse, *[True] * more) if isinstance(prevent_cse, tuple) else prevent_cse


def _remat_jvp(
    primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, prevent_cse: bool | Mask, **params: Any
) -> Any:
    nonzero = tuple([t is not ZERO for t in tangents])
    pushed, mask = jvp_jaxpr(jaxpr, nonzero)
    given = pick(tangents, nonzero)
    prevent_cse = _widened(prevent_cse, len(given))
    results = remat(*primals, *given, jaxpr=pushed, prevent_cse=prevent_cse, **params)
    moving = iter(results[len(mask) :])
    return results[: len(mask)], [next(moving) if m else ZERO for m in mask]


@structure
class _Plan:
    """A program split for linearisation.

    `known`: inputs -> (outputs, saved). `linear`: (inputs marked in `used`, saved, tangents of the
    active inputs) -> tangents of the outputs marked in `out_active`.
    """

    known: ClosedJaxpr
    linear: ClosedJaxpr
    used: Mask
    out_active: Mask


@memo_on_jaxpr
def _plan(closed: ClosedJaxpr, active: Mask, policy: Policy | None) -> _Plan:
    halves = linearize_jaxpr(closed, active)
    known = halves.known if policy is None else inline_calls(halves.known)
    body, pushed = known.jaxpr, halves.linear.jaxpr
    count = len(halves.out_active)
    outs, residuals = split(body.outvars, count)
    given, kept, tangents = split(pushed.invars, len(halves.forwarded), halves.num_residuals)
    forwarded = [body.invars[i] for i in halves.forwarded]
    names: dict[Any, Any] = dict(zip([*given, *kept], [*forwarded, *residuals], strict=True))
    wanted = {v for v in residuals if type(v) is not Literal}
    first, again = body.eqns, body.eqns
    saved: list[Var] = []
    if policy is not None:
        first, again, saved = _divide(body.eqns, wanted, policy)
    both = Jaxpr(
        [*body.constvars, *pushed.constvars],
        [*body.invars, *saved, *tangents],
        [names.get(v, v) if type(v) is not Literal else v for v in pushed.outvars],
        [*again, *[_renamed(e, names) for e in pushed.eqns]],
    )
    num_in = len(body.invars)
    keep = (*[False] * num_in, *[True] * (len(saved) + len(tangents)))
    linear, used = trim(
        ClosedJaxpr(both, [*known.consts, *halves.linear.consts]), (True,) * len(both.outvars), keep
    )
    values = ClosedJaxpr(
        body.replace(outvars=[*outs, *saved], eqns=first, effects=None), known.consts
    )
    values, _ = trim(values, (True,) * (count + len(saved)), (True,) * num_in)
    return _Plan(values, linear, used[:num_in], halves.out_active)


def _renamed(eqn: Eqn, names: dict[Any, Any]) -> Eqn:
    return eqn.replace(
        invars=[v if type(v) is Literal else names.get(v, v) for v in eqn.invars]
    )


def _divide(
    eqns: Sequence[Eqn], wanted: set[Any], policy: Policy
) -> tuple[list[Eqn], list[Eqn], list[Var]]:
    """(equations of the known half, those run again, what is saved between the two).

    Backwards from the `wanted` values: what the policy saves needs nothing, anything else needs
    the operands of its equation.
    """
    wanted = set(wanted)
    first: list[Eqn] = []
    again: list[Eqn] = []
    saved: list[Var] = []
    made = {v: eqn for eqn in eqns for v in eqn.outvars}

    def done(eqn: Eqn) -> bool:
        """Whether the policy keeps an effect and the policy keeps something that it reads.

        Then it does not happen again: nothing would be computed for it alone. What it reads of
        the inputs, or is computed again by the policy's own word, it says again.
        """
        read = [made[v] for v in eqn.invars if type(v) is not Literal and v in made]
        return keeps(asked(policy, eqn)) and any(keeps(asked(policy, e)) for e in read)

    for eqn in reversed(eqns):
        mine = [v for v in eqn.outvars if v in wanted]
        if mine and keeps(asked(policy, eqn)):
            saved = [*mine, *saved]
        elif mine or eqn.effects and not done(eqn):
            # An effect that nobody needs happens again too, as it would without a policy.
            splitter = _splitters.get(eqn.op.name)
            parts = splitter(eqn, [v in wanted for v in eqn.outvars], policy) if splitter else None
            if parts is not None:
                eqn, repeat, stacked = parts
                saved = [*stacked, *saved]
            else:
                repeat = eqn
            again.append(repeat)
            wanted.update(v for v in repeat.invars if type(v) is not Literal)
        first.append(eqn)
    first.reverse()
    again.reverse()
    return first, again, saved


def _split_scan(
    eqn: Eqn, used: Sequence[bool], policy: Policy
) -> tuple[Eqn, Eqn, list[Var]] | None:
    """A scan that stacks what the policy saves of each step, and one that starts from that."""
    params = eqn.params
    closed = inline_calls(params["jaxpr"])
    body = closed.jaxpr
    num_carry = params["num_carry"]
    outs = [*body.outvars[:num_carry], *pick(body.outvars[num_carry:], used[num_carry:])]
    wanted = {v for v in outs if type(v) is not Literal}
    first, again, saved = _divide(body.eqns, wanted, policy)
    if not saved:
        return None
    length = params["length"]
    stacks = [Var(Aval((length, *v.aval.shape), v.aval.dtype)) for v in saved]
    known = ClosedJaxpr(
        body.replace(outvars=[*body.outvars, *saved], eqns=first, effects=None), closed.consts
    )
    rest = ClosedJaxpr(
        body.replace(invars=[*body.invars, *saved], eqns=again, effects=None), closed.consts
    )
    once = eqn.replace(
        outvars=[*eqn.outvars, *stacks],
        params={**params, "jaxpr": known},
        effects=known.jaxpr.effects,
    )
    repeat = eqn.replace(
        invars=[*eqn.invars, *stacks],
        params={**params, "jaxpr": rest},
        effects=rest.jaxpr.effects,
    )
    # What the first loop computed is no longer carried through the second.
    assert eqn.op.higher is not None
    repeat = eqn.op.higher.dce(list(used), repeat)[1] or repeat
    return once, repeat, [v for v in stacks if v in repeat.invars]


def _split_cond(
    eqn: Eqn, used: Sequence[bool], policy: Policy
) -> tuple[Eqn, Eqn, list[Var]] | None:
    """A cond that puts out what the policy saves of the branch that ran, and one that takes it."""
    branches = [inline_calls(b) for b in eqn.params["branches"]]
    parts = []
    for b in branches:
        wanted = {v for v in pick(b.jaxpr.outvars, used) if type(v) is not Literal}
        parts.append(_divide(b.eqns, wanted, policy))
    if not any(saved for _, _, saved in parts):
        return None
    slots, placed = shared_slots([[v.aval for v in saved] for _, _, saved in parts])
    known, rest = [], []
    for b, (first, again, saved), places in zip(branches, parts, placed, strict=True):
        body = b.jaxpr
        outvars = [*body.outvars, *saved]
        with_saved = body.replace(outvars=outvars, eqns=first, effects=None)
        known.append(padded(ClosedJaxpr(with_saved, b.consts), len(eqn.outvars), slots, places))
        at = dict(zip(places, saved, strict=True))
        invars = [*body.invars, *[at.get(k) or Var(a) for k, a in enumerate(slots)]]
        rest.append(
            ClosedJaxpr(body.replace(invars=invars, eqns=again, effects=None), b.consts)
        )
    values = [Var(a) for a in slots]
    once = eqn.replace(
        outvars=[*eqn.outvars, *values], params={**eqn.params, "branches": tuple(known)}
    )
    repeat = eqn.replace(
        invars=[*eqn.invars, *values], params={**eqn.params, "branches": tuple(rest)}
    )
    assert eqn.op.higher is not None
    repeat = eqn.op.higher.dce(list(used), repeat)[1] or repeat
    return once, repeat, [v for v in values if v in repeat.invars]


_splitters: dict[str, Callable[..., Any]] = {"scan": _split_scan, "cond": _split_cond}


@memo_on_jaxpr
def inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the equations of the programs it calls in place of the calls."""
    if not any(e.op.kind.call for e in closed.jaxpr.eqns):
        return closed
    consts = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    eqns: list[Eqn] = []

    def splice(jaxpr: Jaxpr, env: dict[Any, Any], inner_program: bool) -> None:
        for eqn in jaxpr.eqns:
            eqn = _renamed(eqn, env)
            if not eqn.op.kind.call:
                # A program may be called twice: its variables are made anew.
                if inner_program:
                    fresh = [Var(v.aval) for v in eqn.outvars]
                    env.update(zip(eqn.outvars, fresh, strict=True))
                    eqn = eqn.replace(outvars=fresh)
                eqns.append(eqn)
                continue
            called: ClosedJaxpr = eqn.params["jaxpr"]
            inner: dict[Any, Any] = dict(zip(called.jaxpr.invars, eqn.invars, strict=True))
            for v, c in zip(called.jaxpr.constvars, called.consts, strict=True):
                inner[v] = Var(v.aval)
                consts.append((inner[v], c))
            splice(called.jaxpr, inner, True)
            for outer, out in zip(eqn.outvars, called.jaxpr.outvars, strict=True):
                env[outer] = out if type(out) is Literal else inner[out]

    env: dict[Any, Any] = {}
    splice(closed.jaxpr, env, False)
    flat = closed.jaxpr.replace(
        constvars=[v for v, _ in consts],
        outvars=[v if type(v) is Literal else env.get(v, v) for v in closed.jaxpr.outvars],
        eqns=eqns,
    )
    return ClosedJaxpr(flat, [c for _, c in consts])


def _remat_linearize(
    trace: Any,
    primals: Any,
    tangents: Any,
    *,
    jaxpr: ClosedJaxpr,
    prevent_cse: bool | Mask,
    differentiated: bool,
    policy: Policy | None,
) -> Any:
    if any(is_io(e) for e in jaxpr.effects):
        raise NotImplementedError(
            "[checkpoint] expected a function without IO effects to differentiate, as what it does "
            "would be done again with what it computes: Effects not supported in partial-eval of "
            f"`checkpoint`/`remat`; got {', '.join(sorted(map(repr, jaxpr.effects)))}. Do the IO "
            "outside of the function."
        )
    active = tuple([t is not ZERO for t in tangents])
    plan = _plan(jaxpr, active, policy)
    count = len(plan.out_active)
    with ambient(trace.parent):
        results = remat(
            *primals,
            jaxpr=plan.known,
            prevent_cse=prevent_cse,
            differentiated=differentiated,
            policy=policy,
        )
    if not any(plan.out_active):
        return results[:count], [ZERO] * count
    later = [*results[count:], *pick(tangents, active)]
    if isinstance(prevent_cse, tuple):
        prevent_cse = _widened(tuple(pick(prevent_cse, plan.used)), len(later))
    moving = iter(
        remat(
            *pick(primals, plan.used),
            *later,
            jaxpr=plan.linear,
            prevent_cse=prevent_cse,
            differentiated=True,
            policy=policy,
        )
    )
    return results[:count], [next(moving) if a else ZERO for a in plan.out_active]


def _remat_transpose(
    cts: Any, *args: Any, jaxpr: ClosedJaxpr, prevent_cse: bool | Mask, **params: Any
) -> Any:
    linear = tuple([is_linear(a) for a in args])
    given = tuple([c is not ZERO for c in cts])
    backward = transpose_jaxpr(jaxpr, linear, given)
    known = [not m for m in linear]
    operands = [*pick(args, known), *pick(cts, given)]
    if isinstance(prevent_cse, tuple):
        prevent_cse = _widened(tuple(pick(prevent_cse, known)), sum(given))
    results = iter(remat(*operands, jaxpr=backward, prevent_cse=prevent_cse, **params))
    return [next(results) if m else None for m in linear]


def _remat_batch(axis: Any, args: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    moved = [a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    program, out_batched = batch_jaxpr(jaxpr, axis, tuple([d is not None for d in dims]))
    outs = remat(*moved, jaxpr=program, **params)
    return outs, [0 if b else None for b in out_batched]


def _remat_dce(used: list[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    closed: ClosedJaxpr = eqn.params["jaxpr"]
    smaller, used_in = dce_jaxpr(closed, tuple(used))
    if not any(used) and not smaller.jaxpr.effects:
        return [False] * len(eqn.invars), None
    params = {**eqn.params, "jaxpr": smaller}
    if isinstance(params.get("prevent_cse"), tuple):
        params["prevent_cse"] = tuple(pick(params["prevent_cse"], used_in))
    new = eqn.replace(
        invars=pick(eqn.invars, used_in),
        outvars=pick(eqn.outvars, used),
        params=params,
        effects=smaller.jaxpr.effects,
    )
    return list(used_in), new


def _remat_expand(
    *args: Any, jaxpr: ClosedJaxpr, prevent_cse: bool | Mask, differentiated: bool, policy: Any
) -> list[Any]:
    if differentiated and prevent_cse and args:
        mask = prevent_cse if isinstance(prevent_cse, tuple) else (True,) * len(args)
        barred = iter(optimization_barrier(*pick(args, mask)) if any(mask) else ())
        args = tuple([next(barred) if m else a for a, m in zip(args, mask, strict=True)])
    return eval_closed(jaxpr, *args)


def _remat_expand_hlo(*args: Any, **params: Any) -> list[Any]:
    if params["differentiated"] and params["prevent_cse"] is True and args:
        return list(recomputed(*args, jaxpr=params["jaxpr"]))
    return _remat_expand(*args, **params)


remat: Op = Op(
    name="remat2",
    kind=CONTROL,
    type=_remat_type,
    impl=_remat_impl,
    jvp=_remat_jvp,
    transpose=_remat_transpose,
    batch=_remat_batch,
    shard=by_kind,
    hlo=Expand(_remat_expand_hlo),
    kernel=Expand(_remat_expand),
    higher=HigherOrder(
        linearize=_remat_linearize,
        dce=_remat_dce,
        mixes=lambda linear, *, jaxpr, **params: linear_outputs(jaxpr, tuple(linear)),
    ),
    multiple=True,
    effects=lambda params: params["jaxpr"].effects,
)


# recomputed: the half that computes again, as XLA gets it. Everything but its code is remat's.


def _recomputed_hlo(b: Any, *args: Any, jaxpr: ClosedJaxpr) -> list[Any]:
    barred = b.optimization_barrier(args)
    part = "checkpoint/rematted_computation"
    known = next((x for x in barred if x.dtype.kind == "f" and x.aval.size), None)
    if b.platform != "cpu" or known is None:
        return list(b.inline(jaxpr, *barred, part=part))
    # XLA's pipeline for CPUs drops barriers before it merges equal expressions. It does not merge
    # what is in a branch with what is not, and does not see that no number is less than itself.
    # Rejected: a loop of one turn, out of which everything is moved.
    first = b.reshape(b.slice(known, (0,) * known.ndim, (1,) * known.ndim), ())
    outs = b.if_(
        b.compare(first, first, "LT"),
        lambda b: [b.full(a.shape, 0, a.dtype) for a in jaxpr.out_avals],
        lambda b: b.inline(jaxpr, *barred, part=part),
    )
    return list(outs)


_as_remat: dict[str, Any] = {"prevent_cse": True, "differentiated": True, "policy": None}

recomputed: Op = Op(
    name="recomputed",
    kind=CONTROL,
    type=_remat_type,
    impl=_remat_impl,
    jvp=functools.partial(_remat_jvp, **_as_remat),
    transpose=functools.partial(_remat_transpose, **_as_remat),
    batch=functools.partial(_remat_batch, **_as_remat),
    shard=by_kind,
    hlo=_recomputed_hlo,
    kernel=Expand(functools.partial(_remat_expand, **_as_remat)),
    higher=HigherOrder(
        linearize=functools.partial(_remat_linearize, **_as_remat), dce=_remat_dce
    ),
    multiple=True,
    effects=lambda params: params["jaxpr"].effects,
)
