"""Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

It encrypts 128-bit counters under a 64-bit key: ten rounds of two 32-bit products whose halves are
exchanged. XLA's RngBitGenerator numbers the counters from a state on; keys of `rbg` and
`unsafe_rbg` are that state, four words: the key, which is the upper half of the counter as well,
then the counter's lower half.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base.dtypes import uint32, uint64
from primal.ir.trace import aval_of, literal
from primal.ops.bits.counts import convert
from primal.ops.elementwise import (
    add,
    bitwise_or,
    bitwise_xor,
    lt,
    mul,
    shift_left,
    shift_right_logical,
)
from primal.ops.shape import concatenate, iota, reshape, slice
from primal.ops.spread import broadcast_to

PRODUCTS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox_words(state: Any, blocks: int) -> Any:
    """The words of the first `blocks` counters after a state uint32[4]: uint32[blocks, 4].

    >>> import numpy as np
    >>> philox_words(np.array([1, 2, 3, 4], np.uint32), 1).tolist()
    [[512747620, 1298009047, 1267190206, 761827841]]
    """
    first = np.uint64(state[2]) | np.uint64(state[3]) << _HALF
    low = first + np.arange(blocks, dtype=np.uint64)
    c0, c1 = low & _LOW, low >> _HALF
    high = (np.uint64(state[0]) | np.uint64(state[1]) << _HALF) + (low < first)
    c2, c3 = high & _LOW, high >> _HALF
    k0, k1 = int(state[0]), int(state[1])
    m0, m1 = map(np.uint64, PRODUCTS)
    for _ in range(ROUNDS):
        p0, p1 = m0 * c0, m1 * c2
        c0, c1 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _LOW
        c2, c3 = (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + STEPS[0]) & 0xFFFFFFFF, (k1 + STEPS[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], -1).astype(np.uint32)


def philox_bits(state: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Bits of an array as RngBitGenerator draws them from a state uint32[4], in NumPy."""
    n = math.prod(shape)
    words = philox_words(state, _blocks(n, bit_width))
    if bit_width == 64:
        return words.view("<u8").reshape(-1)[:n].reshape(shape)
    return words.reshape(-1)[:n].astype(f"<u{bit_width // 8}", copy=False).reshape(shape)


def _blocks(n: int, bit_width: int) -> int:
    return -(-n // (2 if bit_width == 64 else 4))


def philox_advanced(state: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """The state uint32[4] behind the counters that an array of that shape takes, in NumPy."""
    count = int(state[2]) + (int(state[3]) << 32) + _blocks(math.prod(shape), bit_width)
    words = [int(state[0]), int(state[1]), count & 0xFFFFFFFF, count >> 32 & 0xFFFFFFFF]
    return np.array(words, np.uint32)


# The same in ops, for engines to compile.


def traced_bits(state: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """`philox_bits` in ops."""
    n = math.prod(shape)
    dtype = np.dtype(f"u{bit_width // 8}")
    if not n:
        return broadcast_to(literal(0, dtype, False), shape)
    blocks = _blocks(n, bit_width)
    k0, k1, s0, s1 = [
        convert(
            reshape(
                slice(state, start_indices=(i,), limit_indices=(i + 1,), strides=None), shape=()
            ),
            uint64,
        )
        for i in range(4)
    ]
    first = bitwise_or(s0, shift_left(s1, literal(32, uint64, False)))
    low = add(first, iota(shape=(blocks,), dtype=uint64, dimension=0))
    c1, c0 = _halves(low)
    carry = convert(lt(low, broadcast_to(first, (blocks,))), uint64)
    c3, c2 = _halves(add(bitwise_or(k0, shift_left(k1, literal(32, uint64, False))), carry))
    for _ in range(ROUNDS):
        h0, l0 = _halves(mul(c0, literal(PRODUCTS[0], uint64, False)))
        h1, l1 = _halves(mul(c2, literal(PRODUCTS[1], uint64, False)))
        c0, c1 = bitwise_xor(bitwise_xor(h1, c1), k0), l1
        c2, c3 = bitwise_xor(bitwise_xor(h0, c3), k1), l0
        k0, k1 = _stepped(k0, STEPS[0]), _stepped(k1, STEPS[1])
    if bit_width == 64:
        pairs = [
            bitwise_or(low, shift_left(high, literal(32, uint64, False)))
            for low, high in ((c0, c1), (c2, c3))
        ]
    else:
        pairs = [convert(convert(c, uint32), dtype) for c in (c0, c1, c2, c3)]
    rows = [reshape(p, shape=(blocks, 1)) for p in pairs]
    flat = reshape(concatenate(*rows, dimension=1), shape=(blocks * len(rows),))
    if aval_of(flat).shape[0] != n:
        flat = slice(flat, start_indices=(0,), limit_indices=(n,), strides=None)
    return reshape(flat, shape=shape)


def _halves(x: Any) -> tuple[Any, Any]:
    return shift_right_logical(x, literal(32, uint64, False)), _lower(x)


def _lower(x: Any) -> Any:
    return convert(convert(x, uint32), uint64)


def _stepped(k: Any, step: int) -> Any:
    return _lower(add(k, literal(step, uint64, False)))
