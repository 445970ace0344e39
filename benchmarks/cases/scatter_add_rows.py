"""1024 rows of 256 floats added to 10,000: the gradient of an embedding."""

NAME = "scatter-add of 1024 rows"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
ROWS, COUNT = 10_000, 1024
TINY = {"ROWS": 10, "COUNT": 5}


def setup(jax, jnp, lax):
    rows = jnp.ones((COUNT, 256))
    at = jnp.arange(COUNT) * 7919 % ROWS
    call = jax.jit(lambda rows, at: jnp.zeros((ROWS, 256)).at[at].add(rows))
    return lambda: call(rows, at)


def setup_numpy(np):
    rows = np.ones((COUNT, 256), np.float32)
    at = np.arange(COUNT) * 7919 % ROWS

    def call():
        out = np.zeros((ROWS, 256), np.float32)
        np.add.at(out, at, rows)
        return out

    return call


def setup_torch(torch):
    rows = torch.ones((COUNT, 256))
    at = torch.arange(COUNT) * 7919 % ROWS
    return lambda: torch.zeros((ROWS, 256)).index_add(0, at, rows)
