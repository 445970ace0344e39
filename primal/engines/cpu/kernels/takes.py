"""Words that read operands at places of their own: `pad` of rows, `take` of single elements, `join`
of two arrays that lie one after another.

`take` is a gather of single elements as a word of the group that computes its indices, and of what
reads it. Linear interpolation at a million points (`map_coordinates`) had index arrays and elements
of four corners in memory, 44 MB, and took 10 ms; as one kernel it takes 1.8 (JAX 3.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu import _llvm
from primal.engines.cpu.code import MEMORY, SCALAR, SUFFIX, itemsize
from primal.engines.cpu.graph import (
    APART,
    IN_REGISTERS,
    NATIVE,
    Node,
    Value,
    kind_of,
    reshaped,
    row_major,
    size_of,
    sliced,
)
from primal.engines.cpu.kernels import narrow_gathers
from primal.engines.cpu.lanes import select

INNER = {"pad": 1, "take": 1, "join": 2}
"""The words, and how many of their operands, the first ones, are views that say where an array
begins, not what is read of it."""
TAKE = 0.6
"""Nanoseconds that an element taken from the second cache takes."""
FAR = 64
"""Words between two takes up to which the second is known to wait for the first."""
MANY = 16
"""How many times as many elements a line has as are few."""
INT32 = np.dtype(np.int32)


def least(k: Any) -> int:
    """Elements from which these are words.

    A kernel of one element has no dimension along which an operand could stand still. Loops, and
    branches, may hold few elements in registers.
    """
    return IN_REGISTERS + 1 if k.path else 2


def read(
    w: Any, word: str, refs: Sequence[int], places: list[str], i: str, mask: str | None,
    xs: Sequence[str],
) -> str:
    """What a word makes of the arrays it reads, for the lanes of the mask or all."""
    place = places[refs[0]]
    if word == "pad":
        for n in range(1, len(xs), 3):
            mask = _between(w, mask, *xs[n : n + 3])
        return str(w.load(refs[0], *_touched(w, place, i, mask), mask))
    if word == "join":
        return _joined(w, refs, places, i, mask, xs)
    c, dtype = w.c, w.dtypes[refs[0]]
    kept, t, wide = MEMORY[dtype], c.vec(MEMORY[dtype]), c.vec("i32")
    if len(xs) > 3:
        first = c.new(f"sext i32 {c.new(f'extractelement {wide} {xs[3]}, i64 0')} to i64")
        p = c.new(f"getelementptr {kept}, ptr {place}, i64 {first}")
        c.call_void("llvm.prefetch.p0", ("ptr", p), ("i32", "0"), ("i32", "3"), ("i32", "1"))
    # Whatever was computed for lanes behind the end, it is a place inside.
    at = c.call(f"llvm.umin.v{c.lanes}i32", wide, (wide, xs[1]), (wide, xs[2]))
    if itemsize(dtype) <= narrow_gathers.MOST:
        at = c.new(f"mul {wide} {at}, {c.const('i32', str(itemsize(dtype)))}")
        return narrow_gathers.by_words(c, dtype, place, at, mask, "i32")
    ps = c.new(f"getelementptr {kept}, ptr {place}, {wide} {at}")
    return str(
        c.call(
            f"llvm.masked.gather.v{c.lanes}{SUFFIX[kept]}.v{c.lanes}p0", t, (c.vec("ptr"), ps),
            ("i32", str(itemsize(dtype))), (c.vec("i1"), mask or c.const("i1", "true")),
            (t, "zeroinitializer"),
        )
    )  # fmt: skip


def _joined(
    w: Any, refs: Sequence[int], places: list[str], i: str, mask: str | None, xs: Sequence[str]
) -> str:
    """Elements of the first array up to a place, of the second from there on.

    A vector lies in one of them but where they meet, so that it is one load. Two under masks for
    each took twice as long, and ten times where what masks hide is no memory of the process.
    """
    c, (one, other, count, _) = w.c, refs[:4]
    _, _, step = w.spec.operands[count]
    at = c.new(f"extractelement {c.vec('i32')} {xs[3]}, i64 0")
    at = c.new(f"sext i32 {at} to i64")
    begin = places[count] if step == "z" else c.new(f"add i64 {places[count]}, {i}")
    behind = c.new(f"icmp sge i64 {begin}, {at}")
    p = c.new(f"select i1 {behind}, ptr {places[other]}, ptr {places[one]}")
    if step == "z":
        return str(w.load(one, p, i, mask))
    before = c.new(f"icmp sle i64 {c.new(f'add i64 {begin}, {c.lanes}')}, {at}")
    first = c.new(f"icmp slt {c.vec('i32')} {xs[2]}, {xs[3]}")

    def both() -> list[str]:
        flags = c.vec("i1")
        rest = c.new(f"xor {flags} {first}, {c.const('i1', 'true')}")
        lanes = [m if mask is None else c.new(f"and {flags} {mask}, {m}") for m in (first, rest)]
        x, y = [w.load(k, places[k], i, m) for k, m in zip((one, other), lanes, strict=True)]
        return [select(c, w.dtypes[one], first, x, y)]

    (out,) = c.either(
        c.new(f"or i1 {behind}, {before}"), [c.vec(SCALAR[w.dtypes[one]])],
        lambda: [w.load(one, p, i, mask)], both,
    )  # fmt: skip
    return str(out)


def _touched(w: Any, place: str, i: str, mask: str | None) -> tuple[str, str]:
    """Where a vector is read under a mask: somewhere in memory, if no lane is.

    What a mask hides is not read, but where it is no memory of the process the CPU takes some 500
    cycles to find that out: the gradient of padding 1000 x 1000 float64 by its edges took 32 ms so.
    """
    if mask is None:
        return place, i
    c = w.c
    some = c.new(f"bitcast {c.vec('i1')} {mask} to i{c.lanes}")
    some = c.new(f"icmp ne i{c.lanes} {some}, 0")
    return (
        c.new(f"select i1 {some}, ptr {place}, ptr %record"),
        c.new(f"select i1 {some}, i64 {i}, i64 0"),
    )


def _between(w: Any, mask: str | None, at: str, low: str, high: str) -> str:
    """The lanes of the mask, or of all, in which low ≤ at < high."""
    c, t = w.c, w.c.vec("i32")
    inside = c.new(f"icmp ult {t} {c.new(f'sub {t} {at}, {low}')}, "
                   f"{c.new(f'sub {t} {high}, {low}')}")  # fmt: skip
    return inside if mask is None else str(c.new(f"and {c.vec('i1')} {mask}, {inside}"))


def take(
    k: Any,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    fill: Any,
    shape: tuple[int, ...],
) -> Value | None:
    """A gather of single elements as a word, where a group computes its indices; else None.

    Indices that lie in memory are the routine's: it is compiled once for all programs.
    """
    _, _, mapped, batching, index_batching = dimension_numbers
    dtype = x.node.dtype
    if size_of(slice_sizes) != 1 or _llvm.compiler().width < 32:
        return None
    if size_of(shape) < least(k):
        return None
    if dtype not in NATIVE or indices.dtype not in NATIVE:
        return None
    if x.node.word in ("literal", "iota") or any(s < 0 for s in x.steps()):
        return None
    last = sum([(n - 1) * s for n, s in zip(x.shape, x.steps(), strict=True)])
    # Narrow elements are at so many bytes from the word of four bytes that holds the first.
    if last * (dtype.itemsize if dtype.itemsize <= narrow_gathers.MOST else 1) >= (1 << 31) - 4:
        return None
    columns = [column(k, indices, j) for j in range(len(mapped))]
    if not any(column.node.args and column.node.word not in APART for column in columns):
        return None
    if _waits(columns):
        return None
    place, inside = _place(
        k, x.shape, x.steps(), columns, mapped, batching, index_batching, fill is not None
    )
    # In the shape in which the place is computed, so that both are one group.
    at = place if place.strides is not None else Value(place.node, place.node.shape, INT32)
    over = (0,) * at.ndim
    most = k.literal(last, INT32).view(at.shape, over, 0)
    ahead = _ahead(k, x, at, columns[0], batching, index_batching)
    operands = (x.view(at.shape, over, x.offset), at, most, *ahead)
    out = Node("take", operands, at.shape, dtype, None)
    k.order.append(out)
    found = Value(out, place.shape, x.dtype)
    if inside is not None:
        found = k.select_n(inside, k.literal(fill, x.dtype), found)
    return reshaped(found, shape)


def _ahead(
    k: Any, x: Value, at: Value, index: Value, batching: Sequence[int],
    index_batching: Sequence[int],
) -> list[Value]:  # fmt: skip
    """What is asked for while elements of a row are taken, where rows have elements of their own:
    those of the next row, whose order the CPU cannot foresee.

    2,000 rows of 1000 of as many float32 took 2,600 us, and take 1,150 (JAX 1,400).
    """
    d, rest = at.ndim - 1, [s for e, s in enumerate(x.steps()) if e not in batching]
    if at.shape != index.shape or at.shape[d:] == (1,) or d - 1 not in index_batching:
        return []
    if rest != [1]:
        return []
    place = k.iota(at.shape, INT32, d)
    for e, i in zip(batching, index_batching, strict=True):
        row = k.iota(at.shape, INT32, i)
        if i == d - 1:
            row = k.binary("add", row, k.literal(1, INT32))
        place = _moved(k, place, row, x.steps()[e])
    return [place]


def _place(
    k: Any,
    shape: Sequence[int],
    steps: Sequence[int],
    columns: Sequence[Value],
    mapped: Sequence[int],
    batching: Sequence[int],
    index_batching: Sequence[int],
    asks: bool,
) -> tuple[Value, Value | None]:
    """How many elements on a clamped start is; if asked, whether starts are inside, and nothing
    of others, which nobody reads."""
    place, inside = None, None
    for d, start in zip(mapped, columns, strict=True):
        if asks:
            here = is_inside(k, start, shape[d])
            inside = here if inside is None else k.binary("and", inside, here)
        else:
            start = clamped(k, start, shape[d])
        place = _moved(k, place, k.convert(start, INT32), steps[d])
    for d, i in zip(batching, index_batching, strict=True):
        place = _moved(k, place, k.iota(columns[0].shape, INT32, i), steps[d])
    assert place is not None
    return place, inside


def clamped(k: Any, start: Value, size: int) -> Value:
    """The nearest of the places of so many elements; of 32 bits at least."""
    start, last = _counted(k, start, size)
    if kind_of(start.node.dtype) == "i":
        start = k.binary("max", start, k.literal(0, start.dtype))
    out: Value = k.binary("min", start, k.literal(last, start.dtype))
    return out


def is_inside(k: Any, start: Value, size: int) -> Value:
    """Whether a start is one of so many places: without a sign, negative ones are behind them."""
    start, last = _counted(k, start, size)
    dtype = np.dtype(f"u{start.node.dtype.itemsize}")
    out: Value = k.binary("le", k.convert(start, dtype), k.literal(last, dtype))
    return out


def _counted(k: Any, start: Value, size: int) -> tuple[Value, int]:
    """A start, of 32 bits at least, and the last place that it may be."""
    start = start if start.node.dtype.itemsize >= 4 else k.convert(start, INT32)
    return start, min(size - 1, int(np.iinfo(start.node.dtype).max))  # numbers repeat in any size


def take_of_copy(
    k: Any,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    fill: Any,
    shape: tuple[int, ...],
) -> Value | None:
    """Few elements of a line that was put in order for a reshape, from where they lay; else None.

    A thousand of `x.T.ravel()` of 333333 x 3 bfloat16 took 97 us, of which the line was all.
    """
    base = k.laid[x.node]
    few = size_of(slice_sizes) == 1 and MANY * size_of(shape) <= x.size == base.size < 1 << 31
    if not few or x.ndim != 1 or indices.dtype not in NATIVE:
        return None
    at, inside = _place(
        k, x.shape, x.steps(), [column(k, indices, 0)], (0,), (), (), fill is not None
    )
    if x.offset:
        at = k.binary("add", at, k.literal(x.offset, INT32))
    ats: list[Value] = []
    for n in reversed(base.shape):
        size = k.literal(n, INT32)
        which = k.binary("rem", at, size)
        if inside is not None:
            which = k.select_n(inside, k.literal(-1, INT32), which)
        ats.insert(0, k.reshape(which, (*which.shape, 1)))
        at = k.binary("div", at, size)
    every = tuple(range(base.ndim))
    found: Value = k.gather(
        base, k.concatenate(ats, which.ndim), dimension_numbers=((), every, every, (), ()),
        slice_sizes=(1,) * base.ndim, fill=fill, shape=which.shape,
    )  # fmt: skip
    return reshaped(found, shape)


def flat_scatter(
    k: Any, x: Value, indices: Value, updates: Value, *, dimension_numbers: Any,
    sizes: Sequence[int], drops: bool,
) -> tuple[Value, Value, Value, dict[str, Any]] | None:
    """A scatter of single elements at several coordinates as one into x in one line; else None.

    The places are computed in vectors, and half as long to read as pairs: a million elements added
    to 1000 x 1000 at random took 6.6 ms, and take 3.1.
    """
    _, _, mapped, batching, index_batching = dimension_numbers
    many = size_of(indices.shape[:-1]) >= max(least(k), 2) and len(mapped) + len(batching) > 1
    if not many or not mapped or size_of(sizes) != 1 or x.size >= 1 << 31:
        return None
    if indices.dtype not in NATIVE:
        return None
    columns = [column(k, indices, j) for j in range(len(mapped))]
    place, inside = _place(
        k, x.shape, row_major(x.shape), columns, mapped, batching, index_batching, drops
    )
    if inside is not None:
        place = k.select_n(inside, k.literal(-1, INT32), place)
    line = {"dimension_numbers": ((), (0,), (0,), (), ()), "sizes": (1,), "drops": True}
    # In the shape in which the place is computed: it is read once.
    starts = k.reshape(place, (place.size, 1))
    return k.reshape(x, (x.size,)), starts, k.reshape(updates, (place.size,)), line


def _waits(columns: Sequence[Value]) -> bool:
    """Whether indices are made of a take of the same group: each would wait for the one before.

    In steps of their own the CPU is at many elements at once: a binary search of 100,000 numbers
    takes 840 µs so, in groups of several it took 900.
    """
    seen: set[Node] = set()
    left = [x.node for x in columns]
    while left and len(seen) < FAR:
        node = left.pop()
        if node.word == "take":
            return True
        if node not in seen and node.word not in APART:
            seen.add(node)
            left.extend([x.node for x in node.args])
    return False


def column(k: Any, indices: Value, j: int) -> Value:
    """Number j of each start vector: of those that were put together, as they were before."""
    joined = k.joined.get(indices.node)
    if joined is not None and indices.is_node and joined[0] == indices.ndim - 1:
        for x in joined[1]:
            if j < x.shape[-1]:
                indices = x
                break
            j -= x.shape[-1]
    first = [0] * (indices.ndim - 1)
    ends = list(indices.shape[:-1])
    found = reshaped(
        sliced(indices, [*first, j], [*ends, j + 1], (1,) * indices.ndim), tuple(ends)
    )
    assert found is not None  # only a dimension of size 1 goes
    return found


def _moved(k: Any, place: Value | None, index: Value, stride: int) -> Value:
    """A place, in elements, so many indices further."""
    if stride != 1:
        index = k.binary("mul", index, k.literal(stride, INT32))
    return index if place is None else k.binary("add", place, index)
