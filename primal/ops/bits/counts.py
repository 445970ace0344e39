"""Hashes of counters under keys, and the threefry keys split from a key.

Two schemes number the counters of an array of bits. The original one counts 0, 1, 2, … and hashes
the first half of the counts with the second; `partitionable` hashes each element's own 64-bit
index, so that a part of an array is computed without the rest. Every result has the keys' shape in
front. The NumPy functions and those in ops say the same: the first hash in place, the others are
what engines compile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base.dtypes import uint32, uint64
from primal.ir.trace import aval_of, literal
from primal.ops.bits.keys import random_wrap, traced_words, words_of
from primal.ops.bits.threefry import counts, encrypt, hash_range, threefry2x32
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import add, mul, shift_right_logical
from primal.ops.shape import concatenate, iota, reshape, slice
from primal.ops.spread import broadcast_to

# The original scheme counts with 32 bits; longer arrays take several keys.
LONGEST = 2**32 - 1


def hash_counts(keys: Any, n: int) -> Any:
    """n words per key: the original scheme's hash of 0, …, n - 1, as uint32[..., n]."""
    k1, k2 = words_of(keys)
    if not keys.ndim:
        return hash_range(k1, k2, n)[:n]
    x, y = [np.broadcast_to(part, (*keys.shape, part.size)).copy() for part in counts(n)]
    encrypt(k1[..., None], k2[..., None], x, y)
    return np.concatenate([x, y], -1)[..., :n]


def traced_counts(keys: Any, n: int) -> Any:
    """`hash_counts` in ops."""
    half = -(-n // 2)
    lead = aval_of(keys).shape
    place = (*(1,) * len(lead), half)
    low = iota(shape=place, dtype=uint32, dimension=len(lead))
    high = add(low, literal(half, uint32, False))
    if n % 2:
        last = np.arange(half, 2 * half, dtype=np.uint32).reshape(place)
        last[..., -1] = 0
        zero = broadcast_to(literal(0, uint32, False), (*place[:-1], 1))
        high = zero if half == 1 else concatenate(cut(high, half - 1), zero, dimension=len(lead))
    y1, y2 = threefry2x32(*traced_words(keys, 1), low, high)
    return cut(concatenate(y1, y2, dimension=len(lead)), n)


def cut(x: Any, n: int, start: int = 0) -> Any:
    """x[..., start : start + n]"""
    shape = aval_of(x).shape
    if start == 0 and shape[-1] == n:
        return x
    lead = (0,) * (len(shape) - 1)
    return slice(
        x, start_indices=(*lead, start), limit_indices=(*shape[:-1], start + n), strides=None
    )


def hash_indices(keys: Any, n: int) -> tuple[Any, Any]:
    """The partitionable scheme's two hashes of each index 0, …, n - 1, as uint32[..., n]."""
    shape = (*keys.shape, n)
    x, y = np.zeros(shape, np.uint32), np.empty(shape, np.uint32)
    if n > LONGEST:
        index = np.arange(n, dtype=np.uint64)
        x[...] = (index >> np.uint64(32)).astype(np.uint32)
        y[...] = index.astype(np.uint32)
    else:
        y[...] = np.arange(n, dtype=np.uint32)
    k1, k2 = words_of(keys)
    if keys.ndim:
        k1, k2 = k1[..., None], k2[..., None]
    encrypt(k1, k2, x, y)
    return x, y


def traced_indices(keys: Any, shape: tuple[int, ...]) -> Any:
    """`hash_indices` in ops, over the indices of an array of that shape, never flattened."""
    lead = aval_of(keys).shape
    place = (*(1,) * len(lead), *shape)
    long = math.prod(shape) > LONGEST
    dtype = uint64 if long else uint32
    index: Any = None
    step = 1
    for i in reversed(range(len(shape))):
        along = iota(shape=place, dtype=dtype, dimension=len(lead) + i)
        if step > 1:
            along = mul(along, literal(step, dtype, False))
        index = along if index is None else add(index, along)
        step *= shape[i]
    if index is None:
        index = reshape(literal(0, uint32, False), shape=place)
    high: Any = literal(0, uint32, False)
    if long:
        high = convert(shift_right_logical(index, literal(32, uint64, False)), uint32)
        index = convert(index, uint32)
    return threefry2x32(*traced_words(keys, len(shape)), high, index)


def convert(x: Any, dtype: Any) -> Any:
    """x as a strong array of the dtype."""
    return convert_element_type(x, new_dtype=dtype, weak_type=False)


def split_numpy(keys: Any, *, shape: tuple[int, ...], partitionable: bool) -> Any:
    """New threefry keys uint64[*keys.shape, *shape] from each key."""
    n = math.prod(shape)
    if partitionable:
        x, y = hash_indices(keys, n)
        out = y.astype("<u8") << np.uint64(32) | x
    else:
        out = hash_counts(keys, 2 * n).view("<u8")
    return out.reshape((*keys.shape, *shape))


def split_traced(keys: Any, *, shape: tuple[int, ...], partitionable: bool) -> Any:
    """`split_numpy` in ops."""
    whole = (*aval_of(keys).shape, *shape)
    if not math.prod(whole):
        nothing = broadcast_to(literal(0, uint32, False), (*whole, 2))
        return random_wrap(nothing, impl="threefry2x32")
    if partitionable:
        at = len(whole)
        halves = [reshape(y, shape=(*whole, 1)) for y in traced_indices(keys, shape)]
        return random_wrap(concatenate(*halves, dimension=at), impl="threefry2x32")
    words = traced_counts(keys, 2 * math.prod(shape))
    return random_wrap(reshape(words, shape=(*whole, 2)), impl="threefry2x32")
