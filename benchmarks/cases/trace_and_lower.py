"""Trace and lower a chain of 1,500 operations, for each equation.

Each call lowers another program (one constant differs), so that no cache knows it. The engine is
xla: lowering for our own compiler is part of compiling.
"""

import itertools

NAME = "trace + lower, per equation of a 1,500-op chain"
UNIT = "µs"
TARGET = 25 / 65
LOOPS = 1
ENV = {"PRIMAL_CPU_ENGINE": "xla"}
LENGTH = PER = 1500
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    turn = itertools.count(1)

    def lower():
        other = 1.0 + next(turn) / 1000

        def chain(x):
            steps = (jnp.sin, lambda y: y * x, jnp.tanh, lambda y: y + x, lambda y: y * other)
            y = x
            for step in itertools.islice(itertools.cycle(steps), LENGTH):
                y = step(y)
            return y

        return jax.jit(chain).lower(x)

    return lower
