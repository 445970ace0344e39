"""Threads that want the same thing at once: one makes it while the others wait for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

__all__ = ["turn"]

_changed = threading.Condition()
_owners: dict[Hashable, int] = {}
_waiting: dict[int, Hashable] = {}


@contextmanager
def turn(key: Hashable) -> Iterator[None]:
    """Let one thread at a time into the blocks of this key; look again inside who came first.

    A thread that would wait for itself, directly or because whom it waits for waits for it, is let
    in: functions that call each other while they are traced must not lock each other out. So what
    is in the block may run twice, and only has to be right then.

    >>> made = {}
    >>> with turn("answer"):
    ...     if "answer" not in made:
    ...         made["answer"] = 42
    """
    me = threading.get_ident()
    mine = False
    try:
        with _changed:
            try:
                while key in _owners and not _ends_at(_owners[key], me):
                    _waiting[me] = key
                    _changed.wait()
            finally:
                _waiting.pop(me, None)
            mine = key not in _owners
            if mine:
                _owners[key] = me
        yield
    finally:
        if mine:
            with _changed:
                _owners.pop(key, None)
                _changed.notify_all()


def _ends_at(thread: int, me: int) -> bool:
    """Whether the thread is me, or waits for one of which that is true."""
    while thread != me:
        key = _waiting.get(thread)
        if key not in _owners:
            return False
        thread = _owners[key]
    return True


def _forget() -> None:
    """In a forked child no other thread will ever end its turn."""
    global _changed
    _changed = threading.Condition()
    _owners.clear()
    _waiting.clear()


os.register_at_fork(after_in_child=_forget)
