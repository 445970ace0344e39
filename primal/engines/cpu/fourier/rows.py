"""Fourier transforms of many rows: one kernel for all, and the functions that it calls.

Reading, each pass and writing are functions of the process, called by the addresses in a record and
compiled with the first transform that needs them: lengths, kinds of transforms and the dimension
that is transformed are words, tables and a choice of these. There are 18 for each precision.
Real rows of even length are complex ones of half of it, whose spectrum is taken apart afterwards.
Two rows as the parts of one would share their infinities, and the rounding of the greater.
"""

from __future__ import annotations

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import KERNEL, Module
from primal.engines.cpu.fourier import edges as fourier_edges
from primal.engines.cpu.fourier import lanes as fourier_lanes
from primal.engines.cpu.fourier.lanes import Lanes
from primal.engines.cpu.fourier.pocketfft import Rows, bits_of, held_factor
from primal.engines.cpu.fourier.tables import PASSES
from primal.engines.cpu.script import Int, Place, Script

PARTS = 2 + len(PASSES)
"""Functions that a record may name."""


def lanes(real: str) -> int:
    """Rows that are transformed at once."""
    return max(_llvm.compiler().width // (4 if real == "f" else 8), 2)


@structure
class Part:
    """A function that transforms call: one of `EDGES` or of `PASSES`."""

    real: str
    does: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        s = Script(module, lanes(self.real))
        v = Lanes(s, self.real)
        if self.does in PASSES:
            fourier_lanes.write_pass(v, self.does)
            given = fourier_lanes.PARAMETERS
        else:
            fourier_edges.Edge(v).write(self.does)
            given = fourier_edges.PARAMETERS
        text = "\n".join([*s.lines, "  ret void"])
        module.functions[name] = f"define void @{name}({given}) {KERNEL} {{\n{text}\n}}\n"


def parts(real: str, read: str, write: str, passes: set[str]) -> tuple[Part | None, ...]:
    """The callees of a transform, each at its place."""
    used = [name if name in passes else "" for name in PASSES]
    return tuple([Part(real, name) if name else None for name in (read, write, *used)])


@structure
class RowTransforms:
    """Transforms of rows, as many at once as there are lanes.

    Words: the functions that read and write, and those of passes; bytes from block to block of x
    and of the result; rows of a block, units of a block; the passes, their number, numbers of a
    buffer; numbers that have no other part, or 0; of reading and then of writing what
    `edges` tells; pocketfft's loop for rows that are not finite or 0, what it is given,
    numbers of a row and of its result, bytes of one, pairs of results in the buffer.
    """

    real: str
    plain = True

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        n_lanes = lanes(self.real)
        s = Script(module, n_lanes)
        v = Lanes(s, self.real)
        x, out = s.address(), s.address()
        read, write = (s.new(f"inttoptr i64 {w.name} to ptr") for w in s.words(2))
        codes = s.at
        s.at += len(PASSES)
        over_x, over_out, rows, chunks, table, count, size, alone = s.words(8)
        given, made, after = (s.at + fourier_edges.WORDS * i for i in range(3))
        record = Place(s, "%record")
        buffer = (size + (n_lanes + 1)) * v.pair
        a = Place(s, s.room((buffer * 3).name))
        b, room = a + buffer, a + buffer * 2

        def along(words: int) -> Int:
            s.at = words
            return s.word()

        def edge(code: str, at: Place, to: Place, words: int, left: Int, first: Int) -> None:
            places = ", ".join([f"ptr {p.name}" for p in (at, to, record + 8 * words)])
            s.do(f"call void {code}({places}, i64 {left.name}, i64 {first.name})")

        def mended(last: Place, start: Place, left: Int) -> None:
            """Rows whose first result, to which all numbers add, is none, by the loop."""
            gap = v.f.mul(v.f.sub(*v.get(last)), 0.0)
            lost = s.new(f"bitcast <{n_lanes} x i1> {v.f.test('uno', gap, gap)} to i{n_lanes}")
            bits = Int(s, s.new(f"zext i{n_lanes} {lost} to i64"))
            s.at = after
            loop, data = s.words(2)

            def some() -> None:
                n, m, each, pairs = s.words(4)
                s.at = given
                along_x, step_x = s.words(2)
                s.at = made + 2
                re, im, apart = s.words(3)
                code, own = (s.new(f"inttoptr i64 {p.name} to ptr") for p in (loop, data))
                calls = Rows(
                    s, code, own, held_factor(s, v.f.scalar, str(bits_of(1.0))), (n.name, m.name),
                    (along_x.name, "0", step_x.name, each.name),
                )  # fmt: skip

                def again(i: Int) -> None:
                    calls.run((start + i * along_x).name, room.name, "1")
                    to = last + i * v.item

                    def pair(k: Int) -> None:
                        for j, place in enumerate((re, im)):
                            part = s.read(v.f.scalar, room + k * (2 * v.item) + j * v.item)
                            s.write(v.f.scalar, part, to + k * apart + place)

                    s.each(0, pairs, pair)

                def row(i: Int) -> None:
                    bit = s.new(f"trunc i64 {s.new(f'lshr i64 {bits.name}, {i.name}')} to i1")
                    s.when(bit, lambda: again(i))

                s.each(0, left.least(n_lanes), row)

            found = s.new(f"and i1 {bits.test('ne', 0)}, {loop.test('ne', 0)}")
            s.when(found, some)

        def unit(_: str, *indices: str) -> None:
            block, chunk = (Int(s, i) for i in indices)
            first = chunk * n_lanes
            left = rows - first
            start = x + block * over_x + first * along(given)
            edge(read, start, a, given, left, first)
            zero = v.f.k(0.0)
            s.each(0, alone, lambda i: v.plane_put(a + i * v.pair + v.vector, zero))
            others = (a.name, b.name, room.name, chunk.name)
            passes = Place(s, s.new(f"inttoptr i64 {table.name} to ptr"))
            last = fourier_lanes.follow(s, passes, count, record + 8 * codes, others)
            mended(last, start, left)
            edge(write, out + block * over_out + first * along(made), last, made, left, first)

        # How many blocks there are is not asked for.
        s.function(name, unit, ["%end", chunks.name])
