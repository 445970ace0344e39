"""Tridiagonal systems: LAPACK's gtsv without Python."""

from __future__ import annotations

from typing import Any

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.matrices.factorisations import CHUNK
from primal.engines.cpu.matrices.solves import each_matrix
from primal.engines.cpu.matrices.spectra import Caller
from primal.engines.cpu.products.blas import LETTER
from primal.ir.builders import Unsupported

ROOM = 1 << 16
"""Bytes of a system that is copied to the stack; beside larger ones a call of Python is little."""


def tridiagonal_solve(k: Any, dl: Value, d: Value, du: Value, b: Value) -> Value:
    """x with A x = b, of the three diagonals of A; nan where elimination meets a zero."""
    n, columns = b.shape[-2:]
    item = b.node.dtype.itemsize
    address = openblas.address(f"{LETTER.get(b.node.dtype.str[1:], '')}gtsv_")
    if not address or n * (3 + columns) * item > ROOM:
        raise Unsupported(f"tridiagonal_solve of {b.dtype}, {b.shape}")
    count = size_of(b.shape[:-2])
    found: list[Value] = k.routine(
        Tridiagonal(b.node.dtype.str[1:]), [k.dense(x) for x in (dl, d, du, b)], (b.aval,),
        (address, n, columns, count), units=-(-count // CHUNK),
        cost=CHUNK * (100 + 8 * n * (1 + columns)), name="tridiagonal_solve",
    )  # fmt: skip
    return found[0]


@structure
class Tridiagonal:
    """On copies of the diagonals, and of the right-hand sides by columns."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function; words: the routine, n, right-hand sides, the number of systems."""
        r = Caller(module, self.dtype)
        *diagonals, b, out = (r.array() for _ in range(5))
        gtsv, n, columns, count = r.pointer(), r.word(), r.word(), r.word()
        row = r.times(n, r.size)
        whole = r.times(row, columns)
        low, middle, high = copies = [r.c.room(row) for _ in diagonals]
        x, order = r.c.room(whole), r.integer(n)
        # The first element of the lower one is not read.
        below = r.moved(low, ("1", str(r.size)))
        given = [order, r.integer(columns), below, middle, high, x, order]

        def one(i: str) -> None:
            for source, to in zip(diagonals, copies, strict=True):
                r.c.call_void(
                    "llvm.memcpy.p0.p0.i64", ("ptr", to), ("ptr", r.moved(source, (i, row))),
                    ("i64", row), ("i1", "false"),
                )  # fmt: skip
            r.entered(r.moved(b, (i, whole)), x, n, columns)
            good = r.called("true", gtsv, given, 0)
            r.left(x, r.moved(out, (i, whole)), n, columns, good, r.parts)

        each_matrix(r, name, count, one)
