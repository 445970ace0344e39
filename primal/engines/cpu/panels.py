"""Sums of products over loops, in tiles of registers: the body of convolutions.

out[l, i, j] = Σk a[l, i, k] b[l, k, j], where l and k stand for any number of loops with strides of
their own. Lanes run along j, in which b and the result are contiguous; a is read one element at a
time, so that its strides are free. A tile keeps rows x vectors of sums in registers, as many as
there are, while k runs through all its loops: nothing is unfolded or packed.
"""

from __future__ import annotations

from collections.abc import Sequence

from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, Code, Module, itemsize
from primal.engines.cpu.graph import size_of
from primal.engines.cpu.reader import Reader, smaller

Loop = tuple[int, tuple[int, ...]]
"""A loop: its size, and its strides in a, b and (not those of k) the result, in elements."""


@structure
class Panels:
    """Tiles of `rows` rows and `vectors` vectors of lanes.

    `whole`: the tiles fill j. `outer`, `inner`: how many loops l and k have. `blocks`: so many of
    the loops of k, the first ones, run around the tiles, which add to the result after the first
    turn. `turns`: so many of the loops of l, the last ones, run inside those, so that a block meets
    all that needs it; the others are units.

    Words: size of i, its strides in a and the result; size of j; sizes and strides of the loops.
    """

    dtype: str
    rows: int
    vectors: int
    lanes: int
    whole: bool
    outer: int
    inner: int
    blocks: int
    turns: int

    def write(self, module: Module, name: str) -> None:
        """Add the function, and that of a tile."""
        tile = f"{name}_tile"
        self.tile(module, tile)
        r = Reader(module)
        c = r.c
        a, b, out = r.array(), r.array(), r.array()
        m, step_a, step_out, n = r.word(), r.word(), r.word(), r.word()
        loops = r.loops(self.outer, 3)
        inner = r.loops(self.inner, 2)
        width = self.vectors * self.lanes
        size = itemsize(self.dtype)
        up = c.new(f"add i64 {n}, {width - 1}")
        columns = c.new(f"udiv i64 {up}, {width}")
        last = c.new(f"sub i64 {m}, {self.rows}")
        twice, thrice = c.new(f"mul i64 {step_a}, 2"), c.new(f"mul i64 {step_a}, 3")
        nest = [w for loop in inner[self.blocks :] for w in loop]

        def tiles(i: str, places: list[str]) -> list[str]:
            x, y, z, left, add = places
            start = smaller(c, i, last)
            skip = c.new(f"sub i64 {i}, {start}")
            given = [
                f"ptr {r.moved(x, (start, step_a))}", f"i64 {step_a}", f"i64 {twice}",
                f"i64 {thrice}", f"ptr {y}",
                f"ptr {r.moved(z, (start, step_out))}", f"i64 {step_out}", f"i64 {left}",
                f"i64 {skip}", f"i64 {add}", *[f"i64 {w}" for w in nest],
            ]  # fmt: skip
            c.do(f"call void @{tile}({', '.join(given)})")
            return []

        def unit(u: str) -> None:
            u, j = r.split(u, columns)
            x, y, z = r.walked(u, loops[: self.outer - self.turns], [a, b, out])
            first = c.new(f"mul i64 {j}, {width}")
            y, z = r.moved(y, (first, str(size))), r.moved(z, (first, str(size)))
            left = smaller(c, c.new(f"sub i64 {n}, {first}"), str(width))

            def inside(d: int, places: list[str], turns: str) -> list[str]:
                if d == self.turns:
                    given = [*places, left, turns]
                    c.loop("0", m, str(self.rows), [], lambda i, _: tiles(i, given))
                    return []
                count, *by = loops[self.outer - self.turns + d]

                def turn(k: str, _: list[str]) -> list[str]:
                    moved = [r.moved(p, (k, s)) for p, s in zip(places, by, strict=True)]
                    return inside(d + 1, moved, turns)

                c.loop("0", count, "1", [], turn)
                return []

            def block(d: int, x: str, y: str, turns: str) -> list[str]:
                if d == self.blocks:
                    return inside(0, [x, y, z], turns)
                count, by_a, by_b = inner[d]

                def turn(k: str, _: list[str]) -> list[str]:
                    before = c.new(f"or i64 {turns}, {k}")
                    return block(d + 1, r.moved(x, (k, by_a)), r.moved(y, (k, by_b)), before)

                c.loop("0", count, "1", [], turn)
                return []

            block(0, x, y, "0")

        r.units(name, unit)

    def tile(self, module: Module, name: str) -> None:
        c = Code(module, self.lanes)
        scalar, size = SCALAR[self.dtype], itemsize(self.dtype)
        t = c.vec(scalar)
        c.start("entry")
        masks = [""] * self.vectors
        mask_type = "i32" if self.lanes <= 16 else "i8"
        if not self.whole:
            for v in range(self.vectors):
                rest = c.new(f"sub i64 %left, {v * self.lanes}")
                some = c.call("llvm.smax.i64", "i64", ("i64", rest), ("i64", "0"))
                some = smaller(c, some, str(self.lanes))
                small = c.splat(mask_type, c.new(f"trunc i64 {some} to {mask_type}"))
                masks[v] = c.new(f"icmp ugt {c.vec(mask_type)} {small}, {c.iota(mask_type)}")
        # The results come from memory while the sums are made, rather than at the end.
        place = "%c"
        for i in range(self.rows):
            for v in range(self.vectors):
                p = c.new(f"getelementptr {scalar}, ptr {place}, i64 {v * self.lanes}")
                how = (("i32", "1"), ("i32", "3"), ("i32", "1"))  # to write, to stay, data
                c.call_void("llvm.prefetch.p0", ("ptr", p), *how)
            if i + 1 < self.rows:
                place = c.new(f"getelementptr i8, ptr {place}, i64 %step_c")

        def load(place: str, v: int) -> str:
            p = c.new(f"getelementptr {scalar}, ptr {place}, i64 {v * self.lanes}")
            if self.whole:
                return c.new(f"load {t}, ptr {p}, align {size}")
            return c.call(
                f"llvm.masked.load.v{self.lanes}{'f32' if size == 4 else 'f64'}.p0", t,
                ("ptr", p), ("i32", str(size)), (c.vec("i1"), masks[v]), (t, "zeroinitializer"),
            )  # fmt: skip

        def added(x: str, y: str, total: str) -> str:
            if not module.fma:
                return c.new(f"fadd {t} {total}, {c.new(f'fmul {t} {x}, {y}')}")
            suffix = f"v{self.lanes}{'f32' if size == 4 else 'f64'}"
            return c.call(f"llvm.fma.{suffix}", t, (t, x), (t, y), (t, total))

        def term(x: str, y: str, sums: list[str]) -> list[str]:
            right = [load(y, v) for v in range(self.vectors)]
            out = list(sums)
            base = x
            for i in range(self.rows):
                # Three rows per pointer: the addressing of the CPU reaches base, step and twice
                # the step. That these belong together is not said here: one addition per row, each
                # waiting for the one before, would take as long as the products.
                if i and i % 3 == 0:
                    base = c.new(f"getelementptr i8, ptr {base}, i64 %thrice")
                step = (None, "%step_a", "%twice")[i % 3]
                p = c.new(f"getelementptr i8, ptr {base}, i64 {step}") if step else base
                many = c.splat(scalar, c.new(f"load {scalar}, ptr {p}, align {size}"))
                for v in range(self.vectors):
                    at = i * self.vectors + v
                    out[at] = added(many, right[v], out[at])
            return out

        levels = self.inner - self.blocks

        def nest(d: int, x: str, y: str, sums: list[str]) -> list[str]:
            if d == levels:
                return term(x, y, sums)
            carried = [("ptr", x), ("ptr", y), *[(t, s) for s in sums]]

            def turn(_: str, now: list[str]) -> list[str]:
                found = nest(d + 1, now[0], now[1], now[2:])
                return [
                    c.new(f"getelementptr i8, ptr {now[0]}, i64 %a{d}"),
                    c.new(f"getelementptr i8, ptr {now[1]}, i64 %b{d}"),
                    *found,
                ]

            return c.loop("0", f"%n{d}", "1", carried, turn)[2:]

        sums = nest(0, "%a", "%b", ["zeroinitializer"] * (self.rows * self.vectors))
        if self.blocks:
            # The first block adds to zeros: memory that nobody wrote yet is not read, as its pages
            # would be made ready twice, for reading and then for writing.
            zeros = f"@zeros_{self.vectors * self.lanes * size}"
            room = f"[{self.vectors * self.lanes * size} x i8] zeroinitializer, align 64"
            module.declarations[zeros] = f"{zeros} = internal constant {room}"
            fresh = c.new("icmp eq i64 %add, 0")
        place = "%c"
        for i in range(self.rows):
            if i:
                place = c.new(f"getelementptr i8, ptr {place}, i64 %step_c")
            write, after = c.label("row"), c.label("next")
            kept = c.new(f"icmp ule i64 %skip, {i}")
            c.do(f"br i1 {kept}, label %{write}, label %{after}")
            c.start(write)
            before = c.new(f"select i1 {fresh}, ptr {zeros}, ptr {place}") if self.blocks else ""
            for v in range(self.vectors):
                value = sums[i * self.vectors + v]
                if self.blocks:
                    value = c.new(f"fadd {t} {value}, {load(before, v)}")
                p = c.new(f"getelementptr {scalar}, ptr {place}, i64 {v * self.lanes}")
                if self.whole:
                    c.do(f"store {t} {value}, ptr {p}, align {size}")
                else:
                    c.call_void(
                        f"llvm.masked.store.v{self.lanes}{'f32' if size == 4 else 'f64'}.p0",
                        (t, value), ("ptr", p), ("i32", str(size)), (c.vec("i1"), masks[v]),
                    )  # fmt: skip
            c.do(f"br label %{after}")
            c.start(after)
        c.do("ret void")
        head = "ptr %a, i64 %step_a, i64 %twice, i64 %thrice, ptr %b, ptr %c, i64 %step_c, "
        head += "i64 %left, i64 %skip, i64 %add"
        for d in range(levels):
            head += f", i64 %n{d}, i64 %a{d}, i64 %b{d}"
        text = "\n".join(c.lines)
        module.functions[name] = f"define internal void @{name}({head}) nounwind {{\n{text}\n}}\n"


