"""Padding between elements, in one pass: rows of the result are put together in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Value
from primal.engines.cpu.routines.moves import bytes_of
from primal.engines.cpu.script import MEMORY_INT, Int, Place, Script, text
from primal.ir.avals import Aval

CLOSE = 8
"""Elements from one to the next up to which vectors are taken apart by shuffles."""
SHORTEST = 64
"""Bytes of a row from which one pass is faster than to fill rows and copy elements into them."""
BLOCK = 1 << 14
"""Bytes of the result that are a unit."""


@structure
class Gaps:
    """Rows of elements with a scalar before, after and between them, or of the scalar alone.

    `step`: elements from one to the next, where those of the operand lie side by side; 0 where it
    is a word. `rank`: dimensions in front of a row.

    Words: rows of the result and of a unit; units of a row, elements of the operand in one; of a
    row elements in the operand and in the result, place of the first, step, bytes between elements
    of the operand; per dimension in front: size, place of the first index that has elements, step,
    how many, bytes from one to the next in the operand.
    """

    item: int
    step: int
    rank: int

    def write(self, module: Module, name: str) -> None:
        s = Script(module, max(module.width // self.item, 2))
        t, item, lanes = MEMORY_INT[str(self.item)], self.item, s.lanes
        # No instruction shuffles elements of 16 bytes: they are two of 8.
        each_is = 2 if item == 16 else 1
        word = "i64" if item == 16 else t

        def shuffled(a: str, b: str, chosen: Sequence[int]) -> str:
            """Elements of vectors by number, those of the second behind those of the first."""
            mask = ", ".join(
                [f"i32 {n * each_is + k}" for n in chosen for k in range(each_is)]
            )
            wide = s.vec(word, lanes * each_is)
            return s.new(
                f"shufflevector {wide} {a}, {wide} {b}, <{len(chosen) * each_is} x i32> <{mask}>"
            )

        x, value, out = s.address(), s.address(), s.address()
        rows, block, parts, each, held, length, lead, step, stride = s.words(9)
        sizes, firsts, steps, counts, strides = [s.words(self.rank) for _ in range(5)]
        bits = s.read(t, value)
        every = s.splat(t, bits)
        if item == 16:
            every = s.new(f"bitcast {s.vec(t)} {every} to {s.vec(word, lanes * each_is)}")

        def fill(start: Place, total: Int) -> None:
            """So many bytes: vectors, of which the last two may overlap."""

            def by(count: int) -> None:
                if count == 1:
                    s.when(total.test("sgt", 0), lambda: s.write(t, bits, start))
                    return
                some = every
                if count < lanes:
                    some = shuffled(every, "poison", [0] * count)

                def put(i: Int | int) -> None:
                    s.write(s.vec(word, count * each_is), some, start + i)

                def yes() -> None:
                    if count == lanes:
                        s.each(0, total - count * item, put, count * item)
                    else:
                        put(0)
                    put(total - count * item)

                s.when(total.test("sge", count * item), yes, lambda: by(count // 2))

            by(lanes)

        def either(test: str, a: Int, b: Int | int) -> Int:
            return Int(s, s.new(f"select i1 {test}, i64 {a.name}, i64 {text(b)}"))

        def unit(u: Int) -> None:
            part, first = u % parts, u // parts * block
            begin = part * each
            end = (begin + each).least(held)
            # What belongs to this part of a row, and elements with room for the gap after them.
            place = begin * step + lead
            left = either(begin.test("sgt", 0), place, 0)
            right = either(end.test("eq", held), length, end * step + lead)
            roomy = ((right - place) // (self.step or step)).least(end - begin)
            by_vectors = roomy.test("sge", lanes) if self.step else "false"
            done = either(by_vectors, begin + roomy, begin)

            def row(r: Int) -> None:
                start, source, inside = out + r * length * item, x, "true"
                for index, low, by, count, pace in zip(
                    s.split(r, sizes), firsts, steps, counts, strides, strict=True
                ):
                    away = index - low
                    number = away // by
                    met = (number * by).test("eq", away)
                    known = number.test("ult", count)
                    inside = s.new(f"and i1 {inside}, {s.new(f'and i1 {met}, {known}')}")
                    source = source + number * pace

                def vector(i: Int) -> None:
                    read = s.read(s.vec(word, lanes * each_is), source + i * item)
                    to = start + (i * step + lead) * item
                    for j in range(self.step):
                        places = range(j * lanes, (j + 1) * lanes)
                        chosen = [
                            lanes + p % lanes if p % self.step else p // self.step for p in places
                        ]
                        made = shuffled(read, every, chosen)
                        s.write(s.vec(word, lanes * each_is), made, to + j * lanes * item)

                def vectors() -> None:
                    s.each(begin, done - lanes, vector, lanes)
                    vector(done - lanes)

                def one(i: Int) -> None:
                    s.write(t, s.read(t, source + i * stride), start + (i * step + lead) * item)

                def yes() -> None:
                    fill(start + left * item, (place - left) * item)
                    if self.step:
                        s.when(by_vectors, vectors)
                    from_here = done * step + lead
                    fill(start + from_here * item, (right - from_here) * item)
                    s.each(done, end, one)

                s.when(inside, yes, lambda: fill(start + left * item, (right - left) * item))

            s.each(first, (first + block).least(rows), row)

        s.units(unit)
        s.finish(name)


def pad(
    k: Any, x: Value, value: Value, aval: Aval, lead: Sequence[int], steps: Sequence[int]
) -> Value | None:
    """`value`, and the elements of x from `lead` on in steps; None where rows are short.

    All of x lies inside.
    """
    item = x.node.dtype.itemsize
    dims: list[tuple[int, int, int, int, int]] = []
    for m, first, step, n, pace in zip(aval.shape, lead, steps, x.shape, bytes_of(x), strict=True):
        if m == 1:
            continue
        if dims and first == 0 and step == 1 and m == n:
            # Without edges, it may be one with the dimension in front of it.
            m_before, first_before, step_before, n_before, pace_before = dims[-1]
            near = pace_before == pace * n or n_before == 1
            if step_before == 1 and near:
                dims[-1] = m_before * m, first_before * m, 1, n_before * n, pace
                continue
        dims.append((m, first, step, n, pace))
    if not dims or dims[-1][0] * item < SHORTEST:
        return None
    length, first, step, held, pace = dims.pop()
    near = step <= CLOSE and (pace == item or held == 1)
    rows = aval.size // length
    each = min(held, max(1, BLOCK // (step * item)))
    each = each if each == held else -(-each // 64) * 64
    parts, block = -(-held // each), max(1, BLOCK // (length * item))
    words = [rows, block, parts, each, held, length, first, step, pace]
    for column in zip(*dims, strict=True):
        words += column
    bytes_ = min(block, rows) * length * item // parts
    (out,) = k.routine(
        Gaps(item, step if near else 0, len(dims)), [x, value], [aval], words,
        units=-(-rows // block) * parts, cost=20 + bytes_ // (16 if near else 4 * item), name="pad",
    )  # fmt: skip
    return out
