"""Products of 1,000 pairs of 4 x 4 matrices, compiled."""

import numpy as np

NAME = "1,000 products of 4x4 matrices"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}


def matrices():
    return np.random.default_rng(0).standard_normal((2, 1000, 4, 4)).astype(np.float32)


def setup(jax, jnp, lax):
    x, y = map(jnp.asarray, matrices())
    product = jax.jit(jnp.matmul)
    return lambda: product(x, y)


def setup_numpy(np):
    x, y = matrices()
    return lambda: x @ y


def setup_torch(torch):
    x, y = map(torch.tensor, matrices())
    return lambda: x @ y
