"""Transposition: squares of elements are turned in registers, so that every cache line is read and
written whole.

Vectors that gather take a line per element; where rows are a power of two of bytes apart, lines
that are needed again have left the cache by then: 128 x 128 x 64 floats took 5.4 ms with the last
axis moved to the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu import interleaved
from primal.engines.cpu.code import LINE, SCALAR, SUFFIX, Module, itemsize
from primal.engines.cpu.graph import APART, NAMES, NOWHERE, Node, Value, row_major, size_of
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.lanes import emit
from primal.engines.cpu.reader import Reader, smaller
from primal.engines.cpu.routines.moves import merged
from primal.ir.avals import Aval

LEAST = 1024
"""Elements below which gathering is as fast, and may be one with what comes before or after; above
an element takes a Zen 4 0.7 ns, and 0.15 to turn (2 * x.T of 250 x 250 float32 41 to 12 us, JAX 56;
x.T + y, where x is copied, 49 to 16)."""
LARGE = 1 << 16
"""Elements from which sums that gather are slow, where their lines conflict."""
HUGE = 1 << 18
"""Elements from which turning is faster: 2 * x.T of 100,000 x 12 floats 770 to 125 µs."""
BOOL = np.dtype(bool)
BLOCK = 64
"""Elements of a row of the result that a unit of work writes, of every row if there are units
enough."""
NARROW = 4
"""Bytes of an element below which no instruction gathers: they are collected one by one."""
UNITS, LEAST_UNIT = 32, 4096
"""So many are enough; elements of a unit where there would be fewer."""
_SIDES = {1: 16, 2: 16, 4: 16, 8: 8, 16: 4}
"""Bytes of an element -> elements of the side of a square; of 16 bytes they are two doubles."""
SHORT = 8
"""The side where there are 9 to 15 rows or columns; fewer are points of few coordinates.

