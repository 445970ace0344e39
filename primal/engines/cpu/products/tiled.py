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

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import Code, Module
from primal.engines.cpu.products import blas
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
STRIP = DEPTH // TERMS * BLOCK
"""Bytes of 32 lines in so many terms."""
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
GAIN, UNPACKED_GAIN, LONG_GAIN = 28, 40, 20
"""m·n/(m + n), less what tiles are not filled, from which on they gain more than packing takes: it
is that of 56 rows and columns, of 80 where BLAS does not pack, of 40 where it packs slowly."""
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


def fits(m: int, n: int, depth: int, turned: bool) -> bool:
    """Whether this is the fastest way: tiles gain with m·n, and packing takes with m + n.

    BLAS packs too, but for small products, and is slow at those where y is `turned`.
    """
    if min(m, n, depth) < LEAST:
        return False
    padded = (-(-m // LEAST) * LEAST) * (-(-n // LEAST) * LEAST)
    gain = LONG_GAIN if turned and depth >= 4 * LEAST else GAIN
    if m * n * depth <= blas.UNPACKED and not turned:
        gain = UNPACKED_GAIN
    return (m * n) ** 2 >= gain * (m + n) * padded


def cost(m: int, n: int, depth: int) -> float:
    """The nanoseconds that a product takes one core: of tiles, of packing, and to begin."""
    return 2.0 * m * n * depth / 380 + 0.3 * (m + n) * depth + 900


def in_halves(m: int, n: int, depth: int, turns: int) -> bool:
    """Whether the terms are better divided than the rows or columns, which then are packed twice.

    Each half has results of its own, which whatever reads them adds up.
    """
    return turns == 1 and max(m, n) <= min(ROWS, depth // 2) and depth % (2 * TERMS) == 0


def room(wide: int) -> int:
    """Bytes of memory for a unit's packed operands."""
    return (wide // 32 + 1) * STRIP


def unit_of(sizes: tuple[int, int, int], turns: int) -> tuple[int, int]:
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
class Unit:
    """The function that multiplies a unit by the matrix unit, and tells whether there is a sum that
    is not finite. One serves the process; it is compiled with the first product that is large
    enough, as it takes twice as long as the rest of a product (17 of 26 ms).

    Operands lie in any order: what packs them asks the strides, once for some 10,000 numbers, so
    that there is one code for a product and for those of its gradient. What turns squares is a
    function of its own, the word behind this one's.
    """

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module, SIDE)
        c = r.c
        pack, tile, settings = _pack(module), _tile(module), _settings(module)
        across, turned = (c.new(f"icmp ne i64 {stride}, 4") for stride in ("%ak", "%bn"))
        turning = c.new(f"load ptr, ptr {c.new('getelementptr i64, ptr %callees, i64 1')}")
        right = c.new(f"getelementptr i8, ptr %room, i64 {STRIP}")
        state = c.new(f"alloca [{STATE} x i8], align 64")
        for at in (_CHECKS, _PENDING):
            p = c.new(f"getelementptr i8, ptr {state}, i64 {at}")
            c.do(f"store {c.vec('float')} zeroinitializer, ptr {p}, align 64")
        c.call_void("llvm.x86.ldtilecfg", ("ptr", settings))

        def block(k: str, _: list[str]) -> list[str]:
            turns = smaller(c, c.new(f"sub i64 %depth, {k}"), str(DEPTH))
            blocks = _up(c, turns, TERMS)
            strip = c.new(f"mul i64 {blocks}, {BLOCK}")
            here, there = r.moved("%y", (k, "%bk")), r.moved("%x", (k, "%ak"))

            def left_side(i: str, _: list[str]) -> list[str]:
                count = smaller(c, c.new(f"sub i64 %below, {i}"), "32")
                c.do(
                    f"call void @{pack}(ptr {r.moved(there, (i, '%am'))}, i64 %am, i64 %ak, "
                    f"i64 {count}, i64 {turns}, ptr %room, i64 {strip}, i1 0, i1 {across}, "
                    f"ptr {turning})"
                )
                to = r.moved("%z", (i, "%om"))

                def panel(j: str, _: list[str]) -> list[str]:
                    index = c.new(f"lshr i64 {j}, 5")
                    rest = c.new(f"sub i64 %wide, {j}")
                    c.do(
                        f"call void @{tile}(ptr %room, ptr {r.moved(right, (index, strip))}, "
                        f"i64 {blocks}, ptr {r.moved(to, (j, '4'))}, i64 %om, i64 {count}, "
                        f"i64 {rest}, i64 {k}, ptr {state})"
                    )
                    return []

                c.loop("0", "%wide", "32", [], panel)
                return []

            c.do(
                f"call void @{pack}(ptr {here}, i64 %bn, i64 %bk, i64 %wide, i64 {turns}, "
                f"ptr {right}, i64 {strip}, i1 1, i1 {turned}, ptr {turning})"
            )
            c.loop("0", "%below", "32", [], left_side)
            return []

        c.loop("0", "%depth", str(DEPTH), [], block)
        # What stores the last tile is one more of what is packed, nobody stores that one: 0.1 µs,
        # where code for it would take 2 ms to compile.
        given = "i64 1, ptr %z, i64 %om, i64 0, i64 0, i64 0"
        c.do(f"call void @{tile}(ptr %room, ptr {right}, {given}, ptr {state})")
        c.call_void("llvm.x86.tilerelease")
        p = c.new(f"getelementptr i8, ptr {state}, i64 {_CHECKS}")
        found = c.new(f"load {c.vec('float')}, ptr {p}")
        bad = c.new(f"fcmp uno {c.vec('float')} {found}, {found}")
        word = c.new(f"bitcast {c.vec('i1')} {bad} to i{SIDE}")
        c.do(f"ret i1 {c.new(f'icmp ne i{SIDE} {word}, 0')}")
        text = "\n".join(c.lines)
        module.functions[name] = f"define i1 @{name}({blas.UNIT}) nounwind {{\n{text}\n}}\n"


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


def _pack(module: Module) -> str:
    """Lines as tiles of the three parts of each, 32 by 32; what is missing there is zero.

    Not `paired`, as rows of x: a tile has the terms of a line side by side. `paired`, as columns of
    y: it has two terms of every line side by side. Which two does not matter, if it is the same two
    in both. Where the operand lies the other way (`turned`),
    or is not there, squares of it go through memory.
    """
    name = "tiled_pack"
    if name in module.functions:
        return name
    r = Reader(module, SIDE)
    c = r.c
    split, plain = _split(module), _square(module)
    room = c.new(f"alloca [{2 * TILE} x i8], align 64")
    along_lines = c.new("xor i1 %paired, %turned")

    def either(of: str, yes: str, no: str, t: str = "i64") -> str:
        return c.new(f"select i1 {of}, {t} {yes}, {t} {no}")

    by = either(along_lines, "%term", "%line")
    square = either("%turned", "%turning", f"@{plain}", "ptr")
    # Of the room: bytes from row to row, and from the first half of the terms to the second.
    row = either("%paired", "64", "128")
    half = either("%paired", str(SIDE * 64), str(SIDE * 4))

    # What lies side by side is read one after the other, and asked for some squares ahead.
    halves, blocks = _up(c, "%lines", SIDE), _up(c, "%terms", TERMS)
    count_out = either(along_lines, blocks, halves)
    count_in = either(along_lines, halves, blocks)
    by_blocks, by_halves = c.new(f"mul i64 %term, {TERMS}"), c.new(f"mul i64 %line, {SIDE}")
    step_out = either(along_lines, by_blocks, by_halves)
    step_in = either(along_lines, by_halves, by_blocks)
    reach = smaller(c, count_in, str(AHEAD))
    near = c.new(f"mul i64 {reach}, {step_in}")
    back = c.new(f"mul i64 {c.new(f'sub i64 {count_in}, {reach}')}, {step_in}")
    far = c.new(f"sub i64 {step_out}, {back}")

    def tiles(i: str, j: str) -> list[str]:
        h, b = either(along_lines, j, i), either(along_lines, i, j)
        more = c.new(f"icmp slt i64 {c.new(f'add i64 {j}, {reach}')}, {count_in}")
        ahead = either(more, near, far)
        first, k = c.new(f"mul i64 {h}, {SIDE}"), c.new(f"mul i64 {b}, {TERMS}")
        lines, terms = c.new(f"sub i64 %lines, {first}"), c.new(f"sub i64 %terms, {k}")
        x = r.moved("%from", (first, "%line"), (k, "%term"))
        number, odd = c.new(f"lshr i64 {h}, 1"), c.new(f"and i64 {h}, 1")
        to = r.moved("%to", (number, "%strip"), (odd, str(TILE)), (b, str(BLOCK)))
        few = c.new(f"icmp slt i64 {lines}, {SIDE}")
        few = c.new(f"or i1 {few}, {c.new(f'icmp slt i64 {terms}, {TERMS}')}")

        def aside() -> list[str]:
            for part in range(2):
                p = r.moved(x, (str(SIDE * part), "%term"))
                q = c.new(f"getelementptr i8, ptr {room}, i64 {half}") if part else room
                rest = c.new(f"sub i64 {terms}, {SIDE * part}")
                rows, columns = either(along_lines, rest, lines), either(along_lines, lines, rest)
                c.do(
                    f"call void {square}(ptr {p}, i64 {by}, i64 {rows}, i64 {columns}, ptr {q}, "
                    f"i64 {row}, i64 {ahead})"
                )
            return [room, row, "0"]

        given = [("ptr", x), ("i64", by), ("i64", ahead)]
        x, step, ahead = c.guarded(c.new(f"or i1 {few}, %turned"), given, aside)
        apart = either("%paired", c.new(f"mul i64 {step}, {SIDE}"), "64")
        c.do(f"call void @{split}(ptr {x}, i64 {step}, i64 {apart}, ptr {to}, i64 {ahead})")
        return []

    c.loop(
        "0", count_out, "1", [],
        lambda i, _: c.loop("0", count_in, "1", [], lambda j, _: tiles(i, j)),
    )  # fmt: skip
    r.helper(
        name,
        "ptr %from, i64 %line, i64 %term, i64 %lines, i64 %terms, ptr %to, i64 %strip, i1 %paired, "
        "i1 %turned, ptr %turning",
    )
    return name


def _split(module: Module) -> str:
    """The parts of 16 lines and 32 terms, as 16 vectors of pairs of each: a term in the lower half
    of 32 bits, the sixteenth after it, `apart` bytes away, in the upper one."""
    name = "tiled_split"
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
            p = r.moved(now[0], ("1", "%apart")) if half else now[0]
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
    r.helper(name, "ptr %x, i64 %step, i64 %apart, ptr %to, i64 %ahead")
    return name


_OF_SQUARE = "ptr %x, i64 %step, i64 %rows, i64 %columns, ptr %to, i64 %by, i64 %ahead"


def _row(c: Code, mask: str, p: str, i: str) -> str:
    """Row i of a square, of which nothing is read where it is not there."""
    _ask(c, c.new(f"getelementptr i8, ptr {p}, i64 %ahead"))
    here, t = c.new(f"icmp sgt i64 %rows, {i}"), c.vec("i1")
    return _load(c, "float", p, c.new(f"select i1 {here}, {t} {mask}, {t} zeroinitializer"))


def _square(module: Module) -> str:
    """Copy 16 rows of 16 numbers; zeros for those that are not there."""
    name = "tiled_square"
    if name in module.functions:
        return name
    r = Reader(module, SIDE)
    c = r.c
    mask = _lanes_before(c, "%columns")

    def copied(i: str, now: list[str]) -> list[str]:
        c.do(f"store {c.vec('float')} {_row(c, mask, now[0], i)}, ptr {now[1]}, align 64")
        return [r.moved(p, ("1", step)) for p, step in zip(now, ("%step", "%by"), strict=True)]

    c.loop("0", str(SIDE), "1", [("ptr", "%x"), ("ptr", "%to")], copied)
    r.helper(name, _OF_SQUARE)
    return name


@structure
class Turned:
    """The function that copies 16 rows of 16 numbers as columns, for operands that lie so.

    It is a quarter of all that a product compiles, which others do not wait for.
    """

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module, SIDE)
        c = r.c
        t, mask = c.vec("float"), _lanes_before(c, "%columns")
        xs, p = [], "%x"
        for i in range(SIDE):
            xs.append(_row(c, mask, p, str(i)))
            p = r.moved(p, ("1", "%step"))
        half = SIDE // 2
        pairs = [
            ", ".join([f"i32 {low + j}, i32 {SIDE + low + j}" for j in range(half)])
            for low in (0, half)
        ]
        for step in range(4):
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
        r.helper(name, _OF_SQUARE, "")


def callees(x_term: int, y_column: int) -> tuple[Unit, Turned | None]:
    """The functions that a product calls; strides in elements."""
    return Unit(), Turned() if x_term != 1 or y_column != 1 else None
