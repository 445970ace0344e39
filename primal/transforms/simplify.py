"""What happens to a program before an engine sees it.

One walk inlines calls, rewrites ops the engine has no rule for (`Expand`), shares equal equations
and folds scalars that are known; a second drops what nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.evaluate import quietly
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.op import LINALG, SHAPE, Expand, Splice
from primal.ir.trace import Literal
from primal.ops.choose import select_n
from primal.ops.spread import broadcast_in_dim
from primal.transforms.dce import dce_eqns
from primal.transforms.invariants import part, unchanging
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage


@memo_on_jaxpr
def simplify(closed: ClosedJaxpr, rules: str) -> ClosedJaxpr:
    """The program an engine compiles, with the constants of carried programs as its own.

    `rules` names the engine's field of the op record: 'hlo', 'kernel' or 'impl'.
    """
    walked = _walked(closed, rules, frozenset())
    # XLA's compiler does that itself.
    shared = _shared(walked.jaxpr.eqns) if rules == "kernel" else None
    return _walked(walked, rules, shared) if shared else walked


def _shared(eqns: Sequence[Eqn]) -> frozenset[Any]:
    """What several ops read that come apart, or one, and the op with which its parts begin."""
    solved: dict[Any, tuple[Eqn, Callable[..., Any]]] = {}
    found = set()
    for eqn in eqns:
        rule = eqn.op.apart
        if rule is not None:
            v = eqn.invars[0]
            if v in solved:
                found.add(v)
            solved[v] = eqn, rule
    for eqn in eqns if solved else ():
        if len(eqn.invars) == 1 and eqn.op.kind is LINALG and eqn.invars[0] in solved:
            reader, rule = solved[eqn.invars[0]]
            parts = stage(_listed(rule, reader), [v.aval for v in reader.invars], reader.op.name)
            if parts.eqns[0].op is eqn.op:
                found.add(eqn.invars[0])
    return frozenset(found)


def _walked(closed: ClosedJaxpr, rules: str, shared: frozenset[Any]) -> ClosedJaxpr:
    """The program of one walk. `shared`: what many ops read that come `apart`."""
    jaxpr = closed.jaxpr
    walk = _Walk(rules, shared)
    env: dict[Any, Any] = {v: v for v in jaxpr.invars}
    for v, c in zip(jaxpr.constvars, closed.consts, strict=True):
        env[v] = walk.constant(v, c)
    walk.splice(jaxpr, env)
    outvars = [v if type(v) is Literal else env[v] for v in jaxpr.outvars]
    flat = Jaxpr([], jaxpr.invars, outvars, walk.eqns, None, jaxpr.debug)
    eqns, needed = dce_eqns(flat, outvars)
    consts = [(v, c) for v, c in walk.consts.values() if v in needed]
    return ClosedJaxpr(
        flat.replace(constvars=[v for v, _ in consts], eqns=eqns), [c for _, c in consts]
    )


class _Walk:
    """The flattened program being written."""

    def __init__(self, rules: str, shared: frozenset[Any]) -> None:
        self.rules = rules
        self.shared = shared
        self.eqns: list[Eqn] = []
        self.seen: dict[Any, Any] = {}
        self.consts: dict[int, tuple[Var, Any]] = {}
        self.made: dict[Var, Eqn] = {}
        self.filled: dict[Var, Literal] = {}
        """Arrays of one known number, and the number."""

    def constant(self, var: Var, value: Any) -> Any:
        """The variable of a constant; one per value."""
        return self.consts.setdefault(id(value), (var, value))[0]

    def splice(self, jaxpr: Jaxpr, env: dict[Any, Any]) -> None:
        """Append the equations of a program whose inputs are in `env`.

        Results get fresh variables: a program called twice would bind its own twice.
        """
        rules, seen, append = self.rules, self.seen, self.eqns.append
        for eqn in jaxpr.eqns:
            op = eqn.op
            invars = [v if type(v) is Literal else env[v] for v in eqn.invars]
            # What XLA splices, the reference splices too: its rule would only call the program.
            spliced = op.kind.call or (rules == "impl" and op.higher is not None)
            rule = op.hlo if spliced else getattr(op, rules)
            if rule.__class__ is Splice:
                self.inline(eqn.params[rule.param], invars, eqn, env)
                continue
            if op.apart is not None and eqn.invars[0] in self.shared:
                rule = Expand(op.apart)
            elif op.hollow is not None and _is_hollow(eqn, invars):
                rule = Expand(op.hollow)
            if rule.__class__ is Expand:
                avals = [v.aval for v in invars]
                self.inline(stage(_listed(rule.rule, eqn), avals, op.name), invars, eqn, env)
                continue
            params = eqn.params
            if op.higher is not None:
                params = {k: self.simplified(v) for k, v in params.items()}
                # XLA's compiler does that itself.
                if rules == "kernel" and op.higher.hoist is not None:
                    invars, params = op.higher.hoist(self.hoisted, invars, params)
            if op is select_n and len(set(map(id, invars[1:]))) == 1:
                if invars[1].aval.shape == eqn.outvars[0].aval.shape:
                    env[eqn.outvars[0]] = invars[1]  # among equals
                    continue
            if not eqn.effects and not op.kind.host:
                key = (
                    op,
                    *[(v.aval, v.val.tobytes()) if type(v) is Literal else v for v in invars],
                    *params.items(),
                )
                found = seen.get(key)
                if found is not None:
                    env.update(zip(eqn.outvars, found, strict=True))
                    continue
                if rules == "kernel" and self.filled and (op.kind.elementwise or _is_map(eqn)):
                    eqn, invars = self.once(eqn, invars)
                    op, params = eqn.op, eqn.params
                if not op.multiple and not eqn.outvars[0].aval.shape:
                    folded = _fold(eqn, invars, self.made)
                    if folded is not None:
                        env[eqn.outvars[0]] = folded
                        continue
            else:
                key = None
            if op.multiple:
                outvars: Any = [Var(v.aval) for v in eqn.outvars]
                env.update(zip(eqn.outvars, outvars, strict=True))
            else:
                outvars = (Var(eqn.outvars[0].aval),)
                env[eqn.outvars[0]] = outvars[0]
            if key is not None:
                seen[key] = outvars
            # Less than before where a call was spliced whose rule alone has an effect.
            effects = op.effects(params) if eqn.effects and op.effects else eqn.effects
            flat = Eqn(op, invars, outvars, params, eqn.source, effects)
            append(flat)
            if op is broadcast_in_dim and type(invars[0]) is Literal:
                self.filled[outvars[0]] = invars[0]
            if not invars:
                for v in outvars:
                    self.made[v] = flat

    def once(self, eqn: Eqn, invars: list[Any]) -> tuple[Eqn, list[Any]]:
        """What computes the same number for every element, as an array of that number."""
        aval = eqn.outvars[0].aval
        known = [v for v in invars if type(v) is not Literal]
        if not aval.shape or not known or not all(v in self.filled for v in known):
            return eqn, invars
        numbers = [v if type(v) is Literal else self.filled[v] for v in invars]
        if eqn.op.kind.elementwise:
            value = quietly(eqn.op.impl, [v.val for v in numbers], eqn.params)
            number = Literal(np.asarray(value)[()], Aval((), aval.dtype, aval.weak_type))
        else:
            number = numbers[0]
        params = {"shape": aval.shape, "broadcast_dimensions": ()}
        return Eqn(broadcast_in_dim, [number], eqn.outvars, params, eqn.source), [number]

    def simplified(self, value: Any) -> Any:
        """A parameter with the programs in it simplified: loops and branches carry some."""
        if isinstance(value, ClosedJaxpr):
            return simplify(value, self.rules)
        if value.__class__ is tuple:
            return tuple([self.simplified(v) for v in value])
        return value

    def hoisted(self, body: ClosedJaxpr, known: list[Any]) -> tuple[ClosedJaxpr, list[Any]]:
        """The body of a loop without what depends on known inputs alone, appended here."""
        still = [v is not None for v in known]
        same = unchanging(body.jaxpr, still)
        shared = [e.invars[0] for e in body.eqns if e.op.apart is not None and e.invars[0] in same]
        if shared:
            body = _walked(body, self.rules, frozenset(shared))
        moved, results, rest = part(body, still)
        env = dict(zip(body.jaxpr.invars, known, strict=True))
        for v, c in zip(body.jaxpr.constvars, body.consts, strict=True):
            env[v] = self.constant(v, c)
        self.splice(body.jaxpr.replace(eqns=moved), env)
        return rest, [env[v] for v in results]

    def inline(self, closed: ClosedJaxpr, invars: list[Any], eqn: Eqn, env: dict[Any, Any]) -> None:
        """Append the equations of a carried program in place of the equation that carries it."""
        body = closed.jaxpr
        inner: dict[Any, Any] = dict(zip(body.invars, invars, strict=True))
        for v, c in zip(body.constvars, closed.consts, strict=True):
            inner[v] = self.constant(v, c)
        self.splice(body, inner)
        for outer, out in zip(eqn.outvars, body.outvars, strict=True):
            env[outer] = out if type(out) is Literal else inner[out]


def _is_map(eqn: Eqn) -> bool:
    """Whether every element of the result is one of the only operand."""
    moved = eqn.op.kind is SHAPE or eqn.op is broadcast_in_dim
    return moved and len(eqn.invars) == 1 and not eqn.op.multiple


def _is_hollow(eqn: Eqn, invars: list[Any]) -> bool:
    return all(v.aval.size for v in eqn.outvars) and not all(v.aval.size for v in invars)


def _listed(rule: Callable[..., Any], eqn: Eqn) -> Callable[..., list[Any]]:
    def run(*args: Any) -> list[Any]:
        out = rule(*args, **eqn.params)
        return list(out) if eqn.op.multiple else [out]

    return run


def _fold(eqn: Eqn, invars: list[Any], made: dict[Var, Eqn]) -> Literal | None:
    """A scalar equation of literals, or one whose op knows a closed form, as a literal."""
    if not invars or not eqn.op.folds:
        return None
    aval = eqn.outvars[0].aval
    if any(type(v) is not Literal for v in invars):
        if eqn.op.closed_form is None:
            return None
        makers = [None if type(v) is Literal else made.get(v) for v in invars]
        value = eqn.op.closed_form(*makers, **eqn.params)
        if value is None:
            return None
    else:
        value = quietly(eqn.op.impl, [v.val for v in invars], eqn.params)
    return Literal(np.asarray(value)[()], aval)


def program_key(closed: ClosedJaxpr) -> tuple[Any, ...]:
    """The content of a program up to the names of its variables; equal programs, equal keys."""
    jaxpr = closed.jaxpr
    numbers: dict[Any, int] = {}
    for v in jaxpr.constvars:
        numbers[v] = len(numbers)
    for v in jaxpr.invars:
        numbers[v] = len(numbers)

    def atom(v: Any) -> Any:
        return (v.aval, v.val.tobytes()) if type(v) is Literal else numbers[v]

    eqns = []
    for eqn in jaxpr.eqns:
        invars = tuple([atom(v) for v in eqn.invars])
        params = tuple([(k, _param_key(v)) for k, v in eqn.params.items()]) if eqn.params else ()
        for v in eqn.outvars:
            numbers[v] = len(numbers)
        eqns.append((eqn.op, invars, params))
    return (
        tuple([v.aval for v in jaxpr.constvars]),
        tuple([v.aval for v in jaxpr.invars]),
        tuple(eqns),
        tuple([atom(v) for v in jaxpr.outvars]),
    )


class Same:
    """A value as a key by its identity; the key keeps it alive, so that its id stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value


def _param_key(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return (program_key(value), tuple([Same(c) for c in value.consts]))
    if isinstance(value, tuple):
        return tuple([_param_key(v) for v in value])
    # 1 == 1.0 == True, and -0.0 == 0.0, but they are different programs.
    if isinstance(value, float):
        return (float, value.hex())
    return (value.__class__, value)
