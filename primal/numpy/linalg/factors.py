"""Factorisations: cholesky, qr, svd, eig, eigh and their values alone."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from primal.ir.trace import Array
from primal.numpy import direct
from primal.numpy.elementary import abs as absolute
from primal.numpy.elementary import conjugate, sign
from primal.numpy.promotion import ArrayLike, check_arraylike, promote_dtypes_inexact
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import matrix_transpose
from primal.numpy.sorting import sort_indices
from primal.numpy.taking import take_along_axis
from primal.ops import elementwise as ops
from primal.ops.linalg import cholesky as cholesky_room
from primal.ops.linalg import eig as eig_room
from primal.ops.linalg import eigh as eigh_room
from primal.ops.linalg import qr as qr_room
from primal.ops.linalg import svd as svd_room
from primal.ops.types import static_flag


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Ascending real eigenvalues, and orthonormal eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns and an upper triangle."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors, singular values in falling order, right singular vectors as rows."""

    U: Array
    S: Array
    Vh: Array


def matrix(name: str, a: Any, square: bool = False) -> Any:
    """A (stack of) matrices as an operand of an inexact dtype.

    TypeError for what is no matrix (ValueError where determinants and inverses are asked for), and
    for what cannot be added to its adjoint; ValueError for other shapes.
    """
    check_arraylike(f"jnp.linalg.{name}", a)
    (x,) = promote_dtypes_inexact(f"jnp.linalg.{name}", a)
    shape = x.aval.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        want = "n, n" if square else "m, n"
        of_type = len(shape) < 2 and name not in ("inv", "pinv", "det", "slogdet")
        raise (TypeError if of_type or name in ("cholesky", "eigh", "eigvalsh") else ValueError)(
            f"Argument to {name}() must have shape [..., {want}], got {shape}."
        )
    return x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of (stacks of) matrices."""
    return conjugate(matrix_transpose(x))


def symmetrized(x: Any) -> Any:
    """(x + xᴴ) / 2."""
    return ops.div(ops.add(x, adjoint(x)), 2.0)


@remembered
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangle L with a = L Lᴴ (or U with a = Uᴴ U); nan where a is not positive definite.

    With `symmetrize_input`, of (a + aᴴ) / 2; otherwise of the lower (upper) triangle of a. Stacks
    of matrices are taken one by one: leading dimensions stay.

    >>> jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = matrix("cholesky", a, square=True)
    if symmetrize_input:
        x = symmetrized(x)
    elif upper:
        x = adjoint(x)
    low = cholesky_room.cholesky(x)
    return adjoint(low) if upper else low


@remembered_as(direct.qr)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """a = Q R with orthonormal columns in Q and an upper triangle R.

    mode: 'reduced' (Q is m × min(m, n)), 'complete' (m × m), 'r' (R alone), 'raw' (Householder
    vectors and factors). Raises ValueError for other modes. Householder, 1958, by LAPACK's geqrf.

    >>> Q, R = jnp.linalg.qr(jnp.array([[3., 0.], [4., 5.]]))
    >>> jnp.allclose(Q @ R, jnp.array([[3., 0.], [4., 5.]]), atol=1e-5)
    Array(True, dtype=bool)
    """
    check_arraylike("jnp.linalg.qr", a)
    if mode not in ("raw", "reduced", "complete", "r", "full"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    x = matrix("qr", a)
    if mode == "raw":
        packed, taus = qr_room.geqrf(x)
        return QRResult(matrix_transpose(packed), taus)
    full = mode in ("complete", "full")
    q, r = qr_room.qr(x, pivoting=False, full_matrices=full)
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any: ...
@remembered
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """a = U diag(S) Vh, S falling; S alone without `compute_uv`.

    `hermitian` says that a = aᴴ, and uses its eigenvectors. Raises NotImplementedError for
    `subset_by_index`, ValueError with `full_matrices`. Stacks of matrices are taken one by one:
    leading dimensions stay.

    >>> jnp.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    x = matrix("svd", a)
    full_matrices = static_flag("svd full_matrices", full_matrices)
    compute_uv = static_flag("svd compute_uv", compute_uv)
    hermitian = static_flag("svd hermitian", hermitian)
    if subset_by_index is not None:
        if full_matrices:
            raise ValueError(
                "[svd] expected full_matrices=False, as full_matrices and subset_by_index cannot "
                "both be set."
            )
        raise NotImplementedError("[svd] expected subset_by_index=None: subsets are not supported.")
    if not hermitian:
        if not compute_uv:
            return svd_room.svd(
                x, full_matrices=full_matrices, compute_uv=False, algorithm="gesdd"
            )[0]
        s, u, vh = svd_room.svd(
            x, full_matrices=full_matrices, compute_uv=True, algorithm="gesdd"
        )
        return SVDResult(u, s, vh)
    vectors, values = eigh_room.eigh(x, lower=True, compute_eigenvectors=True)
    size = absolute(values)
    order = sort_indices(size, size.ndim - 1, descending=True)
    s = take_along_axis(size, order, -1)
    if not compute_uv:
        return s
    u = take_along_axis(vectors, order[..., None, :], -1)
    signs = sign(take_along_axis(values, order, -1))[..., None, :]
    return SVDResult(u, s, adjoint(u * signs.astype(u.dtype)))


