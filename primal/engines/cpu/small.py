"""Stacks of small matrices, one in each lane: factorisations and systems written out.

A step of an elimination is the same instruction for sixteen matrices, and a row is swapped by
selecting. A thousand systems of 4 x 4 take 10 µs; loops over LAPACK, which asks what it was called
for in every call, took 150.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, SUFFIX, Module
from primal.engines.cpu.floats import Floats
from primal.engines.cpu.graph import NAMES, Value, size_of
from primal.engines.cpu.pairs import Pairs
from primal.engines.cpu.reader import Reader, smaller
from primal.ir.avals import Aval

LARGEST = 8
"""Rows of matrices up to which code is written out."""
UNIT = 64
"""Matrices per unit."""
STACK = 2
"""Complex matrices from which code in lanes is faster than OpenBLAS."""
_INT32 = np.dtype(np.int32)
Matrix = list[list[Any]]


def is_short(a: Value) -> bool:
    """Whether matrices are small, and of floats that vectors hold or of complex numbers in stacks.

    The root of one complex matrix of 8 x 8 takes 1.0 µs here and 0.6 in OpenBLAS, of a thousand 54
    and 310; their factors take 195 µs and 760, solutions 87 and 1130, QR 370 and 2180.
    """
    dtype = NAMES.get(a.node.dtype)
    stack = dtype in ("c8", "c16") and size_of(a.shape[:-2]) >= STACK
    return max(a.shape[-2:]) <= LARGEST and (dtype in ("f4", "f8") or stack)


def is_small(a: Value) -> bool:
    """Whether they are square as well."""
    return a.shape[-2] == a.shape[-1] and is_short(a)


def _spread(k: Any, spec: Any, args: Any, outs: Any, words: tuple[int, ...], **more: Any) -> Any:
    a = args[0]
    count, m, n = size_of(a.shape[:-2]), a.shape[-2], a.shape[-1]
    return k.routine(
        spec, [k.dense(x) for x in args], outs, (count, *words), units=-(-count // UNIT),
        cost=min(count, UNIT) * (10 + m * n * min(m, n) // 2), **more,
    )  # fmt: skip


def cholesky(k: Any, a: Value) -> Value:
    """L with L Lᴴ = a, from the lower triangle; nan where there is none."""
    spec = Cholesky(NAMES[a.node.dtype], a.shape[-1])
    found: list[Value] = _spread(k, spec, (a,), (a.aval,), (), reuses=((0, 0),), name="cholesky")
    return found[0]


def lu(k: Any, a: Value) -> list[Value]:
    """Packed factors, swaps of rows, and the permutation they make."""
    *lead, m, n = a.shape
    swaps, order = Aval((*lead, min(m, n)), _INT32), Aval((*lead, m), _INT32)
    spec = Lu(NAMES[a.node.dtype], m, n)
    found: list[Value] = _spread(k, spec, (a,), (a.aval, swaps, order), (), name="lu")
    return found


def qr(k: Any, a: Value, full: bool) -> list[Value]:
    """Q and R, as LAPACK reflects."""
    *lead, m, n = a.shape
    columns = m if full else min(m, n)
    outs = Aval((*lead, m, columns), a.dtype), Aval((*lead, columns, n), a.dtype)
    spec = Qr(NAMES[a.node.dtype], m, n, columns)
    found: list[Value] = _spread(k, spec, (a,), outs, (), name="qr")
    return found


def solve(k: Any, a: Value, b: Value, transpose_a: bool) -> Value:
    """x with op(a) x = b."""
    spec = Solve(NAMES[a.node.dtype], a.shape[-1], transpose_a)
    found: list[Value] = _spread(
        k, spec, (a, b), (b.aval,), (b.shape[-1],), reuses=((0, 1),), name="solve"
    )
    return found[0]


def triangular_solve(
    k: Any, a: Value, b: Value, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit: bool,
) -> Value:  # fmt: skip
    """x with op(a) x = b or x op(a) = b."""
    n = a.shape[-1]
    # Systems of columns lie `step` elements apart, their elements `stride`; on the right side they
    # are the rows of b, and the matrix is transposed.
    many = b.shape[-1] if left_side else b.shape[-2]
    step, stride = (1, many) if left_side else (n, 1)
    dtype = NAMES[a.node.dtype]
    spec = Triangular(
        dtype, n, lower, transpose_a != left_side, conjugate_a and dtype[0] == "c", unit
    )
    found: list[Value] = _spread(
        k, spec, (a, b), (b.aval,), (many, step, stride), reuses=((0, 1),),
        name="triangular_solve",
    )  # fmt: skip
    return found[0]


class Lanes(Reader):
    """Code in which every lane has a matrix of its own."""

    def __init__(self, module: Module, dtype: str, n: int) -> None:
        self.size = int(dtype[1:])
        parts = 2 if dtype[0] == "c" else 1
        self.dtype, self.n = f"f{self.size // parts}", n
        super().__init__(module, module.width // (self.size // parts))
        self.f = Floats(self.c, self.dtype)
        # Complex elements are pairs of such numbers.
        self.z: Any = self.f if parts == 1 else Pairs(self.f)
        self.mask = ""

    def each(self, name: str, count: str, one: Callable[[str], None]) -> None:
        """The function: `one(i)` for a vector of matrices from number i on."""
        c = self.c
        lanes = str(c.lanes)

        def group(i: str, stop: str) -> list[str]:
            left = c.new(f"trunc i64 {c.new(f'sub i64 {stop}, {i}')} to i32")
            self.mask = c.new(f"icmp sgt {c.vec('i32')} {c.splat('i32', left)}, {c.iota('i32')}")
            one(i)
            return []

        def unit(u: str) -> None:
            first = c.new(f"mul i64 {u}, {UNIT}")
            stop = smaller(c, c.new(f"add i64 {first}, {UNIT}"), count)
            c.loop(first, stop, lanes, [], lambda i, _: group(i, stop))

        self.units(name, unit)

    def apart(self, bytes_: str | int) -> str:
        """Distances of the lanes, for matrices of so many bytes."""
        if isinstance(bytes_, int):
            return "<" + ", ".join(f"i64 {bytes_ * i}" for i in range(self.c.lanes)) + ">"
        wide = self.c.vec("i64")
        return self.c.new(f"mul {wide} {self.c.splat('i64', bytes_)}, {self.c.iota('i64')}")

    def _places(self, place: str, apart: str) -> tuple[str, str]:
        ps = self.c.new(f"getelementptr i8, ptr {place}, {self.c.vec('i64')} {apart}")
        return self.c.vec("ptr"), ps

    def read(self, place: str, apart: str) -> Any:
        """An element of every matrix."""
        if self.z is self.f:
            return self._part(place, apart)
        imaginary = self.c.new(f"getelementptr i8, ptr {place}, i64 {self.size // 2}")
        return self._part(place, apart), self._part(imaginary, apart)

    def _part(self, place: str, apart: str) -> str:
        c, scalar = self.c, SCALAR[self.dtype]
        t, name = c.vec(scalar), f"llvm.masked.gather.v{c.lanes}{SUFFIX[scalar]}.v{c.lanes}p0"
        masked = (("i32", self.dtype[1:]), (c.vec("i1"), self.mask), (t, "zeroinitializer"))
        return c.call(name, t, self._places(place, apart), *masked)

    def write(self, value: Any, place: str, apart: str, dtype: str = "") -> None:
        """Store an element of every matrix."""
        if isinstance(value, tuple):
            imaginary = self.c.new(f"getelementptr i8, ptr {place}, i64 {self.size // 2}")
            self.write(value[0], place, apart)
            self.write(value[1], imaginary, apart)
            return
        c, scalar = self.c, SCALAR[dtype or self.dtype]
        name = f"llvm.masked.scatter.v{c.lanes}{SUFFIX[scalar]}.v{c.lanes}p0"
        masked = (("i32", (dtype or self.dtype)[1:]), (c.vec("i1"), self.mask))
        c.call_void(name, (c.vec(scalar), value), self._places(place, apart), *masked)

    def matrix(self, place: str, wanted: Callable[[int, int], bool], rows: int = 0) -> Matrix:
        """The elements that are wanted of the matrices from a place on, n x n or rows x n."""
        n, size = self.n, self.size
        rows = rows or n
        apart = self.apart(rows * n * size)
        at = [[self.c.new(f"getelementptr i8, ptr {place}, i64 {(i * n + j) * size}")
               if wanted(i, j) else "" for j in range(n)] for i in range(rows)]  # fmt: skip
        return [[p and self.read(p, apart) for p in row] for row in at]

    def parts(self, x: Any) -> tuple[str, ...]:
        """The real part of an element and, of complex numbers, the imaginary one."""
        return x if isinstance(x, tuple) else (x,)

    def element(self, re: str, im: str = "") -> Any:
        """The element of such parts; of floats the second is left out."""
        return re if self.z is self.f else (re, im)

    def bulk(self, x: Any) -> str:
        """What LAPACK compares to find a pivot: |x|, of complex numbers the sum of both parts'."""
        sizes = [self.f.abs(v) for v in self.parts(x)]
        return self.f.add(*sizes) if len(sizes) == 2 else sizes[0]

    def chosen(self, mask: str, yes: Any, no: Any) -> Any:
        """Elements, lane by lane."""
        pairs = zip(self.parts(yes), self.parts(no), strict=True)
        return self.element(*[self.f.where(mask, u, v) for u, v in pairs])

    def conjugate(self, x: Any) -> Any:
        """Of floats, themselves."""
        return x if self.z is self.f else self.z.conj(x)

    def put(self, x: Matrix, array: str, i: str) -> None:
        """Store whole matrices, from number i on."""
        values = [v for row in x for v in row]
        bytes_ = len(values) * self.size
        to = self.moved(array, (i, str(bytes_)))
        for k, value in enumerate(values):
            self.write(value, self.moved(to, (str(k), str(self.size))), self.apart(bytes_))

    def where(self, mask: str, t: str, yes: str, no: str) -> str:
        """Lane by lane."""
        return self.c.new(f"select {self.c.vec('i1')} {mask}, {t} {yes}, {t} {no}")

    def swapped(self, mask: str, x: Any, y: Any) -> tuple[Any, Any]:
        """(y, x) in the lanes of the mask, (x, y) in others."""
        return self.chosen(mask, y, x), self.chosen(mask, x, y)

    def eliminate(self, x: Matrix) -> tuple[list[str], list[list[tuple[int, str]]]]:
        """LU in place, by partial pivoting: the pivots' rows, and what is swapped at each step."""
        f, z, c, whole = self.f, self.z, self.c, self.c.vec("i32")
        m, n = len(x), self.n
        one = self.element(f.k(1.0), f.k(0.0))
        rows, swaps = [], []
        for i in range(min(m, n)):
            best, at = self.bulk(x[i][i]), c.const("i32", str(i))
            for r in range(i + 1, m):
                size = self.bulk(x[r][i])
                more = f.test("ogt", size, best)
                best = f.where(more, size, best)
                at = self.where(more, whole, c.const("i32", str(r)), at)
            rows.append(at)
            here = []
            for r in range(i + 1, m):
                mask = c.new(f"icmp eq {whole} {at}, {c.const('i32', str(r))}")
                here.append((r, mask))
                for j in range(n):
                    x[i][j], x[r][j] = self.swapped(mask, x[i][j], x[r][j])
            swaps.append(here)
            # As LAPACK: a column of zeros is left as it is.
            pivot = self.chosen(f.test("oeq", self.bulk(x[i][i]), 0.0), one, x[i][i])
            for r in range(i + 1, m):
                x[r][i] = z.div(x[r][i], pivot)
                down = z.neg(x[r][i])
                for j in range(i + 1, n):
                    x[r][j] = z.fma(down, x[i][j], x[r][j])
        return rows, swaps

    def substituted(self, x: Matrix, y: list[Any], lower: bool, unit: bool) -> list[Any]:
        """The solution of a triangular system: from the first row on if lower."""
        f, out = self.z, list(y)
        order = range(self.n) if lower else range(self.n - 1, -1, -1)
        done: list[int] = []
        for i in order:
            for j in done:
                out[i] = f.fma(f.neg(x[i][j]), out[j], out[i])
            if not unit:
                out[i] = f.div(out[i], x[i][i])
            done.append(i)
        return out

    def columns(
        self, b: str, out: str, i: str, sizes: tuple[str, str, str],
        solved: Callable[[list[Any]], list[Any]],
    ) -> None:  # fmt: skip
        """`solved` for every right-hand side of the matrices from number i on.

        Sizes: how many there are, elements from one to the next, and between their own elements.
        """
        c, size, many = self.c, self.size, sizes[0]
        bytes_ = c.new(f"mul i64 {many}, {self.n * size}")
        apart = self.apart(bytes_)
        step, stride = (c.new(f"mul i64 {v}, {size}") for v in sizes[1:])
        source, to = self.moved(b, (i, bytes_)), self.moved(out, (i, bytes_))

        def column(k: str, _: list[str]) -> list[str]:
            rows = range(self.n)
            here = [self.moved(source, (k, step), (str(r), stride)) for r in rows]
            values = solved([self.read(p, apart) for p in here])
            for r, value in zip(rows, values, strict=True):
                self.write(value, self.moved(to, (k, step), (str(r), stride)), apart)
            return []

        c.loop("0", many, "1", [], column)


