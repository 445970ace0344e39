"""Matrices of a known structure: Toeplitz, Hankel, Hilbert, Pascal, Leslie and others.

Those of data gather it at indices that are constants of the program. Those of a size alone are
computed on the host in double precision, in which all of their integers below 2⁵³ are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.ir.trace import Array
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    broadcast_shapes,
    check_arraylike,
    promote_dtypes,
    to_shape,
)
from primal.numpy.remembered import remembered
from primal.ops.types import static_count, static_flag, static_int
from primal.scipy.operands import inexact, strong


def _size(name: str, n: Any, least: int = 0) -> int:
    n = (static_int if name == "hilbert" else static_count)(f"{name} n", n)
    if n < least:
        kind = "a positive integer" if least else "an integer that is not negative"
        raise ValueError(f"n must be {kind}; got {n}.")
    return n


def _floats(x: Any) -> Array:
    """A host array in the default floating dtype."""
    with np.errstate(over="ignore"):
        return jnp.asarray(x.astype(dtypes.python_scalar_dtype(float)))


def _vector(name: str, x: Any) -> Any:
    check_arraylike(name, x)
    return jnp.atleast_1d(array_operand(name, x))


# Of data.


@remembered
def block_diag(*arrs: ArrayLike) -> Array:
    """The matrix with the given ones along its diagonal, zeros elsewhere.

    Matrices (mᵢ, nᵢ) make one (Σ mᵢ, Σ nᵢ) of their common dtype; scalars and vectors count as
    single rows. ValueError for more than two dimensions, TypeError for lists.

    >>> block_diag(jnp.array([[1, 2]]), 3)
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    blocks = arrs or (jnp.zeros((1, 0)),)
    check_arraylike("block_diag", *blocks)
    for i, x in enumerate(blocks):
        if np.ndim(x) > 2:
            raise ValueError(
                "Arguments to block_diag must have at most 2 dimensions, got shape "
                f"{np.shape(x)} at argument {i}."
            )
    parts = [jnp.atleast_2d(x) for x in promote_dtypes("block_diag", *blocks)]
    width, before, rows = sum(x.shape[1] for x in parts), 0, []
    for x in parts:
        n = x.shape[1]
        rows.append(jnp.pad(x, ((0, 0), (before, width - before - n))))
        before += n
    out = jnp.concatenate(rows, axis=0)
    return out.astype(out.dtype)  # strong


@remembered
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix that is constant along its diagonals: T[i, j] = c[i-j] for i ≥ j, else r[j-i].

    c (..., m) and r (..., n) make (..., m, n); r is conj(c) by default and r[0] is not read.
    ValueError where leading shapes do not broadcast, TypeError for lists.

    >>> toeplitz(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]], dtype=int32)
    """
    column = _vector("toeplitz", c)
    row = jnp.conj(column) if r is None else _vector("toeplitz", r)
    column, row = promote_dtypes("toeplitz", column, row)
    m, n = column.shape[-1], row.shape[-1]
    lead = broadcast_shapes(column.shape[:-1], row.shape[:-1])
    if m == 0 or n == 0:
        return jnp.zeros((*lead, m, n), column.dtype)
    column, row = to_shape(column, (*lead, m)), to_shape(row, (*lead, n))
    line = jnp.concatenate([jnp.flip(column, -1), row[..., 1:]], axis=-1)
    out = line[..., (m - 1) - np.arange(m)[:, None] + np.arange(n)]
    return out.astype(out.dtype)  # not weak, whatever the operands


@remembered
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix that is constant along its antidiagonals: H[i, j] = c[i+j], beyond c r[i+j-m+1].

    c (..., m) and r (..., n) make (..., m, n); r is zeros like c by default and r[0] is not read.
    ValueError for scalars and where leading shapes do not broadcast.

    >>> hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    check_arraylike("hankel", c)
    if np.ndim(c) == 0:
        raise ValueError("hankel: c must be at least 1-dimensional, got a scalar.")
    if r is not None:
        check_arraylike("hankel", r)
        if np.ndim(r) == 0:
            raise ValueError("hankel: r must be at least 1-dimensional, got a scalar.")
    first = array_operand("hankel", c)
    last = jnp.zeros_like(first) if r is None else array_operand("hankel", r)
    column, row = promote_dtypes("hankel", first, last)
    m, n = column.shape[-1], row.shape[-1]
    lead = broadcast_shapes(column.shape[:-1], row.shape[:-1])
    if m == 0 or n == 0:
        return jnp.zeros((*lead, m, n), column.dtype)
    column, row = to_shape(column, (*lead, m)), to_shape(row, (*lead, n))
    line = jnp.concatenate([column, row[..., 1:]], axis=-1)
    return line[..., np.arange(m)[:, None] + np.arange(n)]


@remembered
def circulant(c: ArrayLike) -> Array:
    """The matrix of cyclic shifts of a column: C[i, j] = c[(i - j) mod n].

    c (..., n) makes (..., n, n) of its dtype. TypeError for lists.

    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    x = _vector("circulant", c)
    n = x.shape[-1]
    places = (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)
    return x[..., places] if n else jnp.zeros((*x.shape[:-1], 0, 0), x.dtype)


