"""Wrappers that look like what they wrap."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Transformed(Protocol[P, R_co]):
    """What a transformation makes of a function, to type checkers: its arguments, a result.

    Not `Callable[P, R]`: they say of a lambda, whose arguments have no types, that calling what
    became of it is calling an untyped function.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Transformed[P, R_co]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Transformed[..., R_co]: ...


def check_callable(fun: Any) -> None:
    """Raise TypeError for what no transformation can call: no function, or a generator function.

    A staticmethod object can be called since Python 3.10, but what a class makes of the result
    would be a method, whose first argument is the instance.
    """
    if isinstance(fun, staticmethod):
        raise TypeError(
            f"staticmethod arguments are not supported, got {fun!r}. Write @staticmethod above "
            "the transformation, not below it."
        )
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}.")
    plain = type(fun) is types.FunctionType  # of whose code inspect asks the same in 0.6 us
    if fun.__code__.co_flags & inspect.CO_GENERATOR if plain else inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun!r}.")


def wraps(fun: Any, says: str = "") -> Callable[[Callable[..., Any]], Any]:
    """`functools.wraps` for any callable: names that are no text are left out.

    Objects with attributes of their own (`__getattr__`) may answer anything to `__name__`, which a
    function refuses with a TypeError. `says` tells what became of the function: the docstring then
    begins with it and the function's name.
    """
    if says:
        return lambda wrapper: _titled(wraps(fun)(wrapper), fun, says)
    if type(fun) is types.FunctionType:
        return functools.wraps(fun)
    names = []
    for name in functools.WRAPPER_ASSIGNMENTS:
        kind = {"__name__": str, "__qualname__": str, "__annotations__": dict}.get(name, object)
        if isinstance(getattr(fun, name, None), kind):
            names.append(name)
    return functools.wraps(fun, assigned=names)


def _titled(wrapper: Any, fun: Any, says: str) -> Any:
    own, title = wrapper.__doc__, f"{says} of {getattr(fun, '__name__', fun)}."
    wrapper.__doc__ = f"{title}\n\n{own}" if own else title
    return wrapper
