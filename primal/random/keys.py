"""Random keys: raw (`uint32[..., 2]`, as `PRNGKey` makes them) and typed (dtype `key<fry>`).

A key is the whole state. Each is used once: split it, use one part, keep the other.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import settings
from primal.ir.trace import Array, aval_of
from primal.numpy import asarray
from primal.ops import bits
from primal.ops.shape import reshape

IMPLS = {"threefry2x32": "threefry2x32", "fry": "threefry2x32"}


def is_typed(key: Any) -> bool:
    """Whether the key is an array of typed keys."""
    return isinstance(getattr(key, "dtype", None), dtypes.KeyType)


def impl_name(impl: Any) -> str:
    """The name of a generator, checked; None means the configured one."""
    name = settings().default_prng_impl if impl is None else getattr(impl, "name", impl)
    found = IMPLS.get(str(name).removeprefix("key<").removesuffix(">"))
    if found is None:
        raise ValueError(
            f"[random] expected a generator among {sorted(set(IMPLS.values()))}, got {impl!r}."
        )
    return found


def raw_key(name: str, key: Any) -> Any:
    """The words uint32[2] of one key of either kind; errors name the function."""
    words = raw_keys(name, key)
    if words.ndim != 1:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape "
            f"{words.shape[:-1]} != (). Use primal.vmap for batching."
        )
    return words


def raw_keys(name: str, key: Any) -> Any:
    """The words uint32[..., 2] of an array of keys of either kind."""
    if is_typed(key):
        return bits.random_unwrap(key)
    if not isinstance(key, Array | np.ndarray):
        raise TypeError(
            f"[random.{name}] expected a random key, got {key!r} of type {type(key)}: unexpected "
            "PRNG key type. primal.random.key(seed) makes one."
        )
    aval = aval_of(key)
    if aval.dtype != np.uint32 or aval.ndim < 1 or aval.shape[-1] != 2:
        raise TypeError(
            f"[random.{name}] expected a key of dtype uint32 and last dimension 2, or a typed key, "
            f"got {aval}: JAX's convention is that random keys are arrays of shape (2,) and dtype "
            "uint32. primal.random.key(seed) makes one."
        )
    return asarray(key)


def like(key: Any, words: Any) -> Any:
    """Words as keys of the same kind as `key`."""
    if is_typed(key):
        return bits.random_wrap(words, impl=key.dtype.impl)
    return words


def _seed_words(name: str, seed: Any) -> Any:
    if is_typed(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if isinstance(seed, int) and not isinstance(seed, bool):
        # As 64-bit two's complement, whatever the width of default integers.
        if not -(2**63) <= seed < 2**64:
            raise OverflowError(f"[random.{name}] expected a seed of at most 64 bits, got {seed}.")
        if not settings().enable_x64:
            seed = np.uint32(seed & 0xFFFFFFFF) if seed >= 0 else np.int32(seed % -(2**31))
        words = np.array([0, int(seed) & 0xFFFFFFFF], np.uint32)
        return asarray(words)
    aval = aval_of(seed)
    if aval.ndim:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {aval.shape} != (). "
            "Use primal.vmap for batching."
        )
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {aval.dtype.name}: {seed!r}")
    return bits.threefry_seed(asarray(seed))


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A raw key from an integer seed: uint32[2].

    >>> print(random.PRNGKey(18))
    [ 0 18]
    """
    name = impl_name(impl)
    words = _seed_words("PRNGKey", seed)
    if settings().enable_custom_prng:
        return bits.random_wrap(words, impl=name)
    return words


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A typed key from an integer seed: a scalar array of dtype key<fry>.

    >>> random.key(0).dtype.name
    'key<fry>'
    """
    return bits.random_wrap(_seed_words("key", seed), impl=impl_name(impl))


def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """`num` new keys out of one, which must not be used again.

    >>> print(random.split(random.PRNGKey(18)))
    [[4197003906 1654466292]
     [1685972163 1654824463]]
    """
    words = raw_key("split", key)
    shape = tuple(num) if isinstance(num, tuple | list) else (operator.index(num),)
    return like(key, bits.threefry_split(words, shape))


def fold_in(key: Any, data: Any) -> Any:
    """A new key out of a key and a 32-bit integer.

    >>> print(random.fold_in(random.PRNGKey(0), 1))
    [ 928981903 3453687069]
    """
    words = raw_key("fold_in", key)
    aval = aval_of(data)
    if aval.ndim:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {aval.shape} != (). Use "
            "primal.vmap for batching."
        )
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"[random.fold_in] expected an integer, got {aval.dtype.name}.")
    value = np.uint32(data & 0xFFFFFFFF) if isinstance(data, int) else data
    return like(key, bits.threefry_fold_in(words, asarray(value).astype(np.uint32)))


def key_data(keys: Any) -> Any:
    """The words of keys of either kind: uint32[..., 2].

    >>> print(random.key_data(random.key(18)))
    [ 0 18]
    """
    return raw_keys("key_data", keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> Any:
    """Words uint32[..., 2] as typed keys: the inverse of `key_data`."""
    name = impl_name(impl)
    words = raw_keys("wrap_key_data", key_bits_array)
    return bits.random_wrap(words, impl=name)


def key_impl(keys: Any) -> Any:
    """The name of the generator of typed keys."""
    if not is_typed(keys):
        raw_keys("key_impl", keys)
        return "threefry2x32"
    return keys.dtype.impl


def clone(key: Any) -> Any:
    """The same key, to be used once more on purpose."""
    raw_keys("clone", key)
    return key


def size_of(shape: tuple[int, ...]) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)


def flat(x: Any) -> Any:
    """x as a vector."""
    return reshape(x, shape=(aval_of(x).size,))
