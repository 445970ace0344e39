"""The words of kernel rules: each adds nodes to a graph, or makes a view of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.graph import (
    NATIVE,
    Node,
    Value,
    aligned,
    broadcast,
    native,
    reshaped,
    reversed_along,
    row_major,
    sliced,
    transposed,
)
from primal.engines.cpu.lanes import BINARY, MONOIDS, UNARY
from primal.ir.builders import Unsupported

Ints = Sequence[int]
BOOL = np.dtype(bool)
_PREDICATES = frozenset(("is_finite", "eq", "ne", "lt", "le", "gt", "ge"))


class Words:
    """The `KernelBuilder` of this engine. `nodes` grows in an order in which they can run."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.literals: dict[Any, Node] = {}

    # Leaves.

    def literal(self, value: Any, dtype: Any) -> Value:
        """A scalar of the program. Kernels read it when they run, so it is no part of them."""
        known = native(dtype)
        if known is None:
            raise Unsupported(f"a literal of {dtype}")
        bits = np.asarray(value).astype(known).tobytes()
        node = self.literals.get((known, bits))
        if node is None:
            node = self.literals[known, bits] = Node("literal", (), (), known, bits)
        return Value(node, (), dtype)

    def iota(self, shape: Ints, dtype: Any, dim: int) -> Value:
        if dtype.kind not in "iuf" or dtype not in NATIVE:
            raise Unsupported(f"iota of {dtype}")
        n = shape[dim]
        node = Node("iota", (), (n,), dtype, None)
        return broadcast(Value(node, (n,), dtype), tuple(shape), (dim,))

    # Elementwise.

    def element(self, word: str, args: Sequence[Value], dtype: Any, attr: Any = None) -> Value:
        """An elementwise node; scalars and size-1 dimensions of the operands repeat."""
        shape: tuple[int, ...] = ()
        for x in args:
            if x.shape != shape and x.shape:
                shape = (
                    tuple([b if a == 1 else a for a, b in zip(shape, x.shape, strict=True)])
                    if shape
                    else x.shape
                )
        known = native(dtype)
        if known is None or any(native(x.dtype) is None for x in args):
            raise Unsupported(f"{word} of {', '.join(str(x.dtype) for x in args)}")
        node = Node(word, tuple([aligned(x, shape) for x in args]), shape, known, attr)
        self.nodes.append(node)
        return Value(node, shape, dtype)

    def unary(self, name: str, x: Value) -> Value:
        self._known(UNARY, name, x)
        return self.element(name, (x,), BOOL if name in _PREDICATES else x.dtype)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        self._known(BINARY, name, x)
        return self.element(name, (x, y), BOOL if name in _PREDICATES else x.dtype)

    def select_n(self, which: Value, *cases: Value) -> Value:
        # The indices of 100 cases would be 100 comparisons per element: NumPy does no worse.
        if len(cases) > 16:
            raise Unsupported("select_n of more than 16 cases")
        return self.element("select_n", (which, *cases), cases[0].dtype)

    def clamp(self, low: Value, x: Value, high: Value) -> Value:
        return self.binary("min", self.binary("max", x, low), high)

    def convert(self, x: Value, dtype: Any) -> Value:
        if x.dtype == dtype:
            return x
        return self.element("convert", (x,), dtype)

    def integer_pow(self, x: Value, y: int) -> Value:
        self._known(BINARY, "mul", x)
        if y == 0:
            return broadcast(self.literal(1, x.dtype), x.shape, ())
        power, squared, result = abs(y), x, None
        while True:
            if power & 1:
                result = squared if result is None else self.binary("mul", result, squared)
            power >>= 1
            if not power:
                break
            squared = self.binary("mul", squared, squared)
        assert result is not None
        return self.unary("reciprocal", result) if y < 0 else result

    def copy(self, x: Value) -> Value:
        return self.element("copy", (x,), x.dtype)

    @staticmethod
    def _known(table: dict[str, str], name: str, x: Value) -> None:
        known = native(x.dtype)
        if known is None or known.kind not in table.get(name, ""):
            raise Unsupported(f"{name} of {x.dtype}")

    # Index maps.

    def broadcast_in_dim(self, x: Value, shape: Ints, dims: Ints) -> Value:
        return broadcast(self._held(x), tuple(shape), dims)

    def reshape(self, x: Value, shape: Ints) -> Value:
        self._held(x)
        found = reshaped(x, tuple(shape))
        if found is None:
            found = reshaped(self.copy(x), tuple(shape))
            assert found is not None
        return found

    def transpose(self, x: Value, permutation: Ints) -> Value:
        return transposed(self._held(x), permutation)

    def slice(self, x: Value, start: Ints, limit: Ints, strides: Ints) -> Value:
        return sliced(self._held(x), start, limit, strides)

    def rev(self, x: Value, dims: Ints) -> Value:
        return reversed_along(self._held(x), dims)

    @staticmethod
    def _held(x: Value) -> Value:
        if native(x.dtype) is None:
            raise Unsupported(f"index maps of {x.dtype}")
        return x

    # Reductions.

    def reduce(self, monoid: str, x: Value, axes: Ints) -> Value:
        known = native(x.dtype)
        if known is None or known.kind not in MONOIDS.get(monoid, ""):
            raise Unsupported(f"reduce {monoid} of {x.dtype}")
        if not axes:
            return x
        if x.node.word == "literal":
            raise Unsupported("reductions of a constant")
        shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
        node = Node("reduce", (x,), shape, known, (monoid, tuple(sorted(axes))))
        self.nodes.append(node)
        return Value(node, shape, x.dtype)

    # Words without a kernel yet.

    def pad(self, x: Value, value: Value, config: Any) -> Value:
        raise Unsupported("pad")

    def concatenate(self, xs: Sequence[Value], dim: int) -> Value:
        raise Unsupported("concatenate")

    def dot_general(self, x: Value, y: Value, **params: Any) -> Value:
        raise Unsupported("dot_general")


__all__ = ["Words", "row_major"]
