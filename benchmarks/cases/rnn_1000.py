"""A recurrent network of 64 units over 1,000 steps, and its gradient."""

import numpy as np

NAME = "gradient of a 1,000-step recurrent network of 64 units"
UNIT = "ms"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH, WIDTH = 1000, 64
TINY = {"LENGTH": 5, "WIDTH": 4}


def setup(jax, jnp, lax):
    draw = np.random.default_rng(0)
    w = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH)
    xs = jnp.asarray(draw.standard_normal((LENGTH, WIDTH)).astype(np.float32))

    def loss(w):
        last, _ = lax.scan(lambda h, x: (jnp.tanh(w @ h + x), None), jnp.zeros(WIDTH), xs)
        return last.sum()

    f = jax.jit(jax.grad(loss))
    return lambda: f(w)
