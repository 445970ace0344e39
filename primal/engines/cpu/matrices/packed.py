"""Reflections as LAPACK packs them: geqrf, orgqr and ormqr without Python, and updates of roots."""

from __future__ import annotations

from typing import Any

from primal.base import openblas
from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.functions.floats import Floats
from primal.engines.cpu.graph import NATIVE, Value, size_of
from primal.engines.cpu.matrices.factorisations import CHUNK
from primal.engines.cpu.matrices.reflections import BLOCK, ROOM
from primal.engines.cpu.matrices.solves import each_matrix
from primal.engines.cpu.matrices.spectra import Caller
from primal.engines.cpu.products.blas import LETTER
from primal.engines.cpu.reader import Reader
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

TABLE = 65 * 64
"""Elements that ormqr wants for its triangular factors, beside a block of rows or columns."""
TURNS = 1 << 20
"""Numbers that a step of an update turns: between steps there is a look for signals."""


def _routine(name: str, real: str, wide: str, *xs: Value) -> tuple[str, int]:
    """The dtype and the address of what is called `real` or, for complex numbers, `wide`."""
    dtype = xs[0].node.dtype.str[1:]
    address = openblas.address(
        f"{LETTER.get(dtype, '')}{wide if dtype[0] == 'c' else real}_"
    )
    most = max([x.shape[-2] * x.shape[-1] * x.node.dtype.itemsize for x in xs])
    if not address or not all(x.aval.size for x in xs) or most > ROOM:
        raise Unsupported(f"{name} of {', '.join([str(x.aval) for x in xs])}")
    return dtype, address


