"""Elementwise bodies over whole vectors, which begin where those stored begin at a cache line.

The body is written once, as a second one takes as long to compile. In one long run the elements
before and after whole vectors go through vectors on the stack: with masks alone, and stores across
lines, a tanh over 4 million float32 took a third longer. Of rows they are read and written under
masks, by turns of the same loop that know themselves whole or not: on the stack a row of 40 takes a
third longer; masked everywhere, as each load takes the place of an operation then, a tenth; in a
long run in the caches it is the question that takes a tenth, of light bodies a third.
"""

from __future__ import annotations

from typing import Any

from primal.engines.cpu import interleaved
from primal.engines.cpu.code import LINE, MEMORY, itemsize
from primal.engines.cpu.functions import FLOAT

LONG = 256
"""Elements of a row from which vectors begin at cache lines: of shorter ones it costs a third."""
AHEAD = 2048
"""Bytes between what is computed and what is fetched."""


def is_whole(spec: Any) -> bool:
    """Whether a kernel is an elementwise body whose vectors lie side by side."""
    return bool(
        not spec.reduced
        and spec.stores
        and not spec.strided
        and not spec.short
        and not spec.flat
        and all(kind != "m" or step in ("u", "z") for kind, _, step in spec.operands)
        and all(word not in ("pad", "join") for word, *_ in spec.body)
    )


