"""Random keys: raw (`uint32[..., words]`, as `PRNGKey` makes them) and typed (`key<fry>`, …).

A key is the whole state. Each is used once: split it, use one part, keep the other. A raw key
belongs to the configured generator (`config.default_prng_impl`); inside, all keys are typed.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import settings
from primal.base.source import user_stacklevel
from primal.ir.trace import Array, aval_of
from primal.numpy import asarray
from primal.numpy.remembered import remembered
from primal.ops import bits
from primal.ops.types import static_int, static_ints
from primal.random.word_keys import WordKeys
from primal.runtime import guards
from primal.runtime.refusals import in_words


def is_typed(key: Any) -> bool:
    """Whether the key is an array of typed keys."""
    return isinstance(getattr(key, "dtype", None), dtypes.KeyType)


def impl_name(impl: Any) -> str:
    """The name of a generator, checked; None means the configured one.

    A name (`'rbg'`), a key dtype or what `key_impl` returns.
    """
    found = settings().default_prng_impl if impl is None else impl
    if isinstance(found, dtypes.KeyType):
        found = found.impl
    if not isinstance(found, str):
        raise TypeError(
            f"[random] expected the name of a generator, got {impl!r} of type {type(impl)}."
        )
    if found not in bits.KEY_TYPES:
        raise ValueError(
            f"[random] expected a generator among {sorted(bits.KEY_TYPES)}, got {impl!r}: "
            "unrecognized PRNG implementation."
        )
    return str(found)


def typed_key(name: str, key: Any) -> Array:
    """One key of either kind as a typed one; errors name the function."""
    keys = typed_keys(name, key)
    if keys.ndim:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {keys.shape} != (). "
            "Use primal.vmap for batching."
        )
    return keys


def typed_keys(name: str, key: Any) -> Array:
    """An array of keys of either kind as typed ones."""
    if is_typed(key):
        return key
    if not isinstance(key, Array | np.ndarray):
        raise TypeError(
            f"[random.{name}] expected a random key, got {key!r} of type {type(key)}: unexpected "
            "PRNG key type. primal.random.key(seed) makes one."
        )
    aval = aval_of(key)
    impl = impl_name(None)
    words = bits.word_count(impl)
    if aval.dtype != np.uint32 or aval.ndim < 1 or aval.shape[-1] != words:
        raise TypeError(
            f"[random.{name}] expected a key of dtype uint32 and last dimension {words}, or a "
            f"typed key, got {aval.short()}: raw keys of {impl} are arrays of shape ({words},) "
            "and dtype uint32. primal.random.key(seed) makes one."
        )
    mode = settings().legacy_prng_key
    if mode != "allow":
        text = (
            f"[random.{name}] expected a typed key, got a legacy uint32 key array: Legacy uint32 "
            "key array passed as key to primal.random function. Make keys by primal.random.key(), "
            "or set legacy_prng_key to 'allow'."
        )
        if mode == "error":
            raise ValueError(text)
        warnings.warn(text, stacklevel=user_stacklevel())
    return bits.random_wrap(asarray(key), impl=impl)


def like(key: Any, typed: Any) -> Array:
    """Typed keys as keys of the same kind as `key`."""
    return typed if is_typed(key) else bits.random_unwrap(typed)


def _seed(name: str, seed: Any, impl: Any, dtype: Any = None) -> Any:
    if is_typed(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if dtype is not None:
        if impl is not None:
            raise ValueError(f"[random.{name}] expected `impl` or `dtype`, got both.")
        impl = dtype
    if guards.ever:
        guards.incoming(seed)
    generator = impl_name(impl)
    if seed is None:
        raise ValueError(f"[random.{name}] expected an integer as seed, got None.")
    if isinstance(seed, int):
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(
                f"[random.{name}] expected a seed of at most 64 bits, signed, got {seed}."
            )
        # Modulo 2⁶⁴ or, where integers have 32 bits, modulo 2³².
        width = 64 if settings().enable_x64 else 32
        number = (seed + settings().random_seed_offset) % (1 << width)
        words = np.array([number >> 32, number & 0xFFFFFFFF], np.uint32)
        words = np.tile(words, bits.word_count(generator) // 2)
        return bits.random_wrap(asarray(words), impl=generator)
    if not isinstance(seed, np.generic | np.ndarray | Array):
        raise TypeError(
            f"PRNG key seed must be an integer; got {seed!r} of type {type(seed).__name__}."
        )
    aval = aval_of(seed)
    if aval.ndim:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {aval.shape} != (). "
            "Use primal.vmap for batching."
        )
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {aval.dtype.name}: {seed!r}")
    number = asarray(seed)
    if settings().random_seed_offset:
        number = number + settings().random_seed_offset
    return bits.random_seed(number, impl=generator)


@in_words
def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A raw key from an integer seed: uint32[2], of rbg and unsafe_rbg uint32[4].

    >>> print(random.PRNGKey(18))
    [ 0 18]
    """
    made = _seed("PRNGKey", seed, impl)
    return made if settings().enable_custom_prng else bits.random_unwrap(made)