def _stack(k: Any, spec: Any, args: Any, outs: Any, words: Any, work: int) -> list[Value]:
    count = size_of(args[0].shape[:-2])
    found: list[Value] = k.routine(
        spec, [k.dense(x) for x in args], outs, (*words, count), units=-(-count // CHUNK),
        cost=CHUNK * (300 + work), name=type(spec).__name__.lower(),
    )  # fmt: skip
    return found


def geqrf(k: Any, a: Value) -> list[Value]:
    """R with the reflections below it, and their factors."""
    *lead, m, n = a.shape
    dtype, address = _routine("geqrf", "geqrf", "geqrf", a)
    outs = a.aval, Aval((*lead, min(m, n)), a.dtype)
    return _stack(k, Packed(dtype), (a,), outs, (address, m, n, min(m, n)), m * n * min(m, n))


def householder_product(k: Any, a: Value, tau: Value) -> Value:
    """The columns that packed reflections make."""
    m, n = a.shape[-2:]
    count = tau.shape[-1]
    dtype, address = _routine("householder_product", "orgqr", "ungqr", a)
    words = address, m, n, count
    return _stack(k, Product(dtype), (a, tau), (a.aval,), words, m * n * (1 + count))[0]


def ormqr(k: Any, a: Value, tau: Value, x: Value, left: bool, transpose: bool) -> Value:
    """x multiplied by what packed reflections make."""
    (m, n), count = x.shape[-2:], tau.shape[-1]
    dtype, address = _routine("ormqr", "ormqr", "unmqr", a, x)
    if not count:
        raise Unsupported("ormqr without reflections")
    words = address, *a.shape[-2:], count, m, n
    spec = Applied(dtype, left, transpose)
    return _stack(k, spec, (a, tau, x), (x.aval,), words, 2 * m * n * count)[0]


def cholesky_update(k: Any, r: Value, w: Value) -> Value:
    """The upper triangular S with Sᵀ S = Rᵀ R + w wᵀ."""
    n, dtype = r.shape[-1], NATIVE.get(r.node.dtype, "")
    if dtype not in ("f4", "f8") or not r.aval.size:
        raise Unsupported(f"cholesky_update of {r.aval}")
    each = max(TURNS // n, 1)
    made = []
    for first in range(0, n, each):
        count = min(each, n - first)
        shape = *r.shape[:-2], count, n
        words, cost = (n, first, count), 10 * count + n * count
        avals = Aval(shape, r.dtype), w.aval
        rows, w = _stack(k, Update(dtype), (r, w), avals, words, cost)
        made.append(rows)
    return k.concatenate(made, r.ndim - 2)


def _copied(r: Reader, to: str, source: str, bytes_: str) -> None:
    r.c.call_void(
        "llvm.memcpy.p0.p0.i64", ("ptr", to), ("ptr", source), ("i64", bytes_), ("i1", "false")
    )


@structure
class Packed:
    """geqrf. Words: its address, m, n, the lesser of both, the number of matrices."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a, out, factors = (r.array() for _ in range(3))
        address, m, n, least, count = r.pointer(), *[r.word() for _ in range(4)]
        bytes_, row, space = r.times(m, n, r.size), r.times(least, r.size), r.times(n, BLOCK)
        h, tau, rows = r.c.room(bytes_), r.c.room(row), r.integer(m)
        given = [rows, r.integer(n), h, rows, tau, r.c.room(r.times(space, r.size)),
                 r.integer(space)]  # fmt: skip

        def one(i: str) -> None:
            r.entered(r.moved(a, (i, bytes_)), h, m, n)
            r.called("true", address, given, 0)
            r.left(h, r.moved(out, (i, bytes_)), m, n, "true", r.parts)
            _copied(r, r.moved(factors, (i, row)), tau, row)

        each_matrix(r, name, count, one)


@structure
class Product:
    """orgqr or ungqr. Words: its address, m, n <= m, reflections <= n, the number of matrices."""

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a, tau, out = (r.array() for _ in range(3))
        address, m, n, few, count = r.pointer(), *[r.word() for _ in range(4)]
        bytes_, row, space = r.times(m, n, r.size), r.times(few, r.size), r.times(n, BLOCK)
        h, rows = r.c.room(bytes_), r.integer(m)
        before = [rows, r.integer(n), r.integer(few), h, rows]
        after = [r.c.room(r.times(space, r.size)), r.integer(space)]

        def one(i: str) -> None:
            r.entered(r.moved(a, (i, bytes_)), h, m, n)
            r.called("true", address, [*before, r.moved(tau, (i, row)), *after], 0)
            r.left(h, r.moved(out, (i, bytes_)), m, n, "true", r.parts)

        each_matrix(r, name, count, one)


@structure
class Applied:
    """ormqr or unmqr. Words: its address, sizes of a, reflections, sizes of x, how many of each."""

    dtype: str
    left: bool
    transpose: bool

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Caller(module, self.dtype)
        a, tau, x, out = (r.array() for _ in range(4))
        address, p, q, few, m, n, count = r.pointer(), *[r.word() for _ in range(6)]
        packed, bytes_, row = r.times(p, q, r.size), r.times(m, n, r.size), r.times(few, r.size)
        h, y, low, rows = r.c.room(packed), r.c.room(bytes_), r.integer(p), r.integer(m)
        space = r.plus(r.times(n if self.left else m, BLOCK), TABLE)
        turn = "N" if not self.transpose else "C" if r.parts == 2 else "T"
        before = [r.letter("L" if self.left else "R"), r.letter(turn), rows, r.integer(n),
                  r.integer(few), h, low]  # fmt: skip
        after = [y, rows, r.c.room(r.times(space, r.size)), r.integer(space)]

        def one(i: str) -> None:
            r.entered(r.moved(a, (i, packed)), h, p, q)
            r.entered(r.moved(x, (i, bytes_)), y, m, n)
            given = [*before, r.moved(tau, (i, row)), *after]
            good = r.called("true", address, given, 2)
            r.left(y, r.moved(out, (i, bytes_)), m, n, good, r.parts)

        each_matrix(r, name, count, one)


@structure
class Update:
    """Rotations [c s; -s c] that turn (R[k, k], w[k]) into (√, 0), for some rows of R.

    Words: n, the first row, how many rows, how many matrices. Results: the rows, and what is left
    of w.
    """

    dtype: str

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module)  # vectors of one
        c, f, size = r.c, Floats(r.c, self.dtype), self.dtype[1:]
        source, vector, out, rest = (r.array() for _ in range(4))
        n, first, rows, count = (r.word() for _ in range(4))
        row = c.new(f"mul i64 {n}, {size}")
        whole, part = [c.new(f"mul i64 {row}, {m}") for m in (n, rows)]
        end = c.new(f"add i64 {first}, {rows}")

        def read(p: str) -> str:
            return c.new(f"load {f.t}, ptr {p}, align {size}")

        def put(value: str, p: str) -> None:
            c.do(f"store {f.t} {value}, ptr {p}, align {size}")

        def one(i: str) -> None:
            given, made = r.moved(source, (i, whole)), r.moved(out, (i, part))
            left = r.moved(rest, (i, row))
            _copied(r, left, r.moved(vector, (i, row)), row)

            def step(k: str, _: list[str]) -> list[str]:
                before = c.new(f"mul i64 {k}, {size}")
                to = r.moved(made, (c.new(f"sub i64 {k}, {first}"), row))
                c.call_void("llvm.memset.p0.i64", ("ptr", to), ("i8", "0"), ("i64", before),
                            ("i1", "false"))  # fmt: skip
                x, y = read(r.moved(given, (k, row), (k, size))), read(r.moved(left, (k, size)))
                infinity, size_x, size_y = f.k(float("inf")), f.abs(x), f.abs(y)
                big = f.where(f.test("ugt", size_x, size_y), size_x, size_y)
                either = f.where(f.test("oeq", size_x, infinity), infinity, size_y)
                infinite = f.test("oeq", either, infinity)
                flat = f.test("oeq", big, 0.0)
                scale = f.where(flat, 1.0, big)
                u, v = f.div(x, scale), f.div(y, scale)
                length = f.sqrt(f.fma(u, u, f.mul(v, v)))
                some = f.where(flat, 1.0, length)
                cos, sin = f.where(flat, 1.0, f.div(u, some)), f.div(v, some)
                after = c.new(f"add i64 {k}, 1")

                def turned(j: str, _: list[str]) -> list[str]:
                    at = r.moved(left, (j, size))
                    a = read(r.moved(given, (k, row), (j, size)))
                    b = read(at)
                    put(f.fma(cos, a, f.mul(sin, b)), r.moved(to, (j, size)))
                    put(f.fma(cos, b, f.neg(f.mul(sin, a))), at)
                    return []

                whole_length = f.where(infinite, infinity, f.mul(length, scale))
                put(whole_length, r.moved(to, (k, size)))
                c.loop(after, n, "1", [], turned)
                return []

            c.loop(first, end, "1", [], step)

        each_matrix(r, name, count, one)
