"""Along one axis: cumulative sums and their like, and the places of extrema, as routines.

An array is seen as [outer, n, inner]. With inner = 1 vectors lie along the axis, otherwise across.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import LINE, SCALAR, Module, itemsize
from primal.engines.cpu.functions.fading import Times, fading
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.lanes import NARROW, across, compare, constant, emit, select
from primal.engines.cpu.monoids import accumulator, identity
from primal.engines.cpu.routines.moves import BLOCK, element_at, held, name_of
from primal.engines.cpu.routines.orders import bits_of, key_of
from primal.engines.cpu.routines.pieces import CLOSE
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

MONOID = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}
WIDEST = 1 << 31
"""Places are counted in 32 bits."""


def sizes_along(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


@structure
class Scan:
    """out[k] = x[0] ∘ … ∘ x[k] along an axis, or from the end.

    Words: n; bytes of a row (n·inner elements); across: inner, elements of it per unit, units per
    row of it. Across, units are blocks of columns; along, rows.
    """

    dtype: str
    word: str
    reverse: bool
    across: bool

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        wide = self.wide
        in_turn = not self.across and self._fades
        s = Script(module, 1 if in_turn else max(module.width // itemsize(wide), 2))
        x, out = s.address(), s.address()
        n, row = s.words(2)
        inner, chunk, chunks = s.words(3)
        if self.across:
            self._columns(s, x, out, n, row, inner, chunk, chunks, item)
        elif in_turn:
            s.units(lambda u: self._in_turn(s, x + u * row, out + u * row, n, item))
        else:
            s.units(lambda u: self._row(s, x + u * row, out + u * row, n, item))
        s.finish(name)

    @property
    def wide(self) -> str:
        """The dtype of the running result.

        Extrema of floats are those of whole numbers in their order, which knows of -0 and NaN: one
        instruction each, where floats take three (1000 rows of 1000: 0.39 ms, not 0.67).
        """
        wide = accumulator(MONOID.get(self.word, self.word), self.dtype)
        return f"i{wide[1:]}" if self._ranked else wide

    @property
    def _ranked(self) -> bool:
        return self.word in ("max", "min") and self.dtype[0] == "f"

    @property
    def _fades(self) -> bool:
        return self.word == "mul" and self.dtype[0] == "f"

    def first(self, s: Script) -> str:
        """The value that changes nothing."""
        word = "max" if self._ranked else self.word
        value = -math.inf if word == "logaddexp" else identity(MONOID[word], self.wide)
        return constant(s, self.wide, value)

    def combined(self, s: Script, a: str, b: str) -> str:
        wide = self.wide
        if self._ranked:
            return emit(s, "max", [wide, wide], wide, [a, b])
        if self.word != "logaddexp":
            return emit(s, self.word, [wide, wide], wide, [a, b])
        # Equal infinities have no gap, and are their own sum.
        gap = emit(s, "sub", [wide, wide], wide, [a, b])
        size = emit(s, "abs", [wide], wide, [gap])
        low = emit(s, "exp", [wide], wide, [emit(s, "neg", [wide], wide, [size])])
        tail = emit(s, "log1p", [wide], wide, [low])
        top = emit(s, "max", [wide, wide], wide, [a, b])
        spread = emit(s, "add", [wide, wide], wide, [top, tail])
        total = emit(s, "add", [wide, wide], wide, [a, b])
        none = compare(s, "ne", wide, gap, gap)
        return select(s, wide, none, total, spread)

    def _read(self, s: Script, place: Place, mask: str) -> str:
        if self._ranked:
            bits = self._turned(s, read_vector(s, self.wide, place, mask))
            return key_of(s, self.dtype, bits, itemsize(self.dtype), False)
        value = read_vector(s, self.dtype, place, mask)
        if self.wide != self.dtype:
            value = emit(s, "convert", [self.dtype], self.wide, [value])
        return value

    def _write(self, s: Script, value: str, place: Place, mask: str) -> None:
        if self._ranked:
            write_vector(s, self.wide, self._turned(s, bits_of(s, self.dtype, value)), place, mask)
            return
        if self.wide != self.dtype:
            value = emit(s, "convert", [self.wide], self.dtype, [value])
        write_vector(s, self.dtype, value, place, mask)

    def _turned(self, s: Script, bits: str) -> str:
        """Numbers of the other sign, where the least is asked for."""
        if self.word == "max":
            return bits
        top = constant(s, self.wide, -1 << 8 * itemsize(self.dtype) - 1)
        return s.new(f"xor {s.vec(SCALAR[self.wide])} {bits}, {top}")

    def _in_turn(self, s: Script, x: Place, out: Place, n: Int, item: int) -> None:
        """One after another, as the order decides where products overflow on the way."""

        def turn(i: str, now: list[str], times: Times) -> list[str]:
            here = Int(s, i)
            at = (n - here - 1 if self.reverse else here) * item
            made = times(now, [self._read(s, x + at, "")])
            self._write(s, made[0], out + at, "")
            return made

        fading(s, self.wide, "0", n.name, [self.first(s)], turn, handed=True)

    def _row(self, s: Script, x: Place, out: Place, n: Int, item: int) -> None:
        t = s.vec(SCALAR[self.wide])
        first = self.first(s)
        lanes = s.lanes

        def turn(i: str, now: list[str]) -> list[str]:
            here = Int(s, i)
            mask = lanes_before(s, n - here)
            at = here * item
            if self.reverse:
                at = (n - here - lanes) * item
                mask = _flipped(s, "i1", mask)
            value = self._read(s, x + at, mask)
            if self.reverse:
                value = _flipped(s, SCALAR[self.wide], value)
            reach = 1
            while reach < lanes:
                # Lane k takes lane k - reach, or what changes nothing.
                chosen = ", ".join(
                    [f"i32 {k - reach if k >= reach else lanes + k}" for k in range(lanes)]
                )
                moved = s.new(f"shufflevector {t} {value}, {t} {first}, <{lanes} x i32> <{chosen}>")
                value = self.combined(s, moved, value)
                reach *= 2
            value = self.combined(s, now[0], value)
            last = ", ".join([f"i32 {lanes - 1}"] * lanes)
            carry = s.new(f"shufflevector {t} {value}, {t} poison, <{lanes} x i32> <{last}>")
            if self.reverse:
                value = _flipped(s, SCALAR[self.wide], value)
            self._write(s, value, out + at, mask)
            return [carry]

        s.loop("0", n.name, str(lanes), [(t, first)], turn)

    def _columns(
        self,
        s: Script,
        x: Place,
        out: Place,
        n: Int,
        row: Int,
        inner: Int,
        chunk: Int,
        chunks: Int,
        item: int,
    ) -> None:
        t = s.vec(SCALAR[self.wide])
        pitch = inner * item

        def unit(_: Int, outer: Int, part: Int) -> None:
            base, start = outer * row, part * chunk
            stop = (start + chunk).least(inner)

            def column(i: Int) -> None:
                mask = lanes_before(s, stop - i)
                at = base + i * item

                def turn(j: str, now: list[str], times: Times | None = None) -> list[str]:
                    k = n - Int(s, j) - 1 if self.reverse else Int(s, j)
                    here = at + k * pitch
                    value = self._read(s, x + here, mask)
                    if times:
                        (value,) = times(now, [value])
                    else:
                        value = self.combined(s, now[0], value)
                    self._write(s, value, out + here, mask)
                    return [value]

                if self._fades:
                    fading(s, self.wide, "0", n.name, [self.first(s)], turn, handed=True)
                else:
                    s.loop("0", n.name, "1", [(t, self.first(s))], turn)

            s.each(start, stop, column, s.lanes)

        s.units(unit, chunks)


def _flipped(s: Script, scalar: str, value: str) -> str:
    """The lanes in the opposite order."""
    t, lanes = s.vec(scalar), s.lanes
    chosen = ", ".join([f"i32 {lanes - 1 - k}" for k in range(lanes)])
    return s.new(f"shufflevector {t} {value}, {t} poison, <{lanes} x i32> <{chosen}>")


def blocks(inner: int, n: int, item: int) -> tuple[int, int]:
    """Columns per unit, units: whole cache lines."""
    chunk = max(64, BLOCK // max(n * item, 1) // 64 * 64)
    return chunk, -(-inner // chunk)


def has_few(x: Value, axis: int) -> bool:
    """Whether what goes along an axis is a few words for all rows at once."""
    return x.shape[axis] <= size_of(x.shape[axis:]) <= CLOSE < x.size


def is_thin(inner: int, dtype: str) -> bool:
    """Whether rows are shorter than the vector that goes down them: nothing is made in place then.

    A load that meets the store of some lanes just before it waits until the cache has these (sums
    down 333,333 x 3 float32 0.4 ms, in place 3.5 and more).
    """
    return 1 < inner < LINE // itemsize(dtype)


def cumulative(k: Any, x: Value, word: str, axis: int, reverse: bool) -> Value:
    """Running results of a word of two operands along an axis."""
    if has_few(x, axis):
        return cumulative_few(k, x, word, axis, reverse)
    x = k.dense(held(k, x))
    dtype = name_of(x)
    if dtype[0] not in "iuf" or dtype in NARROW or (word == "logaddexp" and dtype[0] != "f"):
        raise Unsupported(f"cumulative {word} of {x.dtype}")
    outer, n, inner = sizes_along(x.shape, axis)
    item = itemsize(dtype)
    chunk, chunks = blocks(inner, n, item)
    spec = Scan(dtype, word, reverse, inner > 1)
    units = outer * chunks if inner > 1 else outer
    (out,) = k.routine(
        spec, [x], [x.aval], [n, n * inner * item, inner, chunk, chunks], units=units,
        cost=n * (min(inner, chunk) if inner > 1 else 1),
        reuses=() if is_thin(inner, spec.wide) else ((0, 0),), name=f"cum{word}",
    )  # fmt: skip
    return out


@structure
class Extremum:
    """The place of the greatest (`how` 'gt') or least element along an axis; the first nan is one.

    Words as of `Scan`. Along: pieces of long rows are searched apart, by whoever has time, and a
    second run of the same code finds the best of their places; a word says of how many.
    """

    dtype: str
    out: str
    how: str
    across: bool

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        s = Script(module, max(min(module.width // item, 64), 4))
        size = itemsize(self.out)
        if not self.across:
            self._along(s, name, item, size)
            return
        x, out = s.address(), s.address()
        n, row = s.words(2)
        inner, chunk, chunks = s.words(3)
        it = s.vec("i32")

        def unit(_: Int, outer: Int, part: Int) -> None:
            base, results, start = outer * row, outer * inner, part * chunk
            stop = (start + chunk).least(inner)

            def column(i: Int) -> None:
                mask = lanes_before(s, stop - i)
                at = base + i * item
                best = read_vector(s, self.dtype, x + at, mask)

                def turn(j: str, now: list[str]) -> list[str]:
                    here = Int(s, j)
                    value = read_vector(s, self.dtype, x + (at + here * (inner * item)), mask)
                    better = self._better(s, value, now[0])
                    count = s.splat("i32", s.new(f"trunc i64 {j} to i32"))
                    return [
                        select(s, self.dtype, better, value, now[0]),
                        s.new(f"select {s.vec('i1')} {better}, {it} {count}, {it} {now[1]}"),
                    ]

                t = s.vec(SCALAR[self.dtype])
                _, places = s.loop("1", n.name, "1", [(t, best), (it, "zeroinitializer")], turn)
                found = emit(s, "convert", ["i4"], self.out, [places])
                write_vector(s, self.out, found, out + (results + i) * size, mask)

            s.each(start, stop, column, s.lanes)

        s.units(unit, chunks)
        s.finish(name)

    def _along(self, s: Script, name: str, item: int, size: int) -> None:
        """Rows, pieces of rows, or the places that those gave."""
        x, places, out = s.address(), s.address(), s.address()
        n, row = s.words(2)
        chunk, chunks, count = s.words(3)

        def put(found: str, u: Int) -> None:
            """The one lane of `found`: a result, or where a piece has its best."""

            def result() -> None:
                wide = emit(s, "convert", ["i4"], self.out, [found])
                write_vector(s, self.out, wide, out + u * size)

            s.chosen(
                chunks.test("eq", 1), result, lambda: write_vector(s, "i4", found, out + u * 4)
            )

        def unit(u: Int, outer: Int, part: Int) -> None:
            lanes, mine = s.lanes, x + outer * row

            def search() -> None:
                start = part * chunk
                found = self._row(s, mine, start, (start + chunk).least(n), item)
                s.lanes = 1
                put(found, u)
                s.lanes = lanes

            def compare() -> None:
                s.lanes = 1
                put(self._best(s, mine, places + u * count * 4, count, item), u)
                s.lanes = lanes

            s.chosen(count.test("eq", 0), search, compare)

        s.units(unit, chunks)
        s.finish(name)

    def _best(self, s: Script, x: Place, places: Place, count: Int, item: int) -> str:
        """The best of places that pieces of a row have found; of equals the first."""
        t, it = s.vec(SCALAR[self.dtype]), s.vec("i32")

        def candidate(k: Int) -> tuple[str, str]:
            at = s.integer("i4", places + k * 4)
            small = s.new(f"trunc i64 {at.name} to i32")
            place = s.new(f"bitcast i32 {small} to {it}")
            return read_vector(s, self.dtype, x + at * item), place

        def turn(k: str, now: list[str]) -> list[str]:
            value, place = candidate(Int(s, k))
            better = self._better(s, value, now[0])
            return [
                select(s, self.dtype, better, value, now[0]),
                select(s, "i4", better, place, now[1]),
            ]

        first = candidate(Int(s, "0"))
        return s.loop("1", count.name, "1", [(t, first[0]), (it, first[1])], turn)[1]

    def _better(self, s: Script, value: str, best: str) -> str:
        """Greater or less, or the first nan."""
        i1 = s.vec("i1")
        if self.dtype == "b1":
            a, b = (value, best) if self.how == "gt" else (best, value)
            other = s.new(f"xor {i1} {b}, {s.const('i1', 'true')}")
            return s.new(f"and {i1} {a}, {other}")
        if self.dtype[0] != "f":
            return compare(s, self.how, self.dtype, value, best)
        t = s.vec(SCALAR[self.dtype])
        far = s.new(f"fcmp u{self.how} {t} {value}, {best}")
        known = s.new(f"fcmp ord {t} {best}, {best}")
        return s.new(f"and {i1} {far}, {known}")

    def _row(self, s: Script, x: Place, start: Int, stop: Int, item: int) -> str:
        """The place of the best from `start` to `stop`, in a vector of one lane."""
        lanes, scalar = s.lanes, SCALAR[self.dtype]
        t, it, i1 = s.vec(scalar), s.vec("i32"), s.vec("i1")
        s.lanes = 1
        one = read_vector(s, self.dtype, x + start * item)
        one = s.new(f"extractelement <1 x {scalar}> {one}, i64 0")
        s.lanes = lanes
        first = s.splat(scalar, one)
        begin = s.splat("i32", s.new(f"trunc i64 {start.name} to i32"))

        def turn(i: str, now: list[str], whole: bool) -> list[str]:
            for k in range(len(now) // 2):
                here = Int(s, i) + k * lanes
                mask = "" if whole else lanes_before(s, stop - here)
                value = read_vector(s, self.dtype, x + here * item, mask)
                better = self._better(s, value, now[2 * k])
                if mask:
                    better = s.new(f"and {i1} {better}, {mask}")
                base = s.splat("i32", s.new(f"trunc i64 {here.name} to i32"))
                count = s.new(f"add {it} {base}, {s.iota('i32')}")
                now[2 * k : 2 * k + 2] = [
                    select(s, self.dtype, better, value, now[2 * k]),
                    s.new(f"select {i1} {better}, {it} {count}, {it} {now[2 * k + 1]}"),
                ]
            return now

        # A vector waits for the one before it in its chain: 7 to 10 cycles.
        step = CHAINS * lanes
        whole = start + (stop - start) // step * step
        chains = s.loop(
            start.name, whole.name, str(step), [(t, first), (it, begin)] * CHAINS,
            lambda i, now: turn(i, now, True),
        )  # fmt: skip
        chains[:2] = s.loop(
            whole.name, stop.name, str(lanes), list(zip((t, it), chains[:2], strict=True)),
            lambda i, now: turn(i, now, False),
        )  # fmt: skip
        # Short rows have but one chain.
        return s.either(
            s.new(f"icmp eq i64 {whole.name}, {start.name}"), ["<1 x i32>"],
            lambda: [self._first_of(s, chains[:1], chains[1:2])],
            lambda: [self._first_of(s, chains[::2], chains[1::2])],
        )[0]  # fmt: skip

    def _first_of(self, s: Script, values: list[str], places: list[str]) -> str:
        """The first place, in a vector of one lane, that has the best of all lanes."""
        word = {"gt": ("max", "or"), "lt": ("min", "and")}[self.how][self.dtype == "b1"]
        best = functools.reduce(
            lambda x, y: emit(s, word, [self.dtype] * 2, self.dtype, [x, y]), values
        )
        best = s.splat(SCALAR[self.dtype], across(s, MONOID.get(word, word), self.dtype, best))
        found = []
        for value, place in zip(values, places, strict=True):
            here = compare(s, "eq", self.dtype, value, best)
            if self.dtype[0] == "f":
                # A nan is the best, if there is one.
                nan = compare(s, "ne", self.dtype, value, value)
                here = s.new(f"or {s.vec('i1')} {here}, {nan}")
            found.append(select(s, "i4", here, place, constant(s, "i4", WIDEST - 1)))
        first = functools.reduce(lambda x, y: emit(s, "min", ["i4"] * 2, "i4", [x, y]), found)
        return s.new(f"bitcast i32 {across(s, 'minimum', 'i4', first)} to <1 x i32>")


CHAINS = 4
"""Vectors of a row of which the best are kept apart."""
LONG = 1 << 15
"""Elements of a row above which pieces of it are searched apart, by whoever has time."""


FEW, SOME = 12, 64
"""Places among which the words of kernels find the best, and elements from which that pays."""


def place_of(k: Any, x: Value, how: str, axis: int, dtype: Any) -> Value:
    """argmax ('gt') or argmin ('lt')."""
    if x.shape[axis] <= FEW and size_of(x.shape) >= SOME:
        return _place_of_few(k, x, how, axis, dtype)
    x = k.dense(held(k, x))
    outer, n, inner = sizes_along(x.shape, axis)
    name = name_of(x)
    if n >= WIDEST or name[0] not in "biuf" or name in NARROW:
        raise Unsupported("places beyond 32 bits")
    item = itemsize(name)
    chunk, chunks = blocks(inner, n, item)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    out_name = {"i": "i", "u": "u"}[dtype.kind] + str(dtype.itemsize)
    spec = Extremum(name, out_name, how, inner > 1)
    words = [n, n * inner * item]
    if inner > 1:
        units, cost = outer * chunks, n * min(inner, chunk) // 8 + 5
        (out,) = k.routine(
            spec, [x], [Aval(shape, dtype)], [*words, inner, chunk, chunks], units=units,
            cost=cost, name="argmax",
        )  # fmt: skip
        return out
    pieces, found = -(-n // LONG), x
    if pieces > 1:
        (found,) = k.routine(
            spec, [x, x], [Aval((outer, pieces), np.dtype(np.int32))], [*words, LONG, pieces, 0],
            units=outer * pieces, cost=LONG // 8, name="argmax of pieces",
        )  # fmt: skip
    (out,) = k.routine(
        spec, [x, found], [Aval(shape, dtype)], [*words, n, 1, pieces if pieces > 1 else 0],
        units=outer, cost=pieces * 3 if pieces > 1 else n // 8 + 5, name="argmax",
    )  # fmt: skip
    return out


def cumulative_few(k: Any, x: Value, word: str, axis: int, reverse: bool) -> Value:
    """Step by step for all rows at once, put together in registers."""
    n = x.shape[axis]
    made: list[Value] = []
    # Sums begin with 0, so those of -0 are 0; of powers too, whose begin with exp(-inf).
    floats = x.dtype.kind not in "iu"
    last = k.literal(0, x.dtype) if word in ("add", "logaddexp") and floats else None
    for i in reversed(range(n)) if reverse else range(n):
        value = element_at(k, x, axis, i)
        if last is None:
            last = value
        elif word == "logaddexp":
            last = _logaddexp(k, last, value) if made else k.binary("add", last, value)
        else:
            last = k.binary(word, last, value)
        made.append(last)
    out: Value = k.concatenate(made[::-1] if reverse else made, axis)
    return out


def _logaddexp(k: Any, a: Value, b: Value) -> Value:
    """`Scan.combined` in words."""
    gap = k.binary("sub", a, b)
    low = k.unary("exp", k.unary("neg", k.unary("abs", gap)))
    spread = k.binary("add", k.binary("max", a, b), k.unary("log1p", low))
    out: Value = k.select_n(k.binary("ne", gap, gap), spread, k.binary("add", a, b))
    return out


def _place_of_few(k: Any, x: Value, how: str, axis: int, dtype: Any) -> Value:
    """By comparing what lies at each place with the best before it, for all rows at once."""
    best, place = element_at(k, x, axis, 0), k.literal(0, dtype)
    for i in range(1, x.shape[axis]):
        value = element_at(k, x, axis, i)
        if x.dtype.kind == "f":
            # The first NaN wins.
            more = k.unary("not", k.binary({"gt": "le", "lt": "ge"}[how], value, best))
            more = k.binary("and", more, k.binary("eq", best, best))
        else:
            more = k.binary(how, value, best)
        best = k.select_n(more, best, value)
        place = k.select_n(more, place, k.literal(i, dtype))
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    out: Value = k.reshape(place if place.shape else k.broadcast_in_dim(place, shape, ()), shape)
    return out
