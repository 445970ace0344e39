"""The derivative of a `while_loop` of products of matrices, which forward mode gives."""

import numpy as np

NAME = "forward-mode derivative of a while_loop of 50 products with a matrix of 512"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
WIDTH, TURNS = 512, 50
TINY = {"WIDTH": 4, "TURNS": 2}


def setup(jax, jnp, lax):
    draw = np.random.default_rng(0)
    w = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH)
    x = jnp.asarray(draw.standard_normal(WIDTH).astype(np.float32))

    def f(x):
        turn = lambda c: (c[0] + 1, jnp.tanh(w @ c[1]) + x)  # noqa: E731
        return lax.while_loop(lambda c: c[0] < TURNS, turn, (0, x))[1]

    g = jax.jit(lambda x: jax.jvp(f, (x,), (x,)))
    return lambda: g(x)
