"""Integrals without elementary form: exponential, sine, cosine, Fresnel's, the dilogarithm.

Near 0 each is its power series, far away a continued fraction or asymptotic series; the number of
terms is fixed by the dtype, so that programs have no loop whose length depends on values. Formulas:
NIST Digital Library of Mathematical Functions, chapters 6, 7 and 25.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered_as
from primal.ops import special as ops
from primal.ops.elementwise import reduce_precision
from primal.ops.special import tables
from primal.scipy.operands import (
    digits,
    horner,
    inexact,
    of_parts,
    real_inexact,
    rounded_once,
    strong,
    wide,
)
from primal.scipy.special.doubles import in_doubles
from primal.scipy.special.faddeeva import wofz


def _fraction(n: Any, x: Any, terms: int) -> Any:
    """eˣ Eₙ(x) = 1/(x + n/(1 + 1/(x + (n + 1)/(1 + 2/(x + …))))), as its even part; |x| ≥ 1."""
    tail = x + (n + 2 * terms)
    for k in range(terms, 0, -1):
        tail = x + (n + 2 * k - 2) - k * (n + (k - 1)) / tail
    return 1 / tail


@custom_jvp
def _exp1(x: Any) -> Any:
    near = x < 1
    small = jnp.where(near & (x > 0), x, 0.5)
    series = horner(digits(x, tables.EXP1_NEAR, tables.EXP1_NEAR_64), small) * small
    far = jnp.where(near | jnp.isinf(x), 1, x)
    u = 1 / far
    ratio = _quotient(digits(x, tables.EXP1_FAR, tables.EXP1_FAR_64),
                      digits(x, tables.EXP1_FAR_UNDER, tables.EXP1_FAR_UNDER_64), u)  # fmt: skip
    out = jnp.where(near, series - jnp.log(small) - np.euler_gamma, jnp.exp(-far) / far * ratio)
    edge = jnp.where(x == 0, jnp.full_like(x, jnp.inf), jnp.full_like(x, jnp.nan))
    return jnp.where(x > 0, jnp.where(jnp.isinf(x), jnp.zeros_like(x), out), edge)


def _quotient(over: Sequence[float], under: Sequence[float], x: Any) -> Any:
    return horner(over, x) / horner(under, x)


@_exp1.defjvp
def _exp1_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _exp1(x), -dx * jnp.exp(-x) / x


@remembered_as(in_doubles("exp1", positive=True))
@rounded_once
def exp1(x: ArrayLike) -> Array:
    """E₁(x) = ∫ₓ^∞ e^-t / t dt for x ≥ 0; nan below.

    Element by element; operands broadcast, and integers count as floats.

    >>> exp1(jnp.array([0.5, 1.0]))
    Array([0.5597736 , 0.21938394], dtype=float32)
    """
    return _exp1(*strong(*real_inexact("exp1", x, error=ValueError)))


@custom_jvp
def _expi(x: Any) -> Any:
    near = x < 6
    small = jnp.where(near & (x > 0), x, 1)
    # Nothing cancels but at the zero near 0.3725.
    series = horner(digits(x, tables.EXPI_NEAR, tables.EXPI_NEAR_64), small) * small
    middle = series + jnp.log(small) + np.euler_gamma
    # x·e^-x·Ei(x) in 1/x, by parts.
    away = jnp.where(near | jnp.isinf(x), 6, x)
    u = 1 / away
    if x.dtype.itemsize == 8:
        level = jnp.where(
            away < 24,
            horner(tables.EXPI_FAR_64, (u - 1 / 16) * 48),
            horner(tables.EXPI_BEYOND_64, 48 * u - 1),
        )
    else:
        level = horner(tables.EXPI_FAR, 24 * u - 1)
    between = digits(x, tables.EXPI_MIDDLE, tables.EXPI_MIDDLE_64)
    level = jnp.where(away < 12, horner(between, (u - 1 / 8) * 24), level)
    large = jnp.exp(away) * u * level
    large = jnp.where(jnp.isinf(x), jnp.full_like(x, jnp.inf), large)
    above = jnp.where(near, middle, large)
    out = jnp.where(x > 0, above, -_exp1(jnp.where(x < 0, -x, 1)))
    out = jnp.where(x == 0, jnp.full_like(x, -jnp.inf), out)
    return jnp.where(jnp.isnan(x), x, out)


@_expi.defjvp
def _expi_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _expi(x), dx * jnp.exp(x) / x


@remembered_as(in_doubles("expi", positive=True))
@rounded_once
def expi(x: ArrayLike) -> Array:
    """Ei(x), the principal value of ∫ eᵗ / t dt from -∞ to x.

    Element by element; operands broadcast, and integers count as floats.

    >>> expi(jnp.array([0.0, 1.0]))
    Array([    -inf, 1.8951178], dtype=float32)
    """
    return _expi(*strong(*real_inexact("expi", x, error=ValueError)))


@custom_jvp
def _expn(n: Any, x: Any) -> Any:
    far = x > 1
    large = jnp.where(far, x, 2)
    fraction = jnp.exp(-large) * _fraction(n, large, digits(x, 40, 100))
    # (-x)ⁿ⁻¹/(n - 1)! (ψ(n) - log x) - Σ' (-x)ᵐ / ((m - n + 1) m!), without m = n - 1.
    small = jnp.where(~far & (x > 0), x, 0.5)
    whole = jnp.maximum(n, 1)
    sign = jnp.where(whole % 2 == 1, 1.0, -1.0).astype(x.dtype)
    first = sign * jnp.exp((whole - 1) * jnp.log(small) - ops.lgamma(whole))
    total = first * (ops.digamma(whole) - jnp.log(small))
    term = jnp.ones_like(small)
    for m in range(digits(x, 16, 24)):
        gap = m - whole + 1
        total = total - jnp.where(gap == 0, 0, term / jnp.where(gap == 0, 1, gap))
        term = term * -small / (m + 1)
    out = jnp.where(far, fraction, total)
    at_zero = jnp.where(n > 1, 1 / (jnp.where(n > 1, n, 2) - 1), jnp.full_like(x, jnp.inf))
    out = jnp.where(x == 0, at_zero, out)
    out = jnp.where(n == 0, jnp.exp(-x) / x, out)
    out = jnp.where(jnp.isposinf(x), jnp.zeros_like(x), out)
    return jnp.where((x < 0) | (n < 0) | jnp.isnan(x), jnp.full_like(x, jnp.nan), out)


def _expn_by_x(dx: Any, out: Any, n: Any, x: Any) -> Any:
    # E₋₁ is no value of this function: (n - 1) Eₙ = e^-x - x Eₙ₋₁ gives it.
    less = jnp.where(n > 0, _expn(jnp.maximum(n - 1, 0), x), (jnp.exp(-x) + out) / x)
    return -dx * less


_expn.defjvps(None, _expn_by_x)


@remembered_as(in_doubles("expn", positive=True, whole=True))
@rounded_once
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Eₙ(x) = ∫₁^∞ e^-xt / tⁿ dt for integers n ≥ 0 and x ≥ 0; nan elsewhere.

    The derivative by n, which is an integer, is 0.

    >>> expn(2, jnp.array([0.0, 1.0]))
    Array([1.        , 0.14849551], dtype=float32)
    """
    return _expn(*jnp.broadcast_arrays(*real_inexact("expn", n, x, error=ValueError)))


