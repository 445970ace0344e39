"""Dirichlet's distribution on the simplex."""

from __future__ import annotations

from typing import Any

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike, in_float32
from primal.runtime.refusals import in_words
from primal.scipy import special
from primal.scipy.operands import real_inexact


@in_words
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density: log Γ(Σα) + Σ (αᵢ - 1) log xᵢ - log Γ(αᵢ).

    x: shares along the first axis, all of them or all but the last. alpha: a vector. Raises
    ValueError unless alpha is a vector and x has as many entries, or one fewer.

    >>> logpdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1.0, 2.0, 3.0]))
    Array(1.5040774, dtype=float32)
    """
    return _density(x, alpha, lambda log: log)


@in_words
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density: Γ(Σα) Π xᵢ^(αᵢ-1) / Γ(αᵢ) where Σx = 1.

    Shares lie along the first axis of x, alpha is a vector.

    >>> pdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0]))
    Array(1., dtype=float32)
    """
    return _density(x, alpha, jnp.exp)


def _density(x: Any, alpha: Any, of: Any) -> Any:
    x, alpha = real_inexact("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if x.ndim == 0 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; got "
            f"x.shape={x.shape}, alpha.shape={alpha.shape}"
        )
    # Shares of 16 bits are rounded: their sum is 1 to half a unit of it.
    near = max(1e-6, float(jnp.finfo(x.dtype).eps) / 2)
    return in_float32(lambda x, alpha: of(_log_density(x, alpha, near)), x, alpha)


def _log_density(x: Any, alpha: Any, near: float) -> Any:
    if x.shape[0] != alpha.shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    inside = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < near)
    power = alpha.reshape(alpha.shape + (1,) * (x.ndim - 1)) - 1
    constant = special.gammaln(jnp.sum(alpha)) - jnp.sum(special.gammaln(alpha))
    log = constant + jnp.sum(special.xlogy(power, x), axis=0)
    return jnp.where(inside, log, -jnp.inf)