def _transposed(x: Matrix) -> Matrix:
    return [list(row) for row in zip(*x, strict=True)]


def _every(i: int, j: int) -> bool:
    return True


@structure
class Lu:
    """Factors, pivots and permutations. Word: the number of matrices."""

    dtype: str
    m: int
    n: int

    def write(self, module: Module, name: str) -> None:
        s = Lanes(module, self.dtype, self.n)
        c, m, n, size = s.c, self.m, s.n, s.size
        a, out, swaps, order = (s.array() for _ in range(4))
        count = s.word()

        def one(i: str) -> None:
            factors = s.matrix(s.moved(a, (i, str(m * n * size))), _every, m)
            rows, changes = s.eliminate(factors)
            places = [c.const("i32", str(r)) for r in range(m)]
            for k, here in enumerate(changes):
                for r, mask in here:
                    x, y, t = places[k], places[r], c.vec("i32")
                    places[k], places[r] = s.where(mask, t, y, x), s.where(mask, t, x, y)
            s.put(factors, out, i)
            for array, values in ((swaps, rows), (order, places)):
                bytes_ = 4 * len(values)
                to = s.moved(array, (i, str(bytes_)))
                for k, value in enumerate(values):
                    s.write(value, s.moved(to, (str(k), "4")), s.apart(bytes_), "i4")

        s.each(name, count, one)


