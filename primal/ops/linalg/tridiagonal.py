"""tridiagonal_solve: x with A x = b, A given by its three diagonals.

dl[i] = A[i, i-1] and du[i] = A[i, i+1]; dl[0] and du[n-1] are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import mul, neg
from primal.ops.linalg._lapack import by_columns, on_stack
from primal.ops.linalg.common import (
    INT32,
    batch_stacks,
    check_dtypes,
    columns_of,
    hlo_or_nan,
    poison,
    unless_converged,
    weak_together,
)
from primal.ops.reduce import part
from primal.ops.shape import pad
from primal.ops.spread import add_any


@weak_together
def _type(dl: Aval, d: Aval, du: Aval, b: Aval, *, perturb_singular: bool) -> Aval:
    if b.ndim < 2:
        raise TypeError(
            f"[tridiagonal_solve] expected b of at least two dimensions, got shape {b.shape}: it "
            "must have rank at least 2. Give a vector a last dimension of 1."
        )
    check_dtypes("tridiagonal_solve", dl, d, du, b)
    if not dl.shape == d.shape == du.shape:
        raise TypeError(
            "[tridiagonal_solve] expected three diagonals of one shape, got shapes "
            f"{dl.shape}, {d.shape} and {du.shape}: tridiagonal_solve requires that all diagonal "
            "arguments have the same shape. The first element of dl and the last of du are not "
            "read."
        )
    if d.shape != b.shape[:-1]:
        raise TypeError(
            f"[tridiagonal_solve] expected b with {d.shape[-1] if d.shape else 'as many'} rows "
            f"and the leading dimensions of d, got shapes {d.shape} and {b.shape}: the leading "
            "ndim-1 dimensions of b equal the dimensions of the diagonal arguments."
        )
    return Aval(b.shape, b.dtype)


def _impl(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    if not b.size:
        return np.zeros(b.shape, b.dtype)
    if perturb_singular:
        return _perturbed(dl, d, du, b)
    n, columns = b.shape[-2:]
    if n == 1:
        return np.where(d[..., None] == 0, np.nan, b / d[..., None]).astype(b.dtype)
    # gtsv overwrites all of them.
    dl, d, du = [np.array(x, order="C").reshape(-1, n) for x in (dl, d, du)]
    x = by_columns(b)
    info = on_stack(
        "gtsv", b.dtype, len(x), n, columns, np.ascontiguousarray(dl[:, 1:]), d, du, x, n
    )
    out = x.swapaxes(-1, -2).reshape(b.shape)
    return poison([out], unless_converged(info, b))[0]


def _perturbed(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Elimination with row exchanges in which pivots below eps·max|U| become that size."""
    n = d.shape[-1]
    x = b.copy()
    # Row i of U is (u0, u1, u2) at columns i, i+1, i+2.
    u0, u1, u2 = d.copy(), du.copy(), np.zeros_like(d)
    u1[..., -1] = 0
    for i in range(n - 1):
        low, diag, up = dl[..., i + 1], u0[..., i + 1].copy(), u1[..., i + 1].copy()
        a, c = u0[..., i].copy(), u1[..., i].copy()
        swap = np.abs(low) > np.abs(a)
        pivot = np.where(swap, low, a)
        factor = np.where(pivot == 0, 0, np.where(swap, a, low) / np.where(pivot == 0, 1, pivot))
        u0[..., i] = pivot
        u1[..., i] = np.where(swap, diag, c)
        u2[..., i] = np.where(swap, up, 0)
        u0[..., i + 1] = np.where(swap, c - factor * diag, diag - factor * c)
        u1[..., i + 1] = np.where(swap, -factor * up, up)
        s, f = swap[..., None], factor[..., None]
        here, there = x[..., i, :].copy(), x[..., i + 1, :].copy()
        x[..., i, :] = np.where(s, there, here)
        x[..., i + 1, :] = np.where(s, here - f * there, there - f * here)
    info = np.finfo(d.dtype)
    size = np.max(np.abs(np.stack([u0, u1, u2])), axis=(0, -1))
    least = np.maximum(info.eps * size, info.tiny)[..., None]
    turned = -least if d.dtype.kind != "c" else least
    u0 = np.where(np.abs(u0) < least, np.where(u0.real < 0, turned, least), u0)
    for i in range(n - 1, -1, -1):
        row = x[..., i, :]
        if i + 1 < n:
            row = row - u1[..., i, None] * x[..., i + 1, :]
        if i + 2 < n:
            row = row - u2[..., i, None] * x[..., i + 2, :]
        x[..., i, :] = row / u0[..., i, None]
    return x.astype(b.dtype, copy=False)


def _shifted(x: Any, by: int, axis: int) -> Any:
    """out[i] = x[i - by] along the axis, zeros where there is none."""
    aval = aval_of(x)
    n = aval.shape[axis]
    kept = part(x, 0, n - by, axis) if by > 0 else part(x, -by, n, axis)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (max(by, 0), max(-by, 0), 0)
    return pad(kept, literal(0, aval.dtype, False), padding_config=tuple(config))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, perturb_singular: bool) -> Any:
    dl, d, du, b = primals
    x = tridiagonal_solve(dl, d, du, b, perturb_singular=perturb_singular)
    shape = aval_of(x).shape
    if 0 in shape:
        return x, ZERO
    change = tangents[3]
    for t, by in zip(tangents[:3], (1, 0, -1), strict=True):
        if t is not ZERO:
            near = _shifted(x, by, len(shape) - 2) if by else x
            moved = neg(mul(columns_of(t, shape), near))
            change = moved if change is ZERO else add_any(change, moved)
    return x, tridiagonal_solve(dl, d, du, change, perturb_singular=perturb_singular)


def _transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    axis = aval_of(d).ndim - 1
    lower, upper = (_shifted(du, 1, axis), _shifted(dl, -1, axis)) if aval_of(d).size else (dl, du)
    return (
        None, None, None,
        tridiagonal_solve(lower, d, upper, ct, perturb_singular=perturb_singular),
    )  # fmt: skip


def _hlo(h: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    if 0 in b.shape:
        return b
    lead = d.shape[:-1]
    operands = [dl, d, du, b]
    if perturb_singular:
        return h.lapack("tridiagonal_solve_perturbed", operands, [b.aval], batch_dims=len(lead))[0]
    *_, x, info = h.lapack(
        "gtsv",
        operands,
        [*[o.aval for o in operands], Aval(lead, INT32)],
        aliases={0: 0, 1: 1, 2: 2, 3: 3},
        batch_dims=len(lead),
    )
    return hlo_or_nan(h, info, None, [x])[0]


def _kernel(k: Any, *operands: Any, perturb_singular: bool) -> Any:
    if perturb_singular:
        raise Unsupported("tridiagonal_solve that mends small pivots")
    return k.tridiagonal_solve(*operands)


tridiagonal_solve = Op(
    name="tridiagonal_solve",
    kind=LINALG,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=_transpose,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_hlo,
    kernel=_kernel,
)
