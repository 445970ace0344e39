"""Windows of 2 x 2 of 32 x 28 x 28 x 64 floats."""

NAME = "max pooling 2 x 2"
UNIT = "ms"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (32, 28, 28, 64)
TINY = {"SHAPE": (1, 4, 4, 2)}


def setup(jax, jnp, lax):
    import numpy as np

    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    call = jax.jit(lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    ))
    return lambda: call(x)
