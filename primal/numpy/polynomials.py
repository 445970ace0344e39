"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.api.control.loops import scan
from primal.base import dtypes
from primal.base.limits import finfo
from primal.ir.avals import canonical_shape
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.choosing import where
from primal.numpy.contraction import dot
from primal.numpy.creation import array, filled
from primal.numpy.diagonals import vander
from primal.numpy.joining import concatenate
from primal.numpy.linalg import eigvals, inv, lstsq
from primal.numpy.nonzeros import concrete
from primal.numpy.promotion import (
    ArrayLike,
    array_operand,
    check_arraylike,
    convert,
    from_literal,
    in_float32,
    promote_dtypes,
    promote_dtypes_inexact,
    to_shape,
    with_rank,
)
from primal.numpy.ranges import arange
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import atleast_1d, broadcast_to, roll
from primal.numpy.signal import convolve
from primal.numpy.sorting import argmin, argsort
from primal.numpy.ufuncs import add, multiply
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.types import static_int
from primal.runtime.refusals import in_words


def _coefficients(name: str, c: Any, error: type[Exception] = TypeError) -> Any:
    if c.aval.ndim == 0:
        raise error(
            f"[{name}] expected the coefficients of a polynomial along an axis, got a scalar."
        )
    return c


@remembered_as(direct.polyval)
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial at x: Σ p[k] x^(n - 1 - k), by Horner's rule.

    Horner, 1819. `unroll` steps are a turn of a loop.

    >>> jnp.polyval(jnp.array([1., 2., 3.]), 2.)
    Array(11., dtype=float32)
    """
    check_arraylike("polyval", p, x)
    c, v = promote_dtypes("polyval", p, x)
    count = _coefficients("polyval", c, IndexError).aval.shape[0]

    return in_float32(lambda v, c: _by_horner(v, c, count, max(unroll, 1)), v, c)


def _by_horner(v: Any, c: Any, count: int, unroll: int) -> Array:
    def steps(out: Any, some: Any, n: int) -> Any:
        for i in range(n):
            out = add(multiply(out, v), some[i])
        return out

    out = multiply(v, from_literal(literal(0, v.aval.dtype, True)))
    turns = max(count - 1, 0) // unroll
    first = count - turns * unroll
    out = steps(out, c, first)
    if turns:
        rest = c[first:].reshape(turns, unroll, *c.aval.shape[1:])
        out, _ = scan(lambda out, some: (steps(out, some, unroll), None), out, rest)
    return convert(array_operand("polyval", out), v.aval.dtype)


@remembered
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials, whose coefficients run along the first axis.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3]))
    Array([1, 5], dtype=int32)
    """
    x, y = _same_length("polyadd", a1, a2)
    return x + y


