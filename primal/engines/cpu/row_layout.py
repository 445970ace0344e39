"""From a group to a kernel: of one pass, or of several over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu import layout
from primal.engines.cpu.code import LINE
from primal.engines.cpu.flat_layout import flattened, in_chunks
from primal.engines.cpu.graph import NAMES, Node, Value, row_major, size_of
from primal.engines.cpu.kernels import HEADER
from primal.engines.cpu.layout import Address, Array, Instance, merged_loops, step_of
from primal.engines.cpu.point_layout import over_points
from primal.engines.cpu.rows import RowSpec
from primal.engines.cpu.rowwise import is_packed, kept_shape, row_strides
from primal.engines.cpu.schedule import Group, is_held

BLOCK, MOST = 1024, 16
"""Elements of a unit of work, about, and most rows."""


def instance(group: Group, stored: Sequence[Node]) -> Instance:
    """The kernel of a group that stores these nodes and reductions."""
    if group.first is not None:
        return layout.second_run(group, group.first.kernel)
    if group.passes or is_packed(group, [*group.nodes, *group.reductions]):
        return row_instance(group, stored)
    made = layout.instance(group, [n for n in stored if n.word != "reduce"])
    group.kernel = flattened(made) or over_points(made) or made
    return group.kernel


@structure
class RowInstance(Instance):
    """`arrays` hold operands, buffers, stores, results; buffers are of kind 'r'."""

    stack: int = 0

    def record(self, code: int, address: Address) -> list[int]:
        words = [code, 0, self.units, self.cost, self.chunk, self.chunks, *self.sizes, self.stack]
        assert len(words) == HEADER + len(self.sizes) + 1
        for a, strides in zip(self.arrays, self.strides, strict=True):
            size = int(a.dtype[1:])
            if a.kind == "l":
                words.append(int.from_bytes(a.node.attr, "little"))
            elif a.kind == "i":
                words += [a.offset, *strides]
            elif a.kind == "r":
                words += [a.offset, *[s * (LINE if self.spec.column else size) for s in strides]]
            else:
                slot, base = address(a.node)
                words += [slot, base + a.offset * size, *[s * size for s in strides]]
        words[1] = len(words)
        return words


def row_instance(group: Group, stored: Sequence[Node]) -> RowInstance:
    """The kernel of a group of several passes that stores these nodes and reductions."""
    arrays: list[Array] = []
    numbers: dict[Any, int] = {}

    def operand(x: Value, alone: bool) -> int:
        node = x.node
        kind = {"literal": "l", "iota": "i"}.get(node.word, "m")
        strides = () if kind == "l" else row_strides(x, group, alone)
        assert strides is not None
        key = (id(node), strides, x.offset)
        if key not in numbers:
            numbers[key] = len(arrays)
            arrays.append(Array(kind, node, NAMES[node.dtype], strides, x.offset))
        return numbers[key]

    every = [(node, node in group.alone) for node in group.nodes]
    every += [(node, False) for node in group.reductions]
    for node, alone in every:
        for x in node.args:
            if not is_held(x, group):
                operand(x, alone)
    count = len(arrays)
    made = {node: count + i for i, node in enumerate(group.nodes)}
    made.update({node: count + len(made) + i for i, node in enumerate(group.reductions)})

    def ref(x: Value, alone: bool) -> int:
        return made[x.node] if is_held(x, group) else operand(x, alone)

    items = tuple(
        [
            (
                n.word,
                tuple([NAMES[x.node.dtype] for x in n.args]),
                NAMES[n.dtype],
                tuple([ref(x, n in group.alone) for x in n.args]),
                group.level[n],
                n in group.alone,
            )
            for n in group.nodes
        ]
    )
    reductions = tuple(
        [(n.attr[0], ref(n.args[0], False), group.level[n]) for n in group.reductions]
    )
    shape, axes = group.shape, group.axes or ()
    inner = [d for d in range(len(shape)) if d in axes and shape[d] != 1]
    outer = [d for d in range(len(shape)) if d not in axes and shape[d] != 1]
    wide = [n for n in stored if n.word != "reduce" and n not in group.alone]
    single = [n for n in stored if n.word == "reduce" or n in group.alone]
    turned = is_packed(group, [*group.nodes, *group.reductions])
    column = turned or outer[-1:] > inner[-1:]
    along = iter(row_major([n for d, n in enumerate(shape) if d in axes]))
    buffer_strides = tuple([next(along) if d in axes else 0 for d in range(len(shape))])
    across = iter(row_major(kept_shape(group)))
    result_strides = tuple([0 if d in axes else next(across) for d in range(len(shape))])
    length = size_of([shape[d] for d in inner])
    latest: dict[Node, int] = {}
    for n, _ in every:
        for x in n.args:
            latest[x.node] = max(latest.get(x.node, 0), group.level[n])
    buffers, stack = [], 0
    for node in group.nodes:
        if node in group.alone or node in wide:
            continue
        if latest.get(node, 0) > group.level[node]:
            dtype = NAMES[node.dtype]
            buffers.append(made[node])
            arrays.append(Array("r", node, dtype, buffer_strides, stack))
            stack += length * LINE if column else (-(-length * int(dtype[1:]) // LINE) + 1) * LINE
    for node in wide:
        arrays.append(Array("m", node, NAMES[node.dtype], row_major(shape), 0))
    for node in single:
        arrays.append(Array("m", node, NAMES[node.dtype], result_strides, 0))
    kept, reduced = merged_loops(shape, outer, arrays), merged_loops(shape, inner, arrays)
    if not kept:
        kept = [(1, [])]
    sizes = [n for n, _ in (*kept, *reduced)]
    loops = [dims for _, dims in (*kept, *reduced)]
    strides = [
        [a.strides[dims[-1]] if dims else 0 for dims in loops] if a.kind != "l" else []
        for a in arrays
    ]
    for k in range(len(single)):
        strides[len(strides) - 1 - k] = strides[len(strides) - 1 - k][: len(kept)]
    along_at = len(kept) - 1 if column else -1
    steps = [
        step_of(a, s[along_at] if s else 0) for a, s in zip(arrays[:count], strides, strict=False)
    ]
    if turned:
        plain = row_major(sizes[len(kept) - 1 :])
        for k, a in enumerate(arrays[:count]):
            if a.kind == "m" and tuple(strides[k][len(kept) - 1 :]) == plain and a.dtype != "b1":
                steps[k] = "t"
    spec = RowSpec(
        len(kept),
        len(reduced),
        tuple([(a.kind, a.dtype, step) for a, step in zip(arrays, steps, strict=False)]),
        items,
        reductions,
        tuple(buffers),
        tuple([made[n] for n in wide]),
        tuple([made[n] for n in single]),
        column,
        LINE if turned else min(1 << (sizes[len(kept) - 1] - 1).bit_length(), LINE) * column,
        turned,
    )
    outside, rows = size_of([n for n, _ in kept[:-1]]), kept[-1][0]
    chunk = 1 if column else min(max(BLOCK // length, 1), MOST, rows)
    chunks = 1 if column else -(-rows // chunk)
    if turned:
        chunk, chunks = in_chunks(rows, length)
    return RowInstance(
        spec, sizes, arrays, strides, outside * chunks, chunk, chunks, stack=stack
    )
