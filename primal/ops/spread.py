"""broadcast_in_dim <-> reduce_sum, each the other's transpose, and the sum of cotangents.

The ground of all derivative rules, so this room comes before the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.native import extension
from primal.base.threads import threads as threads  # which tells the extension how many
from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, REDUCTION, SPREAD, Bound, Op, by_kind
from primal.ir.trace import ZERO, Literal, literal
from primal.ops.types import NUMERIC, canonical_axes, check_dtype, is_linear, nary, shape_of

# broadcast_in_dim: operand dimension i becomes dimension broadcast_dimensions[i] of the result.


def _broadcast_type(
    x: Aval, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Aval:
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError(
            f"[broadcast_in_dim] expected one broadcast dimension per operand dimension, got "
            f"{broadcast_dimensions} for shape {x.shape}: broadcast_dimensions must have length "
            "equal to operand ndim."
        )
    if x.ndim > len(shape):
        raise TypeError(
            f"[broadcast_in_dim] expected a shape of at least {x.ndim} dimensions, got {shape}: "
            "broadcast_in_dim target broadcast shape must have equal or higher rank."
        )
    if any(a >= b for a, b in zip(broadcast_dimensions, broadcast_dimensions[1:], strict=False)):
        raise TypeError(
            f"[broadcast_in_dim] expected increasing broadcast_dimensions, got "
            f"{broadcast_dimensions}: they must be strictly increasing and must not contain "
            "duplicates."
        )
    if not all(0 <= d < len(shape) for d in broadcast_dimensions):
        raise TypeError(
            f"[broadcast_in_dim] expected dimensions in [0, {len(shape)}), got "
            f"{broadcast_dimensions}: broadcast_in_dim broadcast_dimensions must be a subset of "
            "output dimensions."
        )
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        if n not in (1, shape[d]):
            raise TypeError(
                f"[broadcast_in_dim] expected operand sizes to be 1 or those of the result, got "
                f"shape {x.shape} into {shape} at {broadcast_dimensions}: broadcast_in_dim operand "
                "dimension sizes must either be 1, or be equal to their corresponding dimensions."
            )
    return Aval(shape, x.dtype, x.weak_type)


_spread: Any = None if extension is None else extension.spread


def _broadcast_impl(
    x: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    if _spread is not None:
        out = _spread(np.asarray(x), shape, broadcast_dimensions)
        if out is not None:
            return out
    placed = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        placed[d] = n
    return np.broadcast_to(x.reshape(placed), shape)


def _broadcast_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return broadcast_in_dim(*primals, **params), broadcast_in_dim(*tangents, **params)


def _broadcast_transpose(
    ct: Any, x: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    new = [i for i in range(len(shape)) if i not in broadcast_dimensions]
    grown = [d for n, d in zip(x.shape, broadcast_dimensions, strict=True) if n != shape[d]]
    summed = reduce_sum(ct, axes=tuple(sorted(new + grown)))
    if not grown:
        return (summed,)
    kept = tuple(i for i, d in enumerate(broadcast_dimensions) if d not in grown)
    return (broadcast_in_dim(summed, shape=x.shape, broadcast_dimensions=kept),)


def _broadcast_batch(
    axis: Any, args: Any, dims: Any, *, shape: tuple[int, ...], broadcast_dimensions: Any
) -> Any:
    (x,), (d,) = args, dims
    # The batch dimension keeps its place among the operand's, so that no transpose is needed; one
    # that lies innermost stays there, where vectors are of it.
    before = 0 if d == 0 else broadcast_dimensions[d - 1] + 1
    if 0 < d == len(broadcast_dimensions):
        before = len(shape)
    moved = tuple(b if b < before else b + 1 for b in broadcast_dimensions)
    out = broadcast_in_dim(
        x,
        shape=(*shape[:before], axis.size, *shape[before:]),
        broadcast_dimensions=(*moved[:d], before, *moved[d:]),
    )
    return out, before


def _broadcast_hlo(b: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    return b.broadcast_in_dim(x, shape, broadcast_dimensions)


def _broadcast_kernel(k: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    return k.broadcast_in_dim(x, shape, broadcast_dimensions)


def placed(eqn: Any) -> tuple[int, ...]:
    """The shape of a broadcast's operand with all dimensions of the result, most of them 1."""
    out = [1] * len(eqn.outvars[0].aval.shape)
    for n, d in zip(eqn.invars[0].aval.shape, eqn.params["broadcast_dimensions"], strict=True):
        out[d] = n
    return tuple(out)


def _broadcast_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    have = placed(eqn)
    return f"{names[0]}.reshape({have})" if have == eqn.outvars[0].aval.shape else None


