"""Locks that a forked child finds open.

The child has one thread, the one that forked. Nobody there would ever let go what another thread of
the parent held at that moment: of 40 children that were forked while four threads called
functions of arrays, seven and more waited for the lock of the settings.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["lock", "rlock"]

# Taking all of them before a fork instead would lock up with a thread that holds one and waits for
# another. What they guard are single steps on dicts and lists, none of which is seen half done.
_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def _open() -> None:
    for each in list(_locks):
        each._at_fork_reinit()


os.register_at_fork(after_in_child=_open)


def lock() -> threading.Lock:
    """A `threading.Lock` that nobody holds in a forked child."""
    made = threading.Lock()
    _locks.add(made)
    return made


def rlock() -> Any:
    """A `threading.RLock` that nobody holds in a forked child."""
    made = threading.RLock()
    _locks.add(made)
    return made
