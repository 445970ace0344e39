"""Elementwise groups whose result lies turned: rows of it are columns of what they read.

A kernel computes a block of rows, part of each, into memory in the first cache, and turns squares
of that in registers as it stores them. With a pass of its own to turn what a group had made, the
gradient of a difference of 10 x 100,000 float64, transposed, wrote and read 8 MB more.

Arrays that take turns element by element, as those of `stack(…, -1)`, are rows of one block.

The record is that of `kernels`: in the header columns of a unit and units along them; rows of a
block, blocks, columns that are turned together; sizes of the loops, rows and columns last.
"""

from __future__ import annotations

from collections.abc import Sequence

from primal.base.structures import replaced, structure
from primal.engines.cpu.code import LINE, SUFFIX, Module, itemsize
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.kernels import Spec, Writer, lanes_of
from primal.engines.cpu.kernels.takes import INNER
from primal.engines.cpu.layout import Instance
from primal.engines.cpu.layout.arrays import step_of
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.reader import smaller
from primal.engines.cpu.routines.turns import HUGE, LEAST, crossed

CLOSE = 8
"""Most arrays that take turns, element by element."""
ACROSS = 64
"""Most columns that are computed, and then turned, at a time."""
ROWS = {1: 64, 2: 64, 4: 64, 8: 32, 16: 16}
"""Bytes of an element -> most rows of a block, which stays in the first cache."""
SIDES = {1: 16, 2: 16, 4: 16, 8: 8, 16: 4}
"""Bytes of an element -> the greatest side of a square."""
SMALLEST = 4
"""The least side; of two rows half of a square is empty."""
SHORTEST = 16
"""Least columns."""
UNIT = 1 << 14
"""Elements of a unit of work, about."""
_SCALARS = {4: "float", 8: "double", 16: "double"}


