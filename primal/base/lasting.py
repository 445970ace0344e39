"""Which functions are what they are for good, so that what was traced of them may be kept."""

from __future__ import annotations

import functools
import types
from typing import Any

from primal.base.native import extension


class Lasting:
    """Base of what decorators make of functions, and which changes as little as they do."""

    __slots__ = ()


_CLASSES: tuple[type, ...] = (types.FunctionType, Lasting)
if extension is not None:
    _CLASSES = (*_CLASSES, extension.Remembered)


def lasts(fun: Any) -> bool:
    """Whether a trace of `fun` may be kept for its next call.

    What functions close over, and what `functools.partial` holds, counts as fixed, as under `jit`.
    Objects of the user's own classes are traced anew, as their attributes may change.
    """
    while type(fun) is functools.partial:
        fun = fun.func
    return isinstance(fun, _CLASSES)
