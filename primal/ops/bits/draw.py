"""Bits and new keys out of keys: random_bits and random_split.

Two schemes number the counters of an array of bits. The original one counts 0, 1, 2, … and hashes
the first half of the counts with the second; `partitionable` hashes each element's own 64-bit
index, so that a part of an array is computed without the rest. Every result has the keys' shape in
front. The NumPy rules and those in ops say the same: the first hash in place, the others are what
engines compile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base.dtypes import uint32, uint64
from primal.ir.avals import Aval
from primal.ir.op import BITS, Expand, Op, by_kind
from primal.ir.trace import aval_of, literal
from primal.ops.bits.keys import check_keys, random_wrap, traced_words, words_of
from primal.ops.bits.threefry import encrypt, threefry2x32
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import (
    add,
    bitwise_or,
    bitwise_xor,
    mul,
    shift_left,
    shift_right_logical,
)
from primal.ops.shape import concatenate, iota, reshape, slice
from primal.ops.spread import broadcast_to
from primal.ops.types import NOT_LINEAR
from primal.ops.words import zero_derivative

# The original scheme counts with 32 bits; longer arrays take several keys.
LONGEST = 2**32 - 1


def _hash_counts(keys: Any, n: int) -> Any:
    """n words per key: the original scheme's hash of 0, …, n - 1, as uint32[..., n]."""
    half = -(-n // 2)
    out = np.empty((*keys.shape, 2, half), np.uint32)
    out[...] = np.arange(2 * half, dtype=np.uint32).reshape(2, half)
    if n % 2:
        out[..., 1, -1] = 0
    k1, k2 = words_of(keys)
    if keys.ndim:
        k1, k2 = k1[..., None], k2[..., None]
        x, y = out[..., 0, :].copy(), out[..., 1, :].copy()
        encrypt(k1, k2, x, y)
        out[..., 0, :], out[..., 1, :] = x, y
    else:
        encrypt(k1, k2, out[0], out[1])
    return out.reshape(*keys.shape, 2 * half)[..., :n]


def _traced_counts(keys: Any, n: int) -> Any:
    """`_hash_counts` in ops."""
    half = -(-n // 2)
    lead = aval_of(keys).shape
    place = (*(1,) * len(lead), half)
    low = iota(shape=place, dtype=uint32, dimension=len(lead))
    high = add(low, literal(half, uint32, False))
    if n % 2:
        last = np.arange(half, 2 * half, dtype=np.uint32).reshape(place)
        last[..., -1] = 0
        zero = broadcast_to(literal(0, uint32, False), (*place[:-1], 1))
        high = zero if half == 1 else concatenate(_cut(high, half - 1), zero, dimension=len(lead))
    y1, y2 = threefry2x32(*traced_words(keys, 1), low, high)
    return _cut(concatenate(y1, y2, dimension=len(lead)), n)


def _cut(x: Any, n: int, start: int = 0) -> Any:
    shape = aval_of(x).shape
    if start == 0 and shape[-1] == n:
        return x
    lead = (0,) * (len(shape) - 1)
    return slice(
        x, start_indices=(*lead, start), limit_indices=(*shape[:-1], start + n), strides=None
    )


def _hash_indices(keys: Any, n: int) -> tuple[Any, Any]:
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


def _traced_indices(keys: Any, shape: tuple[int, ...]) -> Any:
    """`_hash_indices` in ops, over the indices of an array of that shape, never flattened."""
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
        high = _convert(shift_right_logical(index, literal(32, uint64, False)), uint32)
        index = _convert(index, uint32)
    return threefry2x32(*traced_words(keys, len(shape)), high, index)


def _convert(x: Any, dtype: Any) -> Any:
    return convert_element_type(x, new_dtype=dtype, weak_type=False)


# random_split: new keys from each key.


def _split_type(keys: Aval, *, shape: tuple[int, ...], partitionable: bool) -> Aval:
    check_keys("random_split", keys)
    return Aval((*keys.shape, *shape), keys.dtype)


def _split_impl(keys: Any, *, shape: tuple[int, ...], partitionable: bool) -> Any:
    n = math.prod(shape)
    if partitionable:
        x, y = _hash_indices(keys, n)
        out = y.astype("<u8") << np.uint64(32) | x
    else:
        out = _hash_counts(keys, 2 * n).view("<u8")
    return out.reshape((*keys.shape, *shape))


def _split_traced(keys: Any, *, shape: tuple[int, ...], partitionable: bool) -> Any:
    whole = (*aval_of(keys).shape, *shape)
    impl = str(aval_of(keys).dtype.impl)
    if not math.prod(whole):
        return random_wrap(broadcast_to(literal(0, uint32, False), (*whole, 2)), impl=impl)
    if partitionable:
        at = len(whole)
        halves = [reshape(y, shape=(*whole, 1)) for y in _traced_indices(keys, shape)]
        return random_wrap(concatenate(*halves, dimension=at), impl=impl)
    words = _traced_counts(keys, 2 * math.prod(shape))
    return random_wrap(reshape(words, shape=(*whole, 2)), impl=impl)


def _hide_scheme(params: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in params.items() if k != "partitionable"}


random_split: Op = Op(
    name="random_split",
    kind=BITS,
    type=_split_type,
    impl=_split_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims, **params: (random_split(*args, **params), dims[0]),
    shard=by_kind,
    hlo=Expand(_split_traced),
    kernel=Expand(_split_traced),
    show=_hide_scheme,
)


# random_bits: unsigned integers of 8, 16, 32 or 64 bits.


def _bits_type(keys: Aval, *, bit_width: int, shape: tuple[int, ...], partitionable: bool) -> Aval:
    check_keys("random_bits", keys)
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"[random_bits] expected a bit width of 8, 16, 32 or 64, got {bit_width}.")
    return Aval((*keys.shape, *shape), np.dtype(f"u{bit_width // 8}"))


def _blocks(words: int) -> int:
    """How many words need a key of their own before the last key's."""
    return words // LONGEST


def _bits_impl(keys: Any, *, bit_width: int, shape: tuple[int, ...], partitionable: bool) -> Any:
    n = math.prod(shape)
    dtype = f"<u{bit_width // 8}"
    if partitionable:
        x, y = _hash_indices(keys, n)
        if bit_width == 64:
            out = x.astype("<u8") << np.uint64(32) | y
        else:
            out = np.bitwise_xor(x, y, out=x).astype(dtype, copy=False)
        return out.reshape((*keys.shape, *shape))
    words = -(-n * bit_width // 32)
    blocks = _blocks(words)
    if blocks:
        parts = _split_impl(keys, shape=(blocks + 1,), partitionable=False)
        sizes = [LONGEST] * blocks + [words - blocks * LONGEST]
        bits = np.concatenate(
            [_hash_counts(parts[..., i], size) for i, size in enumerate(sizes)], -1
        )
    else:
        bits = _hash_counts(keys, words)
    if bit_width == 64:
        out = bits[..., :n].astype("<u8") << np.uint64(32) | bits[..., n:]
    elif bit_width == 32:
        out = bits
    else:
        # Little-endian bytes are the narrow words in their order: the low bits first.
        out = np.ascontiguousarray(bits).view(dtype)[..., :n]
    return out.reshape((*keys.shape, *shape))


def _bits_traced(keys: Any, *, bit_width: int, shape: tuple[int, ...], partitionable: bool) -> Any:
    lead = aval_of(keys).shape
    whole = (*lead, *shape)
    n = math.prod(shape)
    dtype = np.dtype(f"u{bit_width // 8}")
    if not math.prod(whole):
        return broadcast_to(literal(0, dtype, False), whole)
    if partitionable:
        x, y = _traced_indices(keys, shape)
        return _joined(x, y) if bit_width == 64 else _convert(bitwise_xor(x, y), dtype)
    words = -(-n * bit_width // 32)
    bits = _traced_hash(keys, words)
    if bit_width == 64:
        out = _joined(_cut(bits, n), _cut(bits, n, n))
    elif bit_width == 32:
        out = bits
    else:
        each = 32 // bit_width
        place = (*(1,) * len(lead), 1, each)
        distance = mul(
            iota(shape=place, dtype=uint32, dimension=len(lead) + 1),
            literal(bit_width, uint32, False),
        )
        pieces = shift_right_logical(reshape(bits, shape=(*lead, words, 1)), distance)
        out = _cut(_convert(reshape(pieces, shape=(*lead, words * each)), dtype), n)
    return reshape(out, shape=whole)


def _traced_hash(keys: Any, words: int) -> Any:
    blocks = _blocks(words)
    if not blocks:
        return _traced_counts(keys, words)
    lead = aval_of(keys).shape
    parts = _split_traced(keys, shape=(blocks + 1,), partitionable=False)
    sizes = [LONGEST] * blocks + [words - blocks * LONGEST]
    hashed = [
        _traced_counts(reshape(_cut(parts, 1, i), shape=lead), size)
        for i, size in enumerate(sizes)
        if size
    ]
    return concatenate(*hashed, dimension=len(lead))


def _joined(high: Any, low: Any) -> Any:
    upper = shift_left(_convert(high, uint64), literal(32, uint64, False))
    return bitwise_or(upper, _convert(low, uint64))


random_bits: Op = Op(
    name="random_bits",
    kind=BITS,
    type=_bits_type,
    impl=_bits_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims, **params: (random_bits(*args, **params), dims[0]),
    shard=by_kind,
    hlo=Expand(_bits_traced),
    kernel=Expand(_bits_traced),
    show=_hide_scheme,
)
