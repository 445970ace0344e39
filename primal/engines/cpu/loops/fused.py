"""Loops whose body is short, as one native function: scalars in registers, no table in between.

A walk of the table costs 10 to 20 ns per step, and a kernel on one element as much again, which is
what `scan` of a few scalar operations would consist of. So where a body has scalar groups, its loop
is written out: they become code on registers, carries too, what a scan reads and writes moves by
pointers, branches are jumps, and an element that is read or written at an index is a load or a
store. Steps that are no scalars are walked where they stand, so that a body need not be all of one
kind; only what they read or make goes through memory. Arrays of a few elements are so many scalars:
what is cut out of them, put together or padded costs nothing then. The state of an ordinary
differential equation is of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.functions import FLOAT, INLINE
from primal.engines.cpu.graph import NATIVE, Node, Value, bytes_of, size_of
from primal.engines.cpu.lanes import COMBINE
from primal.engines.cpu.loops.accesses import Access, access_of
from primal.engines.cpu.loops.native import Native
from primal.engines.cpu.loops.registers import FUNCTION, in_registers, is_one, is_product
from primal.engines.cpu.loops.spec import FusedSpec
from primal.engines.cpu.monoids import accumulator
from primal.engines.cpu.plan.places import Places
from primal.engines.cpu.plan.schedule import Group, nodes_read
from primal.engines.cpu.products import Small
from primal.engines.cpu.steps import Block, Branch, Loop, Move, Routine

TOGETHER, SEVERAL, REGISTERS, QUOTIENT = 8, (192, 96), 16, 4
"""Vectors of elements that go together through a loop, as each waits for its own numbers; how many
words a turn has then at most, and one of the last vectors, as empty ones take their time too;
registers that are held; what a quotient counts as. Two exponentials of 1000 float32 take 620 ns a
turn by four vectors and the last by two, by two alone 1140; of 17, 37 (by four alone 42)."""
Registers = dict[tuple[Node, int], int]
"""(node, element) -> its number."""


class Fused(Native):
    """A loop whose values are a register for each element, or strips of all elements."""

    def __init__(self, step: Loop, places: Places, most: int, space: int = 0) -> None:
        super().__init__(step, places)
        # Strips take all turns again and again: nothing may go forward in memory from one turn to
        # the next, so that scalars of such a loop are registers also where no group is of scalars.
        self.most = max(most, 1) if space else most
        self.space = space
        self._wide: list[int] = []
        body: Block = step.body
        self._outer = set(body.reads)
        self._computed: set[Node] = set()
        """Nodes that the code of the loop makes itself."""
        self.exposed: set[Node] = set()
        self._dtypes: set[str] = set()
        self._at_size = self._numbers(space) if space else 0
        self._expose(body)
        # Where a piece shares its place with what other steps make, its slot has to be there.
        if not space:
            self.exposed.update([n for n in step.pieces if len(n.home.tenants) > 1])
        regs: Registers = {}
        self.carries = []
        carries = []
        for x, param, out in zip(step.inits, step.params, step.outs, strict=False):
            self.carries.append(self._fits(param))
            if self.carries[-1]:
                for e in range(self._count_of(param)):
                    number = regs[param, e] = self._number(param)
                    offset = e * param.dtype.itemsize
                    at = self._read(x, offset)
                    self._address(out, offset)
                    seen = self._address(param, offset) if param in self.exposed else 0
                    carries.append([NATIVE[param.dtype], at, number, 0, seen])
        slices, self.slices = [], []
        for x, node in zip(step.xs, step.slices, strict=True):
            pointer = self._fits(node) and node not in self.exposed
            self.slices.append(pointer)
            if pointer:
                numbers = tuple([self._number(node) for _ in range(self._count_of(node))])
                regs.update({(node, e): number for e, number in enumerate(numbers)})
                stride = x.steps()[0] * node.dtype.itemsize
                at = self._moving(x, stride)
                slices.append((NATIVE[node.dtype], numbers, at))
        items: list[Any] = []
        self._block(body, regs, items)
        pieces, self.pieces = [], []
        stacks = step.outs[len(step.carried) :]
        for node, out in zip(step.pieces, stacks, strict=True):
            pointer = node in self._computed and node not in self.exposed
            self.pieces.append(pointer)
            if pointer:
                at = self._moving(Value(out, out.shape, out.dtype), bytes_of(node))
                pieces.append((NATIVE[node.dtype], self._all(node, regs, items), at))
        kept = [c for c, scalar in zip(step.carried, self.carries, strict=True) if scalar]
        news = [number for node in kept for number in self._all(node, regs, items)]
        for carry, number in zip(carries, news, strict=True):
            carry[3] = number
        again = None if step.again is None else regs.get((step.again.node, 0), -1)
        moves = [not p for p in (*self.slices, *self.pieces)]
        swaps = [
            carry is not None and not scalar
            for carry, scalar in zip(places.carries[step], self.carries, strict=True)
        ]
        assert not (space and any([*moves, *swaps]))
        self.spec = FusedSpec(
            tuple([tuple(c) for c in carries]), tuple(slices), tuple(pieces),
            (*self._first, *items), again, any([*moves, *swaps]), self._at, self._strips(items),
        )  # fmt: skip

    def _strips(self, items: Sequence[Any]) -> tuple[Any, ...]:
        """What the spec says of them."""
        if not self.space:
            return ()
        wide = set(self._wide)
        functions = len([item for item in items if item[0] == "word" and item[2] in FLOAT])
        # Calls do not overlap as well: more vectors hide what each waits for (three exponentials
        # of 1000 float32 1627 to 897 ns a turn; by a quarter of the weight 1364).
        function = FUNCTION if functions <= INLINE else FUNCTION // 2
        work = sum(
            [function if item[2] in FLOAT else QUOTIENT if item[2] == "div" else 1
             for item in items if item[0] == "word" and item[1] in wide]
        )  # fmt: skip
        held = len([item for item in self._first if item[1] in wide]) + sum(
            [self._is_wide(node) for node in self.step.params]
        )
        held = max(held, 1)
        most = [min(TOGETHER, n // max(work, 1), REGISTERS // held) for n in SEVERAL]
        many, few = [1 << max(n.bit_length() - 1, 0) for n in most]
        size = max([4, *[int(dtype[1:]) for dtype in self._dtypes]])
        self.runs = -(-self.space * size // (64 * many))
        return tuple(self._wide), size, many, few, self._at_size

    def _number(self, node: Node | None = None) -> int:
        """A new number; of a node all of whose elements go together, maybe."""
        if node is not None and self._is_wide(node):
            self._wide.append(self._count)
            self._dtypes.add(NATIVE[node.dtype])
        return super()._number()

    def _is_wide(self, node: Node) -> bool:
        return self.space > 0 and size_of(node.shape) == self.space

    def _count_of(self, node: Node) -> int:
        """How many registers hold a node."""
        return 1 if self._is_wide(node) else size_of(node.shape)

    # The body.

    def _fits(self, node: Node) -> bool:
        """Whether a node may be a register per element, or one of all."""
        return self._is_wide(node) or size_of(node.shape) <= self.most and node.dtype in NATIVE

    def _expose(self, block: Block) -> None:
        for step in block.steps:
            if self.space or self._is_code(step) or self._is_alias(step):
                continue
            if type(step) is Branch:
                for inner in step.blocks:
                    self._expose(inner)
            elif access := self._access(step):
                self.exposed.add(access.array.node)
            else:
                self.exposed.update(nodes_read(step))
                if type(step) is Group:  # what it puts pieces into is put together in memory
                    self.exposed.update([place.node for place in step.pieces.values()])

    def _is_code(self, step: Any) -> bool:
        return in_registers(step, self.most) or is_product(step, self.most)

    def _is_alias(self, step: Any) -> bool:
        """Whether a step only gives elements other places."""
        if type(step) is Move:
            return self._fits(step.outs[0])
        return type(step) is Routine and bool(step.parts) and self._fits(step.parts[0].node)

    def _block(self, block: Block, regs: Registers, items: list[Any]) -> None:
        waiting: list[Any] = []

        def walked() -> None:
            if waiting:
                steps = tuple(waiting)
                waiting.clear()
                items.append(("walk", self._words(lambda t: t.some(steps), 2)))

        for step in block.steps:
            if self.space or self._is_code(step):
                walked()
                self.hidden.add(step)
                write = self._group if type(step) is Group else self._product
                write(step, regs, items)
            elif self._is_alias(step):
                walked()
                self.hidden.add(step)
                out = step.outs[0] if type(step) is Move else step.parts[0].node
                places = [whole(out)] if type(step) is Move else step.parts
                for x, place in zip(step.args, places, strict=True):
                    for e in range(x.size):
                        regs[out, element(place, e)] = self._ref(x, e, regs, items)
                self._show(out, regs, items)
            elif type(step) is Branch:
                walked()
                self.hidden.add(step)
                self._branch(step, regs, items)
            elif (access := self._access(step)) is not None:
                walked()
                self.hidden.add(step)
                self._element(access, regs, items)
            else:
                waiting.append(step)
                if type(step) is Group:  # what was there before its pieces is no more
                    for place in step.pieces.values():
                        for e in range(place.size):
                            regs.pop((place.node, element(place, e)), None)
        walked()

    def _group(self, step: Group, regs: Registers, items: list[Any]) -> None:
        """The words of a group on each element, after all that it reads from memory."""
        for node in (*step.nodes, *step.reductions):
            for x in node.args:
                if x.node not in step.level:
                    for e in range(1 if self.space else x.size):
                        self._ref(x, e, regs, items)
        for level in sorted(set(step.level.values())):
            for node in [n for n in step.nodes if step.level[n] == level]:
                ins = tuple([NATIVE[x.node.dtype] for x in node.args])
                dtype = NATIVE[node.dtype]
                for e in range(self._count_of(node)):
                    refs = tuple([self._ref(x, e, regs, items) for x in node.args])
                    regs[node, e] = self._word(node.word, refs, ins, dtype, items, node)
            for node in [n for n in step.reductions if step.level[n] == level]:
                self._reduction(node, regs, items)
        for node in (*step.nodes, *step.reductions):
            self._show(node, regs, items)
        for node, place in step.pieces.items():
            kept = self._fits(place.node)
            for e, number in enumerate(self._all(node, regs, items)):
                at = element(place, e)
                regs[place.node, at] = number
                if not kept or place.node in self.exposed:
                    there = self._address(place.node, at * node.dtype.itemsize)
                    items.append(("store", number, NATIVE[node.dtype], there))
            if kept:
                self._computed.add(place.node)

    def _word(
        self,
        word: str,
        refs: tuple[int, ...],
        ins: tuple[str, ...],
        dtype: str,
        items: list[Any],
        node: Node | None = None,
    ) -> int:
        number = self._number(node)
        items.append(("word", number, word, ins, dtype, refs))
        return number

    def _reduction(self, node: Node, regs: Registers, items: list[Any]) -> None:
        (x,) = node.args
        monoid, axes = node.attr
        dtype = NATIVE[x.node.dtype]
        wide = accumulator(monoid, dtype) if x.size > size_of(node.shape) else dtype
        parts: dict[Any, list[int]] = {}
        for e, index in enumerate(np.ndindex(*x.shape)):
            number = self._ref(x, e, regs, items)
            if wide != dtype:
                number = self._word("convert", (number,), (dtype,), wide, items)
            kept = tuple([i for d, i in enumerate(index) if d not in axes])
            parts.setdefault(kept, []).append(number)
        out = NATIVE[node.dtype]  # sums of what a large array was summed in are narrower than it
        for e, numbers in enumerate(parts.values()):
            # By neighbours, so that few wait for each other; products as they come, as their
            # order decides whether they overflow on the way.
            while len(numbers) > 1:
                step = len(numbers) if monoid == "multiply" else 2
                numbers = [
                    self._together(COMBINE[monoid], numbers[i : i + step], wide, items)
                    for i in range(0, len(numbers), step)
                ]
            (number,) = numbers
            if wide != out:
                number = self._word("convert", (number,), (wide,), out, items)
            regs[node, e] = number

    def _product(self, step: Routine, regs: Registers, items: list[Any]) -> None:
        """Products of small matrices, whose terms are added up in two sums, as each waits for
        what it was."""
        spec, (x, y), (out,) = step.spec, step.args, step.outs
        assert type(spec) is Small
        dtype, depth = spec.dtype, spec.depth
        for at in range(size_of(out.shape)):
            turn, j = divmod(at, spec.n)
            row, column = turn * depth, (turn // spec.m * spec.n + j) * depth
            pairs = [
                (self._ref(x, row + i, regs, items), self._ref(y, column + i, regs, items))
                for i in range(depth)
            ]
            ways = 2 if depth >= 4 else 1
            sums = [self._terms(pairs[way::ways], dtype, depth > 1, items) for way in range(ways)]
            regs[out, at] = self._together("add", sums, dtype, items)
        self._show(out, regs, items)

    def _terms(
        self, pairs: Sequence[tuple[int, int]], dtype: str, adds: bool, items: list[Any]
    ) -> int:
        """The sum of products, which begins with 0 if there are others."""
        if dtype[0] == "f" and adds:
            total = self._literal(dtype, 0)
            for pair in pairs:
                total = self._word("fma", (*pair, total), (dtype,) * 3, dtype, items)
            return total
        terms = [self._word("mul", pair, (dtype,) * 2, dtype, items) for pair in pairs]
        return self._together("add", terms, dtype, items)

    def _together(self, word: str, numbers: list[int], dtype: str, items: list[Any]) -> int:
        first, *others = numbers
        for other in others:
            first = self._word(word, (first, other), (dtype, dtype), dtype, items)
        return first

    def _access(self, step: Any) -> Access | None:
        """What a routine reads or writes, if that is one element, in place."""
        found = access_of(step) if type(step) is Routine else None
        if found is None or found.out is not None:
            return found
        slot, base = self.places.address(found.array.node)
        here = slot, base + found.array.offset * found.array.node.dtype.itemsize
        return found if self.places.address(step.outs[0]) == here else None

    def _element(self, access: Access, regs: Registers, items: list[Any]) -> None:
        node = access.array.node
        dtype = NATIVE[node.dtype]
        starts = tuple(
            [
                (self._ref(x, 0, regs, items), NATIVE[x.node.dtype], self._numbers(*numbers))
                for x, numbers in access.starts
            ]
        )
        ahead = access.array.offset * node.dtype.itemsize + access.ahead
        at = self._address(node, ahead)
        if access.out is None:
            assert access.value is not None
            value, given = self._ref(access.value, 0, regs, items), NATIVE[access.value.node.dtype]
            if given != dtype:  # a narrower float
                value = self._word("convert", (value,), (given,), dtype, items)
            items.append(("put", value, dtype, at, starts, access.word, access.checks))
            return
        fill = self._numbers(access.fill) if access.checks else 0
        number = regs[access.out, 0] = self._number()
        items.append(("take", number, dtype, at, starts, fill))
        self._show(access.out, regs, items)

    def _branch(self, step: Branch, regs: Registers, items: list[Any]) -> None:
        """A jump. Results that are no registers lie in one place, whichever block makes them."""
        index = self._ref(step.index, 0, regs, items)
        kept = [self._fits(node) for node in step.outs]
        outs = [node for node, fits in zip(step.outs, kept, strict=True) if fits]
        blocks = []
        for block, results in zip(step.blocks, step.results, strict=True):
            inner: list[Any] = []
            own = dict(regs)
            self._block(block, own, inner)
            refs = [
                number
                for node, fits in zip(results, kept, strict=True)
                if fits
                for number in self._all(node, own, inner)
            ]
            blocks.append((tuple(inner), tuple(refs)))
        numbers = []
        for node in outs:
            for e in range(size_of(node.shape)):
                regs[node, e] = self._number()
                numbers.append((regs[node, e], NATIVE[node.dtype]))
        items.append(("branch", index, tuple(blocks), tuple(numbers)))
        for node in outs:
            self._show(node, regs, items)

    def _show(self, node: Node, regs: Registers, items: list[Any]) -> None:
        """Store what steps outside the registers read."""
        self._computed.add(node)
        if node in self.exposed:
            for e in range(size_of(node.shape)):
                if (node, e) in regs:
                    at = self._address(node, e * node.dtype.itemsize)
                    items.append(("store", regs[node, e], NATIVE[node.dtype], at))

    def _all(self, node: Node, regs: Registers, items: list[Any]) -> tuple[int, ...]:
        """The registers of all elements of a node."""
        x = whole(node)
        return tuple([self._ref(x, e, regs, items) for e in range(self._count_of(node))])

    def _ref(self, x: Value, e: int, regs: Registers, items: list[Any]) -> int:
        """The register of an element, counted in row-major order."""
        node = x.node
        at = element(x, e)
        found = regs.get((node, at))
        if found is not None:
            return found
        dtype = NATIVE[node.dtype]
        if node.word in ("literal", "iota"):
            bits = node.attr
            if node.word == "iota":
                bits = np.asarray(at).astype(node.dtype).tobytes()
            return self._literal(dtype, int.from_bytes(bits, "little"))
        offset = at * node.dtype.itemsize
        if node in self._outer:
            wide = self.space > 0 and not is_one(x)
            key = (node, offset, wide)
            if key not in self._once:
                self._once[key] = self._number()
                if wide:
                    self._wide.append(self._once[key])
                    self._dtypes.add(dtype)
                at = self._address(node, offset)
                self._first.append(("outer", self._once[key], dtype, at))
            return self._once[key]
        number = self._number()
        items.append(("load", number, dtype, self._address(node, offset)))
        regs[node, at] = number
        return number


def whole(node: Node) -> Value:
    """All of a node."""
    return Value(node, node.shape, node.dtype)


def element(x: Value, e: int) -> int:
    """Where the element of that number, in row-major order, lies in the node."""
    if x.strides is None or x.size == 1:
        return x.offset + (e if x.size > 1 else 0)
    at = x.offset
    for n, step in zip(reversed(x.shape), reversed(x.strides), strict=True):
        e, i = divmod(e, n)
        at += i * step
    return at
