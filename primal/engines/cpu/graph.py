"""Programs as the compiler sees them: nodes that hold values, and affine views of nodes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import bfloat16, physical_dtype
from primal.ir.avals import Aval

Strides = tuple[int, ...]
IN_REGISTERS = 16
"""Elements up to which a loop's arrays are registers, one for each."""


class Node:
    """One array of the program: an input, a scalar, a count, or the result of a word.

    `word` is 'input', 'constant', 'param' (a carry or slice in the body of a loop), 'empty' (no
    elements), 'literal', 'iota', 'library', 'routine', 'control', 'reduce', or the name of an
    elementwise word.
    `attr` says the rest: the index of an input, the value of a literal or constant,
    (monoid, axes) of a reduction. Elementwise nodes have operands broadcast to `shape`.
    `block` and `step` say who makes it: the schedule, and the number of the step there.
    `origin` says for whom: the names of the parts of loops and branches around, and the equation.
    """

    __slots__ = ("word", "args", "shape", "dtype", "attr", "block", "step", "home", "origin")

    def __init__(
        self, word: str, args: tuple[Value, ...], shape: tuple[int, ...], dtype: Any, attr: Any
    ) -> None:
        self.word = word
        self.args = args
        self.shape = shape
        self.dtype = dtype
        self.attr = attr
        self.block: Any = None
        self.step: int = -1
        self.home: Any = None
        self.origin: tuple[tuple[str, ...], Any] | None = None


def bytes_of(node: Node) -> int:
    """The memory of a node, which is dense."""
    return size_of(node.shape) * int(node.dtype.itemsize)


