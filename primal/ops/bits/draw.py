"""Bits out of keys: random_bits, by either scheme of threefry and by Philox."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base.dtypes import complex128, uint32, uint64
from primal.base.native import empty
from primal.ir.avals import Aval
from primal.ir.op import BITS, Expand, Op, by_kind
from primal.ir.trace import aval_of, literal
from primal.ops.bits.counts import (
    LONGEST,
    convert,
    cut,
    hash_counts,
    hash_indices,
    split_numpy,
    split_traced,
    traced_counts,
    traced_indices,
)
from primal.ops.bits.keys import THREEFRY, check_keys, hide_scheme, random_unwrap
from primal.ops.bits.philox import philox_bits, traced_bits
from primal.ops.elementwise import bitwise_or, bitwise_xor, mul, shift_left, shift_right_logical
from primal.ops.shape import concatenate, iota, reshape, slice
from primal.ops.spread import broadcast_to
from primal.ops.types import NOT_LINEAR
from primal.ops.words import zero_derivative

# random_bits: unsigned integers of 8, 16, 32 or 64 bits. Philox draws the bits of an array of keys
# as one array under the first of them, as XLA's generator has one state whatever is batched.


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
    if keys.dtype == complex128:
        return philox_under_first(keys, bit_width, shape)
    if partitionable:
        x, y = hash_indices(keys, n)
        if bit_width == 64:
            out = x.astype("<u8") << np.uint64(32) | y
        else:
            out = np.bitwise_xor(x, y, out=x).astype(dtype, copy=False)
        return out.reshape((*keys.shape, *shape))
    words = -(-n * bit_width // 32)
    blocks = _blocks(words)
    if blocks:
        parts = split_numpy(keys, shape=(blocks + 1,), partitionable=False)
        sizes = [LONGEST] * blocks + [words - blocks * LONGEST]
        bits = np.concatenate(
            [hash_counts(parts[..., i], size) for i, size in enumerate(sizes)], -1
        )
    else:
        bits = hash_counts(keys, words)
    if bit_width == 64:
        out = empty((*bits.shape[:-1], n), np.dtype("<u8"))
        halves = out.view("<u4").reshape(*out.shape, 2)
        halves[..., 1], halves[..., 0] = bits[..., :n], bits[..., n:]
    elif bit_width == 32:
        out = bits
    else:
        # Little-endian bytes are the narrow words in their order: the low bits first.
        out = np.ascontiguousarray(bits).view(dtype)[..., :n]
    return out.reshape((*keys.shape, *shape))


def philox_under_first(keys: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Bits [*keys.shape, *shape] under the first of Philox keys, in NumPy."""
    whole = (*keys.shape, *shape)
    if not keys.size:
        return np.zeros(whole, f"<u{bit_width // 8}")
    return philox_bits(np.ravel(keys)[:1].view(np.uint32), bit_width, whole)


def first_state(keys: Any) -> Any:
    """The words uint32[4] of the first of Philox keys, in ops."""
    lead = aval_of(keys).shape
    if not lead:
        return random_unwrap(keys)
    one = slice(keys, start_indices=(0,) * len(lead), limit_indices=(1,) * len(lead), strides=None)
    return random_unwrap(reshape(one, shape=()))


def _bits_traced(keys: Any, *, bit_width: int, shape: tuple[int, ...], partitionable: bool) -> Any:
    lead = aval_of(keys).shape
    whole = (*lead, *shape)
    n = math.prod(shape)
    dtype = np.dtype(f"u{bit_width // 8}")
    if not math.prod(whole):
        return broadcast_to(literal(0, dtype, False), whole)
    if aval_of(keys).dtype != THREEFRY:
        return traced_bits(first_state(keys), bit_width, whole)
    if partitionable:
        x, y = traced_indices(keys, shape)
        return _joined(x, y) if bit_width == 64 else convert(bitwise_xor(x, y), dtype)
    words = -(-n * bit_width // 32)
    bits = _traced_hash(keys, words)
    if bit_width == 64:
        out = _joined(cut(bits, n), cut(bits, n, n))
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
        out = cut(convert(reshape(pieces, shape=(*lead, words * each)), dtype), n)
    return reshape(out, shape=whole)


def _traced_hash(keys: Any, words: int) -> Any:
    blocks = _blocks(words)
    if not blocks:
        return traced_counts(keys, words)
    lead = aval_of(keys).shape
    parts = split_traced(keys, shape=(blocks + 1,), partitionable=False)
    sizes = [LONGEST] * blocks + [words - blocks * LONGEST]
    hashed = [
        traced_counts(reshape(cut(parts, 1, i), shape=lead), size)
        for i, size in enumerate(sizes)
        if size
    ]
    return concatenate(*hashed, dimension=len(lead))


def _joined(high: Any, low: Any) -> Any:
    upper = shift_left(convert(high, uint64), literal(32, uint64, False))
    return bitwise_or(upper, convert(low, uint64))


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
    show=hide_scheme,
)
