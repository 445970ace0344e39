"""Python scalars beside arrays: here they must be of the array's kind; primal.numpy promotes."""

from __future__ import annotations

from typing import Any

from primal.base import dtypes
from primal.ir.trace import aval_of

_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}


def _kind(x: Any) -> str:
    kind = _KINDS.get(type(x))
    if kind is None:
        kind = dtypes.KIND.get(aval_of(x).dtype, "k")
    return "i" if kind == "u" else kind


def alike(name: str, *operands: Any) -> tuple[Any, ...]:
    """The operands. TypeError if one is a Python scalar of another kind than the others are.

    >>> alike("add", 1, 2)
    (1, 2)
    """
    for x in operands:
        if type(x) in _KINDS:
            kinds = {_kind(y) for y in operands}
            if len(kinds) > 1:
                raise TypeError(
                    f"[{name}] expected operands of one dtype, got "
                    f"{', '.join(aval_of(y).dtype.name for y in operands)}: {name} requires "
                    "arguments to have the same dtypes. The function of that name in primal.numpy "
                    "promotes."
                )
            break
    return operands
