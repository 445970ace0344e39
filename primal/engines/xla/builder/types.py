"""Types and constants as StableHLO text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base import dtype_table, dtypes
from primal.ir.avals import Aval

BOOL = np.dtype(bool)

# XLA has no one-bit integers ("i1" is bool in StableHLO). The six-bit floats have no arrays in
# jaxlib, and their constants end the process (0.10 to 0.12).
_ABSENT = frozenset((dtypes.int1, dtypes.uint1, dtypes.float6_e2m3fn, dtypes.float6_e3m2fn))

# Digits after the point with which `%e` reads back as the same number.
_DIGITS = {dtypes.bfloat16: 6, dtypes.float16: 6, dtypes.float32: 9, dtypes.float64: 17}


def physical(dtype: Any) -> np.dtype[Any]:
    """The dtype of the bits that represent `dtype` on a device.

    Keys are carried by an integer dtype; float0, whose arrays hold nothing, by bool.
    """
    return BOOL if dtype == dtypes.float0 else dtypes.physical_dtype(dtype)


def element(dtype: Any) -> str:
    """The element type, as in `f32`; TypeError for a dtype that XLA lacks."""
    if dtype in _ABSENT:
        raise TypeError(
            f"[xla] expected a dtype that XLA knows, got {dtype}. Convert it to a wider one "
            "(or to bool) first."
        )
    return dtypes.mlir_name(dtype)


def kind_of(dtype: Any) -> str:
    """One letter: b bool, i signed, u unsigned, f real floating point, c complex."""
    return dtype_table.KIND[physical(dtype)]


_MOST = 2**60


def tensor(aval: Aval) -> str:
    """The tensor type, as in `tensor<2x3xf32>`; remembered in the aval."""
    text = aval.mlir
    if text is None:
        if math.prod([n or 1 for n in aval.shape]) >= _MOST:
            # XLA ends the process where the product of the lengths overflows, with zeros among
            # them too.
            raise MemoryError(
                f"[xla] expected arrays of fewer than 2**60 elements, got shape {aval.shape}."
            )
        dims = "".join([f"{n}x" for n in aval.shape])
        text = aval.mlir = f"tensor<{dims}{element(aval.dtype)}>"
    return text


def scalar_literal(value: Any, dtype: Any) -> str:
    """One number as it stands inside `dense<…>`, exact for every dtype.

    >>> scalar_literal(1.5, np.dtype('f4')), scalar_literal(float('nan'), np.dtype('f4'))
    ('1.500000e+00', '0x7FC00000')
    """
    dtype = physical(dtype)
    item = np.asarray(value).astype(dtype)[()]
    if dtype == BOOL:
        return "true" if item else "false"
    if dtype in _DIGITS:
        return _float_literal(item, dtype)
    kind = dtype_table.KIND[dtype]
    if kind == "c":
        part = dtype_table.REAL[dtype]
        return f"({_float_literal(item.real, part)}, {_float_literal(item.imag, part)})"
    if kind in "iu":
        return str(int(item))
    # The narrow floats: some have no decimal form for their special values, all have bytes.
    return f'"0x{item.tobytes().hex().upper()}"'


def _float_literal(item: Any, dtype: np.dtype[Any]) -> str:
    number = float(item)
    short = f"{number:.6e}"
    if np.isfinite(number):
        if dtype.type(float(short)) == item:
            return short
        text = f"{number:.{_DIGITS[dtype]}e}"
        if dtype.type(float(text)) == item:
            return text
    # MLIR reads a hexadecimal integer as the bits of the float.
    return f"0x{int.from_bytes(item.tobytes(), 'little'):0{2 * dtype.itemsize}X}"


def array_literal(value: np.ndarray[Any, Any], dtype: Any) -> str:
    """An array as it stands inside `dense<…>`: a splat, short integers, or its bytes."""
    dtype = physical(dtype)
    value = np.ascontiguousarray(value, dtype)
    if not value.size:
        return ""
    raw = value.tobytes()
    if raw == raw[: dtype.itemsize] * value.size:
        return scalar_literal(value.reshape(-1)[0], dtype)
    if value.size <= 16 and dtype_table.KIND[dtype] in "iu":
        return str(value.astype(object).tolist())
    # Bool and the sub-byte dtypes take one byte per element here, which is how NumPy holds them.
    return f'"0x{raw.hex().upper()}"'
