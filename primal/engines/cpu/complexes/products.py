"""Products of complex numbers along axes: of all of them, and running ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import LINE, Module, itemsize
from primal.engines.cpu.complexes import folds
from primal.engines.cpu.complexes.vectors import Vectors, product
from primal.engines.cpu.functions.floats import Floats
from primal.engines.cpu.graph import Value
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels.turned_rows import LONGEST
from primal.engines.cpu.routines.moves import held, name_of
from primal.engines.cpu.routines.scans import blocks, is_thin, sizes_along
from primal.engines.cpu.script import (
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)
from primal.ir.avals import Aval

PARTS, LONG = 256, 1 << 16
"""Parts of rows, and the numbers from which few rows have some."""
WIDE, MANY = 128, 64
"""Numbers side by side to which few columns are put together, of no fewer rows; rows of a part."""
FEW = 32
"""Units from which threads have enough to share."""
TOGETHER = 4
"""Rows of columns that are multiplied before what was there is read and written."""
BLOCK = 256
"""Columns of a unit, whose products stay in the first cache."""


def multiplied(k: Any, x: Value, axes: Sequence[int]) -> Value:
    """The product over axes, read in the order in which the numbers lie."""
    return folds.by_runs(
        k, x, axes, folds.order_of(k, x),
        lambda x: folds.fold(k, "mul", x) if x.shape[1] <= LONGEST else _product(k, x),
    )  # fmt: skip


def _product(k: Any, x: Value) -> Value:
    """[outer, n, inner] with n multiplied up."""
    if x.shape[1] <= LONGEST:
        return folds.in_lanes(k, "mul", x)
    x = k.dense(held(k, x))
    outer, n, inner = x.shape
    part = PART[name_of(x)]
    if inner == 1:
        lanes = _llvm.compiler().width // itemsize(part)
        parts = PARTS if n >= LONG and outer < FEW else 1
        (out,) = k.routine(
            ProductsOfRows(part), [x], [Aval((outer, parts), x.dtype)],
            [n, n // parts, parts, outer * parts], units=-(-outer * parts // lanes),
            cost=lanes * n // parts, name="prod",
        )  # fmt: skip
        return _product(k, k.reshape(out, (outer, parts, 1))) if parts > 1 else out
    several = max(min(WIDE // inner, n // MANY), 1)
    row = several * inner
    blocks, rows = -(-row // BLOCK), n // several
    parts = min(max(rows // MANY, 1), FEW) if outer * blocks < FEW else 1
    (out,) = k.routine(
        ProductsOfColumns(part), [x], [Aval((outer, parts * several, inner), x.dtype)],
        [n * inner, row, rows // parts, parts, -(-n // several), BLOCK, blocks],
        units=outer * parts * blocks, cost=min(row, BLOCK) * rows // parts, name="prod",
    )  # fmt: skip
    return _product(k, out) if parts * several > 1 else out


@structure
class ProductsOfRows:
    """The product of every row of complex numbers, in parts if there are some.

    Words: numbers of a row; those of a part, of which the last has what is left; parts; how many
    there are in all. A unit takes as many as a vector has lanes, each no shorter than a vector.
    """

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        s = Script(module, module.width // itemsize(self.dtype))
        v = Vectors(s, self.dtype)
        x, out = s.address(), s.address()
        n, length, parts, count = s.words(4)
        bytes_ = s.lanes * itemsize(self.dtype)
        rooms = [Place(s, s.new(f"alloca i8, i64 {s.lanes * bytes_}, align {LINE}")) for _ in "ri"]

        def unit(u: Int) -> None:
            first = u * s.lanes

            def row(r: Int) -> None:
                at = first + r
                part = at % parts
                start = part * length
                last = s.new(f"select i1 {part.test('eq', parts - 1)}, i64 {n.name}, "
                             f"i64 {(start + length).name}")  # fmt: skip
                here = x + (at // parts * n + start) * (2 * itemsize(self.dtype))
                size = Int(s, last) - start

                def turn(i: str, now: list[str]) -> list[str]:
                    mask = lanes_before(s, size - Int(s, i))
                    made = v.times(now, v.read(here, i, mask))
                    return [v.either(mask, a, b) for a, b in zip(made, now, strict=True)]

                begin = [(v.t, a) for a in v.read(here, "0", None)]
                found = s.loop(str(s.lanes), size.name, str(s.lanes), begin, turn)
                for room, value in zip(rooms, found, strict=True):
                    write_vector(s, self.dtype, value, room + r * bytes_)

            s.each(0, (count - first).least(s.lanes), row)
            rows = [
                (read_vector(s, self.dtype, rooms[0] + r * bytes_),
                 read_vector(s, self.dtype, rooms[1] + r * bytes_))
                for r in range(s.lanes)
            ]  # fmt: skip
            # Neighbours in every two rows are multiplied, until each lane is a row's.
            while len(rows) > 1:
                rows = [
                    v.times(*[(v.every_other(a[0], b[0], odd), v.every_other(a[1], b[1], odd))
                              for odd in (0, 1)])
                    for a, b in zip(rows[::2], rows[1::2], strict=True)
                ]  # fmt: skip
            v.write(rows[0], out, first.name, lanes_before(s, count - first))

        s.units(unit)
        s.finish(name)


@structure
class ProductsOfColumns:
    """The product of every column of complex numbers, in parts if there are some.

    Words: numbers of an outer index; those of a row, of which the last may have fewer; rows of a
    part, of which the last has what is left; parts; rows; columns of a unit, units side by side.
    The products are where they end from the first row on.
    """

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        s = Script(module, module.width // itemsize(self.dtype))
        v = Vectors(s, self.dtype)
        x, out = s.address(), s.address()
        size, row, length, parts, rows, each, blocks = s.words(7)
        item = 2 * itemsize(self.dtype)

        def unit(u: Int) -> None:
            outer, part, block = s.split(u, [Int(s, "0"), parts, blocks])
            begin = block * each
            to = out + ((outer * parts + part) * row + begin) * item
            start = part * length
            stop = Int(s, s.new(f"select i1 {part.test('eq', parts - 1)}, i64 {rows.name}, "
                                f"i64 {(start + length).name}"))  # fmt: skip
            source = x + (outer * size + begin) * item

            def line(k: Int, use: Callable[[Place, str, str], None]) -> None:
                width = (size - k * row).least(row) - begin
                here = source + k * row * item
                wide = width.least(each)
                s.each(0, wide, lambda i: use(here, i.name, lanes_before(s, wide - i)), s.lanes)

            line(start, lambda here, i, mask: v.write(v.read(here, i, mask), to, i, mask))

            def times(together: int) -> Callable[[Place, str, str], None]:
                def use(here: Place, i: str, mask: str) -> None:
                    found = [v.read(here + row * (n * item), i, mask) for n in range(together)]
                    while len(found) > 1:
                        found = [v.times(*found[n : n + 2]) for n in range(0, len(found), 2)]
                    v.write(v.times(v.read(to, i, mask), found[0]), to, i, mask)

                return use

            # The last row may be shorter.
            many = start + 1 + (stop - start - 2).most(0) // TOGETHER * TOGETHER
            s.each(start + 1, many, lambda k: line(k, times(TOGETHER)), TOGETHER)
            s.each(many, stop, lambda k: line(k, times(1)))

        s.units(unit)
        s.finish(name)


@structure
class ComplexProducts:
    """out[k] = x[0] · … · x[k], whose parts are arrays; words as of `scans.Scan`.

    As of real numbers the order decides whether they overflow on the way: one after another.
    """

    dtype: str
    reverse: bool
    across: bool

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        s = Script(module, module.width // item if self.across else 1)
        parts = [s.address() for _ in range(4)]
        n, row = s.words(2)
        inner, chunk, chunks = s.words(3)
        f = Floats(s, self.dtype)

        def unit(_: Int, outer: Int, part: Int) -> None:
            base, start = outer * row, part * chunk
            stop = (start + chunk).least(inner)

            def column(i: Int) -> None:
                mask = lanes_before(s, stop - i) if self.across else ""

                def turn(j: str, now: list[str]) -> list[str]:
                    k = n - Int(s, j) - 1 if self.reverse else Int(s, j)
                    here = base + (k * inner + i) * item
                    x = [read_vector(s, self.dtype, p + here, mask) for p in parts[:2]]
                    made = [*product(f, now, x)]
                    for part, value in zip(parts[2:], made, strict=True):
                        write_vector(s, self.dtype, value, part + here, mask)
                    return made

                k = n - 1 if self.reverse else Int(s, "0")
                here = base + (k * inner + i) * item
                first = [read_vector(s, self.dtype, p + here, mask) for p in parts[:2]]
                for part, value in zip(parts[2:], first, strict=True):
                    write_vector(s, self.dtype, value, part + here, mask)
                s.loop("1", n.name, "1", [(f.t, v) for v in first], turn)

            s.each(start, stop, column, s.lanes)

        s.units(unit, chunks)
        s.finish(name)


def running(k: Any, x: Value, axis: int, reverse: bool) -> Value:
    """x[0], x[0] · x[1], … along an axis, or from the end."""
    parts = [k.dense(held(k, part)) for part in k.parts(x)]
    dtype, avals = name_of(parts[0]), [part.aval for part in parts]
    outer, n, inner = sizes_along(parts[0].shape, axis)
    chunk, chunks = blocks(inner, n, 2 * itemsize(dtype))
    made = k.routine(
        ComplexProducts(dtype, reverse, inner > 1), parts, avals,
        [n, n * inner * itemsize(dtype), inner, chunk, chunks], units=outer * chunks,
        cost=4 * n * min(inner, chunk),
        reuses=() if is_thin(inner, dtype) else ((0, 0), (1, 1)), name="cumprod",
    )  # fmt: skip
    return k.pair(*made, x.dtype)
