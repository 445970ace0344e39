"""Optimizers against their formulas in NumPy, schedules against theirs; state passes jit."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.example_libraries import optimizers

X = np.array([1.0, -2.0, 3.0])


def slope(x):
    """That of x^2 + sin x."""
    return 2 * x + np.cos(x)


def sgd(steps, x):
    for _ in range(steps):
        x = x - 0.1 * slope(x)
    return x


def momentum(steps, x):
    v = 0 * x
    for _ in range(steps):
        v = 0.9 * v + slope(x)
        x = x - 0.1 * v
    return x


def nesterov(steps, x):
    v = 0 * x
    for _ in range(steps):
        g = slope(x)
        v = 0.9 * v + g
        x = x - 0.1 * (0.9 * v + g)
    return x


def adagrad(steps, x):
    s, m = 0 * x, 0 * x
    for _ in range(steps):
        g = slope(x)
        s = s + g**2
        m = (1 - 0.9) * (g / np.sqrt(s)) + 0.9 * m
        x = x - 0.1 * m
    return x


def rmsprop(steps, x):
    s = 0 * x
    for _ in range(steps):
        g = slope(x)
        s = 0.9 * s + 0.1 * g**2
        x = x - 0.1 * g / np.sqrt(s + 1e-8)
    return x


def rmsprop_momentum(steps, x):
    s, m = 0 * x, 0 * x
    for _ in range(steps):
        g = slope(x)
        s = 0.9 * s + 0.1 * g**2
        m = 0.9 * m + 0.1 * g / np.sqrt(s + 1e-8)
        x = x - m
    return x


def adam(steps, x):
    m, v = 0 * x, 0 * x
    for t in range(1, steps + 1):
        g = slope(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return x


def adamax(steps, x):
    m, u = 0 * x, 0 * x
    for t in range(1, steps + 1):
        g = slope(x)
        m, u = 0.9 * m + 0.1 * g, np.maximum(0.999 * u, np.abs(g))
        x = x - 0.1 / (1 - 0.9**t) * m / (u + 1e-8)
    return x


MAKERS = {
    sgd: lambda: optimizers.sgd(0.1),
    momentum: lambda: optimizers.momentum(0.1, 0.9),
    nesterov: lambda: optimizers.nesterov(0.1, 0.9),
    adagrad: lambda: optimizers.adagrad(0.1),
    rmsprop: lambda: optimizers.rmsprop(0.1),
    rmsprop_momentum: lambda: optimizers.rmsprop_momentum(0.1),
    adam: lambda: optimizers.adam(0.1),
    adamax: lambda: optimizers.adamax(0.1),
}


@pytest.mark.parametrize("oracle", MAKERS, ids=lambda f: f.__name__)
def test_formula(oracle):
    init, update, parameters = MAKERS[oracle]()
    loss = primal.grad(lambda p: sum(jnp.sum(x**2 + jnp.sin(x)) for x in primal.tree.leaves(p)))
    state = init({"w": jnp.array(X), "deep": [jnp.array(X[:2]).reshape(1, 2)]})
    step = primal.jit(lambda i, state: update(i, loss(parameters(state)), state))
    for i in range(7):
        state = step(i, state)
    got = parameters(state)
    np.testing.assert_allclose(got["w"], oracle(7, X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got["deep"][0], oracle(7, X[:2])[None], rtol=1e-4, atol=1e-5)


def test_sm3_of_vectors_is_adagrad_and_of_matrices_shares_by_row_and_column():
    init, update, parameters = optimizers.sm3(0.1)
    state = init(jnp.array(X))
    for i in range(7):
        state = update(i, slope(np.asarray(parameters(state), np.float64)), state)
    np.testing.assert_allclose(parameters(state), adagrad(7, X), rtol=1e-4)
    state = init(jnp.zeros((2, 2)))
    state = update(0, jnp.array([[1.0, 0.0], [0.0, 2.0]]), state)
    state = update(1, jnp.array([[1.0, 1.0], [1.0, 1.0]]), state)
    # After step one rows have (1, 4) and columns (1, 4): the smaller of the two is what counts.
    seen = np.minimum([[1.0], [4.0]], [[1.0, 4.0]]) + 1.0
    first = np.array([[1.0, 0.0], [0.0, 1.0]]) * 0.1
    want = -0.1 * first - 0.1 * (0.1 / np.sqrt(seen) + 0.9 * first)
    np.testing.assert_allclose(parameters(state), want, rtol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (optimizers.constant(0.1), [0.1, 0.1, 0.1]),
        (optimizers.exponential_decay(0.1, 10, 0.5), [0.1, 0.1 * 0.5**0.4, 0.1 * 0.5**2.5]),
        (optimizers.inverse_time_decay(0.1, 10, 0.5), [0.1, 0.1 / 1.2, 0.1 / 2.25]),
        (optimizers.inverse_time_decay(0.1, 10, 0.5, staircase=True), [0.1, 0.1, 0.05]),
        (optimizers.polynomial_decay(0.1, 10, 0.01, 2.0), [0.1, 0.09 * 0.36 + 0.01, 0.01]),
        (optimizers.piecewise_constant([3, 6], [0.1, 0.2, 0.3]), [0.1, 0.2, 0.3]),
        (optimizers.make_schedule(0.5), [0.5, 0.5, 0.5]),
    ],
    ids=range(7),
)
def test_schedules(schedule, values):
    np.testing.assert_allclose([schedule(i) for i in (0, 4, 25)], values, rtol=1e-5)
    np.testing.assert_allclose([primal.jit(schedule)(i) for i in (0, 4, 25)], values, rtol=1e-5)


def test_norms_and_clipping():
    tree = {"a": jnp.array([3.0]), "b": (jnp.array([[4.0]]),)}
    assert optimizers.l2_norm(tree) == 5.0
    clipped = optimizers.clip_grads(tree, 1.0)
    np.testing.assert_allclose(clipped["b"][0], [[0.8]], rtol=1e-6)
    assert primal.tree.all(
        primal.tree.map(lambda x, y: (x == y).all(), optimizers.clip_grads(tree, 6.0), tree)
    )


def test_state_unpacks_and_packs():
    init, update, parameters = optimizers.momentum(0.1, 0.9)
    state = update(0, {"w": 1.0}, init({"w": jnp.float32(2.0)}))
    marked = optimizers.unpack_optimizer_state(state)
    assert set(marked) == {"w"}
    assert parameters(optimizers.pack_optimizer_state(marked)) == parameters(state)


def test_what_is_refused():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="did not match the parameter tree"):
        update(0, {"x": 1.0}, init({"w": 1.0}))
    with pytest.raises(ValueError):
        optimizers.piecewise_constant([1], [1])
