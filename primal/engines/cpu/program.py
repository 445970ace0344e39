"""Compiled programs: kernels found or made, a table of records, and the run of it all."""

from __future__ import annotations

import functools
import math
import os
import platform
import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from primal.base.config import config
from primal.base.dtypes import physical_dtype
from primal.base.later import Later
from primal.base.native import empty
from primal.engines.cpu import _llvm
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.layout import Instance
from primal.engines.cpu.layout.rows import instance
from primal.engines.cpu.plan.places import Places
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.run import careful, driver, events, subnormals
from primal.engines.cpu.run.calls import Call, Frame, data_of, object_field
from primal.engines.cpu.run.foundry import Casting
from primal.engines.cpu.run.objects import ahead, kernels_for
from primal.engines.cpu.run.records import Tables
from primal.engines.cpu.steps import Branch, Library, Loop, Routine, RoutineSpec
from primal.engines.cpu.translate import Translated, translate
from primal.ir.avals import Aval
from primal.ir.evaluate import quietly
from primal.ir.jaxpr import Jaxpr

if TYPE_CHECKING:
    from primal.engines.cpu.loops.native import Native

_choice = Later("primal.engines.cpu.loops.choice")


class Plan:
    """Everything about a program but machine code: steps, kernels, places."""

    def __init__(self, jaxpr: Jaxpr, name: str, donated: Sequence[bool] = ()) -> None:
        self.name = name
        self.in_avals: list[Aval] = [v.aval for v in jaxpr.invars]
        self.out_avals: list[Aval] = [v.aval for v in jaxpr.outvars]
        self.donated = tuple(donated)
        self.program: Translated = translate(jaxpr)
        self.instances: dict[Group, Instance] = {}
        for block in blocks(self.program.block):
            for step in block.steps:
                if type(step) is Group:
                    made = self.instances[step] = instance(step, block.stored[step.number])
                    if block is self.program.block:  # those of loops may be code of the loop
                        ahead(made.spec)
        self.places = Places(self.program, donated)
        self.arena = self.places.arena
        self.fused: dict[Loop, Native] = {}
        for step in self.steps:
            if type(step) is not Loop:
                continue
            if found := _choice.one_function(step, self.places):
                self.fused[step] = found
        _check_memory(name, self.arena, self.in_avals, self.out_avals)

    @property
    def steps(self) -> list[Any]:
        """All steps, those of loops and branches after the step that has them."""
        return list(_all_steps(self.program.block))

    @property
    def specs(self) -> list[RoutineSpec]:
        """The kernels and routines, one per step that has one."""
        found: list[RoutineSpec] = []
        for step in self._called(self.program.block):
            if type(step) is Routine:
                found.append(step.spec)
            elif type(step) is Group:
                found.append(self.instances[step].spec)
            elif step in self.fused:
                found.append(self.fused[step].spec)
        return found

    @property
    def callees(self) -> list[RoutineSpec]:
        """The functions that routines call, which belong to the process more than to a program."""
        found = [s.callees for s in self._called(self.program.block) if type(s) is Routine]
        return [callee for callees in found for callee in callees if callee is not None]

    def _called(self, block: Any) -> Iterator[Any]:
        """The steps that have code of their own; those in registers of a loop have none."""
        for step in block.steps:
            yield step
            if isinstance(step, Loop | Branch):
                hidden = self.fused[step].hidden if step in self.fused else ()
                for inner in step.blocks:
                    yield from [s for s in self._called(inner) if s not in hidden]

    def text(self) -> str:
        """The steps, and the LLVM IR of their kernels."""
        specs = list(dict.fromkeys(self.specs))
        number = {spec: i for i, spec in enumerate(specs)}
        lines = [f"; program {self.name}: {len(self.steps)} steps, {len(specs)} kernels, "
                 f"{self.arena} bytes of arena"]  # fmt: skip
        self._lines(self.program.block, number, lines, ";   ")
        return "\n".join(lines) + "\n\n" + Casting(specs).text()

    def _lines(self, block: Any, number: dict[Any, int], lines: list[str], indent: str) -> None:
        for step in block.steps:
            lines.append(f"{indent}{step.number}: {self._line(step, number)}")
            if isinstance(step, Loop | Branch):
                for i, inner in enumerate(step.blocks):
                    if len(step.blocks) > 1:
                        lines.append(f"{indent}  branch {i}:")
                    self._lines(inner, number, lines, indent + "    ")

    def _line(self, step: Any, number: dict[Any, int]) -> str:
        if type(step) is Library:
            return f"call {step.op.name} ({step.reason})"
        if type(step) is Group:
            found = self.instances[step]
            names = [n.word for n in step.nodes]
            sums = [f"{n.attr[0]}{list(n.attr[1])}" for n in step.reductions]
            loops = " x ".join(map(str, found.sizes))
            code = f"kernel{number[found.spec]}" if found.spec in number else "registers"
            return f"{code} over {loops}: {' '.join([*names, *sums])}"
        results = ", ".join([n.dtype.str[1:] + str(list(n.shape)) for n in step.outs])
        if type(step) is Routine:
            code = f"kernel{number[step.spec]}" if step.spec in number else "registers"
            return f"{code}: {step.name} -> {results}"
        if type(step) is Loop:
            carries = self.places.carries[step]
            still = sum([c is None for c in carries])
            if step in self.fused:
                results += f" by kernel{number[self.fused[step].spec]}"
            turns = "while" if step.trips is None else f"{step.trips} times"
            return f"{turns}, {still} of {len(carries)} carries in place -> {results}"
        if type(step) is Branch:
            return f"one of {len(step.blocks)} -> {results}"
        return f"copy -> {results}"


