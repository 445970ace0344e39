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


class RuleEffect(Effect):
    """Not the equation, but its derivative rule does something outside the program."""

    __slots__ = ()


class DebugEffect(Unordered):
    """Output for people: it may run again or for branches not taken, where a transform needs it.

    >>> primal.make_jaxpr(lambda x: primal.debug.print("{}", x))(1.0).effects
    frozenset({DebugEffect('debug')})
    """

    __slots__ = ()

    def __init__(self, name: Any = "debug") -> None:
        super().__init__(name)


class OrderedDebugEffect(Ordered):
    """Output for people, in program order."""

    __slots__ = ()

    def __init__(self, name: Any = "debug") -> None:
        super().__init__(name)


class IOEffect(Unordered):
    """Something outside the program changes, exactly once per execution of the equation."""

    __slots__ = ()

    def __init__(self, name: Any = "io") -> None:
        super().__init__(name)


class OrderedIOEffect(Ordered):
    """As `IOEffect`, in program order."""

    __slots__ = ()

    def __init__(self, name: Any = "io") -> None:
        super().__init__(name)


def is_io(effect: Any) -> bool:
    """Whether an effect changes the world outside, so that running it too often is wrong."""
    return isinstance(effect, Ordered | Unordered) and not isinstance(
        effect, DebugEffect | OrderedDebugEffect
    )


def is_ordered(effects: frozenset[Any]) -> bool:
    """Whether the order of the effects counts."""
    return any(isinstance(e, Ordered) for e in effects)


def keeps_alive(effects: frozenset[Any]) -> bool:
    """Whether an equation with these effects stays when nobody uses its outputs."""
    return any(not isinstance(e, NamedAxis | RuleEffect) for e in effects)
