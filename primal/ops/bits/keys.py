"""Typed keys: the ops between them, their raw words, seeds and numbers folded into them.

A typed key array has a `KeyType` as dtype and is held, by every engine, as one number per key, in
whose bytes NumPy and StableHLO both see the key's words: a uint64 for the two words of threefry, a
complex128 for the four of `rbg` and `unsafe_rbg`, as nothing else has 128 bits everywhere. Ops that
only move elements know nothing of keys and work on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.dtypes import KIND, KeyType, complex128, float64, uint32, uint64
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import BITS, MIXED, Op, by_kind
from primal.ir.trace import aval_of
from primal.ops.shape import moveaxis, reshape, slice
from primal.ops.types import NOT_LINEAR
from primal.ops.words import zero_derivative

THREEFRY = KeyType("threefry2x32", uint64)
KEY_TYPES = {
    "threefry2x32": THREEFRY,
    "rbg": KeyType("rbg", complex128),
    "unsafe_rbg": KeyType("unsafe_rbg", complex128),
}


# random_wrap <-> random_unwrap: uint32[..., 2] as keys, and back. The bits stay where they are.


def key_type(impl: str) -> KeyType:
    """The dtype of keys of the generator of that name; ValueError for unknown names.

    >>> key_type("threefry2x32"), key_type("unsafe_rbg")
    (key<fry>, key<urbg>)
    """
    found = KEY_TYPES.get(impl)
    if found is None:
        raise ValueError(
            f"[random] expected a generator among {sorted(KEY_TYPES)}, got {impl!r}."
        )
    return found


def word_count(impl: str) -> int:
    """How many uint32 words a key of that generator has.

    >>> word_count("threefry2x32"), word_count("rbg")
    (2, 4)
    """
    return int(key_type(impl).itemsize) // 4


def _show_impl(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "impl": key_type(params["impl"]).name.removeprefix("key<").removesuffix(">")}


def hide_scheme(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters without those that JAX's jaxprs do not show."""
    return {k: v for k, v in params.items() if k not in ("partitionable", "impl")}


def check_keys(name: str, keys: Aval) -> None:
    if not isinstance(keys.dtype, KeyType):
        raise TypeError(
            f"[{name}] expected an array of keys, got {keys.short()}. Wrap raw key data with "
            "primal.random.wrap_key_data."
        )


def _wrap_type(data: Aval, *, impl: str) -> Aval:
    words = word_count(impl)
    if data.dtype != uint32 or not data.ndim or data.shape[-1] != words:
        raise TypeError(
            f"[random_wrap] expected key data of dtype uint32 and last dimension {words}, got "
            f"{data.short()}."
        )
    return Aval(data.shape[:-1], key_type(impl))


def _wrap_impl(data: Any, *, impl: str) -> Any:
    return np.ascontiguousarray(data).view(key_type(impl).physical).reshape(data.shape[:-1])


def _wrap_hlo(b: Any, data: Any, *, impl: str) -> Any:
    dtype = key_type(impl)
    if impl == "threefry2x32":
        return b.bitcast_convert(data, dtype)
    lead = data.shape[:-1]
    parts = b.bitcast_convert(b.reshape(data, (*lead, 2, 2)), float64)
    return b.bitcast_convert(b.complex(_part(b, parts, 0), _part(b, parts, 1)), dtype)


def _part(b: Any, x: Any, i: int) -> Any:
    """x[..., i]"""
    lead = x.shape[:-1]
    start = (*(0,) * len(lead), i)
    return b.reshape(b.slice(x, start, (*lead, i + 1)), lead)


def _wrap_batch(axis: Any, args: Any, dims: Any, *, impl: str) -> Any:
    (data,), (d,) = args, dims
    return random_wrap(moveaxis(data, d, 0), impl=impl), 0


def _wrap_kernel(k: Any, data: Any, *, impl: str) -> Any:
    if impl != "threefry2x32":
        raise Unsupported("keys of four words")
    lead = data.shape[:-1]
    halves = []
    for i in (0, 1):
        start, limit = (*(0,) * len(lead), i), (*lead, i + 1)
        half = k.reshape(k.slice(data, start, limit, (1,) * data.ndim), lead)
        halves.append(k.convert(half, np.dtype(uint64)))
    upper = k.binary("shift_left", halves[1], k.literal(32, np.dtype(uint64)))
    return k.bitcast(k.binary("or", halves[0], upper), key_type(impl))


random_wrap = Op(
    name="random_wrap",
    kind=BITS,
    type=_wrap_type,
    impl=_wrap_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=_wrap_batch,
    shard=by_kind,
    hlo=_wrap_hlo,
    kernel=_wrap_kernel,
    show=_show_impl,
)


