"""A chain of elementwise operations over 4 million floats that memory bounds: one pass over it."""

NAME = "elementwise, 4M floats"
UNIT = "ms"
TARGET = 0.6
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (4_000_000,)
TINY = {"SHAPE": (100,)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(lambda x: jnp.tanh(x * 2.0 + 1.0) * x - 0.5)
    return lambda: call(x)


def setup_numpy(np):
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    return lambda: np.tanh(x * 2.0 + 1.0) * x - 0.5


def setup_torch(torch):
    x = torch.randn(SHAPE)
    return lambda: torch.tanh(x * 2.0 + 1.0) * x - 0.5