@remembered
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, falling.

    Stacks of matrices are taken one by one: leading dimensions stay. Their squares are the
    eigenvalues of aᴴ·a.

    >>> jnp.linalg.svdvals(jnp.array([[3., 0.], [0., 4.]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


@remembered
def eig(a: ArrayLike) -> EigResult:
    """Complex eigenvalues w and eigenvectors V of square matrices: a V = V diag(w).

    >>> w, V = jnp.linalg.eig(jnp.array([[0., 1.], [-1., 0.]]))
    >>> jnp.allclose(jnp.abs(w), 1.)
    Array(True, dtype=bool)
    """
    x = matrix("eig", a, square=True)
    w, v = eig_room.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=True)
    return EigResult(w, v)


@remembered
def eigvals(a: ArrayLike) -> Array:
    """The complex eigenvalues of square matrices.

    Those w for which a v = w v has a solution v other than 0.

    >>> jnp.abs(jnp.linalg.eigvals(jnp.array([[0., 4.], [-1., 0.]])))
    Array([2., 2.], dtype=float32)
    """
    x = matrix("eigvals", a, square=True)
    return eig_room.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@remembered
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Ascending real eigenvalues w and orthonormal eigenvectors V of a = aᴴ: a V = V diag(w).

    With `symmetrize_input`, of (a + aᴴ) / 2; otherwise of the triangle that UPLO ('L' or 'U')
    names. Raises ValueError for another UPLO. Stacks of matrices are taken one by one: leading
    dimensions stay.

    >>> jnp.linalg.eigh(jnp.array([[2., 0.], [0., 1.]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    x, lower = _hermitian("eigh", a, UPLO, symmetrize_input)
    vectors, values = eigh_room.eigh(x, lower=lower, compute_eigenvectors=True)
    return EighResult(values, vectors)


@remembered
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The ascending real eigenvalues of a = aᴴ.

    Stacks of matrices are taken one by one: leading dimensions stay.

    >>> jnp.linalg.eigvalsh(jnp.array([[2., 0.], [0., 1.]]))
    Array([1., 2.], dtype=float32)
    """
    x, lower = _hermitian("eigvalsh", a, UPLO, symmetrize_input)
    return eigh_room.eigh(x, lower=lower, compute_eigenvectors=False)[0]


def _hermitian(name: str, a: Any, uplo: str | None, symmetrize: bool) -> tuple[Any, bool]:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {uplo}")
    x = matrix(name, a, square=True)
    mixed = static_flag(f"{name} symmetrize_input", symmetrize)
    return (symmetrized(x) if mixed else x), uplo != "U"
