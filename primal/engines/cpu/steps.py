"""Steps that are no loop nests of the compiler's own making: routines, library calls, control.

Every step has `args`, the values it reads itself, and `outs`, the nodes it makes in its block.
Steps of control flow have blocks of their own, which also read nodes of the blocks around them.
"""

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
    `terms`: how many products each number of the result adds up.
    `parts`: where in the result each operand goes, if putting them there is all that is done; of
    the words and units as many belong to each operand, and the rest to all.
    `into`: where in the result the second operand goes, if putting it there is all that is done.
    `within`: where in the result the first one goes, if the second, a number, is all around it.
    `callees`: functions that the code calls where there are any, by their addresses, the first
    words. They are compiled when the first routine needs them, and know nothing of the routine.
    """

    __slots__ = (
        "number", "spec", "args", "outs", "words", "units", "cost", "scratch", "updates", "reuses",
        "name", "terms", "parts", "into", "within", "callees", "begin", "end",
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
        terms: int = 0,
        callees: Sequence[RoutineSpec | None] = (),
    ) -> None:
        self.number = -1
        self.spec = spec
        self.callees = tuple(callees)
        self.args = tuple(args)
        self.outs = tuple(outs)
        self.words = tuple(words)
        self.units = units
        self.cost = cost
        self.scratch = scratch
        self.updates = tuple(updates)
        self.reuses = tuple(reuses)
        self.name = name or type(spec).__name__
        self.terms = terms
        self.parts: tuple[Value, ...] = ()
        self.into: Value | None = None
        self.within: Value | None = None
        self.begin = self.end = -1

    def keep(self, operands: Sequence[int]) -> None:
        """Leave other operands and their parts to those who make them."""
        count = len(self.args)
        each, units = len(self.words) // count, self.units // count
        own = [w for i in operands for w in self.words[i * each : (i + 1) * each]]
        self.words = (*own, *self.words[count * each :])
        self.args = tuple([self.args[i] for i in operands])
        self.parts = tuple([self.parts[i] for i in operands])
        self.units = units * len(operands)

    def record(
        self, code: int, address: Callable[[Node], tuple[int, int]], scratch: tuple[int, int],
        callees: Sequence[int],
    ) -> list[int]:  # fmt: skip
        """The words, given where the code, every node, the scratch memory and the callees are."""
        words = [code, 0, self.units, self.cost, *scratch]
        assert len(words) == HEADER
        for x in self.args:
            slot, base = address(x.node)
            words += [slot, base + x.offset * x.node.dtype.itemsize]
        for node in self.outs:
            words += address(node)
        words += callees
        words += self.words[len(callees) :]
        words[1] = len(words)
        return words


class Library:
    """A call of an op's `impl`: its operands are arrays, counts, or constants by their values."""

    __slots__ = (
        "number", "op", "params", "given", "args", "outs", "reason", "effects", "begin", "end",
    )  # fmt: skip

    def __init__(
        self,
        op: Any,
        params: dict[str, Any],
        given: Sequence[Any],
        outs: Sequence[Node],
        reason: str,
        effects: bool,
    ) -> None:
        self.number = -1
        self.op = op
        self.params = params
        self.given = given
        self.args = tuple([x for x in given if isinstance(x, Value) and x.node.word != "iota"])
        self.outs = tuple(outs)
        self.reason = reason
        self.effects = effects
        self.begin = self.end = -1

    @property
    def impl(self) -> Callable[..., Any]:
        return self.op.impl


class Move:
    """The result is the operand, whole and row-major: no work where they share memory."""

    __slots__ = ("number", "args", "outs", "begin", "end")
    updates = ((0, 0),)
    reuses = ()

    def __init__(self, x: Value, out: Node) -> None:
        self.number = -1
        self.args = (x,)
        self.outs = (out,)
        self.begin = self.end = -1


class Block:
    """Steps in the order they run. `outs` are the nodes that must be there at the end.

    `reads`: nodes of blocks around this one. `last`: node -> the last step that reads it, within
    itself or in its blocks. `stored`: group number -> its nodes that others read.
    """

    __slots__ = ("steps", "outs", "reads", "last", "stored", "begin", "end")

    def __init__(self, outs: Sequence[Node]) -> None:
        self.steps: list[Any] = []
        self.outs = tuple(outs)
        self.reads: dict[Node, None] = {}
        self.last: dict[Node, Any] = {}
        self.stored: dict[int, list[Node]] = {}
        self.begin = self.end = -1


class Loop:
    """A block that runs again and again.

    Carries begin as `inits`, are `params` in the body, which gives `carried` for its next run;
    the last ones are the first of `outs`. Body and carries have one type each.
    A counted loop runs `trips` times: in run i, `slices` are x[i] of `xs`, and what the body gives
    as `pieces` becomes y[i] of the rest of `outs`; backwards with `reverse`. Otherwise `trips` is
    None, `first` says whether it begins, and the body's `again` whether it goes on.
    """

    __slots__ = (
        "number", "inits", "params", "carried", "xs", "slices", "pieces", "outs", "trips",
        "reverse", "first", "again", "body", "begin", "end",
    )  # fmt: skip

    def __init__(
        self,
        inits: Sequence[Value],
        params: Sequence[Node],
        carried: Sequence[Node],
        outs: Sequence[Node],
        body: Any,
        *,
        xs: Sequence[Value] = (),
        slices: Sequence[Node] = (),
        pieces: Sequence[Node] = (),
        trips: int | None = None,
        reverse: bool = False,
        first: Value | None = None,
        again: Value | None = None,
    ) -> None:
        self.number = -1
        self.inits = tuple(inits)
        self.params = tuple(params)
        self.carried = tuple(carried)
        self.outs = tuple(outs)
        self.body: Any = body
        self.xs = tuple(xs)
        self.slices = tuple(slices)
        self.pieces = tuple(pieces)
        self.trips = trips
        self.reverse = reverse
        self.first = first
        self.again = again
        self.begin = self.end = -1

    @property
    def args(self) -> tuple[Value, ...]:
        first = () if self.first is None else (self.first,)
        return (*self.inits, *self.xs, *first)

    @property
    def blocks(self) -> list[Any]:
        return [self.body]

    def wanted(self) -> list[Node]:
        """What the body must leave behind."""
        again = () if self.again is None else (self.again.node,)
        return [*self.carried, *self.pieces, *again]


class Branch:
    """One of several blocks, by an index, clamped; `results` per block become `outs`."""

    __slots__ = ("number", "index", "blocks", "results", "outs", "begin", "end")

    def __init__(
        self,
        index: Value,
        blocks: Sequence[Any],
        results: Sequence[Sequence[Node]],
        outs: Sequence[Node],
    ) -> None:
        self.number = -1
        self.index = index
        self.blocks: list[Any] = list(blocks)
        self.results = results
        self.outs = tuple(outs)
        self.begin = self.end = -1

    @property
    def args(self) -> tuple[Value, ...]:
        return (self.index,)


__all__ = ["Block", "Branch", "Library", "Loop", "Move", "Routine", "RoutineSpec"]
