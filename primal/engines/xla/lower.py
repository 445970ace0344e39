"""From a jaxpr to the text of a StableHLO module: one walk over the equations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primal.base.source import format_location, line_of, names_of
from primal.engines.xla.builder import Builder, Value, tensor
from primal.engines.xla.client import Signature
from primal.ir.avals import Aval
from primal.ir.effects import is_ordered
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from primal.ir.op import Expand, Splice
from primal.ir.trace import Literal

# Bytes above which a constant travels as an argument: as text, XLA spends 12 ms on a megabyte,
# stores it in the executable, and compiles again when its values change.
CONSTANT_LIMIT = 16384


class Lowered(NamedTuple):
    """A module and what is needed to compile and run it.

    `constants` follow the program's own inputs as arguments. `signature.inputs` includes them;
    `signature.donated` tells which donations an output can use.
    """

    text: str
    signature: Signature
    constants: tuple[np.ndarray[Any, Any], ...]
    callbacks: tuple[tuple[Callable[..., Any], tuple[Aval, ...]], ...]


def lower_jaxpr(
    closed: ClosedJaxpr,
    name: str = "main",
    donated: Sequence[bool] = (),
    *,
    platform: str = "cpu",
    locations: bool = False,
) -> Lowered:
    """The StableHLO module of a closed program.

    A donated input is aliased to the first free output of its type; without one the donation is
    dropped. `locations` adds the user's lines, which XLA shows in profiles and errors.

    >>> from primal.ir.jaxpr import Var
    >>> x = Var(Aval((3,), np.dtype('float32')))
    >>> print(lower_jaxpr(ClosedJaxpr(Jaxpr([], [x], [x], [])), "identity").text)
    module @jit_identity {
      func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
        return %arg0 : tensor<3xf32>
      }
    }
    <BLANKLINE>
    """
    jaxpr = closed.jaxpr
    low = Lowering(platform, locations, f"jit({name})")
    args = [Value(f"%arg{i}", tensor(v.aval), v.aval) for i, v in enumerate(jaxpr.invars)]
    outs = low.inline(closed, *args)
    types = [x.type for x in outs]
    aliases = _aliases([a.type for a in args], types, donated)
    low.finish(outs, types)
    extra = [Value(f"%const{i}", tensor(a), a) for i, (_, a) in enumerate(low.hoisted)]
    heads = [
        f"{a.name}: {a.type} {{tf.aliasing_output = {aliases[i]} : i32}}"
        if i in aliases
        else f"{a.name}: {a.type}"
        for i, a in enumerate((*args, *extra))
    ]
    main = _function_text("public @main", heads, types, low.lines)
    text = f"module @jit_{_symbol(name)} {{\n" + "".join([main, *low.functions]) + "}\n"
    signature = Signature(
        tuple([a.aval for a in (*args, *extra)]),
        tuple([v.aval for v in jaxpr.outvars]),
        tuple([i in aliases for i in range(len(args) + len(extra))]),
        frozenset(low.custom_targets),
    )
    return Lowered(text, signature, tuple([c for c, _ in low.hoisted]), tuple(low.callbacks))


class Lowering(Builder):
    """The builder together with the walk over jaxprs, which rules of higher-order ops call back."""

    def __init__(
        self, platform: str = "cpu", locations: bool = False, program: str = "main"
    ) -> None:
        super().__init__(platform)
        self.program = program
        self.eqn: Eqn | None = None
        self.locations = locations
        self.path: tuple[str, ...] = ()
        self.functions: list[str] = []
        self.hoisted: list[tuple[np.ndarray[Any, Any], Aval]] = []
        self.in_main = True
        # Function by jaxpr; the jaxpr is held so that its id stays its own.
        self.called: dict[int, tuple[Jaxpr, str]] = {}
        self.named = 0

    def inline(self, closed_jaxpr: ClosedJaxpr, *args: Value, part: str = "") -> list[Value]:
        """The equations of the jaxpr, written here; the values of its outputs.

        `part`: which part of the equation being lowered that is, for the names in profiles.
        """
        jaxpr = closed_jaxpr.jaxpr
        env: dict[Any, Value] = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, closed_jaxpr.consts, strict=True):
            env[var] = self.bound_constant(value, var.aval)
        outer, eqn = self.eqn, None
        lines, locations, path = self.lines, self.locations, self.path
        if part and outer is not None:
            self.path = (*path, *names_of(outer.source), part)
        start = 0
        try:
            for eqn in jaxpr.eqns:
                self.eqn = eqn
                if locations:
                    start = len(lines)
                operands = [
                    env[v] if v.__class__ is not Literal else self.literal(v) for v in eqn.invars
                ]
                op = eqn.op
                result: Any = op.hlo(self, *operands, **eqn.params)  # type: ignore[operator]
                if op.multiple:
                    self._bind(env, eqn, result)
                else:
                    var = eqn.outvars[0]
                    if result.type != (var.aval.mlir or tensor(var.aval)):
                        raise _wrong_result(eqn, var.aval, result)
                    env[var] = result
                if locations:
                    self._locate(start, eqn)
        except Exception as e:
            if eqn is None:
                raise
            if isinstance(eqn.op.hlo, Expand | Splice):
                raise NotImplementedError(
                    f"[{eqn.op.name}] expected a program whose ops have StableHLO of their own, "
                    "got one that is to be rewritten into others. Simplify the jaxpr first."
                ) from None
            _explain(e, eqn)
            raise
        self.eqn, self.path = outer, path
        return [env[v] if v.__class__ is not Literal else self.literal(v) for v in jaxpr.outvars]

    @property
    def outs(self) -> tuple[Aval, ...]:
        """The avals of the results of the equation being lowered."""
        return () if self.eqn is None else tuple([v.aval for v in self.eqn.outvars])

    @property
    def in_order(self) -> bool:
        """Whether the equation being lowered has effects whose order counts."""
        return self.eqn is not None and bool(self.eqn.effects) and is_ordered(self.eqn.effects)

    @staticmethod
    def _bind(env: dict[Any, Value], eqn: Eqn, results: Sequence[Value]) -> None:
        for var, value in zip(eqn.outvars, results, strict=True):
            if value.type != (var.aval.mlir or tensor(var.aval)):
                raise _wrong_result(eqn, var.aval, value)
            env[var] = value

    def literal(self, atom: Literal) -> Value:
        """A literal of the program as a constant."""
        return self.scalar(atom.val, atom.aval.dtype)

    def bound_constant(self, value: Any, aval: Aval) -> Value:
        """A constant that a closed jaxpr binds: as an argument of `@main` when it is big."""
        array = np.asarray(value)
        # Arguments are visible in the blocks of `@main` alone, isolated regions excepted.
        if array.nbytes > CONSTANT_LIMIT and self.in_main and None not in self.scopes:
            for i, (known, _) in enumerate(self.hoisted):
                if known is array:
                    return Value(f"%const{i}", tensor(aval), aval)
            self.hoisted.append((array, aval))
            return Value(f"%const{len(self.hoisted) - 1}", tensor(aval), aval)
        return self.constant(array, aval.dtype)

    def call(self, closed_jaxpr: ClosedJaxpr, *args: Value, name: str = "f") -> list[Value]:
        """The jaxpr as a function of its own, written once however often it is called."""
        jaxpr = closed_jaxpr.jaxpr
        # Constants bound outside the jaxpr may differ from one closed jaxpr to the next.
        # Nor may effects: their order goes through the caller's values.
        if closed_jaxpr.consts or is_ordered(jaxpr.effects):
            return self.inline(closed_jaxpr, *args)
        found = self.called.get(id(jaxpr))
        if found is None:
            self.named += 1
            found = jaxpr, self._function(closed_jaxpr, f"{_symbol(name)}_{self.named}")
            self.called[id(jaxpr)] = found
        return self.call_function(found[1], args, [v.aval for v in jaxpr.outvars])

    def _function(self, closed: ClosedJaxpr, name: str) -> str:
        kept = self.lines, self.count, self.scopes, self.in_main, self.path
        self.lines, self.count, self.scopes, self.in_main, self.path = [], 0, [{}], False, ()
        args = [
            Value(f"%arg{i}", tensor(v.aval), v.aval) for i, v in enumerate(closed.jaxpr.invars)
        ]
        outs = self.inline(closed, *args)
        types = [x.type for x in outs]
        self.finish(outs, types)
        heads = [f"{a.name}: {a.type}" for a in args]
        self.functions.append(_function_text(f"private @{name}", heads, types, self.lines))
        self.lines, self.count, self.scopes, self.in_main, self.path = kept
        return name

    def finish(self, outs: Sequence[Value], types: Sequence[str]) -> None:
        """The end of a function."""
        names = [x.name for x in outs]
        self.lines.append(f"return {', '.join(names)} : {', '.join(types)}" if outs else "return")

    def _locate(self, start: int, eqn: Eqn) -> None:
        source = eqn.source
        if source is None:
            return
        file, line = source[0].co_filename, line_of(source) or 0
        name = "/".join([self.program, *self.path, *names_of(source), eqn.op.name])
        mark = f" loc({_quoted(name)}({_quoted(file)}:{line}:0))"
        lines = self.lines
        for i in range(start, len(lines)):
            text = lines[i]
            if text[0] in '%"' or text.startswith(("}) :", "stablehlo.custom_call", "func.call")):
                if not text.endswith("({") and " loc(" not in text:
                    lines[i] = text + mark


def _function_text(
    name: str, heads: Sequence[str], types: Sequence[str], lines: Sequence[str]
) -> str:
    """A function with its body indented by regions."""
    text = [f"  func.func {name}({', '.join(heads)}) -> ({', '.join(types)}) {{"]
    indent = "    "
    for line in lines:
        if line[0] == "}":
            indent = indent[2:]
        text.append(indent + line)
        if line[-1] == "{":
            indent += "  "
    text.append("  }\n")
    return "\n".join(text)


def _wrong_result(eqn: Eqn, aval: Aval, value: Value) -> Exception:
    return TypeError(
        f"[{eqn.op.name}] expected its hlo rule to give {tensor(aval)}, as its type rule says, "
        f"got {value.type}. This is an error in the op, not in your program."
    )


def _explain(error: Exception, eqn: Eqn) -> None:
    """Say which equation and line of the user's an error belongs to, unless it is said already."""
    if any(n.startswith("While lowering") for n in getattr(error, "__notes__", ())):
        return
    where = f" at {format_location(eqn.source)}" if eqn.source is not None else ""
    error.add_note(f"While lowering `{eqn.op.name}`{where}.")


def _aliases(ins: Sequence[str], outs: Sequence[str], donated: Sequence[bool]) -> dict[int, int]:
    """Input -> output that takes its memory, for the donated inputs that fit one."""
    free: dict[str, list[int]] = {}
    for i in reversed(range(len(outs))):
        free.setdefault(outs[i], []).append(i)
    found: dict[int, int] = {}
    for i, (type, flag) in enumerate(zip(ins, donated, strict=False)):
        if flag and free.get(type):
            found[i] = free[type].pop()
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _symbol(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_$.]", "_", name).rstrip("_") or "main"


__all__ = ["CONSTANT_LIMIT", "Lowered", "Lowering", "lower_jaxpr"]
