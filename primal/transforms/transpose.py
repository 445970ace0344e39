"""Transposing linear programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.source import transposed
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_jaxpr
from primal.ir.jaxpr import ClosedJaxpr, Jaxpr, Var, subjaxprs
from primal.ir.op import Op
from primal.ir.state import state
from primal.ir.trace import ZERO, Literal, Undefined
from primal.ops.spread import add_any
from primal.transforms.dce import dce_eqns
from primal.transforms.jvp import instantiate
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage


def split_linear(jaxpr: Jaxpr, linear: Sequence[bool]) -> tuple[list[Any], list[Any], set[Any]]:
    """Equations that depend on no linear input, those that do, and the linear variables.

    An equation that computes values beside tangents, as the jvp of a nested program does, is one
    of either kind.
    """
    moving = {v for v, is_linear in zip(jaxpr.invars, linear, strict=True) if is_linear}
    still, active = [], []
    for eqn in jaxpr.eqns:
        mask = [type(v) is not Literal and v in moving for v in eqn.invars]
        if not any(mask):
            still.append(eqn)
            continue
        higher = eqn.op.higher
        if higher is not None and higher.mixes is not None and not eqn.effects:
            out = higher.mixes(mask, **eqn.params)
            if not all(out):
                still.append(higher.dce([not m for m in out], eqn)[1])
                if not any(out):
                    continue
                ours = {v for v, m in zip(eqn.outvars, out, strict=True) if m}
                eqn = higher.dce(out, eqn)[1]
                # A loop gives all that it carries: values once more, under other names.
                eqn = eqn.replace(outvars=[v if v in ours else Var(v.aval) for v in eqn.outvars])
        active.append(eqn)
        moving.update(eqn.outvars)
    return still, active, moving


@memo_on_jaxpr
def linear_outputs(closed: ClosedJaxpr, linear: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which outputs depend on the linear inputs."""
    _, _, moving = split_linear(closed.jaxpr, linear)
    return tuple([type(v) is not Literal and v in moving for v in closed.jaxpr.outvars])


@memo_on_jaxpr
def _holds_rules(closed: ClosedJaxpr) -> bool:
    return any(has_rule(e.op, e.params) for e in closed.jaxpr.eqns)


def has_rule(op: Op, params: dict[str, Any]) -> bool:
    """Whether a user's rule transposes this operation, or one inside it.

    Such a rule may return more than a linear map does (new statistics in the place of a gradient,
    say): it runs where cotangents are zero as well.
    """
    higher = op.higher
    return higher is not None and (
        higher.by_rule or any(_holds_rules(c) for c in subjaxprs(params))
    )


def backward_pass(
    closed: ClosedJaxpr,
    linear: Sequence[bool],
    args: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Cᵀ·ct where C is the program as a function of its `linear` inputs.

    Operands that are not linear are given in `args` (anything at linear places). Returns a
    cotangent or ZERO for each linear input, in order. Equations that lead to none of the `wanted`
    inputs are not transposed; what is returned for the others means nothing.
    """
    jaxpr = closed.jaxpr
    still, active, moving = split_linear(jaxpr, linear)
    if wanted is not None:
        active = split_linear(jaxpr, wanted)[1]
    outs = sorted(
        {v for e in active for v in e.invars if type(v) is not Literal and v not in moving},
        key=id,
    )
    bound = {*jaxpr.constvars, *jaxpr.invars}
    computed = [v for v in outs if v not in bound]
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    known.update(zip(jaxpr.invars, args, strict=True))
    part = Jaxpr(jaxpr.constvars, jaxpr.invars, computed, still)
    known.update(zip(computed, eval_jaxpr(part, closed.consts, args), strict=True))
    found: dict[Any, Any] = {}

    def accumulate(var: Any, ct: Any) -> None:
        have = found.get(var)
        found[var] = ct if have is None else add_any(have, ct)

    for v, ct in zip(jaxpr.outvars, cotangents, strict=True):
        if ct is not ZERO and type(v) is not Literal and v in moving:
            accumulate(v, ct)
    outer = state.location
    try:
        for eqn in reversed(active):
            cts = [found.pop(v, ZERO) for v in eqn.outvars]
            if all(c is ZERO for c in cts):
                if not has_rule(eqn.op, eqn.params):
                    continue
                read = dce_eqns(jaxpr, jaxpr.outvars)[1]
                if not any(v in read for v in eqn.outvars):
                    continue
            state.location = transposed(eqn.source)
            operands = [
                v if type(v) is Literal else Undefined(v.aval) if v in moving else known[v]
                for v in eqn.invars
            ]
            ct = cts if eqn.op.multiple else cts[0]
            results = eqn.op.transpose(ct, *operands, **eqn.params)
            for v, o, c in zip(eqn.invars, operands, results, strict=True):
                if type(o) is Undefined and c is not None and c is not ZERO:
                    accumulate(v, c)
    finally:
        state.location = outer
    return [
        found.get(v, ZERO) for v, is_linear in zip(jaxpr.invars, linear, strict=True) if is_linear
    ]


@memo_on_jaxpr
def transpose_jaxpr(
    closed: ClosedJaxpr, linear: tuple[bool, ...], ct_given: tuple[bool | Aval, ...]
) -> ClosedJaxpr:
    """(non-linear inputs, cotangents where given) -> cotangents of all linear inputs.

    A cotangent that is given is of its output's type, or of the type that stands there.
    """
    in_avals, out_avals = closed.in_avals, closed.out_avals
    plain = [a for a, is_linear in zip(in_avals, linear, strict=True) if not is_linear]
    ct_avals = [
        a.tangent() if given is True else given
        for a, given in zip(out_avals, ct_given, strict=True)
        if given
    ]
    linear_avals = [a for a, is_linear in zip(in_avals, linear, strict=True) if is_linear]

    def transposed(*args: Any) -> list[Any]:
        rest = iter(args[: len(plain)])
        operands = [None if is_linear else next(rest) for is_linear in linear]
        cts = iter(args[len(plain) :])
        cotangents = [next(cts) if given else ZERO for given in ct_given]
        results = backward_pass(closed, linear, operands, cotangents)
        return [instantiate(c, a) for c, a in zip(results, linear_avals, strict=True)]

    return stage(transposed, [*plain, *ct_avals], f"transpose({closed.jaxpr.debug})")
