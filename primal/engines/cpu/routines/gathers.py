"""gather as a routine: windows of an array, or single elements by vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import LINE, Module, itemsize
from primal.engines.cpu.graph import NAMES, Value, broadcast, reshaped, row_major, size_of, sliced
from primal.engines.cpu.kernels.takes import column
from primal.engines.cpu.lanes import emit
from primal.engines.cpu.routines import narrow_gathers, pieces
from primal.engines.cpu.routines.moves import (
    BLOCK,
    REGISTER,
    bytes_of,
    few,
    flat,
    held,
    index_name,
    run_of,
    starts_at,
    windows,
)
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

NEAR = (1 << 31) - 4
"""Bytes of an array up to which vectors of 32 bits say where its elements are, from the word of
four bytes on in which it begins."""


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
        first = (u % chunks) * chunk
        last = (first + chunk).least(sizes[-1])
        here = [s.moved(p, [*index, first], t) for p, t in zip(places, strides, strict=True)]
        s.along(first, last, [t[-1] for t in strides], here, body)

    s.units(unit)


CLOSE, MANY = 8, 1024
"""Elements among which single ones are chosen, and results from which they are."""


@structure
class Gather:
    """Windows at starts; elements of `item` bytes, copied one by one or by `runs` of `few` bytes,
    or of many if that is 0.

    Words: bytes of a run; turns of the last batch loop per unit, units per row of it; batch loops
    (out, x, indices); per column of start vectors limit, stride in x, offset in indices; window
    loops (out, x); two words that hold the bits of the fill value.

    vectors: windows are single numbers of up to 8 bytes, next to each other in the result and their
    starts in the indices; the dtype in which vectors count bytes, or "".
    """

    item: int
    runs: bool
    index: str
    batch: int
    columns: int
    window: int
    fills: bool
    few: int = 0
    vectors: str = ""

    def write(self, module: Module, name: str) -> None:
        s = Script(module, module.width // itemsize(self.vectors or "i8"))
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
        dtype, narrow = f"i{self.item}", self.item <= narrow_gathers.MOST
        t, counts = f"i{8 * self.item}", f"i{8 * itemsize(self.vectors)}"
        wide, least = s.vec(counts), s.const(counts, "0")

        def of(word: Int) -> str:
            """A word of the record in every lane."""
            value = word.name
            if counts != "i64":
                value = s.new(f"trunc i64 {value} to {counts}")
            return s.splat(counts, value)

        name = f"llvm.masked.gather.v{s.lanes}{t}.v{s.lanes}p0"

        def unit(u: Int) -> None:
            index = s.split(u // chunks, sizes[:-1])
            to, source, at = [s.moved(p, index, n[:-1]) for p, n in zip(places, steps, strict=True)]
            along = s.new(f"mul {wide} {s.iota(counts)}, {of(steps[1][-1])}")
            first = (u % chunks) * chunk
            last = (first + chunk).least(sizes[-1])

            def vectors(i: Int) -> None:
                mask = lanes_before(s, last - i)
                start = read_vector(s, self.index, at + offset + i * itemsize(self.index), mask)
                if self.index == "u4" and self.vectors == "i4":
                    clamped = s.intrinsic("umin", counts, start, of(limit))
                else:
                    start = emit(s, "convert", [self.index], self.vectors, [start])
                    low = s.intrinsic("smax", counts, start, least)
                    clamped = s.intrinsic("smin", counts, low, of(limit))
                some, other = mask, "zeroinitializer"
                if self.fills:
                    inside = s.new(f"icmp eq {wide} {start}, {clamped}")
                    some = s.new(f"and {s.vec('i1')} {mask}, {inside}")
                    value = fill.name
                    if self.item < 8:
                        value = s.new(f"trunc i64 {value} to {t}")
                    other = s.splat(t, value)
                moved = s.new(f"mul {wide} {clamped}, {of(stride)}")
                moved = s.new(f"add {wide} {moved}, {along}")
                base = source + i * steps[1][-1]
                if narrow:
                    found = narrow_gathers.by_words(s, dtype, base.name, moved, some, counts)
                    if self.fills:
                        found = s.new(f"select {s.vec('i1')} {some}, {s.vec(t)} {found}, "
                                      f"{s.vec(t)} {other}")  # fmt: skip
                    write_vector(s, dtype, found, to + i * self.item, mask)
                    return
                ps = s.new(f"getelementptr i8, ptr {base.name}, {wide} {moved}")
                found = s.call(
                    name, s.vec(t), (s.vec("ptr"), ps), ("i32", str(self.item)),
                    (s.vec("i1"), some), (s.vec(t), other),
                )  # fmt: skip
                write_vector(s, dtype, found, to + i * self.item, mask)

            s.each(first, last, vectors, s.lanes)

        s.units(unit)


def chosen(
    k: Any,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    fill: Any,
    shape: tuple[int, ...],
) -> Value | None:
    """Single ones of a few elements that share lines, each chosen among all of these; else None.

    A group reads what it chooses from by shuffles: three columns of 333333 x 3 float32 took 1,770
    µs element by element.
    """
    offset, gone, mapped, batching, index_batching = dimension_numbers
    if gone != mapped or len(mapped) != 1 or size_of(shape) < MANY or x.dtype not in NAMES:
        return None
    if x.dtype == np.float16 and not _llvm.compiler().half:
        return None
    (d,), kept = mapped, [i for i in range(x.ndim) if i not in (*mapped, *batching)]
    close = abs(x.steps()[d]) * x.node.dtype.itemsize <= REGISTER
    if not close or x.shape[d] > CLOSE or any(slice_sizes[i] != x.shape[i] for i in kept):
        return None
    x, at = held(k, x), column(k, indices, 0)
    dims = [i for i in range(len(shape)) if i not in offset]
    to = dict(zip(kept, offset, strict=True))
    to.update({i: dims[j] for i, j in zip(batching, index_batching, strict=True)})
    at = broadcast(at, shape, dims)
    out, last = None if fill is None else k.literal(fill, x.dtype), x.shape[d] - 1
    for i in reversed(range(last + 1)):
        first, limit = [0] * x.ndim, list(x.shape)
        first[d], limit[d] = i, i + 1
        one = sliced(x, first, limit, (1,) * x.ndim)
        case = reshaped(one, tuple([n for j, n in enumerate(x.shape) if j != d]))
        assert case is not None  # only a dimension of size 1 goes
        case = broadcast(case, shape, [to[j] for j in range(x.ndim) if j != d])
        if out is None:
            out = case
            continue
        here = k.binary("eq" if fill is not None else "le", at, k.literal(i, at.dtype))
        out = k.select_n(here, out, case)
    return out


def slice_at(
    k: Any, x: Value, indices: Value, *, dimension_numbers: Any, slice_sizes: Sequence[int],
    fill: Any, shape: tuple[int, ...],
) -> Value | None:  # fmt: skip
    """The only window of a gather where its place is known, as a slice; else None.

    The derivative of `.at[1:-1, 1:-1].add` reads such (100 turns of heat in 10 x 10 cells 51 to
    34 us).
    """
    first, inside = known_start(k, x, indices, dimension_numbers, slice_sizes)
    if first is None:
        return None
    if fill is not None and not inside:
        return broadcast(k.literal(fill, x.dtype), shape, ())
    stop = [a + n for a, n in zip(first, slice_sizes, strict=True)]
    found: Value = k.reshape(k.slice(x, first, stop, [1] * x.ndim), shape)
    return found


def known_start(
    k: Any, x: Value, indices: Value, dimension_numbers: Any, sizes: Sequence[int]
) -> tuple[list[int] | None, bool]:
    """Where the only window of a gather or scatter begins, clamped, if its indices are literals,
    and whether clamping changed nothing."""
    _, _, mapped, batching, _ = dimension_numbers
    if batching or size_of(indices.shape[:-1]) != 1:
        return None, False
    first = [0] * x.ndim
    inside = True
    for j, d in enumerate(mapped):
        start = pieces.known(column(k, indices, j))
        if start is None:
            return None, False
        first[d] = min(max(start, 0), x.shape[d] - sizes[d])
        inside = inside and first[d] == start
    return first, inside


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
    found = windows((x.shape, bytes_of(x)), (shape, plain), indices, dimension_numbers,
                     slice_sizes)  # fmt: skip
    batch, window = found.batch or [(1, (0, 0, 0))], found.window
    run = run_of(window, item)
    if run == item and window and batch[-1][1][0] == item:
        # x[:, i]: the indices lie along the result's rows, so rows are the loops outside.
        batch = [*[(n, (part, big, 0)) for n, (part, big) in window], *batch]
        window = []
    each = run * size_of([n for n, _ in window])
    if batch[-1][0] * max(each, 4) < LINE:
        # Two columns of 333333 rows: by units of a row 2.1 ms, of a column's part 0.9.
        batch.append(batch.pop(max(range(len(batch)), key=lambda i: batch[i][0])))
    index, vectors = index_name(indices), ""
    step = batch[-1][1]
    single = run == item and not window and len(found.columns) == 1
    if (single and item <= 8 and index != "u8"
            and (step[0], step[2]) == (item, itemsize(index))):  # fmt: skip
        span = sum([(n - 1) * abs(b) for n, b in zip(x.shape, bytes_of(x), strict=True)])
        near = item <= 4 and itemsize(index) <= 4 and max(span, *x.shape) < NEAR
        vectors = "i4" if near else "i8"
    chunk = max(1, BLOCK // each)
    chunks = -(-batch[-1][0] // chunk)
    words = [run, chunk, chunks, *flat(batch), *[w for c in found.columns for w in c]]
    words += flat(window) + ([0, 0] if fill is None else bits_words(fill, x.node.dtype))
    spec = Gather(
        item, run > item, index, len(batch), len(found.columns), len(window), fill is not None,
        few(run), vectors,
    )  # fmt: skip
    (out,) = k.routine(
        spec, [x, indices], [Aval(shape, x.dtype)], words, name="gather",
        units=size_of([n for n, _ in batch[:-1]]) * chunks,
        cost=min(chunk, batch[-1][0]) * (3 + each // 16),
    )  # fmt: skip
    return out