@remembered
def companion(a: ArrayLike) -> Array:
    """The companion matrix of Σₖ a[k] xⁿ⁻ᵏ: its eigenvalues are the polynomial's roots.

    The first row is -a[1:] / a[0], ones are below the diagonal. a (..., n+1) makes (..., n, n);
    integers become floats. ValueError where n < 1; a[0] = 0 gives inf and nan.

    >>> companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (x,) = inexact("companion", a)
    x = jnp.atleast_1d(x)
    if x.shape[-1] < 2:
        raise ValueError(
            f"The length of `a` along the last axis must be at least 2; got shape {x.shape}."
        )
    n = x.shape[-1] - 1
    row = (-x[..., 1:] / x[..., :1])[..., None, :]
    rest = jnp.broadcast_to(jnp.eye(n - 1, n, dtype=x.dtype), (*x.shape[:-1], n - 1, n))
    return jnp.concatenate([row, rest], axis=-2)


@remembered
def fiedler(a: ArrayLike) -> Array:
    """The symmetric matrix of distances F[i, j] = |a[i] - a[j]|.

    a (..., n) makes (..., n, n), real for complex a. TypeError for lists.

    >>> fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    x = _vector("fiedler", a)
    return jnp.abs(x[..., :, None] - x[..., None, :])


