"""Derivatives of single operations outside of programs, kept as Python functions.

Most of the time of an eager gradient goes into rules: what they decide by avals, the tangents that
they put on the tape, and the transposes of these. For operands of the same avals all of that is the
same, so that it is staged once: a function of the values, for the result and what the backward pass
needs, and one of these and a cotangent. Both call operations one after the other, the same as the
rule does, so that results stay as they are to the last bit.

A memo of whole functions was rejected: outside of programs a function sees values and may do what
it likes with them. Compiled programs were rejected too, as they may differ in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base import caches
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Var
from primal.ir.op import Op
from primal.ir.trace import PYTHON_SCALARS, ZERO, Literal
from primal.transforms.dce import dce_eqns
from primal.transforms.stage import stage
from primal.transforms.transpose import backward_pass

# Operands that are part of the program where they do not move.
NUMBERS = PYTHON_SCALARS | {Literal}
# Staging takes as long as a rule that runs some ten to thirty times.
PATIENCE = 8
ENTRIES = 4096

table: dict[Any, Any] = {}
"""Per operation, avals, literals and parameters: how often it was met, its rule, or None."""
caches.register(table.clear)


def can_be_kept(op: Op) -> bool:
    """Whether an operation is a function of its operands that has one result."""
    kind = op.kind
    special = op.higher is not None or op.multiple or op.effects is not None
    return not (special or kind.call or kind.host or kind.collective)


class KeptRule:
    """The derivative of one operation for operands of given avals.

    `forward(*values)` gives the values that are kept, and the result; `backward(aval)` a function
    of the kept ones and a cotangent of that aval, which gives what goes to the tangents of the
    operands at `sides`: one number of them for each place in which the rule reads a tangent, in
    the order in which the tape adds them up. `linear` is the map of tangents as a program of what
    is kept and the tangents.
    """

    __slots__ = ("forward", "linear", "aval", "sides", "_apart", "_backward")

    multiple = False

    def __init__(
        self, known: ClosedJaxpr, linear: ClosedJaxpr, forwarded: Sequence[int], moving: int
    ) -> None:
        jaxpr = known.jaxpr
        out, *fresh = jaxpr.outvars
        self.forward = _as_function(known, [[*[jaxpr.invars[i] for i in forwarded], *fresh], out])
        self.linear = linear
        self.aval = linear.out_avals[0]
        self._apart, self.sides = _read_once(linear, len(linear.in_avals) - moving)
        self._backward: dict[Aval, Callable[..., Any]] = {}

    def backward(self, aval: Aval) -> Callable[..., Any]:
        """A function (*kept values, cotangent): one cotangent, or ZERO, per side."""
        found = self._backward.get(aval)
        if found is None:
            found = self._backward[aval] = self._transposed(aval)
        return found

    def _transposed(self, aval: Aval) -> Callable[..., Any]:
        avals, reads = self._apart.in_avals, len(self.sides)
        kept = len(avals) - reads
        linear = (False,) * kept + (True,) * reads
        places: list[bool] = []

        def transposed(*args: Any) -> list[Any]:
            found = backward_pass(self._apart, linear, [*args[:-1], *[None] * reads], args[-1:])
            places.extend([c is not ZERO for c in found])
            return [c for c in found if c is not ZERO]

        closed = stage(transposed, [*avals[:kept], aval], "transpose")
        outs = iter(closed.jaxpr.outvars)
        return _as_function(closed, [next(outs) if given else ZERO for given in places])

    def spliced(
        self, constants: Sequence[Any], operands: Sequence[Any], source: Any
    ) -> tuple[list[Eqn], Any]:
        """The equations of the linear map of these atoms, and its result."""
        jaxpr = self.linear.jaxpr
        known: dict[Any, Any] = dict(zip(jaxpr.invars, operands, strict=True))
        known.update(zip(jaxpr.constvars, constants, strict=True))
        eqns = []
        for e in jaxpr.eqns:
            outs = [Var(v.aval) for v in e.outvars]
            invars = [v if type(v) is Literal else known[v] for v in e.invars]
            known.update(zip(e.outvars, outs, strict=True))
            eqns.append(Eqn(e.op, invars, outs, e.params, source, e.effects))
        return eqns, known[jaxpr.outvars[0]]


def _read_once(linear: ClosedJaxpr, kept: int) -> tuple[ClosedJaxpr, list[int]]:
    """The program with an input for each place that reads a tangent, and whose that is."""
    jaxpr = linear.jaxpr
    tangents = {v: i for i, v in enumerate(jaxpr.invars[kept:])}
    eqns, reads, sides = [], [], []
    for eqn in reversed(jaxpr.eqns):
        invars = list(eqn.invars)
        for i, v in enumerate(invars):
            if type(v) is Var and v in tangents:
                invars[i] = Var(v.aval)
                reads.append(invars[i])
                sides.append(tangents[v])
        eqns.append(eqn.replace(invars=invars))
    apart = jaxpr.replace(invars=[*jaxpr.invars[:kept], *reads], eqns=eqns[::-1])
    return ClosedJaxpr(apart, linear.consts), sides


def _as_function(closed: ClosedJaxpr, results: Sequence[Any]) -> Callable[..., Any]:
    """A program as a Python function that calls its operations and returns these variables."""
    jaxpr = closed.jaxpr
    scope: dict[str, Any] = {}
    names: dict[Any, str] = {v: f"a{i}" for i, v in enumerate(jaxpr.invars)}

    def bound(value: Any) -> str:
        name = f"c{len(scope)}"
        scope[name] = value
        return name

    def atom(v: Any) -> str:
        if type(v) is list:
            return f"({''.join([f'{atom(item)}, ' for item in v])})"
        return names[v] if type(v) is Var else bound(v)

    lines = [f"def kept({', '.join(names.values())}):"]
    names.update({v: bound(x) for v, x in zip(jaxpr.constvars, closed.consts, strict=True)})
    for eqn in dce_eqns(jaxpr, list(jaxpr.outvars))[0]:
        targets = [f"v{len(names) + i}" for i in range(len(eqn.outvars))]
        given = [atom(v) for v in eqn.invars]
        given += [f"{name}={bound(value)}" for name, value in eqn.params.items()]
        names.update(zip(eqn.outvars, targets, strict=True))
        many = "," if eqn.op.multiple else ""
        lines.append(f"{', '.join(targets)}{many} = {bound(eqn.op)}({', '.join(given)})")
    lines.append(f"return {atom(list(results))}")
    # Under a name that counts as the library's own, whose frames no error shows.
    exec(compile("\n    ".join(lines), "<frozen primal.kept_rule>", "exec"), scope)
    made: Callable[..., Any] = scope["kept"]
    return made
