"""What runs together: elementwise nodes and reductions in groups, other steps by themselves.

Every node is computed once, in one group. One that is read elsewhere is stored there, and not
computed again by its readers: repeating it in each is what makes XLA's programs quadratic in depth.
The exception are single words of what a reader has at hand anyway; see `Remaking`.

Steps are numbered in the order they run. A node may join a group when all that it reads is made by
that group, element for element, or by steps before it; so the order needs no other proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.functions import FLOAT
from primal.engines.cpu.graph import APART, NATIVE, NOWHERE, Node, Value, is_narrow, size_of
from primal.engines.cpu.kernels.takes import INNER
from primal.engines.cpu.monoids import accumulator
from primal.engines.cpu.plan.rowwise import row_role
from primal.engines.cpu.steps import Branch, Loop, Routine

MAX_NODES = 96
"""Nodes per group. Compile time grows with the length of straight-line code; and a long chain of
equal pieces falls into equal groups, which share one kernel, when a piece's length divides this."""
MAX_CHAIN = 24
"""Nodes that wait for each other in a group of arrays. A CPU looks some hundred instructions ahead,
in which are few vectors of a long chain: one of 96 products and sums of 10,000 float32 took 24 µs,
in four groups 13. Only where half as many follow: 28 of 10,000,000 took 4.3 ms, and in two groups,
for the memory between them, 5.7. Not where more than one in eight is a mathematical function: these
gain less, and so many more groups take longer to compile (1,600 sines 5 %).
"""
MAX_ACROSS = 4
"""Arrays of a group, read on behind a cut, above which a long chain is none: each is written and
read once more (log densities of χ², a million float32, 1,280 us, and cut, 1,860)."""
MAX_REDUCTIONS = 16
"""Reductions per group, each of which holds a register."""
MAX_HEAVY = 16
"""Mathematical functions per group: with so many, passes over memory do not show any more."""
MAX_OUTSIDE = 16
"""Arrays that a group reads: more of them take time to compile that grows faster than they do."""
WINDOW = 8
"""How many of the latest steps are looked at for a group to join."""
PART = 1 << 15
"""Elements from which on what is reduced to few results is reduced in parts."""
MAX_PARTS = 256
MAX_RESULTS = 256
"""Parts of one reduction, and results; where there are more, units of work are results."""
LIGHT = frozenset(
    ("add", "sub", "mul", "neg", "abs", "square", "max", "min", "not", "and", "or", "xor",
     "eq", "ne", "lt", "le", "gt", "ge", "select_n", "real", "imag")
)  # fmt: skip
"""Words that take less time than reading an array does."""
LIGHT_BY_NUMBER = frozenset(("shift_left", "shift_right_logical", "shift_right_arithmetic"))
"""Words that do so with a number that is part of the word."""
FEWER = 8
"""How many times fewer numbers are read along with another array."""
LONG = 255
"""Elements of rows up to which vectors do not begin at cache lines."""
Step = Any
"""Group | Routine | Library | Move | Loop | Branch."""


def is_light_word(word: str | None) -> bool:
    """Whether a word is light arithmetic: `shift_left#3` is, a shift by another array is not."""
    if word is None:
        return False
    name, _, number = word.partition("#")
    return name in (LIGHT_BY_NUMBER if number else LIGHT)


class Group:
    """Nodes over one iteration space, and reductions of them over the same axes.

    `level` and `alone`: the pass of each node, and nodes that are one per row; see `rowwise`.
    `chain`: how many nodes wait for each other up to each, itself included.
    `parts`: in how many pieces its reductions are made, so that threads share them; see `split`.
    `first`: of a group that reduces such parts, the one that makes them.
    `kernel`: its instance.
    `inner`: whether words of it read arrays by themselves (see `takes`); it reduces nothing then.
    `padded`: whether it pads arrays as it reads them.
    `pieces`: where nodes lie that are parts of another array; see `blocks.placed`.
    `squares`: whether such lie turned (`squares`); nothing is stored over an operand then.
    """

    __slots__ = (
        "number", "shape", "nodes", "reductions", "axes", "reads", "block", "begin", "end",
        "level", "chain", "alone", "heavy", "outside", "parts",
        "first", "kernel", "pieces", "inner", "padded", "squares",
    )  # fmt: skip

    def __init__(self, block: Any, number: int, shape: tuple[int, ...]) -> None:
        self.block = block
        self.number = number
        self.begin = self.end = -1
        self.shape = shape
        self.nodes: list[Node] = []
        self.reductions: list[Node] = []
        self.axes: tuple[int, ...] | None = None
        self.reads: set[int] = set()
        self.level: dict[Node, int] = {}
        self.chain: dict[Node, int] = {}
        self.alone: set[Node] = set()
        self.heavy = 0
        self.inner = self.padded = self.squares = False
        self.outside: set[Node] = set()
        self.parts = 1
        self.first: Group | None = None
        self.kernel: Any = None
        self.pieces: dict[Node, Value] = {}

    @property
    def passes(self) -> bool:
        """Whether it is of several passes over rows; see `rowwise`."""
        return bool(self.alone) or any(self.level.values())


