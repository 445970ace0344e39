"""The gamma distribution, and those that are functions of gamma numbers.

Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): each element has a key
of its own and repeats a cheap proposal until it is accepted. Derivatives by the shape are implicit
ones: the number moves so that its distribution function stays.
"""

from __future__ import annotations

import math
from typing import Any

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.base.limits import finfo
from primal.ir.trace import Array, literal
from primal.lax import cond, stop_gradient, while_loop
from primal.lax import map as lax_map
from primal.numpy.creation import placed
from primal.numpy.remembered import remembered
from primal.ops.bits import random_clone
from primal.ops.special import random_gamma_grad
from primal.ops.types import static_int
from primal.random.continuous import exponential_of
from primal.random.keys import split_typed, typed_key
from primal.random.samplers import (
    Shape,
    as_shape,
    float_dtype,
    normal_of,
    param,
    shape_for,
    signs_of,
    uniform_of,
)
from primal.random.word_keys import WordKeys, split_words

SQUEEZE = 0.0331
# As many numbers are drawn in one loop over all of them.
FEW = 256


def gamma_of(typed: Any, a: Any, shape: tuple[int, ...], log_space: bool = False) -> Array:
    """Gamma numbers of shape parameter a, or their logarithms, from a typed key."""
    return _drawn(jnp.broadcast_to(a, shape), typed, log_space)


def _drawn(a: Any, typed: Any, log_space: bool) -> Any:
    return (_log_gamma if log_space else _gamma)(a, typed)


@custom_jvp
def _gamma(a: Any, typed: Any) -> Any:
    return _draw(a, typed, False)


@_gamma.defjvp
def _gamma_jvp(primals: Any, tangents: Any) -> Any:
    a, typed = primals
    out = _gamma(a, typed)
    return out, tangents[0] * random_gamma_grad(a, out)


@custom_jvp
def _log_gamma(a: Any, typed: Any) -> Any:
    return _draw(a, typed, True)


@_log_gamma.defjvp
def _log_gamma_jvp(primals: Any, tangents: Any) -> Any:
    a, typed = primals
    out = _log_gamma(a, typed)
    # d log x = dx / x, where x itself may be too small for the dtype.
    x = jnp.exp(out)
    tiny: Any = literal(finfo(x.dtype).tiny, x.dtype)
    x = jnp.where(x == 0, tiny, x)
    return out, tangents[0] * (random_gamma_grad(a, x) / x)


def _draw(a: Any, typed: Any, log_space: bool) -> Any:
    size = math.prod(a.shape)
    if not size:
        return jnp.zeros(a.shape, a.dtype)
    flat = a.reshape(size)
    if typed.dtype.impl == "threefry2x32":
        return _proposals(split_words(typed, size), flat, log_space).reshape(a.shape)
    keys = split_typed(typed, size)

    # Philox would draw for all keys under the first; JAX's numbers are those of one after another.
    def one(row: Any) -> Any:
        return _proposals(row[0].reshape(1), row[1].reshape(1), log_space)[0]

    return lax_map(one, (keys, flat)).reshape(a.shape)


def _proposals(keys: Any, alpha: Any, log_space: bool) -> Any:
    dtype = alpha.dtype
    # Below 1, the number for alpha + 1 times a power of a uniform one.
    enough = alpha >= 1
    d = jnp.where(enough, alpha, alpha + 1) - literal(1 / 3, dtype)
    own, spare = _parts(keys, 2)
    v = _accepted(own, d)

    def boosted() -> Any:
        if log_space:
            logs = -exponential_of(spare, (), dtype)
            return jnp.where(enough | (logs == 0), 0, logs * (1 / alpha))
        u = 1 - uniform_of(spare, (), dtype)
        return jnp.where(enough, 1, jnp.power(u, 1 / alpha))

    plain = jnp.zeros_like if log_space else jnp.ones_like
    boost = cond(jnp.all(enough), lambda: plain(alpha), boosted)
    return (jnp.log(d) + jnp.log(v)) + boost if log_space else d * v * boost


def _accepted(keys: Any, d: Any) -> Any:
    """The accepted (1 + c·x)³ of each key.

    All lanes make one proposal, without a loop. Those it does not settle, 1 in 20 at worst, go on
    by themselves, a 32nd of all at a time: a loop over all lanes until the last is settled took 12
    times as long for 10,000 numbers.
    """
    n = d.shape[0]
    if n < FEW:
        return _looped(keys, d)
    room = n // 32 + 17  # more than 16, as loops over so few are other programs
    first, settled = _first(keys, d)

    def rest(state: Any) -> Any:
        v, settled = state
        (places,) = jnp.nonzero(~settled, size=room, fill_value=n)
        few = [x.at[places].get(mode="clip") for x in (*keys, d, v)]
        own = WordKeys(*few[:2])
        # What was rejected goes on; where no cube was positive the same proposal does.
        found = _looped(_chosen(few[3] > 0, _parts(own, 3)[0], own), few[2])
        return v.at[places].set(found, mode="drop"), settled.at[places].set(True, mode="drop")

    v, _ = while_loop(lambda state: ~jnp.all(state[1]), rest, (first, settled))
    return v


