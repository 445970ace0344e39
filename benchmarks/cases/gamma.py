"""10,000 gamma numbers: a loop that accepts and rejects."""

NAME = "10,000 gammas"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
N = 10_000
TINY = {"N": 10}


def setup(jax, jnp, lax):
    key = jax.random.PRNGKey(0)
    draw = jax.jit(lambda key: jax.random.gamma(key, 2.5, (N,)))
    return lambda: draw(key)


def setup_numpy(np):
    draw = np.random.default_rng(0)
    return lambda: draw.standard_gamma(2.5, N, dtype=np.float32)
