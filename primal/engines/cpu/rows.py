"""Rows that fit in the cache: softmax, layer norm and their like as one kernel of several passes.

A pass runs over the row. Between passes stand the results of its reductions, and what is computed
of them once per row. What a later pass needs of an earlier one is kept in a buffer on the stack,
or read back from where it was stored anyway: nothing is computed twice, and rows leave the
first-level cache only as results.

The record is that of `kernels`, with these words: header, sizes of loops, bytes of the buffers;
per operand as there; per buffer its offset and strides; per store slot, offset, strides of all
loops; per result of a row slot, offset, strides of the kept loops.
"""

from __future__ import annotations

import dataclasses

from primal.engines.cpu import interleaved
from primal.engines.cpu.code import SCALAR, Module
from primal.engines.cpu.functions import FLOAT, INLINE
from primal.engines.cpu.kernels import Writer
from primal.engines.cpu.lanes import COMBINE, across, constant, emit, narrowed, store_scalar
from primal.engines.cpu.monoids import accumulator, identity

Item = tuple[str, tuple[str, ...], str, tuple[int, ...], int, bool]
"""(word, dtypes of operands, dtype, operands, pass, whether it is one per row)"""


@dataclasses.dataclass(frozen=True)
class RowSpec:
    """The structure of a kernel of several passes over rows.

    operands: as of `Spec`. items: numbered on from the operands. reductions: (monoid, what, pass),
    numbered on from the items; they stand before the next pass, with the items of that pass that
    are one per row. buffers: numbers of items kept in buffers. stores: numbers of items stored.
    results: numbers of reductions, or of items that are one per row, that are stored.
    column: the rows are columns, one in each lane, and a unit of work is all columns of the last
    kept loop. most: lanes that are enough for them.
    """

    kept: int
    reduced: int
    operands: tuple[tuple[str, str, str], ...]
    items: tuple[Item, ...]
    reductions: tuple[tuple[str, int, int], ...]
    buffers: tuple[int, ...]
    stores: tuple[int, ...]
    results: tuple[int, ...]
    column: bool = False
    most: int = 0

    @property
    def body(self) -> tuple[Item, ...]:
        return self.items

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of operands, items, reductions."""
        out = [o[1] for o in self.operands] + [i[2] for i in self.items]
        return out + [out[ref] for _, ref, _ in self.reductions]

    def write(self, module: Module, name: str) -> None:
        """Add the kernel to a module."""
        _Rows(module, self).function(name)


class _Rows(Writer):
    """Writes a kernel over rows; `values` are vectors that hold for the whole row."""

    def __init__(self, module: Module, spec: RowSpec) -> None:
        super().__init__(module, spec)
        self.rows = spec
        if spec.column:
            self.c.lanes = min(self.c.lanes, spec.most)
        self.c.inline = sum(i[0] in FLOAT for i in spec.items) <= INLINE
        self.first_item = len(spec.operands)
        self.first_reduction = self.first_item + len(spec.items)
        # Item -> number of its place among the places: a buffer, or where it is stored.
        self.back: dict[int, int] = {}

    def function(self, name: str) -> None:
        spec, c = self.rows, self.c
        c.start("entry")
        self.at = 6
        sizes = self.sizes = [self.word() for _ in range(self.rank)]
        stack = c.new(f"alloca i8, i64 {self.word()}, align 64")
        bases: list[str] = []
        for i, (kind, dtype, _) in enumerate(spec.operands):
            if kind == "l":
                bases.append("")
                self.strides.append([])
                self.splats[i] = self.literal(dtype, self.word())
                self.invert(i, self.splats[i])
            else:
                bases.append(self.address() if kind == "m" else self.word())
                self.strides.append([self.word() for _ in range(self.rank)])
        for number in spec.buffers:
            self.back[number] = len(bases)
            bases.append(c.new(f"getelementptr i8, ptr {stack}, i64 {self.word()}"))
            self.strides.append([self.word() for _ in range(self.rank)])
        for number in spec.stores:
            self.back.setdefault(number, len(bases))
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(self.rank)])
        for _ in spec.results:
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(spec.kept)])
        literals = dict(self.splats)

        def unit(_: str, *at: str) -> None:
            self.splats = dict(literals)
            places = self.moved(bases, list(enumerate(at)))
            if not spec.column:
                self.row(places)
                return
            self.scalars(places, spec.kept - 1)
            self.strips("0", sizes[spec.kept - 1], [], lambda i, m, _: self.columns(places, i, m))

        assert len(sizes) == self.rank
        c.function(name, unit, sizes=sizes[: spec.kept - spec.column])

    def passes(self, places: list[str], i: str, mask: str | None) -> dict[int, str]:
        """All passes over one row, or over the columns from `i` on; what is one per row."""
        spec = self.rows
        values: dict[int, str] = {}
        last = max([i[4] for i in spec.items] + [r[2] for r in spec.reductions], default=0)
        for number in range(last + 1):
            for k, (word, ins, out, refs, at, alone) in enumerate(spec.items):
                if alone and at == number:
                    given = [self.of_row(values, r, places, i, mask) for r in refs]
                    values[self.first_item + k] = emit(self.c, word, list(ins), out, given)
            self.one_pass(number, places, values, i, mask)
        return values

    def columns(self, places: list[str], i: str, mask: str | None) -> list[str]:
        """A vector of columns."""
        spec = self.rows
        values = self.passes(places, i, mask)
        first = len(places) - len(spec.results)
        for k, number in enumerate(spec.results):
            self.store(self.dtypes[number], values[number], places[first + k], i, mask)
        return []

    def row(self, places: list[str]) -> None:
        """One row."""
        spec = self.rows
        values = self.passes(places, "0", None)
        first = len(places) - len(spec.results)
        for k, number in enumerate(spec.results):
            dtype, value = self.dtypes[number], values[number]
            c = self.c
            if dtype in interleaved.PART:
                interleaved.store_first(c, dtype, value, places[first + k])
                continue
            scalar = c.new(f"extractelement {c.vec(SCALAR[dtype])} {value}, i64 0")
            store_scalar(c, dtype, scalar, places[first + k])

    def of_row(
        self, values: dict[int, str], number: int, places: list[str], i: str, mask: str | None
    ) -> str:
        """A value that is one per row, in all lanes; or those of the columns from `i` on."""
        if number in values:
            return values[number]
        if self.rows.column or number in self.splats:
            return self.load(number, places[number], i, mask)
        return self.splat_of(number, places[number])

    def one_pass(
        self, number: int, places: list[str], values: dict[int, str], at: str, lanes: str | None
    ) -> None:
        """All items and reductions of one pass over a row, or over the columns from `at` on."""
        spec, c = self.rows, self.c
        mine = [
            self.first_item + k for k, i in enumerate(spec.items) if not i[5] and i[4] == number
        ]
        sums = [(m, r) for m, r, at in spec.reductions if at == number]
        if not mine and not sums:
            return
        read = {r for n in mine for r in spec.items[n - self.first_item][3]} | {r for _, r in sums}
        operands = sorted(r for r in read if r < self.first_item)
        back = sorted(
            r for r in read if self.first_item <= r < self.first_reduction
            and r not in mine and not spec.items[r - self.first_item][5]
        )  # fmt: skip
        wides = [accumulator(m, self.dtypes[r]) for m, r in sums]
        for r in sorted(read & values.keys()):
            self.invert(r, values[r])
        monoids = [(m, w) for (m, _), w in zip(sums, wides, strict=True)]
        firsts = [(c.vec(SCALAR[w]), constant(c, w, identity(m, w))) for m, w in monoids]

        def inner(places: list[str], i: str, mask: str | None, totals: list[str]) -> list[str]:
            here = dict(values)
            for r in operands:
                here[r] = self.load(r, places[r], i, mask)
            for r in back:
                here[r] = self.reload(r, places[self.back[r]], self.index_of(r, i), mask)
            for n in mine:
                word, ins, out, refs, _, _ = spec.items[n - self.first_item]
                here[n] = self.made(word, ins, out, refs, [here[r] for r in refs])
            offset = len(spec.operands)
            for k, n in enumerate((*spec.buffers, *spec.stores)):
                if n in mine:
                    index = i if k >= len(spec.buffers) else self.index_of(n, i)
                    self.store(self.dtypes[n], here[n], places[offset + k], index, mask)
            results = []
            for (monoid, r), wide, total in zip(sums, wides, totals, strict=True):
                dtype, value = self.dtypes[r], here[r]
                if wide != dtype:
                    value = emit(c, "convert", [dtype], wide, [value])
                if mask is not None and not spec.column:
                    t = c.vec(SCALAR[wide])
                    none = constant(c, wide, identity(monoid, wide))
                    value = c.new(f"select {c.vec('i1')} {mask}, {t} {value}, {t} {none}")
                results.append(emit(c, COMBINE[monoid], [wide, wide], wide, [total, value]))
            return results

        def nest(d: int, places: list[str], totals: list[str]) -> list[str]:
            carried = [(t, v) for (t, _), v in zip(firsts, totals, strict=True)]
            if d < self.rank - 1 + spec.column:
                return c.loop(
                    "0", self.sizes[d], "1", carried,
                    lambda i, now: nest(d + 1, self.moved(places, [(d, i)]), now),
                )  # fmt: skip
            known = dict(self.splats)
            self.scalars(places, d)
            if spec.column:
                out = inner(places, at, lanes, totals)
            else:
                out = self.along_row(
                    "0", self.sizes[d], monoids, carried,
                    lambda i, mask, now: inner(places, i, mask, now),
                )  # fmt: skip
            self.splats = known
            return out

        totals = nest(spec.kept, places, [v for _, v in firsts])
        self.settle(number, wides, totals, values)

    def settle(
        self, number: int, wides: list[str], totals: list[str], values: dict[int, str]
    ) -> None:
        """What a pass reduced, in all lanes; or of each column in its lane."""
        c, now = self.c, iter(zip(wides, totals, strict=True))
        for k, (monoid, r, when) in enumerate(self.rows.reductions):
            if when != number:
                continue
            dtype, (wide, total) = self.dtypes[r], next(now)
            if self.rows.column:
                if wide != dtype:
                    total = emit(c, "convert", [wide], dtype, [total])
                values[self.first_reduction + k] = total
                continue
            scalar = across(c, monoid, wide, total)
            if wide != dtype:
                scalar = narrowed(c, wide, dtype, scalar)
            values[self.first_reduction + k] = c.splat(SCALAR[dtype], scalar)

    def index_of(self, number: int, i: str) -> str:
        """Where vector `i` of an item lies in the row of its buffer, or of where it is stored."""
        return "0" if self.rows.column and number in self.rows.buffers else i

    def reload(self, number: int, place: str, index: str, mask: str | None) -> str:
        """What an earlier pass left at this vector."""
        return self.contiguous(self.dtypes[number], place, index, mask)
