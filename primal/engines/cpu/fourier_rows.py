"""Fourier transforms of many rows: between memory and the lanes of vectors.

Real rows of even length are complex ones of half of it, whose spectrum is taken apart afterwards.
Two rows as the parts of one would share their infinities, and the rounding of the greater.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from primal.base.structures import structure
from primal.engines.cpu import fourier_lanes
from primal.engines.cpu.code import Module, float_text
from primal.engines.cpu.fourier_lanes import Lanes
from primal.engines.cpu.pocketfft import Rows, held_factor
from primal.engines.cpu.script import Int, Place, Script, lanes_before, read_vector, write_vector
from primal.engines.cpu.turns import crossed


class Edge:
    """Between memory and a buffer, for rows side by side (`across`) or each in one piece.

    `left` are the rows from the first on; in place of those that are not there stands the last.
    """

    def __init__(
        self, v: Lanes, across: bool, first: Place, along: Int, step: Int, left: Int
    ) -> None:
        self.v = v
        self.s = v.s
        self.across = across
        self.first = first
        self.along = along
        self.step = step
        self.left = left
        lanes = range(1 if across else v.s.lanes)
        self.rows = [first + (left - 1).least(Int(v.s, str(r))) * along for r in lanes]
        self.dtype = v.f.dtype

    def _shuffled(self, x: str, y: str, chosen: Sequence[int]) -> str:
        t, mask = self.v.f.t, ", ".join([f"i32 {i}" for i in chosen])
        return self.s.new(f"shufflevector {t} {x}, {t} {y}, <{len(chosen)} x i32> <{mask}>")

    def _apart(self, x: str, y: str) -> list[str]:
        """What stands at even and at odd places of two vectors."""
        return [self._shuffled(x, y, range(i, 2 * self.s.lanes, 2)) for i in (0, 1)]

    def _together(self, x: str, y: str) -> list[str]:
        """The elements of two vectors in turns."""
        n = self.s.lanes
        order = [i // 2 + n * (i % 2) for i in range(2 * n)]
        return [self._shuffled(x, y, order[:n]), self._shuffled(x, y, order[n:])]

    def _crossed(self, lines: list[str]) -> list[str]:
        """Lines of complex numbers as columns; those of float32 as words, which compiles faster."""
        s, t = self.s, self.v.f.t
        if self.v.item == 8:
            return crossed(s, "double", lines, 2)
        words = s.vec("double", s.lanes // 2)
        found = crossed(s, "double", [s.new(f"bitcast {t} {x} to {words}") for x in lines])
        return [s.new(f"bitcast {words} {x} to {t}") for x in found]

    def _squares(self, n: Int, each: int, body: Callable[[Int, str], None]) -> None:
        """The body for as many numbers of `each` parts as a vector holds, and which are there."""
        s = self.s
        s.each(0, n, lambda i: body(i, lanes_before(s, (n - i) * each)), s.lanes // each)

    def _lines(self, i: Int, each: int, mask: str) -> list[str]:
        by = i * (each * self.v.item)
        return [read_vector(self.s, self.dtype, row + by, mask) for row in self.rows]

    def _columns(self, i: Int, each: int) -> list[tuple[Place, str]]:
        """Where the vectors of a number of all rows lie, and which of their lanes are there."""
        here, lanes = self.first + i * self.step, self.s.lanes
        return [
            (here + j * self.v.vector, lanes_before(self.s, (self.left * each - j * lanes).most(0)))
            for j in range(each)
        ]

    def read_complex(self, n: Int, to: Place, planes: tuple[Int, Int]) -> None:
        """Complex numbers, their parts to two planes of the buffer."""
        s, v = self.s, self.v

        def put(i: Int, x: str, y: str) -> None:
            here = to + i * v.pair
            for plane, part in zip(planes, self._apart(x, y), strict=True):
                v.plane_put(here + plane, part)

        def square(i: Int, mask: str) -> None:
            half = s.lanes // 2
            lines = self._lines(i, 2, mask)
            parts = [self._crossed(rows) for rows in (lines[:half], lines[half:])]
            for e, (x, y) in enumerate(zip(*parts, strict=True)):
                put(i + e, x, y)

        def column(i: Int) -> None:
            x, y = [read_vector(s, self.dtype, p, m) for p, m in self._columns(i, 2)]
            put(i, x, y)

        if self.across:
            s.each(0, n, column)
        else:
            self._squares(n, 2, square)

    def write_complex(self, n: Int, x: Place, planes: tuple[Int, Int], by: str) -> None:
        """The same back, times a factor."""
        s, v = self.s, self.v

        def got(i: Int) -> list[str]:
            here = x + i * v.pair
            return self._together(*[v.f.mul(v.plane(here + plane), by) for plane in planes])

        def square(i: Int, mask: str) -> None:
            half = s.lanes // 2
            # What lies behind the last may be subnormal, which products would wait for.
            found = [got((i + e).least(n - 1)) for e in range(half)]
            lines = [y for k in (0, 1) for y in self._crossed([p[k] for p in found])]
            at = i * (2 * v.item)
            # Backwards: what stands in place of rows that are not there lies under the last.
            for row, line in zip(self.rows[::-1], lines[::-1], strict=True):
                write_vector(s, self.dtype, line, row + at, mask)

        def column(i: Int) -> None:
            for (p, mask), y in zip(self._columns(i, 2), got(i), strict=True):
                write_vector(s, self.dtype, y, p, mask)

        if self.across:
            s.each(0, n, column)
        else:
            self._squares(n, 2, square)

    def write_folded(self, n: Int, x: Place, by: str, row: Int, whole: Int) -> None:
        """Half of the spectrum of `whole` real numbers, of which every step-th is a row's.

        `row` is the number of the first row; there are rows up to the middle of a step. What they
        hold behind the middle of the spectrum are the conjugates of what other rows would hold.
        """
        s, v = self.s, self.v
        item, lanes = 2 * v.item, s.lanes
        stride, middle, start = self.step // item, whole // 2, self.first + -(row * item)
        # Of the first row and of the middle of a step, the conjugates are there already.
        after = Int(s, s.new(f"zext i1 {row.test('eq', 0)} to i64"))
        before = self.left.least((stride + 1) // 2 - row)
        turned = [lanes - 1 - i // 2 + lanes * (i % 2) for i in range(2 * lanes)]

        def turn(k: Int) -> None:
            number = row + k * stride
            here = x + k * v.pair
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

        s.each(0, n, turn)
        # These two are real.
        zero = float_text(0.0, v.f.scalar)
        for k in (Int(s, "0"), middle):
            own = k % stride - row
            inside = s.new(f"and i1 {own.test('sge', 0)}, {own.test('slt', self.left)}")
            ends = s.new(f"and i1 {inside}, {(k * 2 % whole).test('eq', 0)}")
            place = start + (k * item + v.item)
            s.when(ends, functools.partial(s.write, v.f.scalar, zero, place))

    def read_real(self, n: Int, to: Place) -> None:
        """Numbers to places a pair apart."""
        s, v = self.s, self.v

        def square(i: Int, mask: str) -> None:
            for e, y in enumerate(crossed(s, v.f.scalar, self._lines(i, 1, mask))):
                v.plane_put(to + (i + e) * v.pair, y)

        def column(i: Int) -> None:
            ((p, mask),) = self._columns(i, 1)
            v.plane_put(to + i * v.pair, read_vector(s, self.dtype, p, mask))

        if self.across:
            s.each(0, n, column)
        else:
            self._squares(n, 1, square)

    def write_real(self, n: Int, x: Place, by: str) -> None:
        """The same back, times a factor."""
        s, v = self.s, self.v

        def got(i: Int) -> str:
            return v.f.mul(v.plane(x + i * v.pair), by)

        def square(i: Int, mask: str) -> None:
            lines = crossed(s, v.f.scalar, [got((i + e).least(n - 1)) for e in range(s.lanes)])
            for row, line in zip(self.rows, lines, strict=True):
                write_vector(s, self.dtype, line, row + i * v.item, mask)

        def column(i: Int) -> None:
            ((p, mask),) = self._columns(i, 1)
            write_vector(s, self.dtype, got(i), p, mask)

        if self.across:
            s.each(0, n, column)
        else:
            self._squares(n, 1, square)


@structure
class RowTransforms:
    """Transforms of complex rows, `c`, of real rows, `r`, or to real rows, `i`.

    `turned`: x is the columns of a matrix, read `across`, results lie in one piece each, and that
    at k of row i is times exp(-2πi ik/n), n numbers being in the matrix (see `fourier_long`).
    Complex rows without tables are plain ones: both halves of a long transform are one kernel.
    `h`: rows are those of such results, and what is written is half of a real spectrum.

    Words: bytes from block to block of x and of the result; rows of a block, bytes from row to row;
    bytes from one number of a row to the next; units of a block; the length of the transform; its
    passes, their number and their length; Bluestein's table or 0; roots of unity of a real row's
    length, or 0; 1 where the parts read change places, and those written; the factor of results in
    bits; the tables of `turned`; the length of the spectrum of `h`; of neither, pocketfft's loop
    for rows that are not finite, what it is given, numbers of a row and of its result.

    `across`: rows are side by side, so that memory goes on with the next row; else a row lies in
    one piece. `paired`: real rows of even length are complex ones of half of it. `family`: of the
    lengths that it serves.
    """

    real: str
    form: str
    across: bool
    paired: bool
    family: int
    turned: bool = False

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        lanes = max(module.width // (4 if self.real == "f" else 8), 2)
        passes = fourier_lanes.passes(module, lanes, self.real, self.family)
        s = Script(module, lanes)
        v = Lanes(s, self.real)
        x, out = s.address(), s.address()
        over_x, over_out, rows, along_x, along_out = s.words(5)
        step_x, step_out, chunks, length = s.words(4)
        table, count, size, chirp, roots, swapped, swaps, factor = s.words(8)
        factors = s.words(2 * self.turned)
        whole = s.word() if self.form == "h" else length
        whole_rows = self.form != "h" and not self.turned
        loop, data, n, m = s.words(4) if whole_rows else [length] * 4
        each = v.item * (1 if self.form == "i" else 2)
        turned, turns, start = (
            Place(s, s.new(f"inttoptr i64 {p.name} to ptr")) for p in (chirp, roots, table)
        )
        buffer = (size + (lanes + 1)) * v.pair
        a = Place(s, s.room((buffer * 3).name))
        b, room = a + buffer, a + buffer * 2
        odd = (count % 2).test("ne", 0)
        last, other = (
            Place(s, s.new(f"select i1 {odd}, ptr {p.name}, ptr {q.name}"))
            for p, q in ((b, a), (a, b))
        )
        number = s.new(f"bitcast i64 {factor.name} to double")
        if self.real == "f":
            number = s.new(f"fptrunc double {number} to float")
        by = s.splat(v.f.scalar, number)
        zero = v.f.k(0.0)
        given, planes = (
            (swap * v.vector, Int(s, str(v.vector)) - swap * v.vector) for swap in (swapped, swaps)
        )
        halves = length // 2 + 1

        def transform() -> None:
            def run() -> None:
                buffers = ", ".join([f"ptr {p.name}" for p in (a, b, room, start)])
                s.do(f"call void @{passes}({buffers}, i64 {count.name})")

            def convolved() -> None:
                v.scaled(a, a, length, turned, False, False)
                s.each(length, size, lambda i: v.put(a + i * v.pair, zero, zero))
                run()
                # Forth and back by the same passes, with the parts exchanged in between.
                v.scaled(last, a, size, turned + length * (2 * v.item), False, True)
                run()
                v.scaled(last, last, length, turned, True, False)

            if self.family == fourier_lanes.ANY:
                s.when(chirp.test("ne", 0), convolved, run)
            else:
                run()

        def reading(edge: Edge) -> None:
            if self.form in "ch" or (self.form == "r" and self.paired and not self.across):
                edge.read_complex(length, a, given)
            elif self.form == "r" and self.paired:
                for k in (0, 1):
                    part = Edge(v, True, edge.first + edge.step * k, edge.along, edge.step * 2,
                                edge.left)  # fmt: skip
                    part.read_real(length, a + k * v.vector)
            elif self.form == "r":
                edge.read_real(length, a)
                s.each(0, length, lambda i: v.plane_put(a + i * v.pair + v.vector, zero))
            else:
                edge.read_complex(length + 1 if self.paired else halves, b, given)
                # Of these a real row has no other part.
                v.plane_put(b + given[1], zero)
                if self.paired:
                    v.plane_put(b + length * v.pair + given[1], zero)
                    self._joined(v, b, a, length, turns)
                else:
                    self._mirrored(v, b, a, length, halves)

        def writing(chunk: Int, edge: Edge) -> None:
            if self.form == "h":
                edge.write_folded(length, last, by, chunk * lanes, whole)
            elif self.form in "cr":
                made, n = last, length if self.form == "c" else halves
                if self.form == "r" and self.paired:
                    self._parted(v, last, other, length, turns)
                    made, n = other, length + 1
                if not self.turned:
                    edge.write_complex(n, made, planes, by)
                    return

                def columns() -> None:
                    edge.write_complex(n, made, planes, by)

                def lines() -> None:
                    self._turned(v, made, n, chunk, factors)
                    line = Edge(v, False, edge.first, edge.along, edge.step, edge.left)
                    line.write_complex(n, made, planes, by)

                if self.form == "r":
                    lines()
                else:
                    s.when(factors[0].test("ne", 0), lines, columns)
            elif self.paired and not self.across:
                edge.write_complex(length, last, planes, by)
            elif self.paired:
                for k in (0, 1):
                    part = Edge(v, True, edge.first + edge.step * k, edge.along, edge.step * 2,
                                edge.left)  # fmt: skip
                    part.write_real(length, last + planes[k], by)
            else:
                edge.write_real(length, last + planes[0], by)

        if whole_rows:
            given_by, given_to = (s.new(f"inttoptr i64 {p.name} to ptr") for p in (loop, data))
            calls = Rows(
                s, given_by, given_to, held_factor(s, v.f.scalar, factor.name), (n.name, m.name),
                (along_x.name, "0", step_x.name, str(each)),
            )  # fmt: skip

        def unknown() -> Int:
            """Rows whose first result, to which all numbers add, is none: a bit each."""
            gap = v.f.mul(v.f.sub(*v.get(last)), 0.0)
            lost = s.new(f"bitcast <{lanes} x i1> {v.f.test('uno', gap, gap)} to i{lanes}")
            bits = s.new(f"zext i{lanes} {lost} to i64")
            there = loop.test("ne", 0)
            return Int(s, s.new(f"select i1 {there}, i64 {bits}, i64 0"))

        def written(
            bits: Int, read: Place, to: Place, left: Int, write: Callable[[], None]
        ) -> None:
            """Those rows by the loop, the others, which may lie over what is read, as they are."""

            def each_row(do: Callable[[Int], None]) -> None:
                def row(i: Int) -> None:
                    bit = s.new(f"trunc i64 {s.new(f'lshr i64 {bits.name}, {i.name}')} to i1")
                    s.when(bit, lambda: do(i))

                s.each(0, left.least(lanes), row)

            def made(i: Int) -> None:
                calls.run((read + i * along_x).name, (room + i * m * each).name, "1")

            def moved(i: Int) -> None:
                here, there = room + i * m * each, to + i * along_out
                s.each(0, m, lambda k: s.copy_bytes(there + k * step_out, here + k * each, each))

            def again() -> None:
                each_row(made)
                write()
                each_row(moved)

            s.when(bits.test("ne", 0), again, write)

        def unit(u: str) -> None:
            block, chunk = s.split(Int(s, u), [chunks, chunks])
            first = chunk * lanes
            left = rows - first
            read, wrote = x + block * over_x, out + block * over_out
            reading(Edge(v, self.across, read + first * along_x, along_x, step_x, left))
            transform()
            to = wrote + first * along_out

            def write() -> None:
                writing(chunk, Edge(v, self.across, to, along_out, step_out, left))

            if whole_rows:
                written(unknown(), read + first * along_x, to, left, write)
            else:
                write()

        s.function(name, unit)

    @staticmethod
    def _turned(v: Lanes, x: Place, n: Int, chunk: Int, factors: list[Int]) -> None:
        """The products with exp(-2πi ik/n), of the first row of a unit and of the others to it."""
        s = v.s
        firsts, others = (Place(s, s.new(f"inttoptr i64 {p.name} to ptr")) for p in factors)
        firsts = firsts + chunk * n * (2 * v.item)

        def turn(k: Int) -> None:
            here, row = x + k * v.pair, others + k * v.pair
            re, im = v.times(v.get(here), firsts + k * (2 * v.item))
            a, b = (read_vector(s, v.f.dtype, row + j * v.vector) for j in (0, 1))
            f = v.f
            v.put(here, f.fma(re, a, f.neg(f.mul(im, b))), f.fma(re, b, f.mul(im, a)))

        s.each(0, n, turn)

    @staticmethod
    def _parted(v: Lanes, z: Place, out: Place, h: Int, roots: Place) -> None:
        """X of 2h real numbers, whose even and odd ones were the parts of what gave Z.

        X[k] = Z[k]/2 + Z*[h - k]/2 - i·w[k]·(Z[k]/2 - Z*[h - k]/2), as 2X may be infinite.
        """
        s, f = v.s, v.f

        def turn(k: Int) -> None:
            ends = v.get(z + k % h * v.pair), v.get(z + (h - k) % h * v.pair)
            (a, b), (c, d) = [[f.mul(part, 0.5) for part in end] for end in ends]
            total, gap = (f.add(a, c), f.sub(b, d)), (f.sub(a, c), f.add(b, d))
            re, im = v.times(gap, roots + k * (2 * v.item))
            v.put(out + k * v.pair, f.add(total[0], im), f.sub(total[1], re))

        s.each(0, h + 1, turn)

    @staticmethod
    def _joined(v: Lanes, x: Place, out: Place, h: Int, roots: Place) -> None:
        """Z of half the spectrum of 2h real numbers, both with their parts exchanged.

        Z[k] = X[k] + X*[h - k] + i·w*[k]·(X[k] - X*[h - k]).
        """
        s, f = v.s, v.f

        def turn(k: Int) -> None:
            (b, a), (d, c) = v.get(x + k * v.pair), v.get(x + (h - k) * v.pair)
            total, gap = (f.add(a, c), f.sub(b, d)), (f.sub(a, c), f.add(b, d))
            # The product of the conjugates.
            re, im = v.times((gap[0], f.neg(gap[1])), roots + k * (2 * v.item))
            v.put(out + k * v.pair, f.add(total[1], re), f.add(total[0], im))

        s.each(0, h, turn)

    @staticmethod
    def _mirrored(v: Lanes, x: Place, out: Place, n: Int, halves: Int) -> None:
        """The spectrum of n real numbers, n odd, by half of it, both with their parts exchanged."""

        def turn(k: Int) -> None:
            im, re = v.get(x + k * v.pair)
            v.put(out + k * v.pair, im, re)
            v.put(out + (n - k) % n * v.pair, v.f.neg(im), re)

        v.s.each(0, halves, turn)
