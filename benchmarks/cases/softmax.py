"""softmax of 1024 rows of 512 floats."""

NAME = "softmax, 1024 x 512"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (1024, 512)
TINY = {"SHAPE": (10, 10)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(jax.nn.softmax)
    return lambda: call(x)


def setup_torch(torch):
    x = torch.randn(SHAPE)
    return lambda: torch.softmax(x, 1)
