"""From a group to a kernel: loops merged, steps classified, and the record of this instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base.structures import replaced, structure
from primal.engines.cpu.code import LINE
from primal.engines.cpu.functions import FLOAT
from primal.engines.cpu.graph import NAMES, Node, row_major, size_of
from primal.engines.cpu.kernels import HEADER, Spec, is_short, lanes_of
from primal.engines.cpu.kernels.arms import Item
from primal.engines.cpu.kernels.takes import INNER, TAKE
from primal.engines.cpu.layout.arrays import (
    GRAIN,
    NARROWEST,
    Array,
    Loops,
    Operands,
    as_bits,
    as_they_lie,
    has_narrow,
    is_narrow,
    piece,
)
from primal.engines.cpu.plan.schedule import Group, is_inside, may_be_parted

UNIT = 32768
"""Elements per unit of work: some microseconds, so that a wish to stop is seen soon, and later
threads can share what is left."""
EVEN = 4
"""A row has a multiple of so many units, of one length, that threads have as many: 100,000 elements
once went 65,536 to 34,464."""
WIDE = 256
"""Least columns of a block, so that what is read of a row is long."""
TALL = 16
"""Rows from which the totals of columns lie on the stack."""
SHORTEST, APART = 8, 16
"""Elements of a row up to which vectors are masked; of vectors that are read one by one."""
PLAIN = 32
"""Words, all but functions, up to which the code is there twice, for the last vector of a row to
overlap the one before: masks take a fifth to a third of short rows (six points of 17 x 17 x 17
float32 5.5 to 4.3 us)."""
BLOCK, FEW = 8192, 16
"""Elements of a unit of short rows; rows so few that two loops of them are in a unit."""
SHORT_ROW = 17
"""Elements of a row, side by side, below which a lane for each row gathers them: from there on rows
go by vectors, however few (sums of 30,000 rows of 20 float32 280 to 160 us, of 31 float64 890 to
125)."""
STRIDED = 512
"""Elements of a unit whose vectors run across rows: they share cache lines with the rows beside."""
COLUMNS = 2048
"""Most columns that are reduced together: their totals stay in the first-level cache."""
Address = Callable[[Node], tuple[int, int]]
"""node -> (slot, offset in bytes)."""


@structure
class Instance:
    """A kernel with the sizes and strides of one group; `record` gives its words."""

    spec: Any
    sizes: list[int]
    arrays: list[Array]
    strides: list[list[int]]
    units: int
    chunk: int
    chunks: int
    split: tuple[int, ...] = ()
    """What `parts` says behind the header."""
    across: tuple[int, ...] = ()
    """Of units of several rows: elements of a row in each, units side by side."""
    between: tuple[Node, ...] = ()
    """What parts give, or gave."""
    apart: tuple[tuple[int, ...], int] = ((), 0)
    """Strides of the kept loops and from part to part, in elements, of what parts give."""
    scratch: int = 0
    """Bytes of memory that it needs while it runs."""

    @property
    def cost(self) -> int:
        """Nanoseconds that a unit takes, roughly, on one core whose caches hold the operands.

        Views of one array are read as words are computed: the five of a step of 128 x 128 along
        the slope of its neighbours' mean count as one, else threads would share what takes 2 us.
        """
        spec = self.spec
        words = sum([0.2 if b[0] in FLOAT else TAKE if b[0] == "take" else 0.03 for b in spec.body])
        moving = [a for a in self.arrays if a.kind == "m"]
        once = {a.node: int(a.dtype[1:]) for a in moving}
        moved = 0.05 * sum(once.values()) + 0.03 * (len(moving) - len(once))
        return int(20 + (words + moved) * size_of(self.sizes) / max(self.units, 1))

    def record(
        self, code: int, address: Address, scratch: tuple[int, int] = (0, 0)
    ) -> list[int]:
        """The words, given where the kernel's code and every node are."""
        words = [code, 0, self.units, self.cost, self.chunk, self.chunks]
        assert len(words) == HEADER
        words += [*self.split, *self.across, *self.sizes]
        for a, strides in zip(self.arrays, self.strides, strict=True):
            if a.kind == "l":
                words.append(int.from_bytes(a.node.attr, "little"))
            elif a.kind == "i":
                words += [a.offset, *strides]
            elif a.kind == "n":
                words += [0, 0, *strides]
            else:
                slot, base = address(a.node)
                size = int(a.dtype[1:])
                words += [slot, base + a.offset * size, *[s * size for s in strides]]
        if self.split:
            words += self._parts(address)
        words[1] = len(words)
        return words

    def _parts(self, address: Address) -> list[int]:
        words: list[int] = []
        strides, step = self.apart
        for node in self.between:
            size = node.dtype.itemsize
            words += [*address(node), *[s * size for s in strides], step * size]
        if not self.between:
            words += [0] * (3 + len(strides)) * len(self.spec.reductions)
        return words

    @property
    def flops(self) -> int:
        """Arithmetic done, a word per element each."""
        return (len(self.spec.body) + len(self.spec.reductions)) * size_of(self.sizes)


