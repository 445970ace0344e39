"""hessenberg and tridiagonal: similar matrices of narrow form, packed with the reflections.

aᴴ's columns are cleared by reflections, whose vectors stay where the zeros would be and whose
factors are `taus`: LAPACK's gehrd, and sytrd or hetrd of Hermitian matrices.

Both are functions of a, smooth where no element beside the diagonal of the narrow form is zero:
there the first column of Q, which is that of 1, settles all others up to signs.

They are here rather than in `ops`, as their derivatives are loops: one column settles the next.
Written out they were programs of n parts, each of which took n² (256 x 256: 295 ms a gradient).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.control.scan import scan
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.choose import as_dtype, select_n
from primal.ops.elementwise import add, complex, div, eq, gt, imag, mul, real, sub
from primal.ops.linalg._lapack import address, by_columns, on_stack, workspace
from primal.ops.linalg.common import (
    INT32,
    adjoint,
    batch_stacks,
    check_square,
    diagonal,
    diagonal_matrix,
    finite_only,
    hermitian_of_triangle,
    hlo_finite,
    hlo_or_nan,
    identity,
    matmul,
    poison,
    real_of,
    transposed,
    upper_part,
    weak_together,
    zeros,
)
from primal.ops.linalg.qr import householder_product, reflections_jvp
from primal.ops.linalg.schur import commutator
from primal.ops.reduce import part
from primal.ops.shape import iota, moveaxis, pad, reshape, rev
from primal.ops.spread import reduce_sum
from primal.ops.types import NOT_LINEAR
from primal.transforms.stage import stage

# What derivatives share: a = Q H Qᴴ with the first column of Q fixed.


def _placed(x: Any, shape: tuple[int, ...], row: int, column: int) -> Any:
    """A matrix of that shape with x from (row, column) on, zeros elsewhere."""
    *lead, m, n = aval_of(x).shape
    low = [0] * len(lead) + [row, column]
    high = [0] * len(lead) + [shape[-2] - m - row, shape[-1] - n - column]
    none = literal(0, aval_of(x).dtype, False)
    return pad(x, none, padding_config=tuple([(a, b, 0) for a, b in zip(low, high, strict=True)]))


def _beside(x: Any) -> Any:
    """x without its first row and its last column: what is below the diagonal is on it."""
    n, rank = aval_of(x).shape[-1], aval_of(x).ndim
    return part(part(x, 1, n, rank - 2), 0, n - 1, rank - 1)


@functools.cache
def _turn(h: Aval, x: Aval, column: Aval, right: Aval) -> ClosedJaxpr:
    """The step of `_similar_jvp`'s loop, of H, the X so far, column k of H and of M, and k.

    What is read and written of X is a product with a unit vector: the transpose of a slice would be
    a matrix of zeros around it.
    """
    shape, dtype = x.shape, x.dtype
    last = len(shape) - 1
    # Each as a matrix of one column.
    tall = (*shape[:-1], 1)

    def turn(h: Any, x: Any, column: Any, right: Any, k: Any) -> list[Any]:
        after = add(k, literal(1, INT32, False))
        column, right = reshape(column, shape=tall), reshape(right, shape=tall)
        rows = iota(dtype=INT32, shape=tall, dimension=last - 1)
        none = zeros(tall, dtype)

        def unit(place: Any) -> Any:
            return as_dtype(eq(rows, place), dtype)

        def at(y: Any) -> Any:
            """What column k of H ends with."""
            return reduce_sum(mul(y, unit(after)), axes=(last - 1,))

        rest = sub(add(right, matmul(h, matmul(x, unit(k)))), matmul(x, column))
        rest = div(rest, reshape(at(column), shape=(*shape[:-2], 1, 1)))
        below = select_n(gt(rows, after), none, rest)
        x = sub(x, mul(unit(after), adjoint(below)))
        if dtype.kind == "c":
            angle = imag(select_n(eq(rows, after), none, rest))
            below = add(below, complex(zeros(tall, real_of(dtype)), angle))
        return [add(x, mul(below, transposed(unit(after))))]

    return stage(turn, [h, x, column, right, Aval((), INT32)], "similar")


def _similar_jvp(h: Any, packed: Any, tau: Any, ta: Any) -> tuple[Any, Any, Any]:
    """(dH, the tangent of the packed reflections, that of their factors) for the tangent of a.

    With X = Qᴴ dQ, anti-Hermitian with nothing in its first row and column, dH = M + H X - X H for
    M = Qᴴ da Q. Column k of H ends with h = H[k+1, k], real: so what the right side has below h
    and the imaginary part it has there must be X[:, k+1] h. One column of X settles the next.
    """
    shape, dtype = aval_of(h).shape, aval_of(h).dtype
    n, rank = shape[-1], len(shape)
    rows, columns = rank - 2, rank - 1
    inner = _beside(packed)
    q = householder_product(inner, tau)
    whole = add(_placed(q, shape, 1, 1), _placed(identity((*shape[:-2], 1, 1), dtype), shape, 0, 0))
    moved = matmul(adjoint(whole), matmul(ta, whole))
    x = zeros(shape, dtype)
    steps = n - 1 if dtype.kind == "c" else n - 2
    if steps > 0:
        xs = [moveaxis(part(y, 0, steps, columns), columns, 0) for y in (h, moved)]
        one = [aval_of(y).update(shape=aval_of(y).shape[1:]) for y in xs]
        (x,) = scan(
            h, x, *xs, iota(dtype=INT32, shape=(steps,), dimension=0),
            jaxpr=_turn(aval_of(h), aval_of(x), *one), length=steps, num_consts=1, num_carry=1,
            reverse=False, unroll=1,
        )  # fmt: skip
    dq = matmul(q, part(part(x, 1, n, rows), 1, n, columns))
    below, dtau = reflections_jvp(inner, q, dq)
    below = ZERO if below is ZERO else _placed(below, shape, 1, 0)
    return add(moved, commutator(h, x)), below, dtau


# hessenberg: zeros below the first subdiagonal.


@weak_together
def _hessenberg_type(a: Aval) -> tuple[Aval, Aval]:
    lead, n = check_square("hessenberg", a)
    return Aval(a.shape, a.dtype), Aval((*lead, max(n - 1, 0)), a.dtype)


def _hessenberg_impl(a: Any) -> Any:
    *lead, n, _ = a.shape
    outs = [(a.shape, a.dtype), ((*lead, max(n - 1, 0)), a.dtype)]
    if not a.size or n == 1:
        return [np.array(a), np.zeros(*outs[1])]
    a, bad = finite_only(a)
    packed, tau = by_columns(a), np.empty(*outs[1])
    work = workspace("gehrd_lwork", a.dtype, n)
    given = n, 1, n, packed, n, tau.reshape(len(packed), n - 1), (work * a.dtype.itemsize,), work
    on_stack("gehrd", a.dtype, len(packed), *given)
    return poison([packed.swapaxes(-1, -2).reshape(a.shape), tau], bad)


def _hessenberg_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (a,), (ta,) = primals, tangents
    packed, tau = outs = hessenberg(a)
    if 0 in aval_of(a).shape or aval_of(a).shape[-1] == 1:
        return outs, [ta, ZERO]
    dh, below, dtau = _similar_jvp(upper_part(packed, -1), packed, tau, ta)
    dh = upper_part(dh, -1)
    return outs, [dh if below is ZERO else add(dh, below), dtau]


def _hessenberg_hlo(b: Any, a: Any) -> Any:
    packed, tau = b.outs
    n = a.shape[-1]
    if 0 in a.shape or n == 1:
        return [a, b.full(tau.shape, 0, tau.dtype)]
    a, fine = hlo_finite(b, a)
    *found, info = b.lapack(
        "gehrd",
        [a],
        [packed, tau, Aval(a.shape[:-2], INT32)],
        attributes={"low": np.int32(1), "high": np.int32(n)},
        aliases={0: 0},
    )
    return hlo_or_nan(b, info, fine, found)


def _hessenberg_kernel(k: Any, a: Any) -> Any:
    if not a.aval.size or a.shape[-1] == 1:
        raise Unsupported(f"hessenberg of {a.shape}")
    room = workspace("gehrd_lwork", a.dtype, a.shape[-1])
    return k.hessenberg(a, _hessenberg_type(a.aval), address=address("gehrd", a.dtype), room=room)


hessenberg = Op(
    name="hessenberg",
    kind=LINALG,
    type=_hessenberg_type,
    impl=_hessenberg_impl,
    jvp=_hessenberg_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_hessenberg_hlo,
    kernel=_hessenberg_kernel,
    multiple=True,
)


# tridiagonal: of Hermitian matrices, of which one triangle is read.


@weak_together
def _tridiagonal_type(a: Aval, *, lower: bool) -> tuple[Aval, ...]:
    lead, n = check_square("tridiagonal", a)
    if n == 0:
        raise ValueError(
            f"[tridiagonal] expected a square matrix of at least one row, got shape {a.shape}."
        )
    parts = real_of(a.dtype)
    return (
        Aval(a.shape, a.dtype),
        Aval((*lead, n), parts),
        Aval((*lead, n - 1), parts),
        Aval((*lead, n - 1), a.dtype),
    )


def _tridiagonal_impl(a: Any, *, lower: bool) -> Any:
    *lead, n, _ = a.shape
    parts = real_of(a.dtype)
    outs = [(a.shape, a.dtype), ((*lead, n), parts), ((*lead, n - 1), parts),
            ((*lead, n - 1), a.dtype)]  # fmt: skip
    if not a.size or n == 1:
        return [np.array(a), a[..., 0].real.astype(parts), *[np.zeros(*o) for o in outs[2:]]]
    a, bad = finite_only(a)
    name = "hetrd" if a.dtype.kind == "c" else "sytrd"
    packed, *found = by_columns(a), *[np.empty(*o) for o in outs[1:]]
    work = workspace(f"{name}_lwork", a.dtype, n)
    on_stack(
        name, a.dtype, len(packed), "L" if lower else "U", n, packed, n,
        *[x.reshape(len(packed), -1) for x in found], (work * a.dtype.itemsize,), work,
    )  # fmt: skip
    return poison([packed.swapaxes(-1, -2).reshape(a.shape), *found], bad)


def _tridiagonal_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, lower: bool) -> Any:
    (a,), (ta,) = primals, tangents
    packed, d, e, tau = outs = tridiagonal(a, lower=lower)
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    if 0 in shape or shape[-1] == 1:
        dd = diagonal(ta)
        return outs, [ta, real(dd) if dtype.kind == "c" else dd, ZERO, ZERO]
    last = len(shape) - 1
    # From the other triangle the last column of Q is fixed: with rows and columns in reverse
    # that is the first, and the triangle the lower one.
    turned: Any = (lambda x: x) if lower else (lambda x: rev(x, dimensions=(last - 1, last)))
    flipped: Any = (lambda x: x) if lower else (lambda x: rev(x, dimensions=(last - 1,)))
    moved, kept = turned(ta), turned(packed)
    beside = _placed(diagonal_matrix(as_dtype(flipped(e), dtype)), shape, 1, 0)
    t = add(diagonal_matrix(as_dtype(flipped(d), dtype)), add(beside, adjoint(beside)))
    dt, below, dtau = _similar_jvp(t, kept, flipped(tau), hermitian_of_triangle(moved))
    dt = real(dt) if dtype.kind == "c" else dt
    dd, de = diagonal(dt), diagonal(_beside(dt))
    narrow = add(diagonal_matrix(dd), _placed(diagonal_matrix(de), shape, 1, 0))
    # The other triangle of a stays in the packed result as it was.
    dpacked = add(upper_part(moved, 1), as_dtype(narrow, dtype))
    if below is ZERO:
        return outs, [turned(dpacked), flipped(dd), flipped(de), ZERO]
    return outs, [turned(add(dpacked, below)), flipped(dd), flipped(de), flipped(dtau)]


def _tridiagonal_hlo(b: Any, a: Any, *, lower: bool) -> Any:
    outs = b.outs
    if 0 in a.shape or a.shape[-1] == 1:
        middle = b.real(a) if a.dtype.kind == "c" else a
        return [a, b.reshape(middle, outs[1].shape),
                *[b.full(o.shape, 0, o.dtype) for o in outs[2:]]]  # fmt: skip
    a, fine = hlo_finite(b, a)
    *found, info = b.lapack(
        "sytrd",
        [a],
        [*outs, Aval(a.shape[:-2], INT32)],
        attributes={"uplo": "L" if lower else "U"},
        aliases={0: 0},
    )
    return hlo_or_nan(b, info, fine, found)


def _tridiagonal_kernel(k: Any, a: Any, *, lower: bool) -> Any:
    if not a.aval.size or a.shape[-1] == 1:
        raise Unsupported(f"tridiagonal of {a.shape}")
    name = "hetrd" if a.dtype.kind == "c" else "sytrd"
    return k.tridiagonal(
        a, _tridiagonal_type(a.aval, lower=lower), lower=lower, address=address(name, a.dtype),
        room=workspace(f"{name}_lwork", a.dtype, a.shape[-1]),
    )  # fmt: skip


tridiagonal = Op(
    name="tridiagonal",
    kind=LINALG,
    type=_tridiagonal_type,
    impl=_tridiagonal_impl,
    jvp=_tridiagonal_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_tridiagonal_hlo,
    kernel=_tridiagonal_kernel,
    multiple=True,
)
