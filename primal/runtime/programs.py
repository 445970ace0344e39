"""Programs and their executables: simplified, keyed by content, compiled once.

Two jaxprs that are equal up to the names of their variables share one executable, whichever
functions they came from.
"""

from __future__ import annotations

import time
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from primal.base import caches, dtypes, forks
from primal.base.config import settings
from primal.base.errors import JaxRuntimeError
from primal.base.source import user_stacklevel
from primal.base.turns import turn
from primal.engines.protocol import Device
from primal.ir.check import check_closed
from primal.ir.jaxpr import ClosedJaxpr, Jaxpr, hoist_consts
from primal.ir.trace import Literal, Tracer
from primal.runtime import devices, watch
from primal.runtime.array import ArrayImpl, Placement
from primal.runtime.eager import as_array, install_program_runner, placement_of
from primal.transforms.simplify import program_key, simplify


class Counters:
    """How often the expensive things happened; tests assert these instead of times."""

    def __init__(self) -> None:
        self.traces = 0
        self.compilations = 0


counters = Counters()


class Program:
    """An executable with the constants it is called with and the arguments it reads.

    `run(args)` takes arrays of the program's input avals.
    """

    __slots__ = (
        "executable", "host_buffers", "dense", "consts", "kept", "donated", "out_avals", "device",
        "keep_all", "nothings", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        executable: Any,
        host_buffers: bool,
        consts: list[ArrayImpl],
        kept: tuple[int, ...],
        donated: tuple[int, ...],
        closed: ClosedJaxpr,
        device: Device,
    ) -> None:
        self.executable = executable
        self.host_buffers = host_buffers
        self.dense = getattr(executable, "dense", False)
        self.consts = consts
        self.kept = kept
        self.keep_all = kept == tuple(range(len(closed.jaxpr.invars)))
        self.donated = donated
        self.out_avals = closed.out_avals
        self.device = device
        self.nothings = [i for i, a in enumerate(self.out_avals) if a.dtype == dtypes.float0]

    def run(self, args: Sequence[ArrayImpl], placement: Placement | None) -> list[Any]:
        """Run on concrete arrays; results are placed as `placement` says, float0 is NumPy's.

        JaxRuntimeError where a donated array is also another argument that the program reads.
        """
        if self.donated:
            self._check_donated(args)
        results: list[Any]
        operands = [*self.consts, *args] if self.consts else args
        if not self.keep_all:
            kept = len(self.consts)
            operands = [*operands[:kept], *[args[i] for i in self.kept]]
        if self.host_buffers:
            outs = self.executable.execute([_host(a, self.dense) for a in operands])
            if placement is None:
                results = [ArrayImpl(aval, o) for aval, o in zip(self.out_avals, outs, strict=True)]
            else:
                results = [
                    ArrayImpl(aval, None, o, placement)
                    for aval, o in zip(self.out_avals, outs, strict=True)
                ]
        else:
            device = self.device
            outs = self.executable.execute([xla_buffer(a, device) for a in operands])
            results = [
                ArrayImpl(aval, None, o, placement)
                for aval, o in zip(self.out_avals, outs, strict=True)
            ]
        for i in self.donated:
            args[i].delete()
        for i in self.nothings:
            results[i] = np.zeros(self.out_avals[i].shape, dtypes.float0)
        return results

    def _check_donated(self, args: Sequence[ArrayImpl]) -> None:
        given = Counter(id(args[i]) for i in self.kept)
        for i in self.donated:
            if given[id(args[i])] > 1:
                twice = [j for j in self.kept if args[j] is args[i]]
                raise JaxRuntimeError(
                    f"INVALID_ARGUMENT: [jit] expected a donated array to be given once, got "
                    f"{args[i].aval.str_short()} as the flattened arguments {twice}, as in "
                    "f(donate(a), a): its memory would be overwritten while it is read. Pass "
                    "a copy, or do not donate."
                )


def _host(a: ArrayImpl, dense: bool) -> Any:
    """The array in host memory; `dense`: in row-major order, and a copy made for that is kept."""
    host = a.host
    if host is None:
        return a.numpy()
    if dense and not host.flags.c_contiguous:
        host = a.host = np.array(host, order="C")
    return host


def xla_buffer(a: ArrayImpl, device: Device) -> Any:
    """The array as an XLA buffer on a device; made on first use and kept beside the host's."""
    buffer = a.buffer
    if buffer is None or type(buffer) is np.ndarray:
        value = a.host if buffer is None else buffer
        if value is None:
            raise a.deleted_error()
        made = devices.to_xla(value, device)
        if a.placement is None or a.placement.device is device:
            a.buffer = made
        return made
    if a.placement is not None and a.placement.device is not device:
        return devices.to_xla(a.numpy(), device)
    if a.placement is None and device.platform != "cpu":
        return devices.to_xla(a.numpy(), device)
    return buffer


# Executables in use are found for as long as they live; these hold on to the last that were asked
# for, so that a program whose function is gone is not compiled again, and code of thousands of
# functions that are gone does not pile up.
MOST_UNUSED = 512
_programs: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
_recent: OrderedDict[Any, Any] = OrderedDict()
_lock = forks.lock()
# Programs bound inside transformations, for as long as their jaxpr lives; a Program holds no
# reference to it.
_by_jaxpr: weakref.WeakKeyDictionary[ClosedJaxpr, dict[Any, Program]]
_by_jaxpr = weakref.WeakKeyDictionary()


def _clear() -> None:
    _programs.clear()
    _recent.clear()
    _by_jaxpr.clear()


caches.register(_clear)

RULES = {"xla": "hlo", "cpu": "kernel", "reference": "impl"}


