"""out[k] = a[k]·out[k - 1] + b[k] along one axis, as a routine.

An array is seen as [outer, n, inner]. With inner = 1 four rows go together, otherwise four vectors
of columns: a number waits eight cycles for the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu._llvm import compiler
from primal.engines.cpu.code import SCALAR, Module, itemsize
from primal.engines.cpu.fading import Times, fading
from primal.engines.cpu.graph import Value, is_narrow, size_of
from primal.engines.cpu.lanes import constant, emit, select
from primal.engines.cpu.moves import held, name_of
from primal.engines.cpu.script import (
    Int,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)

CHAINS = 4
"""Rows, or vectors of columns, that go together."""


@structure
class Recurrence:
    """The code of `linear_recurrence`.

    Words: n; how many rows, or columns of an outer index; units of an outer index; elements from
    the first of an outer index to that of the next, from one place of the axis to the next, and
    from one row to the next (0: columns); how many places a factor is before its term.
    """

    dtype: str
    factor: str
    reverse: bool
    across: bool

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        s = Script(module, max(module.width // itemsize(self.dtype), 2) if self.across else 1)
        a, b, out = s.address(), s.address(), s.address()
        n, count, units, outer, pitch, row, late = s.words(7)
        t, size = s.vec(SCALAR[self.dtype]), itemsize(self.dtype)
        step = -1 if self.reverse else 1

        def kept_or_not(values: Sequence[str], factors: Sequence[str]) -> list[str]:
            zero = constant(s, self.dtype, 0)
            pairs = zip(factors, values, strict=True)
            return [select(s, self.dtype, factor, value, zero) for factor, value in pairs]

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

            def term(at: Int, mask: str) -> str:
                return read_vector(s, self.dtype, b + at * size, mask)

            firsts = []
            for at, mask in chains:
                value = term(at + begin, mask)
                write_vector(s, self.dtype, value, out + (at + begin) * size, mask)
                firsts.append(value)

            def turn(k: str, now: list[str], times: Times = kept_or_not) -> list[str]:
                here = begin + Int(s, k) * pitch * step
                by = here - late * pitch * step
                factors = [
                    read_vector(s, self.factor, a + (at + by) * itemsize(self.factor), mask)
                    for at, mask in chains
                ]
                values = []
                for (at, mask), kept in zip(chains, times(now, factors), strict=True):
                    pair = [kept, term(at + here, mask)]
                    values.append(emit(s, "add", [self.dtype] * 2, self.dtype, pair))
                for (at, mask), value in zip(chains, values, strict=True):
                    write_vector(s, self.dtype, value, out + (at + here) * size, mask)
                return values

            if self.factor == "b1":
                s.loop("1", n.name, "1", [(t, first) for first in firsts], turn)
            else:
                fading(s, self.dtype, "1", n.name, firsts, turn, handed=False)

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
    a, b = k.dense(held(k, a)), k.dense(held(k, b))
    outer, n, inner = size_of(b.shape[:axis]), b.shape[axis], size_of(b.shape[axis + 1 :])
    spec = Recurrence(name_of(b), name_of(a), reverse, inner > 1)
    if inner > 1:
        units = -(-inner // (CHAINS * max(compiler().width // b.dtype.itemsize, 2)))
        words, count = [n, inner, units, n * inner, inner, 0, int(late)], outer * units
    else:
        units = count = -(-outer // CHAINS)
        words = [n, outer, units, 0, 1, n, int(late)]
    (out,) = k.routine(
        spec, [a, b], [b.aval], words, units=count, cost=3 * n, name="linear_recurrence"
    )
    return out
