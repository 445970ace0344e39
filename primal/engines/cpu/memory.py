"""Where intermediate results lie: one arena, whose parts are used again after the last reader."""

from __future__ import annotations

from collections.abc import Sequence

LINE = 64
"""Bytes that a vector or a cache line has; every buffer begins at a multiple of it."""


def plan(buffers: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Offsets for buffers of (bytes, first step, last step), and the size of the arena.

    Two buffers overlap only if no step needs both. The biggest are placed first, each at the
    lowest offset that is free over its whole life.

    >>> plan([(100, 0, 1), (100, 1, 2), (100, 2, 3)])
    ([0, 128, 0], 256)
    """
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int, int, int]] = []
    total = 0
    for i in sorted(range(len(buffers)), key=lambda i: -buffers[i][0]):
        size, first, last = buffers[i]
        size = -(-size // LINE) * LINE
        at = 0
        for start, stop, born, died in placed:
            if start >= at + size:
                break
            if born <= last and first <= died:
                at = max(at, stop)
        offsets[i] = at
        placed.append((at, at + size, first, last))
        placed.sort()
        total = max(total, at + size)
    return offsets, total
