"""The limits of dtypes: `finfo` and `iinfo` as classes, so that `isinstance` knows what they give.

What they give is made, and shared, by NumPy and ml_dtypes: their classes are registered here.
Subclasses of those would give objects of whichever class asked first.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import ml_dtypes
import numpy as np

from primal.base.dtypes import KIND, KeyType, as_dtype, to_real_dtype


def _own_dtype(x: Any) -> Any:
    """The dtype of an array, whose limits may be asked for; anything else itself."""
    if type(x) in (str, type) or isinstance(x, np.dtype):  # getattr takes 0.2 µs where it fails
        return x
    inner = getattr(x, "dtype", None)
    return inner if isinstance(inner, (np.dtype, KeyType)) else x


class finfo(metaclass=ABCMeta):  # noqa: B024
    """The limits of a float dtype: eps, max, min, tiny, bits and so on.

    Of a complex dtype those of its parts, of an array those of its dtype. Raises ValueError for
    other dtypes.

    >>> limits = jnp.finfo(jnp.bfloat16)
    >>> limits.bits, isinstance(limits, jnp.finfo)
    (16, True)
    """

    def __new__(cls, dtype: Any) -> Any:
        found = as_dtype(_own_dtype(dtype))
        if KIND.get(found) not in ("f", "c"):
            raise ValueError(f"[finfo] expected a float or complex dtype, got {found}; see iinfo.")
        return ml_dtypes.finfo(to_real_dtype(found))


class iinfo(metaclass=ABCMeta):  # noqa: B024
    """The limits of an integer dtype, an array's or a number's: min, max, bits.

    Raises ValueError for other dtypes.

    >>> jnp.iinfo(jnp.int8).max
    127
    """

    def __new__(cls, int_type: Any) -> Any:
        # Of a value, as NumPy's, that of its type.
        scalar = isinstance(int_type, int | float | complex)
        found = as_dtype(type(int_type) if scalar else _own_dtype(int_type))
        if KIND.get(found) not in ("i", "u"):
            raise ValueError(f"[iinfo] expected an integer dtype, got {found}; see finfo.")
        return ml_dtypes.iinfo(found)


finfo.register(np.finfo)  # also what ml_dtypes gives for its dtypes
iinfo.register(ml_dtypes.iinfo)
