"""cholesky_update: the upper triangular factor of Rᵀ R + w wᵀ, made from R by n rotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import add, mul
from primal.ops.linalg.common import (
    INT32,
    batch_stacks,
    check_dtypes,
    check_stacks,
    columns_of,
    hlo_triangle,
    identity,
    matmul,
    rows_of,
    transposed,
    upper_part,
    weak_together,
)
from primal.ops.linalg.triangular import triangular_solve
from primal.ops.types import NOT_LINEAR

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


@weak_together
def _type(r: Aval, w: Aval) -> Aval:
    check_stacks("cholesky_update", (r, 2), (w, 1))
    if r.shape[-1] != r.shape[-2] or w.shape != r.shape[:-1]:
        raise ValueError(
            "[cholesky_update] expected a square matrix and a vector of its size, got shapes "
            f"{r.shape} and {w.shape}."
        )
    check_dtypes("cholesky_update", r, w)
    if r.dtype not in DTYPES:
        raise TypeError(
            f"[cholesky_update] expected float32 or float64, got {r.dtype.name}. "
            "Convert first with astype."
        )
    return Aval(r.shape, r.dtype)


def _impl(r: Any, w: Any) -> Any:
    out, w = np.triu(r), w.copy()
    for k in range(r.shape[-1]):
        # [c s; -s c] turns (R[k, k], w[k]) into (size, 0); row k and w are turned alike.
        row = out[..., k, k:].copy()
        rest = w[..., k:]
        size = np.hypot(row[..., 0], rest[..., 0])
        some = np.where(size == 0, 1, size)
        c = np.where(size == 0, 1, row[..., 0] / some)[..., None]
        s = (rest[..., 0] / some)[..., None]
        out[..., k, k:] = c * row + s * rest
        out[..., k, k] = size
        w[..., k:] = c * rest - s * row
    return out


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """d(Rᵀ R + w wᵀ) = Sᵀ dS + dSᵀ S for the result S, as for cholesky."""
    (r, w), (dr, dw) = primals, tangents
    out = cholesky_update(r, w)
    shape, dtype = aval_of(r).shape, aval_of(r).dtype
    half: Any = ZERO
    if dr is not ZERO:
        half = matmul(transposed(upper_part(r)), upper_part(dr))
    if dw is not ZERO:
        both = mul(columns_of(w, shape), rows_of(dw, shape))
        half = both if half is ZERO else add(half, both)
    change = add(half, transposed(half))
    flags = {"lower": False, "unit_diagonal": False, "conjugate_a": False}
    s = triangular_solve(out, change, left_side=True, transpose_a=True, **flags)
    s = triangular_solve(out, s, left_side=False, transpose_a=False, **flags)
    diagonal = mul(identity(shape, dtype), mul(s, literal(0.5, dtype)))
    return out, matmul(add(upper_part(s, 1), diagonal), out)


def _hlo(b: Any, r: Any, w: Any) -> Any:
    if 0 in r.shape:
        return r
    lead, n = r.shape[:-2], r.shape[-1]
    last = len(lead)
    columns = b.iota(w.shape, INT32, last)
    zero = b.constant(0, INT32)

    def body(b: Any, k: Any, r: Any, w: Any) -> Any:
        starts = [*[zero] * last, k, zero]
        row = b.reshape(b.dynamic_slice(r, starts, (*lead, 1, n)), w.shape)
        none = b.full_like(w, 0)
        here = b.compare(columns, b.broadcast_in_dim(k, w.shape, ()), "EQ")

        def at(x: Any) -> Any:
            picked = b.reduce("add", b.select(here, x, none), (last,))
            return b.broadcast_in_dim(picked, w.shape, tuple(range(last)))

        x, y = at(row), at(w)
        big = b.maximum(b.abs(x), b.abs(y))
        flat = b.compare(big, none, "EQ")
        one = b.full_like(w, 1)
        scale = b.select(flat, one, big)
        u, v = b.divide(x, scale), b.divide(y, scale)
        size = b.sqrt(b.add(b.multiply(u, u), b.multiply(v, v)))
        some = b.select(flat, one, size)
        c = b.select(flat, one, b.divide(u, some))
        s = b.divide(v, some)
        turned = b.add(b.multiply(c, row), b.multiply(s, w))
        rest = b.subtract(b.multiply(c, w), b.multiply(s, row))
        # Left of the diagonal are zeros; w has none there, as it was turned to 0.
        r = b.dynamic_update_slice(r, b.reshape(turned, (*lead, 1, n)), starts)
        past = b.compare(columns, b.broadcast_in_dim(k, w.shape, ()), "LE")
        return [b.add(k, b.constant(1, INT32)), r, b.select(past, none, rest)]

    def cond(b: Any, k: Any, r: Any, w: Any) -> Any:
        return b.compare(k, b.constant(n, INT32), "LT")

    return b.while_(cond, body, [zero, hlo_triangle(b, r, lower=False), w])[1]


cholesky_update = Op(
    name="cholesky_update",
    kind=LINALG,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_hlo,
    kernel=lambda k, r, w: k.cholesky_update(r, w),
)
