"""Elementwise operations over 4 million floats that compute more than they move."""

NAME = "elementwise with a sine, 4M floats"
UNIT = "ms"
TARGET = 0.6
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (4_000_000,)
TINY = {"SHAPE": (100,)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(lambda x: jnp.sin(x * 3.0) * jnp.exp(-x * x / 2.0) + 0.1 * x)
    return lambda: call(x)


def setup_numpy(np):
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    return lambda: np.sin(x * 3.0) * np.exp(-x * x / 2.0) + 0.1 * x


def setup_torch(torch):
    x = torch.randn(SHAPE)
    return lambda: torch.sin(x * 3.0) * torch.exp(-x * x / 2.0) + 0.1 * x
