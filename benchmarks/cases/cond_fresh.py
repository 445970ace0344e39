"""`cond` outside of jit with functions that are new each time: the other is traced each time."""

import numpy as np

NAME = "cond outside of jit, of new lambdas"
UNIT = "µs"
TARGET = 1.0
LENGTH = 1000
LOOPS = 10
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    x = jnp.asarray(np.ones(LENGTH, np.float32))
    return lambda: lax.cond(True, lambda a: a * 2, lambda a: a - 1, x)
