"""threefry2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

It encrypts a pair of uint32 counters under a pair of uint32 key words: all randomness is a pure
function of a key. Twenty rounds of add, rotate and xor, a key word added after every four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.dtypes import uint32
from primal.base.native import empty, extension
from primal.ir.avals import Aval
from primal.ir.op import BITS, Op, by_kind
from primal.ir.trace import aval_of
from primal.ops.shape import moveaxis, reshape
from primal.ops.types import NOT_LINEAR, broadcast_shapes
from primal.ops.words import zero_derivative

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
# Beyond as many pairs NumPy, with 110 calls whatever the size, is faster than big integers.
LANES = 160
# Pairs hashed at a time: three buffers of 64 KB stay in the second-level cache.
BLOCK = 16384


# threefry2x32(k1, k2, x1, x2) -> (y1, y2), elementwise on uint32.


def _threefry_type(*avals: Aval) -> Any:
    for a in avals:
        if a.dtype != uint32:
            raise TypeError(
                f"[threefry2x32] expected uint32 operands, got "
                f"{', '.join(b.dtype.name for b in avals)}."
            )
    out = Aval(broadcast_shapes("threefry2x32", avals), uint32)
    return out, out


def _threefry_impl(k1: Any, k2: Any, x1: Any, x2: Any) -> Any:
    shape = np.broadcast(k1, k2, x1, x2).shape
    x, y = np.empty(shape, np.uint32), np.empty(shape, np.uint32)
    x[...] = x1
    y[...] = x2
    encrypt(k1, k2, x, y)
    return x, y


def encrypt(k1: Any, k2: Any, x: Any, y: Any) -> None:
    """Replace the counters in two contiguous buffers of one shape by their hashes.

    `k1` and `k2` are uint32 scalars or arrays that broadcast to that shape.
    """
    if _in_c is not None:
        if np.ndim(k1) or np.ndim(k2):
            k1, k2 = _repeated(k1, x.shape), _repeated(k2, x.shape)
        _in_c(np.asarray(k1), np.asarray(k2), x, y)
    elif x.size <= LANES:
        _encrypt_lanes(k1, k2, x, y)
    elif np.ndim(k1) or np.ndim(k2):
        _encrypt_arrays(k1, k2, x, y, np.empty_like(x))
    else:
        x, y = x.reshape(-1), y.reshape(-1)
        scratch = np.empty(min(x.size, BLOCK), np.uint32)
        for at in range(0, x.size, BLOCK):
            part = x[at : at + BLOCK]
            _encrypt_arrays(k1, k2, part, y[at : at + BLOCK], scratch[: part.size])


def hash_range(k1: Any, k2: Any, n: int) -> Any:
    """The hash of 0, …, n - 1 under one key, the first half of the counts beside the second; one
    word more where n is odd."""
    if _in_c is None or not n:
        out = counts(n)
        encrypt(k1, k2, *out)
    else:
        out = empty((2, -(-n // 2)), np.dtype(np.uint32))
        _in_c(np.asarray(k1), np.asarray(k2), *out, n)
    return out.reshape(-1)


def counts(n: int) -> Any:
    """0, …, n - 1 in two rows; 0 in the last place where n is odd."""
    out = np.arange(n + n % 2, dtype=np.uint32).reshape(2, -1 if n else 0)
    if n % 2:
        out[1, -1] = 0
    return out


def _repeated(k: Any, shape: tuple[int, ...]) -> Any:
    if k.shape == shape and k.flags.c_contiguous:
        return k
    # A quarter of np.broadcast_to's time.
    out = np.empty(shape, np.uint32)
    out[...] = k
    return out


_in_c: Any = None if extension is None else extension.threefry


def _encrypt_arrays(k1: Any, k2: Any, x: Any, y: Any, scratch: Any) -> None:
    keys = (k1, k2, k1 ^ k2 ^ np.uint32(PARITY))
    np.add(x, keys[0], out=x)
    np.add(y, keys[1], out=y)
    for i in range(5):
        for left, right in _SHIFTS[i % 2]:
            np.add(x, y, out=x)
            np.left_shift(y, left, out=scratch)
            np.right_shift(y, right, out=y)
            np.bitwise_or(y, scratch, out=y)
            np.bitwise_xor(y, x, out=y)
        np.add(x, keys[(i + 1) % 3], out=x)
        np.add(y, keys[(i + 2) % 3] + np.uint32(i + 1), out=y)


_SHIFTS = tuple([tuple([(np.uint32(r), np.uint32(32 - r)) for r in row]) for row in ROTATIONS])


def _encrypt_lanes(k1: Any, k2: Any, x: Any, y: Any) -> None:
    # A Python integer serves as a vector register: one pair per 64 bits, the upper 32 of them empty
    # to take carries and what rotations push out. A split takes 9 µs this way, 55 by ufuncs.
    n = x.size
    if not n:
        return
    ones = _ones(n)
    mask = ones * 0xFFFFFFFF
    a, b = _packed(k1, x, ones), _packed(k2, x, ones)
    keys = (a, b, a ^ b ^ (ones * PARITY))
    u = _pack(x) + a
    v = (_pack(y) + b) & mask
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            u += v  # 27 additions in all: carries stay within the lane until the end
            v = ((v << r | v >> (32 - r)) ^ u) & mask
        u += keys[(i + 1) % 3]
        v = (v + keys[(i + 2) % 3] + ones * (i + 1)) & mask
    x[...] = _unpack(u & mask, n).reshape(x.shape)
    y[...] = _unpack(v, n).reshape(y.shape)


_ones_of: dict[int, int] = {}


def _ones(n: int) -> int:
    found = _ones_of.get(n)
    if found is None:
        found = _ones_of[n] = int.from_bytes(np.ones(n, "<u8").tobytes(), "little")
    return found


def _packed(key: Any, x: Any, ones: int) -> int:
    return _pack(np.broadcast_to(key, x.shape)) if np.ndim(key) else int(key) * ones


def _pack(x: Any) -> int:
    return int.from_bytes(x.astype("<u8").tobytes(), "little")


def _unpack(value: int, n: int) -> Any:
    return np.frombuffer(value.to_bytes(8 * n, "little"), "<u8").astype(np.uint32)


def _threefry_batch(axis: Any, args: Any, dims: Any) -> Any:
    ranks = [aval_of(a).ndim - (d is not None) for a, d in zip(args, dims, strict=True)]
    rank = max(ranks)
    aligned = []
    for a, d, own in zip(args, dims, ranks, strict=True):
        if d is not None:
            a = moveaxis(a, d, 0)
            if own < rank:
                a = reshape(a, shape=(axis.size, *(1,) * rank))
        elif own:
            a = reshape(a, shape=(1, *aval_of(a).shape))
        aligned.append(a)
    return threefry2x32(*aligned), (0, 0)


def _threefry_hlo(b: Any, k1: Any, k2: Any, x: Any, y: Any) -> Any:
    shape = b.outs[0].shape
    keys = (k1, k2, b.xor(b.xor(k1, k2), b.full(k1.shape, PARITY, uint32)))
    x, y = b.broadcast_to(x, shape), b.broadcast_to(y, shape)
    x, y = b.add(x, keys[0]), b.add(y, keys[1])
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x = b.add(x, y)
            left = b.shift_left(y, b.full(shape, r, uint32))
            right = b.shift_right_logical(y, b.full(shape, 32 - r, uint32))
            y = b.xor(b.or_(left, right), x)
        step = b.add(keys[(i + 2) % 3], b.full((), i + 1, uint32))
        x, y = b.add(x, keys[(i + 1) % 3]), b.add(y, step)
    return [x, y]


def _threefry_kernel(k: Any, k1: Any, k2: Any, x: Any, y: Any) -> Any:
    def number(value: int) -> Any:
        return k.literal(value, uint32)

    keys = (k1, k2, k.binary("xor", k.binary("xor", k1, k2), number(PARITY)))
    x, y = k.binary("add", x, keys[0]), k.binary("add", y, keys[1])
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x = k.binary("add", x, y)
            y = k.binary("xor", k.rotate_left(y, r), x)
        step = k.binary("add", keys[(i + 2) % 3], number(i + 1))
        x, y = k.binary("add", x, keys[(i + 1) % 3]), k.binary("add", y, step)
    return [x, y]


threefry2x32 = Op(
    name="threefry2x32",
    kind=BITS,
    type=_threefry_type,
    impl=_threefry_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=_threefry_batch,
    shard=by_kind,
    hlo=_threefry_hlo,
    kernel=_threefry_kernel,
    multiple=True,
)
