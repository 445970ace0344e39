"""Rows that fit in the cache: softmax, layer norm and their like as one kernel of several passes.

A pass runs over the row. Between passes stand the results of its reductions, and what is computed
of them once per row. What a later pass needs of an earlier one is kept in a buffer on the stack,
or read back from where it was stored anyway: nothing is computed twice, and rows leave the
first-level cache only as results.

A unit of work is some rows. Each pass goes over all of them, so that no row waits for what is
reduced of itself: a softmax of 32 numbers is a chain of 230 cycles, and takes 60.

The record is that of `kernels`, with these words: header, sizes of loops, bytes of a row's buffers;
per operand as there; per buffer its offset and strides; per store slot, offset, strides of all
loops; per result of a row slot, offset, strides of the kept loops.
"""

from __future__ import annotations

import functools

from primal.base.structures import structure
from primal.engines.cpu import interleaved
from primal.engines.cpu.code import LINE, SCALAR, Module
from primal.engines.cpu.functions import FLOAT, INLINE
from primal.engines.cpu.kernels import Writer, is_light
from primal.engines.cpu.lanes import COMBINE, across, constant, emit, narrowed, store_scalar
from primal.engines.cpu.monoids import accumulator, identity
from primal.engines.cpu.strips import along_row, strips
from primal.engines.cpu.turned_rows import SIDE, turn

SCALAR_ROOM = 16
"""Bytes on the stack of what is one per row."""
Item = tuple[str, tuple[str, ...], str, tuple[int, ...], int, bool]
"""(word, dtypes of operands, dtype, operands, pass, whether it is one per row)"""


