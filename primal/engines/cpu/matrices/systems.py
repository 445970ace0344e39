"""Systems of equations too large for lanes: LAPACK's getrf and getrs, without Python.

Of a matrix with many right-hand sides, as an inverse has, these come in strips, beside one another
and in place: getrs wants them by columns, and its copies took half of the time (100 inverses of
40 x 40: 7.2 ms, in strips 3.0). That holds at any size, so inverses share their code. Of few the
rows are short, and trsm, which packs the factors, takes up to twice as long as getrs.
"""

from __future__ import annotations

from typing import Any

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.matrices import solves
from primal.engines.cpu.matrices.factorisations import CHUNK
from primal.engines.cpu.matrices.solves import each_matrix
from primal.engines.cpu.matrices.spectra import Caller
from primal.engines.cpu.products.blas import LETTER, factors
from primal.engines.cpu.reader import smaller
from primal.ir.builders import Unsupported

ROOM = 1 << 22
"""Bytes of a matrix; larger ones are worth LAPACK's own threads."""
MANY = 16
"""Right-hand sides that come in strips, if they are not as many as the equations."""


def solve(k: Any, a: Value, b: Value, transpose_a: bool) -> Value:
    """x with op(a) x = b."""
    n, columns = b.shape[-2:]
    letter = LETTER.get(b.node.dtype.str[1:], "")
    addresses = [openblas.address(f"{letter}{name}_") for name in ("getrf", "getrs")]
    if not all(addresses) or n * n * b.node.dtype.itemsize > ROOM:
        raise Unsupported(f"solve of {a.dtype}, {a.shape}")
    count = size_of(b.shape[:-2])
    if columns >= min(MANY, n) and not transpose_a:
        return _in_strips(k, a, b, count)
    found: list[Value] = k.routine(
        System(b.node.dtype.str[1:], transpose_a), [k.dense(a), k.dense(b)], (b.aval,),
        (*addresses, n, columns, count), units=-(-count // CHUNK),
        cost=CHUNK * (500 + n * n * (n // 16 + columns // 4 + 2)), name="solve",
    )  # fmt: skip
    return found[0]


def _in_strips(k: Any, a: Value, b: Value, count: int) -> Value:
    """The same by factors and strips of right-hand sides."""
    n, columns = b.shape[-2:]
    dtype = b.node.dtype.str[1:]
    packed, _, order = solves.lu(k, a, n)
    width = solves.strip_width(columns)
    each = -(-columns // width)
    found: list[Value] = k.routine(
        Strips(dtype), [packed, order, k.dense(b)], (b.aval,),
        (openblas.address(f"cblas_{LETTER[dtype]}trsm"), n, columns, width, each),
        units=count * each, cost=500 + n * n * width // 12, name="solve",
    )  # fmt: skip
    return found[0]


@structure
class Strips:
    """L⁻¹ and U⁻¹ times permuted rows. Words: trsm, n, columns, those of a strip, strips."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        c = r.c
        a, order, b, out = (r.array() for _ in range(4))
        trsm, n, columns, width, each = r.pointer(), *[r.word() for _ in range(4)]
        alpha, _ = factors(c, self.dtype)
        n32, all32 = (c.new(f"trunc i64 {v} to i32") for v in (n, columns))
        along = r.times(columns, r.size)

        def unit(u: str) -> None:
            i, strip = r.split(u, each)
            first = r.times(strip, width)
            there = smaller(c, width, c.new(f"sub i64 {columns}, {first}"))
            bytes_, w32 = r.times(there, r.size), c.new(f"trunc i64 {there} to i32")
            x, y = (r.moved(v, (r.times(i, n), along), (first, str(r.size))) for v in (b, out))
            rows = r.moved(order, (r.times(i, n), "4"))
            matrix = r.moved(a, (i, r.times(n, n, r.size)))

            def row(j: str, _: list[str]) -> list[str]:
                at = c.new(f"load i32, ptr {r.moved(rows, (j, '4'))}")
                at = c.new(f"sext i32 {at} to i64")
                c.call_void(
                    "llvm.memcpy.p0.p0.i64", ("ptr", r.moved(y, (j, along))),
                    ("ptr", r.moved(x, (at, along))), ("i64", bytes_), ("i1", "false"),
                )  # fmt: skip
                return []

            c.loop("0", n, "1", [], row)
            # CblasLeft, then lower with ones on the diagonal, then upper.
            for triangle, diagonal in ((122, 132), (121, 131)):
                c.do(
                    f"call void {trsm}(i32 101, i32 141, i32 {triangle}, i32 111, i32 {diagonal}, "
                    f"i32 {n32}, i32 {w32}, {alpha}, ptr {matrix}, i32 {n32}, ptr {y}, i32 {all32})"
                )

        r.units(name, unit)


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
        h, x, swaps = r.c.room(square), r.c.room(whole), r.c.room(r.times(n, 4))
        order, sides = r.integer(n), r.integer(columns)
        trans = r.letter("T" if self.transposed else "N")

        def one(i: str) -> None:
            r.entered(r.moved(a, (i, square)), h, n, n)
            r.entered(r.moved(b, (i, whole)), x, n, columns)
            r.called("true", getrf, [order, order, h, order, swaps], 0)
            r.called("true", getrs, [trans, order, sides, h, order, swaps, x, order], 1)
            r.left(x, r.moved(out, (i, whole)), n, columns, "true", r.parts)

        each_matrix(r, name, count, one)
