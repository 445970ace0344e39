"""The engine protocol on the compiler: jaxprs in, executables out."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from primal.base.later import Later
from primal.engines.cpu.run import driver
from primal.engines.protocol import Device
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts

if TYPE_CHECKING:
    from primal.engines.cpu.program import CpuExecutable

# The modules of the compiler: another thread compiles the driver while they are loaded.
_program = Later("primal.engines.cpu.program")


class CpuEngine:
    """Programs compiled to vector loops; one device, whose memory is NumPy's."""

    name = "cpu"
    host_buffers = True

    def __init__(self) -> None:
        self._devices = [Device("cpu", 0, engine=self)]

    def get_ready(self) -> None:
        """Begin with the code that every program needs, in another thread."""
        driver.ahead()

    def devices(self) -> list[Device]:
        return self._devices

    def put(self, array: Any, device: Device) -> Any:
        return array

    def get(self, buffer: Any) -> Any:
        return buffer

    def memory_stats(self, device: Device) -> None:
        return None

    def lower(self, program: ClosedJaxpr, name: str = "main", donated: Sequence[bool] = ()) -> str:
        """The table of steps and the LLVM IR of its kernels."""
        text: str = _program.Plan(hoist_consts(program), name, donated).text()
        return text

    def compile(
        self,
        program: ClosedJaxpr,
        *,
        name: str = "main",
        device: Device | None = None,
        donated: Sequence[bool] = (),
    ) -> CpuExecutable:
        """An executable. Outputs may be given the memory of donated inputs."""
        # The collector would look through all that there is and find nothing: a tenth of the time.
        collecting = gc.isenabled()
        try:
            if collecting:
                gc.disable()
            made: CpuExecutable = _program.CpuExecutable(hoist_consts(program), name, donated)
            return made
        finally:
            if collecting:
                gc.enable()
