"""Products of float32 matrices by the CPU's matrix unit (AMX), which multiplies bfloat16 numbers.

A float32 has 24 digits, a bfloat16 eight: x = x1 + x2 + x3 exactly, each part the nearest bfloat16
of what those before left over. Of the nine products of parts six are added up, in float32:

    x·y = x1·y1 + (x1·y2 + x2·y1) + (x1·y3 + x2·y2 + x3·y1) + e,  |e| <= 2⁻²³·|x·y|

e is zero where float32 holds x·y, as one of the parts is zero then. A tile adds 32 products up
before they meet the sum of the others, so that sums of many terms come out closer than those of a
fused multiply-add per term. Six of these products take three eighths of the time of one product in
float32 vectors.

The unit takes numbers below 2⁻¹²⁶ for zeros, so parts are made of x·2³³: then every part of every
float32, subnormal ones among them, is above that, and a product that is not falls below what
float32 has. A unit of work whose sums are not finite then, be it that they exceed 2⁶¹ or that an
operand holds infinity or NaN, which make NaN of the other parts, is left to BLAS.
"""

from __future__ import annotations

import ctypes
import functools
import math
import platform
from collections.abc import Sequence

from primal.base.structures import structure
from primal.engines.cpu import _llvm, _openblas
from primal.engines.cpu.code import Code, Module
from primal.engines.cpu.graph import size_of
from primal.engines.cpu.reader import Reader, smaller

SIDE, TERMS = 16, 32
"""Lines (rows of x, columns of y) and terms of a tile."""
TILE = SIDE * TERMS * 2
"""Bytes of a tile."""
PARTS = 3
BLOCK = 2 * PARTS * TILE
"""Bytes of two tiles of each part: 32 lines in 32 terms."""
DEPTH = 256
"""Terms that are packed at a time."""
COLUMNS = ROWS = 512
"""Columns and rows of a unit, at most: its packed columns stay in the second cache."""
WORK = 2.8e8
"""Operations of a unit, at most."""
AHEAD = 3
"""How many squares of numbers are asked for before they are packed."""
SCALE = 33
"""Exponent of what operands are multiplied by."""
SHARED = 4e6
"""Operations from which on threads share a product."""
LEAST = 32
"""Rows, columns and terms of the smallest products made here."""
GAIN = 40
"""m·n/(m + n), less what tiles are not filled, from which on they gain more than packing takes: it
is that of 80 rows and columns."""
_ORDER = ((0, 2), (0, 1), (1, 1), (1, 0), (2, 0), (0, 0))
"""Products of parts, each of which has one in common with the next."""


@functools.cache
def have() -> bool:
    """Whether the CPU has the unit, and the system lets this process use it."""
    on = _llvm.compiler().features.split(",")
    if not {"+amx-tile", "+amx-bf16"} <= set(on) or _llvm.compiler().width != 64:
        return False
    if platform.system() != "Linux":
        return False
    # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); children inherit it.
    return ctypes.CDLL(None).syscall(158, 0x1023, 18) == 0


