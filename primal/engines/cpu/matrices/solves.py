"""Stacks of factorisations and triangular systems: loops over LAPACK and BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Code, Module
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.matrices import small
from primal.engines.cpu.matrices.factorisations import CHUNK, MOST
from primal.engines.cpu.products.blas import LETTER, factors
from primal.engines.cpu.reader import Reader, smaller, square
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

_NAN = "0x7FF8000000000000"
_INT32 = np.dtype(np.int32)


ROWS = 1000
"""Of a matrix to be factored in one thread; for larger ones SciPy's LAPACK may have two."""
LONG = 1 << 25
"""Products of a triangular system that are worth two threads."""
SHARED = 1 << 24
"""The same, where right-hand sides come in strips, which threads share.

Each packs the triangle again: a tenth more for one thread (256 x 256: 745 µs, in two threads 500).
"""
STRIPS, WIDTH = 8, 32
"""Parts of many right-hand sides, and their least width."""


def strip_width(sides: int) -> int:
    """How many of so many right-hand sides a unit takes."""
    return max(-(-sides // (STRIPS * 16)) * 16, WIDTH)


def _routine(
    what: str, name: str, a: Value, sizes: tuple[int, ...], most: int = MOST
) -> tuple[str, int, int]:
    """The dtype, the address of the library's function, and the number of matrices."""
    dtype = a.node.dtype.str[1:]
    if dtype not in LETTER or max(sizes) > most:
        raise Unsupported(f"{what} of {a.dtype}, {sizes}")
    address = openblas.address(name.format(LETTER[dtype]))
    if not address:
        raise Unsupported(f"{what} without OpenBLAS")
    return dtype, address, size_of(a.shape[:-2])


def cholesky(k: Any, a: Value) -> Value:
    """L with L Lᴴ = a, from the lower triangle; nan where there is none."""
    if small.is_small(a):
        return small.cholesky(k, a)
    n = a.shape[-1]
    dtype, address, count = _routine("cholesky", "{}potrf_", a, (n,), ROWS)
    return k.routine(
        Cholesky(dtype), (k.dense(a),), (a.aval,), (address, n, count), units=-(-count // CHUNK),
        cost=CHUNK * (150 + n**3 // 3), updates=((0, 0),), name="cholesky",
    )[0]  # fmt: skip


def lu(k: Any, a: Value, most: int = ROWS) -> list[Value]:
    """Packed factors, swaps of rows, and the permutation they make."""
    if small.is_short(a):
        return small.lu(k, a)
    *lead, m, n = a.shape
    dtype, address, count = _routine("lu", "{}getrf_", a, (m, n), most)
    outs = (a.aval, Aval((*lead, min(m, n)), _INT32), Aval((*lead, m), _INT32))
    return k.routine(
        Lu(dtype), (k.dense(a),), outs, (address, m, n, min(m, n), count),
        units=-(-count // CHUNK), cost=CHUNK * (200 + m * n * min(m, n)), name="lu",
    )  # fmt: skip


def swapped(k: Any, swaps: Value, size: int) -> Value:
    """The permutation of so many rows that swapping row i with row swaps[i], in turn, makes."""
    *lead, n = swaps.shape
    count = size_of(lead)
    found: list[Value] = k.routine(
        Swapped(), (k.dense(swaps),), (Aval((*lead, size), _INT32),), (n, size, count),
        units=-(-count // CHUNK), cost=CHUNK * 2 * size, name="lu_pivots_to_permutation",
    )  # fmt: skip
    return found[0]


def triangular_solve(
    k: Any, a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit_diagonal: bool,
) -> Value:  # fmt: skip
    """x with op(a) x = b or x op(a) = b."""
    if small.is_small(a):
        return small.triangular_solve(
            k, a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal
        )
    n, columns = b.shape[-2:]
    sides = columns if left_side else n
    work = a.shape[-1] ** 2 * sides * (4 if a.node.dtype.kind == "c" else 1)
    strips = work >= SHARED and size_of(a.shape[:-2]) < CHUNK and sides > WIDTH
    most = ROWS if strips or a.shape[-1] * b.size < LONG else MOST
    # A vector takes trsm, which packs, 2 to 5 times as long (100 floats: 7 µs, not 2.5).
    one = left_side and columns == 1
    name = "cblas_{}trsv" if one else "cblas_{}trsm"
    dtype, address, count = _routine("triangular_solve", name, a, a.shape[-2:], most)
    if conjugate_a and not transpose_a and dtype[0] == "c":
        a = k.unary("conj", a)  # OpenBLAS conjugates what it transposes, nothing else.
    width = strip_width(sides) if strips else sides
    each = -(-sides // width) if strips else 1
    words = (
        address, 141 if left_side else 142, 122 if lower else 121,
        111 if not transpose_a else 113 if conjugate_a else 112, 132 if unit_diagonal else 131,
        n, columns, a.shape[-1], *((width, each) if strips else ()), count * each,
    )  # fmt: skip
    chunk = 1 if strips else CHUNK
    return k.routine(
        Triangular(dtype, one, 1 + (not left_side) if strips else 0), (k.dense(a), k.dense(b)),
        (b.aval,), words, units=-(-count * each // chunk),
        cost=chunk * (100 + a.shape[-1] ** 2 * width // 4), updates=((0, 1),),
        name="triangular_solve",
    )[0]  # fmt: skip


def parts_of(dtype: str) -> tuple[str, int, int]:
    """The real type, parts of an element, and bytes of an element."""
    real = "float" if dtype in ("f4", "c8") else "double"
    return real, 1 + (dtype[0] == "c"), int(dtype[1:])


def each_matrix(r: Reader, name: str, count: str, one: Any) -> None:
    """The function: `one(i)` for every matrix of every unit."""
    c = r.c

    def unit(u: str) -> None:
        first = c.new(f"mul i64 {u}, {CHUNK}")
        stop = smaller(c, c.new(f"add i64 {first}, {CHUNK}"), count)
        c.loop(first, stop, "1", [], lambda i, _: one(i) or [])

    r.units(name, unit)


@structure
class Cholesky:
    """potrf in place: the lower triangle by rows is the upper one by columns."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function; words: the routine, n, the number of matrices."""
        r = Reader(module)
        c = r.c
        r.array()
        out = r.array()
        potrf, n, count = r.pointer(), r.word(), r.word()
        real, parts, size = parts_of(self.dtype)
        upper, order, info = c.new("alloca i8"), c.new("alloca i32"), c.new("alloca i32")
        c.do(f"store i8 85, ptr {upper}")  # 'U'
        c.do(f"store i32 {c.new(f'trunc i64 {n} to i32')}, ptr {order}")
        whole = c.new(f"mul i64 {c.new(f'mul i64 {n}, {n}')}, {size}")
        row = c.new(f"mul i64 {n}, {size}")

        def one(i: str) -> None:
            x = r.moved(out, (i, whole))
            c.do(
                f"call void {potrf}(ptr {upper}, ptr {order}, ptr {x}, ptr {order}, ptr {info}, "
                "i64 1)"
            )
            failed = c.new(f"icmp ne i32 {c.new(f'load i32, ptr {info}')}, 0")

            def void(i: str, j: str) -> list[str]:
                p = r.moved(x, (i, row), (j, str(size)))
                c.do(f"store {real} {_NAN}, ptr {p}")
                if parts == 2:
                    p = c.new(f"getelementptr {real}, ptr {p}, i64 1")
                    c.do(f"store {real} {_NAN}, ptr {p}")
                return []

            def above(i: str, _: list[str]) -> list[str]:
                after = c.new(f"add i64 {i}, 1")
                rest = c.new(f"mul i64 {c.new(f'sub i64 {n}, {after}')}, {size}")
                p = r.moved(x, (i, row), (after, str(size)))
                c.call_void(
                    "llvm.memset.p0.i64", ("ptr", p), ("i8", "0"), ("i64", rest), ("i1", "false")
                )
                return []

            c.guarded(failed, [], lambda: square(r, n, n, void))
            c.loop("0", n, "1", [], above)

        each_matrix(r, name, count, one)


@structure
class Lu:
    """getrf of matrices copied by columns."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function; words: the routine, rows, columns, the lesser, number of matrices."""
        r = Reader(module)
        c = r.c
        a, out, swaps, order = r.array(), r.array(), r.array(), r.array()
        getrf, m, n, least, count = r.pointer(), r.word(), r.word(), r.word(), r.word()
        size = parts_of(self.dtype)[2]
        whole = c.new(f"mul i64 {c.new(f'mul i64 {m}, {n}')}, {size}")
        h = c.room(whole)
        rows, columns, info = (c.new("alloca i32") for _ in range(3))
        for p, value in ((rows, m), (columns, n)):
            c.do(f"store i32 {c.new(f'trunc i64 {value} to i32')}, ptr {p}")
        along, down = c.new(f"mul i64 {n}, {size}"), c.new(f"mul i64 {m}, {size}")
        t = f"i{8 * size}"

        def one(i: str) -> None:
            x, z = r.moved(a, (i, whole)), r.moved(out, (i, whole))
            s = r.moved(swaps, (i, c.new(f"mul i64 {least}, 4")))
            o = r.moved(order, (i, c.new(f"mul i64 {m}, 4")))

            def enter(i: str, j: str) -> list[str]:
                value = c.new(f"load {t}, ptr {r.moved(x, (i, along), (j, str(size)))}, align 4")
                c.do(f"store {t} {value}, ptr {r.moved(h, (j, down), (i, str(size)))}, align 4")
                return []

            def leave(i: str, j: str) -> list[str]:
                value = c.new(f"load {t}, ptr {r.moved(h, (j, down), (i, str(size)))}, align 4")
                c.do(f"store {t} {value}, ptr {r.moved(z, (i, along), (j, str(size)))}, align 4")
                return []

            square(r, m, n, enter)
            c.do(
                f"call void {getrf}(ptr {rows}, ptr {columns}, ptr {h}, ptr {rows}, ptr {s}, "
                f"ptr {info})"
            )
            square(r, m, n, leave)

            def counted(i: str, _: list[str]) -> list[str]:
                # LAPACK counts from 1. Whatever it makes of nan, the row is one of the matrix.
                p = r.moved(s, (i, "4"))
                j = c.new(f"sub i32 {c.new(f'load i32, ptr {p}')}, 1")
                c.do(f"store i32 {_within(c, j, m)}, ptr {p}")
                return []

            c.loop("0", least, "1", [], counted)
            _swap(r, s, o, least, m)

        each_matrix(r, name, count, one)


def _within(c: Code, j: str, n: str) -> str:
    """The nearest row to an i32 of n that there are."""
    last = c.new(f"sub i32 {c.new(f'trunc i64 {n} to i32')}, 1")
    j = c.call("llvm.smin.i32", "i32", ("i32", j), ("i32", last))
    return c.call("llvm.smax.i32", "i32", ("i32", j), ("i32", "0"))


def _swap(r: Reader, swaps: str, order: str, n: str, size: str) -> None:
    """The permutation of `size` rows that n swaps make, in turn; negative ones count from behind.

    A swap with a row that is not there is one with the nearest, as indices are read.
    """
    c = r.c

    def begin(i: str, _: list[str]) -> list[str]:
        c.do(f"store i32 {c.new(f'trunc i64 {i} to i32')}, ptr {r.moved(order, (i, '4'))}")
        return []

    def swap(i: str, _: list[str]) -> list[str]:
        j = c.new(f"load i32, ptr {r.moved(swaps, (i, '4'))}")
        around = c.new(f"add i32 {j}, {c.new(f'trunc i64 {size} to i32')}")
        j = c.new(f"select i1 {c.new(f'icmp slt i32 {j}, 0')}, i32 {around}, i32 {j}")
        j = c.new(f"sext i32 {_within(c, j, size)} to i64")
        here, there = r.moved(order, (i, "4")), r.moved(order, (j, "4"))
        first, second = c.new(f"load i32, ptr {here}"), c.new(f"load i32, ptr {there}")
        c.do(f"store i32 {second}, ptr {here}")
        c.do(f"store i32 {first}, ptr {there}")
        return []

    c.loop("0", size, "1", [], begin)
    c.loop("0", n, "1", [], swap)


@structure
class Swapped:
    """Permutations that swaps make. Words: swaps, rows, the number of permutations."""

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module)
        swaps, out = r.array(), r.array()
        n, size, count = r.word(), r.word(), r.word()

        def one(i: str) -> None:
            given, made = (
                r.moved(x, (r.c.new(f"mul i64 {i}, {k}"), "4"))
                for x, k in ((swaps, n), (out, size))
            )
            _swap(r, given, made, n, size)

        each_matrix(r, name, count, one)


@structure
class Triangular:
    """trsm in place of the right-hand sides; trsv where there is `one`, in a column.

    `strips`: 1 for strips of columns, each a unit of its own, 2 for strips of rows.
    """

    dtype: str
    one: bool
    strips: int

    def write(self, module: Module, name: str) -> None:
        """Add the function.

        Words: the routine, its flags, rows, columns, n, of strips their width and the number for
        each matrix, the number of matrices or strips.
        """
        r = Reader(module)
        c = r.c
        a, _, out = r.array(), r.array(), r.array()
        trsm, flags = r.pointer(), [r.int32() for _ in range(4)]
        rows, columns, n = r.word(), r.word(), r.word()
        width, each = (r.word(), r.word()) if self.strips else ("", "")
        count = r.word()
        size = parts_of(self.dtype)[2]
        square = c.new(f"mul i64 {c.new(f'mul i64 {n}, {n}')}, {size}")
        whole = c.new(f"mul i64 {c.new(f'mul i64 {rows}, {columns}')}, {size}")
        m32, c32, n32 = (c.new(f"trunc i64 {v} to i32") for v in (rows, columns, n))
        alpha, _ = factors(c, self.dtype)
        given = ", ".join(f"i32 {f}" for f in flags)

        def strip(u: str) -> None:
            i, s = r.split(u, each)
            first = c.new(f"mul i64 {s}, {width}")
            along = str(size) if self.strips == 1 else c.new(f"mul i64 {columns}, {size}")
            x, z = r.moved(a, (i, square)), r.moved(out, (i, whole), (first, along))
            across = columns if self.strips == 1 else rows
            there = smaller(c, width, c.new(f"sub i64 {across}, {first}"))
            some = c.new(f"trunc i64 {there} to i32")
            sizes = (m32, some) if self.strips == 1 else (some, c32)
            c.do(
                f"call void {trsm}(i32 101, {given}, i32 {sizes[0]}, i32 {sizes[1]}, {alpha}, "
                f"ptr {x}, i32 {n32}, ptr {z}, i32 {c32})"
            )

        def one(i: str) -> None:
            x, z = r.moved(a, (i, square)), r.moved(out, (i, whole))
            if self.one:
                fewer = ", ".join(f"i32 {f}" for f in flags[1:])
                c.do(
                    f"call void {trsm}(i32 101, {fewer}, i32 {m32}, ptr {x}, i32 {n32}, ptr {z}, "
                    "i32 1)"
                )
                return
            c.do(
                f"call void {trsm}(i32 101, {given}, i32 {m32}, i32 {c32}, {alpha}, ptr {x}, "
                f"i32 {n32}, ptr {z}, i32 {c32})"
            )

        if self.strips:
            r.units(name, strip)
        else:
            each_matrix(r, name, count, one)
