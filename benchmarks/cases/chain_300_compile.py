"""Compile a chain of 300 `sin(x)*2+1`, differentiated; each call another program."""

import itertools

NAME = "compile a differentiated chain of 300 sin(x)*2+1"
UNIT = "ms"
TARGET = 0.1
LOOPS = 1
REPEATS = 3
ENV = {"PRIMAL_CPU_ENGINE": "cpu", "PRIMAL_ENABLE_COMPILATION_CACHE": "0"}
LENGTH = 300
TINY = {"LENGTH": 5}


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    turn = itertools.count(1)

    def compiled():
        other = 2.0 + next(turn) / 1000

        def chain(x):
            for _ in range(LENGTH):
                x = jnp.sin(x) * other + 1
            return x.sum()

        return jax.jit(jax.grad(chain)).lower(x).compile() and None

    return compiled
