"""Similar matrices of narrow form: LAPACK's gehrd, sytrd and hetrd, without Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Value
from primal.engines.cpu.matrices.solves import each_matrix
from primal.engines.cpu.matrices.spectra import Caller, dtype_for, stack
from primal.ir.avals import Aval


def hessenberg(k: Any, a: Value, outs: Sequence[Aval], address: int, room: int) -> list[Value]:
    """By gehrd, at that address, in so much workspace: the packed matrix and its factors."""
    return _condensed(k, a, outs, "", address, room)


def tridiagonal(
    k: Any, a: Value, outs: Sequence[Aval], lower: bool, address: int, room: int
) -> list[Value]:
    """By sytrd or hetrd: the packed matrix, both diagonals and the factors."""
    return _condensed(k, a, outs, "L" if lower else "U", address, room)


def _condensed(
    k: Any, a: Value, outs: Sequence[Aval], triangle: str, address: int, room: int
) -> list[Value]:
    name = "tridiagonal" if triangle else "hessenberg"
    spec = Condensed(dtype_for(name, a, address, outs), triangle)
    n = a.shape[-1]
    return stack(name, k, spec, a, outs, (address, n, room), 500 + 100 * n + 2 * n**3)


@structure
class Condensed:
    """gehrd, or sytrd of a triangle. Words: its address, n > 1, workspace, number of matrices."""

    dtype: str
    triangle: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a, packed, *diagonals, tau = (r.array() for _ in range(5 if self.triangle else 3))
        address, n, work, count = r.pointer(), r.word(), r.word(), r.word()
        fewer, single = r.plus(n, -1), r.size // r.parts
        bytes_ = r.times(n, n, r.size)
        h, factors = r.c.room(bytes_), r.c.room(r.times(n, r.size))
        order = r.integer(n)
        space = [factors, r.c.room(r.times(work, r.size)), r.integer(work)]
        kept = [r.c.room(r.times(n, single)) for _ in diagonals]
        if self.triangle:
            given = [r.letter(self.triangle), order, h, order, *kept, *space]
        else:
            given = [order, r.integer("1"), order, h, order, *space]

        def one(i: str) -> None:
            fine = r.entered(r.moved(a, (i, bytes_)), h, n, n)
            good = r.called(fine, address, given, len(self.triangle))
            r.left(h, r.moved(packed, (i, bytes_)), n, n, good, r.parts)
            for x, to, size in zip(kept, diagonals, (n, fewer), strict=False):
                r.left(x, r.moved(to, (i, r.times(size, single))), size, "1", good, 1)
            r.left(factors, r.moved(tau, (i, r.times(fewer, r.size))), fewer, "1", good, r.parts)

        each_matrix(r, name, count, one)
