"""Factorisations with SciPy's signatures; the operations are those of `primal.lax.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api import jit, vmap
from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.trace import Array
from primal.lax import linalg as room
from primal.lax.control import fori_loop
from primal.lax.dynamic import dynamic_slice, dynamic_update_slice
from primal.numpy.linalg.factors import adjoint
from primal.numpy.promotion import ArrayLike, array_operand, check_arraylike, is_arraylike
from primal.numpy.remembered import remembered
from primal.ops.types import static_flag
from primal.scipy.operands import inexact

HIGHEST = "highest"


def listed(name: str, *args: Any) -> list[Any]:
    """`inexact` for functions that, as in the reference, make arrays of lists too."""
    return inexact(name, *[x if is_arraylike(x) else jnp.asarray(x) for x in args])


def matrices(
    name: str, a: ArrayLike, square: bool = False, flat: type[Exception] = TypeError
) -> Any:
    """A stack of matrices of an inexact dtype, from lists too.

    The error `flat` for what is no matrix, ValueError for one that is not square but must be.
    """
    (x,) = listed(name, a)
    shape = x.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        want = "n, n" if square else "m, n"
        raise (flat if len(shape) < 2 else ValueError)(
            f"Argument to {name} must have shape [..., {want}], got shape {shape}."
        )
    return x


def product(*factors: Any) -> Any:
    """The product of matrices, in full precision."""
    out = factors[0]
    for x in factors[1:]:
        out = jnp.matmul(out, x, precision=HIGHEST)
    return out


def complex_matrix(x: Any) -> Any:
    """x in the complex dtype of its precision."""
    return x.astype(dtypes.to_complex_dtype(x.dtype))


def _inexact_already(name: str, a: Any) -> Any:
    check_arraylike(name, a)
    x = array_operand(name, a)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name} at position 0: expected a floating or "
            "complex one. Convert first with astype."
        )
    return x


# Cholesky.


@remembered
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The triangle U with a = Uᴴ U, or with `lower` L with a = L Lᴴ, of positive definite a.

    a is (..., n, n), integers become floats; only the named triangle is read. nan for matrices
    that are not positive definite; ValueError if not square. overwrite_a and check_finite do
    nothing. LAPACK's potrf.

    >>> cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, square=True, flat=ValueError)
    read = x if lower else adjoint(x)
    out = room.cholesky(read, symmetrize_input=False)
    return out if lower else adjoint(out)


@remembered
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """(`cholesky(a, lower)`, lower): what `cho_solve` takes.

    a is (..., n, n). nan for matrices that are not positive definite; ValueError if not square.

    >>> cho_factor(jnp.array([[4.]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


# Orthogonal and triangular.


@remembered
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """(Q, R) with a = Q R, orthonormal columns of Q and upper triangular R, of a (..., m, n).

    Q is (m, m) with mode 'full', (m, min(m, n)) with 'economic', absent with 'r'. With `pivoting`
    also p with a[:, p] = Q R and a falling |R[i, i]|. ValueError for another mode, 'raw' too.
    Integers become floats. LAPACK's geqrf and geqp3.

    >>> qr(jnp.array([[3.], [4.]]), mode="economic")[1]
    Array([[-5.]], dtype=float32)
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}: expected 'full', 'r' or 'economic'."
        )
    x = matrices("qr", a)
    out = room.qr(x, pivoting=bool(pivoting), full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


@remembered
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """(c Q, R), or (Q c, R) with mode 'left', where a = Q R; and p with `pivoting`.

    a is (..., m, n) and k = min(m, n): R is (k, n) and Q has k columns, but Q c with mode 'left'
    keeps m rows for c (k, r). c may be a vector. `conjugate` takes conj(Q). ValueError where
    shapes do not fit.

    >>> qr_multiply(jnp.array([[3.], [4.]]), jnp.array([3., 4.]))[0].round(3)
    Array([-5.], dtype=float32)
    """
    if mode not in ("right", "left"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    x, y = listed("qr_multiply", a, c)
    if x.ndim < 2 or y.ndim < 1:
        raise ValueError(
            "qr_multiply expects a of at least 2 dimensions and c of at least 1, got shapes "
            f"{x.shape} and {y.shape}."
        )
    m, n = x.shape[-2:]
    k, vector = min(m, n), y.ndim == 1
    if vector:
        y = y[:, None] if mode == "left" else y[None, :]
    have, want = (y.shape[-2], k) if mode == "left" else (y.shape[-1], m)
    if have != want:
        left = "Q @ c", "rows", f"{k} columns"
        side, axis, own = left if mode == "left" else ("c @ Q", "columns", f"{m} rows")
        raise ValueError(
            f"Array shapes are not compatible for {side} operation: a has shape {x.shape} so Q has "
            f"{own}, but c has {have} {axis} (expected {want})."
        )
    q, r, *pivots = room.qr(x, pivoting=bool(pivoting), full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    out = product(q, y) if mode == "left" else product(y, q)
    if vector:
        out = out[..., 0] if mode == "left" else out[..., 0, :]
    return (out, r, *pivots)


@remembered
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """(U, s, Vᴴ) with a = U diag(s) Vᴴ and real s ≥ 0, descending; s alone without `compute_uv`.

    a is (..., m, n); U (m, m) and Vᴴ (n, n) with `full_matrices`, else of min(m, n) columns and
    rows. Integers become floats. nan for matrices that are not finite. lapack_driver does nothing:
    it is always gesdd.

    >>> svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    return room.svd(
        matrices("svd", a), full_matrices=bool(full_matrices), compute_uv=bool(compute_uv)
    )


@remembered
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """(U, P) with a = U P, or a = P U with side 'left': U unitary, P Hermitian, P ≥ 0.

    Of a (..., m, n) U has orthonormal columns (rows if m < n). method 'svd' takes all shapes,
    'qdwh' (Halley's iteration, Nakatsukasa, Bai and Gygi, 2010; eps and max_iterations are its)
    needs m ≥ n with 'right' and m < n with 'left', else NotImplementedError. ValueError for
    another side or method and for integers.

    >>> u, p = polar(jnp.array([[0., -2.], [3., 0.]]), method="svd")
    >>> jnp.allclose(p, jnp.diag(jnp.array([3., 2.])), atol=1e-5)
    Array(True, dtype=bool)
    """
    x = jnp.asarray(a)
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    if not dtypes.issubdtype(x.dtype, np.inexact):
        raise ValueError(f"[polar] expected an inexact dtype, got {x.dtype.name}.")
    if x.ndim < 2:
        raise ValueError(f"[polar] expected (..., m, n), got {x.shape}: at least a 2-D array.")
    m, n = x.shape[-2:]
    if method == "svd":
        u, s, vh = room.svd(x, full_matrices=False)
        unitary, s = product(u, vh), s[..., None, :].astype(x.dtype)
        return unitary, product(adjoint(vh) * s, vh) if side == "right" else product(
            u * s, adjoint(u)
        )
    if (side == "right") != (m >= n):
        raise NotImplementedError(
            "method='qdwh' only supports m x n matrices with m >= n for side='right' and m < n "
            f"for side='left', got {(m, n)} with side={side!r}. Use method='svd'."
        )

    def one(y: Any) -> Any:
        return room.qdwh(y, max_iterations=max_iterations, eps=eps)[:2]

    tall = x if side == "right" else adjoint(x)
    unitary, p = stacked(one, tall)
    return (unitary, p) if side == "right" else (adjoint(unitary), p)


def stacked(fun: Any, *xs: Any) -> Any:
    """`fun` of matrices, on each of stacks with broadcasting leading dimensions."""
    lead = jnp.broadcast_shapes(*[x.shape[:-2] for x in xs])
    for _ in lead:
        fun = vmap(fun)
    return fun(*[jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in xs] if lead else xs)


# LU.


@remembered
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """(packed, pivots), which `lu_solve` takes: L below the diagonal (its own is 1), U from it on.

    a is (..., m, n), integers become floats; row i was swapped with row pivots[i], int32.
    LAPACK's getrf.

    >>> lu_factor(jnp.array([[1., 2.], [2., 3.]]))
    (Array([[2. , 3. ],
           [0.5, 0.5]], dtype=float32), Array([1, 1], dtype=int32))
    """
    packed, pivots, _ = room.lu(matrices("lu_factor", a))
    return packed, pivots


@remembered
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """(P, L, U) with a = P L U, or (P L, U) with `permute_l`; a is (..., m, n).

    P (m, m) is a permutation in the real dtype, L (m, k) has ones on its diagonal, U is (k, n),
    k = min(m, n). Integers become floats.

    >>> lu(jnp.array([[1., 2.], [2., 3.]]), permute_l=True)[0]
    Array([[0.5, 1. ],
           [1. , 0. ]], dtype=float32)
    """
    x = matrices("lu", a)
    permute_l = static_flag("lu permute_l", permute_l)
    packed, _, permutation = room.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    real = dtypes.to_real_dtype(x.dtype)
    p = (np.arange(m, dtype=np.int32)[:, None] == permutation[..., None, :]).astype(real)
    lower = jnp.tril(packed[..., :, :k], -1) + jnp.eye(m, k, dtype=x.dtype)
    upper = jnp.triu(packed[..., :k, :])
    return (product(p, lower), upper) if permute_l else (p, lower, upper)


# Of similarity.


@remembered
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """(w, V) with a V = V diag(w), real ascending w and unitary V; or w with `eigvals_only`.

    a (..., n, n) is Hermitian: (a + aᴴ)/2 is read; integers become floats. Only b=None,
    eigvals=None and type=1 are there, NotImplementedError for others. TypeError if not square.
    LAPACK's syevd and heevd.

    >>> eigh(jnp.array([[2., 0.], [0., 1.]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    if b is not None:
        raise NotImplementedError("Only the b=None case of eigh is implemented")
    if type != 1:
        raise NotImplementedError("Only the type=1 case of eigh is implemented.")
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    (x,) = listed("eigh", a)
    if eigvals_only and x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
        return jnp.linalg.eigvalsh(x, UPLO="L" if lower else "U")
    v, w = room.eigh(x, lower=bool(lower))
    return w, v


@remembered
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The upper Hessenberg H with a = Q H Qᴴ; (H, Q) with `calc_q`.

    a is (..., n, n), inexact (TypeError else); ValueError if not square. LAPACK's gehrd.

    >>> hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x = matrices("hessenberg", _inexact_already("hessenberg", a), square=True)
    n = x.shape[-1]
    if n == 0:
        return (x, x) if calc_q else x
    packed, taus = room.hessenberg(x)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    lead = x.shape[:-2]
    corner = room.householder_product(packed[..., 1:, : n - 1], taus)
    below = jnp.concatenate([jnp.zeros((*lead, n - 1, 1), x.dtype), corner], axis=-1)
    first = jnp.broadcast_to(jnp.eye(1, n, dtype=x.dtype), (*lead, 1, n))
    return h, jnp.concatenate([first, below], axis=-2)


@remembered
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """(T, Z) with a = Z T Zᴴ, unitary Z and upper triangular T, complex with output 'complex'.

    With 'real' T of a real a (..., n, n) has blocks of two rows for pairs of complex eigenvalues.
    nan for matrices that are not finite. TypeError for integers, ValueError if not square or for
    another output. LAPACK's gees.

    >>> schur(jnp.array([[1., 2.], [0., 3.]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(
            f"Expected 'output' to be either 'real' or 'complex', got output={output!r}."
        )
    x = matrices("schur", _inexact_already("schur", a), square=True)
    t, z = room.schur(complex_matrix(x) if output == "complex" else x)
    return t, z


@remembered
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form (T', Z') of a real one: Z T Zᵀ = Z' T' Z'ᴴ with triangular T'.

    T and Z are (..., n, n), the results complex. From the last row up each block of two rows is
    made triangular by a rotation with its eigenvector (Golub and Van Loan, §7.4). ValueError if not
    square.

    >>> jnp.diagonal(rsf2csf(jnp.array([[0., 1.], [-1., 0.]]), jnp.eye(2))[0]).imag.round(3)
    Array([ 1., -1.], dtype=float32)
    """
    t, z = listed("rsf2csf", T, Z)
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}")
    return stacked(_triangular_form, complex_matrix(t), complex_matrix(z))


@jit
def _triangular_form(t: Any, z: Any) -> Any:
    n = t.shape[-1]
    small = float(finfo(t.dtype).eps)

    def step(i: Any, state: Any) -> Any:
        t, z = state
        m = n - 2 - i  # the block of rows m and m + 1
        block = dynamic_slice(t, (m, m), (2, 2))
        a, b, c, d = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
        split = jnp.abs(c) > small * (jnp.abs(a) + jnp.abs(d))
        half = (a - d) / 2
        mu = half + jnp.sqrt(half * half + b * c)  # an eigenvalue less d: (mu, c) its vector
        size = jnp.sqrt(jnp.abs(mu) ** 2 + jnp.abs(c) ** 2)
        size = jnp.where(split, size, 1).astype(t.dtype)
        p, q = jnp.where(split, mu / size, 1), jnp.where(split, c / size, 0)
        turn = jnp.stack([jnp.stack([jnp.conj(p), q]), jnp.stack([-q, p])])
        rows = product(turn, dynamic_slice(t, (m, 0), (2, n)))
        t = dynamic_update_slice(t, rows, (m, 0))
        back = adjoint(turn)
        t = dynamic_update_slice(t, product(dynamic_slice(t, (0, m), (n, 2)), back), (0, m))
        z = dynamic_update_slice(z, product(dynamic_slice(z, (0, m), (n, 2)), back), (0, m))
        return t, z

    if n < 2:
        return t, z
    t, z = fori_loop(0, n - 1, step, (t, z))
    return jnp.triu(t), z