@remembered
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials, whose coefficients run along the first axis.

    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([3]))
    Array([ 1, -1], dtype=int32)
    """
    x, y = _same_length("polysub", a1, a2)
    return x - y


def _same_length(name: str, a1: Any, a2: Any) -> list[Any]:
    x, y = [_coefficients(name, c, IndexError) for c in promote_dtypes(name, a1, a2)]
    first_longer = x.aval.shape[0] >= y.aval.shape[0]
    long, short = (x, y) if first_longer else (y, x)
    n, *others = long.aval.shape
    count = short.aval.shape[0]
    target = (count, *others)
    pairs = zip(reversed(short.aval.shape), reversed(target), strict=False)
    if short.aval.ndim > long.aval.ndim or any(n not in (1, m) for n, m in pairs):
        raise ValueError(
            f"[{name}] expected coefficients of one shape beside their first axis, or the shorter "
            f"to broadcast, got {x.aval.shape} and {y.aval.shape}."
        )
    short = to_shape(short, target)
    if count < n:
        zero = literal(0, short.aval.dtype, short.aval.weak_type)
        before = ((n - count, 0, 0), *[(0, 0, 0)] * len(others))
        short = shape_ops.pad(short, zero, padding_config=before)
    return [long, short] if first_longer else [short, long]


@in_words
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    `trim_leading_zeros` drops zeros at the front first, for which values must be concrete.

    >>> jnp.polymul(jnp.array([1., 1.]), jnp.array([1., -1.]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    x, y = [_coefficients("polymul", c) for c in promote_dtypes_inexact("polymul", a1, a2)]
    if trim_leading_zeros:
        x, y = _trimmed("polymul", x), _trimmed("polymul", y)
    if not x.aval.size:
        x = filled((1,), 0, x.aval.dtype)
    if not y.aval.size:
        y = filled((1,), 0, y.aval.dtype)
    return convolve(x, y, mode="full")


def _trimmed(name: str, x: Any, least: float = 0.0) -> Any:
    """Without the numbers at the front that are at most `least` in size."""
    host = concrete(name, x, "trim_leading_zeros")
    first = np.flatnonzero(~(np.abs(host) <= least))
    return x[int(first[0]) if len(first) else len(host) :]


@in_words
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """(quotient, remainder) of two polynomials.

    `trim_leading_zeros` drops what rounding left at the front of the remainder: numbers up to the
    root of the dtype's eps; of a remainder of such numbers alone nothing is left. Values must be
    concrete for that. Raises ValueError for matrices.

    >>> jnp.polydiv(jnp.array([1., 0., -1.]), jnp.array([1., 1.]))[0]
    Array([ 1., -1.], dtype=float32)
    """
    x, y = [_coefficients("polydiv", c) for c in promote_dtypes_inexact("polydiv", u, v)]
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            f"[polydiv] expected vectors of coefficients, got shapes {x.shape} and {y.shape}."
        )
    m, n = x.aval.shape[0] - 1, y.aval.shape[0] - 1
    scale = 1.0 / y[0]
    count = max(m - n + 1, 1)
    quotient = []
    for k in range(m - n + 1):
        d = scale * x[k]
        quotient.append(d)
        x = x.at[k : k + n + 1].add(-d * y)
    q = array(quotient) if quotient else filled((count,), 0, x.dtype)
    if trim_leading_zeros:
        x = _trimmed("polydiv", x, float(np.sqrt(float(finfo(x.dtype).eps))))
    return q, x


@remembered
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Raises ValueError for a negative m.

    >>> jnp.polyder(jnp.array([1., 2., 3.]))
    Array([2., 2.], dtype=float32)
    """
    m = static_int("polynomial order m", m)
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    (c,) = promote_dtypes_inexact("polyder", p)
    if m == 0:
        return from_literal(c)
    n = _coefficients("polyder", c).aval.shape[0]
    m = min(m, n)
    factors = np.ones(n - m)
    for k in range(m):
        factors = factors * np.arange(n - 1 - k, m - 1 - k, -1)[: n - m]
    return c[: n - m] * array(factors, c.dtype)


@remembered
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The m-th integral of a polynomial, with constants of integration k (0 by default).

    Raises ValueError for a negative m, or unless there is one constant, or m.
    Raises TypeError for matrices.

    >>> jnp.polyint(jnp.array([2., 2.]))
    Array([1., 2., 0.], dtype=float32)
    """
    m = static_int("polynomial order m", m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = atleast_1d(0 if k is None else k)
    (c, constants) = promote_dtypes_inexact("polyint", p, constants)
    if constants.aval.ndim > 1 or constants.aval.size not in (1, m):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if not m:
        return from_literal(c)
    if c.aval.ndim > 1:
        raise TypeError(f"[polyint] expected a vector of coefficients, got shape {c.shape}.")
    n = _coefficients("polyint", c).aval.shape[0]
    canonical_shape((n + m,), "polyint")
    # The j-th of the m integrals after a constant multiplies what it is divided by with j, the
    # m of the coefficient of x^k with (k + 1) … (k + m): one division, whatever m is.
    with np.errstate(over="ignore"):
        below = np.multiply.accumulate(np.maximum(1.0, np.arange(m)))
        above = np.ones(n)
        for j in range(1, m + 1):
            above *= np.arange(j, n + j)
            if np.isinf(above).all():
                break
        factors = array(np.concatenate([below, above])[::-1], c.dtype)
    last = broadcast_to(constants, (m,)) if constants.aval.size == 1 else constants
    return from_literal(concatenate([c, last]) / factors)


@remembered_as(direct.poly)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with given zeros, or the characteristic polynomial of a matrix.

    The leading coefficient is 1: of no zeros it is all there is, a scalar. Raises ValueError unless
    the operand is a vector or a square matrix.

    >>> jnp.poly(jnp.array([1., 2.]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    (zeros,) = promote_dtypes_inexact("poly", seq_of_zeros)
    zeros = with_rank(zeros, 1)
    shape = zeros.aval.shape
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        zeros = eigvals(zeros)
    elif len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    out = filled((1,) if zeros.shape[0] else (), 1, zeros.dtype)
    for i in range(zeros.shape[0]):
        step = concatenate([filled((1,), 1, zeros.dtype), -zeros[i : i + 1]])
        out = convolve(out, step, mode="full")
    return out


@in_words
def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The complex zeros of a polynomial, as eigenvalues of its companion matrix.

    Leading and trailing zeros are stripped first, for which values must be concrete; with
    strip_zeros=False there are always len(p) - 1 roots, and those that leading zeros take away are
    nan, at the end. Raises ValueError unless the coefficients are a vector.

    >>> jnp.sort(jnp.roots(jnp.array([1., -3., 2.])).real)
    Array([1., 2.], dtype=float32)
    """
    (c,) = promote_dtypes_inexact("roots", p)
    c = with_rank(c, 1)
    if c.aval.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    trailing = 0
    if strip_zeros:
        hits = np.flatnonzero(concrete("roots", c, "strip_zeros"))
        if not len(hits):
            return filled((0,), 0, dtypes.to_complex_dtype(c.dtype))
        trailing = c.shape[0] - 1 - int(hits[-1])
        c = c[int(hits[0]) : int(hits[-1]) + 1]
    n = c.shape[0] - 1
    complex_dtype = dtypes.to_complex_dtype(c.dtype)
    if n <= 0:
        return filled((trailing,), 0, complex_dtype)
    below = array(np.eye(n, k=-1), c.dtype)
    if strip_zeros:
        found = eigvals(below.at[0].set(-c[1:] / c[0]))
    else:
        # Zeros moved to the end are roots 0 in place of the ones that are missing.
        zeros = argmin(c == 0)
        c = roll(c, -zeros)
        found = eigvals(below.at[0].set(-c[1:] / where(c[0] == 0, 1, c[0])))
        found = found[argsort(found == 0, stable=True)]
        missing = where(c[0] == 0, n, zeros)
        found = where(arange(n) < n - missing, found, complex(np.nan, np.nan))
    if trailing:
        found = concatenate([found, filled((trailing,), 0, complex_dtype)])
    return found


