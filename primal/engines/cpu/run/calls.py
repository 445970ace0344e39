"""Runs of a program: their slots and memory, and the calls back into Python from its steps."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.code import LINE
from primal.engines.cpu.graph import Value
from primal.engines.cpu.plan.memory import LARGE, PAGE
from primal.engines.cpu.plan.places import Places
from primal.engines.cpu.run import driver
from primal.engines.cpu.steps import Library
from primal.ir.op import HOST

MAPPED = 4 << 20
"""Bytes from which an arena is mapped."""


class Call:
    """A library call as a frame makes it: addresses of operands and results."""

    __slots__ = ("step", "impl", "params", "many", "reads", "outs", "drops", "private")

    def __init__(self, step: Library, places: Places, drops: Sequence[int]) -> None:
        self.step = step
        self.impl = step.impl
        self.params = step.params
        self.many = step.op.multiple
        # What a user's function is given it may keep: our memory is written again.
        self.private = step.op.kind is HOST
        self.reads = [_operand(x, places) for x in step.given]
        # Places, and whether the array stays the one that the call gives.
        self.outs = [
            (_Place(*places.address(n), n.shape, n.dtype, None), n in places.held)
            for n in step.outs
        ]
        self.drops = list(drops)


def _operand(x: Any, places: Places) -> Any:
    """(slot, offset, shape, dtype, strides or None) of an array, or a constant."""
    if not isinstance(x, Value):
        return x.val
    if x.node.word == "constant":
        return x.node.attr
    if x.node.word == "iota":
        return _counts(x)
    if not x.size:
        return np.empty(x.shape, x.node.dtype)
    slot, offset = places.address(x.node)
    size = x.node.dtype.itemsize
    strides = None if x.strides is None else tuple([s * size for s in x.strides])
    return _Place(slot, offset + x.offset * size, x.shape, x.node.dtype, strides)


def _counts(x: Value) -> Any:
    """A view of counts as a constant: no kernel writes them, and what repeats takes no memory."""
    dtype = x.node.dtype
    known = np.arange(x.node.shape[0], dtype=dtype)
    known.flags.writeable = False
    strides = [s * dtype.itemsize for s in x.steps()]
    return np.ndarray(x.shape, dtype, known, x.offset * dtype.itemsize, strides)


class _Place:
    __slots__ = ("slot", "offset", "shape", "dtype", "strides", "low", "size")

    def __init__(
        self, slot: int, offset: int, shape: tuple[int, ...], dtype: Any, strides: Any
    ) -> None:
        self.slot = slot
        self.offset = offset
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        # The bytes that the view spans, from `low` on: strides may be negative.
        spans = [
            (n - 1) * s
            for n, s in zip(shape, strides or _plain(shape, dtype.itemsize), strict=True)
        ]
        self.low = sum([s for s in spans if s < 0])
        self.size = sum([abs(s) for s in spans]) + dtype.itemsize


def _plain(shape: tuple[int, ...], size: int) -> list[int]:
    strides = []
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return strides[::-1]


def view(address: int, place: _Place) -> Any:
    """The array that lies at an address."""
    room = (ctypes.c_char * place.size).from_address(address + place.low)
    return np.ndarray(place.shape, place.dtype, room, -place.low, place.strides)


class Frame:
    """What one run of a program needs for itself. Frames are used again, by one run at a time."""

    __slots__ = (
        "slots", "slots_at", "context", "context_at", "arena", "held", "calls", "views",
    )  # fmt: skip

    def __init__(self, places: Places, calls: list[Call]) -> None:
        self.slots = (ctypes.c_int64 * places.slots)()
        self.slots_at = ctypes.addressof(self.slots)
        self.context = (ctypes.c_int64 * (driver.CONTEXT // 8))()
        self.context_at = ctypes.addressof(self.context)
        self.context[1] = id(self)
        if calls:
            self.context[2] = id(Frame.call)
        self.arena = arena(places.arena) if places.arena else None
        if self.arena is not None:
            self.slots[places.arena_slot] = self.arena.ctypes.data
        for slot, array in places.constants.items():
            self.slots[slot] = array.ctypes.data
        self.held: dict[int, Any] = {}
        self.calls = calls
        self.views: list[dict[_Place, Any]] = [{} for _ in calls]

    @property
    def status(self) -> Any:
        """The status word."""
        return ctypes.c_int32.from_address(self.context_at)

    def clear(self) -> None:
        """Let go of arrays after a run."""
        self.held.clear()

    def call(self, number: int) -> None:
        """Run a library call on what lies in memory now."""
        found = self.calls[number]
        for slot in found.drops:
            self.held.pop(slot, None)
        views = self.views[number]
        operands = [
            self._array(x, views, found.private) if type(x) is _Place else x for x in found.reads
        ]
        results = found.impl(*operands, **found.params)
        for (place, stays), out in zip(
            found.outs, results if found.many else (results,), strict=True
        ):
            array = _checked(found.step, out, place.shape, place.dtype)
            if not stays:
                if array.size:
                    np.copyto(self._array(place, views), array)
                continue
            # One that looks into other memory, an operand's say, would change with it.
            if array.base is not None or id(array) in map(id, operands):
                array = array.copy()
            self.held[place.slot] = array
            self.slots[place.slot] = data_of(array)

    def _array(self, place: _Place, views: dict[_Place, Any], private: bool = False) -> Any:
        """What lies at a place; the same object while it lies at the same address."""
        address = self.slots[place.slot] + place.offset
        if private:
            return view(address, place).copy()
        known = views.get(place)
        if known is None or known[0] != address:
            known = views[place] = address, view(address, place)
        return known[1]


def _checked(step: Library, out: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A library result as an array that kernels may read: of the type promised, contiguous."""
    array = out if type(out) is np.ndarray else np.asarray(out)
    if array.shape != shape or array.dtype != dtype:
        raise TypeError(
            f"[{step.op.name}] expected its impl to give {dtype}{list(shape)}, as its type rule "
            f"says, got {array.dtype}{list(array.shape)}. This is an error in the op, not in your "
            "program."
        )
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def arena(size: int) -> Any:
    """Bytes that begin at a cache line, many at a page.

    Much memory is mapped here rather than by NumPy, which asks for pages of 2 MB: making these
    ready took 0.6 s for 142 MB, small ones 0.1 s, and runs are no faster for it. It is private: a
    forked child has its own, and pages that could be shared took three times as long to get ready.
    """
    if size >= MAPPED:
        try:
            private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            return np.frombuffer(mmap.mmap(-1, size, flags=private), np.uint8)
        except OSError as e:
            raise MemoryError(f"[cpu] expected {size} bytes of memory, got none: {e}.") from None
    step = PAGE if size >= LARGE else LINE
    room = np.empty(size + step, np.uint8)
    return room[-room.ctypes.data % step :][:size]


@functools.cache
def object_field() -> int:
    """Where array objects hold the address of their data, in bytes; 0 if that is not known.

    Reading an address in Python takes 1 µs, by `ctypes` or `__array_interface__`. An array object
    holds it right behind its head, so native code reads it there, where a look at an array of
    this interpreter confirms that.
    """
    field = object.__basicsize__
    probe = np.zeros(3, np.int16)[1:]
    found = ctypes.c_void_p.from_address(id(probe) + field).value
    return field if found == probe.ctypes.data else 0


def data_of(array: Any) -> int:
    """The address of an array's data."""
    field = object_field()
    if field:
        return ctypes.c_int64.from_address(id(array) + field).value
    return int(array.ctypes.data)
