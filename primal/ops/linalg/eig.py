"""eig: eigenvalues and eigenvectors of square matrices that need not be symmetric.

a V = V diag(w) and Uᴴ a = diag(w) Uᴴ, complex for real a too. Vectors are LAPACK's: columns of
norm 1 whose largest element is real.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.native import extension
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import aval_of
from primal.ops.choose import as_dtype, select_n
from primal.ops.elementwise import add, complex, conj, div, eq, imag, mul, neg, real, sub
from primal.ops.linalg._lapack import address, by_columns, in_double, on_stack, workspace
from primal.ops.linalg.common import (
    INT32,
    adjoint,
    batch_stacks,
    check_square,
    columns_of,
    complex_of,
    diagonal,
    finite_only,
    hlo_finite,
    hlo_or_nan,
    identity,
    matmul,
    on_diagonal,
    poison,
    real_of,
    rows_of,
    unless_converged,
    weak_together,
    without_diagonal,
    zeros,
)
from primal.ops.linalg.lu import solve
from primal.ops.reduce import reduce_max
from primal.ops.spread import reduce_sum
from primal.ops.types import NOT_LINEAR

IN_DOUBLE = 16
"""Rows up to which eigenvalues in single precision are computed in double.

That is as fast there. Of 32 to 64 rows geev takes 1.2 to 1.3 times as long in double; where
vectors are asked for too, values have always been those of single precision.
"""

BY_PARTS = 64
"""Rows up to which the CPU engine calls the parts of geev: above, its blocked algorithms begin.

There the order of the values hangs on roundings: of 120 rows half of all matrices had another one
by OpenBLAS than by NumPy's LAPACK, which eager code calls and to which larger ones are left.
"""


def _in_double(dtype: Any, n: int) -> bool:
    return n <= IN_DOUBLE or real_of(dtype).itemsize == 8


@weak_together
def _type(
    a: Aval, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool
) -> tuple[Aval, ...]:
    lead, n = check_square("eig", a)
    dtype = complex_of(a.dtype)
    vectors = Aval((*lead, n, n), dtype)
    count = int(compute_left_eigenvectors) + int(compute_right_eigenvectors)
    return (Aval((*lead, n), dtype), *[vectors] * count)


def _impl(a: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    *lead, n, _ = a.shape
    dtype = complex_of(a.dtype)
    wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
    outs = [((*lead, n), dtype), *[((*lead, n, n), dtype)] * sum(wanted)]
    if not a.size:
        return [np.zeros(shape, dtype) for shape, dtype in outs]
    a, bad = finite_only(a)
    if not any(wanted) and _in_double(a.dtype, n):
        return poison([in_double("eigvals", a.dtype, dtype)(a)], bad)
    return poison(_by_lapack(a, wanted), bad)


def _by_lapack(a: Any, wanted: tuple[bool, bool]) -> list[Any]:
    """geev of scipy's LAPACK, the one XLA calls: the sign of vectors differs between versions."""
    n, kind = a.shape[-1], a.dtype
    columns = by_columns(a)
    w = [np.empty((len(columns), n), kind) for _ in range(1 if kind.kind == "c" else 2)]
    found = [np.empty((len(columns), n, n) if wants else 1, kind) for wants in wanted]
    lwork = workspace("geev_lwork", kind, n, *wanted)
    room: list[Any] = [(lwork * kind.itemsize,), lwork]
    if kind.kind == "c":
        room.append((2 * n * w[0].itemsize,))
    jobs = ["V" if wants else "N" for wants in wanted]
    info = on_stack(
        "geev", kind, len(columns), *jobs, n, columns, n, *w, found[0], n, found[1], n, *room
    )
    kept = [v for v, wants in zip(found, wanted, strict=True) if wants]
    if len(w) == 1:
        values = w[0]
    else:
        values = w[0].astype(complex_of(kind))
        values.imag = w[1]
        kept = [_joined(w[1], v) for v in kept]
    results = [values.reshape(a.shape[:-1]), *[v.swapaxes(-1, -2).reshape(a.shape) for v in kept]]
    return poison(results, unless_converged(info, a))


def _by_numpy(w_imag: Any, v: Any) -> Any:
    """What the extension's join does."""
    out = v.astype(complex_of(v.dtype))
    rows, first = out.reshape((-1, v.shape[-1])), np.flatnonzero(w_imag.ravel()[:-1] > 0)
    rows.imag[first] = rows.real[first + 1]
    rows[first + 1] = rows[first].conj()
    return out


