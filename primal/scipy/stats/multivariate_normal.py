"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.lax import linalg
from primal.numpy.promotion import ArrayLike
from primal.runtime.refusals import in_words
from primal.scipy.operands import real_inexact


@in_words
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: Any = None) -> Array:
    """The logarithm of the density: -½ (x - μ)ᵀ Σ⁻¹ (x - μ) - ½ log det(2πΣ).

    x, mean: vectors along the last axis, or scalars. cov: matrices, or a scalar variance. nan where
    cov is not positive definite; NotImplementedError for `allow_singular`. Raises ValueError where
    the shapes of mean and covariance do not fit.

    >>> logpdf(jnp.array([0.5, 2.0]), jnp.zeros(2), jnp.eye(2))
    Array(-3.962877, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "[multivariate_normal.logpdf] expected allow_singular=None: covariances have to be "
            "positive definite."
        )
    x, mean, cov = real_inexact("multivariate_normal.logpdf", x, mean, cov)
    if not mean.shape:
        variance = cov
        return -0.5 * (jnp.square(x - mean) / variance + math.log(2 * math.pi) + jnp.log(variance))
    n = mean.shape[-1]
    if not cov.shape:
        square = jnp.sum(jnp.square(x - mean) / cov, axis=-1)
        return -0.5 * (square + n * (math.log(2 * math.pi) + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: mean has size "
            f"{n} and cov has shape {cov.shape}."
        )
    factor = linalg.cholesky(cov)
    batch = jnp.broadcast_shapes(x.shape[:-1], mean.shape[:-1], cov.shape[:-2])
    gap = jnp.broadcast_to(x - mean, (*batch, n))
    factors = jnp.broadcast_to(factor, (*batch, n, n))
    white = linalg.triangular_solve(
        factors, gap[..., None], left_side=True, lower=True, transpose_a=False
    )[..., 0]
    half_log_det = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    square = jnp.sum(white * white, axis=-1)
    return -0.5 * square - 0.5 * n * math.log(2 * math.pi) - half_log_det


@in_words
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density: exp(-½ (x - μ)ᵀ Σ⁻¹ (x - μ)) / √det(2πΣ).

    Vectors lie along the last axis of x and mean; cov holds matrices.

    >>> pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    Array(0.15915497, dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))
