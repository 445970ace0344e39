"""What is read in part is computed in part: f(x)[:10] is f(x[:10]), whatever f consists of.

And light words of one array are computed where several parts of them are read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.graph import (
    APART,
    NOWHERE,
    Node,
    Strides,
    Value,
    reshaped,
    row_major,
    size_of,
)
from primal.engines.cpu.interleaved import WORDS
from primal.engines.cpu.kernels.takes import INNER
from primal.engines.cpu.plan.schedule import is_light_word, nodes_read
from primal.engines.cpu.routines.gaps import CLOSE
from primal.engines.cpu.steps import Routine

_STAYS = APART | NOWHERE | INNER.keys()
"""Words that are no function of the elements at the same place, but for `pad`, which is told that
place: of six slices of a cotangent's pads a loop's turn wrote all of four and read them once (100
turns of the five points of 32 x 32, padded, with their gradient 165 to 87 us, JAX 95)."""
ALONE = 16
"""Elements that a view takes at least the time of: 60 numbers of 130, one by one, are 20 µs of 18
functions, the array 4."""
AGAIN, MOST = 2, 4
"""Light words in a row, of one array, that are computed where they are read at several places, and
how many times: x / 2 and -x / 2 were 8 MB in the derivative of `jnp.gradient`."""


def in_part(items: Sequence[Any], outs: Sequence[Node]) -> list[Any]:
    """Items of a block, the last first, in which elementwise nodes have the elements read of them.

    Where all readers are elementwise nodes and reductions that read views, which together take at
    most half of the time.
    """
    whole = set(outs)
    readers: dict[Node, list[Node]] = defaultdict(list)
    found: list[Any] = []
    again: dict[Node, int] = {}
    for item in items:
        if _read_apart(item, whole, readers):
            continue
        if type(item) is not Node:
            whole.update(nodes_read(item))
            found.append(item)
            continue
        made = [item] if item in whole else _parts(item, readers[item], again)
        for node in made:
            for x in node.args:
                readers[x.node].append(node)
        found.extend(made)
    return found


Piece = tuple[Sequence[int], Sequence[int], Value, Sequence[int]]
"""First and last index of a part of an array, what it was put together of, and the index of its
first element there."""


def _read_apart(item: Any, whole: set[Node], readers: dict[Node, list[Node]]) -> bool:
    """Whether nobody reads what was joined or padded, as all that was read of it are parts of
    pieces, which are read now.

    So what becomes of halves that were put together, and taken apart again, is computed of them:
    the derivative of `stack` for a function of its result.
    """
    if type(item) is Node:
        if item.word not in ("join", "pad"):  # most of thousands: of no pieces
            return not readers[item] and item not in whole
        outs: Sequence[Node] = (item,)
    elif type(item) is Routine:
        outs = item.outs
    else:
        return False
    if not whole.isdisjoint(outs):
        return False
    if not any(readers[node] for node in outs):
        return True  # as a copy of a piece
    pieces = _pieces_of(item)
    if not pieces:
        return False
    (node,) = outs
    if _read_within(node, readers[node]):
        return False
    found: dict[Any, Value] = {}
    for x in [x for r in readers[node] for x in r.args if x.node is node]:
        if x.key() not in found:
            part = _within(node.shape, x, pieces)
            if part is None:
                return False
            found[x.key()] = part
    for reader in dict.fromkeys(readers[node]):
        read = [found.get(x.key()) if x.node is node else None for x in reader.args]
        for piece in read:
            if piece is not None:
                readers[piece.node].append(reader)
        reader.args = tuple([new or x for new, x in zip(read, reader.args, strict=True)])
    return True


def _read_within(node: Node, readers: Sequence[Node]) -> bool:
    """Whether a word reads the node by itself, as elements that its view does not tell."""
    return any(x.node is node for r in readers for x in r.args[: INNER.get(r.word, 0)])


def _pieces_of(item: Any) -> list[Piece]:
    """What a concatenation, or a word that joins two arrays or pads one, puts together."""
    found: list[Piece] = []
    if type(item) is Node:
        plain, ends = [0] * len(item.shape), [n - 1 for n in item.shape]
        if item.word == "join":
            *pieces, along, middle = item.args
            dim, at = _dimension(along), _number(middle)
            below, above = (_put(v, dim, n) for v, n in ((ends, at - 1), (plain, at)))
            found = [(plain, below, pieces[0], plain), (above, ends, pieces[1], plain)]
        elif item.word == "pad":
            first, last = plain, ends
            for i in range(1, len(item.args), 3):
                along, low, high = item.args[i : i + 3]
                dim = _dimension(along)
                first, last = _put(first, dim, _number(low)), _put(last, dim, _number(high) - 1)
            found = [(first, last, item.args[0], plain)]
        return found
    if len(item.parts) < 2:
        return []
    for x, place in zip(item.args, item.parts, strict=True):
        first = _split(place.offset, row_major(item.outs[0].shape))
        last = [a + n - 1 for a, n in zip(first, place.shape, strict=True)]
        # Copies were made for groups to put them together.
        while x.node.word == "copy" and (copied := viewed(x)) is not None:
            x = copied
        found.append((first, last, x, first))
    return found


def _dimension(places: Value) -> int:
    """The dimension that places are counted along; one of size 1 may have any step."""
    counted = enumerate(zip(places.shape, places.steps(), strict=True))
    return next(d for d, (n, s) in counted if s and n > 1)


def _number(x: Value) -> int:
    return int(np.frombuffer(x.node.attr, x.node.dtype)[0])


def _put(indices: Sequence[int], dim: int, n: int) -> list[int]:
    return [n if d == dim else i for d, i in enumerate(indices)]


def _reach(
    whole: Sequence[int], x: Value
) -> tuple[list[int], list[list[int]], list[int], list[int]]:
    """Of a view the first index, the steps of its dimensions, the least and the greatest index."""
    sides = row_major(whole)
    begin = _split(x.offset, sides)
    steps = [_split(s if n > 1 else 0, sides) for n, s in zip(x.shape, x.steps(), strict=True)]
    low, high = list(begin), list(begin)
    for n, by in zip(x.shape, steps, strict=True):
        for d, step in enumerate(by):
            (low if step < 0 else high)[d] += (n - 1) * step
    return begin, steps, low, high


def _within(whole: Sequence[int], x: Value, pieces: Sequence[Piece]) -> Value | None:
    """A view as one of the piece of the array that it lies in; None where it lies in several."""
    begin, steps, low, high = _reach(whole, x)
    for first, last, piece, origin in pieces:
        if all(a <= b and c <= e for a, b, c, e in zip(first, low, high, last, strict=True)):
            along = piece.steps()
            offset = _dot([b - o for b, o in zip(begin, origin, strict=True)], along)
            strides = tuple([_dot(by, along) for by in steps])
            return piece.view(x.shape, strides, piece.offset + offset)
    return None


def _parts(node: Node, readers: Sequence[Node], again: dict[Node, int]) -> list[Node]:
    """The nodes that stand for one, whose readers read them now; itself where it stays.

    `again`: nodes that are computed more than once, and how many in a row.
    """
    pads = node.word == "pad"
    places = node.word in _STAYS or any(x.node.word == "iota" for x in node.args)
    if not readers or (places and not pads):
        return [node]
    read = [x for r in readers for x in r.args if x.node is node]
    if _read_within(node, readers):
        return [node]
    if any(x.strides is None for x in read):
        return [node if pads else _as_read(node, readers, read) or node]
    views = {x.key(): x for x in read}
    # Masks for each part take longer than memory that holds all; what is turned whole is no part.
    if pads and (len(views) > 1 or read[0].size == size_of(node.shape)):
        return [node]
    much = sum([max(_distinct(x), ALONE) for x in views.values()])
    if len(views) > MOST and (block := _block(node, [*views.values()], much)) is not None:
        for reader in dict.fromkeys(readers):
            reader.args = tuple(
                [x.node is node and _within(node.shape, x, [block]) or x for x in reader.args]
            )
        return [block[2].node]
    deep = 0
    if 2 * much > size_of(node.shape):
        deep = 1 + max([again.get(r, 0) for r in readers])
        repeats = any(_distinct(x) < x.size for x in views.values())
        costs = repeats or much > MOST * size_of(node.shape) or not (pads or _is_of_one(node))
        if _are_slices(node, views.values()):
            costs, deep = False, deep - 1
        if costs or deep > AGAIN:
            return [node]
    parts = {}
    for key, x in views.items():
        part = _part(node, x)
        if part is None:
            return [node]
        parts[key] = part
    for reader in dict.fromkeys(readers):
        reader.args = tuple([_of(parts[x.key()], x) if x.node is node else x for x in reader.args])
    if deep:
        again.update(dict.fromkeys(parts.values(), deep))
    return list(parts.values())


def _block(node: Node, views: Sequence[Value], much: int) -> Piece | None:
    """The least block that holds many views, where that is no more than they are.

    Steps of a stencil would be computed at as many places more each time: of 8 of them, and a point
    of the last, were made 3,000 words.
    """
    spans = [_reach(node.shape, x)[2:] for x in views]
    low = [min(ns) for ns in zip(*[a for a, _ in spans], strict=True)]
    high = [max(ns) for ns in zip(*[b for _, b in spans], strict=True)]
    shape = tuple([b - a + 1 for a, b in zip(low, high, strict=True)])
    size, along = size_of(shape), row_major(node.shape)
    if size > much or 2 * size > size_of(node.shape):
        return None
    part = _part(node, Value(node, shape, views[0].logical, along, _dot(low, along)))
    whole = None if part is None else Value(part, shape, views[0].logical)
    return None if whole is None else (low, high, whole, low)


def _as_read(node: Node, readers: Sequence[Node], read: Sequence[Value]) -> Node | None:
    """Light arithmetic in the shape in which all who read it do, which a reshape split.

    So it is one group with them: means of blocks of what was computed need no memory.
    """
    shape = read[0].shape
    if shape == node.shape or not is_light(node):
        return None
    if any(x.strides is not None or x.shape != shape for x in read):
        return None
    args = [reshaped(x, shape) for x in node.args]
    found = [x for x in args if x is not None]
    if len(found) < len(args):
        return None
    made = Node(node.word, tuple(found), shape, node.dtype, node.attr)
    made.origin = node.origin
    for reader in dict.fromkeys(readers):
        reader.args = tuple(
            [Value(made, shape, x.logical) if x.node is node else x for x in reader.args]
        )
    return made


def is_light(node: Node) -> bool:
    """Whether a node is light arithmetic, for which no more arrays need be in memory than it."""
    arrays = {x.node for x in node.args if x.node.word != "literal"}
    costs = [n for n in arrays if n.args and not _takes_little(n)]
    return _takes_little(node) and (not costs or len(arrays) == 1)


def _takes_little(node: Node) -> bool:
    return is_light_word(node.word) or node.word in ("fma", "complex")


def _are_slices(node: Node, views: Collection[Value]) -> bool:
    """Whether few slices of light arithmetic, which together are at most all of it, lie as it does,
    or backwards, or nearly so.

    Then nothing is computed twice, and the halves of a roll, of a split or of a stack need no
    memory.
    """
    if not is_light(node):
        return False
    if len(views) > MOST or sum([x.size for x in views]) > size_of(node.shape):
        return False
    for x in views:
        steps = [abs(s) for n, s in zip(x.shape, x.steps(), strict=True) if n > 1]
        if 0 in steps or steps != sorted(steps, reverse=True) or (steps and steps[-1] > CLOSE):
            return False
    return True


def _is_of_one(node: Node) -> bool:
    """Whether a light word reads one array, for which its readers may read that one."""
    arrays = {x.node for x in node.args if x.node.word != "literal"}
    return is_light_word(node.word) and len(arrays) == 1 and len(node.args) <= 2


def _distinct(x: Value) -> int:
    return math.prod(n for n, s in zip(x.shape, x.steps(), strict=True) if s)


def _of(part: Node, x: Value) -> Value:
    """A view as one of the node that has its elements, in which nothing repeats."""
    along = row_major(part.shape)
    steps = [a if s else 0 for a, s in zip(along, x.steps(), strict=True)]
    return Value(part, x.shape, x.logical, tuple(steps))


def _part(node: Node, x: Value) -> Node | None:
    """The node of a view's elements, or None where the view is none of its dimensions'."""
    whole = node.shape
    plain = row_major(whole)
    # What lies row by row is a line, of which pieces may begin and end within rows.
    is_line = all(set(a.steps()) <= {0} or a.steps() == plain for a in node.args)
    if is_line:
        whole = (size_of(whole),)
    sides = row_major(whole)
    shape = tuple([n if s else 1 for n, s in zip(x.shape, x.steps(), strict=True)])
    first = _split(x.offset, sides)
    steps = [
        _split(s, sides) if n > 1 else [0] * len(sides)
        for n, s in zip(shape, x.steps(), strict=True)
    ]
    for d, size in enumerate(whole):
        reach = [(n - 1) * by[d] for n, by in zip(shape, steps, strict=True)]
        low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        if first[d] + low < 0 or first[d] + high >= size:
            return None

    def at(a: Value) -> Value:
        along = a.steps()
        if is_line:
            along = (int(any(along)),)
        strides: Strides = tuple([_dot(by, along) for by in steps])
        return a.view(shape, strides, a.offset + _dot(first, along))

    part = Node(node.word, tuple([at(a) for a in node.args]), shape, node.dtype, node.attr)
    part.origin = node.origin
    return part


def sunk(k: Any, x: Value, most: int) -> Value | None:
    """Light words of views as words of what these read, as far as that is light; else as it is.

    None where that takes more than `most` words, besides those of parts of complex numbers. Views
    of views have twice as many each time: the gradient of cumprod of 100,000 complex128 had
    280,000 words made and none used, for 3.9 s.
    """
    return _sunk(k, x, [most])


def _sunk(k: Any, x: Value, left: list[int]) -> Value | None:
    node = x.node
    if not node.args or not is_light(node) or node.word in _STAYS:
        return x
    if x.strides is None:
        return _sunk_under(k, x, left)
    key = "sunk", x.key()
    place, made, _ = k.around.get(key, (None, None, None))
    if place is not None and k._stands(place):
        found: Value = made
        return found
    part = _part(node, x)
    if part is None or part.shape != x.shape:
        return x
    left[0] -= node.word not in WORDS
    if left[0] < 0:
        return None
    args = []
    for a in part.args:
        arg = _sunk(k, a, left)
        if arg is None:
            return None
        args.append(arg)
    part.args = tuple(args)
    k.order.append(part)
    out = Value(part, x.shape, x.logical)
    k.around[key] = k._place(), out, x  # keys hold for as long as their node does
    return out


def _sunk_under(k: Any, x: Value, left: list[int]) -> Value:
    """Light words that are no view, of sunk ones if that suits."""
    node = x.node
    if not x.is_node or left[0] <= 0:
        return x
    left[0] -= node.word not in WORDS
    args = [_sunk(k, a, left) or a for a in node.args]
    if all(a is b for a, b in zip(args, node.args, strict=True)):
        return x
    out: Value = k.element(node.word, args, x.logical, node.attr)
    return out


def viewed(x: Value) -> Value | None:
    """What a view of a word of one operand reads of that; None where it is no view of it."""
    part = _part(x.node, x)
    return part.args[0] if part is not None and part.shape == x.shape else None


def _split(flat: int, sides: Strides) -> list[int]:
    """So many elements on, as steps along each dimension."""
    sign, flat = (-1, -flat) if flat < 0 else (1, flat)
    steps = []
    for side in sides:
        steps.append(sign * (flat // side))
        flat %= side
    return steps


def _dot(x: Sequence[int], y: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(x, y, strict=True))
