"""When a kernel runs over points of few coordinates, and its record then."""

from __future__ import annotations

import itertools
from typing import Any

from primal.base.structures import replaced
from primal.engines.cpu.graph import row_major, size_of
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels.points import Pack, PointSpec
from primal.engines.cpu.kernels.takes import INNER
from primal.engines.cpu.layout import UNIT, Instance
from primal.engines.cpu.layout.arrays import GRAIN, Array

COORDINATES = 8
"""Most of a point that are kept."""
DISTANCE = 16
"""Most that are reduced if none are kept, and most elements from one point to the next."""
COMBINATIONS = 16
"""Most copies of the body."""
WORDS = 160
"""Most words of all copies."""
MANY = 1024
"""Points from which code for their length is worth its 12 ms where there is code for all lengths:
where elements are gathered (an image's channels moved last), or all are reduced by rows. Shuffles
take half of the time, or a sixth on CPUs of AMD, and of one or two bytes less: x.T + y of 3 x
333333 int8 790 to 35 us; the sum of (x - x[0]) ** 2 of 333333 x 3 float32 960 to 150.
"""
WINDOWS = 3
"""Points, from one on, whose elements one pack holds."""


def over_points(given: Instance) -> Instance | None:
    """The same kernel over points, a point per lane; None if that is not what it runs over."""
    if any(b[0] in INNER for b in given.spec.body):
        return None
    if any(a.dtype in PART for a in given.arrays):
        # What lies side by side is read by whole vectors in any case, and so written.
        loops = given.sizes[: given.spec.kept] if given.spec.column else given.sizes
        alike = all(step in ("u", "z") for _, _, step in given.spec.operands)
        if alike and loops[-1] > COORDINATES and not given.spec.strided:
            return None
        taken = in_parts(given)
        # Numbers alone, which nothing computes, say not how many of them a vector holds.
        if taken is None or all(kind == "l" for kind, *_ in taken.spec.operands):
            return None
        given = taken
    found = _loops(given)
    return None if found is None else _made(given, *found)


def _loops(given: Instance) -> tuple[list[int], int, list[int], bool] | None:
    """(outer loops, that of points, those of a point's coordinates, whether points are summed)."""
    # What is stored last lies row by row over the kept loops.
    last, sizes = given.strides[-1], given.sizes
    kept = sorted(range(given.spec.kept), key=lambda d: -last[d])
    reduced = list(range(given.spec.kept, len(sizes)))
    behind: list[int] = []
    while kept:
        most = DISTANCE if len(kept) > 1 and sizes[kept[-1]] <= COORDINATES else COORDINATES
        if size_of([sizes[d] for d in (kept[-1], *behind)]) > most:
            break
        behind.insert(0, kept.pop())
    summed = False
    if size_of([sizes[d] for d in reduced]) > (COORDINATES if behind else DISTANCE):
        # Those that are reduced with the points are added up in registers first.
        points, *others = reduced
        if size_of([sizes[d] for d in others]) >= DISTANCE:
            points = max(reduced, key=lambda d: sizes[d])
            others = [d for d in reduced if d != points]
        if size_of([sizes[d] for d in (*behind, *others)]) >= DISTANCE:
            return None
        if others and sizes[points] < MANY:
            return None
        short, summed = [*behind, *others], True
        read = [s for s in given.strides if len(s) > points]
        if not short and any(0 < abs(s[d]) < abs(s[points]) for s in read for d in kept):
            return None  # columns, whose rows are read whole
    elif kept:
        points = kept.pop()
        short = [*_around(given, kept, points, [*behind, *reduced]), *behind, *reduced]
        kept = [d for d in kept if d not in short]
    else:
        return None
    return kept, points, short, summed