broadcast_in_dim: Op = Op(
    name="broadcast_in_dim",
    kind=SPREAD,
    type=_broadcast_type,
    impl=_broadcast_impl,
    jvp=_broadcast_jvp,
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    shard=by_kind,
    hlo=_broadcast_hlo,
    kernel=_broadcast_kernel,
    written=_broadcast_written,
)


# reduce_sum: the sum over axes.


def reduction_type(name: str, *kinds: Any, dtype: Any = None) -> Any:
    """Type rule of reductions over `axes`, for operands of the given kinds."""

    def type_rule(x: Aval, *, axes: tuple[int, ...]) -> Aval:
        check_dtype(name, x, kinds)
        axes = canonical_axes(name, axes, x.ndim)
        shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
        return Aval(shape, x.dtype if dtype is None else dtype, x.weak_type and dtype is None)

    return type_rule


def reduction_batch(op_of: Any) -> Any:
    """Batching rule of reductions over `axes`: the others shift past the batch dimension."""

    def batch(axis: Any, args: Any, dims: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        (x,), (d,) = args, dims
        shifted = tuple([a + (a >= d) for a in axes])
        return op_of()(x, axes=shifted, **params), d - sum(a < d for a in shifted)

    return batch


def _sum_impl(x: Any, *, axes: tuple[int, ...]) -> Any:
    dtype, shape = x.dtype, x.shape
    for axis in axes:
        if shape[axis] != 1:
            break
    else:  # one number is its own sum; others begin with 0, to which -0 adds nothing
        return x.reshape([n for i, n in enumerate(shape) if i not in axes])
    if axes != (x.ndim - 1,) and dtype in _NARROW_SUMS:
        flags = x.flags
        if flags.f_contiguous and not flags.c_contiguous:
            last = x.ndim - 1
            return _sum_impl(x.T, axes=tuple([last - i for i in axes[::-1]])).T
        if flags.c_contiguous and axes == tuple(range(x.ndim - len(axes), x.ndim)):
            rows = shape[: x.ndim - len(axes)]  # what is summed is one run of the memory
            return _sum_impl(x.reshape(*rows, math.prod(shape[len(rows) :])), axes=(len(rows),))
        return _sum_of_floats(x, axes)
    if dtypes.is_narrow_float(dtype):
        return np.sum(x, axis=axes, dtype=np.float32).astype(dtype)
    if _sum_rows is not None and dtype == np.float32 and x.size >= MANY:
        out = _sum_rows(x)
        if out is not None:
            return out
    if _sum_columns is not None and len(axes) == 1 and axes[0] < x.ndim - 1:
        out = _sum_columns(x, axes[0], shape[axes[0]])  # one after the other, as NumPy adds
        if out is not None:
            return out
    return np.add.reduce(x, axis=axes, dtype=dtype)


_sum_rows: Any = None if extension is None else extension.sum_rows
_sum_columns: Any = None if extension is None else extension.sum_columns
MANY = 1024
"""Numbers from which the extension's sums of rows are faster, by 1.6 to 3 times."""


_NARROW_SUMS = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}
"""Dtypes whose sums along other axes than the last need care, and wider ones."""


def _sum_of_floats(x: Any, axes: tuple[int, ...]) -> Any:
    """Sums of float32 and complex64, of which NumPy adds those along the last axis alone in pairs.

    Along another axis terms are added in blocks, then the blocks: the error of n terms is that of
    2√n in a row. By NumPy it takes 1.1 times as long as its sum; float64 sums take 2.8. The
    extension adds in the same order: 1000 x 1000 in 45 us on two cores, 135 on one, 300,000 x 3 in
    0.28 ms, of which NumPy's loops, over three numbers each, need 3.2.
    """
    if len(axes) != 1 or not x.size:
        if x.size <= 4096:
            return np.add.reduce(x, axis=axes)
        return np.add.reduce(x, axis=axes, dtype=_NARROW_SUMS[x.dtype]).astype(x.dtype)
    (axis,) = axes
    n = x.shape[axis]
    block = n if n <= 128 else math.isqrt(n)
    out = None if _sum_columns is None else _sum_columns(x, axis, block)
    if out is not None:
        return out
    if block == n:
        return np.add.reduce(x, axis=axis)
    count = n // block
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    whole = x[(slice(None),) * axis + (slice(0, count * block),)]
    parts = np.add.reduce(whole.reshape(*lead, count, block, *rest), axis=axis + 1)
    total = np.add.reduce(parts, axis=axis)
    if count * block < n:
        total = total + np.add.reduce(x[(slice(None),) * axis + (slice(count * block, n),)], axis)
    return total


def _sum_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return reduce_sum(*primals, **params), reduce_sum(*tangents, **params)


