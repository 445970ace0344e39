"""Vectors of known numbers, and of the lanes of others."""

from __future__ import annotations

from collections.abc import Sequence

from primal.engines.cpu.code import SCALAR, Code, itemsize


def known(c: Code, dtype: str, bits: Sequence[int], lanes: int) -> str:
    """A vector of numbers, given by their bits; zeros behind the last."""
    size = 1 if dtype == "b1" else 8 * itemsize(dtype)
    filled = [*bits, *[0] * (lanes - len(bits))]
    text = "<" + ", ".join([f"i{size} {b}" for b in filled]) + ">"
    return c.new(f"bitcast <{lanes} x i{size}> {text} to <{lanes} x {SCALAR[dtype]}>")


def shuffled(c: Code, dtype: str, where: Sequence[tuple[str, int]], lanes: int) -> str:
    """The vector of such lanes of vectors: of two at a time, whose results are put together by
    choosing; as one shuffle of many, LLVM takes vectors apart and moves number by number."""
    scalar, n = SCALAR[dtype], len(where)
    t = f"<{lanes} x {scalar}>"
    vectors = list(dict.fromkeys([v for v, _ in where]))
    if len(vectors) == 1 and [e for _, e in where] == list(range(lanes)):
        return vectors[0]

    def shuffle(t: str, a: str, b: str, wanted: Sequence[int]) -> str:
        mask = ", ".join([f"i32 {k}" for k in wanted])
        return c.new(f"shufflevector {t} {a}, {t} {b}, <{n} x i32> <{mask}>")

    made = ""
    for at in range(0, len(vectors), 2):
        a, b = (*vectors[at : at + 2], "poison")[:2]
        begins = {a: 0, b: lanes}
        mine = shuffle(t, a, b, [begins[v] + e if v in begins else 0 for v, e in where])
        if made:
            chosen = [n + k if v in begins else k for k, (v, _) in enumerate(where)]
            mine = shuffle(f"<{n} x {scalar}>", made, mine, chosen)
        made = mine
    return made
