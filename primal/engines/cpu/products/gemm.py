"""Products of matrices in register tiles: operands packed by blocks, then summed as in `panels`.

A unit, a tile and what packs are functions of the process, compiled with the first product that is
not faster by BLAS; the kernel is that of `blas`.

A unit is a block of rows and columns of the result. For every block of terms it packs its columns
of y, and its rows of x where they are so far apart that they share few lines of the cache, or where
not its terms but its rows are contiguous. Nothing is packed twice within a unit, and a unit is big
enough for that to be cheap.

BLAS packs both operands in each call, and calls are as small as units: 256 x 768 x 256 in four
parts takes it a tenth longer than in one, transposed a third.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import SCALAR, SUFFIX, Code, Module, itemsize
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.products import blas
from primal.engines.cpu.products.panels import Tile
from primal.engines.cpu.reader import Reader, smaller
from primal.ir.avals import Aval

DEPTH = 1024
"""Bytes of a row in a block of terms."""
ROWS = 112
"""Rows of x that are packed at a time, at most: with the columns of y they stay in the second
cache, and both in the stack of any thread."""
COLUMNS = 128
"""Columns of a unit."""
FAR = 2048
"""Rows that are a multiple of so many bytes apart are packed, as they share lines of the cache."""
MOST, MOST_LYING = 4e8, 8e9
"""Operations of the largest products made here, and of those whose rows of x are read as they lie
(on Zen 4 720 x 720 float32 8.2 to 7.3 ms by one thread, JAX 7.5, of float64 17.1 to 14.9, 14.6;
1500 x 1500 74 to 68)."""
SPLIT = 128
"""Rows from which a unit is split in two, so that there are enough of them."""


@structure
class Packing:
    """What functions of a product have in common: vectors of `lanes` of a dtype."""

    dtype: str
    lanes: int

    @property
    def rows(self) -> int:
        """Of a tile. Of 12 to 14, whichever fill the rows best, each with code of its own, were no
        faster."""
        return 12 if self.lanes * self.item == 64 else 6

    @property
    def item(self) -> int:
        return itemsize(self.dtype)

    @property
    def scalar(self) -> str:
        return SCALAR[self.dtype]

    @property
    def depth(self) -> int:
        """Terms of a block."""
        return DEPTH // self.item

    @property
    def side(self) -> int:
        """Elements from term to term of a tile of x that was packed across its rows."""
        return -(-self.rows // self.lanes) * self.lanes

    def tall(self, across: bool) -> int:
        """Bytes of a packed tile of x, no power of 2."""
        if across:
            return (self.depth + 1) * self.side * self.item
        return self.rows * (self.depth + self.lanes) * self.item

    @property
    def high(self) -> int:
        """Rows that are packed at a time."""
        return ROWS // self.rows * self.rows

    @property
    def room(self) -> int:
        """Bytes for the packed columns, and behind them rows, of a unit."""
        most = max(self.tall(True), self.tall(False))
        return self.depth * COLUMNS * self.item + (self.high // self.rows + 1) * most

    # Vectors of which some lanes count.

    def _mask(self, c: Code, count: str) -> str:
        """The lanes before `count`, which may be any number."""
        t = "i32" if self.lanes <= 16 else "i8"
        some = c.call("llvm.smax.i64", "i64", ("i64", count), ("i64", "0"))
        some = smaller(c, some, str(self.lanes))
        small = c.splat(t, c.new(f"trunc i64 {some} to {t}"))
        return c.new(f"icmp ugt {c.vec(t)} {small}, {c.iota(t)}")

    def _load(self, c: Code, p: str, mask: str) -> str:
        t = c.vec(self.scalar)
        name = f"llvm.masked.load.v{self.lanes}{'f32' if self.item == 4 else 'f64'}.p0"
        given = [("ptr", p), ("i32", str(self.item)), (c.vec("i1"), mask), (t, "zeroinitializer")]
        return c.call(name, t, *given)


@structure
class Unit(Packing):
    """The function that multiplies a unit of rows and columns. It calls those of a tile of the
    result, of packing columns of y and rows of x: the words behind its own."""

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module, self.lanes)
        c = r.c
        size, width, high = self.item, 2 * self.lanes, self.high
        tile, columns_of, rows_of = [
            c.new(f"load ptr, ptr {c.new(f'getelementptr i64, ptr %callees, i64 {i}')}")
            for i in range(1, 4)
        ]
        right, am, ak, bk, bn, om = "%room", "%am", "%ak", "%bk", "%bn", "%om"
        left = c.new(f"getelementptr i8, ptr {right}, i64 {self.depth * COLUMNS * size}")
        # Where not the terms of x but its rows are contiguous. Rows lie badly where they are so far
        # apart that they share few lines of the cache.
        across = c.new(f"icmp ne i64 {ak}, {size}")
        near = c.new(f"icmp ne i64 {c.new(f'and i64 {am}, {FAR - 1}')}, 0")
        lies = c.new(f"and i1 {near}, {c.new(f'xor i1 {across}, true')}")

        def either(which: str, one: str | int, other: str | int) -> str:
            return c.new(f"select i1 {which}, i64 {one}, i64 {other}")

        apart = either(across, ak, am)
        tall = either(across, self.tall(True), self.tall(False))
        step = either(lies, am, either(across, size, (self.depth + self.lanes) * size))
        by = either(lies, ak, either(across, self.side * size, size))
        # The loop of a tile: terms, and bytes from one to the next.
        nest = c.new("alloca [3 x i64]")
        for i, word in enumerate((by, str(width * size))):
            c.do(f"store i64 {word}, ptr {c.new(f'getelementptr i64, ptr {nest}, i64 {i + 1}')}")

        def block(k: str, _: list[str]) -> list[str]:
            turns = smaller(c, c.new(f"sub i64 %depth, {k}"), str(self.depth))
            c.do(f"store i64 {turns}, ptr {nest}")
            here = r.moved("%y", (k, bk))
            c.do(
                f"call void {columns_of}(ptr {here}, ptr {right}, i64 {turns}, i64 %wide, "
                f"i64 {bk}, i64 {bn})"
            )
            from_x = r.moved("%x", (k, ak))
            c.loop("0", "%below", str(high), [], lambda i, _: rows(i, from_x, k, turns))
            return []

        def rows(i: str, x: str, k: str, turns: str) -> list[str]:
            count = smaller(c, c.new(f"sub i64 %below, {i}"), str(high))
            # Tiles overlap where they do not fill the rows; so may blocks of rows.
            short = c.new(f"icmp slt i64 {count}, {self.rows}")
            from_row = c.new(f"sub i64 %below, {self.rows}")
            start = c.new(f"select i1 {short}, i64 {from_row}, i64 {i}")
            done = c.new(f"sub i64 {i}, {start}")
            count = c.new(f"add i64 {count}, {done}")
            x, to = r.moved(x, (start, am)), r.moved("%z", (start, om))
            last = c.new(f"sub i64 {count}, {self.rows}")
            pack, ready = c.label("pack"), c.label("ready")
            c.do(f"br i1 {lies}, label %{ready}, label %{pack}")
            c.start(pack)
            c.do(
                f"call void {rows_of}(ptr {x}, ptr {left}, i64 {count}, i64 {turns}, "
                f"i64 {apart}, i64 {last})"
            )
            c.do(f"br label %{ready}")
            c.start(ready)

            def panel(j: str, _: list[str]) -> list[str]:
                y = r.moved(right, (j, str(self.depth * size)))
                rest = smaller(c, c.new(f"sub i64 %wide, {j}"), str(width))
                z = r.moved(to, (j, str(size)))
                c.loop("0", count, str(self.rows), [], lambda i, _: one(i, y, z, rest))
                return []

            def one(i: str, y: str, z: str, rest: str) -> list[str]:
                at = smaller(c, i, last)
                skip = c.new(f"sub i64 {i}, {at}")
                skip = c.call("llvm.smax.i64", "i64", ("i64", skip), ("i64", done))
                first = c.new(f"icmp eq i64 {i}, 0")
                moved = c.new(f"sub i64 {i}, {at}")
                skip = c.new(f"select i1 {first}, i64 {skip}, i64 {moved}")
                index = c.new(f"udiv i64 {i}, {self.rows}")
                packed = r.moved(left, (index, tall))
                p = c.new(f"select i1 {lies}, ptr {r.moved(x, (at, am))}, ptr {packed}")
                z = r.moved(z, (at, om))
                given = [f"ptr {v}" for v in (p, y, z)]
                given += [f"i64 {v}" for v in (step, om, rest, k, skip)] + [f"ptr {nest}"]
                c.do(f"call void {tile}({', '.join(given)})")
                return []

            c.loop("0", "%wide", str(width), [], panel)
            return []

        c.loop("0", "%depth", str(self.depth), [], block)
        c.do("ret i1 false")
        text = "\n".join(c.lines)
        module.functions[name] = f"define i1 @{name}({blas.UNIT}) nounwind {{\n{text}\n}}\n"


@structure
class Columns(Packing):
    """The function that packs columns of y, in panels of two vectors of columns, one after the
    other; missing columns are zeros. `turned`: its terms are contiguous, not its columns."""

    turned: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module, self.lanes)
        c, size, lanes = r.c, self.item, self.lanes
        t, width = c.vec(self.scalar), 2 * lanes

        def panel(j: str, _: list[str]) -> list[str]:
            source = r.moved("%y", (j, "%bn"))
            target = r.moved("%to", (j, str(self.depth * size)))
            rest = c.new(f"sub i64 %wide, {j}")
            if self.turned:
                c.loop("0", "2", "1", [], lambda v, _: self._turned(r, source, target, rest, v))
                return []
            masks = [self._mask(c, c.new(f"sub i64 {rest}, {v * lanes}")) for v in range(2)]

            def term(k: str, _: list[str]) -> list[str]:
                for v in range(2):
                    p = r.moved(source, (k, "%bk"), (str(v * lanes), str(size)))
                    q = r.moved(target, (k, str(width * size)), (str(v * lanes), str(size)))
                    c.do(f"store {t} {self._load(c, p, masks[v])}, ptr {q}, align {size}")
                return []

            c.loop("0", "%turns", "1", [], term)
            return []

        c.loop("0", "%wide", str(width), [], panel)
        r.helper(name, "ptr %y, ptr %to, i64 %turns, i64 %wide, i64 %bk, i64 %bn", "")

    def _turned(self, r: Reader, source: str, target: str, rest: str, v: str) -> list[str]:
        """Vector v of a panel: squares of lanes x lanes elements, turned in registers."""
        c, size, lanes = r.c, self.item, self.lanes
        t = c.vec(self.scalar)
        # Columns that are not there repeat the last one: what they give is not stored.
        top = c.new(f"sub i64 {rest}, 1")
        first = c.new(f"mul i64 {v}, {lanes}")
        rows = []
        for i in range(lanes):
            at = smaller(c, top, c.new(f"add i64 {first}, {i}"))
            rows.append(r.moved(source, (at, "%bn")))

        def square(k: str, _: list[str]) -> list[str]:
            mask = self._mask(c, c.new(f"sub i64 %turns, {k}"))
            xs = [self._load(c, r.moved(p, (k, str(size))), mask) for p in rows]
            half = lanes // 2
            step = 1
            while step < lanes:
                out = []
                for i in range(half):
                    for low in (0, half):
                        chosen = ", ".join(
                            f"i32 {low + j}, i32 {lanes + low + j}" for j in range(half)
                        )
                        out.append(
                            c.new(
                                f"shufflevector {t} {xs[i]}, {t} {xs[i + half]}, "
                                f"<{lanes} x i32> <{chosen}>"
                            )
                        )
                xs, step = out, 2 * step
                if step == 4:
                    # A seam in the middle: looking for one shuffle in place of all four takes LLVM
                    # a third of the time for this function.
                    fence = f"llvm.arithmetic.fence.v{lanes}{SUFFIX[self.scalar]}"
                    xs = [c.call(fence, t, (t, x)) for x in xs]
            q = r.moved(target, (k, str(2 * lanes * size)), (first, str(size)))
            for x in xs:
                c.do(f"store {t} {x}, ptr {q}, align {size}")
                q = r.moved(q, ("1", str(2 * lanes * size)))
            return []

        c.loop("0", "%turns", str(lanes), [], square)
        return []


@structure
class Rows(Packing):
    """The function that packs rows of x in tiles, one after the other. `across`: its rows are
    contiguous, not its terms."""

    across: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        (self._across if self.across else self._along)(module, name)

    def _along(self, module: Module, name: str) -> None:
        """Tiles whose rows follow each other, their elements close together."""
        r = Reader(module, self.lanes)
        c, size, lanes = r.c, self.item, self.lanes
        t, suffix = c.vec(self.scalar), "f32" if self.item == 4 else "f64"

        def store(value: str, q: str, mask: str) -> None:
            given = [(t, value), ("ptr", q), ("i32", str(size)), (c.vec("i1"), mask)]
            c.call_void(f"llvm.masked.store.v{lanes}{suffix}.p0", *given)

        tall = str(self.tall(self.across))

        def tile(i: str, now: list[str]) -> list[str]:
            source, target = r.moved("%x", (smaller(c, i, "%last"), "%am")), now[0]

            def row(j: str, _: list[str]) -> list[str]:
                p = r.moved(source, (j, "%am"))
                q = r.moved(target, (j, str((self.depth + lanes) * size)))

                def some(k: str, _: list[str]) -> list[str]:
                    mask = self._mask(c, c.new(f"sub i64 %turns, {k}"))
                    at = (k, str(size))
                    store(self._load(c, r.moved(p, at), mask), r.moved(q, at), mask)
                    return []

                c.loop("0", "%turns", str(lanes), [], some)
                return []

            c.loop("0", str(self.rows), "1", [], row)
            return [r.moved(target, ("1", tall))]

        c.loop("0", "%count", str(self.rows), [("ptr", "%to")], tile)
        r.helper(name, "ptr %x, ptr %to, i64 %count, i64 %turns, i64 %am, i64 %last", "")

    def _across(self, module: Module, name: str) -> None:
        """Tiles with the rows of a term side by side."""
        r = Reader(module, self.lanes)
        c, size, lanes = r.c, self.item, self.lanes
        t = c.vec(self.scalar)
        counts = [min(lanes, self.rows - first) for first in range(0, self.rows, lanes)]
        masks = [
            "<" + ", ".join([f"i1 {int(i < count)}" for i in range(lanes)]) + ">"
            for count in counts
        ]

        def term(k: str, _: list[str]) -> list[str]:
            source, target = r.moved("%x", (k, "%ak")), r.moved("%to", (k, str(self.side * size)))

            def tile(i: str, now: list[str]) -> list[str]:
                p = r.moved(source, (smaller(c, i, "%last"), str(size)))
                for v, mask in enumerate(masks):
                    at = (str(v * lanes), str(size))
                    value = self._load(c, r.moved(p, at), mask)
                    c.do(f"store {t} {value}, ptr {r.moved(now[0], at)}, align {size}")
                return [r.moved(now[0], ("1", str(self.tall(self.across))))]

            c.loop("0", "%count", str(self.rows), [("ptr", target)], tile)
            return []

        c.loop("0", "%turns", "1", [], term)
        r.helper(name, "ptr %x, ptr %to, i64 %count, i64 %turns, i64 %ak, i64 %last", "")


def parts_of(m: int, n: int) -> int:
    """Units along the rows: more where there are few columns."""
    parts = 1
    while m // (2 * parts) >= SPLIT and parts * -(-n // COLUMNS) < 8:
        parts *= 2
    return parts


@structure
class Sum(Packing):
    """Sums over a first dimension, a vector of elements in each unit; words: terms, elements.

    For the parts of products: a group that reduces takes four times as long to compile, and a
    product with ones by BLAS, which compiles nothing, 6 to 14 microseconds longer.
    """

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module, self.lanes)
        c, t, size = r.c, f"<{self.lanes} x {self.scalar}>", str(self.item)
        x, z = r.array(), r.array()
        terms, elements = r.word(), r.word()
        step = c.new(f"mul i64 {elements}, {size}")

        def unit(u: str) -> None:
            first = c.new(f"mul i64 {u}, {self.lanes}")
            mask = self._mask(c, c.new(f"sub i64 {elements}, {first}"))
            begin = r.moved(x, (first, size))

            def add(_: str, now: list[str]) -> list[str]:
                p, total = now
                total = c.new(f"fadd {t} {total}, {self._load(c, p, mask)}")
                return [r.moved(p, ("1", step)), total]

            found = c.loop("0", terms, "1", [("ptr", begin), (t, "zeroinitializer")], add)[1]
            given = [(t, found), ("ptr", r.moved(z, (first, size))), ("i32", size)]
            suffix = "f32" if self.item == 4 else "f64"
            c.call_void(f"llvm.masked.store.v{self.lanes}{suffix}.p0", *given, (c.vec("i1"), mask))

        r.units(name, unit)


def added(k: Any, x: Value) -> Value:
    """The sum of an array of floats, which lies row-major, over its first dimension."""
    terms, shape = x.shape[0], x.shape[1:]
    spec = Sum(x.node.dtype.str[1:], 4 * _llvm.compiler().width // x.dtype.itemsize)
    out: Value = k.routine(
        spec, (x,), (Aval(shape, x.dtype),), (terms, size_of(shape)),
        units=-(-size_of(shape) // spec.lanes), cost=10 + 4 * terms, name="add",
    )[0]  # fmt: skip
    return out


def fits(m: int, n: int, depth: int, x: tuple[int, int], turned: bool, size: int) -> bool:
    """Whether this is faster than BLAS: tiles fill enough of a product, whose operands do not leave
    the caches. Small ones BLAS reads as they lie, where the CPU has AVX-512.

    Strides of x in elements; `turned`: the terms of y are contiguous.
    """
    width = 2 * _llvm.compiler().width // size
    if m * n * depth <= blas.UNPACKED and not turned and _llvm.compiler().width == 64:
        return False
    filled = m >= 16 and depth >= 16 and -(-n // width) * width <= 1.25 * n
    lies = x[1] == 1 and x[0] * size % FAR != 0
    return filled and 2.0 * m * n * depth < (MOST_LYING if lies else MOST)


def packed(
    dtype: str, sizes: tuple[int, int, int], strides: Sequence[tuple[int, int]]
) -> tuple[tuple[Unit, Tile, Columns, Rows], tuple[int, int], int]:
    """Functions of the process, rows and columns of a unit, bytes of memory; strides in elements,
    of x by row and term, of y by term and column."""
    m, n, _ = sizes
    (_, term), (_, column) = strides
    parts = parts_of(m, n)
    # Round numbers of rows: tiles fill more of them.
    each = m if parts == 1 else -(-m // (32 * parts)) * 32
    lanes = _llvm.compiler().width // itemsize(dtype)
    unit = Unit(dtype, lanes)
    tile = Tile(dtype, unit.rows, 2, lanes, 1, overlaps=True, filled=True)
    packs = Columns(dtype, lanes, column != 1), Rows(dtype, lanes, term != 1)
    return (unit, tile, *packs), (each, COLUMNS), unit.room
