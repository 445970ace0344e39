"""The calls of OpenBLAS in kernels of products, and the record that all of those read.

Which way a product is faster depends on its sizes: by tiles, by vectors, by BLAS. Its code does
not: a kernel of our own holds the call of BLAS as well, and a word of the record says which of the
two it is: the address of a function that multiplies units. So a product of other sizes compiles
nothing, and what a product does not call is not compiled for it: tiles and what packs for them are
functions of the process (the first of 100 x 100 float64, by BLAS, 32 to 15 ms of CPU).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, Code, Module, itemsize
from primal.engines.cpu.reader import Reader, smaller, square

LETTER = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
MOST = 2**31 - 1
"""Rows, columns and steps that BLAS counts."""
UNPACKED = 1_000_000
"""Products of terms, rows and columns up to which OpenBLAS reads operands as they lie, which is
slow only where the terms of y are contiguous."""

CALLEES = 5
"""Words of a record for functions of the process: what multiplies a unit and what that calls, and
what copies one half of a product to the other."""
UNIT = (
    "ptr %x, ptr %y, ptr %z, ptr %room, i64 %below, i64 %wide, i64 %depth, i64 %am, i64 %ak, "
    "i64 %bk, i64 %bn, i64 %om, ptr %callees"
)
"""What a function that multiplies a unit is given; it tells whether BLAS has to do it again."""

Loops = Sequence[tuple[int, tuple[int, ...]]]
"""Sizes and strides in elements."""


def routine(dtype: str, name: str) -> int:
    """The address of a function of BLAS by its name without a letter; 0 where there is none."""
    return openblas.address(f"cblas_{LETTER[dtype]}{name}") if dtype in LETTER else 0


def words_of(loops: Loops, size: int) -> list[int]:
    """The run-time words of loops: size and strides in bytes."""
    return [w for n, strides in loops for w in (n, *[s * size for s in strides])]


def padded(loops: Loops) -> Loops:
    """At least two loops: a step of 1 costs a division per unit, a kernel 9 ms and more."""
    return [*loops, *[(1, (0, 0, 0))] * (2 - len(loops))]


def record(
    dtype: str, callees: Sequence[Any], room: int, sizes: tuple[int, int, int], x: tuple[int, int],
    y: tuple[int, int], om: int, unit: tuple[int, int], loops: Loops, last: int, rest: int,
    flags: Sequence[int],
) -> tuple[list[int], int]:  # fmt: skip
    """The words of a product, and how many units a turn of its loops has.

    `callees`: functions of the process; without the first of them BLAS multiplies, with it there
    are `room` bytes of memory; with the last of them units are square, and those below the diagonal
    copied. Strides in elements: x by row and term, y by term and column, the result by row. `unit`:
    rows and columns of one. The last of the loops' turns, `last` of them, have `rest` more terms.
    `flags`: transposition and leading dimension of x and of y for BLAS, and that of the result.
    """
    (m, n, depth), (each, wide), size = sizes, unit, itemsize(dtype)
    parts, across = -(-m // each), -(-n // wide)
    words = [
        *[int(c is not None) for c in callees], *[0] * (CALLEES - len(callees)), room, m, n, depth,
        *[s * size for s in (*x, *y, om)], each, parts, wide, across,
        *words_of(loops, size), (math.prod(n for n, _ in loops) - last) * parts * across, rest,
        routine(dtype, "gemm"), *flags,
    ]  # fmt: skip
    return words, parts * across


class Units:
    """The record of `record`, the way to a unit, and the call that multiplies it."""

    def __init__(self, r: Reader, dtype: str, loops: int) -> None:
        self.r, self.dtype = r, dtype
        self.arrays = [r.array(), r.array(), r.array()]
        self.callees = r.c.new(f"getelementptr i64, ptr %record, i64 {r.at}")
        code, *_, mirror = (r.word() for _ in range(CALLEES))
        self.own = r.c.new(f"icmp ne i64 {code}, 0")
        self.mirrored = r.c.new(f"icmp ne i64 {mirror}, 0")
        self.code, self.mirror = (r.c.new(f"inttoptr i64 {w} to ptr") for w in (code, mirror))
        self.room = r.c.room(r.word())
        self.m, self.n, self.depth = r.word(), r.word(), r.word()
        self.am, self.ak, self.bk, self.bn, self.om = (r.word() for _ in range(5))
        self.each, self.parts, self.wide, self.across = (r.word() for _ in range(4))
        self.loops = r.loops(loops, 3)
        self.last, self.rest = r.word(), r.word()
        self.factors = factors(r.c, dtype)

    def sizes(self) -> list[str]:
        """What units are numbered through: turns of loops, parts of the rows, of the columns."""
        return [*[size for size, *_ in self.loops], self.parts, self.across]

    def place(self, u: str, *indices: str) -> tuple[list[str], str, str, str]:
        """Where a unit has its operands and result, and its rows, columns and terms."""
        r, c = self.r, self.r.c
        *turns, i, j = indices
        more = c.new(f"select i1 {c.new(f'icmp sge i64 {u}, {self.last}')}, i64 {self.rest}, i64 0")
        depth = c.new(f"add i64 {self.depth}, {more}")
        x, y, z = [
            r.moved(p, *zip(turns, steps, strict=True))
            for p, steps in zip(
                self.arrays, ([loop[1 + k] for loop in self.loops] for k in range(3)), strict=True
            )
        ]
        row, column = c.new(f"mul i64 {i}, {self.each}"), c.new(f"mul i64 {j}, {self.wide}")
        x, y = r.moved(x, (row, self.am)), r.moved(y, (column, self.bn))
        z = r.moved(z, (row, self.om), (column, str(itemsize(self.dtype))))
        below = smaller(c, c.new(f"sub i64 {self.m}, {row}"), self.each)
        wide = smaller(c, c.new(f"sub i64 {self.n}, {column}"), self.wide)
        return [x, y, z], below, wide, depth

    def multiply(self, places: Sequence[str], below: str, wide: str, depth: str) -> None:
        """Have BLAS multiply a unit."""
        r, c = self.r, self.r.c
        code, (ta, lda, tb, ldb, ldc) = r.pointer(), (r.int32() for _ in range(5))
        m, n, depth = (c.new(f"trunc i64 {w} to i32") for w in (below, wide, depth))
        one, zero = self.factors
        x, y, z = places
        c.do(
            f"call void {code}(i32 101, i32 {ta}, i32 {tb}, i32 {m}, i32 {n}, i32 {depth}, {one}, "
            f"ptr {x}, i32 {lda}, ptr {y}, i32 {ldb}, {zero}, ptr {z}, i32 {ldc})"
        )


def factors(c: Code, dtype: str) -> tuple[str, str]:
    """1 and 0 as BLAS wants its factors: by value, complex ones by address."""
    if dtype[0] == "f":
        scalar = SCALAR[dtype]
        return f"{scalar} 1.0", f"{scalar} 0.0"
    scalar = "float" if dtype == "c8" else "double"
    found = []
    for value in ("1.0", "0.0"):
        p = c.on_stack(f"[2 x {scalar}]")
        c.do(f"store [2 x {scalar}] [{scalar} {value}, {scalar} 0.0], ptr {p}")
        found.append(f"ptr {p}")
    return found[0], found[1]


@structure
class Product:
    """Products of matrices, inside `loops` loops. Words: those of `record`."""

    dtype: str
    loops: int
    plain = True

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module)
        c, units = r.c, Units(r, self.dtype, self.loops)
        strides = [units.am, units.ak, units.bk, units.bn, units.om]

        def unit(u: str, *indices: str) -> None:
            *_, i, j = indices
            copied = c.new(f"and i1 {units.mirrored}, {c.new(f'icmp slt i64 {j}, {i}')}")
            made = c.new(f"xor i1 {copied}, true")
            c.guarded(made, [], lambda: multiplied(u, indices))

        def multiplied(u: str, indices: Sequence[str]) -> list[str]:
            places, below, wide, depth = units.place(u, *indices)
            z = places[2]

            def ours() -> list[str]:
                given = [f"ptr {p}" for p in (*places, units.room)]
                given += [f"i64 {w}" for w in (below, wide, depth, *strides)]
                given.append(f"ptr {units.callees}")
                return [c.new(f"call i1 {units.code}({', '.join(given)})")]

            def by_blas() -> list[str]:
                units.multiply(places, below, wide, depth)
                return []

            (left,) = c.guarded(units.own, [("i1", "true")], ours)
            c.guarded(left, [], by_blas)

            def copied() -> list[str]:
                *_, i, j = indices
                apart = c.new(f"mul i64 {c.new(f'sub i64 {j}, {i}')}, {units.wide}")
                step = c.new(f"sub i64 {units.om}, {itemsize(self.dtype)}")
                to = c.new(f"getelementptr i8, ptr {z}, i64 {c.new(f'mul i64 {apart}, {step}')}")
                given = [f"ptr {z}", f"ptr {to}", *[f"i64 {w}" for w in (below, wide, units.om)]]
                c.do(f"call void {units.mirror}({', '.join(given)})")
                return []

            beside = c.new(f"icmp slt i64 {indices[-2]}, {indices[-1]}")
            c.guarded(c.new(f"and i1 {units.mirrored}, {beside}"), [], copied)
            return []

        c.function(name, unit, units.sizes())


@structure
class Mirror:
    """The function that copies a unit of a symmetric matrix to the one across the diagonal."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module)
        c, size = r.c, itemsize(self.dtype)

        def element(i: str, j: str) -> list[str]:
            p = r.moved("%from", (i, "%om"), (j, str(size)))
            q = r.moved("%to", (j, "%om"), (i, str(size)))
            value = c.new(f"load i{8 * size}, ptr {p}, align {size}")
            c.do(f"store i{8 * size} {value}, ptr {q}, align {size}")
            return []

        square(r, "%below", "%wide", element)
        r.helper(name, "ptr %from, ptr %to, i64 %below, i64 %wide, i64 %om", "")


