"""From a jaxpr to blocks of steps: every equation's kernel rule speaks, or its `impl` is a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.dtypes import physical_dtype
from primal.base.source import format_location
from primal.base.structures import structure
from primal.engines.cpu.complexes.words import ComplexWords, is_complex
from primal.engines.cpu.graph import NOWHERE, Node, Value, native
from primal.engines.cpu.plan.blocks import arranged
from primal.engines.cpu.plan.outlook import Outlook
from primal.engines.cpu.steps import Block, Library
from primal.ir.builders import Unsupported
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from primal.ir.op import HOST, Expand, Splice
from primal.ir.op import Library as LibraryRule
from primal.ir.trace import Literal

LIGHT = frozenset(
    "add add_any sub mul neg square conj real imag complex select_n eq ne".split()
)
"""Ops of complex numbers that are light words of their parts, of columns as of rows."""


@structure
class Translated:
    """A program as a block. `outputs` are Values, or the values of literals."""

    inputs: list[Node]
    outputs: list[Any]
    block: Block

    @property
    def steps(self) -> list[Any]:
        """The steps of the outermost block."""
        return self.block.steps

    @property
    def stored(self) -> dict[int, list[Node]]:
        """Group number -> its nodes that others read."""
        return self.block.stored


def translate(jaxpr: Jaxpr) -> Translated:
    """The steps of a program without constants."""
    words = ComplexWords(_inline)
    env: dict[Any, Any] = {}
    inputs = []
    for i, v in enumerate(jaxpr.invars):
        node = Node("input", (), v.aval.shape, physical_dtype(v.aval.dtype), i)
        inputs.append(node)
        env[v] = Value(node, v.aval.shape, v.aval.dtype)
    _equations(words, jaxpr, env)
    outputs = [v.val if type(v) is Literal else _whole(words, env[v]) for v in jaxpr.outvars]
    made = dict.fromkeys([x.node for x in outputs if isinstance(x, Value)])
    return Translated(inputs, outputs, arranged(words.order, list(made)))


def _inline(words: ComplexWords, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
    """The equations of a carried program, here; its results."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    for v, c in zip(jaxpr.constvars, closed.consts, strict=True):
        env[v] = words.constant(c, v.aval)
    _equations(words, jaxpr, env)
    return [_atom(words, v, env) for v in jaxpr.outvars]


def _atom(words: ComplexWords, v: Any, env: dict[Any, Any]) -> Value:
    if type(v) is not Literal:
        return env[v]
    if native(v.aval.dtype) is None and not is_complex(v.aval.dtype):
        return words.constant(v.val, v.aval)
    return words.literal(v.val, v.aval.dtype)


def _equations(words: ComplexWords, jaxpr: Jaxpr, env: dict[Any, Any]) -> None:
    outlook = Outlook(jaxpr)
    outer = words.eqn, words.crossed
    words.crossed = words.crossed | outlook.crossed
    for eqn in jaxpr.eqns:
        out = eqn.outvars[0] if eqn.outvars else None
        words.layout = outlook.orders.get(out)
        words.woven, words.unread = out in outlook.woven, out not in outlook.read
        light = eqn.op.name in LIGHT or not any(
            is_complex(v.aval.dtype) for v in (*eqn.invars, *eqn.outvars)
        )
        words.columns = light and out not in outlook.reduced
        x: Any = eqn.invars[0] if eqn.invars else None
        words.once = env[x].node if outlook.read[x] == 1 else None
        words.eqn = eqn
        mark = len(words.order)
        _equation(words, eqn, env)
        for v in [v for v in eqn.outvars if outlook.read[v] > 1]:
            words.shared.update({p.node: outlook.read[v] for p in env[v].parts if p.is_node})
        origin = words.path, eqn
        for item in words.order[mark:]:
            for node in (item,) if type(item) is Node else item.outs:
                if node.origin is None:
                    node.origin = origin
    words.eqn, words.crossed = outer


def _equation(words: ComplexWords, eqn: Eqn, env: dict[Any, Any]) -> None:
    op = eqn.op
    rule = op.kernel
    reason = "its rule is `library`"
    if isinstance(rule, Expand | Splice):
        raise NotImplementedError(
            f"[{op.name}] expected a program whose ops have kernels of their own, got one that is "
            "to be rewritten into others. Simplify the jaxpr first."
        )
    if not eqn.effects and eqn.outvars and not any(v.aval.size for v in eqn.outvars):
        for var in eqn.outvars:
            env[var] = words.empty(var.aval)
        return
    if not isinstance(rule, LibraryRule):
        mark = len(words.order)
        try:
            # Control flow has a use for arrays without elements, which no kernel may see.
            if op.higher is None and not all(v.aval.size for v in (*eqn.invars, *eqn.outvars)):
                raise Unsupported("no elements")
            results: Any = rule(words, *[_operand(words, v, env) for v in eqn.invars], **eqn.params)
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
    read = [v if type(v) is Literal else words.given(env[v], op.kind is HOST) for v in eqn.invars]
    outs = []
    for var in eqn.outvars:
        node = Node("library", (), var.aval.shape, physical_dtype(var.aval.dtype), None)
        env[var] = Value(node, var.aval.shape, var.aval.dtype)
        outs.append(node)
    words.order.append(Library(op, eqn.params, read, outs, reason, bool(eqn.effects)))


def _operand(words: ComplexWords, v: Any, env: dict[Any, Any]) -> Value:
    return _literal(words, v) if type(v) is Literal else env[v]


def _literal(words: ComplexWords, v: Literal) -> Value:
    """Whole numbers above 2 may be sizes, which equal other numbers of a program by chance."""
    apart = v.aval.dtype.kind in "iu" and abs(int(v.val)) > 2
    return words.literal(v.val, v.aval.dtype, v if apart else None)


def _whole(words: ComplexWords, x: Value) -> Value:
    """The value as all of an array: an output pins no bigger one, and nothing repeats in it."""
    x = words.plain(x)
    return x if x.strides is None and x.node.word not in NOWHERE else words.copy(x)


__all__ = ["Translated", "translate"]
