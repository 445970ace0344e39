"""Spherical harmonics and the associated Legendre functions they are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.ir.trace import Array, Tracer, concrete_or_error
from primal.numpy.promotion import check_arraylike
from primal.numpy.remembered import remembered
from primal.ops.types import static_int
from primal.scipy.operands import real_inexact


def _legendre(n_max: int, z: Any, root: Any) -> Any:
    """P̄ₙᵐ(z) √((2n + 1)/4π (n - m)!/(n + m)!), stacked as [n, m, …], for 0 ≤ m ≤ n ≤ n_max.

    root: √(1 - z²).
    The normalized recurrences neither overflow nor cancel (Holmes and Featherstone, 2002).
    """
    zero = jnp.zeros_like(z)
    rows: list[list[Any]] = []
    for n in range(n_max + 1):
        row = [zero] * (n_max + 1)
        for m in range(n + 1):
            if n == m:
                row[m] = (
                    jnp.full_like(z, math.sqrt(1 / (4 * math.pi)))
                    if n == 0
                    else -math.sqrt((2 * n + 1) / (2 * n)) * root * rows[n - 1][n - 1]
                )
            elif m == n - 1:
                row[m] = math.sqrt(2 * n + 1) * z * rows[n - 1][m]
            else:
                u = math.sqrt((4 * n * n - 1) / (n * n - m * m))
                v = math.sqrt(((n - 1) ** 2 - m * m) / (4 * (n - 1) ** 2 - 1))
                row[m] = u * (z * rows[n - 1][m] - v * rows[n - 2][m])
        rows.append(row)
    return jnp.stack([jnp.stack(row) for row in rows])


@remembered
def sph_harm_y(
    n: Array,
    m: Array,
    theta: Array,
    phi: Array,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """The spherical harmonic Yₙᵐ(θ, φ) = P̄ₙᵐ(cos θ) e^imφ, orthonormal, with phase (-1)ᵐ.

    n, m: vectors of degrees n ≥ 0 and orders |m| ≤ n. theta: the polar angle, phi: the azimuth, in
    radians. n_max: the largest degree, a number; needed where n is traced. Complex results. Raises
    ValueError for a traced n without `n_max`, NotImplementedError for `diff_n`.

    >>> sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0]))
    Array([0.48860252+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError(
            "The 'diff_n' argument to sph_harm_y is not supported. Differentiate the function."
        )
    if n_max is None:
        if isinstance(n, Tracer):
            raise ValueError(
                "[sph_harm_y] expected n_max where n is traced: the number of recurrence steps "
                "must be known. Pass n_max=."
            )
        n_max = int(np.max(np.asarray(n)))
    n, m = jnp.atleast_1d(jnp.asarray(n)), jnp.atleast_1d(jnp.asarray(m))
    theta, phi = real_inexact("sph_harm_y", jnp.asarray(theta), jnp.asarray(phi))
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    z = jnp.cos(theta)
    table = _legendre(n_max, z, jnp.sqrt(jnp.maximum(1 - z * z, 0)))
    order = jnp.abs(m)
    places = jnp.indices(n.shape, sparse=True)
    p = table[(n, order, *places)]
    angle = order * phi
    real, imag = p * jnp.cos(angle), p * jnp.sin(angle)
    # Y of -m is (-1)ᵐ times the conjugate.
    sign = jnp.where((m < 0) & (order % 2 == 1), -1, 1)
    out = sign * real + 1j * (jnp.where(m < 0, -sign, sign) * imag)
    return out.astype(out.dtype) if out.ndim else out


def _degrees(name: str, m: Any, n: Any, z: Any) -> tuple[int, Array]:
    m, n = static_int(f"{name} m", m), static_int(f"{name} n", n)
    if m != n:
        raise NotImplementedError(f"[{name}] expected m = n, got {m} and {n}: only squares are.")
    if n < 0:
        raise ValueError(f"[{name}] expected a degree n >= 0, got {n}.")
    check_arraylike(name, z)
    z = jnp.asarray(z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"[{name}] expected z of float32 or float64, got {z.dtype.name}.")
    if z.ndim != 1:
        raise ValueError(f"[{name}] expected shape [n], got {z.shape}: z must be a 1D array.")
    return n, z


def lpmn(m: int, n: int, z: Array) -> tuple[Array, Array]:
    """Associated Legendre functions Pₙᵐ(z) = (-1)ᵐ (1 - z²)^(m/2) dᵐPₙ/dzᵐ and their derivatives.

    Both of shape [m + 1, n + 1, size of z], 0 for orders beyond the degree. m = n: the largest
    order and degree, numbers. z: a vector, |z| ≤ 1. Deprecated, as in JAX. Raises
    NotImplementedError where m is not n, TypeError for other dtypes than float32 and float64.

    >>> float(lpmn(1, 1, jnp.array([0.5]))[0][0, 1, 0])
    0.5
    """
    n, z = _degrees("lpmn", m, n, z)
    w, zero = 1 - z * z, jnp.zeros_like(z)
    values, slopes = [], []
    derived = _derived(n, 0, z)
    for k in range(n + 1):
        sign, half = (-1.0) ** k, k / 2
        plain, derived = derived, _derived(n, k + 1, z)
        values.append(jnp.stack([sign * w**half * q for q in plain]))
        slopes.append(
            jnp.stack([
                zero if i < k else sign * (w**half * r - (k * z * w ** (half - 1) * q if k else 0))
                for i, (q, r) in enumerate(zip(plain, derived, strict=True))
            ])
        )  # fmt: skip
    return jnp.stack(values), jnp.stack(slopes)


def _derived(n: int, m: int, z: Any) -> list[Any]:
    """dᵐPᵢ/dzᵐ of the degrees 0 ≤ i ≤ n, each from the two before it."""
    row = [jnp.zeros_like(z)] * min(m, n + 1)
    for i in range(m, n + 1):
        if i == m:
            row.append(jnp.full_like(z, float(math.prod(range(1, 2 * m, 2)))))
        else:
            before = (i + m - 1) * row[i - 2] if i > m + 1 else 0
            row.append(((2 * i - 1) * z * row[i - 1] - before) / (i - m))
    return row


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Array:
    """The values of `lpmn`; if normalized, times √((2n + 1)/4π (n - m)!/(n + m)!).

    Arguments, shape and errors as there. Deprecated, as in JAX.

    >>> lpmn_values(1, 1, jnp.array([0.5]), False)[0]
    Array([[1. ],
           [0.5]], dtype=float32)
    """
    n, z = _degrees("lpmn_values", m, n, z)
    if not concrete_or_error(is_normalized, "lpmn_values is_normalized"):
        return lpmn(n, n, z)[0]
    return jnp.swapaxes(_legendre(n, z, jnp.sqrt(1 - z * z)), 0, 1)


__all__ = ["lpmn", "lpmn_values", "sph_harm_y"]
