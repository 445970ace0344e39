"""New keys out of keys: random_split and random_fold_in, of every generator.

A key of `rbg` is two threefry keys of which each is split and folded by itself. `unsafe_rbg` draws
new keys as Philox bits, every tenth four words: cheap where Philox is, with no promise of quality.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.base.dtypes import complex128, uint32
from primal.ir.avals import Aval
from primal.ir.op import BITS, MIXED, Expand, Op, by_kind
from primal.ir.trace import aval_of, literal
from primal.ops.bits.counts import split_numpy, split_traced
from primal.ops.bits.draw import first_state, philox_under_first
from primal.ops.bits.keys import (
    check_keys,
    hide_scheme,
    key_type,
    random_seed,
    random_unwrap,
    random_wrap,
    traced_words,
    words_of,
)
from primal.ops.bits.philox import traced_bits
from primal.ops.bits.threefry import threefry2x32
from primal.ops.elementwise import bitwise_xor
from primal.ops.shape import concatenate, moveaxis, reshape, slice
from primal.ops.spread import broadcast_to
from primal.ops.types import NOT_LINEAR, broadcast_shapes
from primal.ops.words import zero_derivative

FRY = "threefry2x32"
# Of how many drawn keys `unsafe_rbg` uses one.
STRIDE = 10


def _check(name: str, keys: Aval, impl: str) -> None:
    check_keys(name, keys)
    if keys.dtype != key_type(impl):
        raise TypeError(f"[{name}] expected keys of the generator {impl!r}, got {keys.short()}.")


def _halves(keys: Any) -> Any:
    """Keys of `rbg` as threefry keys [..., 2], in ops."""
    shape = aval_of(keys).shape
    return random_wrap(reshape(random_unwrap(keys), shape=(*shape, 2, 2)), impl=FRY)


def _joined(halves: Any, impl: str) -> Any:
    """The inverse of `_halves`."""
    shape = aval_of(halves).shape[:-1]
    return random_wrap(reshape(random_unwrap(halves), shape=(*shape, 4)), impl=impl)


# random_split: new keys from each key.


def _split_type(keys: Aval, *, shape: tuple[int, ...], partitionable: bool, impl: str) -> Aval:
    _check("random_split", keys, impl)
    return Aval((*keys.shape, *shape), keys.dtype)


def _split_impl(keys: Any, *, shape: tuple[int, ...], partitionable: bool, impl: str) -> Any:
    if impl == FRY:
        return split_numpy(keys, shape=shape, partitionable=partitionable)
    whole = (*keys.shape, *shape)
    if impl == "rbg":
        halves = np.ascontiguousarray(keys).reshape(*keys.shape, 1).view("<u8")
        drawn = split_numpy(halves, shape=shape, partitionable=partitionable)
        drawn = np.ascontiguousarray(np.moveaxis(drawn, keys.ndim, -1))
        return drawn.view(complex128).reshape(whole)
    words = philox_under_first(keys, 32, (STRIDE * math.prod(shape), 4))
    kept = np.ascontiguousarray(words[..., ::STRIDE, :])
    return kept.view(complex128).reshape(whole)


def _split_traced(keys: Any, *, shape: tuple[int, ...], partitionable: bool, impl: str) -> Any:
    if impl == FRY:
        return split_traced(keys, shape=shape, partitionable=partitionable)
    lead = aval_of(keys).shape
    whole = (*lead, *shape)
    if not math.prod(whole):
        return random_wrap(broadcast_to(literal(0, uint32, False), (*whole, 4)), impl=impl)
    if impl == "rbg":
        drawn = split_traced(_halves(keys), shape=shape, partitionable=partitionable)
        return _joined(moveaxis(drawn, len(lead), len(whole)), impl)
    n = math.prod(shape)
    words = traced_bits(first_state(keys), 32, (*lead, STRIDE * n, 4))
    kept = slice(
        words,
        start_indices=(0,) * (len(lead) + 2),
        limit_indices=(*lead, STRIDE * n, 4),
        strides=(*(1,) * len(lead), STRIDE, 1),
    )
    return random_wrap(reshape(kept, shape=(*whole, 4)), impl=impl)


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
    show=hide_scheme,
)


# random_fold_in: the key hashed with a number.


def _fold_type(keys: Aval, data: Aval, *, impl: str) -> Aval:
    _check("random_fold_in", keys, impl)
    if data.dtype != uint32:
        raise TypeError(f"[random_fold_in] expected data of dtype uint32, got {data.short()}.")
    return Aval(broadcast_shapes("random_fold_in", (keys, data)), keys.dtype)


def _folded(keys: Any, data: Any) -> Any:
    x, y = threefry2x32.impl(*words_of(keys), np.uint32(0), data)
    return y.astype("<u8") << np.uint64(32) | x


def _fold_impl(keys: Any, data: Any, *, impl: str) -> Any:
    if impl == FRY:
        return _folded(keys, data)
    shape = np.broadcast_shapes(keys.shape, data.shape)
    words = np.ascontiguousarray(keys).reshape(*keys.shape, 1)
    if impl == "rbg":
        out = _folded(words.view("<u8"), data[..., None])
        return np.ascontiguousarray(out).view(complex128).reshape(shape)
    seeds = random_seed.impl(data, impl=impl)
    drawn = philox_under_first(seeds, 32, (STRIDE, 4))[..., -1, :]
    return np.ascontiguousarray(words.view("<u4") ^ drawn).view(complex128).reshape(shape)


def _fold_traced(keys: Any, data: Any, *, impl: str) -> Any:
    if impl == FRY:
        return _fold_threefry(keys, data)
    ndim = max(aval_of(keys).ndim, aval_of(data).ndim)
    # Both of the result's rank, so that a last dimension of words can follow.
    keys, data = [
        reshape(x, shape=(*(1,) * (ndim - aval_of(x).ndim), *aval_of(x).shape))
        for x in (keys, data)
    ]
    lead = aval_of(data).shape
    if impl == "rbg":
        folded = _fold_threefry(_halves(keys), reshape(data, shape=(*lead, 1)))
        return _joined(folded, impl)
    seeds = random_seed(data, impl=impl)
    drawn = traced_bits(first_state(seeds), 32, (*lead, STRIDE, 4))
    last = slice(
        drawn,
        start_indices=(*(0,) * ndim, STRIDE - 1, 0),
        limit_indices=(*lead, STRIDE, 4),
        strides=None,
    )
    words = bitwise_xor(random_unwrap(keys), reshape(last, shape=(*lead, 4)))
    return random_wrap(words, impl=impl)


def _fold_threefry(keys: Any, data: Any) -> Any:
    y = threefry2x32(*traced_words(keys, 0), literal(0, uint32, False), data)
    shape = aval_of(y[0]).shape
    halves = [reshape(half, shape=(*shape, 1)) for half in y]
    return random_wrap(concatenate(*halves, dimension=len(shape)), impl=FRY)


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
    kernel=Expand(_fold_traced),
    show=hide_scheme,
)
