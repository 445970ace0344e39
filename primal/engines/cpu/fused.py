"""Loops whose body is short, as one native function: scalars in registers, no table in between.

A walk of the table costs 10 to 20 ns per step, and a kernel on one element as much again, which is
what `scan` of a few scalar operations would consist of. So where a body has scalar groups, its loop
is written out: they become code on registers, carries too, what a scan reads and writes moves by
pointers, branches are jumps, and an element that is read or written at an index is a load or a
store. Steps that are no scalars are walked where they stand, so that a body need not be all of one
kind; only what they read or make goes through memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.accesses import Access, access_of
from primal.engines.cpu.code import MEMORY, SCALAR, Code, Module, itemsize
from primal.engines.cpu.functions import FLOAT, FLOAT2, INLINE
from primal.engines.cpu.graph import NATIVE, Node, Value, size_of
from primal.engines.cpu.interleaved import WORDS
from primal.engines.cpu.lanes import emit
from primal.engines.cpu.places import Places
from primal.engines.cpu.schedule import Group, nodes_read
from primal.engines.cpu.steps import Block, Branch, Loop, Move, Routine

AT = 18
"""Words of the record before those of the fused loop; its lists come last."""
MOST_STEPS, MOST_WORDS = 40, 300
"""Above these a body's own work hides what walking it costs, and code is long to compile."""
PERIOD = 4096
"""Turns between two looks for signals."""
Items = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class FusedSpec:
    """The code of a loop. Values are numbered; `at` is the number of a word of the record.

    carries: per scalar carry (dtype, at of (first slot, offset, last slot, offset), number, number
    of the new value, at of the place that other steps read it from or 0).
    slices: (dtype, number, at of (slot, offset, stride)); pieces: (dtype, number, at likewise).
    items: ('literal', number, dtype, at), ('outer', …) read once; ('load', number, dtype, at),
    ('word', number, word, dtypes, dtype, operands), ('store', number, dtype, at), ('walk', at of
    table and length), ('branch', index, blocks of (items, results), (numbers, dtypes) of results).
    again: number of the predicate; -1 in memory; None where the loop is counted.
    """

    carries: Items
    slices: Items
    pieces: Items
    items: Items
    again: int | None
    advances: bool
    words: int

    def write(self, module: Module, name: str) -> None:
        """Add the loop to a module."""
        _Writer(module, self).function(name)


def is_scalar(step: Any) -> bool:
    """Whether a group computes single elements, in one pass."""
    return (
        type(step) is Group
        and size_of(step.shape) == 1
        and not step.passes
        and all(node.word not in WORDS for node in step.nodes)
    )


