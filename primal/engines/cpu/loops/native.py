"""What every loop that is one function has: its record, and numbers for its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.engines.cpu.graph import Node, Value
from primal.engines.cpu.loops.short_loops import AT, TURN
from primal.engines.cpu.loops.spec import FusedSpec
from primal.engines.cpu.plan.places import Places
from primal.engines.cpu.steps import Loop

PERIOD = 4096
"""Turns between two looks for signals."""


class Native:
    """A loop that is one function, `spec`.

    `words(tables)` are the words of its record from `AT` on; `hidden` the steps that are code of
    the loop, and have none of their own. `carries`, `slices` and `pieces` say which of them it
    moves itself; `runs` how often it takes all turns.
    """

    spec: FusedSpec
    carries: list[bool]
    slices: list[bool]
    pieces: list[bool]
    runs = 1

    def __init__(self, step: Loop, places: Places) -> None:
        self.step = step
        self.places = places
        self.hidden: set[Any] = set()
        self._fixed: list[Callable[[Any], Sequence[int]]] = []
        self._at = AT + 6
        self._count = 0
        self._once: dict[Any, int] = {}
        self._first: list[Any] = []

    @property
    def turn(self) -> float:
        """Nanoseconds of a turn, about."""
        return float(TURN * len(self.spec.items) * self.runs)

    def words(self, tables: Any) -> list[int]:
        """The words from `AT` on: the helpers, then what the items ask for."""
        found = [
            *[tables.functions[n] for n in ("walk", "poll_now", "enter", "advance", "leave")],
            PERIOD - 1,
        ]
        for make in self._fixed:
            found += make(tables)
        assert len(found) == self.spec.words - AT
        return found

    def _words(self, make: Callable[[Any], Sequence[int]], count: int) -> int:
        self._fixed.append(make)
        self._at += count
        return self._at - count

    def _read(self, x: Value, more: int = 0) -> int:
        def make(tables: Any) -> Sequence[int]:
            slot, offset = tables.read(x)
            return slot, offset + more

        return self._words(make, 2)

    def _address(self, node: Node, offset: int = 0) -> int:
        def make(_: Any) -> Sequence[int]:
            slot, base = self.places.address(node)
            return slot, base + offset

        return self._words(make, 2)

    def _moving(self, x: Value, stride: int) -> int:
        """x[0], or the last one, and the bytes to the next."""
        last = (self.step.trips or 1) - 1

        def make(tables: Any) -> Sequence[int]:
            slot, offset = tables.read(x)
            if self.step.reverse:
                return slot, offset + last * stride, -stride
            return slot, offset, stride

        return self._words(make, 3)

    def _literal(self, dtype: str, bits: int) -> int:
        """The register of a number that is known."""
        key = dtype, bits
        if key not in self._once:
            self._once[key] = self._number()
            self._first.append(
                ("literal", self._once[key], dtype, self._words(lambda _: [bits], 1))
            )
        return self._once[key]

    def _numbers(self, *numbers: int) -> int:
        return self._words(lambda _: numbers, len(numbers))

    def _number(self, node: Node | None = None) -> int:
        """A new number, of a node maybe."""
        self._count += 1
        return self._count - 1
