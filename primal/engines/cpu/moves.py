"""gather and scatter as routines, and what all routines that move data share.

No index leaves an array: starts are clamped, or their windows left out, before anything is read
or written. Dimensions that all arrays cross in one stride are one, so that few structures exist;
elements move as bits, whatever their dtype. Windows of a scatter come in order, one after another,
as one unit of work, or one for each strip of long rows: where they meet, the result does not depend
on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import LINE, Module, itemsize
from primal.engines.cpu.graph import NAMES, Value, behind, native, row_major, size_of
from primal.engines.cpu.interleaved import PART, by_parts
from primal.engines.cpu.lanes import combined, emit
from primal.engines.cpu.script import (
    MEMORY_INT,
    Int,
    Place,
    Script,
    copying,
    lanes_before,
    read_vector,
    write_vector,
)
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

Loop = tuple[int, tuple[int, ...]]
"""The size of a loop, and the strides of the arrays in it, in bytes."""
FEW = 32
"""Bytes of a run up to which its length is part of the code."""
BLOCK = 16384
"""Bytes, about, that a unit of work moves."""
SHARED = 1 << 14
"""Elements of a single window from which its rows are units of work."""
ROUND = 1 << 20
"""Elements that a scatter combines in one step, between which signals are looked for: where they
meet their order counts, so that they are one unit of work."""
UNITS, LEAST = 16, 1024
"""Strips of long rows that are combined, and the bytes that one has at least: of 512, 4096 rows of
256 floats took a half longer than in one unit."""


def merged(loops: Sequence[Loop]) -> list[Any]:
    """Loops without those of one turn; neighbours that every array crosses in one stride are one.

    >>> merged([(2, (12, 12)), (3, (4, 4)), (1, (0, 7))])
    [(6, (4, 4))]
    """
    out: list[Any] = []
    for n, strides in loops:
        if n == 1:
            continue
        if out and all(a == b * n for a, b in zip(out[-1][1], strides, strict=True)):
            out[-1] = (out[-1][0] * n, strides)
        else:
            out.append((n, strides))
    return out


def flat(loops: Sequence[Loop]) -> list[int]:
    """Sizes, then the strides of the first array, of the second, …"""
    words = [n for n, _ in loops]
    for i in range(len(loops[0][1]) if loops else 0):
        words += [s[i] for _, s in loops]
    return words


def name_of(x: Value) -> str:
    """The dtype of a value's elements in kernels."""
    return NAMES[x.node.dtype]


def bytes_of(x: Value) -> tuple[int, ...]:
    """The strides of a value in bytes."""
    size = x.node.dtype.itemsize
    return tuple([s * size for s in x.steps()])


def held(k: Any, x: Value) -> Value:
    """A view of memory, which scalars and counts are not."""
    if native(x.dtype) is None and x.dtype not in NAMES:
        raise Unsupported(f"moving {x.dtype}")
    held: Value = k.held(x)
    return held


def run_of(loops: list[Loop], size: int) -> int:
    """The bytes that lie together in all arrays: of the last loop, which is taken off, or one."""
    return size * loops.pop()[0] if loops and all(s == size for s in loops[-1][1]) else size


def starts_at(
    s: Script, place: Place, at: Place, index: str, columns: Sequence[Sequence[Int]]
) -> tuple[Place, str]:
    """A place moved to the start vector read at `at`, clamped; whether clamping changed nothing.

    Per column: the greatest start, bytes per step in the operand, bytes to its entry.
    """
    inside = "true"
    for limit, stride, offset in columns:
        start = s.integer(index, at + offset)
        clamped = start.most(0).least(limit)
        same = start.test("eq", clamped)
        inside = same if inside == "true" else s.new(f"and i1 {inside}, {same}")
        place = place + clamped * stride
    return place, inside