class Fused:
    """A loop as a `FusedSpec`; `words(tables)` are the words of its record from `AT` on."""

    def __init__(self, step: Loop, places: Places) -> None:
        self.step = step
        self.places = places
        self._fixed: list[Callable[[Any], Sequence[int]]] = []
        self._at = AT + 6
        self._count = 0
        self._once: dict[Any, int] = {}
        self._first: list[Any] = []
        body: Block = step.body
        self._outer = set(body.reads)
        self._computed: set[Node] = set()
        """Nodes that the code of the loop makes itself."""
        self.hidden: set[Any] = set()
        """Steps that are code of the loop, and have none of their own."""
        self.exposed: set[Node] = set()
        self._expose(body)
        # Where a piece shares its place with what other steps make, its slot has to be there.
        self.exposed.update([n for n in step.pieces if len(n.home.tenants) > 1])
        regs: dict[Node, int] = {}
        self.carries: list[bool] = []
        carries = []
        for x, param, out in zip(step.inits, step.params, step.outs, strict=False):
            scalar = size_of(param.shape) == 1 and param.dtype in NATIVE
            self.carries.append(scalar)
            if scalar:
                regs[param] = self._number()
                at = self._read(x)
                self._address(out)
                seen = self._address(param) if param in self.exposed else 0
                carries.append([NATIVE[param.dtype], at, regs[param], 0, seen])
        slices, self.slices = [], []
        for x, node in zip(step.xs, step.slices, strict=True):
            pointer = size_of(node.shape) == 1 and node.dtype in NATIVE
            pointer = pointer and node not in self.exposed
            self.slices.append(pointer)
            if pointer:
                regs[node] = self._number()
                stride = x.steps()[0] * node.dtype.itemsize
                at = self._moving(x, stride)
                slices.append((NATIVE[node.dtype], regs[node], at))
        items: list[Any] = []
        self._block(body, regs, items)
        pieces, self.pieces = [], []
        stacks = step.outs[len(step.carried) :]
        for node, out in zip(step.pieces, stacks, strict=True):
            pointer = node in self._computed and node not in self.exposed
            self.pieces.append(pointer)
            if pointer:
                at = self._moving(Value(out, out.shape, out.dtype), node.dtype.itemsize)
                pieces.append((NATIVE[node.dtype], regs[node], at))
        kept = [c for c, scalar in zip(step.carried, self.carries, strict=True) if scalar]
        for carry, node in zip(carries, kept, strict=True):
            carry[3] = self._ref(Value(node, node.shape, node.dtype), regs, items)
        again = None if step.again is None else regs.get(step.again.node, -1)
        moves = [not p for p in (*self.slices, *self.pieces)]
        swaps = [
            carry is not None and not scalar
            for carry, scalar in zip(places.carries[step], self.carries, strict=True)
        ]
        self.spec = FusedSpec(
            tuple([tuple(c) for c in carries]), tuple(slices), tuple(pieces),
            (*self._first, *items), again, any([*moves, *swaps]), self._at,
        )  # fmt: skip

    def words(self, tables: Any) -> list[int]:
        """The words from `AT` on: the helpers, then what the items ask for."""
        found = [
            *[tables.functions[n] for n in ("walk", "poll_now", "enter", "advance", "leave")],
            PERIOD - 1,
        ]
        for make in self._fixed:
            found += make(tables)
        assert len(found) == self.spec.words - AT
        return found

    # Words and numbers.

    def _words(self, make: Callable[[Any], Sequence[int]], count: int) -> int:
        self._fixed.append(make)
        self._at += count
        return self._at - count

    def _read(self, x: Value) -> int:
        return self._words(lambda tables: tables.read(x), 2)

    def _address(self, node: Node, offset: int = 0) -> int:
        def make(_: Any) -> Sequence[int]:
            slot, base = self.places.address(node)
            return slot, base + offset

        return self._words(make, 2)

    def _moving(self, x: Value, stride: int) -> int:
        """x[0], or the last one, and the bytes to the next."""
        last = (self.step.trips or 1) - 1

        def make(tables: Any) -> Sequence[int]:
            slot, offset = tables.read(x)
            if self.step.reverse:
                return slot, offset + last * stride, -stride
            return slot, offset, stride

        return self._words(make, 3)

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    # The body.

    def _expose(self, block: Block) -> None:
        for step in block.steps:
            if is_scalar(step) or _is_alias(step) or self._access(step):
                continue
            if self._is_inline(step):
                for inner in step.blocks:
                    self._expose(inner)
            else:
                self.exposed.update(nodes_read(step))

    def _is_inline(self, step: Any) -> bool:
        if type(step) is not Branch:
            return False
        return all(size_of(node.shape) == 1 and node.dtype in NATIVE for node in step.outs)

    def _block(self, block: Block, regs: dict[Node, int], items: list[Any]) -> None:
        waiting: list[Any] = []

        def walked() -> None:
            if waiting:
                steps = tuple(waiting)
                waiting.clear()
                items.append(("walk", self._words(lambda t: t.some(steps), 2)))

        for step in block.steps:
            if is_scalar(step):
                walked()
                self.hidden.add(step)
                for node in step.nodes:
                    refs = tuple([self._ref(x, regs, items) for x in node.args])
                    ins = tuple([NATIVE[x.node.dtype] for x in node.args])
                    regs[node] = self._number()
                    items.append(("word", regs[node], node.word, ins, NATIVE[node.dtype], refs))
                    self._show(node, regs, items)
                for node in step.reductions:
                    regs[node] = self._ref(node.args[0], regs, items)
                    self._show(node, regs, items)
                # After all that is read: the array of the pieces may lie over what it is made of.
                for node, place in step.pieces.items():
                    at = self._address(place.node, place.offset * node.dtype.itemsize)
                    items.append(("store", regs[node], NATIVE[node.dtype], at))
            elif _is_alias(step):
                walked()
                self.hidden.add(step)
                regs[step.outs[0]] = self._ref(step.args[0], regs, items)
                self._show(step.outs[0], regs, items)
            elif self._is_inline(step):
                walked()
                self.hidden.add(step)
                self._branch(step, regs, items)
            elif (access := self._access(step)) is not None:
                walked()
                self.hidden.add(step)
                self._element(access, regs, items)
            else:
                waiting.append(step)
        walked()

    def _access(self, step: Any) -> Access | None:
        """What a routine reads or writes, if that is one element, in place."""
        found = access_of(step) if type(step) is Routine else None
        if found is None or found.out is not None:
            return found
        slot, base = self.places.address(found.array.node)
        here = slot, base + found.array.offset * found.array.node.dtype.itemsize
        return found if self.places.address(step.outs[0]) == here else None

    def _element(self, access: Access, regs: dict[Node, int], items: list[Any]) -> None:
        node = access.array.node
        dtype = NATIVE[node.dtype]
        starts = tuple(
            [
                (self._ref(x, regs, items), NATIVE[x.node.dtype], self._numbers(*numbers))
                for x, numbers in access.starts
            ]
        )
        at = self._address(node, access.array.offset * node.dtype.itemsize)
        if access.out is None:
            assert access.value is not None
            value = self._ref(access.value, regs, items)
            items.append(("put", value, dtype, at, starts, access.word, access.checks))
            return
        fill = self._numbers(access.fill) if access.checks else 0
        regs[access.out] = self._number()
        items.append(("take", regs[access.out], dtype, at, starts, fill))
        self._show(access.out, regs, items)

    def _numbers(self, *numbers: int) -> int:
        return self._words(lambda _: numbers, len(numbers))

    def _branch(self, step: Branch, regs: dict[Node, int], items: list[Any]) -> None:
        index = self._ref(step.index, regs, items)
        blocks = []
        for block, results in zip(step.blocks, step.results, strict=True):
            inner: list[Any] = []
            own = dict(regs)
            self._block(block, own, inner)
            refs = [self._ref(Value(n, n.shape, n.dtype), own, inner) for n in results]
            blocks.append((tuple(inner), tuple(refs)))
        numbers = []
        for node in step.outs:
            regs[node] = self._number()
            numbers.append((regs[node], NATIVE[node.dtype]))
        items.append(("branch", index, tuple(blocks), tuple(numbers)))
        for node in step.outs:
            self._show(node, regs, items)

    def _show(self, node: Node, regs: dict[Node, int], items: list[Any]) -> None:
        """Store what steps outside the registers read."""
        self._computed.add(node)
        if node in self.exposed:
            items.append(("store", regs[node], NATIVE[node.dtype], self._address(node)))

    def _ref(self, x: Value, regs: dict[Node, int], items: list[Any]) -> int:
        node = x.node
        found = regs.get(node)
        if found is not None:
            return found
        dtype = NATIVE[node.dtype]
        if node.word in ("literal", "iota"):
            bits = node.attr
            if node.word == "iota":
                bits = np.asarray(x.offset).astype(node.dtype).tobytes()
            key: Any = (dtype, bits)
            if key not in self._once:
                self._once[key] = self._number()
                value = int.from_bytes(bits, "little")
                self._first.append(
                    ("literal", self._once[key], dtype, self._words(lambda _: [value], 1))
                )
            return self._once[key]
        offset = x.offset * node.dtype.itemsize
        if node in self._outer:
            key = (node, offset)
            if key not in self._once:
                self._once[key] = self._number()
                at = self._address(node, offset)
                self._first.append(("outer", self._once[key], dtype, at))
            return self._once[key]
        number = self._number()
        items.append(("load", number, dtype, self._address(node, offset)))
        if size_of(node.shape) == 1:
            regs[node] = number
        return number


