"""Remembering jaxpr -> jaxpr functions for as long as the jaxpr lives."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from primal.base import caches, config
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.state import state

T = TypeVar("T")


def memo_on_jaxpr(fun: Callable[..., T]) -> Callable[..., T]:
    """Memoise on the identity of the first argument and the values of the others.

    Named axes and the configuration belong to the key, as tracing reads both.
    """
    table: weakref.WeakKeyDictionary[ClosedJaxpr, dict[Any, T]] = weakref.WeakKeyDictionary()

    @functools.wraps(fun)
    def remembered(closed: ClosedJaxpr, *args: Any) -> T:
        results = table.get(closed)
        if results is None:
            results = table[closed] = {}
        key = (args, state.axes, config.config.trace_key())
        found = results.get(key)
        if found is None:
            found = results[key] = fun(closed, *args)
        return found

    caches.register(table.clear)
    return remembered