def _unwrap_type(keys: Aval) -> Aval:
    check_keys("random_unwrap", keys)
    return Aval((*keys.shape, keys.dtype.itemsize // 4), uint32)


def _unwrap_impl(keys: Any) -> Any:
    return np.ascontiguousarray(keys).reshape(*keys.shape, 1).view("<u4")


def _unwrap_hlo(b: Any, keys: Any) -> Any:
    if keys.dtype == THREEFRY:
        return b.bitcast_convert(keys, uint32)
    shape = keys.shape
    number = b.bitcast_convert(keys, complex128)
    parts = [b.reshape(part, (*shape, 1)) for part in (b.real(number), b.imag(number))]
    words = b.bitcast_convert(b.concatenate(parts, len(shape)), uint32)
    return b.reshape(words, (*shape, 4))


def _unwrap_kernel(k: Any, keys: Any) -> Any:
    if keys.dtype != THREEFRY:
        raise Unsupported("keys of four words")
    wide = np.dtype(uint64)
    shape = (*keys.shape, 2)
    distance = k.binary("mul", k.iota(shape, wide, keys.ndim), k.literal(32, wide))
    bits = k.broadcast_in_dim(k.bitcast(keys, wide), shape, tuple(range(keys.ndim)))
    return k.convert(k.binary("shift_right_logical", bits, distance), np.dtype(uint32))


random_unwrap: Op = Op(
    name="random_unwrap",
    kind=BITS,
    type=_unwrap_type,
    impl=_unwrap_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims: (random_unwrap(*args), dims[0]),
    shard=by_kind,
    hlo=_unwrap_hlo,
    kernel=_unwrap_kernel,
)


# random_clone: the same keys, to be used once more on purpose. Who counts uses starts anew here.


def _clone_type(keys: Aval) -> Aval:
    check_keys("random_clone", keys)
    return keys


random_clone: Op = Op(
    name="random_clone",
    kind=BITS,
    type=_clone_type,
    impl=lambda keys: keys,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims: (random_clone(*args), dims[0]),
    shard=by_kind,
    hlo=lambda b, keys: keys,
    kernel=lambda k, keys: keys,
)


# random_seed: the key whose words are the upper and lower half of a 64-bit seed; 0 and the seed
# modulo 2³² for narrower ones, signed or not. Keys of four words have them twice.


def _seed_type(seeds: Aval, *, impl: str) -> Aval:
    if KIND.get(seeds.dtype, "") not in "iu":
        raise TypeError(
            f"[random_seed] expected integer seeds, got {seeds.short()}: PRNG key seed must be an "
            "integer."
        )
    return Aval(seeds.shape, key_type(impl))


def _seed_impl(seeds: Any, *, impl: str) -> Any:
    key = seeds.astype(np.uint32).astype("<u8") << np.uint64(32)
    if seeds.dtype.itemsize == 8:
        key = key | seeds.astype("<u8") >> np.uint64(32)
    if impl == "threefry2x32":
        return key
    return np.stack([key, key], -1).view(complex128).reshape(seeds.shape)


def _seed_hlo(b: Any, seeds: Any, *, impl: str) -> Any:
    upper = b.full(seeds.shape, 32, uint64)
    # Through uint32, so that what a narrow negative seed is extended by falls away.
    low = b.convert(b.convert(seeds, uint32), uint64)
    key = b.shift_left(low, upper)
    if seeds.dtype.itemsize == 8:
        key = b.or_(key, b.shift_right_logical(b.convert(seeds, uint64), upper))
    if impl == "threefry2x32":
        return b.bitcast_convert(key, key_type(impl))
    half = b.bitcast_convert(key, float64)
    return b.bitcast_convert(b.complex(half, half), key_type(impl))


def _seed_kernel(k: Any, seeds: Any, *, impl: str) -> Any:
    if impl != "threefry2x32":
        raise Unsupported("keys of four words")
    wide = np.dtype(uint64)
    half = k.literal(32, wide)
    low = k.convert(k.convert(seeds, np.dtype(uint32)), wide)
    key = k.binary("shift_left", low, half)
    if seeds.dtype.itemsize == 8:
        upper = k.binary("shift_right_logical", k.convert(seeds, wide), half)
        key = k.binary("or", key, upper)
    return k.bitcast(key, key_type(impl))


random_seed = Op(
    name="random_seed",
    kind=MIXED,
    type=_seed_type,
    impl=_seed_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=_seed_hlo,
    kernel=_seed_kernel,
    show=_show_impl,
)


# The two words of keys, for NumPy and in ops.


def words_of(keys: Any) -> tuple[Any, Any]:
    return keys.astype(np.uint32), (keys >> np.uint64(32)).astype(np.uint32)


def traced_words(keys: Any, ndim: int) -> tuple[Any, Any]:
    """Both words of keys, with `ndim` dimensions of 1 behind those of the keys."""
    data = random_unwrap(keys)
    shape = aval_of(data).shape
    lead = shape[:-1]
    return tuple(
        reshape(
            slice(
                data,
                start_indices=(*(0,) * len(lead), i),
                limit_indices=(*lead, i + 1),
                strides=None,
            ),
            shape=(*lead, *(1,) * ndim),
        )
        for i in range(2)
    )
