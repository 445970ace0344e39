"""Systems of equations too large for lanes: LAPACK's getrf and getrs, without Python."""

from __future__ import annotations

from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import _openblas
from primal.engines.cpu.code import Module
from primal.engines.cpu.factorisations import CHUNK
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.products import LETTER
from primal.engines.cpu.solves import each_matrix
from primal.engines.cpu.spectra import Caller
from primal.ir.builders import Unsupported

ROOM = 1 << 19
"""Bytes of a system that is copied; larger ones are worth LAPACK's own threads."""


def solve(k: Any, a: Value, b: Value, transpose_a: bool) -> Value:
    """x with op(a) x = b."""
    n, columns = b.shape[-2:]
    letter = LETTER.get(b.node.dtype.str[1:], "")
    addresses = [_openblas.address(f"{letter}{name}_") for name in ("getrf", "getrs")]
    if not all(addresses) or n * (n + columns) * b.node.dtype.itemsize > ROOM:
        raise Unsupported(f"solve of {a.dtype}, {a.shape}")
    count = size_of(b.shape[:-2])
    found: list[Value] = k.routine(
        System(b.node.dtype.str[1:], transpose_a), [k.dense(a), k.dense(b)], (b.aval,),
        (*addresses, n, columns, count), units=-(-count // CHUNK),
        cost=CHUNK * (500 + n * n * (n // 16 + columns // 4 + 2)), name="solve",
    )  # fmt: skip
    return found[0]


@structure
class System:
    """On copies by columns. A zero pivot is divided by, so that the result is inf or nan."""

    dtype: str
    transposed: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function; words: routines, n, right-hand sides, the number of systems."""
        r = Caller(module, self.dtype)
        a, b, out = (r.array() for _ in range(3))
        getrf, getrs, n, columns, count = r.pointer(), r.pointer(), r.word(), r.word(), r.word()
        square, whole = r.times(n, n, r.size), r.times(n, columns, r.size)
        factors, x, swaps = r.c.room(square), r.c.room(whole), r.c.room(r.times(n, 4))
        order, sides = r.integer(n), r.integer(columns)
        trans = r.letter("T" if self.transposed else "N")

        def one(i: str) -> None:
            r.entered(r.moved(a, (i, square)), factors, n, n)
            r.entered(r.moved(b, (i, whole)), x, n, columns)
            r.called("true", getrf, [order, order, factors, order, swaps], 0)
            r.called("true", getrs, [trans, order, sides, factors, order, swaps, x, order], 1)
            r.left(x, r.moved(out, (i, whole)), n, columns, "true", r.parts)

        each_matrix(r, name, count, one)
