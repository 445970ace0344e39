"""Steps that keep meeting numbers below the normal ones get other code (see `subnormals`)."""

from __future__ import annotations

import bisect
import ctypes
import functools
import itertools
import platform

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.run import driver, events, subnormals
from primal.engines.cpu.run.objects import kernels_for
from primal.engines.cpu.steps import Loop, RoutineSpec


@structure
class Careful:
    """The code of a spec for operands and results that are subnormal numbers."""

    spec: RoutineSpec

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        module.careful = True
        self.spec.write(module, name)
        module.careful = False


@structure
class Faster:
    """What chooses between two codes, as a spec: a table of its function and what that is given."""

    machine: str

    def write(self, module: Module, name: str) -> None:
        """Add both."""
        driver.add_table(module, name, subnormals.faster(self.machine), ("faster", "given"))


trials = np.zeros((1 << 16, 16), np.uint64)
"""Pages that none is on take no memory. They are not used again, as little as their code is."""
_numbers = itertools.count()


def met(_: None, address: int) -> None:
    """Have the step of the record at an address try careful code, if it is code of a program.

    The driver calls it once per record, as it calls all of Python, with an object and a number.
    """
    for program in events.live():
        tables = program.tables
        for table, begins in tables.kept:
            at = (address - table.ctypes.data) // 8
            if not 0 <= at < len(table):
                continue
            step = begins[bisect.bisect(begins, at, key=lambda begin: begin[0]) - 1][1]
            found = None
            if type(step) is Group:
                found = tables.instances[step]
            elif type(step) is Loop:
                found = tables.fused.get(step)
            if found is not None:
                spec = Careful(found.spec)
                code = kernels_for([spec, Faster(platform.machine())])[spec]
                number = next(_numbers)
                if number < len(trials):
                    trials[number, :3] = table[at], code, subnormals.ASKS
                    # Others may run the record meanwhile: its code comes last. Only x86 tells
                    # of such numbers, and it stores in order.
                    length = int(table[at + 1]) % (1 << 32)
                    table[at + 1] = (subnormals.FIRST + number) << 32 | length
                    table[at] = _faster()
            return


@functools.cache
def _faster() -> int:
    """The address of the code of records that choose."""
    spec = Faster(platform.machine())
    code, given = (ctypes.c_int64 * 2).from_address(kernels_for([spec])[spec])
    place = (ctypes.c_void_p * 2).from_address(given)
    place[:] = [trials.ctypes.data, driver.functions()["wall"]]
    return code


@functools.cache
def attach() -> None:
    """Have the driver tell."""
    place = (ctypes.c_void_p * 2).from_address(driver.functions()["watch"])
    place[:] = [id(None), id(met)]
