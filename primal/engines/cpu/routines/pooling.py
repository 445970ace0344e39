"""Windows: sums and extrema over them, and what goes back to the element that won.

Small windows are arithmetic of slices, which fuses. Otherwise vectors lie along the last dimension:
over neighbours where windows do not span it, as with channels last; over neighbouring windows where
they do. Padding is never read: windows are cut to what lies inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from primal.base import monoids
from primal.base.native import FLOAT32
from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, Module, itemsize
from primal.engines.cpu.graph import NAMES, Value, is_narrow, row_major, size_of
from primal.engines.cpu.lanes import COMBINE, compare, constant, emit, select
from primal.engines.cpu.monoids import identity
from primal.engines.cpu.plan.around import made_again
from primal.engines.cpu.plan.commuting import made_by_pad
from primal.engines.cpu.routines.moves import held, name_of
from primal.engines.cpu.script import (
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    suffix,
    write_vector,
)
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

SLICES = 16
"""Elements of a window up to which it is arithmetic of slices."""
Dim = tuple[int, int, int, int, int, int]
"""Size of the operand, size of the result, window, stride, dilation, padding before."""


def _dims(shape: Sequence[int], out: Sequence[int], window: dict[str, Any]) -> list[Dim]:
    """The dimensions; neighbours that no window spans are one."""
    dims: list[Dim] = []
    for n, m, w, s, d, (lo, hi), base in zip(
        shape, out, window["window_dimensions"], window["window_strides"],
        window["window_dilation"], window["padding"], window["base_dilation"], strict=True,
    ):  # fmt: skip
        if base != 1:
            raise Unsupported("windows over dilated arrays")
        plain = w == 1 and s == 1 and lo == 0 and hi == 0
        if plain and n == 1:
            continue
        if plain and dims and dims[-1][2:] == (1, 1, 1, 0):
            dims[-1] = (dims[-1][0] * n, dims[-1][1] * n, 1, 1, 1, 0)
        else:
            dims.append((n, m, w, s, 1 if plain else d, lo))
    return dims or [(1, 1, 1, 1, 1, 0)]


def _is_along(dim: Dim) -> bool:
    """Whether windows span a dimension, or some lie behind its end, where there is nothing."""
    return dim[2:] != (1, 1, 1, 0) or dim[1] > dim[0]


def _words(dims: Sequence[Dim], item: int) -> list[int]:
    steps = [s * item for s in row_major([d[0] for d in dims])]
    return [w for d, s in zip(dims, steps, strict=True) for w in (*d, s)]


def _spans(s: Script, dim: Sequence[Int], at: Int) -> tuple[Int, Int, Int]:
    """The operand's index of the window's first element, and the range of k that lies inside."""
    n, _, window, stride, dilation, low, _ = dim
    base = at * stride - low
    first = ((-base).most(0) + dilation - 1) // dilation
    stop = (((n - base).most(0) + dilation - 1) // dilation).least(window)
    return base, first, stop


@structure
class Windows:
    """out[o] = the monoid over x[o·stride + k·dilation - low] for k in the window.

    `along`: windows span the last dimension, or leave it. Units are rows of the result.
    Words: per dimension those of `Dim` and bytes between neighbours in x.
    """

    dtype: str
    monoid: str
    rank: int
    along: bool

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        s = Script(module, max(module.width // max(item, 4), 2))
        x, out = s.address(), s.address()
        dims = [s.words(7) for _ in range(self.rank)]
        last = dims[-1]
        t = s.vec(SCALAR[self.dtype])
        none = constant(s, self.dtype, identity(self.monoid, self.dtype))

        def unit(u: Int) -> None:
            index = s.split(u, [d[1] for d in dims[:-1]])
            spans = [_spans(s, d, i) for d, i in zip(dims[:-1], index, strict=True)]
            to = out + u * (last[1] * item)

            def vector(i: Int) -> None:
                mask = lanes_before(s, last[1] - i)

                def nest(d: int, place: Place, total: str) -> str:
                    if d == self.rank - 1:
                        return self._last(s, place, i, mask, last, total, none)
                    base, first, stop = spans[d]
                    dim = dims[d]

                    def turn(k: str, now: list[str]) -> list[str]:
                        there = (base + Int(s, k) * dim[4]) * dim[6]
                        return [nest(d + 1, place + there, now[0])]

                    return s.loop(first.name, stop.name, "1", [(t, total)], turn)[0]

                write_vector(s, self.dtype, nest(0, x, none), to + i * item, mask)

            s.each(0, last[1], vector, s.lanes)

        s.units(unit)
        s.finish(name)

    def _last(
        self, s: Script, place: Place, i: Int, mask: str, dim: Sequence[Int], total: str, none: str
    ) -> str:
        item = itemsize(self.dtype)
        if not self.along:
            value = read_vector(s, self.dtype, place + i * item, mask)
            return self._combined(s, total, value)
        n, _, window, stride, dilation, low, _ = dim
        t, wide, i1 = s.vec(SCALAR[self.dtype]), s.vec("i64"), s.vec("i1")
        numbers = s.new(f"add {wide} {s.splat('i64', i.name)}, {s.iota('i64')}")
        starts = s.new(f"mul {wide} {numbers}, {s.splat('i64', stride.name)}")
        starts = s.new(f"sub {wide} {starts}, {s.splat('i64', low.name)}")
        limit = s.splat("i64", n.name)

        def turn(k: str, now: list[str]) -> list[str]:
            shift = s.splat("i64", (Int(s, k) * dilation).name)
            at = s.new(f"add {wide} {starts}, {shift}")
            # Unsigned, so that what lies before is far behind.
            inside = s.new(f"icmp ult {wide} {at}, {limit}")
            inside = s.new(f"and {i1} {inside}, {mask}")
            value = read_scattered(s, self.dtype, place, at, inside)
            value = s.new(f"select {i1} {inside}, {t} {value}, {t} {none}")
            return [self._combined(s, now[0], value)]

        return s.loop("0", window.name, "1", [(t, total)], turn)[0]

    def _combined(self, s: Script, total: str, value: str) -> str:
        return emit(s, COMBINE[self.monoid], [self.dtype] * 2, self.dtype, [total, value])


def read_scattered(s: Script, dtype: str, place: Place, at: str, mask: str) -> str:
    """Elements at places of their own, in the lanes of the mask."""
    kept = SCALAR[dtype]
    ps = s.new(f"getelementptr {kept}, ptr {place.name}, {s.vec('i64')} {at}")
    name = f"llvm.masked.gather.v{s.lanes}{suffix(kept)}.v{s.lanes}p0"
    return s.call(
        name, s.vec(kept), (s.vec("ptr"), ps), ("i32", "1"), (s.vec("i1"), mask),
        (s.vec(kept), "zeroinitializer"),
    )  # fmt: skip


def reduce_window(
    k: Any, monoid: str, x: Value, shape: tuple[int, ...], window: dict[str, Any]
) -> Value:
    """The monoid over every window; `shape` is the result's."""
    few = size_of(window["window_dimensions"]) <= SLICES
    # Sums are rounded once; extrema of slices round nothing, and need no copy of float32.
    if is_narrow(x.dtype) and not (few and monoid != "add"):
        return k.convert(reduce_window(k, monoid, k.convert(x, FLOAT32), shape, window), x.dtype)
    dtype = NAMES.get(x.node.dtype, "")
    if dtype[:1] not in ("i", "u", "f", "h"):
        raise Unsupported(f"windows of {x.dtype}")
    if few:
        return _of_slices(k, monoid, x, shape, window)
    x = k.dense(held(k, x))
    dims = _dims(x.shape, shape, window)
    along = _is_along(dims[-1])
    each = size_of([d[2] for d in dims]) * dims[-1][1]
    (out,) = k.routine(
        Windows(dtype, monoid, len(dims), along), [x], [Aval(shape, x.dtype)],
        _words(dims, itemsize(dtype)), units=size_of([d[1] for d in dims[:-1]]),
        cost=10 + each // (2 if along else 4), name="reduce_window",
    )  # fmt: skip
    return out


