"""Padding: what is put together as it is read, by groups, as a concatenation, or by a routine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import (
    IN_REGISTERS,
    Value,
    is_zero,
    native,
    row_major,
    size_of,
    transposed,
)
from primal.engines.cpu.plan.around import is_made, number_padded, padded_around, padded_row
from primal.engines.cpu.plan.partial import is_light
from primal.engines.cpu.routines import gaps, turns
from primal.engines.cpu.routines.moves import bytes_of, element_at, flat, held, merged, run_of
from primal.engines.cpu.routines.pieces import CLOSE, close_of, concatenate
from primal.engines.cpu.script import MEMORY_INT, Copy, Int, Script, copying
from primal.ir.avals import Aval

BLOCK = 1 << 14
"""Bytes of a padded array that are a unit: filled, then copied into while they are at hand."""


@structure
class Pad:
    """The result filled with a scalar, then an array copied into it, block after block.

    Words: rows of the result and of a block, bytes of one; of the array the first row in the
    result, how many, bytes from one to the next; of its place in a row offset, bytes of a run and
    loops (x, out).
    """

    item: int
    runs: bool
    rank: int

    def write(self, module: Module, name: str) -> None:
        s = Script(module, max(module.width // self.item, 1))
        x, value, out = s.address(), s.address(), s.address()
        rows, block, pace, low, held, step, offset, run = s.words(8)
        sizes = s.words(self.rank)
        strides = [s.words(self.rank) for _ in range(2)]
        t = MEMORY_INT[str(self.item)]
        bits = s.read(t, value)

        def unit(u: Int) -> None:
            first = u * block
            last = (first + block).least(rows)
            start, total = out + first * pace, (last - first) * pace
            every, width = s.splat(t, bits), s.lanes * self.item

            def fill(i: Int) -> None:
                s.write(s.vec(t), every, start + i)

            def by_vectors() -> None:
                s.each(0, total - width, fill, width)
                fill(total - width)

            def by_elements() -> None:
                s.each(0, total, lambda i: s.write(t, bits, start + i), self.item)

            s.when(total.test("sge", width), by_vectors, by_elements)

            def take(copy: Copy) -> None:
                def row(i: Int) -> None:
                    places = [x + i * step, out + (i + low) * pace + offset]
                    s.nest(sizes, strides, places, lambda ps: copy(ps[1], ps[0]))

                s.each((first - low).most(0), (last - low).least(held), row)

            if self.runs:
                copying(s, run, take)
            else:
                take(lambda to, source: s.write(t, s.read(t, source), to))

        s.units(unit)
        s.finish(name)


LONG = 16
"""Elements of a row from which who computes it had better write it where it belongs."""


def _is_made_by_rows(x: Value, dim: int) -> bool:
    """Whether a group computes the array in the rows that a concatenation is made of."""
    return is_made(x) and size_of(x.shape[dim:]) >= LONG


def pad(k: Any, x: Value, value: Value, config: Sequence[tuple[int, int, int]]) -> Value:
    """x with `value` before, after and between its elements; negative edges crop."""
    # There is nothing between the elements of one.
    config = [
        (low, high, mid * (n > 1)) for n, (low, high, mid) in zip(x.shape, config, strict=True)
    ]
    if all(max(c) <= 0 for c in config):
        limit = [n + hi for n, (_, hi, _) in zip(x.shape, config, strict=True)]
        return k.slice(x, [-lo for lo, _, _ in config], limit, (1,) * x.ndim)
    shape = tuple(
        [
            lo + hi + n + max(n - 1, 0) * mid
            for n, (lo, hi, mid) in zip(x.shape, config, strict=True)
        ]
    )
    padded = [d for d, c in enumerate(config) if any(c)]
    d = padded[0]
    low, high, between = config[d]
    plainly = _is_plain(config)
    in_rows = not is_one_run(x, config)
    if x.node.word == "literal" and in_rows and IN_REGISTERS < size_of(shape) < 1 << 31:
        return number_padded(k, x, value, config, shape)
    zero = is_zero(value)
    if zero and native(x.dtype) is not None:
        found = _as_read(k, x, config)
        if found is not None:
            return found
    if zero and padded == [x.ndim - 1] and not _is_made_by_rows(x, x.ndim - 1):
        found = padded_row(k, x, *config[-1])
        if found is not None:
            return found
    if x.ndim - 1 in padded and _is_close(x, shape):
        return pad(k, _columns(k, x, value, config[-1]), value, [*config[:-1], (0, 0, 0)])
    if plainly and (not in_rows or _is_made_by_rows(x, d)):
        edges = [
            k.broadcast_in_dim(value, (*x.shape[:d], n, *x.shape[d + 1 :]), ()) for n in (low, high)
        ]
        out = concatenate(k, [edges[0], x, edges[1]], d)
        if zero and out.is_node:
            k.padded[out.node] = (d, [(low, low + x.shape[d], x)], True)
        return out
    short = x.shape[-1] * (between + 1) * x.node.dtype.itemsize < gaps.SHORTEST
    in_turn = padded == [x.ndim - 1] and 0 <= low <= between == low + high < CLOSE
    if in_turn and x.size > 1 and (short or is_made(x)):
        # As of x[::2]: elements and gaps take turns.
        edges = [k.broadcast_in_dim(value, (*x.shape, n), ()) for n in (low, high)]
        out = concatenate(k, [edges[0], k.reshape(x, (*x.shape, 1)), edges[1]], x.ndim)
        return k.reshape(out, (*x.shape[:-1], x.shape[-1] * (between + 1)))
    if zero and native(x.dtype) is not None and is_made(x):
        # What several equations read is in memory: the derivative of a stencil pads one cotangent
        # for each neighbour (of the Laplacian of 1000 x 1000 1,750 to 570 µs, JAX 1,000).
        found = _as_read(k, x, config, stored=True)
        if found is not None:
            return found
    given, x, value = x, held(k, x), held(k, value)
    item = x.node.dtype.itemsize
    plain = [n * item for n in row_major(shape)]
    start, stop, offset, paces = [], [], 0, []
    for n, m, p, (lo, _, mid) in zip(x.shape, shape, plain, config, strict=True):
        step = mid + 1
        # Elements i with 0 <= lo + i·step < m land in the result.
        first = max(0, -(lo // step)) if lo < 0 else 0
        last = min(n - 1, (m - 1 - lo) // step)
        if last < first:
            return k.broadcast_in_dim(value, shape, ())
        start.append(first)
        stop.append(last + 1)
        offset += (lo + first * step) * p
        paces.append(step * p)
    inner = k.slice(x, tuple(start), tuple(stop), (1,) * x.ndim)
    if any(mid for *_, mid in config):
        lead = [lo + i * (mid + 1) for i, (lo, _, mid) in zip(start, config, strict=True)]
        steps = [mid + 1 for *_, mid in config]
        found = gaps.pad(k, inner, value, Aval(shape, x.dtype), lead, steps)
        if found is not None:
            return found
    steps = [p // item for p in paces]
    if turns.has_squares(inner, steps):
        whole = k.copy(k.broadcast_in_dim(value, shape, ()))
        out = turns.turned_into(k, inner, shape, steps, offset // item, whole)
    else:
        out = _filled(k, inner, value, shape, config, paces, offset)
    if plainly and zero:
        k.padded[out.node] = (d, [(low, low + x.shape[d], given)], True)
    return out


def is_one_run(x: Value, config: Sequence[tuple[int, int, int]]) -> bool:
    """Whether what is padded lies side by side, with edges before and behind all of it."""
    padded = [any(c) for c in config]
    return _is_plain(config) and size_of(x.shape[: padded.index(True)]) == 1


def _is_plain(config: Sequence[tuple[int, int, int]]) -> bool:
    """Whether there are edges along one dimension, and nothing else."""
    padded = [c for c in config if any(c)]
    return len(padded) == 1 and min(padded[0]) >= 0 == padded[0][2]


def _as_read(
    k: Any, x: Value, config: Sequence[tuple[int, int, int]], stored: bool = False
) -> Value | None:
    """Padded as it is read, and as it lies: the group that reads or stores that turns it."""
    order = turns.across(x)
    lain = [config[d] for d in order]
    found = padded_around(k, transposed(x, order), lain, stored=stored)
    return found and transposed(found, [order.index(d) for d in range(x.ndim)])


def _is_close(x: Value, shape: Sequence[int]) -> bool:
    """Whether many short rows are padded, of what is in memory or light to compute."""
    made = [p.node for p in x.parts if p.node.args]
    near = x.shape[-1] <= CLOSE and shape[-1] <= close_of(size_of(shape[:-1]))
    return near and x.size >= turns.LEAST and all(map(is_light, made))


def _columns(k: Any, x: Value, value: Value, edges: tuple[int, int, int]) -> Value:
    """Padded rows of columns, which one group puts together in registers.

    Filled rows and copies of few bytes in them take twice as long (one column before and two after
    the three of 333333 float32 335 to 172 us, of int8 260 to 137).
    """
    d, n, (low, high, between) = x.ndim - 1, x.shape[-1], edges
    edge = k.broadcast_in_dim(value, (*x.shape[:d], 1), ())
    columns = []
    for j in range(low + high + n + (n - 1) * between):
        i, gap = divmod(j - low, between + 1)
        is_edge = gap or not 0 <= i < n
        columns.append(edge if is_edge else element_at(k, x, d, i))
    out = concatenate(k, columns, d)
    if is_zero(value) and min(low, high) >= 0 == between and out.is_node:
        k.padded[out.node] = (d, [(low, low + n, x)], True)
    return out


def _filled(
    k: Any, x: Value, value: Value, shape: tuple[int, ...], config: Sequence[Sequence[int]],
    paces: Sequence[int], offset: int,
) -> Value:
    """An array of a value, and x in it from so many bytes on, at such distances."""
    item = x.node.dtype.itemsize
    kept = [d for d, n in enumerate(shape) if n > 1]
    if x.size >= turns.LEAST and turns.is_apart(x) and paces[-1] == item:
        x = k.dense(x)  # a group does by vectors what goes element by element here
    own = bytes_of(x)
    dims = [(x.shape[d], (own[d], paces[d])) for d in kept]
    # Rows: what lies in front of all edges as one loop, else the first dimension, else the whole.
    free = next((i for i, d in enumerate(kept) if any(config[d])), len(kept))
    front = merged(dims[:free])
    if len(front) == 1:
        (held_rows, (step, pace)), first_row, rows = front[0], 0, front[0][0]
        dims = dims[free:]
    elif kept and not config[kept[0]][2]:
        (held_rows, (step, pace)), first_row = dims.pop(0), max(config[kept[0]][0], 0)
        rows = shape[kept[0]]
    else:
        held_rows, step, pace, first_row, rows = 1, 0, size_of(shape) * item, 0, 1
    loops = merged(dims)
    run = run_of(loops, item)
    block = max(1, BLOCK // pace)
    (out,) = k.routine(
        Pad(item, run > item, len(loops)), [x, value], [Aval(shape, x.dtype)],
        [rows, block, pace, first_row, held_rows, step, offset - first_row * pace, run]
        + flat(loops),
        units=-(-rows // block), cost=20 + min(rows, block) * pace // 8, name="pad",
    )  # fmt: skip
    filled: Value = out
    steps = tuple([p // item for p in paces])
    k.order[-1].within = filled.view(x.shape, steps, offset // item)
    return filled