def instance(group: Group, stored: Sequence[Node]) -> Instance:
    """The kernel of a group that stores these nodes and all its reductions."""
    arrays, body, reduced_refs = _computed(group)
    count = len(arrays)
    numbers = {node: count + i for i, node in enumerate(group.nodes)}
    shape, axes = group.shape, group.axes or ()
    plain = row_major(shape)
    arrays += [Array("m", node, NAMES[node.dtype], plain, 0) for node in stored]
    written = [n for n in group.nodes if n in group.pieces]
    arrays += [piece(group.pieces[n], group.pieces[n].steps()) for n in written]
    stores = tuple([numbers[node] for node in (*stored, *written)])
    if body and {b[0] for b in body} == {"copy"} and len({a.dtype for a in arrays}) == 1:
        shape, arrays = as_bits(shape, arrays, group.squares)
        moved = arrays[0].dtype
        body = tuple([("copy", (moved,), moved, found) for *_, found in body])
    inner = as_they_lie([d for d in range(len(shape)) if d in axes and shape[d] != 1], arrays)
    outer = [d for d in range(len(shape)) if d not in axes and shape[d] != 1]
    arrays += _results(group, shape)
    # Parts are wider.
    reductions = tuple(
        [
            (n.attr[0], r, NAMES[n.args[0].node.dtype])
            for n, r in zip(group.reductions, reduced_refs, strict=True)
        ]
    )
    joined = any(group.pieces[n].node.dtype != n.dtype for n in group.reductions
                 if n in group.pieces)  # fmt: skip
    if not inner:  # over dimensions of size 1: the elements themselves
        stores, reductions = stores + tuple([r for _, r, _ in reductions]), ()
    column = bool(inner and outer) and _runs_along_kept(
        shape, outer, inner, arrays, count, bool(stores)
    )
    loops = Loops(shape, outer, inner, arrays)
    strided = not loops.reduced and is_narrow(loops.kept, arrays)
    if strided:
        loops.kept.sort(key=lambda loop: loop[0])
    strides = loops.strides(arrays, len(reductions))
    steps = loops.steps(arrays, strides, column)
    strided |= any(step != "u" for step in steps[count : count + len(stores)])
    spec = Spec(
        len(loops.kept),
        len(loops.reduced),
        column,
        tuple([(a.kind, a.dtype, s) for a, s in zip(arrays[:count], steps, strict=False)]),
        body,
        stores,
        reductions,
        strided,
        joined=joined and bool(reductions),
    )
    spec = with_size_classes(spec, loops.sizes, may_be_parted(group))
    made = Instance(spec, loops.sizes, arrays, strides, *_units(spec, loops.sizes, group.parts))
    return _split(made, group) if made.split else made


def _computed(group: Group) -> tuple[list[Array], tuple[Item, ...], list[int]]:
    """What a group reads, the words of its body, and what of both its reductions read."""
    operands = Operands()
    # Operands are numbered before the body: until they are all known, its nodes count from below 0.
    nodes = {node: i - len(group.nodes) for i, node in enumerate(group.nodes)}
    refs = [
        [
            nodes[x.node]
            if is_inside(x, group)
            else operands.number(x, x.steps(), i < INNER.get(node.word, 0))
            for i, x in enumerate(node.args)
        ]
        for node in (*group.nodes, *group.reductions)
    ]
    last = len(operands.arrays) + len(nodes)
    refs = [[r if r >= 0 else last + r for r in found] for found in refs]
    body = tuple(
        [
            (n.word, tuple([NAMES[x.node.dtype] for x in n.args]), NAMES[n.dtype], tuple(found))
            for n, found in zip(group.nodes, refs, strict=False)
        ]
    )
    return operands.arrays, body, [r for (r,) in refs[len(nodes) :]]


