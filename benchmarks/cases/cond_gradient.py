"""The gradient of a `cond` between a product of matrices and a sum."""

import numpy as np

NAME = "gradient of a cond with a large branch"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
WIDTH = 256
TINY = {"WIDTH": 4}


def setup(jax, jnp, lax):
    draw = np.random.default_rng(0)
    w = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH)
    x = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32))

    def f(x, p):
        return lax.cond(p > 0, lambda x: jnp.tanh(w @ jnp.tanh(w @ x)).sum(), jnp.sum, x)

    g = jax.jit(jax.grad(f))
    one = jnp.float32(1)
    return lambda: g(x, one)
