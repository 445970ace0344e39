"""Products and extrema of few complex numbers to a row or column, and running words of short rows:
one of them in each lane.

How many numbers are reduced to one is an argument, from five on. They go one after another, so that
of equal ones the first stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import LINE, SCALAR, Module, itemsize
from primal.engines.cpu.complexes.vectors import Vectors
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels.turned_rows import LONGEST, SIDE, WIDEST, turn
from primal.engines.cpu.lanes import emit
from primal.engines.cpu.monoids import accumulator
from primal.engines.cpu.routines import turns
from primal.engines.cpu.routines.moves import held, name_of
from primal.engines.cpu.routines.scans import cumulative_few
from primal.engines.cpu.script import (
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)
from primal.ir.avals import Aval

WRITTEN = 4
"""Numbers whose words stand in the kernel that makes or reads them: products of 300,000 pairs of
complex64 160 to 80 us, the greatest of three sums 830 to 280. Of five and more a kernel would first
put the sums together anyway."""
SMALL = 256
"""Numbers of arrays that loops hold in registers, where words are written out too."""
EACH = 16
"""Vectors of a unit."""


def order_of(k: Any, x: Value) -> Sequence[int]:
    """The dimensions as numbers lie, or will."""
    return turns.lying_alike(*k.parts(x)) if type(x) is not Value else turns.lying(x)


def by_runs(
    k: Any, x: Value, axes: Sequence[int], order: Sequence[int], one: Callable[[Value], Value]
) -> Value:
    """Reductions over axes, those side by side in an order at once: `one` makes it of the middle
    dimension of three, which it leaves."""
    kept = [d for d in order if d not in axes]
    x = k.transpose(x, order)
    shape, reduced = list(x.shape), [order.index(d) for d in axes]
    while reduced:
        stop = max(reduced) + 1
        begin = stop - 1
        while begin - 1 in reduced:
            begin -= 1
        ends = shape[:begin], shape[begin:stop], shape[stop:]
        x = one(k.reshape(x, tuple([size_of(sizes) for sizes in ends])))
        del shape[begin:stop]
        reduced = [d for d in reduced if d < begin]
    out = k.reshape(x, tuple(shape))
    return k.transpose(out, [kept.index(d) for d in sorted(kept)])


def fold(k: Any, word: str, x: Value) -> Value:
    """What "mul", "max" or "min" makes of the middle dimension of three."""
    outer, n, inner = x.shape
    if n <= WRITTEN or (k.path and x.size <= SMALL):
        every = [k.slice(x, (0, i, 0), (outer, i + 1, inner), (1, 1, 1)) for i in range(n)]
        out: Value = reduce(partial(k.binary, word), every)
        return out
    return in_lanes(k, word, x)


def in_lanes(k: Any, word: str, x: Value) -> Value:
    """The same, by one kernel for any number."""
    outer, n, inner = x.shape
    part = PART[name_of(x)]
    width = _llvm.compiler().width // itemsize(part)
    if 1 < inner < width:
        x = k.reshape(k.dense(k.transpose(held(k, x), (0, 2, 1))), (outer * inner, n, 1))
        return k.reshape(in_lanes(k, word, x), (outer, 1, inner))
    x = k.dense(held(k, x))
    if inner == 1:
        return _of_rows(k, word, x, n, Aval((outer, 1, 1), x.dtype))
    blocks = -(-inner // (EACH * width))
    (out,) = k.routine(
        FoldsOfColumns(word, part), [x], [Aval((outer, 1, inner), x.dtype)],
        [n, inner, EACH * width, blocks], units=outer * blocks,
        cost=2 * n * min(EACH * width, inner), name=word,
    )  # fmt: skip
    return out


def is_short(k: Any, x: Value, axis: int) -> bool:
    """Whether what runs along an axis goes along short rows, that no loop holds in registers."""
    few = 1 < x.shape[axis] == size_of(x.shape[axis:]) <= LONGEST
    return few and not (k.path and x.size <= SMALL)


def running(k: Any, word: str, x: Value, axis: int, reverse: bool) -> Value:
    """What "add", "mul", "max" or "min" makes on its way along short rows."""
    if x.shape[axis] <= WRITTEN:
        return cumulative_few(k, x, word, axis, reverse)
    x = k.dense(held(k, x))
    return _of_rows(k, word, x, x.shape[axis], x.aval, True, reverse)


def _of_rows(k: Any, word: str, x: Value, n: int, aval: Aval, *how: bool) -> Value:
    """The result of a word of rows of n numbers."""
    part = PART[name_of(x)]
    lanes = max(_llvm.compiler().width // itemsize(part), SIDE)
    rows = x.size // n
    out: Value
    (out,) = k.routine(
        FoldsOfRows(word, part, lanes, *how), [x], [aval], [n, rows],
        units=-(-rows // (EACH * lanes)), cost=EACH * 2 * lanes * n, name=word,
    )  # fmt: skip
    return out


@structure
class FoldsOfRows:
    """Of each row of few numbers one, a row in each lane; see `turned_rows`. Or a `running` word of
    each, whose results lie as the numbers do; `reverse`: from the last one on.

    Words: numbers of a row, rows. A unit takes several vectors of rows.
    """

    word: str
    dtype: str
    lanes: int
    running: bool = False
    reverse: bool = False

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        s = Script(module, self.lanes)
        v = Vectors(s, self.dtype)
        x, out = s.address(), s.address()
        n, count = s.words(2)
        block = Place(s, s.on_stack(f"[{WIDEST * LINE} x i8], align {LINE}"))
        wide = accumulator(self.word, self.dtype)
        t = s.vec(SCALAR[wide])

        def converted(value: str, given: str, out: str) -> str:
            return value if given == out else emit(s, "convert", [given], out, [value])

        def parts(i: str) -> list[Place]:
            at = (n - Int(s, i) - 1 if self.reverse else Int(s, i)) * (2 * LINE)
            return [block + at, block + at + LINE]

        def column(i: str) -> list[str]:
            read = [read_vector(s, self.dtype, p) for p in parts(i)]
            return [converted(part, self.dtype, wide) for part in read]

        def one(i: str, now: list[str]) -> list[str]:
            found = v.folded(self.word, now, column(i))
            if self.running:
                for p, part in zip(parts(i), found, strict=True):
                    write_vector(s, self.dtype, converted(part, wide, self.dtype), p)
            return [*found]

        def some(first: Int) -> None:
            at = first * (2 * itemsize(self.dtype))
            sizes = (n * 2).name, (count - first).name, block.name
            turn(s, True, self.dtype, (x + at * n).name, *sizes)
            # Sums begin with 0, as those of floats: of -0 they are 0.
            sums = self.word == "add"
            first_parts = ["zeroinitializer"] * 2 if sums else column("0")
            begin = [(t, part) for part in first_parts]
            found = s.loop("0" if sums else "1", n.name, "1", begin, one)
            if self.running:
                turn(s, False, self.dtype, (out + at * n).name, *sizes)
                return
            v.write((found[0], found[1]), out, first.name, lanes_before(s, count - first))

        def unit(u: Int) -> None:
            first = u * (EACH * s.lanes)
            s.each(first, (first + EACH * s.lanes).least(count), some, s.lanes)

        s.units(unit)
        s.finish(name)


@structure
class FoldsOfColumns:
    """Of each column of few numbers one.

    Words: numbers of a column, columns, columns of a unit, units side by side.
    """

    word: str
    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        s = Script(module, module.width // itemsize(self.dtype))
        v = Vectors(s, self.dtype)
        x, out = s.address(), s.address()
        n, inner, each, blocks = s.words(4)
        item = 2 * itemsize(self.dtype)

        def unit(u: Int) -> None:
            outer, block = s.split(u, [Int(s, "0"), blocks])
            begin = block * each
            here, to = x + outer * n * inner * item, out + outer * inner * item

            def some(first: Int) -> None:
                mask = lanes_before(s, inner - first)

                def number(i: str) -> tuple[str, str]:
                    return v.read(here, (Int(s, i) * inner + first).name, mask)

                found = s.loop(
                    "1", n.name, "1", [(v.t, part) for part in number("0")],
                    lambda i, now: [*v.folded(self.word, now, number(i))],
                )  # fmt: skip
                v.write((found[0], found[1]), to, first.name, mask)

            s.each(begin, (begin + each).least(inner), some, s.lanes)

        s.units(unit)
        s.finish(name)
