"""custom_root and custom_linear_solve against closed forms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
import primal.scipy as jsp
from primal import grad, jit, jvp, lax, vmap
from primal.base.pytree import tree_leaves

A = np.float32([[2.0, 1.0], [0.5, 4.0]])
B = np.float32([3.0, 4.0])


def newton_until(f: Any, x: Any) -> Any:
    def far(x: Any) -> Any:
        return abs(f(x)) > 1e-5

    return lax.while_loop(far, lambda x: x - f(x) / grad(f)(x), x)


def newton(f: Any, x: Any) -> Any:
    return lax.fori_loop(0, 20, lambda i, x: x - f(x) / grad(f)(x), x)


@pytest.mark.parametrize("solve", [newton, newton_until])
@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_roots(wrap: Any, solve: Any) -> None:
    def root(a: Any) -> Any:
        return lax.custom_root(lambda x: x * x - a, 1.0, solve, lambda g, y: y / g(1.0))

    assert float(wrap(root)(4.0)) == pytest.approx(2.0)
    assert float(wrap(grad(root))(4.0)) == pytest.approx(0.25)
    assert float(wrap(grad(grad(root)))(4.0)) == pytest.approx(-1 / 32)
    assert float(wrap(primal.jacfwd(grad(root)))(4.0)) == pytest.approx(-1 / 32)
    np.testing.assert_allclose(wrap(vmap(grad(root)))(np.float32([1, 4])), [0.5, 0.25], rtol=1e-6)


def test_roots_with_aux() -> None:
    def solve(f: Any, x: Any) -> Any:
        return newton(f, x), {"steps": 20, "last": x}

    def f(a: Any) -> Any:
        return lax.custom_root(
            lambda x: x * x - a, 1.0, solve, lambda g, y: y / g(1.0), has_aux=True
        )

    for wrap in (lambda g: g, jit):
        x, aux = wrap(f)(4.0)
        assert float(x) == pytest.approx(2.0) and int(aux["steps"]) == 20
        g, aux = wrap(grad(f, has_aux=True))(4.0)
        assert float(g) == pytest.approx(0.25) and int(aux["steps"]) == 20


def richardson(matvec: Any, b: Any) -> Any:
    def body(c: Any) -> Any:
        return c[0] + 1, c[1] + 0.2 * (b - matvec(c[1]))

    return lax.while_loop(lambda c: c[0] < 60, body, (0, jnp.zeros_like(b)))[1]


def solved(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda x: a @ x, b, richardson, richardson)


def closed_form(a: Any, b: Any) -> Any:
    det = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return jnp.stack([a[1, 1] * b[0] - a[0, 1] * b[1], a[0, 0] * b[1] - a[1, 0] * b[0]]) / det


def gradient(f: Any) -> Any:
    return grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1))


STACKS = {
    "value": lambda f: f,
    "jit": jit,
    "jvp": lambda f: lambda a, b: jvp(f, (a, b), (a * a, b)),
    "grad": gradient,
    "jit grad": lambda f: jit(gradient(f)),
    "hessian": lambda f: primal.hessian(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)),
    "vmap b": lambda f: lambda a, b: vmap(f, (None, 0))(a, jnp.stack([b, 2 * b])),
    "jit vmap grad": lambda f: lambda a, b: jit(vmap(gradient(f), (0, None)))(
        jnp.stack([a, 1.2 * a]), b
    ),
}


@pytest.mark.parametrize("stack", STACKS)
def test_linear_solutions(stack: str) -> None:
    got, wanted = STACKS[stack](solved)(A, B), STACKS[stack](closed_form)(A, B)
    for x, y in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_symmetric_systems_need_one_solver() -> None:
    s = A + A.T
    g = grad(lambda b: lax.custom_linear_solve(
        lambda x: s @ x, b, lambda m, b: richardson(lambda x: m(x) / 2, b) / 2, symmetric=True
    ).sum())(B)  # fmt: skip
    np.testing.assert_allclose(g, np.linalg.solve(s.T, np.ones(2)), rtol=1e-4)


def test_aux_of_linear_solutions() -> None:
    x, aux = jit(lambda b: lax.custom_linear_solve(
        lambda x: A @ x, b, lambda m, b: (richardson(m, b), {"n": 3}), has_aux=True
    ))(B)  # fmt: skip
    np.testing.assert_allclose(x, np.linalg.solve(A, B), rtol=1e-5)
    assert int(aux["n"]) == 3


def test_errors() -> None:
    with pytest.raises(TypeError, match="transpose_solve"):
        grad(lambda b: lax.custom_linear_solve(lambda x: A @ x, b, richardson).sum())(B)
    with pytest.raises(ValueError, match="matvec to return the structure and types of b"):
        lax.custom_linear_solve(lambda x: (A @ x)[0], B, richardson)
    with pytest.raises(ValueError, match="solve to return"):
        lax.custom_linear_solve(lambda x: A @ x, B, lambda m, b: b[0])
    with pytest.raises(ValueError, match="transpose_solve to return"):
        lax.custom_linear_solve(lambda x: x, B, richardson, lambda m, b: (b, b))
    with pytest.raises(ValueError, match=r"a pair \(x, aux\) from solve because has_aux"):
        lax.custom_linear_solve(lambda x: A @ x, B, lambda m, b: (b, 1, 2), has_aux=True)
    with pytest.raises(ValueError, match=r"a pair \(x, aux\) from solve because has_aux"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: x, lambda g, y: y, has_aux=True)
    with pytest.raises(TypeError, match="types of the initial guess"):
        lax.custom_root(lambda x: (x, x), 1.0, newton, lambda g, y: y)
    with pytest.raises(TypeError, match="callable"):
        lax.custom_root(lambda x: x, 1.0, 3, lambda g, y: y)


def test_root_by_a_solver_that_closes_over_what_is_differentiated() -> None:
    def root(a: Any) -> Any:
        return lax.custom_root(
            lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / g(1.0)
        )

    for f in (root, primal.jit(root), lambda a: primal.vmap(root)(jnp.stack([a, a]))[0]):
        np.testing.assert_allclose(primal.grad(f)(2.0), 0.5 / np.sqrt(2), rtol=1e-6)
        np.testing.assert_allclose(primal.jvp(f, (2.0,), (1.0,))[1], 0.5 / np.sqrt(2), rtol=1e-6)
        np.testing.assert_allclose(primal.grad(primal.grad(f))(2.0), -0.25 / 2**1.5, rtol=1e-6)


def cholesky_root(nested: bool, has_aux: bool) -> Any:
    """x = a⁻¹·b as a root, whose tangents are solved with factors of `a` made outside."""

    def root(a: Any, b: Any) -> Any:
        factors = jsp.linalg.cho_factor(a)

        def by_factors(_: Any, b: Any) -> Any:
            return jsp.linalg.cho_solve(factors, b)

        def solve(f: Any, b: Any) -> Any:
            return (by_factors(f, b), {"calls": 1}) if has_aux else by_factors(f, b)

        def tangent_solve(g: Any, y: Any) -> Any:
            if nested:
                return lax.custom_linear_solve(g, y, by_factors, symmetric=True)
            return by_factors(g, y)

        found = lax.custom_root(lambda x: a @ x - b, b, solve, tangent_solve, has_aux=has_aux)
        return found[0] if has_aux else found

    return root


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("has_aux", [False, True])
def test_tangents_solved_with_what_is_differentiated(nested: bool, has_aux: bool) -> None:
    root = cholesky_root(nested, has_aux)
    a, b = np.float32([[2.0, 0.5], [0.5, 3.0]]), np.float32([1.0, -2.0])
    da, db = np.float32([[0.5, 0.25], [0.25, -1.0]]), np.float32([0.5, 1.5])
    inv = np.linalg.inv(a.astype(np.float64))
    x = inv @ b
    dx = inv @ (db - da @ x)
    ddx = -2 * inv @ da @ dx  # a'' = b'' = 0
    lam = inv @ np.ones(2)

    def many(a: Any, b: Any) -> Any:
        return vmap(root)(jnp.stack([a, a + 1]), jnp.stack([b, b]))[0]

    close = partial(np.testing.assert_allclose, rtol=2e-5)
    for f in (root, jit(root), many, jit(many)):

        def along(a: Any, b: Any, f: Any = f) -> Any:
            return jvp(f, (a, b), (da, db))[1]

        def total(a: Any, b: Any, f: Any = f) -> Any:
            return f(a, b).sum()

        close(f(a, b), x)
        close(along(a, b), dx)
        close(jvp(along, (a, b), (da, db))[1], ddx)
        close(primal.jacfwd(f, 1)(a, b), inv)
        close(primal.jacrev(f, 1)(a, b), inv)
        got = grad(total, (0, 1))(a, b)
        close(got[0], -np.outer(lam, x))
        close(got[1], lam)
        mixed = jvp(grad(total, 1), (a, b), (da, db))[1]
        close(mixed, -inv @ da @ lam)
        # The factors are of a symmetric matrix: how its two halves share is theirs to say.
        got = grad(lambda a, b: jnp.vdot(db, grad(total, 1)(a, b)))(a, b)
        wanted = -np.outer(lam, inv @ db)
        close(got + got.T, wanted + wanted.T)


def test_integer_roots_have_no_derivatives() -> None:
    def root(a: Any) -> Any:
        found = lax.custom_root(
            lambda x: (x[0] - a, x[1]), (a, 2), lambda f, x: (a, 3), lambda g, y: g(1.0)
        )
        return found[0]

    assert root(2.0) == jit(root)(2.0) == 2.0
    for f in (root, jit(root)):
        with pytest.raises(TypeError, match="floating or complex guess"):
            grad(f)(2.0)
    for f in (grad, jit):
        with pytest.raises(TypeError, match="expected tangent_solve to return the structure"):
            f(lambda a: lax.custom_root(lambda x: x - a, a, newton, lambda g, y: (y,)))(1.0)
