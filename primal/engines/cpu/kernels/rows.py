"""Several passes over rows: softmax, layer norm and their like as one kernel.

A pass runs over the row. Between passes stand the results of its reductions, and what is computed
of them once per row. What a later pass needs of an earlier one is kept in a buffer on the stack,
or read back from where it was stored anyway, so rows leave the first-level cache only as results.
Rows that do not fit there take one pass at a time (see `row_runs`): by the same kernel.

A unit of work is some rows. Each pass goes over all of them, so that no row waits for what is
reduced of itself: a softmax of 32 numbers is a chain of 230 cycles, and takes 60.

The record is that of `kernels`, with these words: header, what `row_runs` says, sizes of loops,
bytes of a row's buffers; per operand as there; per buffer slot, offset and strides, of turned rows
without a slot; per store slot, offset, strides of all loops; per result of a row slot, offset,
strides of the kept loops.
"""

from __future__ import annotations

import functools

from primal.base.structures import structure
from primal.engines.cpu import interleaved
from primal.engines.cpu.code import LINE, SCALAR, Module
from primal.engines.cpu.functions import in_line
from primal.engines.cpu.kernels import Writer, is_short, lanes_of_totals
from primal.engines.cpu.kernels.row_runs import Runs
from primal.engines.cpu.kernels.strips import along_row, strips
from primal.engines.cpu.kernels.turned_rows import SIDE, turn
from primal.engines.cpu.lanes import across, constant, emit, narrowed, store_scalar
from primal.engines.cpu.monoids import accumulator, identity

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
    turned: they are short rows that are turned into columns and back; operands of step 't' and what
    is stored.
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
    def last(self) -> int:
        """The last pass."""
        return max([i[4] for i in self.items] + [r[2] for r in self.reductions], default=0)

    @property
    def held(self) -> list[int]:
        """What is one per row and waits for a later pass: results of a pass and what is made of
        them behind it are read by items of the row, or behind a later pass."""
        first = len(self.operands)
        made = {first + k: i[4] - 1 for k, i in enumerate(self.items) if i[5]}
        first += len(self.items)
        made.update({first + k: r[2] for k, r in enumerate(self.reductions)})
        read = [(k, i[4] - i[5]) for i in self.items for k in i[3]]
        return sorted({k for k, at in read if k in made and at > made[k]})

    def placed(self, number: int) -> set[int]:
        """Numbers of the places that a pass reads and writes, and what stands behind it: those of
        operands, buffers, what is stored, results, in this order."""
        items, reductions = len(self.operands), len(self.operands) + len(self.items)
        made: set[int] = set()
        read: set[int] = set()
        for k, (_, _, _, refs, at, alone) in enumerate(self.items):
            if at == number + alone:
                made.add(items + k)
                read.update(refs)
        for k, (_, ref, at) in enumerate(self.reductions):
            if at == number:
                made.add(reductions + k)
                read.add(ref)
        kept = (*self.buffers, *self.stores, *self.results)
        return {r for r in read if r < items} | {
            items + k for k, n in enumerate(kept) if n in made or n in read
        }

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
        elif not spec.turned:
            enough = lanes_of_totals(spec, spec.items, module.width)
            self.c.lanes = min(self.c.lanes, enough)
        self.c.inline = in_line([i[0] for i in spec.items])
        self.first_item = len(spec.operands)
        self.first_reduction = self.first_item + len(spec.items)
        # Item -> number of its place among the places: a buffer, or where it is stored.
        self.back: dict[int, int] = {}
        self.last = spec.last
        self.held = {k: n for n, k in enumerate(spec.held)}
        self.runs: Runs | None = None
        # Of the row or unit at hand: where what is one per row is kept, and what parts give.
        self.kept_at = self.given_at = ""

    def function(self, name: str) -> None:
        spec, c = self.rows, self.c
        c.start("entry")
        self.at = 4
        chunk, chunks = self.word(), self.word()
        runs = self.runs = None if spec.turned else Runs(self)
        sizes = self.sizes = [self.word() for _ in range(self.rank)]
        scalars = len(spec.held) * (LINE if spec.column else SCALAR_ROOM)
        scalars = -(-scalars // LINE) * LINE
        room = c.new(f"add i64 {self.word()}, {scalars}")
        every = room if spec.column else c.new(f"mul i64 {room}, {chunk}")
        stack = c.new(f"alloca i8, i64 {every}, align {LINE}")
        buffers = c.new(f"getelementptr i8, ptr {stack}, i64 {scalars}")
        bases = self.operands()
        for number in spec.buffers:
            self.back[number] = len(bases)
            bases.append(self.buffer(buffers))
            self.strides.append([self.word() for _ in range(self.rank)])
        for number in spec.stores:
            self.back.setdefault(number, len(bases))
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(self.rank)])
        for _ in spec.results:
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(spec.kept)])
        if runs is not None:
            runs.places(stack)
        literals = dict(self.splats), dict(self.inverses)
        blocks = self.blocks()
        last = spec.kept - 1

        def limits(number: str) -> tuple[str, str]:
            first = c.new(f"mul i64 {number}, {chunk}")
            stop = c.new(f"add i64 {first}, {chunk}")
            return first, c.call("llvm.smin.i64", "i64", ("i64", stop), ("i64", sizes[last]))

        def unit(_: str, *at: str) -> None:
            if runs is None:
                first, stop = limits(at[-1])
                self.kept_at = stack

                def some(i: str, _: list[str]) -> list[str]:
                    self.splats, self.inverses = dict(literals[0]), dict(literals[1])
                    places = self.moved(bases, list(enumerate([*at[:-1], i])))
                    self.turned(places, blocks, c.new(f"sub i64 {stop}, {i}"))
                    return []

                c.loop(first, stop, str(c.lanes), [], some)
                return
            outer = list(enumerate(at[:-2]))
            first, stop = limits(at[-2])
            runs.restrict(at[-1])
            if spec.column:
                self.splats, self.inverses = dict(literals[0]), dict(literals[1])
                places = self.moved(bases, outer)
                self.kept_at, self.given_at = runs.moved(outer)
                self.scalars(places)

                def some_rows() -> None:
                    strips(
                        self, first, stop, [], lambda i, m, _: self.columns(places, i, m)
                    )

                runs.blocks(some_rows)
                return

            kept_at, self.given_at = runs.moved([*outer, (last, first)])

            def turn(number: int, i: str, _: list[str]) -> list[str]:
                self.splats, self.inverses = dict(literals[0]), dict(literals[1])
                placed = spec.placed(number)
                places = self.moved(bases, [*outer, (last, i)], placed)
                mine = c.new(f"mul i64 {c.new(f'sub i64 {i}, {first}')}, {room}")
                here = range(len(spec.operands), len(spec.operands) + len(spec.buffers))
                for k in placed.intersection(here):
                    places[k] = c.new(f"getelementptr i8, ptr {places[k]}, i64 {mine}")
                # Apart, units are rows.
                self.kept_at = c.new(f"getelementptr i8, ptr {kept_at}, i64 {mine}")
                self.row(number, places)
                return []

            for number in range(self.last + 1):
                none = c.new(f"select i1 {runs.has(number)}, i64 {stop}, i64 {first}")
                c.loop(first, none, "1", [], functools.partial(turn, number))

        outside = sizes[:last]
        c.function(name, unit, sizes=[*outside, chunks] if runs is None
                   else [*outside, chunks, runs.parts])  # fmt: skip

    def buffer(self, stack: str) -> str:
        """Where a buffer begins: on the stack, or in memory."""
        if self.runs is None:
            return self.c.new(f"getelementptr i8, ptr {stack}, i64 {self.word()}")
        return self.runs.chosen(stack, self.runs.memory)

    def bounds(self, d: int) -> tuple[str, str]:
        return ("0", self.sizes[d]) if self.runs is None else self.runs.bounds(d)

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
        self.paces: dict[int, str] = {}
        blocks = {}
        for k in found:
            # Of complex numbers the columns of both parts lie side by side.
            far = apart
            if self.dtype_at(k) in interleaved.PART:
                far = [c.new(f"mul i64 {step}, 2") for step in apart]
            self.paces[k] = self.strides[k][spec.kept - 1]
            self.strides[k] = [*self.strides[k][: spec.kept], *far[1:]]
            room = c.new(f"add i64 {far[0]}, {SIDE * LINE}")
            blocks[k] = c.new(f"alloca i8, i64 {room}, align {LINE}")
        return blocks

    def dtype_at(self, k: int) -> str:
        """The dtype of an operand, or of the store that has a place behind them."""
        spec = self.rows
        return self.dtypes[(*range(len(spec.operands)), *spec.buffers, *spec.stores)[k]]

    def turn(self, inwards: bool, k: int, given: str, left: str, block: str) -> None:
        """Turn the rows of an operand into columns, or columns into what is stored."""
        dtype, length = self.dtype_at(k), self.length
        if dtype in interleaved.PART:
            dtype, length = interleaved.PART[dtype], self.c.new(f"mul i64 {length}, 2")
        pace = self.paces[k] if inwards else ""
        turn(self.c, inwards, dtype, given, length, left, block, pace)

    def turned(self, places: list[str], blocks: dict[int, str], left: str) -> None:
        """The rows that begin at the places, one per lane, where so many are left."""
        far = dict(enumerate(places))
        places = [blocks.get(k, place) for k, place in far.items()]
        for k, block in blocks.items():
            if k < self.first_item:
                self.turn(True, k, far[k], left, block)
        self.scalars(places)
        self.columns(places, "0", self.mask("0", left))
        for k, block in blocks.items():
            if k >= self.first_item:
                self.turn(False, k, far[k], left, block)

    def from_block(self, k: int, place: str) -> str:
        """A column of an operand, which is a whole vector."""
        dtype, c = self.dtypes[k], self.c
        part = interleaved.PART.get(dtype)
        if part is None:
            return self.contiguous(dtype, place, "0", None)
        beside = c.new(f"getelementptr i8, ptr {place}, i64 {LINE}")
        both = [self.contiguous(part, p, "0", None) for p in (place, beside)]
        return emit(c, "complex", [part, part], dtype, both)

    def to_block(self, dtype: str, value: str, place: str) -> None:
        """Keep a column of what is stored."""
        c, part = self.c, interleaved.PART.get(dtype)
        if part is None:
            self.store(dtype, value, place, "0", None)
            return
        for word in ("real", "imag"):
            self.store(part, emit(c, word, [dtype], part, [value]), place, "0", None)
            place = c.new(f"getelementptr i8, ptr {place}, i64 {LINE}")

    def between(
        self, number: int, values: dict[int, str], places: list[str], i: str, mask: str | None
    ) -> None:
        """Behind a pass, whose results `values` has: the items that are one per row.

        They wait in memory for who reads them.
        """
        spec, c = self.rows, self.c
        for k, (word, ins, out, refs, at, alone) in enumerate(spec.items):
            if alone and at == number + 1:
                for r in refs:
                    if r in self.held and r not in values:
                        values[r] = self.waiting_value(r, i)
                given = [self.of_row(values, r, places, i, mask) for r in refs]
                values[self.first_item + k] = emit(c, word, list(ins), out, given)
        end = number + 1, True
        mine = [self.first_item + k for k, x in enumerate(spec.items) if x[4:] == end]
        mine += [self.first_reduction + k for k, x in enumerate(spec.reductions) if x[2] == number]
        results = dict(zip(spec.results, places[len(places) - len(spec.results) :], strict=True))
        for k in mine:
            if k in self.held:
                self.put_one(k, values[k], self.place_of(k), self.index_held(i), None)
            if k in results:
                self.put_one(k, values[k], results[k], i, mask)

    def put_one(self, k: int, value: str, place: str, i: str, mask: str | None) -> None:
        """What is one per row; or the lanes of columns from `i` on."""
        c, dtype = self.c, self.dtypes[k]
        if self.rows.column:
            self.store(dtype, value, place, i, mask)
        elif dtype in interleaved.PART:
            interleaved.store_first(c, dtype, value, place)
        else:
            scalar = c.new(f"extractelement {c.vec(SCALAR[dtype])} {value}, i64 0")
            store_scalar(c, dtype, scalar, place)

    def place_of(self, k: int) -> str:
        """Where what is one per row waits."""
        n, c = self.held[k], self.c
        if self.runs is None:
            return c.new(f"getelementptr i8, ptr {self.kept_at}, i64 {n * LINE}")
        return self.runs.of_held(self.kept_at, n)

    def index_held(self, i: str) -> str:
        """Where the columns from `i` on wait."""
        if not self.rows.column or self.runs is None:
            return "0"
        return self.runs.index(i)

    def waiting_value(self, k: int, i: str) -> str:
        """What is one per row, in all lanes; or of the columns from `i` on."""
        dtype, place = self.dtypes[k], self.place_of(k)
        if self.rows.column:
            return self.contiguous(dtype, place, self.index_held(i), None)
        return self.splat_at(dtype, place)

    def columns(self, places: list[str], i: str, mask: str | None) -> list[str]:
        """The passes of this run over a vector of columns."""

        def only(number: int) -> list[str]:
            self.row(number, places, i, mask)
            return []

        for number in range(self.last + 1):
            if self.runs is None:
                self.row(number, places, i, mask)
                continue
            known = dict(self.splats), dict(self.inverses)
            self.c.guarded(self.runs.has(number), [], functools.partial(only, number))
            self.splats, self.inverses = known
        return []

    def row(self, number: int, places: list[str], i: str = "0", mask: str | None = None) -> None:
        """A pass over one row, or over a vector of columns, and what stands behind it."""
        spec, runs = self.rows, self.runs
        c = self.c
        read = {r for x in spec.items if not x[5] and x[4] == number for r in x[3]}
        values = {k: self.waiting_value(k, i) for k in self.held if k in read}
        kinds = self.kinds(number)
        if runs is None:
            totals = self.one_pass(number, places, values, i, mask)
        elif kinds:
            totals = c.either(
                runs.collects, [self.type_of(w) for _, w in kinds],
                lambda: runs.combined(kinds, self.given_at, i),
                lambda: self.one_pass(number, places, values, i, mask),
            )  # fmt: skip
        else:
            self.one_pass(number, places, values, i, mask)
        if not kinds:
            return

        def settled() -> None:
            now = dict(values)
            self.settle(number, totals, now)
            self.between(number, now, places, i, mask)

        if runs is None:
            settled()
        else:
            c.chosen(
                runs.partial, lambda: runs.put(kinds, totals, self.given_at, i), settled
            )

    def kinds(self, number: int) -> list[tuple[str, str]]:
        """Monoid and accumulator of each reduction of a pass."""
        found = [(m, r) for m, r, at in self.rows.reductions if at == number]
        return [(m, accumulator(m, self.dtypes[r])) for m, r in found]

    def type_of(self, wide: str) -> str:
        """The type of a total: a number, or one for each column."""
        return self.c.vec(SCALAR[wide]) if self.rows.column else SCALAR[wide]

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
    ) -> list[str]:
        """All items and reductions of one pass over a row, or over the columns from `at` on.

        The totals: numbers, or vectors of columns.
        """
        spec, c = self.rows, self.c
        mine = [
            self.first_item + k for k, i in enumerate(spec.items) if not i[5] and i[4] == number
        ]
        sums = [(m, r) for m, r, at in spec.reductions if at == number]
        if not mine and not sums:
            return []
        read = {r for n in mine for r in spec.items[n - self.first_item][3]} | {r for _, r in sums}
        operands = sorted(r for r in read if r < self.first_item)
        back = sorted(
            r for r in read if self.first_item <= r < self.first_reduction
            and r not in mine and not spec.items[r - self.first_item][5]
        )  # fmt: skip
        self.light = is_short([spec.items[n - self.first_item] for n in mine])
        wides = [accumulator(m, self.dtypes[r]) for m, r in sums]
        for r in sorted(read & values.keys()):
            self.invert(r, values[r])
        monoids = [(m, w) for (m, _), w in zip(sums, wides, strict=True)]
        firsts = [(c.vec(SCALAR[w]), constant(c, w, identity(m, w))) for m, w in monoids]
        placed = spec.placed(number)

        def inner(places: list[str], i: str, mask: str | None, totals: list[str]) -> list[str]:
            here = dict(values)
            for r in operands:
                in_block = spec.operands[r][2] == "t"
                here[r] = self.from_block(r, places[r]) if in_block else self.load(
                    r, places[r], i, mask
                )
            for r in back:
                here[r] = self.read_back(r, places[self.back[r]], i, mask)
            for n in mine:
                word, ins, out, refs, _, _ = spec.items[n - self.first_item]
                here[n] = self.made(word, ins, out, refs, [here[r] for r in refs])
            offset = len(spec.operands)
            for k, n in enumerate((*spec.buffers, *spec.stores)):
                if n in mine and k < len(spec.buffers):
                    self.put_by(n, here[n], places[offset + k], i, mask)
                elif n in mine and spec.turned:
                    self.to_block(self.dtypes[n], here[n], places[offset + k])
                elif n in mine:
                    self.store(self.dtypes[n], here[n], places[offset + k], i, mask)
            reduced = [(m, self.dtypes[r], here[r]) for m, r in sums]
            return self.joined(reduced, totals, None if spec.column else mask)

        def nest(d: int, places: list[str], totals: list[str]) -> list[str]:
            carried = [(t, v) for (t, _), v in zip(firsts, totals, strict=True)]
            if d < self.rank - 1 + spec.column:
                return c.loop(
                    *self.bounds(d), "1", carried,
                    lambda i, now: nest(d + 1, self.moved(places, [(d, i)], placed), now),
                )  # fmt: skip
            known = dict(self.splats)
            self.scalars(places, placed)
            if spec.column:
                out = inner(places, at, lanes, totals)
            else:
                out = along_row(
                    self, *self.bounds(d), monoids, carried,
                    lambda i, mask, now: inner(places, i, mask, now),
                )  # fmt: skip
            self.splats = known
            return out

        begun = [v for _, v in firsts]
        if spec.column and self.runs is not None and firsts:
            begun = self.runs.begun(monoids, firsts, self.given_at, at)
        totals = nest(spec.kept, places, begun)
        if spec.column:
            return totals
        return [across(c, m, w, total) for (m, w), total in zip(monoids, totals, strict=True)]

    def settle(self, number: int, totals: list[str], values: dict[int, str]) -> None:
        """What a pass reduced, in all lanes; or of each column in its lane."""
        c, now = self.c, iter(zip(self.kinds(number), totals, strict=True))
        for k, (_, r, when) in enumerate(self.rows.reductions):
            if when != number:
                continue
            dtype, ((_, wide), total) = self.dtypes[r], next(now)
            if self.rows.column:
                if wide != dtype:
                    total = emit(c, "convert", [wide], dtype, [total])
                values[self.first_reduction + k] = total
                continue
            if wide != dtype:
                total = narrowed(c, wide, dtype, total)
            values[self.first_reduction + k] = c.splat(SCALAR[dtype], total)

    def put_by(self, n: int, value: str, place: str, i: str, mask: str | None) -> None:
        """A vector of an item for a later pass.

        On the stack there is room for whole vectors: a load waits for a masked store.
        """
        dtype, index, c = self.dtypes[n], self.index_of(i), self.c
        if mask is None or self.runs is None:
            self.store(dtype, value, place, index, None)
        elif self.rows.column:
            c.chosen(
                self.runs.memory,
                lambda: self.store(dtype, value, place, index, mask),
                lambda: self.store(dtype, value, place, index, None),
            )
        else:  # with which softmax of rows takes 4 % less
            self.store(dtype, value, place, index, self.lanes_kept(mask))

    def read_back(self, n: int, place: str, i: str, mask: str | None) -> str:
        """A vector of an item of an earlier pass."""
        dtype, c = self.dtypes[n], self.c
        if n not in self.rows.buffers:
            return self.contiguous(dtype, place, i, mask)
        index = self.index_of(i)
        if mask is None or self.runs is None:
            return self.contiguous(dtype, place, index, None)
        if not self.rows.column:
            return self.contiguous(dtype, place, index, self.lanes_kept(mask))
        (out,) = c.either(
            self.runs.memory, [c.vec(SCALAR[dtype])],
            lambda: [self.contiguous(dtype, place, index, mask)],
            lambda: [self.contiguous(dtype, place, index, None)],
        )  # fmt: skip
        return out

    def lanes_kept(self, mask: str | None) -> str | None:
        """The lanes of a vector that are read from a buffer."""
        c, runs = self.c, self.runs
        if mask is None or runs is None:
            return None
        t = c.vec("i1")
        return c.new(f"select i1 {runs.memory}, {t} {mask}, {t} {c.const('i1', 'true')}")

    def index_of(self, i: str) -> str:
        """Where vector `i` of an item lies in the row of its buffer."""
        if not self.rows.column:
            return i
        return "0" if self.runs is None else self.runs.index(i)