class Schedule:
    """Steps, built by adding nodes and library calls in program order.

    `waiting`: how many elementwise nodes wait for each node, one after another, itself included.
    `order`: the number of each node; `last`: that of its last reader among nodes.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        self.steps: list[Step] = []
        self.waiting: dict[Node, int] = {}
        self.order: dict[Node, int] = {}
        self.last: dict[Node, int] = {}
        nodes = [i for i in items if type(i) is Node]
        for i, node in enumerate(nodes):
            self.order[node] = i
            for x in node.args:
                self.last[x.node] = i
        waiting = self.waiting
        for node in [n for n in reversed(nodes) if n.word != "reduce"]:
            behind = waiting[node] = waiting.get(node, 0) + 1
            for x in node.args:
                if x.node.shape == node.shape and waiting.get(x.node, 0) < behind:
                    waiting[x.node] = behind

    def append(self, step: Step) -> None:
        """Append what is a step by itself."""
        if type(step) is Routine and step.parts:
            self._bring_together(step)
        step.number = len(self.steps)
        for node in step.outs:
            node.block, node.step = self, step.number
        self.steps.append(step)

    def add(self, node: Node) -> None:
        """Place an elementwise node or a reduction."""
        node.block = self
        if node.word == "reduce":
            self._reduction(node)
        else:
            self._element(node)

    def _bring_together(self, step: Routine) -> None:
        """Groups that make parts of one array become one, as do those that one node reads."""
        latest: dict[tuple[int, ...], int] = {}
        made = [x.node for x in step.args if x.node.block is self and self._in_register(x.node)]
        for node in made:
            latest[node.shape] = max(latest.get(node.shape, 0), node.step)
        for shape, inside in latest.items():
            if not self.steps[inside].passes:
                self._gather([n for n in made if n.shape == shape], inside)

    def _element(self, node: Node) -> None:
        if self._in_rows(node):
            return
        inside, before = -1, {-1}
        for x in node.args:
            base = x.node
            if base.block is not self:  # it was there before
                continue
            if x.is_node and self._in_register(base) and x.shape == node.shape:
                inside = max(inside, base.step)
            else:
                before.add(base.step)
        lowest = max(before) + 1
        if inside >= 0 and self._fits(inside, node) and not self.steps[inside].passes:
            read = [x.node for x in node.args if x.is_node]
            if inside >= lowest:
                self._gather(read, inside)
            else:
                waiting = [n for n in read if n.step not in before]
                inside = max(inside, self._postponed(waiting, node.shape))
        lowest = max(lowest, inside)
        group = self._joinable(node, lowest, inside)
        if group is None:
            group = Group(self, len(self.steps), node.shape)
            self.steps.append(group)
        self._placed(node, group, None)

    def _gather(self, nodes: Iterable[Node], inside: int) -> None:
        """Move the groups of nodes that are read together into the last of them.

        In a·x + b·y the two products have nothing in common, so they are groups of their own until
        their sum comes. A group may move past steps that read nothing of it.
        """
        last = self.steps[inside]
        for node in nodes:
            step = node.step
            if node.block is not self or not max(0, inside - WINDOW) <= step < inside:
                continue
            group = self.steps[step]
            if not (self._in_register(node) and group.shape == last.shape):
                continue
            if group.reductions or group.passes or not self._may_take(last, group):
                continue
            if group.inner and last.axes is not None:
                continue
            made = set(group.nodes)
            if any(not made.isdisjoint(nodes_read(s)) for s in self.steps[step + 1 : inside + 1]):
                continue
            for moved in made:
                moved.step = inside
            last.nodes[:0] = group.nodes
            last.level.update(group.level)
            last.chain.update(group.chain)
            last.reads |= group.reads
            last.outside |= group.outside
            last.heavy += group.heavy
            last.inner |= group.inner
            last.padded |= group.padded
            self.steps[step] = Group(self, step, group.shape)

    def _postponed(self, nodes: Sequence[Node], shape: tuple[int, ...]) -> int:
        """The number of a step behind all others that the groups of nodes moved to; or -1.

        A mask made between scores and their softmax would keep them apart.
        """
        group = Group(self, len(self.steps), shape)
        self.steps.append(group)
        self._gather(nodes, group.number)
        if group.nodes:
            return group.number
        self.steps.pop()
        return -1

    def _may_take(self, group: Group, other: Group) -> bool:
        """Whether a group stays within its bounds with the nodes of another one, and one more."""
        return (
            len(group.nodes) + len(other.nodes) < MAX_NODES
            and not (group.shape[-1:] > (LONG,) and group.padded | other.padded
                     and group.heavy + other.heavy)
            and group.heavy + other.heavy < MAX_HEAVY
            and len(group.outside | other.outside) < MAX_OUTSIDE
        )

    def _placed(self, node: Node, group: Group, level: int | None) -> None:
        """`level` None: the pass of what the node reads in registers."""
        latest = chain = 0
        for x in node.args:
            base = x.node
            if base.word == "literal":
                continue
            group.reads.add(id(base))
            if is_inside(x, group):
                latest = max(latest, group.level[base])
                chain = max(chain, group.chain[base])
            elif base.word != "iota":
                group.outside.add(base)
        node.step = group.number
        group.nodes.append(node)
        group.level[node] = latest if level is None else level
        group.chain[node] = chain + 1
        group.heavy += node.word in FLOAT
        group.inner |= node.word in INNER
        group.padded |= node.word in ("pad", "join")

    def _in_register(self, node: Node) -> bool:
        """Whether a group makes the node element for element over its own shape."""
        return node.word not in APART and node not in self.steps[node.step].alone

    def _in_rows(self, node: Node) -> bool:
        """Join the group whose results of rows the node reads, one pass later."""
        latest = max([x.node.step for x in node.args if x.node.block is self], default=-1)
        group = self.steps[latest] if latest >= 0 else None
        if type(group) is not Group or len(group.nodes) >= MAX_NODES:
            return False
        role = row_role(node, group, is_inside)
        if role is None or node.word in INNER:
            return False
        alone, level = role
        if alone:
            group.alone.add(node)
        self._placed(node, group, level)
        return True

    def _joinable(self, node: Node, lowest: int, inside: int) -> Group | None:
        if inside == lowest and self._fits(inside, node):
            return self.steps[inside]
        # Not a consumer of the group, but a reader of what it reads: one pass over memory less.
        # The one that reads most of it: there its own readers are, and fewer arrays are added.
        # Of single numbers any: a kernel takes longer to compile, and to call, than they do.
        reads = {id(x.node) for x in node.args if x.node.word != "literal"}
        most, found = -1 if size_of(node.shape) == 1 else 0, None
        for number in range(len(self.steps) - 1, max(lowest, len(self.steps) - WINDOW) - 1, -1):
            if self._fits(number, node) and len(reads & self.steps[number].reads) > most:
                found = self.steps[number]
                most = len(reads & found.reads)
        return found

    def _fits(self, number: int, node: Node) -> bool:
        step = self.steps[number] if number >= 0 else None
        if type(step) is not Group or step.shape != node.shape or len(step.nodes) >= MAX_NODES:
            return False
        if node.word in FLOAT and step.heavy >= MAX_HEAVY:
            return False
        # Vectors of padded rows begin anywhere, which functions of long rows pay for.
        if node.shape[-1:] > (LONG,) and (
            (node.word in FLOAT and step.padded) or (node.word in ("pad", "join") and step.heavy)
        ):
            return False
        if node.word in INNER and step.axes is not None:
            return False
        if any(step.chain.get(x.node, 0) >= MAX_CHAIN for x in node.args):
            long = 2 * self.waiting[node] >= MAX_CHAIN and size_of(node.shape) > 1
            plain = step.heavy * 8 <= len(step.nodes)
            if long and plain and self._across(step, node) <= MAX_ACROSS:
                return False
        return len(step.outside) < MAX_OUTSIDE or all(
            x.node.word in NOWHERE or x.node in step.outside or is_inside(x, step)
            for x in node.args
        )

    def _across(self, group: Group, node: Node) -> int:
        """How many arrays of a group are read from a node on."""
        here = self.order[node]
        return sum([self.last.get(n, 0) >= here for n in group.nodes])

    def _reduction(self, node: Node) -> None:
        (x,) = node.args
        axes = node.attr[1]
        base = x.node
        group: Any = None
        lowest = 0 if base.block is not self else base.step + 1
        if x.is_node and base.block is self and self._in_register(base):
            group = self.steps[base.step]
        if group is not None and group.inner:
            group, lowest = None, base.step + 1
        if group is None or group.axes not in (None, axes):
            group = None
            for number in range(len(self.steps) - 1, max(lowest, len(self.steps) - WINDOW) - 1, -1):
                step = self.steps[number]
                if type(step) is not Group or step.shape != x.shape:
                    continue
                if len(step.reductions) >= MAX_REDUCTIONS or step.inner:
                    continue
                # A reader of the same, or a sum over the same axes of something else.
                if step.axes == axes or (step.axes is None and id(base) in step.reads):
                    group = step
                    break
        if group is None:
            group = Group(self, len(self.steps), x.shape)
            self.steps.append(group)
        group.axes = axes
        group.reductions.append(node)
        group.reads.add(id(base))
        group.level[node] = group.level[base] if is_inside(x, group) else 0
        node.step = group.number

    def split(self) -> None:
        """Groups that reduce much to little do so in parts, whose results are reduced after them.

        A sum of a million numbers is one unit of work otherwise, and one thread's.
        """
        steps, number = [], len(self.steps)
        for step in self.steps:
            steps.append(step)
            if type(step) is Group and (parts := parts_of(step)) > 1:
                steps.append(self._parted(step, parts, number))
                number += 1
        self.steps = steps

    def _parted(self, group: Group, parts: int, number: int) -> Group:
        last = Group(self, number, (parts, *group.reductions[0].shape))
        last.axes, last.first = (0,), group
        last.reductions, group.reductions, group.parts = group.reductions, [], parts
        for node in last.reductions:
            monoid = node.attr[0]
            dtype = np.dtype(accumulator(monoid, NATIVE[node.dtype]))
            part = Node("reduce", node.args, last.shape, dtype, node.attr)
            part.origin = node.origin
            part.block, part.step = self, group.number
            group.reductions.append(part)
            group.level[part] = last.level[node] = 0
            node.args = (Value(part, last.shape, dtype),)
            node.attr = monoid, last.axes
            node.step = number
            last.reads.add(id(part))
        return last


def is_inside(x: Value, group: Group) -> bool:
    """Whether a group reads the value in a register: it makes it, element for element."""
    node = x.node
    return (
        node.step == group.number
        and node.block is group.block
        and x.strides is None
        and x.shape == group.shape == node.shape
        and node.word not in APART
        and node not in group.alone
    )


def is_held(x: Value, group: Group) -> bool:
    """Whether a group has the value at hand, in a register or as a result of the row it is at."""
    node = x.node
    if group.passes and node in group.level and node.block is group.block:
        return node in group.alone or node.word == "reduce" or is_inside(x, group)
    return is_inside(x, group)


def nodes_read(step: Step) -> Iterable[Node]:
    """The nodes in memory that a step reads, those of its blocks included."""
    if type(step) is Group:
        return [
            x.node
            for node in (*step.nodes, *step.reductions)
            for x in node.args
            if x.node.word not in NOWHERE and not is_held(x, step)
        ]
    found = [x.node for x in step.args]
    if isinstance(step, Loop | Branch):
        for block in step.blocks:
            found.extend(block.reads)
    return found


class Remaking:
    """What readers compute again, as it is one word of what they read anyway, or of an operand of
    the program: the derivative of an outer product reads its cotangent twice and stores nothing.

    The derivative of gelu reads y, 0.5·y, c·y, c·y², tanh u, 1 - tanh u and 1 + tanh u: two arrays
    say it all, and the five others need not be written either. A node is made again only if all
    its readers can: else it lies in memory in any case. No group gets more of them than it had
    operands, and nothing lives longer, so that no chain of them grows.
    """

    def __init__(self, schedule: Schedule, outs: Iterable[Node]) -> None:
        self.schedule = schedule
        kept = set(outs)
        found: dict[Group, list[Node]] = {}
        for step in schedule.steps:
            mine = self._candidates(step) if type(step) is Group else []
            kept.update(set(nodes_read(step)).difference(mine))
            if mine:
                found[step] = mine
        self.touched: set[Group] = set()
        for group, nodes in found.items():
            again = [n for n in nodes if n not in kept]
            if again and len(group.nodes) + len(again) <= MAX_NODES:
                self._remake(group, again)
        self._sweep(set(outs))

    def _candidates(self, group: Group) -> list[Node]:
        """Nodes that the group reads, in an order in which they can be made of its other reads."""
        if group.passes:
            return []
        steps = self.schedule.steps
        reads = [
            x
            for node in (*group.nodes, *group.reductions)
            for x in node.args
            if x.node.word != "literal" and not is_inside(x, group)
        ]
        keys = {x.key() for x in reads}
        askew = {x.node for x in reads if not (x.is_node and x.shape == group.shape)}
        return [
            node
            for node in dict.fromkeys([x.node for x in reads])
            if is_light_word(node.word)
            and node.block is self.schedule
            and node not in askew
            and node not in steps[node.step].alone
            and self._at_hand(node, keys)
        ]

    @staticmethod
    def _at_hand(node: Node, keys: set[Any]) -> bool:
        """Whether a node's operands are read anyway, but for few numbers that repeat, and for one
        operand of the program that is read in its stead."""
        whole = 0
        for v in node.args:
            if v.node.word == "literal" or v.key() in keys:
                continue
            if FEWER * size_of(v.node.shape) <= size_of(node.shape):
                continue
            whole += 1
            if v.node.word not in ("input", "constant") or not v.is_node:
                return False
        return whole <= 1

    def _remake(self, group: Group, nodes: list[Node]) -> None:
        steps = self.schedule.steps
        place = {n: (n.step, steps[n.step].nodes.index(n)) for n in nodes}
        made: dict[Node, Node] = {}

        def here(x: Value) -> Value:
            return Value(made[x.node], x.shape, x.logical) if x.node in made else x

        for old in sorted(nodes, key=place.__getitem__):
            new = Node(old.word, tuple(map(here, old.args)), old.shape, old.dtype, old.attr)
            new.origin = old.origin
            new.block, new.step = group.block, group.number
            group.level[new] = 0
            made[old] = new
            self.touched.add(steps[old.step])
        for node in (*group.nodes, *group.reductions):
            node.args = tuple(map(here, node.args))
        group.nodes[:0] = made.values()

    def _sweep(self, wanted: set[Node]) -> None:
        """Nodes that nobody reads any more are left."""
        if not self.touched:
            return
        for step in self.schedule.steps:
            wanted.update(nodes_read(step))
        for group in self.touched:
            wanted.update([x.node for node in group.reductions for x in node.args])
            for node in reversed(group.nodes):
                if node in wanted:
                    wanted.update([x.node for x in node.args])
            group.nodes = [n for n in group.nodes if n in wanted]


def may_be_parted(group: Group) -> bool:
    """Whether a group's reductions are made in parts where much is reduced."""
    return not group.passes and not any(is_narrow(n.dtype) for n in group.reductions)


def parts_of(group: Group) -> int:
    """In how many parts a group's reductions are made: several if much becomes little."""
    if group.axes is None or not may_be_parted(group):
        return 1
    if size_of(group.reductions[0].shape) > MAX_RESULTS:
        return 1
    most = max([group.shape[d] for d in group.axes])
    return max(1, min(size_of(group.shape) // PART, most, MAX_PARTS))
