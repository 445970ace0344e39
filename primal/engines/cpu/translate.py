"""From a jaxpr to a schedule: every equation's kernel rule speaks, or its `impl` becomes a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from primal.base.dtypes import physical_dtype
from primal.base.source import format_location
from primal.engines.cpu.graph import Node, Value, native
from primal.engines.cpu.schedule import SOURCES, Group, Library, Schedule, is_inside
from primal.engines.cpu.words import Words
from primal.ir.builders import Unsupported
from primal.ir.jaxpr import Eqn, Jaxpr
from primal.ir.op import Expand, Splice
from primal.ir.op import Library as LibraryRule
from primal.ir.trace import Literal


@dataclasses.dataclass
class Translated:
    """A program as steps. `outputs` are Values, or the values of literals."""

    inputs: list[Node]
    outputs: list[Any]
    steps: list[Group | Library]
    stored: dict[int, list[Node]]
    """Group number -> its nodes that others read."""


def translate(jaxpr: Jaxpr) -> Translated:
    """The steps of a program without constants."""
    words = Words()
    env: dict[Any, Any] = {}
    inputs = []
    for i, v in enumerate(jaxpr.invars):
        node = Node("input", (), v.aval.shape, physical_dtype(v.aval.dtype), i)
        inputs.append(node)
        env[v] = Value(node, v.aval.shape, v.aval.dtype)
    calls: list[tuple[int, Library]] = []
    for eqn in jaxpr.eqns:
        _equation(words, eqn, env, calls)
    outputs = [v.val if type(v) is Literal else _whole(words, env[v]) for v in jaxpr.outvars]
    steps, stored = _scheduled(words.nodes, calls, outputs)
    return Translated(inputs, outputs, steps, stored)


def _equation(words: Words, eqn: Eqn, env: dict[Any, Any], calls: list[Any]) -> None:
    op = eqn.op
    rule = op.kernel
    reason = "its rule is `library`"
    if isinstance(rule, Expand | Splice):
        raise NotImplementedError(
            f"[{op.name}] expected a program whose ops have kernels of their own, got one that is "
            "to be rewritten into others. Simplify the jaxpr first."
        )
    empty = any(not v.aval.size for v in (*eqn.invars, *eqn.outvars))
    if empty:
        reason = "no elements"
    elif not isinstance(rule, LibraryRule):
        mark = len(words.nodes)
        try:
            operands = [
                words.literal(v.val, v.aval.dtype) if type(v) is Literal else env[v]
                for v in eqn.invars
            ]
            results: Any = rule(words, *operands, **eqn.params)
        except Unsupported as e:
            del words.nodes[mark:]
            reason = str(e)
        except Exception as e:
            where = f" at {format_location(eqn.source)}" if eqn.source is not None else ""
            e.add_note(f"While compiling `{op.name}`{where}.")
            raise
        else:
            results = results if op.multiple else (results,)
            for var, value in zip(eqn.outvars, results, strict=True):
                if value.shape != var.aval.shape or value.dtype != var.aval.dtype:
                    raise TypeError(
                        f"[{op.name}] expected its kernel rule to give {var.aval.short()}, as its "
                        f"type rule says, got {value.aval.short()}. This is an error in the op, "
                        "not in your program."
                    )
                env[var] = value
            return
    args = [v if type(v) is Literal else _readable(words, env[v]) for v in eqn.invars]
    outs = []
    for var in eqn.outvars:
        node = Node("library", (), var.aval.shape, physical_dtype(var.aval.dtype), None)
        env[var] = Value(node, var.aval.shape, var.aval.dtype)
        outs.append(node)
    step = Library(op, eqn.params, args, outs, reason)
    # Where the call stands among the nodes: after those that are there already.
    calls.append((len(words.nodes), step))


def _readable(words: Words, x: Value) -> Value:
    """The value as a view of an array, which scalars and counts are not."""
    return words.copy(x) if x.node.word in ("literal", "iota") else x


def _whole(words: Words, x: Value) -> Value:
    """The value as all of an array: an output pins no bigger one, and nothing repeats in it."""
    if x.node.word in ("literal", "iota"):
        return words.copy(x)
    return x if x.strides is None or native(x.dtype) is None else words.copy(x)


def _scheduled(
    nodes: Sequence[Node], calls: Sequence[tuple[int, Library]], outputs: Sequence[Any]
) -> tuple[list[Group | Library], dict[int, list[Node]]]:
    needed: set[int] = set()

    def need(x: Any) -> None:
        stack = [x.node] if isinstance(x, Value) else []
        while stack:
            node = stack.pop()
            if id(node) not in needed:
                needed.add(id(node))
                stack.extend([y.node for y in node.args])

    for x in outputs:
        need(x)
    for _, call in calls:
        for x in call.args:
            need(x)
    schedule = Schedule()
    placed = 0
    for at, call in calls:
        for node in nodes[placed:at]:
            if id(node) in needed:
                schedule.add(node)
        placed = at
        schedule.library(call)
    for node in nodes[placed:]:
        if id(node) in needed:
            schedule.add(node)
    return schedule.steps, _stored(schedule.steps, outputs)


def _stored(steps: Sequence[Group | Library], outputs: Sequence[Any]) -> dict[int, list[Node]]:
    wanted: set[int] = {id(x.node) for x in outputs if isinstance(x, Value)}
    for step in steps:
        if isinstance(step, Library):
            wanted.update([id(x.node) for x in step.args if isinstance(x, Value)])
            continue
        for node in (*step.nodes, *step.reductions):
            wanted.update([id(x.node) for x in node.args if not is_inside(x, step)])
    return {
        step.number: [n for n in step.nodes if id(n) in wanted]
        for step in steps
        if isinstance(step, Group)
    }


__all__ = ["SOURCES", "Translated", "translate"]
