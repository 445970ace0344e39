"""Which way a product of matrices is fastest: by tiles, by vectors, by BLAS, and in which units.

It depends on sizes and strides, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from primal.base.structures import structure
from primal.engines.cpu.code import itemsize
from primal.engines.cpu.products import blas, gemm, thin, tiled
from primal.engines.cpu.steps import RoutineSpec

TILE = 8e6
"""Operations below which a product is one unit."""
PER_BYTE = 10
"""Operations in the time that a core takes to read or write a byte of memory."""
UNIT = 1 << 18
"""Bytes of a unit that mostly waits for memory."""
SQUARE, MIRRORED = 256, 256
"""Rows and columns that BLAS multiplies at a time, at most, where it makes one half of a matrix
times itself transposed: of 128 it is an eighth slower, of 512 no faster. Terms from which a half is
enough less than the whole to be worth copying it."""
SPEED = {"f4": 150.0, "f8": 75.0, "c8": 150.0, "c16": 75.0}
"""Operations per nanosecond of one core, for the estimates; of real numbers."""


@structure
class Way:
    """How matrices are multiplied: the functions of the process that do it (none, if BLAS does),
    rows and columns of a unit, bytes of memory for each, and nanoseconds of the whole."""

    callees: tuple[RoutineSpec | None, ...]
    unit: tuple[int, int]
    room: int
    cost: float


def fastest(
    dtype: str, sizes: tuple[int, int, int], strides: Sequence[tuple[int, int]], turns: int
) -> Way:
    """The fastest way; strides in elements, of x by row and term, of y by term and column."""
    m, n, depth = sizes
    (xm, xk), (yk, yn) = strides
    work = 2.0 * m * n * depth * (4 if dtype[0] == "c" else 1)
    memory = itemsize(dtype) * (m * depth + depth * n + m * n)
    cost = max(work, PER_BYTE * memory) / SPEED[dtype]
    if dtype == "f4" and tiled.have():
        if tiled.fits(*sizes, yk == 1):
            unit = tiled.unit_of(sizes, turns)
            return Way(tiled.callees(xk, yn), unit, tiled.room(unit[1]), tiled.cost(*sizes))
    elif dtype in ("f4", "f8"):
        # Half as thin ones are better packed: 34 x 2048 x 512 of float64 1.2 ms, by BLAS 2.4.
        fits = gemm.fits(*sizes, (xm, xk), yk == 1, itemsize(dtype))
        near = fits and dtype == "f4" and m <= thin.MOST and 4 * depth * n <= thin.CACHE
        if (near or _waits(work, memory)) and thin.fits(*sizes, yn):
            return Way(*thin.used(dtype, m), cost)
        if fits and not _waits(2 * work, memory):
            return Way(*gemm.packed(dtype, sizes, strides), cost)
    rows, columns = tiles(m, n, work, memory)
    return Way((), (-(-m // rows), -(-n // columns)), 0, cost)


def in_halves(dtype: str, m: int, n: int, depth: int, turns: int, turned: bool) -> bool:
    """Whether the terms are better divided (see `tiled`)."""
    if dtype != "f4" or not tiled.have() or not tiled.in_halves(m, n, depth, turns):
        return False
    return all(tiled.fits(m, n, terms, turned) for terms in (depth, depth // 2))


def halved(dtype: str, n: int, depth: int, way: Way) -> Way:
    """The same for a matrix times itself transposed, of which one half is made and the other copied
    where that is better."""
    own = bool(way.callees)
    parts = -(-n // (gemm.COLUMNS if own else SQUARE))
    if parts < 3 or depth < MIRRORED or own and way.unit[1] != gemm.COLUMNS:
        return way
    side, callees = -(-n // parts), [*way.callees, *[None] * blas.CALLEES][: blas.CALLEES - 1]
    return Way((*callees, blas.Mirror(dtype)), (side, side), way.room, way.cost)


def _waits(work: float, memory: int) -> bool:
    """Whether a product of so many operations, on so many bytes, mostly waits for memory."""
    return memory > 2 * UNIT and PER_BYTE * memory > work


def tiles(m: int, n: int, work: float, memory: int) -> tuple[int, int]:
    """Parts of the rows and columns of a product of so many operations, on so many bytes.

    Few: each packs its operands anew, and a quarter of 256 x 768 x 256 takes a tenth longer. Of
    thin ones, which wait for memory, there is little to pack: threads share more parts, so that
    one who comes late delays little and each finds what it read last in a cache of its own
    (2048 x 512 x 2 of float32: one unit 285 us, two 120 to 280, 16 of them 32).
    """
    thin = _waits(work, memory)
    if work < TILE and not thin:
        return 1, 1
    parts = 2
    while work >= 1e8 * parts * parts or (thin and memory > parts * UNIT):
        parts *= 2
    rows = columns = 1
    while rows * columns < parts:
        if m / rows >= n / columns and m / rows >= 32:
            rows *= 2
        elif n / columns >= 32:
            columns *= 2
        else:
            break
    return rows, columns
