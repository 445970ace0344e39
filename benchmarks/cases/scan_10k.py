"""`scan` of 10,000 tiny steps: what one step of a loop costs."""

NAME = "scan of 10,000 tiny steps"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH = 10_000
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    x = jnp.arange(float(LENGTH))
    f = jax.jit(lambda x: lax.scan(lambda c, a: (0.9 * c + a, jnp.maximum(c, a)), 0.0, x))
    return lambda: f(x)
