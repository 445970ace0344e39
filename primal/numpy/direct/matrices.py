"""Matrices: diagonals, factors, determinants, systems."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float, python_scalar_dtype, to_inexact_dtype
from primal.base.native import FLOAT32, extension, is_finite, widened
from primal.ir.evaluate import refusing
from primal.numpy.direct.operands import EXPONENT_BITS, MOVED, as_dtype, dtype_of, is_array
from primal.ops.linalg._lapack import in_double, numpys_loop
from primal.ops.linalg.common import real_of
from primal.ops.linalg.qr import triangle
from primal.runtime.array import ArrayImpl

_minors: Any = None if extension is None else extension.minors
# Up to here formulas of the elements are exact where elimination is not.
_SMALL = 3
RUN = 4096
"""Terms of a sum that BLAS makes."""


def vdot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Callable[..., Any] | None:
    """Of complex numbers, whose conjugates the operations would write first."""
    if precision is not None or preferred_element_type is not None or not _complex(a, b):
        return None
    return np.vdot if a.aval.size == b.aval.size > 1 else None


def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: Any = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Callable[..., Any] | None:
    """The same of rows."""
    if precision is not None or preferred_element_type is not None or not _complex(x1, x2):
        return None
    # One product is its own sum, but not BLAS's, which begins with 0.
    rows = type(axis) is int and axis == -1 and x1.aval.shape and x2.aval.shape
    return np.vecdot if rows and x1.aval.shape[-1] == x2.aval.shape[-1] > 1 else None


def _complex(x: Any, y: Any) -> bool:
    return is_array(x, "c") and is_array(y, "c") and x.aval.dtype == y.aval.dtype


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Callable[..., Any] | None:
    """A diagonal of a matrix, or of each of several."""
    if type(a) is not ArrayImpl or dtype_of((a,), MOVED) is None:
        return None
    return lambda x: x.diagonal(offset, axis1, axis2)


def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None
) -> Callable[..., Any] | None:
    """Ones on a diagonal."""
    made = python_scalar_dtype(float) if dtype is None else dtype
    if not all(type(n) is int for n in (N, M, k) if n is not None) or device is not None:
        return None
    return (lambda: np.eye(N, M, k, made)) if isinstance(made, np.dtype) else None


def identity(n: Any, dtype: Any = None) -> Callable[..., Any] | None:
    """Ones on the diagonal."""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Callable[..., Any] | None:
    """Ones on a diagonal and below."""
    made = np.dtype(np.float32) if dtype is None else dtype
    if not all(type(n) is int for n in (N, M, k) if n is not None):
        return None
    return (lambda: np.tri(N, M, k, made)) if isinstance(made, np.dtype) else None


def indices(dimensions: Any, dtype: Any = None, sparse: Any = False) -> Callable[..., Any] | None:
    """The index along each dimension of a grid, of the default integer."""
    sizes = dimensions if type(dimensions) is tuple else ()
    if dtype is not None or sparse or not sizes or not all(type(n) is int for n in sizes):
        return None
    made = python_scalar_dtype(int)
    return lambda: np.indices(sizes, made)


# Elements of masks that are kept; those of large matrices would take as much room as they.
MASK = 1 << 14


def _triangle(m: Any, k: Any, is_lower: bool) -> Callable[..., Any] | None:
    if not is_array(m, MOVED) or m.aval.ndim < 2 or type(k) is not int:
        return None
    zero, (rows, columns) = np.zeros((), m.aval.dtype), m.aval.shape[-2:]
    kept = None if rows * columns > MASK else np.tri(rows, columns, k, bool)

    def run(x: Any) -> Any:
        lower = np.tri(rows, columns, k, bool) if kept is None else kept
        return np.where(lower, x, zero) if is_lower else np.where(lower, zero, x)

    return run


def tril(m: Any, k: Any = 0) -> Callable[..., Any] | None:
    """Zeros above a diagonal."""
    return _triangle(m, k, True)


def triu(m: Any, k: Any = 0) -> Callable[..., Any] | None:
    """Zeros below a diagonal."""
    return _triangle(m, k - 1, False) if type(k) is int else None


def norm(
    x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Callable[..., Any] | None:
    """The root of the sum of all squares."""
    if not is_array(x, MOVED) or not (ord is None or (ord == 2 and x.aval.ndim == 1)):
        return None
    if axis is not None or keepdims:
        return None
    if is_narrow_float(x.aval.dtype):
        return lambda x: np.sqrt(_sum_of_squares(widened(x).ravel("K")))
    wide = to_inexact_dtype(x.aval.dtype)
    return lambda x: np.sqrt(_sum_of_squares(as_dtype(x, wide).ravel("K")))


def _sum_of_squares(x: Any) -> Any:
    """By BLAS, `RUN` at a time: it adds terms one after the other (of 10^7, 270 to 2100 ulp are
    lost), and of many float64 as many at a time as there are threads. Complex numbers are parts."""
    x = x.view(x.real.dtype)
    whole = x.size // RUN * RUN
    rows, rest = x[:whole].reshape(-1, RUN), x[whole:]
    return np.add.reduce(np.vecdot(rows, rows)) + rest.dot(rest) if whole else x.dot(x)


def diag(v: Any, k: int = 0) -> Callable[..., Any] | None:
    """A matrix with a diagonal, or a matrix's diagonal."""
    return (lambda x: np.diag(x, k)) if type(v) is ArrayImpl and dtype_of((v,), MOVED) else None


