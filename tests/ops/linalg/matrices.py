"""Matrices to factorise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import add, mul
from primal.ops.linalg.common import adjoint as adjoint_op

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def drawn(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Normal elements."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def hermitian(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Hermitian, with well separated eigenvalues."""
    x = drawn(dtype, *shape, seed=seed)
    spread = 3 * np.arange(shape[-1]) * np.eye(shape[-1])
    return (x + adjoint(x) + spread).astype(dtype)


def positive(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Positive definite."""
    x = drawn(dtype, *shape, seed=seed)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x: Any) -> Any:
    """Conjugate transposes."""
    return np.conj(np.swapaxes(x, -1, -2))


def of_hermitian_part(f: Callable[..., Any]) -> Callable[..., Any]:
    """f of (x + xᴴ) / 2: factorisations of Hermitian matrices are differentiated along such."""

    def of_part(x: Any) -> Any:
        return f(mul(add(x, adjoint_op(x)), literal(0.5, aval_of(x).dtype, False)))

    return of_part


def tolerance(dtype: Any) -> float:
    """What a factorisation of that precision may be off by."""
    return 1e-3 if np.dtype(dtype) in (np.float32, np.complex64) else 1e-9
