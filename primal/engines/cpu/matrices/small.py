"""Stacks of small matrices, one in each lane: factorisations and systems written out.

A step of an elimination is the same instruction for sixteen matrices, and a row is swapped by
selecting. A thousand systems of 4 x 4 take 10 µs; loops over LAPACK, which asks what it was called
for in every call, took 150.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import Module
from primal.engines.cpu.functions.floats import Floats
from primal.engines.cpu.graph import NAMES, Value, size_of
from primal.engines.cpu.matrices.small_lanes import SIDES, UNIT, Grid, Lanes, Matrix
from primal.ir.avals import Aval

LARGEST = 8
"""Rows of matrices up to which code is written out."""
HELD = 128
"""Vectors of Q and the matrix beyond which they lie in memory, and loops go over their columns.

Registers hold none of so many, and what spills them takes longest: written out, QR of complex 8 x 8
took 286 ms to compile, so 53, and runs 1.04 times as long, of complex128 up to 1.16. Real matrices
of 8 x 8, and factors and systems of complex ones, would compile twice as fast and run up to 1.4
times as long, so they are below.
"""
STACK = 2
"""Complex matrices from which code in lanes is faster than OpenBLAS."""
_INT32 = np.dtype(np.int32)


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


def _shared(a: Value, many: int) -> bool:
    """Whether lanes share a matrix, as there are fewer of these than right-hand sides of one."""
    lanes = _llvm.compiler().width // (a.node.dtype.itemsize // (1 + (a.node.dtype.kind == "c")))
    count = size_of(a.shape[:-2])
    return many >= lanes and count * -(-many // lanes) < -(-count // lanes) * many


def _solved(
    k: Any, name: str, spec: Any, a: Value, b: Value, many: int, *words: int
) -> Value:
    """The solutions of so many right-hand sides for each matrix."""
    if not spec.shared:
        found: list[Value] = _spread(
            k, spec, (a, b), (b.aval,), (many, *words), reuses=((0, 1),), name=name
        )
        return found[0]
    count, n = size_of(a.shape[:-2]), a.shape[-1]
    found = k.routine(
        spec, (k.dense(a), k.dense(b)), (b.aval,), (count, many, *words),
        units=count * -(-many // SIDES), cost=min(many, SIDES) * (2 + n * n) // 8,
        reuses=((0, 1),), name=name,
    )  # fmt: skip
    return found[0]


def solve(k: Any, a: Value, b: Value, transpose_a: bool) -> Value:
    """x with op(a) x = b."""
    many = b.shape[-1]
    spec = Solve(NAMES[a.node.dtype], a.shape[-1], transpose_a, _shared(a, many))
    return _solved(k, "solve", spec, a, b, many)


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
    dtype, shared = NAMES[a.node.dtype], _shared(a, many)
    spec = Triangular(
        dtype, n, lower, transpose_a != left_side, conjugate_a and dtype[0] == "c", unit, shared,
        shared and left_side,
    )  # fmt: skip
    return _solved(k, "triangular_solve", spec, a, b, many, step, stride)


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
    shared: bool

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

        s.each_shared(name, many, one) if self.shared else s.each(name, count, one)


@structure
class Triangular:
    """Triangular systems. Words: the number of matrices, right sides, and how those lie.

    `near`: those that share a matrix lie side by side.
    """

    dtype: str
    n: int
    lower: bool
    plain: bool
    conjugated: bool
    unit: bool
    shared: bool
    near: bool

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
                b, out, i, (many, "1" if self.near else step, stride),
                lambda y: s.substituted(x, y, lower, self.unit),
            )  # fmt: skip

        s.each_shared(name, many, one) if self.shared else s.each(name, count, one)


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
            nan = s.element(f.k(float("nan")), f.k(float("nan")))
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
        held = m * (n + self.columns) * (1 if z is f else 2) > HELD
        x, q, vs = (Grid(s, m, columns, held) for columns in (n, self.columns, n))

        def reflected(x: Grid, first: int, i: int, v: list[Any], scale: Any) -> None:
            """Columns of x, less v (1 at row i, then as given) times their products with it."""

            def column(j: Any) -> None:
                top, *below = (x.get(r, j) for r in range(i, m))
                total = top
                for w, y in zip(v, below, strict=True):
                    total = z.fma(s.conjugate(w), y, total)
                total = z.neg(z.mul(total, scale))
                below = [z.fma(w, total, y) for w, y in zip(v, below, strict=True)]
                x.put(i, j, z.add(top, total), *below)

            x.over(first, x.columns, column)

        def one(i: str) -> None:
            x.read(a, i)
            zero, unit = s.element(none, none), s.element(f.k(1.0), none)
            steps = []
            # A complex number that is alone is turned too: R has a real diagonal.
            for d in range(min(m - 1 if z is f else m, n)):
                first, *column = (x.get(r, d) for r in range(d, m))
                own, *turn = s.parts(first)
                rest = [*turn, *[v for y in column for v in s.parts(y)]]
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
                x.put(d, d, s.chosen(idle, first, s.element(top, none)), *[zero] * len(v))
                vs.put(d + 1, d, *v)
                reflected(x, d + 1, d, v, s.conjugate(scale))
                steps.append((d, scale))
            q.over(0, self.columns, lambda j: q.put(0, j, *[zero] * m))
            for d in range(self.columns):
                q.put(d, d, unit)
            for d, scale in reversed(steps):
                reflected(q, d, d, [vs.get(r, d) for r in range(d + 1, m)], scale)
            q.write(q_out, i, m)
            x.write(r_out, i, self.columns)

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
