"""Products of few rows and a matrix that is read once, as it lies: most of them beyond the second
cache.

BLAS packs the matrix, so that it is read, written and read again: of 10 rows and 1024 x 1024
float32 that takes it twice the time of the products. Tiles are those of convolutions, over a block
of terms at a time: down a column each term is in a page of its own, which takes longer to find than
to read (3 rows: 300 us so, 110 by blocks).
"""

from __future__ import annotations

from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import Module, itemsize
from primal.engines.cpu.products import blas
from primal.engines.cpu.products.panels import Tile
from primal.engines.cpu.reader import Reader, smaller

VECTORS = 2
"""Of columns in a tile."""
STRIP = 2048
"""Bytes of a row of the matrix in a unit."""
FEW = 4
"""Rows of x up to which reading is all there is."""
BLOCKS = 8, 32
"""Terms of a block: of few rows, whose lines are so many streams to the cache, and of more, which
add to what the block before left."""
LEAST = 64
"""Columns and terms from which this is worth the calls."""
MOST, CACHE = 16, 1 << 20
"""Rows of float32 up to which a matrix of so many bytes, which the second cache holds, is read as
it lies too (16 rows by 256 x 256 33 to 20 us). More gain as much in one thread, but two share
packed products better (64 rows by 256 x 256 in a scan 56 us a step, 85 so). Of float64 none
gain."""


def rows() -> int:
    """Of a tile: their sums stay in registers."""
    return 10 if _llvm.compiler().width == 64 else 6


def fits(m: int, n: int, depth: int, columns: int) -> bool:
    """Whether this is faster than BLAS, of a product that mostly waits for memory; `columns`: the
    stride of the columns of y."""
    return m > 1 and columns == 1 and min(n, depth) >= LEAST


@structure
class Unit:
    """The function that multiplies a unit, with `blas.UNIT` as its parameters, by calls of a tile,
    the word behind its own."""

    dtype: str
    lanes: int

    @property
    def tile(self) -> Tile:
        """The function it calls."""
        return Tile(self.dtype, rows(), VECTORS, self.lanes, 1, fewer=True)

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module)
        c, size, width = r.c, itemsize(self.dtype), VECTORS * self.lanes
        code = c.new(f"load ptr, ptr {c.new('getelementptr i64, ptr %callees, i64 1')}")
        nest = c.new("alloca [3 x i64]")
        for i, word in enumerate(("%ak", "%bk")):
            c.do(f"store i64 {word}, ptr {c.new(f'getelementptr i64, ptr {nest}, i64 {i + 1}')}")

        # As many rows in each tile, but for the last.
        most = self.tile.rows
        tiles = c.new(f"udiv i64 {c.new(f'add i64 %below, {most - 1}')}, {most}")
        over = c.new(f"sub i64 {c.new(f'add i64 %below, {tiles}')}, 1")
        each = c.new(f"udiv i64 {over}, {tiles}")

        few = c.new(f"icmp ule i64 %below, {FEW}")
        terms = c.new(f"select i1 {few}, i64 {BLOCKS[0]}, i64 {BLOCKS[1]}")

        def block(k: str, _: list[str]) -> list[str]:
            turns = smaller(c, c.new(f"sub i64 %depth, {k}"), terms)
            c.do(f"store i64 {turns}, ptr {nest}")
            x, y = r.moved("%x", (k, "%ak")), r.moved("%y", (k, "%bk"))

            def column(j: str, _: list[str]) -> list[str]:
                left = smaller(c, c.new(f"sub i64 %wide, {j}"), str(width))
                right, to = (r.moved(p, (j, str(size))) for p in (y, "%z"))

                def tile(i: str, _: list[str]) -> list[str]:
                    some = smaller(c, c.new(f"sub i64 %below, {i}"), each)
                    places = r.moved(x, (i, "%am")), right, r.moved(to, (i, "%om"))
                    self.tile.call(c, code, places, ("%am", "%om", left, k, some), nest)
                    return []

                c.loop("0", "%below", each, [], tile)
                return []

            c.loop("0", "%wide", str(width), [], column)
            return []

        c.loop("0", "%depth", terms, [], block)
        c.do("ret i1 false")
        text = "\n".join(c.lines)
        module.functions[name] = f"define i1 @{name}({blas.UNIT}) nounwind {{\n{text}\n}}\n"


def used(dtype: str, m: int) -> tuple[tuple[Any, ...], tuple[int, int], int]:
    """Functions of the process, rows and columns of a unit, bytes of memory."""
    lanes = _llvm.compiler().width // itemsize(dtype)
    unit = Unit(dtype, lanes)
    return (unit, unit.tile), (m, STRIP // itemsize(dtype)), 0
