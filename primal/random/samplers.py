"""Random numbers from keys. The same key and shape give the same numbers, everywhere."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.ir.avals import canonical_shape
from primal.ir.trace import aval_of, literal
from primal.lax import sort_key_val, top_k
from primal.ops import bits as random_ops
from primal.ops.choose import bitcast_convert_type, clamp, convert_element_type, max
from primal.ops.elementwise import (
    add,
    bitwise_or,
    log,
    log1p,
    mul,
    neg,
    nextafter,
    rem,
    shift_right_logical,
    sub,
)
from primal.ops.special import erf, erf_inv
from primal.random.keys import raw_key, split


def _float_dtype(name: str, dtype: Any, allow_complex: bool = False) -> Any:
    found = dtypes.check_user_dtype_supported(float if dtype is None else dtype, name)
    found = dtypes.canonicalize_dtype(found)
    kinds = "fc" if allow_complex else "f"
    if dtypes.kind_of(found) not in kinds:
        raise ValueError(
            f"[random.{name}] expected a float{' or complex' if allow_complex else ''} dtype: "
            f"dtype argument to `{name}` must be a float dtype, got {found.name}"
        )
    return found


def _shape(name: str, shape: Any, *avals: Any) -> tuple[int, ...]:
    """The shape asked for, checked against the parameters' shapes; None means theirs."""
    theirs = np.broadcast_shapes(*[a.shape for a in avals])
    if shape is None:
        return theirs
    wanted = canonical_shape((shape,) if isinstance(shape, int | np.integer) else shape, name)
    if np.broadcast_shapes(wanted, theirs) != wanted:
        raise ValueError(
            f"{name} parameter shapes must be broadcast-compatible with shape argument, and the "
            f"result of broadcasting the shapes must equal the shape argument, but got result "
            f"{np.broadcast_shapes(wanted, theirs)} for shape argument shape={wanted}"
        )
    return wanted


