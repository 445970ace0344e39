"""Tracing with some inputs known: what depends on those alone runs, the rest is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.control.call import call
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import Eqn, Var
from primal.ir.op import Never, Op
from primal.ir.state import ambient
from primal.ir.trace import aval_of
from primal.transforms.stage import StageTrace, StageTracer


class PartialTrace(StageTrace):
    """Records operations on values that are not known; all others run in the parent.

    A call of a program is looked into, so that its results are as known as they are without jit.
    Of scans and choices the results that read nothing unknown are a smaller operation, the one
    that is left where nobody uses the others (`dce`); no rules of their own are needed for that.
    Of other loops `dce` drops no part of what is carried: they are known as a whole, or not.
    """

    __slots__ = ()

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run or record one operation."""
        if not any(self._holds(a) for a in args):
            parent: Any = self.parent
            with ambient(parent):
                return parent.process(op, args, params)
        if op is call:
            return eval_closed(params["jaxpr"], *args)
        if op.higher is not None and not isinstance(op.higher.dce, Never):
            return self._divided(op, args, params)
        return super().process(op, args, params)

    def _holds(self, x: Any) -> bool:
        return type(x) is StageTracer and x._trace is self

    def _divided(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The results of an operation with programs, those known that read known operands only."""
        invars = [Var(aval_of(a)) for a in args]
        outvars = [Var(aval) for aval in op.infer(tuple([v.aval for v in invars]), params)]
        eqn = Eqn(op, invars, outvars, params)
        values = dict(zip(invars, args, strict=True))
        dce: Any = op.higher.dce if op.higher is not None else None

        def known(i: int) -> bool:
            used, _ = dce([j == i for j in range(len(outvars))], eqn)
            return not any(u and self._holds(a) for u, a in zip(used, args, strict=True))

        mask = [known(i) for i in range(len(outvars))]
        if not any(mask) or (op.effects is not None and op.effects(params)):
            return list(super().process(op, args, params))
        found: dict[Var, Any] = {}
        for wanted, run in ((mask, self.process), ([not m for m in mask], super().process)):
            _, part = dce(wanted, eqn)
            if part is not None:
                outs = run(part.op, [values[v] for v in part.invars], part.params)
                found.update(zip(part.outvars, outs, strict=True))
        return [found[v] for v in outvars]
