"""Trace value_and_grad of a 12-layer transformer's loss into a jaxpr.

JAX 0.10.2 makes about 2,500 equations of it. The function is a new object each time, so that no
cache knows it.
"""

import numpy as np

NAME = "trace of a 12-layer transformer's value_and_grad"
UNIT = "ms"
TARGET = 60 / 170
LOOPS = 1

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 12, 256, 4, 64, 4, 1000
TINY = {"LAYERS": 1, "WIDTH": 8, "HEADS": 2, "LENGTH": 4, "BATCH": 2, "VOCABULARY": 10}


def parameters():
    """The weights, as a dictionary with a list of dictionaries in it."""
    draw = np.random.default_rng(0)

    def weight(*shape):
        return (0.02 * draw.standard_normal(shape)).astype(np.float32)

    def scale_and_shift():
        return {"scale": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32)}

    def layer():
        return {
            "before_attention": scale_and_shift(),
            "query": weight(WIDTH, WIDTH),
            "key": weight(WIDTH, WIDTH),
            "value": weight(WIDTH, WIDTH),
            "out": weight(WIDTH, WIDTH),
            "before_mlp": scale_and_shift(),
            "up": weight(WIDTH, 4 * WIDTH),
            "up_shift": weight(4 * WIDTH),
            "down": weight(4 * WIDTH, WIDTH),
            "down_shift": weight(WIDTH),
        }

    return {
        "embedding": weight(VOCABULARY, WIDTH),
        "position": weight(LENGTH, WIDTH),
        "layers": [layer() for _ in range(LAYERS)],
        "last": scale_and_shift(),
    }


def make_loss(jnp, lax):
    """A new function `loss(parameters, tokens, targets)`."""

    def normalise(p, x):
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
        return centred * lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"]

    def gelu(x):
        return 0.5 * x * (1.0 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def attention(p, x):
        batch, length, width = x.shape

        def heads(weights):
            return (x @ weights).reshape(batch, length, HEADS, width // HEADS)

        query, key, value = heads(p["query"]), heads(p["key"]), heads(p["value"])
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(width // HEADS)
        future = jnp.arange(length)[:, None] < jnp.arange(length)[None, :]
        scores = jnp.where(future, -1e9, scores)
        scores = jnp.exp(scores - lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True)))
        weights = scores / jnp.sum(scores, axis=-1, keepdims=True)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        return mixed.reshape(batch, length, width) @ p["out"]

    def loss(p, tokens, targets):
        x = p["embedding"][tokens] + p["position"]
        for layer in p["layers"]:
            x = x + attention(layer, normalise(layer["before_attention"], x))
            y = gelu(normalise(layer["before_mlp"], x) @ layer["up"] + layer["up_shift"])
            x = x + y @ layer["down"] + layer["down_shift"]
        logits = normalise(p["last"], x) @ p["embedding"].T
        logits = logits - lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
        log_total = jnp.log(jnp.sum(jnp.exp(logits), axis=-1))
        chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return jnp.mean(log_total - chosen)

    return loss


def arguments():
    draw = np.random.default_rng(1)
    tokens = draw.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)
    return parameters(), tokens[:, :-1], tokens[:, 1:]


def setup(jax, jnp, lax):
    args = jax.device_put(arguments())
    return lambda: jax.make_jaxpr(jax.value_and_grad(make_loss(jnp, lax)))(*args)
