"""The one file that loads OpenBLAS: a copy of our own, that runs in one thread.

Programs split products by the engine's pool, which yields to neighbours; OpenBLAS's own threads
wait for each other in every call, a time slice of 4 ms and more where others compute as well. NumPy
and SciPy each bring a copy whose number of threads is theirs and their users' to set, so that
neither would do.
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


FEW_TERMS, MANY_TERMS = 1 << 18, 1 << 24
"""Terms of a product between which OpenBLAS would take threads and gain less than 0.3 ms by it."""

_call_each: Any = None if extension is None else extension.call_each


def matmul(x: Any, y: Any) -> Any:
    """np.matmul of numbers, but in one thread where several are more often waited for than of use.

    128 x 128 x 128 of float32 take 45 us; two threads 12,000 with every CPU busy, 30 with none.
    """
    shape, columns, letter = x.shape, y.shape[-1], LETTER.get(x.dtype.char)
    terms = shape[-2] * shape[-1] * columns
    alike = x.dtype == y.dtype and shape[:-2] == y.shape[:-2]
    if FEW_TERMS < terms <= MANY_TERMS and letter and alike and _call_each and x.ndim <= 3:
        routine, left, right = address(f"{letter}gemm_"), _lies(x), _lies(y)
        if routine and left is not None and right is not None:
            out = np.empty((*shape[:-1], columns), x.dtype)
            one, none = _factors(x.dtype)
            # By columns, in which Fortran has matrices, each of them is its transpose.
            _call_each(
                routine,
                shape[0] if x.ndim == 3 else 1,
                (*(right[0], left[0], columns, shape[-2], shape[-1], one), y, right[1], x, left[1])
                + (none, out, columns),
            )
            return out
    return np.matmul(x, y)


LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def _factors(dtype: Any) -> tuple[Any, Any]:
    return np.ones(1, dtype), np.zeros(1, dtype)


def _lies(x: Any) -> tuple[str, int] | None:
    """Whether the rows of matrices lie in one piece ("N") or their columns ("T"), and how far the
    next one is, in elements; None where BLAS could not read them."""
    (rows, columns), (down, along), size = x.shape[-2:], x.strides[-2:], x.itemsize
    if not x.flags.aligned:
        return None
    if along == size and down >= columns * size and not down % size:
        return "N", down // size
    if down == size and along >= rows * size and not along % size:
        return "T", along // size
    return None
