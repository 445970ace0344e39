"""A `while_loop` with a large body: power iteration until the vector stands still."""

import numpy as np

NAME = "while_loop of 50 products with a matrix of 512"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
WIDTH, TURNS = 512, 50
TINY = {"WIDTH": 4, "TURNS": 2}


def setup(jax, jnp, lax):
    draw = np.random.default_rng(0)
    a = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32))

    def turn(c):
        i, v = c
        w = a @ v
        return i + 1, w / jnp.sqrt((w * w).sum())

    f = jax.jit(lambda v: lax.while_loop(lambda c: c[0] < TURNS, turn, (0, v)))
    v = jnp.ones(WIDTH)
    return lambda: f(v)
