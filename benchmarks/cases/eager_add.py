"""Eager `x + x` on 8 floats: the price of one operation."""

NAME = "eager x + x, 8 floats"
UNIT = "µs"
TARGET = 2.5 / 6


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    return lambda: x + x


def setup_numpy(np):
    x = np.arange(8.0, dtype=np.float32)
    return lambda: x + x


def setup_torch(torch):
    x = torch.arange(8.0)
    return lambda: x + x
