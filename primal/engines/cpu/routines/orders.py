"""Short rows in order: sorts by counting what comes before each element.

Every key becomes an integer whose order is the one wanted. An element's rank is the number of those
before it, found by comparing a vector of keys with each key in turn: n²/16 comparisons in vectors
of 16, but no branch that depends on data and nothing to exchange. Of 50 floats that takes a quarter
of a microsecond, where a call of NumPy's sort takes four.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import Module, itemsize
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.routines.moves import held, name_of
from primal.engines.cpu.script import (
    MEMORY_INT,
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)
from primal.ir.builders import Unsupported

MOST = 256
"""Elements of a row above which NumPy is faster than counting."""
MANY = 64
"""The same for many rows of which nothing but the keys is wanted: calls of NumPy cost 4 µs."""
UNIT = 1 << 14
"""Comparisons of a unit, roughly."""
PLACES = "places"
"""Stands for the dtype of an operand that is 0, 1, 2, … along the rows: it is not read."""
_MANTISSA = {"f2": 10, "h2": 7, "f4": 23, "f8": 52}


def sort(k: Any, xs: Sequence[Value], axis: int, num_keys: int) -> list[Value]:
    """All operands reordered alike, by the first of them, stably."""
    n = xs[0].shape[axis]
    if n == 1:
        return list(xs)  # in their order: with places, 200 of the 600 µs of a quantile's gradient
    if n > MOST or (len(xs) == 1 and n > MANY and n * xs[0].size > MOST**2):
        raise Unsupported(f"sort of {xs[0].shape}")
    given = [rows(k, x, axis) for x in xs]
    names = [PLACES if _counts(x, axis) and i >= num_keys else name_of(g)
             for i, (x, g) in enumerate(zip(xs, given, strict=True))]  # fmt: skip
    many = size_of(given[0].shape[:-1])
    each = max(UNIT // (n * n + 1), 1)
    read = [x for x, name in zip(given, names, strict=True) if name != PLACES]
    outs = k.routine(
        Order(tuple(names), num_keys), read, [x.aval for x in given], (n, each, many),
        units=-(-many // each), cost=each * (n * n // 16 + 4 * n + 10), name="sort",
    )  # fmt: skip
    return [back(k, out, axis) for out in outs]


def rows(k: Any, x: Value, axis: int) -> Value:
    """The value with the axis last, in row-major order."""
    if axis != x.ndim - 1:
        x = k.transpose(x, [*[d for d in range(x.ndim) if d != axis], axis])
    return x if _counts(x, x.ndim - 1) else k.dense(held(k, x))


def back(k: Any, x: Value, axis: int) -> Value:
    if axis == x.ndim - 1:
        return x
    last = x.ndim - 1
    out: Value = k.transpose(x, [*range(axis), last, *range(axis, last)])
    return out


def _counts(x: Value, axis: int) -> bool:
    """Whether the elements are their places along the axis, as int32."""
    steps = [int(d == axis) for d in range(x.ndim)]
    return (
        x.node.word == "iota" and x.node.dtype == np.int32 and not x.offset
        and all(n == 1 or s == t for n, s, t in zip(x.shape, x.steps(), steps, strict=True))
    )  # fmt: skip


def key_of(s: Script, dtype: str, value: str, size: int, zeros_equal: bool) -> str:
    """Signed integers of so many bytes in the order of elements whose bits are given; nan last."""
    item = itemsize(dtype)
    bits = 8 * item
    t, i1, top = s.vec(f"i{bits}"), s.vec("i1"), (1 << bits - 1) - 1

    def const(value: int) -> str:
        return s.const(f"i{bits}", str(value))

    if dtype in _MANTISSA:
        endless = top - (1 << _MANTISSA[dtype]) + 1
        magnitude = s.new(f"and {t} {value}, {const(top)}")
        sign = s.new(f"ashr {t} {value}, {const(bits - 1)}")
        value = s.new(f"xor {t} {value}, {s.new(f'and {t} {sign}, {const(top)}')}")
        missing = s.new(f"icmp ugt {t} {magnitude}, {const(endless)}")
        value = s.new(f"select {i1} {missing}, {t} {const(top)}, {t} {value}")
        if zeros_equal:
            zero = s.new(f"icmp eq {t} {magnitude}, zeroinitializer")
            value = s.new(f"select {i1} {zero}, {t} zeroinitializer, {t} {value}")
    elif dtype[0] == "u" and item == size:
        value = s.new(f"xor {t} {value}, {const(-top - 1)}")
    if item == size:
        return value
    how = "zext" if dtype[0] in "bu" else "sext"
    return s.new(f"{how} {t} {value} to {s.vec(f'i{8 * size}')}")


def bits_of(s: Script, dtype: str, key: str) -> str:
    """The bits of floats whose key of equal size is given; zeros were two."""
    bits = 8 * itemsize(dtype)
    t = s.vec(f"i{bits}")
    sign = s.new(f"ashr {t} {key}, {s.const(f'i{bits}', str(bits - 1))}")
    top = s.const(f"i{bits}", str((1 << bits - 1) - 1))
    return s.new(f"xor {t} {key}, {s.new(f'and {t} {sign}, {top}')}")


@structure
class Order:
    """Rows reordered by their first keys. Words: n, rows of a unit, rows."""

    dtypes: tuple[str, ...]
    keys: int

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        size = max([4, *[itemsize(d) for d in self.dtypes[: self.keys]]])
        s = Script(module, max(module.width // size, 2))
        real = [s.address() if d != PLACES else None for d in self.dtypes]
        outs = [s.address() for _ in self.dtypes]
        n, each, rows = s.words(3)
        keys = [room(s, MOST, size) for _ in range(self.keys)]
        ranks, places = room(s, MOST, size), room(s, MOST, 4)

        def row(r: Int) -> None:
            for x, dtype, to in zip(real, self.dtypes, keys, strict=False):
                assert x is not None
                encode(s, dtype, x + r * n * itemsize(dtype), to, n, size)
            rank(s, keys, ranks, n, size)
            by_rank(s, ranks, places, n, size)
            for x, dtype, out in zip(real, self.dtypes, outs, strict=True):
                if x is None:
                    s.copy_bytes(out + r * n * 4, places, n * 4)
                else:
                    by = r * n * itemsize(dtype)
                    take(s, dtype, x + by, places, out + by, n)

        def unit(u: Int) -> None:
            first = u * each
            s.each(first, (first + each).least(rows), row)

        s.units(unit)
        s.finish(name)


def room(s: Script, most: int, item: int) -> Place:
    """Memory on the stack for so many elements and the rest of a vector."""
    return Place(s, s.new(f"alloca [{(most + s.lanes) * item} x i8], align 64"))


def encode(
    s: Script, dtype: str, x: Place, to: Place, n: Int, size: int, descending: bool = False
) -> None:
    """Integers of so many bytes, whose order is that of the elements.

    If it is not `descending`, -0 equals 0.
    """
    item, key = itemsize(dtype), f"i{8 * size}"

    def some(i: Int) -> None:
        value = read_vector(s, f"i{item}", x + i * item, lanes_before(s, n - i))
        value = key_of(s, dtype, value, size, not descending)
        if descending:
            value = s.new(f"xor {s.vec(key)} {value}, {s.const(key, '-1')}")
        write_vector(s, f"i{size}", value, to + i * size)

    s.each(0, n, some, s.lanes)


def rank(s: Script, keys: Sequence[Place], out: Place, n: Int, size: int) -> None:
    """How many of n elements come before each, by their keys, and of equal ones by their places."""
    i = f"i{8 * size}"
    t, i1 = s.vec(i), s.vec("i1")
    lanes = s.iota(i)

    def some(first: Int) -> None:
        mine = [read_vector(s, f"i{size}", key + first * size) for key in keys]
        stop = (first + s.lanes).least(n)

        def counted(begin: Int | int, end: Int, before: str, how: str) -> str:
            """With those from `begin` to `end`; what is equal comes before, or not, or in turn."""

            def turn(at: str, now: list[str]) -> list[str]:
                j = Int(s, at)
                other = [s.splat(i, s.read(i, key + j * size)) for key in keys]
                less = ""
                if how == "turn":
                    lane = (j - first).name
                    here = s.splat(i, lane if size == 8 else s.new(f"trunc i64 {lane} to {i}"))
                    less = s.new(f"icmp slt {t} {here}, {lanes}")
                for a, b in reversed(list(zip(other, mine, strict=True))):
                    test = "sle" if how == "before" and not less else "slt"
                    more = s.new(f"icmp {test} {t} {a}, {b}")
                    if less:
                        level = s.new(f"icmp eq {t} {a}, {b}")
                        more = s.new(f"or {i1} {more}, {s.new(f'and {i1} {level}, {less}')}")
                    less = more
                return [s.new(f"sub {t} {now[0]}, {s.new(f'sext {i1} {less} to {t}')}")]

            begins = begin.name if isinstance(begin, Int) else str(begin)
            return s.loop(begins, end.name, "1", [(t, before)], turn)[0]

        total = counted(0, first, "zeroinitializer", "before")
        total = counted(first, stop, total, "turn")
        total = counted(stop, n, total, "after")
        write_vector(s, f"i{size}", total, out + first * size)

    s.each(0, n, some, s.lanes)


def by_rank(
    s: Script, ranks: Place, places: Place, n: Int, size: int, given: Place | None = None
) -> None:
    """The places of elements in their order, from the ranks; of those `given`, if any are."""

    def place(i: Int) -> None:
        to = places + s.integer(f"i{size}", ranks + i * size) * 4
        here = s.read("i32", given + i * 4) if given else s.new(f"trunc i64 {i.name} to i32")
        s.write("i32", here, to)

    s.each(0, n, place)


def take(s: Script, dtype: str, x: Place, places: Place, out: Place, count: Int) -> None:
    """The elements at places, which are int32."""
    item = itemsize(dtype)
    kept = MEMORY_INT[str(item)]

    def one(r: Int) -> None:
        at = s.integer("i4", places + r * 4)
        s.write(kept, s.read(kept, x + at * item), out + r * item)

    s.each(0, count, one)
