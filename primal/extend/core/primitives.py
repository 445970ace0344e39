"""The records of all operations, by their names and `_p`, as in `sin_p`."""

from typing import Any as _Any

from primal import lax as _lax

# Those that JAX calls otherwise than the operation.
_RECORDS = {"add_jaxvals_p": "add_any_p", "remat_p": "remat2_p"}


def __getattr__(name: str) -> _Any:
    name = _RECORDS.get(name, name)
    if name.endswith("_p") and hasattr(_lax, name):
        return getattr(_lax, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_RECORDS, *[name for name in dir(_lax) if name.endswith("_p")]]