@structure
class Solve:
    """Systems of equations. Words: the number of matrices, columns of each right side."""

    dtype: str
    n: int
    transposed: bool

    def write(self, module: Module, name: str) -> None:
        s = Lanes(module, self.dtype, self.n)
        a, b, out = (s.array() for _ in range(3))
        count, many = s.word(), s.word()

        def one(i: str) -> None:
            x = s.matrix(s.moved(a, (i, str(s.n * s.n * s.size))), _every)
            _, changes = s.eliminate(x)
            steps = [(k, r, mask) for k, here in enumerate(changes) for r, mask in here]

            def solved(y: list[Any]) -> list[Any]:
                if self.transposed:
                    across = _transposed(x)
                    y = s.substituted(across, y, True, False)
                    y = s.substituted(across, y, False, True)
                for k, r, mask in reversed(steps) if self.transposed else steps:
                    y[k], y[r] = s.swapped(mask, y[k], y[r])
                if not self.transposed:
                    y = s.substituted(x, y, True, True)
                    y = s.substituted(x, y, False, False)
                return y

            s.columns(b, out, i, (many, "1", many), solved)

        s.each(name, count, one)


@structure
class Triangular:
    """Triangular systems. Words: the number of matrices, right sides, and how those lie."""

    dtype: str
    n: int
    lower: bool
    plain: bool
    conjugated: bool
    unit: bool

    def write(self, module: Module, name: str) -> None:
        s = Lanes(module, self.dtype, self.n)
        a, b, out = (s.array() for _ in range(3))
        count, many, step, stride = (s.word() for _ in range(4))

        def wanted(i: int, j: int) -> bool:
            return i == j and not self.unit or (i > j if self.lower else i < j)

        def one(i: str) -> None:
            x = s.matrix(s.moved(a, (i, str(s.n * s.n * s.size))), wanted)
            if not self.plain:
                x = _transposed(x)
            if self.conjugated:
                x = [[v and s.conjugate(v) for v in row] for row in x]
            lower = self.lower == self.plain
            s.columns(
                b, out, i, (many, step, stride),
                lambda y: s.substituted(x, y, lower, self.unit),
            )  # fmt: skip

        s.each(name, count, one)