class Value:
    """What a kernel rule holds: the elements node[offset + Σ index·strides], in elements.

    `strides` is None where the value is the whole node in row-major order, reshaped or not.
    `logical` is the dtype that the IR knows, which for typed keys is not the node's.
    """

    __slots__ = ("node", "shape", "strides", "offset", "logical")

    def __init__(
        self,
        node: Node,
        shape: tuple[int, ...],
        logical: Any,
        strides: Strides | None = None,
        offset: int = 0,
    ) -> None:
        self.node = node
        self.shape = shape
        self.logical = logical
        if strides is not None and not offset and size_of(shape) == size_of(node.shape):
            plain = row_major(shape)
            # The stride of a dimension of size 1 is never taken.
            if all(s == p or n == 1 for n, s, p in zip(shape, strides, plain, strict=True)):
                strides = None
        self.strides = strides
        self.offset = offset

    @property
    def aval(self) -> Aval:
        return Aval(self.shape, self.logical)

    @property
    def dtype(self) -> Any:
        return self.logical

    @property
    def parts(self) -> tuple[Value, ...]:
        """The value itself, but of a complex one that is held in parts these."""
        return (self,)

    @property
    def size(self) -> int:
        """The number of elements."""
        return size_of(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_node(self) -> bool:
        """Whether the value is the node itself, element for element and in its shape."""
        return self.strides is None and self.shape == self.node.shape

    def steps(self) -> Strides:
        """The strides, in elements of the node."""
        return row_major(self.shape) if self.strides is None else self.strides

    def view(self, shape: tuple[int, ...], strides: Strides, offset: int) -> Value:
        """Another view of the same node."""
        return Value(self.node, shape, self.logical, strides, offset)

    def key(self) -> Any:
        """Equal for views that read the same elements in the same order."""
        return (id(self.node), self.shape, self.strides, self.offset)


def row_major(shape: Sequence[int]) -> Strides:
    """The strides of an array in row-major order, in elements."""
    return _row_major(tuple(shape))


@functools.lru_cache(4096)
def _row_major(shape: tuple[int, ...]) -> Strides:
    strides, n = [], 1
    for size in reversed(shape):
        strides.append(n)
        n *= size
    return tuple(reversed(strides))


def size_of(shape: Sequence[int]) -> int:
    """The number of elements."""
    n = 1
    for size in shape:
        n *= size
    return n


def is_zero(x: Value) -> bool:
    """Whether the value is known to be 0, not -0, everywhere."""
    return all(p.node.word == "literal" and not any(p.node.attr) for p in x.parts)


def behind(x: Value, distance: int) -> Value:
    """The view that begins so many bytes later."""
    if not distance:
        return x
    return x.view(x.shape, x.steps(), x.offset + distance // x.node.dtype.itemsize)


def broadcast(x: Value, shape: tuple[int, ...], dims: Sequence[int]) -> Value:
    """Operand dimension i as dimension dims[i] of the result; others, and size 1, repeat."""
    if x.shape == shape and tuple(dims) == tuple(range(len(shape))):
        return x
    strides = [0] * len(shape)
    for d, n, s in zip(dims, x.shape, x.steps(), strict=True):
        strides[d] = s if n == shape[d] else 0
    return x.view(shape, tuple(strides), x.offset)


def aligned(x: Value, shape: tuple[int, ...]) -> Value:
    """An operand of an elementwise word, in the shape of the result."""
    if x.shape == shape:
        return x
    return broadcast(x, shape, range(len(shape)) if x.shape else ())


def transposed(x: Value, permutation: Sequence[int]) -> Value:
    """Dimension i of the result is dimension permutation[i]."""
    steps = x.steps()
    shape = tuple([x.shape[p] for p in permutation])
    return x.view(shape, tuple([steps[p] for p in permutation]), x.offset)


def sliced(x: Value, start: Sequence[int], limit: Sequence[int], by: Sequence[int]) -> Value:
    """x[start:limit:by]; an empty result is the caller's to avoid."""
    steps = x.steps()
    shape = tuple([-(-(b - a) // s) for a, b, s in zip(start, limit, by, strict=True)])
    offset = x.offset + sum(a * s for a, s in zip(start, steps, strict=True))
    return x.view(shape, tuple([s * k for s, k in zip(steps, by, strict=True)]), offset)


def reversed_along(x: Value, dims: Sequence[int]) -> Value:
    """Backwards along dims."""
    steps, offset = list(x.steps()), x.offset
    for d in dims:
        offset += (x.shape[d] - 1) * steps[d]
        steps[d] = -steps[d]
    return x.view(x.shape, tuple(steps), offset)


def reshaped(x: Value, shape: tuple[int, ...]) -> Value | None:
    """The same elements in row-major order in another shape, or None where no strides say it."""
    if x.strides is None:
        return Value(x.node, shape, x.logical)
    # Dimensions of size 1 have no say. The rest is matched in runs of equal products.
    have = [(n, s) for n, s in zip(x.shape, x.strides, strict=True) if n != 1]
    want = [n for n in shape if n != 1]
    strides: list[int] = []
    i = j = 0
    while i < len(have) and j < len(want):
        p, q, i2, j2 = have[i][0], want[j], i + 1, j + 1
        while p != q:
            if p < q:
                p, i2 = p * have[i2][0], i2 + 1
            else:
                q, j2 = q * want[j2], j2 + 1
        for a, b in zip(have[i:i2], have[i + 1 : i2], strict=False):
            if a[1] != b[0] * b[1]:
                return None
        step = have[i2 - 1][1]
        run = []
        for n in reversed(want[j:j2]):
            run.append(step)
            step *= n
        strides.extend(reversed(run))
        i, j = i2, j2
    rest = iter(strides)
    return x.view(shape, tuple([next(rest) if n != 1 else 0 for n in shape]), x.offset)


def split_dims(x: Value) -> list[list[int]] | None:
    """For each dimension those of the node that it merges; None if x is no computed array that a
    reshape merged dimensions of."""
    node = x.node
    if x.strides is not None or not node.args or node.word in APART or x.shape == node.shape:
        return None
    found, d = [], 0
    for n in x.shape:
        mine, size = [], 1
        while size < n:
            mine.append(d)
            size *= node.shape[d]
            d += 1
        if size != n:
            return None
        found.append(mine)
    return found


APART = frozenset(("reduce", "library", "routine", "control"))
"""Words of nodes that no group holds in a register, element for element."""
NOWHERE = frozenset(("literal", "iota"))
"""Words of nodes that lie in no memory."""
NATIVE: dict[Any, str] = {
    np.dtype(name): np.dtype(name).str[1:]
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64",
    )  # fmt: skip
}
NATIVE.update({np.dtype(np.float16): "f2", np.dtype(bfloat16): "h2"})
"""The dtypes that kernels compute in, with the names they have there: b1, i4, u8, f4, …; h2 is
bfloat16. Floats of 16 bits are computed in float32 and rounded after every word."""
NAMES = {**NATIVE, np.dtype(np.complex64): "c8", np.dtype(np.complex128): "c16"}
"""With the dtypes that kernels read and write, but compute in parts."""
NARROW = frozenset(("f2", "h2"))


def kind_of(dtype: Any) -> str:
    """The kind of a dtype that kernels know: b, i, u or f."""
    return "f" if NATIVE[dtype] == "h2" else str(dtype.kind)


def is_narrow(dtype: Any) -> bool:
    """Whether a dtype is a float of 16 bits."""
    return NATIVE.get(dtype) in NARROW


@functools.lru_cache(256)
def native(dtype: Any) -> Any:
    """The NumPy dtype in which kernels hold a dtype, or None; typed keys are their integers."""
    physical = physical_dtype(dtype)
    return physical if physical in NATIVE else None
