"""transfer_guard: values that move between host and devices without being asked to.

Explicit moves are device_put and device_get; arguments that are NumPy arrays or Python scalars,
and conversions of arrays to NumPy, are implicit. On the CPU, arrays are host memory, so that
reading them moves nothing; what users hand in counts as moving to the device, as it does on others.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
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


def beside_operator(x: Any) -> None:
    """The other operand of an operator of arrays, guarded where a user wrote the operator."""
    if isinstance(x, Array | Literal) or settings().guards is None:
        return
    if state.trace.parent is None and not is_internal(sys._getframe(2).f_code.co_filename):
        host_to_device(x)


def incoming(x: Any) -> None:
    """An operand of an operation that runs at once, guarded where it is the user's array.

    The library's own constants reach operations the same way. A value is the user's when it is an
    argument of the function that the user called; Python scalars, which are shared, cannot be told
    apart like this, and pass.
    """
    if settings().guards is None or isinstance(x, Array | Literal | bool | int | float | complex):
        return
    frame: FrameType | None = sys._getframe(1)
    entry = None
    while frame is not None and is_internal(frame.f_code.co_filename):
        entry = frame
        frame = frame.f_back
    if entry is None:
        return
    for value in list(entry.f_locals.values()):
        if value is x or (type(value) in (tuple, list) and any(v is x for v in value)):
            host_to_device(x)
            return
