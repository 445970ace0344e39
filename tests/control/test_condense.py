"""Narrow forms: their derivatives are loops, right for stacks and complex numbers."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.transforms.simplify import simplify

FORMS = {"hessenberg": lax.linalg.hessenberg, "tridiagonal": lax.linalg.tridiagonal}


@pytest.mark.parametrize("form", FORMS)
def test_the_program_of_a_derivative_does_not_grow_with_the_matrix(form):
    loss = lambda a: jnp.sum(FORMS[form](a)[0])  # noqa: E731

    def count(n):
        return len(simplify(primal.make_jaxpr(primal.grad(loss))(jnp.eye(n)), "kernel").eqns)

    assert count(7) == count(19)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_are_those_of_differences_and_alike_for_all_engines(form, dtype):
    draw = np.random.default_rng(3)

    def drawn():
        x = draw.normal(size=(2, 6, 6))
        x = x + 1j * draw.normal(size=x.shape) if dtype == np.complex128 else x
        return x + np.swapaxes(x, -1, -2).conj() if form == "tridiagonal" else x

    with primal.enable_x64(True):
        a, t, w = drawn(), drawn(), drawn()
        loss = lambda a: jnp.real(jnp.sum(w * FORMS[form](a)[0]))  # noqa: E731
        slope = primal.jvp(loss, (a,), (t,))[1]
        h = 1e-6
        np.testing.assert_allclose(slope, (loss(a + h * t) - loss(a - h * t)) / (2 * h), rtol=1e-6)
        back = primal.jit(primal.grad(loss))(a)
        np.testing.assert_allclose(jnp.real(jnp.sum(back * t)), slope, rtol=1e-9)
        np.testing.assert_allclose(back, primal.grad(loss)(a), rtol=1e-8, atol=1e-8)
