"""gather as a routine: windows of an array, or single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import LINE, Module, itemsize
from primal.engines.cpu.graph import (
    NAMES,
    NATIVE,
    Value,
    broadcast,
    reshaped,
    row_major,
    size_of,
    sliced,
    transposed,
)
from primal.engines.cpu.kernels.takes import column, is_inside
from primal.engines.cpu.routines.moves import (
    BLOCK,
    REGISTER,
    Loop,
    bytes_of,
    few,
    flat,
    held,
    index_name,
    run_of,
    starts_at,
    windows,
)
from primal.engines.cpu.routines.single_gathers import MOST, SingleGather
from primal.engines.cpu.routines.windows import CHOICES, MANY, known, progression
from primal.engines.cpu.script import (
    MEMORY_INT,
    Int,
    Place,
    Script,
    copying,
)
from primal.ir.avals import Aval

NEAR = (1 << 31) - 4
"""Bytes of an array up to which vectors of 32 bits say where its elements are."""


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


@structure
class Gather:
    """Windows at starts; elements of `item` bytes, copied one by one or by `runs` of `few` bytes,
    or of many if that is 0.

    Words: bytes of a run; turns of the last batch loop per unit, units per row of it; batch loops
    (out, x, indices); per column of start vectors limit, stride in x, offset in indices; window
    loops (out, x); two words that hold the bits of the fill value.
    """

    item: int
    runs: bool
    index: str
    batch: int
    columns: int
    window: int
    fills: bool
    few: int = 0

    def write(self, module: Module, name: str) -> None:
        s = Script(module)
        x, indices, out = s.address(), s.address(), s.address()
        run, chunk, chunks = s.words(3)
        sizes = s.words(self.batch)
        steps = [s.words(self.batch) for _ in range(3)]
        columns = [s.words(3) for _ in range(self.columns)]
        widths = s.words(self.window)
        strides = [s.words(self.window) for _ in range(2)]
        fill = s.words(2)

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
    # Or rows of what is next to each other in memory, where the result's rows go across them.
    rows = any(x.steps()[i] == 1 and x.shape[i] >= LINE for i in kept)
    if not (close or (rows and len(shape) - 1 not in offset)) or x.shape[d] > CHOICES:
        return None
    if any(slice_sizes[i] != x.shape[i] for i in kept):
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


def of_repeated(
    k: Any, x: Value, indices: Value, *, dimension_numbers: Any, slice_sizes: Sequence[int],
    fill: Any, shape: tuple[int, ...],
) -> Value | None:  # fmt: skip
    """What is the same wherever it is gathered, chosen by whether starts lie inside; else None.

    Cotangents of sums are: the gradient of the sum of `segment_sum` of 333333 x 3 float32 took
    420 us, and takes 150 (JAX 120), transposed 8,280 and 42 (68).
    """
    offset, gone, mapped, batching, _ = dimension_numbers
    kept = [d for d in range(x.ndim) if d not in gone]
    if batching or gone != mapped or any(x.steps()[d] for d in mapped):
        return None
    if any(slice_sizes[d] != x.shape[d] for d in kept) or x.dtype not in NATIVE:
        return None
    ends = [1 if d in gone else n for d, n in enumerate(x.shape)]
    one = reshaped(sliced(x, [0] * x.ndim, ends, (1,) * x.ndim), tuple([ends[d] for d in kept]))
    assert one is not None  # only dimensions of size 1 go
    out = broadcast(one, shape, offset)
    dims, inside = [i for i in range(len(shape)) if i not in offset], None
    for j, d in enumerate(mapped if fill is not None else ()):
        here = is_inside(k, column(k, indices, j), x.shape[d])
        inside = here if inside is None else k.binary("and", inside, here)
    if inside is None:
        return out
    found: Value = k.select_n(broadcast(inside, shape, dims), k.literal(fill, x.dtype), out)
    return found


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


def slices_at(
    k: Any, x: Value, indices: Value, *, dimension_numbers: Any, slice_sizes: Sequence[int],
    fill: Any, shape: tuple[int, ...],
) -> Value | None:  # fmt: skip
    """Windows that begin at equal distances, as a slice by such steps; else None.

    Derivatives of `.at[..., ::2]` read such.
    """
    offset, gone, mapped, batching, _ = dimension_numbers
    if batching:
        return None
    dims = [i for i in range(len(shape)) if i not in offset]
    first, by, many = [0] * x.ndim, [1] * x.ndim, list(slice_sizes)
    source = dict(zip(offset, [d for d in range(x.ndim) if d not in gone], strict=True))
    for j, d in enumerate(mapped):
        first[d], pace = progression(column(k, indices, j)) or (-1, ())
        moving = [(i, step) for i, step in zip(dims, pace, strict=False) if step and shape[i] > 1]
        if len(moving) == 1 and d in gone:
            ((i, by[d]),) = moving
            if i in source:
                return None
            source[i], many[d] = d, shape[i]
        elif moving:
            return None
        last = first[d] + by[d] * (many[d] - 1)
        if min(first[d], last) < 0 or max(first[d], last) >= x.shape[d]:
            return None
        first[d] = min(first[d], last)
    if any(i not in source and shape[i] > 1 for i in dims):
        return None
    stop = [a + (n - 1) * abs(s) + 1 for a, n, s in zip(first, many, by, strict=True)]
    found = k.slice(x, first, stop, [abs(s) for s in by])
    back = [d for d, s in enumerate(by) if s < 0]
    found = k.rev(found, back) if back else found
    order = [source[i] for i in sorted(source)]
    found = transposed(found, [*order, *[d for d in range(x.ndim) if d not in order]])
    out: Value = k.reshape(found, shape)
    return out


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
        start = known(column(k, indices, j))
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
    index = index_name(indices)
    if run == item <= 8 and not window and len(found.columns) == 1 and index != "u8":
        loops = [(1, (0, 0, 0)), *batch]
        (_, (_, _, apart)), (n, (beside, _, following)) = loops[-2:]
        whole = not apart or n * max(item, 4) >= LINE
        if whole and beside == item and following == itemsize(index):
            loops = loops[-max(len(batch), 2) :]
            return singles(k, x, indices, loops, found.columns[0], fill, shape)
    if batch[-1][0] * max(each, 4) < LINE:
        # Two columns of 333333 rows: by units of a row 2.1 ms, of a column's part 0.9.
        batch.append(batch.pop(max(range(len(batch)), key=lambda i: batch[i][0])))
    chunk = max(1, BLOCK // each)
    chunks = -(-batch[-1][0] // chunk)
    words = [run, chunk, chunks, *flat(batch), *[w for c in found.columns for w in c]]
    words += flat(window) + ([0, 0] if fill is None else bits_words(fill, x.node.dtype))
    spec = Gather(
        item, run > item, index, len(batch), len(found.columns), len(window), fill is not None,
        few(run),
    )  # fmt: skip
    (out,) = k.routine(
        spec, [x, indices], [Aval(shape, x.dtype)], words, name="gather",
        units=size_of([n for n, _ in batch[:-1]]) * chunks,
        cost=min(chunk, batch[-1][0]) * (3 + each // 16),
    )  # fmt: skip
    return out


def singles(
    k: Any,
    x: Value,
    indices: Value,
    batch: list[Loop],
    column: tuple[int, int, int],
    fill: Any,
    shape: tuple[int, ...],
) -> Value:
    """Elements next to each other in the result, their starts next to each other too."""
    item, index = x.node.dtype.itemsize, index_name(indices)
    span = sum([(n - 1) * abs(b) for n, b in zip(x.shape, bytes_of(x), strict=True)])
    near = itemsize(index) <= 4 and max(span, *x.shape) < NEAR
    (rounds, (_, _, apart)), (n, _) = batch[-2:]
    chunk = min(n, MOST)
    rows = 1 if apart else min(rounds, max(1, BLOCK // (chunk * item)))
    chunks, blocks = -(-n // chunk), -(-rounds // rows)
    bits = 0 if fill is None else bits_words(fill, x.node.dtype)[0]
    words = [chunk, chunks, rows, blocks, *flat(batch), *column, bits]
    spec = SingleGather(item, index, len(batch), fill is not None, "i4" if near else "i8")
    (out,) = k.routine(
        spec, [x, indices], [Aval(shape, x.dtype)], words, name="gather",
        units=size_of([m for m, _ in batch[:-2]]) * blocks * chunks, cost=3 * chunk * rows,
    )  # fmt: skip
    return out
