"""`cond` outside of jit: one function runs as Python, the other was traced once for its types."""

import numpy as np

NAME = "cond outside of jit"
UNIT = "µs"
TARGET = 1.0
LENGTH = 1000
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    x = jnp.asarray(np.ones(LENGTH, np.float32))

    def double(a):
        return a * 2

    def less(a):
        return a - 1

    return lambda: lax.cond(True, double, less, x)