class Whole:
    """Writes the body of a kernel over a range; made in its entry block, for memory of its own."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer
        self.c = writer.c
        spec = writer.spec
        self.count = len(spec.operands)
        self.dtypes = [writer.dtypes[k] for k in (*range(self.count), *spec.stores)]
        # Numbers of the places that move along the vectors.
        self.read = [k for k, o in enumerate(spec.operands) if (o[0], o[2]) == ("m", "u")]
        self.stored = [self.count + k for k in range(len(spec.stores))]
        self.rooms = {
            k: self.c.new(f"alloca i8, i64 {self.c.lanes * itemsize(self.dtypes[k])}, align {LINE}")
            for k in (() if spec.kept > 1 else (*self.read, *self.stored))
        }
        self.size = itemsize(self.dtypes[self.count])
        self.line = min(LINE, self.c.lanes * self.size)
        # Where functions keep the core busy it does not run ahead to the next page by itself.
        heavy = any(b[0] in FLOAT for b in spec.body)
        self.ahead = [*self.read, *self.stored] if heavy else []

    def write(self, places: list[str], first: str, last: str) -> None:
        """The body over [first, last): elements before, whole vectors, elements after."""
        c = self.c
        if not self.rooms:
            self.row(places, first, last)
            return
        over = self.over(places[self.count], first)
        ahead = c.new(f"sub i64 {self.line // self.size}, {over}")
        none = c.new(f"icmp eq i64 {over}, 0")
        head = c.new(f"add i64 {first}, {c.new(f'select i1 {none}, i64 0, i64 {ahead}')}")
        head = c.call("llvm.smin.i64", "i64", ("i64", head), ("i64", last))
        count = c.new(f"and i64 {c.new(f'sub i64 {last}, {head}')}, {-c.lanes}")
        end = c.new(f"add i64 {head}, {count}")

        def part(number: str, now: list[str]) -> list[str]:
            begin, stop = now
            self.part(places, number, begin, stop)
            before = c.new(f"icmp eq i64 {number}, 0")
            return [stop, c.new(f"select i1 {before}, i64 {end}, i64 {last}")]

        c.loop("0", "3", "1", [("i64", first), ("i64", head)], part)

    def part(self, places: list[str], number: str, begin: str, stop: str) -> None:
        """Whole vectors, or what is before (0) or after (2) them, in the rooms."""
        c, writer = self.c, self.writer
        mask = writer.mask(begin, stop)
        apart = c.new(f"icmp ne i64 {number}, 1")

        def copy_in() -> list[str]:
            for k in self.read:
                value = writer.contiguous(self.dtypes[k], places[k], begin, mask)
                writer.store(self.dtypes[k], value, self.rooms[k], "0", None)
            return [self.back(k, begin) for k in self.rooms]

        def copy_out() -> list[str]:
            for k in self.stored:
                value = writer.contiguous(self.dtypes[k], self.rooms[k], "0", None)
                writer.store(self.dtypes[k], value, places[k], begin, mask)
            return []

        there = list(places)
        found = c.guarded(apart, [("ptr", places[k]) for k in self.rooms], copy_in)
        for k, place in zip(self.rooms, found, strict=True):
            there[k] = place

        def turn(i: str, _: list[str]) -> list[str]:
            for k in self.ahead:
                self.fetch(k, there[k], i)
            writer.computed(there, i, None)
            return []

        c.loop(begin, stop, str(c.lanes), [], turn)
        c.guarded(apart, [], copy_out)

    def row(self, places: list[str], first: str, last: str) -> None:
        """The body over [first, last) of a row."""
        c, writer = self.c, self.writer
        size, over = c.new(f"sub i64 {last}, {first}"), self.over(places[self.count], first)
        long = c.new(f"icmp sge i64 {size}, {LONG}")
        start = c.new(f"sub i64 {first}, {c.new(f'select i1 {long}, i64 {over}, i64 0')}")
        latest = c.new(f"sub i64 {last}, {c.lanes}")

        def turn(i: str, _: list[str]) -> list[str]:
            for k in self.ahead:
                self.fetch(k, places[k], i)
            begun, ends = c.new(f"icmp sge i64 {i}, {first}"), c.new(f"icmp sle i64 {i}, {latest}")
            whole = c.new(f"and i1 {begun}, {ends}")

            def load(mask: str | None) -> list[str]:
                return [writer.load(k, places[k], i, mask) for k in self.read]

            def mask() -> str:
                from_ = c.call("llvm.smax.i64", "i64", ("i64", i), ("i64", first))
                before, after = writer.mask(i, from_), writer.mask(i, last)
                return str(c.new(f"xor {c.vec('i1')} {before}, {after}"))

            types = [interleaved.in_register(c, self.dtypes[k]) for k in self.read]
            found = c.either(whole, types, lambda: load(None), lambda: load(mask()))
            writer.loaded = dict(zip(self.read, found, strict=True))
            values = writer.evaluated(places, i, None)
            writer.loaded = {}

            def put(mask: str | None) -> None:
                writer.put_all(values, places, i, mask)

            c.chosen(whole, lambda: put(None), lambda: put(mask()))
            return []

        c.loop(start, last, str(c.lanes), [], turn)

    def over(self, place: str, index: str) -> str:
        """How many elements behind a cache line an element is stored."""
        c = self.c
        at = c.new(f"ptrtoint ptr {place} to i64")
        at = c.new(f"add i64 {at}, {c.new(f'mul i64 {index}, {self.size}')}")
        return str(
            c.new(
                f"lshr i64 {c.new(f'and i64 {at}, {self.line - 1}')}, {self.size.bit_length() - 1}"
            )
        )

    def back(self, k: int, index: str) -> str:
        """The place whose element `index` is the first one in the room of place k."""
        back = self.c.new(f"mul i64 {index}, {-itemsize(self.dtypes[k])}")
        return str(self.c.new(f"getelementptr i8, ptr {self.rooms[k]}, i64 {back}"))

    def fetch(self, k: int, place: str, index: str) -> None:
        """Ask for what place k holds, or will hold, some vectors behind `index`."""
        c = self.c
        p = c.new(f"getelementptr {MEMORY[self.dtypes[k]]}, ptr {place}, i64 {index}")
        p = c.new(f"getelementptr i8, ptr {p}, i64 {AHEAD}")
        to_write = str(int(k in self.stored))
        c.call_void("llvm.prefetch.p0", ("ptr", p), ("i32", to_write), ("i32", "3"), ("i32", "1"))


def overlapping(writer: Any, places: list[str], first: str, last: str) -> None:
    """The body over rows of a vector or more: the last vector overlaps the one before it.

    Masks would let the next row wait until this one is stored. The last vector is computed before
    anything is stored, which may lie where it reads.
    """
    c = writer.c
    tail = c.new(f"sub i64 {last}, {c.lanes}")
    values = writer.evaluated(places, tail, None)

    def turn(i: str, _: list[str]) -> list[str]:
        writer.computed(places, i, None)
        return []

    c.loop(first, tail, str(c.lanes), [], turn)
    writer.put_all(values, places, tail, None)
