"""What users write, for the type checker: it must find what is here, and nothing wrong."""

import primal
import primal.numpy as jnp
from primal import lax, nn, random
from primal.typing import ArrayLike, DTypeLike


def predict(params: dict[str, primal.Array], x: ArrayLike) -> primal.Array:
    hidden: primal.Array = nn.relu(jnp.dot(x, params["w"]) + params["b"])
    return hidden.sum(axis=-1)


def loss(params: dict[str, primal.Array], x: primal.Array, y: primal.Array) -> primal.Array:
    return jnp.mean((predict(params, x) - y) ** 2)


def train(steps: int, dtype: DTypeLike = None) -> float:
    key = random.key(0)
    params = {"w": random.normal(key, (3, 4), dtype), "b": jnp.zeros(4)}
    x, y = jnp.ones((5, 3)), jnp.arange(5.0)
    step = primal.jit(primal.value_and_grad(loss))
    for _ in range(steps):
        value, grads = step(params, x, y)
        params = primal.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    total = lax.fori_loop(0, 3, lambda i, acc: acc + i, 0)
    return float(value) + int(total)
