"""Eager sort of 1000 floats, on the reference engine."""

NAME = "eager sort, 1000 floats"
UNIT = "µs"
TARGET = 1.0


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(1000, dtype=np.float32))
    return lambda: jnp.sort(x)


def setup_numpy(np):
    x = np.random.default_rng(0).standard_normal(1000, dtype=np.float32)
    return lambda: np.sort(x, kind="stable")
