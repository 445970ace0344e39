"""Arrays of other libraries through DLPack."""

from __future__ import annotations

from typing import Any

from primal import numpy as jnp
from primal.base import dtypes

# Those with a code in the protocol that NumPy, which makes the capsules, writes.
_SUPPORTED = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
})  # fmt: skip


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """The array of an object with the DLPack protocol, as `primal.numpy.from_dlpack`.

    >>> from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    return jnp.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be passed through DLPack.

    >>> is_supported_dtype("float32"), is_supported_dtype("int4")
    (True, False)
    """
    return dtypes.as_dtype(dtype).name in _SUPPORTED


__all__ = ["from_dlpack", "is_supported_dtype"]
