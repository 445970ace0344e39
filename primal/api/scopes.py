"""Named scopes: names of parts of programs, shown in jaxprs, StableHLO and profiles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from primal.api.operands import name_of
from primal.ir.state import scopes

F = TypeVar("F", bound=Callable[..., Any])


class named_scope:
    """Name the operations in a block; also a decorator. Scopes nest: `outer/inner`.

    TypeError for a name that is no string.

    >>> import primal
    >>> def f(x):
    ...     with named_scope("layer"):
    ...         return x * 2
    >>> print(primal.make_jaxpr(f)(1.0).pretty_print(name_stack=True))
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0 # [layer]
      in (b,) }
    """

    __slots__ = ("name", "_outer")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"[named_scope] expected a string, got {name!r}: named_scope name argument must be "
                "a string."
            )
        self.name = name
        self._outer: list[tuple[str, ...]] = []

    def __enter__(self) -> None:
        self._outer.append(scopes.names)
        scopes.names = (*scopes.names, self.name)

    def __exit__(self, *exc: object) -> None:
        scopes.names = self._outer.pop()

    def __call__(self, fun: F) -> F:
        @functools.wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with named_scope(self.name):
                return fun(*args, **kwargs)

        return scoped  # type: ignore[return-value]


def named_call(fun: F, *, name: str | None = None) -> F:
    """The function with its operations in a scope of its name (or `name`).

    >>> named_call(abs, name="part")(-1)
    1
    """
    return named_scope(name_of(fun) if name is None else name)(fun)