def _rejected(d: Any, x: Any, v: Any, u: Any) -> Any:
    # X is the normal number squared, V the cube of 1 + c·x.
    dtype = d.dtype
    near = u >= 1 - literal(SQUEEZE, dtype) * (x * x)
    return near & (jnp.log(u) >= x * literal(0.5, dtype) + d * ((1 - v) + jnp.log(v)))


def _spread(d: Any) -> Any:
    return literal(1 / 3, d.dtype) / jnp.sqrt(d)


def _first(keys: Any, d: Any) -> tuple[Any, Any]:
    """The first proposals, and whether they are accepted."""
    _, x_keys, u_keys = _parts(keys, 3)
    x = normal_of(_parts(x_keys, 2)[1], (), d.dtype)
    base = 1 + x * _spread(d)
    u = uniform_of(u_keys, (), d.dtype)
    v = base * base * base
    return v, (base > 0) & ~_rejected(d, x * x, v, u)


def _looped(keys: Any, d: Any) -> Any:
    """Proposals of all lanes until each is settled."""
    dtype, c = d.dtype, _spread(d)

    def positive(x_keys: Any) -> Any:
        """The first normal numbers with 1 + c·x > 0, and that."""

        def again(state: Any) -> Any:
            k, x, v = state
            waiting = v <= 0
            next_k, own = _parts(k, 2)
            x2 = normal_of(own, (), dtype)
            return (
                _chosen(waiting, next_k, k),
                jnp.where(waiting, x2, x),
                jnp.where(waiting, 1 + x2 * c, v),
            )

        start = (x_keys, jnp.zeros_like(d), jnp.full_like(d, -1))
        _, x, v = while_loop(lambda state: jnp.any(state[2] <= 0), again, start)
        return x, v

    def propose(state: Any) -> Any:
        k, x, v, u = state
        waiting = _rejected(d, x, v, u)
        next_k, x_keys, u_keys = _parts(k, 3)
        x2, v2 = positive(x_keys)
        u2 = uniform_of(u_keys, (), dtype)
        return (
            _chosen(waiting, next_k, k),
            jnp.where(waiting, x2 * x2, x),
            jnp.where(waiting, v2 * v2 * v2, v),
            jnp.where(waiting, u2, u),
        )

    start = (keys, jnp.zeros_like(d), jnp.ones_like(d), jnp.full_like(d, 2))
    _, _, v, _ = while_loop(lambda state: jnp.any(_rejected(d, *state[1:])), propose, start)
    return v


def _parts(keys: Any, n: int) -> list[Any]:
    """The n keys that each one splits into.

    The same keys may be split again, on purpose, which a clone tells those who count uses.
    """
    if type(keys) is WordKeys:
        return keys.parts(n)
    split = split_typed(random_clone(keys), n)
    return [split[:, i] for i in range(n)]


def _chosen(which: Any, x: Any, y: Any) -> Any:
    """x where `which` holds, else y, keys."""
    if type(x) is WordKeys:
        return WordKeys(*[jnp.where(which, a, b) for a, b in zip(x, y, strict=True)])
    return jnp.where(which, x, y)


@remembered
def gamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Gamma numbers of shape parameter a: of density x^(a - 1)·exp(-x) / Γ(a).

    Differentiable by a. For tiny a, where the numbers are too small for the dtype, see `loggamma`.
    Marsaglia and Tsang, 2000; below a = 1 by gamma(a + 1)·u^(1/a).

    >>> bool((random.gamma(random.key(0), 2.0, (9,)) > 0).all())
    True
    """
    typed = typed_key("gamma", key)
    found = float_dtype("gamma", dtype)
    alpha = param("gamma", a, found)
    return placed(gamma_of(typed, alpha, shape_for("gamma", shape, alpha)), None, out_sharding)


@remembered
def loggamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Logarithms of gamma numbers, exact also where those would be 0.

    log x, where x has the density x^(a-1) exp(-x) / Γ(a). Marsaglia and Tsang, 2000.

    >>> bool(jnp.isfinite(random.loggamma(random.key(0), 1e-3, (9,))).all())
    True
    """
    typed = typed_key("loggamma", key)
    found = float_dtype("loggamma", dtype)
    alpha = param("loggamma", a, found)
    wanted = shape_for("loggamma", shape, alpha)
    return placed(gamma_of(typed, alpha, wanted, log_space=True), None, out_sharding)