@structure
class Cholesky:
    """Lower factors. Word: the number of matrices."""

    dtype: str
    n: int

    def write(self, module: Module, name: str) -> None:
        s = Lanes(module, self.dtype, self.n)
        f, n = s.f, s.n
        a, out = s.array(), s.array()
        count = s.word()

        def one(i: str) -> None:
            bytes_ = str(n * n * s.size)
            x = s.matrix(s.moved(a, (i, bytes_)), lambda i, j: i >= j)
            good = ""
            for j in range(n):
                for k in range(j):
                    across = s.conjugate(x[j][k])
                    for r in range(j, n):
                        x[r][j] = s.z.fma(s.z.neg(x[r][k]), across, x[r][j])
                middle = s.parts(x[j][j])[0]
                # As LAPACK does: nan is no failure, and what is below infinity is zero.
                positive = f.test("ugt", middle, 0.0)
                good = f.both(good, positive) if good else positive
                root = f.sqrt(middle)
                finite = f.test("une", root, float("inf"))
                x[j][j] = s.element(root, f.k(0.0))
                for r in range(j + 1, n):
                    x[r][j] = s.element(
                        *[f.where(finite, f.div(v, root), 0.0) for v in s.parts(x[r][j])]
                    )
            nan = s.element(f.k(float("nan")), f.k(0.0))
            none = s.element(f.k(0.0), f.k(0.0))
            s.put(
                [[s.element(*map(partial(f.where, good), s.parts(x[r][j]), s.parts(nan)))
                  if r >= j else none for j in range(n)] for r in range(n)], out, i,
            )  # fmt: skip

        s.each(name, count, one)