@custom_jvp
def _sici(x: Any) -> Any:
    size = jnp.abs(x)
    near = size < 4
    small = jnp.where(near, size, 1)
    square = small * small
    si = small * horner(digits(x, tables.SI_NEAR, tables.SI_NEAR_64), square)
    ci = square * horner(digits(x, tables.CI_NEAR, tables.CI_NEAR_64), square)
    ci = np.euler_gamma + jnp.log(jnp.where(small == 0, 1, small)) - ci
    # Si(x) = π/2 - f cos x - g sin x and Ci(x) = f sin x - g cos x, DLMF 6.2.19 and 6.2.20.
    large = jnp.where(near | jnp.isinf(size), 4, size)
    inverse = 1 / large
    v = 16 * inverse * inverse
    f = _quotient(digits(x, tables.SICI_F, tables.SICI_F_64),
                  digits(x, tables.SICI_F_UNDER, tables.SICI_F_UNDER_64), v)  # fmt: skip
    g = _quotient(digits(x, tables.SICI_G, tables.SICI_G_64),
                  digits(x, tables.SICI_G_UNDER, tables.SICI_G_UNDER_64), v)  # fmt: skip
    f, g, sin, cos = f * inverse, g * inverse * inverse, jnp.sin(large), jnp.cos(large)
    si = jnp.where(near, si, math.pi / 2 - (f * cos + g * sin))
    ci = jnp.where(near, ci, f * sin - g * cos)
    si = jnp.where(jnp.isinf(x), math.pi / 2, si)
    ci = jnp.where(jnp.isposinf(x), 0, jnp.where(jnp.isneginf(x), jnp.nan, ci))
    ci = jnp.where(x == 0, -jnp.inf, ci)
    nan = jnp.isnan(x)
    return (
        jnp.where(nan, x, jnp.copysign(si, x)).astype(x.dtype),
        jnp.where(nan, x, ci).astype(x.dtype),
    )


