"""Which nodes share memory, and where it lies.

A node lives from the step that makes it to the last one that reads it; in a loop body, what comes
from outside lives to the loop's end, and branches are lives that exclude each other. Nodes of one
size may have one buffer where their lives do not overlap; one may end in the very step in which the
other begins where that step allows it: an elementwise kernel that reads and writes at the same
index, a routine that says so. So the carry of a loop, updated in place, never moves.

A carry whose new value cannot be made over the old one has two buffers, whose addresses change
places after every run of the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from primal.engines.cpu.graph import Node, bytes_of, size_of
from primal.engines.cpu.plan.memory import plan
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.steps import Block, Branch, Library, Loop, Move, Routine
from primal.engines.cpu.translate import Translated

Life = list[tuple[int, int]]
"""Spans of steps, in order."""
FOREVER = 1 << 60


Tenant = tuple[Any, Life, Any]
"""A node, its life, the step that makes it."""


class Buffer:
    """Memory that nodes share, one at a time. `home`: (slot, offset), None for the arena.

    `open`: others may move in. `first` and `last` bound the lives; `latest` are those that end
    last, so that a chain of a thousand steps in place is no search among a thousand tenants.
    """

    __slots__ = ("size", "tenants", "home", "open", "first", "last", "latest")

    def __init__(self, size: int, home: tuple[int, int] | None = None, open: bool = True) -> None:
        self.size = size
        self.tenants: list[Tenant] = []
        self.home = home
        self.open = open
        self.first, self.last = FOREVER, -FOREVER
        self.latest: list[Tenant] = []

    def add(self, tenants: Iterable[Tenant]) -> None:
        """More nodes that live here."""
        for tenant in tenants:
            self.tenants.append(tenant)
            stop = tenant[1][-1][1]
            self.first = min(self.first, tenant[1][0][0])
            if stop > self.last:
                self.last, self.latest = stop, [tenant]
            elif stop == self.last:
                self.latest.append(tenant)

    def change(self, node: Node, begin: int | None = None, end: int | None = None) -> None:
        """A life that begins earlier, or lasts from its birth to `end` if that is later."""
        tenants, self.tenants = self.tenants, []
        self.first, self.last = FOREVER, -FOREVER
        for tenant, life, maker in tenants:
            if tenant is node:
                if begin is not None:
                    life = [(begin, life[0][1]), *life[1:]]
                if end is not None:
                    life = [(life[0][0], max(end, life[-1][1]))]
            self.add([(tenant, life, maker)])

    def meets(self, other: Buffer) -> bool:
        """Whether two lives overlap, but for steps that work in place."""
        if self.last < other.first or other.last < self.first:
            return False
        if self.last == other.first:
            return any(not _apart(a, b) for a in self.latest for b in other.tenants)
        return any(not _apart(a, b) for a in self.tenants for b in other.tenants)


class Places:
    """Buffers of a program. Slots 0 … are inputs, then new outputs, then the arena, then others.

    `fresh`: nodes whose array is made for each run, by slot. `held`: library results, which stay
    the arrays that the call gave. `constants`: slot -> array.
    """

    def __init__(self, program: Translated, donated: Sequence[bool] = ()) -> None:
        self.program = program
        self.buffers: list[Buffer] = []
        self.held: dict[Node, int] = {}
        self.constants: dict[int, Any] = {}
        self.carries: dict[Any, list[tuple[Node, int, int, Node] | None]] = {}
        """Per loop and carry: None, or (result, slot of the old value, of the new, spare node)."""
        self.moving: dict[Any, tuple[list[int], list[int]]] = {}
        """Per loop: slots of the slices, slots of the pieces."""
        self._time = 0
        self._wishes: list[tuple[Node, Node]] = []
        self._libraries: list[Node] = []
        self._scratch: list[tuple[Any, Buffer]] = []
        outer = program.block
        self._number(outer)
        for i, node in enumerate(program.inputs):
            open = bool(donated) and donated[i] and bytes_of(node) > 0
            self._new(node, self._life(node, outer, 0, outer.outs), None, (i, 0), open)
        self.slots = len(program.inputs)
        self.arena_slot = self._slot()
        self._visit(outer)
        for source, made in self._wishes:
            self.join(source, made)
        self._outputs(donated)
        self._reuse(outer)
        self._homes()

    # Time.

    def _number(self, block: Block) -> None:
        block.begin = self._tick()
        for step in block.steps:
            step.begin = self._tick()
            if isinstance(step, Loop | Branch):
                for inner in step.blocks:
                    self._number(inner)
                step.end = self._tick()
            else:
                step.end = step.begin
        block.end = self._tick()

    def _tick(self) -> int:
        self._time += 1
        return self._time

    def _life(self, node: Node, block: Block, born: int, outs: Iterable[Node] = ()) -> Life:
        """When a node that is there from `born` on, in this block, is needed."""
        if node in outs:
            return [(born, FOREVER)]
        step = block.last.get(node)
        if step is None:
            return [(born, born)]
        if type(step) is Branch:
            life = [(born, step.begin)]
            for inner in step.blocks:
                if node in inner.last:
                    life += self._life(node, inner, inner.begin)
            return life
        if type(step) is Loop and node not in step.body.reads:
            if all(x.node is not node for x in step.xs):
                return [(born, step.begin)]  # it only begins with the node
        return [(born, step.end)]

    # Buffers.

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _new(
        self, node: Node, life: Life, maker: Any, home: Any = None, open: bool = True
    ) -> None:
        buffer = node.home = Buffer(bytes_of(node), home, open)
        self.buffers.append(buffer)
        buffer.add([(node, life, maker)])

    def join(self, a: Node, b: Node) -> bool:
        """Give two nodes one buffer, if their lives and places allow it."""
        x, y = a.home, b.home
        if x is y:
            return x is not None
        if x is None or y is None or x.size != y.size or not (x.open and y.open):
            return False
        if (x.home and y.home) or x.meets(y):
            return False
        keep, gone = (x, y) if len(x.tenants) >= len(y.tenants) else (y, x)
        keep.home = x.home or y.home
        keep.add(gone.tenants)
        for node, _, _ in gone.tenants:
            node.home = keep
        gone.tenants = []
        return True

    # The program.

    def _visit(self, block: Block) -> None:
        """Buffers for what the steps of a block make."""
        outs = block.outs if block is self.program.block else ()
        ends = set(block.outs)
        for step in block.steps:
            kind = type(step)
            nodes = [n for n in made_by(step, block) if n.home is None]
            for node in nodes:
                life = self._life(node, block, step.end, outs)
                if node in ends:  # to the end of the body, or of the branch
                    life = [(step.end, max(block.end, life[-1][1]))]
                self._new(node, life, step, None, kind is not Library)
            scratch = step.scratch if kind is Routine else 0
            if kind is Group and step.kernel is not None:
                scratch = step.kernel.scratch
            if scratch:
                buffer = Buffer(scratch)
                buffer.add([(None, [(step.begin, step.end)], step)])
                self.buffers.append(buffer)
                self._scratch.append((step, buffer))
            if kind in (Routine, Move):
                self._wishes += [(step.args[a].node, step.outs[o]) for o, a in step.updates]
            elif kind is Library:
                self._libraries += nodes
            elif kind is Branch:
                self._branch(step)
            elif kind is Loop:
                self._loop(step)

    def _must_join(self, a: Node, b: Node) -> None:
        if not self.join(a, b):
            raise AssertionError(f"no place for {a.word} {a.shape} as {b.word}: a fault in places")

    def _branch(self, step: Branch) -> None:
        for inner in step.blocks:
            self._visit(inner)
        for results in step.results:
            for node, out in zip(results, step.outs, strict=True):
                node.home.open = True
                self._must_join(node, out)

    def _loop(self, step: Loop) -> None:
        body = step.body
        for node in (*step.params, *step.slices):
            self._new(node, self._life(node, body, step.begin), step)
        self._visit(body)
        moving = []
        for node in (*step.slices, *step.pieces):
            moving.append(self._slot())
            node.home.home = (moving[-1], 0)
            node.home.open = node in step.pieces
        count = len(step.slices)
        self.moving[step] = moving[:count], moving[count:]
        for node in step.outs[len(step.carried) :]:
            node.home.change(node, begin=step.begin)
        carries: list[tuple[Node, int, int, Node] | None] = []
        for x, param, carried, out in zip(
            step.inits, step.params, step.carried, step.outs, strict=False
        ):
            carried.home.open = True
            carried.home.change(carried, end=step.end)
            if self.join(param, carried):
                self._must_join(carried, out)
                carries.append(None)
                self._wishes.append((x.node, param))
                continue
            old, new = self._slot(), self._slot()
            param.home.home, param.home.open = (old, 0), False
            carried.home.home = (new, 0)
            spare = Node("control", (), carried.shape, carried.dtype, None)
            self._new(spare, [(step.begin, step.end)], step)
            out.home.change(out, begin=step.begin)
            carries.append((out, old, new, spare))
            self._wishes.append((x.node, out))
        self.carries[step] = carries

    def _outputs(self, donated: Sequence[bool]) -> None:
        """Memory given by the caller, and arrays of their own, for what the program gives."""
        wanted = [
            n
            for n in self.program.block.outs
            if n.word not in ("input", "constant", "empty") and n.home.open
        ]
        given = [n for i, n in enumerate(self.program.inputs) if donated and donated[i]]
        for node in wanted:
            if node.home.home is None:
                for source in given:  # the caller's array becomes the result: of its dtype
                    if source.dtype == node.dtype and self.join(source, node):
                        given.remove(source)
                        break
        self.fresh: list[tuple[Node, int]] = []
        for node in wanted:
            if node.home.home is None:
                node.home.home = (self._slot(), 0)
                self.fresh.append((node, node.home.home[0]))

    def _reuse(self, block: Block) -> None:
        """Results over operands that die, where that costs nothing."""
        for step in block.steps:
            kind = type(step)
            if kind is Group:
                if step.reductions or step.squares:
                    continue
                reads = {}
                for node in step.nodes:
                    for x in node.args:
                        if x.node.home is not None and x.is_node and x.shape == step.shape:
                            reads[x.node] = None
                for out in block.stored[step.number]:
                    for node in reads:
                        if block.last.get(node) is step and self.join(node, out):
                            break
            elif kind is Routine:
                begun = {o for o, _ in step.updates}
                for o, a in step.reuses:
                    if o not in begun:
                        self.join(step.args[a].node, step.outs[o])
            elif kind in (Loop, Branch):
                for inner in step.blocks:
                    self._reuse(inner)

    def _homes(self) -> None:
        for node in self._libraries:
            if not node.home.open:
                node.home.home = (self._slot(), 0)
                self.held[node] = node.home.home[0]
        inner = [b for b in self.buffers if b.tenants and b.home is None and b.size]
        offsets, self.arena = plan([(b.size, b.first, b.last) for b in inner])
        for buffer, offset in zip(inner, offsets, strict=True):
            buffer.home = (self.arena_slot, offset)
        # Fresh arrays come right after the inputs: the addresses of both are read from objects.
        count = len(self.program.inputs)
        order = [*range(count), *[slot for _, slot in self.fresh]]
        there = set(order)
        order += [slot for slot in range(self.slots) if slot not in there]
        place = {slot: i for i, slot in enumerate(order)}
        for buffer in self.buffers:
            if buffer.home is not None:
                buffer.home = (place[buffer.home[0]], buffer.home[1])
        self.arena_slot = place[self.arena_slot]
        self.fresh = [(node, place[slot]) for node, slot in self.fresh]
        self.held = {node: place[slot] for node, slot in self.held.items()}
        for step, (slices, pieces) in self.moving.items():
            self.moving[step] = [place[s] for s in slices], [place[s] for s in pieces]
        for carries in self.carries.values():
            carries[:] = [c and (c[0], place[c[1]], place[c[2]], c[3]) for c in carries]
        self.scratch = {step: b.home or (0, 0) for step, b in self._scratch}

    def address(self, node: Node) -> tuple[int, int]:
        """(slot, offset in bytes) of a node."""
        if node.home is None and node.word == "constant":
            slot = self._slot()
            self.constants[slot] = node.attr
            node.home = Buffer(bytes_of(node), (slot, 0), False)
        if node.home is None:
            return (self.arena_slot, 0)  # no elements
        return node.home.home or (self.arena_slot, 0)


def made_by(step: Any, block: Block) -> Sequence[Node]:
    """The nodes that a step leaves in memory, or begins to write there."""
    if type(step) is Group:
        whole = dict.fromkeys([place.node for place in step.pieces.values()])
        return [*block.stored[step.number], *whole]
    return step.outs


def _apart(a: Tenant, b: Tenant) -> bool:
    for start, stop in a[1]:
        for first, last in b[1]:
            if stop < first or last < start:
                continue
            if stop == first and start < first and _in_place(a[0], b[0], b[2]):
                continue
            if last == start and first < start and _in_place(b[0], a[0], a[2]):
                continue
            return False
    return True


def _in_place(old: Any, new: Any, step: Any) -> bool:
    """Whether a step may write a node over one that it reads, and that dies with it."""
    kind = type(step)
    if kind is Group:
        if step.reductions or step.squares or new.word == "reduce":
            return False
        if any(place.node is new for place in step.pieces.values()):
            # An element is there before another is read.
            return size_of(step.shape) == 1
        return all(
            x.is_node and x.shape == step.shape
            for node in step.nodes
            for x in node.args
            if x.node is old
        )
    if kind is Library:
        return True  # its results are copied when it is over
    if kind is Loop:
        inits, outs = [x.node for x in step.inits], step.outs
        pairs = (zip(inits, step.params, strict=True), zip(inits, outs, strict=False),
                 zip(step.carried, outs, strict=False))  # fmt: skip
        return any(a is old and b is new for some in pairs for a, b in some)
    if kind in (Routine, Move):
        allowed = {a for o, a in (*step.updates, *step.reuses) if step.outs[o] is new}
        return all(
            i in allowed and x.strides is None for i, x in enumerate(step.args) if x.node is old
        )
    return False
