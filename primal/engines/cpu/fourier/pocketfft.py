"""The loops of NumPy's Fourier transforms over rows, called from compiled code.

NumPy's transforms are generalised ufuncs, objects whose layout is part of NumPy's binary interface:
they hold the addresses of loops, which need neither Python nor its lock. A call of `numpy.fft`
takes 10 µs, its loop over 128 numbers half of one.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Sequence

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import Code, Module
from primal.engines.cpu.reader import Reader


class _Ufunc(ctypes.Structure):
    """The beginning of NumPy's `PyUFuncObject`."""

    _fields_ = (
        ("head", ctypes.c_char * object.__basicsize__),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


@functools.cache
def loop(name: str, types: str) -> tuple[int, int]:
    """The addresses of a ufunc's loop for the types, and of what it is given; 0 if not there."""
    try:
        module = importlib.import_module("numpy.fft._pocketfft_umath")
    except ImportError:
        return 0, 0
    ufunc = getattr(module, name, None)
    if ufunc is None or types not in ufunc.types:
        return 0, 0
    found = _Ufunc.from_address(id(ufunc))
    head = found.nin, found.nout, found.nargs, found.ntypes
    if head != (2, 1, 3, len(ufunc.types)):
        return 0, 0
    i = ufunc.types.index(types)
    return found.functions[i] or 0, (found.data[i] or 0) if found.data else 0


class Rows:
    """Calls of a loop over rows of n numbers, m of each result, times a factor in memory.

    `strides` are bytes from row to row of x and of the result, and from one number to the next.
    """

    def __init__(
        self, c: Code, loop: str, data: str, factor: str, sizes: Sequence[str],
        strides: Sequence[str],
    ) -> None:  # fmt: skip
        self.c = c
        self.call = loop, data
        over_x, over_out, step_x, step_out = strides
        self.places = self._listed("ptr", ("null", factor, "null"))
        self.sizes = self._listed("i64", ("0", *sizes))
        self.strides = self._listed("i64", (over_x, "0", over_out, step_x, step_out))

    def _listed(self, kind: str, values: Sequence[str]) -> str:
        p = self.c.on_stack(f"[{len(values)} x i64]")
        for i, value in enumerate(values):
            self._put(kind, value, p, i)
        return p

    def _put(self, kind: str, value: str, p: str, i: int) -> None:
        c = self.c
        c.do(f"store {kind} {value}, ptr {c.new(f'getelementptr i64, ptr {p}, i64 {i}')}")

    def run(self, x: str, out: str, rows: str) -> None:
        """The transforms of some rows from the first on, which may be over them."""
        self._put("ptr", x, self.places, 0)
        self._put("ptr", out, self.places, 2)
        self._put("i64", rows, self.sizes, 0)
        (loop, data), (p, n, s) = self.call, (self.places, self.sizes, self.strides)
        self.c.do(f"call void {loop}(ptr {p}, ptr {n}, ptr {s}, ptr {data})")


@structure
class Again:
    """Rows whose first result is no number, transformed by a loop.

    Transforms of long rows meet an infinity elsewhere than pocketfft does, and a convolution
    overflows before its result. The first result is the sum of all, or by a convolution.

    Words: the loop and what it is given; bytes from row to row of x and of the result, from one
    number to the next; numbers of a row, and of its result; the factor.
    """

    real: str
    parts: int
    plain = True

    def write(self, module: Module, name: str) -> None:
        """Add the function."""
        r = Reader(module)
        c = r.c
        x, _, out = r.array(), r.array(), r.array()
        loop, data = r.pointer(), r.pointer()
        over_x, over_out, step_x, step_out, n, m, factor = (r.word() for _ in range(7))
        real = "float" if self.real == "f" else "double"
        held = held_factor(c, real, factor)
        rows = Rows(c, loop, data, held, (n, m), (over_x, over_out, step_x, step_out))

        def unit(u: str) -> None:
            given, made = r.moved(x, (u, over_x)), r.moved(out, (u, over_out))
            lost = "false"
            for i in range(self.parts):
                p = c.new(f"getelementptr {real}, ptr {made}, i64 {i}")
                part = c.new(f"load {real}, ptr {p}")
                gap = c.new(f"fsub {real} {part}, {part}")
                lost = c.new(f"or i1 {lost}, {c.new(f'fcmp uno {real} {gap}, {gap}')}")

            def again() -> list[str]:
                rows.run(given, made, "1")
                return []

            c.guarded(lost, [], again)

        r.units(name, unit)


def bits_of(factor: float) -> int:
    """A factor as a word of a record."""
    return int(np.float64(factor).view(np.int64))


def held_factor(c: Code, real: str, bits: str) -> str:
    """A factor that is the bits of a float64, in memory as the loops take it."""
    number = c.new(f"bitcast i64 {bits} to double")
    if real == "float":
        number = c.new(f"fptrunc double {number} to float")
    held = c.on_stack(real)
    c.do(f"store {real} {number}, ptr {held}")
    return held
