"""The executable definition of a legal jaxpr."""

from __future__ import annotations

from typing import Any

from primal.base.errors import JaxprTypeError
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, join_effects, subjaxprs
from primal.ir.trace import Literal, aval_of


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check scoping, single assignment, types and effects, in carried programs too.

    1. Every variable is bound once, before it is read.
    2. The avals of an equation's outputs are what the op's type rule gives for its inputs.
    3. The jaxpr's effects are the union of its equations' effects.
    """
    bound: set[Var] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        _bind(v, bound, jaxpr, None)
    for i, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.invars:
            _read(atom, bound, jaxpr, i)
        for sub in subjaxprs(eqn.params):
            check_closed(sub)
        expected = eqn.op.type(*[a.aval for a in eqn.invars], **eqn.params)
        outs = tuple(expected) if eqn.op.multiple else (expected,)
        got = tuple([v.aval for v in eqn.outvars])
        if outs != got:
            raise _error(jaxpr, i, f"expected outputs {outs} by its type rule, got {got}")
        for var in eqn.outvars:
            _bind(var, bound, jaxpr, i)
    for atom in jaxpr.outvars:
        _read(atom, bound, jaxpr, None)
    if jaxpr.effects != join_effects(jaxpr.eqns):
        raise JaxprTypeError(
            f"[jaxpr] expected effects {set(join_effects(jaxpr.eqns))}, got {set(jaxpr.effects)}"
        )


def check_closed(closed: ClosedJaxpr) -> None:
    """`check_jaxpr`, and that constants fit their variables."""
    check_jaxpr(closed.jaxpr)
    if len(closed.consts) != len(closed.jaxpr.constvars):
        raise JaxprTypeError(
            f"[jaxpr] expected {len(closed.jaxpr.constvars)} constants, got {len(closed.consts)}"
        )
    for var, const in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        if aval_of(const).strong() is not var.aval.strong():
            raise JaxprTypeError(
                f"[jaxpr] expected a constant {var.aval!r}, got {aval_of(const)!r}"
            )


def _bind(var: Any, bound: set[Var], jaxpr: Jaxpr, i: int | None) -> None:
    if type(var) is not Var:
        raise _error(jaxpr, i, f"expected a variable, got {var!r}")
    if var in bound:
        raise _error(jaxpr, i, f"expected one binding per variable, got a second one of {var!r}")
    bound.add(var)


def _read(atom: Any, bound: set[Var], jaxpr: Jaxpr, i: int | None) -> None:
    if type(atom) is Literal:
        if atom.aval.shape != ():
            raise _error(jaxpr, i, f"expected scalar literals, got {atom.aval!r}")
    elif type(atom) is not Var:
        raise _error(jaxpr, i, f"expected a variable or literal, got {atom!r}")
    elif atom not in bound:
        raise _error(jaxpr, i, f"expected a variable bound before, got {atom!r}")


def _error(jaxpr: Jaxpr, i: int | None, what: str) -> JaxprTypeError:
    if i is None:
        return JaxprTypeError(f"[jaxpr] {what}\n{jaxpr}")
    near: list[Eqn] = jaxpr.eqns[max(0, i - 3) : i + 4]
    around = Jaxpr([], [], [], near)
    return JaxprTypeError(f"[{jaxpr.eqns[i].op.name}] {what}\nnear equation {i}:\n{around}")
