"""dot_general: products of matrices by OpenBLAS, small ones and vectors by kernels of our own.

A product is cut into units by its own sizes, whatever the number of threads; BLAS calls of one
thread compute them. Operands are read where they lie: transposition is a flag of the call, rows
may be any distance apart, and dimensions that no stride of BLAS reaches become loops around it.
Copies are made only where neither of a matrix's dimensions is contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, Code, Module, itemsize
from primal.engines.cpu.graph import Value, native, reshaped, row_major, size_of, transposed
from primal.engines.cpu.layout import EVEN
from primal.engines.cpu.products import blas, gemm, matvec, tiled, ways
from primal.engines.cpu.reader import Reader, smaller
from primal.engines.cpu.routines.moves import merged
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

SMALL = 8
"""Sizes up to this are written out: a call of BLAS takes 100 ns or more."""
THIN = 64 * 64
"""Elements of results whose terms are divided, where there are many."""
TALL = 8
"""Terms per row or column from which they may be: the sum of parts is a step more."""
LONG = 1 << 14
"""Most terms of a part."""
SHORT, ROWS = 16, 32
"""Terms up to which, and rows from which on, contiguous terms of y are turned: BLAS is slow at few
(512 x 4 by 4 x 2048 of float32 355 to 138 us, JAX 134; 1000 x 10 by 10 x 1000 332 to 217, 252)."""
Loop = tuple[int, tuple[int, int, int]]
"""A dimension: its size, and its strides in x, y and the result, in elements."""


def dot_general(
    k: Any,
    x: Value,
    y: Value,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
) -> Value:
    """out[b, i, j] = Σc x[b, i, c] y[b, j, c]; in float32 for narrower floats."""
    (xc, yc), (xb, yb) = dimension_numbers
    out = x.dtype if preferred_element_type is None else preferred_element_type
    work = np.dtype(np.float32) if dtypes.is_narrow_float(x.dtype) else x.dtype
    if preferred_element_type is not None:
        work = dtypes.sums_dtype(x.dtype, preferred_element_type)
    if work == np.bool_:
        work = _work_of_bools(x, y, dimension_numbers)
    # Kernels do not compute in complex dtypes, but BLAS does.
    if any(native(d) is None and d.kind != "c" for d in (work, out)):
        raise Unsupported(f"dot_general in {work}")
    x, y = k.convert(x, work), k.convert(y, work)
    xi = [d for d in range(x.ndim) if d not in xc and d not in xb]
    yi = [d for d in range(y.ndim) if d not in yc and d not in yb]
    # Batch, free and contracted dimensions, in this order. Terms may be added in any.
    pairs = _ordered(x, y, list(zip(xc, yc, strict=True)))
    x = transposed(x, (*xb, *xi, *[c for c, _ in pairs]))
    y = transposed(y, (*yb, *yi, *[c for _, c in pairs]))
    nb, ni, nj = len(xb), len(xi), len(yi)
    return k.convert(_laid_out(k, x, y, nb, ni, nj, k.layout if work == out else None), out)


def _work_of_bools(x: Value, y: Value, dimension_numbers: Any) -> Any:
    """The dtype to multiply bools in; a sum of ones is above 0 however float32 rounds it.

    1000 x 1000 take 3 ms by BLAS, 100 as sums of int32. Where rows, columns or terms are few,
    reading them is most of it: as bytes, where they lie. Small products are code for int32.
    """
    (xc, yc), (xb, yb) = dimension_numbers
    sizes = [size_of([x.shape[d] for d in xc])]
    for v, c, b in ((x, xc, xb), (y, yc, yb)):
        sizes.append(size_of([n for d, n in enumerate(v.shape) if d not in c and d not in b]))
    few, many = np.dtype(np.bool_), np.dtype(np.float32)
    if 1 < max(sizes[1:]) <= max(sizes) <= SMALL:
        few = np.dtype(np.int32)
    return many if min(sizes) > SMALL and blas.routine("f4", "gemm") else few


def _laid_out(
    k: Any, x: Value, y: Value, nb: int, ni: int, nj: int, layout: Sequence[int] | None
) -> Value:
    """The product, whose dimensions lie in memory in the order of `layout`, if that can be had."""
    rank = nb + ni + nj
    shape = (*x.shape[: nb + ni], *y.shape[nb : nb + nj])
    last = next((d for d in reversed(layout or ()) if shape[d] > 1), -1)
    if layout is None or last < nb:
        return _product(k, x, y, nb, ni, nj)
    if last < nb + ni:
        # Rows of the result are to be contiguous: those of the product the other way around.
        order = [*range(nb), *range(nb + ni, rank), *range(nb, nb + ni)]
        found = _laid_out(k, y, x, nb, nj, ni, [order.index(d) for d in layout])
        return transposed(found, [order.index(d) for d in range(rank)])
    return _product(k, x, y, nb, ni, nj, layout)


def _product(
    k: Any, x: Value, y: Value, nb: int, ni: int, nj: int, layout: Sequence[int] | None = None
) -> Value:
    """The product of operands whose dimensions are in order."""
    m, n = size_of(x.shape[nb : nb + ni]), size_of(y.shape[nb : nb + nj])
    depth = size_of(x.shape[nb + ni :])
    dtype = x.node.dtype.str[1:]
    x, y = _held(k, x), _held(k, y)
    in_blas = blas.routine(dtype, "gemm")
    # Rows of integers times rows are exact in any order: sums, which a group takes by vectors.
    dots = m == n == 1 and not in_blas and nb > 0
    if max(m, n, depth) <= SMALL and dtype in _SMALL_TYPES and m * n * depth > 1 and not dots:
        return _small(k, x, y, nb, ni, nj)
    if in_blas and max(m, n) > 1 and depth > 1:
        if m == 1 or n == 1:
            return _by_blas(k, x, y, nb, ni, nj, "gemv")
        parts = _parts_of_terms(m, n, depth, dtype, y.steps()[-1] == 1)
        found = _in_parts(k, x, y, nb, ni, nj, parts) if parts > 1 else None
        return found if found is not None else _by_blas(k, x, y, nb, ni, nj, "gemm", layout)
    if dtype in blas.LETTER and not in_blas and depth > 1 and m * n > 1:
        raise Unsupported("dot_general without OpenBLAS")
    return _by_sums(k, x, y, nb, ni, nj)


def _parts_of_terms(m: int, n: int, depth: int, dtype: str, turned: bool) -> int:
    """In how many parts the terms of a product of few rows and columns are added up.

    BLAS reads short ones as they lie and packs others, and threads share the parts, which rows and
    columns are too few for: covariances of 100,000 x 10 floats took 980 us, and take 220 (JAX 460),
    products of 3 rows of 320,000 1,460 and 95.
    """
    work = m * n * depth
    if dtype not in ("f4", "f8"):
        return 1
    if m * n > THIN or depth < TALL * max(m, n):
        return 1
    if work <= blas.UNPACKED and depth <= LONG:
        return 1
    if dtype == "f4" and tiled.have() and tiled.fits(m, n, depth, turned):
        return 1
    parts = max(-(-work // blas.UNPACKED), -(-depth // LONG))
    return -(-parts // EVEN) * EVEN


def _in_parts(k: Any, x: Value, y: Value, nb: int, ni: int, nj: int, parts: int) -> Value | None:
    """The sum of products of so many parts of the terms, the last with what is left of them."""
    free_x, free_y = x.shape[: nb + ni], y.shape[: nb + nj]
    depth = size_of(x.shape[nb + ni :])
    one, other = reshaped(x, (*free_x, depth)), reshaped(y, (*free_y, depth))
    if one is None or other is None:
        return None
    each = depth // parts

    def divided(v: Value) -> Value:
        """The parts before all other dimensions, without what is left of the terms."""
        *steps, step = v.steps()
        return v.view((parts, *v.shape[:-1], each), (each * step, *steps, step), v.offset)

    _, left, right, inner = _loops(divided(one), divided(other), nb + 1, ni, nj)
    bad = [_matrix(g, inner[0][1][i], each, i)[1] for i, g in enumerate((left, right))]
    if any(bad):
        one, other = _copied(k, one, other, *bad)
    made = _by_blas(
        k, divided(one), divided(other), nb + 1, ni, nj, "gemm", rest=depth - parts * each
    )
    return gemm.added(k, made)


def _ordered(x: Value, y: Value, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of contracted dimensions in the order of the strides of one operand."""
    if len(pairs) < 2:
        return pairs

    def by(side: int) -> list[tuple[int, int]]:
        steps = (x, y)[side].steps()
        return sorted(pairs, key=lambda pair: -steps[pair[side]])

    def runs(side: int, order: list[tuple[int, int]]) -> int:
        v = (x, y)[side]
        steps = v.steps()
        return len(merged([(v.shape[p[side]], (steps[p[side]], 0, 0)) for p in order]))

    return min(by(0), by(1), key=lambda order: runs(0, order) + runs(1, order))


