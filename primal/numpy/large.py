"""Functions that run as one compiled program where they are called eagerly on large arrays.

Op by op, each pass reads and writes arrays that leave the caches: a search among a million numbers
took five times as long, one by NumPy three times. Small arrays do not wait for a compiler.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

from primal.base.config import settings
from primal.base.later import Later
from primal.ir.state import state
from primal.runtime import devices
from primal.runtime.array import ArrayImpl
from primal.runtime.eager import root

F = TypeVar("F", bound=Callable[..., Any])
_jit = Later("primal.api.jit")

LARGE = 1 << 18
"""Elements of the largest operand from which a function is compiled."""


def compiled_when_large(
    static: tuple[int, ...] = (), least: int = LARGE, shape: int | None = None
) -> Callable[[F], F]:
    """The function of arrays and, at the positions `static`, of what can be hashed.

    Its size is that of the largest array, or of the argument `shape`.

    >>> @compiled_when_large(static=(1,))
    ... def power(x, n):
    ...     return x**n
    >>> float(power(jnp.full(1 << 18, 3.0), 2)[0])
    9.0
    """

    def decorate(fun: F) -> F:
        made: list[Any] = []

        @functools.wraps(fun)
        def call(*args: Any) -> Any:
            if shape is None:
                size = max([x.aval.size for x in args if type(x) is ArrayImpl], default=0)
            else:
                size = math.prod(args[shape])
            if (
                size >= least
                and state.trace is root
                and not any(type(x) is ArrayImpl and x.placement is not None for x in args)
                and settings().remembered is not None
                and devices.default_is_host()
            ):
                if not made:
                    made.append(_jit.jit(fun, static_argnums=static))
                return made[0](*args)
            return fun(*args)

        return call  # type: ignore[return-value]

    return decorate
