"""Factorisations of matrices, and of stacks of them in leading dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.trace import aval_of
from primal.ops.elementwise import add, convert_element_type, mul
from primal.ops.linalg.cholesky import cholesky as cholesky_op
from primal.ops.linalg.common import adjoint
from primal.ops.linalg.eig import eig as eig_op
from primal.ops.linalg.eigh import eigh as eigh_op
from primal.ops.linalg.lu import lu as lu_op
from primal.ops.linalg.lu import lu_pivots_to_permutation as pivots_op
from primal.ops.linalg.qr import geqrf as geqrf_op
from primal.ops.linalg.qr import householder_product as product_op
from primal.ops.linalg.qr import qr as qr_op
from primal.ops.linalg.svd import svd as svd_op
from primal.ops.linalg.triangular import triangular_solve as triangular_op
from primal.ops.shape import reshape


def symmetrized(x: Any, name: str) -> Any:
    """(x + xᴴ) / 2; integers become floats."""
    aval = aval_of(x)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise TypeError(
            f"[{name}] expected a square matrix or a stack of them, got shape {aval.shape}."
        )
    if aval.dtype.kind in "iub":
        wide = np.float64 if aval.dtype.itemsize == 8 else np.float32
        x = convert_element_type(x, new_dtype=np.dtype(wide), weak_type=False)
    return mul(add(x, adjoint(x)), 0.5)


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with L Lᴴ = x, for positive definite x (..., n, n); nan for others.

    Reads (x + xᴴ) / 2, or only the lower triangle when not `symmetrize_input`. float32, float64,
    complex64, complex128, kept. TypeError or ValueError for others or if x is not square.

    >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return cholesky_op(symmetrized(x, "cholesky") if symmetrize_input else x)


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = True,
) -> list[Any]:
    """Eigenvalues w of x (..., n, n), then U with Uᴴ x = diag(w) Uᴴ, then V with x V = V diag(w).

    Complex of x's precision. Vectors are columns of norm 1 whose largest element is real, as LAPACK
    leaves them; they have derivatives (whatever enable_eigvec_derivs, which others need) where
    eigenvalues differ. nan for matrices that are not finite. Compiled programs on CPUs only.

    >>> lax.linalg.eig(jnp.array([[0., 1.], [-1., 0.]]), compute_left_eigenvectors=False)[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return list(
        eig_op(
            x,
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
        )
    )


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> tuple[Any, Any]:
    """(V, w) with x V = V diag(w), unitary V and real ascending w, of Hermitian x (..., n, n).

    Reads (x + xᴴ) / 2, or only one triangle when not `symmetrize_input`. Eigenvalues are sorted
    whatever `sort_eigenvalues`. nan for matrices that are not finite. The vectors' derivative is
    nan or inf where eigenvalues repeat.

    >>> lax.linalg.eigh(jnp.array([[2., 0.], [0., 1.]]))[1]
    Array([1., 2.], dtype=float32)
    """
    _no_subset("eigh", subset_by_index)
    x = symmetrized(x, "eigh") if symmetrize_input else x
    v, w = eigh_op(x, lower=bool(lower), compute_eigenvectors=True)
    return v, w


def _no_subset(name: str, subset: Any) -> None:
    if subset is not None:
        raise NotImplementedError(
            f"[{name}] expected subset_by_index=None, got {subset}. LAPACK computes all of them; "
            "slice the result."
        )


def lu(x: Any) -> tuple[Any, Any, Any]:
    """(packed factors, pivots, permutation) with x[permutation] = L U, for x (..., m, n).

    L, with a unit diagonal that is not stored, is below the diagonal of the first result, U above.
    Row i was swapped with row pivots[i] (int32, from 0), which makes the int32 permutation.

    >>> lax.linalg.lu(jnp.array([[1., 2.], [2., 3.]]))[0]
    Array([[2. , 3. ],
           [0.5, 0.5]], dtype=float32)
    """
    factors, pivots, permutation = lu_op(x)
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation that swapping row i with row pivots[i], for each i in turn, makes; int32.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([1, 1, 2]), 3)
    Array([1, 0, 2], dtype=int32)
    """
    return pivots_op(pivots, permutation_size=int(permutation_size))


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Any, ...]:
    """(Q, R) with x = Q R, orthonormal columns of Q and upper triangular R, for x (..., m, n).

    Q is (m, m) with `full_matrices`, else (m, min(m, n)). With `pivoting` also p, int32, with
    x[:, p] = Q R and a falling diagonal of R. The derivative needs full_matrices=False if m > n.

    >>> lax.linalg.qr(jnp.array([[3.], [4.]]), full_matrices=False)[1]
    Array([[-5.]], dtype=float32)
    """
    return tuple(qr_op(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices)))


def geqrf(a: Any) -> tuple[Any, Any]:
    """(packed, taus): R above the diagonal, below it the reflections that make Q, of a (..., m, n).

    >>> lax.linalg.geqrf(jnp.array([[3.], [4.]]))[0]
    Array([[-5. ],
           [ 0.5]], dtype=float32)
    """
    packed, taus = geqrf_op(a)
    return packed, taus


def householder_product(a: Any, taus: Any) -> Any:
    """The columns that reflections packed as by `geqrf` make, for a (..., m, n) with m >= n.

    >>> lax.linalg.householder_product(*lax.linalg.geqrf(jnp.array([[3.], [4.]])))
    Array([[-0.6],
           [-0.8]], dtype=float32)
    """
    return product_op(a, taus)


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """(U, s, Vᴴ) with x = U diag(s) Vᴴ and real s >= 0, descending; or s without `compute_uv`.

    x is (..., m, n); U is (m, m) and Vᴴ (n, n) with `full_matrices`, else they have min(m, n)
    columns and rows. nan for matrices that are not finite. The derivative of vectors needs
    full_matrices=False unless m == n, and is nan or inf where singular values repeat.

    >>> lax.linalg.svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    _no_subset("svd", subset_by_index)
    flags = {"full_matrices": bool(full_matrices), "compute_uv": bool(compute_uv)}
    if not compute_uv:
        return svd_op(x, **flags)[0]
    s, u, vh = svd_op(x, **flags)
    return u, s, vh


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """x with op(a) x = b when `left_side`, else x op(a) = b; a (..., n, n) is triangular.

    op transposes and conjugates as asked. Only the named triangle of a is read, and not its
    diagonal when `unit_diagonal`. b is (..., n, k), (..., k, n) on the right side, or (..., n).
    Divisions by zeros on the diagonal give inf and nan. TypeError or ValueError where dtypes or
    shapes differ.

    >>> lax.linalg.triangular_solve(
    ...     jnp.array([[2., 0.], [1., 1.]]), jnp.array([2., 3.]), left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    shape = aval_of(b).shape
    vector = len(shape) == aval_of(a).ndim - 1
    if vector:
        b = reshape(b, shape=(*shape, 1) if left_side else (*shape[:-1], 1, shape[-1]))
    out = triangular_op(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )
    return reshape(out, shape=shape) if vector else out


__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "geqrf",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "qr",
    "svd",
    "triangular_solve",
]
