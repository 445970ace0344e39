"""Programs run by the `impl` of each op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.protocol import Device
from primal.ir.evaluate import run_numpy
from primal.ir.jaxpr import ClosedJaxpr, count_eqns


class ReferenceExecutable:
    """A program to be interpreted."""

    def __init__(self, program: ClosedJaxpr) -> None:
        self.program = program

    def execute(self, buffers: Sequence[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            return run_numpy(self.program.jaxpr, self.program.consts, buffers)

    def as_text(self) -> str:
        return str(self.program)

    def cost_analysis(self) -> dict[str, float]:
        return {"equations": float(count_eqns(self.program.jaxpr))}

    def memory_analysis(self) -> Any:
        jaxpr = self.program.jaxpr
        sizes = [
            sum(v.aval.size * v.aval.dtype.itemsize for v in group)
            for group in (jaxpr.invars, jaxpr.outvars)
        ]
        return {"argument_size_in_bytes": sizes[0], "output_size_in_bytes": sizes[1]}


class ReferenceEngine:
    """NumPy on the host; one device."""

    name = "reference"
    host_buffers = True

    def __init__(self, devices: list[Device] | None = None) -> None:
        self._devices = devices or [Device("cpu", 0, engine=self)]

    def devices(self) -> list[Device]:
        return self._devices

    def put(self, array: Any, device: Device) -> Any:
        return array

    def get(self, buffer: Any) -> Any:
        return buffer

    def memory_stats(self, device: Device) -> None:
        return None

    def lower(self, program: ClosedJaxpr, name: str, donated: Sequence[bool] = ()) -> str:
        return str(program)

    def compile(
        self, program: ClosedJaxpr, *, name: str, device: Device, donated: tuple[bool, ...]
    ) -> ReferenceExecutable:
        return ReferenceExecutable(program)
