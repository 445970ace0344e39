"""Calls and imports of libraries, which take long and which Ctrl-C is to end."""

from __future__ import annotations

import _imp
import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["patiently", "unbroken"]

T = TypeVar("T")

LONG = 1 << 25
"""Elements times columns of an operand from which a factorisation takes some 10 ms and more."""


def patiently(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(*arrays, **params)`, which the main thread lets another compute where it is long.

    A library answers no signal, and Python only between two bytecodes of the main thread, which
    therefore waits where signals find it. What was interrupted goes on unheard until it is done, on
    copies of its operands. Starting a thread takes 0.1 ms.

    >>> patiently(np.linalg.det)(np.eye(2))
    np.float64(1.0)
    """

    @functools.wraps(function)
    def call(*arrays: Any, **params: Any) -> Any:
        for x in arrays:
            if x.size * (x.shape[-1] if x.ndim else 1) > LONG:
                break
        else:
            return function(*arrays, **params)
        return unbroken(functools.partial(function, *[np.array(x) for x in arrays], **params))

    return call


def unbroken(function: Callable[[], T]) -> T:
    """`function()`, for which the main thread waits: Ctrl-C ends the wait, and not the call.

    So are extensions imported: one made with pybind11 that is interrupted raises an ImportError,
    and some of its types cannot be made a second time. Within a finder of `sys.meta_path` they are
    imported at once: Python holds the lock there that another thread's import waits for.

    >>> unbroken(lambda: 1 + 1)
    2
    """
    if threading.current_thread() is not threading.main_thread() or _imp.lock_held():
        return function()
    found: list[T] = []
    failed: list[BaseException] = []
    done = threading.Lock()
    done.acquire()

    def work() -> None:
        try:
            found.append(function())
        except BaseException as e:
            failed.append(e)
        finally:
            done.release()

    run = contextvars.copy_context().run
    try:
        threading.Thread(target=run, args=(work,), name="primal-long", daemon=True).start()
    except RuntimeError:  # the interpreter is ending, or has all the threads it may have
        return function()
    # A signal that comes between Python's last look and the wait wakes nobody: look again.
    while not done.acquire(timeout=0.05):
        continue
    if failed:
        raise failed.pop()
    return found.pop()
