"""The k greatest of long rows: by one pass over them, or for a greater k bit by bit.

For a small k, the greatest so far lie in registers, in order. A vector of elements is compared with
the least of them; the few that are greater are put in one after the other, which moves the rest by
a lane: of 1000 random numbers 30 for k = 5. Were they ascending all of them would be, for 10 ns
each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import Module, itemsize
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.moves import name_of
from primal.engines.cpu.orders import MOST, PLACES, Order, back, key_of, ordered, rows
from primal.engines.cpu.script import (
    MEMORY_INT,
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
_KEYS = {"i4": 8, "u4": 8, "f8": 8}
"""Bytes of keys, where not 4: the least integer stands for nothing, so no element may be it."""


def top_k(k: Any, x: Value, count: int, axis: int) -> list[Value]:
    """The greatest and their places."""
    row = rows(k, x, axis)
    name, n = name_of(row), x.shape[axis]
    shape = (*row.shape[:-1], count)
    outs = [Aval(shape, x.dtype), Aval(shape, np.dtype(np.int32))]
    if n > SHORT and count <= FEW and name not in ("i8", "u8"):
        room = next(r for r in (8, 16, 32, FEW) if r >= count)
        found = k.routine(
            Greatest(name, room), [row], outs, (n, count), units=size_of(shape[:-1]),
            cost=n // 8 + 10 * room, name="top_k",
        )  # fmt: skip
    elif n <= MOST:
        found = ordered(k, Order((name, PLACES), 1, False, True), [row], outs, count)
    elif count <= MANY and n <= LONGEST:
        units, size = size_of(shape[:-1]), max(itemsize(name), 4)
        chosen = k.routine(
            Chosen(name), [row], outs, (n, count), units=units, cost=n * size + 20 * count,
            scratch=units * (n * size + 64), name="top_k",
        )  # fmt: skip
        found = ordered(k, Order((name, "i4"), 1, False, True, MANY), chosen, outs, count)
    else:
        raise Unsupported(f"the {count} greatest of {n}")
    return [back(k, out, axis) for out in found]


@structure
class Greatest:
    """A unit per row. Words: n and how many are wanted, at most `room`."""

    dtype: str
    room: int

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        item, size = itemsize(self.dtype), _KEYS.get(self.dtype, 4)
        s = Script(module, min(max(module.width // size, 2), self.room))
        x, best, at = s.address(), s.address(), s.address()
        n, count = s.words(2)
        key, t, it = f"i{8 * size}", s.vec(f"i{8 * size}"), s.vec("i32")
        vectors = self.room // s.lanes
        least = s.const(key, str(-(1 << 8 * size - 1)))
        room = Place(s, s.new(f"alloca [{self.room * 4} x i8], align 64"))

        def unit(u: Int) -> None:
            row = x + u * n * item

            def sampled(i: str, now: list[str]) -> list[str]:
                out = []
                for v, most in enumerate(now):
                    value = read_vector(s, f"i{item}", row + (Int(s, i) + v * s.lanes) * item)
                    keys = key_of(s, self.dtype, value, size, False)
                    out.append(s.intrinsic("smax", key, most, keys))
                return out

            low = s.const(key, str(1 - (1 << 8 * size - 1)))
            none = s.new(f"icmp slt i64 {n.name}, {LONG}")
            until = s.new(f"select i1 {none}, i64 0, i64 {(n - (self.room - 1)).name}")
            parts = s.loop("0", until, str(self.room * APART), [(t, low)] * vectors, sampled)
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
                write_vector(s, "i4", places, room + v * s.lanes * 4)
            s.copy_bytes(at + u * count * 4, room, count * 4)
            kept, out = MEMORY_INT[str(item)], best + u * count * item

            def take(r: Int) -> None:
                value = s.read(kept, row + s.integer("i4", room + r * 4) * item)
                s.write(kept, value, out + r * item)

            s.each(0, count, take)

        s.units(unit)
        s.finish(name)

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


@structure
class Chosen:
    """The k greatest of each row and their places, in the order of the row.

    The least of them is found from its highest bit on: the next one is 1 if as many elements are
    not below what that gives. Of those equal to it the first are taken. Words: n and k.
    """

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        item, size = itemsize(self.dtype), max(itemsize(self.dtype), 4)
        s = Script(module, max(module.width // size, 2))
        x, best, at = s.address(), s.address(), s.address()
        n, count = s.words(2)
        room, key = s.scratch(), f"i{8 * size}"
        t, i1, kept = s.vec(key), s.vec("i1"), MEMORY_INT[str(item)]
        least = s.const(key, str(-(1 << 8 * size - 1)))

        def unit(u: Int) -> None:
            row, keys = x + u * n * item, room + u * (n * size + 64)

            def encode(i: Int) -> None:
                inside = lanes_before(s, n - i)
                value = read_vector(s, f"i{item}", row + i * item, inside)
                value = key_of(s, self.dtype, value, size, False)
                value = s.new(f"select {i1} {inside}, {t} {value}, {t} {least}")
                write_vector(s, f"i{size}", value, keys + i * size)

            s.each(0, n, encode, s.lanes)

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
                        element = s.read(kept, row + place * item)
                        to = u * count + Int(s, taken)
                        s.write(kept, element, best + to * item)
                        s.write("i32", s.new(f"trunc i64 {place.name} to i32"), at + to * 4)

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

        s.units(unit)
        s.finish(name)
