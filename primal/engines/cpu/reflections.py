"""Orthogonal factors of matrices too large for lanes: LAPACK's geqrf and orgqr, without Python."""

from __future__ import annotations

from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import _openblas
from primal.engines.cpu.code import Module
from primal.engines.cpu.factorisations import CHUNK
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.products import LETTER
from primal.engines.cpu.solves import each_matrix, square
from primal.engines.cpu.spectra import Caller
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

ROOM = 1 << 22
"""Bytes of the larger factor; beside more of them a call of Python is little."""
BLOCK = 32
"""Reflections that LAPACK applies at a time."""


def qr(k: Any, a: Value, full: bool) -> list[Value]:
    """Q and R, as LAPACK reflects."""
    *lead, m, n = a.shape
    dtype = a.node.dtype.str[1:]
    columns = m if full else min(m, n)
    names = "geqrf", "ungqr" if dtype[0] == "c" else "orgqr"
    routines = [_openblas.address(f"{LETTER.get(dtype, '')}{name}_") for name in names]
    if not a.size or not all(routines) or m * max(n, columns) * a.node.dtype.itemsize > ROOM:
        raise Unsupported(f"qr of {a.dtype}, {a.shape}")
    count, least = size_of(lead), min(m, n)
    outs = Aval((*lead, m, columns), a.dtype), Aval((*lead, columns, n), a.dtype)
    wanted = not k.unread
    words = *routines, int(wanted), m, n, columns, least, max(n, columns), count
    found: list[Value] = k.routine(
        Qr(dtype), (k.dense(a),), outs, words, units=-(-count // CHUNK),
        cost=CHUNK * (1000 + m * least * (n + columns * wanted)), name="qr",
    )  # fmt: skip
    return found


@structure
class Qr:
    """On copies by columns. What is not finite spreads by itself, as LAPACK has it."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function.

        Words: routines, whether Q is wanted (else it is not written), m, n, its columns, min and
        max of those, the number of matrices.
        """
        r = Caller(module, self.dtype)
        c = r.c
        a, q, out = (r.array() for _ in range(3))
        geqrf, orgqr = r.pointer(), r.pointer()
        wanted, m, n, columns, least, most, count = (r.word() for _ in range(7))
        wanted = c.new(f"icmp ne i64 {wanted}, 0")
        bytes_ = [r.times(x, y, r.size) for x, y in ((m, n), (m, columns), (columns, n))]
        h, tau = r.c.room(r.times(m, most, r.size)), r.c.room(r.times(least, r.size))
        space = r.times(most, BLOCK)
        work = [r.c.room(r.times(space, r.size)), r.integer(space)]
        rows, across, wide, low = (r.integer(v) for v in (m, n, columns, least))
        t = f"i{8 * r.size}"
        down, along = r.times(m, r.size), r.times(n, r.size)

        def one(i: str) -> None:
            upper = r.moved(out, (i, bytes_[2]))

            def element(i: str, j: str) -> list[str]:
                source = r.moved(h, (j, down), (i, str(r.size)))
                target = r.moved(upper, (i, along), (j, str(r.size)))
                value = c.new(f"load {t}, ptr {source}, align 4")
                below = c.new(f"icmp sgt i64 {i}, {j}")
                value = c.new(f"select i1 {below}, {t} 0, {t} {value}")
                c.do(f"store {t} {value}, ptr {target}, align 4")
                return []

            r.entered(r.moved(a, (i, bytes_[0])), h, m, n)
            r.called("true", geqrf, [rows, across, h, rows, tau, *work], 0)
            square(r, columns, n, element)

            def orthogonal() -> list[str]:
                r.called("true", orgqr, [rows, wide, low, h, rows, tau, *work], 0)
                r.left(h, r.moved(q, (i, bytes_[1])), m, columns, "true", r.parts)
                return []

            c.guarded(wanted, [], orthogonal)

        each_matrix(r, name, count, one)
