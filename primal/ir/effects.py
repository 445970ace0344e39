"""What an equation does besides computing its outputs."""

from __future__ import annotations

from typing import Any


class Effect:
    """Effects of one class and name are equal. Plain classes, as dataclasses slow the import."""

    __slots__ = ("name",)

    def __init__(self, name: Any) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class NamedAxis(Effect):
    """The equation communicates over a named axis."""

    __slots__ = ()


class Ordered(Effect):
    """The equation must run exactly once and in program order with others of its name."""

    __slots__ = ()


class Unordered(Effect):
    """The equation must run, at any time its operands allow."""

    __slots__ = ()


def keeps_alive(effects: frozenset[Any]) -> bool:
    """Whether an equation with these effects stays when nobody uses its outputs."""
    return any(not isinstance(e, NamedAxis) for e in effects)
