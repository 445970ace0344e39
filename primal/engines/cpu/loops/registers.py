"""Which loops are worth a function of their own, and what of them registers hold (`fused`)."""

from __future__ import annotations

from typing import Any

from primal.engines.cpu.functions import FLOAT
from primal.engines.cpu.graph import (
    IN_REGISTERS,
    NATIVE,
    Node,
    Value,
    bytes_of,
    is_narrow,
    row_major,
    size_of,
)
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.products import Small
from primal.engines.cpu.steps import Block, Branch, Loop, Routine

MOST_STEPS, MOST_WORDS = 80, 1000
"""Above these a body's own work hides what walking it costs, and code is long to compile."""
FEW, FUNCTION = 128, 16
"""Words on all elements which a kernel, on vectors, takes as long for, its call included; how many
of them a mathematical function is worth."""
TERMS = 64
"""Terms of a product which a kernel, on vectors, takes as long for."""
MOST_LANES = 100
"""Words of a loop that goes through its turns for some elements before the next ones."""
ALONE = 1 << 19
"""Words on all elements that one thread computes in a turn, functions being worth 64."""
CACHED = 1 << 19
"""Bytes of rows that strips of elements go down, one after another."""


def in_registers(step: Any, most: int) -> bool:
    """Whether a group is code on registers: on arrays of up to `most` elements."""
    if type(step) is not Group or step.parts > 1 or step.first is not None:
        return False
    if not _is_native(step):
        return False
    size = size_of(step.shape)
    if size == 1:
        return True
    if size > most:
        return False
    if any(is_narrow(node.dtype) for node in step.reductions):
        return False
    words = sum([FUNCTION if n.word in FLOAT else 1 for n in step.nodes])
    return size * words <= FEW


def is_product(step: Any, most: int) -> bool:
    """Whether a routine is products of small matrices of up to `most` elements, in registers."""
    if type(step) is not Routine or type(step.spec) is not Small:
        return False
    size = size_of(step.outs[0].shape)
    most_read = max([size_of(x.shape) for x in step.args])
    return max(size, most_read) <= most and size * step.spec.depth <= TERMS


def is_one(x: Value) -> bool:
    """Whether a view is of one element, at all indices."""
    return x.size == 1 or all(
        n == 1 or step == 0 for n, step in zip(x.shape, x.steps(), strict=True)
    )


def strips_of(step: Loop) -> int:
    """The size of the arrays of a loop whose elements have nothing to do with each other, or 0.

    Where what every turn reads or makes is so much that threads share it, or that its rows leave
    the cache before the next strip of elements comes to them, the turns are taken one by one.
    """
    steps = step.body.steps
    if not steps or not all(_is_apart(s) for s in steps):
        return 0
    own = (*step.params, *step.slices, *step.pieces)
    space = max([size_of(x.shape) for x in (*own, *steps)])
    nodes = [node for s in steps for node in s.nodes]
    sizes = {1, space}
    if space <= IN_REGISTERS or not step.params or len(nodes) > MOST_LANES:
        return 0
    if not all(
        size_of(n.shape) in sizes and n.dtype in NATIVE and not is_narrow(n.dtype)
        for n in (*own, *nodes)
    ):
        return 0
    made = {*nodes, *own}
    if not all(_is_alike(x, space, made) for node in nodes for x in node.args):
        return 0
    if step.again is not None and step.again.size != 1:
        return 0
    work = sum([4 * FUNCTION if node.word in FLOAT else 1 for node in nodes])
    rows = sum([bytes_of(n) for n in (*step.slices, *step.pieces)])
    return 0 if space * work > ALONE or rows * (step.trips or 1) > CACHED else space


def _is_apart(step: Any) -> bool:
    """Whether a step is words on each element, and nothing else."""
    if type(step) is not Group or step.passes or step.parts > 1 or step.first is not None:
        return False
    if step.reductions or step.pieces or step.inner or step.padded:
        return False
    return _is_native(step)


def _is_native(step: Group) -> bool:
    """Whether registers may hold what a group computes and reads: not copies of complex ones."""
    return all(
        x.dtype in NATIVE for node in step.nodes for x in (node, *[a.node for a in node.args])
    )


def _is_alike(x: Value, space: int, made: set[Node]) -> bool:
    """Whether an operand is read element for element, or is one number."""
    if x.node.word == "iota" or x.node.dtype not in NATIVE or is_narrow(x.node.dtype):
        return False
    if x.node.word == "literal":
        return True
    if is_one(x):
        return x.node not in made or size_of(x.node.shape) == 1
    plain = zip(x.shape, x.steps(), row_major(x.shape), strict=True)
    return x.size == space and all(n == 1 or a == b for n, a, b in plain)


def worth_fusing(step: Loop) -> int:
    """Of how many elements arrays may be in registers, 0 where the body hides the loop's cost."""
    steps = list(_steps(step.body))
    if len(steps) > MOST_STEPS:
        return 0
    for most in (IN_REGISTERS, 1):
        groups = [s for s in steps if in_registers(s, most)]
        products = [s for s in steps if is_product(s, most)]
        words = sum([len(s.nodes) * size_of(s.shape) for s in groups])
        words += sum([s.terms * size_of(s.outs[0].shape) for s in products])
        if (groups or products) and words <= MOST_WORDS:
            return most
    return 0


def _steps(block: Block) -> Any:
    for step in block.steps:
        yield step
        if type(step) is Branch:
            for inner in step.blocks:
                yield from _steps(inner)
