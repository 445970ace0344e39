"""Draws from finite sets: categories, permutations, samples with and without replacement."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.ir.trace import Array, concrete_or_error
from primal.lax import sort_key_val, top_k
from primal.numpy.creation import placed
from primal.numpy.remembered import remembered
from primal.ops.types import static_int
from primal.random.continuous import gumbel_of
from primal.random.keys import draw, split_typed, typed_key
from primal.random.samplers import Shape, _randint, as_shape, float_dtype, param, uniform_of


@remembered
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Indices drawn with probability softmax(logits), by adding Gumbel numbers and argmax.

    `shape` ends in the shape of logits without `axis`, which is the default. Without `replace`, the
    draws of one distribution are distinct: the largest of one set of perturbed logits. Raises
    IndexError for an axis that does not exist, ValueError for a shape that does not end in the
    batch's and for more draws without replacement than categories. k has the probability
    exp(logits[k]) / Σ exp(logits). The Gumbel-max trick; without `replace` that of Kool et al.,
    2019.

    >>> int(random.categorical(random.key(0), jnp.array([-jnp.inf, 0.0])))
    1
    """
    typed = typed_key("categorical", key)
    scores = param("categorical", logits)
    found = float_dtype("gumbel", scores.dtype)
    axis = static_int("random.categorical axis", axis)
    if not -scores.ndim <= axis < scores.ndim:
        raise IndexError(
            f"[random.categorical] expected an axis of logits of {scores.ndim} dimensions, got "
            f"{axis}: index is out of bounds."
        )
    axis = axis - scores.ndim if axis >= 0 else axis
    batch = tuple(n for i, n in enumerate(scores.shape) if i != scores.ndim + axis)
    wanted = batch if shape is None else as_shape("categorical", shape)
    if np.broadcast_shapes(wanted, batch) != wanted:
        raise ValueError(
            f"[random.categorical] expected a shape that ends in the batch shape {batch}, got "
            f"{wanted}."
        )
    prefix = wanted[: len(wanted) - len(batch)]
    if replace:
        full = list(wanted[len(prefix) :])
        full.insert(len(full) + axis + 1, scores.shape[axis])
        noise = gumbel_of(typed, (*prefix, *full), found, mode)
        expanded = scores.reshape((1,) * len(prefix) + scores.shape)
        return placed(jnp.argmax(noise + expanded, axis=axis), None, out_sharding)
    k = math.prod(prefix)
    if k > scores.shape[axis]:
        raise ValueError(
            f"Number of samples without replacement ({k}) cannot exceed number of categories "
            f"({scores.shape[axis]})."
        )
    noise = gumbel_of(typed, scores.shape, found, mode)
    _, picked = top_k(jnp.moveaxis(noise + scores, axis, -1), k)
    return placed(jnp.moveaxis(picked, -1, 0).reshape(wanted), None, out_sharding)


@remembered
def permutation(
    key: Any,
    x: Any,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Any = None,
) -> Array:
    """x (or arange(x)) in random order along an axis; `independent`: each line on its own.

    Each of the n! orders has the probability 1/n!.

    >>> sorted(random.permutation(random.PRNGKey(0), 4).tolist())
    [0, 1, 2, 3]
    """
    typed = typed_key("permutation", key)
    array = param("permutation", x)
    return placed(_permuted(typed, array, axis, independent), None, out_sharding)


def _permuted(typed: Any, array: Any, axis: int, independent: bool = False) -> Any:
    if array.ndim == 0:
        if dtypes.kind_of(array.dtype) not in "iu":
            raise TypeError("x must be an integer or at least 1-dimensional")
        if static_int("random.permutation axis", axis) not in (-1, 0):
            raise ValueError(f"axis {axis} is out of bounds for the 1 dimension of range(x)")
        return _shuffled(typed, jnp.arange(_count("permutation", array)), 0)
    axis = static_int("random.permutation axis", axis)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {array.ndim}")
    axis = axis % array.ndim
    if independent or array.ndim == 1:
        return _shuffled(typed, array, axis)
    order = _shuffled(typed, jnp.arange(array.shape[axis]), 0)
    return jnp.take(array, order, axis, unique_indices=True)


