"""Eager solutions of 1,000 systems of 4 equations, on the reference engine."""

import numpy as np

NAME = "eager 1,000 solutions of 4x4"
UNIT = "µs"
TARGET = 1.0


def systems():
    x, y = np.random.default_rng(0).standard_normal((2, 1000, 4, 4)).astype(np.float32)
    return x + 4 * np.eye(4, dtype=np.float32), y


def setup(jax, jnp, lax):
    x, y = map(jnp.asarray, systems())
    return lambda: jnp.linalg.solve(x, y)


def setup_numpy(np):
    x, y = systems()
    return lambda: np.linalg.solve(x, y)
