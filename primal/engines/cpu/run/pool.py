"""The threads of this process: how many there may be, and the state that they share.

What they do is in `jobs`.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
from typing import Any

from primal.base import forks
from primal.base.config import config
from primal.base.threads import threads
from primal.engines.cpu.code import LINE
from primal.engines.cpu.run.jobs import CONDITION, MUTEX, SETUP, STATE


class Pool:
    """The state that the driver's global points to, and when it changes.

    Helpers start with the first job. A forked child, which has none of them, gets a state of its
    own. States that were given up stay in memory: some job may still be looking at one.
    """

    def __init__(self, place: int, finish: int) -> None:
        self._place = ctypes.c_void_p.from_address(place)
        self._finish = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(finish)
        self._libc = ctypes.CDLL(None)
        self._kept: list[Any] = []
        self._lock = forks.lock()
        self._fresh()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self.stop)
        config.on_update("num_threads", self._changed)

    @property
    def helpers(self) -> int:
        """Helpers that were started."""
        state = self._place.value
        return ctypes.c_int64.from_address(state + SETUP + 24).value if state else 0

    def _fresh(self) -> None:
        count = threads()
        if count == 1:
            self._place.value = None
            return
        room = ctypes.create_string_buffer(STATE + LINE)
        self._kept.append(room)
        state = -(-ctypes.addressof(room) // LINE) * LINE
        self._libc.pthread_mutex_init(ctypes.c_void_p(state + MUTEX), None)
        self._libc.pthread_cond_init(ctypes.c_void_p(state + CONDITION), None)
        ctypes.c_int64.from_address(state + SETUP).value = count
        self._place.value = state

    def _forked(self) -> None:
        self._fresh()

    def _changed(self, _: int) -> None:
        self.stop()
        with self._lock:
            self._fresh()

    def stop(self) -> None:
        """End the helpers; programs run in the caller's thread alone."""
        with self._lock:
            state = self._place.value
            self._place.value = None
        if state:
            self._finish(state)


@functools.cache
def attach(place: int, finish: int) -> Pool:
    """The pool of this process, for the driver with these addresses."""
    global current
    current = Pool(place, finish)
    return current


current: Pool | None = None
"""The pool of this process, once there is a driver."""
