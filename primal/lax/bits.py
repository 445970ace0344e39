"""Random bits as XLA draws them: a counter and a key in, the next counter out."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.dtypes import uint32 as UINT32
from primal.base.dtypes import uint64 as UINT64
from primal.ir.avals import Aval, canonical_shape
from primal.ir.trace import Array, aval_of, literal
from primal.numpy.remembered import remembered
from primal.ops.bits.philox import traced_bits
from primal.ops.bits.threefry import threefry2x32
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import add, bitwise_or, lt, shift_left, shift_right_logical
from primal.ops.host import io_callback
from primal.ops.reduce import part
from primal.ops.shape import concatenate, iota, reshape
from primal.ops.spread import broadcast_to
from primal.runtime.refusals import in_words


class RandomAlgorithm(enum.IntEnum):
    """Generators of bits. The default is Philox, on every engine.

    >>> start, philox = jnp.zeros(4, "uint32"), RandomAlgorithm.RNG_PHILOX
    >>> state, bits = lax.rng_bit_generator(start, (2,), algorithm=philox)
    >>> bits.dtype
    dtype('uint32')
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


@remembered
def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """(new key, uniform bits of that shape and unsigned dtype), by Philox with 10 rounds.

    key is uint32[4] or uint64[2]: two words of key, two of the counter, which the new key has moved
    on; RNG_THREE_FRY takes 20 rounds of threefry2x32 instead. TypeError for dtypes that are not
    unsigned, ValueError for other keys and algorithms. Salmon et al., 2011.

    >>> lax.rng_bit_generator(jnp.arange(4, dtype='uint32'), (2,))
    (Array([0, 1, 3, 3], dtype=uint32), Array([ 895509795, 3230209149], dtype=uint32))
    """
    state = aval_of(key)
    if (state.shape, state.dtype) not in (((4,), UINT32), ((2,), UINT64)):
        raise ValueError(
            f"[rng_bit_generator] expected a key uint32[4] or uint64[2], got {state.short()}."
        )
    if algorithm not in tuple(RandomAlgorithm):
        raise ValueError(f"[rng_bit_generator] expected a RandomAlgorithm, got {algorithm!r}.")
    wanted = dtypes.check_user_dtype_supported(dtype, "rng_bit_generator")
    if wanted.kind != "u" or wanted.itemsize not in (1, 2, 4, 8):
        raise TypeError(
            f"[rng_bit_generator] expected an unsigned dtype of 8 to 64 bits, got {wanted.name}."
        )
    size = canonical_shape(shape, "rng_bit_generator")
    wide = state.dtype == UINT64
    words = _split(key) if wide else [part(key, i, i + 1, 0) for i in range(4)]
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        bits, blocks = _threefry_bits(words, size, wanted)
    else:
        flat = concatenate(*words, dimension=0) if wide else key
        bits = traced_bits(flat, 8 * wanted.itemsize, size)
        blocks = -(-math.prod(size) // (2 if wanted.itemsize == 8 else 4))
    words[2:] = _count(words[2:], blocks & 0xFFFFFFFF, blocks >> 32)
    if wide:
        pairs = [_joined(*words[:2]), _joined(*words[2:])]
        return concatenate(*pairs, dimension=0), bits
    return concatenate(*words, dimension=0), bits


def _split(key: Any) -> list[Any]:
    """The words of uint64[2], lower ones first, as uint32[1] each."""
    out = []
    for i in range(2):
        x = part(key, i, i + 1, 0)
        for half in (x, shift_right_logical(x, literal(32, UINT64, False))):
            out.append(convert_element_type(half, new_dtype=UINT32, weak_type=False))
    return out


def _joined(low: Any, high: Any) -> Any:
    """low + 2³²·high as uint64."""
    low, high = [convert_element_type(x, new_dtype=UINT64, weak_type=False) for x in (low, high)]
    return bitwise_or(low, shift_left(high, literal(32, UINT64, False)))


def _count(counter: Sequence[Any], low: Any, high: Any) -> tuple[Any, Any]:
    """A counter of two words moved on by (low, high)."""
    low, high = [literal(x, UINT32, False) if type(x) is int else x for x in (low, high)]
    total = add(counter[0], low)
    carry = convert_element_type(lt(total, low), new_dtype=UINT32, weak_type=False)
    return total, add(add(counter[1], high), carry)


def _threefry_bits(words: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
    """XLA's order of the two words that each counter gives, and the number of counters.

    64 bits are the two words of one counter. Otherwise the first even dimension, or the longest one
    rounded up, is split into places and the two words, of which narrow dtypes keep the low bits.
    """
    whole = dtype.itemsize == 8
    sizes = list(shape) or [1]
    even = [i for i, n in enumerate(sizes) if n % 2 == 0]
    at = even[0] if even else sizes.index(max(sizes))
    half = sizes if whole else [*sizes[:at], -(-sizes[at] // 2), *sizes[at + 1 :]]
    blocks = math.prod(half)
    places = [iota(shape=(blocks,), dtype=UINT32, dimension=0), 0]
    counter = _count([broadcast_to(w, (blocks,)) for w in words[2:]], *places)
    pair = [
        reshape(y, shape=tuple(half)) for y in threefry2x32(words[0], words[1], *counter)
    ]
    if whole:
        return reshape(_joined(*pair), shape=shape), blocks
    doubled = (*half[: at + 1], 1, *half[at + 1 :])
    both = concatenate(*[reshape(y, shape=doubled) for y in pair], dimension=at + 1)
    out = part(reshape(both, shape=(*half[:at], 2 * half[at], *half[at + 1 :])), 0, sizes[at], at)
    if dtype != UINT32:
        out = convert_element_type(out, new_dtype=dtype, weak_type=False)
    return reshape(out, shape=shape), blocks


@in_words
def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Array:
    """Numbers drawn evenly from [a, b) by a generator with a state of its own, the process's.

    Every call draws anew, in compiled programs as well. a and b are scalars of one dtype, floating
    or integer, which is kept. ValueError where they are not; jax.random is for results that come
    again.

    >>> lax.rng_uniform(0., 1., (3,)).shape
    (3,)
    """
    low, high = aval_of(a), aval_of(b)
    if low.dtype != high.dtype:
        raise ValueError(
            f"[rng_uniform] expected scalars of one dtype, got {low.dtype.name} and "
            f"{high.dtype.name}."
        )
    if low.shape or high.shape:
        raise ValueError(f"[rng_uniform] expected scalars, got shapes {low.shape}, {high.shape}.")
    weak = low.weak_type and high.weak_type
    out = Aval(canonical_shape(shape, "rng_uniform"), low.dtype, weak)
    (drawn,) = io_callback(
        a, b, callback=_draw(out), result_avals=(out,), sharding=None, ordered=False
    )
    return drawn


@functools.cache
def _generator() -> np.random.Generator:
    return np.random.default_rng()


@functools.cache
def _draw(out: Aval) -> Callable[..., Any]:
    def draw(low: Any, high: Any) -> list[Any]:
        if out.dtype.kind in "iu":
            # An empty interval has no numbers; its result is one end of it.
            top = max(int(high), int(low) + 1)
            return [_generator().integers(int(low), top, out.shape).astype(out.dtype)]
        unit = _generator().random(out.shape)
        return [np.asarray(low + unit * (np.subtract(high, low, dtype=float))).astype(out.dtype)]

    return draw
