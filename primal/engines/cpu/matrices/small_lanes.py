"""A matrix in each lane: how the code of small matrices reads, computes and writes elements.

Or the same one in all, and right-hand sides of it in each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primal.engines.cpu.code import SCALAR, SUFFIX, Module
from primal.engines.cpu.functions.floats import Floats
from primal.engines.cpu.functions.pairs import Pairs
from primal.engines.cpu.reader import Reader, smaller

UNIT = 64
"""Matrices per unit."""
SIDES = 512
"""Right-hand sides per unit, where lanes share a matrix."""
Matrix = list[list[Any]]


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
        self.sides: tuple[str, str] | None = None
        """The right-hand sides of a unit, where lanes share a matrix."""

    def each(self, name: str, count: str, one: Callable[[str], None]) -> None:
        """The function: `one(i)` for a vector of matrices from number i on."""
        c = self.c
        lanes = str(c.lanes)

        def group(i: str, stop: str) -> list[str]:
            self.mask = self._before(i, stop)
            one(i)
            return []

        def unit(u: str) -> None:
            first = c.new(f"mul i64 {u}, {UNIT}")
            stop = smaller(c, c.new(f"add i64 {first}, {UNIT}"), count)
            c.loop(first, stop, lanes, [], lambda i, _: group(i, stop))

        self.units(name, unit)

    def each_shared(self, name: str, many: str, one: Callable[[str], None]) -> None:
        """The function: `one(i)` for a part of the right-hand sides of matrix i, in all lanes.

        10,000 of one triangle of 8 x 8 took 1.8 ms in one lane, and take 20 us so (JAX 200).
        """
        c = self.c
        parts = c.new(f"udiv i64 {c.new(f'add i64 {many}, {SIDES - 1}')}, {SIDES}")

        def unit(u: str) -> None:
            i, part = self.split(u, parts)
            first = c.new(f"mul i64 {part}, {SIDES}")
            self.sides = first, smaller(c, c.new(f"add i64 {first}, {SIDES}"), many)
            self.mask = c.const("i1", "true")
            one(i)

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
        if not apart:  # side by side
            return c.call(
                f"llvm.masked.load.v{c.lanes}{SUFFIX[scalar]}.p0", c.vec(scalar), ("ptr", place),
                ("i32", self.dtype[1:]), (c.vec("i1"), self.mask),
                (c.vec(scalar), "zeroinitializer"),
            )  # fmt: skip
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
        if not apart:
            c.call_void(
                f"llvm.masked.store.v{c.lanes}{SUFFIX[scalar]}.p0", (c.vec(scalar), value),
                ("ptr", place), ("i32", self.dtype[1:]), (c.vec("i1"), self.mask),
            )  # fmt: skip
            return
        name = f"llvm.masked.scatter.v{c.lanes}{SUFFIX[scalar]}.v{c.lanes}p0"
        masked = (("i32", (dtype or self.dtype)[1:]), (c.vec("i1"), self.mask))
        c.call_void(name, (c.vec(scalar), value), self._places(place, apart), *masked)

    def matrix(self, place: str, wanted: Callable[[int, int], bool], rows: int = 0) -> Matrix:
        """The elements that are wanted of the matrices from a place on, n x n or rows x n."""
        n, size = self.n, self.size
        rows = rows or n
        apart = self.apart(0 if self.sides else rows * n * size)
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
        step, stride = (c.new(f"mul i64 {v}, {size}") for v in sizes[1:])
        source, to = self.moved(b, (i, bytes_)), self.moved(out, (i, bytes_))
        first, stop, turn = "0", many, "1"
        if self.sides is None:
            apart = self.apart(bytes_)
        else:
            first, stop = self.sides
            turn = str(c.lanes)
            near = sizes[1] == "1" and self.z is self.f
            apart = "" if near else self.apart(step)

        def column(k: str, _: list[str]) -> list[str]:
            rows = range(self.n)
            if self.sides is not None:
                self.mask = self._before(k, stop)
            here = [self.moved(source, (k, step), (str(r), stride)) for r in rows]
            values = solved([self.read(p, apart) for p in here])
            for r, value in zip(rows, values, strict=True):
                self.write(value, self.moved(to, (k, step), (str(r), stride)), apart)
            return []

        c.loop(first, stop, turn, [], column)

    def _before(self, i: str, stop: str) -> str:
        """The lanes whose number from i on is below stop."""
        c = self.c
        left = c.new(f"trunc i64 {c.new(f'sub i64 {stop}, {i}')} to i32")
        return c.new(f"icmp sgt {c.vec('i32')} {c.splat('i32', left)}, {c.iota('i32')}")


class Grid:
    """A matrix in each lane whose elements are values or, if `held`, lie in memory by rows.

    There a column is asked for by its distance in bytes, which `over` gives.
    """

    def __init__(self, s: Lanes, rows: int, columns: int, held: bool) -> None:
        """To be made before the loop over units, for whose sake memory is asked for."""
        self.s, self.rows, self.columns = s, rows, columns
        self._each = s.c.module.width * (1 if s.z is s.f else 2)
        self._values: dict[tuple[int, Any], Any] = {}
        self._found: dict[str, str] = {}
        self._place = s.c.room(rows * columns * self._each) if held else ""

    def _parts(self, r: int, j: Any) -> list[str]:
        """Where the parts of an element lie."""
        c, wide, start = self.s.c, self.s.c.module.width, r * self.columns * self._each
        if isinstance(j, int):
            here, start = self._place, start + j * self._each
        else:
            if j not in self._found:
                self._found[j] = c.new(f"getelementptr i8, ptr {self._place}, i64 {j}")
            here = self._found[j]
        steps = range(start, start + self._each, wide)
        return [c.new(f"getelementptr i8, ptr {here}, i64 {i}") for i in steps]

    def get(self, r: int, j: Any) -> Any:
        """An element."""
        if not self._place:
            return self._values[r, j]
        c, t = self.s.c, self.s.f.t
        return self.s.element(*[c.new(f"load {t}, ptr {p}") for p in self._parts(r, j)])

    def put(self, r: int, j: Any, *values: Any) -> None:
        """Set an element, and those below it."""
        for i, value in enumerate(values, r):
            if not self._place:
                self._values[i, j] = value
                continue
            for p, part in zip(self._parts(i, j), self.s.parts(value), strict=True):
                self.s.c.do(f"store {self.s.f.t} {part}, ptr {p}")

    def over(self, first: int, stop: int, body: Callable[[Any], None]) -> None:
        """The body for these columns: one code for all that lie in memory."""

        def turn(at: str, _: list[str]) -> list[str]:
            body(at)
            return []

        if self._place and first < stop:
            bounds = str(first * self._each), str(stop * self._each), str(self._each)
            self.s.c.loop(*bounds, [], turn)
        elif not self._place:
            for j in range(first, stop):
                body(j)

    def _all(self, array: str, i: str, rows: int, body: Callable[[int, Any, str], None]) -> None:
        """The body for each element of so many rows, with its place in the matrices from i on."""
        s, n = self.s, rows * self.columns
        to = s.moved(array, (i, str(n * s.size)))

        def held(at: str) -> None:
            ratio = str(self._each // s.size)
            body(0, at, s.moved(to, (s.c.new(f"udiv i64 {at}, {ratio}"), "1")))

        if self._place:
            self.over(0, n, held)
            return
        for k in range(n):
            body(*divmod(k, self.columns), s.moved(to, (str(k), str(s.size))))

    def read(self, array: str, i: str) -> None:
        """Take the matrices from number i on."""
        apart = self.s.apart(self.rows * self.columns * self.s.size)
        self._all(array, i, self.rows, lambda r, j, p: self.put(r, j, self.s.read(p, apart)))

    def write(self, array: str, i: str, rows: int) -> None:
        """Store so many rows as the matrices from number i on."""
        apart = self.s.apart(rows * self.columns * self.s.size)
        self._all(array, i, rows, lambda r, j, p: self.s.write(self.get(r, j), p, apart))
