"""`extend.core`: what interpreters of programs are written with."""

import importlib

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import custom_derivatives, lax
from primal.extend import core
from primal.extend.core import primitives


def closed():
    return primal.make_jaxpr(lambda x, y: (jnp.sin(x) * y, lax.cond(y > 0, jnp.exp, jnp.cos, x)))(
        1.0, 2.0
    )


def test_an_interpreter():
    """The loop that JAX's documents write: read, bind, write."""
    program = closed()
    env = dict(zip(program.jaxpr.invars, (0.5, -2.0), strict=True))

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else env[atom]

    for eqn in program.eqns:
        assert isinstance(eqn, core.JaxprEqn) and all(isinstance(v, core.Var) for v in eqn.outvars)
        outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs],
                       strict=True))
    got = [read(v) for v in program.jaxpr.outvars]
    np.testing.assert_allclose(got, [np.sin(0.5) * -2.0, np.cos(0.5)], rtol=1e-6)


def test_a_program_is_a_function():
    f = core.jaxpr_as_fun(closed())
    want = [np.sin(0.5) * 2.0, np.exp(0.5)]
    for g in (f, primal.jit(f)):
        np.testing.assert_allclose(g(0.5, 2.0), want, rtol=1e-6)
    slope = primal.grad(lambda x: f(x, 2.0)[0])(0.5)
    assert slope == pytest.approx(2 * np.cos(0.5))
    assert isinstance(closed(), core.ClosedJaxpr) and isinstance(closed().jaxpr, core.Jaxpr)
    assert closed().effects == core.no_effects


def test_records():
    names = [eqn.primitive.name for eqn in closed().eqns[:2]]
    assert names == ["sin", "mul"]
    assert primitives.sin_p is lax.sin_p is closed().eqns[0].primitive
    # Those that JAX calls otherwise than the operation.
    for found, name in (
        (primitives.add_jaxvals_p, "add_any"), (primitives.remat_p, "remat2"),
        (lax.linear_solve_p, "custom_linear_solve"),
        (custom_derivatives.custom_jvp_call_p, "custom_jvp_call"),
        (custom_derivatives.custom_vjp_call_p, "custom_vjp_call"),
    ):
        assert found.name == name and found is getattr(primitives, f"{name}_p")
    # They are listed, and what is listed is there.
    for module in (lax, lax.linalg, primitives):
        assert all(hasattr(module, name) for name in dir(module))
    assert {"sin_p", "scatter_add_p", "linear_solve_p"} <= set(dir(lax))
    assert {"sin_p", "remat_p", "cholesky_p"} <= set(dir(primitives))
    assert core.primitives is primitives is importlib.import_module("primal.extend.core.primitives")


@pytest.mark.parametrize(("call", "error"), [
    (lambda: core.jaxpr_as_fun(closed().jaxpr), TypeError),
    (lambda: core.jaxpr_as_fun(closed())(1.0), ValueError),
    (lambda: core.primitives.nothing_p, AttributeError),
    (lambda: core.primitives.sin, AttributeError),
    (lambda: primal.extend.nothing, AttributeError),
])  # fmt: skip
def test_refusals(call, error):
    with pytest.raises(error):
        call()
