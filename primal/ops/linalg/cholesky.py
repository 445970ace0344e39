"""cholesky: the lower triangular L with L Lᴴ = a, of positive definite matrices; nan for others.

Only the lower triangle of a is read. Tangents are taken as they are, as changes of a Hermitian
matrix: what a gradient has above the diagonal belongs to it, and its Hermitian part is what counts.
Gradients by the elements that are read were rejected: they are not those that JAX gives, and cost
the copy of a triangle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import mul, sub
from primal.ops.linalg._lapack import in_double, on_stack
from primal.ops.linalg.common import (
    INT32,
    batch_stacks,
    check_square,
    hlo_or_nan,
    hlo_triangle,
    identity,
    lower_part,
    matmul,
    poison,
    unless_converged,
    weak_together,
)
from primal.ops.linalg.triangular import triangular_solve
from primal.ops.types import NOT_LINEAR

SMALL = 64
"""Rows up to which NumPy is fast: with 200 of them its LAPACK took 4 times as long as SciPy's."""


@weak_together
def _type(a: Aval) -> Aval:
    check_square("cholesky", a)
    return Aval(a.shape, a.dtype)


def _impl(a: Any) -> Any:
    if not a.size:
        return np.zeros(a.shape, a.dtype)
    if a.shape[-1] <= SMALL:
        out = in_double("cholesky_lo", a.dtype, a.dtype)(a)
        # Where it failed, nan stands in the other triangle too.
        return np.tril(out) if np.count_nonzero(out[..., 0, -1]) else out
    # The lower triangle by rows is the upper one by columns.
    factor = np.array(a, order="C")
    n, count = a.shape[-1], math.prod(a.shape[:-2])
    info = on_stack("potrf", a.dtype, count, "U", n, factor.reshape(count, n, n), n)
    return np.tril(poison([factor], unless_converged(info, a))[0])


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (a,), (t,) = primals, tangents
    factor = cholesky(a)
    # L⁻¹ da L⁻ᴴ = X + Xᴴ, where X = L⁻¹ dL is lower triangular: half of the diagonal is its own.
    half = {"lower": True, "unit_diagonal": False}
    s = triangular_solve(factor, t, left_side=True, transpose_a=False, conjugate_a=False, **half)
    s = triangular_solve(factor, s, left_side=False, transpose_a=True, conjugate_a=True, **half)
    unit = identity(aval_of(a).shape, aval_of(a).dtype)
    shares = sub(lower_part(s), mul(mul(unit, literal(0.5, aval_of(a).dtype)), s))
    return factor, lower_part(matmul(factor, shares))  # 0 above, where the factor is nan too


def _hlo(b: Any, a: Any) -> Any:
    if 0 in a.shape:
        return a
    if b.platform != "cpu":
        return hlo_triangle(b, b.cholesky(a, lower=True), lower=True)
    outs = [a.aval, Aval(a.shape[:-2], INT32)]
    factor, info = b.lapack("potrf", [a], outs, attributes={"uplo": "L"}, aliases={0: 0})
    return hlo_triangle(b, hlo_or_nan(b, info, None, [factor])[0], lower=True)


cholesky = Op(
    name="cholesky",
    kind=LINALG,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_hlo,
    kernel=lambda k, a: k.cholesky(a),
)
