"""A typed program that uses much: mypy --strict finds nothing, and it runs."""

from functools import partial
from typing import NamedTuple

import numpy as np

import primal as jax
import primal.numpy as jnp
import primal.scipy as jsp
import primal.scipy.linalg
import primal.scipy.stats as jstats
from primal import Array, image, lax, nn, random, tree, tree_util
from primal.scipy.optimize import minimize
from primal.scipy.special import logsumexp
from primal.typing import ArrayLike, DTypeLike


class State(NamedTuple):
    params: dict[str, Array]
    step: Array


@jax.jit
def predict(params: dict[str, Array], x: Array) -> Array:
    return jnp.tanh(x @ params["w"]) + params["b"]


@partial(jax.jit, static_argnames=("n",))
def power(x: Array, n: int) -> Array:
    return x**n


def loss(params: dict[str, Array], x: Array, y: Array) -> Array:
    return jnp.mean((predict(params, x) - y) ** 2) + 0.1 * logsumexp(y)


def update(state: State, x: Array, y: Array) -> State:
    grads = jax.grad(loss)(state.params, x, y)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, state.params, grads)
    return State(params, state.step + 1)


def body(carry: Array, x: Array) -> tuple[Array, Array]:
    return carry + x, carry * x


def main(dtype: DTypeLike = jnp.float32) -> float:
    key = random.key(0)
    k1, k2 = random.split(key)
    params = {"w": random.normal(k1, (3, 4), dtype), "b": jnp.zeros(4, dtype=dtype)}
    state = State(params, jnp.array(0))
    x = random.uniform(k2, (5, 3))
    y = jnp.ones((5, 4)).at[0].set(2.0)
    for _ in range(3):
        state = update(state, x, y)
    total, ys = lax.scan(body, jnp.float32(0), jnp.arange(3.0))
    value, grad = jax.value_and_grad(loss)(state.params, x, y)
    mapped = jax.vmap(lambda r: r.sum())(x)
    u, s, vh = jnp.linalg.svd(x)
    a: Array = jnp.einsum("ij,ij->i", x, x)
    b = lax.cond(True, lambda v: v + 1, lambda v: v - 1, a)
    c = lax.fori_loop(0, 3, lambda i, v: v + i, 0)
    d = lax.while_loop(lambda v: v < 3, lambda v: v + 1, jnp.array(0))
    e = jnp.where(a > 1, a, 0.0)[::2, None]
    f = nn.softmax(e, axis=-1) + nn.one_hot(jnp.array([1]), 3)
    g = np.asarray(f) + np.ones(3)
    h = jstats.norm.logpdf(a) + jsp.stats.norm.cdf(a)
    i = jsp.linalg.cholesky(jnp.eye(3))
    r = minimize(lambda p: jnp.sum(p**2), jnp.ones(2), method="BFGS")
    leaves, treedef = tree_util.tree_flatten(params)
    img = image.resize(jnp.ones((4, 4)), (8, 8), "linear")
    m = jnp.stack([a, a]).mean(axis=0, keepdims=True).astype(jnp.float16).reshape(-1)
    w = jnp.concatenate([a, b], axis=0).T @ jnp.ones(10)
    fin = jnp.finfo(jnp.float32).eps
    print(total, ys, value, grad, mapped, u, s, vh, c, d, g, h, i, r.x, leaves, treedef, img, m, w)
    with jax.enable_x64(True):
        z = jnp.float64(1.0)
    jax.debug.print("z = {}", z)
    n: int = x.ndim + x.size + x.shape[0] + int(x[0, 0])
    jac = jax.jacfwd(lambda v: v**2)(a)
    hes = jax.hessian(lambda v: jnp.sum(v**3))(a)
    primals, tangents = jax.jvp(jnp.sin, (a,), (a,))
    out, pull = jax.vjp(jnp.sin, a)
    (back,) = pull(out)
    print(jac, hes, primals, tangents, back, fin, n, power(a, 2), tree.leaves(params))
    return float(jnp.sum(f).item()) + float(x.max()) + bool(jnp.any(x > 0))


def f2(x: ArrayLike) -> Array:
    return jnp.asarray(x) * 2


if __name__ == "__main__":
    print(main())
