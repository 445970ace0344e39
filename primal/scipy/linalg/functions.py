"""Functions of matrices: exponential, square root, any function by its values on eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api import jit, jvp
from primal.api.control.custom import custom_jvp
from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.trace import Array
from primal.lax import linalg as room
from primal.lax.control import cond, fori_loop
from primal.lax.convert import stop_gradient
from primal.lax.dynamic import dynamic_update_slice
from primal.numpy.linalg.factors import adjoint
from primal.numpy.promotion import ArrayLike, array_operand, check_arraylike, with_rank
from primal.numpy.remembered import remembered
from primal.ops.types import static_flag
from primal.scipy.linalg.factors import complex_matrix, listed, matrices, product
from primal.scipy.linalg.solving import solve_sylvester
from primal.scipy.operands import inexact

# The order m of the Padé approximant and the 1-norm up to which its backward error is below the
# precision (Higham, 2005, table 2.3). Lower orders for smaller norms would save two or three of
# about eight products, at the cost of a program with a branch for each.
_PADE = {
    np.dtype(np.float32): (7, 3.925724783138660),
    np.dtype(np.float64): (13, 5.371920351148152),
}


@remembered
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """exp(A) = Σ Aᵏ / k!, of square matrices (..., n, n).

    By a Padé approximant of A / 2ˢ, squared s times (Higham, 2005; order 7 in single precision, 13
    in double). nan where s would be above `max_squarings`. `upper_triangular` reads only that
    triangle's system. Integers become floats; TypeError for 16-bit floats, ValueError if not
    square.

    >>> expm(jnp.array([[0., 1.], [0., 0.]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    (x,) = inexact("expm", A)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={x.shape}.")
    if dtypes.is_narrow_float(x.dtype):
        raise TypeError(f"A.dtype={x.dtype.name} is not supported: convert to float32 first.")
    if 0 in x.shape:
        return x
    flag = static_flag("expm upper_triangular", upper_triangular)
    return _expm(x, flag, int(max_squarings))


@partial(jit, static_argnums=(1, 2))
def _expm(x: Any, triangular: bool, most: int) -> Any:
    order, limit = _PADE[np.dtype(dtypes.to_real_dtype(x.dtype))]
    norm = jnp.max(jnp.sum(jnp.abs(stop_gradient(x)), axis=-2), axis=-1)[..., None, None]
    exponent = jnp.log2(norm / limit)
    # A scale rounded up keeps the approximant within its limit; the caller's is compared rounded
    # down, as the reference's is, so that one squaring more than `most` may be needed.
    times = jnp.clip(jnp.ceil(exponent), 0, most + 1)
    too_many = jnp.floor(exponent) > most
    x = jnp.where(too_many, jnp.nan, x * jnp.exp2(-times).astype(x.dtype)).astype(x.dtype)
    u, v = _pade(x, order)
    lower, upper = v - u, v + u
    if triangular:
        out = room.triangular_solve(lower, upper, left_side=True)
    else:
        out = jnp.linalg.solve(lower, upper)

    def step(i: Any, y: Any) -> Any:
        more = i < times
        return cond(jnp.any(more), lambda y: jnp.where(more, product(y, y), y), lambda y: y, y)

    return fori_loop(0, most + 1, step, out)


def _pade(x: Any, m: int) -> tuple[Any, Any]:
    """The odd and even part of the numerator of exp's [m/m] approximant."""
    b = [math.comb(m, j) * math.factorial(2 * m - j) / math.factorial(2 * m) for j in range(m + 1)]
    unit = with_rank(jnp.eye(x.shape[-1], dtype=x.dtype), x.ndim)
    x2 = product(x, x)
    x4 = product(x2, x2)
    x6 = product(x4, x2)
    odd = b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * unit
    even = b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * unit
    if m == 13:
        odd = odd + product(x6, b[13] * x6 + b[11] * x4 + b[9] * x2)
        even = even + product(x6, b[12] * x6 + b[10] * x4 + b[8] * x2)
    return product(x, odd), even


@remembered
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Any:
    """(exp(A), L): the exponential and its derivative L = d/dt exp(A + tE) at t = 0; L alone if not
    `compute_expm`.

    A and E are (..., n, n) of one inexact dtype (TypeError else); ValueError if not square. `expm`
    is differentiated forwards; `method` does nothing.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    check_arraylike("expm_frechet", A, E)
    x, e = array_operand("expm_frechet", A), array_operand("expm_frechet", E, 1)
    for name, y in (("A", x), ("E", e)):
        if y.ndim < 2 or y.shape[-1] != y.shape[-2]:
            raise ValueError(
                f"expected {name} to be a (batched) square matrix, got {name}.shape={y.shape}"
            )
    if x.shape != e.shape:
        raise ValueError(f"expected A and E to be the same shape, got {x.shape} and {e.shape}")
    value, derivative = jvp(expm, (x,), (e,))
    return (value, derivative) if compute_expm else derivative


# Through triangular matrices.


@jit
def _triangular_root(t: Any) -> Any:
    """U upper triangular with U U = T, column by column (Björck and Hammarling, 1983).

    (U' + uⱼⱼ) x = t for the part x of column j above the diagonal, U' the rows and columns before
    j and t the same part of T's column.
    """
    n = t.shape[-1]
    roots = jnp.sqrt(jnp.diagonal(t, axis1=-2, axis2=-1))
    rows = np.arange(n)
    unit = jnp.eye(n, dtype=t.dtype)

    def step(j: Any, u: Any) -> Any:
        before = rows < j
        sums = roots + roots[..., j][..., None]
        zero = sums == 0
        pivots = jnp.where(before & ~zero, sums, 1)
        inner = jnp.triu(u, 1) + pivots[..., None] * unit
        right = jnp.where(before, t[..., :, j], 0)
        x = room.triangular_solve(inner, right[..., None], left_side=True)[..., 0]
        # Where both roots are 0 there is one only if nothing has to be divided.
        x = jnp.where(before & zero & (x != 0), jnp.nan, x)
        column = x + jnp.where(rows == j, roots, 0)
        return dynamic_update_slice(u, column[..., None], (*[0] * (u.ndim - 1), j))

    return fori_loop(0, n, step, jnp.zeros_like(t))


@custom_jvp
def _sqrtm(x: Any) -> Any:
    t, z = room.schur(x)
    return product(z, _triangular_root(t), adjoint(z))


@_sqrtm.defjvp
def _sqrtm_jvp(primals: Any, tangents: Any) -> Any:
    """X X = A gives X dX + dX X = dA, which needs no derivative of Schur vectors."""
    x = _sqrtm(primals[0])
    return x, solve_sylvester(x, x, tangents[0], tol=0.0)


@remembered
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root X of matrices (..., n, n): X X = A, eigenvalues with Re ≥ 0.

    Complex of A's precision, from A's Schur form (Björck and Hammarling, 1983). nan where there is
    none. ValueError if not square, NotImplementedError for blocksize above 1.

    >>> sqrtm(jnp.array([[4., 0.], [0., 9.]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    check_arraylike("sqrtm", A)
    x = complex_matrix(matrices("sqrtm", A, square=True))
    return x if 0 in x.shape else _sqrtm(x)


@jit
def _parlett(t: Any, f: Any) -> Any:
    """F with F T = T F and diagonal f, column by column: a triangular system for each.

    (T' - tⱼⱼ) x = F' t - fⱼ t, where ' are the rows and columns before j and t that part of T's
    column. Equal eigenvalues divide by 1, as in SciPy.
    """
    n = t.shape[-1]
    eigenvalues = jnp.diagonal(t)
    rows = np.arange(n)

    def step(j: Any, out: Any) -> Any:
        before = rows < j
        column = jnp.where(before, t[:, j], 0)
        gaps = eigenvalues - eigenvalues[j]
        pivots = jnp.where(before & (gaps != 0), gaps, 1)
        right = jnp.where(before, product(out, column[:, None])[:, 0] - f[j] * column, 0)
        x = room.triangular_solve(
            jnp.triu(t, 1) + jnp.diag(pivots), right[:, None], left_side=True
        )[:, 0]
        new = x + jnp.where(rows == j, f, 0)
        return dynamic_update_slice(out, new[:, None], (0, j))

    return fori_loop(0, n, step, jnp.zeros_like(t))


@remembered
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """The function of a matrix: V diag(func(w)) V⁻¹ for A = V diag(w) V⁻¹.

    A is (n, n) and the result complex. From A's Schur form by Parlett's recurrence (Golub and Van
    Loan, §9.1.4), inexact for close eigenvalues. With disp=False (F, an estimate of the relative
    error). ValueError if not square, TypeError if func is no function.

    >>> funm(jnp.array([[1., 0.], [0., 4.]]), jnp.sqrt).real
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    (x,) = listed("funm", A)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(f"[funm] expected square array_like input, got shape {x.shape}.")
    if not callable(func):
        raise TypeError(f"[funm] expected a function of an array, got {func!r}.")
    t, z = room.schur(complex_matrix(x))
    values = jnp.asarray(func(jnp.diagonal(t))).astype(t.dtype)
    inner = _parlett(t, values)
    out = product(z, inner, adjoint(z))
    if disp:
        return out
    eps = float(finfo(t.dtype).eps)
    eigenvalues = jnp.diagonal(t)
    gaps = jnp.abs(eigenvalues[:, None] - eigenvalues)
    apart = ~np.eye(t.shape[0], dtype=bool)
    least = jnp.minimum(jnp.abs(t[0, 0]), jnp.min(gaps, where=apart, initial=jnp.inf))
    least = jnp.where(least == 0, eps, least)
    size = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), axis=0))
    error = jnp.minimum(1, jnp.maximum(eps, eps / least * size))
    return out, jnp.where(jnp.all(~jnp.isfinite(out)), jnp.inf, error)
