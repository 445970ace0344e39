"""Compiled programs: kernels found or made, a table of records, and the run of it all."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import caches
from primal.base.dtypes import physical_dtype
from primal.engines.cpu import _llvm
from primal.engines.cpu.graph import Node, Value, as_numpy, size_of
from primal.engines.cpu.layout import Instance, instance
from primal.engines.cpu.memory import LINE, plan
from primal.engines.cpu.schedule import Group
from primal.engines.cpu.steps import Library, Routine, RoutineSpec
from primal.engines.cpu.translate import Translated, translate
from primal.ir.avals import Aval
from primal.ir.evaluate import quietly
from primal.ir.jaxpr import Jaxpr
from primal.ir.trace import Literal

_WORD = (1 << 64) - 1


class Counters:
    """What was made so far in this process; tests assert these instead of times."""

    def __init__(self) -> None:
        self.kernels = 0
        self.modules = 0


counters = Counters()
_kernels: dict[RoutineSpec, int] = {}
_lock = threading.Lock()
# Code stays loaded; what is forgotten is only found again by compiling it again.
caches.register(_kernels.clear)


def kernels_for(specs: Sequence[RoutineSpec]) -> dict[RoutineSpec, int]:
    """Code addresses; those not known yet are compiled, in one module."""
    found = {s: _kernels[s] for s in specs if s in _kernels}
    missing = [s for s in dict.fromkeys(specs) if s not in found]
    if not missing:
        return found
    with _lock:
        fresh = [s for s in missing if s not in _kernels]
        if fresh:
            text, names = module_of(fresh)
            addresses = _llvm.compiler().compile(text, names)
            for spec, name in zip(fresh, names, strict=True):
                _kernels[spec] = addresses[name]
            counters.kernels += len(fresh)
            counters.modules += 1
        found.update({s: _kernels[s] for s in missing})
    return found


def module_of(specs: Sequence[RoutineSpec]) -> tuple[str, list[str]]:
    """LLVM IR with one function per kernel, and their names."""
    module = _llvm.compiler().module()
    names = [f"kernel{i}" for i in range(len(specs))]
    for name, spec in zip(names, specs, strict=True):
        spec.write(module, name)
    return module.text(), names


@dataclasses.dataclass
class Native:
    """Consecutive kernels, run by one call. `needs` are the arrays, in the order of their slots.

    The slot after them is the arena.
    """

    needs: list[int]
    makes: list[int]
    table: Any
    address: int
    words: int
    drops: list[int]


@dataclasses.dataclass
class Call:
    """A library call; `reads` gives each operand from the list of arrays."""

    step: Library
    reads: list[Callable[[list[Any]], Any]]
    makes: list[int]
    drops: list[int]


class Plan:
    """Everything about a program but machine code: steps, kernels, places."""

    def __init__(self, jaxpr: Jaxpr, name: str) -> None:
        self.name = name
        self.in_avals: list[Aval] = [v.aval for v in jaxpr.invars]
        self.out_avals: list[Aval] = [v.aval for v in jaxpr.outvars]
        self.program: Translated = translate(jaxpr)
        program = self.program
        self.instances: dict[int, Instance] = {
            step.number: instance(step, program.stored[step.number])
            for step in program.steps
            if isinstance(step, Group)
        }
        self._place()

    def _place(self) -> None:
        """Give every node that is stored an array of its own, or a part of the arena.

        What a library call reads or returns is an array of its own: calls may return views of
        their operands and keep them, so that the memory must not be used again behind their back.
        """
        program = self.program
        self.homes: dict[int, int] = {}
        self.array_types: list[tuple[tuple[int, ...], Any]] = []
        own: list[Node] = list(program.inputs)
        last: dict[int, int] = {}
        for step in program.steps:
            if isinstance(step, Library):
                own += [x.node for x in step.args if isinstance(x, Value)]
                own += step.outs
            if not isinstance(step, Group):
                for x in step.args:
                    if isinstance(x, Value):
                        last[id(x.node)] = step.number
            else:
                for a in self.instances[step.number].arrays:
                    last[id(a.node)] = step.number
        own += [x.node for x in program.outputs if isinstance(x, Value)]
        for node in own:
            if id(node) not in self.homes:
                self.homes[id(node)] = len(self.array_types)
                self.array_types.append((node.shape, node.dtype))
        self.outputs_held = {
            self.homes[id(x.node)] for x in program.outputs if isinstance(x, Value)
        }
        self.last = last
        inner: list[tuple[int, tuple[int, int, int]]] = []
        for step in program.steps:
            if isinstance(step, Library):
                continue
            for node in self._made(step):
                if id(node) not in self.homes:
                    size = size_of(node.shape) * node.dtype.itemsize
                    born = step.number
                    inner.append((id(node), (size, born, last.get(id(node), born))))
            if isinstance(step, Routine) and step.scratch:
                inner.append((id(step), (step.scratch, step.number, step.number)))
        offsets, self.arena = plan([life for _, life in inner])
        self.offsets = {name: at for (name, _), at in zip(inner, offsets, strict=True)}

    def _made(self, step: Group | Routine) -> Sequence[Node]:
        if isinstance(step, Group):
            return (*self.program.stored[step.number], *step.reductions)
        return step.outs

    @property
    def specs(self) -> list[RoutineSpec]:
        """The kernels and routines, one per step that has one."""
        return [
            step.spec if isinstance(step, Routine) else self.instances[step.number].spec
            for step in self.program.steps
            if not isinstance(step, Library)
        ]

    def text(self) -> str:
        """The table of steps, and the LLVM IR of its kernels."""
        specs = list(dict.fromkeys(self.specs))
        lines = [f"; program {self.name}: {len(self.program.steps)} steps, {len(specs)} kernels, "
                 f"{self.arena} bytes of arena"]  # fmt: skip
        for step in self.program.steps:
            if isinstance(step, Library):
                lines.append(f";   {step.number}: call {step.op.name} ({step.reason})")
            elif isinstance(step, Routine):
                results = ", ".join([n.dtype.str[1:] + str(list(n.shape)) for n in step.outs])
                lines.append(
                    f";   {step.number}: kernel{specs.index(step.spec)}: {step.name} -> {results}"
                )
            else:
                found = self.instances[step.number]
                loops = " x ".join(map(str, found.sizes))
                names = " ".join([n.word for n in step.nodes])
                sums = " ".join([f"{n.attr[0]}{list(n.attr[1])}" for n in step.reductions])
                lines.append(
                    f";   {step.number}: kernel{specs.index(found.spec)} over {loops}: "
                    f"{' '.join(filter(None, [names, sums]))}"
                )
        return "\n".join(lines) + "\n\n" + module_of(specs)[0]

    def actions(self) -> list[Native | Call]:
        """The steps as they run; kernels between two library calls become one table."""
        code = kernels_for(self.specs)
        dying: dict[int, list[int]] = {}
        inputs = len(self.in_avals)
        for node_id, home in self.homes.items():
            if home >= inputs and home not in self.outputs_held and node_id in self.last:
                dying.setdefault(self.last[node_id], []).append(home)
        actions: list[Native | Call] = []
        run: list[Group | Routine] = []
        for step in self.program.steps:
            if not isinstance(step, Library):
                run.append(step)
                continue
            if run:
                actions.append(self._native(run, code, dying))
                run = []
            makes = [self.homes[id(n)] for n in step.outs]
            reads = [_reader(x, self.homes) for x in step.args]
            actions.append(Call(step, reads, makes, dying.get(step.number, [])))
        if run:
            actions.append(self._native(run, code, dying))
        return actions

    def _native(
        self,
        steps: list[Group | Routine],
        code: dict[RoutineSpec, int],
        dying: dict[int, list[int]],
    ) -> Native:
        slots: dict[int, int] = {}
        makes: list[int] = []
        for step in steps:
            if isinstance(step, Group):
                arrays = self.instances[step.number].arrays
                nodes = [a.node for a in arrays if a.kind == "m"]
            else:
                nodes = [*[x.node for x in step.args], *step.outs]
            for node in nodes:
                home = self.homes.get(id(node))
                if home is not None:
                    slots.setdefault(home, len(slots))
            makes += [self.homes[id(n)] for n in self._made(step) if id(n) in self.homes]
        arena = len(slots)

        def address(node: Node) -> tuple[int, int]:
            home = self.homes.get(id(node))
            return (arena, self.offsets[id(node)]) if home is None else (slots[home], 0)

        words: list[int] = []
        for step in steps:
            if isinstance(step, Routine):
                scratch = (arena, self.offsets[id(step)]) if step.scratch else (0, 0)
                words += step.record(code[step.spec], address, scratch)
            else:
                found = self.instances[step.number]
                words += found.record(code[found.spec], address)
        table = np.array([w & _WORD for w in words], np.uint64)
        drops = [h for g in steps for h in dying.get(g.number, [])]
        return Native(list(slots), makes, table, table.ctypes.data, len(words), drops)


def _reader(x: Any, homes: dict[int, int]) -> Callable[[list[Any]], Any]:
    if isinstance(x, Literal):
        return lambda arrays: x.val
    home = homes[id(x.node)]
    if x.strides is None and x.shape == x.node.shape:
        return lambda arrays: arrays[home]
    return lambda arrays: as_numpy(x, arrays[home])


class CpuExecutable:
    """A compiled program. Several threads may run it at once."""

    def __init__(self, jaxpr: Jaxpr, name: str) -> None:
        self.plan = Plan(jaxpr, name)
        self.actions = self.plan.actions()
        self._run = _llvm.driver()
        self._field = _object_field()
        self._in_types = [(a.shape, physical_dtype(a.dtype)) for a in self.plan.in_avals]
        self._make = self.plan.array_types
        self._arenas: list[Any] = []
        self._running: set[Any] = set()
        self._outputs = [
            _result(x, aval, self.plan.homes)
            for x, aval in zip(self.plan.program.outputs, self.plan.out_avals, strict=True)
        ]

    def execute(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on arrays of the input avals. The outputs are nobody else's, or inputs themselves."""
        arrays = [self._input(i, b) for i, b in enumerate(buffers)]
        arrays += [None] * (len(self._make) - len(arrays))
        # Taken here and given back: page faults of fresh memory cost more than the kernels do.
        arena = None
        if self.plan.arena:
            try:
                arena = self._arenas.pop()
            except IndexError:
                arena = _arena(self.plan.arena)
        status = ctypes.c_int32(0)
        running = _Running(status)
        self._running.add(running)
        try:
            return quietly(self._steps, (arrays, arena, status), {})
        finally:
            self._running.discard(running)
            if arena is not None and len(self._arenas) < 4:
                self._arenas.append(arena)

    def _steps(self, arrays: list[Any], arena: Any, status: Any) -> list[Any]:
        make = self._make
        place = ctypes.addressof(status)
        for action in self.actions:
            if action.__class__ is Native:
                for home in action.makes:
                    shape, dtype = make[home]
                    arrays[home] = np.empty(shape, dtype)
                if self.run_table(action, arrays, arena, place):
                    raise Cancelled("[cpu] the program was cancelled while it ran.")
            else:
                call: Call = action  # type: ignore[assignment]
                step = call.step
                if status.value:
                    raise Cancelled("[cpu] the program was cancelled while it ran.")
                outs = step.impl(*[read(arrays) for read in call.reads], **step.params)
                for home, out in zip(
                    call.makes, outs if step.op.multiple else (outs,), strict=True
                ):
                    arrays[home] = _checked(step, out, make[home])
            for home in action.drops:
                arrays[home] = None
        return [result(arrays) for result in self._outputs]

    def run_table(self, action: Native, arrays: Sequence[Any], arena: Any, status: int) -> int:
        """Run kernels on arrays by number; the status word at the end."""
        needs = [arrays[h] for h in action.needs]
        if arena is not None:
            needs.append(arena)
        n, field = len(needs), self._field
        addresses = map(id, needs) if field else [a.ctypes.data for a in needs]
        slots = (ctypes.c_int64 * n)(*addresses)
        found = self._run(slots, n if field else 0, field, action.address, action.words, status)
        return int(found)

    def cancel(self) -> None:
        """Make every run that is under way stop soon, with `Cancelled` in its thread."""
        for running in tuple(self._running):
            running.status.value = 1

    def _input(self, i: int, given: Any) -> Any:
        shape, dtype = self._in_types[i]
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
        return _llvm.compiler().assembly(module_of(specs)[0])

    def cost_analysis(self) -> dict[str, float]:
        """Counts: elementwise operations and bytes of the kernels, steps of either kind."""
        flops = moved = 0
        for found in self.plan.instances.values():
            flops += found.flops
            moved += sum(size_of(a.node.shape) * int(a.dtype[1:]) for a in found.arrays)
        calls = sum(isinstance(s, Library) for s in self.plan.program.steps)
        return {
            "flops": float(flops),
            "bytes accessed": float(moved),
            "kernels": float(len(self.plan.instances)),
            "library calls": float(calls),
        }

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs and the arena."""

        def total(avals: Sequence[Aval]) -> int:
            return sum([a.size * physical_dtype(a.dtype).itemsize for a in avals])

        return {
            "argument_size_in_bytes": total(self.plan.in_avals),
            "output_size_in_bytes": total(self.plan.out_avals),
            "temp_size_in_bytes": self.plan.arena,
        }


class Cancelled(RuntimeError):
    """A run was stopped by `CpuExecutable.cancel`."""


class _Running:
    """A run under way; by identity, as status words compare by value."""

    __slots__ = ("status",)

    def __init__(self, status: Any) -> None:
        self.status = status


def _checked(step: Library, out: Any, wanted: tuple[tuple[int, ...], Any]) -> Any:
    """A library result as an array that kernels may read: of the type promised, contiguous."""
    shape, dtype = wanted
    array = out if type(out) is np.ndarray else np.asarray(out)
    if array.shape != shape or array.dtype != dtype:
        raise TypeError(
            f"[{step.op.name}] expected its impl to give {dtype}{list(shape)}, as its type rule "
            f"says, got {array.dtype}{list(array.shape)}. This is an error in the op, not in your "
            "program."
        )
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def _result(x: Any, aval: Aval, homes: dict[int, int]) -> Callable[[list[Any]], Any]:
    if not isinstance(x, Value):
        constant = np.asarray(x, physical_dtype(aval.dtype))
        return lambda arrays: constant
    home, shape = homes[id(x.node)], x.shape
    if shape == x.node.shape:
        return lambda arrays: arrays[home]
    return lambda arrays: arrays[home].reshape(shape)


def _arena(size: int) -> Any:
    """Bytes that begin at a cache line."""
    room = np.empty(size + LINE, np.uint8)
    return room[-room.ctypes.data % LINE :][:size]


@functools.cache
def _object_field() -> int:
    """Where array objects hold the address of their data, in bytes; 0 if that is not known.

    Reading an address in Python takes 1 µs, by `ctypes` or `__array_interface__`. An array object
    holds it right behind its head, so native code reads it there, where a look at an array of
    this interpreter confirms that.
    """
    field = object.__basicsize__
    probe = np.zeros(3, np.int16)[1:]
    found = ctypes.c_void_p.from_address(id(probe) + field).value
    return field if found == probe.ctypes.data else 0