100,000 x 12 floats by vectors that gather took 1.1 ms (JAX 0.3).
"""
WORDS = frozenset(
    ("add", "sub", "mul", "neg", "abs", "square", "max", "min", "sign", "floor", "ceil",
     "round_nearest_even", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "select_n")
)  # fmt: skip
OF_FLOATS = WORDS | {"div", "reciprocal", "sqrt", "rsqrt"}
OF_NUMBERS = OF_FLOATS | interleaved.WORDS | {"fma"}
MOST = 8
"""Words that are computed while squares are turned, and how many of them; twice as many of the
parts of complex numbers."""
ARRAYS = 3
"""So many arrays they may read: what is stored for others too is made again from all of them."""
Body = tuple[tuple[str, tuple[str, ...], str, tuple[int, ...]], ...]
"""(word, dtypes of operands, dtype, operands): operands are elements of the arrays, then the
numbers, and then the words."""


def _loops(x: Value, steps: Sequence[int] | None = None) -> list[Any] | None:
    """The loops of a transposition, its rows and columns last; None where there are no squares.

    `steps`: strides in the result, if it is part of another array.
    """
    item = x.node.dtype.itemsize
    if x.strides is None or item not in _SIDES or x.node.word in NOWHERE:
        return None
    if x.size < LEAST and item >= NARROW:
        return None
    x, steps, _ = _forwards(x, row_major(x.shape) if steps is None else steps)
    loops = merged(list(zip(x.shape, zip(x.steps(), steps, strict=True), strict=True)))
    rows = [loop for loop in loops if loop[1][0] == 1]
    if len(rows) != 1 or rows[0] is loops[-1]:
        return None  # as of a single number, which no loop walks
    n, (far, near) = loops[-1]
    if near != 1 or not far:
        return None
    least = min(n, rows[0][0])
    if least < _SIDES[item] and least <= SHORT:
        return None
    return [*[loop for loop in loops[:-1] if loop is not rows[0]], rows[0], loops[-1]]


def _forwards(x: Value, steps: Sequence[int]) -> tuple[Value, Sequence[int], int]:
    """Rows that are read backwards as such that are written backwards, and from which element on.

    `rot90` of 1000 x 1000 went by single elements, in twice the time of JAX.
    """
    back = [d for d, (n, s) in enumerate(zip(x.shape, x.steps(), strict=True)) if s == -1 and n > 1]
    if not back:
        return x, steps, 0
    read, wrote, first, offset = list(x.steps()), list(steps), 0, x.offset
    for d in back:
        offset -= x.shape[d] - 1
        first += (x.shape[d] - 1) * wrote[d]
        read[d], wrote[d] = 1, -wrote[d]
    return x.view(x.shape, tuple(read), offset), wrote, first


def turned(k: Any, x: Value) -> Value | None:
    """The value in a new array, where that turns rows into columns; None where it does not.

    Words of few arrays and of numbers are computed on the way: 2 · x.T of 10 x 100,000 float64 is a
    single pass (550 to 240 µs, JAX 350), and what they made of x is stored for others alone.
    """
    loops = _loops(x)
    if loops is None:
        return None
    return _turn(k, x, loops, x.aval, row_major(x.shape), 0, None)


def copied(k: Any, x: Value) -> Value:
    """The value in an array of its own.

    Where a large one repeats each element a few times, side by side, the group that copies it
    stores it turned; else it repeats what was turned.
    """
    found = turned(k, x)
    if found is None:
        alike = x.size >= HUGE and x.steps()[-1] == 0 and 1 < x.shape[-1] <= SHORT
        found = k.element("copy", (x if alike else k.turned_copy(x) or x,), x.dtype)
    return found


def has_squares(x: Value, steps: Sequence[int]) -> bool:
    """Whether a value is turned as it is put where elements have such distances."""
    return _loops(x, steps) is not None


def turned_into(
    k: Any, x: Value, shape: tuple[int, ...], steps: Sequence[int], offset: int,
    whole: Value | None,
) -> Value:
    """A value that has squares as a part of an array: of `whole`, or of one that begins here.

    Pieces of transposed arrays were turned and then copied: `jnp.pad(x.T, 1)` of 1000 x 1000
    float32 went by single elements, in twice the time of JAX.
    """
    loops = _loops(x, steps)
    assert loops is not None
    return _turn(k, x, loops, Aval(shape, x.dtype), steps, offset, whole)


def _turn(
    k: Any, x: Value, loops: Sequence[Any], aval: Aval, steps: Sequence[int], offset: int,
    whole: Value | None,
) -> Value:
    item = x.node.dtype.itemsize
    x, steps, first = _forwards(x, steps)
    offset += first
    read, numbers, body = _computed(x)
    *others, (m, (_, apart)), (n, (far, _)) = loops
    side = _SIDES[item] if min(m, n) >= _SIDES[item] else SHORT
    blocks, rows = -(-n // BLOCK), m
    units = size_of([size for size, _ in others]) * blocks
    if units < UNITS:
        rows = min(-(-LEAST_UNIT // min(n, BLOCK) // side) * side, m)
    strips = -(-m // rows)
    words = [n, far * item, m, apart * item, blocks, rows, strips]
    words += [offset * item, *[int.from_bytes(number.attr, "little") for number in numbers]]
    dtype = NAMES[x.node.dtype] if read else ""
    read = read or [x]
    for size, (step, wrote) in others:
        words += [size, *[step * item] * len(read), wrote * item]
    into = [] if whole is None else [whole]
    (out,) = k.routine(
        Turn(item, len(others), side, dtype, len(read), len(numbers), body, bool(into)),
        [*into, *read], (aval,), words, updates=[(0, 0) for _ in into], units=units * strips,
        cost=20 + rows * min(n, BLOCK) * item * (1 + len(read)) // 32, name="transpose",
    )  # fmt: skip
    turned: Value = out
    if not body:
        place = turned.view(x.shape, tuple(steps), offset)
        if whole is None:
            k.order[-1].parts = (place,)
        else:
            k.order[-1].into = place
    return turned


def _computed(x: Value) -> tuple[list[Value], list[Node], Body]:
    """The arrays of which few words make another one, numbers they read, and the words."""
    words = {"f": OF_FLOATS, "c": OF_NUMBERS}.get(x.node.dtype.kind, WORDS)
    dtypes = x.node.dtype, _number(x.node.dtype), BOOL
    most = MOST if dtypes[0] == dtypes[1] else 2 * MOST
    numbers: dict[Any, Node] = {}
    made: dict[Any, Any] = {}
    found: dict[Any, Value] = {}

    def visit(v: Value, size: int, start: int, above: int) -> Any:
        """The key of a line of an array, which begins `start` elements on in one of so many; None
        where words reach many arrays, or others: then the whole is none, and nothing else is
        asked, as of words that share operands there are as many ways as 2 to their depth. `above`
        are words that wait for this one."""
        node = v.node
        if node.word == "literal":
            numbers[node, 0] = node
            return (node, 0) if node.dtype == dtypes[1] else None
        if v.size != size or v.steps() != row_major(v.shape):
            return None
        key = node, v.offset + start
        if key in made or key in found:
            return key
        if node.word in words and node.dtype in dtypes and node.attr is None:
            if above + len(made) == most:
                return None
            args: list[Any] = []
            for a in node.args:
                args.append(visit(a, size_of(node.shape), key[1], above + 1))
                if args[-1] is None:
                    return None
            made[key] = args
            return key
        found[key] = Value(node, x.shape, x.logical, x.strides, x.offset + key[1])
        few = len(found) <= ARRAYS and node.word not in NOWHERE
        if node.args and node.word not in APART:
            return None  # the group that computes it stores the whole turned
        return key if few and node.dtype == dtypes[0] else None

    known = x.node.dtype in NAMES and x.node.dtype != BOOL and x.node.word in words
    whole = Value(x.node, x.node.shape, x.logical)
    if not known or visit(whole, whole.size, 0, 0) is None or not found:
        return [], [], ()
    place = {key: i for i, key in enumerate([*found, *numbers, *made])}
    return list(found.values()), list(numbers.values()), tuple(
        [
            (node.word, tuple([NAMES[a.dtype] for a, _ in args]), NAMES[node.dtype],
             tuple([place[a] for a in args]))
            for (node, _), args in made.items()
        ]
    )  # fmt: skip


def _number(dtype: Any) -> Any:
    """The dtype of the parts of complex numbers, of others itself."""
    return np.dtype(PART[NAMES[dtype]]) if dtype.kind == "c" else dtype


def order_of(x: Value) -> tuple[int, ...]:
    """The dimensions from the greatest stride to the least, where words want that order too, or
    sums along others are slow; else as is.

    Rows of up to 15 have columns of their own, which other sizes would compile in another order.
    """
    alike = matters(x) and min(x.shape, default=0) >= 2 * SHORT
    large = x.size >= LARGE or x.node.dtype.itemsize < NARROW
    slow = large and (conflicts(x) or x.size >= HUGE)
    return lying(x) if alike or slow else tuple(range(x.ndim))


def matters(x: Value) -> bool:
    """Whether the array is such that the order in which its elements are read may cost much."""
    return x.size >= LEAST or x.node.dtype.itemsize < NARROW


def wanted(x: Value) -> tuple[int, ...] | None:
    """The order in which an operand wants a word to be computed, so that nothing gathers; None
    where any will do."""
    return None if is_spread(x) else lying(x)


def lying(x: Value) -> tuple[int, ...]:
    """The dimensions from the greatest stride to the least, if squares can be turned so; else as
    they are."""
    return tuple(range(x.ndim)) if _loops(x) is None else by_steps(x)


def across(x: Value) -> tuple[int, ...]:
    """The same of arrays that are stored turned: of these rows may be few."""
    order = by_steps(x)
    wide = [d for d in order if x.shape[d] > 1]
    long = bool(wide) and x.shape[wide[-1]] >= LINE and x.steps()[wide[-1]] == 1
    return order if long and x.node.word not in NOWHERE else lying(x)


def by_steps(x: Value) -> tuple[int, ...]:
    """The order of dimensions in which elements lie, however few are side by side."""
    plain = tuple(range(x.ndim))
    if x.strides is None:
        return plain
    steps = [s if n > 1 else 0 for n, s in zip(x.shape, x.steps(), strict=True)]
    if any(s <= 0 and n > 1 for n, s in zip(x.shape, steps, strict=True)):
        return plain
    wide = iter(sorted([d for d in plain if steps[d]], key=lambda d: -steps[d]))
    return tuple([next(wide) if steps[d] else d for d in plain])


def lying_alike(re: Value, im: Value) -> Sequence[int]:
    """The dimensions as both parts of numbers lie, where a group makes them and turning is worth
    it."""
    plain = tuple(range(re.ndim))
    made = any(p.node.args and p.node.word not in APART for p in (re, im))
    steps = [abs(s) if n > 1 else 0 for n, s in zip(re.shape, re.steps(), strict=True)]
    if not made or re.steps() != im.steps() or re.size < LEAST or 0 in steps:
        return plain
    return sorted(plain, key=lambda d: -steps[d])


def is_apart(x: Value) -> bool:
    """Whether the elements of its rows lie apart; a scalar has none."""
    return x.ndim > 0 and abs(x.steps()[-1]) != 1 and not is_spread(x)


def is_spread(x: Value) -> bool:
    """Whether it repeats, as scalars do, and reads the same in any order."""
    return any(s == 0 and n > 1 for n, s in zip(x.shape, x.steps(), strict=True))


def conflicts(x: Value) -> bool:
    """Whether the elements that a vector would gather fall into few sets of the cache.

    So do those of rows whole lines apart; from others gathering takes no longer than turning does:
    1000 x 1000 floats 0.75 ms, 1024 x 1024 then 13.
    """
    item = x.node.dtype.itemsize
    return bool(x.ndim) and (item < NARROW or not x.steps()[-1] * item % LINE)


@structure
class Turn:
    """Squares of elements of so many bytes, `side` by side, inside `outer` loops.

    Words: elements of a row of the result, bytes between them in x; elements of a row of x, bytes
    between them in the result; units along the former, elements of a unit of the latter, units
    along it; bytes to the first element in the result; numbers that the body reads; per loop its
    size and its bytes in the arrays and the result. `into`: the first array becomes the result, of
    which others are parts already.
    """

    item: int
    outer: int
    side: int
    dtype: str
    arrays: int
    numbers: int
    body: Body
    into: bool = False

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        side = self.side
        r = Reader(module, side)
        c = r.c
        scalar = {4: "float", 8: "double", 16: "double"}.get(self.item, f"i{8 * self.item}")
        each, align = (2, 8) if self.item == 16 else (1, self.item)
        t, item, step = c.vec(scalar, each * side), str(self.item), str(side)
        if self.into:
            r.array()
        arrays = [r.array() for _ in range(self.arrays + 1)]
        n, far, m, apart, blocks, rows, strips, first = (r.word() for _ in range(8))
        arrays[-1] = c.new(f"getelementptr i8, ptr {arrays[-1]}, i64 {first}")
        numbers = [self._number(c, r.word()) for _ in range(self.numbers)]
        loops = r.loops(self.outer, self.arrays + 1)
        last_i, last_j = c.new(f"sub i64 {n}, {side}"), c.new(f"sub i64 {m}, {side}")

        def square(i: str, j: str, places: list[str]) -> list[str]:
            # The last squares begin earlier, and write some elements again.
            i, j = smaller(c, i, last_i), smaller(c, j, last_j)
            read = [r.moved(place, (i, far), (j, item)) for place in places[:-1]]
            wrote = r.moved(places[-1], (j, apart), (i, item))
            lines = []
            for _ in range(side):
                xs = [c.new(f"load {t}, ptr {place}, align {item}") for place in read]
                lines.append(self._computed(c, t, xs, numbers))
                read = [c.new(f"getelementptr i8, ptr {place}, i64 {far}") for place in read]
            for line in crossed(c, scalar, lines, each):
                c.do(f"store {t} {line}, ptr {wrote}, align {align}")
                wrote = c.new(f"getelementptr i8, ptr {wrote}, i64 {apart}")
            return []

        def unit(u: str) -> None:
            rest, strip = r.split(u, strips)
            rest, block = r.split(rest, blocks)
            places = r.walked(rest, loops, arrays)
            begin = c.new(f"mul i64 {block}, {BLOCK}")
            stop = smaller(c, c.new(f"add i64 {begin}, {BLOCK}"), n)
            top = c.new(f"mul i64 {strip}, {rows}")
            bottom = smaller(c, c.new(f"add i64 {top}, {rows}"), m)

            def across(j: str, _: list[str]) -> list[str]:
                return c.loop(begin, stop, step, [], lambda i, _: square(i, j, places))

            c.loop(top, bottom, step, [], across)

        r.units(name, unit)

    def _number(self, c: Any, word: str) -> str:
        """A word of the record in every lane."""
        part = PART.get(self.dtype, self.dtype)
        scalar, bits = SCALAR[part], 8 * itemsize(part)
        if bits < 64:
            word = c.new(f"trunc i64 {word} to i{bits}")
        if scalar != f"i{bits}":
            word = c.new(f"bitcast i{bits} {word} to {scalar}")
        return str(c.splat(scalar, word))

    def _computed(self, c: Any, t: str, xs: list[str], numbers: list[str]) -> str:
        """What the body makes of vectors."""
        if not self.body:
            return xs[0]
        own = interleaved.in_register(c, self.dtype)
        values = [x if t == own else c.new(f"bitcast {t} {x} to {own}") for x in xs] + numbers
        for word, ins, out, refs in self.body:
            values.append(emit(c, word, list(ins), out, [values[r] for r in refs]))
        return values[-1] if t == own else str(c.new(f"bitcast {own} {values[-1]} to {t}"))


def crossed(c: Any, scalar: str, lines: list[str], each: int = 1) -> list[str]:
    """Lines as columns: halves of blocks change places, blocks being half as big each time.

    Elements are so many of a vector's. LLVM looks through chains of shuffles, finds nothing, and
    takes a third of all time for it: those of floats are fenced, which is no instruction.
    """
    side = len(lines)
    n = side * each
    t, fence = c.vec(scalar, n), f"llvm.arithmetic.fence.v{n}{SUFFIX[scalar]}"
    half = side // 2
    while half:
        chosen = [
            [k if not k & half else side + k - half for k in range(side)],
            [k + half if not k & half else side + k for k in range(side)],
        ]
        found = list(lines)
        for i in [k for k in range(side) if not k & half]:
            for where, order in zip((i, i + half), chosen, strict=True):
                mask = ", ".join([f"i32 {each * k + j}" for k in order for j in range(each)])
                chosen_by = f"<{n} x i32> <{mask}>"
                y = c.new(f"shufflevector {t} {lines[i]}, {t} {lines[i + half]}, {chosen_by}")
                found[where] = c.call(fence, t, (t, y)) if scalar in ("float", "double") else y
        lines, half = found, half // 2
    return lines