@remembered_as(direct.polyfit)
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: Any = False,
) -> Any:
    """The polynomial of a degree that fits points best, in the sense of least squares.

    `w` weighs the residuals. With `full`: (coefficients, residuals, rank, singular values, rcond);
    with `cov`: (coefficients, their covariance matrix). Raises ValueError for a negative degree,
    TypeError for operands of other shapes or different lengths.

    >>> p = jnp.polyfit(jnp.array([0., 1., 2.]), jnp.array([1., 3., 5.]), 1)
    >>> jnp.allclose(p, jnp.array([2., 1.]), atol=1e-5)
    Array(True, dtype=bool)
    """
    degree = static_int("polyfit deg", deg)
    order = degree + 1
    if degree < 0:
        raise ValueError("expected deg >= 0")
    if order >= 1 << 31:
        raise ValueError(
            "[polyfit] expected deg below 2^31 - 1, as LAPACK counts columns in 32 bits, got "
            f"{degree}. Ask for fewer coefficients: more than there are points are not determined."
        )
    px, py = promote_dtypes_inexact("polyfit", x, y)
    if px.aval.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if px.aval.size == 0:
        raise TypeError("expected non-empty vector for x")
    if py.aval.ndim < 1 or py.aval.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if px.aval.shape[0] != py.aval.shape[0]:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        rcond = px.aval.shape[0] * float(finfo(px.aval.dtype).eps)
    left, right = vander(px, order), py
    if w is not None:
        (weights,) = promote_dtypes_inexact("polyfit", w)
        if weights.aval.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if weights.aval.shape[0] != py.aval.shape[0]:
            raise TypeError("expected w and y to have the same length")
        left = left * weights[:, None]
        right = right * (weights[:, None] if right.aval.ndim == 2 else weights)
    # Columns of norm 1 make the system as well conditioned as scaling can.
    scale = ops.sqrt(total(left * left, axis=0))
    left = left / scale[None]
    c, residuals, rank, s = lstsq(left, right, rcond)
    c = c / (scale[:, None] if c.ndim == 2 else scale)
    if full:
        return c, residuals, rank, s, array(rcond)
    if not cov:
        return c
    base = inv(dot(left.T, left)) / multiply(scale[:, None], scale[None])
    factor: Any = 1
    if cov != "unscaled":
        if len(px) <= order:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix"
            )
        factor = residuals / (len(px) - order)
        factor = factor[0] if py.aval.ndim == 1 else factor[None, None]
    return c, base * factor if py.aval.ndim == 1 else base[:, :, None] * factor
