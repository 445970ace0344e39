"""Products of a matrix and a vector in registers: what a step of a loop multiplies by is small.

A call of BLAS takes as long as 64 x 64 products do. `Across` has its lanes along the results, one
term of the vector at a time; `Along` has them along the terms, and adds the lanes of as many rows
as there are in one go, where the terms of a row are contiguous. Both hold the call of BLAS too, for
the sizes that are its.
"""

from __future__ import annotations

from collections.abc import Sequence

from primal.base.structures import structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.code import SCALAR, Module, itemsize
from primal.engines.cpu.products import blas
from primal.engines.cpu.reader import Reader, smaller

MOST_ACROSS, MOST_ALONG = 1 << 18, 1 << 21
"""Bytes of a matrix up to which this is faster than BLAS."""
WAYS, APART = 8, 1 << 12
"""Lines that a first cache has for addresses so many bytes apart: of more rows that begin there
each drives out another before it is read to its end (64 x 1024 float32: 5.2 µs, by BLAS 2.5)."""
ALIGNED = 1 << 16
"""Bytes of a matrix from which rows are read from a cache line on: at 512 x 512, 7.5 µs instead of
13, as the second cache gives two lines for a vector across them."""
SHARED, UNITS = 3 << 18, 4
"""Bytes of a matrix from which threads share its rows, and in how many units. A matrix of 1 MB
fills a second cache of that size, so that a loop reads it from the third in part; halves of it stay
in those of two threads (512 x 512 float32: 11.2 µs, by two 5.9). Fewer bytes gained nothing."""
LEAST = 4
"""Lanes of the shortest vectors. What has fewer rows than a whole one has lanes takes less of them,
where BLAS was called (32 products of 10 x 10 float32 with vectors 2.3 to 1.2 us, of 5 x 20 1.8 to
1.0, of 7 x 100 that lie across 6.5 to 2.0)."""
VECTORS, SUMS = 4, 8
"""Vectors of results, and of sums side by side: one would wait four cycles for each addition."""


class _Vectors:
    """What both forms need: vectors, masked where lanes are missing."""

    def __init__(self, module: Module, dtype: str, lanes: int) -> None:
        self.r = Reader(module, lanes)
        self.c = self.r.c
        self.lanes, self.size, self.scalar = lanes, itemsize(dtype), SCALAR[dtype]
        self.type = self.c.vec(self.scalar)
        self.suffix = f"v{lanes}{'f32' if self.size == 4 else 'f64'}"

    def mask(self, count: str) -> str:
        """The lanes before `count`, which may be any number."""
        c, t = self.c, "i32" if self.lanes <= 16 else "i8"
        some = c.call("llvm.smax.i64", "i64", ("i64", count), ("i64", "0"))
        some = smaller(c, some, str(self.lanes))
        small = c.splat(t, c.new(f"trunc i64 {some} to {t}"))
        return c.new(f"icmp ugt {c.vec(t)} {small}, {c.iota(t)}")

    def load(self, p: str, mask: str = "") -> str:
        c = self.c
        if not mask:
            return c.new(f"load {self.type}, ptr {p}, align {self.size}")
        return c.call(
            f"llvm.masked.load.{self.suffix}.p0", self.type, ("ptr", p), ("i32", str(self.size)),
            (c.vec("i1"), mask), (self.type, "zeroinitializer"),
        )  # fmt: skip

    def store(self, value: str, p: str, mask: str = "") -> None:
        c = self.c
        if not mask:
            c.do(f"store {self.type} {value}, ptr {p}, align {self.size}")
            return
        c.call_void(
            f"llvm.masked.store.{self.suffix}.p0", (self.type, value), ("ptr", p),
            ("i32", str(self.size)), (c.vec("i1"), mask),
        )  # fmt: skip

    def added(self, x: str, y: str, total: str) -> str:
        """x·y + total."""
        c, t = self.c, self.type
        if not c.module.fma:
            return c.new(f"fadd {t} {total}, {c.new(f'fmul {t} {x}, {y}')}")
        return c.call(f"llvm.fma.{self.suffix}", t, (t, x), (t, y), (t, total))

    def sum(self, x: str, y: str) -> str:
        return self.c.new(f"fadd {self.type} {x}, {y}")

    def shuffled(self, x: str, y: str, order: Sequence[int]) -> str:
        chosen = ", ".join([f"i32 {i}" for i in order])
        return self.c.new(
            f"shufflevector {self.type} {x}, {self.type} {y}, <{self.lanes} x i32> <{chosen}>"
        )


