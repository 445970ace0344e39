"""Steps that keep meeting numbers below the normal ones get other code (see `subnormals`)."""

from __future__ import annotations

import bisect
import ctypes
import dataclasses
import functools

from primal.engines.cpu import driver, events
from primal.engines.cpu.code import Module
from primal.engines.cpu.objects import kernels_for
from primal.engines.cpu.schedule import Group
from primal.engines.cpu.steps import Loop, RoutineSpec


@dataclasses.dataclass(frozen=True)
class Careful:
    """The code of a spec for operands and results that are subnormal numbers."""

    spec: RoutineSpec

    def write(self, module: Module, name: str) -> None:
        """Add the code to a module."""
        module.careful = True
        self.spec.write(module, name)
        module.careful = False


def met(_: None, address: int) -> None:
    """Give the step of the record at an address careful code, if it is code of a program.

    The driver calls it, as it calls all of Python, with an object and a number.
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
                # Records are read once per step, so that others may run them meanwhile.
                table[at] = kernels_for([spec])[spec]
            return


@functools.cache
def attach() -> None:
    """Have the driver tell."""
    place = (ctypes.c_void_p * 2).from_address(driver.functions()["watch"])
    place[:] = [id(None), id(met)]
