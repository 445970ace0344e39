"""What is ambient in a thread: the current trace, named axes, the location being replayed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from primal.base.native import extension


class State(threading.local):
    """`trace` starts as the eager trace, which the runtime installs as the class attribute."""

    trace: Any = None
    axes: tuple[tuple[Any, int], ...] = ()
    location: Any = None
    observer: Any = None  # what the reference tells of every equation that it runs


# The extension's has the same attributes in C, where dispatch reads them without a look-up.
state: Any = State() if extension is None else extension.State()


class Scopes(threading.local):
    """`names` of the scopes around what a thread is tracing, and the trace `at` the innermost.

    Apart from the state, as no fast path reads it.
    """

    names: tuple[str, ...] = ()
    at: Any = None


scopes = Scopes()


roots: list[Any] = []
"""The trace of every thread that runs no transformation, once it is installed."""


def install_root(trace: Any) -> None:
    """Make `trace` the trace of every thread that runs no transformation."""
    roots[:] = [trace]
    if extension is None:
        State.trace = trace
    else:
        extension.install_root(trace)


@contextmanager
def ambient(trace: Any) -> Iterator[None]:
    """Run the body with `trace` as the current trace."""
    previous = state.trace
    state.trace = trace
    try:
        yield
    finally:
        state.trace = previous


@contextmanager
def named_axis(name: Any, size: int) -> Iterator[None]:
    """Make a named axis visible to collectives in the body."""
    previous = state.axes
    state.axes = (*previous, (name, size))
    try:
        yield
    finally:
        state.axes = previous


def axis_size(name: Any) -> int:
    """The size of the innermost axis of that name; NameError when there is none."""
    for found, size in reversed(state.axes):
        if found == name:
            return int(size)
    raise NameError(
        f"[axis_name] expected an axis that is bound, got {name!r}: unbound axis name: {name}. "
        f"Name the axis in a surrounding vmap, as in vmap(f, axis_name={name!r}); bound here: "
        f"{[n for n, _ in state.axes] or 'none'}."
    )
