"""10,000 normal numbers: threefry, bits to floats, the inverse error function."""

NAME = "10,000 normals"
UNIT = "µs"
TARGET = 0.3
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
N = 10_000
TINY = {"N": 100}


def setup(jax, jnp, lax):
    key = jax.random.PRNGKey(0)
    draw = jax.jit(lambda key: jax.random.normal(key, (N,)))
    return lambda: draw(key)


def setup_numpy(np):
    draw = np.random.default_rng(0)
    return lambda: draw.standard_normal(N, dtype=np.float32)


def setup_torch(torch):
    return lambda: torch.randn(N)