def _is_alias(step: Any) -> bool:
    return type(step) is Move and size_of(step.outs[0].shape) == 1 and step.outs[0].dtype in NATIVE


def worth_fusing(step: Loop) -> bool:
    """Whether the loop's own cost shows beside its body's."""
    steps = list(_steps(step.body))
    scalars = [s for s in steps if is_scalar(s)]
    words = sum([len(s.nodes) for s in scalars])
    return bool(scalars) and len(steps) <= MOST_STEPS and words <= MOST_WORDS


def _steps(block: Block) -> Any:
    for step in block.steps:
        yield step
        if type(step) is Branch:
            for inner in step.blocks:
                yield from _steps(inner)


class _Writer:
    """Values are vectors of one element: the words of kernels are written for vectors."""

    def __init__(self, module: Module, spec: FusedSpec) -> None:
        self.module = module
        self.spec = spec
        self.c = Code(module, 1)
        heavy = [i for i in _words_of(spec.items) if i[2] in FLOAT or i[2] in FLOAT2]
        self.c.inline = len(heavy) <= INLINE
        self.values: dict[int, str] = {}
        self.stop = "stop"

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
        c = self.c
        scalar = self.element(dtype, value)
        if dtype == "b1":
            scalar = c.new(f"zext i1 {scalar} to i8")
        c.do(f"store {MEMORY[dtype]} {scalar}, ptr {place}, align {itemsize(dtype)}")

    def function(self, name: str) -> None:
        spec, c = self.spec, self.c
        c.start("entry")
        walk, poll, enter, advance, leave = [self.pointer(AT + i) for i in range(5)]
        self.walk = walk
        period = self.word(AT + 5)
        lists = "ptr %slots, ptr %counts, ptr %list"
        c.do("%counts = getelementptr i64, ptr %record, i64 13")
        c.do(f"%list = getelementptr i64, ptr %record, i64 {spec.words}")
        c.do(f"call void {enter}({lists})")
        for kind, number, dtype, at in [i for i in spec.items if i[0] in ("literal", "outer")]:
            self.values[number] = (
                self.literal(dtype, self.word(at)) if kind == "literal"
                else self.load(dtype, self.place(at))
            )  # fmt: skip
        firsts = [self.load(dtype, self.place(at)) for dtype, at, *_ in spec.carries]
        types = [c.vec(SCALAR[dtype]) for dtype, *_ in spec.carries]
        lasts = [self.place(at + 2) for _, at, *_ in spec.carries]
        shown = [self.place(seen) if seen else "" for *_, seen in spec.carries]
        pointers = [self.place(at) for _, _, at in (*spec.slices, *spec.pieces)]
        strides = [self.word(at + 2) for _, _, at in (*spec.slices, *spec.pieces)]
        trips = self.word(6)
        if spec.again is None:
            begin = c.new(f"icmp sgt i64 {trips}, 0")
        else:
            byte = c.new(f"load i8, ptr {self.place(7)}")
            begin = c.new(f"icmp ne i8 {byte}, 0")
        before = c.block
        c.do(f"br i1 {begin}, label %turn, label %over")
        c.start("turn")
        at_phi = len(c.lines)
        c.lines.extend([""] * (1 + len(firsts) + len(pointers)))
        for (dtype, _, number, _, _), t in zip(spec.carries, types, strict=True):
            self.values[number] = f"%c{number}"
            assert t == c.vec(SCALAR[dtype])
        for (dtype, _, number, _, _), place in zip(spec.carries, shown, strict=True):
            if place:
                self.store(dtype, self.values[number], place)
        for k, (dtype, number, _) in enumerate(spec.slices):
            self.values[number] = self.load(dtype, f"%q{k}")
        self.items(spec.items)
        for k, (dtype, number, _) in enumerate(spec.pieces):
            self.store(dtype, self.values[number], f"%q{len(spec.slices) + k}")
        if spec.again is None:
            going = ""
        elif spec.again < 0:
            byte = c.new(f"load i8, ptr {self.place(9)}")
            going = c.new(f"icmp ne i8 {byte}, 0")
        else:
            going = self.element("b1", self.values[spec.again])
        if spec.advances:
            c.do(f"call void {advance}({lists})")
        moved = [
            c.new(f"getelementptr i8, ptr %q{k}, i64 {stride}") for k, stride in enumerate(strides)
        ]
        following = c.new("add nsw i64 %i, 1")
        rest = c.new(f"and i64 {following}, {period}")
        due = c.new(f"icmp eq i64 {rest}, 0")
        c.do(f"br i1 {due}, label %look, label %next")
        c.start("look")
        c.do(f"call void {poll}(ptr %status)")
        state = c.new("load atomic i32, ptr %status monotonic, align 4")
        bad = c.new(f"icmp ne i32 {state}, 0")
        c.do(f"br i1 {bad}, label %stop, label %next")
        c.start("next")
        if spec.again is None:
            going = c.new(f"icmp slt i64 {following}, {trips}")
        c.do(f"br i1 {going}, label %turn, label %over")
        c.lines[at_phi] = f"  %i = phi i64 [ 0, %{before} ], [ {following}, %next ]"
        news = [self.values[new] for _, _, _, new, _ in spec.carries]
        for k, ((_, _, number, _, _), t) in enumerate(zip(spec.carries, types, strict=True)):
            c.lines[at_phi + 1 + k] = (
                f"  %c{number} = phi {t} [ {firsts[k]}, %{before} ], [ {news[k]}, %next ]"
            )
        for k, (first, new) in enumerate(zip(pointers, moved, strict=True)):
            c.lines[at_phi + 1 + len(firsts) + k] = (
                f"  %q{k} = phi ptr [ {first}, %{before} ], [ {new}, %next ]"
            )
        c.start("over")
        ends = [
            c.new(f"phi {t} [ {firsts[k]}, %{before} ], [ {news[k]}, %next ]")
            for k, t in enumerate(types)
        ]
        for (dtype, *_), value, place in zip(spec.carries, ends, lasts, strict=True):
            self.store(dtype, value, place)
        c.do(f"call void {leave}({lists})")
        c.do("br label %stop")
        c.start("stop")
        c.do("ret void")
        body = "\n".join(c.lines)
        head = "ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status"
        self.module.functions[name] = f"define void @{name}({head}) nounwind {{\n{body}\n}}\n"

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
