"""What an equation does besides computing its outputs."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class NamedAxis:
    """The equation communicates over a named axis."""

    name: Any


@dataclasses.dataclass(frozen=True)
class Ordered:
    """The equation must run exactly once and in program order with others of its label."""

    label: str


@dataclasses.dataclass(frozen=True)
class Unordered:
    """The equation must run, at any time its operands allow."""

    label: str


def keeps_alive(effects: frozenset[Any]) -> bool:
    """Whether an equation with these effects stays when nobody uses its outputs."""
    return any(not isinstance(e, NamedAxis) for e in effects)
