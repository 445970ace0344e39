"""bitcast_convert_type; and the names under which other rooms know the ops of several dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.dtypes import KIND, itemsize_bits
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import MIXED, Op, by_kind
from primal.ir.trace import aval_of
from primal.ops.elementwise.choice import clamp as clamp
from primal.ops.elementwise.choice import max as max
from primal.ops.elementwise.choice import min as min
from primal.ops.elementwise.choice import select_n as select_n
from primal.ops.elementwise.convert import as_dtype as as_dtype
from primal.ops.elementwise.convert import convert_element_type as convert_element_type
from primal.ops.elementwise.convert import copy as copy
from primal.ops.elementwise.convert import stop_gradient as stop_gradient
from primal.ops.shape import moveaxis
from primal.ops.types import NOT_LINEAR
from primal.ops.words import zero_derivative

# bitcast_convert_type: the same bits. A narrower dtype adds a last dimension, of the parts from the
# lowest to the highest; a wider one takes such a dimension away.


def _bitcast_type(x: Aval, *, new_dtype: Any) -> Aval:
    if x.dtype == new_dtype:
        return Aval(x.shape, new_dtype)
    old, new = itemsize_bits(x.dtype), itemsize_bits(new_dtype)
    if old % new and new % old:
        raise TypeError(
            f"[bitcast_convert_type] expected dtypes whose sizes divide one another, got "
            f"{x.dtype.name} to {new_dtype.name}. Convert with convert_element_type."
        )
    if old < new and x.shape[-1:] != (new // old,):
        raise ValueError(
            f"[bitcast_convert_type] expected a last dimension of size {new // old} to go from "
            f"{x.dtype.name} to {new_dtype.name}, got shape {x.shape}: the bits of one result are "
            "those of the last dimension."
        )
    for dtype in (x.dtype, new_dtype):
        if KIND.get(dtype, "k") not in "iuf":
            raise TypeError(
                "[bitcast_convert_type] expected integer or floating dtypes, or equal ones, got "
                f"{x.dtype.name} to {new_dtype.name}: it does not support bool or complex values, "
                "nor keys. Take real and imag apart first, or convert bool with "
                "convert_element_type."
            )
    if old >= new:
        return Aval(x.shape if old == new else (*x.shape, old // new), new_dtype)
    return Aval(x.shape[:-1], new_dtype)


def _bitcast_impl(x: Any, *, new_dtype: Any) -> Any:
    old, new = itemsize_bits(x.dtype), itemsize_bits(new_dtype)
    if old == new:
        if old >= 8:
            return x.view(new_dtype)
        return _of_codes(x.view(np.uint8) & np.uint8(2**old - 1), new_dtype)
    if old >= 8 and new >= 8:
        if old > new:
            return np.ascontiguousarray(x).reshape(*x.shape, 1).view(new_dtype)
        return np.ascontiguousarray(x).view(new_dtype).reshape(x.shape[:-1])
    # NumPy holds the narrowest integers in a byte each; here they are packed as on a device.
    if old > new:
        parts = np.arange(0, old if old < 8 else 8, new, dtype=np.uint8)
        octets = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)[..., None]
        out = (octets >> parts) & np.uint8(2**new - 1)
        return _of_codes(out.reshape(*x.shape, -1), new_dtype)
    parts = np.arange(0, new if new < 8 else 8, old, dtype=np.uint8)
    pieces = (x.view(np.uint8) & np.uint8(2**old - 1)).reshape(*x.shape[:-1], -1, parts.size)
    octets = np.bitwise_or.reduce(pieces << parts, axis=-1)
    if new < 8:
        return _of_codes(octets, new_dtype).reshape(x.shape[:-1])
    return np.ascontiguousarray(octets).view(new_dtype).reshape(x.shape[:-1])


def _of_codes(codes: Any, dtype: Any) -> Any:
    """Numbers of less than a byte from their bits in uint8: as dtype holds them, signs extended."""
    return codes.view(dtype) if KIND[dtype] == "f" else codes.astype(dtype)


def _bitcast_batch(axis: Any, args: Any, dims: Any, *, new_dtype: Any) -> Any:
    (x,), (d,) = args, dims
    if d and d == aval_of(x).ndim - 1:
        x, d = moveaxis(x, d, 0), 0  # the last dimension may be the one that is joined
    return bitcast_convert_type(x, new_dtype=new_dtype), d


def _bitcast_kernel(k: Any, x: Any, *, new_dtype: Any) -> Any:
    if x.dtype == new_dtype:
        return x
    old, new = itemsize_bits(x.dtype), itemsize_bits(new_dtype)
    if old == new:
        return k.bitcast(x, new_dtype)
    if old < 8 or new < 8:
        raise Unsupported("integers of less than a byte")
    words, parts = np.dtype(f"u{old // 8}"), np.dtype(f"u{new // 8}")
    bits = k.bitcast(x, words)
    if old > new:
        shape = (*x.shape, old // new)
        distance = k.iota(shape, words, x.ndim)
        distance = k.binary("mul", distance, k.literal(new, words))
        wide = k.broadcast_in_dim(bits, shape, tuple(range(x.ndim)))
        part = k.convert(k.binary("shift_right_logical", wide, distance), parts)
        return k.bitcast(part, new_dtype)
    whole: Any = None
    lead = x.shape[:-1]
    for i in range(new // old):
        at = (*(0,) * len(lead), i)
        piece = k.slice(bits, at, (*lead, i + 1), (1,) * x.ndim)
        piece = k.convert(k.reshape(piece, lead), parts)
        if i:
            piece = k.binary("shift_left", piece, k.literal(i * old, parts))
        whole = piece if whole is None else k.binary("or", whole, piece)
    return k.bitcast(whole, new_dtype)


bitcast_convert_type = Op(
    name="bitcast_convert_type",
    kind=MIXED,
    type=_bitcast_type,
    impl=_bitcast_impl,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=_bitcast_batch,
    shard=by_kind,
    hlo=lambda b, x, *, new_dtype: b.bitcast_convert(x, new_dtype),
    kernel=_bitcast_kernel,
)