def bits(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Any:
    """Uniform random bits as unsigned integers.

    >>> random.bits(random.key(0), (2,))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    words = raw_key("bits", key)
    found = dtypes.canonicalize_dtype(np.uint32 if dtype is None else dtype)
    if dtypes.kind_of(found) != "u":
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {found.name}"
        )
    return random_ops.threefry_bits(words, dtypes.itemsize_bits(found), _shape("bits", shape))


def uniform(
    key: Any,
    shape: Sequence[int] = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Any:
    """Uniform floats in [minval, maxval).

    The mantissa is filled with random bits to a number in [1, 2), from which 1 is subtracted.

    >>> print(random.uniform(random.PRNGKey(1337)))
    0.02251327
    """
    words = raw_key("uniform", key)
    found = _float_dtype("uniform", dtype)
    low, high = jnp.asarray(minval), jnp.asarray(maxval)
    wanted = _shape("uniform", shape, aval_of(low), aval_of(high))
    return _uniform(words, wanted, found, low.astype(found), high.astype(found))


def _uniform(words: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    info = dtypes.finfo(dtype)
    width, mantissa = info.bits, info.nmant
    drawn = width if mantissa >= 8 else 8
    raw = random_ops.threefry_bits(words, drawn, shape)
    uint = np.dtype(f"uint{width}")
    if drawn != width:
        raw = convert_element_type(raw, new_dtype=uint, weak_type=False)
    one = np.ones((), dtype).view(uint)
    shifted = shift_right_logical(raw, literal(drawn - mantissa, uint))
    filled = bitwise_or(shifted, literal(int(one), uint))
    unit = sub(bitcast_convert_type(filled, new_dtype=dtype), literal(1, dtype))
    low, high = jnp.broadcast_to(low, shape), jnp.broadcast_to(high, shape)
    return max(low, add(mul(unit, sub(high, low)), low))


def normal(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Any:
    """Standard normal numbers: √2·erf⁻¹(u), u uniform in (-1, 1); complex ones of variance 1.

    >>> print(random.normal(random.PRNGKey(0), (2,)).round(4))
    [-0.7848  0.8564]
    """
    words = raw_key("normal", key)
    found = _float_dtype("normal", dtype, allow_complex=True)
    wanted = _shape("normal", shape)
    if dtypes.kind_of(found) != "c":
        return _normal(words, wanted, found)
    part = dtypes.to_real_dtype(found)
    both = split(words)
    scale = literal(np.sqrt(np.array(2, part)), part)
    re, im = _normal(both[0], wanted, part), _normal(both[1], wanted, part)
    return ((re + 1j * im) / scale).astype(found)


def _normal(words: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    u = _uniform(words, shape, dtype, jnp.asarray(low), jnp.ones((), dtype))
    return mul(literal(np.sqrt(2), dtype), erf_inv(u))


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Standard normal numbers given that they lie in (lower, upper)."""
    words = raw_key("truncated_normal", key)
    found = _float_dtype("truncated_normal", dtype)
    low, high = jnp.asarray(lower).astype(found), jnp.asarray(upper).astype(found)
    wanted = _shape("truncated_normal", shape, aval_of(low), aval_of(high))
    root = literal(np.sqrt(2), found)
    a, b = erf(low / np.sqrt(2).astype(found)), erf(high / np.sqrt(2).astype(found))
    u = _uniform(words, wanted, found, a, b)
    out = mul(root, erf_inv(u))
    inf = literal(np.inf, found, False)
    lowest = jnp.broadcast_to(nextafter(low, inf), wanted)
    highest = jnp.broadcast_to(nextafter(high, neg(jnp.asarray(np.array(np.inf, found)))), wanted)
    return clamp(lowest, out, highest)


def randint(key: Any, shape: Sequence[int], minval: Any, maxval: Any, dtype: Any = None) -> Any:
    """Uniform integers in [minval, maxval).

    Twice the width of random bits is reduced modulo the span, so that the bias is negligible.

    >>> random.randint(random.PRNGKey(0), (3,), 0, 10).shape
    (3,)
    """
    words = raw_key("randint", key)
    found = dtypes.check_user_dtype_supported(int if dtype is None else dtype, "randint")
    found = dtypes.canonicalize_dtype(found)
    if dtypes.kind_of(found) not in "iu":
        raise TypeError(f"randint only accepts integer dtypes, got {found.name}")
    lower, upper = jnp.asarray(minval), jnp.asarray(maxval)
    wanted = _shape("randint", shape, aval_of(lower), aval_of(upper))
    for bound in (lower, upper):
        if dtypes.kind_of(bound.dtype) not in "iub":
            raise TypeError(
                f"randint only accepts integer minval and maxval, got {bound.dtype.name}"
            )
    info = dtypes.iinfo(found)
    if dtypes.itemsize_bits(found) < 32:
        # Narrow integers are drawn as wide ones, among which the end of the range has its place.
        first = jnp.clip(lower.astype(np.int32), int(info.min), int(info.max))
        last = jnp.clip(upper.astype(np.int32), int(info.min), int(info.max) + 1)
        return randint(key, wanted, first, last, np.int32).astype(found)
    too_high = upper > int(info.max) if _holds(upper.dtype, int(info.max)) else False
    low, high = _clipped(lower, info, found), _clipped(upper, info, found)
    width = dtypes.itemsize_bits(found)
    uint = np.dtype(f"uint{width}")
    first, second = split(words)
    higher = random_ops.threefry_bits(first, width, wanted)
    lower_bits = random_ops.threefry_bits(second, width, wanted)
    span = convert_element_type(high - low, new_dtype=uint, weak_type=False)
    # An empty range gives minval, and one that reaches past the largest integer includes it.
    span = jnp.where(high <= low, np.array(1, uint), span)
    if too_high is not False:
        span = jnp.where(too_high & (high > low), span + np.array(1, uint), span)
    span = jnp.broadcast_to(span, wanted)
    half = rem(jnp.full(wanted, 2 ** (width // 2), uint), span)
    multiplier = rem(mul(half, half), span)
    offset = add(mul(rem(higher, span), multiplier), rem(lower_bits, span))
    offset = rem(offset, span)
    return add(
        jnp.broadcast_to(low, wanted),
        convert_element_type(offset, new_dtype=found, weak_type=False),
    )


def _holds(dtype: Any, value: int) -> bool:
    info = dtypes.iinfo(dtype) if dtypes.kind_of(dtype) != "b" else None
    return info is not None and int(info.max) > value


def _clipped(x: Any, info: Any, dtype: Any) -> Any:
    """x as the dtype, with values beyond it at its ends."""
    if dtypes.kind_of(x.dtype) != "b":
        own = dtypes.iinfo(x.dtype)
        low = builtin_max(int(info.min), int(own.min))
        high = builtin_min(int(info.max), int(own.max))
        x = jnp.clip(x, np.array(low, x.dtype), np.array(high, x.dtype))
    return x.astype(dtype)


builtin_max = builtins.max
builtin_min = builtins.min


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Any:
    """True with probability p: u < p.

    >>> random.bernoulli(random.PRNGKey(0), 0.5, (3,)).dtype.name
    'bool'
    """
    prob = jnp.asarray(p)
    if dtypes.kind_of(prob.dtype) != "f":
        prob = prob.astype(dtypes.to_inexact_dtype(prob.dtype))
    found = prob.dtype
    wanted = _shape("bernoulli", shape, aval_of(prob))
    return uniform(key, wanted, found) < prob


def gumbel(key: Any, shape: Sequence[int] = (), dtype: Any = None, mode: Any = None) -> Any:
    """Gumbel numbers: -log(-log(u))."""
    words = raw_key("gumbel", key)
    found = _float_dtype("gumbel", dtype)
    tiny = jnp.asarray(np.array(dtypes.finfo(found).tiny, found))
    u = _uniform(words, _shape("gumbel", shape), found, tiny, jnp.ones((), found))
    return neg(log(neg(log(u))))


def exponential(key: Any, shape: Sequence[int] = (), dtype: Any = None) -> Any:
    """Exponential numbers of rate 1: -log(1 - u)."""
    words = raw_key("exponential", key)
    found = _float_dtype("exponential", dtype)
    zero, one = jnp.zeros((), found), jnp.ones((), found)
    return neg(log1p(neg(_uniform(words, _shape("exponential", shape), found, zero, one))))


def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: Any = None,
) -> Any:
    """Indices drawn with probability softmax(logits), by adding Gumbel numbers and argmax.

    Without `replace`, the draws of one distribution are distinct (the largest of one set of
    perturbed logits).
    """
    scores = jnp.asarray(logits)
    axis = axis - scores.ndim if axis >= 0 else axis
    batch = tuple(n for i, n in enumerate(scores.shape) if i != scores.ndim + axis)
    wanted = batch if shape is None else canonical_shape(shape, "categorical")
    if np.broadcast_shapes(wanted, batch) != wanted:
        raise ValueError(
            f"[random.categorical] expected a shape that ends in the batch shape {batch}, got "
            f"{wanted}."
        )
    prefix = wanted[: len(wanted) - len(batch)]
    if replace:
        full = list(wanted[len(prefix) :])
        full.insert(len(full) + axis + 1, scores.shape[axis])
        noise = gumbel(key, (*prefix, *full), scores.dtype)
        expanded = scores.reshape((1,) * len(prefix) + scores.shape)
        return jnp.argmax(noise + expanded, axis=axis)
    noise = gumbel(key, scores.shape, scores.dtype)
    k = math.prod(prefix)
    if k > scores.shape[axis]:
        raise ValueError(
            f"[random.categorical] expected at most {scores.shape[axis]} draws without "
            f"replacement, got {k}."
        )
    _, picked = top_k(jnp.moveaxis(noise + scores, axis, -1), k)
    return jnp.moveaxis(picked, -1, 0).reshape(wanted)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """x (or arange(x)) in random order along an axis; `independent`: each line on its own.

    >>> sorted(random.permutation(random.PRNGKey(0), 4).tolist())
    [0, 1, 2, 3]
    """
    words = raw_key("permutation", key)
    array = jnp.asarray(x)
    if array.ndim == 0:
        if dtypes.kind_of(array.dtype) not in "iu":
            raise TypeError("x must be an integer or at least 1-dimensional")
        return _shuffled(words, jnp.arange(int(array)), 0)
    axis = axis % array.ndim
    if independent or array.ndim == 1:
        return _shuffled(words, array, axis)
    order = _shuffled(words, jnp.arange(array.shape[axis]), 0)
    return jnp.take(array, order, axis, unique_indices=True)


def _shuffled(words: Any, x: Any, axis: int) -> Any:
    """Sorted by random 32-bit keys, often enough that ties do not matter (size³ keys)."""
    rounds = int(np.ceil(3 * np.log(builtin_max(1, x.size)) / np.log(2**32 - 1)))
    for _ in range(rounds):
        words, sub_key = split(words)
        order = random_ops.threefry_bits(sub_key, 32, x.shape)
        _, x = sort_key_val(order, x, axis)
    return x


def choice(
    key: Any,
    a: Any,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: Any = None,
) -> Any:
    """Elements of a (or of arange(a)) drawn at random, with probabilities p if given.

    >>> random.choice(random.PRNGKey(0), jnp.arange(5), (3,), replace=False).shape
    (3,)
    """
    array = jnp.asarray(a)
    wanted = _shape("choice", shape)
    if array.ndim == 0:
        if dtypes.kind_of(array.dtype) not in "iu" or int(array) < 0:
            raise ValueError("a must be a non-negative integer or an array of at least dimension 1")
        n, axis = int(array), 0
    else:
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
            index = randint(key, wanted, 0, n)
            return index if array.ndim == 0 else jnp.take(array, index, axis)
        shuffled = permutation(key, n if array.ndim == 0 else array, axis)
        taken = jnp.take(shuffled, np.arange(draws), axis)
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
        r = total[-1] * (1 - uniform(key, wanted, weights.dtype))
        index = jnp.searchsorted(total, r).astype(np.int32)
    else:
        scores = gumbel(key, (n,), weights.dtype) + jnp.log(weights)
        index = top_k(scores, draws)[1].reshape(wanted)
    return index if array.ndim == 0 else jnp.take(array, index, axis)
