"""Eager `sin(x)` on 8 floats."""

NAME = "eager sin(x), 8 floats"
UNIT = "µs"
TARGET = 2.5 / 4


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    return lambda: jnp.sin(x)


def setup_numpy(np):
    x = np.arange(8.0, dtype=np.float32)
    return lambda: np.sin(x)


def setup_torch(torch):
    x = torch.arange(8.0)
    return lambda: torch.sin(x)
