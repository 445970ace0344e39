"""The spectral radius of 128 matrices of 3 x 3, compiled."""

import numpy as np

NAME = "spectral radius of 128 3x3 matrices"
UNIT = "µs"
TARGET = 0.8
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}


def matrices():
    return np.random.default_rng(0).standard_normal((128, 3, 3)).astype(np.float32)


def setup(jax, jnp, lax):
    a = jnp.asarray(matrices())
    radius = jax.jit(lambda a: jnp.max(jnp.abs(jnp.linalg.eigvals(a)), axis=-1))
    return lambda: radius(a)


def setup_numpy(np):
    a = matrices()
    return lambda: np.max(np.abs(np.linalg.eigvals(a)), axis=-1)


def setup_torch(torch):
    a = torch.tensor(matrices())
    return lambda: torch.linalg.eigvals(a).abs().amax(-1)
