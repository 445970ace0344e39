"""A linearisation as a program and values, which jit and vmap can return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.trace import ZERO
from primal.transforms.linearize import Linearization
from primal.transforms.transpose import backward_pass


class LinearProgram:
    """A `Linearization` as a program and the values it needs, which can be handed around.

    `ins` and `outs` mark the inputs and outputs that are not ZERO.
    """

    __slots__ = ("program", "consts", "ins", "outs", "in_avals", "out_avals")

    def __init__(
        self,
        program: ClosedJaxpr,
        consts: Sequence[Any],
        ins: tuple[bool, ...],
        outs: tuple[bool, ...],
        in_avals: Sequence[Aval],
        out_avals: Sequence[Aval],
    ) -> None:
        self.program = program
        self.consts = consts
        self.ins = ins
        self.outs = outs
        self.in_avals = in_avals
        self.out_avals = out_avals

    @classmethod
    def of(cls, lin: Linearization) -> LinearProgram:
        """What a tape recorded."""
        closed = lin.program()
        ins = tuple([x is not ZERO for x in lin.inputs])
        outs = tuple([x is not ZERO for x in lin.outputs])
        program = ClosedJaxpr(hoist_consts(closed))
        return cls(program, closed.consts, ins, outs, tuple(lin.in_avals), tuple(lin.out_avals))

    def transposed(
        self, cotangents: Sequence[Any], wanted: Sequence[bool] | None = None
    ) -> list[Any]:
        """One cotangent or ZERO per input; of inputs that are not `wanted` it means nothing."""
        fixed = len(self.consts)
        count = len(self.program.in_avals) - fixed
        if wanted is not None:
            wanted = [w for w, is_in in zip(wanted, self.ins, strict=True) if is_in]
        results = iter(
            backward_pass(
                self.program,
                [False] * fixed + [True] * count,
                [*self.consts, *[None] * count],
                [c for c, is_out in zip(cotangents, self.outs, strict=True) if is_out],
                None if wanted is None else [False] * fixed + list(wanted),
            )
        )
        return [next(results) if is_in else ZERO for is_in in self.ins]

    def pushed(self, tangents: Sequence[Any]) -> list[Any]:
        """One tangent or ZERO per output; a tangent is needed for each non-ZERO input."""
        args = [t for t, is_in in zip(tangents, self.ins, strict=True) if is_in]
        results = iter(eval_closed(self.program, *self.consts, *args))
        return [next(results) if is_out else ZERO for is_out in self.outs]
