"""`scan` outside of jit, 1,000 tiny steps: interpreted at first, compiled when it runs long."""

import numpy as np

NAME = "scan of 1,000 tiny steps outside of jit"
UNIT = "µs"
TARGET = 1.0
LENGTH = 1000
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    x = jnp.asarray(np.ones(LENGTH, np.float32))

    def step(c, a):
        return 0.9 * c + a, c

    return lambda: lax.scan(step, 0.0, x)
