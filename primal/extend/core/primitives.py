"""The records of all operations, by their names and `_p`, as in `sin_p`."""

from typing import Any as _Any

from primal import lax as _lax


def __getattr__(name: str) -> _Any:
    if name.endswith("_p") and hasattr(_lax, name):
        return getattr(_lax, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
