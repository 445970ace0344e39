"""`primal.scipy`: SciPy's functions on arrays that can be differentiated, batched and compiled.

Names, argument order and defaults are those of `jax.scipy`. Modules load with their first use.
"""

import importlib as _importlib
from typing import Any as _Any

_SUBMODULES = frozenset({
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
})  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _importlib.import_module(f"primal.scipy.{name}")
    raise AttributeError(f"module 'primal.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_SUBMODULES)