def _results(group: Group, shape: tuple[int, ...]) -> list[Array]:
    """Where reductions are stored, of strides over dimensions of which the reduced ones have 0."""
    axes = group.axes or ()
    plain = row_major([n for d, n in enumerate(shape) if d not in axes])
    out = []
    for node in group.reductions:
        place = group.pieces.get(node)
        found = iter(plain if place is None else place.steps())
        strides = tuple([0 if d in axes else next(found) for d in range(len(shape))])
        dtype = NAMES[node.dtype]
        at = Array("m", node, dtype, strides, 0) if place is None else piece(place, strides)
        out.append(replaced(at, dtype=dtype))
    return out


def _split(made: Instance, group: Group) -> Instance:
    """With the strides of parts; of a group that has several, the run that gives them."""
    kept = made.sizes[: made.spec.kept]
    # Parts of a row's result lie side by side, as do the results of columns.
    apart = tuple(row_major(kept)), size_of(kept)
    if not made.spec.column:
        apart = tuple([s * made.split[2] for s in apart[0]]), 1
    made = replaced(made, apart=apart)
    # A run of one part would take its results for the last ones.
    assert made.split[1] > 1 or group.parts == 1
    return _parted(made, group.reductions) if group.parts > 1 else made


def _parted(made: Instance, nodes: Sequence[Node], between: Sequence[Node] = ()) -> Instance:
    """A run that gives parts, or, if `between` are parts, one that makes results of them."""
    count = len(made.arrays) - len(nodes)
    arrays = list(made.arrays)
    if between:
        arrays = [replaced(a, kind="n") if a.kind == "m" else a for a in arrays]
    kind = "m" if between else "n"
    arrays[count:] = [
        replaced(a, kind=kind, node=n, dtype=NAMES[n.dtype])
        for a, n in zip(arrays[count:], nodes, strict=True)
    ]
    return replaced(made, arrays=arrays, between=tuple(between or nodes))


