"""40 jitted sums of 40 lengths that are new: sizes are no part of the code."""

import itertools

NAME = "40 jitted sums of 40 new lengths"
UNIT = "ms"
TARGET = 0.1
LOOPS = 1
REPEATS = 3
ENV = {"PRIMAL_CPU_ENGINE": "cpu", "PRIMAL_ENABLE_COMPILATION_CACHE": "0"}
COUNT = 40
TINY = {"COUNT": 2}


def setup(jax, jnp, lax):
    f = jax.jit(jnp.sum)
    lengths = itertools.count(10)
    f(jnp.ones(3))

    def sums():
        return [f(jnp.ones(next(lengths))) for _ in range(COUNT)]

    return sums
