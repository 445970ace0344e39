"""Loops outside of jit give the same bits at every call, the first one too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, random
from primal.base.pytree import tree_leaves
from primal.experimental.ode import odeint
from primal.runtime.programs import counters

X = np.linspace(-2, 2, 37, dtype=np.float32)


def step(c: Any, x: Any) -> Any:
    c = jnp.tanh(1.3 * c) + jnp.sin(x) * jnp.exp(-c * c)
    return c, jnp.cos(c)


def scanned(w: Any) -> Any:
    return lax.scan(lambda c, x: step(c * w, x), X, jnp.stack([X] * 5))


def summed(w: Any) -> Any:
    return jnp.sum(scanned(w)[0])


PROGRAMS: dict[str, Callable[[], Any]] = {
    "scan": lambda: scanned(1.1),
    "gradient of scan": lambda: primal.value_and_grad(summed)(1.1),
    "jvp of scan": lambda: primal.jvp(summed, (1.1,), (1.0,)),
    "vmap of scan": lambda: primal.vmap(summed)(X[:3]),
    "fori_loop": lambda: lax.fori_loop(0, 7, lambda i, c: step(c, i * 0.1)[0], X),
    "while_loop": lambda: lax.while_loop(
        lambda c: jnp.sum(c) < 30, lambda c: jnp.exp(0.1 * c) + c, X
    ),
    "long while_loop": lambda: lax.while_loop(
        lambda c: c[0] < 5000, lambda c: (c[0] + 1, step(c[1], 0.3)[0]), (0, jnp.float32(0.1))
    ),
    "map": lambda: lax.map(lambda x: step(x, 0.2), X),
    "associative_scan": lambda: lax.associative_scan(lambda a, b: jnp.tanh(a + b), X),
    "custom_root": lambda: lax.custom_root(
        lambda x: x**3 - 2 * jnp.sin(x) - 1.0,
        1.0,
        lambda f, x: lax.fori_loop(0, 9, lambda _, c: c - f(c) / primal.grad(f)(c), x),
        lambda g, y: y / g(1.0),
    ),
    "choice of a loop": lambda: lax.cond(True, scanned, lambda w: scanned(w + 1), 1.1),
    "odeint": lambda: odeint(lambda y, t: -jnp.sin(y) * t, X[:3], jnp.linspace(0, 2, 4)),
    "gamma": lambda: random.gamma(random.key(0), 0.7, (4001,)),
    "poisson": lambda: random.poisson(random.key(0), 30.0, (4001,)),
    "binomial": lambda: random.binomial(random.key(0), 40.0, 0.3, (3001,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_call_gives_the_same_bits(name: str) -> None:
    primal.clear_caches()
    calls = [[np.asarray(x).tobytes() for x in tree_leaves(PROGRAMS[name]())] for _ in range(4)]
    assert calls[0] == calls[1] == calls[2] == calls[3]


def test_it_is_the_program_of_jit() -> None:
    for name in ("scan", "while_loop", "map"):
        eager, jitted = PROGRAMS[name](), primal.jit(PROGRAMS[name])()
        for a, b in zip(tree_leaves(eager), tree_leaves(jitted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 30_000])
def test_alike_loops_are_compiled_once(steps: int) -> None:
    primal.clear_caches()
    before = counters.compilations
    xs = jnp.ones(steps)
    carry, ys = lax.scan(lambda c, x: (c * 0.9 + x, c), 0.0, xs)
    assert counters.compilations == before + 1
    np.testing.assert_allclose(carry, 10.0 * (1 - 0.9**steps), rtol=1e-5)
    np.testing.assert_allclose(ys[:3], [0.0, 1.0, 1.9][:steps], rtol=1e-6)
    lax.scan(lambda c, x: (c * 0.9 + x, c), 0.0, xs)  # Another function with the same body.
    assert counters.compilations == before + 1


def test_a_bound_of_a_while_loop_is_no_part_of_its_program() -> None:
    primal.clear_caches()
    before = counters.compilations
    for n in (10, 20_000, 7):
        i, x, _ = lax.while_loop(
            lambda c: c[0] < c[2], lambda c: (c[0] + 1, c[1] * 0.5 + 1.0, c[2]), (0, 0.0, n)
        )
        assert i == n
        assert abs(x - 2.0) < 0.02
    assert counters.compilations == before + 1


def test_operands_on_a_device_run_the_same_program() -> None:
    there = primal.device_put(jnp.asarray(X), primal.devices()[0])
    before = counters.compilations
    placed = lax.fori_loop(0, 7, lambda i, c: step(c, i * 0.1)[0], there)
    assert placed.committed
    free = PROGRAMS["fori_loop"]()
    assert counters.compilations <= before + 1
    assert np.asarray(placed).tobytes() == np.asarray(free).tobytes()