def shape_of(m: int, n: int, dtype: str, width: int) -> tuple[int, int, int]:
    """Rows and vectors of the tiles for so many rows and columns, and lanes of a vector."""
    lanes = width // itemsize(dtype)
    vectors = 1 if n <= lanes else 2
    # Sums, and what is multiplied, in 32 registers of 64 bytes, or 16 smaller ones.
    most = 14 if width == 64 else 6
    parts = -(-m // most)
    return -(-m // parts), vectors, lanes


def words_of(m: tuple[int, int, int], n: int, outer: Sequence[Loop], inner: Sequence[Loop],
             size: int) -> list[int]:  # fmt: skip
    """The run-time words, strides given in elements."""
    words = [m[0], m[1] * size, m[2] * size, n]
    for loop in (*outer, *inner):
        words += [loop[0], *[s * size for s in loop[1]]]
    return words


def blocked(inner: Sequence[Loop], least: int, most: int) -> tuple[list[Loop], int]:
    """The loops of k, and how many of them run around the tiles, where they are `least` turns.

    A block is at most `most` turns, whose operands stay in the cache while the tiles of i go by.
    """
    depth = size_of([loop[0] for loop in inner])
    if depth < least:
        return list(inner), 0
    inside: list[Loop] = []
    turns, rest = 1, list(inner)
    while rest and turns * rest[-1][0] <= most:
        inside.insert(0, rest.pop())
        turns *= inside[0][0]
    if rest:
        n, strides = rest[-1]
        part = max(d for d in range(1, most // turns + 1) if n % d == 0)
        if part > 1:
            inside.insert(0, (part, strides))
            rest[-1] = n // part, tuple([s * part for s in strides])
        elif not inside or turns * 8 < most:  # of no use: the whole loop is a block
            inside.insert(0, rest.pop())
    return [*rest, *inside], len(rest)


def units_of(n: int, outer: Sequence[Loop], vectors: int, lanes: int) -> int:
    """Units: the loops, and the tiles along j."""
    return size_of([loop[0] for loop in outer]) * -(-n // (vectors * lanes))
