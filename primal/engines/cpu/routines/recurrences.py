"""out[k] = a[k]·out[k - 1] + b[k] along one axis, as a routine.

An array is seen as [outer, n, inner]. With inner = 1 four rows go together, otherwise four vectors
of columns: a number waits eight cycles for the one before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu._llvm import compiler
from primal.engines.cpu.code import SCALAR, Module, itemsize
from primal.engines.cpu.functions.fading import Times, fading
from primal.engines.cpu.functions.floats import Floats
from primal.engines.cpu.graph import Value, is_narrow, size_of
from primal.engines.cpu.lanes import constant, emit, select
from primal.engines.cpu.routines.moves import ROUND, element_at, held, name_of
from primal.engines.cpu.routines.scans import has_few
from primal.engines.cpu.script import (
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)

CHAINS = 4
"""Rows, or vectors of columns, that go together."""


@structure
class Recurrence:
    """The code of `linear_recurrence`, or of a stretch of it.

    Words: n; the first place, and that behind the last; how many rows, or columns of an outer
    index; units of an outer index; elements from the first of an outer index to that of the next,
    from one place of the axis to the next, and from one row to the next (0: columns); how many
    places a factor is before its term. `paired`: of complex numbers, whose parts are arrays.
    `goes_on`: the result of the first place is there already.
    """

    dtype: str
    factor: str
    reverse: bool
    across: bool
    paired: bool
    goes_on: bool

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        s = Script(module, max(module.width // itemsize(self.dtype), 2) if self.across else 1)
        kept = self.factor == "b1"
        many = 1 + self.paired
        a, b, _, out = [
            [s.address() for _ in range(n)]
            for n in (1 if kept else many, many, many * self.goes_on, many)
        ]
        n, start, stop, count, units, outer, pitch, row, late = s.words(9)
        t, size = s.vec(SCALAR[self.dtype]), itemsize(self.dtype)
        step = -1 if self.reverse else 1

        def kept_or_not(values: Sequence[str], factors: Sequence[str]) -> list[str]:
            zero = constant(s, self.dtype, 0)
            pairs = zip(factors, values, strict=True)
            return [select(s, self.dtype, factor, value, zero) for factor, value in pairs]

        def products(values: Sequence[str], factors: Sequence[str]) -> list[str]:
            f, made = Floats(s, self.dtype), []
            for i in range(0, len(values), 2):
                (x, y), (re, im) = factors[i : i + 2], values[i : i + 2]
                made += [f.fma(x, re, f.neg(f.mul(y, im))), f.fma(x, im, f.mul(y, re))]
            return made

        def unit(u: Int) -> None:
            base, first = (u // units) * outer, (u % units) * (CHAINS * s.lanes)
            chains: list[tuple[Int, str]] = []
            for c in range(CHAINS):
                at = first + c * s.lanes
                if self.across:  # columns behind the last have empty masks, and no address is read
                    chains.append((base + at, lanes_before(s, (count - at).most(0))))
                else:  # rows behind the last do what it does
                    chains.append((base + at.least(count - 1) * row, ""))
            begin = (n - 1) * pitch if self.reverse else Int(s, "0")

            def read(parts: Sequence[Place], place: Int) -> list[str]:
                return [
                    read_vector(s, self.dtype, part + (at + place) * size, mask)
                    for at, mask in chains
                    for part in parts
                ]

            def put(values: Sequence[str], place: Int) -> None:
                left = iter(values)
                for at, mask in chains:
                    for part in out:
                        write_vector(s, self.dtype, next(left), part + (at + place) * size, mask)

            before = begin + start * pitch * step
            firsts = read(out if self.goes_on else b, before)
            put(firsts, before)
            own = kept_or_not if kept or not self.paired else products

            def turn(k: str, now: list[str], times: Times = own) -> list[str]:
                here = begin + Int(s, k) * pitch * step
                by = here - late * pitch * step
                factors = [
                    read_vector(s, self.factor, part + (at + by) * itemsize(self.factor), mask)
                    for at, mask in chains
                    for part in (a * many if kept else a)
                ]
                values = [
                    emit(s, "add", [self.dtype] * 2, self.dtype, [*pair])
                    for pair in zip(times(now, factors), read(b, here), strict=True)
                ]
                put(values, here)
                return values

            if self.paired or kept:
                s.loop((start + 1).name, stop.name, "1", [(t, first) for first in firsts], turn)
            else:
                fading(s, self.dtype, (start + 1).name, stop.name, firsts, turn, handed=False)

        s.units(unit)
        s.finish(name)


def recurrence(k: Any, a: Value, b: Value, *, axis: int, reverse: bool, late: bool) -> Value:
    """`linear_recurrence` of factors and terms."""
    if is_narrow(b.dtype):
        wide = np.dtype(np.float32)
        a = a if a.dtype.kind == "b" else k.convert(a, wide)
        out = recurrence(k, a, k.convert(b, wide), axis=axis, reverse=reverse, late=late)
        narrow: Value = k.convert(out, b.dtype)
        return narrow
    paired = b.dtype.kind == "c"
    if has_few(b, axis):
        return _recurrence_of_few(k, a, b, axis, reverse, late)
    factors, terms = [
        [k.dense(held(k, part)) for part in (k.parts(x) if x.dtype.kind == "c" else (x,))]
        for x in (a, b)
    ]
    dtype, b = b.dtype, terms[0]
    outer, n, inner = size_of(b.shape[:axis]), b.shape[axis], size_of(b.shape[axis + 1 :])
    kinds = name_of(b), name_of(factors[0]), reverse, inner > 1, paired
    if inner > 1:
        units = -(-inner // (CHAINS * max(compiler().width // b.dtype.itemsize, 2)))
        words, count = [inner, units, n * inner, inner, 0, int(late)], outer * units
    else:
        units = count = -(-outer // CHAINS)
        words = [outer, units, 0, 1, n, int(late)]
    outs: list[Value] = []
    # Signals are looked for between steps.
    for start in range(0, n, ROUND):
        length = min(ROUND, n - start)
        given = [*factors, *terms, *outs]
        outs = k.routine(
            Recurrence(*kinds, bool(outs)), given, [part.aval for part in terms],
            [n, max(start - 1, 0), start + length, *words], units=count,
            cost=(1 + 2 * paired) * 3 * length, name="linear_recurrence",
            updates=[(i, len(given) - len(outs) + i) for i in range(len(outs))],
        )  # fmt: skip
    made: Value = k.pair(*outs, dtype) if paired else outs[0]
    return made


def _recurrence_of_few(
    k: Any, a: Value, b: Value, axis: int, reverse: bool, late: bool
) -> Value:
    """Step by step for all rows at once, put together in registers."""
    order = range(b.shape[axis])[:: -1 if reverse else 1]
    made = [element_at(k, b, axis, order[0])]
    for before, i in itertools.pairwise(order):
        factor = element_at(k, a, axis, before if late else i)
        if a.dtype.kind == "b":
            more = k.select_n(factor, k.literal(0, b.dtype), made[-1])
        else:
            more = k.binary("mul", factor, made[-1])
        made.append(k.binary("add", element_at(k, b, axis, i), more))
    out: Value = k.concatenate(made[::-1] if reverse else made, axis)
    return out
