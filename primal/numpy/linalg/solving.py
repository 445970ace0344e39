"""Inverses and linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.api.control.custom import custom_jvp
from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.trace import Array
from primal.numpy import direct
from primal.numpy.choosing import where
from primal.numpy.contraction import matmul
from primal.numpy.elementary import abs as absolute
from primal.numpy.linalg.factors import adjoint, matrix, svd
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    broadcast_shapes,
    check_arraylike,
    convert,
    operand,
    promote_dtypes_inexact,
    to_shape,
    with_rank,
)
from primal.numpy.ranges import eye
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import moveaxis, reshape
from primal.ops import shape as shape_ops
from primal.ops.linalg import lu as lu_room
from primal.ops.types import static_int


@remembered
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a x = b, for a vector b or the columns of a matrix; leading axes broadcast.

    Raises ValueError where the shapes do not fit. Singular matrices give inf or nan.

    >>> jnp.linalg.solve(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 4.]))
    Array([1., 1.], dtype=float32)
    """
    check_arraylike("jnp.linalg.solve", a, b)
    x, y = promote_dtypes_inexact("jnp.linalg.solve", a, b)
    n = x.aval.shape[-1] if x.aval.ndim else 0
    if x.aval.ndim < 2 or x.aval.shape[-2] != n:
        raise ValueError(
            f"last two dimensions of a must be equal: expected (..., n, n), got {x.aval.shape}."
        )
    if y.aval.ndim == 0:
        raise ValueError(f"solve: b must be at least one-dimensional, got shape {y.aval.shape}.")
    vector = y.aval.ndim == 1
    if not vector and y.aval.ndim == x.aval.ndim - 1 and y.aval.shape[-2] != n:
        raise ValueError(
            f"Invalid shapes for solve: {x.aval.shape}, {y.aval.shape}. A stack of vectors is "
            "solved by solve(a, b[..., None]).squeeze(-1)."
        )
    if vector:
        y = shape_ops.reshape(y, shape=(y.aval.size, 1))
    if y.aval.shape[-2] != n:
        raise ValueError(
            f"[solve] expected b with {n} rows, got shapes {x.aval.shape} and {y.aval.shape}: "
            "inconsistent size for core dimension."
        )
    lead = broadcast_shapes(x.aval.shape[:-2], y.aval.shape[:-2])
    x, y = to_shape(x, (*lead, n, n)), to_shape(y, (*lead, *y.aval.shape[-2:]))
    out = lu_room.solve(x, y, transpose_a=False)
    return shape_ops.squeeze(out, dimensions=(out.aval.ndim - 1,)) if vector else out


@remembered
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices; inf or nan for singular ones.

    a · inv(a) = 1, solved by LU decomposition.

    >>> jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = matrix("inv", a, square=True)
    unit = eye(x.aval.shape[-1], dtype=x.aval.dtype)
    return solve(x, to_shape(unit, x.aval.shape))


@remembered
def matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th power of square matrices, by repeated squaring; of the inverse for negative n.

    Raises TypeError unless the matrices are square and the exponent an integer. out = aⁿ = a ·
    aⁿ⁻¹, and a⁰ = 1.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    check_arraylike("jnp.linalg.matrix_power", a)
    x = array_operand("matrix_power", a)
    shape = x.aval.shape
    if len(shape) < 2:
        raise TypeError(
            f"{len(shape)}-dimensional array given. Array must be at least two-dimensional"
        )
    if shape[-1] != shape[-2]:
        raise TypeError("Last 2 dimensions of the array must be square")
    if not isinstance(n, int | np.integer):
        raise TypeError(f"exponent must be an integer, got {n}")
    if n == 0:
        return to_shape(eye(shape[-1], dtype=x.aval.dtype), shape)
    if n < 0:
        x, n = inv(x), -n
    out: Any = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return out


