"""Sums of products over loops, in tiles of registers: the body of convolutions.

out[l, i, j] = Σk a[l, i, k] b[l, k, j], where l and k stand for any number of loops with strides of
their own. Lanes run along j, in which b and the result are contiguous; a is read one element at a
time, so that its strides are free. A tile keeps rows x vectors of sums in registers, as many as
there are, while k runs through all its loops: nothing is unfolded or packed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, Code, Module, itemsize
from primal.engines.cpu.graph import size_of
from primal.engines.cpu.reader import Reader, smaller

Loop = tuple[int, tuple[int, ...]]
"""A loop: its size, and its strides in a, b and (not those of k) the result, in elements."""


@structure
class Panels:
    """Tiles of `vectors` vectors of lanes, inside `outer` loops of l and over `inner` loops of k.

    Rows of i come by as many as registers hold, by eight, and by up to seven. (Tiles of as many
    rows as divide i best, each number with code of its own, were as fast, and another kernel for
    almost every convolution.) Masked vectors at the end of j cost nothing, as all rows use them.
    A tile is a function of the process, compiled with the first convolution that has such rows.
    A `single` row (`jnp.convolve`, one filter, a filter per channel) is a kernel of its own: to ask
    for more rows in every turn doubles its time, and there are registers for more vectors.

    Words: the functions of tiles; size of i, its strides in a and the result; how i is divided
    (`divided`); size of j; sizes and strides of loops. First of l, `outer` that make units and
    `outer` that run inside the blocks of long sums. Then of k, `inner` that run around the tiles,
    which add to the result after the first turn, and `inner` inside. Loops that are not needed have
    one turn.
    """

    dtype: str
    vectors: int
    lanes: int
    outer: int
    inner: int
    single: bool

    @property
    def tiles(self) -> list[Tile]:
        """Those that rows may come by."""
        width = self.lanes * itemsize(self.dtype)
        shapes = zip(rows_of(width), (False, False, True), strict=True)
        return [
            Tile(self.dtype, rows, self.vectors, self.lanes, self.inner, fewer)
            for rows, fewer in ([(1, False)] if self.single else shapes)
        ]

    def callees(self, m: int) -> list[Tile | None]:
        """Those that m rows come by, each at its place."""
        first, second, _ = divided(m, self.lanes * itemsize(self.dtype))
        used = [True] if self.single else [first > 0, second > first, m > second]
        return [tile if there else None for tile, there in zip(self.tiles, used, strict=True)]

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        size = itemsize(self.dtype)
        kinds = self.tiles
        r = Reader(module)
        c = r.c
        arrays = [r.array(), r.array(), r.array()]
        width = self.vectors * self.lanes

        # The words are read where a unit needs them: held from the beginning they would take LLVM
        # a third of the time, to move them out of registers and back.
        def unit(u: str) -> None:
            codes = [r.pointer() for _ in kinds]
            m, step_a, step_out = r.word(), r.word(), r.word()
            *ends, each = ["0", r.word(), r.word(), m, r.word()]
            if self.single:
                ends = ["0", m]
            n = r.word()
            units = r.loops(self.outer, 3)
            columns = c.quotient(c.new(f"add i64 {n}, {width - 1}"), str(width))
            u, j = r.split(u, columns)
            x, y, z = r.walked(u, units, arrays)
            first = c.new(f"mul i64 {j}, {width}")
            y, z = r.moved(y, (first, str(size))), r.moved(z, (first, str(size)))
            left = smaller(c, c.new(f"sub i64 {n}, {first}"), str(width))
            insides, blocks = r.loops(self.outer, 3), r.loops(self.inner, 2)
            nest = c.new(f"getelementptr i64, ptr %record, i64 {r.at}")

            def tiles(
                tile: Tile, code: str, places: list[str], i: str, _: list[str]
            ) -> list[str]:
                x, y, z, add = places
                x, z = r.moved(x, (i, step_a)), r.moved(z, (i, step_out))
                count = smaller(c, c.new(f"sub i64 {m}, {i}"), each) if tile.fewer else "0"
                tile.call(c, code, (x, y, z), (step_a, step_out, left, add, count), nest)
                return []

            def inside(d: int, places: list[str], turns: str) -> list[str]:
                if d == self.outer:
                    given = [*places, turns]
                    by_tile = zip(kinds, codes, ends[:-1], ends[1:], strict=True)
                    for tile, code, start, stop in by_tile:
                        step = each if tile.fewer else str(tile.rows)
                        c.loop(start, stop, step, [], functools.partial(tiles, tile, code, given))
                    return []
                count, *by = insides[d]

                def turn(k: str, _: list[str]) -> list[str]:
                    moved = [r.moved(p, (k, s)) for p, s in zip(places, by, strict=True)]
                    return inside(d + 1, moved, turns)

                c.loop("0", count, "1", [], turn)
                return []

            def block(d: int, x: str, y: str, turns: str) -> list[str]:
                if d == self.inner:
                    return inside(0, [x, y, z], turns)
                count, by_a, by_b = blocks[d]

                def turn(k: str, _: list[str]) -> list[str]:
                    before = c.new(f"or i64 {turns}, {k}")
                    return block(d + 1, r.moved(x, (k, by_a)), r.moved(y, (k, by_b)), before)

                c.loop("0", count, "1", [], turn)
                return []

            block(0, x, y, "0")

        r.units(name, unit)


@structure
class Tile:
    """Sums of `rows` rows and `vectors` vectors, over `loops` loops, added to what is there.

    `fewer`: of up to so many rows, as a parameter says. Each turn leaves then where they end; that
    takes a tenth more time than knowing it. `overlaps`: the first rows may be there already, which
    a parameter counts, and are not stored. `filled`: vectors of b are whole, those of the result
    are not.
    """

    dtype: str
    rows: int
    vectors: int
    lanes: int
    loops: int
    fewer: bool = False
    overlaps: bool = False
    filled: bool = False

    def call(
        self, c: Code, code: str, places: Sequence[str], counts: Sequence[str], nest: str
    ) -> None:
        """A call of the tile's function, with the places of a, b and the result.

        `counts`: bytes from row to row of a and of the result; columns; whether there is something
        to add to; rows (`fewer`) or those that are not stored (`overlaps`). `nest`: where the sizes
        and strides of the loops are.
        """
        given = [*[f"ptr {p}" for p in places], *[f"i64 {v}" for v in counts], f"ptr {nest}"]
        c.do(f"call void {code}({', '.join(given)})")

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        _TileCode(module, self).function(name)


class _TileCode:
    """The code of a tile: its sums, a register for each row and vector, then the result."""

    def __init__(self, module: Module, tile: Tile) -> None:
        self.module, self.tile = module, tile
        self.c = c = Code(module, tile.lanes)
        self.scalar, self.size = SCALAR[tile.dtype], itemsize(tile.dtype)
        self.t = c.vec(self.scalar)
        self.suffix = f"v{tile.lanes}{'f32' if self.size == 4 else 'f64'}"
        c.start("entry")
        self.masks = [self._mask(v) for v in range(tile.vectors)]
        self.twice, self.thrice = (c.new(f"mul i64 %step_a, {by}") for by in (2, 3))
        self.loops = [self._loop(d) for d in range(tile.loops)]
        # Rows from which on there may be no more, and whether there are none.
        more = range(1, tile.rows) if tile.fewer else ()
        self.ends = {i: c.new(f"icmp ule i64 %some, {i}") for i in more}

    def function(self, name: str) -> None:
        c, tile = self.c, self.tile
        self._ask()
        sums = self._sums(0, "%a", "%b", ["zeroinitializer"] * (tile.rows * tile.vectors))
        self._store(sums)
        c.do("br label %leave")
        c.start("leave")
        c.do("ret void")
        head = "ptr %a, ptr %b, ptr %c, i64 %step_a, i64 %step_c, i64 %left, i64 %add, i64 %some, "
        head += "ptr %nest"
        text = "\n".join(c.lines)
        self.module.functions[name] = f"define void @{name}({head}) nounwind {{\n{text}\n}}\n"

    def _mask(self, v: int) -> str:
        """The lanes of a vector that are columns."""
        c, lanes = self.c, self.tile.lanes
        t = "i32" if lanes <= 16 else "i8"
        rest = c.new(f"sub i64 %left, {v * lanes}")
        some = c.call("llvm.smax.i64", "i64", ("i64", rest), ("i64", "0"))
        some = smaller(c, some, str(lanes))
        small = c.splat(t, c.new(f"trunc i64 {some} to {t}"))
        return c.new(f"icmp ugt {c.vec(t)} {small}, {c.iota(t)}")

    def _loop(self, d: int) -> list[str]:
        """The size of a loop, and its strides in a and b."""
        c = self.c
        words = [c.new(f"getelementptr i64, ptr %nest, i64 {3 * d + i}") for i in range(3)]
        return [c.new(f"load i64, ptr {word}") for word in words]

    def _at(self, place: str, v: int) -> str:
        lanes = self.tile.lanes
        return self.c.new(f"getelementptr {self.scalar}, ptr {place}, i64 {v * lanes}")

    def _load(self, place: str, v: int, filled: bool) -> str:
        p = self._at(place, v)
        if filled:
            return self.c.new(f"load {self.t}, ptr {p}, align {self.size}")
        return self.c.call(
            f"llvm.masked.load.{self.suffix}.p0", self.t, ("ptr", p), ("i32", str(self.size)),
            (self.c.vec("i1"), self.masks[v]), (self.t, "zeroinitializer"),
        )  # fmt: skip

    def _ask(self) -> None:
        """The results come from memory while the sums are made, rather than at the end."""
        c = self.c

        def row(_: str, now: list[str]) -> list[str]:
            for v in range(self.tile.vectors):
                how = (("i32", "1"), ("i32", "3"), ("i32", "1"))  # to write, to stay, data
                c.call_void("llvm.prefetch.p0", ("ptr", self._at(now[0], v)), *how)
            return [c.new(f"getelementptr i8, ptr {now[0]}, i64 %step_c")]

        c.loop("0", "%some" if self.tile.fewer else str(self.tile.rows), "1", [("ptr", "%c")], row)

    def _sums(self, d: int, x: str, y: str, sums: list[str]) -> list[str]:
        """The sums after all turns of the loops from one on."""
        c = self.c
        if d == self.tile.loops:
            return self._term(x, y, sums)
        turns, *strides = self.loops[d]

        def turn(_: str, now: list[str]) -> list[str]:
            found = self._sums(d + 1, now[0], now[1], now[2:])
            return [
                *[c.new(f"getelementptr i8, ptr {p}, i64 {s}")
                  for p, s in zip(now[:2], strides, strict=True)],
                *found,
            ]  # fmt: skip

        carried = [("ptr", x), ("ptr", y), *[(self.t, s) for s in sums]]
        return c.loop("0", turns, "1", carried, turn)[2:]

    def _term(self, x: str, y: str, sums: list[str]) -> list[str]:
        """The sums with one more term."""
        c, vectors = self.c, self.tile.vectors
        right = [self._load(y, v, self.tile.filled) for v in range(vectors)]
        out, left = list(sums), []
        base, after = x, c.label("rows")
        for i in range(self.tile.rows):
            if i in self.ends:
                left.append((c.block, list(out)))
                self._leave(i, after, "row")
            # Three rows per pointer: the addressing of the CPU reaches base, step and twice
            # the step. That these belong together is not said here: one addition per row, each
            # waiting for the one before, would take as long as the products.
            if i and i % 3 == 0:
                base = c.new(f"getelementptr i8, ptr {base}, i64 {self.thrice}")
            step = (None, "%step_a", self.twice)[i % 3]
            p = c.new(f"getelementptr i8, ptr {base}, i64 {step}") if step else base
            many = c.splat(self.scalar, c.new(f"load {self.scalar}, ptr {p}, align {self.size}"))
            for number, other in enumerate(right, i * vectors):
                out[number] = self._added(many, other, out[number])
        if not self.ends:
            return out
        left.append((c.block, out))
        c.do(f"br label %{after}")
        c.start(after)
        return [
            c.new(f"phi {self.t} " + ", ".join([f"[ {now[i]}, %{block} ]" for block, now in left]))
            for i in range(len(out))
        ]

    def _added(self, x: str, y: str, total: str) -> str:
        c, t = self.c, self.t
        if not self.module.fma:
            return c.new(f"fadd {t} {total}, {c.new(f'fmul {t} {x}, {y}')}")
        return c.call(f"llvm.fma.{self.suffix}", t, (t, x), (t, y), (t, total))

    def _leave(self, i: int, to: str, following: str) -> None:
        """Go on elsewhere if there are no rows from i on."""
        more = self.c.label(following)
        self.c.do(f"br i1 {self.ends[i]}, label %{to}, label %{more}")
        self.c.start(more)

    def _store(self, sums: list[str]) -> None:
        """Add the sums to the result."""
        c, tile = self.c, self.tile
        # The first block adds to zeros: memory that nobody wrote yet is not read, as its pages
        # would be made ready twice, for reading and then for writing.
        width = tile.vectors * tile.lanes * self.size
        zeros = f"@zeros_{width}"
        room = f"[{width} x i8] zeroinitializer, align 64"
        self.module.declarations[zeros] = f"{zeros} = internal constant {room}"
        fresh = c.new("icmp eq i64 %add, 0")
        place = "%c"
        for i in range(tile.rows):
            if i:
                place = c.new(f"getelementptr i8, ptr {place}, i64 %step_c")
            if i in self.ends:
                self._leave(i, "leave", "store")
            after = c.label("next")
            if tile.overlaps:
                write = c.label("row")
                kept = c.new(f"icmp ule i64 %some, {i}")
                c.do(f"br i1 {kept}, label %{write}, label %{after}")
                c.start(write)
            before = c.new(f"select i1 {fresh}, ptr {zeros}, ptr {place}")
            for v, value in enumerate(sums[i * tile.vectors : (i + 1) * tile.vectors]):
                value = c.new(f"fadd {self.t} {value}, {self._load(before, v, False)}")
                c.call_void(
                    f"llvm.masked.store.{self.suffix}.p0", (self.t, value),
                    ("ptr", self._at(place, v)), ("i32", str(self.size)),
                    (c.vec("i1"), self.masks[v]),
                )  # fmt: skip
            if tile.overlaps:
                c.do(f"br label %{after}")
                c.start(after)


def rows_of(width: int) -> tuple[int, int, int]:
    """Rows of the tiles: with what is multiplied, sums of two vectors fill 32 registers of 64
    bytes, or 16 smaller ones; fewer; and of how many less there may be."""
    return (14, 8, 7) if width == 64 else (6, 4, 3)


def divided(m: int, width: int) -> tuple[int, int, int]:
    """Where the rows end that come by each of the first two numbers of rows, and how many of the
    others come at a time.

    A tile of one to four rows takes the time of four, as additions wait for each other.
    """
    most, less, few = rows_of(width)
    found = []
    for first in range(m // most, max(m // most - 4, -1), -1):
        left = m - first * most
        for second in range(left // less, max(left // less - 2, -1), -1):
            rest = left - second * less
            tiles = -(-rest // few)
            each = -(-rest // max(tiles, 1))
            time = first * most + second * less + tiles * max(4.5, 1.1 * each)
            end = first * most
            found.append((time + (first + second + tiles) / 2, end, end + second * less, each or 1))
    return min(found)[1:]


def words_of(
    m: tuple[int, int, int], n: int, parts: Sequence[Sequence[Loop]], counts: tuple[int, int],
    size: int, width: int,
) -> list[int]:  # fmt: skip
    """The run-time words, strides given in elements: loops of l, those inside, loops of k around
    the tiles and inside, filled up to so many loops of l and of k."""
    words = [m[0], m[1] * size, m[2] * size, *divided(m[0], width), n]
    for number, loops in enumerate(parts):
        least, arrays = counts[number // 2], 3 - number // 2
        for loop in [*[(1, (0,) * arrays)] * (least - len(loops)), *loops]:
            words += [loop[0], *[s * size for s in loop[1]]]
    return words


def blocked(
    inner: Sequence[Loop], least: int, most: int
) -> tuple[Sequence[Loop], Sequence[Loop]]:
    """The loops of k around the tiles, if they are `least` turns, and those inside.

    A block is at most `most` turns, whose operands stay in the cache while the tiles of i go by.
    """
    depth = size_of([loop[0] for loop in inner])
    if depth < least:
        return (), inner
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
    return rest, inside


def units_of(n: int, outer: Sequence[Loop], width: int) -> int:
    """Units: the loops, and the tiles of so many columns along j."""
    return size_of([loop[0] for loop in outer]) * -(-n // width)
