"""The median of 100,000 floats."""

NAME = "median of 100,000 floats"
UNIT = "ms"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (100_000,)
TINY = {"SHAPE": (100,)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(jnp.median)
    return lambda: call(x)


def setup_numpy(np):
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    return lambda: np.median(x)


def setup_torch(torch):
    x = torch.randn(SHAPE)
    return lambda: torch.median(x)
