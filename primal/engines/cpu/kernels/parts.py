"""Much that is reduced to little: in parts, whose results the same kernel reduces in a second run.

How many parts there are is known when the kernel runs. One gives results at once; several give, in
memory between the two runs, what they were added up in. The second run, whose turns per part are 0,
reads that in place of its operands. A kernel of its own for it would be compiled with the first
array that is large enough.

Words, behind the header: turns of the divided loop per part, parts that are units of this run,
parts of the second run, and which loop is divided if several are reduced. Behind those of a result:
slot and offset of what its parts gave, strides of the kept loops, stride from part to part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.engines.cpu.code import SCALAR, itemsize
from primal.engines.cpu.lanes import COMBINE, constant, emit
from primal.engines.cpu.monoids import accumulator, identity

Pairs = Sequence[tuple[str, str]]


class Parts:
    """The parts of a kernel that `w` writes; made in its entry block."""

    def __init__(self, w: Any, turns: str, units: str, count: str) -> None:
        c = w.c
        self.w, self.c = w, c
        self.turns, self.units, self.count = turns, units, count
        self.final = c.new(f"icmp eq i64 {units}, 1")
        self.second = c.new(f"icmp eq i64 {turns}, 0")
        self.range = ("", "")
        self.number = self.length = ""
        # Of what the parts gave: where it lies, strides of the kept loops and from part to part.
        self.bases: list[str] = []
        self.strides: list[list[str]] = []
        self.apart: list[str] = []
        # Reduced loop -> whether it is the divided one, where there are several.
        self.divided: dict[int, str] = {}
        self.rows: Sequence[str] = ()

    def addresses(self, kept: int) -> None:
        """Read the words of a result."""
        w = self.w
        self.bases.append(w.address())
        self.strides.append([w.word() for _ in range(kept)])
        self.apart.append(w.word())

    def divide(self, which: str) -> None:
        """Find the loop that is divided, where several are reduced."""
        w, c, kept = self.w, self.c, self.w.spec.kept
        self.length = w.sizes[kept]
        for d in range(kept, w.rank) if which else ():
            here = self.divided[d] = c.new(f"icmp eq i64 {which}, {d}")
            self.length = c.new(f"select i1 {here}, i64 {w.sizes[d]}, i64 {self.length}")

    def restrict(self, number: str, rows: Sequence[str]) -> None:
        """Restrict the divided loop to a part, at these indices of the kept loops."""
        c = self.c
        self.number, self.rows = number, rows
        begin = c.new(f"mul i64 {number}, {self.turns}")
        stop = c.new(f"add i64 {begin}, {self.turns}")
        self.range = begin, c.call("llvm.smin.i64", "i64", ("i64", stop), ("i64", self.length))

    def of_total(self, number: int) -> str:
        """Where what its parts gave lies; there are as many of each coordinate as reductions."""
        group, k = divmod(number, len(self.bases))
        place = self.bases[k]
        for index, stride in zip(self.rows, self.strides[k], strict=False):
            place = self.at(place, index, stride)
        if group:
            size = self.c.new(f"mul i64 {self.count}, {itemsize(self.kind(k)[1])}")
            place = self.at(place, str(group), size)
        return place

    def at(self, place: str, index: str, stride: str) -> str:
        """A place so many strides behind another."""
        c = self.c
        by = c.new(f"mul i64 {index}, {stride}")
        return str(c.new(f"getelementptr i8, ptr {place}, i64 {by}"))

    def bounds(self, d: int, size: str) -> tuple[str, str]:
        """Where a reduced loop begins and stops."""
        if not self.divided:
            return self.range
        (begin, stop), c, here = self.range, self.c, self.divided[d]
        return (
            c.new(f"select i1 {here}, i64 {begin}, i64 0"),
            c.new(f"select i1 {here}, i64 {stop}, i64 {size}"),
        )

    # Totals: (type, value) of each.

    def along(self, totals: Pairs) -> list[str]:
        """What the parts gave, which lies side by side: one number each, as they are few."""
        w, c = self.w, self.c
        places = [self.of_total(n) for n in range(len(totals))]
        kinds = [self.kind(n) for n in range(len(totals))]

        def turn(i: str, now: list[str]) -> list[str]:
            out = []
            for (monoid, wide), place, total in zip(kinds, places, now, strict=True):
                value = w.contiguous(wide, place, i, None)
                out.append(emit(c, COMBINE[monoid], [wide, wide], wide, [total, value]))
            return out

        firsts = [
            (c.vec(SCALAR[wide]), constant(c, wide, identity(monoid, wide)))
            for monoid, wide in kinds
        ]
        return list(c.loop("0", self.count, "1", firsts, turn))

    def down(self, i: str, mask: str | None, totals: Pairs) -> list[str]:
        """What the parts gave of the columns from i on, a part at a time."""
        w, c = self.w, self.c
        places = [self.of_total(n) for n in range(len(totals))]

        def turn(number: str, now: list[str]) -> list[str]:
            out = []
            for n, total in enumerate(now):
                monoid, wide = self.kind(n)
                place = self.at(places[n], number, self.apart[n])
                value = w.contiguous(wide, place, i, mask)
                out.append(emit(c, COMBINE[monoid], [wide, wide], wide, [total, value]))
            return out

        return list(c.loop("0", self.count, "1", totals, turn))

    def kind(self, number: int) -> tuple[str, str]:
        """Monoid and accumulator of a total; there may be several of each reduction."""
        reductions = self.w.spec.reductions
        monoid, ref, _ = reductions[number % len(reductions)]
        return monoid, accumulator(monoid, self.w.dtypes[ref])

    def put(
        self, number: int, final: Callable[[], None], kept: Callable[[str], None]
    ) -> None:
        """Store a total of the first run: `final` as a result, `kept` as it was added up."""

        def keep() -> None:
            apart = self.apart[number % len(self.apart)]
            kept(self.at(self.of_total(number), self.number, apart))

        self.c.chosen(self.final, final, keep)
