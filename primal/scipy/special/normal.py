"""The normal distribution function, its logarithm and its inverse, and Owen's T."""

from __future__ import annotations

import math
from typing import Any

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered, remembered_as
from primal.ops import special as ops
from primal.ops.special import tables
from primal.ops.special.normal import gauss, lower_normal
from primal.scipy.operands import digits, horner, inexact, real_inexact, rounded_once, strong, wide
from primal.scipy.special.doubles import in_doubles
from primal.scipy.special.faddeeva import scaled_erfc

_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@remembered
def erf(x: ArrayLike) -> Array:
    """The error function 2/√π ∫₀ˣ exp(-t²) dt.

    Element by element; operands broadcast, and integers count as floats.

    >>> erf(jnp.array([0.0, 1.0]))
    Array([0.       , 0.8427008], dtype=float32)
    """
    return ops.erf(*real_inexact("erf", x))


@remembered
def erfc(x: ArrayLike) -> Array:
    """1 - erf(x) = 2/√π ∫ₓ^∞ exp(-t²) dt, accurate for large x.

    Element by element; operands broadcast, and integers count as floats.

    >>> erfc(jnp.array([0.0, 1.0]))
    Array([1.        , 0.15729919], dtype=float32)
    """
    return ops.erfc(*real_inexact("erfc", x))


