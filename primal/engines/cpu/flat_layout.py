"""When a kernel runs over short rows as one long run, and its record then."""

from __future__ import annotations

from primal.base.structures import replaced
from primal.engines.cpu.graph import row_major, size_of
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels import lanes_of
from primal.engines.cpu.layout import EVEN, GRAIN, UNIT, Array, Instance
from primal.engines.cpu.takes import INNER
from primal.engines.cpu.whole import LINE

SHORT, GATHERED = 32, 16
"""Elements from which rows by themselves are as fast, 3000 of 17 plus a bias taking 11 µs and so 6;
and from which they are where elements are gathered."""
NARROW = 4
"""Bytes below which numbers are not collected from where they lie."""


def flattened(given: Instance) -> Instance | None:
    """The same kernel over the elements of short rows; None if that is not what it runs over."""
    spec, arrays = given.spec, given.arrays
    if spec.reduced or spec.kept < 2 or any(a.dtype in PART for a in arrays):
        return None
    last, sizes = given.strides[-1], given.sizes
    outer = sorted(range(spec.kept), key=lambda d: -last[d])
    lanes = lanes_of(replaced(spec, short=0), LINE)
    most = max(SHORT, lanes) - 1
    short: list[int] = []
    while len(outer) > 1 and sizes[outer[-1]] * size_of([sizes[d] for d in short]) <= most:
        short.insert(0, outer.pop())
    if not short:
        return None
    order = [*outer, *short]
    shape = [sizes[d] for d in order]
    strides = [[s[d] for d in order] if s else [] for s in given.strides]
    at = len(outer) - 1
    plain = list(row_major(shape[at:]))
    count = len(spec.operands)
    if any(s[at:] != plain for s in strides[count:]):
        return None
    rows, length = shape[at], size_of(shape[at + 1 :])
    inner = {b[3][0]: b[0] for b in spec.body if b[0] in INNER}
    steps = []
    for k, (a, s) in enumerate(zip(arrays[:count], strides, strict=False)):
        step = _step(a, s[at:], plain)
        if step in "sg" and a.kind == "m" and int(a.dtype[1:]) < NARROW:
            return None
        # What `take` reads stands still; what `pad` reads is read in some lanes only.
        if k in inner and (step != "z" if inner[k] == "take" else step not in "gu"):
            return None
        if step == "g" and a.kind == "m" and length >= GATHERED:
            return None
        if step == "g" and _reach(s[at:], shape[at:], lanes) * int(a.dtype[1:]) >= 1 << 31:
            return None
        steps.append(step)
    each = max(1, UNIT // length)
    chunks = -(-rows // each)
    if chunks > 1:
        chunks = -(-chunks // EVEN) * EVEN
        each = -(-rows // chunks // GRAIN) * GRAIN
        chunks = -(-rows // each)
    found = replaced(
        spec, strided=False, short=0, nested=len(short), flat=True,
        operands=tuple([(kind, dtype, step) for (kind, dtype, _), step in
                        zip(spec.operands, steps, strict=True)]),
    )  # fmt: skip
    return Instance(
        found, shape, arrays, strides, size_of(shape[:at]) * chunks, each, chunks
    )


def _step(a: Array, strides: list[int], plain: list[int]) -> str:
    """How an operand moves along the run of rows: as `Flat` says, or as of `Spec`."""
    if not any(strides):
        return "z"
    if strides == plain:
        return "u"
    rows, *along = strides
    if not rows:
        return "p"
    return "s" if rows == 1 and a.kind == "m" and not any(along) else "g"


def _reach(strides: list[int], shape: list[int], lanes: int) -> int:
    """How far elements of a vector may lie from where its first row begins."""
    turns = [lanes + 1, *shape[1:]]
    return sum([abs(s) * n for s, n in zip(strides, turns, strict=True)])
