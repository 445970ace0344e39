"""Running sums of a million floats."""

NAME = "cumsum of 1M floats"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (1_000_000,)
TINY = {"SHAPE": (100,)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(jnp.cumsum)
    return lambda: call(x)


def setup_numpy(np):
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    return lambda: np.cumsum(x)


def setup_torch(torch):
    x = torch.randn(SHAPE)
    return lambda: torch.cumsum(x, 0)
