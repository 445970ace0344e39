"""Spectra of stacks of matrices: LAPACK's eigenvectors and singular vectors, without Python.

The signs of vectors follow from the course of the iteration, so that a method of our own would give
others than eager evaluation; the routine called here is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.matrices.factorisations import CHUNK
from primal.engines.cpu.matrices.solves import each_matrix, parts_of
from primal.engines.cpu.products.blas import LETTER
from primal.engines.cpu.reader import Reader, square
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

ROOM = 1 << 16
"""Bytes of a matrix: for larger ones LAPACK takes far longer than what is around it."""
VALUES = 1 << 20
"""The same where no vectors are wanted: OpenBLAS is faster in one thread than NumPy's in two."""


def stack(what: str, k: Any, spec: Any, a: Value, outs: Any, words: Any, cost: int) -> list[Value]:
    """A step that runs the code of a spec over matrices; `cost` of one in nanoseconds."""
    count = size_of(a.shape[:-2])
    found: list[Value] = k.routine(
        spec, (k.dense(a),), outs, (*words, count), units=-(-count // CHUNK), cost=CHUNK * cost,
        name=what,
    )  # fmt: skip
    return found


def dtype_for(what: str, a: Value, address: int, outs: Sequence[Aval], most: int = ROOM) -> str:
    """The dtype of matrices that a routine at an address is called for."""
    dtype = str(a.node.dtype.str[1:])
    # Of vectors, the last dimension alone is a matrix's own.
    largest = max([size_of(shape[a.ndim - 2 :]) for shape in (a.shape, *[x.shape for x in outs])])
    if dtype not in LETTER or not address or largest * a.node.dtype.itemsize > most:
        raise Unsupported(f"{what} of {a.dtype}, {a.shape}")
    return dtype


def _ours(a: Value, name: str) -> int:
    """The routine of the library that runs in one thread; without vectors no signs differ."""
    return openblas.address(f"{LETTER.get(a.node.dtype.str[1:], '')}{name}_")


def eigh(k: Any, a: Value, outs: Sequence[Aval], lower: bool, address: int) -> list[Value]:
    """By syevd or heevd, at that address: vectors, if they are wanted, and values."""
    if len(outs) == 1:
        address = _ours(a, "heevd" if a.node.dtype.kind == "c" else "syevd") or address
    most = VALUES if len(outs) == 1 else ROOM
    spec = Eigh(dtype_for("eigh", a, address, outs, most), lower, len(outs) == 2)
    n = a.shape[-1]
    return stack("eigh", k, spec, a, outs, (address, n), 500 + 300 * n + 10 * n**3)


def svd(
    k: Any, a: Value, outs: Sequence[Aval], full: bool, algorithm: str, address: int, room: int
) -> list[Value]:
    """By gesdd or gesvd, at that address, in so much workspace: values and, if wanted, vectors."""
    if len(outs) == 1:
        address = _ours(a, algorithm) or address
    dtype = dtype_for("svd", a, address, outs, VALUES if len(outs) == 1 else ROOM)
    m, n = a.shape[-2:]
    least = min(m, n)
    left, right = (m, n) if full else (least, least)
    spec = Svd(dtype, algorithm, full, len(outs) == 3)
    words = (address, m, n, least, left, right, room)
    return stack("svd", k, spec, a, outs, words, 1500 + 500 * least + 20 * m * n * least)


def eig(
    k: Any, a: Value, outs: Sequence[Aval], left: bool, right: bool, address: int, room: int
) -> list[Value]:
    """By geev, at that address, in so much workspace: values, and vectors that are wanted."""
    spec = Eig(dtype_for("eig", a, address, outs), left, right)
    n = a.shape[-1]
    return stack("eig", k, spec, a, outs, (address, n, room), 1500 + 500 * n + 25 * n**3)


def schur(k: Any, a: Value, outs: Sequence[Aval], address: int, room: int) -> list[Value]:
    """By gees, at that address, in so much workspace: T and, if wanted, Q."""
    spec = Schur(dtype_for("schur", a, address, outs), len(outs) == 2)
    n = a.shape[-1]
    return stack("schur", k, spec, a, outs, (address, n, room), 1500 + 500 * n + 20 * n**3)


class Caller(Reader):
    """A loop over matrices that calls a routine of Fortran's for each."""

    def __init__(self, module: Module, dtype: str) -> None:
        super().__init__(module)
        self.real, self.parts, self.size = parts_of(dtype)

    def times(self, *xs: str | int) -> str:
        """A product of whole numbers."""
        out = str(xs[0])
        for x in xs[1:]:
            out = self.c.new(f"mul i64 {out}, {x}")
        return out

    def plus(self, *xs: str | int) -> str:
        """A sum of whole numbers."""
        out = str(xs[0])
        for x in xs[1:]:
            out = self.c.new(f"add i64 {out}, {x}")
        return out

    def integer(self, value: str) -> str:
        """Where a routine finds an integer."""
        p = self.c.new("alloca i32")
        self.c.do(f"store i32 {self.c.new(f'trunc i64 {value} to i32')}, ptr {p}")
        return p

    def letter(self, text: str) -> str:
        """Where a routine finds a letter."""
        p = self.c.new("alloca i8")
        self.c.do(f"store i8 {ord(text)}, ptr {p}")
        return p

    def entered(self, x: str, to: str, rows: str, columns: str) -> str:
        """Copy a matrix by columns; whether it is finite."""
        c = self.c
        along, down = self.times(columns, self.size), self.times(rows, self.size)
        single = self.size // self.parts

        def element(i: str, j: str, fine: str) -> list[str]:
            source = self.moved(x, (i, along), (j, str(self.size)))
            target = self.moved(to, (j, down), (i, str(self.size)))
            for part in range(self.parts):
                p, q = (c.new(f"getelementptr {self.real}, ptr {v}, i64 {part}")
                        for v in (source, target))  # fmt: skip
                value = c.new(f"load {self.real}, ptr {p}")
                c.do(f"store {self.real} {value}, ptr {q}")
                size = c.call(f"llvm.fabs.f{8 * single}", self.real, (self.real, value))
                less = c.new(f"fcmp olt {self.real} {size}, 0x7FF0000000000000")
                fine = c.new(f"and i1 {fine}, {less}")
            return [fine]

        return square(self, rows, columns, element, [("i1", "true")])[0]

    def called(self, fine: str, address: str, given: Sequence[str], letters: int) -> str:
        """Call the routine, if all is fine; whether it has succeeded."""
        c = self.c
        info = c.new("alloca i32")
        pointers = ", ".join([f"ptr {p}" for p in (*given, info)])

        def body() -> list[str]:
            # Behind them come the lengths of the letters.
            c.do(f"call void {address}({pointers}{', i64 1' * letters})")
            return [c.new(f"icmp eq i32 {c.new(f'load i32, ptr {info}')}, 0")]

        return c.guarded(fine, [("i1", "false")], body)[0]

    def left(self, x: str, to: str, rows: str, columns: str, good: str, parts: int) -> None:
        """Copy a matrix that lies by columns; nan unless it is good."""
        c = self.c
        size = self.size // self.parts * parts
        along, down = self.times(columns, size), self.times(rows, size)

        def element(i: str, j: str) -> list[str]:
            source = self.moved(x, (j, down), (i, str(size)))
            target = self.moved(to, (i, along), (j, str(size)))
            for part in range(parts):
                p, q = (c.new(f"getelementptr {self.real}, ptr {v}, i64 {part}")
                        for v in (source, target))  # fmt: skip
                value = c.new(f"load {self.real}, ptr {p}")
                bad = "0.0" if part else "0x7FF8000000000000"
                value = c.new(f"select i1 {good}, {self.real} {value}, {self.real} {bad}")
                c.do(f"store {self.real} {value}, ptr {q}")
            return []

        square(self, rows, columns, element)

    def number(self, x: str, i: str) -> str:
        """The i-th number of an array of real ones."""
        return self.c.new(f"load {self.real}, ptr {self.moved(x, (i, str(self.size)))}")

    def joined(
        self, to: str, rows: str, columns: str, good: str,
        element: Callable[[str, str], Sequence[str]],
    ) -> None:  # fmt: skip
        """Store a matrix of complex numbers whose parts are `element(i, j)`; nan unless good."""
        c, t = self.c, self.real
        size = 2 * self.size
        along = self.times(columns, size)

        def store(i: str, j: str) -> list[str]:
            target = self.moved(to, (i, along), (j, str(size)))
            for part, value in enumerate(element(i, j)):
                bad = "0.0" if part else "0x7FF8000000000000"
                value = c.new(f"select i1 {good}, {t} {value}, {t} {bad}")
                c.do(f"store {t} {value}, ptr {self.moved(target, (str(part), str(self.size)))}")
            return []

        square(self, rows, columns, store)


@structure
class Eigh:
    """syevd or heevd. Words: its address, n, the number of matrices."""

    dtype: str
    lower: bool
    vectors: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a = r.array()
        v = r.array() if self.vectors else ""
        w = r.array()
        address, n, count = r.pointer(), r.word(), r.word()
        single = r.size // r.parts
        squared = r.times(n, n)
        # As much as the routines' documentation asks for.
        if r.parts == 1:
            work = r.plus(r.times(2, squared), r.times(6, n), 1)
        else:
            work = r.plus(squared, r.times(2, n), 1)
        more = r.plus(r.times(2, squared), r.times(5, n), 1)
        whole = r.plus(r.times(5, n), 3)
        bytes_ = r.times(squared, r.size)
        h, values = r.c.room(bytes_), r.c.room(r.times(n, single))
        order = r.integer(n)
        given = [
            r.letter("V" if self.vectors else "N"), r.letter("L" if self.lower else "U"),
            order, h, order, values, r.c.room(r.times(work, r.size)), r.integer(work),
        ]  # fmt: skip
        if r.parts == 2:
            given += [r.c.room(r.times(more, single)), r.integer(more)]
        given += [r.c.room(r.times(whole, 4)), r.integer(whole)]

        def one(i: str) -> None:
            fine = r.entered(r.moved(a, (i, bytes_)), h, n, n)
            good = r.called(fine, address, given, 2)
            if self.vectors:
                r.left(h, r.moved(v, (i, bytes_)), n, n, good, r.parts)
            r.left(values, r.moved(w, (i, r.times(n, single))), n, "1", good, 1)

        each_matrix(r, name, count, one)


@structure
class Eig:
    """geev. Words: its address, n, workspace, the number of matrices."""

    dtype: str
    left: bool
    right: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a, w, *outs = (r.array() for _ in range(2 + self.left + self.right))
        address, n, work, count = r.pointer(), r.word(), r.word(), r.word()
        single = r.size // r.parts
        row, bytes_ = r.times(n, r.size), r.times(n, n, r.size)
        h, order = r.c.room(bytes_), r.integer(n)
        values = [r.c.room(row) for _ in range(3 - r.parts)]
        wanted = self.left, self.right
        found = [r.c.room(bytes_ if wants else "0") for wants in wanted]
        given = [
            *[r.letter("V" if wants else "N") for wants in wanted], order, h, order, *values,
            found[0], order, found[1], order, r.c.room(r.times(work, r.size)), r.integer(work),
        ]  # fmt: skip
        if r.parts == 2:
            given.append(r.c.room(r.times(n, 2 * single)))
        of_complex = r.times(n, 2 * single)

        def one(i: str) -> None:
            fine = r.entered(r.moved(a, (i, r.times(n, row))), h, n, n)
            good = r.called(fine, address, given, 2)
            to = r.moved(w, (i, of_complex))
            kept = [v for v, wants in zip(found, wanted, strict=True) if wants]
            if r.parts == 2:
                r.left(values[0], to, n, "1", good, 2)
            else:
                r.joined(to, n, "1", good, lambda j, _: [r.number(v, j) for v in values])
            for out, v in zip(outs, kept, strict=True):
                to = r.moved(out, (i, r.times(n, of_complex)))
                if r.parts == 2:
                    r.left(v, to, n, n, good, 2)
                else:
                    pair = functools.partial(self._pair, r, v, values[1], n)
                    r.joined(to, n, n, good, pair)

        each_matrix(r, name, count, one)

    @staticmethod
    def _pair(r: Caller, v: str, imaginary: str, n: str, i: str, j: str) -> list[str]:
        """Of the columns in which LAPACK packs conjugate pairs: real part, then imaginary part."""
        c, t = r.c, r.real
        w = r.number(imaginary, j)
        first, second = (c.new(f"fcmp {how} {t} {w}, 0.0") for how in ("ogt", "olt"))
        after, before = (c.new(f"zext i1 {m} to i64") for m in (first, second))
        re = r.number(v, r.plus(r.times(c.new(f"sub i64 {j}, {before}"), n), i))
        im = r.number(v, r.plus(r.times(r.plus(j, after), n), i))
        other = c.new(f"select i1 {second}, {t} {c.new(f'fneg {t} {im}')}, {t} 0.0")
        return [re, c.new(f"select i1 {first}, {t} {im}, {t} {other}")]


@structure
class Schur:
    """gees. Words: its address, n, workspace, the number of matrices."""

    dtype: str
    vectors: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a, *outs = (r.array() for _ in range(2 + self.vectors))
        address, n, work, count = r.pointer(), r.word(), r.word(), r.word()
        row, bytes_ = r.times(n, r.size), r.times(n, n, r.size)
        t, q = (r.c.room(b) for b in (bytes_, bytes_ if self.vectors else "0"))
        order = r.integer(n)
        # Eigenvalues are not sorted: no function is asked which come first, and none counted.
        select, found, sorted_ = (r.c.room(b) for b in ("8", "4", r.times(n, 4)))
        given = [
            r.letter("V" if self.vectors else "N"), r.letter("N"), select, order, t, order, found,
            *[r.c.room(row) for _ in range(3 - r.parts)], q, order,
            r.c.room(r.times(work, r.size)), r.integer(work),
        ]  # fmt: skip
        if r.parts == 2:
            given.append(r.c.room(row))
        given.append(sorted_)

        def one(i: str) -> None:
            fine = r.entered(r.moved(a, (i, bytes_)), t, n, n)
            good = r.called(fine, address, given, 2)
            for x, out in zip((t, q), outs, strict=False):
                r.left(x, r.moved(out, (i, bytes_)), n, n, good, r.parts)

        each_matrix(r, name, count, one)


@structure
class Svd:
    """gesdd, gesvd. Words: address, sizes of a, of s, of U and Vᴴ, workspace, how many matrices."""

    dtype: str
    algorithm: str
    full: bool
    vectors: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a, s, *uv = (r.array() for _ in range(4 if self.vectors else 2))
        address, m, n, least, left, right, work, count = (
            r.pointer(), *[r.word() for _ in range(7)],
        )  # fmt: skip
        single = r.size // r.parts
        bytes_ = r.times(m, n, r.size)
        into = [r.times(m, left, r.size), r.times(right, n, r.size)]
        h, values = r.c.room(bytes_), r.c.room(r.times(least, single))
        u, vh = (r.c.room(b if self.vectors else "0") for b in into)
        rows, columns = r.integer(m), r.integer(n)
        mode = "N" if not self.vectors else "A" if self.full else "S"
        divided = self.algorithm == "gesdd"
        letters = [r.letter(mode)] * (1 if divided else 2)
        given = [*letters, rows, columns, h, rows, values, u, rows, vh, r.integer(right),
                 r.c.room(r.times(work, r.size)), r.integer(work)]  # fmt: skip
        if r.parts == 2 and not divided:
            given.append(r.c.room(r.times(5, least, single)))
        elif r.parts == 2:
            # 5 mn² + 5 mn, or 2 max mn + 2 mn² + mn, of the least and the greatest size.
            both = r.times(r.plus(m, n), least)
            more = r.plus(r.times(7, least, least), r.times(7, least), r.times(2, both))
            given.append(r.c.room(r.times(more, single)))
        if divided:
            given.append(r.c.room(r.times(8, least, 4)))

        def one(i: str) -> None:
            fine = r.entered(r.moved(a, (i, bytes_)), h, m, n)
            good = r.called(fine, address, given, len(letters))
            r.left(values, r.moved(s, (i, r.times(least, single))), least, "1", good, 1)
            if self.vectors:
                r.left(u, r.moved(uv[0], (i, into[0])), m, left, good, r.parts)
                r.left(vh, r.moved(uv[1], (i, into[1])), right, n, good, r.parts)

        each_matrix(r, name, count, one)
