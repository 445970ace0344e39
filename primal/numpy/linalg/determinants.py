"""Determinants, whose derivatives are right for matrices of any rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primal.api.autodiff import jvp
from primal.api.control.custom import custom_jvp
from primal.api.control.loops import while_loop
from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.state import ambient, state
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.choosing import where
from primal.numpy.contraction import matmul
from primal.numpy.diagonals import diagonal
from primal.numpy.elementary import abs as absolute
from primal.numpy.elementary import log
from primal.numpy.indexing import getitem
from primal.numpy.joining import block
from primal.numpy.linalg.factors import matrix
from primal.numpy.linalg.solving import inv
from primal.numpy.promotion import ArrayLike, convert, to_shape
from primal.numpy.reductions import any as some
from primal.numpy.reductions import max as largest
from primal.numpy.reductions import min as least
from primal.numpy.reductions import prod
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import matrix_transpose
from primal.numpy.sorting import argsort
from primal.numpy.taking import take_along_axis
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.elementwise.convert import stop_gradient
from primal.ops.linalg.lu import lu, permuted_rows
from primal.ops.linalg.triangular import triangular_solve
from primal.runtime.array import ArrayImpl
from primal.transforms.linearize import Tape

LAST = 2
"""Rows that the elimination leaves over, whose determinant is written out.

With them every derivative of an order up to this is right for matrices of any rank.
"""


class SlogdetResult(NamedTuple):
    """The sign (or phase) of a determinant and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


def _factors(x: Any) -> tuple[Any, Any, Any]:
    """(packed LU factors, the permutation of rows, its parity as ±1 of x's dtype)."""
    packed, swaps, permutation = lu(x)
    own = shape_ops.iota(
        shape=swaps.aval.shape, dtype=swaps.aval.dtype, dimension=swaps.aval.ndim - 1
    )
    odd = total(ops.ne(swaps, own), -1) % 2
    return packed, permutation, _sign(odd, x.aval.dtype)


def _sign(odd: Any, dtype: Any) -> Any:
    return ops.sub(literal(1, dtype, True), convert(ops.add(odd, odd), dtype))


@custom_jvp
def _det(x: Any) -> Any:
    packed, _, parity = _factors(x)
    return ops.mul(prod(diagonal(packed, 0, -2, -1), -1), parity)


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    det, adjugate = _expanded(x)
    return det, total(matrix_transpose(adjugate) * t, (-2, -1))


@custom_jvp
def _expanded(x: Any) -> tuple[Any, Any]:
    """det x and its adjugate, adj x · x = det x · 1, by which d det x = tr(adj x dx).

    With P x Q = L U, and U = [[U1, B], [0, S]] whose last block S has two rows, adj x is
    ±Q U'⁻¹ diag(det S det U1, det U1 adj S) L⁻¹ P, where U' = [[U1, B], [0, 1]].
    """
    tape = state.trace
    if isinstance(tape, Tape) and isinstance(x, ArrayImpl):
        # Values under eager `grad`: nothing here is recorded, so that it runs as remembered.
        with ambient(tape.parent):
            return _expansion(x)
    return _expansion(x)


@remembered
def _expansion(x: Any) -> tuple[Any, Any]:
    n = x.aval.shape[-1]
    m = n - LAST
    packed, rows, back, sign = _eliminated(x)[:4]
    p, q, r = packed[..., m, m], packed[..., m, n - 1], packed[..., n - 1, n - 1]
    y = _triangle_solve(packed, _permuting(rows, x.dtype), lower=True, unit=True)
    # Products of pivots come last: subnormal numbers would be slow to solve with.
    size = ops.max(ops.max(absolute(p), absolute(q)), absolute(r))
    scale = where(size == 0, 1, size).astype(x.dtype)
    a, b, c = [(v / scale)[..., None, None] for v in (p, q, r)]
    row = np.arange(n)[:, None]
    z = where(row < m, a * c * scale[..., None, None] * y,
              where(row == m, c * y - b * y[..., n - 1 :, :], a * y))  # fmt: skip
    # Pivots that are 0 even so make the product of pivots 0.
    one = np.eye(n, dtype=bool)
    unit = ((row >= m) & (row.T >= m)) | (one & (packed == 0))
    upper = where(unit, one.astype(x.dtype), packed)
    w = _triangle_solve(upper, z, lower=False, unit=False)
    pivots = diagonal(packed, 0, -2, -1)
    factor = prod(pivots[..., :m], -1) * scale * sign
    return ops.mul(prod(pivots, -1), sign), factor[..., None, None] * permuted_rows(w, back)


