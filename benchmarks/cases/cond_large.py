"""A `cond` between a product of matrices and a sum, forward."""

import numpy as np

NAME = "cond with a large branch"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
WIDTH = 256
TINY = {"WIDTH": 4}


def setup(jax, jnp, lax):
    draw = np.random.default_rng(0)
    w = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH)
    x = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32))
    f = jax.jit(
        lambda x, p: lax.cond(p > 0, lambda x: jnp.tanh(w @ jnp.tanh(w @ x)).sum(), jnp.sum, x)
    )
    one = jnp.float32(1)
    return lambda: f(x, one)
