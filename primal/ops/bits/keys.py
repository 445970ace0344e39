"""Typed keys: the ops between them, their raw words, seeds and numbers folded into them.

A typed key array has a `KeyType` as dtype and is held, by every engine, as one uint64 per key: word
0 in the low half, so that NumPy and StableHLO both see `uint32[..., 2]` in the same bytes. Ops that
only move elements know nothing of keys and work on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.dtypes import KIND, KeyType, uint32, uint64
from primal.ir.avals import Aval
from primal.ir.op import BITS, MIXED, Expand, Op, by_kind, library
from primal.ir.trace import aval_of, literal
from primal.ops.bits.threefry import threefry2x32
from primal.ops.shape import concatenate, moveaxis, reshape, slice
from primal.ops.types import NOT_LINEAR, broadcast_shapes
from primal.ops.words import zero_derivative

THREEFRY = KeyType("threefry2x32", uint64)


# random_wrap <-> random_unwrap: uint32[..., 2] as keys, and back. The bits stay where they are.


def key_type(impl: str) -> KeyType:
    """The dtype of keys of the generator of that name; NotImplementedError for those not built.

    >>> key_type("threefry2x32")
    key<fry>
    """
    if impl != "threefry2x32":
        raise NotImplementedError(
            f"[random] expected the generator 'threefry2x32', got {impl!r}, which Primal does not "
            "implement."
        )
    return THREEFRY


def _show_impl(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "impl": key_type(params["impl"]).name.removeprefix("key<").removesuffix(">")}


def check_keys(name: str, keys: Aval) -> None:
    if not isinstance(keys.dtype, KeyType):
        raise TypeError(
            f"[{name}] expected an array of keys, got {keys.short()}. Wrap raw key data with "
            "primal.random.wrap_key_data."
        )


def _wrap_type(data: Aval, *, impl: str) -> Aval:
    if data.dtype != uint32 or not data.ndim or data.shape[-1] != 2:
        raise TypeError(
            f"[random_wrap] expected key data of dtype uint32 and last dimension 2, got "
            f"{data.short()}."
        )
    return Aval(data.shape[:-1], key_type(impl))


def _wrap_impl(data: Any, *, impl: str) -> Any:
    return np.ascontiguousarray(data).view("<u8").reshape(data.shape[:-1])


def _wrap_batch(axis: Any, args: Any, dims: Any, *, impl: str) -> Any:
    (data,), (d,) = args, dims
    return random_wrap(moveaxis(data, d, 0), impl=impl), 0


random_wrap = Op(
    name="random_wrap",
    kind=BITS,
    type=_wrap_type,
    impl=_wrap_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=_wrap_batch,
    shard=by_kind,
    hlo=lambda b, data, *, impl: b.bitcast_convert(data, key_type(impl)),
    kernel=library,
    show=_show_impl,
)


def _unwrap_type(keys: Aval) -> Aval:
    check_keys("random_unwrap", keys)
    return Aval((*keys.shape, 2), uint32)


def _unwrap_impl(keys: Any) -> Any:
    return np.ascontiguousarray(keys).reshape(*keys.shape, 1).view("<u4")


random_unwrap: Op = Op(
    name="random_unwrap",
    kind=BITS,
    type=_unwrap_type,
    impl=_unwrap_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims: (random_unwrap(*args), dims[0]),
    shard=by_kind,
    hlo=lambda b, keys: b.bitcast_convert(keys, uint32),
    kernel=library,
)


# random_seed: the key whose words are the upper and lower half of a 64-bit seed; 0 and the seed
# modulo 2³² for narrower ones, signed or not.


def _seed_type(seeds: Aval, *, impl: str) -> Aval:
    if KIND.get(seeds.dtype, "") not in "iu":
        raise TypeError(
            f"[random_seed] expected integer seeds, got {seeds.short()}: PRNG key seed must be an "
            "integer."
        )
    return Aval(seeds.shape, key_type(impl))


def _seed_impl(seeds: Any, *, impl: str) -> Any:
    low = seeds.astype(np.uint32).astype("<u8")
    if seeds.dtype.itemsize < 8:
        return low << np.uint64(32)
    return low << np.uint64(32) | seeds.astype("<u8") >> np.uint64(32)


def _seed_hlo(b: Any, seeds: Any, *, impl: str) -> Any:
    upper = b.full(seeds.shape, 32, uint64)
    # Through uint32, so that what a narrow negative seed is extended by falls away.
    low = b.convert(b.convert(seeds, uint32), uint64)
    key = b.shift_left(low, upper)
    if seeds.dtype.itemsize == 8:
        key = b.or_(key, b.shift_right_logical(b.convert(seeds, uint64), upper))
    return b.bitcast_convert(key, key_type(impl))


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
    kernel=library,
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


# random_fold_in: the key hashed with a number.


def _fold_type(keys: Aval, data: Aval) -> Aval:
    check_keys("random_fold_in", keys)
    if data.dtype != uint32:
        raise TypeError(f"[random_fold_in] expected data of dtype uint32, got {data.short()}.")
    return Aval(broadcast_shapes("random_fold_in", (keys, data)), keys.dtype)


def _fold_impl(keys: Any, data: Any) -> Any:
    x, y = threefry2x32.impl(*words_of(keys), np.uint32(0), data)
    return y.astype("<u8") << np.uint64(32) | x


def _fold_traced(keys: Any, data: Any) -> Any:
    y = threefry2x32(*traced_words(keys, 0), literal(0, uint32, False), data)
    shape = aval_of(y[0]).shape
    halves = [reshape(half, shape=(*shape, 1)) for half in y]
    impl = str(aval_of(keys).dtype.impl)
    return random_wrap(concatenate(*halves, dimension=len(shape)), impl=impl)


random_fold_in = Op(
    name="random_fold_in",
    kind=MIXED,
    type=_fold_type,
    impl=_fold_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=Expand(_fold_traced),
    kernel=library,
)
