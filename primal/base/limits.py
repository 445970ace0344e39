"""`finfo` and `iinfo` as classes, so that `isinstance` knows what they give.

What they give is made, and shared, by NumPy and ml_dtypes: their classes are registered here.
Subclasses of those would give objects of whichever class asked first.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import ml_dtypes
import numpy as np

from primal.base import dtypes


class finfo(metaclass=ABCMeta):  # noqa: B024
    """The limits of a float dtype: eps, max, min, tiny, bits and so on.

    Of a complex dtype those of its parts. Raises ValueError for other dtypes.

    >>> limits = jnp.finfo(jnp.bfloat16)
    >>> limits.bits, isinstance(limits, jnp.finfo)
    (16, True)
    """

    def __new__(cls, dtype: Any) -> Any:
        return dtypes.finfo(dtype)


class iinfo(metaclass=ABCMeta):  # noqa: B024
    """The limits of an integer dtype: min, max, bits. Raises ValueError for other dtypes.

    >>> jnp.iinfo(jnp.int8).max
    127
    """

    def __new__(cls, int_type: Any) -> Any:
        return dtypes.iinfo(int_type)


finfo.register(np.finfo)  # also what ml_dtypes gives for its dtypes
iinfo.register(ml_dtypes.iinfo)
