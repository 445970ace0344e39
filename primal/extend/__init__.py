"""For code that is built on this library: programs as values. Its module is loaded on first use."""

import importlib as _importlib
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    if name == "core":
        return _importlib.import_module("primal.extend.core")
    raise AttributeError(f"module 'primal.extend' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "core"})
