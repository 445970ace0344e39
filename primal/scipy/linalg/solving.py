"""Determinants, inverses and linear systems, with SciPy's signatures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import primal.numpy as jnp
from primal.api import jit
from primal.api.control.custom import custom_jvp
from primal.api.control.solves import custom_linear_solve
from primal.ir.trace import Array
from primal.lax import linalg as room
from primal.lax.control import fori_loop
from primal.lax.convert import stop_gradient
from primal.lax.dynamic import dynamic_update_slice
from primal.numpy.linalg.factors import adjoint
from primal.numpy.promotion import ArrayLike, check_arraylike
from primal.numpy.remembered import remembered
from primal.scipy.linalg.factors import cho_factor, complex_matrix, listed, product
from primal.scipy.operands import inexact


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of square matrices (..., n, n), from their LU factors.

    Integers become floats; ValueError if not square.

    >>> det(jnp.array([[1., 2.], [3., 4.]]))
    Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)


@remembered
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of square matrices (..., n, n); inf or nan for singular ones.

    Integers become floats; ValueError if not square.

    >>> inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def _system(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """(matrices, right sides as columns, whether those were vectors), leading shapes alike."""
    x, y = listed(name, a, b)
    n = x.shape[-1] if x.ndim else 0
    if x.ndim < 2 or x.shape[-2] != n:
        raise ValueError(f"{name}: expected a of shape (..., n, n), got {x.shape}.")
    if y.ndim == 0:
        raise ValueError(f"{name}: b must have at least one dimension, got a scalar.")
    vector = y.ndim == 1
    if not vector and y.ndim == x.ndim - 1 and y.shape == x.shape[:-1]:
        warnings.warn(
            f"{name}: a stack of vectors b with more than one dimension is deprecated, and will "
            "be read as matrices. Write b[..., None] and squeeze the result.",
            FutureWarning,
            stacklevel=3,
        )
        vector = True
    if vector:
        y = y[..., None]
    if y.shape[-2] != n:
        raise ValueError(
            f"{name}: inconsistent size for core dimension 'n': {y.shape[-2]} vs {n} in shapes "
            f"{x.shape} and {jnp.shape(b)}."
        )
    lead = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = jnp.broadcast_to(x, (*lead, n, n)) if lead else x
    return x, jnp.broadcast_to(y, (*lead, *y.shape[-2:])) if lead else y, vector


def _result(x: Any, vector: bool) -> Any:
    return x[..., 0] if vector else x


@remembered
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """x with a x = b for triangular a (..., n, n); trans 1 ('T') with aᵀ x = b, 2 ('C') aᴴ x = b.

    b is (n,) or (..., n, k). Only the named triangle is read, not its diagonal with
    `unit_diagonal`. Zeros on the diagonal give inf or nan. ValueError for other shapes or trans.

    >>> solve_triangular(jnp.array([[2., 0.], [1., 1.]]), jnp.array([2., 3.]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    if trans not in (0, "N", 1, "T", 2, "C"):
        raise ValueError(f"Invalid 'trans' value {trans}")
    x, y, vector = _system("solve_triangular", a, b)
    out = room.triangular_solve(
        x,
        y,
        left_side=True,
        lower=bool(lower),
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=bool(unit_diagonal),
    )
    return _result(out, vector)


def _pair(name: str, what: str, given: Any) -> tuple[Any, Any]:
    if not (isinstance(given, Sequence) and len(given) == 2):
        kind = ValueError if hasattr(given, "__len__") else TypeError
        raise kind(f"[{name}] expected the pair {what}, got {type(given).__name__!r}.")
    return given[0], given[1]


@remembered
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """x with a x = b, from `cho_factor(a)`: two triangular systems.

    The factor is (..., n, n), b (n,) or (..., n, k). ValueError where shapes do not fit.

    >>> cho_solve(cho_factor(jnp.array([[4., 0.], [0., 1.]])), jnp.array([4., 2.]))
    Array([1., 2.], dtype=float32)
    """
    factor, lower = _pair("cho_solve", "(c, lower) of cho_factor", c_and_lower)
    x, y, vector = _system("cho_solve", factor, b)
    first, second = (False, True) if lower else (True, False)
    for turned in (first, second):
        y = room.triangular_solve(
            x, y, left_side=True, lower=bool(lower), transpose_a=turned, conjugate_a=turned
        )
    return _result(y, vector)


@remembered
def lu_solve(
    lu_and_piv: tuple[Array, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """x with a x = b, from `lu_factor(a)`; trans=1 with aᵀ x = b, 2 with aᴴ x = b.

    The factors are (..., n, n) and (..., n), b (n,) or (..., n, k). ValueError where shapes do not
    fit or for another trans.

    >>> lu_solve(((jnp.array([[2., 3.], [0.5, 0.5]])), jnp.array([1, 1])), jnp.array([3., 5.]))
    Array([1., 1.], dtype=float32)
    """
    packed, pivots = _pair("lu_solve", "(lu, piv) of lu_factor", lu_and_piv)
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    check_arraylike("lu_solve", pivots)
    x, y, vector = _system("lu_solve", packed, b)
    swaps = jnp.asarray(pivots)
    n = x.shape[-1]
    order = room.lu_pivots_to_permutation(swaps, n)
    order = jnp.broadcast_to(order, (*x.shape[:-2], n))

    def half(z: Any, lower: bool) -> Any:
        return room.triangular_solve(
            x, z, left_side=True, lower=lower, unit_diagonal=lower,
            transpose_a=trans != 0, conjugate_a=trans == 2,
        )  # fmt: skip

    if trans == 0:
        y = half(half(jnp.take_along_axis(y, order[..., None], axis=-2), True), False)
    else:
        back = jnp.argsort(order, axis=-1)
        y = jnp.take_along_axis(half(half(y, False), True), back[..., None], axis=-2)
    return _result(y, vector)


@remembered
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """x with a x = b, for a (..., n, n) and b (n,) or (..., n, k).

    assume_a='pos' takes a Cholesky factor of the named triangle, 'gen', 'sym' and 'her' LU
    factors; derivatives are those of a⁻¹ b by all elements of a. Integers become floats; singular
    matrices give inf or nan. ValueError where shapes do not fit or for another assume_a.

    >>> solve(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 4.]))
    Array([1., 1.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}"
        )
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    x, y = inexact("solve", a, b)
    fits = x.ndim >= 2 and x.shape[-2] == x.shape[-1] and y.ndim >= 1
    matrix = fits and y.ndim == x.ndim and y.shape[:-1] == x.shape[:-1]
    vector = fits and (y.ndim == 1 or y.ndim == x.ndim - 1) and y.shape[-1] == x.shape[-1]
    if not (matrix or vector):
        raise ValueError(
            "The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m];"
            f" got a={x.shape} and b={y.shape}"
        )
    lower = bool(lower)
    if x.shape[-1] == 0:
        return y
    return _positive(lower, x, y) if matrix else _positive(lower, x, y[..., None])[..., 0]


def _positive(lower: bool, a: Any, b: Any) -> Any:
    """Derivatives of any order solve with the same factor, and none is taken of it."""
    factor = cho_factor(stop_gradient(a), lower=lower)

    def turned(_: Any, y: Any) -> Any:
        return jnp.conj(cho_solve(factor, jnp.conj(y)))

    return custom_linear_solve(
        lambda x: product(a, x), b, lambda _, y: cho_solve(factor, y), transpose_solve=turned
    )


# Sylvester's equation.


@remembered
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """X with A X + X B = C, for A (..., m, m), B (..., n, n) and C (..., m, n).

    method 'schur' is Bartels and Stewart's (1972), one triangular system per column; 'eigen'
    divides by λᵢ(A) + λⱼ(B) in bases of eigenvectors. nan where such a sum is at most `tol` in
    absolute value: X is not unique there. Integers become floats. ValueError where shapes do not
    fit or for another method.

    >>> one = jnp.eye(2)
    >>> solve_sylvester(one, 3 * one, 8 * one)
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    a, b, c = listed("solve_sylvester", A, B, C)
    square = min(a.ndim, b.ndim, c.ndim) >= 2 and all(x.shape[-1] == x.shape[-2] for x in (a, b))
    if not square or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ValueError(
            f"Incompatible shapes for Sylvester equation:\nA: {a.shape}\nB: {b.shape}\nC: {c.shape}"
        )
    if method not in ("schur", "eigen"):
        raise ValueError(
            f'Unrecognized method {method}. The two valid methods are either "schur" or "eigen".'
        )
    lead = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (jnp.broadcast_to(x, (*lead, *x.shape[-2:])) if lead else x for x in (a, b, c))
    return _sylvester(method, float(tol), a, b, c)


def _sylvester_value(method: str, tol: float, a: Any, b: Any, c: Any) -> Any:
    if 0 in c.shape:
        return c
    find = _by_eigenvectors if method == "eigen" else _by_schur
    out, sums = find(complex_matrix(a), complex_matrix(b), complex_matrix(c))
    near = jnp.any(jnp.abs(sums) <= tol, axis=(-2, -1), keepdims=True)
    if c.dtype.kind != "c":
        out = jnp.real(out)
    return jnp.where(near, jnp.nan, out).astype(c.dtype)


_sylvester = custom_jvp(_sylvester_value, nondiff_argnums=(0, 1))


@_sylvester.defjvp
def _sylvester_jvp(method: str, tol: float, primals: Any, tangents: Any) -> Any:
    """A dX + dX B = dC - dA X - X dB: the same equation, so no factor has to be differentiated."""
    (a, b, c), (ta, tb, tc) = primals, tangents
    x = _sylvester(method, tol, a, b, c)
    return x, _sylvester(method, tol, a, b, tc - product(ta, x) - product(x, tb))


def _by_eigenvectors(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    u, v = jnp.linalg.eig(a), jnp.linalg.eig(b)
    sums = u[0][..., :, None] + v[0][..., None, :]
    inner = jnp.linalg.solve(u[1], product(c, v[1])) / sums
    return adjoint(jnp.linalg.solve(adjoint(v[1]), adjoint(product(u[1], inner)))), sums


def _by_schur(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    r, u = room.schur(a)
    s, v = room.schur(b)
    f = product(adjoint(u), c, v)
    eigenvalues = jnp.diagonal(r, axis1=-2, axis2=-1), jnp.diagonal(s, axis1=-2, axis2=-1)
    sums = eigenvalues[0][..., :, None] + eigenvalues[1][..., None, :]
    return product(u, _columns(r, s, f), adjoint(v)), sums


@jit
def _columns(r: Any, s: Any, f: Any) -> Any:
    """Y with R Y + Y S = F for upper triangular R and S, column by column.

    (R + s_kk) y_k = f_k - Σ_{j<k} y_j s_jk; columns of Y that are not yet known are zeros.
    """
    m, n = f.shape[-2:]
    unit = jnp.eye(m, dtype=r.dtype)

    def step(k: Any, y: Any) -> Any:
        column = s[..., :, k][..., None]
        corner = s[..., k, k][..., None, None]
        right = f[..., :, k][..., None] - product(y, column)
        new = room.triangular_solve(r + corner * unit, right, left_side=True)
        return dynamic_update_slice(y, new, (*[0] * (y.ndim - 1), k))

    return fori_loop(0, n, step, jnp.zeros_like(f))


__all__ = [
    "cho_solve", "det", "inv", "lu_solve", "solve", "solve_sylvester", "solve_triangular",
]  # fmt: skip
