"""The Faddeeva function w(z) = exp(-z²) erfc(-iz) and what follows from it.

Weideman's expansion (SIAM J. Numer. Anal. 31, 1994): with Z = (L + iz)/(L - iz) and L = √(N/√2),
w(z) = 2 p(Z)/(L - iz)² + 1/(√π (L - iz)), p a polynomial of degree N - 1 whose coefficients are a
Fourier transform. Good for Im z ≥ 0; elsewhere w(z) = 2 exp(-z²) - w(-z).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered, remembered_as
from primal.ops.special import normal, tables
from primal.ops.special.error import squared
from primal.scipy.operands import (
    digits,
    horner,
    inexact,
    of_parts,
    real_inexact,
    rounded_once,
    strong,
)
from primal.scipy.special.doubles import in_doubles

_ROOT_PI = math.sqrt(math.pi)


@functools.cache
def _weideman(n: int) -> tuple[float, tuple[float, ...]]:
    """(L, coefficients from the highest power)."""
    m = 2 * n
    scale = math.sqrt(n / math.sqrt(2))
    theta = np.pi * np.arange(1 - m, m) / m
    t = scale * np.tan(theta / 2)
    samples = np.concatenate([[0.0], np.exp(-t * t) * (scale**2 + t * t)])
    c = np.real(np.fft.fft(np.fft.fftshift(samples))) / (2 * m)
    return scale, tuple(float(v) for v in c[1 : n + 1][::-1])


def _expansion(iz: Any, real_dtype_of: Any) -> Any:
    """w for Im z ≥ 0, from iz."""
    scale, c = _weideman(digits(real_dtype_of, 20, 44))
    below = scale - iz
    z = (scale + iz) / below
    p = jnp.full_like(z, c[0])
    for v in c[1:]:
        p = p * z + v
    return (2 * p / below + 1 / _ROOT_PI) / below


@custom_jvp
def _wofz(z: Any) -> Any:
    lower = jnp.imag(z) < 0
    upper = jnp.where(lower, -z, z)
    finite = jnp.isfinite(z)
    upper = jnp.where(finite, upper, 1)
    w = _expansion(1j * upper, jnp.real(z))
    # exp(-z²) = exp(y² - x²) exp(-2ixy), with one rounding less than squaring first.
    x, y = jnp.real(z), jnp.imag(z)
    safe_x, safe_y = jnp.where(lower & finite, x, 0), jnp.where(lower & finite, y, 0)
    size = jnp.exp((safe_y - safe_x) * (safe_y + safe_x))
    phase = -2 * safe_x * safe_y
    gauss = of_parts(size * jnp.cos(phase), size * jnp.sin(phase))
    out = jnp.where(lower, 2 * gauss - w, w)
    nan = jnp.isnan(x) | jnp.isnan(y)
    limit = jnp.where(nan, jnp.full_like(out, complex(math.nan, math.nan)), jnp.zeros_like(out))
    return jnp.where(finite, out, limit)


@_wofz.defjvp
def _wofz_jvp(primals: Any, tangents: Any) -> Any:
    (z,), (dz,) = primals, tangents
    w = _wofz(z)
    return w, dz * (2j / _ROOT_PI - 2 * z * w)


@remembered
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z²) erfc(-iz), complex.

    >>> wofz(1j)
    Array(0.4275836+0.j, dtype=complex64)
    """
    (z,) = inexact("wofz", z)
    z = z if z.dtype.kind == "c" else of_parts(z, jnp.zeros_like(z))
    return _wofz(jnp.asarray(z, z.dtype))


@custom_jvp
def scaled_erfc(x: Any) -> Any:
    """erfcx(x) of finite x ≥ 0."""
    return normal.scaled_erfc(x)


@custom_jvp
def _falls(x: Any) -> Any:
    """2/√π - 2x·erfcx(x) of finite x ≥ 0, of whose two terms no digit would be left far away."""
    k = digits(x, 2, 3)
    level = horner(digits(x, tables.ERFCX_SLOPE, tables.ERFCX_SLOPE_64), (x - k) / (x + k))
    inverse = 1 / (x + 0.5)
    return level * inverse * inverse


