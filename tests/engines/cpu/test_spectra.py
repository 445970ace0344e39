"""Eigenvectors and singular vectors by native loops over LAPACK, beside the ops' own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from primal.control.condense import hessenberg, tridiagonal
from primal.engines.cpu.matrices.spectra import ROOM
from primal.engines.cpu.steps import Library
from primal.ops.linalg import _lapack
from primal.ops.linalg import eigh as eigh_room
from primal.ops.linalg.eig import eig
from primal.ops.linalg.eigh import eigh
from primal.ops.linalg.schur import schur
from primal.ops.linalg.svd import svd
from tests.engines.cpu.lab import built, numpy_run

DTYPES = ["float32", "float64", "complex64", "complex128"]
SQUARE = [(4, 4), (1, 1), (9, 3, 3), (2, 3, 32, 32)]


def stack(shape: tuple[int, ...], dtype: str) -> Any:
    draw = np.random.default_rng(sum(shape))
    x = draw.standard_normal(shape)
    return (x + 1j * draw.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def agree(f: Any, a: Any) -> None:
    made = built(f, a)
    assert not [s for s in made.plan.steps if isinstance(s, Library)]
    # The signs of vectors are the same as well: nothing else is asked of whoever mixes them.
    tolerance = 500 * np.finfo(a.dtype).eps
    for got, want in zip(made.execute([a]), numpy_run(f, a), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_how_many_matrices_there_are_does_not_matter(dtype: str) -> None:
    a = np.broadcast_to(stack((2, 2), dtype), (ROOM // 4, 2, 2))
    params = {"full_matrices": True, "compute_uv": True, "algorithm": "gesdd"}
    for f in (
        lambda a: eigh(a, lower=True, compute_eigenvectors=True),
        lambda a: svd(a, **params),
        eigenvectors(True, True),
        hessenberg,
        lambda a: tridiagonal(a, lower=True),
    ):
        made = built(lambda a, f=f: list(f(a)), a)
        assert not [s for s in made.plan.steps if isinstance(s, Library)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("lower", [False, True])
def test_eigenvectors(shape: tuple[int, ...], lower: bool, dtype: str) -> None:
    for vectors in (False, True):
        agree(lambda a, v=vectors: list(eigh(a, lower=lower, compute_eigenvectors=v)),
              stack(shape, dtype))  # fmt: skip


def eigenvectors(left: bool, right: bool) -> Any:
    params = {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right}
    return lambda a: list(eig(a, **params))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize(("left", "right"), [(False, True), (True, False), (True, True)])
def test_eigenvectors_of_any(shape: tuple[int, ...], left: bool, right: bool, dtype: str) -> None:
    agree(eigenvectors(left, right), stack(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SQUARE, (7, 2, 5), (3, 32, 3), (45, 40), (1, 9), (9, 1)])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("algorithm", ["gesdd", "gesvd"])
def test_singular_vectors(
    shape: tuple[int, ...], full: bool, algorithm: str, dtype: str
) -> None:
    params = {"full_matrices": full, "algorithm": algorithm}
    for vectors in (False, True):
        agree(lambda a, v=vectors: list(svd(a, compute_uv=v, **params)), stack(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_schur_forms(shape: tuple[int, ...], dtype: str) -> None:
    for vectors in (False, True):
        agree(lambda a, v=vectors: list(schur(a, compute_schur_vectors=v)), stack(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 2), *SQUARE[2:]])
def test_narrow_forms(shape: tuple[int, ...], dtype: str) -> None:
    a = stack(shape, dtype)
    agree(lambda a: list(hessenberg(a)), a)
    for lower in (False, True):
        agree(lambda a, low=lower: list(tridiagonal(a, lower=low)), a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_matrices_spoil_no_other(dtype: str) -> None:
    a = stack((9, 3, 3), dtype)
    a[0], a[1], a[2, 1, 2], a[3, 0, 0] = 0, np.eye(3), np.nan, np.inf
    a[4, 2, 0] = complex(0, np.nan) if dtype[0] == "c" else -np.inf
    agree(lambda a: list(eigh(a, lower=True, compute_eigenvectors=True)), a)
    for algorithm in ("gesdd", "gesvd"):
        params = {"full_matrices": True, "compute_uv": True, "algorithm": algorithm}
        agree(lambda a, p=params: list(svd(a, **p)), a)
    agree(eigenvectors(True, True), a)
    agree(lambda a: list(schur(a, compute_schur_vectors=True)), a)
    agree(lambda a: list(hessenberg(a)), a)
    agree(lambda a: list(tridiagonal(a, lower=True)), a)


def test_larger_ones_and_hidden_routines_are_left_to_the_op(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def steps(a: Any) -> list[Any]:
        made = built(lambda a: list(eigh(a, lower=True, compute_eigenvectors=True)), a)
        return [s for s in made.plan.steps if isinstance(s, Library)]

    n = math.isqrt(ROOM // 4) + 1
    assert steps(stack((n, n), "float32"))
    monkeypatch.setattr(_lapack, "lapack", lambda name, dtype: object())
    assert not _lapack.address.__wrapped__("syevd", np.dtype("f4"))
    monkeypatch.setattr(eigh_room, "address", lambda name, dtype: 0)
    assert steps(stack((3, 3), "float32"))