def _made(
    given: Instance, kept: list[int], points: int, short: list[int], summed: bool
) -> Instance | None:
    """The kernel over these loops; None where its code would be long, or reads no packs."""
    spec, arrays, sizes = given.spec, given.arrays, given.sizes
    shape = [sizes[d] for d in short]
    if size_of(shape) > COMBINATIONS or len(spec.body) * size_of(shape) > WORDS:
        return None
    count = len(spec.operands)
    steps = [s[points] if len(s) > points else 0 for s in given.strides]
    packs = _packs(given, range(count), kept, points, short, True)
    puts = _puts(given, kept, points, short, summed)
    if packs is None or puts is None or not any(abs(s) > 1 for s in steps):
        return None
    of_pack = {n for pack in packs for n, _ in pack.members}
    put = {count + n for pack in puts for n, _ in pack.members}
    plain = range(count, count + len(spec.stores) if summed else len(arrays))
    kinds = {0: "z", 1: "u", -1: "r"}
    operands = tuple(
        [
            (kind, dtype, "p" if n in of_pack else "g" if kind == "i" and steps[n] else
             str(steps[n]) if kind == "m" and steps[n] > 1 else kinds[max(min(steps[n], 1), -1)])
            for n, (kind, dtype, _) in enumerate(spec.operands)
        ]
    )  # fmt: skip
    strides = []
    for n, (a, s) in enumerate(zip(arrays, given.strides, strict=True)):
        loops = kept
        if n < count and n not in of_pack:
            loops = [*kept, points, *short] if a.kind == "i" else [*kept, *short]
        elif n in plain and n not in put:
            loops = [*kept, *[d for d in short if d < len(s)]]
        strides.append([s[d] for d in loops] if a.kind != "l" else [])
    made = PointSpec(
        len(kept), tuple([(sizes[d], d >= spec.kept) for d in short]), summed, operands, packs,
        spec.body, spec.stores, spec.reductions, puts, spec.joined,
    )  # fmt: skip
    each = max(UNIT // size_of(shape) // GRAIN * GRAIN, GRAIN)
    chunks = -(-sizes[points] // each)
    parts: dict[str, Any] = {}
    if summed:
        # What is never made in parts, as the greatest of narrow numbers, is one part.
        each, chunks, *_ = given.split or (sizes[points], 1)
        # Each coordinate's parts lie side by side.
        mine = size_of([n for d, n in enumerate(sizes[: spec.kept]) if d not in kept]) * chunks
        apart = tuple([s * mine for s in row_major([sizes[d] for d in kept])]), 1
        parts = {"split": (chunks,), "between": given.between, "apart": apart}
    order = [*kept, points, *short]
    units = size_of([sizes[d] for d in kept]) * chunks
    loops = [sizes[d] for d in order]
    return Instance(made, loops, arrays, strides, units, each, chunks, **parts)


def _around(given: Instance, kept: list[int], points: int, short: list[int]) -> list[int]:
    """Outer loops whose elements lie between those of points: each line is read once for all.

    So three columns become rows: `where` of a column of bools of 333333 x 3 float32, transposed,
    took 320 µs row by row.
    """
    copies = size_of([given.sizes[d] for d in short])
    memory = zip(given.arrays, given.strides, strict=True)
    apart = [s for a, s in memory if a.kind == "m" and abs(s[points]) > 1]
    found: list[int] = []
    for d in kept:
        between = any(s[d] for s in apart) and all(abs(s[d]) < abs(s[points]) for s in apart)
        most = min(COORDINATES // copies, WORDS // max(len(given.spec.body), 1) // copies)
        if between and given.sizes[d] <= most:
            found.append(d)
            copies *= given.sizes[d]
    return found


def in_parts(given: Instance) -> Instance | None:
    """The same kernel on parts of complex numbers, which lie two floats apart.

    So points of complex coordinates are points of twice as many.
    """
    spec, count = given.spec, len(given.spec.operands)
    arrays: list[Array] = []
    strides: list[list[int]] = []

    def taken(n: int) -> tuple[int, ...]:
        """The numbers of an array, of complex ones those of both parts."""
        a, mine = given.arrays[n], given.strides[n]
        if a.dtype not in PART:
            arrays.append(a)
            strides.append(mine)
            return (len(arrays) - 1,)
        for k in range(2):
            steps = tuple([2 * s for s in a.strides])
            arrays.append(
                replaced(a, dtype=PART[a.dtype], strides=steps, offset=2 * a.offset + k)
            )
            strides.append([2 * s for s in mine])
        return len(arrays) - 2, len(arrays) - 1

    values = [taken(n) for n in range(count)]
    operands = tuple([(a.kind, a.dtype, "g") for a in arrays])
    body: list[tuple[str, tuple[str, ...], str, tuple[int, ...]]] = []
    for word, ins, out, refs in spec.body:
        xs = [values[r] for r in refs]
        if word in ("real", "imag"):
            values.append((xs[0][word == "imag"],))
        elif word == "complex":
            values.append((*xs[0], *xs[1]))
        elif word == "copy":
            values.append(xs[0])
        elif out in PART or any(len(x) > 1 for x in xs):
            return None
        else:
            body.append((word, ins, out, tuple([r for (r,) in xs])))
            values.append((len(operands) + len(body) - 1,))
    stores: list[int] = []
    for n, ref in enumerate(spec.stores, count):
        taken(n)
        stores += values[ref]
    for n in range(count + len(spec.stores), len(given.arrays)):
        taken(n)
    reductions = tuple([(monoid, values[r][0], dtype) for monoid, r, dtype in spec.reductions])
    made = replaced(
        spec, operands=operands, body=tuple(body), stores=tuple(stores), reductions=reductions
    )
    return replaced(given, spec=made, arrays=arrays, strides=strides)


def _plain(shape: list[int]) -> list[int]:
    """Strides of an array whose elements lie row by row."""
    return [size_of(shape[k + 1 :]) for k in range(len(shape))]


def _puts(
    given: Instance, kept: list[int], points: int, short: list[int], summed: bool
) -> tuple[Pack, ...] | None:
    """What is written, in packs; None if points lie too far apart, or elements where others do."""
    first = len(given.spec.operands)
    sums = range(first + len(given.spec.stores), len(given.arrays))
    # Sums over points are written once, side by side.
    for n in sums if summed else ():
        mine = [d for d in short if d < given.spec.kept]
        plain = [s * (1 + given.spec.joined) for s in _plain([given.sizes[d] for d in mine])]
        if [given.strides[n][d] for d in mine] != plain:
            return None
    last = sums.start if summed else sums.stop
    packs = _packs(given, range(first, last), kept, points, short, False)
    if packs is None:
        return None
    for pack in packs:
        every = [e for _, es in pack.members for e in es]
        if max(every) - pack.low >= pack.step or len(set(every)) < len(every):
            return None
    return tuple(
        [
            Pack(p.base - first, p.step, p.low, tuple([(n - first, es) for n, es in p.members]))
            for p in packs
        ]
    )


def _packs(
    given: Instance, which: range, kept: list[int], points: int, short: list[int], reads: bool
) -> tuple[Pack, ...] | None:
    """Arrays whose points lie apart, in packs; None if they do too far, or are written backwards.

    Those that lie side by side are no matter, nor those that are read a few elements apart in rows
    of coordinates (every second of 333333 x 3 complex64, transposed, 1,600 to 170 us, JAX 185).
    """
    found: list[tuple[tuple[int, int, tuple[int, ...]], list[tuple[int, list[int]]]]] = []
    arrays: list[Array] = given.arrays
    for n in which:
        # Of a result the coordinates are those that are kept.
        mine = [d for d in short if arrays[n].kind == "l" or d < len(given.strides[n])]
        combinations = list(itertools.product(*[range(given.sizes[d]) for d in mine]))
        a, pace = arrays[n], given.strides[n][points] if points < len(given.strides[n]) else 0
        step, way = abs(pace), -1 if pace < 0 else 1
        if a.kind != "m" or step < 2 and (reads or way > 0):
            continue
        if step > DISTANCE or way < 0 and not reads:
            return None
        strides = [way * given.strides[n][d] for d in mine]
        elements = [
            way * a.offset + sum([i * s for i, s in zip(at, strides, strict=True)])
            for at in combinations
        ]
        key = (id(a.node), pace, tuple([given.strides[n][d] for d in kept]))
        for other, members in found:
            every = [e for _, es in members for e in es] + elements
            if other == key and max(every) - min(every) < WINDOWS * step:
                members.append((n, elements))
                break
        else:
            if max(elements) - min(elements) >= WINDOWS * step:
                if reads and way > 0 and step <= COORDINATES:
                    continue  # every coordinate is a row of its own
                return None
            found.append((key, [(n, elements)]))
    packs = []
    for (_, pace, _), members in found:
        base, back = members[0][0], pace < 0
        start = -arrays[base].offset if back else arrays[base].offset
        low = min([e for _, es in members for e in es]) - start
        packs.append(
            Pack(
                base, abs(pace), low,
                tuple([(n, tuple([e - start for e in es])) for n, es in members]), back,
            )
        )  # fmt: skip
    return tuple(packs)
