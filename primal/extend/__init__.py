"""For code that is built on this library: programs as values. Its module is loaded on first use."""

import importlib as _importlib
from typing import Any as _Any

_MODULES = frozenset({"backend", "core", "linear_util", "source_info_util"})


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _importlib.import_module(f"primal.extend.{name}")
    raise AttributeError(f"module 'primal.extend' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