@remembered
def fiedler_companion(a: ArrayLike) -> Array:
    """A matrix of five diagonals with the eigenvalues of `companion(a)` (Fiedler, 2003).

    a (..., n+1) makes (..., n, n); integers become floats. ValueError for an empty a.

    >>> fiedler_companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (x,) = inexact("fiedler_companion", a)
    x = jnp.atleast_1d(x)
    if x.shape[-1] == 0:
        raise ValueError(
            "fiedler_companion requires the last axis of 'a' to have nonzero length, but got an "
            f"array of shape {x.shape}."
        )
    n = x.shape[-1] - 1
    if not n:
        return x[..., :0, None][..., :0]  # of a's own type, weak ones too
    take, ones = np.zeros((n, n), int), np.zeros((n, n), bool)
    take[0, 0] = 1
    if n > 1:
        ones[1, 0] = True
    for i in range(1, n, 2):  # entry (i-1, i) holds a[i+1], (i+1, i) holds a[i+2]
        take[i - 1, i] = i + 1
        if i + 1 < n:
            take[i + 1, i] = i + 2
            ones[i - 1, i + 1] = True
        if i + 2 < n:
            ones[i + 2, i] = True
    coefficients = -x / x[..., :1]
    filled = jnp.where(take > 0, coefficients[..., take], ones.astype(x.dtype))
    return filled.astype(x.dtype)


@remembered
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """The population model with fertilities f in the first row and survival s below the diagonal.

    f (..., n) and s (..., n-1) make (..., n, n) of their common dtype. ValueError where the
    lengths do not fit or n < 2.

    >>> leslie(jnp.array([0., 2.]), jnp.array([0.5]))
    Array([[0. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    check_arraylike("leslie", f, s)
    first, below = promote_dtypes("leslie", _vector("leslie", f), _vector("leslie", s))
    n = first.shape[-1]
    if below.shape[-1] != n - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less "
            f"than the length of f; got f shape {first.shape} and s shape {below.shape}."
        )
    if n < 2:
        raise ValueError(
            f"The length of f along the last axis must be at least 2; got shape {first.shape}."
        )
    lead = broadcast_shapes(first.shape[:-1], below.shape[:-1])
    row = to_shape(first, (*lead, n))[..., None, :]
    rest = to_shape(below, (*lead, n - 1))[..., None] * jnp.eye(n - 1, n, dtype=first.dtype)
    return jnp.concatenate([row, rest], axis=-2)


@remembered
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix A with A v = convolve(a, v, mode) for every v of n points: A[i, j] = a[i - j].

    a (..., m) makes (..., m+n-1, n); mode 'same' keeps the max(m, n) rows in the middle, 'valid'
    the |m-n|+1 of full overlap. ValueError for an empty a, n < 1 or another mode.

    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    n = _size("convolution_matrix", n, 1)
    x = _vector("convolution_matrix", a)
    if not np.ndim(a):
        raise ValueError("convolution_matrix: a must be at least 1-dimensional, got a scalar.")
    m = x.shape[-1]
    if m < 1:
        raise ValueError(f"len(a) must be at least 1; got shape {x.shape}.")
    (x,) = strong(x)
    cut = min(m, n) - 1
    first, last = {"full": (0, 0), "same": (cut // 2, cut - cut // 2), "valid": (cut, cut)}[mode]
    padded = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n - 1, n - 1)])
    rows = np.arange(first, m + n - 1 - last)
    return padded[..., rows[:, None] - np.arange(n) + n - 1]


# Of a size.


@remembered
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: F[j, k] = exp(-2πi jk/n).

    scale 'sqrtn' divides by √n (then F is unitary), 'n' by n. Complex (n, n). ValueError for
    another scale or a dtype that is not complex.

    >>> dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    n = _size("dft", static_count("dft n", n))
    wanted = dtypes.check_user_dtype_supported(complex if dtype is None else dtype, "dft")
    if wanted.kind != "c":
        raise ValueError(f"dtype must be a complex floating-point type; got {wanted.name}.")
    # jk mod n keeps the angle small: its sine is as exact in the last row as in the first.
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    out = np.exp(-2j * np.pi * turns / max(n, 1))
    if scale is not None and n:
        out = out / (np.sqrt(n) if scale == "sqrtn" else n)
    return jnp.asarray(out.astype(wanted))


@remembered
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Sylvester's Hadamard matrix: entries ±1 and H Hᵀ = n 1, H₂ₙ = [[H, H], [H, -H]].

    (n, n) of the dtype. ValueError unless n is a power of 2.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = static_count("hadamard n", n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    wanted = dtypes.check_user_dtype_supported(dtype, "hadamard")
    out = np.ones((1, 1), np.int8)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return jnp.asarray(out.astype(wanted))


@remembered
def helmert(n: int, full: bool = False) -> Array:
    """Helmert's orthonormal rows, of which all but the first sum to 0; that one only with `full`.

    Row k ≥ 1 is (1, …, 1, -k, 0, …) / √(k(k+1)) with k ones, row 0 is 1/√n. (n-1, n), or (n, n)
    with `full`. ValueError for n < 1.

    >>> helmert(2, full=True).round(3)
    Array([[ 0.707,  0.707],
           [ 0.707, -0.707]], dtype=float32)
    """
    n = _size("helmert", n, 1)
    full = static_flag("helmert full", full)
    k = np.arange(1, n)[:, None].astype(float)
    columns = np.arange(n)
    rows = np.where(columns < k, 1.0, np.where(columns == k, -k, 0.0)) / np.sqrt(k * (k + 1))
    return _floats(np.vstack([np.full((1, n), n**-0.5), rows]) if full else rows)


@remembered
def hilbert(n: int) -> Array:
    """Hilbert's matrix H[i, j] = 1 / (i + j + 1), (n, n): positive definite, badly conditioned.

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = np.arange(_size("hilbert", n), dtype=float)
    return _floats(1 / (i[:, None] + i + 1))


@remembered
def invhilbert(n: int) -> Array:
    """The inverse of `hilbert(n)`, of integers (Choi, 1983), rounded to the default dtype.

    (-1)ⁱ⁺ʲ pᵢ pⱼ / (i+j+1) with pᵢ = (n+i)! / (i!² (n-1-i)!); inf where that is too large.

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)
    p, values = n, []
    for i in range(n):
        values.append(float(p) if p.bit_length() < 1024 else np.inf)
        p = p * (n + i + 1) * (n - 1 - i) // (i + 1) ** 2
    i = np.arange(n)
    signed = np.array(values, float) * (1 - 2.0 * (i % 2))
    with np.errstate(over="ignore"):
        return _floats(signed[:, None] / (i[:, None] + i + 1) * signed)


_KINDS = ("symmetric", "lower", "upper")


def _pascal_kind(kind: str | None) -> str:
    if kind is None:
        return "symmetric"
    if kind not in _KINDS:
        raise ValueError(f"Expected kind to be one of: {list(_KINDS)}; got {kind}")
    return kind


def _lower_pascal(n: int) -> Any:
    out = np.zeros((n, n))
    with np.errstate(over="ignore"):
        for i in range(n):
            out[i, 0] = 1
            out[i, 1 : i + 1] = out[i - 1, :i] + out[i - 1, 1 : i + 1] if i else 1
    return out


@remembered
def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle: P[i, j] = C(i+j, i), kind 'lower' C(i, j), 'upper' its transpose.

    (n, n), float32 always, as the reference; the symmetric one is lower · upper. ValueError for
    another kind.

    >>> pascal(3, "lower")
    Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 2., 1.]], dtype=float32)
    """
    kind, n = _pascal_kind(kind), _size("pascal", n)
    if kind == "symmetric":
        out = np.ones((n, n))
        with np.errstate(over="ignore"):
            for i in range(1, n):
                out[i] = np.cumsum(out[i - 1])
        return _floats(out).astype(np.float32)
    lower = _lower_pascal(n)
    return _floats(lower if kind == "lower" else lower.T).astype(np.float32)


@remembered
def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal(n, kind)`: binomials with alternating signs.

    (n, n); that of 'lower' is (-1)ⁱ⁺ʲ C(i, j). ValueError for another kind.

    >>> invpascal(3, "lower")
    Array([[ 1.,  0.,  0.],
           [-1.,  1.,  0.],
           [ 1., -2.,  1.]], dtype=float32)
    """
    kind, n = _pascal_kind(kind), _size("invpascal", n)
    lower = _lower_pascal(n) * ((-1.0) ** np.add.outer(np.arange(n), np.arange(n)))
    lower += 0.0  # no -0
    if kind == "symmetric":
        return _floats(lower.T @ lower)
    return _floats(lower if kind == "lower" else lower.T)
