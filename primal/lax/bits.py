"""Random bits as XLA draws them: a counter and a key in, the next counter out."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.avals import Aval, canonical_shape
from primal.ir.trace import aval_of, literal
from primal.ops.bits.philox import traced_bits
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import add, lt
from primal.ops.host import io_callback
from primal.ops.shape import concatenate
from primal.ops.shape import slice as slice_


class RandomAlgorithm(enum.Enum):
    """Generators of bits. The default is Philox, on every engine.

    >>> start, philox = jnp.zeros(4, "uint32"), RandomAlgorithm.RNG_PHILOX
    >>> state, bits = lax.rng_bit_generator(start, (2,), algorithm=philox)
    >>> bits.dtype
    dtype('uint32')
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """(new key, uniform bits of that shape and unsigned dtype), by Philox with 10 rounds.

    key is uint32[4]: two words of key, two of the counter, which the new key has moved on.
    TypeError for other dtypes, ValueError for keys of other shapes.

    >>> lax.rng_bit_generator(jnp.arange(4, dtype='uint32'), (2,))
    (Array([0, 1, 3, 3], dtype=uint32), Array([ 895509795, 3230209149], dtype=uint32))
    """
    state = aval_of(key)
    if state.shape != (4,) or state.dtype != np.uint32:
        raise ValueError(
            f"[rng_bit_generator] expected a key uint32[4], got {state.short()}. Wider keys are "
            "for other algorithms."
        )
    if not isinstance(algorithm, RandomAlgorithm):
        raise TypeError(
            f"[rng_bit_generator] expected a RandomAlgorithm, got {algorithm!r}."
        )
    if algorithm is RandomAlgorithm.RNG_THREE_FRY:
        raise NotImplementedError(
            "[rng_bit_generator] expected RNG_DEFAULT or RNG_PHILOX, got RNG_THREE_FRY. "
            "jax.random.bits draws by threefry."
        )
    wanted = dtypes.canonicalize_dtype(dtype)
    if wanted.kind != "u" or wanted.itemsize not in (1, 2, 4, 8):
        raise TypeError(
            f"[rng_bit_generator] expected an unsigned dtype of 8 to 64 bits, got {wanted.name}."
        )
    size = canonical_shape(shape, "rng_bit_generator")
    width = 8 * wanted.itemsize
    bits = traced_bits(key, width, size)
    blocks = -(-math.prod(size) // (2 if width == 64 else 4))
    words = [
        slice_(key, start_indices=(i,), limit_indices=(i + 1,), strides=None) for i in range(4)
    ]
    low = add(words[2], literal(blocks & 0xFFFFFFFF, state.dtype, False))
    carry = convert_element_type(lt(low, words[2]), new_dtype=state.dtype, weak_type=False)
    high = add(add(words[3], literal(blocks >> 32, state.dtype, False)), carry)
    return concatenate(words[0], words[1], low, high, dimension=0), bits


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Any:
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
    out = Aval(canonical_shape(shape, "rng_uniform"), low.dtype)
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
