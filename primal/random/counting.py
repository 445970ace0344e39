"""Counts: Poisson, binomial, multinomial and geometric numbers.

Small rates by counting waiting times, large ones by transformed rejection with squeeze (Hörmann,
"The transformed rejection method for generating Poisson random variables" and "The generation of
binomial random variates", 1993). All elements share the keys of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.base.limits import iinfo
from primal.ir.trace import Array
from primal.lax import cond, lgamma, scan, while_loop
from primal.numpy.creation import placed
from primal.numpy.promotion import promote_dtypes_inexact
from primal.numpy.remembered import remembered
from primal.random.keys import split_typed, typed_key
from primal.random.samplers import float_dtype, int_dtype, param, shape_for, uniform_of

# log(k!) minus Stirling's (k + ½)·log(k + 1) - (k + 1) + ½·log(2π), for k = 0, …, 9.
STIRLING_TAILS = (
    0.0810614667953272, 0.0413406959554093, 0.0276779256849983, 0.0207906721037651,
    0.0166446911898212, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


@remembered
def poisson(
    key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Poisson numbers of rate λ: k with probability λ^k·exp(-λ) / k!.

    ValueError for a dtype that is no integer; NotImplementedError for other generators than
    threefry2x32, as in JAX. Small rates count exponential waiting times (Knuth, 1969), others take
    transformed rejection (Hörmann, 1993).

    >>> random.poisson(random.key(0), 3.0, (4,)).dtype.name
    'int32'
    """
    typed = typed_key("poisson", key)
    if typed.dtype.impl != "threefry2x32":
        raise NotImplementedError(
            f"`poisson` is only implemented for the threefry2x32 RNG, not {typed.dtype.impl}"
        )
    found = int_dtype("poisson", dtype)
    given = param("poisson", lam)
    wanted = shape_for("poisson", shape, given)
    # In 32 bits whatever the rate's dtype is: those are the numbers of JAX.
    rate = jnp.broadcast_to(given, wanted).astype(np.float32)
    few = jnp.isnan(rate) | (rate < 10)
    # Each way gets harmless rates where the other one counts.
    slow, fast = jnp.where(few, rate, 0.0), jnp.where(few, 1e5, rate)
    counted = _where_any(few, found, lambda: _poisson_knuth(typed, slow, found))
    rejected = _where_any(~few, found, lambda: _poisson_rejection(typed, fast, found))
    out = jnp.where(rate == 0, 0, jnp.where(few, counted, rejected)).astype(found)
    return placed(out, None, out_sharding)


def _where_any(which: Any, dtype: Any, drawn: Callable[[], Any]) -> Any:
    """Numbers of a loop that runs only if it counts for some of them; else zeros."""
    return cond(jnp.any(which), drawn, lambda: jnp.zeros(which.shape, dtype))


def _most(dtype: Any) -> int:
    """The greatest number of steps: of the dtype, and of the integer that counts them."""
    return min(int(iinfo(d).max) for d in (dtype, dtypes.python_scalar_dtype(int)))


def _poisson_knuth(typed: Any, rate: Any, dtype: Any) -> Any:
    """How many exponential waiting times fit into `rate`."""
    shape, real = rate.shape, rate.dtype
    limit = _most(dtype)

    def step(state: Any) -> Any:
        i, count, key, total = state
        keys = split_typed(key, 2)
        count = jnp.where(total > -rate, count + 1, count)
        return i + 1, count, keys[0], total + jnp.log(uniform_of(keys[1], shape, real))

    start = (0, jnp.zeros(shape, dtype), typed, jnp.zeros(shape, real))
    out = while_loop(lambda s: jnp.any(s[3] > -rate) & (s[0] < limit), step, start)
    return out[1] - np.array(1, dtype)