def _held(k: Any, x: Value) -> Value:
    """The value as a view of memory, which scalars and counts are not."""
    return k.copy(x) if x.node.word in ("literal", "iota") else x


def _by_sums(k: Any, x: Value, y: Value, nb: int, ni: int, nj: int) -> Value:
    """A reduction of products: of integers, of two vectors, of a column and a row."""
    shape = (*x.shape[: nb + ni], *y.shape[nb:])
    rank = len(shape)
    xs, ys = x.steps(), y.steps()
    a = x.view(shape, (*xs[: nb + ni], *[0] * nj, *xs[nb + ni :]), x.offset)
    b = y.view(shape, (*ys[:nb], *[0] * ni, *ys[nb:]), y.offset)
    axes = tuple(range(nb + ni + nj, rank))
    times, plus = ("and", "or") if x.dtype == np.bool_ else ("mul", "add")
    product = k.binary(times, a, b)
    return k.reduce(plus, product, axes) if axes else product


def of_vectors(k: Any, x: Value, y: Value, dimension_numbers: Any) -> Value:
    """The product of each pair of vectors, in dtypes that only words on their parts compute in."""
    shape: tuple[int, ...] = ()
    operands = []
    for v, contracted, batch in zip((x, y), *dimension_numbers, strict=True):
        ones = [d for d in range(v.ndim) if d not in contracted and d not in batch]
        order, shape = (*batch, *contracted, *ones), tuple([v.shape[d] for d in batch])
        terms = [v.shape[d] for d in contracted]
        operands.append(k.reshape(k.transpose(v, order), (*shape, *terms)))
    product = k.binary("mul", *operands)
    axes = tuple(range(len(shape), product.ndim))
    total = k.reduce("add", product, axes) if axes else product
    return k.reshape(total, (*shape, *[1] * (x.ndim + y.ndim - 2 * product.ndim)))


