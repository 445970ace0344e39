"""Python scalars beside arrays: here they must have the array's dtype; primal.numpy promotes."""

from __future__ import annotations

from typing import Any

from primal.ir.trace import aval_of

_SCALARS = frozenset((bool, int, float, complex))


def alike(name: str, *operands: Any) -> tuple[Any, ...]:
    """The operands. TypeError if one is a Python scalar whose default dtype the others lack.

    >>> alike("add", 1, 2)
    (1, 2)
    """
    for x in operands:
        if type(x) in _SCALARS:
            if len({aval_of(y).dtype for y in operands}) > 1:
                raise TypeError(
                    f"[{name}] expected operands of one dtype, got "
                    f"{', '.join(aval_of(y).dtype.name for y in operands)}: {name} requires "
                    "arguments to have the same dtypes. The function of that name in primal.numpy "
                    "promotes."
                )
            break
    return operands
