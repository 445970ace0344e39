"""From a group to a kernel: loops merged, steps classified, and the record of this instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base.structures import replaced, structure
from primal.engines.cpu.code import LINE
from primal.engines.cpu.functions import FLOAT
from primal.engines.cpu.graph import NAMES, Node, Value, row_major, size_of
from primal.engines.cpu.interleaved import PART
from primal.engines.cpu.kernels import HEADER, Spec, is_light, lanes_of
from primal.engines.cpu.kernels.takes import INNER, TAKE
from primal.engines.cpu.plan.schedule import Group, is_inside, may_be_parted

UNIT = 32768
"""Elements per unit of work: some microseconds, so that a wish to stop is seen soon, and later
threads can share what is left."""
EVEN = 4
"""A row has a multiple of so many units, of one length, that threads have as many: 100,000 elements
once went 65,536 to 34,464."""
GRAIN = 64
"""Units begin at multiples of this, so that no two of them share a vector."""
NARROWEST = 6
"""Elements of rows up to which vectors run across the rows."""
WIDE = 256
"""Least columns of a block, so that what is read of a row is long."""
TALL = 16
"""Rows from which the totals of columns lie on the stack."""
SHORTEST, APART = 8, 16
"""Elements of a row up to which vectors are masked; of vectors that are read one by one."""
BLOCK, FEW = 8192, 16
"""Elements of a unit of short rows; rows so few that two loops of them are in a unit."""
STRIDED = 512
"""Elements of a unit whose vectors run across rows: they share cache lines with the rows beside."""
COLUMNS = 2048
"""Most columns that are reduced together: their totals stay in the first-level cache."""
Address = Callable[[Node], tuple[int, int]]
"""node -> (slot, offset in bytes)."""


@structure
class Array:
    """What a kernel reads or writes: strides over the group's dimensions, in elements.

    kind: as of an operand of `Spec`; 'n' is memory that this run does not touch.
    """

    kind: str
    node: Node
    dtype: str
    strides: tuple[int, ...]
    offset: int


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
    arrays: list[Array] = []
    numbers: dict[Any, int] = {}

    def operand(x: Value, inner: bool) -> int:
        node = x.node
        dtype = NAMES[node.dtype]
        kind = {"literal": "l", "iota": "i"}.get(node.word, "m")
        strides = () if kind == "l" else x.steps()
        key = (id(node), strides, x.offset, inner)
        if key not in numbers:
            numbers[key] = len(arrays)
            arrays.append(Array(kind, node, dtype, strides, x.offset))
        return numbers[key]

    # Operands are numbered before the body: until they are all known, its nodes count from below 0.
    nodes = {node: i for i, node in enumerate(group.nodes)}
    refs = [
        [
            nodes[x.node] + ~len(nodes)
            if is_inside(x, group)
            else operand(x, i < INNER.get(node.word, 0))
            for i, x in enumerate(node.args)
        ]
        for node in (*group.nodes, *group.reductions)
    ]
    count = len(arrays)
    refs = [[r if r >= 0 else count + len(nodes) + 1 + r for r in found] for found in refs]
    body = tuple(
        [
            (n.word, tuple([NAMES[x.node.dtype] for x in n.args]), NAMES[n.dtype], tuple(found))
            for n, found in zip(group.nodes, refs, strict=False)
        ]
    )
    shape, axes = group.shape, group.axes or ()
    plain = row_major(shape)
    written = [n for n in group.nodes if n in group.pieces]
    for node in stored:
        arrays.append(Array("m", node, NAMES[node.dtype], plain, 0))
    for node in written:
        arrays.append(_piece(group.pieces[node], group.pieces[node].steps()))
    stores = tuple([count + nodes[node] for node in (*stored, *written)])
    if body and {b[0] for b in body} == {"copy"} and len({a.dtype for a in arrays}) == 1:
        shape, arrays = as_bits(shape, arrays, group.squares)
        moved = arrays[0].dtype
        body = tuple([("copy", (moved,), moved, found) for *_, found in body])
    inner = as_they_lie([d for d in range(len(shape)) if d in axes and shape[d] != 1], arrays)
    outer = [d for d in range(len(shape)) if d not in axes and shape[d] != 1]
    plain = row_major([n for d, n in enumerate(shape) if d not in axes])
    for node in group.reductions:
        place = group.pieces.get(node)
        found = iter(plain if place is None else place.steps())
        result = tuple([0 if d in axes else next(found) for d in range(len(shape))])
        arrays.append(
            Array("m", node, NAMES[node.dtype], result, 0)
            if place is None
            else replaced(_piece(place, result), dtype=NAMES[node.dtype])
        )
    reductions = tuple(
        [
            # Parts are wider.
            (n.attr[0], r, NAMES[n.args[0].node.dtype])
            for n, (r,) in zip(group.reductions, refs[len(nodes) :], strict=True)
        ]
    )
    joined = any(group.pieces[n].node.dtype != n.dtype for n in group.reductions
                 if n in group.pieces)  # fmt: skip
    if not inner:  # over dimensions of size 1: the elements themselves
        stores, reductions = stores + tuple([r for _, r, _ in reductions]), ()
    column = bool(inner and outer) and _runs_along_kept(
        shape, outer, inner, arrays, count, bool(stores)
    )
    kept, reduced = merged_loops(shape, outer, arrays), merged_loops(shape, inner, arrays)
    strided = not reduced and is_narrow(kept, arrays)
    if strided:
        kept.sort(key=lambda loop: loop[0])
    across = kept if column or not reduced else reduced
    if across and stores:
        along = across[-1][1][-1]
        strided |= any(arrays[count + k].strides[along] != 1 for k in range(len(stores)))
    if not kept and not reduced:
        kept = [(1, [])]  # a scalar: one loop of one turn, whose strides do not matter
    sizes = [n for n, _ in (*kept, *reduced)]
    along = len(kept) - 1 if column or not reduced else len(sizes) - 1
    loops = [dims for _, dims in (*kept, *reduced)]
    strides = [
        [a.strides[dims[-1]] if dims else 1 for dims in loops] if a.kind != "l" else []
        for a in arrays
    ]
    for k in range(len(reductions)):
        strides[len(strides) - 1 - k] = strides[len(strides) - 1 - k][: len(kept)]
    steps = [
        step_of(a, s[along] if s else 0) for a, s in zip(arrays[:count], strides, strict=False)
    ]
    spec = Spec(
        len(kept),
        len(reduced),
        column,
        tuple([(a.kind, a.dtype, s) for a, s in zip(arrays, steps, strict=False)]),
        body,
        stores,
        reductions,
        strided,
        joined=joined and bool(reductions),
    )
    spec = with_size_classes(spec, sizes, may_be_parted(group))
    made = Instance(spec, sizes, arrays, strides, *_units(spec, sizes, group.parts))
    if not made.split:
        return made
    kept_sizes = sizes[: len(kept)]
    # Parts of a row's result lie side by side, as do the results of columns.
    apart = tuple(row_major(kept_sizes)), size_of(kept_sizes)
    if not column:
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
            found.arrays[at] = _piece(group.pieces[node], ())
    if type(made.spec) is not Spec:  # points, whose chunks are the parts
        units = made.units // made.chunks
        return replaced(found, units=units, chunk=0, chunks=1)
    _, parts, *rest = made.split
    return replaced(found, units=made.units // parts, split=(0, 1, *rest))


ALIKE = {"b1": "u1", "c8": "f8"}
"""What is copied as another dtype of as many bytes, of which there are shuffles."""


def as_bits(
    shape: tuple[int, ...], arrays: list[Array], squares: bool
) -> tuple[tuple[int, ...], list[Array]]:
    """Numbers of one dtype that are copied, as numbers of another; complex128 as pairs of float64.

    So points and short rows of them are put together by shuffles too. `squares` are of whole
    numbers.
    """
    dtype = arrays[0].dtype
    if dtype != "c16" or squares:
        return shape, [replaced(a, dtype=ALIKE.get(dtype, dtype)) for a in arrays]
    return (*shape, 2), [
        replaced(a, dtype="f8", strides=(*[2 * s for s in a.strides], 1), offset=2 * a.offset)
        for a in arrays
    ]


def _piece(place: Value, strides: tuple[int, ...]) -> Array:
    """A part of another array."""
    return Array("m", place.node, NAMES[place.node.dtype], strides, place.offset)


def is_narrow(loops: list[tuple[int, list[int]]], arrays: list[Array]) -> bool:
    """Whether vectors run along a dimension in which elements lie apart, the last one being short.

    A row takes as long as a vector: 10,000 rows of 2 took 90 µs, across them they take 15. Of
    narrow numbers CPUs collect no vectors from many places.
    """
    if len(loops) < 2 or loops[-1][0] > NARROWEST:
        return False
    if has_narrow(arrays):
        return False
    return max([n for n, _ in loops]) >= GRAIN


def has_narrow(arrays: list[Array]) -> bool:
    """Whether elements of less than 4 bytes are among what is read and written."""
    return any(a.kind == "m" and int(a.dtype[1:]) < 4 for a in arrays)


def step_of(a: Array, stride: int) -> str:
    if a.kind == "l" or stride == 0:
        return "z"
    if abs(stride) != 1 or (stride < 0 and (a.kind == "i" or a.dtype in PART)):
        return "g"
    return "u" if stride == 1 else "r"


def _runs_along_kept(
    shape: tuple[int, ...], outer: list[int], inner: list[int], arrays: list[Array], count: int,
    stores: bool,
) -> bool:
    """Whether the vectors of a reduction run along a dimension that is kept.

    `outer` and `inner`: kept and reduced dimensions; the first `count` arrays are what is read;
    `stores`: whether elements are stored beside the reductions.
    """
    terms = size_of([shape[d] for d in inner])
    # Contiguous ones, or rows too short to fill any vector.
    column = outer[-1] > inner[-1] or (
        not stores and terms < GRAIN // 2 and shape[outer[-1]] >= terms
    )
    if not stores:
        # As of a transposed array: elements lie side by side along what is kept, or the other one.
        read = [a.strides for a in arrays[:count] if a.kind == "m"]
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


def as_they_lie(dims: list[int], arrays: list[Array]) -> list[int]:
    """Reduced dimensions in the order in which all that is read lies in memory, if that is one.

    Whether any of 3 x 33333 int8, transposed, is not 0: 1.2 ms along rows of 3, so 2 µs.
    """
    orders = {
        tuple(sorted(dims, key=lambda d: -abs(a.strides[d])))
        for a in arrays if a.kind == "m" and all(a.strides[d] for d in dims)
    }  # fmt: skip
    return list(orders.pop()) if len(orders) == 1 else dims


def merged_loops(
    shape: tuple[int, ...], dims: list[int], arrays: list[Array]
) -> list[tuple[int, list[int]]]:
    """(size, dimensions) of loops: neighbours that every array crosses in one stride are one."""
    loops: list[tuple[int, list[int]]] = []
    for d in dims:
        if loops:
            size, before = loops[-1]
            if all(
                a.kind == "l" or a.strides[before[-1]] == a.strides[d] * shape[d] for a in arrays
            ):
                loops[-1] = size * shape[d], [*before, d]
                continue
        loops.append((shape[d], [d]))
    return loops


def with_size_classes(spec: Spec, sizes: list[int], split: bool) -> Spec:
    """What sizes decide about the code."""
    if not spec.reduced:
        # Light bodies of rows gain nothing by aligned vectors (bias of 300 x 304: 7.7 µs to 6.3, of
        # 2 x 33,000 8.8 to 8.3). What lies apart goes by columns of rows, however long these are.
        light = is_light(spec.body)
        if len(sizes) == 1 or spec.strided:
            return spec
        # Narrow numbers that lie apart are read one by one: under masks, with a branch for each.
        apart = any(step == "g" and int(dtype[1:]) < 4 for _, dtype, step in spec.operands)
        most = APART if apart else lanes_of(spec, LINE)
        vector = min(1 << (sizes[-1].bit_length() - 1), most)
        overlaps = light and (vector >= SHORTEST or apart)
        few = len(sizes) > 2 and sizes[-2] < FEW and size_of(sizes[-2:]) <= BLOCK
        nested = 2 if few else 1
        return replaced(spec, short=vector * overlaps, nested=nested)
    light, rows = is_light(spec.body), size_of(sizes[spec.kept :])
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
