"""Loop nests: from the structure of a kernel to LLVM IR.

A kernel runs over an iteration space whose sizes, strides and addresses it reads from a record of
64-bit words when it runs, so that its code depends on the structure alone:

    void kernel(ptr slots, ptr record, i64 begin, i64 end, ptr status)

`slots` are base addresses; `begin` and `end` select units of work, which any threads may take in
any order with the same results; `status` is a word that makes the kernel return at the next unit
when it is not zero.

Words of a record: 0 code address, 1 its length, 2 units, 3 what one unit costs in nanoseconds (an
estimate), 4 elements of the inner dimension per unit, 5 units per row; what `parts` says; of
units of several rows elements of a row in each, units side by side; sizes of the loops; then per
operand, store and reduction what `Spec` says.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import interleaved
from primal.engines.cpu.code import LINE, MEMORY, SCALAR, SUFFIX, Code, Module, itemsize
from primal.engines.cpu.functions import FLOAT, in_line
from primal.engines.cpu.functions.floats import FORM, Floats, inverse_of, over_known
from primal.engines.cpu.kernels import narrow_gathers, takes
from primal.engines.cpu.kernels.arms import Item, evaluated, waiting
from primal.engines.cpu.kernels.columns import reduce_columns
from primal.engines.cpu.kernels.flat import Flat
from primal.engines.cpu.kernels.parts import Parts
from primal.engines.cpu.kernels.strips import strips
from primal.engines.cpu.kernels.totals import reduce_row
from primal.engines.cpu.kernels.whole import Whole, is_whole, overlapping
from primal.engines.cpu.lanes import (
    COMBINE,
    compare,
    constant,
    emit,
    extremum_of_numbers,
    is_extremum,
)
from primal.engines.cpu.monoids import accumulator, identity

HEADER = 6
"""Words of a record before the sizes; of any record before what its kind adds."""


@structure
class Spec:
    """The structure of a kernel; equal specs share their code.

    Loops: `kept` dimensions outside, `reduced` ones inside. The vectors run along the last kept
    dimension when `column` or when nothing is reduced, otherwise along the last reduced one.

    operands: (kind, dtype, step). Kind 'm' is memory: slot, offset, a stride per loop, in bytes.
    'i' is a count: its first value and a stride per loop. 'l' is a scalar, whose bits are the
    word. Step is how it moves along the vector: 'u' to the next element, 'r' to the one before,
    'z' not at all, 'g' by the stride.
    body: (word, dtypes of operands, dtype, operands), numbered on from the operands. `pad` reads
    its first operand where of each three that follow the first is between the others, and is zero
    elsewhere; `take` reads it at the second, which is at most the third; `join` reads the first or
    the second, from where the third is the fourth.
    stores: numbers of what is stored, over all loops: slot, offset, strides.
    reductions: (monoid, number, dtype of the result), one result per kept index: slot, offset,
    kept strides, and if split what `parts` says.
    strided: what is stored does not lie side by side along the vectors.
    short: rows are as long as a vector of so many elements, whose last vector overlaps the one
    before; 0 if they may be shorter, or if more work is done than that would gain.
    nested: so many loops before the last are part of a unit; of the first of them a unit is some
    turns, one where rows are long, of which a unit is a part then.
    blocked: totals of columns lie on the stack, and rows are read in order.
    split: what is reduced may be reduced in parts.
    flat: the nested loops are short rows, over which `flat` runs as one; steps of operands are as
    it says.
    joined: reductions are real and imaginary parts in turn, of numbers at the former's places.
    """

    kept: int
    reduced: int
    column: bool
    operands: tuple[tuple[str, str, str], ...]
    body: tuple[Item, ...]
    stores: tuple[int, ...]
    reductions: tuple[tuple[str, int, str], ...]
    strided: bool = False
    short: int = 0
    nested: int = 0
    blocked: bool = False
    split: bool = False
    flat: bool = False
    joined: bool = False

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of operands and then of the body."""
        return [o[1] for o in self.operands] + [b[2] for b in self.body]

    def write(self, module: Module, name: str) -> None:
        """Add the kernel to a module."""
        Writer(module, self).function(name)


