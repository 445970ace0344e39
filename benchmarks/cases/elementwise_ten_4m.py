"""Ten chains of elementwise operations over 4 million floats, one after another.

From a polynomial, which memory alone bounds, to activations and a choice of logarithms. None has a
sine, of which JAX's code for float32 takes twenty times the rest.
"""

NAME = "elementwise, ten chains of 4M floats"
UNIT = "ms"
TARGET = 0.6
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (4_000_000,)
TINY = {"SHAPE": (100,)}


def setup(jax, jnp, lax):
    import numpy as np

    draws = np.random.default_rng(0)
    x, y = [jnp.asarray(draws.standard_normal(SHAPE, dtype=np.float32)) for _ in range(2)]
    chains = [
        lambda x, y: x * 2.0 + 1.0,
        lambda x, y: jnp.sqrt(x * x + y * y),
        lambda x, y: x - 0.01 * y / (jnp.sqrt(jnp.abs(x)) + 1e-8),
        lambda x, y: jnp.tanh(x * 2.0 + 1.0) * x - 0.5,
        lambda x, y: jnp.exp(-x * x / 2.0) * 0.3989,
        lambda x, y: 1.0 / (1.0 + jnp.exp(-x)),
        lambda x, y: jax.nn.silu(x),
        lambda x, y: jax.nn.gelu(x),
        lambda x, y: jax.nn.softplus(x),
        lambda x, y: jnp.where(x > 0, jnp.log(x + 1.0), jnp.exp(x) - 1.0),
    ]
    calls = [jax.jit(chain) for chain in chains]

    def run():
        # Each before the next: their results do not lie beside each other.
        for call in calls:
            call(x, y).block_until_ready()

    return run
