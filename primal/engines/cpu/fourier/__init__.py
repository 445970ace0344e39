"""Fourier transforms: rows that are many or long in the lanes of vectors, others by pocketfft.

Lanes take a quarter of the time (10,000 rows of 16: 50 µs, not 150; JAX 175). Long rows become two
transforms of many (10^5 numbers: 190 µs, by pocketfft 770, JAX 600). Rows that hold infinities or
NaN are left to pocketfft: which results these spoil, and how, is as eager code and JAX have it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.fourier import long as fourier_long
from primal.engines.cpu.fourier.pocketfft import Again, Rows, bits_of, held_factor, loop
from primal.engines.cpu.fourier.rows import PARTS, RowTransforms, lanes, parts
from primal.engines.cpu.fourier.tables import factors, fits, halving, plan, table
from primal.engines.cpu.graph import Value, row_major, size_of, transposed
from primal.engines.cpu.reader import Reader, smaller
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

UNIT = 4096
"""Numbers of a unit, roughly."""
MANY, ALONE = 6, 64
"""Rows that are transformed in lanes whatever their length; numbers for each of fewer rows."""
LONG, REPEATED = 1024, 256
"""Rows in one piece that are split in two, also where there are many, as short ones fit the caches;
and in loops.

From 256 numbers on that is faster for few rows, but takes longer to compile than pocketfft gives;
one row of less than twice the length is left to it (1024 in 7 µs, not 2, after 18 ms, not 40). A
loop's turns pay for that (one of 1024 complex64 a turn 8.6 to 2.3 µs, JAX 6.7, of 256 2.3 to 0.5).
"""
TWICE = 8
"""What turning and a second way through memory are worth, in instructions per number: many rows of
1024 to 4096 as two took a sixth longer in the caches, 2.4 times as long outside of them."""
GREAT = 512
"""Lengths from which on rows with a great prime may be convolutions, also a row alone: by pocketfft
one of 2038 took 92 µs, not 20 (JAX 52), one of 601 31, not 10."""
PLAIN, PLAIN_ALONE = 61, 128
"""The greatest prime of lengths that pocketfft takes less time for than a convolution; where there
are less than twice LONG numbers."""
_LETTER = {"f4": "f", "f8": "d", "c8": "F", "c16": "D"}
_COMPLEX: dict[str, Any] = {"f4": np.dtype(np.complex64), "f8": np.dtype(np.complex128)}
_REAL: dict[str, Any] = {"c8": np.dtype(np.float32), "c16": np.dtype(np.float64)}


def fft(k: Any, x: Value, kind: str, lengths: Sequence[int]) -> Value:
    """The transform of the last dimensions, one after the other.

    Dimensions that were moved there are transformed where they lie, and seen moved again.
    """
    # Of complex numbers in two arrays, both have to be moved alike.
    first, second = (x, x) if type(x) is Value else k.parts(x)
    steps = first.strides
    if steps is not None and second.strides == steps:
        order = tuple(sorted(range(x.ndim), key=lambda d: -steps[d]))
        lies = transposed(x, order) if type(x) is Value else k.transpose(x, order)
        whole = transposed(first, order).steps() == row_major(lies.shape)
        if whole and all(fits(n) for n in (*lengths, *x.shape[-len(lengths) :])):
            back = tuple([order.index(d) for d in range(x.ndim)])
            lies = k.plain(lies)
            return transposed(_along(k, lies, kind, lengths, back[-len(lengths) :]), back)
    return _along(k, x, kind, lengths, tuple(range(x.ndim - len(lengths), x.ndim)))


def _along(k: Any, x: Value, kind: str, lengths: Sequence[int], axes: tuple[int, ...]) -> Value:
    """The transform of dimensions, the last of `axes` being that of real numbers, if any are."""
    *others, last = axes
    if kind == "IRFFT":
        for axis in others:
            x = _pass(k, x, axis, "ifft", x.shape[axis])
        return _pass(k, x, last, "irfft", lengths[-1])
    if kind == "RFFT":
        x = _pass(k, x, last, "rfft_n_odd" if lengths[-1] % 2 else "rfft_n_even", lengths[-1])
    else:
        x = _pass(k, x, last, kind.lower(), lengths[-1])
    for axis in others:
        x = _pass(k, x, axis, "fft" if kind == "RFFT" else kind.lower(), x.shape[axis])
    return x


def _pass(k: Any, x: Value, axis: int, name: str, length: int) -> Value:
    """The transform of one dimension."""
    given = x.node.dtype.str[1:]
    made = _COMPLEX.get(given, x.dtype) if name != "irfft" else _REAL[given]
    single = _LETTER[given].lower()
    count = x.size // x.shape[axis]
    many = 1 < count >= min(length / ALONE, MANY) and fits(length)
    few, least = (False, REPEATED) if k.path else (count * length < 2 * LONG, LONG)
    great = length >= GREAT and factors(length)[-1] > (PLAIN_ALONE if few else PLAIN)
    if axis == x.ndim - 1 and (great or length >= least and not few):
        real, together = "r" in name, lanes(single)
        size, convolved = fourier_long.convolution(length, real, together)
        n1, n2, effort = 1, length, math.inf
        if name != "irfft":
            n1, n2, effort = fourier_long.split(length, real, together)
        # One vector of rows of a smooth length would be one thread's.
        whole = math.inf
        if many and (great or count > together):
            halves = 2 if real and not length % 2 else 1
            whole = plan(length // halves, single).effort / halves
            whole *= -(-count // together) * together / count
        # A convolution goes through memory four times.
        if great and convolved < min(effort, whole / 1.5):
            out = _convolved(k, x, name, length, size, single)
            return _again(k, x, out, name, length, made)
        if effort + TWICE < whole:
            out = _in_two(k, x, name, (n1, n2), made, single)
            return _again(k, x, out, name, length, made)
    if many:
        return _in_lanes(k, x, axis, name, length, made, single)
    function, data = _loop(name, x, made)
    if not function:
        raise Unsupported("fft by this NumPy")
    n = x.shape[axis]
    m = length if name == "irfft" else length // 2 + 1 if name[0] == "r" else n
    inner = size_of(x.shape[axis + 1 :])
    blocks = size_of(x.shape[:axis])
    read, wrote = x.node.dtype.itemsize, made.itemsize
    steps = inner * read, inner * wrote
    block = n * steps[0], m * steps[1]
    rows = inner, read, wrote
    if inner == 1:
        rows, blocks, block = (blocks, *block), 1, (0, 0)
    each = max(UNIT // length, 1)
    chunks = -(-rows[0] // each)
    shape = (*x.shape[:axis], m, *x.shape[axis + 1 :])
    words = (function, data, *block, *rows, n, m, *steps, each, chunks,
             _factor(name, length))  # fmt: skip
    found: list[Value] = k.routine(
        Pass(single), (k.dense(x),), (Aval(shape, made),), words,
        units=blocks * chunks, cost=100 + int(each * length * (2 + math.log2(length))),
        reuses=((0, 0),) if given == made.str[1:] else (), name=name,
    )  # fmt: skip
    return found[0]


def _in_lanes(k: Any, x: Value, axis: int, name: str, length: int, made: Any, single: str) -> Value:
    """The transform of one dimension, many rows at once."""
    form = "i" if name == "irfft" else "r" if name[0] == "r" else "c"
    m = length // 2 + 1 if form == "r" else length
    inner, blocks = size_of(x.shape[axis + 1 :]), size_of(x.shape[:axis])
    read, wrote = x.node.dtype.itemsize, made.itemsize
    steps = inner * read, inner * wrote
    block = x.shape[axis] * steps[0], m * steps[1]
    rows = inner, read, wrote
    across = inner > 1
    if not across:
        rows, blocks, block = (blocks, *block), 1, (0, 0)
    inverse, paired = name[0] == "i", form != "c" and not length % 2
    n = length // 2 if paired else length
    whole = plan(n, single)
    passes = whole.passes
    if form == "r" and paired:
        passes = (*passes, ("parted", n, halving(length, single)))
    elif form == "i":
        first = ("joined", n, halving(length, single)) if paired else ("mirrored", n)
        passes = (first, *passes)
    given = _edge(single, across, form == "r", paired, inverse, x.shape[axis])
    taken = _edge(single, across, form == "i", paired, inverse, m)
    return _lanes(
        k, x, Aval((*x.shape[:axis], m, *x.shape[axis + 1 :]), made), single, name, passes,
        given, taken, (*block, *rows, *steps), blocks, size=whole.size,
        alone=length if form == "r" and not paired else 0, factor=1 / length if inverse else 1,
        effort=length * (6 + whole.effort / 2), in_place=form == "c",
        loop=(*_loop(name, x, made), x.shape[axis], m, wrote, -(-m // 2) if form == "i" else m),
    )  # fmt: skip


def _edge(
    single: str, across: bool, real: bool, paired: bool, swapped: bool, n: int
) -> tuple[str, tuple[int, ...]]:
    """What of the rows is read or written, and what `edges` is told of the buffer."""
    vector = lanes(single) * (4 if single == "f" else 8)
    first, second, apart = vector * swapped, vector * (not swapped), 2 * vector
    if not real:
        return ("columns", (first, second, apart, n, 1)) if across else \
               ("rows", (first, second, apart, 2 * n, 1))  # fmt: skip
    if not paired:
        second, apart = first + apart, 2 * apart
    if across:
        return "reals", (first, second, apart, n // 2 if paired else n, 1 + paired)
    return "rows", (first, second, apart, n, 1)


def _lanes(
    k: Any, x: Value, out: Aval, single: str, name: str, passes: tuple[Any, ...],
    given: tuple[str, tuple[int, ...]], taken: tuple[str, tuple[int, ...]], places: Sequence[int],
    blocks: int, *, size: int, factor: float, effort: float, alone: int = 0, whole: int = 0,
    loop: Sequence[int] = (0,) * 6, in_place: bool = False,
) -> Value:  # fmt: skip
    """A step of `RowTransforms`."""
    over_x, over_out, rows, along_x, along_out, step_x, step_out = places
    chunks = -(-rows // lanes(single))
    words = (
        *[0] * PARTS, over_x, over_out, rows, chunks, table(passes), len(passes), size, alone,
        along_x, step_x, *given[1], bits_of(1), 0,
        along_out, step_out, *taken[1], bits_of(factor), whole, *loop,
    )  # fmt: skip
    found: list[Value] = k.routine(
        RowTransforms(single), (k.dense(x),), (out,), words, units=blocks * chunks,
        cost=50 + int(effort), reuses=((0, 0),) if in_place else (), name=name,
        callees=parts(single, f"read {given[0]}", f"write {taken[0]}", {p[0] for p in passes}),
    )  # fmt: skip
    return found[0]


def _factor(name: str, length: int) -> int:
    return bits_of(1 / length if name[0] == "i" else 1)


def _loop(name: str, x: Value, made: Any) -> tuple[int, int]:
    given = x.node.dtype.str[1:]
    return loop(name, f"{_LETTER[given]}{_LETTER[given].lower()}->{_LETTER[made.str[1:]]}")


def _again(k: Any, x: Value, out: Value, name: str, length: int, made: Any) -> Value:
    """The transform of long rows, by pocketfft where it would be no number."""
    function, data = _loop(name, x, made)
    if not function:
        return out
    n, m = x.shape[-1], out.shape[-1]
    read, wrote = x.node.dtype.itemsize, made.itemsize
    single = _LETTER[made.str[1:]].lower()
    words = function, data, n * read, m * wrote, read, wrote, n, m, _factor(name, length)
    found: list[Value] = k.routine(
        Again(single, 1 if name == "irfft" else 2), (k.dense(x), k.dense(out)),
        (Aval(out.shape, made),), words, units=size_of(out.shape[:-1]), cost=20,
        updates=((0, 1),), name=name,
    )  # fmt: skip
    return found[0]


def _in_two(k: Any, x: Value, name: str, sizes: tuple[int, int], made: Any, single: str) -> Value:
    """The transform of long rows, as columns and rows of a matrix (see `long`)."""
    inverse, real = name[0] == "i", name[0] == "r"
    n1, n2 = sizes
    length = n1 * n2
    count, together = size_of(x.shape[:-1]), lanes(single)
    rows, m = (n1 // 2 + 1, length // 2 + 1) if real else (n1, length)
    read, wrote = x.node.dtype.itemsize, made.itemsize
    # A column begins at a cache line, and not all at the same places of the caches.
    pitch = (-(-rows // together) | 1) * together * wrote
    paired = real and not n1 % 2
    first, second = plan(n1 // 2 if paired else n1, single), plan(n2, single)
    parted = (("parted", n1 // 2, halving(n1, single)),) if paired else ()
    turned = "turned", rows, *fourier_long.factors(n1, n2, rows, together, single)
    columns = _lanes(
        k, x, Aval((count * n2 * (pitch // wrote),), made), single, name,
        (*first.passes, *parted, turned),
        _edge(single, True, real, paired, inverse, n1),
        _edge(single, False, False, False, False, rows),
        (x.shape[-1] * read, n2 * pitch, n2, read, pitch, n2 * read, wrote), count,
        size=first.size, alone=n1 if real and not paired else 0, factor=1,
        effort=n1 * (6 + first.effort / 2),
    )  # fmt: skip
    taken = _edge(single, True, False, False, inverse, n2)
    return _lanes(
        k, columns, Aval((*x.shape[:-1], m), made), single, name, second.passes,
        _edge(single, True, False, False, False, n2),
        ("halves", taken[1]) if real else taken,
        (n2 * pitch, m * wrote, rows, wrote, wrote, pitch, n1 * wrote), count,
        size=second.size, factor=1 / length if inverse else 1,
        effort=n2 * (6 + second.effort / 2), whole=length if real else 0,
    )  # fmt: skip


def _convolved(k: Any, x: Value, name: str, length: int, size: int, single: str) -> Value:
    """The transform of rows whose length has a great prime, as a convolution of another length.

    With w[i] = exp(-πi i²/n), X[j] = w[j] Σ (x[i] w[i]) / w[j - i]: Bluestein's. A row of 4099
    takes 50 µs, pocketfft's own convolution 290. Of half a spectrum nothing need be mirrored: real
    parts are those of its values, twice all but the first and, of even n, the last.
    """
    half, inverse = length // 2 + 1, name[0] == "i"
    given = half if name == "irfft" else length
    taken = half if name[0] == "r" else length
    turns = fourier_long.chirp(length, given, taken, size, inverse, name == "irfft")
    first, spectrum, last = [
        k.constant(t, Aval(t.shape, t.dtype)) for t in
        [t.astype(np.complex64 if single == "f" else np.complex128) for t in turns]
    ]  # fmt: skip

    def times(y: Any, by: Any) -> Any:
        return k.binary("mul", y, k.broadcast_in_dim(by, y.shape, rows))

    def with_real_ends(y: Any) -> Any:
        re, im = k.parts(y)
        ends = np.zeros(half, bool)
        ends[0], ends[length // 2] = True, length % 2 == 0
        there = k.broadcast_in_dim(k.constant(ends, Aval(ends.shape, ends.dtype)), y.shape, rows)
        return k.pair(re, k.select_n(there, im, k.literal(0, im.dtype)), y.dtype)

    rows = (x.ndim - 1,)
    if name[0] == "r":
        y = k.pair(*[times(x, part) for part in k.parts(first)], first.dtype)
    else:
        y = times(with_real_ends(x) if name == "irfft" else x, first)
    zeros = k.constant(0, Aval((), first.dtype))
    y = k.pad(k.plain(y), zeros, ((0, 0, 0),) * (y.ndim - 1) + ((0, size - given, 0),))
    n1, n2, _ = fourier_long.split(size, False, lanes(single))
    y = _in_two(k, y, "fft", (n1, n2), first.dtype, single)
    y = _in_two(k, times(y, spectrum), "ifft", (n1, n2), first.dtype, single)
    lead = (0,) * (y.ndim - 1)
    y = k.slice(y, (*lead, 0), (*y.shape[:-1], taken), (1,) * y.ndim)
    if name != "irfft":
        y = times(y, last)
        return with_real_ends(y) if name[0] == "r" else y
    (a, b), (c, d) = k.parts(y), k.parts(last)
    return k.binary("sub", times(a, c), times(b, d))


@structure
class Pass:
    """Transforms of one dimension, times a factor.

    Words: the loop and what it is given; bytes from block to block of x and of the result; rows of
    a block, bytes from row to row; numbers of a row, bytes from one to the next; rows of a unit,
    units of a block; the factor.
    """

    real: str
    plain = True

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module)
        c = r.c
        x, out = r.array(), r.array()
        loop, data = r.pointer(), r.pointer()
        over_x, over_out, rows, along_x, along_out = (r.word() for _ in range(5))
        n, m, step_x, step_out, each, chunks, factor = (r.word() for _ in range(7))
        real = "float" if self.real == "f" else "double"
        calls = Rows(
            c, loop, data, held_factor(c, real, factor), (n, m),
            (along_x, along_out, step_x, step_out),
        )  # fmt: skip

        def unit(u: str) -> None:
            block, chunk = r.split(u, chunks)
            first = c.new(f"mul i64 {chunk}, {each}")
            count = smaller(c, each, c.new(f"sub i64 {rows}, {first}"))
            calls.run(
                r.moved(x, (block, over_x), (first, along_x)),
                r.moved(out, (block, over_out), (first, along_out)),
                count,
            )

        r.units(name, unit)