def blocks(block: Any) -> Iterator[Any]:
    """A block and all blocks in it."""
    yield block
    for step in block.steps:
        if isinstance(step, Loop | Branch):
            for inner in step.blocks:
                yield from blocks(inner)


def _all_steps(block: Any) -> Iterator[Any]:
    for step in block.steps:
        yield step
        if isinstance(step, Loop | Branch):
            for inner in step.blocks:
                yield from _all_steps(inner)


def _check_memory(name: str, arena: int, ins: Sequence[Aval], outs: Sequence[Aval]) -> None:
    """MemoryError for what cannot fit: the system would grant it, and end the process later.

    Also for empty results too long for NumPy, which takes lengths of 0 for 1 in its bytes.
    """
    for a in outs:
        if math.prod([n or 1 for n in a.shape]) * physical_dtype(a.dtype).itemsize >= 2**63:
            raise MemoryError(
                f"[{name}] expected results of fewer than 2**63 bytes, lengths of 0 not counted, "
                f"got shape {a.shape}."
            )
    need = arena + sum([a.size * physical_dtype(a.dtype).itemsize for a in (*ins, *outs)])
    have = _memory()
    if have and need > have:
        raise MemoryError(
            f"[{name}] expected a program that fits into {have / 1e9:.3g} GB of memory, got one "
            f"whose arguments, results and intermediate values take {need / 1e9:.3g} GB."
        )