@remembered
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The Moore-Penrose inverse: singular values up to rtol · the largest count as 0.

    Stacks of matrices are taken one by one: leading dimensions stay. rtol is one number, or one for
    each matrix; `rcond` is an older name of it, and ValueError if both are given.

    >>> jnp.linalg.pinv(jnp.array([[2., 0.], [0., 0.]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    x = matrix("pinv", a)
    m, n = x.aval.shape[-2:]
    if rtol is None:
        rtol = 10.0 * max(m, n) * float(finfo(x.aval.dtype).eps)
    cutoff = convert(operand("pinv", rtol), dtypes.to_real_dtype(x.aval.dtype))
    return _pinv(x, cutoff, hermitian)


def _pinv_value(x: Any, cutoff: Any, hermitian: bool) -> Any:
    if 0 in x.shape[-2:]:
        return reshape(x, (*x.shape[:-2], x.shape[-1], x.shape[-2]))
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    limit = cutoff[..., None] * s[..., :1] if np.ndim(cutoff) else cutoff * s[..., :1]
    inverse = where(s > limit, 1 / where(s > limit, s, 1), 0).astype(x.dtype)
    return matmul(adjoint(vh), inverse[..., None] * adjoint(u))


_pinv = custom_jvp(_pinv_value, nondiff_argnums=(1, 2))


@_pinv.defjvp
def _pinv_jvp(cutoff: Any, hermitian: bool, primals: Any, tangents: Any) -> Any:
    """Golub and Pereyra: dp = -p da p + p pᴴ daᴴ (1 - a p) + (1 - p a) daᴴ pᴴ p."""
    (x,), (t,) = primals, tangents
    p = _pinv(x, cutoff, hermitian)
    m, n = x.shape[-2:]
    th, ph = adjoint(t), adjoint(p)
    rows = with_rank(eye(m, dtype=x.dtype), x.ndim) - matmul(x, p)
    columns = with_rank(eye(n, dtype=x.dtype), x.ndim) - matmul(p, x)
    change = (
        matmul(matmul(p, ph), matmul(th, rows))
        + matmul(matmul(columns, th), matmul(ph, p))
        - matmul(matmul(p, t), p)
    )
    return p, change


@remembered_as(direct.lstsq)
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """(x that minimises |a x - b|, squared residuals, the rank of a, its singular values).

    Raises TypeError for other numbers of dimensions, ValueError where the rows differ in number.

    >>> x, *_ = jnp.linalg.lstsq(jnp.array([[1.], [1.]]), jnp.array([1., 3.]))
    >>> jnp.allclose(x, 2.)
    Array(True, dtype=bool)
    """
    check_arraylike("jnp.linalg.lstsq", a, b)
    x, y = promote_dtypes_inexact("jnp.linalg.lstsq", a, b)
    if x.aval.shape[:1] != y.aval.shape[:1] and x.aval.ndim and y.aval.ndim:
        raise ValueError("Leading dimensions of input arrays must match")
    if x.aval.ndim != 2:
        raise TypeError(f"{x.aval.ndim}-dimensional array given. Array must be two-dimensional")
    if y.aval.ndim not in (1, 2):
        raise TypeError(
            f"{y.aval.ndim}-dimensional array given. Array must be one or two-dimensional"
        )
    vector = y.aval.ndim == 1
    y = y[:, None] if vector else y
    m, n = x.aval.shape
    dtype = x.aval.dtype
    if rcond is None:
        rcond = float(finfo(dtype).eps) * max(m, n)
    elif rcond < 0:
        rcond = float(finfo(dtype).eps)
    u, s, vh = svd(x, full_matrices=False)
    mask = (s > 0) & (s >= rcond * s[:1])
    rank = total(mask)
    inverse = where(mask, 1 / where(mask, s, 1), 0).astype(dtype)
    out = matmul(adjoint(vh), inverse[:, None] * matmul(adjoint(u), y))
    rest = y - matmul(x, out)
    residual = total(absolute(rest) ** 2, axis=0)
    if numpy_resid:
        # NumPy's are empty unless the system is overdetermined and of full rank.
        residual = residual if m > n and int(rank) == n else residual[:0]
    return (out[:, 0] if vector else out), residual, rank, s


@remembered
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a tensor as a map from its last axes to its first `ind`.

    Raises ValueError for an ind below 1, or unless both products of dimensions agree.
    tensordot(tensorinv(a, ind), a, ind) = identity.

    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4), ind=2).shape
    (4, 2, 2)
    """
    check_arraylike("jnp.linalg.tensorinv", a)
    x = array_operand("tensorinv", a)
    ind = static_int("tensorinv ind", ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    left, right = x.aval.shape[:ind], x.aval.shape[ind:]
    n, m = int(np.prod(left, dtype=int)), int(np.prod(right, dtype=int))
    if n != m:
        raise ValueError(
            f"product of dimensions {left} must equal product of dimensions {right}; got {n}, {m}"
        )
    return reshape(inv(reshape(x, (n, m))), (*right, *left))


@remembered
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """x with tensordot(a, x, x.ndim) = b.

    Raises ValueError where the shapes do not make a square system.

    >>> jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 2, 2), jnp.ones((2, 2))).shape
    (2, 2)
    """
    check_arraylike("jnp.linalg.tensorsolve", a, b)
    x, y = array_operand("tensorsolve", a), array_operand("tensorsolve", b, 1)
    if axes is not None:
        x = moveaxis(x, axes, tuple(range(x.aval.ndim - len(axes), x.aval.ndim)))
    out = x.aval.shape[y.aval.ndim :]
    if x.aval.ndim <= y.aval.ndim:
        raise ValueError("Input arrays to tensorsolve must satisfy a.ndim > b.ndim.")
    if y.aval.shape != x.aval.shape[: y.aval.ndim]:
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b. got "
            f"a.shape={x.aval.shape}, b.shape={y.aval.shape}"
        )
    if int(np.prod(out, dtype=int)) != y.aval.size:
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); "
            f"got a.shape={x.aval.shape}, b.ndim={y.aval.ndim}."
        )
    flat = solve(reshape(x, (y.aval.size, y.aval.size)), reshape(y, (-1,)))
    return reshape(flat, out)