def _count(name: str, x: Any) -> int:
    """How many whole numbers a scalar stands for, which decides shapes."""
    return int(concrete_or_error(x, f"random.{name}"))


def _shuffled(typed: Any, x: Any, axis: int) -> Any:
    """Sorted by random 32-bit keys, often enough that ties do not matter (size³ keys)."""
    rounds = int(np.ceil(3 * np.log(max(1, x.size)) / np.log(2**32 - 1)))
    for _ in range(rounds):
        parts = split_typed(typed, 2)
        typed = parts[0]
        _, x = sort_key_val(draw(parts[1], 32, x.shape), x, axis)
    return x


@remembered
def choice(
    key: Any,
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: Any = None,
) -> Array:
    """Elements of a (or of arange(a)) drawn at random, with probabilities p if given.

    `mode` is that of `gumbel`, which draws without replacement go by. ValueError for more draws
    without replacement than elements, and for p of another length. Raises TypeError for a shape
    that is no sequence, ValueError for probabilities of another shape or too few elements without
    replacement. a[i] has the probability p[i], 1/n by default.

    >>> random.choice(random.PRNGKey(0), jnp.arange(5), (3,), replace=False).shape
    (3,)
    """
    typed = typed_key("choice", key)
    if not isinstance(shape, list | tuple | np.ndarray):
        raise TypeError(
            f"[random.choice] expected a sequence as shape, got {shape!r}: shape argument of "
            "primal.random.choice must be a sequence."
        )
    array = param("choice", a)
    wanted = as_shape("choice", shape)
    if array.ndim == 0:
        n, axis = _count("choice", array), 0
    else:
        axis = static_int("random.choice axis", axis)
        if not -array.ndim <= axis < array.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of dimension {array.ndim}")
        axis = axis % array.ndim
        n = array.shape[axis]
    draws = math.prod(wanted)
    if not draws:
        rest = array.shape[:axis] + wanted + array.shape[axis + 1 :] if array.ndim else wanted
        return jnp.zeros(rest, array.dtype)
    if n <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > n:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {n}) when "
            "'replace=False'"
        )
    if p is None:
        if replace:
            # Bounds known while tracing: the span is a constant.
            index = _randint(
                typed, wanted, jnp.asarray(0), jnp.asarray(n), dtypes.canonicalize_dtype(int)
            )
            return index if array.ndim == 0 else jnp.take(array, index, axis)
        shuffled = _permuted(typed, array, axis)
        taken = shuffled[(slice(None),) * axis + (slice(draws),)]
        if array.ndim == 0:
            return taken.reshape(wanted)
        return taken.reshape(array.shape[:axis] + wanted + array.shape[axis + 1 :])
    weights = jnp.asarray(p)
    if dtypes.kind_of(weights.dtype) != "f":
        weights = weights.astype(dtypes.to_inexact_dtype(weights.dtype))
    if weights.shape != (n,):
        raise ValueError(
            f"p must be None or a 1D vector with the same size as a.shape[axis]. "
            f"p has shape {weights.shape} and a.shape[axis] is {n}."
        )
    if replace:
        total = jnp.cumsum(weights)
        r = total[-1] * (1 - uniform_of(typed, wanted, weights.dtype))
        index = jnp.searchsorted(total, r).astype(dtypes.canonicalize_dtype(int))
    else:
        scores = gumbel_of(typed, (n,), weights.dtype, mode) + jnp.log(weights)
        index = top_k(scores, draws)[1].reshape(wanted).astype(dtypes.canonicalize_dtype(int))
    return index if array.ndim == 0 else jnp.take(array, index, axis)
