"""When a kernel runs over short rows as one long run, and its record then."""

from __future__ import annotations

import numpy as np

from primal.base.structures import replaced
from primal.engines.cpu.code import LINE
from primal.engines.cpu.graph import row_major, size_of
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels import lanes_of
from primal.engines.cpu.kernels.takes import INNER
from primal.engines.cpu.layout import EVEN, UNIT, Instance
from primal.engines.cpu.layout.arrays import GRAIN, Array
from primal.engines.cpu.layout.points import MANY

SHORT, GATHERED, SOME = 32, 16, 8
"""Elements from which rows by themselves are as fast, 3000 of 17 plus a bias taking 11 µs and so 6;
and from which they are where elements are gathered."""
WIDE = 4
"""Bytes of an element of which a row is read as it lies."""
ROWS, ROWS_OF_TABLE = 512, 8
"""Rows from which tables are worth their making, where they are made for each of several runs of
rows (300 runs of 6 rows of 3: 16 µs, in another way 4; of 40: 8.5 and 3.7), and for each operand
that has one, after the first: the gradient of 100 turns of heat in 6 x 6 cells 30 to 18 µs."""


def flattened(given: Instance) -> Instance | None:
    """The same kernel over the elements of short rows; None if that is not what it runs over."""
    spec, arrays = given.spec, given.arrays
    if spec.reduced or spec.kept < 2 or any(a.dtype in PART for a in arrays):
        return None
    last, sizes = given.strides[-1], given.sizes
    order = sorted(range(spec.kept), key=lambda d: -last[d])
    shape = [sizes[d] for d in order]
    strides = [[s[d] for d in order] if s else [] for s in given.strides]
    most = max(SHORT, lanes_of(replaced(spec, short=0), LINE))
    # As many loops as a row can have, but for such that gather long rows.
    for at in range(spec.kept - 1):
        length = size_of(shape[at + 1 :])
        plain = list(row_major(shape[at:]))
        if at and shape[at] < ROWS:
            continue
        if length >= most or any(s[at:] != plain for s in strides[len(spec.operands) :]):
            continue
        steps = [
            step_along(a, s[at:], plain) for a, s in zip(arrays, strides, strict=True)
        ][: len(spec.operands)]
        if not _is_served(given, steps, [s[at:] for s in strides], shape[at:]):
            continue
        each, chunks = in_chunks(shape[at], length)
        operands = tuple(
            [(kind, dtype, s) for (kind, dtype, _), s in zip(spec.operands, steps, strict=True)]
        )
        found = replaced(
            spec, strided=False, short=0, nested=len(shape) - at - 1, flat=True, operands=operands
        )
        units = size_of(shape[:at]) * chunks
        return Instance(found, shape, arrays, strides, units, each, chunks)
    return None


def gathers_many(given: Instance) -> bool:
    """Whether so many rows of a kernel over them are gathered that points are better.

    So they are where nothing else is read than a short row for all of them and a number for each:
    its coordinates stay in registers (a row of 3 float32 333,333 times 67 to 43 us, `one_hot` 178
    to 130, of int8 102 to 39).
    """
    alike = zip(given.arrays, given.spec.operands, strict=False)
    steps = [(a.kind, step) for a, (_, _, step) in alike]
    repeated = any(step == "p" for _, step in steps) and ("m", "u") not in steps
    many = given.sizes[given.spec.kept - 1 - given.spec.nested] >= MANY
    return many and (repeated or ("m", "g") in steps)


def _is_served(
    given: Instance, steps: list[str], strides: list[list[int]], shape: list[int]
) -> bool:
    """Whether operands can be read so, and about as fast as in another way."""
    inner = {b[3][0]: b[0] for b in given.spec.body if b[0] in INNER}
    if "join" in inner.values() or _lie_apart(given, steps, strides):
        return False
    tables = [a for a, step in zip(given.arrays, steps, strict=False) if step in "gs"]
    if shape[0] < ROWS_OF_TABLE * (len(tables) - 1):
        return False
    for k, (a, step, s) in enumerate(zip(given.arrays, steps, strides, strict=False)):
        size = int(a.dtype[1:])
        # What `take` reads stands still; what `pad` reads is read in some lanes only.
        if k in inner and (step != "z" if inner[k] == "take" else step not in "gu"):
            return False
        length = size_of(shape[1:])
        if step == "g" and a.kind == "m" and length >= SOME:
            rows = abs(s[-1]) < abs(s[0])
            if length >= GATHERED or rows and not _fits(s, shape, lanes_of(given.spec, LINE)):
                return False
        planes = step == "g" and a.kind == "m" and len(shape) == 2 and s[0] == 1
        if planes and size == 4 and shape[0] >= MANY:
            return False
        if step == "g" and reach_of(s, shape) * size >= 1 << 31:
            return False
    return True


def _lie_apart(given: Instance, steps: list[str], strides: list[list[int]]) -> bool:
    """Whether operands lie in rows, or are a number to each, at another distance than the result's.

    What lanes of several such rows take is read twice and changes places, with tables of where; a
    row is one load: x[:, 1:] - x[:, :-1] of 1000 x 10 float32 3.5 to 1.8 us, five points of 10 x 10
    in a loop 285 to 90 ns. Few bytes, of which a vector has many rows, are worth it once.
    """
    apart = [
        a for a, step, s in zip(given.arrays, steps, strides, strict=False)
        if step == "g" and a.kind == "m" and len(s) == 2 and s[1] in (0, 1)
    ]  # fmt: skip
    return len(apart) > 1 or any(int(a.dtype[1:]) >= WIDE for a in apart)


def _fits(strides: list[int], shape: list[int], lanes: int) -> bool:
    """Whether what a vector's lanes hold lies in two vectors of memory, wherever it begins."""
    length = size_of(shape[1:])
    index = np.indices((2 + lanes // length, *shape[1:]))
    place = np.tensordot(strides, index, 1).ravel()
    found = np.lib.stride_tricks.sliding_window_view(place, lanes)[:length]
    return bool((found.max(1) - found.min(1) < 2 * lanes).all())


def step_along(a: Array, strides: list[int], plain: list[int]) -> str:
    """How an operand moves along the run of rows: as `Flat` says, or as of `Spec`."""
    if not any(strides):
        return "z"
    if strides == plain:
        return "u"
    rows, *along = strides
    if not rows:
        return "p"
    return "s" if rows == 1 and a.kind == "m" and not any(along) else "g"


def reach_of(strides: list[int], shape: list[int]) -> int:
    """How far elements of a vector may lie from where its first row begins."""
    turns = [LINE, *shape[1:]]
    return sum([abs(s) * n for s, n in zip(strides, turns, strict=True)])


def in_chunks(rows: int, length: int) -> tuple[int, int]:
    """Rows per unit of work, units."""
    each = max(1, UNIT // length)
    chunks = -(-rows // each)
    if chunks > 1:
        chunks = -(-chunks // EVEN) * EVEN
        each = -(-rows // chunks // GRAIN) * GRAIN
        chunks = -(-rows // each)
    return each, chunks
