"""Runs of a kernel over rows: all passes in one, or of rows that leave the cache each by itself.

Which passes a run takes, and over what part of the rows, are words of its record: one kernel serves
rows of any length. Apart, a pass gives totals of parts; a run between two passes puts these
together, and what is one per row then waits in memory for the next pass. Columns of an array too
wide for the cache are reduced some rows at a time, as totals come and go to memory.

Words, behind the header: the first pass and where to stop; whether passes are apart; whether this
run puts totals together; whether buffers lie in memory; parts of this run, and of the pass; turns
of the divided loop in a part, and in a block of columns; which loop is divided. Behind the arrays:
slot and offset of what waits, bytes from one to the next, strides of the kept loops; the same of
totals, with bytes from part to part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.engines.cpu.code import SCALAR
from primal.engines.cpu.lanes import COMBINE, constant, emit, store_scalar
from primal.engines.cpu.monoids import identity

Kinds = Sequence[tuple[str, str]]
"""Monoid and accumulator of totals."""


class Runs:
    """The run of a kernel that `w` writes; made in its entry block."""

    def __init__(self, w: Any) -> None:
        self.w, self.c = w, w.c
        self.first, self.stop = w.word(), w.word()
        self.far = w.word()
        self.apart, self.collects, self.memory = [
            self.c.new(f"trunc i64 {v} to i1") for v in (self.far, w.word(), w.word())
        ]
        self.parts, self.count, self.turns, self.block, which = (w.word() for _ in range(5))
        self.which = which
        neither = self.c.new(f"xor i1 {self.collects}, true")
        self.partial = self.c.new(f"and i1 {self.apart}, {neither}")
        self.range = self.part = ("", "")
        self.number = self.length = ""
        self.held = self.totals = ("", "", "", [""])
        # Reduced loop -> whether it is the divided one, where there are several.
        self.divided: dict[int, str] = {}

    def places(self, stack: str) -> None:
        """Read the words behind the arrays."""
        w, c = self.w, self.c
        kept = w.spec.kept
        self.length = w.sizes[kept]
        for d in range(kept, w.rank) if w.spec.reduced > 1 else ():
            here = self.divided[d] = c.new(f"icmp eq i64 {self.which}, {d}")
            self.length = c.new(f"select i1 {here}, i64 {w.sizes[d]}, i64 {self.length}")
        base = self.chosen(stack, self.apart)
        self.held = base, w.word(), "", [w.word() for _ in range(kept)]
        base = w.address()
        self.totals = base, w.word(), w.word(), [w.word() for _ in range(kept)]

    def chosen(self, stack: str, outside: str) -> str:
        """The place that the next two words name, or so many bytes behind one of the stack."""
        w, c = self.w, self.c
        slot, offset = w.word(), w.word()
        p = c.new(f"getelementptr ptr, ptr %slots, i64 {slot}")
        base = c.new(f"select i1 {outside}, ptr {c.new(f'load ptr, ptr {p}')}, ptr {stack}")
        return str(c.new(f"getelementptr i8, ptr {base}, i64 {offset}"))

    def has(self, number: int) -> str:
        """Whether a pass is of this run."""
        c = self.c
        begun = c.new(f"icmp sle i64 {self.first}, {number}")
        return str(c.new(f"and i1 {begun}, {c.new(f'icmp sgt i64 {self.stop}, {number}')}"))

    def restrict(self, number: str) -> None:
        """Restrict the divided loop to a part."""
        c = self.c
        self.number = number
        begin = c.new(f"mul i64 {number}, {self.turns}")
        stop = c.new(f"add i64 {begin}, {self.turns}")
        stop = c.call("llvm.smin.i64", "i64", ("i64", stop), ("i64", self.length))
        self.part = self.range = begin, stop

    def blocks(self, body: Callable[[], None]) -> None:
        """`body` for some turns of the divided loop after the other."""
        c = self.c
        begin, end = self.part

        def turn(i: str, _: list[str]) -> list[str]:
            stop = c.new(f"add i64 {i}, {self.block}")
            self.range = i, c.call("llvm.smin.i64", "i64", ("i64", stop), ("i64", end))
            body()
            return []

        c.loop(begin, end, self.block, [], turn)

    def bounds(self, d: int) -> tuple[str, str]:
        """Where a reduced loop begins and stops."""
        if not self.divided:
            return self.range
        (begin, stop), c, here = self.range, self.c, self.divided[d]
        return (
            c.new(f"select i1 {here}, i64 {begin}, i64 0"),
            c.new(f"select i1 {here}, i64 {stop}, i64 {self.w.sizes[d]}"),
        )

    def index(self, i: str) -> str:
        """Where columns from `i` on lie: on the stack there is room for one vector."""
        return str(self.c.new(f"mul i64 {i}, {self.far}"))

    def moved(self, by: Sequence[tuple[int, str]]) -> tuple[str, str]:
        """Where what waits lies, and totals of this part, at indices of the kept loops."""
        out = []
        for base, _, part, strides in (self.held, self.totals):
            for d, index in by:
                base = self.at(base, index, strides[d])
            out.append(self.at(base, self.number, part) if part else base)
        return out[0], out[1]

    def at(self, place: str, index: str, stride: str) -> str:
        """A place so many strides behind another."""
        if index == "0":
            return place
        c = self.c
        by = c.new(f"mul i64 {index}, {stride}")
        return str(c.new(f"getelementptr i8, ptr {place}, i64 {by}"))

    def of_held(self, place: str, n: int) -> str:
        """Where the n-th of what waits lies."""
        return self.at(place, str(n), self.held[1])

    def of_total(self, n: int, place: str) -> str:
        """Where the n-th total of a pass lies."""
        return self.at(place, str(n), self.totals[1])

    # Totals of a pass: numbers, or vectors of columns.

    def begun(
        self, kinds: Kinds, firsts: list[tuple[str, str]], place: str, i: str
    ) -> list[str]:
        """What columns begin with: nothing, or the totals of the rows before, in memory."""
        fresh = self.c.new(f"icmp eq i64 {self.range[0]}, {self.part[0]}")
        return list(
            self.c.either(
                fresh, [t for t, _ in firsts], lambda: [v for _, v in firsts],
                lambda: self.read(kinds, place, i),
            )  # fmt: skip
        )

    def read(self, kinds: Kinds, place: str, i: str) -> list[str]:
        """Vectors of totals; there is room behind the last column."""
        return [
            self.w.contiguous(wide, self.of_total(n, place), i, None)
            for n, (_, wide) in enumerate(kinds)
        ]

    def put(self, kinds: Kinds, totals: Sequence[str], place: str, i: str) -> None:
        """Keep the totals of a part."""
        for n, ((_, wide), total) in enumerate(zip(kinds, totals, strict=True)):
            at = self.of_total(n, place)
            if self.w.rows.column:
                self.w.store(wide, total, at, i, None)
            else:
                store_scalar(self.c, wide, total, at)

    def combined(self, kinds: Kinds, place: str, i: str) -> list[str]:
        """The totals of all parts together, in order."""
        w, c = self.w, self.c
        lanes = c.lanes
        if not w.rows.column:
            c.lanes = 1
        firsts = [(c.vec(SCALAR[w]), constant(c, w, identity(m, w))) for m, w in kinds]

        def turn(number: str, now: list[str]) -> list[str]:
            values = self.read(kinds, self.at(place, number, self.totals[2]), i)
            return [
                emit(c, COMBINE[m], [wide, wide], wide, [total, value])
                for (m, wide), total, value in zip(kinds, now, values, strict=True)
            ]

        found = list(c.loop("0", self.count, "1", firsts, turn))
        if not w.rows.column:
            found = [
                c.new(f"extractelement {t} {v}, i64 0")
                for (t, _), v in zip(firsts, found, strict=True)
            ]
        c.lanes = lanes
        return found
