"""Tracing with some inputs known: what depends on those alone runs, the rest is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.control.call import call
from primal.ir.evaluate import eval_closed
from primal.ir.op import Op
from primal.ir.state import ambient
from primal.transforms.stage import StageTrace, StageTracer


class PartialTrace(StageTrace):
    """Records operations on values that are not known; all others run in the parent.

    A call of a program is looked into, so that its results are as known as they are without jit.
    Loops and choices are one operation: where an input is not known, no result is.
    """

    __slots__ = ()

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run or record one operation."""
        if not any(type(a) is StageTracer and a._trace is self for a in args):
            parent: Any = self.parent
            with ambient(parent):
                return parent.process(op, args, params)
        if op is call:
            return eval_closed(params["jaxpr"], *args)
        return super().process(op, args, params)
