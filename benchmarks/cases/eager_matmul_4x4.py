"""Eager products of 1,000 pairs of 4 x 4 matrices, on the reference engine."""

import numpy as np

NAME = "eager 1,000 products of 4x4 matrices"
UNIT = "µs"
TARGET = 1.0


def matrices():
    return np.random.default_rng(0).standard_normal((2, 1000, 4, 4)).astype(np.float32)


def setup(jax, jnp, lax):
    x, y = map(jnp.asarray, matrices())
    return lambda: x @ y


def setup_numpy(np):
    x, y = matrices()
    return lambda: x @ y
