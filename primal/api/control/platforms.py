"""Functions that depend on the platform; functions under a name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from primal.api.control.bodies import check_callable
from primal.api.operands import operand
from primal.base.errors import api_boundary
from primal.base.pytree import tree_map
from primal.runtime import devices
from primal.runtime.refs import Ref

Tree = Any

# The names one platform goes by, most particular first.
_NAMES = {"cuda": ("cuda", "gpu"), "gpu": ("cuda", "gpu"), "rocm": ("rocm", "gpu")}


@api_boundary
def platform_dependent(
    *args: Any, default: Callable[..., Tree] | None = None, **per_platform: Callable[..., Tree]
) -> Tree:
    """per_platform[platform](*args) for the platform of the default device, else default(*args).

    Keywords name platforms: cpu, cuda, rocm, tpu. The choice is made while tracing: a jitted
    function that is called with arrays committed to a device of another platform keeps it.

    NotImplementedError where the platform has no function and there is no default.

    >>> platform_dependent(1.0, cpu=lambda x: x + 1.0, default=lambda x: x * 5.0)
    Array(2., dtype=float32, weak_type=True)
    """
    check_callable("platform_dependent", **per_platform)
    platform = devices.default().platform
    for name in _NAMES.get(platform, (platform,)):
        if name in per_platform:
            return per_platform[name](*tree_map(_operand, args))
    if default is None:
        raise NotImplementedError(
            f"[platform_dependent] expected a function for the platform {platform} or a default, "
            f"got functions for {sorted(per_platform) or 'none'}."
        )
    check_callable("platform_dependent", default=default)
    return default(*tree_map(_operand, args))


def _operand(x: Any) -> Any:
    return x if isinstance(x, Ref) else operand(x)


def composite(
    decomposition: Callable[..., Tree], name: str, version: int = 0
) -> Callable[..., Tree]:
    """A function under a name that a compiler may know, given by its decomposition.

    No engine here knows composites, so the decomposition is what runs, and it is differentiated and
    mapped like any function. Keyword arguments are attributes: Python values, not traced. TypeError
    for a name that is no string or a version that is no integer.

    >>> scaled = composite(lambda x, *, by: x * by, name="my.scaled", version=1)
    >>> scaled(2.0, by=3)
    Array(6., dtype=float32, weak_type=True)
    """
    check_callable("composite", decomposition=decomposition)
    if not isinstance(name, str) or isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(
            f"[composite] expected a name and an integer version, got {name!r} and {version!r}."
        )

    @functools.wraps(decomposition)
    def named(*args: Any, **attributes: Any) -> Tree:
        return decomposition(*tree_map(operand, args), **attributes)

    return named
