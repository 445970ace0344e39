"""triangular_solve: x with op(a) x = b, or x op(a) = b, where a is triangular.

op(a) is a, its transpose, its conjugate, or both. Only the named triangle of a is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import LINALG, Op, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.elementwise import neg
from primal.ops.linalg._lapack import on_stack
from primal.ops.linalg.common import (
    batch_stacks,
    check_dtypes,
    check_stacks,
    conjugate,
    lower_part,
    matmul,
    square_of,
    transposed,
    upper_part,
    weak_together,
)
from primal.ops.shape import moveaxis, reshape
from primal.ops.spread import add_any


@weak_together
def _type(
    a: Aval,
    b: Aval,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Aval:
    check_stacks("triangular_solve", (a, 2), (b, 2))
    n = square_of("triangular_solve", a)
    if b.shape[:-2] != a.shape[:-2] or b.shape[-2 if left_side else -1] != n:
        side = "rows" if left_side else "columns"
        raise ValueError(
            f"[triangular_solve] expected b with {n} {side} and the leading dimensions of a, got "
            f"shapes {a.shape} and {b.shape}: Incompatible shapes for arguments to "
            "triangular_solve."
        )
    check_dtypes("triangular_solve", a, b)
    return Aval(b.shape, b.dtype)


def _impl(
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    if not b.size:
        return np.zeros(b.shape, b.dtype)
    trans = "N" if not transpose_a else "C" if conjugate_a else "T"
    if conjugate_a and not transpose_a:
        a = np.conj(a)
    n, columns = a.shape[-1], b.shape[-1]
    a, out = np.ascontiguousarray(a).reshape(-1, n, n), np.array(b, order="C")
    x = out.reshape(-1, *b.shape[-2:])
    # Fortran reads rows as columns: of op(a) x = b it sees xᵀ op(a)ᵀ = bᵀ, and a's other triangle.
    sides = "R" if left_side else "L", "U" if lower else "L", trans, "U" if unit_diagonal else "N"
    one = np.ones(1, b.dtype)
    on_stack("trsm", b.dtype, len(x), *sides, columns, x.shape[1], one, a, n, x, columns)
    return out


def _applied(
    a: Any, x: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    """op(a) x or x op(a), for the tangent of a: a unit diagonal does not move."""
    a = lower_part(a, -int(unit_diagonal)) if lower else upper_part(a, int(unit_diagonal))
    a = transposed(a) if transpose_a else a
    a = conjugate(a) if conjugate_a else a
    return matmul(a, x) if left_side else matmul(x, a)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    (a, b), (da, db) = primals, tangents
    x = triangular_solve(a, b, **params)
    change = db
    if da is not ZERO:
        moved = neg(_applied(da, x, **params))
        change = moved if db is ZERO else add_any(db, moved)
    return x, triangular_solve(a, change, **params)


def _transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> Any:
    return None, triangular_solve(a, ct, transpose_a=not transpose_a, **params)


def columns_batch(op: Op, left_side: bool, axis: Any, args: Any, dims: Any, params: Any) -> Any:
    """Batching of op(a, b) where all examples share one matrix a: they are columns of one b."""
    (a, b), (_, d) = args, dims
    # As more columns (or rows, on the right side) of one right-hand side.
    place = 2 if left_side else 0
    b = moveaxis(b, d, place)
    shape = aval_of(b).shape
    merged = (shape[0], shape[1] * shape[2]) if left_side else (shape[0] * shape[1], shape[2])
    out = op(a, reshape(b, shape=merged), **params)
    return reshape(out, shape=shape), place


def _batch(axis: Any, args: Any, dims: Any, *, left_side: bool, **params: Any) -> Any:
    params = {"left_side": left_side, **params}
    if dims[0] is None and aval_of(args[0]).ndim == 2:
        return columns_batch(triangular_solve, left_side, axis, args, dims, params)
    return batch_stacks(triangular_solve)(axis, args, dims, **params)


def _hlo(
    h: Any,
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    conjugate_a = conjugate_a and a.dtype.kind == "c"
    if conjugate_a and not transpose_a:
        a, conjugate_a = h.conj(a), False
    if h.platform != "cpu" or 0 in b.shape:
        flag = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
        return h.triangular_solve(
            a, b, left_side=left_side, lower=lower, unit_diagonal=unit_diagonal, transpose=flag
        )
    return hlo_trsm(
        h,
        a,
        b,
        left_side=left_side,
        lower=lower,
        trans="N" if not transpose_a else "C" if conjugate_a else "T",
        unit_diagonal=unit_diagonal,
    )


def hlo_trsm(
    h: Any, a: Any, b: Any, *, left_side: bool, lower: bool, trans: str, unit_diagonal: bool
) -> Any:
    """BLAS's trsm, which XLA's own expansion into slices and products is slower than."""
    return h.lapack(
        "trsm",
        [a, b],
        [b.aval],
        attributes={
            "side": "L" if left_side else "R",
            "uplo": "L" if lower else "U",
            "trans_x": trans,
            "diag": "U" if unit_diagonal else "N",
        },
        aliases={1: 0},
    )[0]


triangular_solve = Op(
    name="triangular_solve",
    kind=LINALG,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    shard=by_kind,
    hlo=_hlo,
    kernel=lambda k, a, b, **params: k.triangular_solve(a, b, **params),
)
