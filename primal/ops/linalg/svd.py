"""svd: a = U diag(s) Vᴴ with orthonormal columns of U and V, and s >= 0 descending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.choose import as_dtype, select_n
from primal.ops.elementwise import add, complex, div, eq, imag, mul, real, sub
from primal.ops.linalg._lapack import address, by_columns, in_double, on_stack, workspace
from primal.ops.linalg.common import (
    INT32,
    adjoint,
    batch_stacks,
    check_matrix,
    columns_of,
    diagonal,
    diagonal_matrix,
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
from primal.ops.types import NOT_LINEAR


def _sizes(a: Any, full_matrices: bool) -> tuple[int, int, int]:
    """(columns of U, rows of Vᴴ, singular values)."""
    m, n = a.shape[-2:]
    k = min(m, n)
    return (m, n, k) if full_matrices else (k, k, k)


@weak_together
def _type(a: Aval, *, full_matrices: bool, compute_uv: bool, algorithm: str) -> tuple[Aval, ...]:
    lead, m, n = check_matrix("svd", a)
    left, right, k = _sizes(a, full_matrices)
    s = Aval((*lead, k), real_of(a.dtype))
    if not compute_uv:
        return (s,)
    return s, Aval((*lead, m, left), a.dtype), Aval((*lead, right, n), a.dtype)


def _impl(a: Any, *, full_matrices: bool, compute_uv: bool, algorithm: str) -> Any:
    if not a.size:
        s, *vectors = _type(
            Aval(a.shape, a.dtype),
            full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm,
        )  # fmt: skip
        # Of nothing, any orthonormal columns will do.
        units = [np.broadcast_to(np.eye(*v.shape[-2:], dtype=v.dtype), v.shape) for v in vectors]
        return [np.zeros(s.shape, s.dtype), *units]
    a, bad = finite_only(a)
    if not compute_uv and algorithm == "gesdd":
        return poison([in_double("svd", a.dtype, real_of(a.dtype))(a)], bad)
    return poison(_by_lapack(a, full_matrices, compute_uv, algorithm), bad)


def _by_lapack(a: Any, full_matrices: bool, compute_uv: bool, algorithm: str) -> list[Any]:
    """gesdd of scipy's LAPACK, the one XLA calls: the sign of vectors differs between versions."""
    *lead, m, n = a.shape
    left, right, k = _sizes(a, full_matrices)
    kind, real = a.dtype, real_of(a.dtype)
    columns = by_columns(a)
    count = len(columns)
    s = np.empty((count, k), real)
    u, vh = np.empty((count, left, m), kind), np.empty((count, n, right), kind)
    lwork = _room(a, full_matrices, compute_uv, algorithm)
    room: list[Any] = [(lwork * kind.itemsize,), lwork]
    job = "N" if not compute_uv else "A" if full_matrices else "S"
    if kind.kind == "c":
        more = 5 * k
        if algorithm == "gesdd":
            more = max(5 * k * k + 5 * k, 2 * max(m, n) * k + 2 * k * k + k)
        room.append((more * s.itemsize,))
    if algorithm == "gesdd":
        room.append((8 * k * 4,))
    jobs = job if algorithm == "gesdd" else job * 2
    given = (columns, m, s, u, m, vh, right)
    info = on_stack(algorithm, kind, count, *jobs, m, n, *given, *room)
    results = [s.reshape((*lead, k))]
    if compute_uv:
        results += [x.swapaxes(-1, -2).reshape((*lead, *x.shape[:0:-1])) for x in (u, vh)]
    return poison(results, unless_converged(info, a))