@structure
class SquareSpec:
    """An elementwise body over loops, of which the last but one is that of rows.

    operands, body, stores: as of `Spec`. packs: numbers of stores that take turns, with the side of
    their squares and whether rows are fewer than that; stores in none lie along the columns.
    """

    kept: int
    operands: tuple[tuple[str, str, str], ...]
    body: tuple[tuple[str, tuple[str, ...], str, tuple[int, ...]], ...]
    stores: tuple[int, ...]
    packs: tuple[tuple[tuple[int, ...], int, bool], ...]

    reduced, column, reductions = 0, False, ()

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of operands and then of the body."""
        return [o[1] for o in self.operands] + [b[2] for b in self.body]

    def write(self, module: Module, name: str) -> None:
        """Add the kernel to a module."""
        _Squares(module, self).function(name)


class _Squares(Writer):
    """Writes a kernel whose results are turned."""

    def __init__(self, module: Module, spec: SquareSpec) -> None:
        super().__init__(module, spec)
        self.squares = spec

    def function(self, name: str) -> None:
        spec, c = self.squares, self.c
        c.start("entry")
        self.at = 4
        chunk, chunks, rows, blocks, across = (self.word() for _ in range(5))
        sizes = self.sizes = [self.word() for _ in range(spec.kept)]
        bases = self.operands()
        for _ in spec.stores:
            bases.append(self.address())
            self.strides.append([self.word() for _ in sizes])
        count = len(spec.operands)
        turned = {k for ks, _, _ in spec.packs for k in ks}
        plain = [k for k in range(len(spec.stores)) if k not in turned]
        size_of_pack = [itemsize(self.dtypes[spec.stores[ks[0]]]) for ks, _, _ in spec.packs]
        # Not on the stack, which may be small.
        rooms = [c.room(ROWS[size] * ACROSS * size) for size in size_of_pack]
        *outer, high, wide = sizes
        latest, grain = c.new(f"sub i64 {high}, {rows}"), self._grain()

        def unit(_: str, *at: str) -> None:
            *index, block, part = at
            # The last block, and the last columns, begin earlier and are written again.
            top = smaller(c, c.new(f"mul i64 {block}, {rows}"), latest)
            places = self.moved(bases, [*enumerate(index), (len(outer), top)])
            first = c.new(f"mul i64 {part}, {chunk}")
            last = smaller(c, c.new(f"add i64 {first}, {chunk}"), wide)

            def some(i: str, _: list[str]) -> list[str]:
                left = c.new(f"add i64 {c.new(f'sub i64 {wide}, {i}')}, {grain - 1}")
                width = smaller(c, across, c.new(f"and i64 {left}, {-grain}"))
                begin = smaller(c, i, c.new(f"sub i64 {wide}, {width}"))
                stop = c.new(f"add i64 {begin}, {width}")
                c.loop("0", rows, "1", [], lambda r, _: row(r, begin, stop))
                for (ks, side, few), size, room in zip(
                    spec.packs, size_of_pack, rooms, strict=True
                ):
                    there = places[count + ks[0]]
                    apart = self.strides[count + ks[0]][-1]
                    there = c.new(f"getelementptr i8, ptr {there}, i64 "
                                  f"{c.new(f'mul i64 {begin}, {apart}')}")  # fmt: skip
                    high = c.new(f"mul i64 {rows}, {len(ks)}")
                    self._turn(room, there, apart, high, width, size, side, few)
                return []

            def row(r: str, begin: str, stop: str) -> list[str]:
                here = self.moved(places, [(len(outer), r)])
                self.scalars(here)

                def vector(i: str, _: list[str]) -> list[str]:
                    values = self.evaluated(here, i, None)
                    for k in plain:
                        ref = spec.stores[k]
                        self.store(self.dtypes[ref], values[ref], here[count + k], i, None)
                    at = c.new(f"sub i64 {i}, {begin}")
                    for (ks, _, _), size, room in zip(
                        spec.packs, size_of_pack, rooms, strict=True
                    ):
                        for n, k in enumerate(ks):
                            number = c.new(f"mul i64 {r}, {len(ks)}")
                            number = c.new(f"add i64 {number}, {n}")
                            line = c.new(f"mul i64 {number}, {ACROSS * size}")
                            place = c.new(f"getelementptr i8, ptr {room}, i64 {line}")
                            ref = spec.stores[k]
                            self.store(self.dtypes[ref], values[ref], place, at, None)
                    return []

                c.loop(begin, stop, str(c.lanes), [], vector)
                return []

            c.loop(first, last, across, [], some)

        c.function(name, unit, sizes=[*outer, blocks, chunks])

    def _grain(self) -> int:
        """Columns are computed, and turned, in multiples of it."""
        return max(self.c.lanes, *[side for _, side, _ in self.squares.packs])

    def _turn(
        self, room: str, there: str, apart: str, high: str, across: str, item: int, side: int,
        few: bool,
    ) -> None:
        """Store the columns of a block as rows, so many bytes apart."""
        c = self.c
        scalar, each = _SCALARS.get(item, f"i{8 * item}"), 2 if item == 16 else 1
        t, align = c.vec(scalar, each * side), 8 if item == 16 else item
        mask = ""
        if few:
            counts = c.vec("i8", each * side)
            left = c.new(f"trunc i64 {c.new(f'mul i64 {high}, {each}')} to i8")
            first = c.new(f"insertelement {counts} poison, i8 {left}, i64 0")
            zeros = f"<{each * side} x i32> zeroinitializer"
            every = c.new(f"shufflevector {counts} {first}, {counts} poison, {zeros}")
            numbers = ", ".join([f"i8 {n}" for n in range(each * side)])
            mask = c.new(f"icmp slt {counts} <{numbers}>, {every}")
        lowest, latest = (c.new(f"sub i64 {n}, {side}") for n in (high, across))

        def columns(j: str, _: list[str]) -> list[str]:
            j = smaller(c, j, latest)
            to = c.new(f"getelementptr i8, ptr {there}, i64 {c.new(f'mul i64 {j}, {apart}')}")
            source = c.new(f"getelementptr i8, ptr {room}, i64 {c.new(f'mul i64 {j}, {item}')}")

            def square(i: str, _: list[str]) -> list[str]:
                i = "0" if few else smaller(c, i, lowest)
                line = c.new(f"mul i64 {i}, {ACROSS * item}")
                place = c.new(f"getelementptr i8, ptr {source}, i64 {line}")
                lines = []
                for n in range(side):
                    p = c.new(f"getelementptr i8, ptr {place}, i64 {n * ACROSS * item}")
                    lines.append(c.new(f"load {t}, ptr {p}, align {align}"))
                begin = c.new(f"getelementptr i8, ptr {to}, i64 {c.new(f'mul i64 {i}, {item}')}")
                for n, value in enumerate(crossed(c, scalar, lines, each)):
                    p = c.new(f"getelementptr i8, ptr {begin}, i64 "
                              f"{c.new(f'mul i64 {apart}, {n}')}")  # fmt: skip
                    if not few:
                        c.do(f"store {t} {value}, ptr {p}, align {align}")
                        continue
                    c.call_void(
                        f"llvm.masked.store.v{each * side}{SUFFIX[scalar]}.p0", (t, value),
                        ("ptr", p), ("i32", str(align)), (c.vec("i1", each * side), mask),
                    )  # fmt: skip
                return []

            if few:
                square("0", [])
            else:
                c.loop("0", high, str(side), [], square)
            return []

        c.loop("0", across, str(side), [], columns)


def over_squares(given: Instance, known: bool) -> Instance | None:
    """The same kernel with results turned as they are stored; None where they do not lie so.

    `known`: whether the group was to be one; otherwise it is if it is large, and repeats elements.
    """
    spec, arrays = given.spec, given.arrays
    if type(spec) is not Spec or spec.reduced or spec.kept < 2 or not spec.stores:
        return None
    count = len(spec.operands)
    every = list(range(spec.kept))
    spread = [d for d in every if _repeats(given, d)]
    if not (known or spread and size_of(given.sizes) >= HUGE):
        return None
    found = _rows_and_columns(given, [d for d in every if d not in spread])
    if found is None:
        return None
    rows, columns = found
    turned = [k for k in range(len(spec.stores)) if given.strides[count + k][columns] != 1]
    packs = _packs(given, turned, rows, size_of([given.sizes[d] for d in spread]))
    if packs is None or spread and len(turned) < len(spec.stores):
        return None
    order = [d for d in every if d not in (*spread, *found)] + [rows, columns]
    sizes = [given.sizes[d] for d in order]
    strides = [[s[d] for d in order] if s else [] for s in given.strides]
    steps = [step_of(a, s[-1] if s else 0) for a, s in zip(arrays[:count], strides, strict=False)]
    inner = {b[3][0] for b in spec.body if b[0] in INNER}
    if any(a.kind == "m" and step == "g" for a, step in zip(arrays, steps, strict=False)):
        return None
    if any(steps[k] == "r" for k in inner):
        return None
    most = min([ROWS[itemsize(arrays[count + ks[0]].dtype)] // len(ks) for ks in packs])
    items = [itemsize(arrays[count + ks[0]].dtype) for ks in packs]
    blocks = -(-sizes[-2] // most)
    each = -(-sizes[-2] // blocks)
    sides = []
    for ks, item in zip(packs, items, strict=True):
        side = SMALLEST
        while side < min(SIDES[item], each * len(ks)):
            side *= 2
        sides.append((tuple(ks), side, each * len(ks) < side))
    operands = tuple(
        [(kind, dtype, s) for (kind, dtype, _), s in zip(spec.operands, steps, strict=True)]
    )
    made = SquareSpec(len(order), operands, spec.body, spec.stores, tuple(sides))
    grain = max(lanes_of(made, LINE), *[side for _, side, _ in sides])
    if sizes[-1] < grain:
        return None
    across = min(sizes[-1] // grain * grain, ACROSS)
    chunk = max(UNIT // each // across, 1) * across
    chunks = -(-sizes[-1] // chunk)
    return replaced(
        given, spec=made, sizes=sizes, strides=strides, chunk=chunk, chunks=chunks, split=(),
        units=size_of(sizes[:-2]) * blocks * chunks, across=(each, blocks, across),
    )  # fmt: skip


def _repeats(given: Instance, d: int) -> bool:
    """Whether a loop stores each element several times, side by side."""
    count = len(given.spec.operands)
    return 1 < given.sizes[d] <= CLOSE and all(
        (not s or s[d] == 0) if n < count else s[d] == 1 for n, s in enumerate(given.strides)
    )


def _rows_and_columns(given: Instance, dims: Sequence[int]) -> tuple[int, int] | None:
    """The loop along which results lie side by side, and that along which operands do."""
    count, sizes = len(given.spec.operands), given.sizes
    read = [s for a, s in zip(given.arrays[:count], given.strides, strict=False) if a.kind == "m"]
    puts = given.strides[count:]
    found = []
    for d in dims:
        turned = [s for s in puts if s[d] != 1]
        close = [r for r in dims if all(1 <= s[r] <= CLOSE for s in turned) and sizes[r] > 1]
        if not turned or not close or not all(s[d] in (-1, 0, 1) for s in read):
            continue
        rows = min(close, key=lambda r: turned[0][r])
        if all(s[d] >= sizes[rows] * s[rows] for s in turned):
            found.append((rows, d))
    return max(found, key=lambda f: sizes[f[1]]) if found else None


def _packs(
    given: Instance, turned: Sequence[int], rows: int, times: int
) -> list[list[int]] | None:
    """Stores that lie in turns, in order, each so many times; None if others lie between them."""
    count = len(given.spec.operands)
    known: dict[object, list[tuple[int, int]]] = {}
    for k in turned:
        a, s = given.arrays[count + k], given.strides[count + k]
        place = a.offset // s[rows] if s[rows] > times else -1 - k
        known.setdefault((a.node, a.dtype, tuple(s), place), []).append((a.offset, k))
    packs = []
    for members in known.values():
        _, first = members[0]
        if len(members) * times != given.strides[count + first][rows]:
            return None
        packs.append([k for _, k in sorted(members) for _ in range(times)])
    if any(itemsize(given.arrays[count + k].dtype) not in SIDES for k in turned):
        return None
    return packs


def stores_squares(group: Group, place: Value) -> bool:
    """Whether a group that a node is made by may store it at a place where it lies turned."""
    if group.reductions or group.passes or place.size < LEAST or group.shape != place.shape:
        return False
    dims = [d for d, n in enumerate(place.shape) if n > 1]
    shortest = max(SHORTEST, LINE // min([n.dtype.itemsize for n in group.nodes]))
    if len(dims) < 2 or place.shape[dims[-1]] < shortest or place.steps()[dims[-1]] < 2:
        return False
    if min([place.steps()[d] for d in dims[:-1]]) > CLOSE:
        return False
    return all(
        x.node.word in ("literal", "iota") or x.node in group.level or x.steps()[dims[-1]] in (0, 1)
        for n in group.nodes for x in n.args
    )  # fmt: skip
