"""The gradient of a scan over checkpointed layers: values of each layer are computed again."""

import numpy as np

NAME = "gradient of 32 checkpointed layers in a scan"
UNIT = "ms"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LAYERS, WIDTH = 32, 128
TINY = {"LAYERS": 2, "WIDTH": 4}


def setup(jax, jnp, lax):
    draw = np.random.default_rng(0)
    ws = jnp.asarray(draw.standard_normal((LAYERS, WIDTH, WIDTH)).astype(np.float32) / WIDTH)
    x = jnp.asarray(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32))

    @jax.checkpoint
    def layer(x, w):
        return x + jnp.tanh(x @ w) @ w.T

    g = jax.jit(jax.grad(lambda ws: lax.scan(lambda x, w: (layer(x, w), None), x, ws)[0].sum()))
    return lambda: g(ws)