def executable_for(
    simplified: ClosedJaxpr, name: str, device: Device, donated: tuple[bool, ...]
) -> tuple[Any, Any]:
    """(engine, executable) for a simplified program; compiled when its content is new."""
    engine = devices.compiling_engine(device)
    key = (
        program_key(simplified),
        engine.name,
        device,
        donated,
        settings().trace_key,
    )
    found = _programs.get(key)
    if found is not None:
        _hold(key, found)
        return engine, found
    with turn(key):
        found = _programs.get(key)
        if found is None:
            program = ClosedJaxpr(hoist_consts(simplified))
            if settings().enable_checks:
                check_closed(program)
            counters.compilations += 1
            where = device if engine.host_buffers else devices.xla_device(device)
            if settings().log_compiles:
                _log(
                    f"Compiling jit({name}) with global shapes and types {program.in_avals} "
                    f"for {device!r}."
                )
            with timed(f"{engine.name} compilation of jit({name})"):
                if watch.wanted(settings()):
                    # Donated arguments would be gone when a bad result asks for a second run.
                    kept = (False,) * len(donated)
                    inner = engine.compile(program, name=name, device=where, donated=kept)
                    found = watch.Watched(inner, program, name, device, engine.host_buffers)
                else:
                    found = engine.compile(program, name=name, device=where, donated=donated)
            _programs[key] = found
    _hold(key, found)
    return engine, found


def _hold(key: Any, executable: Any) -> None:
    """Note that an executable was asked for, and let go of the one for which that was long ago."""
    oldest = None
    with _lock:
        _recent[key] = executable
        _recent.move_to_end(key)
        if len(_recent) > MOST_UNUSED:
            oldest = _recent.popitem(last=False)
    del oldest  # outside of the lock, as memory is given back here


def _log(text: str) -> None:
    import logging  # 3 ms that `import primal` need not wait for

    logging.getLogger("primal").warning("%s", text)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Log how long the block took, under log_compiles."""
    if not settings().log_compiles:
        yield
        return
    start = time.perf_counter()
    yield
    _log(f"Finished {what} in {time.perf_counter() - start:.9f} sec")


def prepare(
    closed: ClosedJaxpr,
    name: str,
    device: Device,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
) -> Program:
    """The program of a jaxpr on a device, ready to run."""
    engine = devices.compiling_engine(device)
    simplified = simplify(closed, RULES[engine.name])
    jaxpr = simplified.jaxpr
    if keep_unused:
        kept = tuple(range(len(jaxpr.invars)))
    else:
        used = {v for eqn in jaxpr.eqns for v in eqn.invars} | set(jaxpr.outvars)
        kept = tuple([i for i, v in enumerate(jaxpr.invars) if v in used])
    smaller = ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[i] for i in kept]), simplified.consts)
    # A function of a tracer may be compiled to be looked at: its costs, say.
    given: list[Any] = [c if isinstance(c, Tracer) else as_array(c) for c in simplified.consts]
    flags = donated or (False,) * len(jaxpr.invars)
    usable = _usable_donations(jaxpr, flags, kept)
    donated_inputs = (False,) * len(given) + tuple([usable[i] for i in kept])
    engine, executable = executable_for(smaller, name, device, donated_inputs)
    return Program(
        executable,
        engine.host_buffers,
        given,
        kept,
        tuple([i for i, d in enumerate(usable) if d]),
        closed,
        device,
    )


def _usable_donations(jaxpr: Jaxpr, flags: Sequence[bool], kept: Sequence[int]) -> list[bool]:
    """The donated inputs that an output of the same type can take the memory of.

    Warns of those for which there is none; what the program does not read stays the caller's.
    """
    free = [v.aval.strong() for v in jaxpr.outvars]
    usable = [False] * len(flags)
    useless = []
    for i in kept:
        if flags[i]:
            aval = jaxpr.invars[i].aval.strong()
            usable[i] = aval in free
            if usable[i]:
                free.remove(aval)
            else:
                useless.append(str(aval))
    if useless:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(useless)}. No result that is free "
            "has their shape and dtype, so they were not donated: donate what a result replaces.",
            stacklevel=user_stacklevel(),
        )
    return usable


def run_closed(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[ArrayImpl]:
    """Run a program on concrete operands where they live."""
    place = placement_of(name, [*args, *closed.consts])
    device = devices.default() if place is None else place.device
    found = _by_jaxpr.get(closed)
    if found is None:
        found = _by_jaxpr[closed] = {}
    key = (device, settings().trace_key)
    program = found.get(key)
    if program is None:
        program = found[key] = prepare(closed, name, device)
    arrays = [
        ArrayImpl(a.aval, np.asarray(a.val)) if type(a) is Literal else as_array(a) for a in args
    ]
    where = place if place is not None else default_placement(device)
    return run_program(closed, program, arrays, where, name)


def run_program(
    closed: ClosedJaxpr,
    program: Program,
    arrays: Sequence[ArrayImpl],
    place: Placement | None,
    name: str,
) -> list[ArrayImpl]:
    """Run a program; under debug_key_reuse, its random keys must not have been used."""
    if not settings().debug_key_reuse:
        return program.run(arrays, place)
    values = [a.numpy() for a in (*map(as_array, closed.consts), *arrays)]
    watch.reuse.before_program(closed, values, name)
    outs = program.run(arrays, place)
    watch.reuse.after_program(closed, [x.numpy() for x in outs])
    return outs


def default_placement(device: Device) -> Placement | None:
    """How results of computations on uncommitted arrays are placed."""
    if device.platform == "cpu" and device.id == 0:
        return None
    return Placement(device, False)


install_program_runner(run_closed)
