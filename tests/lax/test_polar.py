"""The polar decomposition's derivatives, forward and reverse, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax

STEP = 1e-5


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_of_qdwh(dtype: Any, x64: None) -> None:
    rng = np.random.default_rng(3)
    x, d = [rng.standard_normal((4, 3)).astype(dtype) for _ in range(2)]
    if x.dtype.kind == "c":
        x, d = x + 1j * rng.standard_normal((4, 3)), d * (1 + 0.5j)
    x, d = jnp.asarray(x), jnp.asarray(d)

    def factors(x: Any) -> Any:
        return lax.linalg.qdwh(x)[:2]

    def size(x: Any) -> Any:
        return sum(jnp.sum(jnp.abs(jnp.sin(v)) ** 2) for v in factors(x))

    def slope(f: Any) -> Any:
        return [
            (a - b) / (2 * STEP)
            for a, b in zip(
                primal.tree.leaves(f(x + STEP * d)), primal.tree.leaves(f(x - STEP * d)),
                strict=True,
            )
        ]  # fmt: skip

    for got, want in zip(primal.jvp(factors, (x,), (d,))[1], slope(factors), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8)
    got = jnp.real(jnp.sum(primal.grad(size)(x) * d))
    np.testing.assert_allclose(got, slope(size)[0], rtol=1e-7)
    if x.dtype.kind == "f":
        second = primal.jvp(primal.grad(size), (x,), (d,))[1]
        np.testing.assert_allclose(second, slope(primal.grad(size))[0], rtol=1e-6, atol=1e-7)


def test_derivatives_of_the_part_that_counts(x64: None) -> None:
    rng = np.random.default_rng(0)
    x, d = [jnp.asarray(rng.standard_normal((4, 3))) for _ in range(2)]
    part = primal.jvp(lambda x: lax.linalg.qdwh(x, dynamic_shape=(3, 2))[0], (x,), (d,))[1]
    want = primal.jvp(lambda x: lax.linalg.qdwh(x)[0], (x[:3, :2],), (d[:3, :2],))[1]
    np.testing.assert_allclose(part[:3, :2], want, atol=1e-12)


@pytest.mark.parametrize("shape", [(24, 16), (128, 128)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64])
def test_matrices_without_full_rank(dtype: Any, shape: tuple[int, int], x64: None) -> None:
    """A few values that rounding alone made still become 1 beside the many that soon were."""
    rng = np.random.default_rng(1)
    (m, n), lost = shape, 4
    left, _ = np.linalg.qr(rng.standard_normal((m, n)))
    right, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = np.concatenate([np.linspace(100.0, 10.0, n - lost), np.zeros(lost)])
    x = jnp.asarray((left * values @ right).astype(dtype))
    u, h, _, _ = lax.linalg.qdwh(x)
    small = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(np.conj(u.T) @ u, np.eye(n), atol=2e4 * small)
    np.testing.assert_allclose(u @ h, x, atol=1e4 * small)


@pytest.mark.parametrize("n, lost", [(64, 32), (96, 90), (20, 10), (40, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_far_below_precision_become_one(dtype: Any, n: int, lost: int, x64: None) -> None:
    """The interval that the steps map to 1 begins below what rounding leaves of a zero."""
    factors = primal.jit(lax.linalg.qdwh)
    for seed in range(8):
        left, values, right = np.linalg.svd(np.random.default_rng(seed).normal(size=(n, n)))
        values[n - lost :] = 0
        u, _, _, converged = factors(jnp.asarray((left * values @ right).astype(dtype)))
        assert converged
        np.testing.assert_allclose(u.T @ u, np.eye(n), atol=100 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-20, 1e20, 1e30, 1e37])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_factors_do_not_depend_on_how_large_the_matrix_is(dtype: Any, scale: float) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((9, 6)) + (1j if dtype == np.complex64 else 0)
    x = (x / 8 + np.eye(9, 6)).astype(dtype)
    u, h, _, converged = lax.linalg.qdwh(jnp.asarray(x * np.float32(scale)))
    want, _, _, _ = lax.linalg.qdwh(jnp.asarray(x))
    assert converged
    np.testing.assert_allclose(u, want, atol=2e-6)
    np.testing.assert_allclose((u @ h) / np.float32(scale), x, atol=1e-5)
