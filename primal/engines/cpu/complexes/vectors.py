"""Vectors of complex numbers in routines: two of parts."""

from __future__ import annotations

from collections.abc import Sequence

from primal.engines.cpu import interleaved, lanes
from primal.engines.cpu.code import SCALAR
from primal.engines.cpu.functions.floats import Floats
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.monoids import accumulator
from primal.engines.cpu.script import Place, Script


def product(f: Floats, x: Sequence[str], y: Sequence[str]) -> tuple[str, str]:
    """x·y as every kernel makes it."""
    (a, b), (c, d) = x, y
    return f.fma(a, c, f.neg(f.mul(b, d))), f.fma(a, d, f.mul(b, c))


class Vectors:
    """Vectors of complex numbers as their parts."""

    def __init__(self, s: Script, dtype: str) -> None:
        self.s, self.f, self.t = s, Floats(s, dtype), s.vec(SCALAR[dtype])
        self.dtype = next(c for c, part in PART.items() if part == dtype)

    def read(self, place: Place, index: str, mask: str | None) -> tuple[str, str]:
        found = interleaved.contiguous(self.s, self.dtype, place.name, index, mask)
        part = PART[self.dtype]
        re, im = [interleaved.emit(self.s, w, part, [found], self.dtype) for w in ("real", "imag")]
        return re, im

    def write(self, x: tuple[str, str], place: Place, index: str, mask: str | None) -> None:
        found = interleaved.emit(self.s, "complex", self.dtype, x, self.dtype)
        interleaved.store(self.s, self.dtype, found, place.name, index, mask)

    def times(self, x: Sequence[str], y: Sequence[str]) -> tuple[str, str]:
        return product(self.f, x, y)

    def folded(self, word: str, x: Sequence[str], y: Sequence[str]) -> Sequence[str]:
        """x + y, both wide, x·y, or which of the two is the extremum, of equals x."""
        part = PART[self.dtype]
        if word == "mul":
            return self.times(x, y)
        if word == "add":
            wide = accumulator(word, part)
            both = zip(x, y, strict=True)
            return [lanes.emit(self.s, word, [wide] * 2, wide, [*ab]) for ab in both]

        def f(word: str, a: str, b: str) -> str:
            of = "b1" if word in ("and", "or") else part
            return lanes.emit(self.s, word, [of, of], "b1", [a, b])

        first = interleaved.is_first(f, "g" if word == "max" else "l", x, y)
        return [self.either(first, a, b) for a, b in zip(x, y, strict=True)]

    def either(self, mask: str, x: str, y: str) -> str:
        return self.s.new(f"select {self.s.vec('i1')} {mask}, {self.t} {x}, {self.t} {y}")

    def every_other(self, x: str, y: str, odd: int) -> str:
        """The even or odd lanes of two vectors."""
        chosen = ", ".join([f"i32 {2 * i + odd}" for i in range(self.s.lanes)])
        return self.s.new(
            f"shufflevector {self.t} {x}, {self.t} {y}, <{self.s.lanes} x i32> <{chosen}>"
        )