def by_parts(
    dtype: str, rows: int, depth: int, matrix: tuple[int, int], vector: int, result: int
) -> tuple[list[int], int]:
    """The words of `by_vector`, and its units per turn; strides as in `matvec`."""
    size = itemsize(dtype)
    step, term = matrix
    # Parts of some 256 KB: threads share them, and in a loop find those that they read last.
    parts = min(rows // 32, rows * depth * size >> 18, 64)
    if term == 1:
        parts = -(-parts // 4) * 4 if parts > 1 else 1
    else:
        # What a part reads of a term lies in one run, of a page or so: of short runs, 128 bytes of
        # each of 2048 terms, a core fetches none before it needs it, and takes seven times as long.
        run = rows * size
        parts = max(min(parts, -(-run // 8192) * 2), 1) if run >= 2048 else 1
    each = -(-rows // parts)
    parts = -(-rows // each)
    # Row-major: as many rows as results, or as many columns.
    flag, ld = (111, max(step, depth)) if term == 1 else (112, max(term, rows))
    return [
        parts, routine(dtype, "gemv"), flag, rows, depth, ld, vector, result, each,
        each * step * size, each * result * size,
    ], parts  # fmt: skip


def by_vector(
    r: Reader, dtype: str, u: str, loops: Sequence[Sequence[str]], arrays: list[str]
) -> None:
    """Have BLAS multiply a matrix and a vector, a part of the rows.

    Words: parts; function, transposition; results, terms; leading dimension, strides of vector and
    results; results of a part; bytes from part to part of the matrix and of the results.
    """
    c = r.c
    u, i = r.split(u, r.word())
    x, v, z = r.walked(u, loops, arrays)
    code, flag, rows, depth, ld = r.pointer(), r.int32(), r.word(), r.int32(), r.int32()
    by, to, each, step_a, step_out = r.int32(), r.int32(), r.word(), r.word(), r.word()
    one, zero = factors(c, dtype)
    plain = c.new(f"icmp eq i32 {flag}, 111")
    x, z = r.moved(x, (i, step_a)), r.moved(z, (i, step_out))
    left = c.new(f"sub i64 {rows}, {c.new(f'mul i64 {i}, {each}')}")
    count = c.new(f"trunc i64 {smaller(c, left, each)} to i32")
    m = c.new(f"select i1 {plain}, i32 {count}, i32 {depth}")
    n = c.new(f"select i1 {plain}, i32 {depth}, i32 {count}")
    c.do(
        f"call void {code}(i32 101, i32 {flag}, i32 {m}, i32 {n}, {one}, ptr {x}, i32 {ld}, "
        f"ptr {v}, i32 {by}, {zero}, ptr {z}, i32 {to})"
    )


@structure
class Gemv:
    """Products of complex matrices and vectors, inside `loops` loops."""

    dtype: str
    loops: int
    plain = True

    def write(self, module: Module, name: str) -> None:
        """Add the function. Words: sizes and strides of the loops; those of `by_vector`."""
        r = Reader(module)
        arrays = [r.array(), r.array(), r.array()]
        loops = r.loops(self.loops, 3)
        r.units(name, lambda u: by_vector(r, self.dtype, u, loops, arrays))
