"""transfer_guard: values that move between host and devices without being asked to.

Explicit moves are device_put and device_get; arguments that are NumPy arrays or Python scalars,
and conversions of arrays to NumPy, are implicit. On the CPU, arrays are host memory, so that
reading them moves nothing; what users hand in counts as moving to the device, as it does on others.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from types import CodeType, FrameType
from typing import Any

import numpy as np

from primal.base.config import GUARDED, config, settings
from primal.base.errors import PrimalRuntimeError
from primal.base.source import is_internal
from primal.ir.state import state
from primal.ir.trace import Array, Literal, aval_of
from primal.runtime import devices

# Whether any guard was ever set: hot paths read this before the settings.
ever = False


def _levels(values: dict[str, Any]) -> tuple[str, ...] | None:
    """The guards in the order of GUARDED, or None when everything is allowed."""
    global ever
    levels = tuple([values[name] or "allow" for name in GUARDED])
    if all(level == "allow" for level in levels):
        return None
    ever = True
    return levels


config.derive("guards", _levels)
_WORDS = ("host-to-device", "device-to-device", "device-to-host")


def _moves(direction: int, what: str, explicit: bool) -> None:
    levels = settings().guards
    level = "allow" if levels is None else levels[direction]
    if level == "allow" or (explicit and not level.endswith("_explicit")):
        return
    text = f"{_WORDS[direction]} transfer: {what}"
    if level.startswith("log"):
        import logging

        logging.getLogger("primal.transfer").warning("%s", text)
        return
    kind = "explicit" if explicit else "implicit"
    remedy = "device_get" if direction == 2 else "device_put"
    raise PrimalRuntimeError(
        f"[{GUARDED[direction]}] expected no {kind} move, got one: INVALID_ARGUMENT: Disallowed "
        f"{text}."
        + ("" if explicit else f" Move it with primal.{remedy}, which says so.")
    )


def host_to_device(x: Any, explicit: bool = False) -> None:
    """A value of the host becomes an array."""
    if settings().guards is not None:
        aval = aval_of(np.asarray(x) if isinstance(x, list | tuple) else x)
        _moves(0, f"aval={aval!r}, dst_device={devices.default()!r}", explicit)


def device_to_device(x: Any, device: Any) -> None:
    """An array is copied to another device."""
    if settings().guards is not None:
        _moves(1, f"aval={x.aval!r}, dst_device={device!r}", True)


def device_to_host(x: Any, explicit: bool = False) -> None:
    """An array of an accelerator is read."""
    if settings().guards is not None:
        _moves(2, f"aval={x.aval!r}, src_device={x.device!r}", explicit or _reading.depth > 0)


class _Reading(threading.local):
    depth = 0


_reading = _Reading()


class reading:
    """The block reads arrays explicitly, in this thread."""

    def __enter__(self) -> None:
        _reading.depth += 1

    def __exit__(self, *exc: object) -> None:
        _reading.depth -= 1


def _watched(depth: int) -> bool:
    """Whether a guard is set, nothing is traced, and the caller's caller is the user's code."""
    if settings().guards is None or state.trace.parent is not None:
        return False
    return not is_internal(sys._getframe(depth + 1).f_code.co_filename)


def beside_operator(x: Any) -> None:
    """The other operand of an operator of arrays, guarded where a user wrote the operator."""
    if not isinstance(x, Array | Literal) and _watched(2):
        host_to_device(x)


def as_index(index: Any) -> None:
    """An index that a user wrote: integers and host arrays in it, ends of slices of step one."""
    if not _watched(2):
        return
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, slice):
            ends = (item.start, item.stop) if item.step in (None, 1) else ()
            item = next((end for end in ends if end is not None), None)
        if isinstance(item, int | np.integer | np.ndarray | np.bool):
            host_to_device(item)
            return


def incoming(x: Any) -> None:
    """An operand of an operation that runs at once, guarded where the user handed it in.

    The library's own constants reach operations the same way. A value is the user's when it is an
    argument of the function that the user called, and of a parameter that takes arrays: small
    integers are shared objects, and the number of an axis is no operand.
    """
    if settings().guards is None or state.trace.parent is not None:
        return
    if isinstance(x, Array | Literal):
        return
    frame: FrameType | None = sys._getframe(1)
    entry = None
    while frame is not None and is_internal(frame.f_code.co_filename):
        entry = frame
        frame = frame.f_back
    if entry is None:
        return
    given = entry.f_locals
    for name, default in _operands(entry):
        value = given.get(name)
        if value is not default and _holds(value, x):
            host_to_device(x)
            return


def _holds(value: Any, x: Any) -> bool:
    if value is x:
        return True
    if type(value) in (tuple, list):
        return any(_holds(v, x) for v in value)
    if type(value) is dict:
        return any(_holds(v, x) for v in value.values())
    return False


_parameters: dict[CodeType, list[tuple[str, Any]]] = {}
_STATIC = re.compile(r"\b(int|bool|str|Callable|DTypeLike)\b")


def _operands(entry: FrameType) -> list[tuple[str, Any]]:
    """(name, default) of a running function's parameters that its annotations let be arrays."""
    code = entry.f_code
    found = _parameters.get(code)
    if found is None:
        fun: Any = entry.f_globals.get(code.co_qualname.partition(".")[0])
        for name in code.co_qualname.split(".")[1:]:
            fun = getattr(fun, name, None)
        fun = inspect.unwrap(fun) if callable(fun) else None
        if getattr(fun, "__code__", None) is code:
            parameters = inspect.signature(fun).parameters.values()
            given = [(p.name, str(p.annotation), p.default) for p in parameters]
        else:  # a closure: nobody knows
            args, more, named = inspect.getargs(code)
            given = [(name, "Any", None) for name in (*args, more, named) if name]
        found = _parameters[code] = [
            (name, default)
            for name, kind, default in given
            if "Array" in kind or not _STATIC.search(kind)
        ]
    return found
