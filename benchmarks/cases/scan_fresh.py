"""`scan` outside of jit with a function that is new each time, as a lambda in a loop is."""

import numpy as np

NAME = "scan outside of jit, of a new lambda"
UNIT = "ms"
TARGET = 1.0
LENGTH = 1000
LOOPS = 1
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    x = jnp.asarray(np.ones(LENGTH, np.float32))
    return lambda: lax.scan(lambda c, a: (0.9 * c + a, c), 0.0, x)
