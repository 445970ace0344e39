"""qr, eigh, svd, and the packed forms of reflections."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from primal.ops import elementwise
from primal.ops.linalg import svd as svd_room
from primal.ops.linalg.common import adjoint as adjoint_op
from primal.ops.linalg.common import as_dtype, matmul, rows_of
from primal.ops.linalg.eigh import eigh
from primal.ops.linalg.qr import geqrf, householder_product, qr
from primal.ops.spread import reduce_sum
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager
from tests.ops.linalg.matrices import (
    DTYPES,
    adjoint,
    drawn,
    hermitian,
    of_hermitian_part,
    tolerance,
)

SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 4, 2), (1, 1)]
PLAIN = functools.partial(qr, pivoting=False, full_matrices=False)
BOTH = functools.partial(eigh, lower=True, compute_eigenvectors=True)
svd = functools.partial(svd_room.svd, algorithm="gesdd")
THIN = functools.partial(svd, full_matrices=False, compute_uv=True)


def sizes(x: Any) -> Any:
    """Squared moduli, which know no phase."""
    if x.dtype.kind != "c":
        return elementwise.square(x)
    return elementwise.add(
        elementwise.square(elementwise.real(x)), elementwise.square(elementwise.imag(x))
    )


def orthonormal(q: Any, tol: float) -> None:
    k = q.shape[-1]
    np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(k), (*q.shape[:-2], k, k)),
                               atol=tol)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(dtype: Any, shape: tuple[int, ...], pivoting: bool, full: bool, x64: None) -> None:
    a, tol = drawn(dtype, *shape), tolerance(dtype)
    f = functools.partial(qr, pivoting=pivoting, full_matrices=full)
    q, r, *order = agree(f, a, tol=tol)
    orthonormal(q, tol)
    want = np.take_along_axis(a, order[0][..., None, :], -1) if pivoting else a
    np.testing.assert_allclose(q @ r, want, atol=tol)
    np.testing.assert_array_equal(r, np.triu(r))
    if pivoting:
        sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        assert (np.diff(sizes, axis=-1) <= tol).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 0), (0, 2, 3)])
def test_nothing(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    for full in (False, True):
        for pivoting in (False, True):
            q, r, *_ = agree(functools.partial(qr, pivoting=pivoting, full_matrices=full), a)
            orthonormal(q, 0)
        s, u, vh = agree(functools.partial(svd, full_matrices=full, compute_uv=True), a)
        orthonormal(u, 0)
        orthonormal(adjoint(vh), 0)
        assert s.shape == (*shape[:-2], min(shape[-2:]))
    packed, tau = agree(geqrf, a)
    assert packed.shape == shape and tau.shape == (*shape[:-2], min(shape[-2:]))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 2, 4)])
def test_qr_derivatives(dtype: Any, shape: tuple[int, ...]) -> None:
    check_derivatives(PLAIN, drawn(dtype, *shape), tol=1e-5)
    pivoted = functools.partial(qr, pivoting=True, full_matrices=False)
    check_derivatives(lambda a: pivoted(a)[:2], drawn(dtype, *shape), tol=1e-5, order=1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections(dtype: Any, x64: None) -> None:
    a, tol = drawn(dtype, 2, 5, 3), tolerance(dtype)
    q = agree(lambda a: householder_product(*geqrf(a)), a, tol=tol)[0]
    np.testing.assert_allclose(q, eager(PLAIN, a)[0], atol=tol)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 5)])
def test_eigh(dtype: Any, shape: tuple[int, ...], lower: bool, x64: None) -> None:
    a, tol = hermitian(dtype, *shape), tolerance(dtype)
    f = functools.partial(eigh, lower=lower, compute_eigenvectors=True)
    v, w = agree(f, np.tril(a) if lower else np.triu(a), tol=tol)
    orthonormal(v, tol)
    np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=20 * tol)
    assert (np.diff(w, axis=-1) >= 0).all()
    (alone,) = agree(
        functools.partial(eigh, lower=lower, compute_eigenvectors=False), a, tol=20 * tol
    )
    np.testing.assert_allclose(alone, w, atol=20 * tol)


@pytest.mark.parametrize("lower", [False, True])
def test_eigh_derivatives(lower: bool) -> None:
    f = of_hermitian_part(functools.partial(eigh, lower=lower, compute_eigenvectors=True))
    check_derivatives(f, hermitian(np.float64, 2, 3, 3), tol=1e-5)
    values = of_hermitian_part(functools.partial(eigh, lower=lower, compute_eigenvectors=False))
    check_derivatives(lambda a: values(a)[0], hermitian(np.complex128, 3, 3), tol=1e-5)
    c = drawn(np.complex128, 3, 3, seed=5)

    def gauge_free(a: Any) -> Any:
        v, w = f(a)
        return sizes(matmul(as_array(c), v)), w

    check_derivatives(gauge_free, hermitian(np.complex128, 3, 3), tol=1e-5)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(dtype: Any, shape: tuple[int, ...], full: bool, x64: None) -> None:
    a, tol = drawn(dtype, *shape), tolerance(dtype)
    s, u, vh = agree(functools.partial(svd, full_matrices=full, compute_uv=True), a, tol=tol)
    orthonormal(u, tol)
    orthonormal(adjoint(vh), tol)
    k = s.shape[-1]
    np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, atol=tol)
    (alone,) = agree(functools.partial(svd, full_matrices=full, compute_uv=False), a, tol=tol)
    np.testing.assert_allclose(alone, s, atol=tol)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), atol=tol)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 2, 3)])
def test_svd_derivatives(shape: tuple[int, ...]) -> None:
    check_derivatives(THIN, drawn(np.float64, *shape), tol=1e-5)
    values = functools.partial(svd, full_matrices=True, compute_uv=False)
    check_derivatives(lambda a: values(a)[0], drawn(np.complex128, *shape), tol=1e-5)

    def gauge_free(a: Any) -> Any:
        # U diag(s³) Vᴴ and the moduli of elements of U and V know no phases.
        s, u, vh = THIN(a)
        cubed = as_dtype(elementwise.integer_pow(s, y=3), a.dtype)
        scaled = elementwise.mul(u, rows_of(cubed, u.shape))
        return matmul(scaled, vh), sizes(u), sizes(vh)

    check_derivatives(gauge_free, drawn(np.complex128, *shape), tol=1e-4)


def test_svd_at_zero_singular_values() -> None:
    def norm(a: Any) -> Any:
        return reduce_sum(svd(a, full_matrices=False, compute_uv=False)[0], axes=(0,))

    from tests.ops.laws import tangents

    a = np.diag([2.0, 1.0, 0.0]).astype(np.float32)
    (got,) = tangents(norm, [a], [np.eye(3, dtype=np.float32)])
    assert abs(abs(got) - 3) < 1e-5 or abs(got - 1) < 1e-5  # ±1 for the value that is 0


@pytest.mark.parametrize("run", [eager, compiled])
def test_not_finite_gives_nan(run: Any) -> None:
    a = np.stack([np.eye(2), [[np.nan, 1], [1, 1]], [[np.inf, 1], [1, 1]]]).astype(np.float32)
    values_only = functools.partial(eigh, lower=True, compute_eigenvectors=False)
    s_only = functools.partial(svd, full_matrices=False, compute_uv=False)
    for f in (BOTH, THIN, values_only, s_only):
        for result in run(f, a):
            assert np.isfinite(result[0]).all() and np.isnan(result[1:]).all()


def test_batching() -> None:
    check_batching(PLAIN, drawn(np.float32, 4, 3), tol=1e-3)
    check_batching(qr_pivoted, drawn(np.float32, 2, 3, 3), tol=1e-3)
    check_batching(lambda x: BOTH(elementwise.add(x, adjoint_op(x))), drawn(np.float32, 3, 3),
                   tol=1e-3)  # fmt: skip
    check_batching(THIN, drawn(np.complex64, 2, 3, 2), tol=1e-3)
    check_batching(geqrf, drawn(np.float32, 3, 2), tol=1e-3)


def qr_pivoted(a: Any) -> Any:
    return qr(a, pivoting=True, full_matrices=True)


def test_errors() -> None:
    tall = as_array(np.ones((3, 2), np.float32))
    with pytest.raises(NotImplementedError, match=r"\[svd\] expected full_matrices=False"):
        check_derivatives(
            functools.partial(svd, full_matrices=True, compute_uv=True), drawn(np.float64, 3, 2)
        )
    with pytest.raises(ValueError, match=r"\[eigh\] expected a square matrix"):
        BOTH(tall)
    with pytest.raises(TypeError, match=r"\[svd\] expected float32, float64"):
        THIN(as_array(np.ones((2, 2), np.float16)))
    with pytest.raises(TypeError, match=r"\[qr\] expected a matrix"):
        PLAIN(as_array(np.ones(3, np.float32)))
    with pytest.raises(ValueError, match=r"\[householder_product\] expected at least as many rows"):
        householder_product(as_array(np.ones((2, 3), np.float32)), as_array(np.ones(2, "f")))
