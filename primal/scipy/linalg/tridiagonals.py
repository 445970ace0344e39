"""Eigenvalues of tridiagonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.lax import linalg as room
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered
from primal.ops.linalg.common import LAPACK_DTYPES

NAME = "primal.scipy.linalg.eigh_tridiagonal"


@remembered
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """(w, V) of the Hermitian tridiagonal T with diagonal d (n,) and e (n-1,) below it.

    T V = V diag(w), w real and ascending; w alone with `eigvals_only`. select 'i' takes those from
    index select_range[0] to select_range[1]; 'v' raises NotImplementedError. The matrix is given to
    LAPACK's syevd or heevd as a dense one; `tol` and `key`, for methods that iterate from random
    vectors, do nothing. TypeError for other dtypes or shapes, ValueError for another selection.

    >>> eigh_tridiagonal(jnp.array([1., 1.]), jnp.array([1.]), eigvals_only=True).round(3) + 0.
    Array([0., 2.], dtype=float32)
    """
    x, y = jnp.asarray(d), jnp.asarray(e)
    if x.dtype != y.dtype:
        raise TypeError(
            "diagonal and off-diagonal values must have same dtype, got "
            f"{x.dtype.name} and {y.dtype.name}"
        )
    if x.dtype not in LAPACK_DTYPES:
        raise TypeError(
            f"Only floats and complex numbers of 32 or 64 bits are supported as inputs to {NAME}, "
            f"got {x.dtype.name} and {y.dtype.name}"
        )
    if x.ndim != 1 or y.ndim != 1 or y.shape[0] != x.shape[0] - 1:
        raise TypeError(
            f"[eigh_tridiagonal] expected d of shape (n,) and e of shape (n-1,), got {x.shape} and "
            f"{y.shape}."
        )
    chosen = _chosen(select, select_range, x.shape[0])
    diagonal = jnp.real(x).astype(x.dtype)
    matrix = jnp.diag(diagonal) + jnp.diag(y, -1) + jnp.diag(jnp.conj(y), 1)
    if eigvals_only:
        return jnp.linalg.eigvalsh(matrix)[chosen]
    v, w = room.eigh(matrix, symmetrize_input=False)
    return w[chosen], v[:, chosen]


def _chosen(select: str, select_range: Any, n: int) -> slice:
    if select == "a":
        return slice(0, n)
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select != "i":
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select_range is None:
        raise ValueError("for select='i', select_range must be specified.")
    first, last = (int(np.asarray(i)) for i in select_range)
    if first > last:
        raise ValueError("Got empty index range in select_range.")
    if first < 0 or last >= n:
        raise ValueError(f"select_range must be within 0 and {n - 1}, got {(first, last)}.")
    return slice(first, last + 1)
