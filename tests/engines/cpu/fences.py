"""Arrays beside memory that nobody may touch."""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import Any

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)


def fenced(shape: Any, dtype: Any, end: bool = True) -> Any:
    """An array between two pages without access, directly before or behind one."""
    dtype, page = np.dtype(dtype), mmap.PAGESIZE
    size = math.prod(shape) * dtype.itemsize
    pages = -(-size // page) + 2
    whole = np.frombuffer(mmap.mmap(-1, pages * page), np.uint8)
    for fence in (0, pages - 1):
        at = ctypes.c_void_p(whole.ctypes.data + fence * page)
        assert _libc.mprotect(at, ctypes.c_size_t(page), 0) == 0
    start = (pages - 1) * page - size if end else page
    return whole[start : start + size].view(dtype).reshape(shape)
