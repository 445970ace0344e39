"""Tridiagonal systems by native loops over LAPACK, beside the op's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal.engines.cpu.matrices.tridiagonals import ROOM
from primal.engines.cpu.steps import Library
from primal.ops.linalg.tridiagonal import tridiagonal_solve
from tests.engines.cpu.lab import built, numpy_run


def operands(shape: tuple[int, ...], dtype: str) -> list[Any]:
    draw = np.random.default_rng(sum(shape))

    def some(shape: tuple[int, ...]) -> Any:
        x = draw.standard_normal(shape)
        return (x + 1j * draw.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)

    return [*[some(shape[:-1]) for _ in range(3)], some(shape)]


def agree(xs: list[Any], native: bool = True, perturb: bool = False) -> Any:
    def f(*xs: Any) -> list[Any]:
        return [tridiagonal_solve(*xs, perturb_singular=perturb)]

    made = built(f, *xs)
    assert native != any(isinstance(s, Library) for s in made.plan.steps)
    (got,), (want,) = made.execute(xs), numpy_run(f, *xs)
    assert got.dtype == want.dtype and got.shape == want.shape
    tolerance = 1000 * np.finfo(xs[0].dtype).eps
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return got


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (30, 1), (9, 5, 2), (2, 3, 17, 4)])
def test_systems(shape: tuple[int, ...], dtype: str) -> None:
    agree(operands(shape, dtype))


@pytest.mark.parametrize("n", [1, 5])
def test_singular_ones_are_nan_alone(n: int) -> None:
    dl, d, du, b = operands((3, n, 2), "float32")
    for x in (dl, d, du):
        x[1] = 0
    got = agree([dl, d, du, b])
    assert np.isnan(got[1]).all() and not np.isnan(got[[0, 2]]).any()


def test_corners_are_not_read() -> None:
    xs = operands((4, 6, 1), "float64")
    xs[0][..., 0] = xs[2][..., -1] = np.nan
    assert not np.isnan(agree(xs)).any()


def test_what_python_solves() -> None:
    agree(operands((ROOM // 16 + 1, 1), "float32"), native=False)
    agree(operands((5, 2), "float32"), native=False, perturb=True)
