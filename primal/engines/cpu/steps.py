"""Steps that are no loop nests of the compiler's own making: routines and library calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Node, Value
from primal.engines.cpu.kernels import HEADER


class RoutineSpec(Protocol):
    """The structure of a routine, hashable; equal specs share their code.

    `write` adds `void name(ptr slots, ptr record, i64 begin, i64 end, ptr status)` to a module.
    Whatever `begin` and `end` select of the record's units is done, and nothing else is written.
    """

    def write(self, module: Module, name: str) -> None:
        """Add the function to a module."""
        ...


class Routine:
    """Native code of one purpose: a product, a sort, a gather.

    Its record holds, after the header (whose words 4 and 5 are slot and offset of `scratch`), slot
    and offset in bytes of every operand and result, then `words`. Operands are views: their
    strides, where the code needs them, are among the words.

    `units`: independent parts of the work, fixed by the problem; `cost` nanoseconds each.
    `updates`: (result, operand) pairs. The result's memory holds the operand's values when the
    routine starts: it is the same memory where nothing else needs the operand, a copy otherwise.
    `reuses`: pairs where the result may be given the memory of an operand that nobody needs later.
    """

    __slots__ = (
        "number", "spec", "args", "outs", "words", "units", "cost", "scratch", "updates", "reuses",
        "name",
    )  # fmt: skip

    def __init__(
        self,
        spec: RoutineSpec,
        args: Sequence[Value],
        outs: Sequence[Node],
        words: Sequence[int],
        units: int = 1,
        cost: int = 0,
        scratch: int = 0,
        updates: Sequence[tuple[int, int]] = (),
        reuses: Sequence[tuple[int, int]] = (),
        name: str = "",
    ) -> None:
        self.number = -1
        self.spec = spec
        self.args = tuple(args)
        self.outs = tuple(outs)
        self.words = tuple(words)
        self.units = units
        self.cost = cost
        self.scratch = scratch
        self.updates = tuple(updates)
        self.reuses = tuple(reuses)
        self.name = name or type(spec).__name__

    def record(
        self, code: int, address: Callable[[Node], tuple[int, int]], scratch: tuple[int, int]
    ) -> list[int]:
        """The words, given where the code, every node and the scratch memory are."""
        words = [code, 0, self.units, self.cost, *scratch]
        assert len(words) == HEADER
        for x in self.args:
            slot, base = address(x.node)
            words += [slot, base + x.offset * x.node.dtype.itemsize]
        for node in self.outs:
            words += address(node)
        words += self.words
        words[1] = len(words)
        return words


class Library:
    """A call of an op's `impl`: its operands are arrays, or constants by their values."""

    __slots__ = ("number", "op", "params", "args", "outs", "reason")

    def __init__(
        self,
        op: Any,
        params: dict[str, Any],
        args: Sequence[Any],
        outs: Sequence[Node],
        reason: str,
    ) -> None:
        self.number = -1
        self.op = op
        self.params = params
        self.args = args
        self.outs = outs
        self.reason = reason

    @property
    def impl(self) -> Callable[..., Any]:
        return self.op.impl
