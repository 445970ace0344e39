"""Sums over the first axis of 1000 x 1000 floats."""

NAME = "sum over axis 0, 1000 x 1000"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (1000, 1000)
TINY = {"SHAPE": (10, 10)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(lambda x: x.sum(0))
    return lambda: call(x)


def setup_numpy(np):
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    return lambda: x.sum(0)


def setup_torch(torch):
    x = torch.randn(SHAPE)
    return lambda: x.sum(0)
