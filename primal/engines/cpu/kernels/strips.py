"""Vectors along a range: whole ones, then the rest under a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primal.engines.cpu.code import SCALAR
from primal.engines.cpu.lanes import COMBINE, constant, emit
from primal.engines.cpu.monoids import identity

ACCUMULATORS = 2
"""Of each reduction along rows."""
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

    Of light bodies accumulators take turns, for the next sum not to wait for this one.
    """
    c, count = w.c, len(firsts)
    if not w.light:
        return strips(w, start, n, firsts, turn, size)
    spare = [
        (c.vec(SCALAR[dtype]), constant(c, dtype, identity(monoid, dtype)))
        for monoid, dtype in monoids
    ]
    totals = strips(
        w, start, n, [*firsts, *spare * (ACCUMULATORS - 1)],
        lambda i, mask, now: [*now[count:], *turn(i, mask, now[:count])], size,
    )  # fmt: skip
    for _ in range(1, ACCUMULATORS):
        split = len(totals) - count
        totals, more = totals[:split], totals[split:]
        totals[:count] = [
            emit(c, COMBINE[m], [dtype, dtype], dtype, [x, y])
            for (m, dtype), x, y in zip(monoids, totals, more, strict=False)
        ]
    return totals
