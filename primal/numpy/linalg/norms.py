"""Norms, ranks and condition numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.trace import Array
from primal.numpy import contraction, diagonals, direct
from primal.numpy.choosing import where
from primal.numpy.einsums import einsum
from primal.numpy.elementary import abs as absolute
from primal.numpy.elementary import conjugate, sqrt
from primal.numpy.linalg.factors import svd
from primal.numpy.linalg.solving import inv
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    check_arraylike,
    convert,
    in_float32,
    operand,
    promote_dtypes_inexact,
)
from primal.numpy.reductions import as_axis
from primal.numpy.reductions import max as largest
from primal.numpy.reductions import min as smallest
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import expand_dims, moveaxis, ravel, reshape
from primal.numpy.ufuncs import not_equal, power
from primal.ops import elementwise as ops
from primal.ops.types import axes_given, canonical_axes, static

Ord = Any


@remembered_as(direct.norm)
def norm(x: ArrayLike, ord: Ord = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of vectors (one axis) or matrices (two axes); by default √Σ|x|² over all axes.

    Vectors: a number p gives (Σ|x|^p)^(1/p), inf the largest |x|, -inf the smallest, 0 the number
    of non-zeros. Matrices: 'fro', 'nuc', 1 and inf (largest column or row sum), 2 (largest singular
    value), -1, -inf, -2 (the smallest of those). Raises ValueError for other orders.

    >>> jnp.linalg.norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    check_arraylike("jnp.linalg.norm", x)
    static("norm axis", "a number or a tuple", axis)
    (v,) = promote_dtypes_inexact("jnp.linalg.norm", x)
    rank = v.aval.ndim
    if axis is None:
        if ord is None:
            return in_float32(lambda v: _euclidean(v, tuple(range(rank)), keepdims), v)
        axes = tuple(range(rank))
    else:
        axes = tuple([as_axis("norm", a, rank) for a in axes_given(axis)])
    if len(axes) == 1:
        return in_float32(lambda v: _vector_norm(v, ord, axes[0], keepdims), v)
    if len(axes) == 2:
        return _matrix_norm(v, ord, axes, keepdims)
    raise ValueError(
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, "
        "or two axes to compute a matrix-norm."
    )


def _euclidean(x: Any, axes: Any, keepdims: bool) -> Any:
    square = ops.real(ops.mul(x, conjugate(x))) if x.aval.dtype.kind == "c" else ops.mul(x, x)
    return sqrt(total(square, axis=axes, keepdims=keepdims))


def _vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    if order is None or (isinstance(order, int | float) and order == 2):
        return _euclidean(x, axis, keepdims)
    if isinstance(order, str):
        raise ValueError(f"Invalid order '{order}' for vector norm.")
    if isinstance(order, int | float):
        if order == np.inf:
            return _largest(absolute(x), axis=axis, keepdims=keepdims)
        if order == -np.inf:
            return smallest(absolute(x), axis=axis, keepdims=keepdims)
        if order == 0:
            nonzero = ops.ne(x, convert(operand("norm", 0), x.aval.dtype))
            real = dtypes.to_real_dtype(x.aval.dtype)
            return total(convert(nonzero, real), axis=axis, keepdims=keepdims)
        if order == 1:
            return total(absolute(x), axis=axis, keepdims=keepdims)
    size = absolute(x)
    p = convert(operand("norm", order), size.dtype)
    return power(total(power(size, p), axis=axis, keepdims=keepdims), 1 / array_operand("norm", p))


def _matrix_norm(x: Any, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    row, column = axes
    if row == column:
        raise ValueError(f"[norm] expected two different axes, got {axes}.")
    if order in (None, "f", "fro"):
        return _euclidean(x, axes, keepdims)
    if order in (1, -1, np.inf, -np.inf):
        first, second = (row, column) if order in (1, -1) else (column, row)
        sums = total(absolute(x), axis=first, keepdims=True)
        pick = _largest if order > 0 else smallest
        out = pick(sums, axis=second, keepdims=True)
        return out if keepdims else _dropped(out, axes)
    if order in ("nuc", 2, -2):
        values = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
        if order == "nuc":
            out = total(values, axis=-1)
        else:
            out = (_largest if order == 2 else smallest)(values, axis=-1)
        return expand_dims(out, axes) if keepdims else out
    raise ValueError(f"Invalid order '{order}' for matrix norm.")


def _dropped(x: Any, axes: tuple[int, ...]) -> Any:
    return reshape(x, tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def _largest(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The largest of numbers that are not negative: 0 where there are none."""
    return largest(x, axis=axis, keepdims=keepdims, initial=None if x.size else 0)


@remembered
def vector_norm(
    x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False, ord: Ord = 2
) -> Array:
    """The norm of vectors along an axis (several count as one vector, None is all).

    ‖x‖ = (Σ |xᵢ|^p)^(1/p) with p = ord. Of integers, sums (ord 1) and extrema (±inf) are integers;
    the other norms are floats of the default dtype. Raises ValueError for an array as ord.

    >>> jnp.linalg.vector_norm(jnp.array([[3., 4.]]))
    Array(5., dtype=float32)
    """
    check_arraylike("jnp.linalg.vector_norm", x)
    v = array_operand("vector_norm", x)
    if np.ndim(ord):
        raise ValueError(f"[vector_norm] expected a number as ord, got {ord!r}.")
    whole = isinstance(ord, int | float) and ord in (1, np.inf, -np.inf)
    if not dtypes.issubdtype(v.aval.dtype, np.inexact) and not whole:
        v = convert(v, dtypes.python_scalar_dtype(float))
    return _vector_norm(v, ord, tuple(axis) if isinstance(axis, list) else axis, keepdims)


