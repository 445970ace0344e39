"""Reductions across vectors: one result per lane, in registers or in blocks on the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primal.engines.cpu.code import MEMORY, SCALAR
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels.strips import Turn, strips
from primal.engines.cpu.lanes import emit
from primal.engines.cpu.monoids import accumulator

STRIP, WIDEST_STRIP = 4, 64
"""Vectors of a strip of columns, and its elements at most."""
WIDEST = 8
"""Bytes of the widest number that is added up."""
ROWS = 8
"""Rows whose columns are added up in registers before their totals go back to the stack."""


def reduce_columns(w: Any, places: list[str], first: str, last: str) -> None:
    """The results of columns [first, last); `w` writes the kernel."""
    if w.stack:
        _by_blocks(w, places, first, last)
    else:
        _by_strips(w, places, first, last)


def _by_strips(w: Any, places: list[str], first: str, last: str) -> None:
    """Down the rows, a strip of columns at a time."""
    c, spec = w.c, w.spec

    def nest(
        d: int, i: str, places: list[str], totals: list[str], mask: str | None
    ) -> list[str]:
        if d == w.rank:
            w.scalars(places)
            out: list[str] = w.combined(totals, w.computed(places, i, mask), None)
            return out
        firsts = [(t, v) for (t, _), v in zip(w.first_values(), totals, strict=True)]
        turns: list[str] = c.loop(
            *w.bounds(d), "1", firsts,
            lambda j, now: nest(d + 1, i, w.moved(places, [(d, j)]), now, mask),
        )  # fmt: skip
        return turns

    def turn(i: str, mask: str | None, _: list[str]) -> list[str]:
        totals = nest(spec.kept, i, places, [v for _, v in w.first_values()], mask)
        _store(w, places, i, mask, totals)
        return []

    def reduced() -> None:
        _across(w, first, last, turn)

    _either(w, places, first, last, reduced)


def _across(w: Any, first: str, last: str, turn: Turn) -> None:
    """`turn` over the columns: of light bodies by strips of several vectors, then by single ones.

    A few cache lines of each row at a time: one takes a fifth longer over 2000 x 2000. What is left
    of 17 to 63 columns by a strip under a mask took twice as long as by vectors.
    """
    if not w.light:
        strips(w, first, last, [], turn)
        return
    c, lanes = w.c, w.c.lanes
    wide = min(STRIP * lanes, WIDEST_STRIP)
    count = c.new(f"and i64 {c.new(f'sub i64 {last}, {first}')}, {-wide}")
    stop = c.new(f"add i64 {first}, {count}")
    known = w.splats, w.inverses

    def spread(i: int, x: str) -> str:
        few = f"<{lanes} x {SCALAR[w.dtypes[i]]}>"
        return c.new(f"shufflevector {few} {x}, {few} poison, <{wide} x i32> zeroinitializer")

    w.splats = {i: spread(i, x) for i, x in w.splats.items()}
    w.inverses = {i: [spread(i, x) for x in found] for i, found in w.inverses.items()}
    c.lanes = wide
    c.loop(first, stop, str(wide), [], lambda i, _: turn(i, None, []))
    c.lanes, (w.splats, w.inverses) = lanes, known
    strips(w, stop, last, [], turn)


def _by_blocks(w: Any, places: list[str], first: str, last: str) -> None:
    """Across the rows, in order, adding to totals on the stack.

    A vector at a time down a long column, six operands 4 KB apart took four times as long.
    """
    c, spec = w.c, w.spec

    def totals_at(i: str) -> list[str]:
        at = c.new(f"sub i64 {i}, {first}")
        out = []
        for k, (_, wide) in enumerate(w.monoids()):
            skip = c.new(f"mul i64 {w.chunk}, {k * WIDEST}")
            base = c.new(f"getelementptr i8, ptr {w.stack}, i64 {skip}")
            out.append(c.new(f"getelementptr {SCALAR[wide]}, ptr {base}, i64 {at}"))
        return out

    def put(values: list[str], at: list[str]) -> None:
        for (t, _), value, p in zip(w.first_values(), values, at, strict=True):
            c.do(f"store {t} {value}, ptr {p}, align 8")

    def get(at: list[str]) -> list[str]:
        types = [t for t, _ in w.first_values()]
        return [c.new(f"load {t}, ptr {p}, align 8") for t, p in zip(types, at, strict=True)]

    def begin(i: str, _: list[str]) -> list[str]:
        put([v for _, v in w.first_values()], totals_at(i))
        return []

    def down(d: int, places: list[str]) -> None:
        """The loops outside of the last one, then its rows."""
        if d < w.rank - 1:

            def turn(j: str, _: list[str]) -> list[str]:
                down(d + 1, w.moved(places, [(d, j)]))
                return []

            c.loop(*w.bounds(d), "1", [], turn)
            return
        start, stop = w.bounds(d)
        if w.light:
            c.loop(start, stop, str(ROWS), [], lambda j, _: some(d, places, j, stop))
        else:
            c.loop(start, stop, "1", [], lambda j, _: row(d, w.moved(places, [(d, j)])))

    def some(d: int, places: list[str], j: str, stop: str) -> list[str]:
        """A few rows, a strip of columns at a time."""
        end = c.new(f"add i64 {j}, {ROWS}")
        end = c.call("llvm.smin.i64", "i64", ("i64", end), ("i64", stop))

        def turn(i: str, mask: str | None, _: list[str]) -> list[str]:
            at = totals_at(i)

            def add(j: str, totals: list[str]) -> list[str]:
                here = w.moved(places, [(d, j)])
                w.scalars(here)
                out: list[str] = w.combined(totals, w.computed(here, i, mask), None)
                return out

            given = [(t, v) for (t, _), v in zip(w.first_values(), get(at), strict=True)]
            put(c.loop(j, end, "1", given, add), at)
            return []

        _across(w, first, last, turn)
        return []

    def row(d: int, places: list[str]) -> list[str]:
        """One row, while the next one is asked for."""
        known = dict(w.splats)
        w.scalars(places)
        following = w.moved(places, [(d, "1")])
        ahead = [k for k, o in enumerate(spec.operands) if (o[0], o[2]) == ("m", "u")]

        def turn(i: str, mask: str | None, _: list[str]) -> list[str]:
            for k in ahead:
                _fetch(w, k, following[k], i)
            at = totals_at(i)
            values = w.computed(places, i, mask)
            put(w.combined(get(at), values, None), at)
            return []

        strips(w, first, last, [], turn)
        w.splats = known
        return []

    def end(i: str, _: list[str]) -> list[str]:
        _store(w, places, i, w.mask(i, last), get(totals_at(i)))
        return []

    def reduced() -> None:
        c.loop(first, last, str(c.lanes), [], begin)
        down(spec.kept, places)
        _vectors(w, first, last, end)

    _either(w, places, first, last, reduced)


def _either(
    w: Any, places: list[str], first: str, last: str, reduced: Callable[[], None]
) -> None:
    """The columns reduced; or, in the second run, what their parts gave."""
    if w.parts is None:
        reduced()
        return

    def collect(i: str, _: list[str]) -> list[str]:
        mask = w.mask(i, last)
        _store(w, places, i, mask, w.parts.down(i, mask, w.first_values()), True)
        return []

    w.c.chosen(w.parts.second, lambda: _vectors(w, first, last, collect), reduced)


def _vectors(
    w: Any, first: str, last: str, turn: Callable[[str, list[str]], list[str]]
) -> None:
    """A loop over single vectors of columns.

    Strips of several take LLVM as many times as long, and are no faster where so little is done.
    """
    c, lanes = w.c, w.c.lanes
    c.lanes = min(lanes, w.module.width // WIDEST)
    c.loop(first, last, str(c.lanes), [], turn)
    c.lanes = lanes


def _store(
    w: Any, places: list[str], i: str, mask: str | None, totals: list[str], second: bool = False
) -> None:
    """The results of a strip of columns."""
    together = 1 + w.spec.joined
    for k in range(0, len(totals), together):
        _settle(w, k, totals[k : k + together], places, i, mask, second)


def _settle(
    w: Any, k: int, totals: list[str], places: list[str], i: str, mask: str | None, second: bool
) -> None:
    """The results of reduction k, or of this and the next one as parts of complex numbers."""
    spec = w.spec
    monoid, ref, out = spec.reductions[k]
    wide = accumulator(monoid, w.dtypes[ref])
    place = places[len(spec.operands) + len(spec.stores) + k]

    def final() -> None:
        values = totals
        if wide != out:
            values = [emit(w.c, "convert", [wide], out, [total]) for total in totals]
        if spec.joined:
            kind = next(c for c, part in PART.items() if part == out)
            w.store(kind, emit(w.c, "complex", [out, out], kind, values), place, i, mask)
        else:
            w.store(out, values[0], place, i, mask)

    if w.parts is None or second:
        final()
        return
    for j, total in enumerate(totals):
        w.parts.put(
            k + j, final if j == 0 else lambda: None,
            lambda between, total=total: w.store(wide, total, between, i, mask),
        )  # fmt: skip


def _fetch(w: Any, k: int, place: str, index: str) -> None:
    """Ask for what operand k will be at a place."""
    c = w.c
    p = c.new(f"getelementptr {MEMORY[w.dtypes[k]]}, ptr {place}, i64 {index}")
    c.call_void("llvm.prefetch.p0", ("ptr", p), ("i32", "0"), ("i32", "3"), ("i32", "1"))
