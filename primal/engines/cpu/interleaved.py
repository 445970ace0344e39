"""Complex numbers as kernels meet them in memory: parts side by side, taken apart in registers.

A vector of a complex dtype holds twice as many floats as there are lanes. Only three words know
it: `real` and `imag` pick every other float, `complex` puts two vectors of parts together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.engines.cpu.code import MEMORY, SCALAR, SUFFIX, Code, itemsize

Ints = tuple[int, ...]
PART = {"c8": "f4", "c16": "f8"}
"""Name of a complex dtype -> name of the dtype of its parts."""
WORDS = frozenset(("real", "imag", "complex"))


def by_parts(
    big: tuple[Ints, Ints], part: tuple[Ints, Ints], numbers: Any, sizes: Sequence[int], item: int
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints], Any, tuple[int, ...]]:
    """Shapes, strides, dimension numbers and windows of a scatter of complex numbers, as of arrays
    with a dimension more, of two floats of `item` bytes: sums of numbers are sums of parts."""
    more, most = [((*n, 2), (*strides, item)) for n, strides in (big, part)]
    return more, most, ((*numbers[0], len(part[0])), *numbers[1:]), (*sizes, 2)


def emit(c: Code, word: str, out: str, xs: Sequence[str], dtype: str) -> str:
    """One of the words; `dtype` is the complex one."""
    scalar, n = SCALAR[PART[dtype]], c.lanes
    if word == "complex":
        t, order = c.vec(scalar), [i // 2 + n * (i % 2) for i in range(2 * n)]
        return _shuffled(c, t, xs[0], xs[1], order)
    t = c.vec(scalar, 2 * n)
    return _shuffled(c, t, xs[0], "poison", [2 * i + (word == "imag") for i in range(n)])


def is_first(
    f: Callable[[str, Any, Any], Any], how: str, x: Sequence[Any], y: Sequence[Any],
    is_number: bool = False,
) -> Any:  # fmt: skip
    """Whether of two numbers, given by parts, x is the extremum: by real, then imaginary part.

    NaN in either part wins, that of x first. `f` makes a word of two operands, `how` is "g" for the
    greater and "l" for the lesser; `is_number`: y is not NaN.
    """
    (a, b), (c, d) = x, y
    first = f("or", f(f"{how}t", a, c), f("and", f("eq", a, c), f(f"{how}e", b, d)))
    if not is_number:
        first = f("and", first, f("and", f("eq", c, c), f("eq", d, d)))
    return f("or", first, f("or", f("ne", a, a), f("ne", b, b)))


def _shuffled(c: Code, t: str, x: str, y: str, order: Sequence[int]) -> str:
    chosen = ", ".join([f"i32 {i}" for i in order])
    return c.new(f"shufflevector {t} {x}, {t} {y}, <{len(order)} x i32> <{chosen}>")


def in_register(c: Code, dtype: str) -> str:
    """The type of a vector of any dtype."""
    return c.vec(SCALAR[PART[dtype]], 2 * c.lanes) if dtype in PART else c.vec(SCALAR[dtype])


def _moved(c: Code, dtype: str, mask: str) -> tuple[str, str, list[tuple[str, str]]]:
    """The vector that is moved under a mask, its name in intrinsics, and alignment and mask.

    Numbers of 8 bytes are moved as such. Others need flags of both parts, as halves of wider ones:
    shuffled flags took three times as long as all the rest of a difference of padded rows.
    """
    scalar, n = ("i64", c.lanes) if dtype == "c8" else (SCALAR[PART[dtype]], 2 * c.lanes)
    if n != c.lanes:
        wide, twice = c.vec("i16"), c.vec("i8", n)
        both = _as(c, twice, wide, c.new(f"sext {c.vec('i1')} {mask} to {wide}"))
        mask = c.new(f"icmp slt {twice} {both}, zeroinitializer")
    given = [("i32", str(itemsize(dtype) // 2)), (c.vec("i1", n), mask)]
    return c.vec(scalar, n), f"v{n}{SUFFIX[scalar]}.p0", given


def _as(c: Code, new: str, t: str, x: str) -> str:
    """The bits of a vector of type t as another one."""
    return x if t == new else c.new(f"bitcast {t} {x} to {new}")


def contiguous(c: Code, dtype: str, place: str, index: str, mask: str | None) -> str:
    """The numbers from `index` on."""
    p = c.new(f"getelementptr {MEMORY[dtype]}, ptr {place}, i64 {index}")
    if mask is None:
        return c.new(f"load {in_register(c, dtype)}, ptr {p}, align {itemsize(dtype) // 2}")
    t, name, given = _moved(c, dtype, mask)
    found = c.call(f"llvm.masked.load.{name}", t, ("ptr", p), *given, (t, "zeroinitializer"))
    return _as(c, in_register(c, dtype), t, found)


def store(c: Code, dtype: str, value: str, place: str, index: str, mask: str | None) -> None:
    """A vector at index."""
    p = c.new(f"getelementptr {MEMORY[dtype]}, ptr {place}, i64 {index}")
    if mask is None:
        c.do(f"store {in_register(c, dtype)} {value}, ptr {p}, align {itemsize(dtype) // 2}")
        return
    t, name, given = _moved(c, dtype, mask)
    value = _as(c, t, in_register(c, dtype), value)
    c.call_void(f"llvm.masked.store.{name}", (t, value), ("ptr", p), *given)


def _both(c: Code, dtype: str, place: str) -> list[str]:
    """The places of both parts of a number."""
    return [place, c.new(f"getelementptr i8, ptr {place}, i64 {itemsize(dtype) // 2}")]


def store_first(c: Code, dtype: str, value: str, place: str) -> None:
    """The number in the first lane."""
    scalar = SCALAR[PART[dtype]]
    for k, p in enumerate(_both(c, dtype, place)):
        part = c.new(f"extractelement {c.vec(scalar, 2 * c.lanes)} {value}, i64 {k}")
        c.do(f"store {scalar} {part}, ptr {p}, align {itemsize(dtype) // 2}")


def splat(c: Code, dtype: str, place: str) -> str:
    """The number at a place, in all lanes."""
    scalar, size = SCALAR[PART[dtype]], itemsize(dtype) // 2
    parts = [
        c.splat(scalar, c.new(f"load {scalar}, ptr {p}, align {size}"))
        for p in _both(c, dtype, place)
    ]
    return emit(c, "complex", dtype, parts, dtype)


def gather(w: Any, dtype: str, place: str, steps: str, mask: str | None) -> str:
    """Numbers at distances from a place, of 8 bytes as such: half as many are collected."""
    if dtype == "c8":
        found = w.gather("f8", place, steps, mask)
        return _as(w.c, in_register(w.c, dtype), w.c.vec("double"), found)
    part = PART[dtype]
    parts = [w.gather(part, p, steps, mask) for p in _both(w.c, dtype, place)]
    return emit(w.c, "complex", dtype, parts, dtype)


def scatter(w: Any, dtype: str, value: str, place: str, steps: str, mask: str | None) -> None:
    """Each lane to its own distance from the place."""
    if dtype == "c8":
        value = _as(w.c, w.c.vec("double"), in_register(w.c, dtype), value)
        w.scatter("f8", value, place, steps, mask)
        return
    for word, p in zip(("real", "imag"), _both(w.c, dtype, place), strict=True):
        part = emit(w.c, word, PART[dtype], [value], dtype)
        w.scatter(PART[dtype], part, p, steps, mask)
