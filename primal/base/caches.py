"""One registry of all that can be forgotten, so that `clear_caches` has one place to call."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from primal.base import forks

__all__ = ["clear_all", "memo", "register", "weak_memo"]

F = TypeVar("F", bound=Callable[..., Any])

_clearers: list[Callable[[], object]] = []
_lock = forks.lock()


def register(clear: Callable[[], object]) -> Callable[[], object]:
    """Add a function of no arguments that empties one cache; returns it (a decorator too)."""
    with _lock:
        _clearers.append(clear)
    return clear


def clear_all() -> None:
    """Empty every registered cache.

    >>> calls = []
    >>> @memo
    ... def square(x):
    ...     calls.append(x)
    ...     return x * x
    >>> square(3), square(3), len(calls)
    (9, 9, 1)
    >>> clear_all()
    >>> square(3), len(calls)
    (9, 2)
    """
    for clear in tuple(_clearers):
        clear()


def memo(fun: F | None = None, maxsize: int | None = 4096, *, typed: bool = False) -> Any:
    """Remember the results of a function of hashable arguments, the least recently used go first.

    `typed` keeps 1, 1.0 and True apart. Thread-safe; two threads may both compute a first result.
    """
    if fun is None:
        return functools.partial(memo, maxsize=maxsize, typed=typed)
    cached = functools.lru_cache(maxsize=maxsize, typed=typed)(fun)
    register(cached.cache_clear)
    return cached


class _WeakTable:
    """identity of a live object -> {remaining arguments -> result}."""

    __slots__ = ("lock", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}
        self.lock = forks.lock()

    def row(self, subject: Any) -> dict[Any, Any]:
        ident = id(subject)
        found = self.rows.get(ident)
        # The identity check guards against an id reused before the dead row was dropped.
        if found is not None and found[0]() is subject:
            return found[1]

        def drop(ref: weakref.ref[Any]) -> None:
            row = self.rows.get(ident)
            if row is not None and row[0] is ref:
                del self.rows[ident]

        with self.lock:
            found = self.rows.get(ident)
            if found is not None and found[0]() is subject:
                return found[1]
            entries: dict[Any, Any] = {}
            self.rows[ident] = (weakref.ref(subject, drop), entries)
            return entries


def weak_memo(fun: F) -> F:
    """Remember the results of `fun(subject, *hashable)` for as long as `subject` lives.

    The subject is compared by identity and held weakly, so it needs neither hash nor equality. The
    other arguments are compared by equality.

    >>> class Node: ...
    >>> count = []
    >>> @weak_memo
    ... def size(node, unit):
    ...     count.append(unit)
    ...     return len(count)
    >>> n = Node()
    >>> size(n, "k"), size(n, "k"), size(n, "m"), size(Node(), "k")
    (1, 1, 2, 3)
    """
    table = _WeakTable()
    row = table.row

    @functools.wraps(fun)
    def cached(subject: Any, *args: Any) -> Any:
        entries = row(subject)
        try:
            return entries[args]
        except KeyError:
            # Computed outside any lock: `fun` may trace for long and may come back here.
            return entries.setdefault(args, fun(subject, *args))

    def clear() -> None:
        with table.lock:
            table.rows.clear()

    register(clear)
    cached.cache_clear = clear  # type: ignore[attr-defined]
    return cached  # type: ignore[return-value]
