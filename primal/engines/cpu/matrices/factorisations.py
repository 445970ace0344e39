"""Factorisations of stacks of small matrices: loops over LAPACK without a way back to Python.

For large matrices the `impl` of an op, LAPACK through NumPy or SciPy, loses nothing; for stacks of
small ones what surrounds LAPACK takes longer than it does.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.products.blas import LETTER
from primal.engines.cpu.reader import Reader
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

MOST = 64
"""The largest matrices; above this LAPACK's blocked algorithms begin."""
CHUNK = 4
"""Matrices per unit."""
ITEM = 8
"""Bytes of a double, in which eigenvalues are computed."""
INFINITY = "0x7FF0000000000000"


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
        _EigenvaluesCode(module, self.dtype).function(name)


class _EigenvaluesCode:
    """The code: a matrix is copied to h, on which LAPACK's routines are called."""

    def __init__(self, module: Module, dtype: str) -> None:
        self.r = r = Reader(module)
        self.c = c = r.c
        # Of the arrays; all is computed in doubles.
        self.given = "float" if dtype in ("f4", "c8") else "double"
        self.size = 4 if self.given == "float" else 8
        self.parts = parts = 2 if dtype[0] == "c" else 1
        self.a, self.out = r.array(), r.array()
        self.gebal, self.gehd2, self.lahqr, self.geev = (r.pointer() for _ in range(4))
        self.n, self.count = r.word(), r.word()
        square = c.new(f"mul i64 {self.n}, {self.n}")
        self.matrix = c.new(f"mul i64 {square}, {self.size * parts}")
        row = c.new(f"mul i64 {self.n}, {ITEM * parts}")
        self.h = self._room(c.new(f"mul i64 {square}, {ITEM * parts}"))
        self.scale, self.tau = self._room(row), self._room(row)
        # The workspace of geev: 3 n is enough for real matrices, 2 n and 2 n for complex ones.
        long = c.new(f"mul i64 {row}, 4")
        self.work, self.more = self._room(long), self._room(long)
        self.wr, self.wi = self._room(row), self._room(row)
        names = ("n", "ilo", "ihi", "info", "no", "one", "long", "flag")
        self.ints = {name: c.new("alloca i32") for name in names}
        n = c.new(f"trunc i64 {self.n} to i32")
        for name, value in (("n", n), ("no", "0"), ("one", "1")):
            c.do(f"store i32 {value}, ptr {self.ints[name]}")
        c.do(f"store i32 {c.new(f'mul i32 {n}, 4')}, ptr {self.ints['long']}")
        c.do(f"store i8 66, ptr {self.ints['flag']}")  # 'B'
        self.letter = c.new("alloca i8")
        c.do(f"store i8 78, ptr {self.letter}")  # 'N'
        # geev's and lahqr's parts of the eigenvalues.
        self.values = [self.wr] if parts == 2 else [self.wr, self.wi]

    def function(self, name: str) -> None:
        c = self.c

        def unit(u: str) -> None:
            first = c.new(f"mul i64 {u}, {CHUNK}")
            last = c.new(f"add i64 {first}, {CHUNK}")
            stop = c.call("llvm.smin.i64", "i64", ("i64", last), ("i64", self.count))
            c.loop(first, stop, "1", [], self._matrix)

        self.r.units(name, unit)

    def _room(self, bytes_: str) -> str:
        return self.c.new(f"alloca i8, i64 {bytes_}, align 16")

    def _call(self, routine: str, *given: str, lengths: int = 0) -> None:
        """LAPACK's routine, by Fortran's rules: pointers, then the lengths of strings, which are 1.

        What is given are names of numbers, or places.
        """
        pointers = [f"ptr {self.ints.get(place, place)}" for place in given]
        listed = ", ".join([*pointers, *["i64 1"] * lengths])
        self.c.do(f"call void {routine}({listed})")

    def _failed(self) -> str:
        return self.c.new(f"icmp ne i32 {self.c.new('load i32, ptr ' + self.ints['info'])}, 0")

    def _matrix(self, i: str, _: list[str]) -> list[str]:
        """The eigenvalues of one matrix."""
        c, r, h = self.c, self.r, self.h
        x = r.moved(self.a, (i, self.matrix))
        w = r.moved(self.out, (c.new(f"mul i64 {i}, {self.n}"), str(2 * self.size)))
        largest = self._columns(x)
        good, bad, plain, full, split, done = (
            c.label(s) for s in ("good", "bad", "plain", "full", "split", "done")
        )
        finite = c.new(f"fcmp one double {largest}, {INFINITY}")
        zero = c.new(f"fcmp oeq double {largest}, 0.0")
        c.do(f"br i1 {finite}, label %{good}, label %{bad}")
        c.start(good)
        low = float(np.sqrt(np.finfo(float).tiny) / np.finfo(float).eps)
        small, big = (f"0x{np.float64(v).view(np.uint64):016X}" for v in (low, 1 / low))
        above = c.new(f"fcmp oge double {largest}, {small}")
        below = c.new(f"fcmp ole double {largest}, {big}")
        usual = c.new(f"or i1 {zero}, {c.new(f'and i1 {above}, {below}')}")
        c.do(f"br i1 {usual}, label %{plain}, label %{full}")
        c.start(plain)
        self._call(
            self.gebal, "flag", "n", h, "n", "ilo", "ihi", self.scale, "info", lengths=1
        )
        self._call(self.gehd2, "n", "ilo", "ihi", h, "n", self.tau, self.work, "info")
        self._diagonal()
        self._call(
            self.lahqr, "no", "no", "n", "ilo", "ihi", h, "n", *self.values, "one", "one",
            self.work, "one", "info",
        )  # fmt: skip
        c.do(f"br i1 {self._failed()}, label %{full}, label %{split}")
        c.start(full)
        self._columns(x)
        more = [self.more] if self.parts == 2 else []
        self._call(
            self.geev, self.letter, self.letter, "n", h, "n", *self.values, self.scale, "one",
            self.tau, "one", self.work, "long", *more, "info", lengths=2,
        )  # fmt: skip
        c.do(f"br i1 {self._failed()}, label %{bad}, label %{split}")
        for label, element in ((bad, self._nan), (split, self._joined)):
            c.start(label)
            c.loop("0", self.n, "1", [], functools.partial(element, w))
            c.do(f"br label %{done}")
        c.start(done)
        return []

    def _nan(self, w: str, j: str, _: list[str]) -> list[str]:
        """No eigenvalue: and no imaginary part, as NumPy assigns it."""
        to = self.r.moved(w, (j, str(2 * self.size)))
        t = self.given
        self.c.do(f"store [2 x {t}] [{t} 0x7FF8000000000000, {t} 0.0], ptr {to}")
        return []

    def _joined(self, w: str, j: str, _: list[str]) -> list[str]:
        """An eigenvalue of its parts."""
        c, r = self.c, self.r
        to = r.moved(w, (j, str(2 * self.size)))
        if self.parts == 2:
            even = c.new(f"shl i64 {j}, 1")
            places = [(self.wr, even), (self.wr, c.new(f"add i64 {even}, 1"))]
        else:
            places = [(self.wr, j), (self.wi, j)]
        for at, (v, index) in enumerate(places):
            part = c.new(f"load double, ptr {r.moved(v, (index, '8'))}")
            if self.given == "float":
                part = c.new(f"fptrunc double {part} to float")
            q = c.new(f"getelementptr {self.given}, ptr {to}, i64 {at}")
            c.do(f"store {self.given} {part}, ptr {q}")
        return []

    def _columns(self, x: str) -> str:
        """Copy a matrix by columns; its largest element, infinite where one is not finite."""
        c, r, n = self.c, self.r, self.n
        step, to_step = str(self.size * self.parts), str(ITEM * self.parts)

        def row(i: str, now: list[str]) -> list[str]:
            def element(j: str, now: list[str]) -> list[str]:
                at = c.new(f"add i64 {c.new(f'mul i64 {i}, {n}')}, {j}")
                to = c.new(f"add i64 {c.new(f'mul i64 {j}, {n}')}, {i}")
                source, target = r.moved(x, (at, step)), r.moved(self.h, (to, to_step))
                (largest,) = now
                for part in range(self.parts):
                    largest = self._copied(source, target, part, largest)
                return [largest]

            return c.loop("0", n, "1", [("double", now[0])], element)

        return c.loop("0", n, "1", [("double", "0.0")], row)[0]

    def _copied(self, source: str, target: str, part: int, largest: str) -> str:
        """Copy part of an element; the largest with it."""
        c = self.c
        q = c.new(f"getelementptr {self.given}, ptr {source}, i64 {part}")
        value = c.new(f"load {self.given}, ptr {q}")
        if self.given == "float":
            value = c.new(f"fpext float {value} to double")
        q = c.new(f"getelementptr double, ptr {target}, i64 {part}")
        c.do(f"store double {value}, ptr {q}")
        size = c.call("llvm.fabs.f64", "double", ("double", value))
        # A nan is not less than anything: it counts as infinite.
        less = c.new(f"fcmp olt double {size}, {INFINITY}")
        size = c.new(f"select i1 {less}, double {size}, double {INFINITY}")
        more = c.new(f"fcmp ogt double {size}, {largest}")
        return c.new(f"select i1 {more}, double {size}, double {largest}")

    def _diagonal(self) -> None:
        """The eigenvalues that balancing has isolated; the iteration writes the others."""
        c, r = self.c, self.r
        step = c.new(f"mul i64 {c.new(f'add i64 {self.n}, 1')}, {ITEM * self.parts}")

        def turn(j: str, _: list[str]) -> list[str]:
            t = f"[{self.parts} x double]"
            value = c.new(f"load {t}, ptr {r.moved(self.h, (j, step))}")
            c.do(f"store {t} {value}, ptr {r.moved(self.wr, (j, str(ITEM * self.parts)))}")
            if self.parts == 1:
                c.do(f"store double 0.0, ptr {r.moved(self.wi, (j, str(ITEM)))}")
            return []

        c.loop("0", self.n, "1", [], turn)
