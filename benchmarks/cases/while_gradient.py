"""The derivative of a `while_loop`, which forward mode gives: 1,000 turns on 64 numbers."""

import numpy as np

NAME = "forward-mode derivative of a while_loop of 1,000 turns"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH, WIDTH = 1000, 64
TINY = {"LENGTH": 3, "WIDTH": 2}


def setup(jax, jnp, lax):
    x = jnp.asarray(np.linspace(0, 1, WIDTH, dtype=np.float32))

    def f(x):
        turn = lambda c: (c[0] + 1, jnp.sin(c[1]) * 0.9 + x)  # noqa: E731
        return lax.while_loop(lambda c: c[0] < LENGTH, turn, (0, x))[1]

    g = jax.jit(lambda x: jax.jvp(f, (x,), (x,)))
    return lambda: g(x)
