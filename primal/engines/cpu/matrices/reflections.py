"""Orthogonal factors of matrices too large for lanes: LAPACK's geqrf and orgqr, without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.matrices.factorisations import CHUNK
from primal.engines.cpu.matrices.solves import each_matrix
from primal.engines.cpu.matrices.spectra import Caller
from primal.engines.cpu.products.blas import LETTER, factors
from primal.engines.cpu.reader import square
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

_INT32 = np.dtype(np.int32)
ROOM = 1 << 22
"""Bytes of the larger factor; beside more of them a call of Python is little."""
WHOLE = 1 << 26
"""The same of a Q of few reflections, for which LAPACK takes far longer."""
BLOCK = 32
"""Reflections that LAPACK applies at a time."""
FEW = 4
"""Rows for each reflection from which on the whole Q is made by products of matrices.

From there on these are less work than orgqr, which goes over Q for each reflection where these are
few (1000 rows, 20 columns: 5.6 ms of orgqr, 0.4 of all this), and they leave Q by rows.
"""


def qr(k: Any, a: Value, full: bool, pivoting: int = 0) -> list[Value]:
    """Q and R, as LAPACK reflects.

    `pivoting`: where the geqp3 is that eager code calls, as rounding decides between columns that
    are as long; then the columns' order too.
    """
    *lead, m, n = a.shape
    dtype = a.node.dtype.str[1:]
    columns = m if full else min(m, n)
    letter, compact = LETTER.get(dtype, ""), full and m >= FEW * n and not pivoting
    names = [f"{letter}geqrf_", f"{letter}{'ungqr' if dtype[0] == 'c' else 'orgqr'}_"]
    if compact:
        names[1:] = f"{letter}larft_", f"cblas_{letter}gemm"
    routines = [openblas.address(name) for name in names]
    if pivoting:
        routines[0] = pivoting
    most, room = (n, WHOLE) if compact else (max(n, columns), ROOM)
    if not a.size or not all(routines) or m * max(n, columns) * a.node.dtype.itemsize > room:
        raise Unsupported(f"qr of {a.dtype}, {a.shape}")
    count, least = size_of(lead), min(m, n)
    outs = [Aval((*lead, m, columns), a.dtype), Aval((*lead, columns, n), a.dtype)]
    if pivoting:
        outs.append(Aval((*lead, n), _INT32))
    wanted = not k.unread
    words = *routines, int(wanted), m, n, columns, least, most, count
    found: list[Value] = k.routine(
        Qr(dtype, compact, bool(pivoting)), (k.dense(a),), outs, words, units=-(-count // CHUNK),
        cost=CHUNK * (1000 + m * least * (n + columns * wanted)), name="qr",
    )  # fmt: skip
    return found


@structure
class Qr:
    """On copies by columns. What is not finite spreads by itself, as LAPACK has it.

    `compact`: Q is I - V T Vᴴ, of reflections V and their triangular T (Schreiber and Van Loan,
    1989), and has as many columns as rows.
    """

    dtype: str
    compact: bool
    pivoting: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function.

        Words: routines, whether Q is wanted (else it is not written), m, n, its columns, the least
        of m and n, columns of what is copied, the number of matrices.
        """
        r = Caller(module, self.dtype)
        c = r.c
        a, q, out = (r.array() for _ in range(3))
        order = r.array() if self.pivoting else ""
        geqrf, second = r.pointer(), r.pointer()
        gemm = r.pointer() if self.compact else ""
        wanted, m, n, columns, least, most, count = (r.word() for _ in range(7))
        wanted = c.new(f"icmp ne i64 {wanted}, 0")
        bytes_ = [r.times(x, y, r.size) for x, y in ((m, n), (m, columns), (columns, n))]
        h, tau = r.c.room(r.times(m, most, r.size)), r.c.room(r.times(least, r.size))
        # geqp3 wants 2 n beside a block of n + 1 columns.
        space = r.plus(r.times(most, BLOCK + 2), BLOCK) if self.pivoting else r.times(most, BLOCK)
        work = [r.c.room(r.times(space, r.size)), r.integer(space)]
        rows, across, wide, low = (r.integer(v) for v in (m, n, columns, least))
        if self.compact:
            whole = self._whole(r, (second, gemm), (m, least), (h, tau))
        t = f"i{8 * r.size}"
        down, along = r.times(m, r.size), r.times(n, r.size)
        given = [rows, across, h, rows, tau, *work]
        if self.pivoting:
            pivots = r.c.room(r.times(n, 4))
            given.insert(4, pivots)
            if r.parts == 2:
                given.append(r.c.room(r.times(n, r.size)))

        def counted(j: str, to: str) -> list[str]:
            """LAPACK's number of a column, counted from 0."""
            value = c.new(f"load i32, ptr {r.moved(pivots, (j, '4'))}")
            c.do(f"store i32 {c.new(f'sub i32 {value}, 1')}, ptr {r.moved(to, (j, '4'))}")
            return []

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
            if self.pivoting:
                c.call_void("llvm.memset.p0.i64", ("ptr", pivots), ("i8", "0"),
                            ("i64", r.times(n, 4)), ("i1", "false"))  # fmt: skip
            r.called("true", geqrf, given, 0)
            if self.pivoting:
                to = r.moved(order, (i, r.times(n, 4)))
                c.loop("0", n, "1", [], lambda j, _: counted(j, to))
            square(r, columns, n, element)

            def orthogonal() -> list[str]:
                r.called("true", second, [rows, wide, low, h, rows, tau, *work], 0)
                r.left(h, r.moved(q, (i, bytes_[1])), m, columns, "true", r.parts)
                return []

            def product() -> list[str]:
                whole(r.moved(q, (i, bytes_[1])))
                return []

            c.guarded(wanted, [], product if self.compact else orthogonal)

        each_matrix(r, name, count, one)

    def _whole(
        self, r: Caller, routines: tuple[str, str], sizes: tuple[str, str], given: tuple[str, str]
    ) -> Callable[[str], None]:
        """What writes I - V T Vᴴ, of m rows and so many reflections, by rows."""
        c, (larft, gemm), (m, count), (v, tau) = r.c, routines, sizes, given
        single = str(r.size // r.parts)
        triangle, turned = (c.room(r.times(count, count, r.size)) for _ in range(2))
        product = c.room(r.times(m, count, r.size))
        down, along = r.times(m, r.size), r.times(count, r.size)
        step = r.plus(down, r.size)
        forward, columns, rows, few = r.letter("F"), r.letter("C"), r.integer(m), r.integer(count)
        one, none = factors(c, self.dtype)
        m32, few32 = (c.new(f"trunc i64 {x} to i32") for x in sizes)

        def put(value: str, to: str, part: int) -> None:
            c.do(f"store {r.real} {value}, ptr {r.moved(to, (str(part), single))}")

        def element(i: str, j: str) -> list[str]:
            """-T by rows, and V in place of what lies over it, R."""
            source = r.moved(triangle, (j, along), (i, str(r.size)))
            to = r.moved(turned, (i, along), (j, str(r.size)))
            below, here = (c.new(f"icmp {how} i64 {i}, {j}") for how in ("sgt", "eq"))
            for part in range(r.parts):
                p = r.moved(source, (str(part), single))
                value = c.new(f"fneg {r.real} {c.new(f'load {r.real}, ptr {p}')}")
                put(c.new(f"select i1 {below}, {r.real} 0.0, {r.real} {value}"), to, part)

            def unit() -> list[str]:
                to = r.moved(v, (j, down), (i, str(r.size)))
                put(c.new(f"select i1 {here}, {r.real} 1.0, {r.real} 0.0"), to, 0)
                if r.parts == 2:
                    put("0.0", to, 1)
                return []

            c.guarded(c.new(f"icmp sle i64 {i}, {j}"), [], unit)
            return []

        def write(q: str) -> None:
            c.do(
                f"call void {larft}(ptr {forward}, ptr {columns}, ptr {rows}, ptr {few}, ptr {v}, "
                f"ptr {rows}, ptr {tau}, ptr {triangle}, ptr {few}, i64 1, i64 1)"
            )
            square(r, count, count, element)
            c.do(
                f"call void {gemm}(i32 101, i32 112, i32 111, i32 {m32}, i32 {few32}, "
                f"i32 {few32}, {one}, ptr {v}, i32 {m32}, ptr {turned}, i32 {few32}, {none}, "
                f"ptr {product}, i32 {few32})"
            )
            c.call_void("llvm.memset.p0.i64", ("ptr", q), ("i8", "0"),
                        ("i64", r.times(m, down)), ("i1", "false"))  # fmt: skip

            def diagonal(i: str, _: list[str]) -> list[str]:
                put("1.0", r.moved(q, (i, step)), 0)
                return []

            c.loop("0", m, "1", [], diagonal)
            # By rows, what lies by columns is seen transposed: 114 conjugates it and no more.
            how = 114 if r.parts == 2 else 111
            c.do(
                f"call void {gemm}(i32 101, i32 111, i32 {how}, i32 {m32}, i32 {m32}, "
                f"i32 {few32}, {one}, ptr {product}, i32 {few32}, ptr {v}, i32 {m32}, {one}, "
                f"ptr {q}, i32 {m32})"
            )

        return write