@structure
class Across:
    """Lanes along the results, in which the matrix is contiguous.

    `VECTORS` at a time, the last ones overlapping those before; where results are too few, one
    under a mask. (Masks of them all cost a fifth, as loads are no part of products then.)

    Words: whether its own code is meant; results, terms; bytes from term to term of the matrix and
    of the vector; sizes and strides of the loops; those of `blas.by_vector`.
    """

    dtype: str
    lanes: int
    loops: int

    def write(self, module: Module, name: str) -> None:
        """Add the function to a module."""
        v = _Vectors(module, self.dtype, self.lanes)
        r, c, size = v.r, v.c, v.size
        arrays = [r.array(), r.array(), r.array()]
        own = c.new(f"icmp ne i64 {r.word()}, 0")
        n, depth, step, by = r.word(), r.word(), r.word(), r.word()
        loops = r.loops(self.loops, 3)
        width = VECTORS * self.lanes
        whole = c.new(f"sub i64 {n}, {width}")
        many = c.new(f"icmp sge i64 {n}, {width}")

        def ours(u: str) -> None:
            matrix, vector, to = r.walked(u, loops, arrays)

            def tile(j: str, vectors: int) -> list[str]:
                mask = ""
                if vectors == 1:
                    mask = v.mask(c.new(f"sub i64 {n}, {j}"))
                else:
                    j = smaller(c, j, whole)
                p, q = r.moved(matrix, (j, str(size))), r.moved(to, (j, str(size)))
                turns = max(SUMS // vectors, 1)
                even = c.new(f"and i64 {depth}, {-turns}")

                def terms(count: int, now: Sequence[str]) -> list[str]:
                    p, q, *sums = now
                    for k in range(count):
                        one = c.new(f"load {v.scalar}, ptr {q}, align {size}")
                        one = c.splat(v.scalar, one)
                        for i in range(vectors):
                            place = c.new(
                                f"getelementptr {v.scalar}, ptr {p}, i64 {i * self.lanes}"
                            )
                            at = k * vectors + i
                            sums[at] = v.added(v.load(place, mask), one, sums[at])
                        p, q = r.moved(p, ("1", step)), r.moved(q, ("1", by))
                    return [p, q, *sums]

                sums = ["zeroinitializer"] * (turns * vectors)
                carried = [("ptr", p), ("ptr", vector), *[(v.type, s) for s in sums]]
                now = c.loop("0", even, str(turns), carried, lambda _, now: terms(turns, now))
                if turns > 1:
                    kept = now[2 + vectors :]
                    types = ["ptr", "ptr", *[v.type] * vectors]
                    carried = list(zip(types, now[: 2 + vectors], strict=True))
                    now = c.loop(even, depth, "1", carried, lambda _, now: terms(1, now))
                    now = [*now, *kept]
                sums = list(now[2:])
                while len(sums) > vectors:
                    half = len(sums) // 2
                    sums = [v.sum(s, t) for s, t in zip(sums[:half], sums[half:], strict=True)]
                for i, total in enumerate(sums):
                    place = c.new(f"getelementptr {v.scalar}, ptr {q}, i64 {i * self.lanes}")
                    v.store(total, place, mask)
                return []

            def tiles(vectors: int) -> None:
                step = str(vectors * self.lanes)
                c.loop("0", n, step, [], lambda j, _: tile(j, vectors))

            c.chosen(many, lambda: tiles(VECTORS), lambda: tiles(1))

        def unit(u: str) -> None:
            theirs = lambda: blas.by_vector(r, self.dtype, u, loops, arrays)  # noqa: E731
            c.chosen(own, lambda: ours(u), theirs)

        r.units(name, unit)


@structure
class Along:
    """Lanes along the terms, contiguous in matrix and vector; as many rows at a time as lanes.

    Words: into how many units its own code divides the rows, 0 where BLAS is meant; rows of one,
    in whole tiles; rows, at least as many as lanes then, terms; bytes from row to row; whether
    whole vectors begin where a row has a cache line, as the bits of an address in it; sizes and
    strides of the loops; those of `blas.by_vector`.
    """

    dtype: str
    lanes: int
    loops: int

    def write(self, module: Module, name: str) -> None:
        """Add the function to a module."""
        v = _Vectors(module, self.dtype, self.lanes)
        r, c, size, lanes = v.r, v.c, v.size, self.lanes
        arrays = [r.array(), r.array(), r.array()]
        parts, each = r.word(), r.word()
        own = c.new(f"icmp ne i64 {parts}, 0")
        m, depth, step, line = r.word(), r.word(), r.word(), r.word()
        loops = r.loops(self.loops, 3)
        last = c.new(f"sub i64 {m}, {lanes}")
        thrice = c.new(f"mul i64 {step}, 3")

        def ours(u: str) -> None:
            several = c.new(f"icmp ugt i64 {parts}, 1")
            u, part = c.guarded(several, [("i64", u), ("i64", "0")], lambda: r.split(u, parts))
            begin = c.new(f"mul i64 {part}, {each}")
            end = smaller(c, c.new(f"add i64 {begin}, {each}"), m)
            matrix, vector, to = r.walked(u, loops, arrays)

            def tile(i: str, _: list[str]) -> list[str]:
                # The last tile may overlap the one before, another thread's even: of the same bits.
                i = smaller(c, i, last)
                top = r.moved(matrix, (i, step))

                def terms(k: str, sums: Sequence[str], mask: str = "") -> list[str]:
                    at = (k, str(size))
                    many, p = v.load(r.moved(vector, at), mask), r.moved(top, at)
                    found = []
                    for row, total in enumerate(sums):
                        # Three rows per pointer, as the addressing of the CPU reaches.
                        if row and row % 3 == 0:
                            p = c.new(f"getelementptr i8, ptr {p}, i64 {thrice}")
                        place = r.moved(p, (str(row % 3), step)) if row % 3 else p
                        found.append(v.added(v.load(place, mask), many, total))
                    return found

                zeros = [(v.type, "zeroinitializer")] * lanes
                over = c.new(f"sub i64 0, {c.new(f'ptrtoint ptr {top} to i64')}")
                over = c.new(f"and i64 {over}, {line}")
                first = smaller(c, c.new(f"lshr i64 {over}, {size.bit_length() - 1}"), depth)
                count = c.new(f"and i64 {c.new(f'sub i64 {depth}, {first}')}, {-lanes}")
                stop = c.new(f"add i64 {first}, {count}")
                rest = c.new(f"sub i64 {depth}, {stop}")

                # Terms before and after whole vectors, by one and the same code.
                def beside(number: str, sums: Sequence[str]) -> list[str]:
                    before = c.new(f"icmp eq i64 {number}, 0")
                    k = c.new(f"select i1 {before}, i64 0, i64 {stop}")
                    some = c.new(f"select i1 {before}, i64 {first}, i64 {rest}")
                    return c.guarded(
                        c.new(f"icmp ne i64 {some}, 0"), [(v.type, t) for t in sums],
                        lambda: terms(k, sums, v.mask(some)),
                    )

                sums = c.guarded(
                    c.new(f"icmp ne i64 {c.new(f'or i64 {first}, {rest}')}, 0"), zeros,
                    lambda: c.loop("0", "2", "1", zeros, beside),
                )  # fmt: skip
                sums = c.loop(first, stop, str(lanes), [(v.type, t) for t in sums], terms)
                # Neighbours are added in pairs, then pairs of pairs: lane i becomes row i's sum.
                pairs = range(0, 2 * lanes, 2)
                odd = range(1, 2 * lanes, 2)
                while len(sums) > 1:
                    sums = [
                        v.sum(v.shuffled(s, t, pairs), v.shuffled(s, t, odd))
                        for s, t in zip(sums[::2], sums[1::2], strict=True)
                    ]
                v.store(sums[0], r.moved(to, (i, str(size))))
                return []

            c.loop(begin, end, str(lanes), [], tile)

        def unit(u: str) -> None:
            theirs = lambda: blas.by_vector(r, self.dtype, u, loops, arrays)  # noqa: E731
            c.chosen(own, lambda: ours(u), theirs)

        r.units(name, unit)


def matvec(
    dtype: str, rows: int, depth: int, matrix: tuple[int, int], vector: int, result: int,
    loops: blas.Loops,
) -> tuple[Across | Along | blas.Gemv, list[int], int, int]:  # fmt: skip
    """Spec, words, units per turn of the loops and their cost: of so many results and terms.

    Strides in elements: of the matrix from result to result and from term to term, of the vector
    and of the results.
    """
    size = itemsize(dtype)
    to_row, to_term = matrix
    across = to_row == 1
    lanes = most = _llvm.compiler().width // size
    while lanes > LEAST and rows < (lanes // 2 if across else lanes):
        lanes //= 2
    whole, work = rows * depth * size, 2.0 * rows * depth
    head = blas.words_of(loops, size)
    theirs, parts = blas.by_parts(dtype, rows, depth, matrix, vector, result)
    if dtype[0] == "c":
        spec = blas.Gemv(dtype, len(loops))
        return spec, [*head, *theirs], parts, 100 + int(4 * work / parts / 8)
    if across:
        own = whole <= MOST_ACROSS and result == 1 and rows >= lanes // 2
        words, units = [rows, depth, to_term * size, vector * size], 1
    else:
        own = to_term == vector == result == 1 and whole <= MOST_ALONG
        own = own and rows >= lanes and depth >= lanes // 2
        own = own and (lanes <= WAYS or to_row * size % APART != 0)
        lines = whole >= ALIGNED and to_row % lanes == 0
        each = max(-(-rows // ((UNITS if whole >= SHARED else 1) * lanes)), 1) * lanes
        units = -(-rows // each)
        words = [each, rows, depth, to_row * size, lanes * size - 1 if lines else 0]
    kind = Across if across else Along
    if own:
        cost = 10 + int(work / 30 if units == 1 else whole / 40 / units)
        return kind(dtype, lanes, len(loops)), [units, *words, *head, *theirs], units, cost
    cost = 100 + int(work / parts / 8)
    return kind(dtype, most, len(loops)), [0, *words, *head, *theirs], parts, cost
