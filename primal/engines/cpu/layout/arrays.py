"""What kernels read and write, as they lie in memory, and the loops over it."""

from __future__ import annotations

from typing import Any

from primal.base.structures import replaced, structure
from primal.engines.cpu.graph import NAMES, Node, Value
from primal.engines.cpu.interleaved import PART

GRAIN = 64
"""Units begin at multiples of this, so that no two of them share a vector."""
NARROWEST = 6
"""Elements of rows up to which vectors run across the rows."""
ALIKE = {"b1": "u1", "c8": "f8"}
"""What is copied as another dtype of as many bytes, of which there are shuffles."""


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


class Operands:
    """What a kernel reads, numbered as it is met; the same elements, read in one way, once."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._numbers: dict[Any, int] = {}

    def number(self, x: Value, strides: tuple[int, ...], way: Any = None) -> int:
        """The number of a value of these strides over the group's dimensions."""
        node = x.node
        kind = {"literal": "l", "iota": "i"}.get(node.word, "m")
        if kind == "l":
            strides = ()
        key = (id(node), strides, x.offset, way)
        if key not in self._numbers:
            self._numbers[key] = len(self.arrays)
            self.arrays.append(Array(kind, node, NAMES[node.dtype], strides, x.offset))
        return self._numbers[key]


class Loops:
    """The loops of a kernel, (size, dimensions) each: those over what it keeps, then the reduced.

    A scalar has one of one turn, whose strides do not matter.
    """

    def __init__(
        self, shape: tuple[int, ...], outer: list[int], inner: list[int], arrays: list[Array]
    ) -> None:
        self.kept = _merged(shape, outer, arrays)
        self.reduced = _merged(shape, inner, arrays)
        if not self.kept and not self.reduced:
            self.kept = [(1, [])]

    @property
    def sizes(self) -> list[int]:
        """Turns of each loop."""
        return [n for n, _ in (*self.kept, *self.reduced)]

    def strides(self, arrays: list[Array], results: int) -> list[list[int]]:
        """The strides of each array over the loops; of the last ones, `results`, over the kept."""
        count = len(arrays) - results
        return [
            [
                a.strides[dims[-1]] if dims else 1
                for _, dims in (*self.kept, *(self.reduced if k < count else ()))
            ]
            if a.kind != "l" else []
            for k, a in enumerate(arrays)
        ]  # fmt: skip

    def steps(self, arrays: list[Array], strides: list[list[int]], column: bool) -> list[str]:
        """How each array goes along the loop of vectors, which a column's are the last kept one."""
        along = len(self.kept) - 1 if column or not self.reduced else -1
        return [
            step_of(a, s[along] if s else 0) for a, s in zip(arrays, strides, strict=False)
        ]


def _merged(
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


def piece(place: Value, strides: tuple[int, ...]) -> Array:
    """A part of another array."""
    return Array("m", place.node, NAMES[place.node.dtype], strides, place.offset)


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


def as_they_lie(dims: list[int], arrays: list[Array]) -> list[int]:
    """Reduced dimensions in the order in which all that is read lies in memory, if that is one.

    Whether any of 3 x 33333 int8, transposed, is not 0: 1.2 ms along rows of 3, so 2 µs.
    """
    orders = {
        tuple(sorted(dims, key=lambda d: -abs(a.strides[d])))
        for a in arrays if a.kind == "m" and all(a.strides[d] for d in dims)
    }  # fmt: skip
    return list(orders.pop()) if len(orders) == 1 else dims
