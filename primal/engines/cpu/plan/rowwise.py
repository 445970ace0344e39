"""Groups whose reductions are read again over the same rows: when that is one kernel.

A group may go on after a reduction: what is computed of results of rows, once per row (`alone`),
and what reads those, over the row again, one pass later. `level` says the pass of every node.
Columns are such rows too, one in each lane. So are rows shorter than a vector.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from primal.engines.cpu import _llvm
from primal.engines.cpu.code import LINE
from primal.engines.cpu.graph import NAMES, NATIVE, NOWHERE, Node, Value, row_major, size_of
from primal.engines.cpu.kernels import turned_rows
from primal.engines.cpu.kernels.takes import INNER

SHORTEST, LONGEST = 17, 32768
"""Elements of a row below which a row per lane, step by step, takes half the time; bytes above
which it is no longer in the first-level cache when the next pass comes, so passes are apart."""
TALLEST, WIDEST = 512, 1 << 15
"""Rows of columns that are passed over several times, and elements: what stays in the cache."""
NARROW_ROW = 32
"""Columns from which rows that leave the cache between passes are worth a vector each."""
THINNEST, FEWEST = 5, 9
"""Columns for whose sake a vector is taken, and elements of few rows or of many columns."""
NARROW, FEW = 4, 16
"""Bytes of the narrowest numbers in a vector that holds several rows; elements of arrays that loops
hold in registers, by groups of one pass."""
MOST = 6
"""Passes of a kernel. Layers without products between them would all be one, each depth another."""


def plain_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without dimensions of size 1."""
    return tuple([n for n in shape if n != 1])


def kept_shape(group: Any) -> tuple[int, ...]:
    """The sizes of the dimensions that a group's reductions keep."""
    return tuple([n for d, n in enumerate(group.shape) if d not in group.axes])


def is_packed(group: Any, nodes: Iterable[Node]) -> bool:
    """Whether vectors hold several rows of a group that has these nodes, whatever these read."""
    if group.axes is None or group.pieces or group.parts > 1 or size_of(group.shape) <= FEW:
        return False
    wide = [d for d in range(len(group.shape)) if group.shape[d] != 1]
    rows = [d for d in wide if d not in group.axes]
    length = size_of([group.shape[d] for d in group.axes])
    many = size_of([group.shape[d] for d in rows]) >= turned_rows.MANY
    longest = turned_rows.LONGER if many else turned_rows.LONGEST
    if not 2 <= length <= longest or not rows or rows != wide[: len(rows)]:
        return False
    if _llvm.compiler().width < LINE:  # points take less there
        return False
    if any(n.word in INNER for n in nodes):
        return False
    if group.shape[rows[-1]] < LINE // NARROW and not _is_one_run(group, rows, nodes):
        return False
    # Complex numbers lie in two columns, whose parts are at hand where they are made.
    made = [n for n in nodes if n.dtype not in NATIVE]
    if any(x.node in made for n in nodes for x in n.args):
        return False
    dtypes = {n.dtype for n in nodes}
    dtypes.update([x.node.dtype for n in nodes for x in n.args if x.node.word != "literal"])
    # Narrow numbers are more to a vector than instructions take by number; truth is a mask.
    if any(d not in NAMES or (d.itemsize < NARROW and d.kind != "b") for d in dtypes):
        return False
    if length > turned_rows.LONGEST and not dtypes.issubset(NATIVE):
        return False  # of complex numbers there would be too many columns
    return max([d.itemsize for d in dtypes]) >= NARROW


def _is_one_run(group: Any, rows: list[int], nodes: Iterable[Node]) -> bool:
    """Whether all that nodes read goes from row to row in one stride, however many loops."""
    every = [x.steps() for n in nodes for x in n.args if x.shape == group.shape]
    pairs = list(itertools.pairwise(rows))
    return all(s[d] == s[e] * group.shape[e] for s in every for d, e in pairs)


def has_rows(group: Any, node: Node) -> bool:
    """Whether a group reduces rows, or columns, over which one kernel passes several times.

    `node`: what may join it.
    """
    if group.axes is None:
        return False
    if is_packed(group, [*group.nodes, *group.reductions, node]):
        return True
    wide = [d for d in range(len(group.shape)) if group.shape[d] != 1]
    length = size_of([group.shape[d] for d in group.axes])
    if not wide:
        return False
    columns = group.shape[wide[-1]]
    along = wide[-1] in group.axes
    near = length <= LONGEST // 8 if along else length <= TALLEST and length * columns <= WIDEST
    if not near and not _lies_along(group, node, wide[-1]):
        return False
    if along:
        rows = size_of(group.shape) // length
        return length >= (SHORTEST if rows > FEWEST else FEWEST)
    # Points of few coordinates are many to a vector.
    alone = length * columns == size_of(group.shape)
    least = THINNEST if alone else FEWEST
    # Few columns of many rows: elementwise steps have several rows to a vector.
    most = TALLEST if columns < NARROW_ROW else length
    return columns >= least and 1 < length <= most


def _lies_along(group: Any, node: Node, d: int) -> bool:
    """Whether what is read over all of a group lies side by side along a dimension.

    Vectors of what is transposed are along another one, where they are only reduced.
    """
    return all(
        x.shape != group.shape or x.node.word in NOWHERE or abs(x.steps()[d]) <= 1
        for n in (*group.nodes, *group.reductions, node)
        for x in n.args
    )


def row_strides(x: Value, group: Any, alone: bool) -> tuple[int, ...] | None:
    """The strides of an operand over the group's dimensions; None if a row is no unit of it.

    `alone`: read once per row, in a shape of its own.
    """
    if not alone:
        return x.steps() if x.shape == group.shape else None
    if plain_shape(x.shape) != plain_shape(kept_shape(group)):
        return None
    own = iter([s for n, s in zip(x.shape, x.steps(), strict=True) if n != 1])
    return tuple(
        [
            0 if d in group.axes or n == 1 else next(own)
            for d, n in enumerate(group.shape)
        ]
    )


def reads_row(x: Value, group: Any, alone: bool) -> bool:
    """Whether the value is a result of the very row at which the group stands."""
    if x.offset:
        return False
    strides = row_strides(x, group, alone)
    if strides is None:
        return False
    want = iter(row_major(kept_shape(group)))
    for d, (n, s) in enumerate(zip(group.shape, strides, strict=True)):
        if d in group.axes:
            if s and n != 1:
                return False
        elif next(want) != s and n != 1:
            return False
    return True


def row_role(node: Node, group: Any, is_inside: Any) -> tuple[bool, int] | None:
    """(whether once per row, pass) of a node that may join a group of rows; None if it may not.

    It must read results of the rows, and else only what the group has at hand or stood before.
    """
    if not has_rows(group, node):
        return None
    if node.shape == group.shape:
        alone = False
    elif plain_shape(node.shape) == plain_shape(kept_shape(group)):
        alone = True
    else:
        return None
    level, of_rows = 0, False
    for x in node.args:
        base = x.node
        if base.block is not node.block or base.step < group.number:
            if base.word != "literal" and row_strides(x, group, alone) is None:
                return None
            continue
        if base.step > group.number:
            return None
        if base in group.alone or base.word == "reduce":
            if base not in group.level or not reads_row(x, group, alone):
                return None
            level = max(level, group.level[base] + (base.word == "reduce"))
            of_rows = True
        elif not alone and is_inside(x, group):
            level = max(level, group.level[base])
        else:
            return None
    return (alone, level) if of_rows and level <= MOST else None
