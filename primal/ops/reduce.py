"""Reductions over axes: product, maximum, minimum, and, or, xor. The sum is in `spread`.

Each combines the elements along `axes` by a commutative monoid, so that no elements give its
identity: -inf for the maximum of floats, the lowest integer, 1, all bits set, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.extrema import maximum, minimum
from primal.base.monoids import identity
from primal.ir.op import REDUCTION, Bound, Op, Word, by_kind
from primal.ir.trace import aval_of
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import div, eq, mul
from primal.ops.elementwise.choice import complex_extremum
from primal.ops.shape import concatenate, reshape, transpose
from primal.ops.shape import slice as slice_op
from primal.ops.spread import (
    add_any,
    broadcast_in_dim,
    reduce_sum,
    reduction_batch,
    reduction_type,
)
from primal.ops.types import INTEGRAL, NOT_LINEAR, NUMERIC
from primal.ops.words import zero_derivative

Arrays = Sequence[Any]
_UFUNCS = {
    "maximum": maximum,
    "minimum": minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _impl(ufunc: Any, monoid: str) -> Any:
    def impl(x: Any, *, axes: tuple[int, ...]) -> Any:
        dtype = x.dtype
        if not x.size:
            kept = [n for i, n in enumerate(x.shape) if i not in axes]
            return np.full(kept, identity(monoid, dtype), dtype)
        out = ufunc.reduce(x, axis=axes)
        # 4-bit integers come back as int8.
        return out if out.dtype == dtype else out.astype(dtype)

    return impl


def _hlo(monoid: str) -> Any:
    def hlo(b: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        if x.dtype.kind == "c" and monoid in ("maximum", "minimum"):
            init = b.constant(identity(monoid, x.dtype), x.dtype)
            return b.reduce_with([x], [init], axes, complex_extremum(monoid))[0]
        return b.reduce(monoid, x, axes)

    return hlo


def _reduction(
    name: str, kinds: Any, monoid: str, jvp: Any, impl: Any = None, written: Any = None
) -> Op:
    return Op(
        name=name,
        kind=REDUCTION,
        type=reduction_type(name, *kinds),
        impl=impl or _impl(_UFUNCS[monoid], monoid),
        jvp=jvp,
        transpose=NOT_LINEAR,
        batch=Word(lambda op: reduction_batch(lambda: op)),
        shard=by_kind,
        hlo=_hlo(monoid),
        kernel=lambda k, x, *, axes: k.reduce(monoid, x, axes),
        written=written,
    )


# max and min: the derivative is shared equally among the elements that attain the extremum.


def _extremum_jvp(op: Op) -> Any:
    def jvp(primals: Arrays, tangents: Arrays, *, axes: tuple[int, ...]) -> Any:
        (x,), (t,) = primals, tangents
        out = op(x, axes=axes)
        shape = aval_of(x).shape
        if not aval_of(x).size:
            # The extremum of nothing is constant, and the sum of nothing is its derivative.
            return out, reduce_sum(t, axes=axes)
        kept = tuple([i for i in range(len(shape)) if i not in axes])
        spread = broadcast_in_dim(out, shape=shape, broadcast_dimensions=kept)
        here = convert_element_type(eq(x, spread), new_dtype=aval_of(x).dtype, weak_type=False)
        return out, div(reduce_sum(mul(t, here), axes=axes), reduce_sum(here, axes=axes))

    return jvp


def _extremum_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    if not eqn.invars[0].aval.size:
        return None
    extremum = (maximum if eqn.op is reduce_max else minimum).of(eqn.invars[0].aval.dtype)
    return f"{bound(extremum.reduce)}({names[0]}, {eqn.params['axes']})"


_ORDERED = (*NUMERIC, np.bool_)
reduce_max = _reduction(
    "reduce_max", _ORDERED, "maximum", Word(_extremum_jvp), written=_extremum_written
)
reduce_min = _reduction(
    "reduce_min", _ORDERED, "minimum", Word(_extremum_jvp), written=_extremum_written
)


# prod: d(x1…xn) = Σi ti Π(j≠i) xj, by halving, so that zeros need no division.


def part(x: Any, start: int, stop: int, axis: int = 0, step: int = 1) -> Any:
    """x[start:stop:step] along one axis."""
    shape = aval_of(x).shape
    return slice_op(
        x,
        start_indices=tuple([start if i == axis else 0 for i in range(len(shape))]),
        limit_indices=tuple([stop if i == axis else n for i, n in enumerate(shape)]),
        strides=None if step == 1 else tuple([step if i == axis else 1 for i in range(len(shape))]),
    )


def halving(combine: Callable[[Arrays, Arrays], Arrays], xs: Arrays) -> Arrays:
    """Arrays combined along their first axis, of equal size n >= 1, in ceil(log2 n) steps.

    `combine` maps two lists of arrays to one, for a monoid that commutes. The axis is left with
    size 1.
    """
    n = aval_of(xs[0]).shape[0]
    while n > 1:
        # To multiples of 64 and then powers of two: the last steps, which are kernels together, are
        # those of any other size, and few steps join what is left over.
        half = min(1 << (n - 1).bit_length() - 1, -(-n // 128) * 64)
        joined = combine([part(x, 0, n - half) for x in xs], [part(x, half, n) for x in xs])
        if n < 2 * half:
            joined = [
                concatenate(j, part(x, n - half, half), dimension=0)
                for j, x in zip(joined, xs, strict=True)
            ]
        xs, n = joined, half
    return xs


def fold_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """x with `axes` made one axis in front."""
    shape = aval_of(x).shape
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    if axes != tuple(range(len(axes))):
        x = transpose(x, permutation=(*axes, *kept))
    count = 1
    for a in axes:
        count *= shape[a]
    return reshape(x, shape=(count, *[shape[i] for i in kept]))


def product_rule(a: Arrays, b: Arrays) -> Arrays:
    """(p·q, its tangent) of (p, dp) and (q, dq)."""
    (p, dp), (q, dq) = a, b
    return mul(p, q), add_any(mul(dp, q), mul(p, dq))


def _prod_jvp(primals: Arrays, tangents: Arrays, *, axes: tuple[int, ...]) -> Any:
    (x,), (t,) = primals, tangents
    out = reduce_prod(x, axes=axes)
    if not axes:
        return out, t
    if not aval_of(x).size:
        # The product of nothing is constant, and the sum of nothing is its derivative.
        return out, reduce_sum(t, axes=axes)

    _, dout = halving(product_rule, (fold_axes(x, axes), fold_axes(t, axes)))
    return out, reshape(dout, shape=aval_of(out).shape)


_MANY = 512  # rows so long take vectors longer than their call


def _prod_impl(x: Any, *, axes: tuple[int, ...]) -> Any:
    dtype = x.dtype
    work = np.dtype(np.float32) if dtypes.is_narrow_float(dtype) else dtype
    if x.size >= _MANY * 8 and len(axes) == x.ndim and dtype is work and dtype.kind == "f":
        # NumPy multiplies numbers that lie beside each other one by one: 100,000 take 85 us.
        flat = np.ravel(x, "K")
        even = flat.size - flat.size % _MANY
        lanes = np.multiply.reduce(flat[:even].reshape(-1, _MANY), axis=0)
        return np.multiply.reduce(lanes) * np.multiply.reduce(flat[even:])
    return np.multiply.reduce(x, axis=axes, dtype=work).astype(dtype, copy=False)


reduce_prod = _reduction("reduce_prod", NUMERIC, "multiply", _prod_jvp, _prod_impl)


# Bitwise on integers, logical on bool.


reduce_and = _reduction("reduce_and", INTEGRAL, "and", zero_derivative)
reduce_or = _reduction("reduce_or", INTEGRAL, "or", zero_derivative)
reduce_xor = _reduction("reduce_xor", INTEGRAL, "xor", zero_derivative)