@_sici.defjvp
def _sici_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return _sici(x), (dx * jnp.sinc(x / math.pi), dx * jnp.cos(x) / x)


@remembered_as(in_doubles("sici", positive=True))
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine integral ∫₀ˣ sin(t)/t dt and the cosine integral γ + log x + ∫₀ˣ (cos(t) - 1)/t dt.

    Of negative x, Ci is that of -x, the real part, as in SciPy. Raises ValueError for complex
    numbers.

    >>> sici(jnp.array([1.0]))
    (Array([0.94608307], dtype=float32), Array([0.33740392], dtype=float32))
    """
    (x,) = inexact("sici", x)
    if x.dtype.kind == "c":
        raise ValueError("Argument `x` to sici must be real-valued.")
    si, ci = _sici(x)
    return si, ci


def _far(x: Any) -> Any:
    """Where floats are multiples of 4, and the integrals within half a digit of 1/2."""
    return jnp.abs(x) > 4 / jnp.finfo(x.dtype).eps


def _fresnel_phase(x: Any) -> Any:
    """πx²/2 but for whole turns, from exact quarters of a turn.

    With x = a + b, a short, x² mod 4 comes from a² mod 4 and the small rest. Far numbers are even.
    """
    x = jnp.where(_far(x), 0, x)
    # Of half the digits each, so that products are exact.
    info = jnp.finfo(x.dtype)
    a = reduce_precision(x, exponent_bits=info.nexp, mantissa_bits=(info.nmant - 1) // 2)
    b = x - a
    parts = [v - 4 * jnp.floor(v * 0.25) for v in (a * a, 2 * a * b, b * b)]
    return math.pi / 2 * (parts[0] + parts[1] + parts[2])


@custom_jvp
def _fresnel(x: Any) -> Any:
    size = jnp.abs(x)
    near = size < 1.5
    small = jnp.where(near, size, 0)
    fourth = -((math.pi / 2) ** 2) * small**4
    count = digits(x, 12, 16)
    cos = [math.exp(-math.lgamma(2 * k + 1)) / (4 * k + 1) for k in range(count)]
    sin = [math.exp(-math.lgamma(2 * k + 2)) / (4 * k + 3) for k in range(count)]
    c = small * horner(cos, fourth)
    s = math.pi / 2 * small**3 * horner(sin, fourth)
    # C + iS = (1 + i)/2 (1 - exp(iπx²/2) w((1 + i) √π/2 x)).
    large = jnp.where(near | _far(x), 2, size)
    phase = _fresnel_phase(large)
    z = math.sqrt(math.pi) / 2 * large
    w = wofz(of_parts(z, z))
    both = (0.5 + 0.5j) * (1 - of_parts(jnp.cos(phase), jnp.sin(phase)) * w)
    s = jnp.where(near, s, jnp.imag(both).astype(x.dtype))
    c = jnp.where(near, c, jnp.real(both).astype(x.dtype))
    s, c = (jnp.where(_far(x), 0.5, v) for v in (s, c))
    nan = jnp.isnan(x)
    return tuple([jnp.where(nan, x, jnp.copysign(v, x)).astype(x.dtype) for v in (s, c)])


@_fresnel.defjvp
def _fresnel_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    phase = _fresnel_phase(x)
    return _fresnel(x), (dx * jnp.sin(phase), dx * jnp.cos(phase))


@remembered_as(in_doubles("fresnel"))
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals (S, C): ∫₀ˣ of sin(πt²/2) and of cos(πt²/2).

    Element by element; operands broadcast, and integers count as floats.

    >>> fresnel(jnp.array([1.0]))
    (Array([0.43825915], dtype=float32), Array([0.7798934], dtype=float32))
    """
    s, c = _fresnel(*real_inexact("fresnel", x, error=NotImplementedError))
    return s, c


