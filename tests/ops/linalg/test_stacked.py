"""LAPACK on stacks: every matrix of one has the bits that it has alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
from primal import lax

LEAD, N, COLUMNS = (3, 5), 4, 3


def _matrices(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(len(shape) + shape[-1])
    x = rng.standard_normal((2, *shape))
    return (x[0] + 1j * x[1] if dtype.startswith("c") else x[0]).astype(dtype)


def _operands(dtype: str) -> tuple[Any, Any, Any]:
    a = _matrices(dtype, *LEAD, N, N)
    a[1, 2] = 0  # singular, and the others are not to be touched by it
    a[0, 1, 2] = np.nan
    return a, _matrices(dtype, *LEAD, N, COLUMNS), _matrices(dtype, *LEAD, N)


FUNCTIONS = {
    "lu": lambda a, b, d: lax.linalg.lu(a),
    "geqrf": lambda a, b, d: lax.linalg.geqrf(a),
    "householder_product": lambda a, b, d: lax.linalg.householder_product(a, d),
    "householder_product_of_few": lambda a, b, d: lax.linalg.householder_product(a, d[..., :2]),
    "ormqr": lambda a, b, d: lax.linalg.ormqr(a, d, b, left=True, transpose=True),
    "ormqr_right": lambda a, b, d: lax.linalg.ormqr(a, d, b.mT, left=False),
    "tridiagonal": lambda a, b, d: lax.linalg.tridiagonal_solve(
        a[..., 0, :], a[..., 1, :], a[..., 2, :], b
    ),
    **{
        f"triangular_{i}": lambda a, b, d, i=i: lax.linalg.triangular_solve(
            a,
            b if i & 1 else b.mT,
            left_side=bool(i & 1),
            lower=bool(i & 2),
            transpose_a=bool(i & 4),
            conjugate_a=bool(i & 8),
            unit_diagonal=bool(i & 16),
        )
        for i in range(32)
    },
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_stacks_hold_what_their_matrices_give(name: str, dtype: str) -> None:
    with primal.enable_x64(dtype == "complex128"):
        operands = [primal.numpy.asarray(x) for x in _operands(dtype)]
        whole = primal.tree.leaves(FUNCTIONS[name](*operands))
        for at in np.ndindex(*LEAD):
            alone = primal.tree.leaves(FUNCTIONS[name](*[x[at] for x in operands]))
            for x, y in zip(whole, alone, strict=True):
                np.testing.assert_array_equal(x[at], y)
                assert bool(np.isfinite(np.asarray(x[2, 4])).all())


def test_stacks_of_pivots() -> None:
    swaps = np.random.default_rng(0).integers(-7, 9, (2, 3, 5)).astype(np.int32)
    whole = lax.linalg.lu_pivots_to_permutation(swaps, 6)
    for at in np.ndindex(2, 3):
        order = list(range(6))
        for i, j in enumerate(swaps[at]):
            j = min(max(j + 6 if j < 0 else j, 0), 5)
            order[i], order[j] = order[j], order[i]
        np.testing.assert_array_equal(whole[at], order)
        np.testing.assert_array_equal(lax.linalg.lu_pivots_to_permutation(swaps[at], 6), order)
