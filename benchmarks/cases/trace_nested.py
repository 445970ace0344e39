"""Trace the gradient of scans of conds of scans …, three deep, into a jaxpr."""

import numpy as np

NAME = "trace of the gradient of nested loops and branches"
UNIT = "ms"
TARGET = 1.0
LOOPS = 1
DEPTH = 3
TINY = {"DEPTH": 1}


def setup(jax, jnp, lax):
    x = jnp.asarray(np.ones(8, np.float32))

    def nested(n):
        def f(x):
            if not n:
                return jnp.sin(x) * 2.0
            inner = nested(n - 1)

            def step(c, _):
                return lax.cond(c.sum() > 0, inner, lambda c: c * 0.5, c), None

            return lax.scan(step, x, None, length=3)[0]

        return f

    return lambda: jax.make_jaxpr(jax.grad(lambda x: nested(DEPTH)(x).sum()))(x)