_joined = _by_numpy if extension is None else extension.join
"""Vectors out of those that LAPACK packs in pairs: a real part, then its imaginary part."""


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
) -> Any:
    (a,), (t,) = primals, tangents
    found = eig(
        a,
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=True,
    )
    w, right = found[0], found[-1]
    t = as_dtype(t, aval_of(w).dtype)
    mixing = solve(right, matmul(t, right), transpose_a=False)
    outs, pushed = [w], [diagonal(mixing)]
    if compute_left_eigenvectors:
        left = found[1]
        outs.append(left)
        # The left vectors are the right ones of aᴴ, whose eigenvalues are conjugated.
        other = solve(left, matmul(adjoint(t), left), transpose_a=False)
        pushed.append(_vectors_tangent(left, conj(w), other))
    if compute_right_eigenvectors:
        outs.append(right)
        pushed.append(_vectors_tangent(right, w, mixing))
    return outs, pushed


def _vectors_tangent(v: Any, w: Any, mixing: Any) -> Any:
    """dV = V (X + diag(x)) with Xij = (V⁻¹ da V)ij / (wj - wi), and x from the normalisation.

    |v| = 1 asks Re(vᴴ dv) = 0, and a real element k asks Im dv_k = 0. Where eigenvalues repeat,
    vectors have no derivative, and the result is inf or nan.
    """
    shape = aval_of(v).shape
    dtype = aval_of(v).dtype
    axis = len(shape) - 2
    gaps = sub(rows_of(w, shape), columns_of(w, shape))
    gaps = select_n(on_diagonal(shape), gaps, identity(shape, dtype))
    dv = matmul(v, without_diagonal(div(mixing, gaps)))
    shrink = neg(real(reduce_sum(mul(conj(v), dv), axes=(axis,))))
    # LAPACK makes the imaginary part of the largest element exactly 0; that element is k.
    re, im = real(v), imag(v)
    none = zeros(shape, real_of(dtype))
    size = select_n(eq(im, none), none, mul(re, re))
    here = eq(size, rows_of(reduce_max(size, axes=(axis,)), shape))
    mask = as_dtype(here, real_of(dtype))
    turns = select_n(here, none, div(imag(dv), select_n(here, identity_like(re), re)))
    turn = neg(div(reduce_sum(turns, axes=(axis,)), reduce_sum(mask, axes=(axis,))))
    return add(dv, mul(v, rows_of(complex(shrink, turn), shape)))


def identity_like(x: Any) -> Any:
    """Ones of the shape and dtype of x."""
    return add(zeros(aval_of(x).shape, aval_of(x).dtype), 1.0)


def _hlo(
    b: Any, a: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool
) -> Any:
    outs = b.outs
    if 0 in a.shape:
        return [b.full(o.shape, 0, o.dtype) for o in outs]
    values, whole = outs[0], Aval(a.shape, outs[0].dtype)
    is_complex = a.dtype.kind == "c"
    part = Aval(values.shape, real_of(a.dtype))
    ends = [values] if is_complex else [part, part]
    a, fine = hlo_finite(b, a)
    found = b.lapack(
        "geev",
        [a],
        [*ends, whole, whole, Aval(a.shape[:-2], INT32)],
        attributes={
            "compute_left": "V" if compute_left_eigenvectors else "N",
            "compute_right": "V" if compute_right_eigenvectors else "N",
        },
    )
    *w, left, right, info = found
    kept = [w[0] if is_complex else b.complex(w[0], w[1])]
    if compute_left_eigenvectors:
        kept.append(left)
    if compute_right_eigenvectors:
        kept.append(right)
    return hlo_or_nan(b, info, fine, kept)


def _kernel(
    k: Any, a: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool
) -> Any:
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    n = a.shape[-1]
    parts = not (left or right) and _in_double(a.dtype, n)
    if not a.aval.size or (parts and n > BY_PARTS):
        raise Unsupported(f"eig of {a.shape}")
    if parts:
        return [k.eigenvalues(a, complex_of(a.dtype))]
    outs = _type(a.aval, compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    room = workspace("geev_lwork", a.dtype, n, left, right)
    return k.eig(
        a, outs, left=left, right=right, address=address("geev", a.dtype), room=room
    )


eig = Op(
    name="eig",
    kind=LINALG,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_hlo,
    kernel=_kernel,
    multiple=True,
)
