"""A `fori_loop` that sets one element of a big array per step: it must not copy the array."""

NAME = "fori_loop of 10,000 updates of a million floats"
UNIT = "ms"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH, SIZE = 10_000, 1_000_000
TINY = {"LENGTH": 5, "SIZE": 10}


def setup(jax, jnp, lax):
    x = jnp.ones(SIZE)

    def f(x):
        return lax.fori_loop(1, LENGTH, lambda i, a: a.at[i].set(a[i - 1] * 0.5 + 1), x)

    f = jax.jit(f)
    return lambda: f(x)
