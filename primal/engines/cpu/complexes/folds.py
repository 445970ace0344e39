"""Products and extrema of few complex numbers to a row or column: one of them in each lane.

How many numbers are reduced to one is an argument, from five on. They go one after another, so that
of equal ones the first stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import LINE, Module, itemsize
from primal.engines.cpu.complexes.vectors import Vectors
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels.turned_rows import SIDE, WIDEST, turn
from primal.engines.cpu.routines import turns
from primal.engines.cpu.routines.moves import held, name_of
from primal.engines.cpu.script import Int, Place, Script, lanes_before, read_vector
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
    part = PART[name_of(x)]
    width = _llvm.compiler().width // itemsize(part)
    if 1 < inner < width:
        x = k.reshape(k.dense(k.transpose(held(k, x), (0, 2, 1))), (outer * inner, n, 1))
        return k.reshape(fold(k, word, x), (outer, 1, inner))
    x = k.dense(held(k, x))
    if inner == 1:
        lanes = max(width, SIDE)
        (out,) = k.routine(
            FoldsOfRows(word, part, lanes), [x], [Aval((outer, 1, 1), x.dtype)], [n, outer],
            units=-(-outer // (EACH * lanes)), cost=EACH * 2 * lanes * n, name=word,
        )  # fmt: skip
        return out
    blocks = -(-inner // (EACH * width))
    (out,) = k.routine(
        FoldsOfColumns(word, part), [x], [Aval((outer, 1, inner), x.dtype)],
        [n, inner, EACH * width, blocks], units=outer * blocks,
        cost=2 * n * min(EACH * width, inner), name=word,
    )  # fmt: skip
    return out


@structure
class FoldsOfRows:
    """Of each row of few numbers one, a row in each lane; see `turned_rows`.

    Words: numbers of a row, rows. A unit takes several vectors of rows.
    """

    word: str
    dtype: str
    lanes: int

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        s = Script(module, self.lanes)
        v = Vectors(s, self.dtype)
        x, out = s.address(), s.address()
        n, count = s.words(2)
        block = Place(s, s.on_stack(f"[{WIDEST * LINE} x i8], align {LINE}"))

        def some(first: Int) -> None:
            here = x + first * n * (2 * itemsize(self.dtype))
            turn(s, True, self.dtype, here.name, (n * 2).name, (count - first).name, block.name)

            def column(i: Int) -> list[str]:
                parts = block + i * (2 * LINE), block + i * (2 * LINE) + LINE
                return [read_vector(s, self.dtype, p) for p in parts]

            found = _one_after_another(v, self.word, n, column)
            v.write(found, out, first.name, lanes_before(s, count - first))

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
                found = _one_after_another(
                    v, self.word, n, lambda i: v.read(here, (i * inner + first).name, mask)
                )
                v.write(found, to, first.name, mask)

            s.each(begin, (begin + each).least(inner), some, s.lanes)

        s.units(unit)
        s.finish(name)


def _one_after_another(
    v: Vectors, word: str, n: Int, number: Callable[[Int], Sequence[str]]
) -> tuple[str, str]:
    """The first of n numbers with the second, and so on."""
    s = v.s
    re, im = s.loop(
        "1", n.name, "1", [(v.t, part) for part in number(Int(s, "0"))],
        lambda i, now: [*v.folded(word, now, number(Int(s, i)))],
    )  # fmt: skip
    return re, im
