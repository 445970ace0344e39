"""The one file that asks scipy for LAPACK and BLAS.

XLA calls scipy's LAPACK as well, so that eager and compiled factorisations choose the same signs of
vectors, which NumPy's build of LAPACK does not. numpy.linalg, faster on stacks of small matrices,
serves where the result has no such freedom. scipy.linalg takes 0.2 s to import, so it waits for the
first factorisation that needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def lapack(name: str, dtype: Any) -> Callable[..., Any]:
    """LAPACK's routine for that dtype, named without its type letter."""
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs((name,), dtype=dtype)[0]  # type: ignore[no-any-return]


@functools.cache
def blas(name: str, dtype: Any) -> Callable[..., Any]:
    """BLAS's routine for that dtype, named without its type letter."""
    from scipy.linalg import get_blas_funcs

    return get_blas_funcs((name,), dtype=dtype)[0]  # type: ignore[no-any-return]


@functools.cache
def workspace(query: str, dtype: Any, *args: Any) -> int:
    """The first workspace size that a LAPACK query answers, best for blocked algorithms."""
    first: Any = lapack(query, dtype)(*args)
    value = first[0] if isinstance(first, tuple) else first
    # float32 cannot say every integer, so one more than it says is safe.
    return int(value.real * (1 + 1e-6)) + 1
