"""From a jaxpr to blocks of steps: every equation's kernel rule speaks, or its `impl` is a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from primal.base.dtypes import physical_dtype
from primal.base.source import format_location
from primal.base.structures import structure
from primal.engines.cpu.blocks import arranged
from primal.engines.cpu.complexes import ComplexWords, is_complex
from primal.engines.cpu.graph import NOWHERE, Node, Value, native
from primal.engines.cpu.schedule import LIGHT
from primal.engines.cpu.steps import Block, Library
from primal.ir.builders import Unsupported
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from primal.ir.op import ELEMENTWISE, HOST, Expand, Splice
from primal.ir.op import Library as LibraryRule
from primal.ir.trace import Literal


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
    layouts, once, unread = _layouts(jaxpr), _read_once(jaxpr), _unread(jaxpr)
    woven = woven_in(jaxpr)
    outer = words.eqn, words.crossed
    words.crossed = words.crossed | _crossed(jaxpr)
    for eqn in jaxpr.eqns:
        words.layout = layouts.get(eqn.outvars[0]) if eqn.outvars else None
        commutes = eqn.op.name in ("slice", "gather") and eqn.invars[0] in once
        words.once = env[eqn.invars[0]].node if commutes else None
        words.woven = bool(woven) and bool(eqn.outvars) and eqn.outvars[0] in woven
        words.unread = bool(unread) and eqn.outvars[0] in unread if eqn.outvars else False
        words.eqn = eqn
        mark = len(words.order)
        _equation(words, eqn, env)
        origin = words.path, eqn
        for item in words.order[mark:]:
            for node in (item,) if type(item) is Node else item.outs:
                if node.origin is None:
                    node.origin = origin
    words.eqn, words.crossed = outer


def _read_once(jaxpr: Jaxpr) -> set[Any]:
    """Results of gathers, of padding and of reshapes that are read once."""
    made = {eqn.outvars[0] for eqn in jaxpr.eqns if eqn.op.name in ("gather", "pad", "reshape")}
    if not made:
        return made
    read = Counter([v for eqn in jaxpr.eqns for v in eqn.invars if v in made])
    read.update([v for v in jaxpr.outvars if v in made])
    return {v for v in made if read[v] == 1}


def woven_in(jaxpr: Jaxpr) -> set[Any]:
    """Concatenations that only light words read, and sums of windows that one sum reads."""
    made = {v for e in jaxpr.eqns if e.op.name in ("concatenate", "scatter-add") for v in e.outvars}
    if made:
        made.difference_update([v for v in jaxpr.outvars if v in made])
        read: Counter[Any] = Counter()
        for eqn in jaxpr.eqns:
            here = [v for v in eqn.invars if v in made]
            if eqn.op.name not in LIGHT and eqn.op.name != "add_any":
                made.difference_update(here)
            read.update(here)
        sums = [e.outvars[0] for e in jaxpr.eqns if e.op.name == "scatter-add"]
        made.difference_update([v for v in sums if read[v] > 1])
    return made


def _crossed(jaxpr: Jaxpr) -> set[Any]:
    """Shapes to which some arrays are padded along rows, and others along other dimensions."""
    found: set[Any] = set()
    for eqn in jaxpr.eqns:
        if eqn.op.name == "pad":
            shape = eqn.outvars[0].aval.shape
            padded = [any(edges) for edges in eqn.params["padding_config"]]
            found.update([(shape, True)] if any(padded[-1:]) else [])
            found.update([(shape, False)] if any(padded[:-1]) else [])
    return {shape for shape, along in found if along and (shape, False) in found}


def _unread(jaxpr: Jaxpr) -> set[Any]:
    """Orthogonal factors of which only the triangular ones are read."""
    made = {eqn.outvars[0] for eqn in jaxpr.eqns if eqn.op.name == "qr"}
    if made:
        made.difference_update([v for eqn in jaxpr.eqns for v in eqn.invars if v in made])
        made.difference_update([v for v in jaxpr.outvars if v in made])
    return made


def _layouts(jaxpr: Jaxpr) -> dict[Any, Sequence[int]]:
    """The order of dimensions of products and elementwise results that all their readers want.

    Those are transpositions, for which it is the permutation, and elementwise equations whose own
    readers want it.
    """
    if not any(eqn.op.name == "transpose" for eqn in jaxpr.eqns):
        return {}
    read = Counter([v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal])
    read.update([v for v in jaxpr.outvars if type(v) is not Literal])
    wanted: Counter[tuple[Any, Any]] = Counter()
    found: dict[Any, Sequence[int]] = {}
    orders: dict[Any, Any] = {}
    for eqn in reversed(jaxpr.eqns):
        order = None
        if eqn.op.name == "transpose":
            order = eqn.params["permutation"]
        elif eqn.outvars:
            out = eqn.outvars[0]
            order = orders.get(out)
            if order is not None and wanted[out, order] != read[out]:
                order = None
            if order is not None and (eqn.op.kind is ELEMENTWISE or eqn.op.name == "dot_general"):
                found[out] = order
            if eqn.op.kind is not ELEMENTWISE:
                continue
        if order is not None:
            for v in eqn.invars:
                if type(v) is not Literal and len(v.aval.shape) == len(order):
                    wanted[v, order] += 1
                    orders[v] = order
    return found


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
