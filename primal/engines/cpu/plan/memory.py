"""Where intermediate results lie: one arena, whose parts are used again after the last reader."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence

from primal.engines.cpu.code import LINE

PAGE = 4096
LARGE = 1 << 16
"""Bytes from which buffers begin at pages, as results and the arena itself do: where what is
written lies a little behind what is read, in the last 12 bits of addresses, loads wait for stores.
"""


def plan(buffers: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Offsets for buffers of (bytes, at least 1, first step, last step), and the arena's size.

    Two buffers overlap only if no step needs both. They are placed as they come to life, each into
    the smallest free part that holds it. To place the biggest first, wherever their lives allow,
    was as tight on a transformer (0.4 % above what is alive at once) and took 20 times as long.

    >>> plan([(100, 0, 1), (100, 1, 2), (100, 2, 3)])
    ([0, 128, 0], 256)
    """
    offsets = [0] * len(buffers)
    free: list[tuple[int, int]] = []  # (offset, bytes), in order, no two of them neighbours
    alive: list[tuple[int, int, int]] = []  # (last step, offset, bytes), a heap
    total = 0
    for i in sorted(range(len(buffers)), key=lambda i: (buffers[i][1], -buffers[i][0])):
        size, first, last = buffers[i]
        step = PAGE if size >= LARGE else LINE
        size = -(-size // step) * step
        while alive and alive[0][0] < first:
            _, at, n = heapq.heappop(alive)
            _release(free, at, n)
        best = min([(n, at) for at, n in free if n >= size + -at % step], default=None)
        if best is not None:
            n, begin = best
            k = bisect_left(free, (begin, n))
            at = begin + -begin % step
            rests = [(begin, at - begin), (at + size, begin + n - at - size)]
            free[k : k + 1] = [rest for rest in rests if rest[1]]
        else:  # the end grows by what is missing
            begin = free.pop()[0] if free and sum(free[-1]) == total else total
            at = begin + -begin % step
            if at > begin:
                free.append((begin, at - begin))
            total = at + size
        offsets[i] = at
        heapq.heappush(alive, (last, at, size))
    return offsets, total


def _release(free: list[tuple[int, int]], at: int, n: int) -> None:
    """Give a part back, joined with free neighbours."""
    k = bisect_left(free, (at, n))
    if k < len(free) and free[k][0] == at + n:
        n += free.pop(k)[1]
    if k and sum(free[k - 1]) == at:
        k -= 1
        at, m = free.pop(k)
        n += m
    free.insert(k, (at, n))
