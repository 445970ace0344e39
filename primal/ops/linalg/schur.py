"""schur: a = Q T Qᴴ with unitary Q and upper triangular T.

T of a real matrix is real, and only triangular up to blocks of two rows on its diagonal, [[a, b],
[c, a]] with b·c < 0, one for each pair of complex eigenvalues: LAPACK's gees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of
from primal.ops.choose import as_dtype, select_n
from primal.ops.elementwise import add, complex, div, eq, mul, ne, neg, real, sqrt, sub
from primal.ops.linalg._lapack import address, by_columns, on_stack
from primal.ops.linalg.common import (
    INT32,
    adjoint,
    batch_stacks,
    check_square,
    columns_of,
    complex_of,
    diagonal,
    diagonal_matrix,
    finite_only,
    hlo_finite,
    hlo_or_nan,
    identity,
    lower_part,
    matmul,
    on_diagonal,
    poison,
    rows_of,
    transposed,
    unless_converged,
    upper_part,
    weak_together,
    zeros,
)
from primal.ops.linalg.eig import eig
from primal.ops.linalg.lu import solve
from primal.ops.spread import reduce_sum
from primal.ops.types import NOT_LINEAR


@weak_together
def _type(a: Aval, *, compute_schur_vectors: bool) -> tuple[Aval, ...]:
    check_square("schur", a)
    whole = Aval(a.shape, a.dtype)
    return (whole, whole) if compute_schur_vectors else (whole,)


def _impl(a: Any, *, compute_schur_vectors: bool) -> Any:
    outs = [(a.shape, a.dtype)] * (2 if compute_schur_vectors else 1)
    if not a.size:
        return [np.zeros(shape, dtype) for shape, dtype in outs]
    a, bad = finite_only(a)
    n, size = a.shape[-1], a.dtype.itemsize
    t = by_columns(a)
    q: Any = np.empty_like(t) if compute_schur_vectors else (size,)
    work = _room(n)
    # Where eigenvalues are not sorted, no function is asked which come first.
    select, found, sorted_ = (8,), (4,), (4 * n,)
    row, room = (n * size,), (work * size,)
    values, more = ([row], [row]) if a.dtype.kind == "c" else ([row, row], [])
    info = on_stack(
        "gees", a.dtype, len(t), "V" if compute_schur_vectors else "N", "N", select, n, t, n,
        found, *values, q, n, room, work, *more, sorted_,
    )  # fmt: skip
    results = [x.swapaxes(-1, -2).reshape(a.shape) for x in (t, q)[: len(outs)]]
    return poison(poison(results, unless_converged(info, a)), bad)


def _room(n: int) -> int:
    """Elements of workspace: enough for reflections in blocks of 32 and their product."""
    return 40 * n


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, compute_schur_vectors: bool) -> Any:
    """With X = Qᴴ dQ anti-Hermitian, dT = Qᴴ da Q + T X - X T has no part below the blocks.

    That part of the equation has the strictly lower part of X alone in it, and may be read modulo
    upper (block) triangular matrices: with T = V D V⁻¹, V upper (block) triangular, it says
    D Y - Y D = -V⁻¹ (Qᴴ da Q) V for Y = V⁻¹ X V, one division per element. Eigenvalues must
    differ; for complex T the phases of Q's columns stay as they are.
    """
    (a,), (da,) = primals, tangents
    t, q = schur(a, compute_schur_vectors=True)
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    if 0 in shape:
        outs = [t, q] if compute_schur_vectors else [t]
        return outs, [ZERO] * len(outs)
    wide = complex_of(dtype)
    moved = matmul(adjoint(q), matmul(da, q))
    inside = _inside(t) if dtype.kind != "c" else None
    turn = None if inside is None else _turn(t, inside)
    triangular = t
    if turn is not None:
        triangular = upper_part(matmul(adjoint(turn), matmul(as_dtype(t, wide), turn)))
    # LAPACK leaves the eigenvalues of a triangular matrix in the order of its diagonal.
    w, v = eig(triangular, compute_left_eigenvectors=False, compute_right_eigenvectors=True)
    v = v if turn is None else matmul(turn, v)
    right = solve(v, matmul(as_dtype(moved, wide), v), transpose_a=False)
    gaps = sub(rows_of(w, shape), columns_of(w, shape))
    gaps = select_n(on_diagonal(shape), gaps, identity(shape, wide))
    y = _below(div(right, gaps), inside)
    x = matmul(v, transposed(solve(v, transposed(y), transpose_a=True)))
    x = _below(real(x) if inside is not None else x, inside)
    x = sub(x, adjoint(x))
    if inside is not None:
        x = add(x, _rotations(t, add(moved, commutator(t, x)), inside))
    dt = add(moved, commutator(t, x))
    kept = upper_part(dt)  # What rounding leaves below is not there.
    if inside is not None:
        kept = add(kept, select_n(inside, zeros(shape, dtype), dt))
    return ([t, q], [kept, matmul(q, x)]) if compute_schur_vectors else ([t], [kept])


def commutator(t: Any, x: Any) -> Any:
    """T X - X T."""
    return sub(matmul(t, x), matmul(x, t))


def _inside(t: Any) -> Any:
    """True where a block of two rows has its element below the diagonal."""
    shape, dtype = aval_of(t).shape, aval_of(t).dtype
    return ne(lower_part(t, -1), zeros(shape, dtype))


def _below(x: Any, inside: Any) -> Any:
    """The elements below the diagonal and outside of blocks."""
    x = lower_part(x, -1)
    return x if inside is None else select_n(inside, x, zeros(aval_of(x).shape, aval_of(x).dtype))


def _turn(t: Any, inside: Any) -> Any:
    """The unitary G, [[b, iω], [iω, b]] / r on each block, that makes Gᴴ T G triangular.

    (b, iω) is the block's eigenvector of a + iω, ω² = -b·c.
    """
    shape, dtype = aval_of(t).shape, aval_of(t).dtype
    last = len(shape) - 1
    none = zeros(shape, dtype)
    lower, flipped = select_n(inside, none, t), select_n(inside, none, transposed(t))
    one = add(none, 1.0)
    omega = select_n(inside, none, sqrt(select_n(inside, one, neg(mul(lower, flipped)))))
    omega, upper = add(omega, transposed(omega)), add(flipped, transposed(flipped))
    b = reduce_sum(upper, axes=(last,))
    empty = zeros(aval_of(b).shape, dtype)
    single = eq(b, empty)
    b = select_n(single, b, add(empty, 1.0))
    size = sqrt(add(mul(b, b), reduce_sum(mul(omega, omega), axes=(last,))))
    return complex(diagonal_matrix(div(b, size)), div(omega, columns_of(size, shape)))


def _rotations(t: Any, moved: Any, inside: Any) -> Any:
    """What rotates blocks so that the elements on their diagonals stay equal."""
    shape, dtype = aval_of(t).shape, aval_of(t).dtype
    middle = diagonal(moved)
    apart = sub(columns_of(middle, shape), rows_of(middle, shape))
    sums = mul(add(t, transposed(t)), 2.0)
    angle = div(apart, select_n(inside, add(zeros(shape, dtype), 1.0), sums))
    angle = select_n(inside, zeros(shape, dtype), angle)
    return sub(angle, transposed(angle))


def _hlo(b: Any, a: Any, *, compute_schur_vectors: bool) -> Any:
    outs = b.outs
    if 0 in a.shape:
        return [b.full(o.shape, 0, o.dtype) for o in outs]
    a, fine = hlo_finite(b, a)
    lead, n = a.shape[:-2], a.shape[-1]
    values = Aval((*lead, n), a.dtype)
    info = Aval(lead, INT32)
    ends = [values] if a.dtype.kind == "c" else [values, values]
    t, q, *_, failed = b.lapack(
        "gees",
        [a],
        [a.aval, a.aval, *ends, info, info],
        attributes={"mode": "V" if compute_schur_vectors else "N", "sort": "N"},
        aliases={0: 0},
    )
    return hlo_or_nan(b, failed, fine, [t, q][: len(outs)])


def _kernel(k: Any, a: Any, *, compute_schur_vectors: bool) -> Any:
    if not a.aval.size:
        raise Unsupported(f"schur of {a.shape}")
    outs = _type(a.aval, compute_schur_vectors=compute_schur_vectors)
    return k.schur(a, outs, address=address("gees", a.dtype), room=_room(a.shape[-1]))


schur = Op(
    name="schur",
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
