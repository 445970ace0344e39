"""Call a compiled function with a dict of 100 arrays: the price of matching its signature."""

NAME = "jit call with 100 arrays in a dict, cpu engine"
UNIT = "µs"
TARGET = 0.5
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}


def setup(jax, jnp, lax):
    parameters = {f"layer {i}": jnp.arange(8.0) for i in range(100)}
    compiled = jax.jit(lambda p: p["layer 7"] + 1)
    return lambda: compiled(parameters)
