"""What programs did, for profiles: which steps ran, when, in which thread.

While a recording is on, the driver writes a line for each step that a program walked to, and one
for the run of it all: 0.1 µs each. While none is, it reads one pointer per table. A loop that is
one kernel is one step. Lines say addresses of records; who these belong to is looked up at the end.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import time
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from primal.base import forks
from primal.base.source import names_of
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.run import driver
from primal.engines.cpu.steps import Library

ROOM = 1 << 20
"""Lines of a recording; later ones are counted only."""
NAMES = 4
"""How many of the equations that ran together are named."""


class Event(NamedTuple):
    """A run of a program (`step` is ""), or of one of its steps; times in nanoseconds since 1970.

    `step` names the equations that it computed, by their scopes.
    """

    program: str
    step: str
    begin: int
    end: int
    thread: int


_lock = forks.lock()
_live: weakref.WeakSet[Any] = weakref.WeakSet()
_kept: list[Any] | None = None
"""While recording, all programs that may run: they are not to leave their addresses to others."""
_book: Any = None
_since = 0


def made(program: Any) -> None:
    """A program is there."""
    with _lock:
        _live.add(program)
        if _kept is not None:
            _kept.append(program)


def live() -> list[Any]:
    """All programs that may run."""
    with _lock:
        return list(_live)


def start() -> None:
    """Begin to record."""
    global _book, _kept, _since
    place = ctypes.c_void_p.from_address(driver.functions()["events"])
    with _lock:
        _kept = list(_live)
        if _book is None:
            # For ever: a run may end after its recording. Pages that no line is on take no memory.
            _book = np.zeros(2 + 4 * ROOM, np.int64)
        _book[0], _book[1], _since = 0, ROOM, time.time_ns()
        place.value = _book.ctypes.data


def stop() -> list[Event]:
    """End the recording; what happened since its start."""
    global _kept
    ctypes.c_void_p.from_address(driver.functions()["events"]).value = None
    with _lock:
        programs, since, _kept = _kept, _since, None
        lines = _book[2 : 2 + 4 * min(int(_book[0]), ROOM)].reshape(-1, 4).tolist()
    programs = programs or []
    mains = {p.table.ctypes.data: p.plan.name for p in programs}
    records = sorted([row for p in programs for row in _records(p)], key=lambda row: row[0])
    begins = [row[0] for row in records]
    label = functools.cache(_label)
    found = []
    for what, begin, end, thread in lines:
        if begin < since:  # a line that is still being written, or a run from before the start
            continue
        if what & 1:
            found.append(Event(mains[what - 1], "", begin, end, thread))
        else:
            _, name, step = records[bisect.bisect(begins, what) - 1]
            found.append(Event(name, label(step), begin, end, thread))
    return found


def _records(program: Any) -> Iterator[tuple[int, str, Any]]:
    """(address, name of the program, step) of all records."""
    for table, begins in program.tables.kept:
        for at, step in begins:
            yield table.ctypes.data + 8 * at, program.plan.name, step


def _label(step: Any) -> str:
    """The equations that a step computes, by their scopes."""
    nodes = [*step.nodes, *step.reductions] if type(step) is Group else step.outs
    names = dict.fromkeys(
        [
            "/".join((*node.origin[0], *names_of(node.origin[1].source), node.origin[1].op.name))
            for node in nodes
            if node.origin is not None
        ]
    )
    if not names:
        return str(step.op.name) if type(step) is Library else "copy"
    more = f" + {len(names) - NAMES} more" if len(names) > NAMES else ""
    return " + ".join(list(names)[:NAMES]) + more
