"""The one file that loads OpenBLAS: a copy of our own, that runs in one thread.

Products are split by pools of our own, which yield to neighbours; OpenBLAS's threads wait for
each other in every call, a time slice of 4 ms and more where others compute as well. NumPy and
SciPy each bring a copy whose number of threads is theirs and their users' to set, so that neither
would do.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from typing import Any

import numpy as np

from primal.base import forks
from primal.base.native import extension

_THREADS = "OPENBLAS_NUM_THREADS"
_lock = forks.lock()


@functools.cache
def _load() -> ctypes.CDLL | None:
    found = importlib.util.find_spec("scipy_openblas32")
    if found is None or found.origin is None:
        return None
    folder = os.path.join(os.path.dirname(found.origin), "lib")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if name.startswith("libscipy_openblas") and name.endswith((".so", ".dylib", ".dll")):
            # It would begin threads while it is loaded, which look for work for 0.1 s before they
            # sleep: a CPU less for the compiler.
            users = os.environ.get(_THREADS)
            os.environ[_THREADS] = "1"
            try:
                library = ctypes.CDLL(os.path.join(folder, name))
                library.scipy_openblas_set_num_threads(1)
            except (OSError, AttributeError):  # built for another machine, or something else
                continue
            finally:
                if users is None:
                    del os.environ[_THREADS]
                else:
                    os.environ[_THREADS] = users
            return library
    return None


@functools.cache
def address(name: str) -> int:
    """Where a function of BLAS or LAPACK is, for instance `cblas_sgemm`; 0 where there is none.

    Integers are 32 bits wide.
    """
    with _lock:
        library = _load()
    function = getattr(library, f"scipy_{name}", None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0


MANY_TERMS, MANY_BY_VECTORS = 1 << 18, 9000
"""Terms of products beyond which NumPy's OpenBLAS takes threads; of those of vectors."""

_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}
_multiply: Any = None if extension is None else extension.multiply


@functools.cache
def _routines(letter: str) -> tuple[int, int]:
    return address(f"{letter}gemm_"), address(f"{letter}gemv_")


def is_long(terms: int, rows: int, columns: int) -> bool:
    """Whether NumPy's OpenBLAS takes threads for products of so many terms in all."""
    return terms > (MANY_BY_VECTORS if 1 in (rows, columns) else MANY_TERMS)


def matmul(x: Any, y: Any) -> Any:
    """np.matmul of arrays of one dtype; many terms of floats in pieces that threads share.

    128 x 128 of float32: 19 us on two CPUs and 37 on one, NumPy 30 and 12,000 where others have it.
    """
    letter = _LETTER.get(x.dtype.char)
    if letter and _multiply and is_long(x.size * y.shape[-1], x.shape[-2], y.shape[-1]):
        out = _multiply(_routines(letter), x, y)
        if out is not None:
            return out
    return np.matmul(x, y)
