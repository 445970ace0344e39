"""custom_root and custom_linear_solve against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
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
