"""A `while_loop` of 10,000 turns on a pair of scalars."""

NAME = "while_loop of 10,000 turns"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH = 10_000
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    f = jax.jit(
        lambda x: lax.while_loop(lambda c: c[0] < LENGTH, lambda c: (c[0] + 1, c[1] * 0.5 + 1), x)
    )
    x = (0, jnp.float32(3))
    return lambda: f(x)