@remembered
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Ord = "fro") -> Array:
    """The norm of matrices in the last two axes.

    As `norm` over the axes (-2, -1): √Σ|x|² by default.

    >>> jnp.linalg.matrix_norm(jnp.array([[3., 4.]]))
    Array(5., dtype=float32)
    """
    check_arraylike("jnp.linalg.matrix_norm", x)
    return norm(x, ord, (-2, -1), keepdims)


@remembered_as(direct.cond)
def cond(x: ArrayLike, p: Ord = None) -> Array:
    """The condition number ‖x‖·‖x⁻¹‖ in a norm; by default the ratio of singular values.

    Raises ValueError for what is no matrix, has no elements, or is not square where p needs it.

    >>> jnp.linalg.cond(jnp.array([[2., 0.], [0., 1.]]))
    Array(2., dtype=float32)
    """
    check_arraylike("jnp.linalg.cond", x)
    (v,) = promote_dtypes_inexact("jnp.linalg.cond", x)
    if v.aval.ndim < 2:
        raise ValueError(
            f"jnp.linalg.cond: input array must be at least 2D, got shape {v.aval.shape}."
        )
    if not v.aval.shape[-1] or not v.aval.shape[-2]:
        raise ValueError(f"[cond] expected a matrix with elements, got shape {v.aval.shape}.")
    static("cond p", "a number or a word", p)
    if p in (None, 2, -2):
        s = svd(v, compute_uv=False)
        out = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        if v.aval.shape[-1] != v.aval.shape[-2]:
            raise ValueError(f"jnp.linalg.cond: for {p=}, array must be square; got {v.shape}")
        out = norm(v, p, (-2, -1)) * norm(inv(v), p, (-2, -1))
    # nan only where the matrix has one: a singular matrix has the condition inf.
    bad = total(ops.ne(v, v), (-2, -1)) > 0
    return where(ops.ne(out, out) & ~bad, np.inf, out)


@remembered_as(direct.matrix_rank)
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """How many singular values exceed rtol · the largest (eps · max(m, n) by default).

    Stacks of matrices are taken one by one: leading dimensions stay. rtol is one number, or one for
    each matrix. `tol`, the older argument, is the limit itself; ValueError if both are given.

    >>> jnp.linalg.matrix_rank(jnp.array([[1., 2.], [2., 4.]]))
    Array(1, dtype=int32)
    """
    check_arraylike("jnp.linalg.matrix_rank", M)
    (v,) = promote_dtypes_inexact("jnp.linalg.matrix_rank", M)
    if v.aval.ndim < 2:
        return largest(convert(not_equal(v, 0), np.dtype(np.int32)))
    s = svd(v, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    if rtol is None and tol is None:
        rtol = float(finfo(s.dtype).eps) * max(v.aval.shape[-2:])
    limit: Any = tol if rtol is None else rtol
    limit = expand_dims(limit, -1) if np.ndim(limit) else limit
    if tol is None:
        limit = _largest(s, axis=-1, keepdims=True) * limit
    return total(s > limit, axis=-1)


@remembered
def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices in the order that costs least; vectors only at the ends.

    Raises ValueError for fewer than two arrays and for shapes that do not fit. out = a₁ · a₂ · … ·
    aₙ.

    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    arrays = list(arrays)
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    items = [array_operand("multi_dot", x, i) for i, x in enumerate(arrays)]
    if len(items) < 2:
        raise ValueError("multi_dot requires at least two arrays.")
    if not (
        all(x.ndim == 2 for x in items[1:-1])
        and all(x.ndim in (1, 2) for x in items[:: len(items)])
    ):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the "
            f"first and last array; got shapes {[x.shape for x in items]}"
        )
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    terms = [letters[i] + letters[i + 1] for i in range(len(items))]
    output = terms[0][0] + terms[-1][1]
    if items[0].ndim == 1:
        terms[0], output = terms[0][1:], output[1:]
    if items[-1].ndim == 1:
        terms[-1], output = terms[-1][:1], output[:-1]
    order = "optimal" if len(items) < 8 else "auto"
    return einsum(",".join(terms) + "->" + output, *items, optimize=order, precision=precision)


# Functions of jnp under the array API's signatures.


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonal of the last two axes.

    out[..., i] = x[..., i, i + offset].

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    check_arraylike("jnp.linalg.diagonal", x)
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of the diagonal of the last two axes.

    Σᵢ x[..., i, i + offset].

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    check_arraylike("jnp.linalg.trace", x)
    return diagonals.trace(x, offset, -2, -1, dtype)


@remembered
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of 3 components.

    Raises ValueError for vectors of another size than 3. (a₂b₃ - a₃b₂, a₃b₁ - a₁b₃, a₁b₂ - a₂b₁) =
    out.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("jnp.linalg.cross", x1, x2)
    x, y = array_operand("cross", x1), array_operand("cross", x2, 1)
    sizes = [v.shape[canonical_axes("linalg.cross", (axis,), v.ndim)[0]] for v in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"{sizes[0]} and {sizes[1]} dimensions."
        )
    return contraction.cross(x, y, axis=axis)


@remembered
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The outer product of two vectors.

    Raises ValueError unless both are vectors. out[i, j] = x1[i] · x2[j].

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([[10, 20],
           [20, 40]], dtype=int32)
    """
    check_arraylike("jnp.linalg.outer", x1, x2)
    x, y = array_operand("outer", x1), array_operand("outer", x2, 1)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are {x.ndim} and {y.ndim}-dimensional."
        )
    return contraction.outer(ravel(x), ravel(y))
