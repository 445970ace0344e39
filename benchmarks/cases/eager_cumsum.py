"""Eager running sum of 1000 floats, on the reference engine."""

NAME = "eager cumsum, 1000 floats"
UNIT = "µs"
TARGET = 1.0


def setup(jax, jnp, lax):
    x = jnp.ones(1000)
    return lambda: jnp.cumsum(x)


def setup_numpy(np):
    x = np.ones(1000, np.float32)
    return lambda: np.cumsum(x)