@structure
class Qr:
    """Q of so many columns and R, by Householder's reflections. Word: the number of matrices."""

    dtype: str
    m: int
    n: int
    columns: int

    def write(self, module: Module, name: str) -> None:
        s = Lanes(module, self.dtype, self.n)
        f, z, m, n, none = s.f, s.z, self.m, self.n, s.f.k(0.0)
        a, q_out, r_out = (s.array() for _ in range(3))
        count = s.word()

        def reflect(x: Matrix, j: int, i: int, v: list[Any], scale: Any) -> None:
            """Column j of x, less v (1 at row i, then as given) times its product with it."""
            total = x[i][j]
            for r in range(i + 1, m):
                total = z.fma(s.conjugate(v[r]), x[r][j], total)
            total = z.neg(z.mul(total, scale))
            x[i][j] = z.add(x[i][j], total)
            for r in range(i + 1, m):
                x[r][j] = z.fma(v[r], total, x[r][j])

        def one(i: str) -> None:
            x = s.matrix(s.moved(a, (i, str(m * n * s.size))), _every, m)
            zero, unit = s.element(none, none), s.element(f.k(1.0), none)
            steps = []
            # A complex number that is alone is turned too: R has a real diagonal.
            for d in range(min(m - 1 if z is f else m, n)):
                column = [x[r][d] for r in range(m)]
                own, *turn = s.parts(column[d])
                rest = [*turn, *[v for y in column[d + 1 :] for v in s.parts(y)]]
                size = _length(f, [own, *rest])
                some = rest[0]
                for value in rest[1:]:
                    some = f.unbits(f.iop("or", f.bits(some), f.bits(value)))
                # Nothing to reflect where all below is 0; NaN goes on.
                idle = f.test("oeq", some, 0.0)
                top = f.neg(f.signed(size, own))
                apart = s.element(f.sub(own, top), *turn)
                v = [s.chosen(idle, zero, z.div(value, apart)) for value in column]
                scale = [f.div(f.sub(top, own), top), *[f.div(f.neg(t), top) for t in turn]]
                scale = s.chosen(idle, zero, s.element(*scale))
                x[d][d] = s.chosen(idle, column[d], s.element(top, none))
                for j in range(d + 1, n):
                    reflect(x, j, d, v, s.conjugate(scale))
                steps.append((d, v, scale))
            q = [[unit if r == j else zero for j in range(self.columns)] for r in range(m)]
            for d, v, scale in reversed(steps):
                for j in range(d, self.columns):
                    reflect(q, j, d, v, scale)
            rows = range(self.columns)
            s.put(q, q_out, i)
            s.put([[x[r][j] if r <= j else zero for j in range(n)] for r in rows], r_out, i)

        s.each(name, count, one)


def _length(f: Floats, values: list[str]) -> str:
    """√Σx², of float32 in float64, else scaled by the greatest: no square overflows."""
    if f.dtype == "f4":
        g = f.widened()
        wide = [g.widen(x) for x in values]
        total = g.mul(wide[0], wide[0])
        for x in wide[1:]:
            total = g.fma(x, x, total)
        return g.narrowed(g.sqrt(total))
    most = f.abs(values[0])
    for x in values[1:]:
        size = f.abs(x)
        most = f.where(f.test("ugt", size, most), size, most)
    scale = f.where(f.test("oeq", most, 0.0), 1.0, most)
    total = f.k(0.0)
    for x in values:
        part = f.div(x, scale)
        total = f.fma(part, part, total)
    return f.mul(f.sqrt(total), scale)
