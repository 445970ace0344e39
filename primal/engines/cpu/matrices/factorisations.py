"""Factorisations of stacks of small matrices: loops over LAPACK without a way back to Python.

For large matrices the `impl` of an op, LAPACK through NumPy or SciPy, loses nothing; for stacks of
small ones what surrounds LAPACK takes longer than it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Code, Module
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.products.blas import LETTER
from primal.engines.cpu.reader import Reader
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

MOST = 64
"""The largest matrices; above this LAPACK's blocked algorithms begin."""
CHUNK = 4
"""Matrices per unit."""


def eigenvalues(k: Any, a: Value, dtype: Any) -> Value:
    """Of square matrices, in LAPACK's order; nan for a matrix with a non-finite element."""
    name, n = a.node.dtype.str[1:], a.shape[-1]
    if name not in LETTER or n > MOST:
        raise Unsupported(f"eigenvalues of {n} x {n} matrices of {a.dtype}")
    letter = LETTER[{"f4": "f8", "c8": "c16"}.get(name, name)]
    routines = [openblas.address(f"{letter}{r}_") for r in ("gebal", "gehd2", "lahqr", "geev")]
    if not all(routines):
        raise Unsupported("eigenvalues without LAPACK")
    a = k.dense(a)
    count = size_of(a.shape[:-2])
    units = -(-count // CHUNK)
    return k.routine(
        Eigenvalues(name), (a,), (Aval(a.shape[:-1], dtype),), (*routines, n, count), units=units,
        cost=CHUNK * (300 + 60 * n * n + 10 * n**3), name="eigenvalues",
    )[0]  # fmt: skip


@structure
class Eigenvalues:
    """LAPACK's geev without vectors, taken apart: balance, reduce to Hessenberg form, iterate.

    geev spends more than half of its time on 3 x 3 matrices asking for block sizes. What it does
    besides, scaling where elements are extreme and other iterations where this one fails, is left
    to it. Single precision is computed in double, as NumPy does.
    """

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function; words: the routines, n, the number of matrices."""
        r = Reader(module)
        c = r.c
        a, out = r.array(), r.array()
        gebal, gehd2, lahqr, geev = (r.pointer() for _ in range(4))
        n, count = r.word(), r.word()
        # `real` and `item` are of the computation, `given` and `size` of the arrays.
        given = "float" if self.dtype in ("f4", "c8") else "double"
        real, item, size = "double", 8, 4 if given == "float" else 8
        parts = 2 if self.dtype[0] == "c" else 1
        square = c.new(f"mul i64 {n}, {n}")
        all_in = c.new(f"mul i64 {square}, {size * parts}")

        def room(bytes_: str) -> str:
            return c.new(f"alloca i8, i64 {bytes_}, align 16")

        row = c.new(f"mul i64 {n}, {item * parts}")
        h = room(c.new(f"mul i64 {square}, {item * parts}"))
        scale, tau = room(row), room(row)
        # The workspace of geev: 3 n is enough for real matrices, 2 n and 2 n for complex ones.
        long = c.new(f"mul i64 {row}, 4")
        work, more, wr, wi = room(long), room(long), room(row), room(row)
        ints = {
            v: c.new("alloca i32")
            for v in ("n", "ilo", "ihi", "info", "no", "one", "long", "flag")
        }
        n32 = c.new(f"trunc i64 {n} to i32")
        for key, value in (("n", n32), ("no", "0"), ("one", "1")):
            c.do(f"store i32 {value}, ptr {ints[key]}")
        c.do(f"store i32 {c.new(f'mul i32 {n32}, 4')}, ptr {ints['long']}")
        c.do(f"store i8 66, ptr {ints['flag']}")  # 'B'
        letter = c.new("alloca i8")
        c.do(f"store i8 78, ptr {letter}")  # 'N'
        p = ints

        def unit(u: str) -> None:
            first = c.new(f"mul i64 {u}, {CHUNK}")
            last = c.new(f"add i64 {first}, {CHUNK}")
            stop = c.call("llvm.smin.i64", "i64", ("i64", last), ("i64", count))
            c.loop(first, stop, "1", [], one)

        def one(i: str, _: list[str]) -> list[str]:
            x = r.moved(a, (i, all_in))
            w = r.moved(out, (c.new(f"mul i64 {i}, {n}"), str(2 * size)))
            largest = self._columns(c, r, x, h, n, given, parts)
            good, bad, plain, full, split, done = (
                c.label(s) for s in ("good", "bad", "plain", "full", "split", "done")
            )
            finite = c.new(f"fcmp one {real} {largest}, 0x7FF0000000000000")
            zero = c.new(f"fcmp oeq {real} {largest}, 0.0")
            c.do(f"br i1 {finite}, label %{good}, label %{bad}")
            c.start(good)
            low = float(np.sqrt(np.finfo(float).tiny) / np.finfo(float).eps)
            small, big = (f"0x{np.float64(v).view(np.uint64):016X}" for v in (low, 1 / low))
            above = c.new(f"fcmp oge {real} {largest}, {small}")
            below = c.new(f"fcmp ole {real} {largest}, {big}")
            usual = c.new(f"or i1 {zero}, {c.new(f'and i1 {above}, {below}')}")
            c.do(f"br i1 {usual}, label %{plain}, label %{full}")
            c.start(plain)
            c.do(
                f"call void {gebal}(ptr {p['flag']}, ptr {p['n']}, ptr {h}, ptr {p['n']}, "
                f"ptr {p['ilo']}, ptr {p['ihi']}, ptr {scale}, ptr {p['info']}, i64 1)"
            )
            c.do(
                f"call void {gehd2}(ptr {p['n']}, ptr {p['ilo']}, ptr {p['ihi']}, ptr {h}, "
                f"ptr {p['n']}, ptr {tau}, ptr {work}, ptr {p['info']})"
            )
            self._diagonal(c, r, h, wr, wi, n, item, parts, real)
            values = f"ptr {wr}" if parts == 2 else f"ptr {wr}, ptr {wi}"
            c.do(
                f"call void {lahqr}(ptr {p['no']}, ptr {p['no']}, ptr {p['n']}, ptr {p['ilo']}, "
                f"ptr {p['ihi']}, ptr {h}, ptr {p['n']}, {values}, ptr {p['one']}, "
                f"ptr {p['one']}, ptr {work}, ptr {p['one']}, ptr {p['info']})"
            )
            failed = c.new(f"icmp ne i32 {c.new('load i32, ptr ' + p['info'])}, 0")
            c.do(f"br i1 {failed}, label %{full}, label %{split}")
            c.start(full)
            self._columns(c, r, x, h, n, given, parts)
            tail = f"ptr {work}, ptr {p['long']}, "
            tail += f"ptr {more}, ptr {p['info']}" if parts == 2 else f"ptr {p['info']}"
            c.do(
                f"call void {geev}(ptr {letter}, ptr {letter}, ptr {p['n']}, ptr {h}, "
                f"ptr {p['n']}, {values}, ptr {scale}, ptr {p['one']}, ptr {tau}, "
                f"ptr {p['one']}, {tail}, i64 1, i64 1)"
            )
            failed = c.new(f"icmp ne i32 {c.new('load i32, ptr ' + p['info'])}, 0")
            c.do(f"br i1 {failed}, label %{bad}, label %{split}")

            def fill(j: str, _: list[str]) -> list[str]:
                to = r.moved(w, (j, str(2 * size)))
                nan = "0x7FF8000000000000"  # and no imaginary part, as NumPy assigns it
                c.do(f"store [2 x {given}] [{given} {nan}, {given} 0.0], ptr {to}")
                return []

            def join(j: str, _: list[str]) -> list[str]:
                to = r.moved(w, (j, str(2 * size)))
                if parts == 2:
                    even = c.new(f"shl i64 {j}, 1")
                    places = [(wr, even), (wr, c.new(f"add i64 {even}, 1"))]
                else:
                    places = [(wr, j), (wi, j)]
                for at, (v, index) in enumerate(places):
                    part = c.new(f"load double, ptr {r.moved(v, (index, '8'))}")
                    if given == "float":
                        part = c.new(f"fptrunc double {part} to float")
                    q = c.new(f"getelementptr {given}, ptr {to}, i64 {at}")
                    c.do(f"store {given} {part}, ptr {q}")
                return []

            c.start(bad)
            c.loop("0", n, "1", [], fill)
            c.do(f"br label %{done}")
            c.start(split)
            c.loop("0", n, "1", [], join)
            c.do(f"br label %{done}")
            c.start(done)
            return []

        r.units(name, unit)

    @staticmethod
    def _columns(c: Code, r: Reader, x: str, h: str, n: str, given: str, parts: int) -> str:
        """Copy a matrix by columns; its largest element, infinite where one is not finite."""
        infinity = "0x7FF0000000000000"
        step, to_step = str((4 if given == "float" else 8) * parts), str(8 * parts)

        def row(i: str, now: list[str]) -> list[str]:
            def element(j: str, now: list[str]) -> list[str]:
                at = c.new(f"add i64 {c.new(f'mul i64 {i}, {n}')}, {j}")
                to = c.new(f"add i64 {c.new(f'mul i64 {j}, {n}')}, {i}")
                source, target = r.moved(x, (at, step)), r.moved(h, (to, to_step))
                (largest,) = now
                for part in range(parts):
                    q = c.new(f"getelementptr {given}, ptr {source}, i64 {part}")
                    value = c.new(f"load {given}, ptr {q}")
                    if given == "float":
                        value = c.new(f"fpext float {value} to double")
                    q = c.new(f"getelementptr double, ptr {target}, i64 {part}")
                    c.do(f"store double {value}, ptr {q}")
                    size = c.call("llvm.fabs.f64", "double", ("double", value))
                    # A nan is not less than anything: it counts as infinite.
                    less = c.new(f"fcmp olt double {size}, {infinity}")
                    size = c.new(f"select i1 {less}, double {size}, double {infinity}")
                    more = c.new(f"fcmp ogt double {size}, {largest}")
                    largest = c.new(f"select i1 {more}, double {size}, double {largest}")
                return [largest]

            return c.loop("0", n, "1", [("double", now[0])], element)

        return c.loop("0", n, "1", [("double", "0.0")], row)[0]

    @staticmethod
    def _diagonal(
        c: Code, r: Reader, h: str, wr: str, wi: str, n: str, item: int, parts: int, real: str
    ) -> None:
        """The eigenvalues that balancing has isolated; the iteration writes the others."""
        step = c.new(f"mul i64 {c.new(f'add i64 {n}, 1')}, {item * parts}")

        def turn(j: str, _: list[str]) -> list[str]:
            t = f"[{parts} x {real}]"
            value = c.new(f"load {t}, ptr {r.moved(h, (j, step))}")
            c.do(f"store {t} {value}, ptr {r.moved(wr, (j, str(item * parts)))}")
            if parts == 1:
                c.do(f"store {real} 0.0, ptr {r.moved(wi, (j, str(item)))}")
            return []

        c.loop("0", n, "1", [], turn)
