"""How many threads computations have: programs of the cpu engine, and sums of big arrays."""

from __future__ import annotations

import os

from primal.base.config import config
from primal.base.native import extension

LIMIT = 256
"""The most threads."""


def threads() -> int:
    """How many threads a computation may use: the setting `num_threads`, or the CPUs allowed."""
    wanted = config.num_threads
    if wanted < 1:
        try:
            wanted = len(os.sched_getaffinity(0))
        except AttributeError:  # not on every system
            wanted = os.cpu_count() or 1
    return min(int(wanted), LIMIT)


def _changed(_: int) -> None:
    extension.share_among(threads())


if extension is not None:
    _changed(0)
    config.on_update("num_threads", _changed)
