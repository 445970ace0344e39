"""Shape changes and indexing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primal.base.dtypes import int2, uint2
from primal.engines.xla.builder.core import Ints, Region, Value, i64s, ints, kind_of
from primal.engines.xla.builder.elementwise import Elementwise
from primal.engines.xla.builder.types import tensor
from primal.ir.avals import Aval

MONOIDS = {
    "add": "add",
    "multiply": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "and": "and_",
    "or": "or_",
    "xor": "xor",
}
# XLA ends the process over concatenated two-bit integers (0.10 to 0.12).
_WIDER = {int2: np.dtype("i1"), uint2: np.dtype("u1")}


def monoid_body(name: str) -> Region:
    """The region of a monoid: its op on two scalars."""
    if name not in MONOIDS:
        raise ValueError(f"[xla] expected one of {', '.join(MONOIDS)}, got {name!r}.")
    method = MONOIDS[name]
    return lambda b, x, y: getattr(b, method)(x, y)


class Shapes(Elementwise):
    """Operations that move elements and compute none."""

    def iota(self, shape: Ints, dtype: object, dim: int) -> Value:
        """Counts 0, 1, … along `dim`."""
        out = Aval(tuple(shape), dtype)
        if kind_of(out.dtype) == "b":
            return self.convert(self.iota(shape, np.dtype("i4"), dim), dtype)
        return self.write(f"stablehlo.iota dim = {int(dim)} : {tensor(out)}", out)

    def broadcast_in_dim(self, x: Value, shape: Ints, dims: Ints) -> Value:
        """Operand dimension i becomes result dimension dims[i]; size 1 is repeated."""
        shape = tuple(shape)
        if not x.aval.shape or (len(shape) == x.ndim and shape == x.aval.shape):
            return self.expand(x, shape)
        out = Aval(shape, x.aval.dtype)
        return self.write(
            f"stablehlo.broadcast_in_dim {x.name}, dims = {ints(dims)} : "
            f"({x.type}) -> {tensor(out)}",
            out,
        )

    def broadcast_to(self, x: Value, shape: Ints) -> Value:
        """NumPy's rule: trailing dimensions align."""
        return self.expand(x, tuple(shape))

    def reshape(self, x: Value, shape: Ints) -> Value:
        """The same elements in row-major order."""
        out = Aval(tuple(shape), x.aval.dtype)
        if tensor(out) == x.type:
            return x
        return self.write(f"stablehlo.reshape {x.name} : ({x.type}) -> {tensor(out)}", out)

    def transpose(self, x: Value, permutation: Ints) -> Value:
        """Result dimension i is operand dimension permutation[i]."""
        old = x.aval.shape
        out = Aval(tuple([old[i] for i in permutation]), x.aval.dtype)
        return self.write(
            f"stablehlo.transpose {x.name}, dims = {ints(permutation)} : "
            f"({x.type}) -> {tensor(out)}",
            out,
        )

    def slice(self, x: Value, start: Ints, limit: Ints, strides: Ints | None = None) -> Value:
        """x[start:limit:stride] in every dimension."""
        steps = (1,) * x.ndim if strides is None else strides
        spec = [(int(a), int(b), int(s)) for a, b, s in zip(start, limit, steps, strict=True)]
        shape = tuple([-(-max(b - a, 0) // s) for a, b, s in spec])
        out = Aval(shape, x.aval.dtype)
        text = ", ".join([f"{a}:{b}:{s}" for a, b, s in spec])
        return self.write(f"stablehlo.slice {x.name} [{text}] : ({x.type}) -> {tensor(out)}", out)

    def pad(self, x: Value, value: Value, config: Sequence[tuple[int, int, int]]) -> Value:
        """`value` around and between the elements; negative edges crop."""
        shape = tuple(
            [
                lo + hi + n + max(n - 1, 0) * between
                for n, (lo, hi, between) in zip(x.aval.shape, config, strict=True)
            ]
        )
        out = Aval(shape, x.aval.dtype)
        low, high, between = ([edge[i] for edge in config] for i in range(3))
        return self.write(
            f"stablehlo.pad {x.name}, {value.name}, low = {ints(low)}, high = {ints(high)}, "
            f"interior = {ints(between)} : ({x.type}, {value.type}) -> {tensor(out)}",
            out,
        )

    def concatenate(self, xs: Sequence[Value], dim: int) -> Value:
        """The operands one after the other along `dim`."""
        dtype = xs[0].aval.dtype
        wider = _WIDER.get(dtype)
        if wider is not None:
            joined = self.concatenate([self.convert(x, wider) for x in xs], dim)
            return self.convert(joined, dtype)
        shape = list(xs[0].aval.shape)
        shape[dim] = sum([x.aval.shape[dim] for x in xs])
        out = Aval(tuple(shape), xs[0].aval.dtype)
        names, types = ", ".join([x.name for x in xs]), ", ".join([x.type for x in xs])
        return self.write(
            f"stablehlo.concatenate {names}, dim = {int(dim)} : ({types}) -> {tensor(out)}", out
        )

    def reverse(self, x: Value, dims: Ints) -> Value:
        """Elements in the opposite order along `dims`."""
        return self.write(f"stablehlo.reverse {x.name}, dims = {ints(dims)} : {x.type}", x.aval)

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Ints) -> Value:
        """A block at a start known at run time, clamped into x."""
        if not starts:
            return x
        out = Aval(tuple(sizes), x.aval.dtype)
        names = ", ".join([s.name for s in starts])
        types = ", ".join([s.type for s in starts])
        return self.write(
            f"stablehlo.dynamic_slice {x.name}, {names}, sizes = {ints(sizes)} : "
            f"({x.type}, {types}) -> {tensor(out)}",
            out,
        )

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        """x with a block replaced, at a start clamped into x."""
        if not starts:
            return update
        names = ", ".join([s.name for s in starts])
        types = ", ".join([s.type for s in starts])
        return self.write(
            f"stablehlo.dynamic_update_slice {x.name}, {update.name}, {names} : "
            f"({x.type}, {update.type}, {types}) -> {x.type}",
            x.aval,
        )

    def gather(
        self,
        x: Value,
        indices: Value,
        *,
        offset_dims: Ints,
        collapsed_slice_dims: Ints,
        start_index_map: Ints,
        slice_sizes: Ints,
        operand_batching_dims: Ints = (),
        start_indices_batching_dims: Ints = (),
        index_vector_dim: int | None = None,
        indices_are_sorted: bool = False,
    ) -> Value:
        """Slices of x at the starts in `indices`, which clamp."""
        vector = indices.ndim - 1 if index_vector_dim is None else index_vector_dim
        gone = {*collapsed_slice_dims, *operand_batching_dims}
        window = iter([n for i, n in enumerate(slice_sizes) if i not in gone])
        batch = iter([n for i, n in enumerate(indices.aval.shape) if i != vector])
        offsets = set(offset_dims)
        rank = len(offsets) + indices.ndim - (vector < indices.ndim)
        shape = tuple([next(window if i in offsets else batch) for i in range(rank)])
        numbers = _numbers(
            offset_dims=offset_dims,
            collapsed_slice_dims=collapsed_slice_dims,
            operand_batching_dims=operand_batching_dims,
            start_indices_batching_dims=start_indices_batching_dims,
            start_index_map=start_index_map,
        )
        attrs = (
            f"dimension_numbers = #stablehlo.gather<{numbers}index_vector_dim = {vector}>, "
            f"indices_are_sorted = {_bool(indices_are_sorted)}, "
            f"slice_sizes = {i64s(slice_sizes)}"
        )
        return self.op("stablehlo.gather", (x, indices), (Aval(shape, x.aval.dtype),), attrs)[0]

    def scatter(
        self,
        xs: Sequence[Value],
        indices: Value,
        updates: Sequence[Value],
        body: str | Region,
        *,
        update_window_dims: Ints,
        inserted_window_dims: Ints,
        scatter_dims_to_operand_dims: Ints,
        input_batching_dims: Ints = (),
        scatter_indices_batching_dims: Ints = (),
        index_vector_dim: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> list[Value]:
        """`xs` with `updates` combined in; those out of bounds are dropped."""
        vector = indices.ndim - 1 if index_vector_dim is None else index_vector_dim
        numbers = _numbers(
            update_window_dims=update_window_dims,
            inserted_window_dims=inserted_window_dims,
            input_batching_dims=input_batching_dims,
            scatter_indices_batching_dims=scatter_indices_batching_dims,
            scatter_dims_to_operand_dims=scatter_dims_to_operand_dims,
        )
        attrs = (
            f"indices_are_sorted = {_bool(indices_are_sorted)}, scatter_dimension_numbers = "
            f"#stablehlo.scatter<{numbers}index_vector_dim = {vector}>, "
            f"unique_indices = {_bool(unique_indices)}"
        )
        if body == "set":
            region: Region = lambda b, *args: args[len(args) // 2 :]  # noqa: E731
        else:
            region = monoid_body(body) if isinstance(body, str) else body
        scalars = [Aval((), x.aval.dtype) for x in xs]
        return self.op(
            "stablehlo.scatter",
            (*xs, indices, *updates),
            [x.aval for x in xs],
            attrs,
            [(scalars + scalars, region)],
        )

    def sort(
        self,
        xs: Sequence[Value],
        dim: int,
        *,
        num_keys: int = 1,
        stable: bool = True,
        comparator: Region | None = None,
    ) -> list[Value]:
        """All operands reordered alike; by default ascending, -0 equal to 0, nan last."""
        if comparator is None:
            comparator = _ascending(num_keys)
        scalars = [Aval((), x.aval.dtype) for x in xs]
        pairs = [a for scalar in scalars for a in (scalar, scalar)]
        return self.op(
            "stablehlo.sort",
            xs,
            [x.aval for x in xs],
            f"dimension = {int(dim)} : i64, is_stable = {_bool(stable)}",
            [(pairs, comparator)],
        )

    def top_k(self, x: Value, k: int) -> tuple[Value, Value]:
        """The k largest of the last dimension, descending, and their indices."""
        shape = (*x.aval.shape[:-1], k)
        outs = Aval(shape, x.aval.dtype), Aval(shape, np.dtype("i4"))
        left, values = self.results(outs)
        types = ", ".join([v.type for v in values])
        self.lines.append(f"{left}chlo.top_k({x.name}, k = {int(k)}) : {x.type} -> ({types})")
        return values[0], values[1]


def _ascending(num_keys: int) -> Region:
    def key(b: Shapes, x: Value) -> list[Value]:
        kind = kind_of(x.aval.dtype)
        if kind == "c":
            return [*key(b, b.real(x)), *key(b, b.imag(x))]
        if kind != "f":
            return [x]
        # In the total order nan is last only when its sign is plus, and -0 comes before 0.
        zero = b.full_like(x, 0.0)
        x = b.select(b.compare(x, zero, "EQ"), zero, x)
        return [b.select(b.compare(x, x, "NE"), b.full_like(x, float("nan")), x)]

    def before(b: Shapes, *args: Value) -> Value:
        lefts = [k for x in args[0 : 2 * num_keys : 2] for k in key(b, x)]
        rights = [k for x in args[1 : 2 * num_keys : 2] for k in key(b, x)]
        result: Value | None = None
        for x, y in reversed(list(zip(lefts, rights, strict=True))):
            less = b.compare(x, y, "LT", total_order=True)
            if result is not None:
                equal = b.compare(x, y, "EQ", total_order=True)
                less = b.or_(less, b.and_(equal, result))
            result = less
        assert result is not None  # num_keys is at least one.
        return result

    return before


def _numbers(**groups: Ints) -> str:
    return "".join([f"{name} = {ints(dims)}, " for name, dims in groups.items() if len(dims)])


def _bool(flag: object) -> str:
    return "true" if flag else "false"
