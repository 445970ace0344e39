"""The same values in another dtype, in a buffer of their own, or as constants to derivatives."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.dtypes import KIND
from primal.base.limits import iinfo
from primal.base.native import BFLOAT16, FLOAT16, FLOAT32, extension, narrowed, widened
from primal.ir.avals import Aval
from primal.ir.evaluate import quietly, refusing
from primal.ir.op import MIXED, Bound, Expand, Op, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.types import ANY, NOT_LINEAR, nary
from primal.ops.words import linear, zero_derivative

BOOL = np.dtype(np.bool_)
TWO_BYTES = (FLOAT16, BFLOAT16)
_BITS_OF_1 = {dtype: np.array(1, dtype).view(np.uint16) for dtype in TWO_BYTES}
INT8, _FEW = np.dtype(np.int8), 64

# convert_element_type: complex to real drops the imaginary part, floats to integers truncate and
# saturate, with NaN to 0; to bool means x != 0.


def _convert_type(x: Aval, *, new_dtype: Any, weak_type: bool) -> Aval:
    if dtypes.issubdtype(x.dtype, dtypes.extended) or dtypes.issubdtype(new_dtype, dtypes.extended):
        if x.dtype != new_dtype:
            raise ValueError(
                "[convert_element_type] expected number dtypes, got a random key's: Cannot "
                f"convert_element_type from {x.dtype.name} to {new_dtype.name}. "
                "primal.random.key_data and wrap_key_data go between the two."
            )
    return Aval(x.shape, new_dtype, weak_type)


def _convert_impl(x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    x = np.asarray(x)
    dtype = x.dtype
    if dtype == new_dtype or isinstance(new_dtype, dtypes.KeyType):
        return x
    if new_dtype == BOOL:
        # NumPy's comparison of these takes twice to five times as long as its cast.
        if dtype == BFLOAT16:
            return is_not_zero(x)
        return x.astype(BOOL) if dtype.kind == "c" or dtype == FLOAT16 else x != 0
    if dtype.kind == "c" and new_dtype.kind != "c":
        if extension is not None and KIND[new_dtype] in "iu":
            found = extension.whole(x, new_dtype)
            if found is not None:
                return found
        # Where another cast follows, parts of 64 bits are read as they lie.
        rows = extension is not None and (dtype == dtypes.complex64 or new_dtype == dtypes.float64)
        found = extension.reals(x) if rows else None
        if found is not None and found.dtype == new_dtype:
            return found
        x = x.real if found is None else found
        dtype = x.dtype
    if KIND[new_dtype] in "iu" and KIND[dtype] == "f":
        return _float_to_int(x, new_dtype)
    if new_dtype == FLOAT32 and dtype in TWO_BYTES:
        return widened(x)
    if dtype == BOOL:
        if new_dtype in TWO_BYTES:  # NumPy's and ml_dtypes' casts go number by number
            bits = x.astype(np.uint16)
            return np.multiply(bits, _BITS_OF_1[new_dtype], out=bits).view(new_dtype)
        x = in_bytes(x)
    if new_dtype in TWO_BYTES and (dtype == FLOAT32 or dtype.kind in "iu"):
        # Integers that float32 has not are inf in float16; ml_dtypes rounds twice, too.
        return narrowed(x.astype(FLOAT32, copy=False), new_dtype)
    if not _known(dtype, new_dtype):
        x = x.astype(np.int8 if KIND[dtype] in "iu" and KIND[new_dtype] in "iu" else np.float32)
    return x.astype(new_dtype)


def _known(old: Any, new: Any) -> bool:
    """NumPy has no cast between some dtypes of a byte or less: int4 to uint4, to float8_e8m0fnu."""
    return old.itemsize != 1 or np.can_cast(old, new, "unsafe")


def in_bytes(x: Any) -> Any:
    """The booleans of an array as the bytes that they are, or others as they are, for `astype`.

    NumPy converts booleans that do not lie side by side to floats one by one, 4 ns each, and bytes
    in vectors. The view takes 0.1 us, which it does not save of a few.
    """
    return x.view(INT8) if x.dtype == BOOL and x.size > _FEW else x


def is_not_zero(x: Any) -> Any:
    """Which elements of bfloat16 are not 0, by their bits, for which there are vectors."""
    bits = x.view(np.uint16)
    return np.not_equal(np.left_shift(bits, ONE), ZERO_BITS)


ONE, ZERO_BITS = np.array(1, np.uint16), np.array(0, np.uint16)


def _float_to_int(x: Any, dtype: Any) -> Any:
    if extension is not None:
        found = extension.whole(widened(x) if x.dtype in TWO_BYTES else x, dtype)
        if found is not None:
            return found
    # Into 32 and 64 bits the machine says itself that a number did not fit, so that nothing is
    # looked at twice; narrower integers are what fits into these, cut off at their ends.
    through = _THROUGH.get(dtype) if x.dtype.kind == "f" else None
    if through is not None:
        try:
            out = refusing(x.astype, (through,))
        except FloatingPointError:
            pass
        else:
            if through == dtype:
                return out
            # In one pass of vectors; its method takes 2 us where `np.maximum` of few takes 0.4.
            low, high = _least(dtype), _greatest(dtype)
            if out.size > 1024:
                return out.clip(low, high).astype(dtype)
            return np.minimum(np.maximum(out, low), high).astype(dtype)
    low, high = float(_least(dtype)), float(_greatest(dtype))
    # NaN becomes 0, and float(max) of 64 bits is max + 1, hence the comparison.
    inside = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0), low, high)
    below = inside < high
    wide = dtype if dtype.itemsize == 8 else dtypes.int64
    out = np.where(below, inside, 0).astype(wide).astype(dtype)
    return np.where(below, out, np.array(_greatest(dtype)).astype(dtype))


def number_as(value: Any, dtype: Any) -> Any:
    """A host scalar in `dtype`, as the op converts: NumPy's casts of what does not fit wrap."""
    return _convert_impl(value, new_dtype=dtype, weak_type=False)[()]


