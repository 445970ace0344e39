"""Elementwise bodies over whole vectors, without masks.

Whole vectors begin where those stored begin at a cache line. The elements before and after them go
through vectors on the stack, so that the body is written once: with masks alone, and stores across
lines, a tanh over 4 million float32 took a third longer; a second body takes as long to compile.
"""

from __future__ import annotations

from typing import Any

from primal.engines.cpu.code import MEMORY, itemsize
from primal.engines.cpu.functions import FLOAT

LINE = 64
"""Bytes that stores had better not cross a multiple of."""
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
        and all(word != "pad" for word, *_ in spec.body)
    )


class Whole:
    """Writes the body of a kernel over a range; made in its entry block, for memory of its own."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer
        self.c = writer.c
        spec = writer.spec
        self.count = len(spec.operands)
        self.dtypes = [writer.dtypes[k] for k in (*range(self.count), *spec.stores)]
        # Numbers of the places that move along the vectors, and a vector on the stack for each.
        self.read = [k for k, o in enumerate(spec.operands) if (o[0], o[2]) == ("m", "u")]
        self.stored = [self.count + k for k in range(len(spec.stores))]
        self.rooms = {
            k: self.c.new(f"alloca i8, i64 {self.c.lanes * itemsize(self.dtypes[k])}, align 64")
            for k in (*self.read, *self.stored)
        }
        # Where functions keep the core busy it does not run ahead to the next page by itself.
        self.ahead = list(self.rooms) if any(b[0] in FLOAT for b in spec.body) else []

    def write(self, places: list[str], first: str, last: str) -> None:
        """The body over [first, last): elements before, whole vectors, elements after."""
        c, writer = self.c, self.writer
        head, end = self.bounds(places[self.count], first, last)

        def part(number: str, now: list[str]) -> list[str]:
            begin, stop = now
            apart = c.new(f"icmp ne i64 {number}, 1")
            mask = writer.mask(begin, stop)

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
            before = c.new(f"icmp eq i64 {number}, 0")
            return [stop, c.new(f"select i1 {before}, i64 {end}, i64 {last}")]

        c.loop("0", "3", "1", [("i64", first), ("i64", head)], part)

    def bounds(self, place: str, first: str, last: str) -> tuple[str, str]:
        """The part of [first, last) that is whole vectors, stored from a multiple of a line on."""
        c, size = self.c, itemsize(self.dtypes[self.count])
        line = min(LINE, c.lanes * size)
        start = c.new(f"ptrtoint ptr {place} to i64")
        start = c.new(f"add i64 {start}, {c.new(f'mul i64 {first}, {size}')}")
        over = c.new(f"and i64 {c.new(f'sub i64 0, {start}')}, {line - 1}")
        over = c.new(f"lshr i64 {over}, {size.bit_length() - 1}")
        head = c.new(f"add i64 {first}, {over}")
        head = c.call("llvm.smin.i64", "i64", ("i64", head), ("i64", last))
        count = c.new(f"and i64 {c.new(f'sub i64 {last}, {head}')}, {-c.lanes}")
        return head, c.new(f"add i64 {head}, {count}")

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
