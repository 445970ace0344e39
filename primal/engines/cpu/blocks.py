"""Reductions across vectors by blocks of columns, whose totals lie on the stack."""

from __future__ import annotations

from typing import Any

from primal.engines.cpu.code import MEMORY


def reduce_blocks(w: Any, places: list[str], first: str, last: str) -> None:
    """Reduce across vectors, a block of columns at a time; `w` writes the kernel.

    Rows are read in order: a vector at a time down a long column, six operands 4 KB apart took
    four times as long.
    """
    c, spec = w.c, w.spec
    firsts = w.first_values()

    def totals_at(i: str) -> list[str]:
        at = c.new(f"sub i64 {i}, {first}")
        out = []
        for k in range(len(firsts)):
            base = c.new(f"mul i64 {w.chunk}, {k}")
            place = c.new(f"add i64 {base}, {at}")
            out.append(c.new(f"getelementptr i64, ptr {w.stack}, i64 {place}"))
        return out

    def put(values: list[str], at: list[str]) -> None:
        for (t, _), value, p in zip(firsts, values, at, strict=True):
            c.do(f"store {t} {value}, ptr {p}, align 8")

    def get(at: list[str]) -> list[str]:
        return [c.new(f"load {t}, ptr {p}, align 8") for (t, _), p in zip(firsts, at, strict=True)]

    def begin(i: str, _: list[str]) -> list[str]:
        put([v for _, v in firsts], totals_at(i))
        return []

    def row(d: int, places: list[str]) -> None:
        if d < w.rank:

            def down(j: str, _: list[str]) -> list[str]:
                row(d + 1, w.moved(places, [(d, j)]))
                return []

            c.loop("0", w.sizes[d], "1", [], down)
            return
        known = dict(w.splats)
        w.scalars(places, spec.kept - 1)

        def part(_: str, now: list[str]) -> list[str]:
            begin, stop = now
            mask = w.mask(begin, stop)

            def turn(i: str, _: list[str]) -> list[str]:
                for k, following in ahead:
                    _fetch(w, k, following, i)
                at = totals_at(i)
                values = w.computed(places, i, mask)
                put(w.combined(get(at), values, None), at)
                return []

            c.loop(begin, stop, str(c.lanes), [], turn)
            return [stop, last]

        ahead = [
            (k, w.moved(places, [(d - 1, "1")])[k])
            for k, o in enumerate(spec.operands)
            if (o[0], o[2]) == ("m", "u")
        ]
        c.loop("0", "2", "1", [("i64", first), ("i64", whole)], part)
        w.splats = known

    def end(i: str, _: list[str]) -> list[str]:
        w.column_results(places, i, w.mask(i, last), get(totals_at(i)))
        return []

    c.loop(first, last, str(c.lanes), [], begin)
    count = c.new(f"and i64 {c.new(f'sub i64 {last}, {first}')}, {-c.lanes}")
    whole = c.new(f"add i64 {first}, {count}")
    row(spec.kept, places)
    c.loop(first, last, str(c.lanes), [], end)


def _fetch(w: Any, k: int, place: str, index: str) -> None:
    """Ask for what operand k will be at a place."""
    c = w.c
    p = c.new(f"getelementptr {MEMORY[w.dtypes[k]]}, ptr {place}, i64 {index}")
    c.call_void("llvm.prefetch.p0", ("ptr", p), ("i32", "0"), ("i32", "3"), ("i32", "1"))
