"""Windows at scalar starts known at run time: read from an array, or several one after another, or
written into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import LINE, Module
from primal.engines.cpu.graph import (
    IN_REGISTERS,
    NAMES,
    NATIVE,
    Value,
    broadcast,
    row_major,
    size_of,
    transposed,
)
from primal.engines.cpu.kernels.takes import clamped
from primal.engines.cpu.plan import repeats
from primal.engines.cpu.plan.around import along_all, written_within
from primal.engines.cpu.routines import turns
from primal.engines.cpu.routines.moves import (
    REGISTER,
    SHARED,
    bytes_of,
    element_at,
    flat,
    held,
    index_name,
    merged,
    run_of,
)
from primal.engines.cpu.routines.pieces import (
    CLOSE,
    MOST_PARTS,
    PART,
    concatenate,
    rows_of,
)
from primal.engines.cpu.script import MEMORY_INT, Copy, Int, Place, Script, copying
from primal.ir.avals import Aval

UINT32 = np.dtype(np.uint32)
CHOICES, MANY = 8, 1024
"""Elements among which single ones are chosen, and results from which they are."""


def _shared(total: int, run: int) -> tuple[int, int]:
    """The parts that so many bytes in runs are copied in, and nanoseconds for one."""
    cost = total // run * 2 + total // 16
    parts = max(1, min(MOST_PARTS, cost // PART))
    return parts, cost // parts


@structure
class Window:
    """A window copied out of an array at clamped starts, or into it (`puts`).

    Words: bytes of a run; parts of the outermost loop, or of the run where there is none, each of
    which is a unit; bytes in front of the window by what is known of its place; per start its
    greatest value and its step; loops (part, big).
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
        run, parts, ahead = s.words(3)
        limits = [s.words(2) for _ in range(self.starts)]
        sizes = s.words(self.rank)
        strides = [s.words(self.rank) for _ in range(2)]

        def unit(u: Int) -> None:
            here = (out if self.puts else big) + ahead
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


