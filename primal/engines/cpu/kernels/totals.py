"""Reductions along vectors: one number per row, or per coordinate of points."""

from __future__ import annotations

from typing import Any

from primal.engines.cpu.code import itemsize
from primal.engines.cpu.kernels.strips import along_row
from primal.engines.cpu.lanes import across, narrowed, store_scalar
from primal.engines.cpu.monoids import accumulator


def reduce_row(w: Any, places: list[str]) -> None:
    """Reduce along the vectors, then across the lanes: one scalar per row.

    `w` writes the kernel.
    """
    c, spec = w.c, w.spec

    def nest(d: int, places: list[str], totals: list[str]) -> list[str]:
        firsts = [(t, v) for (t, _), v in zip(w.first_values(), totals, strict=True)]
        if d < w.rank - 1:
            turns: list[str] = c.loop(
                *w.bounds(d), "1", firsts,
                lambda i, now: nest(d + 1, w.moved(places, [(d, i)]), now),
            )  # fmt: skip
            return turns
        w.scalars(places)
        start, stop = w.bounds(d)
        return along_row(
            w, start, stop, w.monoids(), firsts,
            lambda i, mask, now: w.combined(now, w.computed(places, i, mask), mask),
            w.sizes[d],
        )  # fmt: skip

    firsts = w.first_values()

    def first() -> None:
        totals = nest(spec.kept, places, [v for _, v in firsts])
        put_totals(w, totals, places)

    if w.parts is None:
        first()
    else:
        c.chosen(w.parts.second, lambda: put_parts(w, firsts, places), first)


def put_parts(w: Any, firsts: list[tuple[str, str]], places: list[str]) -> None:
    """The second run: numbers, not vectors, whose code would take as long as that of the first."""
    lanes, w.c.lanes = w.c.lanes, 1
    put_totals(w, w.parts.along(firsts), places, True)
    w.c.lanes = lanes


def put_totals(w: Any, totals: list[str], places: list[str], second: bool = False) -> None:
    """Store totals, as many of each coordinate as there are reductions; `second` those of parts."""
    for n, total in enumerate(totals):
        _put(w, n, total, places, second)


def _put(w: Any, number: int, total: str, places: list[str], second: bool) -> None:
    """Reduce a total across its lanes, and store it."""
    c, spec = w.c, w.spec
    group, k = divmod(number, len(spec.reductions))
    monoid, ref, out = spec.reductions[k]
    wide = accumulator(monoid, w.dtypes[ref])
    scalar = across(c, monoid, wide, total)
    result = places[len(spec.operands) + len(spec.stores) + k]
    if group:
        step = itemsize(out) * (1 + spec.joined)
        result = c.new(f"getelementptr i8, ptr {result}, i64 {group * step}")

    def final() -> None:
        store_scalar(c, out, scalar if wide == out else narrowed(c, wide, out, scalar), result)

    if w.parts is None or second:
        final()
    else:
        w.parts.put(number, final, lambda place: store_scalar(c, wide, scalar, place))
