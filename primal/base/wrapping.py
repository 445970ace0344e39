"""Wrappers that look like what they wrap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def wraps(fun: Any) -> Callable[[F], F]:
    """`functools.wraps` for any callable: names that are no text are left out.

    Objects with attributes of their own (`__getattr__`) may answer anything to `__name__`, which a
    function refuses with a TypeError.
    """
    names = []
    for name in functools.WRAPPER_ASSIGNMENTS:
        kind = {"__name__": str, "__qualname__": str, "__annotations__": dict}.get(name, object)
        if isinstance(getattr(fun, name, None), kind):
            names.append(name)
    decorate: Any = functools.wraps(fun, assigned=names)
    return decorate
