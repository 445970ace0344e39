"""Fourier transforms in the lanes of vectors: between memory and the buffers.

Rows lie in one piece each (`rows`), or side by side (`columns`), so that memory goes on with the
next row. What is done with a row in one piece is squares of numbers turned into columns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from primal.engines.cpu.code import SUFFIX, float_text
from primal.engines.cpu.fourier.lanes import Lanes
from primal.engines.cpu.routines.turns import crossed
from primal.engines.cpu.script import Int, Place, lanes_before, read_vector, write_vector

EDGES = ("read rows", "write rows", "read columns", "write columns", "read reals", "write reals",
         "write halves")  # fmt: skip
PARAMETERS = "ptr %at, ptr %buffer, ptr %words, i64 %left, i64 %first"
WORDS = 9
"""Words of a record for each of reading and writing."""


class Edge:
    """The code of one of them. What it is given:

    `at`, `first`: the first row of the unit, and its number; `left`: rows from it on, of which as
    many are meant as there are lanes; in place of those that are not there stands the last. Words:
    `along`, `step`: bytes from row to row, and from one number of a row to the next, where rows lie
    side by side; `n`: numbers of a row, where it lies in one piece the floats of these; `re`, `im`:
    where the parts of a number are in the buffer, or, of real numbers, two that follow each other;
    `apart`: bytes from one such pair to the next; `times`: 2 where real numbers side by side are
    both; `by`: a factor of results in bits; `whole`: of `halves`.
    """

    def __init__(self, v: Lanes) -> None:
        s = self.s = v.s
        self.v = v
        self.dtype = v.f.dtype
        self.at, self.buffer, words = (Place(s, f"%{name}") for name in ("at", "buffer", "words"))
        self.left, self.first = Int(s, "%left"), Int(s, "%first")
        held = [Int(s, s.read("i64", words + 8 * i)) for i in range(WORDS)]
        self.along, self.step, self.re, self.im, self.apart, self.n, self.times, self.by, \
            self.whole = held  # fmt: skip

    def write(self, name: str) -> None:
        """The code of the function."""
        way, what = name.split()
        getattr(self, f"_{way}_{what}")()

    def _by(self) -> str:
        s, scalar = self.s, self.v.f.scalar
        number = s.new(f"bitcast i64 {self.by.name} to double")
        if scalar == "float":
            number = s.new(f"fptrunc double {number} to float")
        return s.splat(scalar, number)

    def _shuffled(self, x: str, y: str, chosen: Sequence[int], lanes: int = 0) -> str:
        t, mask = self.s.vec(self.v.f.scalar, lanes), ", ".join([f"i32 {i}" for i in chosen])
        return self.s.new(f"shufflevector {t} {x}, {t} {y}, <{len(chosen)} x i32> <{mask}>")

    def _together(self, x: str, y: str) -> list[str]:
        """The elements of two vectors in turns."""
        n = self.s.lanes
        order = [i // 2 + n * (i % 2) for i in range(2 * n)]
        return [self._shuffled(x, y, order[:n]), self._shuffled(x, y, order[n:])]

    def _crossed(self, lines: list[str]) -> list[str]:
        """Lines of pairs as columns; those of float32 as words, which compiles faster."""
        s, t = self.s, self.v.f.t
        if self.v.item == 8:
            return crossed(s, "double", lines, 2)
        words = s.vec("double", s.lanes // 2)
        found = crossed(s, "double", [s.new(f"bitcast {t} {x} to {words}") for x in lines])
        return [s.new(f"bitcast {words} {x} to {t}") for x in found]

    def _squares(
        self, body: Callable[[Place, list[Place], str], None], backwards: bool = False
    ) -> None:
        """The body for as many pairs as a vector holds, and half of the rows, one after the other.

        Both halves by one code: it is squares that take long to compile.
        """
        s, lanes, half = self.s, self.s.lanes, self.s.lanes // 2
        last = self.left - 1

        def part(h: Int) -> None:
            k = -h + 1 if backwards else h
            number = k * half
            places = [self.at + last.least(number) * self.along]
            for r in range(1, half):
                there = (number + r).test("sle", last)
                step = s.new(f"select i1 {there}, i64 {self.along.name}, i64 0")
                places.append(places[-1] + Int(s, step))

            def square(i: Int) -> None:
                rows = [place + i * self.v.item for place in places]
                column = self.buffer + i // 2 * self.apart + k * (self.v.vector // 2)
                body(column, rows, lanes_before(s, self.n - i))

            s.each(0, self.n, square, lanes)

        s.each(0, 2, part)

    def _read_rows(self) -> None:
        s, v, lanes, half = self.s, self.v, self.s.lanes, self.s.lanes // 2
        t, order = s.vec(v.f.scalar, half), [2 * i % lanes + 2 * i // lanes for i in range(lanes)]
        fence = f"llvm.arithmetic.fence.v{s.lanes}{SUFFIX[v.f.scalar]}"

        def square(to: Place, rows: list[Place], mask: str) -> None:
            lines = self._crossed([read_vector(s, self.dtype, row, mask) for row in rows])
            for line in lines:
                # Without a fence each half is shuffled on its own.
                both = s.call(fence, v.f.t, (v.f.t, self._shuffled(line, line, order)))
                for k, place in enumerate((to + self.re, to + self.im)):
                    y = self._shuffled(both, both, range(k * half, (k + 1) * half))
                    s.do(f"store {t} {y}, ptr {place.name}, align {half * v.item}")
                to = to + self.apart

        self._squares(square)

    def _write_rows(self) -> None:
        s, v, by, half = self.s, self.v, self._by(), self.s.lanes // 2
        t, order = s.vec(v.f.scalar, half), [i // 2 + half * (i % 2) for i in range(s.lanes)]
        zero = v.f.k(0.0)

        def none(i: Int) -> None:
            for place in (self.re, self.im):
                v.plane_put(self.buffer + i * self.apart + place, zero)

        # What lies behind the last may be subnormal, which products would wait for.
        pairs = (self.n + 1) // 2
        s.each(pairs, (pairs + (half - 1)) // half * half, none)

        def square(here: Place, rows: list[Place], mask: str) -> None:
            lines = []
            for _ in range(half):
                re, im = [
                    s.new(f"load {t}, ptr {(here + place).name}, align {half * v.item}")
                    for place in (self.re, self.im)
                ]
                lines.append(v.f.mul(self._shuffled(re, im, order, half), by))
                here = here + self.apart
            # Backwards: what stands in place of rows that are not there lies under the last.
            for row, line in zip(rows[::-1], self._crossed(lines)[::-1], strict=True):
                write_vector(s, self.dtype, line, row, mask)

        self._squares(square, True)

    def _columns(self, each: int, body: Callable[[Int, list[tuple[Place, str]]], None]) -> None:
        """The body for each number: where vectors of all rows are, and which lanes are there."""
        s, lanes = self.s, self.s.lanes
        masks = [lanes_before(s, (self.left * each - j * lanes).most(0)) for j in range(each)]

        def number(i: Int) -> None:
            here = self.at + i * self.step
            places = [here + j * self.v.vector for j in range(each)]
            body(i, list(zip(places, masks, strict=True)))

        s.each(0, self.n, number)

    def _read_columns(self) -> None:
        s, v, lanes = self.s, self.v, self.s.lanes

        def column(i: Int, found: list[tuple[Place, str]]) -> None:
            x, y = [read_vector(s, self.dtype, p, mask) for p, mask in found]
            here = self.buffer + i * v.pair
            for place, odd in ((self.re, 0), (self.im, 1)):
                v.plane_put(here + place, self._shuffled(x, y, range(odd, 2 * lanes, 2)))

        self._columns(2, column)

    def _write_columns(self) -> None:
        s, v, by = self.s, self.v, self._by()

        def column(i: Int, found: list[tuple[Place, str]]) -> None:
            here = self.buffer + i * v.pair
            parts = [v.f.mul(v.plane(here + place), by) for place in (self.re, self.im)]
            for (p, mask), y in zip(found, self._together(*parts), strict=True):
                write_vector(s, self.dtype, y, p, mask)

        self._columns(2, column)

    def _reals(self, body: Callable[[Place, Place, str], None]) -> None:
        """The body for each number: where its vector is in the buffer, where in memory."""
        s, start, step = self.s, self.at, self.step

        def part(k: Int) -> None:
            here = s.new(f"select i1 {k.test('ne', 0)}, i64 {self.im.name}, i64 {self.re.name}")
            inside = self.buffer + Int(s, here)
            self.at = start + k * step
            self._columns(1, lambda i, found: body(inside + i * self.v.pair, *found[0]))

        self.step = step * self.times
        s.each(0, self.times, part)

    def _read_reals(self) -> None:
        s, v = self.s, self.v
        self._reals(lambda to, p, mask: v.plane_put(to, read_vector(s, self.dtype, p, mask)))

    def _write_reals(self) -> None:
        s, v, by = self.s, self.v, self._by()
        self._reals(
            lambda here, p, mask: write_vector(s, self.dtype, v.f.mul(v.plane(here), by), p, mask)
        )

    def _write_halves(self) -> None:
        """Half of the spectrum of `whole` real numbers, of which every step-th is a row's.

        `first` is the number of the first row; there are rows up to the middle of a step. What they
        hold behind the middle of the spectrum are the conjugates of what other rows would hold.
        """
        s, v, by, row, whole = self.s, self.v, self._by(), self.first, self.whole
        item, lanes = 2 * v.item, s.lanes
        stride, middle, start = self.step // item, whole // 2, self.at + -(row * item)
        # Of the first row and of the middle of a step, the conjugates are there already.
        after = Int(s, s.new(f"zext i1 {row.test('eq', 0)} to i64"))
        before = self.left.least((stride + 1) // 2 - row)
        turned = [lanes - 1 - i // 2 + lanes * (i % 2) for i in range(2 * lanes)]

        def turn(k: Int) -> None:
            number = row + k * stride
            here = self.buffer + k * v.pair
            re, im = (v.f.mul(v.plane(here + j * v.vector), by) for j in (0, 1))
            near = (middle + 1 - number).least(self.left).most(0)

            def forwards() -> None:
                to = start + number * item
                for j, y in enumerate(self._together(re, im)):
                    mask = lanes_before(s, (near * 2 - j * lanes).most(0))
                    write_vector(s, self.dtype, y, to + j * v.vector, mask)

            def backwards() -> None:
                to = start + (whole - number - (lanes - 1)) * item
                low, high = (Int(s, str(lanes)) - i for i in (before, near.most(after)))
                for j in (0, 1):
                    y = self._shuffled(re, v.f.neg(im), turned[j * lanes : (j + 1) * lanes])
                    last, first = (
                        lanes_before(s, (i * 2 - j * lanes).most(0)) for i in (high, low)
                    )
                    # All of the first are among the last.
                    mask = s.new(f"xor {s.vec('i1')} {last}, {first}")
                    write_vector(s, self.dtype, y, to + j * v.vector, mask)

            s.when(near.test("sgt", 0), forwards)
            s.when(near.test("slt", before), backwards)

        s.each(0, self.n, turn)
        # These two are real.
        zero = float_text(0.0, v.f.scalar)
        for k in (Int(s, "0"), middle):
            own = k % stride - row
            inside = s.new(f"and i1 {own.test('sge', 0)}, {own.test('slt', self.left)}")
            ends = s.new(f"and i1 {inside}, {(k * 2 % whole).test('eq', 0)}")
            place = start + (k * item + v.item)

            s.when(ends, functools.partial(s.write, v.f.scalar, zero, place))