def lanes_of(spec: Any, width: int) -> int:
    """Elements per vector: as many of the widest dtype as `width` bytes hold.

    Literals wait in registers: they widen nothing.
    """
    dtypes = [d for kind, d, _ in spec.operands if kind != "l"] + [b[2] for b in spec.body]
    widest = max([itemsize(interleaved.PART.get(d, d)) for d in dtypes], default=1)
    lanes = max(width // widest, 2)
    if not isinstance(spec, Spec):
        return lanes
    if spec.short > 1:
        return min(lanes, spec.short)
    return min(lanes, lanes_of_totals(spec, spec.body, width))


def lanes_of_totals(spec: Any, body: Sequence[Any], width: int) -> int:
    """Lanes that are enough: of a light body those of its totals, which are wider than it.

    Adding them up takes longer than all else then, and no halves need be taken out of vectors (sums
    of squares of 10,000 rows of 100 float32 154 to 123 µs, of 30,000 of 20 184 to 138).
    """
    if not is_short(body):
        return width
    wides = [accumulator(m, spec.dtypes[ref]) for m, ref, _ in spec.reductions]
    return width // max([itemsize(d) for d in wides], default=1)


def is_short(body: Sequence[Any]) -> bool:
    """Whether the body is so short that masks, and a second copy without them, show."""
    return len(body) <= 8 and not any(b[0] in FLOAT for b in body)


class Writer:
    """Writes the function of a kernel."""

    def __init__(self, module: Module, spec: Any) -> None:
        self.module = module
        self.spec = spec
        self.c = Code(module, lanes_of(spec, module.width))
        self.c.inline = in_line([b[0] for b in spec.body])
        self.light = is_short(spec.body)
        self.at = HEADER
        self.dtypes = spec.dtypes
        self.rank = spec.kept + spec.reduced
        # Operand, then store, then reduction -> its strides by loop.
        self.strides: list[list[str]] = []
        self.splats: dict[int, str] = {}
        # Operands at the vector at hand, where they are read apart from what is made of them.
        self.loaded: dict[int, str] = {}
        # Of those in all lanes alike that something is divided by.
        self.inverses: dict[int, list[str]] = {}
        self.divisors = {b[3][1] for b in spec.body if b[0] == "div" and b[2] in FORM}
        # Operands that words read by themselves.
        self.inner = {r for b in spec.body for r in b[3][: takes.INNER.get(b[0], 0)]}
        self.waiting = waiting(spec) if isinstance(spec, Spec) else {}
        self.stack = self.chunk = ""
        self.parts: Parts | None = None
        self.whole: Whole | None = None
        self.flat: Flat | None = None
        # Elements of a row in a unit, units side by side; where a unit begins and stops then.
        self.across = self.range = "", ""

    # Reading the record.

    def word(self) -> str:
        """The next word of the record."""
        p = self.c.new(f"getelementptr i64, ptr %record, i64 {self.at}")
        self.at += 1
        return self.c.new(f"load i64, ptr {p}")

    def address(self) -> str:
        """A slot and an offset as a pointer."""
        slot, offset = self.word(), self.word()
        p = self.c.new(f"getelementptr ptr, ptr %slots, i64 {slot}")
        base = self.c.new(f"load ptr, ptr {p}")
        return self.c.new(f"getelementptr i8, ptr {base}, i64 {offset}")

    def operands(self) -> list[str]:
        """Where operands begin; their strides by loop are kept, and literals as vectors."""
        bases: list[str] = []
        for i, (kind, dtype, _) in enumerate(self.spec.operands):
            if kind == "l":
                bases.append("")
                self.strides.append([])
                self.splats[i] = self.literal(dtype, self.word())
                self.invert(i, self.splats[i])
            else:
                bases.append(self.address() if kind == "m" else self.word())
                self.strides.append([self.word() for _ in range(self.rank)])
        return bases

    def function(self, name: str) -> None:
        spec, c = self.spec, self.c
        c.start("entry")
        self.at = 4
        chunk, chunks = self.word(), self.word()
        divided = ""
        if spec.split:
            self.parts = Parts(self, self.word(), self.word(), self.word())
            divided = self.word() if spec.reduced > 1 else ""
        if spec.nested and not spec.flat:
            self.across = self.word(), self.word()
        if spec.blocked:
            room = c.new(f"mul i64 {chunk}, {8 * len(spec.reductions)}")
            self.stack = c.new(f"alloca i8, i64 {room}, align {LINE}")
            self.chunk = chunk
        if is_whole(spec):
            self.whole = Whole(self)
        sizes = [self.word() for _ in range(self.rank)]
        bases = self.operands()
        for _ in spec.stores:
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(self.rank)])
        for _ in spec.reductions:
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(spec.kept)])
        self.sizes = sizes
        if spec.flat:
            self.flat = Flat(self, spec.kept - 1 - spec.nested)
        if self.parts:
            for _ in spec.reductions:
                self.parts.addresses(spec.kept)
            self.parts.divide(divided)

        outer = spec.kept if spec.reduced and not spec.column else spec.kept - 1 - spec.nested
        whole_rows = outer == spec.kept
        # Rows of one chunk lie between each other: they are taken while it is in the cache.
        between = spec.strided and not spec.nested and not whole_rows
        chunked = [] if whole_rows else [chunks]
        loops = [*chunked, *sizes[:outer]] if between else [*sizes[:outer], *chunked]
        wide, pieces = self.across
        if wide:
            loops.append(pieces)

        def unit(_: str, *at: str) -> None:
            starts = list(bases)
            rows = at[1 : outer + 1] if between else at[:outer]
            if self.parts:
                self.parts.restrict(at[-1], rows)
            places = self.moved(starts, list(enumerate(rows)))
            if whole_rows:
                reduce_row(self, places)
                return
            n = sizes[outer]
            first = c.new(f"mul i64 {at[0] if between else at[outer]}, {chunk}")
            last = c.new(f"add i64 {first}, {chunk}")
            last = c.call("llvm.smin.i64", "i64", ("i64", last), ("i64", n))
            if wide:
                begin = c.new(f"mul i64 {at[-1]}, {wide}")
                end = c.new(f"add i64 {begin}, {wide}")
                end = c.call("llvm.smin.i64", "i64", ("i64", end), ("i64", sizes[spec.kept - 1]))
                self.range = begin, end
            if spec.column:
                reduce_columns(self, places, first, last)
            elif self.flat is not None:
                self.flat.write(places, first, last)
            else:
                self.nest(outer, places, first, last)

        c.function(name, unit, sizes=[*loops, self.parts.units] if self.parts else loops)

    def nest(self, d: int, places: list[str], first: str, last: str) -> list[str]:
        """The body over [first, last) of loop d, and over all of those inside."""
        if d == self.spec.kept - 1:
            self.scalars(places)
            self.elementwise(places, first, last)
            return []
        inner = self.range if d == self.spec.kept - 2 else ("0", self.sizes[d + 1])
        return self.c.loop(
            first, last, "1", [],
            lambda i, _: self.nest(d + 1, self.moved(places, [(d, i)]), *inner),
        )  # fmt: skip

    def bounds(self, d: int) -> tuple[str, str]:
        """Where a reduced loop begins and stops."""
        return self.parts.bounds(d, self.sizes[d]) if self.parts else ("0", self.sizes[d])

    # Moving through the iteration space.

    def moved(
        self, places: list[str], by: list[tuple[int, str]], only: Container[int] | None = None
    ) -> list[str]:
        """The addresses, and first values of counts, after going to indices of loops.

        `only`: of the places with these numbers, as LLVM takes its time to find what is not read.
        """
        c, out = self.c, []
        for i, place in enumerate(places):
            strides = self.strides[i] if only is None or i in only else ()
            for d, index in by if strides else ():
                if d >= len(strides):  # a reduction's result does not move along reduced loops
                    continue
                step = c.new(f"mul i64 {index}, {strides[d]}")
                if self.is_count(i):
                    place = c.new(f"add i64 {place}, {step}")
                else:
                    place = c.new(f"getelementptr i8, ptr {place}, i64 {step}")
            out.append(place)
        return out

    def is_count(self, i: int) -> bool:
        return i < len(self.spec.operands) and self.spec.operands[i][0] == "i"

    def mask(self, i: str, stop: str) -> str:
        """The lanes before `stop` of the vector that begins at i."""
        c, t = self.c, "i32" if self.c.lanes <= 16 else "i8"
        left = c.new(f"sub i64 {stop}, {i}")
        left = c.call("llvm.smin.i64", "i64", ("i64", left), ("i64", str(c.lanes)))
        small = c.splat(t, c.new(f"trunc i64 {left} to {t}"))
        return c.new(f"icmp ugt {c.vec(t)} {small}, {c.iota(t)}")

    # Reading and writing elements.

    def literal(self, dtype: str, word: str) -> str:
        c, scalar = self.c, SCALAR[dtype]
        bits = 1 if dtype == "b1" else 8 * itemsize(dtype)
        value = word if bits == 64 else c.new(f"trunc i64 {word} to i{bits}")
        if dtype[0] == "f":
            value = c.new(f"bitcast i{bits} {value} to {scalar}")
        return c.splat(scalar, value)

    def scalars(self, places: list[str], only: Container[int] | None = None) -> None:
        """Read what does not move along the vectors."""
        for i, (kind, _, step) in enumerate(self.spec.operands):
            if kind == "l" or step != "z" or i in self.inner:
                continue
            if only is not None and i not in only:
                continue
            self.splats[i] = self.splat_of(i, places[i])
            self.invert(i, self.splats[i])

    def made(
        self, word: str, ins: tuple[str, ...], out: str, refs: tuple[int, ...], xs: list[str]
    ) -> str:
        """What a word of the body makes of vectors."""
        if word == "div" and self.inverses.get(refs[1]):
            return over_known(Floats(self.c, out), xs[0], xs[1], self.inverses[refs[1]])
        return emit(self.c, word, list(ins), out, xs)

    def invert(self, number: int, value: str) -> None:
        """Take the inverse of a value that is the same in all lanes, if it divides."""
        if number in self.divisors:
            self.inverses[number] = inverse_of(Floats(self.c, self.dtypes[number]), value)

    def splat_of(self, i: int, place: str) -> str:
        """Operand i at its place, in all lanes."""
        c = self.c
        kind, dtype, _ = self.spec.operands[i]
        if kind == "i":
            return c.splat(SCALAR[dtype], self.counted(dtype, place, "i64", SCALAR[dtype]))
        return self.splat_at(dtype, place)

    def splat_at(self, dtype: str, place: str) -> str:
        """The element at a place, in all lanes."""
        c = self.c
        if dtype in interleaved.PART:
            return interleaved.splat(c, dtype, place)
        value = c.new(f"load {MEMORY[dtype]}, ptr {place}, align {itemsize(dtype)}")
        if dtype == "b1":
            value = c.new(f"icmp ne i8 {value}, 0")
        return c.splat(SCALAR[dtype], value)

    def counted(self, dtype: str, value: str, old: str, new: str) -> str:
        """64-bit counts in the dtype of an iota."""
        if dtype in ("i8", "u8"):
            return value
        return self.c.new(f"{'sitofp' if dtype[0] == 'f' else 'trunc'} {old} {value} to {new}")

    def load(self, i: int, place: str, index: str, mask: str | None) -> str:
        """Operand i at the vector that begins at `index`, in the lanes of the mask or in all."""
        c = self.c
        if i in self.splats:
            return self.splats[i]
        if i in self.loaded:
            return self.loaded[i]
        kind, dtype, step = self.spec.operands[i]
        if self.flat is not None and step in self.flat.STEPS:
            return self.flat.load(i, place, mask)
        if kind == "i" and step == "u" and dtype[0] in "iu":
            scalar = SCALAR[dtype]
            first = self.counted(dtype, c.new(f"add i64 {place}, {index}"), "i64", scalar)
            return c.new(f"add {c.vec(scalar)} {c.splat(scalar, first)}, {c.iota(scalar)}")
        if step == "r":
            return self.reversed(dtype, place, index, mask)
        if step != "g" and kind != "i":
            return self.contiguous(dtype, place, index, mask)
        return self.strided(i, place, index, mask)

    def strided(self, i: int, place: str, index: str, mask: str | None) -> str:
        """Operand i from `index` on, by its stride along the vector."""
        c = self.c
        kind, dtype, _ = self.spec.operands[i]
        if kind == "i":
            wide = c.vec("i64")
            values = c.new(f"add {wide} {c.splat('i64', place)}, {self.along(i, index)}")
            return self.counted(dtype, values, wide, c.vec(SCALAR[dtype]))
        if dtype in interleaved.PART:
            return interleaved.gather(self, dtype, place, self.along(i, index), mask)
        if itemsize(dtype) > narrow_gathers.MOST:
            return self.gather(dtype, place, self.along(i, index), mask)
        return narrow_gathers.gather(c, dtype, *self.apart(i, place, index), mask)

    def gather(
        self, dtype: str, place: str, steps: str, mask: str | None, counts: str = "i64"
    ) -> str:
        """The elements at so many bytes from the place."""
        c, kept = self.c, MEMORY[dtype]
        if itemsize(dtype) <= narrow_gathers.MOST:
            return narrow_gathers.by_words(c, dtype, place, steps, mask, counts)
        t = c.vec(kept)
        ps = c.new(f"getelementptr i8, ptr {place}, {c.vec(counts)} {steps}")
        return c.call(
            f"llvm.masked.gather.v{c.lanes}{SUFFIX[kept]}.v{c.lanes}p0", t, (c.vec("ptr"), ps),
            ("i32", str(itemsize(dtype))), (c.vec("i1"), mask or c.const("i1", "true")),
            (t, "zeroinitializer"),
        )  # fmt: skip

    def stride(self, i: int) -> str:
        """How far apart elements of operand or store i are, from lane to lane."""
        return self.strides[i][self.rank - 1 if not self.spec.column else self.spec.kept - 1]

    def along(self, i: int, index: str) -> str:
        """How far the vector at `index` is from the place of operand or store i, lane by lane."""
        c, wide = self.c, self.c.vec("i64")
        here = c.new(f"add {wide} {c.splat('i64', index)}, {c.iota('i64')}")
        return c.new(f"mul {wide} {here}, {c.splat('i64', self.stride(i))}")

    def apart(self, i: int, place: str, index: str) -> tuple[str, str]:
        """Where the vector at `index` of operand or store i begins, and from lane to lane."""
        moved = self.c.new(f"mul i64 {index}, {self.stride(i)}")
        return self.c.new(f"getelementptr i8, ptr {place}, i64 {moved}"), self.stride(i)

    def reversed(self, dtype: str, place: str, index: str, mask: str | None) -> str:
        """The elements from `index` on, each before the last one."""
        c, back = self.c, ", ".join([f"i32 {n}" for n in reversed(range(self.c.lanes))])

        def turned(scalar: str, x: str) -> str:
            t = c.vec(scalar)
            return c.new(f"shufflevector {t} {x}, {t} poison, <{c.lanes} x i32> <{back}>")

        first = c.new(f"sub i64 {1 - c.lanes}, {index}")
        lanes = None if mask is None else turned("i1", mask)
        return turned(SCALAR[dtype], self.contiguous(dtype, place, first, lanes))

    def contiguous(self, dtype: str, place: str, index: str, mask: str | None) -> str:
        """The elements from `index` on, which lie side by side."""
        c = self.c
        if dtype in interleaved.PART:
            return interleaved.contiguous(c, dtype, place, index, mask)
        kept = MEMORY[dtype]
        t = c.vec(kept)
        p = place if index == "0" else c.new(f"getelementptr {kept}, ptr {place}, i64 {index}")
        if mask is None:
            out = c.new(f"load {t}, ptr {p}, align {itemsize(dtype)}")
        else:
            out = c.call(
                f"llvm.masked.load.v{c.lanes}{SUFFIX[kept]}.p0", t, ("ptr", p),
                ("i32", str(itemsize(dtype))), (c.vec("i1"), mask), (t, "zeroinitializer"),
            )  # fmt: skip
        return c.new(f"icmp ne {t} {out}, zeroinitializer") if dtype == "b1" else out

    def store(self, dtype: str, value: str, place: str, index: str, mask: str | None) -> None:
        """A vector at index, in the lanes of the mask."""
        c = self.c
        if dtype in interleaved.PART:
            interleaved.store(c, dtype, value, place, index, mask)
            return
        kept = MEMORY[dtype]
        t = c.vec(kept)
        if dtype == "b1":
            value = c.new(f"zext {c.vec('i1')} {value} to {t}")
        p = place if index == "0" else c.new(f"getelementptr {kept}, ptr {place}, i64 {index}")
        if mask is None:
            c.do(f"store {t} {value}, ptr {p}, align {itemsize(dtype)}")
            return
        name, align = f"llvm.masked.store.v{c.lanes}{SUFFIX[kept]}.p0", str(itemsize(dtype))
        c.call_void(name, (t, value), ("ptr", p), ("i32", align), (c.vec("i1"), mask))

    def scatter(self, dtype: str, value: str, place: str, steps: str, mask: str | None) -> None:
        """The lanes of the mask, each to its own distance from the place."""
        if dtype in interleaved.PART:
            interleaved.scatter(self, dtype, value, place, steps, mask)
            return
        c, kept = self.c, MEMORY[dtype]
        t = c.vec(kept)
        ps = c.new(f"getelementptr i8, ptr {place}, {c.vec('i64')} {steps}")
        c.call_void(
            f"llvm.masked.scatter.v{c.lanes}{SUFFIX[kept]}.v{c.lanes}p0",
            (t, value), (c.vec("ptr"), ps), ("i32", str(itemsize(dtype))),
            (c.vec("i1"), mask or c.const("i1", "true")),
        )  # fmt: skip

    def computed(self, places: list[str], i: str, mask: str | None) -> list[str]:
        """Loads, the body, stores; all values by number."""
        values = self.evaluated(places, i, mask)
        self.put_all(values, places, i, mask)
        return values

    def evaluated(self, places: list[str], i: str, mask: str | None) -> list[str]:
        """Loads and the body; all values by number."""
        spec = self.spec
        values = [
            "" if k in self.inner else self.load(k, places[k], i, mask)
            for k in range(len(spec.operands))
        ]

        def item(item: Item, xs: list[str]) -> str:
            word, ins, out, refs = item
            if word in takes.INNER:
                return takes.read(self, word, refs, places, i, mask, xs)
            return self.made(word, ins, out, refs, xs)

        return evaluated(self.c, spec.body, values, self.waiting, item)

    def put_all(self, values: list[str], places: list[str], i: str, mask: str | None) -> None:
        """The stores."""
        spec = self.spec
        for k, ref in enumerate(spec.stores):
            at = len(spec.operands) + k
            dtype, value = self.dtypes[ref], values[ref]
            if spec.strided and itemsize(dtype) <= narrow_gathers.MOST:
                narrow_gathers.scatter(self.c, dtype, value, *self.apart(at, places[at], i), mask)
            elif spec.strided:
                self.scatter(dtype, value, places[at], self.along(at, i), mask)
            else:
                self.store(dtype, value, places[at], i, mask)

    def elementwise(self, places: list[str], first: str, last: str) -> None:
        """The body over [first, last)."""
        if self.whole is not None:
            self.whole.write(places, first, last)
            return
        if self.spec.short > 1:
            overlapping(self, places, first, last)
            return

        def turn(i: str, mask: str | None, _: list[str]) -> list[str]:
            self.computed(places, i, mask)
            return []

        strips(self, first, last, [], turn)

    # Reductions.

    def first_values(self) -> list[tuple[str, str]]:
        """(type, identity) of each accumulator."""
        out = []
        for monoid, ref, _ in self.spec.reductions:
            dtype = accumulator(monoid, self.dtypes[ref])
            t = self.c.vec(SCALAR[dtype])
            out.append((t, constant(self.c, dtype, identity(monoid, dtype))))
        return out

    def combined(self, totals: list[str], values: list[str], mask: str | None) -> list[str]:
        """The accumulators with one more vector each; unmasked lanes add nothing."""
        found = [(m, self.dtypes[ref], values[ref]) for m, ref, _ in self.spec.reductions]
        return self.joined(found, totals, mask)

    def joined(
        self, reduced: Sequence[tuple[str, str, str]], totals: list[str], mask: str | None
    ) -> list[str]:
        """As `combined`, of (monoid, dtype, value) each.

        Behind the totals may stand in which lanes of floats' extrema there was a NaN (`along_row`).
        """
        c, out = self.c, []
        met, apart = iter(totals[len(reduced) :]), len(totals) > len(reduced)
        lanes = []
        for (monoid, dtype, value), total in zip(reduced, totals, strict=False):
            wide = accumulator(monoid, dtype)
            if wide != dtype:
                value = emit(c, "convert", [dtype], wide, [value])
            if mask is not None:
                t = c.vec(SCALAR[wide])
                none = constant(c, wide, identity(monoid, wide))
                value = c.new(f"select {c.vec('i1')} {mask}, {t} {value}, {t} {none}")
            if apart and is_extremum(monoid, wide):
                out.append(extremum_of_numbers(c, monoid, wide, total, value))
                missing = compare(c, "ne", wide, value, value)
                lanes.append(c.new(f"or {c.vec('i1')} {next(met)}, {missing}"))
            else:
                out.append(emit(c, COMBINE[monoid], [wide, wide], wide, [total, value]))
        return out + lanes

    def monoids(self) -> list[tuple[str, str]]:
        """(monoid, dtype) of each accumulator."""
        return [(m, accumulator(m, self.dtypes[ref])) for m, ref, _ in self.spec.reductions]
