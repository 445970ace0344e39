"""Threefry keys as their two words, for the loops of distributions that split a key per number.

A key of its own for each of many numbers is split again and again into two or three. As typed keys
these are arrays [n, 3] of 64-bit numbers, of which parts are cut; as words, everything is
elementwise on 32 bits: 10,000 gamma numbers take a fifth of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primal.base.config import settings
from primal.base.dtypes import uint32, uint64
from primal.ir.trace import literal
from primal.ops.bits import random_bits, random_split, random_unwrap, threefry2x32
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import bitwise_or, bitwise_xor, shift_left


class WordKeys(NamedTuple):
    """Keys [n], of which each word is an array uint32[n]. They may be used any number of times."""

    first: Any
    second: Any

    def _hash(self, x: int, y: int) -> Any:
        return threefry2x32(*self, literal(x, uint32, False), literal(y, uint32, False))

    def parts(self, n: int) -> list[WordKeys]:
        """The n keys that each key is split into."""
        if settings().threefry_partitionable:
            return [WordKeys(*self._hash(0, i)) for i in range(n)]
        # 2·n words: what 0, 1, ... are hashed to on the left, then all on the right.
        hashed = [self._hash(i, n + i) for i in range(n)]
        words = [left for left, _ in hashed] + [right for _, right in hashed]
        return [WordKeys(*words[2 * i : 2 * i + 2]) for i in range(n)]

    def bits(self, width: int) -> Any:
        """Random bits [n], as unsigned integers of that width."""
        partitionable = settings().threefry_partitionable
        left, right = self._hash(0, int(width == 64 and not partitionable))
        if width == 64:
            left, right = [_as(x, uint64) for x in (left, right)]
            return bitwise_or(shift_left(left, literal(32, uint64, False)), right)
        word = bitwise_xor(left, right) if partitionable else left
        return word if width == 32 else _as(word, np.dtype(f"u{width // 8}"))


def _as(x: Any, dtype: Any) -> Any:
    return convert_element_type(x, new_dtype=dtype, weak_type=False)


def split_words(typed: Any, n: int) -> WordKeys:
    """The n keys that a threefry key is split into."""
    partitionable = bool(settings().threefry_partitionable)
    if partitionable or 2 * n >= 2**32:
        keys = random_split(typed, shape=(n,), partitionable=partitionable, impl="threefry2x32")
        words = random_unwrap(keys)
    else:
        # In the original scheme the words of keys are the bits that would be drawn.
        words = random_bits(typed, bit_width=32, shape=(n, 2), partitionable=False)
    return WordKeys(words[:, 0], words[:, 1])
