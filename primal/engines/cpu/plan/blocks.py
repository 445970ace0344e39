"""The steps of a block: only what is needed, and pieces of arrays where they belong.

What the only reader of puts into an array that it is concatenated of, its kernel writes there at
once: no copy is left of `stack([f(x), g(y)])`, and in a loop no step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from primal.engines.cpu.code import LINE
from primal.engines.cpu.graph import Node, Value, reshaped, row_major, size_of
from primal.engines.cpu.kernels.takes import INNER
from primal.engines.cpu.layout.squares import stores_squares
from primal.engines.cpu.plan.partial import in_part
from primal.engines.cpu.plan.schedule import Group, Remaking, Schedule, Step, nodes_read
from primal.engines.cpu.routines.pieces import HEAVY_RUN, Rows, close_of, splice
from primal.engines.cpu.steps import Block, Branch, Library, Loop, Move, Routine

FEW = 64
"""Elements of a piece up to which it does not matter how far they lie apart."""
MANY = 1024
"""Complex numbers from which what is reduced is put together as it is written."""
RUN = 16
"""Elements of a row that lie side by side, for bodies without mathematical functions."""


def arranged(order: Sequence[Any], outs: Sequence[Node], given: Iterable[Node] = ()) -> Block:
    """The block that makes `outs` of nodes and steps in program order; what nobody needs is left.

    `given` are nodes that belong to the block but that no step makes, as the carries of a loop.
    """
    block = Block(outs)
    needed = set(outs)
    kept = []
    for item in reversed(order):
        if type(item) is Node:
            if item not in needed:
                continue
            needed.update([x.node for x in item.args])
        else:
            if needed.isdisjoint(item.outs) and not has_effects(item):
                continue
            if type(item) is Loop:
                item.body = arranged(item.body, item.wanted(), (*item.params, *item.slices))
            elif type(item) is Branch:
                item.blocks = [
                    arranged(b, r) for b, r in zip(item.blocks, item.results, strict=True)
                ]
            needed.update(nodes_read(item))
        kept.append(item)
    items = numbers_first(in_part(kept, outs)[::-1])
    schedule = Schedule(items)
    for item in items:
        if type(item) is Node:
            schedule.add(item)
        else:
            schedule.append(item)
    Remaking(schedule, outs)
    schedule.split()
    # What moved into a later group left an empty one behind.
    steps = [s for s in schedule.steps if type(s) is not Group or s.nodes or s.reductions]
    block.steps = placed(steps, outs)
    for step in block.steps:
        block.last.update([(node, step) for node in nodes_read(step)])
    own = set(given)
    for node in (*block.last, *outs):
        if node.block is not schedule and node not in own:
            block.reads[node] = None
    wanted = {*block.last, *outs}
    block.stored = {
        step.number: [n for n in (*step.nodes, *step.reductions) if n in wanted]
        for step in block.steps
        if type(step) is Group
    }
    return block


def numbers_first(items: Sequence[Any]) -> list[Any]:
    """The items of a block, those first that compute single numbers of what is there before it.

    What reads them can join a group that is older than they are: the density of a distribution
    whose parameters are numbers was two passes over memory where it had to do with these first.
    """
    made = {n for item in items for n in ((item,) if type(item) is Node else item.outs)}
    first, rest = [], []
    for item in items:
        if type(item) is not Node or item.word == "reduce" or size_of(item.shape) > 1:
            rest.append(item)
        elif any(x.node in made for x in item.args):
            rest.append(item)
        else:
            first.append(item)
            made.discard(item)
    return first + rest


def placed(steps: Sequence[Step], outs: Sequence[Node]) -> list[Step]:
    """The steps, less those that only put together what groups may write where it belongs."""
    if not any(
        step.parts or step.into if type(step) is Routine
        else type(step) is Group and any(n.word in ("complex", "copy") for n in step.nodes)
        for step in steps
    ):  # fmt: skip
        return list(steps)
    readers = Counter(outs)
    makers: dict[Node, Group] = {}
    for step in steps:
        readers.update(set(nodes_read(step)))
        if type(step) is Group and not step.passes:
            makers.update(dict.fromkeys([*step.nodes, *step.reductions], step))
    steps = _spliced(_joined(_updated(steps, readers, makers), readers, makers), readers)
    # What arrays are made of that groups put together.
    whole: dict[Node, list[tuple[Group, Node]]] = {}
    for step in steps:
        if type(step) is Group and not (step.reductions or step.passes or step.inner):
            _copied(step, whole, readers, makers)
        if type(step) is not Routine or not step.parts:
            continue
        if len(step.args) == 1 and step.args[0].strides is not None:
            if _turned(step.args[0], step.parts[0], whole, readers, makers):
                step.keep(())
            continue
        pieces = []
        twice = Counter([x.node for x in step.args])
        columns = all(len(_loops(part)) < 2 for part in step.parts)
        left = []
        for i, (x, part) in enumerate(zip(step.args, step.parts, strict=True)):
            node, group = x.node, makers.get(x.node)
            if group and x.strides is None and readers[node] == twice[node] == 1:
                place = reshaped(part, node.shape)
                if place is not None and _suits(place, node, group, columns):
                    group.pieces[node] = place
                    pieces.append((group, node))
                    continue
            left.append(i)
        step.keep(left)
        if not left:
            whole[step.outs[0]] = pieces
    return [
        s for s in steps
        if (s.args if type(s) is Routine else type(s) is not Group or s.nodes or s.reductions)
    ]  # fmt: skip


def _copied(
    step: Group, whole: dict[Node, list[tuple[Group, Node]]], readers: Counter[Node],
    makers: dict[Node, Group],
) -> None:
    """Leave out copies of what groups may store as these lie."""
    for node in [n for n in step.nodes if n.word == "copy" and n not in step.pieces]:
        (x,) = node.args
        read = [v.node for n in step.nodes for v in n.args]
        if x.strides is None or x.shape != node.shape or node in read or read.count(x.node) > 1:
            continue
        if _turned(x, Value(node, node.shape, x.logical), whole, readers, makers):
            step.nodes.remove(node)
            del makers[node]


def _turned(
    x: Value, place: Value, whole: dict[Node, list[tuple[Group, Node]]], readers: Counter[Node],
    makers: dict[Node, Group],
) -> bool:
    """Whether groups store at a place what a view reads, if nobody else does; they do so then."""
    there = _lying(x, place)
    if there is None or readers[x.node] != 1:
        return False
    group = makers.get(x.node)
    if group is not None and x.node not in group.pieces:
        pieces, places = [(group, x.node)], [there]
    elif x.node in whole:
        pieces = whole[x.node]
        found = [_within(g.pieces[n], there) for g, n in pieces]
        places = [p for p in found if p is not None]
        if len(places) < len(pieces):
            return False
    else:
        return False
    others = [p.node for g, _ in pieces for n, p in g.pieces.items() if (g, n) not in pieces]
    if any(node is not place.node for node in others):
        return False
    large = [stores_squares(g, p) for (g, _), p in zip(pieces, places, strict=True)]
    # A single row has no squares: it comes beside others element by element.
    if not any(large) or any(
        not suits and len(_loops(p)) > 1 for suits, p in zip(large, places, strict=True)
    ):
        return False
    for (g, n), p in zip(pieces, places, strict=True):
        g.pieces[n] = p
        g.squares = True
    return True


def _lying(x: Value, place: Value) -> Value | None:
    """Where the elements of a whole node go, in its shape, if a view of it goes to a place."""
    if x.offset or x.size != size_of(x.node.shape):
        return None
    order = sorted(range(x.ndim), key=lambda d: (-x.steps()[d], d))
    shape = tuple([x.shape[d] for d in order])
    found = x.view(shape, tuple([x.steps()[d] for d in order]), 0)
    if found.strides is not None:
        return None
    steps = tuple([place.steps()[d] for d in order])
    return reshaped(place.view(shape, steps, place.offset), x.node.shape)


def _within(piece: Value, whole: Value) -> Value | None:
    """Where a part of an array goes that itself goes to a place."""
    at, left, steps = whole.offset, piece.offset, []
    for side, step in zip(row_major(whole.shape), whole.steps(), strict=True):
        index, left = divmod(left, side)
        at += index * step
    for n, pace in zip(piece.shape, piece.steps(), strict=True):
        by = [
            step * (pace // side)
            for m, side, step in zip(
                whole.shape, row_major(whole.shape), whole.steps(), strict=True
            )
            if m > 1 and side <= pace and not pace % side and (n - 1) * (pace // side) < m
        ]  # fmt: skip
        if n > 1 and not by:
            return None
        steps.append(by[0] if n > 1 else 0)
    return whole.view(piece.shape, tuple(steps), at)


def _updated(
    steps: Sequence[Step], readers: Counter[Node], makers: dict[Node, Group]
) -> list[Step]:
    """The steps, less those that put into an array what a group may write there.

    The array is there before the group then, which reads of the new one what it writes there: so
    nothing is copied where nobody else needs the old one.
    """
    at: dict[Node, int] = {}
    place_of: dict[Group, int] = {}
    for i, step in enumerate(steps):
        nodes = (*step.nodes, *step.reductions) if type(step) is Group else step.outs
        at.update(dict.fromkeys(nodes, i))
        if type(step) is Group:
            place_of[step] = i
    gone: set[Step] = set()
    before: dict[int, list[Step]] = {}
    for step in steps:
        if type(step) is not Routine or step.into is None:
            continue
        old, x = step.args
        group, (out,) = makers.get(x.node), step.outs
        if group is None or group.reductions or x.strides is not None or readers[x.node] != 1:
            continue
        place = reshaped(step.into, x.node.shape)
        if place is None or not _suits(place, x.node, group, False):
            continue
        if at.get(old.node, -1) >= place_of[group]:
            continue
        for node in group.nodes:
            if node.word not in INNER and node.shape == place.shape:
                node.args = tuple([_read_there(v, old.node, place) for v in node.args])
        group.pieces[x.node] = place
        before.setdefault(place_of[group], []).append(Move(old, out))
        gone.add(step)
    return [
        s for i, step in enumerate(steps) if step not in gone for s in (*before.get(i, ()), step)
    ]


def _joined(
    steps: Sequence[Step], readers: Counter[Node], makers: dict[Node, Group]
) -> list[Step]:
    """The steps, less those that only put parts of complex numbers together that a group reduces.

    That writes them as numbers: sums over rows of 10 of 100,000 x 10 complex128 took 840 µs with a
    pass of their own to do so. `Group.pieces` counts their places in parts.
    """
    for step in steps:
        if type(step) is not Group or step.reductions or step.passes:
            continue
        for node in [n for n in step.nodes if n.word == "complex" and n not in step.pieces]:
            groups = {makers.get(x.node) for x in node.args}
            if len(groups) != 1 or size_of(node.shape) < MANY:
                continue
            group = groups.pop()
            if group is None or set(group.reductions) != {x.node for x in node.args}:
                continue
            re, im = group.reductions
            read = [x.node for n in step.nodes for x in n.args]
            alone = all(readers[part] == read.count(part) == 1 for part in (re, im))
            alike = all(
                x.size == size_of(node.shape) == size_of(x.node.shape)
                and x.steps() == row_major(x.shape) for x in node.args
            )  # fmt: skip
            if re is not node.args[0].node or not (alone and alike) or group.parts > 1:
                continue
            steps_of = tuple([2 * s for s in row_major(re.shape)])
            for k, part in enumerate((re, im)):
                group.pieces[part] = Value(node, part.shape, part.dtype, steps_of, k)
            step.nodes.remove(node)
            del makers[node]
    return [s for s in steps if type(s) is not Group or s.nodes or s.reductions]


def _spliced(steps: Sequence[Step], readers: Counter[Node]) -> list[Step]:
    """The steps, less those that join what is only joined again, in one piece.

    A matrix stacked of rows that are stacked of numbers is one step, not one more for each row: 35
    of 4 x 4, multiplied with each other, 6.1 to 5.0 µs (JAX 33). What is read a part of would
    be kept until then.
    """
    joints = {s.outs[0]: s for s in steps if type(s) is Routine and type(s.spec) is Rows}
    uses = Counter([x.node for s in joints.values() for x in s.args])
    inner = {
        node: s for node, s in joints.items()
        if readers[node] == uses[node] == 1
        and all(size_of(x.node.shape) <= max(x.size, FEW) for x in s.args)
    }  # fmt: skip
    gone: set[Step] = set()
    for step in reversed(joints.values()):
        if step not in gone:
            gone.update(splice(step, inner))
    return [s for s in steps if s not in gone]


def _read_there(x: Value, old: Node, place: Value) -> Value:
    """What is read of an array at a place, read there of the new one."""
    same = x.node is old and (x.shape, x.steps(), x.offset) == (
        place.shape, place.steps(), place.offset,
    )  # fmt: skip
    return Value(place.node, x.shape, x.logical, x.strides, x.offset) if same else x


def _loops(place: Value) -> list[tuple[int, int]]:
    """The sizes and steps of the loops over a part of an array."""
    loops: list[tuple[int, int]] = []
    for n, step in zip(place.shape, place.steps(), strict=True):
        if n == 1:
            continue
        if loops and loops[-1][1] == n * step:
            n *= loops.pop()[0]
        loops.append((n, step))
    return loops


def _suits(place: Value, node: Node, group: Group, columns: bool) -> bool:
    """Whether a group stores a node at such distances as fast as side by side.

    `columns`: all that the array is made of are columns.
    """
    if place.size <= FEW and node.word != "reduce":
        return True
    loops = _loops(place)
    if not loops:
        return True
    run, step = loops[-1]
    # Each number of a column has a line of the cache to itself, however it comes there. Columns
    # closer than that cost a second pass over the lines if what lies between is copied.
    if len(loops) == 1 and node.word != "reduce":
        if columns or step * node.dtype.itemsize >= LINE:
            return True
    if node.word == "reduce":  # vectors of results are not taken apart
        return len(loops) == step == 1
    if step == 1 and (len(loops) == 1 or run >= (HEAVY_RUN if group.heavy else RUN)):
        return True
    rows, apart = loops[-1 - (step == 1)]
    return 1 < apart <= close_of(rows)


def has_effects(item: Any) -> bool:
    """Whether an item of a program must run though nobody reads what it makes."""
    if type(item) is Library:
        return item.effects
    if type(item) is Loop:
        return any(has_effects(i) for i in _items(item.body))
    if type(item) is Branch:
        return any(has_effects(i) for block in item.blocks for i in _items(block))
    return False


def _items(block: Any) -> Sequence[Any]:
    """What a block is made of, arranged or not."""
    return block.steps if type(block) is Block else block
