"""Eager selection of 1000 rows of 16 floats, on the reference engine."""

NAME = "eager gather, 1000 rows of 16"
UNIT = "µs"
TARGET = 1.0


def setup(jax, jnp, lax):
    import numpy as np

    at = jnp.asarray(np.random.default_rng(0).integers(0, 100, 1000))
    x = jnp.ones((100, 16))
    return lambda: x[at]


def setup_numpy(np):
    at = np.random.default_rng(0).integers(0, 100, 1000)
    x = np.ones((100, 16), np.float32)
    return lambda: x[at]
