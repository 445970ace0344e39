"""Results in the order in which all of their readers want the dimensions, which `Outlook` knows.

So a sum of padded arrays that is transposed behind is put together where it belongs; its pieces
would be written, read and turned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.engines.cpu.graph import Value, size_of, transposed
from primal.engines.cpu.plan import edges
from primal.engines.cpu.routines import scatters, turns
from primal.engines.cpu.routines.gaps import CLOSE


def laid(k: Any, xs: Sequence[Value], make: Callable[..., Value]) -> Value:
    """What is made of values, which are given in the wanted order; there must be one."""
    order, k.layout = k.layout, None
    out = make([_transposed(k, x, order) for x in xs], order)
    k.layout = order
    return _transposed(k, out, [order.index(d) for d in range(len(order))])


def _transposed(k: Any, x: Value, order: Sequence[int]) -> Value:
    """Of complex numbers in parts, both."""
    found: Value = transposed(x, order) if len(x.parts) == 1 else k.transpose(x, order)
    return found


def padded(k: Any, x: Value, config: Any, make: Callable[..., Value]) -> Value:
    """`make` of an operand and its edges in the wanted order, if that suits; else as they are."""
    moving = [d for d, edges in enumerate(config) if any(edges)]
    size = size_of([n + sum(edges[:2]) for n, edges in zip(x.shape, config, strict=True)])
    return _moved(k, (x,), size, moving, lambda xs, order: make(*xs, [config[d] for d in order]))


def joined(k: Any, xs: Sequence[Value], dim: int, make: Callable[..., Value]) -> Value:
    """The same of what is joined along a dimension."""
    size = sum([x.size for x in xs])
    return _moved(k, xs, size, (dim,), lambda xs, order: make(xs, order.index(dim)))


def sum_of(k: Any, x: Value, y: Value) -> Value | None:
    """x + y where some arrays are zero but for pieces, if these are such."""
    order = k.layout
    if order is not None and all(_is_along(v, order) for v in (x, y)):
        return laid(k, (x, y), lambda xs, _: k.binary("add", *xs))
    k.layout = None
    found = scatters.added_to(k, x, y) or edges.sum_of_padded(k, x, y, order)
    k.layout = order
    return found


def _moved(
    k: Any, xs: Sequence[Value], size: int, moving: Sequence[int], make: Callable[..., Value]
) -> Value:
    """What moves along dimensions to an array of so many elements.

    Asked for in the wanted order where rows are read side by side, or whole and a few elements
    apart, or what is turned is at most half of the result. Else that is turned at last, which
    takes one pass however much is added up until then.
    """
    order, k.layout = k.layout, None
    found: list[Value | None] = [None]
    if order is not None:
        whole = order[-1] not in moving
        if all(_is_along(x, order, whole) for x in xs):
            found = list(xs)
        elif 2 * sum([x.size for x in xs]) <= size:
            found = [_turned(k, x, order) for x in xs]
    given = [x for x in found if x is not None]
    suits = len(given) == len(xs)
    out = None if suits else make(xs, range(xs[0].ndim))
    k.layout = order
    return laid(k, given, make) if out is None else out


def _is_along(x: Value, order: Sequence[int], whole: bool = False) -> bool:
    """Whether rows are read side by side in an order, or, of `whole` ones, a few elements apart."""
    if x.ndim != len(order):
        return False
    most = CLOSE if whole else 1
    if x.shape[order[-1]] == 1:
        return True
    return all(turns.is_spread(p) or 0 < p.steps()[order[-1]] <= most for p in x.parts)


def _turned(k: Any, x: Value, order: Sequence[int]) -> Value | None:
    """A copy that lies in an order, if squares of it are turned."""
    if x.ndim != len(order) or len(x.parts) > 1:
        return None
    made = k.turned_copy(transposed(x, order))
    return None if made is None else transposed(made, [order.index(d) for d in range(x.ndim)])
