"""Generators with a state: each draw is that of `fold_in` of the count, in and out of programs."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, random
from primal.experimental.random import StatefulPRNG, stateful_rng


def keys(seed, n, start=0):
    return [random.fold_in(random.key(seed), i) for i in range(start, start + n)]


DRAWS = {
    "key": (lambda g: random.key_data(g.key()), random.key_data),
    "keys": (lambda g: random.key_data(g.key((2, 3))),
             lambda k: random.key_data(random.split(k, (2, 3)))),
    "random": (lambda g: g.random(4), lambda k: random.uniform(k, (4,))),
    "half": (lambda g: g.random((2, 1), "float16"), lambda k: random.uniform(k, (2, 1), "float16")),
    "uniform": (lambda g: g.uniform(jnp.zeros((2, 1)), jnp.ones(3)),
                lambda k: random.uniform(k, (2, 3))),
    "bounds": (lambda g: g.uniform(2, 5, [3]), lambda k: random.uniform(k, (3,), float, 2, 5)),
    "normal": (lambda g: g.normal(1.0, jnp.array([2.0, 3.0])),
               lambda k: random.normal(k, (2,)) * jnp.array([2.0, 3.0]) + 1.0),
    "integers": (lambda g: g.integers(9, size=5), lambda k: random.randint(k, (5,), 0, 9)),
    "range": (lambda g: g.integers(-3, jnp.array([3, 5]), dtype="int16"),
              lambda k: random.randint(k, (2,), -3, jnp.array([3, 5]), "int16")),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("how", ["eager", "jit", "argument"])
def test_each_draw_takes_the_next_key(name, how):
    draw, want = DRAWS[name]
    rng = stateful_rng(7)
    closing, taking = primal.jit(lambda: draw(rng)), primal.jit(draw)
    f = {"eager": lambda: draw(rng), "jit": closing, "argument": lambda: taking(rng)}[how]
    for i, k in enumerate(keys(7, 3)):
        got, expected = f(), want(k)
        assert got.dtype == expected.dtype and not got.weak_type
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        assert rng._counter[...] == i + 1


def test_children():
    rng = stateful_rng(3)
    children, split = rng.spawn(3), rng.split((2, 2))
    first, second = keys(3, 2)
    same = np.testing.assert_array_equal
    same([random.key_data(c._base_key) for c in children], random.key_data(random.split(first, 3)))
    same(random.key_data(split._base_key), random.key_data(random.split(second, (2, 2))))
    assert rng.spawn(0) == [] and split._counter.shape == (2, 2)
    got = primal.vmap(primal.vmap(lambda g: (g.uniform(), g.uniform())))(split)
    each = [[stateful_pair(k) for k in row] for row in random.split(second, (2, 2))]
    same(np.moveaxis(np.array(got), 0, -1), each)


def stateful_pair(key):
    rng = StatefulPRNG(key, primal.new_ref(0))
    return [float(rng.uniform()), float(rng.uniform())]


def test_in_loops():
    rng, total = stateful_rng(5), sum(float(random.uniform(k)) for k in keys(5, 4))
    assert lax.scan(lambda c, _: (c + rng.uniform(), None), 0.0, None, 4)[0] == pytest.approx(total)
    assert rng._counter[...] == 4
    assert lax.fori_loop(0, 3, lambda i, c: c + rng.uniform(), 0.0) == pytest.approx(
        sum(float(random.uniform(k)) for k in keys(5, 3, 4))
    )


def test_shapes_are_numbers_or_any_sequences_of_them():
    for size in ([2, 3], np.array([2, 3]), jnp.array([2, 3])):
        assert stateful_rng(0).normal(size=size).shape == stateful_rng(0).key(size).shape == (2, 3)
    for size in (3, np.int64(3), np.array(3)):
        assert stateful_rng(0).random(size).shape == (3,)


def test_without_a_seed():
    a, b = stateful_rng().key((4,)), stateful_rng().key((4,))
    assert (random.key_data(a) != random.key_data(b)).any()
    assert random.key_impl(stateful_rng(1, impl="rbg")._base_key) == random.key_impl(
        random.key(0, impl="rbg")
    )


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: stateful_rng(0).split(2).random(), ValueError, "cannot operate on split"),
    (lambda: StatefulPRNG(random.PRNGKey(0), primal.new_ref(0)).key(), ValueError, "random.key"),
    (lambda: StatefulPRNG(random.key(0), 0).key(), ValueError, "reference"),
    (lambda: primal.jit(lambda: stateful_rng().key())(), TypeError, "expected a seed"),
    (lambda: stateful_rng(1.5), TypeError, "integer"),
    (lambda: stateful_rng(0).normal(jnp.zeros(3), size=(2,)), TypeError, "broadcast"),
    (lambda: stateful_rng(0).random(-1), TypeError, "non-negative"),
])  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()
