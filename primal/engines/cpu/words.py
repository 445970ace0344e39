"""The words of kernel rules: each adds nodes to a graph, or makes a view of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import physical_dtype
from primal.engines.cpu import _llvm, rooms
from primal.engines.cpu.functions import divisions, powers
from primal.engines.cpu.graph import (
    NAMES,
    NATIVE,
    Node,
    Value,
    aligned,
    broadcast,
    is_narrow,
    kind_of,
    native,
    reshaped,
    reversed_along,
    row_major,
    size_of,
    sliced,
    split_dims,
    transposed,
)
from primal.engines.cpu.kernels import takes
from primal.engines.cpu.lanes import BINARY, MONOIDS, UNARY
from primal.engines.cpu.loops import control
from primal.engines.cpu.matrices.matrix_words import MatrixWords
from primal.engines.cpu.monoids import repeated
from primal.engines.cpu.plan import commuting, halves, repeats, wanted
from primal.engines.cpu.routines import gathers, padding, pieces, scatters, turns, windows
from primal.engines.cpu.run import objects
from primal.engines.cpu.steps import Routine, RoutineSpec
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

Ints = Sequence[int]
BOOL, HALF, FLOAT32 = np.dtype(bool), np.dtype(np.float16), np.dtype(np.float32)
_PREDICATES = frozenset(("is_finite", "eq", "ne", "lt", "le", "gt", "ge"))


class Words(MatrixWords):
    """The `KernelBuilder` of this engine.

    `order` grows by nodes and steps in an order in which they can run.
    """

    def __init__(self, inline: Callable[..., list[Value]]) -> None:
        self.order: list[Any] = []
        self.outer: list[list[Any]] = []
        """The orders of the blocks around the one that is being written."""
        self._inline = inline
        self.literals: dict[Any, Node] = {}
        self.sizes: set[Node] = set()  # literals that sums are divided by
        self.counts: dict[Any, Node] = {}
        self.padded: dict[Node, Any] = {}
        """Arrays that are zero but for pieces: dimension, [(start, stop, value)], if in memory."""
        self.scattered: dict[Node, Any] = {}
        """What was added to zeros for a sum alone: indices, updates, parameters; sums of such."""
        self.spread: dict[Node, Any] = {}
        """What arrays were padded of: shape, operand, value, configuration."""
        self.in_turn: dict[Node, Any] = {}
        """Sums of arrays of which elements and zeros take turns: shape, and what `edges` says."""
        self.gathered: dict[Node, Any] = {}
        """What gathers were made of: operand, indices, parameters."""
        self.laid: dict[Node, Value] = {}
        """What was copied into an order that can be reshaped."""
        self.turned: dict[Any, Any] = {}
        """Keys of what was turned for vectors to read it: where, the copy, the value."""
        self.joined: dict[Node, Any] = {}
        """What concatenations were made of: dimension, operands."""
        self.once: Node | None = None
        """The first operand of what is being written, if nobody else reads it."""
        self.layout: Ints | None = None
        """The order in which all readers of what is being written want its dimensions."""
        self.unread = self.woven = self.columns = False
        """Whether nobody reads the first result; only what `Outlook.woven` says does; neither what
        `Outlook.reduced` says does, nor complex numbers are read or made."""
        self.eqn: Any = None
        self.path: tuple[str, ...] = ()
        """The equation being written, and in which parts of loops and branches it is."""

    # Leaves.

    def literal(self, value: Any, dtype: Any, role: object = None) -> Value:
        """A scalar of the program. Kernels read it when they run, so it is no part of them.

        Equal ones are one, which is part of them, but for those of different roles: sizes that are
        equal by chance.
        """
        known = native(dtype)
        if known is None:
            raise Unsupported(f"a literal of {dtype}")
        bits = np.asarray(value).astype(known).tobytes()
        node = self.literals.get((known, bits, role))
        if node is None:
            node = self.literals[known, bits, role] = Node("literal", (), (), known, bits)
        return Value(node, (), dtype)

    def iota(self, shape: Ints, dtype: Any, dim: int) -> Value:
        if dtype not in NATIVE or kind_of(dtype) not in "iuf":
            raise Unsupported(f"iota of {dtype}")
        if is_narrow(dtype):
            return self.convert(self.iota(shape, np.dtype(np.int32), dim), dtype)
        n = shape[dim]
        node = self.counts.get((n, dtype))
        if node is None:
            node = self.counts[n, dtype] = Node("iota", (), (n,), dtype, None)
        return broadcast(Value(node, (n,), dtype), tuple(shape), (dim,))

    def constant(self, value: Any, aval: Aval) -> Value:
        """An array that is part of the program."""
        array = np.ascontiguousarray(value, physical_dtype(aval.dtype)).reshape(aval.shape)
        return Value(Node("constant", (), aval.shape, array.dtype, array), aval.shape, aval.dtype)

    def empty(self, aval: Aval) -> Value:
        """An array without elements."""
        node = Node("empty", (), aval.shape, physical_dtype(aval.dtype), None)
        return Value(node, aval.shape, aval.dtype)

    def held(self, x: Value) -> Value:
        """The value as a view of memory, which scalars and counts are not."""
        return self.copy(x) if x.node.word in ("literal", "iota") else x

    def given(self, x: Value, private: bool) -> Value:
        """The value as a library step takes it: counts are constants of the step.

        A user's function, whose operands are `private`, may write to them.
        """
        return x if x.node.word == "iota" and not private else self.held(x)

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
        known = physical_dtype(dtype)
        names = [NAMES.get(x.node.dtype) for x in args]
        # Random keys of four words are complex in memory, but no pairs: kernels do not hold them.
        held = native(dtype) is not None or dtype in NAMES
        if not held or None in names:
            raise Unsupported(f"{word} of {', '.join(str(x.dtype) for x in args)}")
        if (known == HALF or "f2" in names) and word != "copy" and not _llvm.compiler().half:
            raise Unsupported("float16 on this CPU")
        given = [aligned(x, shape) for x in args]
        # These two are asked for to have the value in memory as it is.
        stored = word in ("copy", "complex")
        once = None if stored else repeats.element(self, word, given, shape, dtype, attr)
        if once is None and word != "copy" and self.joined:
            once = pieces.by_columns(self, word, given, shape, dtype, attr)
        if once is not None:
            return once
        if not stored and self.layout is not None and len(self.layout) == len(shape):
            # Of what lies in two orders something is turned anyway: the result need not be, too.
            lain = [transposed(x, self.layout) for x in given]
            if sum(map(turns.is_apart, lain)) <= sum(map(turns.is_apart, given)):
                return wanted.laid(self, given, lambda xs, _: self.element(word, xs, dtype, attr))
        if not stored and any(turns.matters(x) for x in given):
            given, order = self._in_order(given)
            if order != tuple(range(len(shape))):
                out = self.element(word, [transposed(x, order) for x in given], dtype, attr)
                return transposed(out, [order.index(d) for d in range(len(shape))])
        space = self._space(args, shape)
        if space != shape:
            given = [_viewed(x, space) for x in given]
        node = Node(word, tuple(given), space, known, attr)
        self.order.append(node)
        return Value(node, shape, dtype)

    def _in_order(self, given: list[Value]) -> tuple[list[Value], tuple[int, ...]]:
        """Operands, and the order of dimensions in which they are read as they lie.

        Those that lie in another order than the others are turned.
        """
        found = {order for x in given if (order := turns.wanted(x)) is not None}
        if len(found) == 1:
            return given, found.pop()
        return [self._turned(x) for x in given], tuple(range(given[0].ndim))

    def _turned(self, x: Value) -> Value:
        """A copy that lies as it is read; one for all who ask."""
        return self.turned_copy(x) or x

    def turned_copy(self, x: Value) -> Value | None:
        """What was turned, if squares of it can be; of what repeats, once, and repeated so."""
        if turns.is_spread(x):
            once = tuple([n if s else 1 for n, s in zip(x.shape, x.steps(), strict=True)])
            found = self.turned_copy(x.view(once, x.steps(), x.offset))
            if found is None:
                return None
            steps = [s if m > 1 else 0 for s, m in zip(found.steps(), once, strict=True)]
            return found.view(x.shape, tuple(steps), found.offset)
        place, made, _ = self.turned.get(x.key(), (None, None, None))
        if place is None or not self._stands(place):
            made = turns.turned(self, x)
            if made is not None:  # keys hold for as long as their node does
                self.turned[x.key()] = self._place(), made, x
        return made

    # What was made is used again where the code that makes it is still part of the program, in
    # this block or one around it.

    def _place(self) -> tuple[list[Any], int, Any]:
        return self.order, len(self.order) - 1, self.order[-1]

    def _stands(self, place: tuple[list[Any], int, Any]) -> bool:
        order, at, step = place
        if order is not self.order and all(order is not o for o in self.outer):
            return False
        return at < len(order) and order[at] is step

    @staticmethod
    def _space(args: Sequence[Value], shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape to compute in: of what was made in more dimensions, which a reshape merged.

        So what follows a reshape is computed together with what comes before it.
        """
        for x in args:
            if x.shape == shape and split_dims(x) is not None:
                return x.node.shape
        return shape

    def unary(self, name: str, x: Value) -> Value:
        self._known(UNARY, name, x)
        return self.element(name, (x,), BOOL if name in _PREDICATES else x.dtype)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        self._known(BINARY, name, x)
        if name == "nextafter" and is_narrow(x.dtype):
            return self._next_narrow(x, y)
        if name == "mul":
            # Derivatives begin with 1.
            if y.shape in ((), x.shape) and _is_one(y):
                return x
            if x.shape in ((), y.shape) and _is_one(x):
                return y
        if name == "add" and (self.padded or self.scattered or self.spread):
            found = repeats.moved(self, (x, y), (), lambda xs: self.binary(name, *xs))
            found = found or wanted.sum_of(self, x, y)
            if found is not None:
                return found
        if name.startswith("shift") and y.node.word == "literal" and y.shape in ((), x.shape):
            # A distance that is known is part of the code: one instruction instead of five.
            distance = int.from_bytes(y.node.attr, "little")
            return self.element(f"{name}#{min(distance, 64)}", (x,), x.dtype)
        if name in ("div", "rem") and y.node.word == "literal":
            found = divisions.known(self, name, x, y)
            if found is not None:
                return found
        if name in ("ne", "xor") and y.node.word == "literal" and y.node.dtype == BOOL:
            # Whether signs differ is asked of known divisors too.
            if y.shape in ((), x.shape) and not y.node.attr[0]:
                return x
        if name == "pow" and y.node.word == "literal":
            found = powers.of_literal(self, x, y)
            if found is not None:
                return found
        return self.element(name, (x, y), BOOL if name in _PREDICATES else x.dtype)

    def _next_narrow(self, x: Value, y: Value) -> Value:
        """One step of the bits of 16-bit floats, as `nextafter` of wider ones."""
        f, whole = self.binary, np.dtype(np.int16)
        wide, goal = self.convert(x, FLOAT32), self.convert(y, FLOAT32)
        zero = self.literal(0, FLOAT32)
        one, least, sign = [self.literal(n, whole) for n in (1, 1, -(1 << 15))]
        bits, others = self.bitcast(x, whole), self.bitcast(y, whole)
        grows = f("xor", f("lt", wide, goal), f("gt", wide, zero))
        moved = self.select_n(grows, f("add", bits, one), f("sub", bits, one))
        tiny = f("or", f("and", others, sign), least)
        moved = self.select_n(f("eq", wide, zero), moved, tiny)
        moved = self.select_n(f("eq", wide, goal), moved, others)
        missing = f("or", f("ne", wide, wide), f("ne", goal, goal))
        return self.select_n(missing, self.bitcast(moved, x.dtype), f("add", x, y))

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """x·y + z of floats, rounded once where the CPU does that; for formulas of this library."""
        return self.element("fma", (x, y, z), x.dtype)

    def rotate_left(self, x: Value, distance: int) -> Value:
        """The bits of an integer, turned."""
        self._known(BINARY, "shift_left", x)
        return self.element(f"rotate_left#{distance}", (x,), x.dtype)

    def bitcast(self, x: Value, dtype: Any) -> Value:
        """The same bits as another dtype of as many."""
        old, new = native(x.dtype), native(dtype)
        if old is None or new is None or BOOL in (old, new):
            raise Unsupported(f"bits of {x.dtype} as {dtype}")
        return self.element("bitcast", (x,), dtype)

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
        if is_narrow(x.dtype) and y not in (0, 1, 2):
            return self.convert(self.integer_pow(self.convert(x, FLOAT32), y), x.dtype)
        if y == 0:
            return self.broadcast_in_dim(self.literal(1, x.dtype), x.shape, ())
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
        return turns.copied(self, x)

    @staticmethod
    def _known(table: dict[str, str], name: str, x: Value) -> None:
        known = native(x.dtype)
        if known is None or kind_of(known) not in table.get(name, ""):
            raise Unsupported(f"{name} of {x.dtype}")

    # Index maps.

    def broadcast_in_dim(self, x: Value, shape: Ints, dims: Ints) -> Value:
        return broadcast(self._mapped(x), tuple(shape), dims)

    def reshape(self, x: Value, shape: Ints) -> Value:
        return self._reshaped(self._mapped(x), shape)

    def _reshaped(self, x: Value, shape: Ints) -> Value:
        found = reshaped(x, tuple(shape))
        if found is None:
            whole = self.copy(x)
            if whole.is_node:
                self.laid[whole.node] = x
            found = reshaped(whole, tuple(shape))
            assert found is not None
        return found

    def transpose(self, x: Value, permutation: Ints) -> Value:
        return transposed(self._mapped(x), permutation)

    def slice(self, x: Value, start: Ints, limit: Ints, strides: Ints) -> Value:
        alone = x.node is self.once
        if alone and x.node in self.gathered and set(strides) == {1}:
            found = commuting.slice_of_gather(self, x, start, limit)
            if found is not None:
                return found
        out = sliced(self._mapped(x), start, limit, strides)
        if alone and x.node in self.laid:
            return commuting.slice_of_copy(self, out)
        if not self.spread:
            return out
        return commuting.slice_of_padded(self, out) or commuting.slice_of_edges(self, out) or out

    def rev(self, x: Value, dims: Ints) -> Value:
        return commuting.rev_of_element(self, self._mapped(x), dims) or reversed_along(x, dims)

    @staticmethod
    def _mapped(x: Value) -> Value:
        if native(x.dtype) is None:
            raise Unsupported(f"index maps of {x.dtype}")
        return x

    # Reductions.

    def reduce(self, monoid: str, x: Value, axes: Ints) -> Value:
        known = native(x.dtype)
        if known is None or kind_of(known) not in MONOIDS.get(monoid, ""):
            raise Unsupported(f"reduce {monoid} of {x.dtype}")
        if known == HALF and not _llvm.compiler().half:
            raise Unsupported("float16 on this CPU")
        if not axes:
            return x
        if x.node.word == "literal":
            shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
            number = np.frombuffer(x.node.attr, x.node.dtype)[0]
            value = repeated(monoid, number, size_of([x.shape[i] for i in axes]))
            return self.broadcast_in_dim(self.literal(value, x.dtype), shape, ())
        if any(x.shape[i] == 1 for i in axes):
            # Nothing is reduced there: the elements themselves.
            kept = [i for i in range(x.ndim) if i not in axes or x.shape[i] != 1]
            x = self.reshape(x, tuple([x.shape[i] for i in kept]))
            axes = tuple([at for at, i in enumerate(kept) if i in axes])
            if not axes:
                return x
        for reduced in (repeats.reduction, commuting.reduced_between, halves.reduced):
            made = reduced(self, monoid, x, axes)
            if made is not None:
                return made
        order = turns.order_of(x)
        if order != tuple(range(x.ndim)):
            out = self.reduce(monoid, transposed(x, order), [order.index(i) for i in axes])
            have = [i for i in order if i not in axes]
            return transposed(out, [have.index(i) for i in sorted(have)])
        shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
        found = split_dims(x)
        if found is not None:
            x, axes = _viewed(x, x.node.shape), [d for i in axes for d in found[i]]
        kept = tuple([n for i, n in enumerate(x.shape) if i not in axes])
        node = Node("reduce", (x,), kept, known, (monoid, tuple(sorted(axes))))
        self.order.append(node)
        return Value(node, shape, x.dtype)

    # Control flow.

    def inline(self, closed: Any, *args: Value) -> list[Value]:
        return self._inline(self, closed, args)

    def while_(self, cond: Any, body: Any, inits: Sequence[Value]) -> list[Value]:
        return control.while_(self, cond, body, inits)

    def scan(
        self,
        body: Any,
        inits: Sequence[Value],
        xs: Sequence[Value],
        stacked: Sequence[Aval],
        length: int,
        reverse: bool,
    ) -> list[Value]:
        return control.scan(self, body, inits, xs, stacked, length, reverse)

    def case(self, index: Value, branches: Sequence[Any]) -> list[Value]:
        return control.case(self, index, branches)

    # Routines.

    def dense(self, x: Value) -> Value:
        """The value in row-major order, wherever it begins in its node: itself, or a copy."""
        if x.node.word not in ("literal", "iota"):
            plain = row_major(x.shape)
            if all(n == 1 or s == p for n, s, p in zip(x.shape, x.steps(), plain, strict=True)):
                return x
        return self.copy(x)

    def routine(
        self,
        spec: RoutineSpec,
        args: Sequence[Value],
        outs: Sequence[Aval],
        words: Ints = (),
        *,
        units: int = 1,
        cost: int = 0,
        scratch: int = 0,
        updates: Sequence[tuple[int, int]] = (),
        reuses: Sequence[tuple[int, int]] = (),
        name: str = "",
        terms: int = 0,
        callees: Sequence[RoutineSpec | None] = (),
    ) -> list[Value]:
        """Results of a `Routine`, whose words are explained there; all must have elements.

        Operands that `updates` names are made whole arrays of their own here.
        """
        avals = [*[x.aval for x in args], *outs]
        if not units or not all(a.size for a in avals):
            raise Unsupported("no elements")
        # Kernels do not compute in complex dtypes; routines may.
        if any(native(a.dtype) is None and physical_dtype(a.dtype).kind != "c" for a in avals):
            raise Unsupported(f"a routine on {', '.join(str(a.dtype) for a in avals)}")
        whole = {i for _, i in updates}
        held = [
            self.copy(x)
            if x.node.word in ("literal", "iota") or (i in whole and x.strides is not None)
            else x
            for i, x in enumerate(args)
        ]
        known = tuple(held)
        nodes = [Node("routine", known, a.shape, physical_dtype(a.dtype), None) for a in outs]
        given = units, cost, scratch, updates, reuses, name, terms, callees
        self.order.append(Routine(spec, known, nodes, words, *given))
        objects.ahead(spec, *callees)
        return [Value(n, a.shape, a.dtype) for n, a in zip(nodes, outs, strict=True)]

    # Moving data.

    def pad(self, x: Value, value: Value, config: Any) -> Value:
        moving = [d for d, edges in enumerate(config) if any(edges)]
        once = repeats.moved(self, (x,), moving, lambda xs: self.pad(xs[0], value, config))
        return once or wanted.padded(self, x, config, lambda x, config: self._pad(x, value, config))

    def _pad(self, x: Value, value: Value, config: Any) -> Value:
        out = padding.pad(self, x, value, config)
        if out.node.word != "literal" and any(max(c) > 0 for c in config):
            self.spread[out.node] = out.shape, x, value, config
        return out

    def concatenate(self, xs: Sequence[Value], dim: int) -> Value:
        once = repeats.moved(self, xs, (dim,), lambda xs: self.concatenate(xs, dim))
        return once or wanted.joined(self, xs, dim, self._concatenate)

    def _concatenate(self, xs: Sequence[Value], dim: int) -> Value:
        return pieces.concatenate(self, xs, dim)

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Ints) -> Value:
        return windows.dynamic_slice(self, x, starts, tuple(sizes))

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        return windows.dynamic_update_slice(self, x, update, starts)

    def gather(self, x: Value, indices: Value, **params: Any) -> Value:
        if x.node is self.once and x.node in self.gathered:
            found = commuting.gather_of_gather(self, x, indices, **params)
            if found is not None:
                return found
        found = gathers.slice_at(self, x, indices, **params)
        if (found := found or gathers.slices_at(self, x, indices, **params)) is not None:
            return found
        out = gathers.of_repeated(self, x, indices, **params)
        out = out or gathers.chosen(self, x, indices, **params)
        if out is None and x.node in self.laid:
            out = takes.take_of_copy(self, x, indices, **params)
        out = out or takes.take(self, x, indices, **params)
        out = out or gathers.gather(self, x, indices, **params)
        if len(out.parts) == 1:
            self.gathered[out.node] = x, indices, params
        return out

    def scatter(self, word: str, x: Value, indices: Value, updates: Value, **params: Any) -> Value:
        if word != "set":
            self._known(BINARY, word, x)
        return scatters.scatter(self, word, x, indices, updates, **params)

    def cumulative(self, word: str, x: Value, axis: int, reverse: bool) -> Value:
        once = repeats.moved(
            self, (x,), (axis,), lambda xs: self.cumulative(word, xs[0], axis, reverse)
        )
        if once is not None:
            return once
        if is_narrow(x.dtype):
            wide = self.cumulative(word, self.convert(x, FLOAT32), axis, reverse)
            return self.convert(wide, x.dtype)
        return rooms.scans.cumulative(self, x, word, axis, reverse)

    def place_of(self, how: str, x: Value, axis: int, dtype: Any) -> Value:
        wide = self.convert(x, FLOAT32) if is_narrow(x.dtype) else x
        return rooms.scans.place_of(self, wide, how, axis, dtype)

    def sort(self, xs: Sequence[Value], axis: int, num_keys: int) -> list[Value]:
        return rooms.orders.sort(self, xs, axis, num_keys)

    def top_k(self, x: Value, count: int, axis: int) -> list[Value]:
        return rooms.firsts.top_k(self, x, count, axis)

    def reduce_window(self, monoid: str, x: Value, shape: Ints, window: Any) -> Value:
        return rooms.pooling.reduce_window(self, monoid, x, tuple(shape), window)

    def select_and_scatter_add(self, source: Value, x: Value, how: str, window: Any) -> Value:
        return rooms.pooling.select_and_scatter_add(self, source, x, how, window)

    # Products.

    def dot_general(self, x: Value, y: Value, **params: Any) -> Value:
        return rooms.products.dot_general(self, x, y, **params)

    def convolution(self, x: Value, y: Value, **params: Any) -> Value:
        return rooms.convolution.convolution(self, x, y, **params)

    def fft(self, x: Value, kind: str, lengths: Ints) -> Value:
        return rooms.fourier.fft(self, x, kind, lengths)


def _is_one(x: Value) -> bool:
    """Whether all elements are a literal 1."""
    return x.node.word == "literal" and bool(np.frombuffer(x.node.attr, x.node.dtype)[0] == 1)


def _viewed(x: Value, shape: Ints) -> Value:
    """The same elements with dimensions split, which strides always say."""
    found = reshaped(x, tuple(shape))
    assert found is not None
    return found


__all__ = ["Words", "row_major"]
