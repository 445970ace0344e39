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
        _GapsCode(module, self).function(name)


class _GapsCode:
    """The code: a row is filled up to the first element, put together by vectors, and filled."""

    def __init__(self, module: Module, spec: Gaps) -> None:
        self.spec, self.item = spec, spec.item
        self.s = s = Script(module, max(module.width // spec.item, 2))
        self.t = MEMORY_INT[str(spec.item)]
        # No instruction shuffles elements of 16 bytes: they are two of 8.
        self.words = 2 if spec.item == 16 else 1
        self.word = "i64" if spec.item == 16 else self.t
        self.wide = s.vec(self.word, s.lanes * self.words)
        self.x, value, self.out = s.address(), s.address(), s.address()
        self.rows, self.block, self.parts, self.each = s.words(4)
        self.held, self.length, self.lead, self.step, self.stride = s.words(5)
        self.fronts = list(zip(*[s.words(spec.rank) for _ in range(5)], strict=True))
        self.bits = s.read(self.t, value)
        self.every = s.splat(self.t, self.bits)
        if spec.item == 16:
            self.every = s.new(f"bitcast {s.vec(self.t)} {self.every} to {self.wide}")

    def function(self, name: str) -> None:
        self.s.units(self._unit)
        self.s.finish(name)

    def _shuffled(self, a: str, b: str, chosen: Sequence[int]) -> str:
        """Elements of vectors by number, those of the second behind those of the first."""
        numbers = [f"i32 {n * self.words + k}" for n in chosen for k in range(self.words)]
        mask = f"<{len(numbers)} x i32> <{', '.join(numbers)}>"
        return self.s.new(f"shufflevector {self.wide} {a}, {self.wide} {b}, {mask}")

    def _fill(self, start: Place, total: Int) -> None:
        """So many bytes: vectors, of which the last two may overlap."""
        s, item = self.s, self.item

        def by(count: int) -> None:
            if count == 1:
                s.when(total.test("sgt", 0), lambda: s.write(self.t, self.bits, start))
                return
            some = self.every
            if count < s.lanes:
                some = self._shuffled(self.every, "poison", [0] * count)

            def put(i: Int | int) -> None:
                s.write(s.vec(self.word, count * self.words), some, start + i)

            def yes() -> None:
                if count == s.lanes:
                    s.each(0, total - count * item, put, count * item)
                else:
                    put(0)
                put(total - count * item)

            s.when(total.test("sge", count * item), yes, lambda: by(count // 2))

        by(s.lanes)

    def _unit(self, u: Int) -> None:
        s, spec = self.s, self.spec
        part, first = u % self.parts, u // self.parts * self.block
        begin = part * self.each
        end = (begin + self.each).least(self.held)
        # What belongs to this part of a row, and elements with room for the gap after them.
        place = begin * self.step + self.lead
        left = self._either(begin.test("sgt", 0), place, 0)
        right = self._either(end.test("eq", self.held), self.length, end * self.step + self.lead)
        roomy = ((right - place) // (spec.step or self.step)).least(end - begin)
        by_vectors = roomy.test("sge", s.lanes) if spec.step else "false"
        done = self._either(by_vectors, begin + roomy, begin)

        def row(r: Int) -> None:
            start = self.out + r * self.length * self.item
            source, inside = self._source(r)

            def one(i: Int) -> None:
                element = s.read(self.t, source + i * self.stride)
                s.write(self.t, element, start + (i * self.step + self.lead) * self.item)

            def yes() -> None:
                self._fill(start + left * self.item, (place - left) * self.item)
                if spec.step:
                    s.when(by_vectors, lambda: self._by_vectors(source, start, begin, done))
                from_here = done * self.step + self.lead
                self._fill(start + from_here * self.item, (right - from_here) * self.item)
                s.each(done, end, one)

            s.when(
                inside, yes,
                lambda: self._fill(start + left * self.item, (right - left) * self.item),
            )  # fmt: skip

        s.each(first, (first + self.block).least(self.rows), row)

    def _either(self, test: str, a: Int, b: Int | int) -> Int:
        return Int(self.s, self.s.new(f"select i1 {test}, i64 {a.name}, i64 {text(b)}"))

    def _source(self, r: Int) -> tuple[Place, str]:
        """Where a row's elements are, and whether it has any."""
        s, source, inside = self.s, self.x, "true"
        index_of = s.split(r, [size for size, *_ in self.fronts])
        for index, (_, low, by, count, pace) in zip(index_of, self.fronts, strict=True):
            away = index - low
            number = away // by
            met = (number * by).test("eq", away)
            known = number.test("ult", count)
            inside = s.new(f"and i1 {inside}, {s.new(f'and i1 {met}, {known}')}")
            source = source + number * pace
        return source, inside

    def _by_vectors(self, source: Place, start: Place, begin: Int, end: Int) -> None:
        """Elements, each with the gap after it; the last vector may overlap the one before."""
        s, item, step, lanes = self.s, self.item, self.spec.step, self.s.lanes

        def vector(i: Int) -> None:
            read = s.read(self.wide, source + i * item)
            to = start + (i * self.step + self.lead) * item
            for j in range(step):
                places = range(j * lanes, (j + 1) * lanes)
                chosen = [lanes + p % lanes if p % step else p // step for p in places]
                s.write(self.wide, self._shuffled(read, self.every, chosen), to + j * lanes * item)

        s.each(begin, end - lanes, vector, lanes)
        vector(end - lanes)


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
