"""`extend.core`: what interpreters of programs are written with."""

import importlib

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import custom_derivatives, lax
from primal.extend import backend, core
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


def test_parts_of_programs():
    whole = primal.make_jaxpr(primal.jit(lambda x: lax.scan(lambda c, a: (c + a, c), 0.0, x)))(
        jnp.ones(3)
    )
    core.check_jaxpr(whole.jaxpr)
    (called,) = core.subjaxprs(whole.jaxpr)
    assert [len(list(core.jaxprs_in_params(eqn.params))) for eqn in called.eqns] == [1]
    (eqn,) = primal.make_jaxpr(jnp.sin)(1.0).eqns
    new = core.gensym()
    x, y = new(eqn.invars[0].aval), new(eqn.outvars[0].aval)
    twice = [
        core.new_jaxpr_eqn([x], [y], eqn.primitive, eqn.params, eqn.effects, eqn.source_info)
    ] * 2
    with pytest.raises(core.JaxprTypeError, match="one binding per variable"):
        core.check_jaxpr(core.Jaxpr([], [x], [y], twice))
    sine = core.ClosedJaxpr(core.Jaxpr([], [x], [y], twice[:1]), [])
    assert core.jaxpr_as_fun(sine)(0.5) == [jnp.sin(0.5)]


def test_types_of_examples_and_of_values():
    aval = primal.typeof(jnp.ones((3, 2)))
    for axis in (0, 1, -1):
        one = core.mapped_aval(aval.shape[axis], axis, aval)
        assert core.unmapped_aval(aval.shape[axis], axis, one) == aval
    assert core.mapped_aval(5, None, aval) is core.unmapped_aval(5, None, aval) is aval
    with pytest.raises(ValueError, match="expected axis 0 of size 5"):
        core.mapped_aval(5, 0, aval)
    assert core.valid_jaxtype(1.0) and not core.valid_jaxtype("a")
    assert core.primal_dtype_to_tangent_dtype(jnp.dtype("int8")) == primal.dtypes.float0
    assert core.concrete_or_error(int, jnp.array(2)) == 2
    with pytest.raises(primal.errors.ConcretizationTypeError, match="sizes of f"):
        primal.jit(lambda n: core.concrete_or_error(int, n, "sizes of f"))(1)


def test_backends():
    found = backend.get_backend("cpu")
    assert found.platform == "cpu" and backend.backends()["cpu"] is found
    with primal.default_device(primal.devices("cpu")[0]):
        assert backend.get_default_device() == primal.devices("cpu")[0]
    with pytest.raises(RuntimeError, match="nope"):
        backend.get_backend("nope")
