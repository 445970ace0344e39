"""odeint against closed forms, SciPy's integrators and finite differences."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import primal
import primal.numpy as jnp
from primal import grad, jit, tree, vmap
from primal.base.config import enable_x64
from primal.experimental.ode import odeint

T = np.linspace(0.0, 2.0, 5)


def pendulum(y, t, damping, g):
    return {"angle": y["speed"], "speed": -damping * y["speed"] - g * jnp.sin(y["angle"])}


def of_scipy(y0, damping, g):
    def f(t, y):
        return [y[1], -damping * y[1] - g * np.sin(y[0])]

    return solve_ivp(f, (0, 2), y0, t_eval=T, method="DOP853", rtol=1e-12, atol=1e-12).y


def test_trees_against_scipy():
    with enable_x64(True):
        y0 = {"angle": 1.0, "speed": 0.0}
        found = jit(lambda y0: odeint(pendulum, y0, T, 0.25, 9.8))(y0)
        want = of_scipy([1.0, 0.0], 0.25, 9.8)
        np.testing.assert_allclose(found["angle"], want[0], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found["speed"], want[1], rtol=1e-6, atol=1e-7)


def test_gradients_by_everything_against_finite_differences():
    def last(angle, times, damping, g):
        y0 = {"angle": angle, "speed": jnp.zeros_like(angle)}
        found = odeint(pendulum, y0, times, damping, g, rtol=1e-10, atol=1e-10)
        return jnp.sum(found["angle"] ** 2) + found["speed"][-1]

    with enable_x64(True):
        args = (jnp.array(1.0), jnp.array(T), jnp.array(0.25), jnp.array(9.8))
        found = grad(last, argnums=(0, 1, 2, 3))(*args)
        value = jit(last)
        for k in range(4):
            for i in np.ndindex(np.shape(args[k])):
                step = np.zeros(np.shape(args[k]))
                step[i] = 1e-5
                up = value(*[a + step if j == k else a for j, a in enumerate(args)])
                down = value(*[a - step if j == k else a for j, a in enumerate(args)])
                np.testing.assert_allclose(found[k][i], (up - down) / 2e-5, rtol=2e-5, atol=1e-6)


def test_what_the_function_closes_over_has_derivatives_of_order_two():
    def decay(k):
        return odeint(lambda y, t: -k * y, 1.0, jnp.array([0.0, 2.0]), rtol=1e-6, atol=1e-6)[1]

    k = jnp.float32(0.7)
    np.testing.assert_allclose(grad(decay)(k), -2 * np.exp(-1.4), rtol=1e-4)
    np.testing.assert_allclose(grad(grad(decay))(k), 4 * np.exp(-1.4), rtol=1e-4)


def test_integer_arguments_have_no_derivative_and_are_kept():
    def f(rate, n):
        t = jnp.array([0.0, 1.0])
        return odeint(lambda y, t, r, n: -r * y * n["times"], 1.0, t, rate, n)[1]

    n = {"times": jnp.arange(3)[2]}
    np.testing.assert_allclose(grad(f)(0.5, n), -2 * np.exp(-1.0), rtol=1e-4)


def test_maps_over_stiff_and_slow_examples():
    rates = jnp.array([0.01, 1.0, 30.0])
    found = vmap(lambda r: odeint(lambda y, t: -r * y, 1.0, T.astype(np.float32)))(rates)
    np.testing.assert_allclose(found, np.exp(-np.outer(rates, T)), rtol=1e-4, atol=1e-6)
    slopes = vmap(grad(lambda r: odeint(lambda y, t: -r * y, 1.0, jnp.array([0.0, 1.0]))[1]))
    np.testing.assert_allclose(slopes(rates[:2]), -np.exp(-rates[:2]), rtol=1e-4)


def test_complex_rotation():
    found = odeint(lambda y, t, w: 1j * w * y, jnp.array([1.0 + 0j]), T.astype(np.float32), 3.0)
    np.testing.assert_allclose(found[:, 0], np.exp(3j * T), atol=1e-4)

    def real(w):
        return odeint(lambda y, t, w: 1j * w * y, 1.0 + 0j, jnp.array([0.0, 2.0]), w)[1].real

    np.testing.assert_allclose(grad(real)(3.0), -2 * np.sin(6.0), rtol=1e-3)


def test_dense_output_is_of_order_four():
    """Errors between the steps, which targets do not shorten, fall with the tolerance."""
    with enable_x64(True):
        t = np.linspace(0, 10, 301)
        worst = [
            np.abs(odeint(lambda y, t: (y[1], -y[0]), (0.0, 1.0), t, rtol=r, atol=r)[0] - np.sin(t))
            for r in (1e-4, 1e-8)
        ]
        assert worst[0].max() < 1e-2 and worst[1].max() < 2e-6


def test_steps_are_counted_and_bounded():
    calls = []

    def f(y, t):
        primal.debug.callback(lambda t: calls.append(float(t)), t)
        return jnp.cos(t)

    odeint(f, 0.0, jnp.array([0.0, 1.0]), hmax=0.1, rtol=1.0, atol=1.0)
    primal.effects_barrier()
    assert len(calls) >= 60  # six slopes a step
    # 1 / (1 - t) ends at 1: nothing is found behind it, and nothing goes on for ever.
    beyond = odeint(lambda y, t: y**2, 1.0, jnp.array([0.0, 0.5, 2.0]), mxstep=200)
    np.testing.assert_allclose(beyond[:2], [1, 2], rtol=1e-5)
    assert np.isnan(beyond[2])
    assert odeint(lambda y, t: y, 3.0, jnp.array([1.0])).tolist() == [3.0]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: odeint(lambda y, t: y, 1.0, T, "fast"), TypeError, "arrays and numbers"),
        (lambda: odeint(lambda y, t: (y, y), 1.0, T), TypeError, "a tree like y0"),
        (lambda: odeint(lambda y, t: y, 1, T), TypeError, "floating y0"),
        (lambda: odeint(lambda y, t: y, 1.0, 1.0), ValueError, "one dimension"),
        (
            lambda: primal.jvp(lambda y: odeint(lambda y, t: y, y, T), (1.0,), (1.0,)),
            TypeError,
            "custom_vjp",
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_results_are_trees_of_rows():
    y0 = {"a": jnp.ones((2, 3)), "b": [jnp.float32(1), jnp.zeros(0)]}
    found = odeint(lambda y, t: tree.map(lambda x: -x, y), y0, jnp.array([0.0, 1.0]))
    assert tree.map(lambda x: x.shape, found) == {"a": (2, 2, 3), "b": [(2,), (2, 0)]}
