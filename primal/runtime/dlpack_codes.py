"""Arrays through DLPack of dtypes that NumPy has no code for: bfloat16 and floats of 8 bits.

Their bits travel as unsigned integers: the code in the capsule's descriptor is replaced before
NumPy reads it. Layout: dmlc/dlpack, `dlpack.h`; a DLManagedTensor begins with the DLTensor.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from primal.base import dtypes

# DLDataTypeCode -> dtype, for those that NumPy lacks.
CODES = {
    4: dtypes.bfloat16,
    7: dtypes.float8_e3m4,
    8: dtypes.float8_e4m3,
    9: dtypes.float8_e4m3b11fnuz,
    10: dtypes.float8_e4m3fn,
    11: dtypes.float8_e4m3fnuz,
    12: dtypes.float8_e5m2,
    13: dtypes.float8_e5m2fnuz,
    14: dtypes.float8_e8m0fnu,
}
UNSIGNED = 1


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


class _Recoded:
    """A producer whose capsule says unsigned integers; `dtype` is what it said before."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self.dtype: Any = None

    def __dlpack_device__(self) -> Any:
        return self._producer.__dlpack_device__()

    def __dlpack__(self, **_: Any) -> Any:
        # Without a version: a plain DLManagedTensor.
        capsule = self._producer.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
        self.dtype = CODES.get(tensor.code)
        if self.dtype is not None:
            tensor.code = UNSIGNED
        return capsule


def to_numpy(producer: Any) -> np.ndarray[Any, Any]:
    """The memory of an object with the DLPack protocol, as NumPy sees it.

    >>> to_numpy(np.arange(2)).tolist()
    [0, 1]
    """
    if not hasattr(producer, "__dlpack__") or not hasattr(producer, "__dlpack_device__"):
        raise TypeError(
            f"[from_dlpack] expected an object with __dlpack__ and __dlpack_device__, got a "
            f"{type(producer).__name__}. A capsule does not say where its memory is: pass the "
            "array that made it."
        )
    try:
        return np.from_dlpack(producer)
    except RuntimeError:
        recoded = _Recoded(producer)
        bits = np.from_dlpack(recoded)
        if recoded.dtype is None:
            raise
        return bits.view(recoded.dtype)
