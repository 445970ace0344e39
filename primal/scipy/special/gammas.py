"""The gamma function's relatives: factorials, binomials, beta functions."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.base.dtypes import python_scalar_dtype
from primal.ir.trace import Array
from primal.lax import stop_gradient
from primal.numpy.direct.operands import elementwise
from primal.numpy.nonzeros import concrete
from primal.numpy.promotion import ArrayLike, in_float32, operand, with_rank
from primal.numpy.remembered import remembered, remembered_as
from primal.ops import special as ops
from primal.ops.special import tables
from primal.ops.special.terms import scipys
from primal.ops.types import static_int
from primal.runtime.refusals import in_words
from primal.scipy.operands import digits, horner, inexact, real_inexact, rounded_once, strong
from primal.scipy.special.doubles import in_doubles


@remembered
def gammaln(x: ArrayLike) -> Array:
    """log |Γ(x)|; inf at 0, -1, -2, ….

    Element by element; operands broadcast, and integers count as floats.

    >>> gammaln(jnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    return ops.lgamma(*real_inexact("gammaln", x))


@remembered
def loggamma(x: ArrayLike) -> Array:
    """log Γ(x); of real x nan below 0, of complex ones the branch that is real on x > 0.

    That one is continuous but for x < 0, where it is nan at whole numbers and at 0: not always the
    principal logarithm of Γ. Stirling's series and the reflection formula, DLMF 5.11.1, 5.5.3.

    >>> loggamma(jnp.array([5.0, -0.5]))
    Array([3.1780539,       nan], dtype=float32)
    """
    (x,) = inexact("loggamma", x)
    if x.dtype.kind == "c":
        return _complex_loggamma(x)
    below = x < 0
    return jnp.where(below, jnp.full_like(x, jnp.nan), ops.lgamma(jnp.where(below, 1, x)))


def _complex_loggamma(z: Any) -> Any:
    # In the upper half plane; the lower one is its mirror image.
    below = jnp.imag(z) < 0
    z = jnp.where(below, jnp.conj(z), z)
    left = jnp.real(z) < 0.5
    right = _on_the_right(jnp.where(left, 1 - z, z))
    # log sin πz = log(1 - e^2πiz) - iπz + iπ/2 - log 2, with whole periods left out.
    inner = jnp.where(left, z, 0.25)
    period = 2j * np.pi * (inner - jnp.round(jnp.real(inner)))
    log_sine = jnp.log(-jnp.expm1(period)) - 1j * np.pi * (inner - 0.5) - math.log(2)
    out = jnp.where(left, math.log(np.pi) - log_sine - right, right)
    # No number, as in SciPy: on the way round a pole the argument takes every value.
    pole = (jnp.imag(z) == 0) & (jnp.real(z) <= 0) & (jnp.round(jnp.real(z)) == jnp.real(z))
    out = jnp.where(pole, complex(np.nan, np.nan), out)
    return jnp.where(below, jnp.conj(out), out)


def _on_the_right(z: Any) -> Any:
    """log Γ for real parts of at least a half."""
    steps = 10 if z.dtype.itemsize == 16 else 5
    w = z + steps
    out = (w - 0.5) * jnp.log(w) - w + 0.5 * math.log(2 * np.pi)
    # Not the logarithm of the product, which turns past π.
    return out + _stirling(w) - sum([jnp.log(z + k) for k in range(steps)])


@remembered
def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x); nan at -1, -2, …, the sign of x at ±0.

    Element by element; operands broadcast, and integers count as floats.

    >>> gammasgn(jnp.array([2.0, -0.5, -1.5]))
    Array([ 1., -1.,  1.], dtype=float32)
    """
    (x,) = strong(*real_inexact("gammasgn", x, error=ValueError))
    floor = jnp.floor(x)
    out = jnp.where((x < 0) & (floor % 2 != 0), jnp.full_like(x, -1), jnp.ones_like(x))
    out = jnp.where((x < 0) & (floor == x), jnp.full_like(x, jnp.nan), out)
    out = jnp.where(x == 0, jnp.copysign(jnp.ones_like(x), x), out)
    return jnp.where(jnp.isnan(x), x, out)


def _scipy_gamma(x: Any) -> Any:
    # Of numbers below 1e-307 SciPy makes zeros.
    small = x.dtype == np.float64 and np.count_nonzero(x < -170)
    return None if small else scipys("gamma")(x)


@remembered_as(elementwise(f=_scipy_gamma))
@rounded_once
def gamma(x: ArrayLike) -> Array:
    """Γ(x) = ∫₀^∞ t^(x-1) e^-t dt, continued to all numbers, also complex; nan at -1, -2, ….

    >>> gamma(jnp.array([0.5, 5.0]))
    Array([ 1.7724539, 24.       ], dtype=float32)
    """
    (x,) = inexact("gamma", x)
    if x.dtype.kind == "c":
        return jnp.exp(_complex_loggamma(*strong(x)))
    return _gamma(*strong(x))


# Lanczos's form Γ(x) = M(u)·((x + h)/x)·(x + h)^(x - ½)·e^-x with u = h/(x + h) in (0, 1], where M
# is nearly straight (SIAM J. Numer. Anal. B 1, 1964): a polynomial to 2e-9, or to 2e-16, for x > 0.
SHIFT = 1.25


def shifted(x: Any) -> tuple[Any, Any]:
    """x + h for x ≥ 0, and what it was rounded by over it."""
    y = x + SHIFT
    return y, _rounded(x, SHIFT, y) / y


@custom_jvp
def _gamma(x: Any) -> Any:
    """Γ(x) by Lanczos's form, without logarithms: those of great numbers lose three digits."""
    # Beyond this nothing but 0 and ∞ is left, and the powers below would be infinite.
    far = jnp.abs(x)
    size = jnp.minimum(far, digits(x, 45, 200))
    y, lost = shifted(size)
    # What the power of a rounded number lacks, in the first order.
    most = horner(digits(x, tables.LANCZOS, tables.LANCZOS_64), SHIFT / y)
    most = most * (1 + (size - 0.5) * lost)
    # The power is greater than the greatest numbers before e^-x makes it smaller.
    half, small = y ** ((size - 0.5) / 2), jnp.exp(-size)
    out = half * small * (most * (y / size)) * half
    # Γ(x) Γ(-x) = -π/(x sin πx).
    whole = jnp.round(far)
    sine = jnp.sin(math.pi * (far - whole)) * jnp.where(whole % 2 == 0, 1, -1)
    mirrored = (-math.pi / (sine * (most * y))) / (half * small) / half
    out = jnp.where(jnp.signbit(x), mirrored, out)
    out = _whole(out, jnp.floor(x) == x)
    out = jnp.where((x < 0) & (jnp.floor(x) == x), jnp.nan, out)
    return jnp.where(x == 0, 1 / x, jnp.where(jnp.isnan(x), x, out))


