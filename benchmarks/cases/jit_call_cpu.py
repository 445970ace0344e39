"""Call a compiled `x + 1` on 8 floats: the price of dispatch on the cpu engine."""

NAME = "jit call of x + 1, cpu engine"
UNIT = "µs"
TARGET = 0.3
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    compiled = jax.jit(lambda x: x + 1)
    return lambda: compiled(x)