# Bernoulli numbers over factorials: Li₂(y) = Σ Bₖ uᵏ⁺¹/(k + 1)! with u = -log(1 - y).
_DILOGARITHM = [
    1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1 / 526901760, -691 / 16999766784000,
    1 / 1120863744000, -3617 / 181400588328960000, 43867 / 97072790126247936000,
    -174611 / 16860010916664115200000,
]  # fmt: skip


def _near_one(x: Any) -> Any:
    """Li₂(1 - x) for ½ ≤ x ≤ 2."""
    u = -jnp.log(x)
    return u * (1 + u * (-0.25 + u * horner(_DILOGARITHM, u * u)))


@custom_jvp
def _spence(x: Any) -> Any:
    inverse = x > 2  # an inverse is rounded, which counts next to 1, where Li₂ is 0
    y = jnp.where(inverse, 1 / jnp.where(inverse, x, 1), x)
    low = y < 0.5
    core = _near_one(jnp.where(low, 1 - y, jnp.where(y > 0, y, 1)))
    positive = jnp.where(low & (y > 0), y, 0.25)
    reflected = math.pi**2 / 6 - jnp.log(positive) * jnp.log1p(-positive) - core
    out = jnp.where(low, jnp.where(y > 0, reflected, math.pi**2 / 6), core)
    log = jnp.log(jnp.where(inverse, x, 1))
    out = jnp.where(inverse, -out - 0.5 * log * log, out)
    return jnp.where((x >= 0) & (x < jnp.inf), out, jnp.nan)


_LOG_SLOPES = [(-1) ** (k + 1) / (k + 1) for k in range(18)]


@_spence.defjvp
def _spence_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    # Next to 1 by its series, as derivatives of the quotient are differences over powers of x - 1.
    near = jnp.abs(x - 1) < 0.0625
    u, away = jnp.where(near, x - 1, 0), jnp.where(near, 2, x)
    series = horner(digits(x, _LOG_SLOPES[:10], _LOG_SLOPES), u)
    return _spence(x), dx * jnp.where(near, series, jnp.log(away) / (1 - away)).astype(x.dtype)


@remembered_as(in_doubles("spence", positive=True))
def spence(x: ArrayLike) -> Array:
    """Spence's function ∫₁ˣ log(t)/(1 - t) dt = Li₂(1 - x); nan for negative x and inf.

    Of float32 and float64. Raises TypeError for other dtypes.

    >>> spence(jnp.array([0.0, 1.0]))
    Array([ 1.644934, -0.      ], dtype=float32)
    """
    return _spence(wide("spence", x))


__all__ = ["exp1", "expi", "expn", "fresnel", "sici", "spence"]
