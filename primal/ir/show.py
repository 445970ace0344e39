"""The printed form of jaxprs."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.source import format_location, names_of
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, install_printers
from primal.ir.trace import Literal

_WIDTH = 80


class Names:
    """Names for variables in the order they are met: a … z, ba, bb, …"""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}

    def of(self, var: Var) -> str:
        if var not in self.names:
            self.names[var] = letters(len(self.names))
        return self.names[var]


def letters(i: int) -> str:
    """The i-th name: base 26 with digits a to z."""
    text = ""
    while True:
        i, digit = divmod(i, 26)
        text = chr(ord("a") + digit) + text
        if not i:
            return text


class Style:
    """What is shown beside the equations, and the names met so far."""

    __slots__ = ("names", "source", "scopes", "shapes")

    def __init__(self, source: bool, scopes: bool, shapes: bool) -> None:
        self.names = Names()
        self.source = source
        self.scopes = scopes
        self.shapes = shapes

    def typed(self, var: Var, used: bool = True) -> str:
        """A variable where it is bound; one that nobody reads needs no name."""
        name = self.names.of(var) if used else "_"
        return f"{name}:{var.aval.short()}" if self.shapes else name

    def comment(self, eqn: Eqn) -> str:
        """What stands beside an equation."""
        parts = []
        if self.source and eqn.source is not None:
            parts.append(format_location(eqn.source, full_path=True))
        if self.scopes:
            parts.append(f"[{'/'.join(names_of(eqn.source))}]")
        return f" # {' '.join(parts)}" if parts else ""


def show_jaxpr(
    jaxpr: Jaxpr, source_info: bool = False, name_stack: bool = False, print_shapes: bool = True
) -> str:
    """The text of a jaxpr, e.g. `{ lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }`."""
    return "\n".join(_lines(jaxpr, Style(source_info, name_stack, print_shapes)))


def show_eqn(eqn: Eqn) -> str:
    """The text of an equation alone, its variables named as they are met: `a:f32[2] = sin b`."""
    return "\n".join(_eqn(eqn, Style(False, False, True), set(eqn.outvars)))


def _lines(jaxpr: Jaxpr, style: Style) -> list[str]:
    used = {v for eqn in jaxpr.eqns for v in eqn.invars} | set(jaxpr.outvars)
    consts = " ".join(map(style.typed, jaxpr.constvars))
    args = " ".join(map(style.typed, jaxpr.invars))
    head = f"{{ lambda {consts}; {args}. let"
    body: list[str] = []
    for eqn in jaxpr.eqns:
        body.extend(_eqn(eqn, style, used))
    outs = [_atom(v, style) for v in jaxpr.outvars]
    result = f"in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}"
    if not style.source and not style.scopes:
        line = f"{head} {'; '.join(body)} {result}"
        if len(body) == len(jaxpr.eqns) and len(line) <= _WIDTH:
            return [line]
    return [head, *("    " + text for text in body), f"  {result}"]


def _atom(atom: Any, style: Style) -> str:
    if isinstance(atom, Literal):
        return _scalar(atom.val, atom.aval)
    return style.names.of(atom)


def _scalar(value: Any, aval: Aval) -> str:
    if dtypes.issubdtype(aval.dtype, np.floating):
        return str(float(value))
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        return str(complex(value))
    return str(value)


def _eqn(eqn: Eqn, style: Style, used: set[Any]) -> list[str]:
    targets = " ".join([style.typed(v, v in used) for v in eqn.outvars])
    shown = eqn.op.show(eqn.params) if eqn.op.show else eqn.params
    fields = sorted((k, v) for k, v in shown.items() if v is not None)
    operands = [_atom(a, style) for a in eqn.invars]
    tail = (" " + " ".join(operands)) if operands else ""
    comment = style.comment(eqn)
    head = f"{targets} = {eqn.title}" if targets else eqn.title
    if not any(_has_jaxpr(v) for _, v in fields):
        inside = " ".join(f"{k}={_param(v)}" for k, v in fields)
        line = f"{head}{'[' + inside + ']' if inside else ''}{tail}"
        if len(line) <= _WIDTH or not fields:
            return [line + comment]
        return [head + "[" + comment, *(f"  {k}={_param(v)}" for k, v in fields), "]" + tail]
    lines = [head + "[" + comment]
    for key, value in fields:
        lines.extend("  " + line for line in _param_lines(key, value, style))
    return [*lines, "]" + tail]


def _has_jaxpr(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_jaxpr(v) for v in value)
    return isinstance(value, ClosedJaxpr | Jaxpr)


def _param_lines(key: str, value: Any, style: Style) -> list[str]:
    if not _has_jaxpr(value):
        return [f"{key}={_param(value)}"]
    if isinstance(value, tuple):
        lines = [f"{key}=("]
        for item in value:
            lines.extend("  " + line for line in _sub(item, style))
        return [*lines, ")"]
    first, *rest = _sub(value, style)
    return [f"{key}={first}", *rest]


def _sub(value: Any, style: Style) -> list[str]:
    jaxpr = value.jaxpr if isinstance(value, ClosedJaxpr) else value
    return _lines(jaxpr, style)


def _param(value: Any) -> str:
    if isinstance(value, np.dtype | dtypes.KeyType):
        return value.name
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        # As Python shows tuples: (Precision.HIGHEST, ...) where str alone would say HIGHEST.
        inside = [repr(v) if isinstance(v, str | enum.Enum) else _param(v) for v in value]
        return f"({', '.join(inside)}{',' if len(value) == 1 else ''})"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


install_printers(show_jaxpr, show_eqn)
