"""Single elements of up to 8 bytes at starts that lie next to each other, as in x[:, i].

Starts are clamped by vectors, once for all rows that share them; elements are then read one by one.
AVX-512's gathers take Zen 4 longer: 100 of each of 10,000 rows of 100 float32 took 750 us, and
take 320 (JAX 370), of float64 2,040, and take 420 (430).
"""

from __future__ import annotations

from collections.abc import Callable

from primal.base.structures import structure
from primal.engines.cpu.code import Module, itemsize
from primal.engines.cpu.lanes import emit
from primal.engines.cpu.script import (
    MEMORY_INT,
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)

MOST = 512
"""Starts of a unit of work, which lie on the stack."""
TURN = 8
"""Elements of a turn of the loop along a row."""


@structure
class SingleGather:
    """Elements of `item` bytes at one column of start vectors of a dtype.

    Words: turns of the last batch loop per unit, units per row of it; turns of the one before per
    unit, such units; batch loops (out, x, indices), at least two; limit, stride in x, offset in
    indices; the bits of the fill value.

    counts: the dtype in which vectors count bytes.
    """

    item: int
    index: str
    batch: int
    fills: bool
    counts: str

    def write(self, module: Module, name: str) -> None:
        s = Script(module, module.width // itemsize(self.counts))
        counts, item = f"i{8 * itemsize(self.counts)}", self.item
        t, wide, each = MEMORY_INT[str(item)], s.vec(counts), itemsize(self.counts)
        x, indices, out = s.address(), s.address(), s.address()
        chunk, chunks, rows, blocks = s.words(4)
        sizes = s.words(self.batch)
        steps = [s.words(self.batch) for _ in range(3)]
        limit, stride, offset, fill = s.words(4)
        value = fill.name if item == 8 else s.new(f"trunc i64 {fill.name} to {t}")
        offsets = Place(s, s.new(f"alloca [{MOST + s.lanes} x {counts}], align 64"))

        def of(word: Int) -> str:
            """A word of the record in every lane."""
            narrow = word.name if counts == "i64" else s.new(f"trunc i64 {word.name} to {counts}")
            return s.splat(counts, narrow)

        most, apart, along = of(limit), of(stride), of(steps[1][-1])
        none, lane = s.const(counts, "0"), s.iota(counts)
        nowhere = str(-(1 << 8 * each - 1))  # the offset of what the fill value stands for

        def vector(i: Int, at: Place, left: Int, outside: str) -> str:
            mask = lanes_before(s, left)
            start = read_vector(s, self.index, at + i * itemsize(self.index), mask)
            if self.index == "u4" and self.counts == "i4":
                inside = s.intrinsic("umin", counts, start, most)
            else:
                start = emit(s, "convert", [self.index], self.counts, [start])
                inside = s.intrinsic("smin", counts, s.intrinsic("smax", counts, start, none), most)
            turn = s.new(f"add {wide} {of(i)}, {lane}")
            far = s.new(f"add {wide} {s.new(f'mul {wide} {inside}, {apart}')}, "
                        f"{s.new(f'mul {wide} {turn}, {along}')}")  # fmt: skip
            if self.fills:
                moved = s.new(f"icmp ne {wide} {start}, {inside}")
                far = s.new(f"select {s.vec('i1')} {moved}, {wide} "
                            f"{s.const(counts, nowhere)}, {wide} {far}")  # fmt: skip
                moved = s.new(f"and {s.vec('i1')} {moved}, {mask}")
                outside = s.new(f"or {s.vec('i1')} {outside}, {moved}")
            write_vector(s, self.counts, far, offsets + i * each)
            return outside

        def offset_of(i: Int) -> Int:
            found = s.read(counts, offsets + i * each)
            return Int(s, found if counts == "i64" else s.new(f"sext {counts} {found} to i64"))

        def row(here: Place, source: Place, n: Int) -> None:
            def turn(i: Int, elements: int) -> None:
                for j in range(elements):
                    place = source + offset_of(i + j)
                    s.write(t, s.read(t, place), here + (i + j) * item)

            whole = n - n % TURN
            s.each(0, whole, lambda i: turn(i, TURN), TURN)
            s.each(whole, n, lambda i: turn(i, 1))

        def filled(here: Place, source: Place, n: Int) -> None:
            def one(i: Int) -> None:
                far, to = offset_of(i), here + i * item
                s.when(
                    far.test("eq", Int(s, nowhere)), lambda: s.write(t, value, to),
                    lambda: s.write(t, s.read(t, source + far), to),
                )  # fmt: skip

            s.each(0, n, one)

        def unit(u: Int) -> None:
            index = s.split(u // chunks, [*sizes[:-2], blocks])
            places = [
                s.moved(p, [*index[:-1], index[-1] * rows, (u % chunks) * chunk], n)
                for p, n in zip((out, x, indices), steps, strict=True)
            ]
            n = (sizes[-1] - (u % chunks) * chunk).least(chunk)
            m = (sizes[-2] - index[-1] * rows).least(rows)
            at = places[2] + offset
            (outside,) = s.loop(
                "0", n.name, str(s.lanes), [(s.vec("i1"), "zeroinitializer")],
                lambda i, now: [vector(Int(s, i), at, n - Int(s, i), now[0])],
            )  # fmt: skip
            between = [n[-2] for n in steps[:2]]

            def all_rows(body: Callable[[Place, Place, Int], None]) -> None:
                s.along(0, m, between, places[:2], lambda now: body(now[0], now[1], n))

            if not self.fills:
                all_rows(row)
                return
            bits = s.new(f"bitcast {s.vec('i1')} {outside} to i{s.lanes}")
            s.when(
                s.new(f"icmp ne i{s.lanes} {bits}, 0"),
                lambda: all_rows(filled), lambda: all_rows(row),
            )  # fmt: skip

        s.units(unit)
        s.finish(name)