def _of_slices(
    k: Any, monoid: str, x: Value, shape: tuple[int, ...], window: dict[str, Any]
) -> Value:
    """One word for all first elements of windows and all second ones, and so on."""
    none = k.literal(monoids.identity(monoid, x.dtype).item(), x.dtype)
    edges = zip(window["padding"], window["base_dilation"], strict=True)
    config = [(low, high, base - 1) for (low, high), base in edges]
    x = k.pad(x, none, config)
    each = monoid == "add" and _is_padded_by_each(k, x)
    sizes, strides = window["window_dimensions"], tuple(window["window_strides"])
    total: Value | None = None
    for at in itertools.product(*[range(n) for n in sizes]):
        start = [i * d for i, d in zip(at, window["window_dilation"], strict=True)]
        limit = [a + (m - 1) * s + 1 for a, m, s in zip(start, shape, strides, strict=True)]
        k.once = x.node if each else None
        part = k.slice(x, tuple(start), tuple(limit), strides)
        total = part if total is None else k.binary(COMBINE[monoid], total, part)
    assert total is not None
    if monoid == "add" and name_of(x)[:1] == "f" and size_of(sizes) > 1:
        # Sums begin with 0, which adding to -0 shows.
        total = k.binary("add", total, k.literal(0, x.dtype))
    return total


