"""Windows: sums and extrema over them, and what goes back to the element that won.

Small windows are arithmetic of slices, which fuses. Otherwise vectors lie along the last dimension:
over neighbours where windows do not span it, as with channels last; over neighbouring windows where
they do. Padding is never read: windows are cut to what lies inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, Module, itemsize
from primal.engines.cpu.graph import NAMES, Value, row_major, size_of
from primal.engines.cpu.lanes import COMBINE, NARROW, compare, constant, emit, select
from primal.engines.cpu.monoids import identity
from primal.engines.cpu.moves import held, name_of
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

    `along`: windows span the last dimension. Units are rows of the result.
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
    dtype = NAMES.get(x.node.dtype, "")
    if dtype[:1] not in ("i", "u", "f") or dtype in NARROW:
        raise Unsupported(f"windows of {x.dtype}")
    if size_of(window["window_dimensions"]) <= SLICES:
        return _of_slices(k, monoid, x, shape, window)
    x = k.dense(held(k, x))
    dims = _dims(x.shape, shape, window)
    along = dims[-1][2:] != (1, 1, 1, 0)
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
    none = k.literal(identity(monoid, name_of(x)), x.dtype)
    edges = zip(window["padding"], window["base_dilation"], strict=True)
    x = k.pad(x, none, [(low, high, base - 1) for (low, high), base in edges])
    sizes, strides = window["window_dimensions"], tuple(window["window_strides"])
    total: Value | None = None
    for at in itertools.product(*[range(n) for n in sizes]):
        start = [i * d for i, d in zip(at, window["window_dilation"], strict=True)]
        limit = [a + (m - 1) * s + 1 for a, m, s in zip(start, shape, strides, strict=True)]
        part = k.slice(x, tuple(start), tuple(limit), strides)
        total = part if total is None else k.binary(COMBINE[monoid], total, part)
    assert total is not None
    return total


@structure
class Winners:
    """Adds to zeros, where the first element of each window attains its extremum, the source.

    `how`: 'ge' for the greatest. One window after the other, or a vector of windows side by side
    where none spans the last dimension. The result is one unit: windows may share elements.
    Words: elements of the result, then as of `Windows`.
    """

    dtype: str
    how: str
    rank: int
    along: bool

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        s = Script(module, 1 if self.along else max(module.width // max(item, 4), 2))
        source, x, out = s.address(), s.address(), s.address()
        total = s.word()
        dims = [s.words(7) for _ in range(self.rank)]
        last, scalar = dims[-1], SCALAR[self.dtype]
        t, wide = s.vec(scalar), s.vec("i64")

        def unit(_: Int) -> None:
            self._clear(s, out, total * item)
            rows = Int(s, "1")
            for d in dims[:-1]:
                rows = rows * d[1]
            s.each(0, rows, row)

        def row(u: Int) -> None:
            index = s.split(u, [d[1] for d in dims[:-1]])
            spans = [_spans(s, d, i) for d, i in zip(dims[:-1], index, strict=True)]

            def vector(i: Int) -> None:
                mask = "" if self.along else lanes_before(s, last[1] - i)
                ends = [*spans, _spans(s, last, i)] if self.along else spans

                def nest(d: int, at: Int, now: list[str]) -> list[str]:
                    if d == len(ends):
                        here = at if self.along else at + i * item
                        return self._seen(s, x, here, mask, now)
                    base, first, stop = ends[d]
                    dim = dims[d]

                    def turn(k: str, now: list[str]) -> list[str]:
                        there = (base + Int(s, k) * dim[4]) * dim[6]
                        return nest(d + 1, at + there, now)

                    carried = [(t, now[0]), (wide, now[1])]
                    return s.loop(first.name, stop.name, "1", carried, turn)

                nowhere = s.splat("i64", "-1")
                _, found = nest(0, Int(s, "0"), ["zeroinitializer", nowhere])
                given = read_vector(s, self.dtype, source + (u * last[1] + i) * item, mask)
                self._add(s, out, found, given, mask)

            s.each(0, last[1], vector, s.lanes)

        s.units(unit)
        s.finish(name)

    def _clear(self, s: Script, out: Place, size: Int) -> None:
        s.module.declarations["llvm.memset.p0.i64"] = (
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        )
        s.do(f"call void @llvm.memset.p0.i64(ptr {out.name}, i8 0, i64 {size.name}, i1 false)")

    def _seen(self, s: Script, x: Place, at: Int, mask: str, now: list[str]) -> list[str]:
        """The better of what was found and the elements `at` bytes behind x; a nan stays."""
        wide, i1 = s.vec("i64"), s.vec("i1")
        value = read_vector(s, self.dtype, x + at, mask)
        how = {"ge": "gt", "le": "lt"}[self.how]
        better = compare(s, how, self.dtype, value, now[0])
        if self.dtype[0] == "f":
            t = s.vec(SCALAR[self.dtype])
            missing = s.new(f"fcmp uno {t} {value}, {value}")
            known = s.new(f"fcmp ord {t} {now[0]}, {now[0]}")
            better = s.new(f"and {i1} {s.new(f'or {i1} {better}, {missing}')}, {known}")
        nothing = s.new(f"icmp slt {wide} {now[1]}, zeroinitializer")
        better = s.new(f"or {i1} {better}, {nothing}")
        return [
            select(s, self.dtype, better, value, now[0]),
            s.new(f"select {i1} {better}, {wide} {s.splat('i64', at.name)}, {wide} {now[1]}"),
        ]

    def _add(self, s: Script, out: Place, found: str, given: str, mask: str) -> None:
        kept, item = SCALAR[self.dtype], itemsize(self.dtype)
        t, wide, i1 = s.vec(kept), s.vec("i64"), s.vec("i1")
        there = s.new(f"icmp sge {wide} {found}, zeroinitializer")
        if mask:
            there = s.new(f"and {i1} {there}, {mask}")
            steps = s.new(f"mul {wide} {s.iota('i64')}, {s.splat('i64', str(item))}")
            found = s.new(f"add {wide} {found}, {steps}")
        ps = s.new(f"getelementptr i8, ptr {out.name}, {wide} {found}")
        rest = [("i32", "1"), (i1, there)]
        full = f"v{s.lanes}{suffix(kept)}.v{s.lanes}p0"
        old = s.call(
            f"llvm.masked.gather.{full}", t, (s.vec("ptr"), ps), *rest, (t, "zeroinitializer")
        )
        new = emit(s, "add", [self.dtype] * 2, self.dtype, [old, given])
        s.call_void(f"llvm.masked.scatter.{full}", (t, new), (s.vec("ptr"), ps), *rest)


def select_and_scatter_add(
    k: Any, source: Value, x: Value, how: str, window: dict[str, Any]
) -> Value:
    """Zeros of x's shape to which the source of each window is added, where its extremum is."""
    source, x = k.dense(held(k, source)), k.dense(held(k, x))
    dtype = name_of(x)
    if dtype[0] not in "iuf" or dtype in NARROW:
        raise Unsupported(f"windows of {x.dtype}")
    dims = _dims(x.shape, source.shape, window)
    along = dims[-1][2:] != (1, 1, 1, 0)
    words = [size_of(x.shape), *_words(dims, itemsize(dtype))]
    (out,) = k.routine(
        Winners(dtype, how, len(dims), along), [source, x], [x.aval], words,
        name="select_and_scatter_add",
    )  # fmt: skip
    return out