def blocks(
    s: Script,
    sizes: Sequence[Int],
    strides: Sequence[Sequence[Int]],
    places: Sequence[Place],
    chunk: Int,
    chunks: Int,
    body: Any,
) -> None:
    """The body at every index of loops: units are pieces of `chunk` turns of the last loop."""

    def unit(u: Int) -> None:
        index = s.split(u // chunks, sizes[:-1])
        here = [s.moved(p, index, t[:-1]) for p, t in zip(places, strides, strict=True)]
        first = (u % chunks) * chunk
        last = (first + chunk).least(sizes[-1])
        s.each(
            first, last, lambda i: body([p + i * t[-1] for p, t in zip(here, strides, strict=True)])
        )

    s.units(unit)


@structure
class Gather:
    """Windows at starts; elements of `item` bytes, copied one by one or by `runs` of `few` bytes,
    or of many if that is 0.

    Words: bytes of a run; turns of the last batch loop per unit, units per row of it; batch loops
    (out, x, indices); per column of start vectors limit, stride in x, offset in indices; window
    loops (out, x); two words that hold the bits of the fill value.

    vectors: windows are single numbers of 4 or 8 bytes, next to each other in the result and their
    starts in the indices.
    """

    item: int
    runs: bool
    index: str
    batch: int
    columns: int
    window: int
    fills: bool
    few: int = 0
    vectors: bool = False

    def write(self, module: Module, name: str) -> None:
        s = Script(module, module.width // 8)
        x, indices, out = s.address(), s.address(), s.address()
        run, chunk, chunks = s.words(3)
        sizes = s.words(self.batch)
        steps = [s.words(self.batch) for _ in range(3)]
        columns = [s.words(3) for _ in range(self.columns)]
        widths = s.words(self.window)
        strides = [s.words(self.window) for _ in range(2)]
        fill = s.words(2)

        if self.vectors and module.width >= 32:
            self._by_vectors(s, [out, x, indices], sizes, steps, chunk, chunks, columns[0], fill[0])
            s.finish(name)
            return

        def element(places: list[Place]) -> None:
            to, source, at = places
            source, inside = starts_at(s, source, at, self.index, columns)

            def take(places: list[Place]) -> None:
                if self.few:
                    s.copy_bytes(places[0], places[1], self.few)
                elif self.runs:
                    copying(s, run, lambda copy: copy(places[0], places[1]))
                else:
                    t = MEMORY_INT[str(self.item)]
                    s.write(t, s.read(t, places[1]), places[0])

            def put(places: list[Place]) -> None:
                if self.runs:
                    s.each(
                        0, run, lambda i: write_bits(s, self.item, fill, places[0] + i), self.item
                    )
                else:
                    write_bits(s, self.item, fill, places[0])

            def copy() -> None:
                s.nest(widths, strides, [to, source], take)

            if self.fills:
                s.when(inside, copy, lambda: s.nest(widths, strides[:1], [to], put))
            else:
                copy()

        blocks(s, sizes, steps, [out, x, indices], chunk, chunks, element)
        s.finish(name)

    def _by_vectors(
        self,
        s: Script,
        places: list[Place],
        sizes: list[Int],
        steps: list[list[Int]],
        chunk: Int,
        chunks: Int,
        column: list[Int],
        fill: Int,
    ) -> None:
        limit, stride, offset = column
        wide, t = s.vec("i64"), f"i{8 * self.item}"
        name = f"llvm.masked.gather.v{s.lanes}{t}.v{s.lanes}p0"

        def unit(u: Int) -> None:
            index = s.split(u // chunks, sizes[:-1])
            to, source, at = [s.moved(p, index, n[:-1]) for p, n in zip(places, steps, strict=True)]
            along = s.new(f"mul {wide} {s.iota('i64')}, {s.splat('i64', steps[1][-1].name)}")
            first = (u % chunks) * chunk
            last = (first + chunk).least(sizes[-1])

            def vectors(i: Int) -> None:
                mask = lanes_before(s, last - i)
                start = read_vector(s, self.index, at + offset + i * itemsize(self.index), mask)
                start = emit(s, "convert", [self.index], "i8", [start])
                low = s.intrinsic("smax", "i64", start, s.const("i64", "0"))
                clamped = s.intrinsic("smin", "i64", low, s.splat("i64", limit.name))
                some, other = mask, "zeroinitializer"
                if self.fills:
                    inside = s.new(f"icmp eq {wide} {start}, {clamped}")
                    some = s.new(f"and {s.vec('i1')} {mask}, {inside}")
                    value = fill.name
                    if self.item == 4:
                        value = s.new(f"trunc i64 {value} to i32")
                    other = s.splat(t, value)
                moved = s.new(f"mul {wide} {clamped}, {s.splat('i64', stride.name)}")
                moved = s.new(f"add {wide} {moved}, {along}")
                base = source + i * steps[1][-1]
                ps = s.new(f"getelementptr i8, ptr {base.name}, {wide} {moved}")
                found = s.call(
                    name, s.vec(t), (s.vec("ptr"), ps), ("i32", str(self.item)),
                    (s.vec("i1"), some), (s.vec(t), other),
                )  # fmt: skip
                write_vector(s, f"i{self.item}", found, to + i * self.item, mask)

            s.each(first, last, vectors, s.lanes)

        s.units(unit)


def few(run: int) -> int:
    """The bytes of a run, if so few that the code had better know them; else 0."""
    return run if run <= FEW else 0


def write_bits(s: Script, size: int, bits: Sequence[Int], place: Place) -> None:
    """Store an element of `size` bytes that two words hold."""
    t = MEMORY_INT[str(min(size, 8))]
    value = bits[0].name if size >= 8 else s.new(f"trunc i64 {bits[0].name} to {t}")
    s.write(t, value, place)
    if size == 16:
        s.write(t, bits[1].name, place + 8)


def bits_words(value: Any, dtype: Any) -> list[int]:
    """A scalar as two words."""
    raw = np.asarray(value).astype(dtype).tobytes()
    return [
        int.from_bytes(raw[:8], "little", signed=False),
        int.from_bytes(raw[8:], "little", signed=False),
    ]


def index_name(x: Value) -> str:
    name = name_of(x)
    if name[0] not in "iu":
        raise Unsupported(f"indices of {x.dtype}")
    return name


@structure
class _Windows:
    """The loops of a gather or scatter: `big` is its operand, `part` the result or the updates."""

    batch: list[Loop]
    columns: list[tuple[int, int, int]]
    window: list[Loop]


def _windows(
    big: tuple[tuple[int, ...], tuple[int, ...]],
    part: tuple[tuple[int, ...], tuple[int, ...]],
    indices: Value,
    numbers: Any,
    sizes: Sequence[int],
) -> _Windows:
    """`big` and `part` are (shape, strides in bytes)."""
    offset, gone, mapped, batching, index_batching = numbers
    kept = [d for d in range(len(big[0])) if d not in gone and d not in batching]
    own = bytes_of(indices)
    batch_dims = [d for d in range(len(part[0])) if d not in offset]
    by_index = dict(zip(index_batching, batching, strict=True))
    batch = []
    for i, d in enumerate(batch_dims):
        in_big = big[1][by_index[i]] if i in by_index else 0
        batch.append((part[0][d], (part[1][d], in_big, own[i])))
    columns = [
        (big[0][d] - sizes[d], big[1][d], own[-1] * j if indices.shape[-1] > 1 else 0)
        for j, d in enumerate(mapped)
    ]
    window = [(sizes[d], (part[1][o], big[1][d])) for d, o in zip(kept, offset, strict=True)]
    return _Windows(merged(batch), columns, merged(window))


def gather(
    k: Any,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    fill: Any,
    shape: tuple[int, ...],
) -> Value:
    """x's windows of `slice_sizes`; `fill` is None where starts are clamped."""
    x, indices = held(k, x), held(k, indices)
    item = x.node.dtype.itemsize
    plain = tuple([n * item for n in row_major(shape)])
    found = _windows((x.shape, bytes_of(x)), (shape, plain), indices, dimension_numbers,
                     slice_sizes)  # fmt: skip
    batch, window = found.batch or [(1, (0, 0, 0))], found.window
    run = run_of(window, item)
    if run == item and window and batch[-1][1][0] == item:
        # x[:, i]: the indices lie along the result's rows, so rows are the loops outside.
        batch = [*[(n, (part, big, 0)) for n, (part, big) in window], *batch]
        window = []
    each = run * size_of([n for n, _ in window])
    if batch[-1][0] * each < LINE:
        # Two columns of 333333 rows: by units of a row 2.1 ms, of a column's part 0.9.
        batch.append(batch.pop(max(range(len(batch)), key=lambda i: batch[i][0])))
    chunk = max(1, BLOCK // each)
    chunks = -(-batch[-1][0] // chunk)
    words = [run, chunk, chunks, *flat(batch), *[w for c in found.columns for w in c]]
    words += flat(window) + ([0, 0] if fill is None else bits_words(fill, x.node.dtype))
    spec = Gather(
        item, run > item, index_name(indices), len(batch), len(found.columns), len(window),
        fill is not None, few(run),
        run == item and not window and len(found.columns) == 1
        and item in (4, 8) and index_name(indices) != "u8" and batch[-1][1][0] == item
        and batch[-1][1][2] == indices.node.dtype.itemsize,
    )  # fmt: skip
    (out,) = k.routine(
        spec, [x, indices], [Aval(shape, x.dtype)], words, name="gather",
        units=size_of([n for n, _ in batch[:-1]]) * chunks,
        cost=min(chunk, batch[-1][0]) * (3 + each // 16),
    )  # fmt: skip
    return out


@structure
class Scatter:
    """Windows combined into the result by `word`, or stored ('set'), in the order of the batch.

    Words: elements of a run; batch loops (updates, out, indices); columns as of `Gather`; window
    loops (updates, out).
    """

    dtype: str
    word: str
    runs: bool
    index: str
    batch: int
    columns: int
    window: int
    drops: bool
    dense: bool
    """Single elements from a vector to a vector, by a vector: strides are no words."""
    few: int = 0
    """Bytes of a run, if they are few."""
    apart: bool = False
    """No two turns of the first loop meet: blocks of them, whose size is the last word but one, are
    units. The last word counts the elements of their runs, of which the last turn has the rest.

    Each index is looked at once per block, and what it adds to one row waits for no other.
    """
    same: bool = False
    """Dense, but all updates are one number."""
    paired: bool = False
    """Two elements are the parts of a complex number, which the word combines as one."""

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        s = Script(module, max(module.width // item, 1) if self.runs else 1)
        _, indices, updates, out = s.address(), s.address(), s.address(), s.address()
        run = s.word()
        sizes = s.words(self.batch)
        steps = [s.words(self.batch) for _ in range(3)]
        columns = [s.words(3) for _ in range(self.columns)]
        widths = s.words(self.window)
        strides = [s.words(self.window) for _ in range(2)]

        def element(places: list[Place], length: Int = run) -> None:
            source, to, at = places
            to, inside = starts_at(s, to, at, self.index, columns)

            def combine() -> None:
                s.nest(widths, strides, [source, to], lambda p: self._one(s, p, length, item))

            s.when(inside, combine) if self.drops else combine()

        pace = 0 if self.same else item

        def one(i: Int) -> None:
            start = s.integer(self.index, indices + i * itemsize(self.index))
            # A start below 0 is a big number without a sign.
            s.when(
                start.test("ule", columns[0][0]),
                lambda: self._one(s, [updates + i * pace, out + start * item], run, item),
            )

        if self.dense:
            s.units(lambda u: s.each(0, sizes[0], one))
        elif self.apart:
            block, whole = s.words(2)

            def unit(u: Int) -> None:
                first = u * block
                length = (whole - u * run).least(run) if self.runs and not self.few else run
                last = (first + block).least(sizes[0])

                def column(places: list[Place]) -> None:
                    source, to, at = places
                    to, inside = starts_at(s, to, at, self.index, columns)

                    def row(i: Int) -> None:
                        self._one(s, [source + i * steps[0][0], to + i * steps[1][0]], run, item)

                    def rows() -> None:
                        s.each(first, last, row)

                    s.when(inside, rows) if self.drops else rows()

                rest, starts = [t[1:] for t in steps], [updates, out, indices]
                here = [p + first * t[0] for p, t in zip(starts, steps, strict=True)]
                s.when(
                    block.test("eq", 1),
                    lambda: s.nest(sizes[1:], rest, here, lambda p: element(p, length)),
                    lambda: s.nest(sizes[1:], rest, starts, column),
                )  # fmt: skip

            s.units(unit)
        else:
            s.units(lambda u: s.nest(sizes, steps, [updates, out, indices], element))
        s.finish(name)

    def _one(self, s: Script, places: list[Place], run: Int, item: int) -> None:
        source, to = places
        if self.word == "set":
            if self.few:
                s.copy_bytes(to, source, self.few)
            elif self.runs:
                copying(s, run * item, lambda copy: copy(to, source))
            else:
                t = MEMORY_INT[str(item)]
                s.write(t, s.read(t, source), to)
            return
        if not self.runs or self.few:
            # No masks: what one stored the next load would wait for. Elements in powers of two.
            whole, left, at = s.lanes, self.few // item or 1, 0
            while left:
                s.lanes = min(whole, 1 << (left.bit_length() - 1))
                old = read_vector(s, self.dtype, to + at)
                new = read_vector(s, self.dtype, source + at)
                write_vector(s, self.dtype, self._combined(s, old, new), to + at)
                left, at = left - s.lanes, at + s.lanes * item
            s.lanes = whole
            return

        def turn(i: Int, mask: str = "") -> None:
            at = i * item
            old = read_vector(s, self.dtype, to + at, mask)
            new = read_vector(s, self.dtype, source + at, mask)
            write_vector(s, self.dtype, self._combined(s, old, new), to + at, mask)

        whole = run - run % s.lanes
        s.each(0, whole, turn, s.lanes)
        s.each(whole, run, lambda i: turn(i, lanes_before(s, run - i)), s.lanes)

    def _combined(self, s: Script, old: str, new: str) -> str:
        if self.paired:
            return combined(s, self.word, self.dtype, old, new)
        return emit(s, self.word, [self.dtype, self.dtype], self.dtype, [old, new])


def scatter(
    k: Any,
    x: Value,
    indices: Value,
    updates: Value,
    word: str,
    *,
    dimension_numbers: Any,
    sizes: Sequence[int],
    drops: bool,
) -> Value:
    """x with windows of `sizes` combined in; `word` is 'set' or a word of two operands."""
    x, indices = held(k, x), held(k, indices)
    number = all(p.node.word == "literal" for p in updates.parts)
    if number and (x.ndim - 1 in dimension_numbers[1] or sizes[-1] == 1):
        # Of single numbers that are all the same one is enough.
        first = k.slice(updates, *[(n,) * updates.ndim for n in (0, 1, 1)])
        updates = k.copy(k.reshape(first, ())).view(updates.shape, (0,) * updates.ndim, 0)
    updates = held(k, updates)
    item = x.node.dtype.itemsize
    dtype = name_of(x)
    plain = tuple([n * item for n in row_major(x.shape)])
    big, part, least = (x.shape, plain), (updates.shape, bytes_of(updates)), 1
    paired = dtype in PART and word not in ("set", "add", "sub")
    if word != "set" and dtype in PART:
        dtype, item, least = PART[dtype], item // 2, 2
        big, part, dimension_numbers, sizes = by_parts(big, part, dimension_numbers, sizes, item)
    found = _windows(big, part, indices, dimension_numbers, sizes)
    batch, window = found.batch, found.window
    run = run_of(window, item) // item
    moved = dimension_numbers[2]
    apart = run == least and bool(window and batch) and all(sizes[d] == 1 for d in moved)
    if apart:
        # As `gather`: no two places of a window are one element, so the order stays.
        batch, window = [*[(n, (part, big, 0)) for n, (part, big) in window], *batch], []
    elif not batch and window and updates.size > SHARED:
        # Rows of a single window do not meet (x.at[1:-1, 1:-1].add of 1000 x 1000: 265 to 119 µs).
        batch, window, apart = [(n, (part, big, 0)) for n, (part, big) in window], [], True
    whole, strip = run, _strip_of(run, batch, item)
    if strip and not window and updates.size > SHARED and all(sizes[d] == 1 for d in moved):
        # Nor do parts of rows: threads share those that are added to the same ones.
        batch = [(-(-run // strip), (strip * item, strip * item, 0)), *batch]
        run, apart = strip, True
    pace = batch[-1][1][0] if batch else item
    dense = (
        drops and run == 1 and not window
        and [s[1:] for _, s in batch] == [(0, indices.node.dtype.itemsize)] and pace in (0, item)
        and [c[1:] for c in found.columns] == [(item, 0)]
    )  # fmt: skip
    spec = Scatter(
        f"u{item}" if word == "set" and item <= 8 else dtype, word, run > 1, index_name(indices),
        len(batch), len(found.columns), len(window), drops, dense,
        few(run * item) if run > 1 else 0, apart, dense and not pace, paired,
    )  # fmt: skip
    rest = [*[w for c in found.columns for w in c], *flat(window)]
    each = size_of([n for n, _ in (*batch[apart:], *window)]) * run
    if apart:
        rows, (_, pace, _) = batch[0]
        block = min(rows, BLOCK // 2 // pace) if run == least and 8 * pace <= BLOCK // 2 else 1
        total = whole if run < whole else rows * run
        parts = [([run, *flat(batch), *rest, block, total], indices, updates, -(-rows // block))]
        each *= block
    elif each > ROUND and batch and not batch[0][1][1]:
        (turns, (far, _, step)), *inner = batch
        part = max(turns * ROUND // each, 1)
        parts = [
            (
                [run, *flat([(min(part, turns - i), (far, 0, step)), *inner]), *rest],
                behind(indices, i * step), behind(updates, i * far), 1,
            )
            for i in range(0, turns, part)
        ]  # fmt: skip
        each = ROUND
    else:
        parts = [([run, *flat(batch), *rest], indices, updates, 1)]
    for words, places, values, units in parts:
        (x,) = k.routine(
            spec, [x, places, values], [x.aval], words, units=units, cost=2 * each,
            updates=((0, 0),), name=f"scatter {word}",
        )  # fmt: skip
    return x


def _strip_of(run: int, batch: Sequence[Any], item: int) -> int:
    """How many elements of long runs are a unit of work; 0 where they are not divided.

    Each strip walks all updates: of a line's multiple, and few enough elements to look for signals.
    """
    turns, line = size_of([n for n, _ in batch]), LINE // item
    most = ROUND // turns
    strip = -(-min(max(run // UNITS, LEAST // item), most) // line) * line
    return strip if turns > 1 and LEAST // item <= strip <= min(run // 2, most) else 0