@_falls.defjvp
def _falls_jvp(primals: Any, tangents: Any) -> Any:
    # 2x·falls - 2·erfcx, whose higher derivatives have all digits near 0 and none far away, where
    # the polynomial's have them.
    (x,), (dx,) = primals, tangents
    out, k = _falls(x), digits(x, 2, 3)
    c = digits(x, tables.ERFCX_SLOPE, tables.ERFCX_SLOPE_64)
    near = x < 1
    small, large = jnp.where(near, x, 0), jnp.where(near, 1, x)
    t, inverse = (large - k) / (large + k), 1 / (large + 0.5)
    turns = horner([j * v for j, v in enumerate(c)][1:], t) * (2 * k) / (large + k) / (large + k)
    far = (turns - 2 * inverse * horner(c, t)) * inverse * inverse
    close = 2 * (small * _falls(small) - scaled_erfc(small))
    return out, dx * jnp.where(near, close, far)


@scaled_erfc.defjvp
def _scaled_erfc_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return scaled_erfc(x), -dx * _falls(x)


@custom_jvp
def _erfcx(x: Any) -> Any:
    w = scaled_erfc(jnp.where(jnp.isfinite(x), jnp.abs(x), 1))
    rounded, rest = squared(jnp.clip(x, -64, 0))
    out = jnp.where(x < 0, 2 * jnp.exp(rounded) * (1 + rest) - w, w)
    limit = jnp.where(x > 0, jnp.zeros_like(x), jnp.where(x < 0, jnp.full_like(x, jnp.inf), x))
    return jnp.where(jnp.isfinite(x), out, limit)


@_erfcx.defjvp
def _erfcx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    out = _erfcx(x)
    above = jnp.isfinite(x) & (x > 0)
    falls = _falls(jnp.where(above, x, 1))
    below = jnp.where(above, 0, 2 * x * out - 2 / _ROOT_PI)
    slope = jnp.where(above, -falls, jnp.where(x > 0, 0, below))
    return out, dx * slope


@remembered_as(in_doubles("erfcx"))
@rounded_once
def erfcx(x: ArrayLike) -> Array:
    """exp(x²) erfc(x), without underflow for large x; w(ix) for complex numbers.

    >>> erfcx(jnp.array([0.0, 100.0]))
    Array([1.        , 0.00564161], dtype=float32)
    """
    (x,) = inexact("erfcx", x)
    return _wofz(1j * x) if x.dtype.kind == "c" else _erfcx(*strong(x))


@custom_jvp
def _dawsn(x: Any) -> Any:
    # Polynomials of F(x)/x in x² up to 2, of 2x·F(x) in x up to 4, and in 1/x² beyond.
    size = jnp.abs(x)
    near, middle = size < 2, size < 4
    small = jnp.where(near, x, 0)
    out = small * horner(
        digits(x, tables.DAWSON_NEAR, tables.DAWSON_NEAR_64), 0.5 * small * small - 1
    )
    away = jnp.where(near, 2, size)
    inverse = 1 / (away * away)
    if x.dtype.itemsize == 8:
        level = jnp.where(
            size < 8,
            horner(tables.DAWSON_FAR_64, (inverse - 5 / 128) * (128 / 3)),
            horner(tables.DAWSON_BEYOND_64, 128 * inverse - 1),
        )
    else:
        level = horner(tables.DAWSON_FAR, 32 * inverse - 1)
    between = digits(x, tables.DAWSON_MIDDLE, tables.DAWSON_MIDDLE_64)
    level = jnp.where(middle, horner(between, jnp.where(middle, away, 3) - 3), level)
    return jnp.where(near, out, level * 0.5 / jnp.where(near, 2, x))


@_dawsn.defjvp
def _dawsn_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    out = _dawsn(x)
    return out, dx * (1 - 2 * x * out)


@remembered_as(in_doubles("dawsn"))
@rounded_once
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral exp(-x²) ∫₀ˣ exp(t²) dt.

    Element by element; operands broadcast, and integers count as floats.

    >>> dawsn(jnp.array([0.0, 1.0]))
    Array([0.       , 0.5380795], dtype=float32)
    """
    (v,) = real_inexact("dawsn", x, error=ValueError)
    return _dawsn(v).astype(v.dtype)


__all__ = ["dawsn", "erfcx", "wofz"]
