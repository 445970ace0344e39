"""primal.core: looking at programs from outside."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import core


def test_traced_values_are_tracers_and_arrays_are_not():
    seen = []

    def f(x):
        seen.append(isinstance(x, core.Tracer) and isinstance(x, primal.Array))
        return x

    for transformed in (primal.jit(f), primal.grad(f), primal.vmap(f, axis_size=2, in_axes=None)):
        transformed(1.0)
    assert seen == [True, True, False]
    assert not isinstance(jnp.ones(2), core.Tracer)


def test_avals_are_shaped_arrays():
    aval = primal.typeof(jnp.ones((2, 3)))
    assert isinstance(aval, core.ShapedArray) and isinstance(aval, core.AbstractValue)
    assert aval == core.ShapedArray((2, 3), "float32") != core.ShapedArray((2, 3), jnp.int32)


def test_programs_run_again_under_transformations():
    closed = primal.make_jaxpr(lambda x, y: (jnp.sin(x) * y, x))(1.0, jnp.arange(2.0))
    assert [a.str_short() for a in closed.in_avals] == ["float32[]", "float32[2]"]
    assert closed.out_avals == [v.aval for v in closed.jaxpr.outvars]

    def again(x, y):
        return core.eval_jaxpr(closed.jaxpr, closed.consts, x, y)

    x, y = jnp.float32(0.5), jnp.arange(2.0)
    for f in (again, primal.jit(again)):
        out = f(x, y)
        np.testing.assert_allclose(out[0], np.sin(0.5) * np.arange(2), rtol=1e-6)
        assert out[1] == 0.5
    assert primal.grad(lambda x: again(x, y)[0].sum())(x) == pytest.approx(np.cos(0.5), rel=1e-6)
    with pytest.raises(ValueError, match="expected 2 inputs, got 1"):
        core.eval_jaxpr(closed.jaxpr, closed.consts, x)


def test_an_interpreter_of_programs():
    """A jaxpr tells all that a user's own interpreter needs: here, one that inverts functions."""
    inverses = {primal.lax.exp_p: jnp.log, primal.lax.tanh_p: jnp.arctanh}
    closed = primal.make_jaxpr(lambda x: jnp.exp(jnp.tanh(x)))(1.0)

    def inverse(value):
        known = {closed.jaxpr.outvars[0]: value}
        for eqn in reversed(closed.jaxpr.eqns):
            known[eqn.invars[0]] = inverses[eqn.primitive](known[eqn.outvars[0]])
        return known[closed.jaxpr.invars[0]]

    x = jnp.float32(0.3)
    np.testing.assert_allclose(inverse(jnp.exp(jnp.tanh(x))), x, rtol=1e-5)
    assert primal.jit(primal.grad(inverse))(jnp.float32(1.5)) > 0


def test_an_interpreter_that_binds_operations_one_by_one():
    def f(x):
        return primal.lax.sort((primal.jit(jnp.sin)(x), x), num_keys=1)

    closed = primal.make_jaxpr(f)(jnp.zeros(3))

    def again(x):
        known = {closed.jaxpr.invars[0]: x}
        for eqn in closed.jaxpr.eqns:
            functions, params = eqn.primitive.get_bind_params(eqn.params)
            ins = [known[v] for v in eqn.invars]
            outs = eqn.primitive.bind(*functions, *ins, **params)
            outs = outs if eqn.primitive.multiple_results else [outs]
            known.update(zip(eqn.outvars, outs, strict=True))
        return [known[v] for v in closed.jaxpr.outvars]

    x = jnp.array([0.3, 0.1, 0.2])
    for g in (again, primal.jit(again)):
        np.testing.assert_array_equal(g(x), f(x))


def test_devices_are_printed_in_short_and_in_full():
    device = primal.devices()[0]
    assert (str(device), f"{device}", repr(device)) == ("cpu:0", "cpu:0", "CpuDevice(id=0)")
    assert str(jnp.ones(1).devices()) == "{CpuDevice(id=0)}"


def test_platforms_that_are_not_here():
    with pytest.raises(RuntimeError, match=r"among cpu.* got 'nonsense': Unknown backend nonsense"):
        primal.devices("nonsense")


def test_avals_lose_their_weak_type():
    weak = core.ShapedArray((3,), np.dtype("float32"), weak_type=True)
    assert weak.strip_weak_type() == core.ShapedArray((3,), np.dtype("float32"))
    assert weak.strip_weak_type().strip_weak_type() == weak.strip_weak_type()
