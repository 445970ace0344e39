"""Call a compiled `x + 1` on 8 floats: the price of dispatch on the xla engine."""

NAME = "jit call of x + 1, xla engine"
UNIT = "µs"
TARGET = 6 / 3.6
ENV = {"PRIMAL_CPU_ENGINE": "xla"}


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    compiled = jax.jit(lambda x: x + 1)
    return lambda: compiled(x)
