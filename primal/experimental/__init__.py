"""What may still change. Every name is loaded on first use."""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from primal.api.callbacks import io_callback as io_callback

# Public name -> the module it is in.
_NAMES = {
    "io_callback": "primal.api.callbacks",
    "enable_x64": "primal.experimental.x64",
    "disable_x64": "primal.experimental.x64",
}
_SUBMODULES = frozenset({
    "checkify", "compilation_cache", "jet", "key_reuse", "layout", "ode", "random", "x64",
})  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _NAMES:
        return getattr(_importlib.import_module(_NAMES[name]), name)
    if name in _SUBMODULES:
        try:
            return _importlib.import_module(f"primal.experimental.{name}")
        except ModuleNotFoundError as e:
            if e.name != f"primal.experimental.{name}":
                raise
    raise AttributeError(f"module 'primal.experimental' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
