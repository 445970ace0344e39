"""Eager sum over the first axis of 1000 x 1000 floats, on the reference engine."""

NAME = "eager sum over axis 0, 1000 x 1000"
UNIT = "µs"
TARGET = 1.0


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.ones((1000, 1000), np.float32))
    return lambda: x.sum(0)


def setup_numpy(np):
    x = np.ones((1000, 1000), np.float32)
    return lambda: x.sum(0)