@in_words
def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """A typed key from an integer seed: a scalar array of dtype key<fry>.

    `impl` is `'threefry2x32'` (the default), `'rbg'` or `'unsafe_rbg'`; `dtype`, in its place, the
    dtype of a key.

    >>> random.key(0).dtype.name, random.key(0, impl="rbg").dtype.name
    ('key<fry>', 'key<rbg>')
    """
    return _seed("key", seed, impl, dtype)


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of the keys of a generator.

    >>> random.key_dtype("unsafe_rbg")
    key<urbg>
    """
    return bits.key_type(impl_name(impl_spec))


@remembered
def split(key: Any, num: int | tuple[int, ...] = 2) -> Array:
    """`num` new keys out of one, which must not be used again.

    >>> print(random.split(random.PRNGKey(18)))
    [[4197003906 1654466292]
     [1685972163 1654824463]]
    """
    typed = typed_key("split", key)
    several = isinstance(num, tuple | list)
    shape = static_ints("split num", num) if several else (static_int("split num", num),)
    return like(key, split_typed(typed, *shape))


def split_typed(key: Any, *shape: int) -> Array:
    """New typed keys out of a typed one, under the configured scheme."""
    return bits.random_split(
        key,
        shape=shape,
        partitionable=bool(settings().threefry_partitionable),
        impl=key.dtype.impl,
    )


def draw(key: Any, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Random bits from typed keys, under the configured scheme; from `WordKeys` of shape ()."""
    if type(key) is WordKeys:
        assert shape == ()
        return key.bits(bit_width)
    return bits.random_bits(
        key,
        bit_width=bit_width,
        shape=shape,
        partitionable=bool(settings().threefry_partitionable),
    )


@in_words
def fold_in(key: Any, data: Any) -> Array:
    """A new key out of a key and a 32-bit integer.

    OverflowError for Python integers that are negative or have more than 32 bits. Raises TypeError
    for data that are no single integer.

    >>> print(random.fold_in(random.PRNGKey(0), 1))
    [ 928981903 3453687069]
    """
    if guards.ever:
        guards.incoming(data)
    typed = typed_key("fold_in", key)
    if isinstance(data, list | tuple):
        raise TypeError(f"[random.fold_in] expected an integer, got {data!r}.")
    aval = aval_of(data)
    if aval.ndim:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {aval.shape} != (). Use "
            "primal.vmap for batching."
        )
    if isinstance(data, int) and not 0 <= data < 2**32:
        raise OverflowError(
            f"[random.fold_in] expected an integer of 32 bits, unsigned, got {data}."
        )
    value = np.uint32(data) if isinstance(data, int) else data
    words = asarray(value).astype(np.uint32)
    return like(key, bits.random_fold_in(typed, words, impl=typed.dtype.impl))


def key_data(keys: Any) -> Array:
    """The words of keys of either kind: uint32[..., 2], of rbg and unsafe_rbg uint32[..., 4].

    >>> print(random.key_data(random.key(18)))
    [ 0 18]
    """
    return bits.random_unwrap(typed_keys("key_data", keys))


@in_words
def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """Words uint32[..., 2] (or 4) as typed keys: the inverse of `key_data`.

    Raises TypeError for typed keys and for words of another dtype or number.

    >>> random.wrap_key_data(jnp.array([0, 18], "uint32")).dtype.name
    'key<fry>'
    """
    if is_typed(key_bits_array):
        raise TypeError("[random.wrap_key_data] expected an array of words, got typed keys.")
    name = impl_name(impl if dtype is None else dtype)
    words = asarray(key_bits_array)
    count = bits.word_count(name)
    if words.dtype != np.uint32 or not words.ndim or words.shape[-1] != count:
        raise TypeError(
            f"[random.wrap_key_data] expected words of dtype uint32 and last dimension {count} "
            f"for {name}, got {aval_of(words).short()}."
        )
    return bits.random_wrap(words, impl=name)


def key_impl(keys: Any) -> Any:
    """The name of the generator of keys.

    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return typed_keys("key_impl", keys).dtype.impl


def clone(key: Any) -> Array:
    """The same key, to be used once more on purpose.

    >>> clone(random.key(0))
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """
    return like(key, bits.random_clone(typed_keys("clone", key)))
