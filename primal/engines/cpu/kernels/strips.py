"""Vectors along a range: whole ones, then the rest under a mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from primal.engines.cpu.code import SCALAR
from primal.engines.cpu.lanes import (
    COMBINE,
    compare,
    constant,
    emit,
    extremum_of_numbers,
    is_extremum,
    select,
)
from primal.engines.cpu.monoids import identity

Turn = Callable[[str, str | None, list[str]], list[str]]
"""(where a vector begins, its lanes or None for all, carried values) -> the next values."""


def strips(
    w: Any, start: str, stop: str, carried: list[tuple[str, str]], turn: Turn, size: str = ""
) -> list[str]:
    """`turn(i, mask, values)` over vectors of [start, stop): whole ones, then the rest.

    `size`: of the row, of which start, and stop where it is not the end, are whole vectors. So the
    mask is the same for all rows.
    """
    c = w.c
    count = c.new(f"and i64 {c.new(f'sub i64 {stop}, {start}')}, {-c.lanes}")
    whole, step = c.new(f"add i64 {start}, {count}"), str(c.lanes)
    types = [t for t, _ in carried]
    if w.light:
        now = c.loop(start, whole, step, carried, lambda i, now: turn(i, None, now))
        given = list(zip(types, now, strict=True))
        mask = w.mask(c.new(f"and i64 {size}, {-c.lanes}"), size) if size else w.mask(whole, stop)
        left = c.new(f"icmp slt i64 {whole}, {stop}")
        out: list[str] = c.guarded(left, given, lambda: turn(whole, mask, now))
        return out

    # The body once: both are turns of one loop around, outside of which masks are known.
    def part(_: str, now: list[str]) -> list[str]:
        begin, end, *values = now
        mask = w.mask(begin, end)
        given = list(zip(types, values, strict=True))
        out = c.loop(begin, end, step, given, lambda i, now: turn(i, mask, now))
        return [end, stop, *out]

    out = c.loop("0", "2", "1", [("i64", start), ("i64", whole), *carried], part)[2:]
    return out


def along_row(
    w: Any,
    start: str,
    n: str,
    monoids: list[tuple[str, str]],
    firsts: list[tuple[str, str]],
    turn: Turn,
    size: str = "",
) -> list[str]:
    """`turn(i, mask, totals)` over vectors of [start, n), the last one masked; the totals.

    Of light bodies accumulators take turns, for the next sum not to wait for this one. Extrema of
    floats are those of numbers then: behind the totals `turn` is given, and returns, in which lanes
    of each there was a NaN, so that no vector waits for that (30,000 rows of 20: 152 to 108 µs).
    """
    c, count = w.c, len(firsts)
    if not w.light:
        return strips(w, start, n, firsts, turn, size)
    spare = [
        (c.vec(SCALAR[dtype]), constant(c, dtype, identity(monoid, dtype)))
        for monoid, dtype in monoids
    ]
    apart = [k for k, kind in enumerate(monoids) if is_extremum(*kind)]
    before = [
        (c.vec("i1"), compare(c, "ne", monoids[k][1], firsts[k][1], firsts[k][1])) for k in apart
    ]

    def turns(i: str, mask: str | None, now: list[str]) -> list[str]:
        made = turn(i, mask, [*now[:count], *now[2 * count :]])
        return [*now[count : 2 * count], *made]

    both = strips(w, start, n, [*firsts, *spare, *before], turns, size)
    met = dict(zip(apart, both[2 * count :], strict=True))
    totals = []
    for k, (monoid, dtype) in enumerate(monoids):
        pair = both[k], both[count + k]
        if k in met:
            total = extremum_of_numbers(c, monoid, dtype, *pair)
            total = select(c, dtype, met[k], constant(c, dtype, math.nan), total)
        else:
            total = emit(c, COMBINE[monoid], [dtype, dtype], dtype, list(pair))
        totals.append(total)
    return totals
