"""eigh: a V = V diag(w) for Hermitian a: real w, ascending, and unitary V.

Only one triangle of a is read. Tangents are taken as they are, as changes of a Hermitian matrix,
and so are those of `cholesky`, which says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import aval_of
from primal.ops.choose import as_dtype, select_n
from primal.ops.elementwise import div, real, sub
from primal.ops.linalg._lapack import address, by_columns, in_double, on_stack
from primal.ops.linalg.common import (
    INT32,
    adjoint,
    batch_stacks,
    check_square,
    columns_of,
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
)
from primal.ops.types import NOT_LINEAR


@weak_together
def _type(a: Aval, *, lower: bool, compute_eigenvectors: bool) -> tuple[Aval, ...]:
    lead, n = check_square("eigh", a)
    w = Aval((*lead, n), real_of(a.dtype))
    return (Aval(a.shape, a.dtype), w) if compute_eigenvectors else (w,)


def _impl(a: Any, *, lower: bool, compute_eigenvectors: bool) -> Any:
    values = (a.shape[:-1], real_of(a.dtype))
    outs = [(a.shape, a.dtype), values] if compute_eigenvectors else [values]
    if not a.size:
        return [np.zeros(shape, dtype) for shape, dtype in outs]
    a, bad = finite_only(a)
    if not compute_eigenvectors:
        run = in_double(f"eigvalsh_{'lo' if lower else 'up'}", a.dtype, values[1])
        return poison([run(a)], bad)
    return poison(_by_lapack(a, lower, compute_eigenvectors), bad)


def _by_lapack(a: Any, lower: bool, vectors: bool) -> list[Any]:
    """evd of scipy's LAPACK, the one XLA calls: the sign of vectors differs between versions."""
    n, size = a.shape[-1], a.dtype.itemsize
    v = by_columns(a)
    w = np.empty((len(v), n), real_of(a.dtype))
    if a.dtype.kind == "c":
        work, more = 2 * n + n * n, 1 + 5 * n + 2 * n * n
        room: tuple[Any, ...] = ((work * size,), work, (more * w.itemsize,), more)
    else:
        work = 1 + 6 * n + 2 * n * n
        room = (work * size,), work
    job, half, last = "V" if vectors else "N", "L" if lower else "U", 3 + 5 * n
    room = (*room, (last * 4,), last)
    info = on_stack(_name(a.dtype), a.dtype, len(v), job, half, n, v, n, w, *room)
    w = w.reshape(a.shape[:-1])
    results = [v.swapaxes(-1, -2).reshape(a.shape), w] if vectors else [w]
    return poison(results, unless_converged(info, a))


def _name(dtype: Any) -> str:
    return "heevd" if dtype.kind == "c" else "syevd"


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, lower: bool, compute_eigenvectors: bool
) -> Any:
    (a,), (t,) = primals, tangents
    v, w = eigh(a, lower=lower, compute_eigenvectors=True)
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    mixed = matmul(adjoint(v), matmul(t, v))
    middle = diagonal(mixed)
    dw = real(middle) if dtype.kind == "c" else middle
    if not compute_eigenvectors:
        return [w], [dw]
    # dV = V X with Xij = (Vᴴ da V)ij / (wj - wi): inf or nan where eigenvalues repeat.
    gaps = sub(rows_of(w, shape), columns_of(w, shape))
    gaps = select_n(on_diagonal(shape), gaps, identity(shape, real_of(dtype)))
    turn = without_diagonal(div(mixed, as_dtype(gaps, dtype)))
    return [v, w], [matmul(v, turn), dw]


def _hlo(b: Any, a: Any, *, lower: bool, compute_eigenvectors: bool) -> Any:
    outs = b.outs
    if 0 in a.shape:
        return [b.full(o.shape, 0, o.dtype) for o in outs]
    a, fine = hlo_finite(b, a)
    v, w, info = b.lapack(
        "syevd",
        [a],
        [a.aval, outs[-1], Aval(a.shape[:-2], INT32)],
        attributes={
            "mode": "V" if compute_eigenvectors else "N",
            "uplo": "L" if lower else "U",
        },
        aliases={0: 0},
    )
    return hlo_or_nan(b, info, fine, [v, w] if compute_eigenvectors else [w])


def _kernel(k: Any, a: Any, *, lower: bool, compute_eigenvectors: bool) -> Any:
    outs = _type(a.aval, lower=lower, compute_eigenvectors=compute_eigenvectors)
    return k.eigh(a, outs, lower=lower, address=address(_name(a.dtype), a.dtype))


eigh = Op(
    name="eigh",
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

