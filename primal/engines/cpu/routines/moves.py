"""scatter as a routine, and what all routines that move data share.

No index leaves an array: starts are clamped, or their windows left out, before anything is read
or written. Dimensions that all arrays cross in one stride are one, so that few structures exist;
elements move as bits, whatever their dtype. Windows of a scatter come in order, one after another,
as one unit of work, or one for each strip of long rows: where they meet, the result does not depend
on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.dtypes import physical_dtype
from primal.base.structures import structure
from primal.engines.cpu.code import LINE, MEMORY, Module, itemsize
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
REGISTER = 16
"""Bytes of the least vectors for which there are instructions."""
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


def element_at(k: Any, x: Value, axis: int, i: int) -> Value:
    """x[..., i : i + 1, ...]; of what was joined along the axis, where that came from."""
    start = [i if d == axis else 0 for d in range(x.ndim)]
    limit = [i + 1 if d == axis else n for d, n in enumerate(x.shape)]
    found: Value = k.slice(x, start, limit, [1] * x.ndim)
    joined = k.joined.get(found.node)
    if joined is None or joined[0] != axis:
        return found
    plain = row_major(found.node.shape)
    place, apart = divmod(found.offset, plain[axis])
    whole = tuple([1 if d == axis else n for d, n in enumerate(found.node.shape)])
    steps = [s for d, s in enumerate(found.steps()) if d != axis]
    if apart or found.shape != whole or steps != [s for d, s in enumerate(plain) if d != axis]:
        return found
    for piece in joined[1]:
        if place < piece.shape[axis]:
            return element_at(k, piece, axis, place) if piece.dtype == x.dtype else found
        place -= piece.shape[axis]
    return found


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


def few(run: int) -> int:
    """The bytes of a run, if so few that the code had better know them; else 0."""
    return run if run <= FEW else 0


def index_name(x: Value) -> str:
    name = name_of(x)
    if name[0] not in "iu":
        raise Unsupported(f"indices of {x.dtype}")
    return name


@structure
class Windows:
    """The loops of a gather or scatter: `big` is its operand, `part` the result or the updates."""

    batch: list[Loop]
    columns: list[tuple[int, int, int]]
    window: list[Loop]


def windows(
    big: tuple[tuple[int, ...], tuple[int, ...]],
    part: tuple[tuple[int, ...], tuple[int, ...]],
    indices: Value,
    numbers: Any,
    sizes: Sequence[int],
) -> Windows:
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
    return Windows(merged(batch), columns, merged(window))


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
    given: str = ""
    """The dtype of the updates, where they are narrower floats."""

    def write(self, module: Module, name: str) -> None:
        item, narrow = itemsize(self.dtype), itemsize(self.given or self.dtype)
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

        pace = 0 if self.same else narrow

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

    def _read(self, s: Script, place: Place, mask: str = "") -> str:
        """Updates, in the dtype of the result."""
        found = read_vector(s, self.given or self.dtype, place, mask)
        return emit(s, "convert", [self.given], self.dtype, [found]) if self.given else found

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
            self._pieces(s, source, to, item)
            return

        def turn(i: Int, mask: str = "") -> None:
            at = i * item
            old = read_vector(s, self.dtype, to + at, mask)
            new = self._read(s, source + i * itemsize(self.given or self.dtype), mask)
            write_vector(s, self.dtype, self._combined(s, old, new), to + at, mask)

        whole = run - run % s.lanes
        s.each(0, whole, turn, s.lanes)
        s.each(whole, run, lambda i: turn(i, lanes_before(s, run - i)), s.lanes)

    def _pieces(self, s: Script, source: Place, to: Place, item: int) -> None:
        """Few elements, read and written in powers of two and combined in one vector.

        No masks: what one stored the next load would wait for. Of single elements LLVM makes
        branches where words choose: greatest rows of three int16 took three times as long.
        """
        count = self.few // item or 1
        chooses = self.word in ("max", "min")
        lanes = max(1 << (count - 1).bit_length(), REGISTER // item if count > 1 or chooses else 1)
        sizes = [1 << i for i in reversed(range(count.bit_length())) if count >> i & 1]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        whole, s.lanes = s.lanes, lanes

        def read(dtype: str, place: Place) -> str:
            kept, found = MEMORY[dtype], ""
            for start, size in zip(starts, sizes, strict=True):
                t = s.vec(kept, size)
                p = place + start * itemsize(dtype)
                piece = s.new(f"load {t}, ptr {p.name}, align 1")
                if size < lanes:
                    piece = chosen(s, t, piece, "poison", range(size), lanes)
                order = [*range(start), *range(lanes, lanes + size)]
                found = chosen(s, s.vec(kept), found, piece, order, lanes) if start else piece
            if dtype == "b1":
                found = s.new(f"icmp ne {s.vec(kept)} {found}, zeroinitializer")
            if dtype != self.dtype:
                found = emit(s, "convert", [dtype], self.dtype, [found])
            return found

        made = self._combined(s, read(self.dtype, to), read(self.given or self.dtype, source))
        kept = MEMORY[self.dtype]
        if self.dtype == "b1":
            made = s.new(f"zext {s.vec('i1')} {made} to {s.vec(kept)}")
        for start, size in zip(starts, sizes, strict=True):
            t = s.vec(kept, size)
            piece = made
            if size < lanes:
                piece = chosen(s, s.vec(kept), made, "poison", range(start, start + size), size)
            s.do(f"store {t} {piece}, ptr {(to + start * item).name}, align 1")
        s.lanes = whole

    def _combined(self, s: Script, old: str, new: str) -> str:
        if self.paired:
            return combined(s, self.word, self.dtype, old, new)
        return emit(s, self.word, [self.dtype, self.dtype], self.dtype, [old, new])


def scatter(
    k: Any,
    x: Value | Aval,
    indices: Value,
    updates: Value,
    word: str,
    *,
    dimension_numbers: Any,
    sizes: Sequence[int],
    drops: bool,
) -> Value:
    """x with windows of `sizes` combined in; `word` is 'set' or a word of two operands.

    Of an array that is only described nothing but the windows is written. Updates may be narrower
    floats than x.
    """
    indices = held(k, indices)
    if isinstance(x, Value):
        x = held(k, x)
    aval = x.aval if isinstance(x, Value) else x
    if x.ndim - 1 in dimension_numbers[1] or sizes[-1] == 1:
        updates = _once(k, updates)
    updates = held(k, updates)
    dtype = NAMES[physical_dtype(aval.dtype)]
    item = itemsize(dtype)
    plain = tuple([n * item for n in row_major(x.shape)])
    # Narrower updates are walked as if they were of the size of x's elements.
    given, wider = name_of(updates), item // updates.node.dtype.itemsize
    own = tuple([wider * n for n in bytes_of(updates)])
    big, part, least = (x.shape, plain), (updates.shape, own), 1
    paired = dtype in PART and word not in ("set", "add", "sub")
    if word != "set" and dtype in PART:
        dtype, item, least = PART[dtype], item // 2, 2
        big, part, dimension_numbers, sizes = by_parts(big, part, dimension_numbers, sizes, item)
    found = windows(big, part, indices, dimension_numbers, sizes)
    whole = run_of(found.window, item) // item
    alone = all(sizes[d] == 1 for d in dimension_numbers[2])
    batch, window, run, apart = _shared(found, whole, whole == least, alone, item, updates.size)
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
        "" if wider == 1 else given,
    )  # fmt: skip
    batch, window = [
        [(n, (step // wider, *others)) for n, (step, *others) in loops] for loops in (batch, window)
    ]
    rest = [*[w for c in found.columns for w in c], *flat(window)]
    each = size_of([n for n, _ in (*batch[apart:], *window)]) * run
    if apart:
        rows, (_, pace, *_) = batch[0]
        block = min(rows, BLOCK // 2 // pace) if run == least and 8 * pace <= BLOCK // 2 else 1
        total = whole if run < whole else rows * run
        parts = [([run, *flat(batch), *rest, block, total], indices, updates, -(-rows // block))]
        each *= block
    else:
        parts = [
            ([run, *flat(loops), *rest], behind(indices, at), behind(updates, to), 1)
            for loops, at, to in _rounds(batch, each)
        ]
        each = each if len(parts) == 1 else ROUND
    out = x if isinstance(x, Value) else None
    for words, places, values, units in parts:
        (out,) = k.routine(
            spec, [out or places, places, values], [aval], words, units=units, cost=2 * each,
            updates=((0, 0),) if out else (), name=f"scatter {word}",
        )  # fmt: skip
    assert out is not None
    return out


def _once(k: Any, updates: Value) -> Value:
    """Of single numbers that are all the same one is enough."""
    if any(p.node.word != "literal" for p in updates.parts):
        return updates
    first = k.slice(updates, *[(n,) * updates.ndim for n in (0, 1, 1)])
    number: Value = k.copy(k.reshape(first, ()))
    return number.view(updates.shape, (0,) * updates.ndim, 0)


def _shared(
    found: Windows, run: int, is_short: bool, alone: bool, item: int, size: int
) -> tuple[list[Loop], list[Loop], int, bool]:
    """The batch, the window, a run of it, and whether the first loop is one that threads share.

    `is_short`: a run is one element. `alone`: windows are so in the dimensions that indices move.
    """
    batch, window, apart = found.batch, found.window, False
    rows: list[Loop] = [(n, (part, big, 0)) for n, (part, big) in window]
    if is_short and window and batch and alone:
        # As `gather`: no two places of a window are one element, so the order stays.
        batch, window, apart = [*rows, *batch], [], True
    elif not batch and window and size > SHARED:
        # Rows of a single window do not meet (x.at[1:-1, 1:-1].add of 1000 x 1000: 265 to 119 µs).
        batch, window, apart = rows, [], True
    strip = _strip_of(run, batch, item)
    if strip and not window and size > SHARED and alone:
        # Nor do parts of rows: threads share those that are added to the same ones.
        return [(-(-run // strip), (strip * item, strip * item, 0)), *batch], [], strip, True
    return batch, window, run, apart


def _rounds(batch: Sequence[Loop], each: int) -> list[tuple[Sequence[Loop], int, int]]:
    """The batch in steps of about `ROUND` elements, and where in the indices and updates each
    begins."""
    if each <= ROUND or not batch or batch[0][1][1]:
        return [(batch, 0, 0)]
    (turns, (far, _, step)), *inner = batch
    some = max(turns * ROUND // each, 1)
    return [
        ([(min(some, turns - i), (far, 0, step)), *inner], i * step, i * far)
        for i in range(0, turns, some)
    ]


def chosen(s: Script, t: str, x: str, y: str, order: Sequence[int], lanes: int) -> str:
    """So many lanes: those of two vectors of a type that have such numbers, and any others."""
    names = [f"i32 {i}" for i in order] + ["i32 poison"] * (lanes - len(order))
    mask = f"<{lanes} x i32> <{', '.join(names)}>"
    return s.new(f"shufflevector {t} {x}, {t} {y}, {mask}")


def _strip_of(run: int, batch: Sequence[Any], item: int) -> int:
    """How many elements of long runs are a unit of work; 0 where they are not divided.

    Each strip walks all updates: of a line's multiple, and few enough elements to look for signals.
    """
    turns, line = size_of([n for n, _ in batch]), LINE // item
    most = ROUND // turns
    strip = -(-min(max(run // UNITS, LEAST // item), most) // line) * line
    return strip if turns > 1 and LEAST // item <= strip <= min(run // 2, most) else 0
