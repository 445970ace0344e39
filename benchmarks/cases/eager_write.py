"""Eager `x.at[0].set(1.)` on 8 floats. The guests copy and assign, which is what it means."""

NAME = "eager x.at[0].set(1.)"
UNIT = "µs"
TARGET = 8 / 180


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    return lambda: x.at[0].set(1.0)


def setup_numpy(np):
    x = np.arange(8.0, dtype=np.float32)

    def write():
        y = x.copy()
        y[0] = 1.0
        return y

    return write


def setup_torch(torch):
    x = torch.arange(8.0)

    def write():
        y = x.clone()
        y[0] = 1.0
        return y

    return write
