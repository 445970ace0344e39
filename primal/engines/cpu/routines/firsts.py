"""The k greatest of rows: by counting, by one pass, or for a greater k bit by bit.

One kernel hands rows to a function of the process, whatever the sizes. Which one is a word of the
record, and it is compiled when rows first ask for it. (With one kernel that took the elements at
the places that functions found, the next row waited for that: 100 rows of 40 took a tenth longer.)

For a small k, the greatest so far lie in registers, in order. A vector of elements is compared with
the least of them; the few that are greater are put in one after the other, which moves the rest by
a lane: of 1000 random numbers 30 for k = 5. Were they ascending all of them would be, for 10 ns
each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import Module, itemsize
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.routines.moves import name_of
from primal.engines.cpu.routines.orders import (
    MOST,
    UNIT,
    back,
    by_rank,
    encode,
    key_of,
    rank,
    room,
    rows,
    take,
)
from primal.engines.cpu.script import (
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

SHORT = 64
"""Elements of a row up to which counting is faster."""
FEW = 64
"""The greatest k: more would not lie in registers."""
LONG, APART = 4096, 16
"""Elements from which a sample is looked at, and of how many vectors it has one."""
MANY, LONGEST = 1024, 1 << 15
"""The greatest k that is selected bit by bit: they are put in order by counting; and the longest
rows, as each bit is a pass."""
COUNTING, BITS = 0, -1
ROOMS = 8, 16, 32, FEW
"""How the greatest are found: by counting, bit by bit, or that many at most in registers."""
SPARE = 64
"""Bytes behind the keys of a row."""
_KEYS = {"i4": 8, "u4": 8, "f8": 8}
"""Bytes of keys, where not 4: the least integer stands for nothing, so no element may be it."""
Row = tuple[Callable[[Place], None], Place]
"""Code for a row, given where it lies, and where that leaves the places."""


def top_k(k: Any, x: Value, count: int, axis: int) -> list[Value]:
    """The greatest and their places."""
    row = rows(k, x, axis)
    name, n = name_of(row), x.shape[axis]
    shape = (*row.shape[:-1], count)
    outs = [Aval(shape, x.dtype), Aval(shape, np.dtype(np.int32))]
    many, size, each = size_of(shape[:-1]), max(itemsize(name), 4), 1
    if n > SHORT and count <= FEW and name not in ("i8", "u8"):
        how = next(r for r in ROOMS if r >= count)
        cost = n // 8 + 10 * how
    elif n <= MOST:
        how, each = COUNTING, max(UNIT // (n * n + 1), 1)
        cost = each * (n * n // 16 + 4 * n + 10)
    elif count <= MANY and n <= LONGEST:
        how, cost = BITS, n * size + 20 * count + count * count // 16
    else:
        raise Unsupported(f"the {count} greatest of {n}")
    units = -(-many // each)
    found = k.routine(
        Walk(name), [row], outs, (0, n, count, each, many), units=units, cost=cost,
        scratch=units * (n * size + SPARE) if how == BITS else 0, name="top_k",
        callees=(Greatest(name, how),),
    )  # fmt: skip
    return [back(k, out, axis) for out in found]


@structure
class Walk:
    """Rows for a function, some for each unit.

    Words: the function, n, how many are wanted, rows of a unit, rows.
    """

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        item = itemsize(self.dtype)
        s = Script(module)
        x, best, at = s.address(), s.address(), s.address()
        code = s.new(f"inttoptr i64 {s.word().name} to ptr")
        n, count, each, rows = s.words(4)
        memory = s.scratch()

        def unit(u: Int) -> None:
            first = u * each
            some = (rows - first).least(each)
            own = memory + u * (n * max(item, 4) + SPARE)
            places = x + first * n * item, best + first * count * item, at + first * count * 4, own
            given = [f"ptr {p.name}" for p in places]
            given += [f"i64 {v.name}" for v in (n, count, some)]
            s.do(f"call void {code}({', '.join(given)})")

        s.units(unit)
        s.finish(name)


@structure
class Greatest:
    """The k greatest of some rows and their places, in order: a function of the process.

    `how`: by counting, bit by bit, or so many in registers; six functions for each dtype.
    """

    dtype: str
    how: int

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        size = max(itemsize(self.dtype), 4)
        if self.how > 0:
            size = _KEYS.get(self.dtype, 4)
        lanes = max(module.width // size, 2)
        s = Script(module, min(lanes, self.how) if self.how > 0 else lanes)
        x, best, at, own = (Place(s, p) for p in ("%x", "%best", "%at", "%own"))
        n, count, some = (Int(s, v) for v in ("%n", "%count", "%some"))
        ways = {COUNTING: self._counting, BITS: self._by_bits}
        places_of, places = ways.get(self.how, self._in_registers)(s, n, count, size, own)
        item = itemsize(self.dtype)

        def one(r: Int) -> None:
            row = x + r * n * item
            places_of(row)
            take(s, self.dtype, row, places, best + r * count * item, count)
            s.copy_bytes(at + r * count * 4, places, count * 4)

        s.each(0, some, one)
        s.do("ret void")
        head = "ptr %x, ptr %best, ptr %at, ptr %own, i64 %n, i64 %count, i64 %some"
        text = "\n".join(s.lines)
        module.functions[name] = f"define void @{name}({head}) nounwind {{\n{text}\n}}\n"

    def _counting(self, s: Script, n: Int, count: Int, size: int, _: Place) -> Row:
        """Of up to `MOST` elements."""
        keys, ranks, places = room(s, MOST, size), room(s, MOST, size), room(s, MOST, 4)

        def places_of(row: Place) -> None:
            encode(s, self.dtype, row, keys, n, size, descending=True)
            rank(s, [keys], ranks, n, size)
            by_rank(s, ranks, places, n, size)

        return places_of, places

    def _in_registers(self, s: Script, n: Int, count: Int, size: int, _: Place) -> Row:
        """In one pass."""
        item = itemsize(self.dtype)
        key, t, it = f"i{8 * size}", s.vec(f"i{8 * size}"), s.vec("i32")
        vectors = self.how // s.lanes
        least = s.const(key, str(-(1 << 8 * size - 1)))
        found_at = room(s, self.how, 4)

        def places_of(row: Place) -> None:
            def sampled(i: str, now: list[str]) -> list[str]:
                out = []
                for v, most in enumerate(now):
                    value = read_vector(s, f"i{item}", row + (Int(s, i) + v * s.lanes) * item)
                    keys = key_of(s, self.dtype, value, size, False)
                    out.append(s.intrinsic("smax", key, most, keys))
                return out

            low = s.const(key, str(1 - (1 << 8 * size - 1)))
            none = s.new(f"icmp slt i64 {n.name}, {LONG}")
            until = s.new(f"select i1 {none}, i64 0, i64 {(n - (self.how - 1)).name}")
            parts = s.loop("0", until, str(self.how * APART), [(t, low)] * vectors, sampled)
            while len(parts) > 1:
                parts = [s.intrinsic("smin", key, *parts[:2]), *parts[2:]]
            bound = s.call(f"llvm.vector.reduce.smin.v{s.lanes}{key}", key, (t, parts[0]))
            bound = s.new(f"sub {key} {bound}, 1")

            def turn(i: str, now: list[str]) -> list[str]:
                place = Int(s, i)
                inside = lanes_before(s, n - place)
                value = read_vector(s, f"i{item}", row + place * item, inside)
                keys = key_of(s, self.dtype, value, size, False)
                last = s.new(f"extractelement {t} {now[vectors - 1]}, i64 {s.lanes - 1}")
                last = s.call(f"llvm.smax.{key}", key, (key, last), (key, bound))
                more = s.new(f"icmp sgt {t} {keys}, {s.splat(key, last)}")
                more = s.new(f"and {s.vec('i1')} {more}, {inside}")
                narrow = s.new(f"bitcast {s.vec('i1')} {more} to i{s.lanes}")
                bits = s.new(f"zext i{s.lanes} {narrow} to i64") if s.lanes < 64 else narrow
                some = s.new(f"icmp ne i64 {bits}, 0")
                given = list(zip([t] * vectors + [it] * vectors, now, strict=True))

                def put(_: str, now: list[str]) -> list[str]:
                    bits, *held = now
                    lane = s.call("llvm.cttz.i64", "i64", ("i64", bits), ("i1", "true"))
                    rest = s.new(f"and i64 {bits}, {s.new(f'sub i64 {bits}, 1')}")
                    one = s.splat(key, s.new(f"extractelement {t} {keys}, i64 {lane}"))
                    where = s.new(f"trunc i64 {(place + Int(s, lane)).name} to i32")
                    return [rest, *self._put(s, key, held, one, s.splat("i32", where))]

                def all_() -> list[str]:
                    turns = s.call("llvm.ctpop.i64", "i64", ("i64", bits))
                    return s.loop("0", turns, "1", [("i64", bits), *given], put)[1:]

                return s.guarded(some, given, all_)

            start = [(t, least)] * vectors + [(it, "zeroinitializer")] * vectors
            found = s.loop("0", n.name, str(s.lanes), start, turn)[vectors:]
            for v, places in enumerate(found):
                write_vector(s, "i4", places, found_at + v * s.lanes * 4)

        return places_of, found_at

    def _by_bits(self, s: Script, n: Int, count: Int, size: int, keys: Place) -> Row:
        """In a pass for each bit; the last ones are put in order by counting.

        The least of them is found from its highest bit on: the next one is 1 if as many elements
        are not below what that gives. Of those equal to it the first are taken.
        """
        item, key = itemsize(self.dtype), f"i{8 * size}"
        t, i1 = s.vec(key), s.vec("i1")
        least = s.const(key, str(-(1 << 8 * size - 1)))
        chosen, ranks = room(s, MANY, size), room(s, MANY, size)
        places, ordered = room(s, MANY, 4), room(s, MANY, 4)

        def places_of(row: Place) -> None:
            def encoded(i: Int) -> None:
                inside = lanes_before(s, n - i)
                value = read_vector(s, f"i{item}", row + i * item, inside)
                value = key_of(s, self.dtype, value, size, False)
                value = s.new(f"select {i1} {inside}, {t} {value}, {t} {least}")
                write_vector(s, f"i{size}", value, keys + i * size)

            s.each(0, n, encoded, s.lanes)

            def above(how: str, bound: str) -> Int:
                """How many elements are."""
                every = s.splat(key, bound)

                def some(i: str, now: list[str]) -> list[str]:
                    value = read_vector(s, f"i{size}", keys + Int(s, i) * size)
                    more = s.new(f"icmp {how} {t} {value}, {every}")
                    return [s.new(f"sub {t} {now[0]}, {s.new(f'sext {i1} {more} to {t}')}")]

                (total,) = s.loop("0", n.name, str(s.lanes), [(t, "zeroinitializer")], some)
                total = s.call(f"llvm.vector.reduce.add.v{s.lanes}{key}", key, (t, total))
                return Int(s, total if size == 8 else s.new(f"zext {key} {total} to i64"))

            def bit(i: str, now: list[str]) -> list[str]:
                place = s.new(f"sub i64 {8 * size - 1}, {i}")
                place = place if size == 8 else s.new(f"trunc i64 {place} to {key}")
                higher = s.new(f"add {key} {now[0]}, {s.new(f'shl {key} 1, {place}')}")
                enough = above("sge", higher).test("sge", count)
                return [s.new(f"select i1 {enough}, {key} {higher}, {key} {now[0]}")]

            first = str(-(1 << 8 * size - 1))
            (bound,) = s.loop("0", str(8 * size), "1", [(key, first)], bit)
            every, equal = s.splat(key, bound), count - above("sgt", bound)

            def turn(i: str, now: list[str]) -> list[str]:
                value = read_vector(s, f"i{size}", keys + Int(s, i) * size)
                found = []
                for how in ("sge", "sgt"):
                    more = s.new(f"icmp {how} {t} {value}, {every}")
                    bits = s.new(f"bitcast {i1} {more} to i{s.lanes}")
                    found.append(s.new(f"zext i{s.lanes} {bits} to i64") if s.lanes < 64 else bits)
                some, greater = found
                given = [("i64", some), ("i64", now[0]), ("i64", now[1])]

                def one(_: str, now: list[str]) -> list[str]:
                    rest, taken, left = now
                    lane = s.call("llvm.cttz.i64", "i64", ("i64", rest), ("i1", "true"))
                    place = Int(s, i) + Int(s, lane)
                    sure = s.new(f"and i64 {s.new(f'lshr i64 {greater}, {lane}')}, 1")
                    level = s.new(f"xor i64 {sure}, 1")
                    wanted = s.new(f"or i64 {sure}, {left}")

                    def put() -> None:
                        to, element = Int(s, taken), s.read(key, keys + place * size)
                        # The greatest first.
                        s.write(key, s.new(f"xor {key} {element}, -1"), chosen + to * size)
                        s.write("i32", s.new(f"trunc i64 {place.name} to i32"), places + to * 4)

                    takes = s.new(f"icmp ne i64 {wanted}, 0")
                    s.when(takes, put)
                    more = s.new(f"zext i1 {takes} to i64")
                    return [
                        s.new(f"and i64 {rest}, {s.new(f'sub i64 {rest}, 1')}"),
                        s.new(f"add i64 {taken}, {more}"),
                        s.new(f"sub i64 {left}, {s.new(f'and i64 {level}, {more}')}"),
                    ]

                turns = s.call("llvm.ctpop.i64", "i64", ("i64", some))
                return s.loop("0", turns, "1", given, one)[1:]

            s.loop("0", n.name, str(s.lanes), [("i64", "0"), ("i64", equal.name)], turn)
            rank(s, [chosen], ranks, count, size)
            by_rank(s, ranks, ordered, count, size, places)

        return places_of, ordered

    @staticmethod
    def _put(s: Script, key: str, held: list[str], one: str, place: str) -> list[str]:
        """Keys and places with one more, behind those that are not less."""
        vectors, i1 = len(held) // 2, s.vec("i1")
        moved = ", ".join([f"i32 {s.lanes - 1 + lane}" for lane in range(s.lanes)])
        most = s.const(key, str((1 << int(key[1:]) - 1) - 1))
        keys: list[str] = []
        places: list[str] = []
        for v in range(vectors):
            stay = s.new(f"icmp sge {s.vec(key)} {held[v]}, {one}")
            # What is one lane before: of the first nothing, which is not less.
            before = []
            for kind, first, first_of_all in ((key, 0, most), ("i32", vectors, place)):
                t, known = s.vec(kind), held[first + v - 1] if v else first_of_all
                before.append(s.new(f"shufflevector {t} {known}, {t} {held[first + v]}, "
                                    f"<{s.lanes} x i32> <{moved}>"))  # fmt: skip
            here = s.new(f"icmp sge {s.vec(key)} {before[0]}, {one}")
            for kind, to, old, shifted, fresh in (
                (key, keys, held[v], before[0], one),
                ("i32", places, held[vectors + v], before[1], place),
            ):
                t = s.vec(kind)
                later = s.new(f"select {i1} {here}, {t} {fresh}, {t} {shifted}")
                to.append(s.new(f"select {i1} {stay}, {t} {old}, {t} {later}"))
        return [*keys, *places]
