"""Dead code: equations that nobody reads and that have no effect."""

from __future__ import annotations

from typing import Any

from primal.ir.effects import keeps_alive
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from primal.ir.op import Never
from primal.ir.trace import Literal
from primal.transforms.memo import memo_on_jaxpr


def dce_eqns(jaxpr: Jaxpr, outvars: list[Any]) -> tuple[list[Eqn], set[Any]]:
    """The equations that `outvars` need, carried programs trimmed too, and what they read."""
    needed = {v for v in outvars if type(v) is not Literal}
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in needed for v in eqn.outvars]
        alive = any(used)
        if not alive and not (eqn.effects and keeps_alive(eqn.effects)):
            continue
        if eqn.op.higher is not None and not all(used):
            rule = eqn.op.higher.dce
            if not isinstance(rule, Never):
                _, smaller = rule(used, eqn)
                if smaller is None:
                    continue
                eqn = smaller
        kept.append(eqn)
        for v in eqn.invars:
            if type(v) is not Literal:
                needed.add(v)
    kept.reverse()
    return kept, needed


@memo_on_jaxpr
def dce_jaxpr(
    closed: ClosedJaxpr, used_outputs: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program of the used outputs, without unused inputs; and which inputs it kept."""
    jaxpr = closed.jaxpr
    outvars = [v for v, u in zip(jaxpr.outvars, used_outputs, strict=True) if u]
    eqns, needed = dce_eqns(jaxpr, outvars)
    used_in = tuple([v in needed for v in jaxpr.invars])
    invars = [v for v, u in zip(jaxpr.invars, used_in, strict=True) if u]
    consts = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in needed]
    smaller = jaxpr.replace(
        constvars=[v for v, _ in consts], invars=invars, outvars=outvars, eqns=eqns, effects=None
    )
    return ClosedJaxpr(smaller, [c for _, c in consts]), used_in