# Dimensions as loops.


def _loops(
    x: Value, y: Value, nb: int, ni: int, nj: int, layout: Sequence[int] | None = None
) -> list[list[Loop]]:
    """Batch, left, right and contracted loops; `layout`: the order of the result's dimensions."""
    xs, ys = x.steps(), y.steps()
    batch, left, right = x.shape[:nb], x.shape[nb : nb + ni], y.shape[nb : nb + nj]
    os = row_major((*batch, *left, *right))
    if layout is not None:
        shape = (*batch, *left, *right)
        strides = row_major([shape[d] for d in layout])
        os = tuple([strides[layout.index(d)] for d in range(len(shape))])
    groups = [
        [(batch[d], (xs[d], ys[d], os[d])) for d in range(nb)],
        [(left[d], (xs[nb + d], 0, os[nb + d])) for d in range(ni)],
        [(right[d], (0, ys[nb + d], os[nb + ni + d])) for d in range(nj)],
        [(n, (xs[nb + ni + d], ys[nb + nj + d], 0)) for d, n in enumerate(x.shape[nb + ni :])],
    ]
    return [merged(g) for g in groups]


def _words(loops: Sequence[Loop], size: int) -> list[int]:
    """The run-time words of loops: size and strides in bytes."""
    return [w for n, strides in loops for w in (n, *[s * size for s in strides])]


# Products by BLAS.