def second_run(group: Group, made: Instance) -> Instance:
    """The run of a kernel that reduces what its parts gave to the group's results."""
    nodes = group.reductions
    found = _parted(made, nodes, made.between)
    for node in nodes:
        if node in group.pieces:
            at = len(found.arrays) - len(nodes) + nodes.index(node)
            found.arrays[at] = piece(group.pieces[node], ())
    if type(made.spec) is not Spec:  # points, whose chunks are the parts
        units = made.units // made.chunks
        return replaced(found, units=units, chunk=0, chunks=1)
    _, parts, *rest = made.split
    return replaced(found, units=made.units // parts, split=(0, 1, *rest))


def _runs_along_kept(
    shape: tuple[int, ...], outer: list[int], inner: list[int], arrays: list[Array], count: int,
    stores: bool,
) -> bool:
    """Whether the vectors of a reduction run along a dimension that is kept.

    `outer` and `inner`: kept and reduced dimensions; the first `count` arrays are what is read;
    `stores`: whether elements are stored beside the reductions.
    """
    terms = size_of([shape[d] for d in inner])
    # As of a transposed array: elements lie side by side along what is kept, or the other one.
    read = [a.strides for a in arrays[:count] if a.kind == "m"]
    # Contiguous ones, or rows too short to fill any vector.
    row = size_of([shape[d] for d in inner if d > outer[-1]])
    filled = row >= SHORT_ROW and all(s[inner[-1]] in (0, 1) for s in read)
    column = outer[-1] > inner[-1] or (
        not (stores or filled) and terms < GRAIN // 2 and shape[outer[-1]] >= terms
    )
    if not stores:
        near, far = (inner[-1], outer[-1]) if column else (outer[-1], inner[-1])
        if not column or terms >= GRAIN // 2:
            column ^= all(s[near] in (0, 1) for s in read) and any(
                s[far] not in (0, 1) for s in read
            )
    if has_narrow(arrays):
        return column
    if stores and not column:
        # Rows too short to fill a vector, of which elements are stored: as `is_narrow`.
        return shape[outer[-1]] >= GRAIN and terms <= NARROWEST
    if column and not stores:
        behind = size_of([shape[d] for d in outer if d > inner[-1]])
        # The mean of 100,000 points: 3 lanes of a vector for each, or vectors of each coordinate.
        return not (1 < behind <= NARROWEST and terms >= 4 * GRAIN)
    return column


def with_size_classes(spec: Spec, sizes: list[int], split: bool) -> Spec:
    """What sizes decide about the code."""
    if not spec.reduced:
        # Rows of plain bodies gain nothing by aligned vectors (bias of 300 x 304: 7.7 µs to 6.3, of
        # 2 x 33,000 8.8 to 8.3). What lies apart goes by columns of rows, however long these are.
        if len(sizes) == 1 or spec.strided:
            return spec
        # Narrow numbers that lie apart are read one by one: under masks, with a branch for each.
        apart = any(step == "g" and int(dtype[1:]) < 4 for _, dtype, step in spec.operands)
        most = APART if apart else lanes_of(spec, LINE)
        vector = min(1 << (sizes[-1].bit_length() - 1), most)
        plain = len(spec.body) <= PLAIN and not any(b[0] in FLOAT for b in spec.body)
        overlaps = plain and (vector >= SHORTEST or apart)
        few = len(sizes) > 2 and sizes[-2] < FEW and size_of(sizes[-2:]) <= BLOCK
        nested = 2 if few else 1
        return replaced(spec, short=vector * overlaps, nested=nested)
    light, rows = is_short(spec.body), size_of(sizes[spec.kept :])
    return replaced(
        spec,
        blocked=spec.column
        and (not light or rows >= TALL)
        and all(spec.dtypes[ref] != "b1" for _, ref, _ in spec.reductions),
        split=split,
    )


def _units(
    spec: Spec, sizes: list[int], parts: int
) -> tuple[int, int, int, tuple[int, ...], tuple[int, ...]]:
    """Units of work, elements of the inner dimension in each, units per row; how it is split, and
    how rows are that units have several of."""
    kept = sizes[: spec.kept]
    split: tuple[int, ...] = ()
    if spec.split:
        # Rows that parts cannot divide are left whole: there would be one part, of no result.
        whole = spec.reduced > 1 and not spec.column and sizes[-1] <= GRAIN
        longest = sizes.index(max(sizes[spec.kept : len(sizes) - whole]), spec.kept)
        turns = -(-sizes[longest] // parts)
        if longest == len(sizes) - 1 and not spec.column:
            turns = -(-turns // GRAIN) * GRAIN
        parts = -(-sizes[longest] // turns)
        split = turns, parts, parts
        if spec.reduced > 1:
            split = *split, longest
    if spec.reduced and not spec.column:
        return size_of(kept) * parts, 1, 1, split, ()
    if spec.nested:
        outer, n = spec.kept - 1 - spec.nested, kept[-1]
        wide, pieces = (n, 1) if n < UNIT else _divided(n, UNIT)
        each = max(1, BLOCK // size_of(kept[outer + 1 :]))
        chunks = -(-kept[outer] // each)
        return size_of(kept[:outer]) * chunks * pieces, each, chunks, split, (wide, pieces)
    each = STRIDED if spec.strided else UNIT
    if spec.column:
        least = WIDE if spec.blocked else GRAIN
        each = max(least, UNIT // size_of(sizes[spec.kept :]) * parts // GRAIN * GRAIN)
        each = min(each, COLUMNS)
    n = kept[-1]
    chunks = -(-n // each)
    if chunks > 1 and not spec.column and not spec.strided:
        each, chunks = _divided(n, each)
    return size_of(kept[:-1]) * chunks * parts, each, chunks, split, ()


def _divided(n: int, each: int) -> tuple[int, int]:
    """Elements of a row in each unit, and units: as many for every thread."""
    chunks = -(-n // (each * EVEN)) * EVEN
    each = -(-n // chunks // GRAIN) * GRAIN
    # The last vector of a unit may overlap the one before, but not another unit's.
    while 0 < n % each < GRAIN:
        each += GRAIN
    return each, -(-n // each)
