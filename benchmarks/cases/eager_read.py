"""Eager `x[0]` on 8 floats."""

NAME = "eager x[0]"
UNIT = "µs"
TARGET = 4 / 39


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    return lambda: x[0]


def setup_numpy(np):
    x = np.arange(8.0, dtype=np.float32)
    return lambda: x[0]


def setup_torch(torch):
    x = torch.arange(8.0)
    return lambda: x[0]
