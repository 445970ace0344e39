"""Values, constants, regions and functions: what every method of the builder stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import as_dtype
from primal.engines.xla.builder.types import (
    array_literal,
    kind_of,
    physical,
    scalar_literal,
    tensor,
)
from primal.ir.avals import Aval, Typed

Region = Callable[..., Any]
Ints = Sequence[int]


class Value(Typed):
    """A name in the program, its type as text and its aval."""

    __slots__ = ("name", "type", "aval")

    def __init__(self, name: str, type: str, aval: Aval) -> None:
        self.name = name
        self.type = type
        self.aval = aval

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.type})"


class Constant(Value):
    """A constant that is written where it is first named, once per block.

    Most scalars are only ever broadcast, and a broadcast constant is written as a splat of the
    bigger type; an eagerly written scalar would then be dead text that XLA spends 40 us reading.
    """

    __slots__ = ("literal", "core")

    def __init__(self, core: Core, literal: str, aval: Aval) -> None:
        self.core = core
        self.literal = literal
        self.type = tensor(aval)
        self.aval = aval

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.core.place_constant(self.literal, self.type)


class Core:
    """The text under construction and the state that names and scopes need."""

    def __init__(self, platform: str = "cpu") -> None:
        self.platform = platform
        self.custom_targets: set[str] = set()
        self.lines: list[str] = []
        self.count = 0
        # Constants by block, innermost last. None marks a region that must not see outside.
        self.scopes: list[dict[tuple[str, str], str] | None] = [{}]
        self.scalars: dict[Any, Constant] = {}
        self.callbacks: list[tuple[Callable[..., Any], tuple[Aval, ...]]] = []
        self.mark: Value | None = None  # the result of the last ordered call of the host

    @property
    def in_order(self) -> bool:
        """Whether the equation being lowered has effects whose order counts."""
        return False

    # Naming and writing.

    def fresh(self, aval: Aval) -> Value:
        """A value with a new name, defined by text that the caller writes."""
        n = self.count
        self.count = n + 1
        return Value(f"%{n}", aval.mlir or tensor(aval), aval)

    def write(self, text: str, aval: Aval) -> Value:
        """One line that defines one value."""
        n = self.count
        self.count = n + 1
        self.lines.append(f"%{n} = {text}")
        return Value(f"%{n}", aval.mlir or tensor(aval), aval)

    def results(self, outs: Sequence[Aval]) -> tuple[str, list[Value]]:
        """The left-hand side for several results, and the values."""
        if not outs:
            return "", []
        n = self.count
        self.count = n + 1
        if len(outs) == 1:
            return f"%{n} = ", [Value(f"%{n}", tensor(outs[0]), outs[0])]
        values = [Value(f"%{n}#{i}", tensor(a), a) for i, a in enumerate(outs)]
        return f"%{n}:{len(outs)} = ", values

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        outs: Sequence[Aval],
        attrs: str = "",
        regions: Sequence[tuple[Sequence[Aval], Region]] = (),
        isolated: bool = True,
    ) -> list[Value]:
        """The operation in generic form.

        Regions are isolated unless said otherwise: they write their own constants. Only while,
        case and if may mention outer values.
        """
        heads = ", ".join([x.name for x in operands])
        types = ", ".join([x.type for x in operands])
        attrs = f" <{{{attrs}}}>" if attrs else ""
        if not regions:
            left, values = self.results(outs)
            self.lines.append(f'{left}"{name}"({heads}){attrs} : ({types}) -> {_types(values)}')
            return values
        at = len(self.lines)
        self.lines.append("")
        for i, (avals, body) in enumerate(regions):
            if i:
                self.lines.append("}, {")
            self.region(avals, body, isolated)
        left, values = self.results(outs)
        self.lines[at] = f'{left}"{name}"({heads}){attrs} ({{'
        self.lines.append(f"}}) : ({types}) -> {_types(values)}")
        return values

    def region(self, avals: Sequence[Aval], body: Region, isolated: bool) -> list[Value]:
        """The block of a region, between its braces; returns what it returns."""
        args = [self.fresh(a) for a in avals]
        if args:
            self.lines.append(f"^bb0({', '.join([f'{a.name}: {a.type}' for a in args])}):")
        depth = len(self.scopes)
        if isolated:
            self.scopes.append(None)
        self.scopes.append({})
        outs = as_values(body(self, *args))
        names = ", ".join([x.name for x in outs])
        self.lines.append(
            f"stablehlo.return {names} : {', '.join([x.type for x in outs])}"
            if outs
            else "stablehlo.return"
        )
        del self.scopes[depth:]
        return outs

    # Constants.

    def place_constant(self, literal: str, type: str) -> str:
        """The name of a constant visible from here, written now if there is none."""
        key = (literal, type)
        for scope in reversed(self.scopes):
            if scope is None:
                break
            if key in scope:
                return scope[key]
        n = self.count
        self.count = n + 1
        self.lines.append(f"%{n} = stablehlo.constant dense<{literal}> : {type}")
        here = self.scopes[-1]
        assert here is not None  # A mark is always followed by the block's own dictionary.
        here[key] = f"%{n}"
        return f"%{n}"

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A NumPy array or scalar as a constant; scalars cost nothing until they are used."""
        array = np.asarray(value)
        dtype = array.dtype if dtype is None else as_dtype(dtype)
        if not array.ndim:
            return self.scalar(array[()], dtype)
        literal = array_literal(array, dtype)
        return Constant(self, literal, Aval(array.shape, dtype))

    def scalar(self, value: Any, dtype: Any) -> Constant:
        """A rank-0 constant."""
        # By bytes or text, not by value: 0.0 == -0.0, nan != nan and True == 1.
        text = value.tobytes() if isinstance(value, np.generic) else repr(value)
        key = (text, value.__class__, dtype)
        found = self.scalars.get(key)
        if found is None:
            found = Constant(self, scalar_literal(value, dtype), Aval((), dtype))
            self.scalars[key] = found
        return found

    def full(self, shape: Ints, value: Any, dtype: Any) -> Value:
        """An array filled with one scalar."""
        dtype = as_dtype(dtype)
        aval = Aval(tuple(shape), dtype)
        return Constant(self, scalar_literal(value, dtype) if aval.size else "", aval)

    def full_like(self, x: Value, value: Any) -> Value:
        """`full` with the shape and dtype of x."""
        return self.full(x.aval.shape, value, x.aval.dtype)


def as_values(result: Any) -> list[Value]:
    """What a rule or a body returned, as a list."""
    return [result] if isinstance(result, Value) else list(result)


def _types(values: Iterable[Value]) -> str:
    types = [v.type for v in values]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def ints(values: Iterable[int]) -> str:
    """`[1, 2]`, without NumPy's spelling of its integers."""
    return f"[{', '.join([str(int(v)) for v in values])}]"


def i64s(values: Iterable[int]) -> str:
    """The attribute `array<i64: 1, 2>`."""
    text = ", ".join([str(int(v)) for v in values])
    return f"array<i64: {text}>" if text else "array<i64>"


__all__ = [
    "Constant",
    "Core",
    "Ints",
    "Region",
    "Value",
    "as_values",
    "i64s",
    "ints",
    "kind_of",
    "physical",
]
