"""Ahead-of-time stages of a jitted function."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from primal.api.stages import ArgInfo, Compiled, Lowered, Traced


@runtime_checkable
class Wrapped(Protocol):
    """What `jit` returns: a function that can be staged before it is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result."""

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """The function as a `Traced` program for such arguments."""

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The function as a `Lowered` program for such arguments."""


__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
