"""1024 rows of 256 floats out of 10,000: an embedding."""

NAME = "gather of 1024 rows"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
ROWS, COUNT = 10_000, 1024
TINY = {"ROWS": 10, "COUNT": 5}


def setup(jax, jnp, lax):
    table = jnp.ones((ROWS, 256))
    at = jnp.arange(COUNT) * 7919 % ROWS
    call = jax.jit(lambda table, at: table[at])
    return lambda: call(table, at)


def setup_numpy(np):
    table = np.ones((ROWS, 256), np.float32)
    at = np.arange(COUNT) * 7919 % ROWS
    return lambda: table[at]


def setup_torch(torch):
    table = torch.ones((ROWS, 256))
    at = torch.arange(COUNT) * 7919 % ROWS
    return lambda: table[at]
