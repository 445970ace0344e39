"""The gradient of a scan of 1,000 steps, each a `cond` between two functions of one number."""

import numpy as np

NAME = "gradient of a cond in 1,000 steps of a scan"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH = 1000
TINY = {"LENGTH": 3}


def setup(jax, jnp, lax):
    xs = jnp.asarray(np.sin(np.arange(LENGTH)).astype(np.float32))

    def f(x):
        def step(c, v):
            return lax.cond(v > 0, lambda c: jnp.sin(c) * v, lambda c: c - v, c), None

        return lax.scan(step, x, xs)[0]

    g = jax.jit(jax.grad(f))
    x = jnp.float32(0.5)
    return lambda: g(x)