WIDE = frozenset({np.dtype(np.int64), np.dtype(np.uint64)})
"""Whole numbers of NumPy's of which the default dtypes may hold too few digits."""


def whole_as(value: Any, dtype: Any) -> Any:
    """A whole number of Python's, or NumPy's of 64 bits, in `dtype`; None for any other value.

    From its own digits, of which the way through the default dtype could lose some.
    """
    if type(value) is int or (
        isinstance(value, np.generic | np.ndarray) and value.dtype in WIDE
    ):
        return quietly(np.asarray(value).astype, (dtype,), {})
    return None


_THROUGH = {
    **{dtype: dtype for dtype in (dtypes.int32, dtypes.int64)},
    **dict.fromkeys((dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16), dtypes.int32),
    dtypes.uint32: dtypes.int64,
}


@functools.cache
def _least(dtype: Any) -> int:
    return int(iinfo(dtype).min)


@functools.cache
def _greatest(dtype: Any) -> int:
    return int(iinfo(dtype).max)


def _convert_jvp(primals: Any, tangents: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    (x,), (t,) = primals, tangents
    out = convert_element_type(x, new_dtype=new_dtype, weak_type=weak_type)
    if dtypes.to_tangent_dtype(new_dtype) != new_dtype:
        return out, ZERO
    return out, convert_element_type(t, new_dtype=new_dtype, weak_type=weak_type)


def _convert_transpose(ct: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    return (convert_element_type(ct, new_dtype=x.dtype, weak_type=x.aval.weak_type),)


def _convert_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if old == new:
        return names[0]
    if new == BOOL or old.kind == "c" or (old.kind == "f" and new.kind in "iu"):
        return None
    if not _known(old, new) or old in TWO_BYTES or new in TWO_BYTES:
        return None
    seen = f".view({bound(INT8)})" if old == BOOL and eqn.invars[0].aval.size > _FEW else ""
    return f"{names[0]}{seen}.astype({bound(new)})"


convert_element_type = Op(
    name="convert_element_type",
    kind=MIXED,
    type=_convert_type,
    impl=_convert_impl,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x, *, new_dtype, weak_type: b.convert(x, new_dtype),
    kernel=lambda k, x, *, new_dtype, weak_type: k.convert(x, new_dtype),
    written=_convert_written,
)


def as_dtype(x: Any, dtype: Any) -> Any:
    """x converted, if it is of another dtype."""
    if aval_of(x).dtype == dtype:
        return x
    return convert_element_type(x, new_dtype=dtype, weak_type=False)


# Identities: copy, in a buffer of its own; stop_gradient, a constant to every derivative.

copy = Op(
    name="copy",
    kind=MIXED,
    type=lambda x: x,
    impl=np.array,
    jvp=linear,
    transpose=lambda ct, x: (ct,),
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x: x,
    kernel=lambda k, x: k.copy(x),
)

_itself = Expand(lambda x: x)

stop_gradient = Op(
    name="stop_gradient",
    kind=MIXED,
    type=nary("stop_gradient", *ANY),
    impl=lambda x: x,
    jvp=zero_derivative,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=_itself,
    kernel=_itself,
    written=lambda eqn, names, bound: names[0],
)
