"""eig: values and vectors, derivatives on what the gauge leaves free and on LAPACK's own gauge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal.ops import elementwise, reduce
from primal.ops.linalg.common import diagonal, matmul
from primal.ops.linalg.eig import eig
from primal.ops.spread import reduce_sum
from primal.runtime.eager import as_array
from primal.transforms.linearize import linearize_flat
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager, host

RNG = np.random.default_rng(0)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def matrices(dtype: Any, *shape: int) -> Any:
    x = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def values(a: Any) -> Any:
    return eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)


def right(a: Any) -> Any:
    return eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=True)


def both(a: Any) -> Any:
    return eig(a, compute_left_eigenvectors=True, compute_right_eigenvectors=True)


def radius(a: Any) -> Any:
    (w,) = values(a)
    return reduce.reduce_max(elementwise.abs(w), axes=(w.ndim - 1,))


def radius_and_grad(a: Any) -> Any:
    outs, lin = linearize_flat(lambda x: [radius(x)], [a], [True])
    return [outs[0], lin.transposed([as_array(np.float32(1.0))])[0]]


@pytest.mark.parametrize("run", [eager, compiled])
@pytest.mark.parametrize(
    ("a", "value", "grad"),
    [
        ([[1, -1], [1, 1]], 1.4142135, [[0.354, -0.354], [0.354, 0.354]]),
        (
            [[1 + 1j, -1], [1, 1]],
            1.9021131,
            [[0.38 - 0.616j, -0.38 - 0.235j], [0.38 + 0.235j, 0.145 - 0.235j]],
        ),
    ],
)
def test_documented_figures(run: Any, a: Any, value: float, grad: Any) -> None:
    x = np.array(a, np.complex64 if isinstance(a[0][0], complex) else np.float32)
    got, slope = run(radius_and_grad, x)
    assert str(got) == str(np.float32(value))
    assert slope.dtype == x.dtype
    for part in (np.real, np.imag):
            np.testing.assert_allclose(part(slope), part(np.array(grad)), rtol=0, atol=5.1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 2, 5, 5)])
def test_vectors(dtype: Any, shape: tuple[int, ...], x64: None) -> None:
    a = matrices(dtype, *shape)
    narrow = np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4
    tol = 2e-4 if narrow else 1e-10
    w, u, v = agree(both, a, tol=tol)
    np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=tol)
    uh = np.conj(np.swapaxes(u, -1, -2))
    np.testing.assert_allclose(uh @ a, w[..., :, None] * uh, atol=tol)
    np.testing.assert_allclose(np.linalg.norm(u, axis=-2), 1, rtol=1e-5)
    (alone,) = agree(values, a, tol=tol)
    np.testing.assert_allclose(np.sort_complex(alone), np.sort_complex(w), atol=10 * tol)
    _, only = agree(right, a, tol=tol)
    np.testing.assert_allclose(only, v, atol=tol)
    left_only = lambda a: eig(  # noqa: E731
        a, compute_left_eigenvectors=True, compute_right_eigenvectors=False
    )
    np.testing.assert_allclose(agree(left_only, a, tol=tol)[1], u, atol=tol)


def test_empty_and_not_finite() -> None:
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        w, v = agree(right, np.zeros(shape, np.float32))
        assert w.shape == shape[:-1] and v.shape == shape
    a = np.stack([np.eye(2), [[np.nan, 1], [1, 1]], [[np.inf, 1], [1, 1]]]).astype(np.float32)
    for run in (eager, compiled):
        w, v = run(right, a)
        np.testing.assert_array_equal(w[0], [1, 1])
        assert np.isnan(w[1:]).all() and np.isnan(v[1:]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_of_values(dtype: Any) -> None:
    check_derivatives(lambda a: values(a)[0], matrices(dtype, 2, 4, 4), tol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_of_vectors(dtype: Any, seed: int) -> None:
    # LAPACK's normalisation is differentiable, so that the raw vectors are a fair test.
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((3, 3)) + np.diag([0.0, 3.0, 6.0])
    if dtype is np.complex128:
        a = a + 1j * rng.standard_normal((3, 3))
    check_derivatives(lambda a: both(a), a, tol=1e-5, engines=seed == 0)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_free_of_gauge(dtype: Any) -> None:
    c = matrices(dtype, 4, 4).astype(np.complex128)

    def projections(a: Any) -> Any:
        # |cᵀv|² / |v|² per vector knows neither phase nor norm.
        w, v = right(a)
        p = matmul(as_array(c), v)
        return elementwise.div(size(p), size(v))

    def size(v: Any) -> Any:
        squares = elementwise.add(
            elementwise.square(elementwise.real(v)), elementwise.square(elementwise.imag(v))
        )
        return reduce_sum(squares, axes=(0,))

    check_derivatives(projections, matrices(dtype, 4, 4), tol=1e-5)


def test_repeated_values_have_derivatives_in_sum() -> None:
    def trace(a: Any) -> Any:
        return elementwise.real(reduce_sum(values(a)[0], axes=(0,)))

    a = as_array(np.eye(3, dtype=np.float32))
    _, lin = linearize_flat(lambda a: [trace(a)], [a], [True])
    (g,) = lin.transposed([as_array(np.float32(1.0))])
    np.testing.assert_allclose(host(g), np.eye(3), atol=1e-6)


def test_batching() -> None:
    check_batching(lambda a: values(a), matrices(np.float32, 3, 3), tol=1e-4)
    check_batching(lambda a: both(a), matrices(np.complex64, 2, 3, 3), tol=1e-4)


def test_diagonal_word() -> None:
    a = matrices(np.float32, 2, 3, 3)
    np.testing.assert_array_equal(eager(diagonal, a)[0], np.diagonal(a, axis1=-2, axis2=-1))


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "text"),
    [
        ((2, 3), np.float32, ValueError, r"\[eig\] expected a square matrix"),
        ((3,), np.float32, TypeError, r"\[eig\] expected a square matrix"),
        ((2, 2), np.int32, TypeError, r"\[eig\] expected float32, float64, complex64"),
        ((2, 2), np.float16, TypeError, r"\[eig\] expected float32, float64, complex64"),
    ],
)
def test_errors(shape: Any, dtype: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        values(as_array(np.ones(shape, dtype)))


@pytest.mark.parametrize("run", [eager, compiled])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("n", [16, 17, 40])
def test_values_of_single_precision(run: Any, dtype: Any, n: int) -> None:
    a = matrices(dtype, 3, n, n)
    a[1, 2, 3] = np.nan
    (got,) = run(values, a)
    assert got.dtype == np.complex64 and np.isnan(got[1]).all()
    for w, x in zip(got[::2], a[::2].astype(np.complex128), strict=True):
        exact = np.linalg.eigvals(x)
        far = np.abs(w[:, None] - exact).min(-1).max() / np.abs(exact).max()
        assert far < (2e-7 if n <= 16 else 2e-5)
