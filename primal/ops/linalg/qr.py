"""qr: a = Q R with orthonormal columns of Q and upper triangular R; with pivoting a[:, p] = Q R."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import add, complex, imag, neg, sub
from primal.ops.linalg._lapack import address, by_columns, in_double, lapack, on_stack
from primal.ops.linalg.common import (
    INT32,
    adjoint,
    batch_stacks,
    check_dtypes,
    check_matrix,
    check_stacks,
    diagonal,
    diagonal_matrix,
    each_matrix,
    hlo_triangle,
    identity,
    lower_part,
    matmul,
    real_of,
    transposed,
    upper_part,
    weak_together,
    zeros,
)
from primal.ops.linalg.lu import permuted_rows
from primal.ops.linalg.triangular import triangular_solve
from primal.ops.reduce import part
from primal.ops.shape import pad
from primal.ops.types import NOT_LINEAR


@weak_together
def _type(a: Aval, *, pivoting: bool, full_matrices: bool) -> tuple[Aval, ...]:
    lead, m, n = check_matrix("qr", a)
    k = m if full_matrices else min(m, n)
    outs = Aval((*lead, m, k), a.dtype), Aval((*lead, k, n), a.dtype)
    return (*outs, Aval((*lead, n), INT32)) if pivoting else outs


def _impl(a: Any, *, pivoting: bool, full_matrices: bool) -> Any:
    *lead, m, n = a.shape
    k = m if full_matrices else min(m, n)
    if not a.size:
        # Of nothing, any orthonormal columns will do.
        q = np.broadcast_to(np.eye(m, k, dtype=a.dtype), (*lead, m, k))
        r = np.zeros((*lead, k, n), a.dtype)
        order = np.broadcast_to(np.arange(n, dtype=INT32), (*lead, n))
        return (q, r, order) if pivoting else (q, r)
    if not pivoting:
        return _plain(a, k)
    outs = [((*lead, m, k), a.dtype), ((*lead, k, n), a.dtype), ((*lead, n), INT32)]
    return each_matrix(lambda x: _pivoted(x, k), outs, a)


def _plain(a: Any, k: int) -> tuple[Any, Any]:
    """k columns of Q, and R, in double precision by the loops of np.linalg.qr."""
    packed, tau = _reflected(a)
    name = "qr_complete" if k > packed.shape[-1] else "qr_reduced"
    r = _triangle(packed, k, a.dtype)
    return in_double(name, a.dtype, a.dtype, 2)(packed, tau), r


def _reflected(a: Any) -> tuple[Any, Any]:
    packed = np.array(a, np.complex128 if a.dtype.kind == "c" else np.float64)
    return packed, in_double("qr_r_raw", packed.dtype, packed.dtype)(packed)


def _triangle(packed: Any, k: int, dtype: Any) -> Any:
    r = packed[..., :k, :].astype(dtype)
    for row in range(1, k):
        r[..., row, :row] = 0
    return r


def triangle(a: Any) -> Any:
    """R alone of matrices that are not empty, the same to the last bit: Q takes half the time."""
    return _triangle(_reflected(a)[0], min(a.shape[-2:]), a.dtype)


def _pivoted(a: Any, k: int) -> Any:
    m, n = a.shape
    packed, order, tau, _, _ = lapack("geqp3", a.dtype)(a)
    return householder(packed, tau, m, k), np.triu(_rows(packed, k)), order - 1


def _rows(packed: Any, k: int) -> Any:
    """The first k rows, with zeros for those that are not there."""
    out = np.zeros((k, packed.shape[1]), packed.dtype)
    rows = min(k, packed.shape[0])
    out[:rows] = packed[:rows]
    return out


def householder(packed: Any, tau: Any, m: int, k: int) -> Any:
    """The first k columns of the product of reflections, of one matrix."""
    room = np.zeros((m, k), packed.dtype)
    columns = min(k, packed.shape[1])
    room[:, :columns] = packed[:, :columns]
    return _product_impl(room, tau)


_BLOCK = 64  # columns at a time: more than LAPACK takes, and there is no query for all routines


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, pivoting: bool, full_matrices: bool
) -> Any:
    (a,), (t,) = primals, tangents
    *lead, m, n = aval_of(a).shape
    outs = qr(a, pivoting=pivoting, full_matrices=full_matrices)
    q, r = outs[:2]
    if 0 in aval_of(a).shape:
        return outs, [ZERO] * len(outs)
    rank, dtype = len(lead) + 2, aval_of(a).dtype
    if pivoting:
        # Columns of a, moved as the pivots say.
        a, t = [transposed(permuted_rows(transposed(x), outs[2])) for x in (a, t)]
    more = m - n if full_matrices and m > n else 0
    if more:
        q, r = part(q, 0, n, rank - 1), part(r, 0, n, rank - 2)
    left, corner = (part(t, 0, m, rank - 1), part(r, 0, m, rank - 1)) if m < n else (t, r)
    scaled = triangular_solve(
        corner, left, left_side=False, lower=False, transpose_a=False, conjugate_a=False,
        unit_diagonal=False,
    )  # fmt: skip
    # Qᴴ da R⁻¹ = Qᴴ dQ + dR R⁻¹: anti-Hermitian, and upper triangular with a real diagonal.
    mixed = matmul(adjoint(q), scaled)
    below = lower_part(mixed, -1)
    turn = sub(below, adjoint(below))
    if dtype.kind == "c":
        angles = imag(diagonal(mixed))
        phases = complex(zeros(aval_of(angles).shape, real_of(dtype)), angles)
        turn = add(turn, diagonal_matrix(phases))
    dq = sub(scaled, matmul(q, sub(mixed, turn)))
    dr = sub(matmul(adjoint(q), t), matmul(turn, r))
    if more:
        # The columns of Q beyond those of a are what its reflections make of unit vectors.
        packed, factors = geqrf(a)
        dpacked, dfactors = reflections_jvp(packed, q, dq)
        whole, dwhole = [_padded(x, [0] * (len(lead) + 1) + [more]) for x in (packed, dpacked)]
        dq = householder_product.jvp((whole, factors), (dwhole, dfactors))[1]
        dr = _padded(dr, [0] * len(lead) + [more, 0])
    return outs, [dq, dr, ZERO][: len(outs)]


def _hlo(b: Any, a: Any, *, pivoting: bool, full_matrices: bool) -> Any:
    *lead, m, n = a.shape
    small = min(m, n)
    k = m if full_matrices else small
    outs = b.outs
    if 0 in a.shape:
        unit = b.broadcast_in_dim(
            b.constant(np.eye(m, k, dtype=a.dtype)), outs[0].shape, (len(lead), len(lead) + 1)
        )
        rest = [b.full(outs[1].shape, 0, a.dtype)]
        if pivoting:
            rest.append(b.iota(outs[2].shape, INT32, len(lead)))
        return [unit, *rest]
    tau_aval = Aval((*lead, small), a.dtype)
    if pivoting:
        free = b.full((*lead, n), 0, INT32)
        found = b.lapack(
            "geqp3", [a, free], [a.aval, free.aval, tau_aval], aliases={0: 0, 1: 1}
        )
        packed, order, tau = found
    else:
        packed, tau = b.lapack("geqrf", [a], [a.aval, tau_aval], aliases={0: 0})
    zero = b.constant(0, a.dtype)
    none = (0, 0, 0)
    r = b.pad(packed, zero, [none] * len(lead) + [(0, k - m, 0), none])
    columns = b.pad(packed, zero, [none] * len(lead) + [none, (0, k - n, 0)])
    q = b.lapack("orgqr", [columns, tau], [columns.aval], aliases={0: 0})[0]
    results = [q, hlo_triangle(b, r, lower=False)]
    if pivoting:
        results.append(b.subtract(order, b.full_like(order, 1)))
    return results


def _kernel(k: Any, a: Any, *, pivoting: bool, full_matrices: bool) -> Any:
    if pivoting:
        where = address("geqp3", a.dtype)
        if not where:
            raise Unsupported("qr with pivoting without LAPACK")
        return k.pivoted_qr(a, full_matrices, address=where)
    return k.qr(a, full_matrices)


qr = Op(
    name="qr",
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


# householder_product: the columns that reflections, packed as geqrf leaves them, make.


@weak_together
def _product_type(a: Aval, tau: Aval) -> Aval:
    check_stacks("householder_product", (a, 2), (tau, 1))
    *lead, m, n = a.shape
    if m < n:
        raise ValueError(
            f"[householder_product] expected at least as many rows as columns, got shape {a.shape}."
        )
    if tau.shape[:-1] != tuple(lead) or tau.shape[-1] > n:
        raise ValueError(
            f"[householder_product] expected taus of the leading dimensions of a and at most {n} "
            f"of them, got shapes {a.shape} and {tau.shape}."
        )
    check_dtypes("householder_product", a, tau)
    return Aval(a.shape, a.dtype)


def _product_impl(a: Any, tau: Any) -> Any:
    if not a.size:
        return np.zeros(a.shape, a.dtype)
    m, n = a.shape[-2:]
    x, k, room = by_columns(a), tau.shape[-1], _BLOCK * n
    tau = np.ascontiguousarray(tau).reshape(len(x), k)
    on_stack("orgqr", a.dtype, len(x), m, n, k, x, m, tau, (room * a.itemsize,), room)
    return x.swapaxes(-1, -2).reshape(a.shape)


def _product_hlo(b: Any, a: Any, tau: Any) -> Any:
    if 0 in a.shape:
        return a
    return b.lapack("orgqr", [a, tau], [a.aval], aliases={0: 0})[0]


def _reflections(a: Any, k: int) -> Any:
    """V: the vectors of k packed reflections, ones on the diagonal and zeros above."""
    rank = aval_of(a).ndim
    below = lower_part(part(a, 0, k, rank - 1), -1)
    return add(below, _unit(aval_of(below).shape, aval_of(a).dtype))


def _unit(shape: tuple[int, ...], dtype: Any) -> Any:
    """The first columns of the identity."""
    rows, columns = shape[-2:]
    square = identity((*shape[:-2], rows, rows), dtype)
    return part(square, 0, columns, len(shape) - 1)


def _divided(x: Any, upper: Any, unit: bool) -> Any:
    """x U⁻¹."""
    return triangular_solve(
        upper, x, left_side=False, lower=False, transpose_a=False, conjugate_a=False,
        unit_diagonal=unit,
    )  # fmt: skip


def _product_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (a, tau), (ta, ttau) = primals, tangents
    out = householder_product(a, tau)
    n, k = aval_of(a).shape[-1], aval_of(tau).shape[-1]
    if 0 in aval_of(a).shape or k == 0:
        return out, ZERO
    # The product is E - V W with W = T V₁ᴴ, E the unit columns, V₁ the first n rows of V and
    # T = D M⁻¹, M = 1 + G D, D = diag(tau), G what is above the diagonal of VᴴV.
    rank, dtype = aval_of(a).ndim, aval_of(a).dtype
    v, d = _reflections(a, k), diagonal_matrix(tau)
    first = adjoint(part(v, 0, n, rank - 2))
    g = upper_part(matmul(adjoint(v), v), 1)
    m = add(identity(aval_of(d).shape, dtype), matmul(g, d))
    t = _divided(d, m, unit=True)
    move: Any = None
    dm: Any = None
    dd = None if ttau is ZERO else diagonal_matrix(ttau)
    if ta is not ZERO:
        dv = lower_part(part(ta, 0, k, rank - 1), -1)
        half = matmul(adjoint(dv), v)
        dm = matmul(upper_part(add(half, adjoint(half)), 1), d)
        move = matmul(t, adjoint(part(dv, 0, n, rank - 2)))
    if dd is not None:
        dm = matmul(g, dd) if dm is None else add(dm, matmul(g, dd))
    change = neg(matmul(t, dm))
    dt = _divided(change if dd is None else add(dd, change), m, unit=True)
    dw = matmul(dt, first)
    dw = dw if move is None else add(dw, move)
    dq = matmul(v, dw)
    if ta is not ZERO:
        dq = add(dq, matmul(dv, matmul(t, first)))
    return out, neg(dq)


householder_product = Op(
    name="householder_product",
    kind=LINALG,
    type=_product_type,
    impl=_product_impl,
    jvp=_product_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_product_hlo,
    kernel=lambda k, a, tau: k.householder_product(a, tau),
)


# geqrf: the packed form, R above and reflections below the diagonal, with their factors.


@weak_together
def _geqrf_type(a: Aval) -> tuple[Aval, Aval]:
    lead, m, n = check_matrix("geqrf", a)
    return Aval(a.shape, a.dtype), Aval((*lead, min(m, n)), a.dtype)


def _geqrf_impl(a: Any) -> Any:
    *lead, m, n = a.shape
    outs = [(a.shape, a.dtype), ((*lead, min(m, n)), a.dtype)]
    if not a.size:
        return [np.zeros(shape, dtype) for shape, dtype in outs]
    x, room = by_columns(a), _BLOCK * n
    tau = np.empty(outs[1][0], a.dtype)
    rows = tau.reshape(len(x), -1)
    on_stack("geqrf", a.dtype, len(x), m, n, x, m, rows, (room * a.itemsize,), room)
    return x.swapaxes(-1, -2).reshape(a.shape), tau


def _geqrf_hlo(b: Any, a: Any) -> Any:
    packed, tau = b.outs
    if 0 in a.shape:
        return [a, b.full(tau.shape, 0, tau.dtype)]
    return b.lapack("geqrf", [a], [packed, tau], aliases={0: 0})


def _geqrf_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (a,), (ta,) = primals, tangents
    packed, tau = outs = geqrf(a)
    *lead, m, n = aval_of(a).shape
    if 0 in aval_of(a).shape:
        return outs, [ZERO, ZERO]
    (q, _), (dq, dr) = qr.jvp((a,), (ta,), pivoting=False, full_matrices=False)
    below, dtau = reflections_jvp(packed, q, dq)
    above = _padded(dr, [0] * len(lead) + [m - min(m, n), 0])
    return outs, [above if below is ZERO else add(above, below), dtau]


def reflections_jvp(packed: Any, q: Any, dq: Any) -> tuple[Any, Any]:
    """Tangents of packed reflections, 0 on and above the diagonal, and of their factors; or ZERO.

    dq is the tangent of q, the unitary columns that the reflections make.
    """
    *lead, m, n = aval_of(packed).shape
    dtype, rank = aval_of(packed).dtype, len(lead) + 2
    # E - Q = V W, and W is upper triangular: the factors of lu without pivoting. The last
    # reflection of a real square matrix is none, and stays so.
    k = min(m, n) - (m <= n and dtype.kind != "c")
    if not k:
        return ZERO, ZERO
    v = _reflections(packed, k)
    top = part(v, 0, k, rank - 2)
    b = part(sub(_unit(aval_of(q).shape, dtype), q), 0, k, rank - 1)
    db = neg(part(dq, 0, k, rank - 1))
    w = _solved(top, part(b, 0, k, rank - 2))
    mixed = _divided(_solved(top, part(db, 0, k, rank - 2)), w, unit=False)
    dw = matmul(upper_part(mixed), w)
    dv = lower_part(_divided(sub(db, matmul(v, dw)), w, unit=False), -1)
    # T = W V₁⁻ᴴ has the factors on its diagonal.
    dtop = adjoint(part(dv, 0, k, rank - 2))
    t = _divided(w, adjoint(top), unit=True)
    dt = _divided(sub(dw, matmul(t, dtop)), adjoint(top), unit=True)
    last, right = [0] * len(lead), min(m, n) - k
    return _padded(dv, [*last, 0, n - k]), _padded(diagonal(dt), [*last, right])


def _solved(lower: Any, x: Any) -> Any:
    """L⁻¹ x with a unit diagonal."""
    return triangular_solve(
        lower, x, left_side=True, lower=True, transpose_a=False, conjugate_a=False,
        unit_diagonal=True,
    )  # fmt: skip


def _padded(x: Any, high: Sequence[int]) -> Any:
    """x with zeros behind it."""
    none = literal(0, aval_of(x).dtype, False)
    return pad(x, none, padding_config=tuple([(0, h, 0) for h in high]))


geqrf = Op(
    name="geqrf",
    kind=LINALG,
    type=_geqrf_type,
    impl=_geqrf_impl,
    jvp=_geqrf_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_geqrf_hlo,
    kernel=lambda k, a: k.geqrf(a),
    multiple=True,
)