def _sum_transpose(ct: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    kept = tuple([i for i in range(x.ndim) if i not in axes])
    return (broadcast_in_dim(ct, shape=x.shape, broadcast_dimensions=kept),)


def _sum_hlo(b: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    return b.reduce("add", x, axes)


def _sum_kernel(k: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    return k.reduce("add", x, axes)


def _sum_closed_form(maker: Any, *, axes: tuple[int, ...]) -> Any:
    """The sum of 0, 1, …, n-1 is n(n-1)/2, for integers, where it wraps as they do."""
    if maker is None or maker.op.name != "iota" or maker.params["dtype"].kind not in "iu":
        return None
    shape, dimension = maker.params["shape"], maker.params["dimension"]
    n = shape[dimension]
    total = n * (n - 1) // 2
    for i, size in enumerate(shape):
        if i != dimension:
            total *= size
    bits = 8 * maker.params["dtype"].itemsize
    total %= 1 << bits
    if maker.params["dtype"].kind == "i" and total >= 1 << (bits - 1):
        total -= 1 << bits
    return total


def _sum_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    """Where `impl` adds in the order of NumPy; of long sums of float32 it takes more care."""
    aval, axes = eqn.invars[0].aval, eqn.params["axes"]
    if aval.dtype.itemsize < 4 or all(aval.shape[i] == 1 for i in axes):
        return None
    if aval.dtype in _NARROW_SUMS and aval.size > (MANY if axes == (aval.ndim - 1,) else 128):
        return None
    if aval.size > MANY and len(axes) == 1 and axes[0] < aval.ndim - 1:
        return None
    return f"{bound(np.add.reduce)}({names[0]}, {axes}, {bound(aval.dtype)})"


reduce_sum: Op = Op(
    name="reduce_sum",
    kind=REDUCTION,
    type=reduction_type("reduce_sum", *NUMERIC),
    impl=_sum_impl,
    jvp=_sum_jvp,
    transpose=_sum_transpose,
    batch=reduction_batch(lambda: reduce_sum),
    shard=by_kind,
    hlo=_sum_hlo,
    kernel=_sum_kernel,
    written=_sum_written,
    closed_form=_sum_closed_form,
)


# add_any: the sum of cotangents; apart from add, as it is linear in both operands at once. They
# broadcast, because under vmap one may be the same for all examples.


def _add_any_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    t, u = tangents
    out = add_any(*primals)
    total = u if t is ZERO else t if u is ZERO else add_any(t, u)
    return out, total if total is ZERO else broadcast_to(total, shape_of(out))


def add_transpose(ct: Any, x: Any, y: Any) -> Any:
    """The transpose of addition by broadcasting, of add and add_any."""
    return (
        unbroadcast(ct, x.shape) if is_linear(x) else None,
        unbroadcast(ct, y.shape) if is_linear(y) else None,
    )


def unbroadcast(ct: Any, shape: tuple[int, ...]) -> Any:
    """The transpose of elementwise broadcasting: ct summed to an operand's shape."""
    ct_shape = shape_of(ct)
    if ct_shape == shape:
        return ct
    if shape == ():
        return reduce_sum(ct, axes=tuple(range(len(ct_shape))))
    axes = tuple(i for i, (n, m) in enumerate(zip(shape, ct_shape, strict=True)) if n != m)
    summed = reduce_sum(ct, axes=axes)
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return broadcast_in_dim(summed, shape=shape, broadcast_dimensions=kept)


add_any: Op = Op(
    name="add_any",
    kind=ELEMENTWISE,
    type=nary("add_any", *NUMERIC),
    impl=np.add,
    jvp=_add_any_jvp,
    transpose=add_transpose,
    batch=by_kind,
    shard=by_kind,
    hlo=lambda b, x, y: b.add(x, y),
    kernel=lambda k, x, y: k.binary("add", x, y),
    word="add",
)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """x, a scalar or of equal rank with sizes equal or 1, as an array of `shape`."""
    have = shape_of(x)
    if have == shape:
        return x
    if have == ():
        return broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
    dims = tuple(range(len(shape) - len(have), len(shape)))
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def broadcast_axis(x: Any, size: int, at: int) -> Any:
    """x repeated along a new axis."""
    shape = shape_of(x)
    dims = tuple(i + (i >= at) for i in range(len(shape)))
    return broadcast_in_dim(x, shape=(*shape[:at], size, *shape[at:]), broadcast_dimensions=dims)


def full_like_aval(aval: Aval, value: Any) -> Any:
    """An array of that aval filled with a Python scalar."""
    scalar: Literal = literal(value, aval.dtype, aval.weak_type)
    return broadcast_in_dim(scalar, shape=aval.shape, broadcast_dimensions=())


def zeros_like_aval(aval: Aval) -> Any:
    """Zeros of that aval."""
    return full_like_aval(aval, 0)
