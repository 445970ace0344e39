"""Bits of integers: logic, shifts, counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.op import Op
from primal.ops.elementwise.make import (
    binary,
    bits_of,
    keeps_dtype,
    keeps_dtype2,
    signed_view,
    unary,
    unsigned_view,
)
from primal.ops.types import INTEGRAL
from primal.ops.words import zero_derivative

INTEGERS = (np.integer,)


def _logical(name: str, impl: Any) -> Op:
    return binary(name, INTEGRAL, keeps_dtype2(impl), zero_derivative, name)


bitwise_and = _logical("and", np.bitwise_and)
bitwise_or = _logical("or", np.bitwise_or)
bitwise_xor = _logical("xor", np.bitwise_xor)
bitwise_not = unary("not", INTEGRAL, keeps_dtype(np.invert), zero_derivative, "not")


# Shifts: the distance counts as unsigned, and beyond the width everything is shifted out, as NumPy
# also defines it.


def _shift(name: str, impl: Any) -> Op:
    return binary(name, INTEGERS, impl, zero_derivative, name)


def _left_impl(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        return np.left_shift(x, y)
    return np.left_shift(unsigned_view(x), unsigned_view(y)).astype(x.dtype)


def _arithmetic_impl(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        # A distance below 0 is beyond the width to NumPy too.
        return np.right_shift(signed_view(x), signed_view(y)).view(x.dtype)
    return np.right_shift(signed_view(x), unsigned_view(y).astype(np.int8)).astype(x.dtype)


def _logical_impl(x: Any, y: Any) -> Any:
    if x.dtype.kind == "u":
        return np.right_shift(x, y)
    out = np.right_shift(unsigned_view(x), unsigned_view(y))
    return out.view(x.dtype) if x.dtype.kind == "i" else out.astype(x.dtype)


shift_left = _shift("shift_left", _left_impl)
shift_right_arithmetic = _shift("shift_right_arithmetic", _arithmetic_impl)
shift_right_logical = _shift("shift_right_logical", _logical_impl)


# Counts of ones and of leading zeros.


def _leading_zeros(x: Any) -> Any:
    bits = unsigned_view(x)
    width = bits_of(x.dtype)
    if width == 64:
        high, low = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
        out = np.where(high == 0, 64 - _length(low), 32 - _length(high))
    else:
        out = width - _length(bits)
    return out.astype(np.int8).astype(x.dtype)


def _length(x: Any) -> Any:
    # The binary exponent of an integer below 2³², exact in float64, is its length in bits.
    return np.frexp(x.astype(np.float64))[1]


def _population_hlo(b: Any, x: Any) -> Any:
    bits = bits_of(x.dtype)
    if bits >= 8:
        return b.popcnt(x)
    # XLA counts the sign bits that it extends narrow integers by.
    wide = b.and_(b.convert(x, np.uint8), b.full(x.shape, 2**bits - 1, np.uint8))
    return b.convert(b.popcnt(wide), x.dtype)


population_count = unary(
    "population_count",
    INTEGERS,
    lambda x: np.bitwise_count(unsigned_view(x)).astype(x.dtype),
    zero_derivative,
    _population_hlo,
)
clz = unary("clz", INTEGERS, _leading_zeros, zero_derivative, "count_leading_zeros")