@functools.cache
def _memory() -> int:
    """Bytes of memory of the machine; 0 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


LONG = 20_000.0
"""Nanoseconds of work from which a run gives up the GIL and looks for signals."""
KEPT = 1 << 30
"""Bytes of arenas that an executable keeps for its next runs: fresh pages cost more than work."""


class CpuExecutable:
    """A compiled program. Several threads may run it at once."""

    dense = True
    """It reads arrays in row-major order, and copies others."""

    def __init__(self, jaxpr: Jaxpr, name: str, donated: Sequence[bool] = ()) -> None:
        driver.ahead()
        self.plan = Plan(jaxpr, name, donated)
        plan, places = self.plan, self.plan.places
        code = kernels_for([*plan.specs, *plan.callees])
        self.tables = Tables(places, plan.instances, code, driver.functions(), plan.fused)
        self.calls = [Call(c, places, drops) for c, drops in _with_drops(self.tables, places)]
        self.table = self.tables.main
        self.long = self.tables.endless or self.tables.cost > LONG
        self.mode = subnormals.bits(platform.machine()) if config.flush_subnormals else 0
        self._run = driver.run()
        self._field = object_field()
        self.in_types = [(a.shape, physical_dtype(a.dtype)) for a in plan.in_avals]
        outs = [
            _result(x, aval, places)
            for x, aval in zip(plan.program.outputs, plan.out_avals, strict=True)
        ]
        self.outputs = outs
        shapes = {at: shape for kind, at, shape in reversed(outs) if kind == "new"}
        self.fresh = [
            (shapes.get(i, node.shape), node.dtype) for i, (node, _) in enumerate(places.fresh)
        ]
        count = len(self.in_types)
        assert [slot for _, slot in places.fresh] == list(range(count, count + len(self.fresh)))
        self.written = tuple(
            [i for i, n in enumerate(plan.program.inputs) if _is_written(n, donated, i)]
        )
        self._first = count
        self.natives: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        """Callers of `entry`, whose runs `cancel` stops too, by whose they are."""
        self._frames: list[Frame] = []
        self._running: set[Frame] = set()
        events.made(self)
        careful.attach()

    @functools.cached_property
    def entry(self) -> Entry | None:
        """The program for native callers; None if it needs Python, or arrays of its own."""
        given = {at for kind, at, _ in self.outputs if kind == "in"}
        if self.calls or self.plan.places.constants or not given >= set(self.written):
            return None
        frames, self._frames = self._frames, []  # native callers have frames of their own
        return Entry(self, frames[0].arena if frames else None)

    def execute(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on arrays of the input avals. The outputs are nobody else's, or inputs themselves."""
        arrays = [self._input(i, b) for i, b in enumerate(buffers)]
        for i in self.written:
            # The caller's list and its Array hold it, and `arrays` and the call below.
            if arrays[i].base is not None or sys.getrefcount(arrays[i]) > 4:
                arrays[i] = arrays[i].copy()
        arrays += [empty(shape, dtype) for shape, dtype in self.fresh]
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(self.plan.places, self.calls)
        self._running.add(frame)
        try:
            if self.calls:
                quietly(self.run_table, (frame, arrays), {})
            else:
                self.run_table(frame, arrays)
            return [self._output(out, arrays, frame) for out in self.outputs]
        finally:
            self._running.discard(frame)
            frame.clear()
            if len(self._frames) < 4 and (len(self._frames) + 1) * self.plan.arena < KEPT:
                self._frames.append(frame)

    def run_table(self, frame: Frame, arrays: Sequence[Any], status: int = 0) -> None:
        """Run the program on arrays by slot; a status that is not 0 stops it before it begins."""
        n, field = len(arrays), self._field
        frame.slots[:n] = list(map(id if field else data_of, arrays))
        context = frame.context
        context[0] = self.long << 32 | status
        context[4], context[5], context[6] = 0, driver.LOOK, self.mode
        if self._run(
            frame.slots_at, n if field else 0, field, self.table.ctypes.data, len(self.table),
            frame.context_at,
        ):  # fmt: skip
            raise Cancelled("[cpu] the program was cancelled while it ran.")

    def _output(self, out: tuple[str, Any, Any], arrays: list[Any], frame: Frame) -> Any:
        kind, at, shape = out
        if kind == "const":
            return at
        array = frame.held[at] if kind == "held" else arrays[at + (kind == "new") * self._first]
        return array if array.shape == shape else array.reshape(shape)

    def cancel(self) -> None:
        """Make every run that is under way stop soon, with `Cancelled` in its thread."""
        for frame in tuple(self._running):
            frame.status.value = driver.CANCELLED
        for native in list(self.natives.values()):
            native.cancel(driver.CANCELLED)

    def _input(self, i: int, given: Any) -> Any:
        shape, dtype = self.in_types[i]
        array = given if type(given) is np.ndarray else np.asarray(given)
        if array.shape != shape or array.dtype != dtype:
            raise TypeError(
                f"[{self.plan.name}] expected {self.plan.in_avals[i].short()} as input {i}, got "
                f"{array.dtype}{list(array.shape)}."
            )
        flags = array.flags
        if flags.c_contiguous and flags.aligned:
            return array
        return np.array(array, order="C")

    def as_text(self) -> str:
        """The steps and the LLVM IR of their kernels."""
        return self.plan.text()

    def assembly(self) -> str:
        """The machine code of the kernels."""
        specs = list(dict.fromkeys(self.plan.specs))
        return _llvm.compiler().assembly(Casting(specs).text())

    def cost_analysis(self) -> dict[str, float]:
        """Counts: elementwise operations, those of products, and bytes; steps of either kind.

        What loops do counts once.
        """
        flops = moved = 0
        for found in self.plan.instances.values():
            flops += found.flops
            arrays = [a for a in found.arrays if a.kind != "n"]
            moved += sum(size_of(a.node.shape) * int(a.dtype[1:]) for a in arrays)
        for step in _all_steps(self.plan.program.block):
            if type(step) is Routine and step.terms:
                flops += 2 * step.terms * size_of(step.outs[0].shape)
                sizes = [(v.shape, v.dtype) for v in step.args]
                sizes += [(n.shape, n.dtype) for n in step.outs]
                moved += sum(size_of(shape) * dtype.itemsize for shape, dtype in sizes)
        return {
            "flops": float(flops),
            "bytes accessed": float(moved),
            "kernels": float(len(self.plan.instances)),
            "library calls": float(len(self.calls)),
        }

    def memory_analysis(self) -> MemoryStats:
        """Bytes of arguments, outputs and the arena."""

        def total(avals: Sequence[Aval]) -> int:
            return sum([a.size * physical_dtype(a.dtype).itemsize for a in avals])

        arguments, outputs = total(self.plan.in_avals), total(self.plan.out_avals)
        return MemoryStats(arguments, outputs, self.plan.arena)