def _by_blas(
    k: Any, x: Value, y: Value, nb: int, ni: int, nj: int, how: str,
    layout: Sequence[int] | None = None, rest: int = 0,
) -> Value:  # fmt: skip
    """The product, whose first dimension is one of parts where its last one has `rest` more terms
    than the others, which are there behind those of the operands."""
    shape = (*x.shape[: nb + ni], *y.shape[nb : nb + nj])
    loops = _loops(x, y, nb, ni, nj)
    if layout is not None:
        laid = _loops(x, y, nb, ni, nj, layout)
        # Columns are contiguous, and there are no more products of fewer rows or columns.
        fits = [len(g) for g in laid[1:3]] == [len(g) for g in loops[1:3]]
        if fits and laid[2][-1][1][2] == 1:
            loops = laid
        else:
            layout = None
    batch, left, right, inner = loops
    order = range(len(shape)) if layout is None else layout
    there, lies = tuple([shape[d] for d in order]), [order.index(d) for d in range(len(shape))]
    depth = size_of(x.shape[nb + ni :])
    if len(inner) > 1:
        # No one stride leads through the contracted dimensions: of one operand, or of both.
        one_x, one_y = (
            len(merged([(n, (s[side], 0, 0)) for n, s in inner])) == 1 for side in (0, 1)
        )
        return _product(k, *_copied(k, x, y, not one_x, not one_y), nb, ni, nj, layout)
    if how == "gemv":
        return _matvec(k, x, y, nb, ni, nj)
    few = depth <= SHORT and size_of([g[0] for g in left]) >= ROWS
    if few and inner[0][1][1] == 1 != right[-1][1][1]:
        order = [*range(nb), *range(nb + nj, y.ndim), *range(nb, nb + nj)]
        y = transposed(k.copy(transposed(y, order)), [order.index(d) for d in range(y.ndim)])
        return _product(k, x, y, nb, ni, nj, layout)
    i, bad_x = _matrix(left, inner[0][1][0], depth, 0)
    j, bad_y = _matrix(right, inner[0][1][1], depth, 1)
    if bad_x or bad_y:
        return _product(k, *_copied(k, x, y, bad_x, bad_y), nb, ni, nj, layout)
    loops = [*batch, *[g for g in left if g is not i], *[g for g in right if g is not j]]
    (m, (xm, _, om)), (n, (_, yn, _)) = i, j
    xk, yk = inner[0][1][:2]
    ta, lda = (111, max(xm, depth)) if xk == 1 else (112, max(xk, m))
    tb, ldb = (112, max(yn, depth)) if yk == 1 else (111, max(yk, n))
    if max(m, n, depth, lda, ldb, om) > blas.MOST:
        raise Unsupported("a product of more than 2**31 rows or columns")
    dtype = x.node.dtype.str[1:]
    turns, results = size_of([g[0] for g in loops]), there
    if not rest and ways.in_halves(dtype, m, n, depth, turns, yk == 1):
        depth //= 2
        results = (2, *there)
        loops = [(2, (xk * depth, yk * depth, size_of(there))), *loops]
        turns *= 2
    sizes, strides = (m, n, depth), ((xm, xk), (yk, yn), om)
    way = ways.fastest(dtype, sizes, strides[:2], turns)
    last = turns // shape[0] if rest else 0
    same = x.node is y.node and x.offset == y.offset and (xm, xk) == (yn, yk)
    same = same and all(s[0] == s[1] for _, s in loops)
    plain = om == n and [s[2] for _, s in loops] in ([], [m * n])
    way = ways.halved(dtype, n, depth, way) if same and plain else way
    words, parts = blas.record(
        dtype, way.callees, way.room, sizes, *strides, way.unit, blas.padded(loops), last, rest,
        (ta, lda, tb, ldb, max(om, n)),
    )  # fmt: skip
    made = k.routine(
        blas.Product(dtype, len(blas.padded(loops))), (x, y), (Aval(results, x.dtype),), words,
        units=parts * turns,
        cost=min(int(way.cost / parts) + (0 if way.callees else 150), blas.MOST), name="matmul",
        terms=depth, callees=way.callees,
    )[0]  # fmt: skip
    if results != there:
        halves = [made.view(there, row_major(there), i * size_of(there)) for i in range(2)]
        made = k.binary("add", *halves)
    return transposed(made, lies)


