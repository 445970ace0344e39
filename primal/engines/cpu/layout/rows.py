"""From a group to a kernel: of one pass, or of several over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.structures import replaced, structure
from primal.engines.cpu import layout
from primal.engines.cpu.code import LINE
from primal.engines.cpu.graph import NAMES, Node, Value, row_major, size_of
from primal.engines.cpu.kernels.rows import SCALAR_ROOM, Item, RowSpec
from primal.engines.cpu.kernels.turned_rows import SIDE
from primal.engines.cpu.layout import COLUMNS, UNIT, Address, Instance
from primal.engines.cpu.layout.arrays import GRAIN, Array, Loops, Operands
from primal.engines.cpu.layout.flat import flattened, gathers_many, in_chunks
from primal.engines.cpu.layout.points import MANY, over_points
from primal.engines.cpu.layout.squares import over_squares
from primal.engines.cpu.plan.rowwise import (
    LONGEST,
    TALLEST,
    WIDEST,
    is_packed,
    kept_shape,
    row_strides,
)
from primal.engines.cpu.plan.schedule import MAX_PARTS, PART, Group, is_held, is_light_word

BLOCK, MOST = 1024, 16
"""Elements of a unit of work, about, and most rows."""
ROWS, TOGETHER = 8, 1 << 16
"""Rows that keep threads busy, and elements of one whose passes follow each other in the second
cache."""
LOW = 32
"""Rows whose columns, however many, stay in the first cache a vector at a time: there more of them
may lie in the same few lines."""
ROWS_OF_BLOCK = 8
"""Rows whose columns are added up in registers before their totals go back to memory."""


def instance(group: Group, stored: Sequence[Node]) -> Instance:
    """The kernel of a group that stores these nodes and reductions."""
    if group.first is not None:
        return layout.second_run(group, group.first.kernel)
    packed = is_packed(group, [*group.nodes, *group.reductions])
    if group.passes or (packed and not _are_points(group)):
        group.kernel = row_instance(group, stored)
        return group.kernel
    made = layout.instance(group, [n for n in stored if n.word != "reduce"])
    if packed:
        points = over_points(made)
        group.kernel = points or row_instance(group, stored)
        return group.kernel
    found: Instance | None = over_squares(made, group.squares)
    if found is None:
        flat = flattened(made)
        points = over_points(made) if flat is None or gathers_many(flat) else None
        found = points or flat or made
    group.kernel = found
    return found


def _are_points(group: Group) -> bool:
    """Whether packed rows are so short, and so many, that code for their length is worth it.

    Of fewer columns than are turned together, those that are not there are turned too: sums of rows
    of 333,333 x 3 int32 took 188 us so, and take 69 (JAX 95), of 10,000 x 8 12 and 14.
    """
    rows, length = size_of(kept_shape(group)), size_of([group.shape[d] for d in group.axes or ()])
    return length <= SIDE and rows >= MANY


@structure
class Run:
    """A run of a kernel over rows; see `row_runs`. `turns`, `block`: of the divided loop."""

    first: int
    stop: int
    units: int
    chunk: int
    chunks: int
    parts: int
    turns: int
    block: int
    collects: bool = False


@structure
class RowInstance(Instance):
    """`arrays` hold operands, buffers, stores, results; buffers are of kind 'r'.

    `runs`: one, or several that each take a pass (`alone`) or put its totals together.
    `memory`: whether buffers lie in memory, in the bytes of `scratch` or where something is stored:
    `lent` says in which array each lies, or how many bytes behind the others and by which strides.
    """

    stack: int = 0
    runs: tuple[Run, ...] = ()
    alone: bool = False
    memory: bool = False
    scratch: int = 0
    divided: int = 0
    lent: tuple[Any, ...] = ()
    held: tuple[int, int, tuple[int, ...]] = (0, 0, ())
    """Of what waits: offset, bytes from one to the next, strides of the kept loops."""
    totals: tuple[int, int, int, tuple[int, ...]] = (0, 0, 0, ())
    """Of totals: offset, bytes from one to the next and from part to part, strides."""

    def record(
        self, code: int, address: Address, scratch: tuple[int, int] = (0, 0)
    ) -> list[int]:
        if self.spec.turned:
            return self._record(code, address, scratch, None)
        return [w for run in self.runs for w in self._record(code, address, scratch, run)]

    def _record(
        self, code: int, address: Address, scratch: tuple[int, int], run: Run | None
    ) -> list[int]:
        parts = max([r.parts for r in self.runs], default=1)
        if run is None:
            words = [code, 0, self.units, self.cost, self.chunk, self.chunks]
        else:
            words = [code, 0, run.units, self.cost_of(run), run.chunk, run.chunks]
            words += [run.first, run.stop, self.alone, run.collects, self.memory, run.parts]
            words += [parts, run.turns, run.block, self.divided]
        words += [*self.sizes, self.stack]
        count = len(self.spec.operands)
        for k, (a, strides) in enumerate(zip(self.arrays, self.strides, strict=True)):
            size = int(a.dtype[1:])
            if a.kind == "r" and self.memory:
                lent = self.lent[k - count]
                if isinstance(lent, int):
                    words += self._place(self.arrays[lent], self.strides[lent], address)
                else:
                    offset, apart = lent
                    words += [scratch[0], scratch[1] + offset, *[s * size for s in apart]]
            elif a.kind == "r":
                words += [0, a.offset] if run else [a.offset]
                words += [s * (LINE if self.spec.column else size) for s in strides]
            elif a.kind == "l":
                words.append(int.from_bytes(a.node.attr, "little"))
            elif a.kind == "i":
                words += [a.offset, *strides]
            else:
                words += self._place(a, strides, address)
        if run is not None:
            for offset, *apart, steps in (self.held, self.totals):
                words += [scratch[0], scratch[1] + offset] if self.alone else [0, 0]
                words += [*apart, *steps]
        words[1] = len(words)
        return words

    @staticmethod
    def _place(a: Array, strides: Sequence[int], address: Address) -> list[int]:
        slot, base = address(a.node)
        size = int(a.dtype[1:])
        return [slot, base + a.offset * size, *[s * size for s in strides]]

    def cost_of(self, run: Run) -> int:
        """Nanoseconds of a unit of a run, roughly."""
        if run.collects:
            return 20 + run.chunk * self.totals[1] // 8
        return int(20 + (self.cost - 20) * self.units / run.units * (run.stop - run.first)
                   / (self.spec.last + 1))  # fmt: skip


def row_instance(group: Group, stored: Sequence[Node]) -> RowInstance:
    """The kernel of a group of several passes that stores these nodes and reductions."""
    entries, again = _entries(group, stored)
    arrays, items, reductions, numbers = _computed(group, entries, again)
    count = len(arrays)
    shape, axes = group.shape, group.axes or ()
    inner = [d for d in range(len(shape)) if d in axes and shape[d] != 1]
    outer = [d for d in range(len(shape)) if d not in axes and shape[d] != 1]
    wide = [n for n in stored if n.word != "reduce" and n not in group.alone]
    single = [n for n in stored if n.word == "reduce" or n in group.alone]
    turned = is_packed(group, [*group.nodes, *group.reductions])
    column = turned or outer[-1:] > inner[-1:]
    length = size_of([shape[d] for d in inner])
    latest = _latest(group, entries, again)
    waiting = [
        n for n in group.nodes
        if n not in group.alone and n not in wide and latest.get(n, 0) > group.level[n]
    ]  # fmt: skip
    buffers, stack = _buffers(group, waiting, length, column)
    across = iter(row_major(kept_shape(group)))
    result_strides = tuple([0 if d in axes else next(across) for d in range(len(shape))])
    arrays += buffers
    arrays += [Array("m", node, NAMES[node.dtype], row_major(shape), 0) for node in wide]
    arrays += [Array("m", node, NAMES[node.dtype], result_strides, 0) for node in single]
    loops = Loops(shape, outer, inner, arrays)
    loops.kept = loops.kept or [(1, [])]
    kept, sizes = len(loops.kept), loops.sizes
    strides = loops.strides(arrays, len(single))
    steps = loops.steps(arrays[:count], strides, column)
    if turned:
        pace, *plain = row_major(sizes[kept - 1 :])
        for k, a in enumerate(arrays[:count]):
            # Parts of longer rows too.
            if a.kind == "m" and [*strides[k][kept:]] == plain and strides[k][kept - 1] >= pace:
                steps[k] = "t"
    spec = RowSpec(
        kept,
        len(loops.reduced),
        tuple([(a.kind, a.dtype, step) for a, step in zip(arrays, steps, strict=False)]),
        items,
        reductions,
        tuple([numbers[n] for n in waiting]),
        tuple([numbers[n] for n in wide]),
        tuple([numbers[n] for n in single]),
        column,
        LINE if turned else min(1 << (sizes[kept - 1] - 1).bit_length(), LINE) * column,
        turned,
    )
    if turned:
        chunk, chunks = in_chunks(sizes[kept - 1], length)
        units = size_of(sizes[: kept - 1]) * chunks
        return RowInstance(spec, sizes, arrays, strides, units, chunk, chunks, stack=stack)
    made = RowInstance(spec, sizes, arrays, strides, 1, 1, 1, stack=stack)
    columns = [n for n in shape if n != 1][-1]
    if length > (TALLEST if column else LONGEST // 8) or (
        column and length > LOW and length * columns > WIDEST
    ):
        return _far(made, latest, group)
    return _near(made)


Entries = list[tuple[Node, int]]
"""Nodes in order, each with its pass."""


def _computed(
    group: Group, entries: Entries, again: set[tuple[Node, int]]
) -> tuple[list[Array], tuple[Item, ...], tuple[tuple[str, int, int], ...], dict[Node, int]]:
    """What a group reads, what it computes of that in each pass, and the numbers of its nodes."""
    operands = Operands()

    def read(x: Value, reader: Node) -> int:
        strides = row_strides(x, group, reader in group.alone)
        assert strides is not None or x.node.word == "literal"
        return operands.number(x, strides or ())

    for node in (*group.nodes, *group.reductions):
        for x in node.args:
            if not is_held(x, group):
                read(x, node)
    count = len(operands.arrays)
    made = {entry: count + i for i, entry in enumerate(entries)}
    numbers = {node: n for (node, level), n in made.items() if level == group.level[node]}
    numbers.update({n: count + len(made) + i for i, n in enumerate(group.reductions)})

    def ref(x: Value, reader: Node, level: int) -> int:
        if not is_held(x, group):
            return read(x, reader)
        return made[x.node, level] if (x.node, level) in again else numbers[x.node]

    items = tuple(
        [
            (
                n.word,
                tuple([NAMES[x.node.dtype] for x in n.args]),
                NAMES[n.dtype],
                tuple([ref(x, n, level) for x in n.args]),
                level,
                n in group.alone,
            )
            for n, level in entries
        ]
    )
    reductions = tuple(
        [(n.attr[0], ref(n.args[0], n, group.level[n]), group.level[n]) for n in group.reductions]
    )
    return operands.arrays, items, reductions, numbers


def _latest(
    group: Group, entries: Entries, again: set[tuple[Node, int]]
) -> dict[Node, int]:
    """The last pass that reads each node, but for what that pass computes again."""
    latest: dict[Node, int] = {}
    for n, level in [*entries, *[(n, group.level[n]) for n in group.reductions]]:
        for x in n.args:
            if (x.node, level) not in again:
                latest[x.node] = max(latest.get(x.node, 0), level)
    return latest


def _buffers(
    group: Group, waiting: Sequence[Node], length: int, column: bool
) -> tuple[list[Array], int]:
    """Where a row of each node waits for a later pass, on the stack; and bytes of it all."""
    shape, axes = group.shape, group.axes or ()
    along = iter(row_major([n for d, n in enumerate(shape) if d in axes]))
    strides = tuple([next(along) if d in axes else 0 for d in range(len(shape))])
    buffers, stack = [], 0
    for node in waiting:
        dtype = NAMES[node.dtype]
        buffers.append(Array("r", node, dtype, strides, stack))
        stack += length * LINE if column else (-(-length * int(dtype[1:]) // LINE) + 1) * LINE
    return buffers, stack


def _entries(
    group: Group, stored: Sequence[Node]
) -> tuple[Entries, set[tuple[Node, int]]]:
    """The nodes in order, each with its pass; and those that a later pass computes again.

    These are single words of at most one array that is read, and of what is one per row: to keep
    the result for a later pass takes as long, and is one more array in memory.
    """
    again: set[tuple[Node, int]] = set()
    before: dict[Node, Entries] = {}
    unread: set[Node] = set(group.nodes)
    for reader in (*group.nodes, *group.reductions):
        level = group.level[reader]
        for x in reader.args:
            node = x.node
            if (node, level) in again:
                continue
            if node in group.level and node.word != "reduce" and is_held(x, group):
                later = group.level[node] < level and node not in group.alone
                if later and node not in stored and _is_made_again(node, group):
                    again.add((node, level))
                    before.setdefault(reader, []).append((node, level))
                else:
                    unread.discard(node)
    unread.difference_update(stored)
    entries: Entries = []
    for node in group.nodes:
        entries += before.get(node, [])
        if node not in unread:
            entries.append((node, group.level[node]))
    for node in group.reductions:
        entries += before.get(node, [])
    return entries, again


def _is_made_again(node: Node, group: Group) -> bool:
    """Whether a pass may as well compute the node again."""
    arrays = 0
    for x in node.args:
        if is_held(x, group):
            if x.node.word != "reduce" and x.node not in group.alone:
                return False
        elif x.node.word != "literal":
            arrays += 1
    return is_light_word(node.word) and arrays <= 1


def _near(made: RowInstance) -> RowInstance:
    """All passes in one run."""
    spec, sizes = made.spec, made.sizes
    outside, rows = size_of(sizes[: spec.kept - 1]), sizes[spec.kept - 1]
    length = size_of(sizes[spec.kept :])
    if spec.column:
        chunk = max(UNIT // length // GRAIN * GRAIN, GRAIN)
        plane = LINE
    else:
        chunk, plane = min(max(BLOCK // length, 1), MOST, rows), SCALAR_ROOM
    chunk = min(chunk, rows)
    chunks = -(-rows // chunk)
    divided, turns = _longest(made)
    run = Run(0, spec.last + 1, outside * chunks, chunk, chunks, 1, turns, turns)
    none = (0,) * spec.kept
    return replaced(
        made, units=run.units, chunk=chunk, chunks=chunks, runs=(run,), divided=divided,
        held=(0, plane, none), totals=(0, 0, 0, none),
    )  # fmt: skip


def _longest(made: RowInstance) -> tuple[int, int]:
    """The reduced loop that is divided, and its turns."""
    kept, sizes = made.spec.kept, made.sizes
    most = max(sizes[kept:])
    return sizes.index(most, kept), most


def _far(made: RowInstance, latest: dict[Node, int], group: Group) -> RowInstance:
    """Passes over rows that leave the cache in between."""
    spec, sizes = made.spec, made.sizes
    kept = spec.kept
    outside, rows = size_of(sizes[: kept - 1]), sizes[kept - 1]
    length, size = size_of(sizes[kept:]), size_of(sizes)
    divided, most = _longest(made)
    lent, scratch = _lent(made, latest, group)
    if not spec.column and outside * rows >= ROWS and length <= TOGETHER:
        run = Run(0, spec.last + 1, outside * rows, 1, rows, 1, most, most)
        return replaced(
            _near(made), runs=(run,), units=run.units, chunk=1, chunks=rows, memory=True,
            lent=lent, scratch=scratch, stack=0,
        )  # fmt: skip
    chunk = min(COLUMNS, rows) if spec.column else 1
    chunks = -(-rows // chunk)
    parts = max(1, min(size // PART // (outside * chunks), MAX_PARTS))
    least = ROWS_OF_BLOCK if spec.column else GRAIN
    turns = -(-most // parts)
    if divided == len(sizes) - 1 or spec.column:
        turns = -(-turns // least) * least
    parts = -(-most // turns)
    units = outside * chunks
    # What waits, then totals.
    count, sums = len(spec.held), max([_sums(spec, p) for p in range(spec.last + 1)])
    if spec.column:
        wide = -(-rows // GRAIN) * GRAIN * 8
        apart = [*[s * wide for s in row_major(sizes[: kept - 1])], 0]
        plane = outside * wide
        held = scratch, plane, tuple(apart)
        strides = tuple([s * parts * sums for s in apart])
        totals = scratch + count * plane, wide, sums * wide, strides
        scratch += (count + parts * sums) * plane
        each = min(GRAIN * 4, rows)
    else:
        apart = list(row_major(sizes[:kept]))
        held = scratch, SCALAR_ROOM, tuple([s * count * SCALAR_ROOM for s in apart])
        offset = scratch + count * SCALAR_ROOM * outside * rows
        totals = offset, parts * 8, 8, tuple([s * parts * sums * 8 for s in apart])
        scratch = offset + parts * sums * 8 * outside * rows
        each = 1
    runs = []
    for p in range(spec.last + 1):
        ends = _sums(spec, p)
        if ends or any(not x[5] and x[4] == p for x in spec.items):
            block = ROWS_OF_BLOCK if spec.column else turns
            runs.append(Run(p, p + 1, units * parts, chunk, chunks, parts, turns, block))
        if ends:
            few = -(-rows // each)
            runs.append(Run(p, p + 1, outside * few, each, few, 1, most, most, True))
    return replaced(
        made, units=units * parts, chunk=chunk, chunks=chunks, runs=tuple(runs), alone=True,
        memory=True, scratch=scratch, divided=divided, lent=lent, held=held, totals=totals, stack=0,
    )  # fmt: skip


def _sums(spec: RowSpec, number: int) -> int:
    """Reductions of a pass."""
    return sum([at == number for _, _, at in spec.reductions])


def _lent(
    made: RowInstance, latest: dict[Node, int], group: Group
) -> tuple[tuple[Any, ...], int]:
    """Where each buffer lies in memory, and bytes of those that have memory of their own.

    That is where something is stored no earlier than the buffer is read for the last time.
    """
    spec, sizes = made.spec, made.sizes
    count, kept = len(spec.operands), spec.kept
    free = list(range(count + len(spec.buffers), count + len(spec.buffers) + len(spec.stores)))
    own = row_major(sizes)
    if spec.column:  # rows of all columns that are kept together
        own = row_major([*sizes[: kept - 1], *sizes[kept:], sizes[kept - 1]])
        own = (*own[: kept - 1], own[-1], *own[kept - 1 : -1])
    found: list[Any] = []
    room = 0
    for a in made.arrays[count : count + len(spec.buffers)]:
        size = int(a.dtype[1:])
        at = next(
            (k for k in free
             if int(made.arrays[k].dtype[1:]) == size
             and group.level[made.arrays[k].node] >= latest[a.node]), None
        )  # fmt: skip
        if at is not None:
            free.remove(at)
            found.append(at)
            continue
        found.append((room, tuple(own)))
        room += -(-size_of(sizes) * size // LINE) * LINE
    return tuple(found), room
