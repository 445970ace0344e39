"""A scan with a large body: 16 layers of products, forward."""

import numpy as np

NAME = "scan of 16 layers of 256 units"
UNIT = "ms"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH, WIDTH, BATCH = 16, 256, 64
TINY = {"LENGTH": 2, "WIDTH": 4, "BATCH": 2}


def setup(jax, jnp, lax):
    draw = np.random.default_rng(0)
    ws = jnp.asarray(draw.standard_normal((LENGTH, WIDTH, WIDTH)).astype(np.float32) / WIDTH)
    x = jnp.asarray(draw.standard_normal((BATCH, WIDTH)).astype(np.float32))
    f = jax.jit(lambda ws: lax.scan(lambda h, w: (jnp.tanh(h @ w) + h, None), x, ws)[0])
    return lambda: f(ws)
