"""Loops whose arrays are a few vectors each, as one function: the vectors stay in registers.

A grid of 6 x 6 is too many numbers for a register each and too few for kernels: a turn of a stencil
was some calls of 10 to 40 ns, which read and wrote memory, for twenty instructions. Here an array
is up to `MOST` vectors, of all elements in row-major order. Views, concatenations and padding are
lists of which element lies where, and become shuffles where a word reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.graph import (
    IN_REGISTERS,
    NATIVE,
    NOWHERE,
    Node,
    Value,
    bytes_of,
    is_narrow,
    size_of,
)
from primal.engines.cpu.lanes import COMBINE
from primal.engines.cpu.loops.fused import whole
from primal.engines.cpu.loops.native import Native
from primal.engines.cpu.loops.registers import in_registers, is_product
from primal.engines.cpu.loops.spec import FusedSpec
from primal.engines.cpu.monoids import accumulator
from primal.engines.cpu.plan.places import Places
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.products import Small
from primal.engines.cpu.steps import Loop, Move, Routine

MOST, WIDTH = 32, 64
"""Vectors of an array, and their bytes."""
MOVES = ("pad", "join")
"""Words that give elements other places."""
WORK, UNTIL = 1000, 100
"""Words on vectors in a turn, and in one of a loop that goes on until something is true: more are
long to compile, and hide what kernels cost. Of the latter the turns are not known, and few where
random numbers are drawn until they fit."""
CALLS, FILL = 2, 8
"""Kernels in a turn from which on code for these sizes is worth it, one more for every so many
vectors: a kernel is code for all sizes. Of arrays of few elements one is enough, as the rest of the
body is code for them anyway."""
SUMMED = 2 * IN_REGISTERS
"""Elements up to which one is enough that reduces what turns carry: each waits for its sum, and for
what the one before stored under a mask (of 20 float32 a perceptron's turn 43 to 20 ns, JAX 20 to
31, a vector divided by its norm 71 to 23, JAX 45; from 33 on kernels are faster than JAX)."""
Where = Sequence[tuple[int, int]]
"""Of each element the number of the value that has it, and which one it is there."""


def fits_vectors(step: Loop) -> bool:
    """Whether a loop's arrays are a few vectors each, and its body words on them."""
    if step.again is not None and step.again.size != 1:
        return False
    outside = step.body.reads
    values = [*step.params, *step.slices, *step.pieces]
    read: list[Node] = []
    moved: list[Node] = []
    work: list[tuple[int, int]] = []
    for s in step.body.steps:
        if type(s) is Group:
            if s.parts > 1 or s.first is not None or any(n.word == "take" for n in s.nodes):
                return False
            if not all(n.attr[0] in COMBINE and n.attr[0] != "multiply" for n in s.reductions):
                return False
            moved += [n for n in s.nodes if n.word in MOVES]
            moved += [place.node for place in s.pieces.values()]
            made = [n for n in s.nodes if n.word not in MOVES]
            values += [*made, *s.reductions]
            read += [x.node for n in (*made, *s.reductions) for x in n.args]
            work += [(1, size_of(n.shape)) for n in made]
            work += [(2, n.args[0].size) for n in s.reductions]
        elif type(s) is Routine and type(s.spec) is Small:
            values += s.outs
            work.append((3 * s.terms, size_of(s.outs[0].shape)))
        elif _is_alias(s):
            moved += s.outs
        else:
            return False
    known = [n for n in (*values, *outside, *moved, *read) if n.word not in NOWHERE]
    if any(n.dtype not in NATIVE or is_narrow(n.dtype) for n in known):
        return False
    lanes = WIDTH // max([4, *[n.dtype.itemsize for n in known if size_of(n.shape) > 1]])
    # What is read from outside stays where it is put before the first turn, and is no work.
    held, largest = [
        -(-max([1, *[size_of(n.shape) for n in nodes]]) // lanes) for nodes in (outside, values)
    ]
    if max(held, largest) > MOST:
        return False
    waits = step.params and any(type(s) is Group and s.reductions for s in step.body.steps)
    few = SUMMED if waits else IN_REGISTERS
    small = all(size_of(n.shape) <= few for n in (*values, *outside, *moved))
    calls = len([s for s in step.body.steps if _is_call(s)])
    if calls < (1 if small else max(CALLS, -(-largest // FILL))):
        return False
    most = WORK if step.again is None else UNTIL
    return sum([words * -(-size // lanes) for words, size in work]) <= most


def _is_call(step: Any) -> bool:
    """Whether a step of a body is a kernel otherwise."""
    if type(step) is Move or in_registers(step, IN_REGISTERS) or is_product(step, IN_REGISTERS):
        return False
    parts = type(step) is Routine and step.parts
    return not (parts and size_of(parts[0].node.shape) <= IN_REGISTERS)


def _is_alias(step: Any) -> bool:
    """Whether a step only gives elements other places."""
    if type(step) is not Routine:
        return type(step) is Move
    return bool(step.parts) or step.into is not None or step.within is not None


class Vectors(Native):
    """A loop whose values are vectors of all their elements."""

    def __init__(self, step: Loop, places: Places) -> None:
        super().__init__(step, places)
        self._sizes: dict[int, int] = {}
        """Elements of each value that has several."""
        self._where: dict[Node, Where] = {}
        self._shuffled: dict[Any, int] = {}
        self._fixed_values: set[int] = set()
        """Those that every turn finds alike."""
        self._widest = 4
        self._items: list[Any] = []
        self.carries = [True] * len(step.params)
        self.slices = [True] * len(step.slices)
        self.pieces = [True] * len(step.pieces)
        carries = []
        for x, param, out in zip(step.inits, step.params, step.outs, strict=False):
            at = self._read(x)
            self._address(out)
            carries.append((NATIVE[param.dtype], at, self._held(param)))
        slices = []
        for x, node in zip(step.xs, step.slices, strict=True):
            at = self._moving(x, x.steps()[0] * node.dtype.itemsize)
            slices.append((NATIVE[node.dtype], (self._held(node),), at))
        for s in step.body.steps:
            self.hidden.add(s)
            if type(s) is Group:
                self._group(s)
            elif type(s) is Routine and type(s.spec) is Small:
                self._product(s)
            else:
                self._alias(s)
        pieces = []
        stacks = step.outs[len(step.carried) :]
        for node, out in zip(step.pieces, stacks, strict=True):
            at = self._moving(whole(out), bytes_of(node))
            pieces.append((NATIVE[node.dtype], (self._all(node),), at))
        news = [self._all(node) for node in step.carried]
        again = None if step.again is None else self._ref(step.again)
        self.spec = FusedSpec(
            tuple([(*c, new, 0) for c, new in zip(carries, news, strict=True)]),
            tuple(slices), tuple(pieces), (*self._first, *self._items), again, False, self._at,
            (), (self._widest, tuple(self._sizes.items())),
        )  # fmt: skip

    # Values.

    def _value(self, size: int, dtype: str) -> int:
        """A new number, of so many elements."""
        number = self._number()
        if size > 1:
            self._sizes[number] = size
            self._widest = max(self._widest, int(dtype[1:]))
        return number

    def _held(self, node: Node) -> int:
        """The number of a node whose elements it is the first to have."""
        number = self._value(size_of(node.shape), NATIVE[node.dtype])
        self._where[node] = self._lanes(number, size_of(node.shape))
        return number

    def _lanes(self, number: int, size: int) -> Where:
        """The elements of a value; a single one may stand for more."""
        return [(number, e if number in self._sizes else 0) for e in range(size)]

    def _of(self, x: Value) -> Where:
        """Where the elements of a view are, in row-major order."""
        node, dtype = x.node, NATIVE[x.node.dtype]
        at = _elements(x)
        if node.word == "literal":
            return [(self._literal(dtype, int.from_bytes(node.attr, "little")), 0)] * x.size
        if node.word == "iota":
            numbers = [np.asarray(i).astype(node.dtype).tobytes() for i in at]
            known = tuple([int.from_bytes(b, "little") for b in numbers])
            if len(set(known)) == 1:
                return [(self._literal(dtype, known[0]), 0)] * x.size
            key = dtype, known
            if key not in self._shuffled:
                number = self._shuffled[key] = self._value(x.size, dtype)
                self._first.append(("known", number, dtype, known))
                self._fixed_values.add(number)
            return self._lanes(self._shuffled[key], x.size)
        if node not in self._where:
            number = self._held(node)
            self._first.append(("outer", number, dtype, self._address(node)))
            self._fixed_values.add(number)
        where = self._where[node]
        return where if x.strides is None else [where[i] for i in at]

    def _literal(self, dtype: str, bits: int) -> int:
        number = super()._literal(dtype, bits)
        self._fixed_values.add(number)
        return number

    def _ref(self, x: Value) -> int:
        """The number of a view: one element where all are the same."""
        return self._value_of(self._of(x), NATIVE[x.node.dtype])

    def _all(self, node: Node) -> int:
        """The number of a node, with all its elements."""
        return self._value_of(self._of(whole(node)), NATIVE[node.dtype], spread=True)

    def _value_of(self, where: Where, dtype: str, spread: bool = False) -> int:
        """The number of elements that lie there."""
        if not spread and len(set(where)) == 1:
            where = where[:1]
        number = where[0][0]
        if list(where) == self._lanes(number, self._sizes.get(number, 1)):
            return number
        key = tuple(where)
        if key not in self._shuffled:
            number = self._shuffled[key] = self._value(len(where), dtype)
            if self._fixed_values.issuperset([n for n, _ in where]):
                self._first.append(("laid", number, dtype, key))
                self._fixed_values.add(number)
            else:
                self._items.append(("shuffle", number, dtype, key))
        return self._shuffled[key]

    def _word(self, word: str, refs: Sequence[int], ins: Sequence[str], dtype: str) -> int:
        number = self._value(max([self._sizes.get(r, 1) for r in refs]), dtype)
        self._items.append(("word", number, word, tuple(ins), dtype, tuple(refs)))
        return number

    # Steps.

    def _alias(self, step: Any) -> None:
        """What only gives elements other places."""
        (out,) = step.outs
        if type(step) is Move:
            self._put(self._of(step.args[0]), whole(out))
        elif step.parts:
            for x, place in zip(step.args, step.parts, strict=True):
                self._put(self._of(x), place)
        elif step.into is not None:
            self._put(self._of(step.args[0]), whole(out))
            self._put(self._of(step.args[1]), step.into)
        else:
            x, value = step.args
            self._put(list(self._of(value)) * size_of(out.shape), whole(out))
            self._put(self._of(x), step.within)

    def _put(self, where: Where, place: Value) -> None:
        """Elements become those of a part of an array."""
        node = place.node
        found = list(self._where.get(node, [(-1, 0)] * size_of(node.shape)))
        for at, lane in zip(_elements(place), where, strict=True):
            found[at] = lane
        self._where[node] = found

    def _group(self, step: Group) -> None:
        nodes = [*step.nodes, *step.reductions]
        # What is read of another step's array, before a part of it becomes this one's.
        for level in sorted(set(step.level.values())):
            for node in [n for n in nodes if step.level[n] == level]:
                if node.word == "reduce":
                    self._where[node] = self._reduced(node)
                elif node.word == "pad":
                    self._where[node] = self._padded(node)
                elif node.word == "join":
                    self._where[node] = self._joined(node)
                else:
                    ins = [NATIVE[x.node.dtype] for x in node.args]
                    refs = [self._ref(x) for x in node.args]
                    number = self._word(node.word, refs, ins, NATIVE[node.dtype])
                    self._where[node] = self._lanes(number, size_of(node.shape))
        for node, place in step.pieces.items():
            self._put(self._where[node], place)

    def _padded(self, node: Node) -> Where:
        """What a word `pad` makes: the operand's elements, and zeros where a count is not between
        its two ends."""
        x, *ends = node.args
        zero = self._literal(NATIVE[node.dtype], 0), 0
        inside = np.ones(x.size, bool)
        for count, low, high in zip(ends[::3], ends[1::3], ends[2::3], strict=True):
            at = np.asarray(_elements(count))
            inside &= (at >= _number_of(low)) & (at < _number_of(high))
        where = self._of(whole(x.node))
        return [where[i] if some else zero
                for i, some in zip(_elements(x), inside.tolist(), strict=True)]  # fmt: skip

    def _joined(self, node: Node) -> Where:
        """What a word `join` makes: the first operand's elements, from a count on the second's."""
        one, other, count, begins = node.args
        before, begin = _elements(count), _number_of(begins)
        first, second = self._of(whole(one.node)), self._of(whole(other.node))
        return [
            first[i] if at < begin else second[j]
            for at, i, j in zip(before, _elements(one), _elements(other), strict=True)
        ]

    def _reduced(self, node: Node) -> Where:
        """By halves of what is left, so that few wait for each other."""
        (x,) = node.args
        monoid, axes = node.attr
        dtype, out = NATIVE[x.node.dtype], NATIVE[node.dtype]
        wide = accumulator(monoid, dtype) if x.size > size_of(node.shape) else dtype
        where = self._of(x)
        if wide != dtype:
            number = self._word("convert", [self._value_of(where, dtype)], [dtype], wide)
            where = self._lanes(number, x.size)
        index = np.arange(x.size).reshape(x.shape)
        kept = [d for d in range(x.ndim) if d not in axes]
        table = index.transpose([*axes, *kept]).reshape(-1, size_of(node.shape))
        rows = [[where[i] for i in row] for row in table.tolist()]
        while len(rows) > 1:
            half = len(rows) // 2
            both = [sum(part, []) for part in (rows[:half], rows[half : 2 * half])]
            refs = [self._value_of(part, wide) for part in both]
            number = self._word(COMBINE[monoid], refs, [wide, wide], wide)
            made = self._lanes(number, len(both[0]))
            width = len(rows[0])
            rows = [*[list(made[i * width : (i + 1) * width]) for i in range(half)],
                    *rows[2 * half :]]  # fmt: skip
        if wide != out:
            number = self._word("convert", [self._value_of(rows[0], wide)], [wide], out)
            return self._lanes(number, len(rows[0]))
        return rows[0]

    def _product(self, step: Routine) -> None:
        """Products of small matrices, whose terms are added up in two sums, as each waits for
        what it was."""
        spec, (x, y), (out,) = step.spec, step.args, step.outs
        assert type(spec) is Small
        dtype, depth = spec.dtype, spec.depth
        rows, columns = [], []
        for at in range(size_of(out.shape)):
            turn, j = divmod(at, spec.n)
            rows.append(turn * depth)
            columns.append((turn // spec.m * spec.n + j) * depth)
        left, right = self._of(x), self._of(y)
        pairs = [
            [self._value_of([where[at + i] for at in begins], dtype)
             for where, begins in ((left, rows), (right, columns))]
            for i in range(depth)
        ]  # fmt: skip
        ways = 2 if depth >= 4 else 1
        sums = [self._terms(pairs[way::ways], dtype, depth > 1) for way in range(ways)]
        number = sums[0] if ways == 1 else self._word("add", sums, [dtype, dtype], dtype)
        self._where[out] = self._lanes(number, size_of(out.shape))

    def _terms(self, pairs: Sequence[Sequence[int]], dtype: str, adds: bool) -> int:
        """The sum of products, which begins with 0 if there are others."""
        if dtype[0] == "f" and adds:
            total = self._literal(dtype, 0)
            for pair in pairs:
                total = self._word("fma", [*pair, total], [dtype] * 3, dtype)
            return total
        total, *others = [self._word("mul", pair, [dtype] * 2, dtype) for pair in pairs]
        for term in others:
            total = self._word("add", [total, term], [dtype] * 2, dtype)
        return total


def _elements(x: Value) -> list[int]:
    """Which elements of its node a view reads, in row-major order; of padding they are none."""
    if x.strides is None:
        return list(range(x.size))
    at = np.full((), x.offset)
    for n, step in zip(x.shape, x.strides, strict=True):
        at = at[..., None] + np.arange(n) * step
    found: list[int] = at.ravel().tolist()
    return found


def _number_of(x: Value) -> int:
    return int.from_bytes(x.node.attr, "little", signed=True)
