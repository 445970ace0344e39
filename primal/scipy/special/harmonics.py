"""Spherical harmonics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.ir.trace import Array, Tracer
from primal.numpy.remembered import remembered
from primal.scipy.operands import real_inexact


def _legendre(n_max: int, z: Any) -> Any:
    """P̄ₙᵐ(z) √((2n + 1)/4π (n - m)!/(n + m)!), stacked as [n, m, …], for 0 ≤ m ≤ n ≤ n_max.

    The normalized recurrences neither overflow nor cancel (Holmes and Featherstone, 2002).
    """
    root = jnp.sqrt(jnp.maximum(1 - z * z, 0))
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
    table = _legendre(n_max, jnp.cos(theta))
    order = jnp.abs(m)
    places = jnp.indices(n.shape, sparse=True)
    p = table[(n, order, *places)]
    angle = order * phi
    real, imag = p * jnp.cos(angle), p * jnp.sin(angle)
    # Y of -m is (-1)ᵐ times the conjugate.
    sign = jnp.where((m < 0) & (order % 2 == 1), -1, 1)
    return sign * real + 1j * (jnp.where(m < 0, -sign, sign) * imag)


__all__ = ["sph_harm_y"]
