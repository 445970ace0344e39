"""The gradient, outside of jit, of a function with a derivative of its own."""

import numpy as np

NAME = "gradient of a custom_vjp function, eager"
UNIT = "µs"
TARGET = 1.0
SIZE = 64
TINY = {"SIZE": 2}


def setup(jax, jnp, lax):
    x = jnp.asarray(np.ones(SIZE, np.float32))

    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda c, ct: (ct * c,))
    g = jax.grad(lambda x: f(x).sum())
    return lambda: g(x)
