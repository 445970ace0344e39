"""Sort a million floats."""

NAME = "sort of 1M floats"
UNIT = "ms"
TARGET = 0.1
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (1_000_000,)
TINY = {"SHAPE": (100,)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(jnp.sort)
    return lambda: call(x)


def setup_numpy(np):
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    return lambda: np.sort(x)


def setup_torch(torch):
    x = torch.randn(SHAPE)
    return lambda: torch.sort(x)