def diagflat(v: Any, k: int = 0) -> Callable[..., Any] | None:
    """A matrix with the elements in order on a diagonal."""
    return (lambda x: np.diagflat(x, k)) if is_array(v, MOVED) and type(k) is int else None


def trace(
    a: Any,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: None = None,
) -> Callable[..., Any] | None:
    """The sum of a diagonal."""
    if not is_array(a, MOVED) or dtype is not None:
        return None
    # Floats of two bytes are added up in float32.
    wide = np.float32 if is_narrow_float(a.aval.dtype) else None
    return lambda x: x.trace(offset, axis1, axis2, wide)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Callable[..., Any] | None:
    """The powers of a vector's elements."""
    if is_array(x, "f"):
        return lambda x: np.vander(x, N, increasing)
    if is_array(x, "few"):
        # NumPy computes in float64, and casts that to float16 number by number.
        return lambda x: np.vander(widened(x), N, increasing).astype(FLOAT32)
    if is_array(x, "c") and x.aval.ndim == 1 and x.aval.size:
        top = math.log(np.finfo(x.aval.dtype).max) / max(x.aval.size if N is None else N, 1)

        def of_complex(x: Any) -> Any:
            # Of an infinite power products have other parts.
            largest = float(np.maximum.reduce(np.abs(x)))
            return np.vander(x, N, increasing) if largest < math.exp(top) else None

        return of_complex
    if not is_array(x, "biu") or x.aval.ndim != 1 or not (N is None or (type(N) is int and N > 0)):
        return None
    columns, period = x.aval.size if N is None else N, 1 << EXPONENT_BITS

    def run(x: Any) -> Any:
        # As in `power`: the same powers again and again, but any power of 0 except one is 0.
        some = np.empty((x.size, min(columns, period)), x.dtype)
        some[:, :1], some[:, 1:] = 1, x[:, None]
        np.multiply.accumulate(some, 1, out=some)
        out = some
        if columns > period:
            out = np.tile(some, -(-columns // period))[:, :columns]
            out[x == 0, 1:] = 0
        return out if increasing else out[:, ::-1]

    return run if columns else None


def _is_matrix(x: Any, kinds: str = "fc") -> bool:
    return is_array(x, kinds) and x.aval.ndim >= 2 and x.aval.size > 0


def det(a: Any) -> Callable[..., Any] | None:
    """The determinant."""
    if not _is_matrix(a, MOVED):
        return None
    if a.aval.shape[-1] == 3 and _minors is not None and a.aval.dtype.kind in "biuf":
        # Nine views and as many products, of which each call takes longer than three numbers.
        wide = to_inexact_dtype(a.aval.dtype)
        return None if wide.itemsize < 4 else lambda x: _minors(as_dtype(x, wide))
    if a.aval.shape[-1] <= _SMALL:
        return None
    if is_narrow_float(a.aval.dtype):
        return lambda x: np.linalg.det(widened(x))
    if a.aval.dtype.kind in "fc":
        return np.linalg.det
    wide = to_inexact_dtype(a.aval.dtype)
    return lambda x: np.linalg.det(x.astype(wide))


def qr(a: Any, mode: str = "reduced") -> Callable[..., Any] | None:
    """R without Q."""
    if not _is_matrix(a, "biufc") or mode != "r":
        return None
    wide = to_inexact_dtype(a.aval.dtype)
    return lambda x: triangle(as_dtype(x, wide))


def slogdet(a: Any, *, method: Any = None) -> Callable[..., Any] | None:
    """The determinant's sign and logarithm."""
    if not _is_matrix(a, "biufc"):
        return None

    finite = is_finite if a.aval.ndim > 2 else math.isfinite
    wide = to_inexact_dtype(a.aval.dtype)

    def run(x: Any) -> Any:
        found = np.linalg.slogdet(as_dtype(x, wide))
        # Not of singular matrices, nor of those with nan or inf.
        return found if finite(found[1]) else None

    return run


def lstsq(
    a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False
) -> Callable[..., Any] | None:
    """The best solution with its squared residuals, the rank and the singular values."""
    if dtype_of((a, b)) is None or not _is_matrix(a, "f") or rcond is not None or numpy_resid:
        return None
    if not b.aval.size:
        return None
    share = float(np.finfo(a.aval.dtype).eps) * max(a.aval.shape)
    return _least_squares(a.aval.dtype, share, b.aval.ndim == 1)


def _least_squares(dtype: Any, share: float, vector: bool) -> Callable[..., Any]:
    solve = functools.partial(numpys_loop("lstsq"), signature="ddd->ddid")

    def run(a: Any, b: Any) -> Any:
        if not is_finite(a) or not is_finite(b):
            return None
        b = b[:, None] if vector else b
        try:
            x, _, rank, s = refusing(solve, (a, b, share))
        except FloatingPointError:
            return None  # where it did not converge
        x = x.astype(dtype)
        rest = b - a @ x
        rest *= rest
        return x[:, 0] if vector else x, np.add.reduce(rest, 0), rank, s

    return run


def polyval(p: Any, x: Any, *, unroll: Any = 16) -> Callable[..., Any] | None:
    """By Horner's rule in one pass, with the operations' bits: their first sum is of 0 times x."""
    if extension is None or type(unroll) is not int or not (is_array(p, "f") and is_array(x, "f")):
        return None
    if p.aval.dtype != x.aval.dtype or p.aval.ndim != 1 or p.aval.size < 2:
        return None
    return lambda p, x: extension.horner(p, x) if p[0] != 0 and is_finite(x) else None


def polyfit(
    x: Any,
    y: Any,
    deg: Any,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Callable[..., Any] | None:
    """The coefficients alone, of points without weights."""
    if full or w is not None or cov or rcond is not None or type(deg) is not int or deg < 0:
        return None
    if not is_array(x, "biuf") or dtype_of((x, y), "biuf") is None or not y.aval.size:
        return None
    if deg + 1 >= 1 << 31:
        return None  # an error, before memory is filled
    dtype = to_inexact_dtype(x.aval.dtype)
    share = x.aval.shape[0] * float(np.finfo(dtype).eps)
    run, vector = _least_squares(dtype, share, y.aval.ndim == 1), y.aval.ndim == 1

    def fit(x: Any, y: Any) -> Any:
        left = np.empty((deg + 1, x.size), dtype)
        left[-1:] = 1
        if deg:
            left[:-1] = x
            np.multiply.accumulate(left[::-1], 0, out=left[::-1])
        left = left.T
        scale = np.sqrt(np.add.reduce(left * left, 0))
        found = run(left / scale, as_dtype(y, dtype))
        if found is None:
            return None
        return found[0] / scale if vector else found[0] / scale[:, None]

    return fit


def cond(x: Any, p: Any = None) -> Callable[..., Any] | None:
    """The ratio of the greatest to the least singular value of finite matrices."""
    if not _is_matrix(x) or p is not None:
        return None

    singular = in_double("svd", x.aval.dtype, real_of(x.aval.dtype))

    def run(x: Any) -> Any:
        if not is_finite(x):
            return None  # LAPACK prints that it was given numbers it does not take
        s = singular(x)
        least = s[..., -1]
        return s[..., 0] / least if np.count_nonzero(least) == least.size else None

    return run


def matrix_rank(
    M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None
) -> Callable[..., Any] | None:
    """How many singular values stand out."""
    if not _is_matrix(M) or rtol is not None or tol is not None or hermitian:
        return None
    share = np.finfo(M.aval.dtype).eps * max(M.aval.shape[-2:])

    singular = in_double("svd", M.aval.dtype, real_of(M.aval.dtype))

    def run(x: Any) -> Any:
        if not is_finite(x):
            return None
        s = singular(x)
        found = np.greater(s, s[..., :1] * share)
        return np.count_nonzero(found) if found.ndim == 1 else np.add.reduce(found, -1)

    return run
