"""Slices at starts known at run time, concatenation and padding as routines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import LINE, Module
from primal.engines.cpu.graph import (
    Node,
    Value,
    row_major,
    size_of,
    transposed,
)
from primal.engines.cpu.plan.around import (
    joined_as_read,
    written_within,
)
from primal.engines.cpu.plan.partial import is_light
from primal.engines.cpu.routines import turns
from primal.engines.cpu.routines.moves import (
    SHARED,
    bytes_of,
    flat,
    held,
    index_name,
    merged,
    run_of,
)
from primal.engines.cpu.script import MEMORY_INT, Copy, Int, Place, Script, copying
from primal.engines.cpu.steps import Routine
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

PART, MOST_PARTS = 20_000, 8
"""Nanoseconds of work from which an array is copied in parts, and how many there may be. One thread
fills half of what two do: half of 1000 x 1000 floats from a given row on took 125 µs, in JAX 43."""


def _shared(total: int, run: int) -> tuple[int, int]:
    """The parts that so many bytes in runs are copied in, and nanoseconds for one."""
    cost = total // run * 2 + total // 16
    parts = max(1, min(MOST_PARTS, cost // PART))
    return parts, cost // parts


# One window at scalar starts.


@structure
class Window:
    """A window copied out of an array at clamped starts, or into it (`puts`).

    Words: bytes of a run; parts of the outermost loop, or of the run where there is none, each of
    which is a unit; per start its greatest value and its step; loops (part, big).
    """

    item: int
    runs: bool
    index: str
    starts: int
    rank: int
    puts: bool

    def write(self, module: Module, name: str) -> None:
        s = Script(module)
        big = s.address()
        part = s.address() if self.puts else None
        starts = [s.address() for _ in range(self.starts)]
        out = s.address()
        run, parts = s.words(2)
        limits = [s.words(2) for _ in range(self.starts)]
        sizes = s.words(self.rank)
        strides = [s.words(self.rank) for _ in range(2)]

        def unit(u: Int) -> None:
            here = out if self.puts else big
            for start, (limit, step) in zip(starts, limits, strict=True):
                here = here + s.integer(self.index, start).most(0).least(limit) * step

            def one(copy: Copy, places: list[Place]) -> None:
                copy(*(places if part is None else reversed(places)))

            begin = [out if part is None else part, here]

            def take(copy: Copy) -> None:
                if not self.rank:
                    one(copy, begin)
                    return
                each = (sizes[0] + parts - 1) // parts
                first = (u * each).least(sizes[0])

                def row(i: Int) -> None:
                    at = [p + i * t[0] for p, t in zip(begin, strides, strict=True)]
                    s.nest(sizes[1:], [t[1:] for t in strides], at, lambda ps: one(copy, ps))

                s.each(first, (first + each).least(sizes[0]), row)

            def piece() -> None:
                each = (run + parts - 1) // parts
                first = (u * each).least(run)
                size = (run - first).least(each)
                at = [p + first for p in begin]
                one(lambda to, source: s.copy_bytes(to, source, size), at)

            if self.runs and not self.rank:
                s.when(parts.test("sgt", 1), piece, lambda: copying(s, run, take))
            elif self.runs:
                copying(s, run, take)
            else:
                t = MEMORY_INT[str(self.item)]
                take(lambda to, source: s.write(t, s.read(t, source), to))

        s.units(unit)
        s.finish(name)


def known(x: Value) -> int | None:
    """The value of an integer literal."""
    if x.node.word != "literal":
        return None
    return int(np.frombuffer(x.node.attr, x.node.dtype)[0])


def _moving(
    k: Any, shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Value]
) -> tuple[list[int], list[tuple[int, Value]]]:
    """What is known of clamped starts, and (dimension, start) of the others."""
    fixed, moving = [0] * len(shape), []
    for d, (n, size, start) in enumerate(zip(shape, sizes, starts, strict=True)):
        value = known(start)
        if value is not None:
            fixed[d] = min(max(value, 0), n - size)
        elif n > size:
            moving.append((d, held(k, start)))
    return fixed, moving


def dynamic_slice(k: Any, x: Value, starts: Sequence[Value], sizes: tuple[int, ...]) -> Value:
    """x[start : start + size]; a view where all starts are known."""
    x = held(k, x)
    fixed, moving = _moving(k, x.shape, sizes, starts)
    whole = [n if d in [m for m, _ in moving] else size
             for d, (n, size) in enumerate(zip(x.shape, sizes, strict=True))]  # fmt: skip
    if any(n != m for n, m in zip(whole, x.shape, strict=True)):
        limit = [a + n for a, n in zip(fixed, whole, strict=True)]
        x = k.slice(x, tuple(fixed), tuple(limit), (1,) * x.ndim)
    if not moving:
        return x
    order = turns.by_steps(x)
    inner = order[-1]
    whole_rows = sizes[inner] >= min(x.shape[inner], LINE)
    if size_of(sizes) > SHARED and order != tuple(range(x.ndim)) and whole_rows:
        # As it lies, in long runs; who reads it turns it by vectors.
        lain = dynamic_slice(
            k, transposed(x, order), [starts[d] for d in order], tuple([sizes[d] for d in order])
        )
        return transposed(lain, [order.index(d) for d in range(x.ndim)])
    item = x.node.dtype.itemsize
    own = bytes_of(x)
    plain = [n * item for n in row_major(sizes)]
    loops = merged([(n, (p, o)) for n, p, o in zip(sizes, plain, own, strict=True)])
    run = run_of(loops, item)
    parts, cost = _shared(size_of(sizes) * item, run)
    words = [run, parts]
    for d, _ in moving:
        words += [x.shape[d] - sizes[d], own[d]]
    spec = Window(
        item, run > item, index_name(moving[0][1]), len(moving), len(loops), False
    )
    given = [x, *[s for _, s in moving]]
    (out,) = k.routine(
        spec, given, [Aval(sizes, x.dtype)], words + flat(loops), units=parts, cost=cost,
        name="dynamic_slice",
    )  # fmt: skip
    return out


def dynamic_update_slice(k: Any, x: Value, part: Value, starts: Sequence[Value]) -> Value:
    """x with `part` written at clamped starts."""
    if part.shape == x.shape:
        return part
    fixed, moving = _moving(k, x.shape, part.shape, starts)
    if k.outer and x.ndim == 1 and not moving:
        within = written_within(k, x, part, fixed[0])
        if within is not None:
            return within
    if not (k.outer or moving):
        joined = _between(k, x, part, fixed)
        if joined is not None:
            return joined
    if part.size > SHARED and part.steps()[-1] > 1:
        part = k.copy(part)  # by vectors
    x, part = held(k, x), held(k, part)
    item = x.node.dtype.itemsize
    plain = [n * item for n in row_major(x.shape)]
    own = bytes_of(part)
    loops = merged([(n, (p, o)) for n, p, o in zip(part.shape, own, plain, strict=True)])
    run = run_of(loops, item)
    # What is known of the starts stands as one with a step of a byte, and is at most itself.
    known = sum([a * p for a, p in zip(fixed, plain, strict=True)])
    parts, cost = _shared(part.size * item, run)
    words = [run, parts]
    given = [s for _, s in moving]
    for d, _ in moving:
        words += [x.shape[d] - part.shape[d], plain[d]]
    if known:
        index = moving[0][1].dtype if moving else np.dtype(np.int64)
        if known > np.iinfo(index).max:
            raise Unsupported("a start beyond the dtype of the starts")
        words += [known, 1]
        given.append(held(k, k.literal(known, index)))
    name = index_name(given[0]) if given else "i8"
    spec = Window(item, run > item, name, len(given), len(loops), True)
    (out,) = k.routine(
        spec, [x, part, *given], [x.aval], words + flat(loops), updates=((0, 0),), units=parts,
        cost=cost, name="dynamic_update_slice",
    )  # fmt: skip
    if not moving:
        at = sum([a * s for a, s in zip(fixed, row_major(x.shape), strict=True)])
        k.order[-1].into = out.view(part.shape, row_major(x.shape), at)
    return out


def _between(k: Any, x: Value, part: Value, first: Sequence[int]) -> Value | None:
    """A part at a known place joined to what stays before and behind it, where that is less work.

    In a loop the array itself is updated, elsewhere most of an argument need not be copied:
    `x.at[1:].multiply(2)` of 1000 x 1000 takes less than a copy of x. What lies turned would be
    turned where nobody reads it (100 x 100 x 100 float32, all but the edges set: 310 to 60 us), but
    of a few columns every line is read anyway.
    """
    cut = [d for d, (n, m) in enumerate(zip(x.shape, part.shape, strict=True)) if n != m]
    if len(cut) != 1 or x.size <= SHARED:
        return None
    (d,) = cut
    if x.strides is None and (x.size > 2 * part.size or size_of(x.shape[:d]) != 1):
        return None
    if x.strides is not None and x.steps()[d] == 1 and x.shape[d] <= CLOSE:
        return None
    last = first[d] + part.shape[d]
    pieces = [part]
    for a, b in ((0, first[d]), (last, x.shape[d])):
        if a < b:
            low, high = [0] * x.ndim, list(x.shape)
            low[d], high[d] = a, b
            pieces.insert(0 if a == 0 else len(pieces), k.slice(x, low, high, [1] * x.ndim))
    return concatenate(k, pieces, d)


# Concatenation and padding.


CLOSE = 8
"""Elements from one row to the next up to which what takes turns is put together by shuffles."""
MANY, CLOSER = 1 << 15, 16
"""Rows from which so many are close, where pieces are alike: two of 100,000 x 5 int8 189 to 47 µs
(JAX 107). The code for them takes 40 ms of CPU, not 16.
"""
HEAVY_RUN = 64
"""Elements of a row of a piece from which any group writes it where it belongs."""
LONG_RUN = 1 << 14
"""Bytes of a run from which it may be copied in parts."""
EACH = 5
"""Words of `Rows` for each array."""


@structure
class Rows:
    """Arrays copied into the result by rows; one code for any number of them.

    Words per array: offset in the result, rows, bytes of a row, bytes from row to row in the
    array, in the result. Last word: parts of an array, each of which is a unit.
    """

    def write(self, module: Module, name: str) -> None:
        s = Script(module)
        length = s.length()
        # 6 words of header, 2 and 5 per array, 2 of the result, the last one.
        count = (length - 9) // 7
        base = count * 2 + 6

        def at(i: Int | int) -> Int:
            p = s.new(f"getelementptr i64, ptr %record, i64 {i.name if isinstance(i, Int) else i}")
            return Int(s, s.new(f"load i64, ptr {p}"))

        out = s.slot(at(base), at(base + 1))
        parts = at(length - 1)

        def unit(number: Int) -> None:
            # Parts of all arrays in turn: as these differ in size, so would what threads get.
            u, part = number % count, number // count
            source = s.slot(at(u * 2 + 6), at(u * 2 + 7))
            mine = base + u * EACH + 2
            offset, rows, run, step, pace = [at(mine + j) for j in range(EACH)]
            to = out + offset
            each = (rows + parts - 1) // parts
            first = (part * each).least(rows)
            last = (first + each).least(rows)

            def rows_by(copy: Copy) -> None:
                s.each(first, last, lambda i: copy(to + i * pace, source + i * step))

            def by_bytes() -> None:
                """Parts of all the bytes, which may begin and end within rows."""
                each = (rows * run + parts - 1) // parts
                first = (part * each).least(rows * run)
                last = (first + each).least(rows * run)

                def row(i: Int) -> None:
                    left = (first - i * run).most(0)
                    size = (last - i * run).least(run) - left
                    s.copy_bytes(to + i * pace + left, source + i * step + left, size)

                s.each(first // run, (last + run - 1) // run, row)

            s.when(run.test("sge", LONG_RUN), by_bytes, lambda: copying(s, run, rows_by))

        s.units(unit)
        s.finish(name)


SHORT_RUN = 64
"""Bytes of a row below which a group repeats it: 333,333 rows of 3 float32 310 to 65 us."""


def concatenate(k: Any, xs: Sequence[Value], dim: int) -> Value:
    """The operands one after another along a dimension."""
    xs = [x for x in xs if x.shape[dim]]
    if len(xs) == 1:
        return xs[0]
    shape = list(xs[0].shape)
    shape[dim] = sum([x.shape[dim] for x in xs])
    as_read = joined_as_read(k, xs, dim, tuple(shape)) if k.woven else None
    if as_read is not None:
        return as_read
    joined, row, rows = xs, size_of(shape[dim:]), size_of(shape[:dim])
    alike = len({x.shape[dim] for x in xs}) == 1
    close = row <= (close_of(rows) if alike else CLOSE)
    if close and rows > 1:
        orders = {turns.across(x) for x in xs}
        if len(orders) == 1 and orders != {tuple(range(len(shape)))}:
            # As they lie: the group that puts them together stores them turned.
            (order,) = orders
            lain = [k.element("copy", (transposed(x, order),), x.dtype) for x in xs]
            out = concatenate(k, lain, order.index(dim))
            return transposed(out, [order.index(d) for d in range(len(shape))])
        xs = _columns(k, xs, dim)
    xs = [held(k, x) for x in xs]
    item = xs[0].node.dtype.itemsize
    plain = [n * item for n in row_major(shape)]
    given, words, turned, offset = [], [], [], 0
    for x in xs:
        if close and x.size > row:
            # A group puts them together in registers.
            x = k.element("copy", (k.turned_copy(x) or x,), x.dtype)
        part = _rows(x, plain, item)
        if part is None and turns.has_squares(x, row_major(shape)):
            turned.append((x, offset // item))
            offset += x.shape[dim] * plain[dim]
            continue
        # A group does by vectors what would go element by element, or repeats a short row.
        one_by_one = part is not None and turns.is_apart(x) and part[1] == item
        repeated = part is not None and part[2] == 0 and part[1] < SHORT_RUN
        if part is None or part[0] >= turns.LEAST and (one_by_one or repeated):
            x = k.dense(x)
            part = _rows(x, plain, item)
            assert part is not None
        rows, run, step, pace = part
        given.append(x)
        words += [offset, rows, run, step, pace]
        offset += x.shape[dim] * plain[dim]
    out = None
    if given:
        parts, cost = _divided(words)
        (out,) = k.routine(
            Rows(), given, [Aval(tuple(shape), xs[0].dtype)], [*words, parts],
            units=len(given) * parts, cost=cost, name="concatenate",
        )  # fmt: skip
        starts = [w // item for w in words[::EACH]]
        k.order[-1].parts = tuple(
            [out.view(x.shape, row_major(shape), at) for x, at in zip(given, starts, strict=True)]
        )
    for x, at in turned:
        out = turns.turned_into(k, x, tuple(shape), row_major(shape), at, out)
    assert out is not None
    k.joined[out.node] = dim, joined
    return out


def _divided(words: Sequence[int]) -> tuple[int, int]:
    """The parts that each of the arrays of `Rows` is copied in, and nanoseconds for one."""
    most = max([n * (2 + run // 16) for n, run in zip(words[1::EACH], words[2::EACH], strict=True)])
    parts = max(1, min(MOST_PARTS, most // PART))
    return parts, most // parts


def splice(joint: Routine, inner: Mapping[Node, Routine]) -> list[Routine]:
    """Take the operands of others that join arrays, where one lies in the joint in one run.

    Gives those that are not needed any more.
    """
    gone, found = [], []
    left = _operands(joint)[::-1]
    while left:
        x, place, words = left.pop()
        other = inner.get(x.node)
        if other is None or x.strides is not None or words[1] != 1:
            found.append((x, place, words))
            continue
        gone.append(other)
        for y, part, theirs in reversed(_operands(other)):
            there = place.view(part.shape, part.steps(), place.offset + part.offset)
            left.append((y, there, (words[0] + theirs[0], *theirs[1:])))
    if gone:
        joint.args = tuple([x for x, _, _ in found])
        joint.parts = tuple([place for _, place, _ in found])
        all_words = [w for _, _, words in found for w in words]
        parts, joint.cost = _divided(all_words)
        joint.words, joint.units = (*all_words, parts), parts * len(found)
    return gone


def _operands(joint: Routine) -> list[tuple[Value, Value, tuple[int, ...]]]:
    """What is joined, where it goes, and its words."""
    words = [joint.words[i * EACH : (i + 1) * EACH] for i in range(len(joint.args))]
    return list(zip(joint.args, joint.parts, words, strict=True))


def close_of(rows: int) -> int:
    """Elements from one of so many rows to the next up to which shuffles put them together."""
    return CLOSE if rows < MANY else CLOSER


def _columns(k: Any, xs: Sequence[Value], dim: int) -> Sequence[Value]:
    """Pieces of unequal lengths as pieces of length 1, which one group puts together.

    Groups of their own would each go through all lines of the result: a roll of 333333 x 3 float64
    along its rows took 475 us so. What takes long to compute is not taken apart.
    """
    made = [p.node for x in xs for p in x.parts if p.node.args]
    if len({x.shape[dim] for x in xs}) == 1 or not all(map(is_light, made)):
        return xs
    found = []
    for x in xs:
        for at in range(x.shape[dim]):
            start, limit = [0] * x.ndim, list(x.shape)
            start[dim], limit[dim] = at, at + 1
            found.append(k.slice(x, start, limit, (1,) * x.ndim))
    return found


def _rows(x: Value, plain: Sequence[int], item: int) -> tuple[int, int, int, int] | None:
    """rows, bytes of one, steps in the operand and in the result, if two loops suffice."""
    loops = merged([(n, (a, b)) for n, a, b in zip(x.shape, bytes_of(x), plain, strict=True)])
    run = run_of(loops, item)
    if len(loops) > 1:
        return None
    rows, (step, pace) = loops[0] if loops else (1, (0, 0))
    return rows, run, step, pace
