"""Eager systems of float32: solved in double precision, whoever solves them, and rounded once."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp


def _systems(n: int, columns: int, seed: int = 0):
    rng = np.random.default_rng([seed, n, columns])
    a = rng.standard_normal((5, n, n)) * 10.0 ** rng.integers(-3, 4, (5, n, 1))
    return a.astype(np.float32), rng.standard_normal((5, n, columns)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 16, 31, 32, 33])
@pytest.mark.parametrize("columns", [1, 3, 7])
def test_solutions_are_those_of_double_precision(n, columns):
    a, b = _systems(n, columns)
    exact = np.linalg.solve(a.astype(np.float64), b.astype(np.float64))
    for got, want in (
        (jnp.linalg.solve(a, b), exact),
        (jnp.linalg.solve(jnp.asarray(a).transpose(0, 2, 1).transpose(0, 2, 1), b), exact),
        (jnp.linalg.solve(a[:2], b[:2]), exact[:2]),
        (jnp.linalg.solve(jnp.asarray(a)[1], jnp.asarray(b)[1]), exact[1]),
    ):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1.2e-7, atol=1e-9 * abs(want).max())


def test_transposed_matrices():
    a, b = _systems(6, 2)
    want = np.linalg.solve(a.swapaxes(1, 2).astype(np.float64), b.astype(np.float64))
    got = jnp.linalg.solve(jnp.asarray(a).transpose(0, 2, 1), b)
    np.testing.assert_allclose(got, want, rtol=1.2e-7, atol=1e-9 * abs(want).max())


def test_what_is_not_finite_stays_in_its_own_system():
    a, b = _systems(4, 2)
    whole = np.asarray(jnp.linalg.solve(a, b))
    a[1, 2, 0], b[3, 0, 1] = np.nan, np.inf
    got = np.asarray(jnp.linalg.solve(a, b))
    assert np.isnan(got[1]).all()
    assert not np.isfinite(got[3, :, 1]).any()
    assert np.array_equal(got[3, :, 0], whole[3, :, 0])
    assert np.array_equal(got[[0, 2, 4]], whole[[0, 2, 4]])


def test_a_pivot_that_is_zero_is_exchanged_and_a_singular_matrix_gives_no_numbers():
    swapped = np.array([[0, 1], [2, 0]], np.float32)
    got = jnp.linalg.solve(swapped, np.array([3, 4], np.float32))
    assert np.array_equal(got, [2, 3])
    singular = np.stack([swapped, np.ones((2, 2), np.float32)])
    got = np.asarray(jnp.linalg.solve(singular, np.eye(2, dtype=np.float32)[None].repeat(2, 0)))
    assert np.array_equal(got[0], [[0, 0.5], [1, 0]])
    assert not np.isfinite(got[1]).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [1, 3, 32, 40])
def test_a_singular_matrix_changes_nothing_in_the_other_systems(n, dtype):
    with primal.enable_x64(True):
        a, b = (x.astype(dtype) for x in _systems(n, 2))
        whole = np.asarray(jnp.linalg.solve(a, b))
        a[2] = 0
        got = np.asarray(jnp.linalg.solve(a, b))
    assert not np.isfinite(got[2]).any()
    others = [0, 1, 3, 4]
    # Other routines of LAPACK than NumPy calls, in their own order of additions.
    near = 1e-9 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(got[others], whole[others], rtol=near)


def test_a_nan_in_a_column_of_zeros_spreads():
    a = np.array([[0, 1], [np.nan, 1]], np.float32)
    assert np.isnan(jnp.linalg.solve(a, np.ones((2, 1), np.float32))).all()


@pytest.mark.parametrize("n", [4, 33])
def test_solutions_beyond_float32_are_infinite_without_a_warning(n):
    a = np.eye(n, dtype=np.float32) * np.float32(1e-40)
    assert np.isinf(jnp.linalg.solve(a, np.ones((n, 1), np.float32))).all()