class MemoryStats(NamedTuple):
    """Bytes that one run of a program takes, under the names that XLA's analysis has."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int = 0
    generated_code_size_in_bytes: int = 0


class Cancelled(RuntimeError):
    """A run was stopped by `CpuExecutable.cancel`."""


class Entry:
    """A program as native callers run it, without this module.

    They call `run(slots, 0, 0, table, words, context)` with the GIL, which it gives up where it
    may take long. It gives 0 when all is done, `RAISED` with a Python exception set.

    `slots` says what address each one holds: ("in", i), ("out", j) fresh memory of the type
    `new[j]`, ("arena", 0), also for those that the program sets itself. `outputs`: ("new", j),
    ("in", i) the argument itself, ("donated", i) the argument, whose memory was written, or
    ("const", array). `context` is copied for each run. `cost` in nanoseconds. The first caller may
    `take` the arena of the runs before: its pages are there.
    """

    __slots__ = (
        "run", "table", "words", "keep", "slots", "inputs", "new", "outputs", "arena", "context",
        "cost", "cancelled", "_used",
    )  # fmt: skip

    def __init__(self, made: CpuExecutable, used: Any = None) -> None:
        plan, places = made.plan, made.plan.places
        self.run = driver.functions()["run"]
        self.table = made.table.ctypes.data
        self.words = len(made.table)
        self.keep = made.tables
        kinds: dict[int, tuple[str, Any]] = {i: ("in", i) for i in range(len(plan.in_avals))}
        kinds.update({slot: ("out", j) for j, (_, slot) in enumerate(places.fresh)})
        self.slots = [kinds.get(slot, ("arena", 0)) for slot in range(places.slots)]
        self.inputs = made.in_types
        self.new = made.fresh
        self.outputs = [
            ("donated", at) if kind == "in" and at in made.written else (kind, at)
            for kind, at, _ in made.outputs
        ]
        self.arena = plan.arena
        words = [made.long << 32, 0, 0, 0, 0, driver.LOOK, made.mode]
        self.context = np.array(words, np.int64).tobytes().ljust(driver.CONTEXT, b"\0")
        self.cost = int(made.tables.cost)
        self.cancelled = Cancelled
        self._used = used

    def take(self) -> Any:
        """An arena that nobody uses any more, or None; the taker's alone."""
        used, self._used = self._used, None
        return used


def _is_written(node: Any, donated: Sequence[bool], i: int) -> bool:
    return bool(donated) and donated[i] and len(node.home.tenants) > 1


def _result(x: Any, aval: Aval, places: Places) -> tuple[str, Any, Any]:
    """(kind, index, shape): 'new' array, 'in'put, 'held' library result, or 'const' array."""
    if not isinstance(x, Value):
        return "const", np.asarray(x, physical_dtype(aval.dtype)), aval.shape
    node = x.node
    if node.word == "constant":
        return "const", node.attr.reshape(x.shape), x.shape
    if node.word == "empty" or not x.size:
        return "const", np.empty(x.shape, node.dtype), x.shape
    if node in places.held:
        return "held", places.held[node], x.shape
    slot, _ = places.address(node)
    count = len(places.program.inputs)
    return ("in", slot, x.shape) if slot < count else ("new", slot - count, x.shape)


def _with_drops(tables: Tables, places: Places) -> Iterator[tuple[Library, list[int]]]:
    """Library calls with the slots of earlier results that nobody reads any more."""
    outer = {n for s in places.program.block.steps if type(s) is Library for n in s.outs}
    waiting = {node: node.home.last for node in places.held if node in outer}
    for call in tables.calls:
        done = [n for n, last in waiting.items() if last < call.begin]
        for node in done:
            del waiting[node]
        yield call, [places.held[n] for n in done]