def _matrix(free: Sequence[Loop], inner: int, depth: int, side: int) -> tuple[Loop, bool]:
    """The loop that BLAS takes as rows or columns, and whether the operand must be copied."""
    total = size_of([g[0] for g in free])
    best = free[-1]
    for g in free:
        # Columns of the result must be contiguous; its rows may be anywhere.
        if side == 0 and g[0] > best[0]:
            best = g
    stride = best[1][side]
    fits = (inner == 1 and stride >= depth) or (stride == 1 and inner >= best[0])
    return best, not fits or (best[0] < 32 and total >= 4 * best[0])


def _copied(k: Any, x: Value, y: Value, copy_x: bool, copy_y: bool) -> tuple[Value, Value]:
    """Operands with row-major copies in the place of some."""

    def copied(v: Value) -> Value:
        if v.strides is None and v.shape == v.node.shape:
            raise Unsupported("a product that copies do not help")
        return k.copy(v)

    return copied(x) if copy_x else x, copied(y) if copy_y else y


def _matvec(k: Any, x: Value, y: Value, nb: int, ni: int, nj: int) -> Value:
    """One of the operands is a vector, in every batch."""
    batch, left, right, inner = _loops(x, y, nb, ni, nj)
    depth = size_of(x.shape[nb + ni :])
    side = 1 if left else 0
    free = left or right
    matrix, vector = (y, x) if side == 0 else (x, y)
    along = [inner[0][1][1 - side], inner[0][1][side]]  # strides of the terms
    (rows, strides) = max(free, key=lambda g: g[0])
    step = strides[1 - side]
    fits = (along[0] == 1 and step >= depth) or (step == 1 and along[0] >= rows)
    if not fits or along[1] < 1:
        bad_x, bad_y = (along[1] < 1, not fits) if side == 0 else (not fits, along[1] < 1)
        return _product(k, *_copied(k, x, y, bad_x, bad_y), nb, ni, nj)
    loops = [*batch, *[g for g in free if g[0:2] != (rows, strides)]]
    if max(rows, depth, step, *along, strides[2]) > blas.MOST:
        raise Unsupported("a product of more than 2**31 rows or columns")
    dtype = x.node.dtype.str[1:]
    shape = (*x.shape[: nb + ni], *y.shape[nb : nb + nj])
    turns = [(n, (s[1 - side], s[side], s[2])) for n, s in loops]
    spec, words, parts, cost = matvec.matvec(
        dtype, rows, depth, (step, along[0]), along[1], strides[2], turns
    )
    return k.routine(
        spec, (matrix, vector), (Aval(shape, x.dtype),), words,
        units=size_of([g[0] for g in loops]) * parts, cost=min(cost, blas.MOST), name="matvec",
        terms=depth,
    )[0]  # fmt: skip


# Small products, written out.

_SMALL_TYPES = frozenset(("f4", "f8", "i4", "i8", "u4", "u8"))
CHUNK = 64
"""Small products per unit."""


