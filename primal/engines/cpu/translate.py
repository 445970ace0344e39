"""From a jaxpr to a schedule: every equation's kernel rule speaks, or its `impl` becomes a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from primal.base.dtypes import physical_dtype
from primal.base.source import format_location
from primal.engines.cpu.graph import Node, Value, native
from primal.engines.cpu.schedule import SOURCES, Group, Schedule, Step, is_inside
from primal.engines.cpu.steps import Library
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
    steps: list[Step]
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
    for eqn in jaxpr.eqns:
        _equation(words, eqn, env)
    outputs = [v.val if type(v) is Literal else _whole(words, env[v]) for v in jaxpr.outvars]
    steps, stored = _scheduled(words.order, outputs)
    return Translated(inputs, outputs, steps, stored)


def _equation(words: Words, eqn: Eqn, env: dict[Any, Any]) -> None:
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
        mark = len(words.order)
        try:
            operands = [
                words.literal(v.val, v.aval.dtype) if type(v) is Literal else env[v]
                for v in eqn.invars
            ]
            results: Any = rule(words, *operands, **eqn.params)
        except Unsupported as e:
            del words.order[mark:]
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
    words.order.append(Library(op, eqn.params, args, outs, reason))


def _readable(words: Words, x: Value) -> Value:
    """The value as a view of an array, which scalars and counts are not."""
    return words.copy(x) if x.node.word in ("literal", "iota") else x


def _whole(words: Words, x: Value) -> Value:
    """The value as all of an array: an output pins no bigger one, and nothing repeats in it."""
    if x.node.word in ("literal", "iota"):
        return words.copy(x)
    return x if x.strides is None or native(x.dtype) is None else words.copy(x)


def _scheduled(
    order: Sequence[Any], outputs: Sequence[Any]
) -> tuple[list[Step], dict[int, list[Node]]]:
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
    for item in order:
        if type(item) is Library:
            for x in item.args:
                need(x)
    schedule = Schedule()
    for item in order:
        if type(item) is Node:
            if id(item) in needed:
                schedule.add(item)
        elif type(item) is Library or any(id(n) in needed for n in item.outs):
            schedule.append(item)
    return schedule.steps, _stored(schedule.steps, outputs)


def _stored(steps: Sequence[Step], outputs: Sequence[Any]) -> dict[int, list[Node]]:
    wanted: set[int] = {id(x.node) for x in outputs if isinstance(x, Value)}
    for step in steps:
        if isinstance(step, Group):
            for node in (*step.nodes, *step.reductions):
                wanted.update([id(x.node) for x in node.args if not is_inside(x, step)])
        else:
            wanted.update([id(x.node) for x in step.args if isinstance(x, Value)])
    return {
        step.number: [n for n in step.nodes if id(n) in wanted]
        for step in steps
        if isinstance(step, Group)
    }


__all__ = ["SOURCES", "Translated", "translate"]
