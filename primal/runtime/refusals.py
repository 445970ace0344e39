"""What a function says that is called with what it does not take: `[op] expected …, got …`.

Its annotations say what it takes. They are read when a call has failed, so that calls which succeed
pay for nothing but the frame that waits for the failure (0.06 µs); checks before each call would
state the annotations again, parameter by parameter.

What a function raises on purpose without these words, in NumPy's or JAX's, keeps its class, and its
text at the end: programs look for both.
"""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import inspect
import opcode
import operator
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from primal.base.errors import UnhashableArgumentError, filter_traceback
from primal.base.source import is_internal
from primal.ir.trace import Array
from primal.ops.types import is_hashable

F = TypeVar("F", bound=Callable[..., Any])

WORDS = re.compile(r"\[[^\]]+\] expected")
LENGTH = 80
KINDS = (
    TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError,
)  # fmt: skip
RAISE = opcode.opmap["RAISE_VARARGS"]
# Where errors come from that are about what the library was given: itself, and what it calls.
CALLED = ("numpy", "ml_dtypes", "scipy", "opt_einsum")
NUMBERS: dict[Any, Callable[[Any], Any]] = {bool: bool, int: operator.index, float: float}


def in_words(fun: F) -> F:
    """Decorate a function that users call: what it fails on for its arguments' sake is named.

    Errors in words, and those of functions that the user hands over, pass as they are.

    >>> lax.tile(jnp.ones(3), 5)
    Traceback (most recent call last):
        ...
    TypeError: [tile] expected reps: Sequence[int], got 5.
    """

    return functools.wraps(fun)(worded(fun))  # type: ignore[return-value]


TOO_LONG = "array is too big"
"""How NumPy begins to say that the size of an array is no number of 64 bits."""


def worded(fun: F) -> F:
    """`in_words` for what is called in the function's place, and nowhere asked for its name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            if not _is_for_arguments(error):
                # Often of a function that the user handed over: its line is to come last.
                filter_traceback(error)
                raise
            refusal = _refusal(fun, args, kwargs, error)
        raise refusal

    return call  # type: ignore[return-value]


def _is_for_arguments(error: Exception) -> bool:
    """Whether an error was raised by the library, or by what it calls, and has no words yet."""
    if WORDS.match(str(error)) or not isinstance(error, KINDS):
        return False
    # What `debug_nans` finds is a result, and the library's own errors are in words.
    if isinstance(error, FloatingPointError) or type(error).__module__.startswith("primal"):
        return False
    if isinstance(error, RuntimeError) and not _is_meant(error):
        return False
    found = [sys.modules[name] for name in CALLED if name in sys.modules]
    called = (*[os.path.join(m.__path__[0], "") for m in found], contextlib.__file__)
    tb = error.__traceback__
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        if not (is_internal(name) or name.startswith(called)):
            return False
        tb = tb.tb_next
    return True


def _refusal(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception:
    """The error to raise in place of `error`."""
    name = fun.__name__
    kind = ValueError if isinstance(error, ValueError | ArithmeticError | IndexError) else TypeError
    kind = OverflowError if isinstance(error, OverflowError) else kind
    meant = _is_meant(error)
    kind, tail = (type(error), f": {error}") if meant else (kind, ".")
    kinds = inspect.signature(fun).parameters
    try:
        given = inspect.signature(fun).bind(*args, **kwargs).arguments
    except TypeError as e:
        said = ", ".join(map(shown, args)) or "none"
        return TypeError(f"[{name}] expected the arguments ({', '.join(kinds)}), got {said}: {e}.")
    hints = _hints(fun)
    for parameter, value in given.items():
        # What *args is annotated with, each of them is.
        starred = kinds[parameter].kind is inspect.Parameter.VAR_POSITIONAL
        if not all(_fits(v, hints.get(parameter, Any)) for v in (value if starred else [value])):
            wanted = fun.__annotations__[parameter]
            unhashable = not starred and not is_hashable(value)
            if unhashable and kind is not OverflowError and not meant:
                kind = UnhashableArgumentError
            return kind(f"[{name}] expected {parameter}: {wanted}, got {shown(value)}{tail}")
    said = ", ".join([f"{parameter}={shown(value)}" for parameter, value in given.items()])
    if type(error) is ValueError and str(error).startswith(TOO_LONG):
        # As programs say it. Arrays without elements may be too long as well.
        return MemoryError(
            f"[{name}] expected arrays of fewer than 2**63 bytes, lengths of 0 not counted, "
            f"got {said}."
        )
    return kind(f"[{name}] expected arguments that go together, got {said}: {error}")


def _is_meant(error: Exception) -> bool:
    """Whether the library raises it; otherwise something failed that it calls."""
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or not is_internal(tb.tb_frame.f_code.co_filename):
        return False
    if tb.tb_frame.f_code.co_name == "__getattr__":
        return False  # a name that an array has not: whoever asks for it did not mean to raise
    return tb.tb_frame.f_code.co_code[tb.tb_lasti] == RAISE


def shown(value: Any) -> str:
    """A value, or what is known of an array, in few characters."""
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > LENGTH:
            return f"{text[:LENGTH]}…"
    return text


def _pieces(value: Any) -> Iterator[str]:
    """The text of a value. Of containers no more is read than is asked for: a list of lists of
    lists may take half a minute, and one that holds itself has no end."""
    if isinstance(value, Array | np.ndarray):
        yield f"{value.dtype}[{','.join(map(str, value.shape))}]"
    elif type(value) is dict:
        yield "{"
        for i, (key, item) in enumerate(value.items()):
            yield f"{', ' * (i > 0)}{key!r}: "
            yield from _pieces(item)
        yield "}"
    elif type(value) in (list, tuple):
        yield "[" if type(value) is list else "("
        for i, item in enumerate(value):
            yield ", " * (i > 0)
            yield from _pieces(item)
        yield "]" if type(value) is list else "," * (len(value) == 1) + ")"
    else:
        yield repr(value)


def _hints(fun: Callable[..., Any]) -> dict[str, Any]:
    """The annotations as types; those that cannot be read say nothing."""
    hints = {}
    scope = vars(sys.modules[fun.__module__])
    for parameter, text in fun.__annotations__.items():
        try:
            hints[parameter] = eval(text, scope) if isinstance(text, str) else text
        except (NameError, TypeError):
            hints[parameter] = Any
    return hints


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says, read as Python's protocols do."""
    if hint is Any or hint is inspect.Parameter.empty or isinstance(hint, TypeVar):
        return True
    if hint is None:
        return value is None
    if hint is Array and isinstance(value, np.ndarray | np.generic):
        return True  # taken wherever ours are
    origin = typing.get_origin(hint)
    inner = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if origin is collections.abc.Callable or hint is collections.abc.Callable:
        return callable(value)
    if hint in NUMBERS:
        try:
            NUMBERS[hint](value)
        except Exception:
            return False
        return not isinstance(value, str | bytes)
    if origin in (tuple, list, collections.abc.Sequence, collections.abc.Iterable):
        return _is_sequence(value, origin, inner)
    return not isinstance(hint, type) or isinstance(value, hint)


def _is_sequence(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    if isinstance(value, str | bytes):
        return False
    try:
        items = list(value)
    except TypeError:
        return False
    if origin is tuple and inner[-1] is not Ellipsis:
        return len(items) == len(inner) and all(map(_fits, items, inner))
    return all(_fits(item, inner[0]) for item in items)