def fits(dtype: str, m: int, n: int, depth: int) -> bool:
    """Whether this is the fastest way: tiles gain with m·n, and packing takes with m + n."""
    if dtype != "f4" or min(m, n, depth) < LEAST or not have():
        return False
    padded = (-(-m // LEAST) * LEAST) * (-(-n // LEAST) * LEAST)
    return (m * n) ** 2 >= GAIN * (m + n) * padded


def cost(m: int, n: int, depth: int) -> float:
    """The nanoseconds that a product takes one core: of tiles, of packing, and to begin."""
    return 2.0 * m * n * depth / 380 + 0.3 * (m + n) * depth + 900


def in_halves(m: int, n: int, depth: int, turns: int) -> bool:
    """Whether the terms are better divided than the rows or columns, which then are packed twice.

    Each half has results of its own, which whatever reads them adds up.
    """
    return turns == 1 and max(m, n) <= min(ROWS, depth // 2) and depth % (2 * TERMS) == 0


def tiled(
    sizes: tuple[int, int, int], x: tuple[int, int], y: tuple[int, int], om: int,
    blas: Sequence[int], loops: Sequence[tuple[int, tuple[int, ...]]],
) -> tuple[Tiled, list[int], int]:  # fmt: skip
    """Spec, words and number of units; strides in elements, x by row and term, y by term and
    column, the result by row. One stride of each operand is 1.

    `blas`: transposition and leading dimension of x and of y for cblas_sgemm, and that of out.
    """
    m, n, depth = sizes
    loops = [*loops, *[(1, (0, 0, 0))] * (2 - len(loops))]
    each, wide = _unit(sizes, size_of([g[0] for g in loops]))
    parts, across = -(-m // each), -(-n // wide)
    spec = Tiled(x[1] != 1, y[1] != 1, len(loops))
    words = [m, n, depth, *[s * 4 for s in (*x, *y, om)], each, parts, wide, across]
    words += [_openblas.address("cblas_sgemm"), *blas]
    for count, strides in loops:
        words += [count, *[s * 4 for s in strides]]
    return spec, words, parts * across * size_of([g[0] for g in loops])


def _unit(sizes: tuple[int, int, int], turns: int) -> tuple[int, int]:
    """Rows and columns of a unit: of the divisions into enough units that which packs least.

    Rows are packed for each part of the columns and columns for each part of the rows. It is the
    rows that are better divided: those that a core made in the step before lie in its own cache.
    """
    m, n, depth = sizes
    work = 2.0 * m * n * depth
    least = max(2.0 / turns if work * turns > SHARED else 0.0, work / WORK)
    found: list[tuple[int, int, int]] = []
    parts = -(-m // ROWS)
    while not found or (parts < 2 * least and parts * LEAST <= m):
        across = max(-(-n // COLUMNS), math.ceil(least / parts))
        each, wide = (-(-size // (32 * by)) * 32 for size, by in ((m, parts), (n, across)))
        found.append((3 * m * -(-n // wide) + 2 * n * -(-m // each), each, wide))
        parts *= 2
    return min(found)[1:]


@structure
class Tiled:
    """Units of rows and columns of products, inside `loops` loops.

    `across`: x has its rows contiguous, not its terms. `turned`: y has its terms contiguous, not
    its columns.
    """

    across: bool
    turned: bool
    loops: int

    def write(self, module: Module, name: str) -> None:
        """Add the function; its words are those of `tiled`."""
        r = Reader(module, SIDE)
        c = r.c
        rows_of, columns_of = _pack(module, False, self.across), _pack(module, True, self.turned)
        tile, last_tile, settings = _tile(module), _last_tile(module), _settings(module)
        a, b, out = r.array(), r.array(), r.array()
        m, n, depth = r.word(), r.word(), r.word()
        am, ak, bk, bn, om = (r.word() for _ in range(5))
        each, parts, most, across = (r.word() for _ in range(4))
        blas = r.pointer()
        ta, lda, tb, ldb, ldc = (r.int32() for _ in range(5))
        loops = r.loops(self.loops, 3)
        right = c.room(c.new(f"mul i64 {most}, {DEPTH // TERMS * BLOCK // 32}"))
        left = c.room(DEPTH // TERMS * BLOCK)
        state = c.new(f"alloca [{STATE} x i8], align 64")

        def unit(u: str) -> None:
            u, j = r.split(u, across)
            u, i = r.split(u, parts)
            x, y, z = r.walked(u, loops, [a, b, out])
            row, column = c.new(f"mul i64 {i}, {each}"), c.new(f"mul i64 {j}, {most}")
            x, y = r.moved(x, (row, am)), r.moved(y, (column, bn))
            z = r.moved(z, (row, om), (column, "4"))
            below = smaller(c, c.new(f"sub i64 {m}, {row}"), each)
            wide = smaller(c, c.new(f"sub i64 {n}, {column}"), most)
            for at in (_CHECKS, _PENDING):
                p = c.new(f"getelementptr i8, ptr {state}, i64 {at}")
                c.do(f"store {c.vec('float')} zeroinitializer, ptr {p}, align 64")
            c.call_void("llvm.x86.ldtilecfg", ("ptr", settings))

            def block(k: str, _: list[str]) -> list[str]:
                turns = smaller(c, c.new(f"sub i64 {depth}, {k}"), str(DEPTH))
                blocks = _up(c, turns, TERMS)
                strip = c.new(f"mul i64 {blocks}, {BLOCK}")
                here, there = r.moved(y, (k, bk)), r.moved(x, (k, ak))

                def left_side(i: str, _: list[str]) -> list[str]:
                    count = smaller(c, c.new(f"sub i64 {below}, {i}"), "32")
                    c.do(
                        f"call void @{rows_of}(ptr {r.moved(there, (i, am))}, i64 {am}, "
                        f"i64 {ak}, i64 {count}, i64 {turns}, ptr {left}, "
                        f"i64 {strip})"
                    )
                    to = r.moved(z, (i, om))

                    def panel(j: str, _: list[str]) -> list[str]:
                        index = c.new(f"lshr i64 {j}, 5")
                        rest = c.new(f"sub i64 {wide}, {j}")
                        c.do(
                            f"call void @{tile}(ptr {left}, ptr {r.moved(right, (index, strip))}, "
                            f"i64 {blocks}, ptr {r.moved(to, (j, '4'))}, i64 {om}, i64 {count}, "
                            f"i64 {rest}, i64 {k}, ptr {state})"
                        )
                        return []

                    c.loop("0", wide, "32", [], panel)
                    return []

                c.do(
                    f"call void @{columns_of}(ptr {here}, i64 {bn}, i64 {bk}, i64 {wide}, "
                    f"i64 {turns}, ptr {right}, i64 {strip})"
                )
                c.loop("0", below, "32", [], left_side)
                return []

            c.loop("0", depth, str(DEPTH), [], block)
            c.do(f"call void @{last_tile}(i64 {om}, ptr {state})")
            c.call_void("llvm.x86.tilerelease")
            p = c.new(f"getelementptr i8, ptr {state}, i64 {_CHECKS}")
            found = c.new(f"load {c.vec('float')}, ptr {p}")
            bad = c.new(f"fcmp uno {c.vec('float')} {found}, {found}")
            word = c.new(f"bitcast {c.vec('i1')} {bad} to i{SIDE}")
            far = c.new(f"icmp ne i{SIDE} {word}, 0")

            def by_blas() -> list[str]:
                counts = [c.new(f"trunc i64 {w} to i32") for w in (below, wide, depth)]
                given = ", ".join([f"i32 {w}" for w in ("101", ta, tb, *counts)])
                c.do(
                    f"call void {blas}({given}, float 1.0, ptr {x}, i32 {lda}, ptr {y}, i32 {ldb}, "
                    f"float 0.0, ptr {z}, i32 {ldc})"
                )
                return []

            c.guarded(far, [], by_blas)

        r.units(name, unit)


def _settings(module: Module) -> str:
    """All eight tiles are full: 16 rows of 64 bytes."""
    name = "@tiles"
    rows = ", ".join(["i8 1", "i8 0", *["i8 0"] * 14, *["i8 64, i8 0"] * 8, *["i8 0"] * 16])
    rows += ", " + ", ".join([*["i8 16"] * 8, *["i8 0"] * 8])
    module.declarations[name] = f"{name} = internal constant [64 x i8] [{rows}], align 64"
    return name


# The state of a unit, in bytes: the sums of a tile, a vector that becomes NaN where a result is not
# finite, and the tile whose sums are still in the unit: its place, rows, columns left, and whether
# it is to be added to what is there.
_CHECKS = 4 * TILE
_PENDING = _CHECKS + 64
STATE = _PENDING + 64


def _tile(module: Module) -> str:
    """Sum up 32 x 32 results of packed operands; `left` columns count.

    The sums of the tile before leave the unit one by one, each before the first product of those
    that take its place, as the unit would wait for them at the end of a tile. While this one is
    summed up they are stored, or added to what is there.
    """
    name = "tiled_tile"
    if name in module.functions:
        return name
    r = Reader(module, SIDE)
    c = r.c
    before = _Pending(r)

    def load(base: str, first: int, part: int) -> None:
        for half in range(2):
            p = c.new(f"getelementptr i8, ptr {base}, i64 {(2 * part + half) * TILE}")
            given = [("i8", str(first + half)), ("ptr", p), ("i64", "64")]
            c.call_void("llvm.x86.tileloadd64", *given)

    def fetch(i: str, _: list[str]) -> list[str]:
        for line in range(2):
            _ask(c, r.moved("%z", (i, "%om"), (str(line), "64")), True)
        return []

    each = c.new(f"udiv i64 {c.new('add i64 %blocks, 31')}, %blocks")

    def products(now: list[str], number: int, fresh: bool) -> None:
        parts, held = _ORDER[number], _ORDER[number - 1] if number else (-1, -1)
        for side in range(2):
            if parts[side] != held[side]:
                load(now[side], 4 + 2 * side, parts[side])
        for sums in range(4):
            if fresh:
                before.take(sums)
                c.call_void("llvm.x86.tilezero", ("i8", str(sums)))
            given = [("i8", str(v)) for v in (sums, 4 + sums // 2, 6 + sums % 2)]
            c.call_void("llvm.x86.tdpbf16ps", *given)

    def block(i: str, now: list[str]) -> list[str]:
        first = c.new(f"mul i64 {i}, {each}")
        to = c.new(f"add i64 {first}, {each}")
        checked = now[2]
        for number in range(1, len(_ORDER)):
            products(now, number, False)
            if number == 1:
                # They come from memory meanwhile.
                c.loop(first, smaller(c, to, "%rows"), "1", [], fetch)
            if number == 3:
                checked = before.store(first, smaller(c, to, before.rows), checked)
        following = [c.new(f"getelementptr i8, ptr {p}, i64 {BLOCK}") for p in now[:2]]
        more = c.new(f"icmp slt i64 {c.new(f'add i64 {i}, 1')}, %blocks")

        def next_block() -> list[str]:
            products(following, 0, False)
            return []

        c.guarded(more, [], next_block)
        return [*following, checked]

    products(["%x", "%y"], 0, True)
    given = [("ptr", "%x"), ("ptr", "%y"), (c.vec("float"), before.checked)]
    checked = c.loop("0", "%blocks", "1", given, block)[2]
    before.follow(checked)
    r.helper(
        name,
        "ptr %x, ptr %y, i64 %blocks, ptr %z, i64 %om, i64 %rows, i64 %left, i64 %add, ptr %state",
    )
    return name


def _last_tile(module: Module) -> str:
    """Store the last tile of a unit."""
    name = "tiled_last"
    if name not in module.functions:
        r = Reader(module, SIDE)
        last = _Pending(r)
        for sums in range(4):
            last.take(sums)
        checked = last.store("0", last.rows, last.checked)
        r.c.do(f"store {r.c.vec('float')} {checked}, ptr {last.checks}")
        r.helper(name, "i64 %om, ptr %state")
    return name


class _Pending:
    """The tile that was summed up and not stored."""

    def __init__(self, r: Reader) -> None:
        self.r = r
        c = self.c = r.c
        self.checks = self._at(_CHECKS)
        self.checked = c.new(f"load {c.vec('float')}, ptr {self.checks}")
        self.fields = [self._at(_PENDING + 8 * i) for i in range(4)]
        self.z = c.new(f"load ptr, ptr {self.fields[0]}")
        self.rows, left, add = (c.new(f"load i64, ptr {p}") for p in self.fields[1:])
        self.masks = [_lanes_before(c, c.new(f"sub i64 {left}, {SIDE * v}")) for v in range(2)]
        fresh, none = c.new(f"icmp eq i64 {add}, 0"), f"{c.vec('i1')} zeroinitializer"
        self.olds = [
            c.new(f"select i1 {fresh}, {none}, {c.vec('i1')} {mask}") for mask in self.masks
        ]

    def _at(self, offset: int) -> str:
        return self.c.new(f"getelementptr i8, ptr %state, i64 {offset}")

    def take(self, sums: int) -> None:
        """A quarter of the sums, from the unit into memory."""
        place = self._at(sums // 2 * 2 * TILE + sums % 2 * 64)
        self.c.call_void(
            "llvm.x86.tilestored64", ("i8", str(sums)), ("ptr", place), ("i64", "128")
        )

    def store(self, first: str, stop: str, checked: str) -> str:
        """Store some rows, or add them to what is there; `checked` with what is not finite."""
        r, c = self.r, self.c
        t = c.vec("float")
        back = c.float_const("float", 2.0 ** (-2 * SCALE))

        def row(i: str, now: list[str]) -> list[str]:
            checked = now[0]
            for v, (mask, olds) in enumerate(zip(self.masks, self.olds, strict=True)):
                p = r.moved(self.z, (i, "%om"), (str(SIDE * v), "4"))
                old = _load(c, "float", p, olds)
                p_new = r.moved("%state", (i, "128"), (str(v), "64"))
                new = c.new(f"load {t}, ptr {p_new}, align 64")
                value = c.intrinsic("fma", "float", new, back, old)
                given = [(t, value), ("ptr", p), ("i32", "4"), (c.vec("i1"), mask)]
                c.call_void(f"llvm.masked.store.v{SIDE}f32.p0", *given)
                zero = c.new(f"fmul {t} {value}, zeroinitializer")
                some = c.new(f"select {c.vec('i1')} {mask}, {t} {zero}, {t} zeroinitializer")
                checked = c.new(f"fadd {t} {checked}, {some}")
            return [checked]

        return c.loop(first, stop, "1", [(t, checked)], row)[0]

    def follow(self, checked: str) -> None:
        """The tile whose sums are in the unit takes its place."""
        c = self.c
        c.do(f"store {c.vec('float')} {checked}, ptr {self.checks}")
        now = ("ptr %z", "i64 %rows", "i64 %left", "i64 %add")
        for p, value in zip(self.fields, now, strict=True):
            c.do(f"store {value}, ptr {p}")


def _ask(c: Code, p: str, to_write: bool = False) -> None:
    """Ask for a line of the cache."""
    how = [("i32", str(int(to_write))), ("i32", "3"), ("i32", "1")]
    c.call_void("llvm.prefetch.p0", ("ptr", p), *how)


def _up(c: Code, size: str, by: int | str) -> str:
    """size / by, rounded up."""
    more = c.new(f"add i64 {size}, {by}")
    return c.new(f"udiv i64 {c.new(f'sub i64 {more}, 1')}, {by}")


def _lanes_before(c: Code, count: str) -> str:
    """The lanes before `count`, which may be any number."""
    some = c.call("llvm.smax.i64", "i64", ("i64", count), ("i64", "0"))
    small = c.new(f"trunc i64 {smaller(c, some, str(SIDE))} to i32")
    return c.new(f"icmp ugt {c.vec('i32')} {c.splat('i32', small)}, {c.iota('i32')}")


def _load(c: Code, scalar: str, p: str, mask: str) -> str:
    t = c.vec(scalar)
    given = [("ptr", p), ("i32", "4"), (c.vec("i1"), mask), (t, "zeroinitializer")]
    return c.call(f"llvm.masked.load.v{SIDE}f32.p0", t, *given)


def _pack(module: Module, paired: bool, turned: bool) -> str:
    """Lines as tiles of the three parts of each, 32 by 32; what is missing there is zero.

    Not `paired`, as rows of x: a tile has the terms of a line side by side. `paired`, as columns of
    y: it has two terms of every line side by side. Which two does not matter, if it is the same two
    in both. Where the operand lies the other way (`turned`),
    or is not there, squares of it go through memory.
    """
    name = f"tiled_pack{'_paired' * paired}{'_turned' * turned}"
    if name in module.functions:
        return name
    r = Reader(module, SIDE)
    c = r.c
    split, square = _split(module, paired), _square(module, turned)
    room = c.new(f"alloca [{2 * TILE} x i8], align 64")
    along_lines = paired != turned
    by = "%term" if along_lines else "%line"
    # Of the room: bytes from row to row, and from term to term.
    row, term = (64, 64) if paired else (128, 4)

    # What lies side by side is read one after the other, and asked for some squares ahead.
    halves, blocks = _up(c, "%lines", SIDE), _up(c, "%terms", TERMS)
    counts = (blocks, halves) if along_lines else (halves, blocks)
    steps = [c.new(f"mul i64 %term, {TERMS}"), c.new(f"mul i64 %line, {SIDE}")]
    step_out, step_in = steps if along_lines else reversed(steps)
    reach = smaller(c, counts[1], str(AHEAD))
    near = c.new(f"mul i64 {reach}, {step_in}")
    back = c.new(f"mul i64 {c.new(f'sub i64 {counts[1]}, {reach}')}, {step_in}")
    far = c.new(f"sub i64 {step_out}, {back}")

    def tiles(h: str, b: str) -> list[str]:
        more = c.new(f"add i64 {h if along_lines else b}, {reach}")
        more = c.new(f"icmp slt i64 {more}, {counts[1]}")
        ahead = c.new(f"select i1 {more}, i64 {near}, i64 {far}")
        first, k = c.new(f"mul i64 {h}, {SIDE}"), c.new(f"mul i64 {b}, {TERMS}")
        lines, terms = c.new(f"sub i64 %lines, {first}"), c.new(f"sub i64 %terms, {k}")
        x = r.moved("%from", (first, "%line"), (k, "%term"))
        number, odd = c.new(f"lshr i64 {h}, 1"), c.new(f"and i64 {h}, 1")
        to = r.moved("%to", (number, "%strip"), (odd, str(TILE)), (b, str(BLOCK)))
        whole = "false"
        if not turned:
            enough = c.new(f"icmp sge i64 {lines}, {SIDE}")
            whole = c.new(f"and i1 {enough}, {c.new(f'icmp sge i64 {terms}, {TERMS}')}")

        def aside() -> list[str]:
            for part in range(2):
                p = r.moved(x, (str(SIDE * part), "%term"))
                q = c.new(f"getelementptr i8, ptr {room}, i64 {SIDE * part * term}")
                rest = c.new(f"sub i64 {terms}, {SIDE * part}")
                rows, columns = (rest, lines) if along_lines else (lines, rest)
                c.do(
                    f"call void @{square}(ptr {p}, i64 {by}, i64 {rows}, i64 {columns}, "
                    f"ptr {q}, i64 {row}, i64 {ahead})"
                )
            return [room, str(row), "0"]

        missing = c.new(f"xor i1 {whole}, true")
        given = [("ptr", x), ("i64", by), ("i64", ahead)]
        x, step, ahead = c.guarded(missing, given, aside)
        c.do(f"call void @{split}(ptr {x}, i64 {step}, ptr {to}, i64 {ahead})")
        return []

    def outer(i: str, _: list[str]) -> list[str]:
        def inner(j: str, _: list[str]) -> list[str]:
            return tiles(j, i) if along_lines else tiles(i, j)

        c.loop("0", counts[1], "1", [], inner)
        return []

    c.loop("0", counts[0], "1", [], outer)
    r.helper(name, "ptr %from, i64 %line, i64 %term, i64 %lines, i64 %terms, ptr %to, i64 %strip")
    return name


def _split(module: Module, paired: bool) -> str:
    """The parts of 16 lines and 32 terms, as 16 vectors of pairs of each: a term in the lower half
    of 32 bits, the sixteenth after it in the upper one."""
    name = f"tiled_split{'_paired' * paired}"
    if name in module.functions:
        return name
    r = Reader(module, SIDE)
    c = r.c
    t, it = c.vec("float"), c.vec("i32")
    upper = c.const("i32", str(-0x10000))
    scale = c.float_const("float", 2.0**SCALE)

    def vectors(i: str, now: list[str]) -> list[str]:
        xs = []
        for half in range(2):
            step = (str(SIDE), "%step") if paired else ("1", "64")
            p = r.moved(now[0], step) if half else now[0]
            _ask(c, r.moved(p, ("1", "%ahead")))
            x = c.new(f"load {t}, ptr {p}, align 4")
            xs.append(c.new(f"fmul {t} {x}, {scale}"))
        for part in range(PARTS):
            near = [c.new(f"bitcast {t} {x} to {it}") for x in xs]
            if part < PARTS - 1:
                near = [c.new(f"add {it} {b}, {c.const('i32', str(0x8000))}") for b in near]
            low = c.new(f"lshr {it} {near[0]}, {c.const('i32', '16')}")
            near = [c.new(f"and {it} {b}, {upper}") for b in near]
            parts = [c.new(f"bitcast {it} {b} to {t}") for b in near]
            xs = [c.new(f"fsub {t} {x}, {p}") for x, p in zip(xs, parts, strict=True)]
            q = c.new(f"getelementptr i8, ptr {now[1]}, i64 {part * 2 * TILE}")
            c.do(f"store {it} {c.new(f'or {it} {low}, {near[1]}')}, ptr {q}, align 64")
        following = r.moved(now[0], ("1", "%step"))
        return [following, c.new(f"getelementptr i8, ptr {now[1]}, i64 64")]

    c.loop("0", str(SIDE), "1", [("ptr", "%x"), ("ptr", "%to")], vectors)
    r.helper(name, "ptr %x, i64 %step, ptr %to, i64 %ahead")
    return name


def _square(module: Module, turned: bool) -> str:
    """Copy 16 rows of 16 numbers, as columns if `turned`; zeros for those that are not there."""
    name = f"tiled_square{'_turned' * turned}"
    if name in module.functions:
        return name
    r = Reader(module, SIDE)
    c = r.c
    t = c.vec("float")
    mask = _lanes_before(c, "%columns")
    top = c.call("llvm.smax.i64", "i64", ("i64", c.new("sub i64 %rows, 1")), ("i64", "0"))
    xs = []
    for i in range(SIDE):
        here = c.new(f"icmp sgt i64 %rows, {i}")
        these = c.new(f"select i1 {here}, {c.vec('i1')} {mask}, {c.vec('i1')} zeroinitializer")
        p = r.moved("%x", (smaller(c, top, str(i)), "%step"))
        _ask(c, r.moved(p, ("1", "%ahead")))
        xs.append(_load(c, "float", p, these))
    half = SIDE // 2
    pairs = [
        ", ".join([f"i32 {low + j}, i32 {SIDE + low + j}" for j in range(half)])
        for low in (0, half)
    ]
    for step in range(4 if turned else 0):
        xs = [
            c.new(f"shufflevector {t} {xs[i]}, {t} {xs[i + half]}, <{SIDE} x i32> <{p}>")
            for i in range(half)
            for p in pairs
        ]
        if step == 1:
            # As in `gemm`: LLVM looks long for one shuffle in the place of four.
            xs = [c.call(f"llvm.arithmetic.fence.v{SIDE}f32", t, (t, x)) for x in xs]
    for i, x in enumerate(xs):
        c.do(f"store {t} {x}, ptr {r.moved('%to', (str(i), '%by'))}, align 64")
    r.helper(name, "ptr %x, i64 %step, i64 %rows, i64 %columns, ptr %to, i64 %by, i64 %ahead")
    return name
