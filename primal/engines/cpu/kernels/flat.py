"""Elementwise bodies over short rows as one long run: the same code for all lengths of rows.

What is stored lies side by side from row to row, so vectors are whole whatever the length, which is
a word of the record. What is read in another way is found by a table on the stack that begins anew
with every row: of what repeats in each row (`p`: a bias), or of how far elements lie from the first
one (`s`, one number per row, these side by side; `g`, any other). A vector begins at some column,
reads there what its lanes need, and the next column is an addition away. Lanes that all come from
one vector of memory, or two, are not gathered, but change places. With a kernel per length,
which took points apart and put them together by shuffles, a new one cost 10 to 20 ms; where many
elements are gathered those are worth it (`layout.points.MANY`).

A row may itself have several loops, which are `nested` in `Spec`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primal.engines.cpu.code import LINE, MEMORY, SCALAR, Code, itemsize
from primal.engines.cpu.kernels.strips import strips

OFFSET = 4
"""Bytes of a distance in a table."""
PAGE = 4096
"""Bytes, at most, that are memory of the process where one of them is."""
_PERMUTED = {
    ("float", 16): "avx512.permvar.sf.512", ("i32", 16): "avx512.permvar.si.512",
    ("double", 8): "avx512.permvar.df.512", ("i64", 8): "avx512.permvar.di.512",
    ("float", 8): "avx2.permps", ("i32", 8): "avx2.permd",
    ("i16", 32): "avx512.permvar.hi.512", ("i16", 16): "avx512.permvar.hi.256",
    ("i16", 8): "avx512.permvar.hi.128", ("i8", 64): "avx512.permvar.qi.512",
    ("i8", 32): "avx512.permvar.qi.256", ("i8", 16): "avx512.permvar.qi.128",
}  # fmt: skip
"""(type, lanes) -> the instruction that takes lanes by number."""
_OF_TWO = {
    ("float", 16): "ps.512", ("i32", 16): "d.512", ("double", 8): "pd.512", ("i64", 8): "q.512",
    ("float", 8): "ps.256", ("i32", 8): "d.256", ("i16", 32): "hi.512", ("i16", 16): "hi.256",
    ("i16", 8): "hi.128", ("i8", 64): "qi.512", ("i8", 32): "qi.256", ("i8", 16): "qi.128",
}  # fmt: skip
"""The same -> the one that takes them of two vectors."""


def is_permuted(c: Code, scalar: str) -> bool:
    """Whether `permuted` serves vectors of a type."""
    known = (scalar, c.lanes) in _PERMUTED and (scalar != "i8" or c.module.shuffles)
    return c.module.width == 64 and known


def permuted(c: Code, scalar: str, x: str, lanes: str, y: str = "") -> str:
    """The lanes of a vector, or of two, by their numbers: integers as `counted_by` says."""
    t, i = c.vec(scalar), {"float": "i32", "double": "i64"}.get(scalar, scalar)
    if i == "i64":
        lanes = c.new(f"zext {c.vec('i32')} {lanes} to {c.vec(i)}")
    if y:
        name = f"llvm.x86.avx512.vpermi2var.{_OF_TWO[scalar, c.lanes]}"
        return c.call(name, t, (t, x), (c.vec(i), lanes), (t, y))
    return c.call(f"llvm.x86.{_PERMUTED[scalar, c.lanes]}", t, (t, x), (c.vec(i), lanes))


def counted_by(c: Code, dtype: str, step: str) -> str:
    """The integers of an operand's table: of bytes for single ones of these, which are taken by
    bytes. Those of 32 bits would be cut to them for every vector."""
    scalar = MEMORY[dtype]
    narrow = step == "s" and scalar in ("i8", "i16") and is_permuted(c, scalar)
    return scalar if narrow else "i32"


def _bits(dtype: str) -> str:
    """The integer that holds an element in memory."""
    return f"i{8 * itemsize(dtype)}"


class Flat:
    """Writes the body of a kernel over rows; made in its entry block, for memory of its own."""

    STEPS = frozenset("psg")
    """Steps of operands that are read by a table."""

    def __init__(self, w: Any, points: int) -> None:
        c, spec = w.c, w.spec
        self.w, self.c = w, c
        self.points = points
        self.short = range(points + 1, w.rank)
        self.length = w.sizes[self.short[0]]
        for d in self.short[1:]:
            self.length = c.new(f"mul i64 {self.length}, {w.sizes[d]}")
        # Where a vector begins in its row; that row.
        self.column, self.row, self.last = "0", "", ""
        self.over, self.on = c.divided(str(c.lanes), self.length)
        self.tables: dict[int, str] = {}
        self.found: dict[int, str] = {}
        self.near: dict[int, tuple[str, str, str]] = {}
        room = c.new(f"add i64 {self.length}, {c.lanes}")
        for k, (kind, dtype, step) in enumerate(spec.operands):
            if kind == "l" or step not in self.STEPS:
                continue
            size = 2 * (itemsize(dtype) if step == "p" else OFFSET)
            bytes_ = c.new(f"mul i64 {room}, {size}")
            self.tables[k] = c.new(f"alloca i8, i64 {bytes_}, align {LINE}")
            if step != "p":
                self.repeated(k, counted_by(c, dtype, step), self.distances(k))
            if step == "g" and kind == "m" and is_permuted(c, _bits(dtype)):
                self.near[k] = self.order(k, _bits(dtype))

    def write(self, places: list[str], first: str, last: str) -> None:
        """The body over rows [first, last)."""
        c, w = self.c, self.w
        self.begin(places, last)

        def turn(i: str, mask: str | None, now: list[str]) -> list[str]:
            self.column, self.row = now
            self.found = {}
            w.computed(places, i, mask)
            column = c.new(f"add i64 {now[0]}, {self.on}")
            ends = c.new(f"icmp sge i64 {column}, {self.length}")
            back = c.new(f"sub i64 {column}, {self.length}")
            row = c.new(f"add i64 {now[1]}, {self.over}")
            more = c.new(f"add i64 {row}, {c.new(f'zext i1 {ends} to i64')}")
            return [c.new(f"select i1 {ends}, i64 {back}, i64 {column}"), more]

        start, stop = [c.new(f"mul i64 {n}, {self.length}") for n in (first, last)]
        strips(w, start, stop, [("i64", "0"), ("i64", first)], turn)

    def begin(self, places: list[str], last: str) -> None:
        """Read what repeats in each row, or is the same in all, before rows up to `last`."""
        w, self.last = self.w, last
        w.scalars(places)
        for k, (_, dtype, step) in enumerate(w.spec.operands):
            if k in self.tables and step == "p":
                self.repeated(k, MEMORY[dtype], self.values(k, dtype, places[k]))

    # Tables: element n is that of column n of the first row, which others follow.

    def repeated(
        self, k: int, kept: str, value: Callable[[str, list[tuple[int, str]], str, str], str]
    ) -> None:
        """Fill table k: `value(row, indices, j, mask)` from index j of the innermost loop on."""
        c, w, last = self.c, self.w, self.short[-1]
        t = c.vec(kept)

        def nest(d: int, row: str, at: str, indices: list[tuple[int, str]]) -> list[str]:
            if d < last:
                return list(c.loop(
                    "0", w.sizes[d], "1", [("i64", at)],
                    lambda i, now: nest(d + 1, row, now[0], [*indices, (d, i)]),
                ))  # fmt: skip

            def some(j: str, _: list[str]) -> list[str]:
                # Lanes behind the end are written again by what follows.
                found = value(row, indices, j, w.mask(j, w.sizes[d]))
                p = c.new(f"getelementptr {kept}, ptr {self.tables[k]}, i64 {at}")
                p = c.new(f"getelementptr {kept}, ptr {p}, i64 {j}")
                c.do(f"store {t} {found}, ptr {p}, align 1")
                return []

            c.loop("0", w.sizes[d], str(c.lanes), [], some)
            return [c.new(f"add i64 {at}, {w.sizes[d]}")]

        def turn(at: str, now: list[str]) -> list[str]:
            nest(self.short[0], now[0], at, [])
            return [c.new(f"add i64 {now[0]}, 1")]

        span = c.new(f"add i64 {self.length}, {c.lanes - 1}")
        c.loop("0", span, self.length, [("i64", "0")], turn)

    def values(
        self, k: int, dtype: str, place: str
    ) -> Callable[[str, list[tuple[int, str]], str, str], str]:
        """What operand k is along a row."""
        c, w = self.c, self.w

        def value(_: str, indices: list[tuple[int, str]], j: str, mask: str) -> str:
            here = place
            for d, i in indices:
                step = c.new(f"mul i64 {i}, {w.strides[k][d]}")
                how = "add i64" if w.is_count(k) else "getelementptr i8, ptr"
                here = c.new(f"{how} {here}, {'' if w.is_count(k) else 'i64 '}{step}")
            found: str = w.strided(k, here, j, mask)
            if dtype == "b1":
                found = c.new(f"zext {c.vec('i1')} {found} to {c.vec('i8')}")
            return found

        return value

    def distances(self, k: int) -> Callable[[str, list[tuple[int, str]], str, str], str]:
        """How far elements of operand k lie from the first one: in rows, bytes, or counts."""
        c, w, t = self.c, self.w, self.c.vec("i32")
        _, dtype, step = w.spec.operands[k]
        single, narrow = step == "s", counted_by(c, dtype, step)

        def value(row: str, indices: list[tuple[int, str]], j: str, _: str) -> str:
            if single:
                return str(c.splat(narrow, c.new(f"trunc i64 {row} to {narrow}")))
            at = "0"
            inner = w.strides[k][self.short[-1]]
            for i, d in ((row, self.points), *[(i, d) for d, i in indices], (j, self.short[-1])):
                at = c.new(f"add i64 {at}, {c.new(f'mul i64 {i}, {w.strides[k][d]}')}")
            step = c.splat("i32", c.new(f"trunc i64 {inner} to i32"))
            lanes = c.new(f"mul {t} {step}, {c.iota('i32')}")
            return str(c.new(f"add {t} {c.splat('i32', c.new(f'trunc i64 {at} to i32'))}, {lanes}"))

        return value

    def order(self, k: int, bits: str) -> tuple[str, str, str]:
        """For vectors that begin at each column: where the memory begins that their lanes come
        from, and which of it each takes; then how many bytes apart these are at most."""
        c, t = self.c, self.c.vec("i32")
        kept, size = ("i32" if bits == "i64" else bits), int(bits[1:]) // 8
        lows = c.new(f"alloca i32, i64 {self.length}")
        count = c.new(f"mul i64 {self.length}, {c.lanes}")
        orders = c.new(f"alloca {kept}, i64 {count}, align {LINE}")

        def column(j: str, now: list[str]) -> list[str]:
            p = c.new(f"getelementptr i32, ptr {self.tables[k]}, i64 {j}")
            away = c.new(f"load {t}, ptr {p}, align 1")
            low, high = (
                c.call(f"llvm.vector.reduce.{how}.v{c.lanes}i32", "i32", (t, away))
                for how in ("smin", "smax")
            )
            c.do(f"store i32 {low}, ptr {c.new(f'getelementptr i32, ptr {lows}, i64 {j}')}")
            which = c.new(f"sub {t} {away}, {c.splat('i32', low)}")
            which = c.new(f"lshr {t} {which}, {c.const('i32', str(size.bit_length() - 1))}")
            if kept != "i32":
                which = c.new(f"trunc {t} {which} to {c.vec(kept)}")
            at = c.new(f"mul i64 {j}, {c.lanes}")
            p = c.new(f"getelementptr {kept}, ptr {orders}, i64 {at}")
            c.do(f"store {c.vec(kept)} {which}, ptr {p}, align {LINE if kept == bits else 1}")
            span = c.new(f"sub i32 {high}, {low}")
            return [c.call("llvm.umax.i32", "i32", ("i32", now[0]), ("i32", span))]

        (most,) = c.loop("0", self.length, "1", [("i32", "0")], column)
        return lows, orders, most

    # Reading.

    def load(self, k: int, place: str, mask: str | None) -> str:
        """Operand k in the lanes of the mask or in all, by its table."""
        c, w = self.c, self.w
        kind, dtype, step = w.spec.operands[k]
        if step == "p":
            return str(w.contiguous(dtype, self.tables[k], self.column, None))
        if k not in self.found:
            t = counted_by(c, dtype, step)
            self.found[k] = w.contiguous(f"i{int(t[1:]) // 8}", self.tables[k], self.column, None)
        away, scalar = self.found[k], SCALAR[dtype]
        if step == "s":
            return self.singles(dtype, place, away, mask)
        here = c.new(f"mul i64 {self.row}, {w.strides[k][self.points]}")
        if kind == "i":
            wide = c.vec("i64")
            first = c.splat("i64", c.new(f"add i64 {place}, {here}"))
            away = c.new(f"sext {c.vec('i32')} {away} to {wide}")
            values = c.new(f"add {wide} {first}, {away}")
            return str(w.counted(dtype, values, wide, c.vec(scalar)))
        here = c.new(f"getelementptr i8, ptr {place}, i64 {here}")

        def gathered() -> list[str]:
            return [str(w.gather(dtype, here, away, mask, "i32"))]

        return self.ordered(k, dtype, here, mask, gathered) if k in self.near else gathered()[0]

    def ordered(
        self, k: int, dtype: str, here: str, mask: str | None, other: Callable[[], list[str]]
    ) -> str:
        """One vector of memory whose lanes change places, or two, where all of it is in a page in
        which an element is wanted.

        333333 x 3 bools twice side by side took 215 us by words of four bytes, and take 45 so. Of
        two are the rows of 333333 x 3 floats backwards, or without a column.
        """
        c = self.c
        bits, t = _bits(dtype), c.vec(MEMORY[dtype])
        wide, size = c.vec(bits), int(bits[1:]) // 8
        kept = "i32" if bits == "i64" else bits
        lows, orders, most = self.near[k]
        p = c.new(f"getelementptr i32, ptr {lows}, i64 {self.column}")
        low = c.new(f"sext i32 {c.new(f'load i32, ptr {p}')} to i64")
        start = c.new(f"getelementptr i8, ptr {here}, i64 {low}")
        within = c.new(f"and i64 {c.new(f'ptrtoint ptr {start} to i64')}, {PAGE - 1}")

        def fits(count: int) -> str:
            room = count * c.lanes * size
            good = c.new(f"icmp ule i64 {within}, {PAGE - room}")
            good = c.new(f"and i1 {good}, {c.new(f'icmp ult i32 {most}, {room}')}")
            if mask is not None:
                wanted = c.new(f"bitcast {c.vec('i1')} {mask} to i{c.lanes}")
                good = c.new(f"and i1 {good}, {c.new(f'icmp ne i{c.lanes} {wanted}, 0')}")
            return good

        def moved(count: int) -> list[str]:
            at = c.new(f"mul i64 {self.column}, {c.lanes}")
            p = c.new(f"getelementptr {kept}, ptr {orders}, i64 {at}")
            which = c.new(f"load {c.vec(kept)}, ptr {p}, align {LINE if kept == bits else 1}")
            found = c.new(f"load {wide}, ptr {start}, align 1")
            second = ""
            if count == 2:
                p = c.new(f"getelementptr {wide}, ptr {start}, i64 1")
                second = c.new(f"load {wide}, ptr {p}, align 1")
            found = permuted(c, bits, found, which, second)
            if mask is not None:
                none = f"{wide} zeroinitializer"
                found = c.new(f"select {c.vec('i1')} {mask}, {wide} {found}, {none}")
            if dtype == "b1":
                return [c.new(f"icmp ne {wide} {found}, zeroinitializer")]
            return [found if t == wide else c.new(f"bitcast {wide} {found} to {t}")]

        types = [c.vec(SCALAR[dtype])]

        def by_two() -> list[str]:
            return c.either(fits(2), types, lambda: moved(2), other)

        return c.either(fits(1), types, lambda: moved(1), by_two)[0]

    def singles(self, dtype: str, place: str, away: str, mask: str | None) -> str:
        """One number per row: those of the next rows side by side, each to its lanes."""
        c, w, scalar = self.c, self.w, MEMORY[dtype]
        here = c.new(f"getelementptr {MEMORY[dtype]}, ptr {place}, i64 {self.row}")
        if not is_permuted(c, scalar):
            size = c.const("i32", str(itemsize(dtype)))
            away = c.new(f"mul {c.vec('i32')} {away}, {size}")
            return str(w.gather(dtype, here, away, mask, "i32"))
        inside = w.mask(self.row, self.last)
        out = permuted(c, scalar, w.contiguous(dtype.replace("b", "u"), here, "0", inside), away)
        return c.new(f"icmp ne {c.vec('i8')} {out}, zeroinitializer") if dtype == "b1" else out
