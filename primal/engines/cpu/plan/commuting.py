"""What only a slice or another gather reads of a gather is not gathered: x[i][:, j] is x[:, j][i].

`Words.gathered` remembers what gathers were made of, `Words.once` is the operand that nobody but
the present equation reads. What is light to compute is reversed where its operands are read, and
what `Words.spread` says was padded is read where it came from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from primal.engines.cpu.graph import (
    APART,
    NOWHERE,
    Node,
    Value,
    broadcast,
    reversed_along,
    row_major,
    size_of,
    sliced,
)
from primal.engines.cpu.plan.schedule import is_light_word

MOST_BETWEEN = 4
"""Elements apart up to which a column is reduced with those between it and the next one."""
AGAIN = 4
"""Words that are computed twice rather than kept."""


def _made_of(k: Any, x: Value) -> tuple[Value, Value, dict[str, Any]] | None:
    """Operand, indices and parameters of a gather of whole windows that is read once."""
    if not x.is_node or x.node is not k.once or x.node not in k.gathered:
        return None
    base, indices, params = k.gathered[x.node]
    _, gone, _, batching, _ = params["dimension_numbers"]
    sizes = params["slice_sizes"]
    kept = [d for d in range(base.ndim) if d not in gone]
    if batching or any(sizes[d] != base.shape[d] for d in kept):
        return None
    return base, indices, params


def slice_of_gather(k: Any, x: Value, start: Sequence[int], limit: Sequence[int]) -> Value | None:
    """gather(x, i)[start:limit] by a gather of slices, for steps of 1."""
    made = _made_of(k, x)
    if made is None:
        return None
    base, indices, params = made
    offset, gone = params["dimension_numbers"][:2]
    kept = [d for d in range(base.ndim) if d not in gone]
    first, last, sizes = [0] * base.ndim, list(base.shape), list(params["slice_sizes"])
    for o, d in zip(offset, kept, strict=True):
        first[d], last[d], sizes[d] = start[o], limit[o], limit[o] - start[o]
    rows = [d for d in range(x.ndim) if d not in offset]
    width = indices.shape[-1]
    indices = k.slice(
        indices, [*[start[d] for d in rows], 0], [*[limit[d] for d in rows], width],
        (1,) * indices.ndim,
    )  # fmt: skip
    base = k.slice(base, first, last, (1,) * base.ndim)
    shape = tuple([b - a for a, b in zip(start, limit, strict=True)])
    return k.gather(base, indices, **{**params, "slice_sizes": tuple(sizes), "shape": shape})


def gather_of_gather(
    k: Any,
    x: Value,
    indices: Value,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    fill: Any,
    shape: tuple[int, ...],
) -> Value | None:
    """The inner gather after the outer one, where that leaves at most half as much between them."""
    made = _made_of(k, x)
    if made is None:
        return None
    base, rows, params = made
    offset, gone, mapped, batching, _ = dimension_numbers
    inner, lost, starts = params["dimension_numbers"][:3]
    fills = {repr(f) for f in (fill, params["fill"]) if f is not None}
    whole = [n == m for n, m in zip(slice_sizes, x.shape, strict=True)]
    # The outer one moves along windows alone, and no two fills may meet.
    if batching or len(fills) > 1 or not all(w for d, w in enumerate(whole) if d not in inner):
        return None
    in_base = dict(zip(inner, [d for d in range(base.ndim) if d not in lost], strict=True))
    # Dimensions by name: ("row", d) and ("base", d) of x, ("new", j) of the outer indices.
    rows_of = [d for d in range(x.ndim) if d not in inner]
    names = [("base", in_base[d]) if d in in_base else ("row", rows_of.index(d))
             for d in range(x.ndim)]  # fmt: skip
    left = [names[d] for d in range(x.ndim) if d not in gone]
    final: list[Any] = [None] * len(shape)
    for at, name in zip(offset, left, strict=True):
        final[at] = name
    new = iter(range(len(shape)))
    final = [("new", next(new)) if name is None else name for name in final]
    # Between the two: the final order, where dimensions that the inner one takes single ones of
    # stand for the rows; those of the operand stay in their order.
    between: list[Any] = []
    waiting = sorted(lost)
    for i, name in enumerate(final):
        if name[0] != "new":
            following = min([d for kind, d in final[i:] if kind == "base"], default=base.ndim)
            between += [("base", d) for d in waiting if d < following]
            waiting = [d for d in waiting if d > following]
        if name[0] != "row":
            between.append(name)
    sizes = list(base.shape)
    for d, name in enumerate(names):
        if name[0] == "base":
            sizes[name[1]] = slice_sizes[d]
    new_sizes = iter(indices.shape[:-1])
    middle = tuple([next(new_sizes) if n == "new" else sizes[d] for n, d in between])
    if 2 * size_of(middle) > x.size:
        return None
    moved = k.gather(
        base, indices, slice_sizes=tuple(sizes), fill=fill, shape=middle,
        dimension_numbers=(
            tuple([i for i, name in enumerate(between) if name[0] == "base"]),
            tuple([in_base[d] for d in gone]), tuple([in_base[d] for d in mapped]), (), (),
        ),
    )  # fmt: skip
    at = {d: i for i, (name, d) in enumerate(between) if name == "base"}
    taken = tuple([at[d] for d in lost])
    return k.gather(
        moved, rows, fill=params["fill"], shape=shape,
        slice_sizes=tuple([1 if i in taken else n for i, n in enumerate(middle)]),
        dimension_numbers=(
            tuple([i for i, name in enumerate(final) if name[0] != "row"]),
            taken, tuple([at[d] for d in starts]), (), (),
        ),
    )  # fmt: skip


def slice_of_copy(k: Any, x: Value) -> Value:
    """A view x of an array that was put in order for a reshape, of what lies around it alone.

    One element of `x.T.ravel()` is one of x, and its diagonal is the one of x.
    """
    base = k.laid[x.node]
    found = _steady(base, x)
    if found is not None:
        return found
    ends = [(n - 1) * s for n, s in zip(x.shape, x.steps(), strict=True)]
    first = x.offset + sum([min(e, 0) for e in ends])
    last = x.offset + sum([max(e, 0) for e in ends])
    start, limit, begin, shared = [], [], 0, True
    for n, side in zip(base.shape, row_major(base.shape), strict=True):
        a, b = (first // side % n, last // side % n) if shared else (0, n - 1)
        shared = a == b and shared
        start.append(a)
        limit.append(b + 1)
        begin += a * side
    box = sliced(base, start, limit, (1,) * base.ndim)
    if 2 * box.size > base.size:
        return x
    line = k.reshape(box, (box.size,))
    (by,) = line.steps()
    steps = tuple([s * by for s in x.steps()])
    view: Value = line.view(x.shape, steps, line.offset + (x.offset - begin) * by)
    return view


def _steady(base: Value, x: Value) -> Value | None:
    """A view x of a copy of `base` as one of `base`, where each of its steps is the same everywhere
    there: indices never carry over to the next dimension."""

    plain = row_major(base.shape)

    def indices(place: int) -> list[int]:
        return [place // side % n for n, side in zip(base.shape, plain, strict=True)]

    def moved(index: Sequence[int]) -> int:
        return sum([i * s for i, s in zip(index, base.steps(), strict=True)])

    last, steps = indices(x.offset), []
    for n, step in zip(x.shape, x.steps(), strict=True):
        by = indices(step if n > 1 else 0)
        if n > 1 and step < 0:
            return None
        last = [i + (n - 1) * b for i, b in zip(last, by, strict=True)]
        steps.append(moved(by))
    if any(i >= n for i, n in zip(last, base.shape, strict=True)):
        return None
    return base.view(x.shape, tuple(steps), base.offset + moved(indices(x.offset)))


def slice_of_padded(k: Any, x: Value) -> Value | None:
    """f(pad(y), z)[where y lies] = f(y, z[where y lies]) of few light words, for a view x.

    Derivatives of padding read so; what was padded need not be in memory then.
    """
    box = _box(x)
    if box is None:
        return None
    start, limit, strides = box
    again: list[Node] = []

    def part(v: Value) -> tuple[Value | None, bool]:
        """The elements, or None where they lie among the padding, and whether y is read."""
        if not v.ndim:
            return v, False
        made = made_by_pad(k, v)
        if made is not None:
            inner, _, config = made
            found = _within(inner, config, start, limit, strides)
            return found, found is not None
        if v.is_node and is_light_word(v.node.word) and len(again) < AGAIN:
            again.append(v.node)
            parts = [part(a) for a in v.node.args]
            if any(read for _, read in parts):
                if any(a is None for a, _ in parts):
                    return None, False
                args = [a for a, _ in parts if a is not None]
                return k.element(v.node.word, args, v.dtype, v.node.attr), True
        return sliced(v, start, limit, strides), False

    found, read = part(Value(x.node, x.node.shape, x.logical))
    return found if read else None


def slice_of_edges(k: Any, x: Value) -> Value | None:
    """A view x of what was padded, which nobody else reads, as padding of what is read of it.

    The derivative of padding with gaps that crops reads every second row of a padded array.
    """
    made = made_by_pad(k, Value(x.node, x.node.shape, x.logical)) if x.node is k.once else None
    box = _box(x)
    if made is None or box is None:
        return None
    inner, value, config = made
    boxes: list[list[int]] = [[], [], []]
    edges = []
    for n, m, (low, _, between), a, step in zip(
        inner.shape, x.shape, config, box[0], box[2], strict=True
    ):
        # Index i is element (a + i·step - low) / pace of the operand, if that is one.
        pace = between + 1
        if m == 1:
            step = pace
        common = math.gcd(step, pace)
        if common not in (step, pace):
            return None
        if (a - low) % common:
            return broadcast(value, x.shape, ())
        # Of the operand every `by`th is read, and between those are `gap - 1` others.
        by, gap = step // common, pace // common
        if gap == 1:
            start = (a - low) // pace
            first = max(0, -(start // by))
            begin = start + first * by
        else:
            first, begin = (low - a) // step, 0
            if first < 0:
                begin = -(first // gap)
                first += begin * gap
        count = min(-(-(n - begin) // by), -(-(m - first) // gap))
        if count < 1:
            return broadcast(value, x.shape, ())
        for found, number in zip(boxes, (begin, begin + (count - 1) * by + 1, by), strict=True):
            found.append(number)
        edges.append((first, m - first - (count - 1) * gap - 1, gap - 1))
    k.once = None
    read = k.slice(inner, *boxes)
    return k.pad(read, value, edges) if any(map(any, edges)) else read


def _box(x: Value) -> tuple[list[int], list[int], list[int]] | None:
    """Start, limit and strides of a view that is a slice of its node."""
    shape = x.node.shape
    if x.ndim != len(shape):
        return None
    start, limit, strides, left = [], [], [], x.offset
    for n, size, step, side in zip(x.shape, shape, x.steps(), row_major(shape), strict=True):
        first, left = divmod(left, side)
        pace, rest = divmod(step, side) if n > 1 else (1, 0)
        last = first + (n - 1) * pace
        if rest or pace < 1 or last >= size:
            return None
        start.append(first)
        limit.append(last + 1)
        strides.append(pace)
    return start, limit, strides


def reduced_between(k: Any, monoid: str, x: Value, axes: Sequence[int]) -> Value | None:
    """Columns a few apart of an array in memory, reduced with those between them, which lie in the
    same lines of the cache: no elements are gathered.

    Sums of the columns of x[:, ::2] of 1000 x 1000 float32 took 237 us so, and take 80 (JAX 120),
    of squares of these 518 and 101 (122).
    """
    if x.ndim - 1 in axes:
        return None
    whole, step = _with_those_between(k, x, {})
    if whole is None:
        return None
    out = k.reduce(monoid, whole, axes)
    steps = (*(1,) * (out.ndim - 1), step)
    found: Value = k.slice(out, (0,) * out.ndim, out.shape, steps)
    return found


def _with_those_between(k: Any, x: Value, made: dict[Node, Any]) -> tuple[Value | None, int]:
    """A view of rows, or a few light words of such, with the elements between its own; how far
    apart these lie."""
    node, steps, (*outer, n) = x.node, x.steps(), x.shape
    if x.is_node and (node.word == "convert" or is_light_word(node.word)):
        if node not in made and len(made) < AGAIN:
            made[node] = None, 0
            made[node] = _word_between(k, x, made)
        found: tuple[Value | None, int] = made.get(node, (None, 0))
        return found
    step = steps[-1]
    far = [abs(s) for m, s in zip(outer, steps, strict=False) if m > 1 and s]
    computed, row = node.args and node.word not in APART, (n - 1) * step + 1
    if node.word in NOWHERE or n == 1 or not 2 <= step <= MOST_BETWEEN:
        return None, step
    if far and (computed or min(far) < row):  # one row for all may be of any array
        return None, step
    return x.view((*outer, row), (*steps[:-1], 1), x.offset), step


def _word_between(k: Any, x: Value, made: dict[Node, Any]) -> tuple[Value | None, int]:
    """The same of a word: of its operands, but for numbers and what repeats along rows."""
    along = [a for a in x.node.args if a.steps()[-1]]
    found = {a.key(): _with_those_between(k, a, made) for a in along}
    wholes = [whole for whole, _ in found.values() if whole is not None]
    apart = {step for _, step in found.values()}
    if len(wholes) < len(found) or len(apart) != 1:
        return None, 0
    shape = wholes[0].shape
    args = [
        found[a.key()][0] if a.key() in found else a.view(shape, a.steps(), a.offset)
        for a in x.node.args
    ]
    return k.element(x.node.word, args, x.dtype, x.node.attr), apart.pop()


def made_by_pad(k: Any, x: Value) -> tuple[Value, Value, Any] | None:
    """Operand, value and configuration of the padding that made an array."""
    shape, *made = k.spread.get(x.node, (None,))
    return tuple(made) if x.strides is None and x.shape == shape else None


def _within(
    x: Value,
    config: Sequence[tuple[int, int, int]],
    start: Sequence[int],
    limit: Sequence[int],
    strides: Sequence[int],
) -> Value | None:
    """The slice of x padded as a slice of x, if it is one."""
    first, last, by = [], [], []
    for n, (low, _, between), a, b, step in zip(
        x.shape, config, start, limit, strides, strict=True
    ):
        count = -(-(b - a) // step)
        i, over = divmod(a - low, between + 1)
        pace, rest = divmod(step, between + 1) if count > 1 else (1, 0)
        if over or rest or i < 0 or i + (count - 1) * pace >= n:
            return None
        first.append(i)
        last.append(i + (count - 1) * pace + 1)
        by.append(pace)
    return sliced(x, first, last, by)


def rev_of_element(k: Any, x: Value, dims: Sequence[int]) -> Value | None:
    """f(y, z)[::-1] = f(y[::-1], z[::-1]) of few light words, which need no memory then."""
    again: list[Node] = []
    if not _is_of_light_words(x, again):
        return None

    def reversed_(x: Value) -> Value:
        if x.node.word == "literal":
            return x
        if x.node not in again:
            return reversed_along(x, dims)
        return k.element(x.node.word, [reversed_(v) for v in x.node.args], x.dtype, x.node.attr)

    return reversed_(x)


def _is_of_light_words(x: Value, found: list[Node]) -> bool:
    node = x.node
    if not is_light_word(node.word):
        return node.word == "literal" or x.ndim > 0
    if not x.is_node or x.shape != node.shape or len(found) == AGAIN:
        return False
    found.append(node)
    return all(_is_of_light_words(v, found) for v in node.args)