def _poisson_rejection(typed: Any, rate: Any, dtype: Any) -> Any:
    shape, real = rate.shape, rate.dtype
    limit = _most(dtype)
    log_rate = jnp.log(rate)
    b = 0.931 + 2.53 * jnp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inv_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def step(state: Any) -> Any:
        i, out, accepted, key = state
        keys = split_typed(key, 3)
        u = uniform_of(keys[1], shape, real) - 0.5
        v = uniform_of(keys[2], shape, real)
        u_shifted = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / u_shifted + b) * u + rate + 0.43)
        s = jnp.log(v * inv_alpha / (a / (u_shifted * u_shifted) + b))
        density = -rate + k * log_rate - lgamma(k + 1)
        at_once = (u_shifted >= 0.07) & (v <= v_r)
        never = (k < 0) | ((u_shifted < 0.013) & (v > u_shifted))
        accept = at_once | (~never & (s <= density))
        return i + 1, jnp.where(accept, k, out), accepted | accept, keys[0]

    start = (0, jnp.full(shape, -1, real), jnp.zeros(shape, bool), typed)
    out = while_loop(lambda s: jnp.any(~s[2]) & (s[0] < limit), step, start)
    return out[1].astype(dtype)


@remembered
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Binomial numbers: k successes out of n with probability C(n, k)·p^k·(1 - p)^(n - k).

    Floats, drawn in the dtype of p; nan where n < 0 or p is not in [0, 1]. Small means sum
    geometric numbers (Devroye, 1986), others take transformed rejection (Hörmann, 1993).

    >>> x = random.binomial(random.key(0), 10, 0.5, (9,))
    >>> bool(((0 <= x) & (x <= 10)).all())
    True
    """
    typed = typed_key("binomial", key)
    found = float_dtype("binomial", dtype)
    trials, prob = param("binomial", n), param("binomial", p)
    wanted = shape_for("binomial", shape, trials, prob)
    real = dtypes.to_inexact_dtype(prob.dtype)
    count = jnp.broadcast_to(trials, wanted).astype(real)
    return binomial_of(typed, count, jnp.broadcast_to(prob, wanted).astype(real)).astype(found)


def binomial_of(typed: Any, count: Any, prob: Any) -> Array:
    """Binomial numbers of one shape and dtype from a typed key."""
    small = prob < 0.5
    q = jnp.where(small, prob, 1 - prob)
    count_bad, count_inf = jnp.isnan(count) | (count < 0), jnp.isinf(count)
    nan, negative = jnp.isnan(q), q < 0
    q = jnp.where(nan | negative, 0.01, q)
    few = count_bad | (count * q <= 10)
    whole = jnp.floor(count)
    # No proposal for infinitely many of probability 0 would be accepted.
    apart = few | count_inf
    own, other = jnp.where(few, whole, 0.0), jnp.where(apart, 10000.0, whole)
    counted = _where_any(few, count.dtype, lambda: _binomial_inversion(typed, own, q))
    rejected = _where_any(
        ~few, count.dtype, lambda: _btrs(typed, other, jnp.where(apart, 0.5, q))
    )
    out = jnp.where(few, counted, rejected)
    wrong = negative | nan | count_bad
    out = jnp.where(wrong, jnp.nan, out)
    out = jnp.where(count_inf & ~wrong, jnp.inf, out)
    return jnp.where(small | count_bad | nan | count_inf, out, whole - out)


def _binomial_inversion(typed: Any, count: Any, prob: Any) -> Any:
    """How many geometric waiting times fit into `count`."""
    shape, real = count.shape, count.dtype
    log1_p = jnp.log1p(-prob)

    def step(state: Any) -> Any:
        i, hits, total, key = state
        keys = split_typed(key, 2)
        hits = jnp.where(total <= count, hits + 1, hits)
        wait = jnp.ceil(jnp.log(uniform_of(keys[0], shape, real)) / log1_p)
        return i + 1, hits, total + wait, keys[1]

    start = (0, jnp.zeros(shape, real), jnp.zeros(shape, real), typed)
    return while_loop(lambda s: jnp.any(s[2] <= count), step, start)[1] - 1


def _stirling_tails(dtype: Any) -> Any:
    """The tails of 0 to 9, and that of all beyond."""
    # The series of 9 whatever the number is: JAX's numbers, of which these are the same.
    tenth, *parts = np.array([10, 1 / 12, 1 / 360, 1 / 1260], dtype)
    square = tenth * tenth
    beyond = (parts[0] - (parts[1] - parts[2] / square) / square) / tenth
    return jnp.asarray(np.array([*STIRLING_TAILS, beyond], dtype))


def _stirling_tail(tails: Any, k: Any) -> Any:
    """Of whole numbers."""
    return tails[jnp.clip(k, 0.0, 10.0).astype(np.int32)]


def _btrs(typed: Any, count: Any, prob: Any) -> Any:
    """Transformed rejection with squeeze, for count·prob of at least 10."""
    shape, real = count.shape, count.dtype
    stddev = jnp.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c = count * prob + 0.5
    v_r = 0.92 - 4.2 / b
    r = prob / (1 - prob)
    alpha = (2.83 + 5.1 / b) * stddev
    m = jnp.floor((count + 1) * prob)
    tails = _stirling_tails(real)
    # What all proposals have in common, loops of operations compute each time.
    left = count - m + 1
    at_mode = (m + 0.5) * jnp.log((m + 1) / (r * left))
    tail_of_mode, tail_of_left = _stirling_tail(tails, m), _stirling_tail(tails, count - m)

    def step(state: Any) -> Any:
        i, out, accepted, key = state
        keys = split_typed(key, 3)
        u = uniform_of(keys[1], shape, real) - 0.5
        v = uniform_of(keys[2], shape, real)
        us = 0.5 - jnp.abs(u)
        at_once = (us >= 0.07) & (v <= v_r)
        k = jnp.floor((2 * a / us + b) * u + c)
        never = (k < 0) | (k > count)
        log_v = jnp.log(v * alpha / (a / (us * us) + b))
        bound = (
            at_mode
            + (count + 1) * jnp.log(left / (count - k + 1))
            + (k + 0.5) * jnp.log(r * (count - k + 1) / (k + 1))
            + tail_of_mode
            + tail_of_left
            - _stirling_tail(tails, k)
            - _stirling_tail(tails, count - k)
        )
        accept = at_once | (~never & (log_v <= bound))
        return i + 1, jnp.where(accept, k, out), accepted | accept, keys[0]

    start = (0, jnp.full(shape, -1, real), jnp.zeros(shape, bool), typed)
    return while_loop(lambda s: jnp.any(~s[2]), step, start)[1]


@remembered
def multinomial(
    key: Any,
    n: Any,
    p: Any,
    *,
    shape: Any = None,
    dtype: Any = None,
    unroll: int | bool = 1,
) -> Array:
    """Counts [..., k] of n draws from k categories of probabilities p [..., k].

    A binomial number per category, of what the former ones have left. `shape` is that of the whole.
    Counts x have the probability n! Π pᵢ^xᵢ / xᵢ!. ValueError for a scalar p.

    >>> random.multinomial(random.key(0), 10, jnp.array([0.5, 0.5])).sum()
    Array(10., dtype=float32)
    """
    typed = typed_key("multinomial", key)
    target = dtypes.check_user_dtype_supported(float if dtype is None else dtype, "multinomial")
    trials, prob = promote_dtypes_inexact(
        "multinomial", param("multinomial", n), param("multinomial", p)
    )
    if prob.ndim == 0:
        raise ValueError("[random.multinomial] expected probabilities along an axis, got a scalar.")
    if shape is None:
        batch = np.broadcast_shapes(trials.shape, prob.shape[:-1])
        shape = (*batch, prob.shape[-1])
    trials = jnp.broadcast_to(trials, shape[:-1])
    prob = jnp.moveaxis(jnp.broadcast_to(prob, shape), -1, 0)
    rest = jnp.cumsum(prob[::-1], axis=0)[::-1]
    ratios = prob / jnp.where(rest == 0, 1, rest)
    keys = split_typed(typed, ratios.shape[0])

    def step(left: Any, row: Any) -> Any:
        ratio, row_key = row
        count = binomial_of(row_key, left, jnp.clip(ratio, 0, 1))
        return left - count, count

    _, counts = scan(step, trials, (ratios, keys), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(target)


@remembered
def geometric(
    key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Trials until the first success: k with probability p·(1 - p)^(k - 1), k ≥ 1.

    Integers of the shape and dtype asked for.

    >>> bool((random.geometric(random.key(0), 0.3, (9,)) >= 1).all())
    True
    """
    typed = typed_key("geometric", key)
    found = int_dtype("geometric", dtype)
    prob = param("geometric", p)
    if dtypes.kind_of(prob.dtype) != "f":
        prob = prob.astype(dtypes.to_inexact_dtype(prob.dtype))
    u = uniform_of(typed, shape_for("geometric", shape, prob), prob.dtype)
    u = jnp.where(u == 0, 1, u)
    trials = jnp.floor(jnp.log(u) / jnp.log1p(-prob)) + 1
    return placed(trials.astype(found), None, out_sharding)