def _whole(out: Any, known: Any) -> Any:
    """Results known to be whole are so, as far as the dtype counts integers at all."""
    known = known & (out < 2.0 ** jnp.finfo(out.dtype).nmant)
    return jnp.where(known, jnp.round(out), out)


@_gamma.defjvp
def _gamma_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    out = _gamma(x)
    return out, dx * out * ops.digamma(x)


@remembered
def digamma(x: ArrayLike) -> Array:
    """ψ(x), the derivative of log Γ(x).

    Element by element; operands broadcast, and integers count as floats.

    >>> digamma(jnp.array([1.0]))
    Array([-0.5772157], dtype=float32)
    """
    return ops.digamma(*real_inexact("digamma", x))


@remembered
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of ψ at x.

    Raises ValueError for orders that are no integers.

    >>> polygamma(1, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    if jnp.result_type(n).kind not in "iu":
        raise ValueError(
            "Argument `n` to polygamma must be of integer type. Got dtype "
            f"{jnp.result_type(n).name}."
        )
    n, x = _together("polygamma", *real_inexact("polygamma", n, x, error=ValueError))
    return ops.polygamma(n, x)


@remembered
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function Σₖ (k + q)^-x over k ≥ 0; Riemann's where q is not given.

    Raises NotImplementedError without q. Element by element; operands broadcast, and integers count
    as floats.

    >>> zeta(2.0, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    if q is None:
        raise NotImplementedError(
            "[zeta] expected q: Riemann's function of one argument is not continued to x < 1 "
            "here. Use zeta(x, 1.0) for x > 1."
        )
    x, q = _together("zeta", *real_inexact("zeta", x, q))
    return ops.zeta(x, q)


@remembered
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ t^(a-1) e^-t dt.

    Element by element; operands broadcast, and integers count as floats.

    >>> gammainc(1.0, jnp.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    a, x = _together("gammainc", *real_inexact("gammainc", a, x))
    return ops.igamma(a, x)


@remembered
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Element by element; operands broadcast, and integers count as floats.

    >>> gammaincc(1.0, jnp.array([0.0, 1.0]))
    Array([1.        , 0.36787945], dtype=float32)
    """
    a, x = _together("gammaincc", *real_inexact("gammaincc", a, x))
    return ops.igammac(a, x)


@remembered
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function 1/B(a, b) ∫₀ˣ t^(a-1) (1 - t)^(b-1) dt.

    Element by element; operands broadcast, and integers count as floats.

    >>> betainc(1.0, 2.0, jnp.array([0.0, 0.5]))
    Array([0.  , 0.75], dtype=float32)
    """
    a, b, x = _together("betainc", *real_inexact("betainc", a, b, x, error=ValueError))
    return ops.regularized_incomplete_beta(a, b, x)


def _together(name: str, *args: Any) -> list[Any]:
    """The operands in their common shape; TypeError, as of the operations, where there is none."""
    try:
        return jnp.broadcast_arrays(*args)
    except ValueError:
        raise TypeError(
            f"{name} got incompatible shapes for broadcasting: "
            f"{', '.join([str(x.shape) for x in args])}."
        ) from None


def _scipy_factorial(n: Any) -> Any:
    little = n < 1
    out = scipys("gamma")(n + little) * np.where(little, n.dtype.type(1), n)
    return np.where(n < 0, n.dtype.type(0), out)


@remembered_as(elementwise(f=_scipy_factorial))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = Γ(n + 1); 0 where n is negative.

    NotImplementedError for `exact=True`: integers of any size have no dtype.

    >>> factorial(jnp.array([0, 5]))
    Array([  1., 120.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("[factorial] expected exact=False: results are floats.")
    (n,) = real_inexact("factorial", n)
    below = n < 0
    n = jnp.where(below, 1, n)  # whose slope is a number, as that of Γ(0) is not
    # n + 1 may have another exponent, and loses a bit then that counts n·log(n) times.
    little = n < 1
    out = _gamma(jnp.where(little, n + 1, n)) * jnp.where(little, 1, n)
    return jnp.where(below, jnp.zeros_like(n), out)


@remembered
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """N! / (k! (N - k)!), the ways to choose k of N things; with repetition, multisets of size k.

    >>> comb(5, jnp.array([2, 6]))
    Array([10.,  0.], dtype=float32)
    """
    N, k = real_inexact("comb", N, k)
    return in_float32(lambda N, k: _comb(N + k - 1 if repetition else N, k), N, k)


def _comb(N: Any, k: Any) -> Any:
    legal = (k >= 0) & (N >= k) & (N >= 0)
    n, m = jnp.where(legal, N, 1), jnp.where(legal, k, 0)
    # In two factors: what is n + 1 times as large may be infinite where the result is not.
    root = jnp.exp(-0.5 * _betaln(n - m + 1, m + 1))
    ways = root * (root / (n + 1))
    whole = (jnp.floor(n) == n) & (jnp.floor(m) == m)
    # What the logarithms lose; the derivative is that of the formula.
    lost = jnp.where(ways < jnp.inf, _whole(ways, whole) - ways, 0)
    return jnp.where(legal, ways + stop_gradient(lost), jnp.zeros_like(ways))


@remembered_as(in_doubles("poch", positive=True))
@rounded_once
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial Γ(z + m) / Γ(z).

    Element by element; operands broadcast, and integers count as floats.

    >>> poch(2.0, jnp.array([0.0, 3.0]))
    Array([ 1., 24.], dtype=float32)
    """
    z, m = real_inexact("poch", z, m, error=ValueError)
    return _poch(z, m)


@custom_jvp
def _poch(z: Any, m: Any) -> Any:
    both = z + m
    below = ops.lgamma(z)
    # Where a Γ of a negative number is a part.
    apart = gammasgn(both) * gammasgn(z) * jnp.exp(ops.lgamma(both) - below)
    ours = (z > 0) & (both > 0) & jnp.isfinite(both)
    p, q, step = jnp.where(ours, z, 1), jnp.where(ours, both, 1), jnp.where(ours, m, 0)
    # Lanczos's form of both, in which no two great terms are left that would have to cancel.
    c = digits(p, tables.LANCZOS, tables.LANCZOS_64)
    (u, lost), (v, over) = shifted(p), shifted(q)
    over = over + _rounded(p, step, q) / v
    ratio = horner(c, SHIFT / v) / horner(c, SHIFT / u) * (v / u)
    # Of p next to 0 the quotient may be one of subnormal numbers.
    late = (p < 1) & (q >= 1)
    ratio = ratio * (jnp.where(late, 1, p) / q)
    # What the powers of rounded numbers lack, in the first order.
    ratio = ratio * (1 + (step * over - (p - 0.5) * (step / v) * lost))
    level = (p - 0.5) * jnp.log1p(step / u) - step
    half = v ** (step / 2)
    out = half * jnp.exp(level) * ratio * jnp.where(late, p, 1) * half
    out = _whole(out, (m >= 0) & (jnp.floor(z) == z) & (jnp.floor(m) == m))
    # An infinite power may meet an exponential of 0, though the product is infinite, or, of p next
    # to 0, even a number.
    out = jnp.where(ours & (half < jnp.inf), out, apart)
    return jnp.where((m == 0) & ~jnp.isfinite(below), jnp.ones_like(out), out)


def _rounded(x: Any, y: Any, total: Any) -> Any:
    """x + y less its rounded total."""
    kept = total - y
    return (x - kept) + (y - (total - kept))


def _poch_by_z(dz: Any, out: Any, z: Any, m: Any) -> Any:
    # ψ(x) = ψ(x + 1) - 1/x: next to 0 that is infinite where the product is not.
    both = z + m
    less = psi_less(jnp.where(m < 0, both, z) + 1, jnp.abs(m))
    return dz * (out * jnp.where(m < 0, less, -less) + out / z * (m / both))


def _poch_by_m(dm: Any, out: Any, z: Any, m: Any) -> Any:
    both = z + m
    small = jnp.abs(both) < 0.5
    slope = out * ops.digamma(jnp.where(small, both + 1, both))
    return dm * (slope - jnp.where(small, out / both, 0))


_poch.defjvps(_poch_by_z, _poch_by_m)


@remembered_as(in_doubles("betaln", positive=True))
@rounded_once
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log |B(a, b)|, without cancellation for large arguments.

    By Lanczos's form of Γ (1964), in which large terms cancel by hand. Element by element; operands
    broadcast, and integers count as floats.

    >>> betaln(2.0, jnp.array([3.0, 1e6]))
    Array([ -2.4849067, -27.631021 ], dtype=float32)
    """
    a, b = real_inexact("betaln", a, b)
    return _betaln(a, b)


@custom_jvp
def _betaln(a: Any, b: Any) -> Any:
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    both = low + high
    # B(a, b) B(1 - a, a + b) = π/(b sin πa), by the reflection of Γ: of a ≤ 0 < a + b.
    turned = (low <= 0) & (both > 0)
    sides = jnp.where(turned, 1 - low, low), jnp.where(turned, both, high)
    low_side, high_side = jnp.minimum(*sides), jnp.maximum(*sides)
    ours = low_side > 0
    p, q = jnp.where(ours, low_side, 1), jnp.where(ours, high_side, 1)
    total = p + q
    c = digits(p, tables.LANCZOS, tables.LANCZOS_64)
    # With M of p, q and p + q. No two great terms are left that would have to cancel.
    u, v, w = (SHIFT / (x + SHIFT) for x in (p, q, total))
    share = p * (w / SHIFT)
    under = p * horner(c, w) / (
        horner(c, u) * horner(c, v) * ((1 - share) * (1 + p / q)) * jnp.sqrt(p + SHIFT)
    )  # fmt: skip
    out = p * jnp.log((p + SHIFT) * (w / SHIFT)) - jnp.log(under)
    out = out + (q - 0.5) * jnp.log1p(-share)
    out = jnp.where(jnp.isinf(total), -jnp.inf, out)
    sine = jnp.abs(jnp.sin(math.pi * (low - jnp.round(low))))
    out = jnp.where(turned, -jnp.log(sine * (high / math.pi)) - out, out)
    return jnp.where(ours, out, ops.lgamma(low) + (ops.lgamma(high) - ops.lgamma(both)))


def psi_less(a: Any, b: Any) -> Any:
    """ψ(a) - ψ(a + b), to all digits where b is small beside a too."""
    ours = (a > 0) & (b > 0)
    p, q = jnp.where(ours, a, 1), jnp.where(ours, b, 1)
    c = digits(p, tables.LANCZOS_SLOPE, tables.LANCZOS_SLOPE_64)
    u, w = (SHIFT / (x + SHIFT) for x in (p, p + q))
    # The logarithm of a quotient, near 1 where b is small, near 0 where b is large.
    less = q < p
    out = jnp.where(
        less,
        jnp.log1p(jnp.where(less, q, 0) * (-w / SHIFT)),
        jnp.log((p + SHIFT) * (w / SHIFT)),
    )
    # What is left of M's slopes at u and w is u - w = u·w·b/h, and this, which nothing cancels in.
    total, apart = c[-1] + u * 0, c[-1] + u * 0
    for k in c[-2::-1]:
        total = total * u + k
        apart = apart * w + total
    out = out - q / (p + q) / p - u * (w / SHIFT) * q * apart
    return jnp.where(ours, out, ops.digamma(a) - ops.digamma(a + b))


_betaln.defjvps(
    lambda t, _, a, b: t * psi_less(a, b),
    lambda t, _, a, b: t * psi_less(b, a),
)


# Bernoulli numbers over 2k(2k - 1): the terms of Stirling's series.
_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]


def _stirling(x: Any) -> Any:
    out, square = jnp.zeros_like(x), 1 / (x * x)
    for c in reversed(_STIRLING):
        out = out * square + c
    return out / x


@remembered_as(in_doubles("beta", positive=True))
@rounded_once
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b).

    Element by element; operands broadcast, and integers count as floats.

    >>> beta(2.0, 3.0)
    Array(0.08333334, dtype=float32)
    """
    a, b = real_inexact("beta", a, b, error=ValueError)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return jnp.asarray(sign * jnp.exp(betaln(a, b)), a.dtype)


@remembered
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """log of the multivariate gamma function of dimension d, Σⱼ log Γ(a - j/2) + const.

    d is a concrete positive integer. Raises ValueError for a dimension below 1.

    >>> multigammaln(3.0, 2)
    Array(1.550195, dtype=float32)
    """
    count = int(concrete("multigammaln", operand("multigammaln", d), "d"))
    if count < 1:
        raise ValueError(f"[multigammaln] expected a positive dimension d, got {count}.")
    return in_float32(lambda a: _multigammaln(a, count), *real_inexact("multigammaln", a))


def _multigammaln(a: Any, count: int) -> Any:
    halves = jnp.arange(count, dtype=a.dtype) / 2
    constant = 0.25 * count * (count - 1) * math.log(math.pi)
    terms = jnp.expand_dims(a, -1) - with_rank(halves, a.ndim + 1)
    return jnp.sum(ops.lgamma(terms), axis=-1) + constant


@in_words
def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B₀ … Bₙ, with B₁ = -½.

    Raises ValueError for a negative n. Exact, and rounded once; infinite beyond float64.

    >>> bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],      dtype=float32)
    """
    n = static_int("bernoulli n", n)
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    return jnp.asarray(_bernoulli(n), dtype=python_scalar_dtype(float))


_LAST = 129
"""B₂₅₈ is the last that float64 holds."""


@functools.cache
def _bernoulli(n: int) -> tuple[float, ...]:
    """By tangent numbers Tₖ, which are integers: B₂ₖ = (-1)^(k-1)·2k·Tₖ/(4^k·(4^k - 1)).

    Brent and Harvey, "Fast computation of Bernoulli, tangent and secant numbers", 2011.
    """
    count = min(n // 2, _LAST)
    tangents = [math.factorial(k) for k in range(count)]
    for k in range(1, count):
        for j in range(k, count):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    out = [1.0, -0.5]
    for k in range(1, n // 2 + 1):
        size = math.inf
        if k <= count:
            size = 2 * k * tangents[k - 1] / (4**k * (4**k - 1))
        out += [size if k % 2 else -size, 0.0]
    return tuple(out[: n + 1])


__all__ = [
    "bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma",
    "zeta",
]  # fmt: skip
