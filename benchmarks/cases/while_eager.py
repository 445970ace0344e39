"""`while_loop` outside of jit, 1,000 steps of new functions."""

NAME = "while_loop of 1,000 steps outside of jit"
UNIT = "ms"
TARGET = 1.0
LENGTH = 1000
LOOPS = 1
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    return lambda: lax.while_loop(
        lambda c: c[0] < LENGTH, lambda c: (c[0] + 1, 0.5 * c[1] + 1.0), (0, 1.0)
    )
