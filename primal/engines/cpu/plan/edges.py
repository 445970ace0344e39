"""Sums of arrays that are zero but for pieces: one concatenation of what meets where.

So are derivatives of splits, differences and rolls, whose terms would write and read the whole each
time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from primal.engines.cpu.graph import IN_REGISTERS, Value, is_zero, native, size_of, transposed
from primal.engines.cpu.layout import flat as flat_layout
from primal.engines.cpu.layout.squares import SHORTEST
from primal.engines.cpu.plan import around
from primal.engines.cpu.plan.commuting import made_by_pad
from primal.engines.cpu.routines import turns
from primal.engines.cpu.routines.pieces import CLOSE, HEAVY_RUN, concatenate, in_turn

MOST_TERMS, MOST_APART = 24, 256
"""Terms of a sum of padded arrays up to which it is written out, and of those that never meet."""


def sum_of_padded(
    k: Any, x: Value, y: Value, order: Sequence[int] | None = None
) -> Value | None:
    """x + y of arrays padded with zeros: a concatenation of sums of what meets where.

    The derivatives of splits and differences are sums of such, which would write and read the
    whole each time. The sums that lead up to the last one are read by nobody then, and not
    computed. Adding zero keeps what it does to -0. `order`: of dimensions, as all readers want it.
    """
    if x.shape != y.shape or not all(p.strides is None for p in (*x.parts, *y.parts)):
        return None
    taking_turns = _in_turn(k, x, y)
    if taking_turns is not None:
        return taking_turns
    if not all(p.is_node for p in (*x.parts, *y.parts)):
        return None
    known = [_padded_of(k, v) for v in (x, y)]
    if not all(found is None or found[2] for found in known):
        whole = _sharing(k, x, y, *known)
        if whole is not None:
            return whole
        beside = _sum_of_read(k, x, y, known[0], known[1], order)
        if beside is not None:
            return beside
        # Beside what is in memory, as edges beside much, its pieces are some of the same array.
        if not any(found and found[2] for found in known):
            return None
    dim = next((found[0] for found in known if found), None)
    if dim is None:
        return None
    both = [found or (dim, [(0, v.shape[dim], v)]) for found, v in zip(known, (x, y), strict=True)]
    some, more = [found[1] for found in both]
    if both[0][0] != both[1][0] or len(some) + len(more) > MOST_APART:
        return None
    # Of the shortest rows every coordinate is a vector (`points`), so that columns cost nothing.
    short = dim == x.ndim - 1 and x.shape[dim] < around.shortest_row(k, x.shape)
    rows = size_of(x.shape[:dim]) > 1 and not short
    pieces = sorted([*some, *more], key=lambda p: p[:2])
    meets = _meet(pieces)
    if len(pieces) > MOST_TERMS and (rows or meets):
        return None
    if not meets:
        return _side_by_side(k, x, pieces, dim)
    if native(x.dtype) is None and any(len(value.parts) == 1 for *_, value in pieces):
        return None  # parts of what lies in memory are padded as they are read
    if _meet(more):
        some, more = more, some
    pieces = [*some, *more]
    ends = sorted({0, x.shape[dim], *[n for piece in pieces for n in piece[:2]]})
    parts = [
        (a, b, [piece for piece in pieces if piece[0] <= a and b <= piece[1]])
        for a, b in itertools.pairwise(ends)
    ]
    terms = sum([len(meeting) for _, _, meeting in parts])
    # Edges that are columns cost more than the whole. More than two are added from the left.
    if rows or _meet(more) or terms > MOST_TERMS:
        return None
    zero = k.literal(0, x.dtype)
    made = []
    for a, b, meeting in parts:
        total = None
        for start, stop, value in meeting:
            if (start, stop) != (a, b):
                low, high = [0] * x.ndim, list(value.shape)
                low[dim], high[dim] = a - start, b - start
                value = k.slice(value, low, high, (1,) * x.ndim)
            total = value if total is None else _plus(k, total, value)
        if total is None:
            gap = (*x.shape[:dim], b - a, *x.shape[dim + 1 :])
            total = k.broadcast_in_dim(zero, gap, ())
        elif len(meeting) < len(pieces):
            total = _plus(k, total, zero)
        made.append(total)
    out = concatenate(k, made, dim)
    if out.is_node:
        k.padded[out.node] = (dim, pieces, True)
    return out


def _in_turn(k: Any, x: Value, y: Value) -> Value | None:
    """x + y of arrays whose elements take turns with zeros, put together at once.

    So is the cotangent of what reads every other element and those between: the gradient of the
    squares of x[:, ::2] - x[:, 1::2] of 1000 x 1000 460 to 88 µs, JAX 178; of its rows 360 to 94.
    """
    one, other = _turns_of(k, x), _turns_of(k, y)
    if one is None or other is None or one[0] != other[0]:
        return None
    (d, step), found, terms = one[0], dict(one[1]), one[2] + other[2]
    for low, (value, count) in other[1].items():
        before, many = found.get(low, (value, 0))
        if before.shape != value.shape:
            return None
        found[low] = _plus(k, before, value) if many else value, many + count
    zero = k.literal(0, x.dtype)

    def part(low: int, start: int, stop: int) -> Value:
        """Elements from a place on, of those that lie so far apart."""
        value, count = found.get(low, (None, 0))
        if value is None or value.shape[d] < stop:
            gap = (*x.shape[:d], stop - start, *x.shape[d + 1 :])
            out: Value = k.broadcast_in_dim(zero, gap, ())
            return out
        first, last = [0] * x.ndim, list(value.shape)
        first[d], last[d] = start, stop
        out = k.slice(value, first, last, (1,) * x.ndim)
        return out if count == terms or _has_added_zero(out) else _plus(k, out, zero)

    out = in_turn(k, x.shape, d, step, part)
    k.in_turn[out.node] = x.shape, (d, step), found, terms
    return out


def _turns_of(k: Any, x: Value) -> Any:
    """Dimension and distance; what lies so far apart from which place on, and of how many terms it
    is the sum; of how many the whole is. None of what are no elements among zeros."""
    if len(x.parts) > 1 or x.size <= IN_REGISTERS:
        return None
    shape, *known = k.in_turn.get(x.node, (None,))
    if shape == x.shape:
        return known
    made = made_by_pad(k, x)
    if made is None or not is_zero(made[1]) or made[0].node.word == "literal":
        return None
    value, _, config = made
    padded = [d for d, edges in enumerate(config) if any(edges)]
    d = padded[0]
    low, high, between = config[d]
    step = between + 1
    every = 0 <= low < step <= CLOSE and high >= 0 and value.shape[d] >= x.shape[d] // step > 0
    return ((d, step), {low: (value, 1)}, 1) if every and between and len(padded) == 1 else None


def _padded_of(k: Any, x: Value) -> Any:
    """What `Words.padded` knows of a value; of complex ones in parts what it knows of both."""
    found = [k.padded.get(p.node) for p in x.parts]
    if len(found) == 1 or None in found:
        return found[0] if len(found) == 1 else None
    (dim, some, stored), (other, more, _) = found
    if dim != other or [p[:2] for p in some] != [p[:2] for p in more]:
        return None
    both = zip(some, more, strict=True)
    return dim, [(a, b, k.pair(re, im, x.dtype)) for (a, b, re), (*_, im) in both], stored


def _sharing(k: Any, x: Value, y: Value, one: Any, other: Any) -> Value | None:
    """x + y, or (a + x) + y, of two padded as they are read that share out the whole.

    They are joined as they are read then, as the roll was whose derivative they are, and added
    once: eight masked terms were four groups (50 steps of the four neighbours of 64 x 64 and their
    gradient 342 to 115 µs, JAX 211). Their sum with 0 is the same to the sign of zeros.
    """
    before = None
    if one is None and native(x.dtype) is not None and x.node.word == "add":
        before, x = x.node.args
        one = _padded_of(k, x) if x.is_node else None
    if one is None or other is None or one[2] or other[2] or one[0] != other[0]:
        return None
    dim, pieces = one[0], sorted([*one[1], *other[1]], key=lambda p: p[:2])
    if len(pieces) != 2 or _meet(pieces) or sum([b - a for a, b, _ in pieces]) != y.shape[dim]:
        return None
    if y.shape[-1] < flat_layout.SHORT < size_of(y.shape[:-1]):
        return None  # short rows that are padded are one run, which joined ones are not
    joined = around.joined_again(k, [value for *_, value in pieces], dim, y.shape)
    if joined is None:
        return None
    joined = _plus(k, joined, k.literal(0, y.dtype))
    return joined if before is None else _plus(k, before, joined)


def _sum_of_read(
    k: Any, x: Value, y: Value, one: Any, other: Any, order: Sequence[int] | None
) -> Value | None:
    """The sum of what was padded as it is read, but does not meet and leaves nothing out.

    Side by side each piece is computed for its own elements: the gradient of the product of both
    halves of 1000 x 1000 complex64 took 940 µs as a sum, of 100 x 100 x 100 bfloat16 740.
    """
    if one is None or other is None or one[0] != other[0]:
        return None
    dim, pieces = one[0], sorted([*one[1], *other[1]], key=lambda p: p[:2])
    runs = [size_of(value.shape[dim:]) for *_, value in pieces]
    # Of one row even an edge of one element costs nothing, nor do rows that are stored turned.
    turned = order is not None and order[-1] != x.ndim - 1 and dim != order[-1]
    least = SHORTEST if turned else HEAVY_RUN
    short = min(runs) < least and size_of(x.shape[:dim]) > 1
    columns = max(runs) == len(x.parts) == 1 and x.size >= turns.HUGE and not k.woven
    if _meet(pieces) or (short and not columns) or len(pieces) > MOST_TERMS:
        return None
    if sum([b - a for a, b, _ in pieces]) == x.shape[dim]:
        if short and len(pieces) > turns.SHORT:
            # Rows of the transposed array, which is turned as a whole.
            order = dim, *range(dim), *range(dim + 1, x.ndim)
            lain = [(a, b, transposed(v, order)) for a, b, v in pieces]
            out = _side_by_side(k, transposed(x, order), lain, 0)
            return transposed(out, [order.index(d) for d in range(x.ndim)])
        return None if k.woven or short else _side_by_side(k, x, pieces, dim)
    # One of two complex arrays may lie in memory and the other be two parts.
    apart = k.parts if native(x.dtype) is None else lambda v: (v,)
    found = [(a, b, apart(v)) for a, b, v in pieces]
    made = []
    for i, both in enumerate(zip(apart(x), apart(y), strict=True)):
        made.append(k.element("add", both, both[0].dtype))
        k.padded[made[-1].node] = dim, [(a, b, v[i]) for a, b, v in found], False
    return made[0] if len(made) == 1 else k.pair(*made, x.dtype)


def _side_by_side(k: Any, x: Value, pieces: Sequence[tuple[int, int, Value]], dim: int) -> Value:
    """The sum of arrays padded to the shape of x, which do not meet."""
    zero = k.literal(0, x.dtype)
    made, kept, at = [], [], 0
    for start, stop, value in (*pieces, (x.shape[dim], x.shape[dim], None)):
        if start > at:
            gap = (*x.shape[:dim], start - at, *x.shape[dim + 1 :])
            made.append(k.broadcast_in_dim(zero, gap, ()))
        if value is not None:
            if not _has_added_zero(value):
                value = _plus(k, value, zero)
            made.append(value)
            kept.append((start, stop, value))
        at = stop
    out = concatenate(k, made, dim)
    if out.is_node:
        k.padded[out.node] = (dim, kept, True)
    return out


def _has_added_zero(x: Value) -> bool:
    """Whether it is a sum with 0, to which another 0 adds nothing."""
    return all(p.node.word == "add" and is_zero(p.node.args[1]) for p in x.parts)


def _plus(k: Any, x: Value, y: Value) -> Value:
    """x + y, without another look at what they were padded of."""
    known = native(x.dtype) is not None
    out: Value = k.element("add", (x, y), x.dtype) if known else k.binary("add", x, y)
    return out


def _meet(pieces: Sequence[tuple[int, int, Value]]) -> bool:
    """Whether two pieces overlap."""
    return any(a[1] > b[0] for a, b in itertools.pairwise(sorted(pieces, key=lambda p: p[:2])))