def _is_padded_by_each(k: Any, x: Value) -> bool:
    """Whether x is rows with zeros before and behind that who reads a part of may add to that."""
    made = made_by_pad(k, x)
    if made is None:
        return False
    whole, value, config = made
    padded = [d for d, edge in enumerate(config) if any(edge)]
    zero = value.node.word == "literal" and not any(value.node.attr)
    around = all(low >= 0 and high >= 0 == between for low, high, between in config)
    rows = zero and around and len(padded) == 1 and padded[0] < x.ndim - 1
    return rows and made_again(k, whole, config, x.shape) is not None


@structure
class Winners:
    """Adds to zeros, where the first element of each window attains its extremum, the source.

    `how`: 'ge' for the greatest. Vectors are of windows side by side; where windows span the last
    dimension (`along`) their winners may be one element, and are added one after the other. `near`:
    neighbours are windows of neighbours. A unit is a block of the operand's first dimension: it
    looks at all windows that reach into it, and adds in their order what belongs to its own
    elements, so that the result does not depend on threads.
    Words: indices of a block, then as of `Windows`.
    """

    dtype: str
    how: str
    rank: int
    along: bool
    near: bool

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        s = Script(module, max(module.width // max(item, 4), 2))
        source, x, out = s.address(), s.address(), s.address()
        block = s.word()
        dims = [s.words(7) for _ in range(self.rank)]
        last, scalar = dims[-1], SCALAR[self.dtype]
        t, wide = s.vec(scalar), s.vec("i64")
        rooms = [s.new(f"alloca {kept}") for kept in (wide, t)]
        rows = Int(s, "1")
        for d in dims[1:-1]:
            rows = rows * d[1]

        def unit(u: Int) -> None:
            n, m, window, stride, dilation, low, step = dims[0]
            begin = u * block
            end = (begin + block).least(n)
            self._clear(s, out + begin * step, (end - begin) * step)
            reach = (window - 1) * dilation
            first = ((begin + low - reach).most(0) + stride - 1) // stride
            stop = (((end + low).most(0) + stride - 1) // stride).least(m)
            own = begin * step, end * step

            def outer(o: Int) -> None:
                s.each(0, rows, lambda r: row(o, r, Int(s, "0"), last[1], own))

            if self.rank > 1:
                s.each(first, stop, outer)
            else:
                row(Int(s, "0"), Int(s, "0"), first, stop, own)

        def row(o: Int, r: Int, first: Int, stop: Int, own: tuple[Int, Int]) -> None:
            index = [o, *s.split(r, [d[1] for d in dims[1:-1]])][: self.rank - 1]
            spans = [_spans(s, d, i) for d, i in zip(dims[:-1], index, strict=True)]
            given = source + (o * rows + r) * last[1] * item

            def vector(i: Int) -> None:
                mask = lanes_before(s, stop - i)

                def nest(d: int, at: Int, now: list[str]) -> list[str]:
                    if d == self.rank - 1:
                        return self._last(s, x, at, i, mask, last, now)
                    base, begin, end = spans[d]
                    dim = dims[d]

                    def turn(k: str, now: list[str]) -> list[str]:
                        there = (base + Int(s, k) * dim[4]) * dim[6]
                        return nest(d + 1, at + there, now)

                    carried = [(t, now[0]), (wide, now[1])]
                    return s.loop(begin.name, end.name, "1", carried, turn)

                nowhere = s.splat("i64", "-1")
                _, found = nest(0, Int(s, "0"), ["zeroinitializer", nowhere])
                value = read_vector(s, self.dtype, given + i * item, mask)
                if self.along:
                    count = (stop - i).least(s.lanes)
                    self._add_in_turn(s, out, found, value, count, own, rooms)
                else:
                    self._add(s, out, found, value, mask, own)

            s.each(first, stop, vector, s.lanes)

        s.units(unit)
        s.finish(name)

    def _clear(self, s: Script, place: Place, size: Int) -> None:
        s.module.declarations["llvm.memset.p0.i64"] = (
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        )
        s.do(f"call void @llvm.memset.p0.i64(ptr {place.name}, i8 0, i64 {size.name}, i1 false)")

    def _last(
        self, s: Script, x: Place, at: Int, i: Int, mask: str, dim: Sequence[Int], now: list[str]
    ) -> list[str]:
        """The better of what was found and a row, `at` bytes behind x, of the windows from i on."""
        item, i1 = itemsize(self.dtype), s.vec("i1")
        n, _, window, stride, dilation, low, _ = dim
        t, wide = s.vec(SCALAR[self.dtype]), s.vec("i64")
        numbers = s.new(f"add {wide} {s.splat('i64', i.name)}, {s.iota('i64')}")
        if not self.along:
            places = s.new(f"mul {wide} {numbers}, {s.splat('i64', str(item))}")
            places = s.new(f"add {wide} {places}, {s.splat('i64', at.name)}")
            value = read_vector(s, self.dtype, x + at + i * item, mask)
            return self._seen(s, value, places, mask, now)
        starts = s.new(f"mul {wide} {numbers}, {s.splat('i64', stride.name)}")
        starts = s.new(f"sub {wide} {starts}, {s.splat('i64', low.name)}")
        limit = s.splat("i64", n.name)

        def turn(k: str, now: list[str]) -> list[str]:
            shift = Int(s, k) * dilation
            places = s.new(f"add {wide} {starts}, {s.splat('i64', shift.name)}")
            # Unsigned, so that what lies before is far behind.
            inside = s.new(f"icmp ult {wide} {places}, {limit}")
            inside = s.new(f"and {i1} {inside}, {mask}")
            if self.near:
                value = read_vector(s, self.dtype, x + at + (i - low + shift) * item, inside)
            else:
                value = read_scattered(s, self.dtype, x + at, places, inside)
            places = s.new(f"mul {wide} {places}, {s.splat('i64', str(item))}")
            places = s.new(f"add {wide} {places}, {s.splat('i64', at.name)}")
            return self._seen(s, value, places, inside, now)

        return s.loop("0", window.name, "1", [(t, now[0]), (wide, now[1])], turn)

    def _seen(
        self, s: Script, value: str, places: str, mask: str, now: list[str]
    ) -> list[str]:
        """The better of what was found and values in the lanes of the mask; a nan stays."""
        wide, i1 = s.vec("i64"), s.vec("i1")
        how = {"ge": "gt", "le": "lt"}[self.how]
        better = compare(s, how, self.dtype, value, now[0])
        if self.dtype[0] == "f":
            t = s.vec(SCALAR[self.dtype])
            missing = s.new(f"fcmp uno {t} {value}, {value}")
            known = s.new(f"fcmp ord {t} {now[0]}, {now[0]}")
            better = s.new(f"and {i1} {s.new(f'or {i1} {better}, {missing}')}, {known}")
        nothing = s.new(f"icmp slt {wide} {now[1]}, zeroinitializer")
        better = s.new(f"or {i1} {better}, {nothing}")
        better = s.new(f"and {i1} {better}, {mask}")
        return [
            select(s, self.dtype, better, value, now[0]),
            s.new(f"select {i1} {better}, {wide} {places}, {wide} {now[1]}"),
        ]

    def _add_in_turn(
        self, s: Script, out: Place, found: str, given: str, count: Int, own: tuple[Int, Int],
        rooms: Sequence[str],
    ) -> None:
        """One lane after the other, of the first `count`; where nothing was found is before all."""
        item, whole = itemsize(self.dtype), s.lanes
        s.do(f"store {s.vec('i64')} {found}, ptr {rooms[0]}")
        s.do(f"store {s.vec(SCALAR[self.dtype])} {given}, ptr {rooms[1]}")
        begin, end = own

        def one(lane: Int) -> None:
            at = s.integer("i8", Place(s, rooms[0]) + lane * 8)

            def add() -> None:
                old = read_vector(s, self.dtype, out + at)
                new = read_vector(s, self.dtype, Place(s, rooms[1]) + lane * item)
                new = emit(s, "add", [self.dtype] * 2, self.dtype, [old, new])
                write_vector(s, self.dtype, new, out + at)

            s.when((at - begin).test("ult", end - begin), add)

        s.lanes = 1
        s.each(0, count, one)
        s.lanes = whole

    def _add(
        self, s: Script, out: Place, found: str, given: str, mask: str, own: tuple[Int, Int]
    ) -> None:
        """All lanes, which are at elements of their own."""
        kept = SCALAR[self.dtype]
        t, wide, i1 = s.vec(kept), s.vec("i64"), s.vec("i1")
        begin, end = own
        past = s.new(f"sub {wide} {found}, {s.splat('i64', begin.name)}")
        there = s.new(f"icmp ult {wide} {past}, {s.splat('i64', (end - begin).name)}")
        there = s.new(f"and {i1} {there}, {mask}")
        ps = s.new(f"getelementptr i8, ptr {out.name}, {wide} {found}")
        rest = [("i32", "1"), (i1, there)]
        full = f"v{s.lanes}{suffix(kept)}.v{s.lanes}p0"
        old = s.call(
            f"llvm.masked.gather.{full}", t, (s.vec("ptr"), ps), *rest, (t, "zeroinitializer")
        )
        new = emit(s, "add", [self.dtype] * 2, self.dtype, [old, given])
        s.call_void(f"llvm.masked.scatter.{full}", (t, new), (s.vec("ptr"), ps), *rest)


BLOCKS, TWICE = 16, 8
"""Units of a dimension, and how many times what two of them look at a unit has at least."""


def select_and_scatter_add(
    k: Any, source: Value, x: Value, how: str, window: dict[str, Any]
) -> Value:
    """Zeros of x's shape to which the source of each window is added, where its extremum is."""
    if is_narrow(x.dtype):
        source, wide = k.convert(source, FLOAT32), k.convert(x, FLOAT32)
        return k.convert(select_and_scatter_add(k, source, wide, how, window), x.dtype)
    source, x = k.dense(held(k, source)), k.dense(held(k, x))
    dtype = name_of(x)
    if dtype[0] not in "iuf":
        raise Unsupported(f"windows of {x.dtype}")
    dims = _dims(x.shape, source.shape, window)
    along = _is_along(dims[-1])
    n, _, size, _, dilation, _ = dims[0]
    block = max(-(-n // BLOCKS), TWICE * (size - 1) * dilation)
    units = -(-n // block)
    each = size_of(source.shape) // units
    taps = size_of([d[2] for d in dims])
    (out,) = k.routine(
        Winners(dtype, how, len(dims), along, dims[-1][3] == 1), [source, x], [x.aval],
        [block, *_words(dims, itemsize(dtype))], units=units,
        cost=10 + each * (4 + taps) // 3, name="select_and_scatter_add",
    )  # fmt: skip
    return out