def _small(k: Any, x: Value, y: Value, nb: int, ni: int, nj: int) -> Value:
    left, right = x.shape[nb : nb + ni], y.shape[nb : nb + nj]
    shape = (*x.shape[: nb + ni], *right)
    dtype = x.node.dtype.str[1:]
    size = itemsize(dtype)
    batch = merged(
        [
            (n, (a, b, o))
            for n, a, b, o in zip(
                x.shape[:nb], x.steps()[:nb], y.steps()[:nb], row_major(shape)[:nb], strict=True
            )
        ]
    )
    if not batch:
        batch = [(1, (0, 0, 0))]
    strides: list[list[int]] = []
    for v, free in ((x, ni), (y, nj)):
        found = [
            _flat(v.shape[nb : nb + free], v.steps()[nb : nb + free]),
            _flat(v.shape[nb + free :], v.steps()[nb + free :]),
        ]
        if None in found:
            return _small(k, *_copied(k, x, y, v is x, v is y), nb, ni, nj)
        strides.append(found)  # type: ignore[arg-type]
    m, n, depth = math.prod(left), math.prod(right), math.prod(x.shape[nb + ni :])
    inner = batch[-1][0]
    chunks = -(-inner // CHUNK)
    words = [
        *[s * size for s in (*strides[0], *strides[1])],
        inner, chunks, *[s * size for s in batch[-1][1]],
        *_words(batch[:-1], size),
    ]  # fmt: skip
    spec = Small(dtype, m, n, depth, strides[1][0] == 1 or n == 1, len(batch) - 1)
    units = size_of([g[0] for g in batch[:-1]]) * chunks
    each = 2 + m * depth * -(-n * size // 32) // 3
    return k.routine(
        spec, (x, y), (Aval(shape, x.dtype),), words, units=units,
        cost=each * min(inner, CHUNK), name="matmul", terms=depth,
    )[0]  # fmt: skip


def _flat(sizes: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride of dimensions, or None."""
    loops = merged([(n, (s, 0, 0)) for n, s in zip(sizes, strides, strict=True)])
    return 0 if not loops else loops[0][1][0] if len(loops) == 1 else None


@structure
class Small:
    """Products of m x depth and depth x n matrices, the sums written out, in many turns.

    `rows`: rows of the second operand are contiguous.
    """

    dtype: str
    m: int
    n: int
    depth: int
    rows: bool
    loops: int

    def write(self, module: Module, name: str) -> None:
        """Add the function; its words are those of `_small`."""
        r = Reader(module, self.n)
        c = r.c
        a, b, out = r.array(), r.array(), r.array()
        am, ak, bn, bk = r.word(), r.word(), r.word(), r.word()
        inner, chunks, *steps = [r.word() for _ in range(5)]
        loops = r.loops(self.loops, 3)
        scalar = SCALAR[self.dtype]

        def turn(_: str, places: list[str]) -> list[str]:
            x, y, z = places
            rows = [self._row(r, r.moved(y, (str(k), bk)), bn) for k in range(self.depth)]
            size = itemsize(self.dtype)
            for i in range(self.m):
                at = r.moved(x, (str(i), am))
                total = ""
                for k, row in enumerate(rows):
                    p = r.moved(at, (str(k), ak))
                    one = c.new(f"load {scalar}, ptr {p}, align {size}")
                    many = c.splat(scalar, one) if self.n > 1 else one
                    total = self._added(c, many, row, total)
                p = c.new(f"getelementptr {scalar}, ptr {z}, i64 {i * self.n}")
                c.do(f"store {self._type(c)} {total}, ptr {p}, align {size}")
            return [r.moved(p, ("1", s)) for p, s in zip(places, steps, strict=True)]

        def unit(u: str) -> None:
            u, chunk = r.split(u, chunks)
            places = r.walked(u, loops, [a, b, out])
            first = c.new(f"mul i64 {chunk}, {CHUNK}")
            stop = smaller(c, c.new(f"add i64 {first}, {CHUNK}"), inner)
            places = [r.moved(p, (first, s)) for p, s in zip(places, steps, strict=True)]
            c.loop(first, stop, "1", [("ptr", p) for p in places], turn)

        r.units(name, unit)

    def _type(self, c: Code) -> str:
        scalar = SCALAR[self.dtype]
        return c.vec(scalar) if self.n > 1 else scalar

    def _row(self, r: Reader, place: str, stride: str) -> str:
        c, scalar, size = r.c, SCALAR[self.dtype], itemsize(self.dtype)
        if self.rows:
            return c.new(f"load {self._type(c)}, ptr {place}, align {size}")
        row = "poison"
        for j in range(self.n):
            p = r.moved(place, (str(j), stride))
            one = c.new(f"load {scalar}, ptr {p}, align {size}")
            row = c.new(f"insertelement {c.vec(scalar)} {row}, {scalar} {one}, i64 {j}")
        return row

    def _added(self, c: Code, x: str, y: str, total: str) -> str:
        t = self._type(c)
        if self.dtype[0] != "f":
            product = c.new(f"mul {t} {x}, {y}")
            return c.new(f"add {t} {total}, {product}") if total else product
        if self.depth == 1:
            return c.new(f"fmul {t} {x}, {y}")
        total = total or ("zeroinitializer" if self.n > 1 else "0.0")  # where -0 adds nothing
        if not c.module.fma:
            return c.new(f"fadd {t} {total}, {c.new(f'fmul {t} {x}, {y}')}")
        suffix = "f32" if self.dtype == "f4" else "f64"
        name = f"llvm.fma.v{self.n}{suffix}" if self.n > 1 else f"llvm.fma.{suffix}"
        return c.call(name, t, (t, x), (t, y), (t, total))
