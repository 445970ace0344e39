"""Krylov solvers against direct solutions, with trees, preconditioners, derivatives, errors."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy.sparse.linalg import bicgstab, cg, gmres

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(6, 6))
POSITIVE = ROOT @ ROOT.T + 6 * np.eye(6)
GENERAL = ROOT + 6 * np.eye(6)
B = RNG.normal(size=6)


def incremental(*args, **kwargs):
    return gmres(*args, solve_method="incremental", **kwargs)


def restarted(*args, **kwargs):
    return gmres(*args, restart=3, maxiter=200, **kwargs)


SOLVERS = [
    (cg, POSITIVE),
    (bicgstab, GENERAL),
    (gmres, GENERAL),
    (incremental, GENERAL),
    (restarted, GENERAL),
]
each = pytest.mark.parametrize("solver, matrix", SOLVERS)


@each
@pytest.mark.parametrize("imaginary", [0, 0.3j])
def test_solutions(solver, matrix, imaginary) -> None:
    matrix = matrix + imaginary * (ROOT - ROOT.T)
    b = B + imaginary
    wanted = np.linalg.solve(matrix, b)
    with enable_x64(True):
        m = np.diag(1 / np.diag(matrix))
        for given in ({}, {"M": m}, {"M": lambda x: x / 6}, {"x0": jnp.array(b)}):
            x, info = primal.jit(lambda a, b: solver(a, b, tol=1e-10, **given))(matrix, b)  # noqa: B023
            np.testing.assert_allclose(x, wanted, rtol=1e-7, atol=1e-9)
            assert (info is None) if solver in (cg, bicgstab) else int(info) == 0


@each
def test_trees_and_single_precision(solver, matrix) -> None:
    b = {"a": jnp.array(B), "b": jnp.ones((2, 2))}
    matrix = jnp.array(matrix)
    x, _ = solver(lambda t: {"a": matrix @ t["a"], "b": 2 * t["b"]}, b, tol=1e-6)
    np.testing.assert_allclose(x["a"], np.linalg.solve(matrix, B), atol=1e-4)
    np.testing.assert_allclose(x["b"], 0.5, atol=1e-5)
    assert x["a"].dtype == jnp.float32


@each
def test_derivatives_and_batches(solver, matrix) -> None:
    def loss(solve):
        return lambda a, b: jnp.sum(jnp.sin(solve(a, b)))

    with enable_x64(True):

        def own(a, b):
            a = (a + a.T) / 2 if solver is cg else a
            return solver(a, b, tol=1e-12)[0]

        def direct(a, b):
            return jnp.linalg.solve((a + a.T) / 2 if solver is cg else a, b)

        got = primal.grad(loss(own), (0, 1))(matrix, B)
        wanted = primal.grad(loss(direct), (0, 1))(matrix, B)
        for g, w in zip(got, wanted, strict=True):
            np.testing.assert_allclose(g, w, atol=1e-8)
        many = primal.vmap(lambda b: own(jnp.array(matrix), b))(jnp.stack([B, -B, 3 * B]))
        np.testing.assert_allclose(many, np.outer([1, -1, 3], direct(matrix, B)), atol=1e-8)


@each
def test_ends(solver, matrix) -> None:
    matrix, b = jnp.array(matrix), jnp.array(B)
    assert not np.any(solver(matrix, 0 * b)[0])
    assert not np.any(solver(matrix, b, atol=1e3)[0])
    assert np.isnan(solver(matrix, b * jnp.nan)[0]).all()
    np.testing.assert_allclose(solver(jnp.eye(3), jnp.arange(3))[0], [0, 1, 2], atol=1e-6)
    assert solver(jnp.zeros((0, 0)), jnp.zeros(0))[0].shape == (0,)
    if solver in (cg, bicgstab):
        assert not np.any(solver(matrix, b, maxiter=0)[0])


@each
def test_errors(solver, matrix) -> None:
    b = jnp.array(B)
    for a in ("a", [[1.0]], None):
        with pytest.raises(TypeError, match="linear operator"):
            solver(a, b)
    for a in (jnp.ones((2, 3)), b):
        with pytest.raises(ValueError, match="square"):
            solver(a, b)
    for x0 in (jnp.ones(3), {"a": b}):
        with pytest.raises(ValueError, match="x0 and b"):
            solver(matrix, b, x0)
    with pytest.raises(ValueError, match="shapes of b"):
        solver(lambda x: x[:2], b)
    with pytest.raises(ValueError, match="solve_method"):
        gmres(matrix, b, solve_method="foo")
    with pytest.raises(ValueError, match="restart"):
        gmres(matrix, b, restart=0)
