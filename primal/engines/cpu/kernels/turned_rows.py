"""Short rows, turned into columns on the stack and back: a row in each lane.

How many elements a row has is an argument. Four columns at a time are loaded, four elements of
each row, and turned in registers: two shuffles and three insertions for a column,
where a gather takes ten cycles. Columns lie `LINE` bytes apart.
"""

from __future__ import annotations

from collections.abc import Callable

from primal.engines.cpu.code import LINE, MEMORY, SUFFIX, Code, itemsize

SIDE = 4
"""Columns that are turned together."""
LONGEST = 16
"""Elements of a row, up to which this is as fast as a vector along it."""
LONGER, MANY = 24, 64
"""The same of so many rows, of which a second vector would be half empty (50,000 rows of 20
float32, softmax 1,390 to 760 µs, JAX 880; of 31 as long as by rows, sums a fifth longer)."""
WIDEST = 2 * LONGEST
"""Columns of a row, of complex numbers two each."""


def turn(
    c: Code, inwards: bool, dtype: str, given: str, length: str, count: str, block: str,
    pace: str = "",
) -> None:  # fmt: skip
    """Rows of a length, into columns or out of them: the `count` that is left, or all lanes'.

    `pace`: bytes from one given row to the next, where others may lie between them.
    """
    kept, size, lanes = MEMORY[dtype], itemsize(dtype), c.lanes
    wide = c.vec(kept)
    # The last rows of an array are few: as many as there are lanes are turned beside it. Where some
    # are behind these, nothing is read beyond the array: a mask took a fifth of the time.
    spare = c.on_stack(f"[{lanes * WIDEST + SIDE} x {kept}]")
    few = c.new(f"icmp slt i64 {count}, {lanes + SIDE if inwards else lanes}")
    rows = c.new(f"select i1 {few}, ptr {spare}, ptr {given}")
    here = c.call("llvm.smin.i64", "i64", ("i64", count), ("i64", str(lanes)))
    elements = c.new(f"mul i64 {here}, {length}")

    def copied_in() -> list[str]:
        # Lanes behind the last row hold zeros: anything else may be slow.
        def one(n: str, _: list[str]) -> list[str]:
            p = c.new(f"getelementptr {wide}, ptr {spare}, i64 {n}")
            c.do(f"store {wide} zeroinitializer, ptr {p}, align {size}")
            return []

        c.loop("0", length, "1", [], one)
        if not pace:
            return _copied(c, dtype, given, spare, elements)

        def row(n: str, _: list[str]) -> list[str]:
            source = c.new(f"getelementptr i8, ptr {given}, i64 {c.new(f'mul i64 {n}, {pace}')}")
            target = c.new(f"getelementptr i8, ptr {spare}, i64 {c.new(f'mul i64 {n}, {apart}')}")
            return _copied(c, dtype, source, target, length)

        c.loop("0", here, "1", [], row)
        return []

    apart = c.new(f"mul i64 {length}, {size}")
    if inwards:
        c.guarded(few, [], copied_in)
        if pace:
            apart = c.new(f"select i1 {few}, i64 {apart}, i64 {pace}")

    def row(n: int, j: str) -> str:
        at = c.new(f"getelementptr i8, ptr {rows}, i64 {c.new(f'mul i64 {apart}, {n}')}")
        return c.new(f"getelementptr {kept}, ptr {at}, i64 {j}")

    def piece(place: str) -> str:
        return c.new(f"load <{SIDE} x {kept}>, ptr {place}, align {size}")

    def some(j: str, _: list[str]) -> list[str]:
        columns = [
            c.new(f"getelementptr i8, ptr {block}, i64 {c.new(f'add i64 {base}, {n * LINE}')}")
            for base in [c.new(f"mul i64 {j}, {LINE}")] for n in range(SIDE)
        ]  # fmt: skip
        if inwards:
            vectors = [_joined(c, kept, lambda n: piece(row(n, j)), k)
                       for k in range(SIDE)]  # fmt: skip
            for value, place in zip(_turned(c, wide, vectors), columns, strict=True):
                c.do(f"store {wide} {value}, ptr {place}, align {size}")
            return []
        left = c.new(f"trunc i64 {c.new(f'sub i64 {length}, {j}')} to i32")
        first = c.new(f"insertelement <{SIDE} x i32> poison, i32 {left}, i64 0")
        t = f"<{SIDE} x i32>"
        splat = c.new(f"shufflevector {t} {first}, {t} poison, {t} zeroinitializer")
        numbers = ", ".join([f"i32 {n}" for n in range(SIDE)])
        mask = c.new(f"icmp sgt {t} {splat}, <{numbers}>")
        vectors = [c.new(f"load {wide}, ptr {p}, align {size}") for p in columns]
        for k, value in enumerate(_turned(c, wide, vectors)):
            for b in range(lanes // SIDE):
                chosen = ", ".join([f"i32 {SIDE * b + n}" for n in range(SIDE)])
                four = c.new(
                    f"shufflevector {wide} {value}, {wide} poison, <{SIDE} x i32> <{chosen}>"
                )
                c.call_void(
                    f"llvm.masked.store.v{SIDE}{SUFFIX[kept]}.p0", (f"<{SIDE} x {kept}>", four),
                    ("ptr", row(SIDE * b + k, j)), ("i32", str(size)), (f"<{SIDE} x i1>", mask),
                )  # fmt: skip
        return []

    c.loop("0", length, str(SIDE), [], some)
    if not inwards:
        c.guarded(few, [], lambda: _copied(c, dtype, spare, given, elements))


def _joined(c: Code, kept: str, piece: Callable[[int], str], k: int) -> str:
    """Pieces of rows k, k + 4, … one behind the other."""
    parts, lanes = [piece(n) for n in range(k, c.lanes, SIDE)], SIDE
    while len(parts) > 1:
        t, both = f"<{lanes} x {kept}>", ", ".join([f"i32 {n}" for n in range(2 * lanes)])
        parts = [
            c.new(f"shufflevector {t} {x}, {t} {y}, <{2 * lanes} x i32> <{both}>")
            for x, y in zip(parts[::2], parts[1::2], strict=True)
        ]
        lanes *= 2
    return parts[0]


def _turned(c: Code, t: str, vectors: list[str]) -> list[str]:
    """Squares of four vectors turned: element n of vector k changes places with k of n."""
    out = list(vectors)
    for step in (2, 1):
        for k in [k for k in range(SIDE) if not k & step]:
            x, y = out[k], out[k + step]
            low = [n if not n & step else n - step + c.lanes for n in range(c.lanes)]
            high = [n + step if not n & step else n + c.lanes for n in range(c.lanes)]
            for at, chosen in ((k, low), (k + step, high)):
                numbers = ", ".join([f"i32 {n}" for n in chosen])
                out[at] = c.new(f"shufflevector {t} {x}, {t} {y}, <{c.lanes} x i32> <{numbers}>")
    return out


def _copied(c: Code, dtype: str, source: str, target: str, count: str) -> list[str]:
    """So many elements, without a look beyond them."""
    kept = MEMORY[dtype]

    def one(i: str, _: list[str]) -> list[str]:
        value = c.new(f"load {kept}, ptr {c.new(f'getelementptr {kept}, ptr {source}, i64 {i}')}")
        c.do(f"store {kept} {value}, ptr {c.new(f'getelementptr {kept}, ptr {target}, i64 {i}')}")
        return []

    c.loop("0", count, "1", [], one)
    return []
