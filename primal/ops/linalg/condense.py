"""hessenberg and tridiagonal: similar matrices of narrow form, packed with the reflections.

aᴴ's columns are cleared by reflections, whose vectors stay where the zeros would be and whose
factors are `taus`: LAPACK's gehrd, and sytrd or hetrd of Hermitian matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import LINALG, Never, Op, Word, by_kind, library
from primal.ops.linalg._lapack import lapack
from primal.ops.linalg.common import (
    INT32,
    batch_stacks,
    check_square,
    each_matrix,
    finite_only,
    hlo_finite,
    hlo_or_nan,
    poison,
    real_of,
)
from primal.ops.types import NOT_LINEAR

# hessenberg: zeros below the first subdiagonal.


def _hessenberg_type(a: Aval) -> tuple[Aval, Aval]:
    lead, n = check_square("hessenberg", a)
    return Aval(a.shape, a.dtype), Aval((*lead, max(n - 1, 0)), a.dtype)


def _hessenberg_impl(a: Any) -> Any:
    *lead, n, _ = a.shape
    outs = [(a.shape, a.dtype), ((*lead, max(n - 1, 0)), a.dtype)]
    if not a.size or n == 1:
        return [np.array(a), np.zeros(*outs[1])]
    a, bad = finite_only(a)
    gehrd = lapack("gehrd", a.dtype)
    return poison(each_matrix(lambda x: gehrd(x)[:2], outs, a), bad)


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


hessenberg = Op(
    name="hessenberg",
    kind=LINALG,
    type=_hessenberg_type,
    impl=_hessenberg_impl,
    jvp=Never(
        "[hessenberg] expected no differentiation, got tangents: the result packs reflections with "
        "the reduced matrix. Differentiate what it serves for, schur or eig."
    ),
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_hessenberg_hlo,
    kernel=library,
    multiple=True,
)


# tridiagonal: of Hermitian matrices, of which one triangle is read.


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
    reduce_ = lapack(name, a.dtype)
    return poison(each_matrix(lambda x: reduce_(x, lower=lower)[:4], outs, a), bad)


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


tridiagonal = Op(
    name="tridiagonal",
    kind=LINALG,
    type=_tridiagonal_type,
    impl=_tridiagonal_impl,
    jvp=Never(
        "[tridiagonal] expected no differentiation, got tangents: the result packs reflections "
        "with the reduced matrix. Differentiate eigh, which it serves for."
    ),
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_tridiagonal_hlo,
    kernel=library,
    multiple=True,
)
