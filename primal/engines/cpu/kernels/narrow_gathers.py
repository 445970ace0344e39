"""Elements of one or two bytes that lie apart.

No CPU gathers or scatters them, and LLVM unrolls it: with 14 scatters of 64 lanes a kernel took
it 1.2 s. Those at one stride are read and written by a loop over the lanes, which pass through
memory on the stack, without those that are not wanted. Others are cut out of the words of four
bytes around them.
"""

from __future__ import annotations

from collections.abc import Callable

from primal.engines.cpu.code import MEMORY, Code, itemsize

MOST = 2
"""Bytes of the elements."""


def gather(c: Code, dtype: str, place: str, stride: str, mask: str | None) -> str:
    """Elements `stride` bytes apart; 0 in lanes that are not wanted."""
    kept = MEMORY[dtype]
    t, slot = c.vec(kept), c.on_stack(c.vec(kept))
    if mask is not None:
        c.do(f"store {t} zeroinitializer, ptr {slot}")

    def move(here: str, there: str) -> None:
        c.do(f"store {kept} {c.new(f'load {kept}, ptr {there}')}, ptr {here}")

    _lanes(c, kept, slot, place, stride, mask, move)
    out = c.new(f"load {t}, ptr {slot}")
    return c.new(f"icmp ne {t} {out}, zeroinitializer") if dtype == "b1" else out


def by_words(c: Code, dtype: str, place: str, steps: str, mask: str | None, counts: str) -> str:
    """The elements at so many bytes from the place, each at a multiple of its own size.

    A word at a multiple of four bytes lies in the element's page, so that it may be read whole.
    """
    kept, wide, word = MEMORY[dtype], c.vec(counts), c.vec("i32")
    low = c.new(f"and i64 {c.new(f'ptrtoint ptr {place} to i64')}, 3")
    whole = c.new(f"getelementptr i8, ptr {place}, i64 {c.new(f'sub i64 0, {low}')}")
    if counts != "i64":
        low = c.new(f"trunc i64 {low} to {counts}")
    at = c.new(f"add {wide} {steps}, {c.splat(counts, low)}")
    first = c.new(f"and {wide} {at}, {c.const(counts, '-4')}")
    ps = c.new(f"getelementptr i8, ptr {whole}, {wide} {first}")
    found = c.call(
        f"llvm.masked.gather.v{c.lanes}i32.v{c.lanes}p0", word, (c.vec("ptr"), ps), ("i32", "4"),
        (c.vec("i1"), mask or c.const("i1", "true")), (word, "zeroinitializer"),
    )  # fmt: skip
    three = c.const(counts, "3")
    bits = c.new(f"shl {wide} {c.new(f'and {wide} {at}, {three}')}, {three}")
    if counts != "i32":
        bits = c.new(f"trunc {wide} {bits} to {word}")
    found = c.new(f"lshr {word} {found}, {bits}")
    t, bits = c.vec(kept), c.vec(f"i{8 * itemsize(dtype)}")
    out = c.new(f"trunc {word} {found} to {bits}")
    if t != bits:
        out = c.new(f"bitcast {bits} {out} to {t}")
    return c.new(f"icmp ne {t} {out}, zeroinitializer") if dtype == "b1" else out


def scatter(c: Code, dtype: str, value: str, place: str, stride: str, mask: str | None) -> None:
    """Lanes of a vector to elements `stride` bytes apart."""
    kept = MEMORY[dtype]
    t, slot = c.vec(kept), c.on_stack(c.vec(kept))
    if dtype == "b1":
        value = c.new(f"zext {c.vec('i1')} {value} to {t}")
    c.do(f"store {t} {value}, ptr {slot}")

    def move(here: str, there: str) -> None:
        c.do(f"store {kept} {c.new(f'load {kept}, ptr {here}')}, ptr {there}")

    _lanes(c, kept, slot, place, stride, mask, move)


def _lanes(
    c: Code,
    kept: str,
    slot: str,
    place: str,
    stride: str,
    mask: str | None,
    move: Callable[[str, str], None],
) -> None:
    bits = f"i{c.lanes}"
    wanted = "-1" if mask is None else c.new(f"bitcast {c.vec('i1')} {mask} to {bits}")

    def turn(lane: str, now: list[str]) -> list[str]:
        here = c.new(f"getelementptr {kept}, ptr {slot}, i64 {lane}")

        def one() -> list[str]:
            move(here, now[0])
            return []

        if mask is None:
            one()
        else:
            c.guarded(c.new(f"trunc {bits} {now[1]} to i1"), [], one)
        return [
            c.new(f"getelementptr i8, ptr {now[0]}, i64 {stride}"),
            c.new(f"lshr {bits} {now[1]}, 1"),
        ]

    c.loop("0", str(c.lanes), "1", [("ptr", place), (bits, wanted)], turn)
