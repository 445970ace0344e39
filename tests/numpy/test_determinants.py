"""Derivatives of determinants against minors, for matrices of every rank."""

import itertools

import numpy as np
import pytest

import primal
import primal.numpy as jnp

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(autouse=True)
def _wide():
    with primal.enable_x64(True):
        yield


def without(a, i, j):
    return np.delete(np.delete(a, i, -2), j, -1)


def cofactors(a):
    """The derivative of det by each element: its minor with a sign."""
    n = a.shape[-1]
    out = np.empty_like(a)
    for i, j in itertools.product(range(n), repeat=2):
        out[..., i, j] = (-1) ** (i + j) * np.linalg.det(without(a, i, j))
    return out


def second(a):
    n = a.shape[-1]
    out = np.zeros(a.shape * 2, a.dtype)
    for i, j in itertools.product(range(n), repeat=2):
        rows, columns = np.delete(np.arange(n), i), np.delete(np.arange(n), j)
        out[i, j][np.ix_(rows, columns)] = (-1) ** (i + j) * cofactors(without(a, i, j))
    return out


def matrices(n, dtype):
    """Matrices of every rank, with pivots of 0, or of noise, at every place."""
    rng = np.random.default_rng(n)

    def drawn(*shape):
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x

    found = [drawn(n, k) @ drawn(k, n) for k in range(n + 1)]
    for i in range(n):
        row, column = drawn(n, n), drawn(n, n)
        row[i] = column[:, i] = 0
        found += [row, column, np.diag(np.arange(n) - i)]
    twins, triplets = drawn(n, n), drawn(n, n)
    twins[:, 2] = twins[:, 0]
    triplets[:, 1] = triplets[:, 2] = triplets[:, 0]
    found += [twins, twins.T, triplets, np.eye(n, k=1), np.eye(n, k=-1), np.eye(n, k=2)]
    found += [np.ones((n, n)), np.arange(n * n).reshape(n, n)]
    found += [np.diag(10.0 ** np.arange(-n, n, 2))[:, rng.permutation(n)]]
    return np.stack(found).astype(dtype)


@pytest.mark.parametrize(("n", "dtype"), list(zip([5, 4, 4, 5], DTYPES, strict=True)))
def test_derivatives_of_any_rank(n, dtype):
    a = matrices(n, dtype)
    holomorphic = a.dtype.kind == "c"
    exact = a.astype(np.complex128 if holomorphic else np.float64)
    unit = np.finfo(dtype).eps * np.linalg.norm(exact, 2, (-2, -1)) ** (n - 1) + 1e-300
    first = primal.grad(jnp.linalg.det, holomorphic=holomorphic)
    want = cofactors(exact)
    stacked = primal.grad(lambda x: jnp.linalg.det(x).sum(), holomorphic=holomorphic)
    for got in (np.stack([first(x) for x in jnp.array(a)]), primal.jit(primal.vmap(first))(a),
                stacked(jnp.array(a))):  # fmt: skip
        assert (np.abs(got - want).max((-2, -1)) <= 30 * unit).all()
    twice = primal.jit(primal.vmap(primal.jacfwd(first, holomorphic=holomorphic)))(a)
    unit = np.finfo(dtype).eps * np.linalg.norm(exact, 2, (-2, -1)) ** (n - 2) + 1e-300
    for got, x, u in zip(np.asarray(twice), exact, unit, strict=True):
        assert np.abs(got - second(x)).max() <= 60 * u


def test_a_batch_with_a_singular_matrix_leaves_the_others_as_they_are():
    a = np.random.default_rng(0).standard_normal((3, 5, 5))
    grad = primal.jit(primal.vmap(primal.grad(jnp.linalg.det)))
    alone = np.asarray(grad(a))
    a[1, :, 0] = 0
    mixed = np.asarray(grad(a))
    np.testing.assert_array_equal(mixed[::2], alone[::2])
    np.testing.assert_allclose(mixed[1], cofactors(a[1]), atol=1e-13)


def test_nan_stays_nan_and_no_other_matrix_has_it():
    a = np.random.default_rng(0).standard_normal((2, 4, 4))
    a[0, 1, 2] = np.nan
    got = np.asarray(primal.vmap(primal.grad(jnp.linalg.det))(jnp.array(a)))
    assert np.isnan(got[0]).any() and np.isfinite(got[1]).all()


@pytest.mark.parametrize("run", [lambda f: f, primal.jit])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_sign_of_a_real_determinant_is_a_sign(run, value):
    a = np.diag([-1.0, -2, -3, value])
    sign, size = run(jnp.linalg.slogdet)(a)
    assert sign == -1
    np.testing.assert_equal(np.asarray(size), value)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "float16"])
def test_determinants_of_three_rows_are_their_formula(dtype):
    x = (np.random.default_rng(0).standard_normal((50, 2, 3, 3)) * 5).astype(dtype)
    if dtype == "float32":
        x[3, 1, 2, 0], x[7, 0, 1, 1], x[9] = np.nan, np.inf, -0.0
    a, b, c = np.moveaxis(x.astype("float16" if dtype == "float16" else "float32"), -2, 0)
    with np.errstate(all="ignore"):
        first, second, third = (
            a[..., i] * (b[..., j] * c[..., k] - b[..., k] * c[..., j])
            for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1))
        )
        want = first - second + third
    for got in (jnp.linalg.det(x), jnp.linalg.det(jnp.asarray(x).swapaxes(2, 1).swapaxes(1, 2))):
        assert np.array_equal(got, want, equal_nan=True)
        assert np.array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])
