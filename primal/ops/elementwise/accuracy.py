"""A function of one operand computed as accurately as the caller asks.

`accuracy` is a parameter of one op, `accurate`, which carries the function: as a parameter of the
functions themselves, every call of the thirteen would pay for what hardly any call says. XLA's
compilers for accelerators choose among implementations by it. Compilers for CPUs, XLA's and ours,
and NumPy have one implementation of each function, and compute with that whatever is asked.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

from primal.ir.op import ELEMENTWISE, Op, by_kind
from primal.ops.types import NOT_LINEAR


class AccuracyMode(enum.Enum):
    """How accurate a function is asked to be.

    >>> lax.AccuracyMode.HIGHEST.name
    'HIGHEST'
    """

    HIGHEST = 1
    DEFAULT = 2


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The error a caller can do with: absolute, relative, in units of the last place.

    >>> lax.Tolerance(rtol=1e-3)
    Tolerance(atol=0.0, rtol=0.001, ulps=0)
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        numbers = (self.atol, self.rtol, self.ulps)
        if not all(n >= 0 for n in numbers) or not any(numbers):
            raise ValueError(
                f"[Tolerance] expected no negative number and one that is positive, got {self}."
            )
        if self.ulps != int(self.ulps):
            raise TypeError(f"[Tolerance] expected a whole number of ulps, got {self.ulps!r}.")


def _accurate_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, fun: Op, accuracy: Any
) -> Any:
    def call(op: Op, x: Any) -> Any:
        return accurate(x, fun=op, accuracy=accuracy)

    return fun.jvp(primals, tangents, call=call)


accurate = Op(
    name="accurate",
    kind=ELEMENTWISE,
    type=lambda x, *, fun, accuracy: fun.type(x),
    impl=lambda x, *, fun, accuracy: fun.impl(x),
    jvp=_accurate_jvp,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x, *, fun, accuracy: fun.hlo(b, x, accuracy=accuracy),
    kernel=lambda k, x, *, fun, accuracy: fun.kernel(k, x),
    show=lambda params: {"accuracy": params["accuracy"]},
    title=lambda params: params["fun"].name,
)
