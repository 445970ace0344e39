"""From placed blocks to tables of records, the form in which a program runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primal.engines.cpu.graph import Node, bytes_of
from primal.engines.cpu.kernels import HEADER
from primal.engines.cpu.layout import Instance
from primal.engines.cpu.plan.places import Places
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.steps import Block, Branch, Library, Loop, Move, Routine, RoutineSpec

if TYPE_CHECKING:
    from primal.engines.cpu.loops.native import Native

PIECE = 1 << 18
"""Bytes of a unit of a copy."""
_WORD = (1 << 64) - 1


class Tables:
    """Tables of a program: `main` is the outermost; `calls` are its library calls by number.

    `cost`: nanoseconds of a run, roughly; loops count as one turn unless they are counted.
    `endless`: whether a loop has no number of turns.
    """

    def __init__(
        self,
        places: Places,
        instances: dict[Group, Instance],
        kernels: dict[RoutineSpec, int],
        functions: dict[str, int],
        fused: dict[Loop, Native],
    ) -> None:
        self.places = places
        self.instances = instances
        self.kernels = kernels
        self.functions = functions
        self.fused = fused
        self.calls: list[Library] = []
        self.kept: list[tuple[Any, list[tuple[int, Any]]]] = []
        """The tables, each with the steps of its block and where their records begin."""
        self.endless = False
        self.walked = 0.0
        self.main, self.cost = self.table(places.program.block)

    def table(self, block: Block) -> tuple[Any, float]:
        """The records of a block, and what a run of them costs."""
        return self._table(block.steps)

    def some(self, steps: Sequence[Any]) -> tuple[int, int]:
        """Address and length of a table of some steps of a block."""
        table, cost = self._table(steps)
        self.walked += cost
        return table.ctypes.data, len(table)

    def _table(self, steps: Sequence[Any]) -> tuple[Any, float]:
        words: list[int] = []
        begins: list[tuple[int, Any]] = []
        cost = 0.0
        for step in steps:
            begins.append((len(words), step))
            kind = type(step)
            if kind is Group:
                found = self.instances[step]
                scratch = self.places.scratch.get(step, (0, 0))
                words += found.record(self.kernels[found.spec], self.places.address, scratch)
                cost += found.units * found.cost
            elif kind is Routine:
                for o, a in step.updates:
                    words += self.copy(step.outs[o], step.args[a])
                scratch = self.places.scratch.get(step, (0, 0))
                code = self.kernels[step.spec]
                called = [0 if c is None else self.kernels[c] for c in step.callees]
                words += step.record(code, self.places.address, scratch, called)
                cost += step.units * step.cost
            elif kind is Move:
                words += self.copy(step.outs[0], step.args[0])
            elif kind is Library:
                words += self.record("call", [len(self.calls)])
                self.calls.append(step)
            elif kind is Branch:
                more, branch_cost = self.branch(step)
                words += more
                cost += branch_cost
            else:
                more, loop_cost = self.loop(step)
                words += more
                cost += loop_cost
        table = np.array([w & _WORD for w in words], np.uint64)
        self.kept.append((table, begins))
        return table, cost + 10.0 * len(steps)

    def record(self, name: str, words: Sequence[int], units: int = 1, cost: int = 20) -> list[int]:
        return [self.functions[name], HEADER + len(words), units, cost, 0, 0, *words]

    def copy(self, out: Node, x: Any) -> list[int]:
        """A record that copies, or none where the memory is the same."""
        to, (slot, offset) = self.places.address(out), self.places.address(x.node)
        source = (slot, offset + x.offset * x.node.dtype.itemsize)
        size = bytes_of(out)
        if to == source or not size:
            return []
        return self._copied(to, source, size)

    def _copied(self, to: Sequence[int], source: Sequence[int], size: int) -> list[int]:
        """A record that copies, in pieces that threads share."""
        units = -(-size // PIECE)
        record = self.record("copy", [*to, *source, size], units, 20 + min(size, PIECE) // 16)
        record[4] = PIECE
        return record

    def branch(self, step: Branch) -> tuple[list[int], float]:
        words = [*self.read(step.index), len(step.blocks)]
        most = 0.0
        for block in step.blocks:
            table, cost = self.table(block)
            words += [table.ctypes.data, len(table)]
            most = max(most, cost)
        return self.record("branch", words), most

    def loop(self, step: Loop) -> tuple[list[int], float]:
        address = self.places.address
        before: list[int] = []
        copies: list[int] = []
        sets: list[int] = []
        swaps: list[int] = []
        steps: list[int] = []
        finals: list[int] = []
        fused = self.fused.get(step)
        for k, (x, param, out, carry) in enumerate(
            zip(step.inits, step.params, step.outs, self.places.carries[step], strict=False)
        ):
            home = address(param if carry is None else out)
            source = self.read(x)
            if fused is not None and fused.carries[k]:  # in a register
                if carry is not None:
                    sets += [carry[1], *home, carry[2], *address(carry[3])]
                continue
            size = bytes_of(param)
            if home != source and size > PIECE:
                before += self._copied(home, source, size)
            elif home != source:
                copies += [*home, *source, size]
            if carry is not None:
                _, old, new, spare = carry
                sets += [old, *home, new, *address(spare)]
                swaps += [old, new]
                finals += [*home, old, bytes_of(param)]
        slices, pieces = self.places.moving[step]
        last = (step.trips or 1) - 1
        stacks = step.outs[len(step.carried) :]
        moved = [
            *[(s, self.read(x), x.steps()[0] * x.node.dtype.itemsize)
              for s, x in zip(slices, step.xs, strict=True)],
            *[(s, address(o), bytes_of(p))
              for s, o, p in zip(pieces, stacks, step.pieces, strict=True)],
        ]  # fmt: skip
        pointers = [] if fused is None else [*fused.slices, *fused.pieces]
        for k, (slot, (base, offset), stride) in enumerate(moved):
            if pointers and pointers[k]:
                continue
            sets += [slot, base, offset + (last * stride if step.reverse else 0)]
            steps += [slot, -stride if step.reverse else stride]
        self.endless |= step.trips is None
        first = (0, 0) if step.first is None else self.read(step.first)
        again = (0, 0) if step.again is None else self.read(step.again)
        head = [-1 if step.trips is None else step.trips, *first, *again]
        lists = copies, sets, swaps, steps, finals
        ends = list(itertools.accumulate([len(words) for words in lists]))
        rest = [word for words in lists for word in words]
        if fused is None:
            table, cost = self.table(step.body)
            words = [*head, table.ctypes.data, len(table), *ends, *rest]
            return before + self.record("loop", words), 50 + (step.trips or 1) * (cost + 10)
        outside, self.walked = self.walked, 0.0
        words = [*head, 0, 0, *ends, *fused.words(self), *rest]
        turn, self.walked = self.walked + fused.turn, outside
        record = self.record("loop", words)
        record[0] = self.kernels[fused.spec]
        return before + record, 50 + (step.trips or 1) * turn

    def read(self, x: Any) -> tuple[int, int]:
        slot, offset = self.places.address(x.node)
        return slot, offset + x.offset * x.node.dtype.itemsize