@remembered
def beta(
    key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Beta numbers x / (x + y), x and y gamma numbers of a and b: of density ∝ x^(a-1)·(1-x)^(b-1).

    >>> x = random.beta(random.key(0), 2.0, 3.0, (9,))
    >>> bool(((0 <= x) & (x <= 1)).all())
    True
    """
    typed = typed_key("beta", key)
    found = float_dtype("beta", dtype)
    first, second = param("beta", a, found), param("beta", b, found)
    wanted = shape_for("beta", shape, first, second)
    keys = split_typed(typed, 2)
    log_x = gamma_of(keys[0], first, wanted, log_space=True)
    log_y = gamma_of(keys[1], second, wanted, log_space=True)
    top = jnp.maximum(log_x, log_y)
    x, y = jnp.exp(log_x - top), jnp.exp(log_y - top)
    return placed(x / (x + y), None, out_sharding)


@remembered
def dirichlet(
    key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Dirichlet vectors: gamma numbers of alpha [..., n], divided by their sum.

    `shape` is that in front of n. ValueError if alpha is a scalar. Density Γ(Σα) Π xᵢ^(αᵢ-1) /
    Γ(αᵢ).

    >>> x = random.dirichlet(random.key(0), jnp.ones(3), (2,))
    >>> bool(jnp.allclose(x.sum(-1), 1.0))
    True
    """
    typed = typed_key("dirichlet", key)
    found = float_dtype("dirichlet", dtype)
    given = param("dirichlet", alpha)
    if not given.ndim:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    weights = given.astype(found)
    batch = weights.shape[:-1]
    wanted = batch if shape is None else shape_for("dirichlet", shape, jnp.empty(batch))
    logs = gamma_of(typed, weights, (*wanted, weights.shape[-1]), log_space=True)
    shifted = jnp.exp(logs - stop_gradient(logs.max(-1, keepdims=True)))
    return placed(shifted / shifted.sum(-1, keepdims=True), None, out_sharding)


@remembered
def chisquare(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """χ² numbers of df degrees of freedom: twice the gamma numbers of df / 2.

    >>> bool((random.chisquare(random.key(0), 3.0, (9,)) > 0).all())
    True
    """
    typed = typed_key("chisquare", key)
    found = float_dtype("chisquare", dtype)
    freedom = param("chisquare", df, found)
    wanted = shape_for("chisquare", shape, freedom)
    return placed(_chisquare(typed, freedom, wanted), None, out_sharding)


def _chisquare(typed: Any, df: Any, shape: tuple[int, ...]) -> Any:
    two = literal(2, df.dtype)
    return jnp.exp(gamma_of(typed, df / two, shape, log_space=True)) * two


@remembered
def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """F numbers: the quotient of two χ² numbers, each divided by its degrees of freedom.

    >>> bool((random.f(random.key(0), 3.0, 4.0, (9,)) > 0).all())
    True
    """
    typed = typed_key("f", key)
    found = float_dtype("f", dtype)
    above, below = param("f", dfnum, found), param("f", dfden, found)
    wanted = shape_for("f", shape, above, below)
    keys = split_typed(typed, 2)
    lower = _chisquare(keys[0], below, wanted) / below
    upper = _chisquare(keys[1], above, wanted) / above
    return placed(upper / lower, None, out_sharding)


@remembered
def t(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Student's t numbers of df degrees of freedom: z·√(df/2 / g), g a gamma number of df / 2.

    >>> random.t(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    typed = typed_key("t", key)
    found = float_dtype("t", dtype)
    freedom = param("t", df, found)
    wanted = shape_for("t", shape, freedom)
    keys = split_typed(typed, 2)
    half = freedom / literal(2, found)
    z = normal_of(keys[0], wanted, found)
    return placed(z * jnp.sqrt(half / gamma_of(keys[1], half, wanted)), None, out_sharding)


@remembered
def generalized_normal(
    key: Any,
    p: Any,
    shape: Shape = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers of density ∝ exp(-|x|^p): signs times gamma numbers of 1/p to the power 1/p.

    >>> random.generalized_normal(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    typed = typed_key("generalized_normal", key)
    found = float_dtype("generalized_normal", dtype)
    power = param("generalized_normal", p)
    out = _generalized(typed, power, as_shape("generalized_normal", shape), found)
    return placed(out, None, out_sharding)


def _generalized(typed: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    keys = split_typed(typed, 2)
    inverse = jnp.divide(1.0, p)
    sized = jnp.power(gamma_of(keys[0], inverse.astype(dtype), shape), inverse)
    return signs_of(keys[1], shape, dtype) * sized


@remembered
def ball(
    key: Any,
    d: int,
    p: Any = 2,
    shape: Shape = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform points [*shape, d] of the unit ball of the p-norm (Barthe et al., 2005).

    >>> x = random.ball(random.key(0), 3, shape=(9,))
    >>> bool((jnp.linalg.norm(x, axis=-1) <= 1).all())
    True
    """
    typed = typed_key("ball", key)
    found = float_dtype("ball", dtype)
    power = param("ball", p)
    wanted = as_shape("ball", shape)
    keys = split_typed(typed, 2)
    g = _generalized(keys[0], power, (*wanted, static_int("ball d", d)), found)
    e = exponential_of(keys[1], wanted, found)
    strong = power.astype(found)
    norm = jnp.power(
        jnp.power(jnp.abs(g), strong).sum(-1) + e, jnp.divide(1.0, power).astype(found)
    )
    return placed(g / norm[..., None], None, out_sharding)
