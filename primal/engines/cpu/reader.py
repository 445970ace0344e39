"""What the code of routines begins with: their record as values of the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.engines.cpu.code import Code, Module
from primal.engines.cpu.kernels import HEADER

STRIP = 16
"""Columns of a matrix that are gone through together."""


class Reader:
    """The beginning of a routine: its operands, results and words, as values of the function."""

    def __init__(self, module: Module, lanes: int = 1) -> None:
        self.c = Code(module, lanes)
        self.at = HEADER
        self.c.start("entry")

    def word(self) -> str:
        """The next word."""
        p = self.c.new(f"getelementptr i64, ptr %record, i64 {self.at}")
        self.at += 1
        return self.c.new(f"load i64, ptr {p}")

    def int32(self) -> str:
        """The next word as an `int`."""
        return self.c.new(f"trunc i64 {self.word()} to i32")

    def pointer(self) -> str:
        """The next word as a pointer."""
        return self.c.new(f"inttoptr i64 {self.word()} to ptr")

    def array(self) -> str:
        """The next slot and offset, as a pointer."""
        slot, offset = self.word(), self.word()
        p = self.c.new(f"getelementptr ptr, ptr %slots, i64 {slot}")
        base = self.c.new(f"load ptr, ptr {p}")
        return self.c.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def scratch(self) -> str:
        """The routine's own memory."""
        p = self.c.new("getelementptr i64, ptr %record, i64 4")
        slot = self.c.new(f"load i64, ptr {p}")
        p = self.c.new("getelementptr i64, ptr %record, i64 5")
        offset = self.c.new(f"load i64, ptr {p}")
        p = self.c.new(f"getelementptr ptr, ptr %slots, i64 {slot}")
        base = self.c.new(f"load ptr, ptr {p}")
        return self.c.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def loops(self, count: int, arrays: int) -> list[list[str]]:
        """Sizes and strides of loops."""
        return [[self.word() for _ in range(1 + arrays)] for _ in range(count)]

    def split(self, u: str, size: str) -> tuple[str, str]:
        """(u // size, u % size)."""
        return self.c.divided(u, size)

    def moved(self, place: str, *steps: tuple[str, str]) -> str:
        """A pointer after so many turns of strides in bytes."""
        for index, stride in steps:
            by = self.c.new(f"mul i64 {index}, {stride}")
            place = self.c.new(f"getelementptr i8, ptr {place}, i64 {by}")
        return place

    def walked(self, u: str, loops: Sequence[Sequence[str]], places: list[str]) -> list[str]:
        """The places of the loops' turn number u, which counts the last loop fastest."""
        for size, *strides in reversed(loops):
            u, i = self.split(u, size)
            places = [self.moved(p, (i, s)) for p, s in zip(places, strides, strict=True)]
        return places

    def units(self, name: str, body: Any) -> None:
        """The function: `body(unit)` for each unit asked for, until the status word is set."""
        self.c.function(name, body)

    def helper(self, name: str, parameters: str, linkage: str = "internal ") -> None:
        """The code so far as a function, which gives nothing back: the module's own, or not."""
        text = "\n".join([*self.c.lines, "  ret void"])
        head = f"define {linkage}void @{name}({parameters}) nounwind"
        self.c.module.functions[name] = f"{head} {{\n{text}\n}}\n"


def smaller(c: Code, x: str, y: str) -> str:
    """The lesser of two i64."""
    return c.call("llvm.smin.i64", "i64", ("i64", x), ("i64", y))


def square(
    r: Reader, m: str, n: str, element: Any, first: Sequence[tuple[str, str]] = ()
) -> list[str]:
    """`element(i, j, *values)`, which returns the next values, for all places of a matrix.

    A strip of its columns after the other, so that where these lie along lines of the cache, those
    of a strip are there until they are full.
    """
    c = r.c
    types = [t for t, _ in first]

    def strip(start: str, now: list[str]) -> list[str]:
        stop = smaller(c, c.new(f"add i64 {start}, {STRIP}"), n)

        def row(i: str, now: list[str]) -> list[str]:
            given = list(zip(types, now, strict=True))
            return c.loop(start, stop, "1", given, lambda j, now: element(i, j, *now))

        return c.loop("0", m, "1", list(zip(types, now, strict=True)), row)

    return c.loop("0", n, str(STRIP), first, strip)
