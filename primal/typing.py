"""Types for annotations of user code.

def scaled(x: primal.typing.ArrayLike, dtype: primal.typing.DTypeLike = None) -> primal.Array: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

from primal.ir.trace import Array

# What functions take for an array. Lists and tuples are none: they are rejected where JAX does.
if TYPE_CHECKING:
    ArrayLike: TypeAlias = Union[  # noqa: UP007
        Array, np.ndarray[Any, Any], np.bool_, np.number[Any], bool, int, float, complex
    ]
else:  # isinstance(x, ArrayLike) takes no parameters
    ArrayLike = Union[  # noqa: UP007
        Array, np.ndarray, np.bool_, np.number, bool, int, float, complex
    ]
# What functions take for a dtype: names, NumPy dtypes, scalar types, Python's types.
DTypeLike: TypeAlias = Union[str, type[Any], np.dtype[Any], None]  # noqa: UP007

__all__ = ["ArrayLike", "DTypeLike"]
