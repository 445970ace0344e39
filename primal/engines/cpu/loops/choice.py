"""Which loops are one function, and which of the two kinds."""

from __future__ import annotations

from primal.engines.cpu.loops.fused import Fused
from primal.engines.cpu.loops.native import Native
from primal.engines.cpu.loops.registers import strips_of, worth_fusing
from primal.engines.cpu.loops.vectors import Vectors, fits_vectors
from primal.engines.cpu.plan.places import Places
from primal.engines.cpu.steps import Loop


def one_function(step: Loop, places: Places) -> Native | None:
    """The function that a loop is, or None where its steps are walked."""
    if space := strips_of(step):
        return Fused(step, places, worth_fusing(step), space)
    if fits_vectors(step):
        return Vectors(step, places)
    most = worth_fusing(step)
    return Fused(step, places, most) if most else None
