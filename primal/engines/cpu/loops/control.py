"""Loops and branches from regions: blocks of steps with results in places of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from primal.base.dtypes import physical_dtype
from primal.base.source import names_of
from primal.engines.cpu.graph import NOWHERE, Node, Value, native, row_major
from primal.engines.cpu.steps import Branch, Loop, Move
from primal.ir.avals import Aval

Region = Callable[..., Sequence[Value]]


def while_(k: Any, cond: Region, body: Region, inits: Sequence[Value]) -> list[Value]:
    """carry = body(carry) while cond(carry).

    The condition is computed once before the loop and then at the end of the body, where it is
    part of the same kernels.
    """
    inits = [whole(k, x) for x in inits]
    with _part(k, "while/cond"):
        (first,) = cond(k, *inits)
    carries = [x for x in inits if x.size]
    params = [_param(x.aval) for x in carries]
    with _block(k) as order:
        with _part(k, "while/body"):
            values = body(k, *_with_empty(k, inits, params))
        carried = distinct(k, [v for v in values if v.size])
        with _part(k, "while/cond"):
            (going,) = cond(k, *_with_empty(k, values, carried))
        # It may be a carry itself: it is read before the next run begins.
        again = going if _made(k, going) else copied(k, going)
    outs = [_result(x.aval) for x in carries]
    k.order.append(
        Loop(
            carries, [p.node for p in params], [v.node for v in carried], [o.node for o in outs],
            order, first=k.held(first), again=again,
        )
    )  # fmt: skip
    return _with_empty(k, inits, outs)


def scan(
    k: Any,
    body: Region,
    inits: Sequence[Value],
    xs: Sequence[Value],
    stacked: Sequence[Aval],
    length: int,
    reverse: bool,
) -> list[Value]:
    """(carry, y[i]) = body(carry, x[i]); `stacked` are the avals of y."""
    if not length:
        return [*inits, *[k.empty(a) for a in stacked]]
    inits = [whole(k, x) for x in inits]
    carries = [x for x in inits if x.size]
    params = [_param(x.aval) for x in carries]
    rows = [_rows(k, x) for x in xs if x.size]
    slices = [_param(Aval(x.shape[1:], x.dtype)) for x in rows]
    with _block(k) as order, _part(k, "while/body"):
        given = iter(slices)
        items = [
            next(given) if x.size else k.empty(Aval(x.shape[1:], x.dtype)) for x in xs
        ]
        values = body(k, *_with_empty(k, inits, params), *items)
        kept = distinct(k, [v for v in values if v.size])
    made = [_result(x.aval) for x in carries]
    stacks = [_result(a) for a in stacked if a.size]
    count = len(made)
    k.order.append(
        Loop(
            carries, [p.node for p in params], [v.node for v in kept[:count]],
            [o.node for o in (*made, *stacks)], order,
            xs=rows, slices=[s.node for s in slices], pieces=[v.node for v in kept[count:]],
            trips=length, reverse=reverse,
        )
    )  # fmt: skip
    results = iter(stacks)
    return [
        *_with_empty(k, inits, made),
        *[next(results) if a.size else k.empty(a) for a in stacked],
    ]


def case(k: Any, index: Value, branches: Sequence[Region]) -> list[Value]:
    """branches[index](), the index clamped."""
    if index.node.word == "literal" or len(branches) == 1:
        at = int.from_bytes(index.node.attr or b"", "little", signed=True)
        return list(branches[min(max(at, 0), len(branches) - 1)](k))
    orders, results = [], []
    values: Sequence[Value] = ()
    for i, branch in enumerate(branches):
        with _block(k) as order, _part(k, f"cond/branch_{i}_fun"):
            values = branch(k)
            kept = distinct(k, [v for v in values if v.size], moved=True)
        orders.append(order)
        results.append([v.node for v in kept])
    outs = [_result(v.aval) for v in values if v.size]
    k.order.append(Branch(k.held(index), orders, results, [o.node for o in outs]))
    return _with_empty(k, values, outs)


@contextmanager
def _block(k: Any) -> Iterator[list[Any]]:
    """What the builder is told inside goes into a list of its own."""
    outer, k.order = k.order, []
    k.outer.append(outer)
    try:
        yield k.order
    finally:
        k.order = k.outer.pop()


@contextmanager
def _part(k: Any, name: str) -> Iterator[None]:
    """What the builder is told inside is that part of the equation, in profiles."""
    outer, k.path = k.path, (*k.path, *names_of(k.eqn.source), name)
    try:
        yield
    finally:
        k.path = outer


def _param(aval: Aval) -> Value:
    node = Node("param", (), aval.shape, physical_dtype(aval.dtype), None)
    return Value(node, aval.shape, aval.dtype)


def _result(aval: Aval) -> Value:
    node = Node("control", (), aval.shape, physical_dtype(aval.dtype), None)
    return Value(node, aval.shape, aval.dtype)


def _with_empty(k: Any, like: Sequence[Value], some: Sequence[Value]) -> list[Value]:
    """One value per given one: the next of `some`, or one without elements."""
    following = iter(some)
    return [next(following) if x.size else k.empty(x.aval) for x in like]


def whole(k: Any, x: Value) -> Value:
    """The value as all of a node that lies in memory."""
    if x.node.word not in NOWHERE and x.strides is None:
        return x
    return k.copy(x)


def _rows(k: Any, x: Value) -> Value:
    """The value with dense x[i], whatever the distance between them."""
    if x.node.word not in NOWHERE:
        plain = row_major(x.shape[1:])
        inner = zip(x.shape[1:], x.steps()[1:], plain, strict=True)
        if all(n == 1 or s == p for n, s, p in inner):
            return x
    return k.copy(x)


def _made(k: Any, x: Value) -> bool:
    """Whether the block being written makes the node of a value, in memory and alone."""
    if x.strides is not None:
        return False
    return any(item is x.node if type(item) is Node else x.node in item.outs for item in k.order)


def copied(k: Any, x: Value, moved: bool = False) -> Value:
    """The value in a new node. `moved`: by a step that needs no work where memory is shared."""
    in_memory = x.node.word not in NOWHERE and x.strides is None
    if not in_memory or (native(x.dtype) is not None and not moved):
        return k.copy(x)
    node = Node("routine", (x,), x.shape, physical_dtype(x.dtype), None)
    k.order.append(Move(x, node))
    return Value(node, x.shape, x.dtype)


def distinct(k: Any, values: Sequence[Value], moved: bool = False) -> list[Value]:
    """The values as nodes that this block makes, each in memory of its own."""
    made: set[Node] = set()
    for item in k.order:
        made.update((item,) if type(item) is Node else item.outs)
    found = []
    for x in values:
        if x.strides is None and x.node in made:
            made.discard(x.node)
        else:
            x = copied(k, x, moved)
        found.append(x)
    return found
