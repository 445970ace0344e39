"""Factorisations of matrices, and of stacks of them in leading dimensions."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.control.condense import hessenberg as hessenberg_op
from primal.control.condense import tridiagonal as tridiagonal_op
from primal.ir.op import LINALG, registry
from primal.ir.trace import Array, aval_of
from primal.lax.polar import qdwh as qdwh
from primal.numpy.remembered import remembered
from primal.ops.elementwise import add, convert_element_type, mul
from primal.ops.linalg.cholesky import cholesky as cholesky_op
from primal.ops.linalg.common import adjoint, check_stacks, lower_part, transposed
from primal.ops.linalg.common import matmul as product
from primal.ops.linalg.eig import eig as eig_op
from primal.ops.linalg.eigh import eigh as eigh_op
from primal.ops.linalg.lu import lu as lu_op
from primal.ops.linalg.lu import lu_pivots_to_permutation as pivots_op
from primal.ops.linalg.ormqr import ormqr as ormqr_op
from primal.ops.linalg.qr import geqrf as geqrf_op
from primal.ops.linalg.qr import householder_product as product_op
from primal.ops.linalg.qr import qr as qr_op
from primal.ops.linalg.schur import schur as schur_op
from primal.ops.linalg.svd import svd as svd_op
from primal.ops.linalg.triangular import triangular_solve as triangular_op
from primal.ops.linalg.tridiagonal import tridiagonal_solve as tridiagonal_solve_op
from primal.ops.linalg.update import cholesky_update as cholesky_update_op
from primal.ops.shape import reshape
from primal.ops.types import static_flag
from primal.runtime.refusals import in_words


class EigImplementation(enum.Enum):
    """Who computes `eig`. On the CPU that is LAPACK alone.

    >>> EigImplementation.LAPACK
    <EigImplementation.LAPACK: 'lapack'>
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """The algorithm of `eigh`. On the CPU that is QR alone, by divide and conquer.

    >>> EighImplementation.QR
    <EighImplementation.QR: 'qr'>
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """The algorithm of `svd`. DEFAULT is DIVIDE_AND_CONQUER; JACOBI and POLAR are not for CPUs.

    >>> SvdAlgorithm.DEFAULT
    <SvdAlgorithm.DEFAULT: 'default'>
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_ROUTINES = {
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


def symmetrized(x: Any, name: str) -> Any:
    """(x + xᴴ) / 2; integers become floats."""
    aval = aval_of(x)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise TypeError(
            f"[{name}] expected a square matrix or a stack of them, got shape {aval.shape}: it "
            "must have shape [..., n, n]."
        )
    if aval.dtype.kind in "iub":
        wide = np.float64 if aval.dtype.itemsize == 8 else np.float32
        x = convert_element_type(x, new_dtype=np.dtype(wide), weak_type=False)
    return mul(add(x, adjoint(x)), 0.5)


@remembered
@in_words
def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L Lᴴ = x, for positive definite x (..., n, n); nan for others.

    Reads (x + xᴴ) / 2, or only the lower triangle when not `symmetrize_input`. float32, float64,
    complex64, complex128, kept. TypeError or ValueError for others or if x is not square.

    >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return cholesky_op(symmetrized(x, "cholesky") if symmetrize_input else x)


@in_words
def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues w of x (..., n, n), then U with Uᴴ x = diag(w) Uᴴ, then V with x V = V diag(w).

    Complex of x's precision. Vectors are columns of norm 1 whose largest element is real, as LAPACK
    leaves them; they have derivatives (whatever enable_eigvec_derivs, which others need) where
    eigenvalues differ. nan for matrices that are not finite. Compiled programs on CPUs only.
    ValueError for another `implementation` than LAPACK's.

    >>> lax.linalg.eig(jnp.array([[0., 1.], [-1., 0.]]), compute_left_eigenvectors=False)[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if implementation not in (None, EigImplementation.LAPACK):
        raise ValueError(
            f"[eig] expected implementation=None or EigImplementation.LAPACK, got "
            f"{implementation!r}. Others are for GPUs."
        )
    return list(
        eig_op(
            x,
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
        )
    )


@remembered
@in_words
def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """(V, w) with x V = V diag(w), unitary V and real ascending w, of Hermitian x (..., n, n).

    Reads (x + xᴴ) / 2, or only one triangle when not `symmetrize_input`. Eigenvalues are sorted
    whatever `sort_eigenvalues`. nan for matrices that are not finite. The vectors' derivative is
    nan or inf where eigenvalues repeat. NotImplementedError for another `implementation` than QR.

    >>> lax.linalg.eigh(jnp.array([[2., 0.], [0., 1.]]))[1]
    Array([1., 2.], dtype=float32)
    """
    if implementation not in (None, EighImplementation.QR):
        raise NotImplementedError(
            f"[eigh] expected implementation=None or EighImplementation.QR, got "
            f"{implementation!r}. Others are for accelerators."
        )
    _no_subset("eigh", subset_by_index, x)
    x = symmetrized(x, "eigh") if symmetrize_input else x
    v, w = eigh_op(x, lower=bool(lower), compute_eigenvectors=True)
    return v, w


def _no_subset(name: str, subset: Any, x: Any) -> None:
    if subset is not None and tuple(subset) != (0, min(aval_of(x).shape[-2:], default=0)):
        raise NotImplementedError(
            f"[{name}] expected subset_by_index=None, got {subset}. LAPACK computes all of them; "
            "slice the result."
        )


def lu(x: Any) -> list[Any]:
    """(packed factors, pivots, permutation) with x[permutation] = L U, for x (..., m, n).

    L, with a unit diagonal that is not stored, is below the diagonal of the first result, U above.
    Row i was swapped with row pivots[i] (int32, from 0), which makes the int32 permutation.

    >>> lax.linalg.lu(jnp.array([[1., 2.], [2., 3.]]))[0]
    Array([[2. , 3. ],
           [0.5, 0.5]], dtype=float32)
    """
    return list(lu_op(x))


@in_words
def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The permutation that swapping row i with row pivots[i], for each i in turn, makes; int32.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([1, 1, 2]), 3)
    Array([1, 0, 2], dtype=int32)
    """
    return pivots_op(pivots, permutation_size=int(permutation_size))


@in_words
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


def householder_product(a: Any, taus: Any) -> Array:
    """The columns that reflections packed as by `geqrf` make, for a (..., m, n) with m >= n.

    >>> lax.linalg.householder_product(*lax.linalg.geqrf(jnp.array([[3.], [4.]])))
    Array([[-0.6],
           [-0.8]], dtype=float32)
    """
    return product_op(a, taus)


@in_words
def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """(U, s, Vᴴ) with x = U diag(s) Vᴴ and real s >= 0, descending; or s without `compute_uv`.

    x is (..., m, n); U is (m, m) and Vᴴ (n, n) with `full_matrices`, else they have min(m, n)
    columns and rows. nan for matrices that are not finite. The derivative of vectors needs
    full_matrices=False unless m == n, and is nan or inf where singular values repeat. ValueError
    for subset_by_index with full_matrices, NotImplementedError for an algorithm that LAPACK has
    not.

    >>> lax.linalg.svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    whole = subset_by_index is None or tuple(subset_by_index) == (0, min(aval_of(x).shape[-2:]))
    if not whole and full_matrices:
        raise ValueError(
            "[svd] expected full_matrices=False with subset_by_index, got both. Ask for the "
            "reduced factors."
        )
    _no_subset("svd", subset_by_index, x)
    routine = _ROUTINES.get(SvdAlgorithm.DEFAULT if algorithm is None else algorithm)
    if routine is None:
        raise NotImplementedError(
            f"[svd] expected an algorithm that CPUs have, got {algorithm!r}. DEFAULT, QR and "
            "DIVIDE_AND_CONQUER are LAPACK's."
        )
    flags = {
        "full_matrices": bool(full_matrices), "compute_uv": bool(compute_uv), "algorithm": routine
    }  # fmt: skip
    if not compute_uv:
        return svd_op(x, **flags)[0]
    s, u, vh = svd_op(x, **flags)
    return u, s, vh


@in_words
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """x with op(a) x = b when `left_side`, else x op(a) = b; a (..., n, n) is triangular.

    op transposes and conjugates as asked. Only the named triangle of a is read, and not its
    diagonal when `unit_diagonal`. b is (..., n, k), (..., k, n) on the right side, or (..., n).
    Divisions by zeros on the diagonal give inf and nan. Floats of 16 bits are solved in float32.
    TypeError or ValueError where dtypes or shapes differ.

    >>> lax.linalg.triangular_solve(
    ...     jnp.array([[2., 0.], [1., 1.]]), jnp.array([2., 3.]), left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    shape = aval_of(b).shape
    vector = len(shape) == aval_of(a).ndim - 1
    (a, b), narrow = _widened(a, b)
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
    out = _narrowed(out, narrow)
    return reshape(out, shape=shape) if vector else out


def _widened(*operands: Any) -> tuple[list[Any], Any]:
    """Floats of 16 bits in float32, and the dtype that they all had; else they as they are."""
    dtype = aval_of(operands[0]).dtype
    if not dtypes.is_narrow_float(dtype) or any(aval_of(x).dtype != dtype for x in operands):
        return list(operands), None
    wide = np.dtype(np.float32)
    return [convert_element_type(x, new_dtype=wide, weak_type=False) for x in operands], dtype


def _narrowed(out: Array, dtype: Any) -> Array:
    return out if dtype is None else convert_element_type(out, new_dtype=dtype, weak_type=False)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangular S with Sᵀ S = Rᵀ R + w wᵀ and a diagonal >= 0, in O(n²).

    R is r_matrix (..., n, n), of which the upper triangle is read, and w is w_vector (..., n);
    real floats, of which those of 16 bits are turned in float32. TypeError or ValueError for other
    dtypes or shapes.

    >>> lax.linalg.cholesky_update(jnp.array([[3., 0.], [0., 1.]]), jnp.array([4., 0.]))
    Array([[5., 0.],
           [0., 1.]], dtype=float32)
    """
    (r, w), narrow = _widened(r_matrix, w_vector)
    return _narrowed(cholesky_update_op(r, w), narrow)


def hessenberg(a: Any) -> list[Any]:
    """(packed, taus): the upper Hessenberg H = Qᴴ a Q and the reflections that make Q.

    H is what packed (..., n, n) has on and above its first subdiagonal. The rest and the factors
    taus (..., n-1) are reflections, as `householder_product` takes them. Differentiable, in about
    n steps, where the subdiagonal of H and every reflection but a real last one are not 0.

    >>> lax.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))[0]
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return list(hessenberg_op(a))


@in_words
def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """Q c, or Qᴴ c with `transpose`, or c Q and c Qᴴ when not `left`.

    Q (m, m) is the product of the reflections packed in a (..., m, n) with factors taus (..., k),
    as `jnp.linalg.qr(mode="raw")` leaves them (its first result transposed). Differentiable in c.

    >>> h, taus = jnp.linalg.qr(jnp.array([[3.], [4.]]), mode="raw")
    >>> lax.linalg.ormqr(h.T, taus, jnp.array([[3.], [4.]]), transpose=True).round(3)
    Array([[-5.],
           [ 0.]], dtype=float32)
    """
    return ormqr_op(a, taus, c, left=bool(left), transpose=bool(transpose))


@in_words
def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Any]:
    """[T, Q] with x = Q T Qᴴ, unitary Q and upper triangular T; [T] without vectors.

    For real x (..., n, n) T is real with blocks of two rows for pairs of complex eigenvalues. nan
    for matrices that are not finite. Differentiable where eigenvalues differ. NotImplementedError
    with `sort_eig_vals`.

    >>> lax.linalg.schur(jnp.array([[1., 2.], [0., 3.]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals:
        raise NotImplementedError(
            "[schur] expected sort_eig_vals=False, got True: eigenvalues are in LAPACK's order."
        )
    return list(schur_op(x, compute_schur_vectors=bool(compute_schur_vectors)))


@in_words
def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha A Aᵀ + beta C, for A (..., m, n) and C (..., m, m) of one floating dtype.

    With `symmetrize_output` the upper triangle is that of the lower one, transposed. TypeError for
    other dtypes, ValueError for other shapes.

    >>> lax.linalg.symmetric_product(jnp.array([[1.], [2.]]), jnp.eye(2), beta=1.)
    Array([[2., 2.],
           [2., 5.]], dtype=float32)
    """
    a, c = aval_of(a_matrix), aval_of(c_matrix)
    check_stacks("symmetric_product", (a, 2), (c, 2))
    if c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(
            "[symmetric_product] expected shapes (..., m, n) and (..., m, m), got "
            f"{a.shape} and {c.shape}."
        )
    for aval in (a, c):
        if not dtypes.issubdtype(aval.dtype, np.floating) or aval.dtype != a.dtype:
            raise TypeError(
                "[symmetric_product] expected matrices of one floating dtype, got "
                f"{a.dtype.name} and {c.dtype.name}."
            )
    out = add(mul(product(a_matrix, transposed(a_matrix)), float(alpha)),
              mul(c_matrix, float(beta)))  # fmt: skip
    if symmetrize_output:
        out = add(lower_part(out), transposed(lower_part(out, -1)))
    return out


@in_words
def tridiagonal(a: Any, *, lower: bool = True) -> list[Any]:
    """(packed, d, e, taus): the real tridiagonal Qᴴ a Q of Hermitian a (..., n, n), n > 0.

    d (..., n) is its diagonal, e (..., n-1) the one beside it; packed and taus (..., n-1) hold the
    reflections that make Q. Only the named triangle of a is read. Differentiable as `hessenberg`.

    >>> lax.linalg.tridiagonal(jnp.array([[1., 2.], [2., 3.]]))[1]
    Array([1., 3.], dtype=float32)
    """
    flag = static_flag("tridiagonal lower", lower)
    return list(tridiagonal_op(a, lower=flag))


@in_words
def tridiagonal_solve(
    dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False
) -> Array:
    """x with A x = b, where dl, d, du (..., n) are the diagonals of A and b is (..., n, k).

    dl[i] = A[i, i-1] and du[i] = A[i, i+1]; dl[0] and du[n-1] are not read. nan for singular A,
    or, with `perturb_singular`, the solution for pivots moved away from 0 by eps·max|U|.
    TypeError where dtypes or shapes differ.

    >>> one = jnp.ones(2)
    >>> lax.linalg.tridiagonal_solve(one, 2 * one, one, jnp.array([[3.], [3.]]))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return tridiagonal_solve_op(dl, d, du, b, perturb_singular=bool(perturb_singular))


def __getattr__(name: str) -> Any:
    found = registry.get(name[:-2])
    if name[-2:] == "_p" and found is not None and found.kind is LINALG:
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    records = [f"{name}_p" for name, op in registry.items() if op.kind is LINALG]
    return sorted({*globals(), *records})


__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "geqrf",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]
