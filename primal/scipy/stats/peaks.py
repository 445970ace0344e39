"""Logarithms of densities by how far they are from their greatest value.

As a sum of log Γ and of products with logarithms they cancel: 400,000 units were lost in
poisson.pmf(52475, 52644). With L(k, m) = log(mᵏ·e⁻ᵐ/k!) each is a sum of a few L, whose terms are
small where the density is not (Loader, "Fast and accurate computation of binomial probabilities",
2000).
"""

from __future__ import annotations

from typing import Any

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.base.expansions import ODD_PARTS
from primal.numpy.remembered import remembered
from primal.ops.special import tables
from primal.scipy.operands import digits, horner
from primal.scipy.special.gammas import SHIFT, shifted


def _of_log(v: Any, m: Any, inverse: Any) -> Any:
    """log(m/v) - (m - v)/v, by a series where that cancels; `inverse` is 1/v."""
    ratio = (m - v) * inverse
    apart = (ratio < -0.5) | (ratio > 1)
    z = jnp.where(apart, 0, (m - v) / (m + v))
    square = z * z
    cubes = z * square * horner(ODD_PARTS[: digits(z, 7, 17)], square)
    far = jnp.log(jnp.where(apart, m * inverse, 1)) - ratio
    return jnp.where(apart, far, cubes - z * ratio)


@custom_jvp
def log_poisson(k: Any, mean: Any) -> Any:
    """L(k, mean) for k ≥ 0 and mean ≥ 0.

    By Lanczos's form k! = M(u)·vᵏ⁺½·e⁻ᵏ with v = k + h, u = h/v: k·log(m/v) and m - k then are
    k·(log(m/v) - (m - v)/v) and (v - k)·m/v. One formula for all k; half of the time of log Γ.
    """
    none = mean == 0
    m = jnp.where(none, 1, mean)
    v, lost = shifted(k)
    inverse = 1 / v
    most = horner(digits(k, tables.LANCZOS, tables.LANCZOS_64), SHIFT * inverse)
    log = k * _of_log(v, m, inverse) - (v - k) * (m * inverse)
    log = log - 0.5 * jnp.log(v * (most * most)) - (k + 0.5) * lost
    return jnp.where(none, jnp.where(k == 0, 0, -jnp.inf), log)


def _log_less_psi(k: Any, mean: Any) -> Any:
    """log m - ψ(k + 1): log(m/v) and what Lanczos's form leaves of log v - ψ."""
    v, _ = shifted(k)
    u = SHIFT / v
    slope = horner(digits(k, tables.LANCZOS_SLOPE, tables.LANCZOS_SLOPE_64), u)
    return jnp.log(mean / v) + u * slope


def _by_k(t: Any, out: Any, k: Any, mean: Any) -> Any:
    return t * _log_less_psi(k, mean)


def _by_mean(t: Any, out: Any, k: Any, mean: Any) -> Any:
    return t * jnp.where(k == 0, -1, (k - mean) / jnp.where(k == 0, 1, mean))


log_poisson.defjvps(_by_k, _by_mean)
log_poisson = remembered(log_poisson)


def power_slope(a: Any, z: Any) -> Any:
    """That of log zᵃ⁻¹ by z; of the 0-th power it is 0 at 0 too."""
    return (a - 1) / jnp.where((a == 1) & (z == 0), 1, z)


def log_power_of_zero(power: Any) -> Any:
    """log 0ᵖ; of parameters alone, where xlogy is a logarithm for each element."""
    return jnp.where(power == 0, 0, power * -jnp.inf)


@custom_jvp
def log_gamma(a: Any, z: Any) -> Any:
    """log(zᵃ⁻¹·e⁻ᶻ/Γ(a)) for z ≥ 0.

    With slopes of its own: those of log_poisson and of 1/z cancel next to 0, and of a = 1 no digit
    was left below 1e-6.
    """
    ends = (z == 0) | (z == jnp.inf)
    at = jnp.where(ends, 1, z)
    # L(a - 1, z), or of a below 1, where there is none, L(a, z)·a/z, whose logarithms are large.
    less = a < 1
    ratio = jnp.log(jnp.where(less, a, 1)) - jnp.log(jnp.where(less, at, 1))
    log = log_poisson(jnp.where(less, a, a - 1), at) + ratio
    power = log_power_of_zero(a - 1)
    # At infinity powers above the 0-th are inf - inf, nan as in SciPy.
    return jnp.where(ends, jnp.where(z == 0, power, -power) - z, log)


log_gamma.defjvps(
    lambda t, out, a, z: t * (_log_less_psi(a, z) + 1 / a),
    lambda t, out, a, z: t * (power_slope(a, z) - 1),
)
log_gamma = remembered(log_gamma)


@remembered
def log_half_step(h: Any) -> Any:
    """log(Γ(h + ½)/(Γ(h)·√h)) for h > 0, of which no digit would be left for a large h.

    By Lanczos's form of h! and of (h + ½)!: great terms cancel by hand.
    """
    c = digits(h, tables.LANCZOS, tables.LANCZOS_64)
    v = h + SHIFT
    w = v + 0.5
    ratio = horner(c, SHIFT / w) / horner(c, SHIFT / v)
    after = h + 0.5
    return jnp.log(ratio * jnp.sqrt((h / after) * (w / after))) + (after * jnp.log1p(0.5 / v) - 0.5)


@remembered
def log_split(a: Any, b: Any, p: Any) -> Any:
    """log((a + b)!/(a!·b!)·pᵃ·(1 - p)ᵇ)."""
    both = a + b
    return log_poisson(a, both * p) + log_poisson(b, both * (1 - p)) - log_poisson(both, both)