@_expanded.defjvp
def _expanded_jvp(primals: Any, tangents: Any) -> Any:
    """By a form of the determinant that divides by nothing small: see `_blocks`."""
    (x,) = primals
    _, *arranged = _eliminated(stop_gradient(x))
    return _expanded(x), jvp(lambda x: _blocks(x, *arranged), primals, tangents)[1]


def _eliminated(x: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Packed factors of x with its columns in a safe order, with what was done to it.

    That is the order of rows, the places where columns went, the sign of both, and the first column
    that depends on those before it all the same, or the last.

    The elimination would divide by 0 there. Such columns go to the end, one by one; a matrix that
    still has one among the first then has a rank so small that second derivatives are 0. It is a
    loop that as a rule has no turn: vmap would run both arms of a choice.
    """
    n = x.aval.shape[-1]
    packed, rows, parity = _factors(x)
    back = shape_ops.iota(shape=rows.aval.shape, dtype=rows.dtype, dimension=rows.aval.ndim - 1)

    def unsafe(carry: Any) -> Any:
        return (carry[0] <= LAST) & some(carry[1] < n - 1)

    def moved(carry: Any) -> Any:
        turn, first, swaps, back, x, *_ = carry
        at, own = first[..., None], np.arange(n, dtype=np.int32)
        order = where(own == n - 1, at, own + (own >= at))
        x = take_along_axis(x, order[..., None, :], -1)
        packed, rows, parity = _factors(x)
        back = where(back == at, n - 1, back - (back > at))
        return turn + 1, _dependent(packed, x), swaps + n - 1 - first, back, x, packed, rows, parity

    first = _dependent(packed, x)
    begin = literal(0, np.dtype(np.int32), False), first, first * 0, back, x, packed, rows, parity
    _, first, swaps, back, _, packed, rows, parity = while_loop(unsafe, moved, begin)
    return packed, rows, back, parity * _sign(swaps % 2, x.dtype), first


def _places(permutation: Any) -> Any:
    """The inverse permutation."""
    return argsort(permutation, -1).astype(permutation.dtype)


def _permuting(permutation: Any, dtype: Any) -> Any:
    """P with (P x)[i] = x[permutation[i]]."""
    shape = (*permutation.aval.shape, permutation.aval.shape[-1])
    column = shape_ops.iota(shape=shape, dtype=permutation.dtype, dimension=len(shape) - 1)
    return (permutation[..., None] == column).astype(dtype)


def _dependent(packed: Any, x: Any) -> Any:
    """The first of the first block's columns that is one of those before it, or the last column.

    What the elimination leaves of it is noise beside what it was: graded matrices have small pivots
    too.
    """
    n = x.aval.shape[-1]
    m = n - LAST
    noise = n * finfo(x.dtype).eps * largest(absolute(x), -2)[..., :m]
    depends = absolute(diagonal(packed, 0, -2, -1)[..., :m]) <= noise
    return least(where(depends, np.arange(m, dtype=np.int32), np.int32(n - 1)), -1)


def _blocks(x: Any, rows: Any, back: Any, sign: Any, first: Any) -> tuple[Any, Any]:
    """det x and adj x by the blocks [[A, B], [C, D]] of x with its rows and columns reordered.

    det = sign · det A · det S, with S = D - C A⁻¹ B, which is written out. Where A is singular
    the rank is so small that second derivatives are 0; noise that is divided by noise is not.
    """
    n = x.aval.shape[-1]
    m = n - LAST
    b = take_along_axis(permuted_rows(x, rows), _places(back)[..., None, :], -1)
    singular = first < n - 1
    block_a = where(singular[..., None, None], np.eye(m, dtype=x.dtype), b[..., :m, :m])
    inverse, minor = _inverse(block_a)
    right = matmul(inverse, b[..., :m, m:])
    below = b[..., m:, :m]
    left = matmul(below, inverse)
    s = b[..., m:, m:] - matmul(below, right)
    p, q, u, v = s[..., :1, :1], s[..., :1, 1:], s[..., 1:, :1], s[..., 1:, 1:]
    det, adj = p * v - q * u, block([[v, -q], [-u, p]])
    factor = where(singular, 0, minor * sign)
    over = matmul(right, adj)
    parts = [[det * inverse + matmul(over, left), -over], [-matmul(adj, left), adj]]
    found = factor[..., None, None] * block(parts)
    found = take_along_axis(permuted_rows(found, back), _places(rows)[..., None, :], -1)
    return factor * det[..., 0, 0], found


@custom_jvp
def _inverse(a: Any) -> tuple[Any, Any]:
    """The inverse and the determinant."""
    packed, permutation, parity = _factors(a)
    y = _triangle_solve(packed, _permuting(permutation, a.dtype), lower=True, unit=True)
    det = prod(diagonal(packed, 0, -2, -1), -1) * parity
    return _triangle_solve(packed, y, lower=False, unit=False), det


@_inverse.defjvp
def _inverse_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (t,) = primals, tangents
    inverse, det = _inverse(a)
    moved = matmul(inverse, t)
    return (inverse, det), (-matmul(moved, inverse), det * total(diagonal(moved, 0, -2, -1), -1))


def _triangle_solve(a: Any, b: Any, lower: bool, unit: bool) -> Any:
    return triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=False, conjugate_a=False, unit_diagonal=unit
    )


@remembered_as(direct.det)
def det(a: ArrayLike) -> Array:
    """The determinant of square matrices.

    det a = Σ sign(σ) Π a[i, σ(i)] over permutations σ, by LU decomposition.

    >>> jnp.linalg.det(jnp.array([[1., 2.], [3., 4.]]))
    Array(-2., dtype=float32)
    """
    x = matrix("det", a, square=True)
    n = x.aval.shape[-1]

    def at(i: int, j: int) -> Any:
        return getitem(x, (..., i, j))

    if n == 0:
        return to_shape(literal(1, x.aval.dtype, False), x.aval.shape[:-2])
    if n == 1:
        return at(0, 0)
    if n == 2:
        return at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
    if n == 3:
        return (
            at(0, 0) * (at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1))
            - at(0, 1) * (at(1, 0) * at(2, 2) - at(1, 2) * at(2, 0))
            + at(0, 2) * (at(1, 0) * at(2, 1) - at(1, 1) * at(2, 0))
        )
    dtype = x.aval.dtype
    work = np.dtype(np.float32) if dtypes.is_narrow_float(dtype) else dtype
    return convert(_det(convert(x, work)), dtype)


@custom_jvp
def _slogdet(x: Any) -> tuple[Any, Any]:
    packed, _, parity = _factors(x)
    pivots = diagonal(packed, 0, -2, -1)
    size = absolute(pivots)
    zero = ops.eq(size, literal(0, size.aval.dtype, True))
    if pivots.dtype.kind == "c":
        unit = pivots / where(zero, 1, size).astype(pivots.dtype)
    else:
        unit = where(pivots < 0, -1, 1).astype(pivots.dtype)  # not nan where the pivot is
    sign = ops.mul(prod(where(zero, 0, unit), -1).astype(pivots.dtype), parity)
    return sign, total(log(size), -1)


@_slogdet.defjvp
def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    sign, logdet = _slogdet(x)
    # tr(x⁻¹ dx), with the inverse made whole: its transpose would be a transposed system.
    change = total(matrix_transpose(inv(x)) * t, (-2, -1))
    if x.dtype.kind != "c":
        return (sign, logdet), (sign * 0, change)
    turn = (change - ops.real(change).astype(x.dtype)) * sign
    return (sign, logdet), (turn, ops.real(change))


@remembered_as(direct.slogdet)
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of the determinant; (0, -inf) for 0.

    Raises ValueError for unknown methods. Stacks of matrices are taken one by one: leading
    dimensions stay. det a = sign · exp(logabsdet).

    >>> jnp.linalg.slogdet(jnp.array([[0., 1.], [1., 0.]])).sign
    Array(-1., dtype=float32)
    """
    x = matrix("slogdet", a, square=True)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' and 'qr'.")
    if x.aval.shape[-1] == 0:
        lead = x.aval.shape[:-2]
        real = dtypes.to_real_dtype(x.aval.dtype)
        return SlogdetResult(
            to_shape(literal(1, x.aval.dtype, False), lead), to_shape(literal(0, real, False), lead)
        )
    return SlogdetResult(*_slogdet(x))


