"""What runs together: elementwise nodes and reductions in groups, library calls by themselves.

Every node is computed once, in one group. One that is read elsewhere is stored there, and never
computed again by its readers: repeating it in each is what makes XLA's programs quadratic in depth.

Steps are numbered in the order they run. A node may join a group when all that it reads is made by
that group, element for element, or by steps before it; so the order needs no other proof.
"""

from __future__ import annotations

from typing import Any

from primal.engines.cpu.graph import Node, Value
from primal.engines.cpu.steps import Library, Routine

MAX_NODES = 96
"""Nodes per group. Compile time grows with the length of straight-line code; and a long chain of
equal pieces falls into equal groups, which share one kernel, when a piece's length divides this."""
WINDOW = 8
"""How many of the latest steps are looked at for a group to join."""
SOURCES = frozenset(("input", "literal", "iota"))
APART = frozenset(("reduce", "library", "routine"))
"""Words of nodes that no group holds in a register, element for element."""
Step = Any
"""Group | Library | Routine."""


class Group:
    """Nodes over one iteration space, and reductions of them over the same axes."""

    __slots__ = ("number", "shape", "nodes", "reductions", "axes", "reads")

    def __init__(self, number: int, shape: tuple[int, ...]) -> None:
        self.number = number
        self.shape = shape
        self.nodes: list[Node] = []
        self.reductions: list[Node] = []
        self.axes: tuple[int, ...] | None = None
        self.reads: set[int] = set()


class Schedule:
    """Steps, built by adding nodes and library calls in program order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def append(self, step: Library | Routine) -> None:
        """Append what is a step by itself."""
        step.number = len(self.steps)
        for node in step.outs:
            node.step = step.number
        self.steps.append(step)

    def add(self, node: Node) -> None:
        """Place an elementwise node or a reduction."""
        if node.word == "reduce":
            self._reduction(node)
        else:
            self._element(node)

    def _element(self, node: Node) -> None:
        lowest, inside = 0, -1
        for x in node.args:
            base = x.node
            if base.word in SOURCES:
                continue
            if x.is_node and base.word not in APART and x.shape == node.shape:
                inside = max(inside, base.step)
            else:
                lowest = max(lowest, base.step + 1)
        lowest = max(lowest, inside)
        group = self._joinable(node, lowest, inside)
        if group is None:
            group = Group(len(self.steps), node.shape)
            self.steps.append(group)
        node.step = group.number
        group.nodes.append(node)
        group.reads.update([id(x.node) for x in node.args if x.node.word != "literal"])

    def _joinable(self, node: Node, lowest: int, inside: int) -> Group | None:
        if inside == lowest and self._fits(inside, node):
            return self.steps[inside]
        # Not a consumer of the group, but a reader of what it reads: one pass over memory less.
        reads = {id(x.node) for x in node.args if x.node.word != "literal"}
        for number in range(len(self.steps) - 1, max(lowest, len(self.steps) - WINDOW) - 1, -1):
            step = self.steps[number]
            if self._fits(number, node) and not reads.isdisjoint(step.reads):
                return step
        return None

    def _fits(self, number: int, node: Node) -> bool:
        step = self.steps[number] if number >= 0 else None
        return (
            type(step) is Group and step.shape == node.shape and len(step.nodes) < MAX_NODES
        )

    def _reduction(self, node: Node) -> None:
        (x,) = node.args
        axes = node.attr[1]
        base = x.node
        group: Any = None
        if x.is_node and base.word not in SOURCES and base.word not in APART:
            group = self.steps[base.step]
        else:
            lowest = 0 if base.word in SOURCES else base.step + 1
            for number in range(len(self.steps) - 1, max(lowest, len(self.steps) - WINDOW) - 1, -1):
                step = self.steps[number]
                if type(step) is Group and step.shape == x.shape and id(base) in step.reads:
                    group = step
                    break
        if group is None or group.axes not in (None, axes):
            group = Group(len(self.steps), x.shape)
            self.steps.append(group)
        group.axes = axes
        group.reductions.append(node)
        group.reads.add(id(base))
        node.step = group.number


def is_inside(x: Value, group: Group) -> bool:
    """Whether a group reads the value in a register: it makes it, element for element."""
    return (
        x.node.step == group.number
        and x.is_node
        and x.shape == group.shape
        and x.node.word not in APART
        and x.node.word not in SOURCES
    )
