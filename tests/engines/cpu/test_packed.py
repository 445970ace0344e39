"""Reflections as LAPACK packs them, and updates of roots, without Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal.base import openblas
from primal.engines.cpu.matrices import packed
from primal.engines.cpu.steps import Library, Routine
from primal.ops.linalg.ormqr import ormqr
from primal.ops.linalg.qr import geqrf, householder_product
from primal.ops.linalg.update import cholesky_update
from tests.engines.cpu.lab import built, numpy_run, spoiled

DTYPES = ["float32", "float64", "complex64", "complex128"]
blas = pytest.mark.skipif(not openblas.address("sgeqrf_"), reason="no OpenBLAS of our own")


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    draw = np.random.default_rng(seed)
    x: Any = draw.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * draw.standard_normal(shape)
    return x.astype(dtype)


def agree(f: Any, *xs: Any) -> None:
    """Compiled without a library step, and within rounding of what NumPy and SciPy make of it."""
    made = built(f, *xs)
    assert not any(type(s) is Library for s in made.plan.steps)
    for got, want in zip(made.execute(list(xs)), numpy_run(f, *xs), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        bound = 500 * np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=bound, atol=bound * max(1, np.abs(want).max()))


@blas
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 7, 9, 4), (5, 12), (50, 40), (1, 3), (4, 1)])
def test_packed_factors_and_what_they_make(shape: tuple[int, ...], dtype: str) -> None:
    a = drawn(shape, dtype)
    agree(lambda a: list(geqrf(a)), a)
    packed, tau = numpy_run(lambda a: list(geqrf(a)), a)
    *lead, m, n = shape
    if m >= n:
        agree(lambda p, t: [householder_product(p, t)], packed, tau)
        agree(lambda p, t: [householder_product(p, t)], packed, tau[..., : n - n // 2].copy())
    for left in (False, True):
        x = drawn((*lead, m, 3) if left else (*lead, 3, m), dtype, 1)
        for transpose in (False, True):
            params = {"left": left, "transpose": transpose}
            agree(lambda p, t, x, q=params: [ormqr(p, t, x, **q)], packed, tau, x)


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 9, 5, 5), (40, 40)])
def test_updates_of_roots(shape: tuple[int, ...], dtype: str) -> None:
    r = drawn(shape, dtype) + 3 * np.eye(shape[-1], dtype=dtype)
    w = drawn(shape[:-1], dtype, 1)
    update = lambda r, w: [cholesky_update(r, w)]  # noqa: E731
    agree(update, r, w)
    (made,) = built(update, r, w).execute([r, w])
    root, made, w = np.triu(r).astype(float), made.astype(float), w.astype(float)
    want = np.swapaxes(root, -1, -2) @ root + w[..., :, None] * w[..., None, :]
    bound = 20 * shape[-1] * np.finfo(dtype).eps * np.abs(want).max()
    np.testing.assert_allclose(np.swapaxes(made, -1, -2) @ made, want, rtol=0, atol=bound)
    np.testing.assert_array_equal(np.tril(made, -1), 0)
    assert (np.diagonal(made, 0, -2, -1) >= 0).all()


def test_updates_of_great_roots_are_steps_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    r, w = drawn((3, 23, 23), "float64"), drawn((3, 23), "float64", 1)
    update = lambda r, w: [cholesky_update(r, w)]  # noqa: E731
    (whole,) = built(update, r, w).execute([r, w])
    monkeypatch.setattr(packed, "TURNS", 23 * 5)
    made = built(update, r, w)
    assert sum([isinstance(s, Routine) for s in made.plan.steps]) > 4
    with spoiled():
        np.testing.assert_array_equal(made.execute([r, w])[0], whole)


def test_updates_of_zeros_of_extreme_and_of_infinite_roots() -> None:
    inf, nan = np.inf, np.nan
    r = np.array([[0, 1], [3e300, 0], [1e-300, 0], [inf, 1], [2, nan], [nan, 2]])
    w = np.array([[0, 2], [4e300, 1], [1e-300, 1], [1, 1], [inf, 1], [1, 1]])
    a = np.zeros((6, 2, 2))
    a[:, 0], a[:, 1, 1] = r, 2
    agree(lambda r, w: [cholesky_update(r, w)], a[:3], w[:3])
    got = built(lambda r, w: [cholesky_update(r, w)], a, w).execute([a, w])[0]
    want = numpy_run(lambda r, w: [cholesky_update(r, w)], a, w)[0]
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[3:, 0, 0], want[3:, 0, 0])