def _room(a: Any, full_matrices: bool, compute_uv: bool, algorithm: str) -> int:
    return workspace(f"{algorithm}_lwork", a.dtype, *a.shape[-2:], compute_uv, full_matrices)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool, compute_uv: bool,
    algorithm: str,
) -> Any:
    (a,), (t,) = primals, tangents
    *lead, m, n = aval_of(a).shape
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            f"[svd] expected full_matrices=False to differentiate a matrix that is not square, got "
            f"shape {aval_of(a).shape}: the vectors of its null space are not determined by it. "
            "Ask for the reduced factors."
        )
    s, u, vh = svd(a, full_matrices=False, compute_uv=True, algorithm=algorithm)
    if 0 in aval_of(a).shape:
        outs = [s, u, vh] if compute_uv else [s]
        return outs, [ZERO] * len(outs)
    dtype, parts = aval_of(a).dtype, real_of(aval_of(a).dtype)
    v = adjoint(vh)
    moved = matmul(t, v)
    mixed = matmul(adjoint(u), moved)
    middle = diagonal(mixed)
    ds = real(middle) if dtype.kind == "c" else middle
    if not compute_uv:
        return [s], [ds]
    shape = aval_of(mixed).shape
    # dU = U X + (1 - U Uᴴ) da V / s, and dV alike, with X and Y anti-Hermitian:
    # X ∘ (sj² - si²) = M S + S Mᴴ and Y ∘ (sj² - si²) = S M + Mᴴ S where M = Uᴴ da V.
    rows, columns = rows_of(s, shape), columns_of(s, shape)
    gaps = mul(sub(rows, columns), add(rows, columns))
    gaps = as_dtype(select_n(on_diagonal(shape), gaps, identity(shape, parts)), dtype)
    rows, columns = as_dtype(rows, dtype), as_dtype(columns, dtype)
    other = adjoint(mixed)
    x = without_diagonal(div(add(mul(mixed, rows), mul(columns, other)), gaps))
    y = without_diagonal(div(add(mul(columns, mixed), mul(other, rows)), gaps))
    none = zeros(aval_of(s).shape, parts)
    safe = select_n(eq(s, none), s, add(none, 1.0))
    # The derivative of a vector of a zero singular value is taken as 0 outside of the others.
    inverse = select_n(eq(s, none), div(add(none, 1.0), safe), none)
    if dtype.kind == "c":
        # Phases of U and V turn together; U takes what is determined.
        x = add(x, diagonal_matrix(complex(none, mul(imag(middle), inverse))))
    du, dv = matmul(u, x), matmul(v, y)
    scale = as_dtype(inverse, dtype)
    if m > n:
        outside = sub(moved, matmul(u, mixed))
        du = add(du, mul(outside, rows_of(scale, aval_of(outside).shape)))
    if n > m:
        back = matmul(adjoint(t), u)
        outside = sub(back, matmul(v, matmul(vh, back)))
        dv = add(dv, mul(outside, rows_of(scale, aval_of(outside).shape)))
    return [s, u, vh], [ds, du, adjoint(dv)]


def _hlo(b: Any, a: Any, *, full_matrices: bool, compute_uv: bool, algorithm: str) -> Any:
    outs = b.outs
    *lead, m, n = a.shape
    if 0 in a.shape:
        results = [b.full(outs[0].shape, 0, outs[0].dtype)]
        for o in outs[1:]:
            unit = b.constant(np.eye(*o.shape[-2:], dtype=o.dtype))
            results.append(b.broadcast_in_dim(unit, o.shape, (o.ndim - 2, o.ndim - 1)))
        return results
    a, fine = hlo_finite(b, a)
    left, right, k = _sizes(a, full_matrices)
    vectors = outs[1:] if compute_uv else (
        Aval((*lead, m, left), a.dtype), Aval((*lead, right, n), a.dtype)
    )  # fmt: skip
    mode = "N" if not compute_uv else "A" if full_matrices else "S"
    _, s, u, vh, info = b.lapack(
        algorithm,
        [a],
        [a.aval, outs[0], *vectors, Aval(tuple(lead), INT32)],
        attributes={"mode": mode},
        aliases={0: 0},
    )
    return hlo_or_nan(b, info, fine, [s, u, vh] if compute_uv else [s])


def _kernel(k: Any, a: Any, *, full_matrices: bool, compute_uv: bool, algorithm: str) -> Any:
    if not a.aval.size:
        raise Unsupported(f"svd of {a.shape}")
    outs = _type(
        a.aval, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm
    )
    room = _room(a, full_matrices, compute_uv, algorithm)
    return k.svd(
        a, outs, full=full_matrices, algorithm=algorithm, address=address(algorithm, a.dtype),
        room=room,
    )  # fmt: skip


svd = Op(
    name="svd",
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
