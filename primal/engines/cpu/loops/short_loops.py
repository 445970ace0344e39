"""The code of a loop whose body is short: what `fused` found, as one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primal.engines.cpu.code import MEMORY, SCALAR, Module, itemsize
from primal.engines.cpu.functions import FLOAT, FLOAT2, INLINE
from primal.engines.cpu.lanes import emit, store_scalar
from primal.engines.cpu.loops.shuffles import known, shuffled
from primal.engines.cpu.script import (
    Int,
    Place,
    Script,
    lanes_before,
    read_vector,
    write_vector,
)

AT = 18
"""Words of the record before those of the fused loop; its lists come last."""
TURN = 2
"""Nanoseconds that a turn is estimated at, per item."""
SMALL, EVERY = 9 << 23, 8
"""The bits of 2^-118, below which careful code is for; in how many turns it looks for such once."""
BEFORE = ("outer", "known", "laid")
"""Items that come before the turns."""
Items = tuple[Any, ...]
Strips = tuple[Int, Int, str, int]


class Writer:
    """Values are vectors of one element: the words of kernels are written for vectors.

    Of all elements there are `together` vectors, with masks for the last ones.
    """

    def __init__(self, module: Module, spec: Any) -> None:
        self.module = module
        self.spec = spec
        self.c = Script(module)
        self.wide: frozenset[int] = frozenset()
        self.lanes = self.together = 1
        self.masks: list[str] = []
        if spec.strips:
            wide, size, *_ = spec.strips
            self.wide = frozenset(wide)
            self.lanes = max(module.width // size, 2)
        self.sizes: dict[int, int] = {}
        """Elements of values that are vectors of their own number of elements."""
        if spec.vectors:
            size, sizes = spec.vectors
            self.sizes = dict(sizes)
            self.wide = frozenset(self.sizes)
            self.lanes = max(module.width // size, 2)
        heavy = [i for i in _words_of(spec.items) if i[2] in FLOAT or i[2] in FLOAT2]
        self.c.inline = sum([self.vectors_of(i[1]) for i in heavy]) <= INLINE
        self.values: dict[int, str] = {}
        self.parts: dict[int, list[str]] = {}
        """The vectors of what is of all elements, by the number."""
        self.spreads: dict[tuple[int, str], str] = {}
        self.tag = ""
        """What tells values of one loop over strips from those of another."""

    def word(self, at: int) -> str:
        p = self.c.new(f"getelementptr i64, ptr %record, i64 {at}")
        return self.c.new(f"load i64, ptr {p}")

    def pointer(self, at: int) -> str:
        return self.c.new(f"inttoptr i64 {self.word(at)} to ptr")

    def place(self, at: int) -> str:
        """The address that words (slot, offset) say."""
        p = self.c.new(f"getelementptr ptr, ptr %slots, i64 {self.word(at)}")
        base = self.c.new(f"load ptr, ptr {p}")
        return self.c.new(f"getelementptr i8, ptr {base}, i64 {self.word(at + 1)}")

    def vectors_of(self, number: int) -> int:
        """How many vectors a value is."""
        if number in self.sizes:
            return -(-self.sizes[number] // self.lanes)
        return self.together if number in self.wide else 1

    def filled(self, number: int, part: int) -> int:
        """Lanes of a vector that are elements."""
        return min(self.sizes[number] - part * self.lanes, self.lanes)

    def strip(self, number: int, dtype: str, at: int) -> str:
        """The address that words say, of all elements where the strip begins."""
        place = self.place(at)
        if number not in self.wide or self.sizes:
            return place
        moved = self.c.new(f"mul i64 %e{self.tag}, {itemsize(dtype)}")
        return self.c.new(f"getelementptr i8, ptr {place}, i64 {moved}")

    def type(self, dtype: str, number: int) -> str:
        """The type of a value."""
        return self.c.vec(SCALAR[dtype], self.lanes if number in self.wide else 1)

    def beyond(self, place: str, e: int, dtype: str) -> str:
        """The address of a later element."""
        return self.c.new(f"getelementptr i8, ptr {place}, i64 {e * itemsize(dtype)}")

    def load(self, dtype: str, place: str) -> str:
        c, kept = self.c, MEMORY[dtype]
        value = c.new(f"load {kept}, ptr {place}, align {itemsize(dtype)}")
        if dtype == "b1":
            value = c.new(f"icmp ne i8 {value}, 0")
        return c.new(f"insertelement {c.vec(SCALAR[dtype])} poison, {SCALAR[dtype]} {value}, i64 0")

    def element(self, dtype: str, value: str) -> str:
        c = self.c
        return c.new(f"extractelement {c.vec(SCALAR[dtype])} {value}, i64 0")

    def store(self, dtype: str, value: str, place: str) -> None:
        store_scalar(self.c, dtype, self.element(dtype, value), place)

    def each(self, number: int, of: Callable[[int], str]) -> list[str]:
        """Code for every vector of what is of several elements."""
        self.c.lanes = self.lanes
        made = [of(part) for part in range(self.vectors_of(number))]
        self.c.lanes = 1
        return made

    def place_of(self, part: int, dtype: str, place: str) -> Place:
        return Place(self.c, place) + part * self.lanes * itemsize(dtype)

    def take_all(self, number: int, dtype: str, place: str) -> None:
        """A value read from memory."""
        if number in self.wide:
            self.parts[number] = self.each(
                number,
                lambda k: read_vector(
                    self.c, dtype, self.place_of(k, dtype, place), self.mask(number, k)
                ),
            )
        else:
            self.values[number] = self.load(dtype, place)

    def put_all(self, number: int, dtype: str, values: list[str], place: str) -> None:
        """A value written to memory."""
        if number not in self.wide:
            self.store(dtype, values[0], place)
            return
        for k, value in enumerate(values):
            self.c.lanes, mask = self.lanes, self.mask(number, k)
            if self.sizes and mask:
                # Few stores: one under a mask takes Zen 4 some twenty cycles.
                few, mask = self.filled(number, k), ""
                value = shuffled(self.c, dtype, [(value, e) for e in range(few)], self.lanes)
                self.c.lanes = few
            write_vector(self.c, dtype, value, self.place_of(k, dtype, place), mask)
        self.c.lanes = 1

    def mask(self, number: int, part: int) -> str:
        """The mask of the lanes that are elements, if not all are."""
        if not self.sizes:
            return self.masks[part]
        few = self.filled(number, part)
        if few == self.lanes:
            return ""
        return "<" + ", ".join([f"i1 {str(e < few).lower()}" for e in range(self.lanes)]) + ">"

    def all_of(self, number: int) -> list[str]:
        """The vectors of a value."""
        return self.parts[number] if number in self.wide else [self.values[number]]

    def function(self, name: str) -> None:
        spec, c = self.spec, self.c
        self.walk, self.poll, enter, self.advance, leave = [self.pointer(AT + i) for i in range(5)]
        self.period = self.word(AT + 5)
        self.lists = lists = "ptr %slots, ptr %counts, ptr %list"
        c.do("%counts = getelementptr i64, ptr %record, i64 13")
        c.do(f"%list = getelementptr i64, ptr %record, i64 {spec.words}")
        c.do(f"call void {enter}({lists})")
        outer = [i for i in spec.items if i[0] == "outer"]
        for _, number, dtype, at in [i for i in spec.items if i[0] == "literal"]:
            self.values[number] = self.literal(dtype, self.word(at))
        for _, number, dtype, at in outer:
            if number not in self.wide:
                self.values[number] = self.load(dtype, self.place(at))
        # Before a result is written: it may lie where the first value does.
        self.firsts = [
            [] if number in self.wide else [self.load(dtype, self.place(at))]
            for dtype, at, number, *_ in spec.carries
        ]
        self.trips = self.word(6)
        if spec.again is None:
            self.begin = c.new(f"icmp sgt i64 {self.trips}, 0")
        else:
            byte = c.new(f"load i8, ptr {self.place(7)}")
            self.begin = c.new(f"icmp ne i8 {byte}, 0")
        if spec.strips:
            *_, many, few, at = spec.strips
            start, size, turns = Int(c, "0"), Int(c, self.word(at)), "0"
            if few < many:
                # Of the last vectors few at a time, if they are few.
                whole = size // (self.lanes * many) * (self.lanes * many)
                more = (size - whole).test("sgt", self.lanes * few)
                split = Int(c, c.new(f"select i1 {more}, i64 {size.name}, i64 {whole.name}"))
                strips = start, split, turns, many
                turns = self.turns(strips)
                start, many = split, few
            strips = start, size, turns, many
            turns = self.turns(strips)
        else:
            turns = self.turns()
        # For `subnormals` a long loop weighs as much as it took.
        vectors = spec.strips[2] if spec.strips else 1
        cost = c.new(f"mul i64 {turns}, {TURN * len(spec.items) * vectors}")
        c.do(f"store i64 {cost}, ptr {c.new('getelementptr i64, ptr %record, i64 3')}")
        c.do(f"call void {leave}({lists})")
        c.do("br label %stop")
        c.start("stop")
        c.do("ret void")
        body = "\n".join(c.lines)
        head = "ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status"
        self.module.functions[name] = f"define void @{name}({head}) nounwind {{\n{body}\n}}\n"

    def turns(self, strips: Strips | None = None) -> str:
        """All turns, of some elements after the others: how many there were.

        `strips`: the first element and the last, turns before, and how many vectors go together.
        """
        spec, c = self.spec, self.c
        # What was read for other vectors does not reach here.
        self.parts, self.spreads = {}, {}
        tag = self.tag = f".{strips[3]}" if strips else ""
        top = self.begin_strip(strips) if strips else ""
        firsts = self.read_first()
        types = [self.type(dtype, number) for dtype, _, number, *_ in spec.carries]
        lasts = [self.strip(number, dtype, at + 2) for dtype, at, number, *_ in spec.carries]
        shown = [self.place(seen) if seen else "" for *_, seen in spec.carries]
        moving = (*spec.slices, *spec.pieces)
        pointers = [self.strip(numbers[0], dtype, at) for dtype, numbers, at in moving]
        strides = [self.word(at + 2) for _, _, at in moving]
        before = c.block
        c.do(f"br i1 {self.begin}, label %turn{tag}, label %over{tag}")
        c.start(f"turn{tag}")
        # Careful code of strips takes the turns as any other does while no number is small.
        fading = [n for dtype, _, n, *_ in spec.carries if dtype == "f4" and n in self.wide]
        picks = fading if self.module.careful else []
        # What a turn begins with is written once it is known what the one before ends with.
        at_phis, count = len(c.lines), sum([len(first) for first in firsts])
        c.lines.extend([""] * (1 + count + len(pointers) + bool(picks)))
        slow = self.turn(shown, picks)
        going = self.goes_on()
        if spec.advances:
            c.do(f"call void {self.advance}({self.lists})")
        moved = [c.new(f"getelementptr i8, ptr %q{k}{tag}, i64 {stride}")
                 for k, stride in enumerate(strides)]  # fmt: skip
        following = c.new(f"add nsw i64 %i{tag}, 1")
        rest = c.new(f"and i64 {following}, {self.period}")
        due = c.new(f"icmp eq i64 {rest}, 0")
        self.look(due, f"look{tag}", f"next{tag}")
        if spec.again is None:
            going = c.new(f"icmp slt i64 {following}, {self.trips}")
        c.do(f"br i1 {going}, label %turn{tag}, label %over{tag}")
        news = [self.all_of(new) for _, _, _, new, _ in spec.carries]
        carried = [
            (f"%c{number}.{k}{tag}", t, *pair)
            for (_, _, number, *_), t, first, new in zip(
                spec.carries, types, firsts, news, strict=True
            )
            for k, pair in enumerate(zip(first, new, strict=True))
        ]
        walked = enumerate(zip(pointers, moved, strict=True))
        phis = [(f"%i{tag}", "i64", "0", following), *carried,
                *[(f"%q{k}{tag}", "ptr", *pair) for k, pair in walked],
                *[(f"%slow{tag}", "i1", "false", slow)] * bool(picks)]  # fmt: skip
        for k, (value, t, first, new) in enumerate(phis):
            c.lines[at_phis + k] = (
                f"  {value} = phi {t} [ {first}, %{before} ], [ {new}, %next{tag} ]"
            )
        c.start(f"over{tag}")
        turns = c.new(f"phi i64 [ 0, %{before} ], [ {following}, %next{tag} ]")
        ends = iter([
            c.new(f"phi {t} [ {first}, %{before} ], [ {new}, %next{tag} ]")
            for _, t, first, new in carried
        ])  # fmt: skip
        for (dtype, _, number, *_), place, first in zip(
            spec.carries, lasts, firsts, strict=True
        ):
            self.put_all(number, dtype, [next(ends) for _ in first], place)
        return self.next_strip(strips, top, turns) if strips else turns

    def begin_strip(self, strips: Strips) -> str:
        """The loop over strips, whose body begins here: the block before it."""
        c, tag = self.c, self.tag
        start, stop, past, self.together = strips
        top, some = c.block, start.test("slt", stop)
        c.do(f"br i1 {some}, label %strip{tag}, label %done{tag}")
        c.start(f"strip{tag}")
        c.do(f"%e{tag} = phi i64 [ {start.name}, %{top} ], [ %beyond{tag}, %further{tag} ]")
        c.do(f"%past{tag} = phi i64 [ {past}, %{top} ], [ %sum{tag}, %further{tag} ]")
        c.do(f"%beyond{tag} = add nsw i64 %e{tag}, {self.lanes * self.together}")
        left = (stop - Int(c, f"%e{tag}")).least(self.lanes * self.together)
        c.lanes = self.lanes
        self.masks = [
            lanes_before(c, (left - k * self.lanes).most(0)) for k in range(self.together)
        ]
        c.lanes = 1
        return top

    def next_strip(self, strips: Strips, top: str, turns: str) -> str:
        """The end of that loop, behind the turns of a strip: how many turns all took."""
        c, tag, (_, stop, past, _) = self.c, self.tag, strips
        # Few turns of many strips are looked between too, as often as many of one.
        c.do(f"%sum{tag} = add nsw i64 %past{tag}, {turns}")
        crossed = c.new(f"xor i64 %sum{tag}, %past{tag}")
        due = c.new(f"icmp ugt i64 {crossed}, {self.period}")
        self.look(due, f"between{tag}", f"further{tag}")
        more = Int(c, f"%beyond{tag}").test("slt", stop)
        c.do(f"br i1 {more}, label %strip{tag}, label %done{tag}")
        c.start(f"done{tag}")
        return str(c.new(f"phi i64 [ {past}, %{top} ], [ %sum{tag}, %further{tag} ]"))

    def read_first(self) -> list[list[str]]:
        """What comes before the turns; what the first one begins with, of each carry."""
        for kind, number, dtype, at in [i for i in self.spec.items if i[0] in BEFORE]:
            if kind == "known":
                self.known(number, dtype, at)
            elif kind == "laid":
                self.shuffle(number, dtype, at)
            elif number in self.wide:
                self.take_all(number, dtype, self.strip(number, dtype, at))
        firsts = [*self.firsts]
        for k, (dtype, at, number, *_) in enumerate(self.spec.carries):
            if number in self.wide:
                self.take_all(number, dtype, self.strip(number, dtype, at))
                firsts[k] = self.parts[number]
        return firsts

    def turn(self, shown: list[str], picks: list[int]) -> str:
        """The body, on what a turn begins with: whether numbers have become small (`picked`).

        `shown`: where carries are to be seen in memory by what is walked.
        """
        spec, tag = self.spec, self.tag
        for (dtype, _, number, _, _), place in zip(spec.carries, shown, strict=True):
            if number in self.wide:
                parts = range(len(self.parts[number]))
                self.parts[number] = [f"%c{number}.{k}{tag}" for k in parts]
            else:
                self.values[number] = f"%c{number}.0{tag}"
            if place:
                self.store(dtype, self.values[number], place)
        for k, (dtype, numbers, _) in enumerate(spec.slices):
            for e, number in enumerate(numbers):
                self.take_all(number, dtype, self.beyond(f"%q{k}{tag}", e, dtype))
        slow = self.picked(picks, tag) if picks else ""
        if not picks:
            self.items(spec.items)
        for k, (dtype, numbers, _) in enumerate(spec.pieces):
            for e, number in enumerate(numbers):
                place = self.beyond(f"%q{len(spec.slices) + k}{tag}", e, dtype)
                self.put_all(number, dtype, self.all_of(number), place)
        return slow

    def goes_on(self) -> str:
        """Whether there is another turn, where that is computed."""
        spec, c = self.spec, self.c
        if spec.again is None:
            return ""
        if spec.again < 0:
            byte = c.new(f"load i8, ptr {self.place(9)}")
            return str(c.new(f"icmp ne i8 {byte}, 0"))
        return self.element("b1", self.values[spec.again])

    def look(self, due: str, block: str, following: str) -> None:
        """Where a look for signals is due, it, in that block; the end where it, or another thread,
        found that the program is to stop."""
        c = self.c
        c.do(f"br i1 {due}, label %{block}, label %{following}")
        c.start(block)
        c.do(f"call void {self.poll}(ptr %status)")
        state = c.new("load atomic i32, ptr %status monotonic, align 4")
        bad = c.new(f"icmp ne i32 {state}, 0")
        c.do(f"br i1 {bad}, label %stop, label %{following}")
        c.start(following)

    def picked(self, fading: list[int], tag: str) -> str:
        """Careful code for a turn where carries have become small, which every eighth turn asks.

        Then products of them may be below the normal numbers. The answer, for the turns up to the
        next question.
        """
        c, t = self.c, f"<{self.lanes} x i32>"
        asks = Int(c, c.new(f"and i64 %i{tag}, {EVERY - 1}")).test("eq", 0)
        c.do(f"br i1 {asks}, label %ask{tag}, label %answered{tag}")
        top = c.block
        c.start(f"ask{tag}")
        c.lanes = self.lanes
        least = c.const("i32", "-1")
        for x in [x for number in fading for x in self.parts[number]]:
            bits = c.new(f"bitcast {c.vec('float')} {x} to {t}")
            # Twice the magnitude less 1: zeros are greatest.
            twice = c.new(f"add {t} {bits}, {bits}")
            size = c.new(f"add {t} {twice}, {c.const('i32', '-1')}")
            name = f"llvm.umin.v{self.lanes}i32"
            least = c.call(name, t, (t, least), (t, size))
        some = c.new(f"icmp ult {t} {least}, {c.const('i32', str(2 * SMALL))}")
        c.lanes = 1
        word = c.new(f"bitcast <{self.lanes} x i1> {some} to i{self.lanes}")
        found = c.new(f"icmp ne i{self.lanes} {word}, 0")
        c.do(f"br label %answered{tag}")
        c.start(f"answered{tag}")
        slow = c.new(f"phi i1 [ %slow{tag}, %{top} ], [ {found}, %ask{tag} ]")
        c.do(f"br i1 {slow}, label %fading{tag}, label %plain{tag}")
        spec = self.spec
        wanted = [n for *_, n, _ in spec.carries] + [n for _, ns, _ in spec.pieces for n in ns]
        wanted += [] if spec.again is None else [spec.again]
        made = {i[1]: i[4] if i[0] == "word" else i[2]
                for i in spec.items if i[0] in ("word", "shuffle")}  # fmt: skip
        wanted = [n for n in dict.fromkeys(wanted) if n in made]
        values, parts, spreads = dict(self.values), dict(self.parts), dict(self.spreads)
        ways: list[tuple[str, list[list[str]]]] = []
        for label, careful in (("fading", True), ("plain", False)):
            self.values, self.parts, self.spreads = dict(values), dict(parts), dict(spreads)
            self.module.careful = careful
            c.start(label + tag)
            self.items(spec.items)
            ways.append((c.block, [self.all_of(n) for n in wanted]))
            c.do(f"br label %taken{tag}")
        self.module.careful = True
        self.values, self.parts, self.spreads = values, parts, spreads
        c.start(f"taken{tag}")
        (one, first), (two, second) = ways
        for number, xs, ys in zip(wanted, first, second, strict=True):
            t = self.type(made[number], number)
            new = [
                c.new(f"phi {t} [ {x}, %{one} ], [ {y}, %{two} ]")
                for x, y in zip(xs, ys, strict=True)
            ]
            if number in self.wide:
                self.parts[number] = new
            else:
                (self.values[number],) = new
        return slow

    def literal(self, dtype: str, word: str) -> str:
        c, scalar = self.c, SCALAR[dtype]
        bits = 1 if dtype == "b1" else 8 * itemsize(dtype)
        value = word if bits == 64 else c.new(f"trunc i64 {word} to i{bits}")
        if dtype[0] == "f":
            value = c.new(f"bitcast i{bits} {value} to {scalar}")
        return c.new(f"insertelement {c.vec(scalar)} poison, {scalar} {value}, i64 0")

    def items(self, items: Items) -> None:
        c, values = self.c, self.values
        for item in items:
            kind = item[0]
            if kind == "word":
                _, number, word, ins, out, refs = item
                if number in self.wide:
                    many = self.vectors_of(number)
                    given = [self.spread(r, d, many) for r, d in zip(refs, ins, strict=True)]
                    self.parts[number] = self.each(
                        number,
                        lambda k: emit(c, word, list(ins), out, [x[k] for x in given]),  # noqa: B023
                    )
                else:
                    values[number] = emit(c, word, list(ins), out, [values[r] for r in refs])
            elif kind == "load":
                _, number, dtype, at = item
                values[number] = self.load(dtype, self.place(at))
            elif kind == "store":
                _, number, dtype, at = item
                self.store(dtype, values[number], self.place(at))
            elif kind == "walk":
                table, words = self.pointer(item[1]), self.word(item[1] + 1)
                state = c.new(
                    f"call i32 {self.walk}(ptr %slots, ptr {table}, i64 {words}, ptr %status)"
                )
                fine = c.new(f"icmp eq i32 {state}, 0")
                go = c.label("walked")
                c.do(f"br i1 {fine}, label %{go}, label %stop")
                c.start(go)
            elif kind == "take":
                self.take(*item[1:])
            elif kind == "put":
                self.put(*item[1:])
            elif kind == "branch":
                self.branch(*item[1:])
            elif kind == "shuffle":
                self.shuffle(*item[1:])

    def known(self, number: int, dtype: str, bits: Items) -> None:
        """Numbers that the code knows."""
        n, parts = self.lanes, range(self.vectors_of(number))
        self.parts[number] = [known(self.c, dtype, bits[k * n : k * n + n], n) for k in parts]

    def shuffle(self, number: int, dtype: str, where: Items) -> None:
        """Elements of other values."""
        lanes: list[tuple[str, int]] = []
        for source, e in where:
            if source in self.sizes:
                lanes.append((self.parts[source][e // self.lanes], e % self.lanes))
            elif number in self.sizes:
                lanes.append((self.spread(source, dtype)[0], -1))
            else:
                lanes.append((self.values[source], 0))
        if number not in self.sizes:
            self.values[number] = shuffled(self.c, dtype, lanes, self.lanes)
            return
        made = []
        for at in range(0, len(lanes), self.lanes):
            part = lanes[at : at + self.lanes]
            # Lanes behind the end are somebody's too: what is undefined may be anything, a trap.
            part += [(part[0][0], -1)] * (self.lanes - len(part))
            part = [(v, k if e < 0 else e) for k, (v, e) in enumerate(part)]
            made.append(shuffled(self.c, dtype, part, self.lanes))
        self.parts[number] = made

    def spread(self, number: int, dtype: str, many: int = 1) -> list[str]:
        """A value for all elements."""
        if number in self.wide:
            return self.parts[number]
        if (number, dtype) not in self.spreads:
            one = self.element(dtype, self.values[number])
            self.c.lanes = self.lanes
            self.spreads[number, dtype] = self.c.splat(SCALAR[dtype], one)
            self.c.lanes = 1
        return [self.spreads[number, dtype]] * many

    def element_at(self, at: int, starts: Items) -> tuple[str, str]:
        """The address of an element at clamped starts, and whether clamping changed nothing."""
        c, place, inside = self.c, self.place(at), "true"
        for number, dtype, words in starts:
            start = self.element(dtype, self.values[number])
            if dtype == "u8":
                top = ("i64", str(2**63 - 1))
                start = c.call("llvm.umin.i64", "i64", ("i64", start), top)
            elif dtype[1:] != "8":
                how = "sext" if dtype[0] == "i" else "zext"
                start = c.new(f"{how} {SCALAR[dtype]} {start} to i64")
            clamped = c.call("llvm.smax.i64", "i64", ("i64", start), ("i64", "0"))
            limit = ("i64", self.word(words))
            clamped = c.call("llvm.smin.i64", "i64", ("i64", clamped), limit)
            same = c.new(f"icmp eq i64 {start}, {clamped}")
            inside = c.new(f"and i1 {inside}, {same}")
            moved = c.new(f"mul i64 {clamped}, {self.word(words + 1)}")
            place = c.new(f"getelementptr i8, ptr {place}, i64 {moved}")
        return place, inside

    def take(self, number: int, dtype: str, at: int, starts: Items, fill: int) -> None:
        place, inside = self.element_at(at, starts)
        value = self.load(dtype, place)
        if fill:
            t, other = self.c.vec(SCALAR[dtype]), self.literal(dtype, self.word(fill))
            value = self.c.new(f"select i1 {inside}, {t} {value}, {t} {other}")
        self.values[number] = value

    def put(
        self, number: int, dtype: str, at: int, starts: Items, word: str, drops: bool
    ) -> None:
        c = self.c
        place, inside = self.element_at(at, starts)
        value = self.values[number]
        if word != "set" or drops:
            old = self.load(dtype, place)
            if word != "set":
                value = emit(c, word, [dtype, dtype], dtype, [old, value])
            if drops:
                # Nobody else writes there, so that the old element may be written as the new one.
                t = c.vec(SCALAR[dtype])
                value = c.new(f"select i1 {inside}, {t} {value}, {t} {old}")
        self.store(dtype, value, place)

    def branch(self, index: int, blocks: Items, outs: Items) -> None:
        c = self.c
        value = self.element("i4", self.values[index])
        labels = [c.label("case") for _ in blocks]
        after = c.label("joined")
        # Below the first is the first, above the last the last.
        value = c.call("llvm.smax.i32", "i32", ("i32", value), ("i32", "0"))
        cases = " ".join([f"i32 {i}, label %{name}" for i, name in enumerate(labels[:-1])])
        c.do(f"switch i32 {value}, label %{labels[-1]} [ {cases} ]")
        ends: list[tuple[str, list[str]]] = []
        for label, (items, refs) in zip(labels, blocks, strict=True):
            c.start(label)
            self.items(items)
            ends.append((c.block, [self.values[r] for r in refs]))
            c.do(f"br label %{after}")
        c.start(after)
        for k, (number, dtype) in enumerate(outs):
            ways = ", ".join([f"[ {found[k]}, %{block} ]" for block, found in ends])
            self.values[number] = c.new(f"phi {c.vec(SCALAR[dtype])} {ways}")


def _words_of(items: Items) -> list[Any]:
    found = []
    for item in items:
        if item[0] == "word":
            found.append(item)
        elif item[0] == "branch":
            for inner, _ in item[2]:
                found += _words_of(inner)
    return found