@remembered
def erfinv(x: ArrayLike) -> Array:
    """The inverse of erf, from [-1, 1]: erf(erfinv(x)) = x.

    Element by element; operands broadcast, and integers count as floats.

    >>> erfinv(jnp.array([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return ops.erf_inv(*real_inexact("erfinv", x))


@custom_jvp
def _ndtr(x: Any) -> Any:
    return lower_normal(x)


@_ndtr.defjvp
def _ndtr_jvp(primals: Any, tangents: Any) -> Any:
    # One exponential; the branches' own derivatives have two, and choose between them.
    (x,), (dx,) = primals, tangents
    return _ndtr(x), dx * (gauss(x) * math.exp(-_LOG_ROOT_TAU))


@remembered_as(in_doubles("ndtr"))
def ndtr(x: ArrayLike) -> Array:
    """Φ(x) = 1/√2π ∫ e^(-t²/2) dt up to x: a standard normal variable's probability to be below x.

    Element by element, of float32 and float64. Raises TypeError for other dtypes.

    >>> ndtr(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.8413448], dtype=float32)
    """
    return _ndtr(wide("ndtr", x))


@custom_jvp
def _log_ndtr(x: Any) -> Any:
    z = x * _ROOT_HALF
    # Φ(x) = ½ exp(-x²/2) erfcx(-x/√2) below: nothing underflows before the logarithm. What its
    # second factor loses beside -1, and farther down by standing still, is nothing beside -x²/2.
    low = scaled_erfc(jnp.minimum(jnp.abs(z), digits(x, 1 << 12, 1 << 27)))
    # log(1 - Q) keeps what is left of x far above.
    less = jnp.where(x > 0, -lower_normal(-jnp.maximum(x, 0)), 0.5 * low - 1)
    return jnp.log1p(less) - jnp.where(x > 0, 0, z * z)


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    z = x * _ROOT_HALF
    most = digits(x, 1 << 12, 1 << 27)
    far = jnp.where(x > 0, z, -z)  # at 0 with the derivative of the branch that counts there
    w = scaled_erfc(jnp.where(far < most, far, most))
    # φ(x)/Φ(x), over √(2/π): 1/w below, with the Gaussian on both sides above; -x far below.
    level = gauss(x)
    slope = jnp.where(x > 0, level / (2 - w * level), 1 / w) * math.sqrt(2 / math.pi)
    slope = jnp.where(z > -most, slope, -x)
    return _log_ndtr(x), dx * slope


@remembered_as(in_doubles("log_ndtr"))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log Φ(x), accurate in both tails.

    Computed through the scaled complementary error function, to full precision everywhere, so
    `series_order` has no effect but for being checked: int from 1 to 30. Raises TypeError or
    ValueError unless `series_order` is an integer from 0 to 30, TypeError for other dtypes than
    float32 and float64.

    >>> log_ndtr(jnp.array([-20.0, 0.0]))
    Array([-203.91716  ,   -0.6931472], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"series_order must be from 0 to 30, got {series_order}.")
    return _log_ndtr(wide("log_ndtr", x))


# Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics
# 37 (1988): x by rational functions of p - ½ in the middle and of √(-log p) in the tails, to 1e-7
# and to 1e-16. Per part: numerator and denominator, lowest power first.
_SHORT = (
    ((3.3871327179, 50.434271938, 159.29113202, 59.10937472),
     (1.0, 17.895169469, 78.757757664, 67.1875636)),
    ((1.4234372777, 2.75681539, 1.3067284816, 0.17023821103),
     (1.0, 0.7370016425, 0.12021132975)),
    ((6.657905115, 3.081226386, 0.42868294337, 0.017337203997),
     (1.0, 0.24197894225, 0.012258202635)),
)  # fmt: skip
_LONG = (
    ((3.387132872796366608, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
      45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
     (1.0, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077,
      21213.794301586595867, 39307.89580009271061, 28729.085735721942674, 5226.495278852854561)),
    ((1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055,
      3.64784832476320460504, 1.27045825245236838258, 0.24178072517745061177,
      0.0227238449892691845833, 7.7454501427834140764e-4),
     (1.0, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455,
      0.14810397642748007459, 0.0151986665636164571966, 5.475938084995344946e-4,
      1.05075007164441684324e-9)),
    ((6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358,
      0.29656057182850489123, 0.026532189526576123093, 0.0012426609473880784386,
      2.71155556874348757815e-5, 2.01033439929228813265e-7),
     (1.0, 0.59983220655588793769, 0.1369298809227358053, 0.0148753612908506148525,
      7.868691311456132591e-4, 1.8463183175100546818e-5, 1.4215117583164458887e-7,
      2.04426310338993978564e-15)),
)  # fmt: skip


@custom_jvp
def _ndtri(p: Any) -> Any:
    q = p - 0.5
    low = jnp.minimum(p, 1 - p)
    inside, middle = low > 0, jnp.abs(q) <= 0.425
    r = jnp.sqrt(-jnp.log(jnp.where(inside, low, 0.25)))
    far = r > 5
    at = jnp.where(middle, 0.180625 - q * q, jnp.where(far, r - 5, r - 1.6))
    parts = _LONG if p.dtype.itemsize == 8 else _SHORT
    over, under = [
        jnp.where(middle, horner(a, at), jnp.where(far, horner(c, at), horner(b, at)))
        for a, b, c in zip(*parts, strict=True)
    ]
    out = jnp.where(middle, q, jnp.sign(q)) * (over / under)
    return jnp.where(inside, out, jnp.where(low == 0, jnp.sign(q) * jnp.inf, jnp.nan))


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    (p,), (dp,) = primals, tangents
    out = _ndtri(p)
    # 1/φ(x) = Φ(x)/φ(x) / p of the nearer tail: φ(x) itself would have the rounding of x times x².
    # By choices, not min and abs, whose derivatives at 1/2 are not those of either tail.
    upper = p >= 0.5
    low = jnp.where(upper, 1 - p, p)
    inside = low > 0
    at = jnp.where(inside, jnp.where(upper, out, -out), 0)
    slope = scaled_erfc(at * _ROOT_HALF) * math.sqrt(math.pi / 2) / jnp.where(inside, low, 1)
    return out, dp * jnp.where(inside, slope, jnp.where(low == 0, jnp.inf, jnp.nan))


@remembered_as(in_doubles("ndtri", of_double=True))
def ndtri(p: ArrayLike) -> Array:
    """Φ⁻¹(p), the standard normal quantile; ∓inf at 0 and 1, nan outside.

    Element by element, of float32 and float64. Raises TypeError for other dtypes. Wichura's AS 241,
    1988.

    >>> ndtri(jnp.array([0.5, 0.975]))
    Array([0.       , 1.9599646], dtype=float32)
    """
    return _ndtri(wide("ndtri", p))


@custom_jvp
def _owens_t(h: Any, a: Any) -> Any:
    h, size = jnp.abs(h), jnp.abs(a)
    # T(h, a) + T(ah, 1/a) = ½Φ(h) + ½Φ(ah) - Φ(h)Φ(ah) brings the upper limit to 1.
    swap = size > 1
    limit = jnp.where(swap, 1 / jnp.where(swap, size, 1), size)
    k = jnp.where(swap, h * jnp.where(jnp.isinf(size), 0, size), h)
    k = jnp.where(swap & jnp.isinf(size), jnp.where(h == 0, 0.0, jnp.inf), k)
    inner = _owens_integral(jnp.where(jnp.isinf(k), 0, k), limit)
    inner = jnp.where(jnp.isinf(k), 0, inner)
    # ½Φ(h) + ½Φ(k) - Φ(h)Φ(k) from the upper tails, which keep their digits.
    p, q = 0.5 * ops.erfc(h * _ROOT_HALF), 0.5 * ops.erfc(k * _ROOT_HALF)
    out = jnp.where(swap, 0.5 * (p + q) - p * q - inner, inner)
    return jnp.where(a < 0, -out, out)


def _owens_integral(h: Any, a: Any) -> Any:
    """1/2π ∫₀ᵃ exp(-h²(1 + t²)/2) / (1 + t²) dt, 0 ≤ a ≤ 1.

    With 1/(1 + t²) as a polynomial, as in method T3 of Patefield and Tandy (Journal of Statistical
    Software 5, 2000), it is a sum of moments mⱼ = ∫₀¹ x²ʲ exp(-wx²) dx with w = h²a²/2, and
    2w·mⱼ₊₁ = (2j + 1)·mⱼ - e^-w: upwards where w is large, downwards where it is small.
    """
    c = digits(h, tables.OWEN, tables.OWEN_64)
    wide, above = digits(h, 3, 6), digits(h, 12, 16)
    product, square = h * a * _ROOT_HALF, a * a
    w = product * product
    large = w > wide
    end = jnp.exp(-w)
    root = jnp.where(large, product, 1)
    inverse = 0.5 / (root * root)
    moment = 0.5 * math.sqrt(math.pi) * ops.erf(root) / root
    power, upwards = jnp.ones_like(a), c[0] * moment
    for j, v in enumerate(c[1:]):
        moment, power = ((2 * j + 1) * moment - end) * inverse, power * square
        upwards = upwards + v * power * moment
    twice = jnp.where(large, 0, 2 * w)
    moment, downwards = jnp.zeros_like(a), jnp.zeros_like(a)
    for j in range(len(c) + above, -1, -1):
        moment = (twice * moment + end) * (1 / (2 * j + 1))
        if j < len(c):
            downwards = downwards * square + c[j] * moment
    total = jnp.where(large, upwards, downwards)
    return a * jnp.exp(-0.5 * h * h) * total * (0.5 / math.pi)


def _owens_t_by_h(dh: Any, _: Any, h: Any, a: Any) -> Any:
    gauss = jnp.exp(-0.5 * h * h)
    return dh * (-0.5 * gauss * ops.erf(a * h * _ROOT_HALF) / math.sqrt(2 * math.pi))


def _owens_t_by_a(da: Any, _: Any, h: Any, a: Any) -> Any:
    return da * (jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)))


_owens_t.defjvps(_owens_t_by_h, _owens_t_by_a)


@remembered
@rounded_once
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T: 1/2π ∫₀ᵃ exp(-h²(1 + t²)/2) / (1 + t²) dt.

    The probability that X > h and 0 < Y < aX for independent standard normals (Owen, 1956). Element
    by element; operands broadcast, and integers count as floats.

    >>> owens_t(0.0, jnp.array([1.0]))
    Array([0.125], dtype=float32)
    """
    return _owens_t(*jnp.broadcast_arrays(*strong(*inexact("owens_t", h, a))))


__all__ = ["erf", "erfc", "erfinv", "log_ndtr", "ndtr", "ndtri", "owens_t"]