@structure
class Span:
    """Rows cut out of arrays that lie one after another along them, from a clamped start on.

    One code for any number of arrays. Words: rows of the result, bytes of one; parts of the rows
    and of each, whose products are units; greatest start, its step in bytes; per array: bytes in
    front of it in a joint row, bytes of its own, and from row to row.
    """

    index: str

    def write(self, module: Module, name: str) -> None:
        s = Script(module)
        # All but 5 words for each array: 6 of the header, 2 of the start, of the result, 6.
        count = (s.length() - 16) // 5
        start, arrays = s.address(), s.at
        here = count * 2 + arrays
        out = s.slot(s.numbered(here), s.numbered(here + 1))
        rows, length, blocks, parts, limit, step = [s.numbered(here + 2 + j) for j in range(6)]

        def unit(u: Int) -> None:
            each = (rows + blocks - 1) // blocks
            first = (u // parts * each).least(rows)
            last = (first + each).least(rows)
            each = (length + parts - 1) // parts
            low = (u % parts * each).least(length)
            high = (low + each).least(length)
            ahead = s.integer(self.index, start).most(0).least(limit) * step

            def array(n: Int) -> None:
                before, run, pace = [s.numbered(here + 8 + n * 3 + j) for j in range(3)]
                left, right = (ahead + low).most(before), (ahead + high).least(before + run)
                slot, size = n * 2 + arrays, right - left
                source = s.slot(s.numbered(slot), s.numbered(slot + 1)) + (left - before)
                to = out + (left - ahead)

                def take(copy: Copy) -> None:
                    s.each(first, last, lambda i: copy(to + i * length, source + i * pace))

                s.when(size.test("sgt", 0), lambda: copying(s, size, take))

            s.each(0, count, array)

        s.units(unit)
        s.finish(name)


def known(x: Value) -> int | None:
    """The value of an integer literal."""
    if x.node.word != "literal":
        return None
    return int(np.frombuffer(x.node.attr, x.node.dtype)[0])


def progression(x: Value, left: int = 4) -> tuple[int, tuple[int, ...]] | None:
    """The first of integers and, along each dimension, the step from one to the next, where they
    are known: numbers and counts, or so many words of such."""
    node, steps = x.node, x.steps()
    if node.dtype.kind not in "iu":
        return None
    number = known(x)
    if number is not None:
        return number, (0,) * x.ndim
    first, pace = 0, (1,)
    if left and node.word in ("add", "mul", "convert"):
        terms = [progression(a, left - 1) for a in node.args]
        if terms[0] is None:
            return None
        first, pace = terms[0]
        for term in terms[1:]:
            if term is None or (node.word == "mul" and any(pace) and any(term[1])):
                return None
            number, others = term
            both = zip(pace, others, strict=True)
            if node.word == "add":
                first, pace = first + number, tuple([a + b for a, b in both])
            else:
                pace = tuple([a * number + first * b for a, b in both])
                first *= number
    elif node.word != "iota":
        return None
    ends = np.iinfo(node.dtype)
    far = [step * (n - 1) for step, n in zip(pace, node.shape, strict=True)]
    low, high = [first + sum([f(i, 0) for i in far]) for f in (min, max)]
    if not ends.min <= low <= high <= ends.max:
        return None
    if x.is_node and x.shape == node.shape:
        return first, pace
    if len(pace) != 1:
        return None
    return first + pace[0] * x.offset, tuple([pace[0] * s for s in steps])


def _moving(
    k: Any, x: Value, sizes: Sequence[int], starts: Sequence[Value], repeats: bool = True
) -> tuple[list[int], list[tuple[int, Value]]]:
    """What is known of clamped starts, and (dimension, start) of the others.

    Where one begins to read what `repeats` makes no difference.
    """
    fixed, moving = [0] * x.ndim, []
    for d, (n, size, start) in enumerate(zip(x.shape, sizes, starts, strict=True)):
        value = known(start)
        if value is not None:
            fixed[d] = min(max(value, 0), n - size)
        elif n > size and not (repeats and x.steps()[d] == 0):
            moving.append((d, held(k, start)))
    return fixed, moving


def dynamic_slice(k: Any, x: Value, starts: Sequence[Value], sizes: tuple[int, ...]) -> Value:
    """x[start : start + size]; a view where all starts are known."""
    fixed, moving = _moving(k, x, sizes, starts)
    if moving:
        x = held(k, x)
    whole = [n if d in [m for m, _ in moving] else size
             for d, (n, size) in enumerate(zip(x.shape, sizes, strict=True))]  # fmt: skip
    if any(n != m for n, m in zip(whole, x.shape, strict=True)):
        limit = [a + n for a, n in zip(fixed, whole, strict=True)]
        x = k.slice(x, tuple(fixed), tuple(limit), (1,) * x.ndim)
    if not moving:
        return x
    if len(moving) == 1:
        ((d, start),) = moving
        made = k.joined.get(x.node) if x.is_node and x.node is k.once else None
        arrays = made[1] if made is not None and made[0] == d else [x]
        found = _chosen(k, arrays, d, start, sizes) or _cut(k, arrays, d, start, sizes)
        if found is not None:
            return found
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
    words = [run, parts, 0]
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


def _chosen(
    k: Any, arrays: Sequence[Value], d: int, start: Value, sizes: tuple[int, ...]
) -> Value | None:
    """A window of few elements that share lines, each chosen among all that it may be; else None.

    A group reads these by shuffles: one column of 333333 x 3 int8 from a start on took 210 us
    element by element.
    """
    dtype, count = arrays[0].dtype, sum([x.shape[d] for x in arrays])
    if count > CHOICES or size_of(sizes) < MANY or dtype not in NAMES:
        return None
    if dtype == np.float16 and not _llvm.compiler().half:
        return None
    if any(abs(x.steps()[d]) * x.node.dtype.itemsize > REGISTER for x in arrays):
        return None
    cases = [element_at(k, x, d, i) for x in arrays for i in range(x.shape[d])]
    made = []
    before = [k.binary("le", start, k.literal(i, start.dtype)) for i in range(count - sizes[d])]
    for j in range(sizes[d]):
        found = cases[j + len(before)]
        for i in reversed(range(len(before))):
            found = k.select_n(broadcast(before[i], found.shape, ()), found, cases[j + i])
        made.append(found)
    return concatenate(k, made, d)


def _cut(
    k: Any, arrays: Sequence[Value], d: int, start: Value, sizes: tuple[int, ...]
) -> Value | None:
    """A window of arrays one after another, without an array of them all; None of few elements.

    So a roll by a number known at run time moves everything once.
    """
    if len(arrays) == 1 or size_of(sizes) < turns.LEAST:
        return None
    orders = {turns.by_steps(x) for x in arrays}
    order = orders.pop() if len(orders) == 1 else tuple(range(len(sizes)))
    shape, at = [sizes[i] for i in order], order.index(d)
    joint = [*shape[:at], sum([x.shape[d] for x in arrays]), *shape[at + 1 :]]
    item = arrays[0].dtype.itemsize
    plain = [n * item for n in row_major(joint)]
    given, words, before = [start], [], 0
    for x in arrays:
        x = held(k, transposed(x, order))
        run = x.shape[at] * plain[at]
        part = rows_of(x, plain, item)
        if part is None or part[1] != run:
            x = k.dense(x)
            part = rows_of(x, plain, item)
            assert part is not None
        given.append(x)
        words += [before, run, part[2]]
        before += run
    rows, length = size_of(shape[:at]), shape[at] * plain[at]
    parts, cost = _shared(rows * length, length)
    split = (parts, 1) if rows >= parts else (1, parts)
    limit = joint[at] - shape[at]
    (out,) = k.routine(
        Span(index_name(start)), given, [Aval(tuple(shape), arrays[0].dtype)],
        [rows, length, *split, limit, plain[at], *words], units=parts, cost=cost,
        name="dynamic_slice",
    )  # fmt: skip
    return transposed(out, [order.index(i) for i in range(len(order))])


def dynamic_update_slice(k: Any, x: Value, part: Value, starts: Sequence[Value]) -> Value:
    """x with `part` written at clamped starts."""
    if part.shape == x.shape:
        return part
    fixed, moving = _moving(k, x, part.shape, starts, repeats=False)
    cut = [d for d, (n, m) in enumerate(zip(x.shape, part.shape, strict=True)) if n != m]
    once = repeats.moved(k, (x, part), cut, lambda xs: k.dynamic_update_slice(*xs, starts))
    if once is not None:
        return once
    numbers = x.node.word == part.node.word == "literal"
    if numbers and IN_REGISTERS < x.size < 1 << 31:
        return _numbers(k, x, part, fixed, moving)
    if k.outer and x.ndim == 1 and not moving:
        within = written_within(k, x, part, fixed[0])
        if within is not None:
            return within
    if not (k.outer or moving):
        joined = _between(k, x, part, fixed)
        if joined is not None:
            return joined
    if len(cut) == len(moving) == 1 and not k.path and _is_column(x, part, cut[0]):
        return _column(k, x, part, *moving[0])
    if part.size > SHARED and part.steps()[-1] > 1:
        part = k.copy(part)  # by vectors
    x, part = held(k, x), held(k, part)
    item = x.node.dtype.itemsize
    plain = [n * item for n in row_major(x.shape)]
    own = bytes_of(part)
    loops = merged([(n, (p, o)) for n, p, o in zip(part.shape, own, plain, strict=True)])
    run = run_of(loops, item)
    parts, cost = _shared(part.size * item, run)
    words = [run, parts, sum([a * p for a, p in zip(fixed, plain, strict=True)])]
    given = [s for _, s in moving]
    for d, _ in moving:
        words += [x.shape[d] - part.shape[d], plain[d]]
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


def _is_column(x: Value, part: Value, d: int) -> bool:
    """Whether a part is one of a few long columns, whatever their order."""
    few = x.shape[d] <= CHOICES and part.shape[d] == 1
    return few and part.size >= MANY and x.dtype in NATIVE and part.dtype in NATIVE


def _column(k: Any, x: Value, part: Value, d: int, start: Value) -> Value:
    """One of few columns written: a choice, as all lines are touched anyway.

    One of 333333 x 3 int8 from a start on took 207 us element by element, so 33, of float32 300 and
    166 (JAX 127 and 285). Loops write in place.
    """
    n = x.shape[d]
    start = clamped(k, start, n)
    here = k.binary("eq", k.iota((n,), start.dtype, 0), broadcast(start, (n,), ()))
    whole = broadcast(part, x.shape, range(x.ndim))
    out: Value = k.select_n(broadcast(here, x.shape, (d,)), x, whole)
    return out


def _numbers(
    k: Any, x: Value, part: Value, fixed: Sequence[int], moving: Sequence[tuple[int, Value]]
) -> Value:
    """A number with another one in a window: a choice by where elements lie.

    Cotangents of sums are such: the gradient of the sum of half of the rows of 1000 x 1000 float64,
    transposed, 940 to 85 us.
    """
    inside, starts = {}, dict(moving)
    for d, (n, size) in enumerate(zip(x.shape, part.shape, strict=True)):
        if n == size:
            continue
        start = starts.get(d)
        if start is None:
            begin = k.literal(fixed[d], UINT32, (d, "start"))
        else:
            begin = k.convert(clamped(k, start, n - size + 1), UINT32)
        place = k.binary("sub", k.iota((n,), UINT32, 0), broadcast(begin, (n,), ()))
        inside[d] = k.binary("lt", place, k.literal(size, UINT32, (d, "size")))
    numbers = [Value(v.node, (), v.logical) for v in (x, part)]
    out: Value = k.select_n(along_all(k, inside, x.shape), *numbers)
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