@structure
class RowSpec:
    """The structure of a kernel of several passes over rows.

    operands: as of `Spec`. items: numbered on from the operands. reductions: (monoid, what, pass),
    numbered on from the items; they stand before the next pass, with the items of that pass that
    are one per row. buffers: numbers of items kept in buffers. stores: numbers of items stored.
    results: numbers of reductions, or of items that are one per row, that are stored.
    column: the rows are columns, one in each lane, and a unit of work is all columns of the last
    kept loop. most: lanes that are enough for them.
    turned: they are rows, shorter than a vector, that are turned into columns and back; operands of
    step 't' and what is stored.
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
    turned: bool = False

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
        self.last = max([i[4] for i in spec.items] + [r[2] for r in spec.reductions], default=0)
        # What is one per row -> the pass that makes it, the later ones that read it.
        made = {self.first_item + k: i[4] for k, i in enumerate(spec.items) if i[5]}
        made.update({self.first_reduction + k: r[2] for k, r in enumerate(spec.reductions)})
        read = {k: {i[4] for i in spec.items if k in i[3] and i[4] > at} for k, at in made.items()}
        self.held = {k: (at, read[k]) for k, at in made.items() if read[k]}

    def function(self, name: str) -> None:
        spec, c = self.rows, self.c
        c.start("entry")
        self.at = 4
        chunk, chunks = self.word(), self.word()
        sizes = self.sizes = [self.word() for _ in range(self.rank)]
        scalars = -(-len(self.held) * SCALAR_ROOM // LINE) * LINE
        room = c.new(f"add i64 {self.word()}, {scalars}")
        every = room if spec.column else c.new(f"mul i64 {room}, {chunk}")
        stack = c.new(f"alloca i8, i64 {every}, align {LINE}")
        buffers = c.new(f"getelementptr i8, ptr {stack}, i64 {scalars}")
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
            bases.append(c.new(f"getelementptr i8, ptr {buffers}, i64 {self.word()}"))
            self.strides.append([self.word() for _ in range(self.rank)])
        for number in spec.stores:
            self.back.setdefault(number, len(bases))
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(self.rank)])
        for _ in spec.results:
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(spec.kept)])
        literals = dict(self.splats), dict(self.inverses)
        blocks = self.blocks()

        def unit(_: str, *at: str) -> None:
            if spec.turned:
                first = c.new(f"mul i64 {at[-1]}, {chunk}")
                stop = c.new(f"add i64 {first}, {chunk}")
                stop = c.call("llvm.smin.i64", "i64", ("i64", stop), ("i64", sizes[spec.kept - 1]))

                def some(i: str, _: list[str]) -> list[str]:
                    self.splats, self.inverses = map(dict, literals)
                    places = self.moved(bases, list(enumerate([*at[:-1], i])))
                    self.turned(places, blocks, c.new(f"sub i64 {stop}, {i}"))
                    return []

                c.loop(first, stop, str(c.lanes), [], some)
                return
            if spec.column:
                self.splats, self.inverses = map(dict, literals)
                places = self.moved(bases, list(enumerate(at)))
                self.scalars(places, spec.kept - 1)
                strips(
                    self, "0", sizes[spec.kept - 1], [],
                    lambda i, m, _: self.columns(places, i, m),
                )  # fmt: skip
                return
            outer, last = list(enumerate(at[:-1])), spec.kept - 1
            first = c.new(f"mul i64 {at[-1]}, {chunk}")
            stop = c.new(f"add i64 {first}, {chunk}")
            stop = c.call("llvm.smin.i64", "i64", ("i64", stop), ("i64", sizes[last]))

            def turn(number: int, i: str, _: list[str]) -> list[str]:
                self.splats, self.inverses = map(dict, literals)
                places = self.moved(bases, [*outer, (last, i)])
                mine = c.new(f"mul i64 {c.new(f'sub i64 {i}, {first}')}, {room}")
                for k in range(len(spec.operands), len(spec.operands) + len(spec.buffers)):
                    places[k] = c.new(f"getelementptr i8, ptr {places[k]}, i64 {mine}")
                self.row(number, places, c.new(f"getelementptr i8, ptr {stack}, i64 {mine}"))
                return []

            for number in range(self.last + 1):
                c.loop(first, stop, "1", [], functools.partial(turn, number))

        outside = sizes[: spec.kept - 1]
        whole = spec.column and not spec.turned
        c.function(name, unit, sizes=outside if whole else [*outside, chunks])

    def blocks(self) -> dict[int, str]:
        """Operands and stores that are turned -> where their columns lie."""
        spec, c = self.rows, self.c
        if not spec.turned:
            return {}
        first = len(spec.operands) + len(spec.buffers)
        found = [k for k, o in enumerate(spec.operands) if o[2] == "t"]
        found += range(first, first + len(spec.stores))
        apart = [str(LINE)]
        for size in reversed(self.sizes[spec.kept :]):
            apart.insert(0, c.new(f"mul i64 {apart[0]}, {size}"))
        self.length = c.new(f"sdiv exact i64 {apart[0]}, {LINE}")
        room = c.new(f"add i64 {apart[0]}, {SIDE * LINE}")
        for k in found:
            self.strides[k] = [*self.strides[k][: spec.kept], *apart[1:]]
        return {k: c.new(f"alloca i8, i64 {room}, align {LINE}") for k in found}

    def turned(self, places: list[str], blocks: dict[int, str], left: str) -> None:
        """The rows that begin at the places, one per lane, where so many are left."""
        spec, c = self.rows, self.c
        far = dict(enumerate(places))
        places = [blocks.get(k, place) for k, place in far.items()]
        types = [o[1] for o in spec.operands]
        for k, block in blocks.items():
            if k < len(types):
                turn(c, True, types[k], far[k], self.length, left, block)
        self.scalars(places, spec.kept - 1)
        self.columns(places, "0", self.mask("0", left))
        for number, k in zip(spec.stores, [k for k in blocks if k >= len(types)], strict=True):
            turn(c, False, self.dtypes[number], far[k], self.length, left, blocks[k])

    def alone(
        self, number: int, values: dict[int, str], places: list[str], i: str, mask: str | None
    ) -> None:
        """The items of a pass that are one per row, or per column."""
        for k, (word, ins, out, refs, at, alone) in enumerate(self.rows.items):
            if alone and at == number:
                given = [self.of_row(values, r, places, i, mask) for r in refs]
                values[self.first_item + k] = emit(self.c, word, list(ins), out, given)

    def columns(self, places: list[str], i: str, mask: str | None) -> list[str]:
        """All passes over a vector of columns."""
        spec = self.rows
        values: dict[int, str] = {}
        for number in range(self.last + 1):
            self.alone(number, values, places, i, mask)
            self.one_pass(number, places, values, i, mask)
        first = len(places) - len(spec.results)
        for k, number in enumerate(spec.results):
            self.store(self.dtypes[number], values[number], places[first + k], i, mask)
        return []

    def row(self, number: int, places: list[str], stack: str) -> None:
        """A pass over one row; what is one per row waits on the stack for who reads it."""
        spec, c = self.rows, self.c
        waiting = {
            k: c.new(f"getelementptr i8, ptr {stack}, i64 {SCALAR_ROOM * n}")
            for n, k in enumerate(self.held)
        }
        values = {
            k: self.splat_at(self.dtypes[k], waiting[k])
            for k, (made, read) in self.held.items() if made < number and number in read
        }  # fmt: skip
        known = set(values)
        self.alone(number, values, places, "0", None)
        self.one_pass(number, places, values, "0", None)
        results = dict(zip(spec.results, places[len(places) - len(spec.results) :], strict=True))
        for k in sorted(values.keys() - known):
            dtype, value = self.dtypes[k], values[k]
            for place in [there[k] for there in (waiting, results) if k in there]:
                if dtype in interleaved.PART:
                    interleaved.store_first(c, dtype, value, place)
                    continue
                scalar = c.new(f"extractelement {c.vec(SCALAR[dtype])} {value}, i64 0")
                store_scalar(c, dtype, scalar, place)

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
        self.light = is_light([spec.items[n - self.first_item] for n in mine])
        wides = [accumulator(m, self.dtypes[r]) for m, r in sums]
        for r in sorted(read & values.keys()):
            self.invert(r, values[r])
        monoids = [(m, w) for (m, _), w in zip(sums, wides, strict=True)]
        firsts = [(c.vec(SCALAR[w]), constant(c, w, identity(m, w))) for m, w in monoids]

        def inner(places: list[str], i: str, mask: str | None, totals: list[str]) -> list[str]:
            here = dict(values)
            for r in operands:
                # Blocks hold whole vectors.
                lanes = None if spec.operands[r][2] == "t" else mask
                here[r] = self.load(r, places[r], i, lanes)
            for r in back:
                lanes = None if r in spec.buffers else mask
                here[r] = self.contiguous(
                    self.dtypes[r], places[self.back[r]], self.index_of(r, i), lanes
                )
            for n in mine:
                word, ins, out, refs, _, _ = spec.items[n - self.first_item]
                here[n] = self.made(word, ins, out, refs, [here[r] for r in refs])
            offset = len(spec.operands)
            for k, n in enumerate((*spec.buffers, *spec.stores)):
                if n in mine:
                    in_buffer = k < len(spec.buffers)
                    index = self.index_of(n, i) if in_buffer else i
                    # Buffers have room for whole vectors: a load waits for a masked store.
                    lanes = None if in_buffer else mask
                    self.store(self.dtypes[n], here[n], places[offset + k], index, lanes)
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
                out = along_row(
                    self, "0", self.sizes[d], monoids, carried,
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
