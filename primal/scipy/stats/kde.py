"""Density estimation with Gaussian kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal import nn, random
from primal.ir.trace import Array
from primal.lax import linalg
from primal.numpy.promotion import check_arraylike
from primal.scipy import special
from primal.scipy.operands import inexact
from primal.tree_util import register_pytree_node_class


@register_pytree_node_class
@dataclass(frozen=True, init=False)
class gaussian_kde:
    """The density of which a sample is drawn, as the mean of Gaussians at its points.

    p(x) = Σᵢ wᵢ N(x; xᵢ, Σ), Σ the covariance of the sample times the squared bandwidth factor.
    dataset: (dimensions, points) or (points,). bw_method: 'scott' (default, n^(-1/(d+4))),
    'silverman', a number, or a function of the estimator. weights: not negative, (points,).

    >>> gaussian_kde(jnp.array([0.0, 1.0]))(jnp.array([0.5])).shape
    (1,)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(
        self,
        dataset: Any,
        bw_method: None | str | Array | Callable[[Any], Array] = None,
        weights: Any = None,
    ) -> None:
        check_arraylike("gaussian_kde", dataset)
        (points,) = inexact("gaussian_kde", jnp.atleast_2d(dataset))
        if jnp.iscomplexobj(points):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if points.size < 2:
            raise ValueError("`dataset` input should have multiple elements.")
        n = points.shape[1]
        if weights is None:
            w = jnp.full(n, 1 / n, points.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            (w,) = inexact("gaussian_kde", jnp.atleast_1d(weights))
            if w.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if w.shape[0] != n:
                raise ValueError("`weights` input should be of length n")
            w = w / jnp.sum(w)
        self._set(dataset=points, weights=w, neff=1 / jnp.sum(w * w))
        factor = self._factor(bw_method)
        spread = jnp.atleast_2d(jnp.cov(points, rowvar=True, bias=False, aweights=w))
        covariance = spread * factor**2
        self._set(covariance=covariance, inv_cov=jnp.linalg.inv(spread) / factor**2)

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _factor(self, method: Any) -> Any:
        scott = jnp.power(self.neff, -1.0 / (self.d + 4))
        if method is None or method == "scott":
            return scott
        if isinstance(method, str):
            if method == "silverman":
                return jnp.power(self.neff * (self.d + 2) / 4.0, -1.0 / (self.d + 4))
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        if callable(method):
            return method(self)
        if np.ndim(method) or not np.isreal(method):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        return method

    def tree_flatten(self) -> tuple[Any, None]:
        """The arrays, as children of a tree."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """The estimator of these arrays."""
        out = object.__new__(cls)
        names = ("neff", "dataset", "weights", "covariance", "inv_cov")
        out._set(**dict(zip(names, children, strict=True)))
        return out

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def evaluate(self, points: Any) -> Array:
        """The density at points (dimensions, count) or (count,)."""
        return jnp.exp(self.logpdf(points))

    def __call__(self, points: Any) -> Array:
        return self.evaluate(points)

    def pdf(self, x: Any) -> Array:
        """The same as `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the density."""
        check_arraylike("logpdf", x)
        points = self._points(x)
        gap = points[:, None, :] - self.dataset[:, :, None]
        return self._log_sum(gap, self.covariance, self.weights[:, None], 0)

    def _log_sum(self, gap: Any, covariance: Any, weights: Any, axis: Any) -> Any:
        """log Σ w N(gap; 0, covariance), dimensions of gap first."""
        gap, covariance = inexact("gaussian_kde", gap, covariance)
        factor = linalg.cholesky(covariance)
        white = linalg.triangular_solve(
            factor, gap.reshape(gap.shape[0], -1), left_side=True, lower=True
        ).reshape(gap.shape)
        half_log_det = jnp.sum(jnp.log(jnp.diagonal(factor)))
        constant = half_log_det + 0.5 * gap.shape[0] * jnp.log(2 * jnp.pi)
        energy = -0.5 * jnp.sum(white * white, axis=0)
        return nn.logsumexp(energy, axis=axis, b=weights) - constant

    def _points(self, x: Any) -> Any:
        points = jnp.atleast_2d(jnp.asarray(x))
        d, m = points.shape
        if d == self.d:
            return points
        if d == 1 and m == self.d:
            return points.reshape(self.d, 1)
        raise ValueError(
            f"points have dimension {d}, dataset has dimension {self.d}: pass an array of shape "
            "(dimensions, count)."
        )

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """∫ p(x) N(x; mean, cov) dx."""
        center = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean)))
        spread = jnp.atleast_2d(jnp.asarray(cov))
        if center.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if spread.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        gap = self.dataset - center[:, None]
        return jnp.exp(self._log_sum(gap, self.covariance + spread, self.weights, 0))

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """∫ p(x) dx from low to high, in one dimension."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if jnp.ndim(low) != 0 or jnp.ndim(high) != 0:
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        sigma = jnp.squeeze(jnp.sqrt(self.covariance))
        lower = jnp.squeeze((low - self.dataset) / sigma)
        upper = jnp.squeeze((high - self.dataset) / sigma)
        return jnp.sum(self.weights * (special.ndtr(upper) - special.ndtr(lower)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """∫ p(x) q(x) dx with another estimate q."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        gap = self.dataset[:, :, None] - other.dataset[:, None, :]
        weights = self.weights[:, None] * other.weights[None]
        return jnp.exp(self._log_sum(gap, self.covariance + other.covariance, weights, (0, 1)))

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Draws from the estimate, (dimensions, *shape)."""
        pick, noise = random.split(key)
        size = (shape,) if isinstance(shape, int) else tuple(shape)
        at = random.choice(pick, self.n, shape=size, p=self.weights)
        zero = jnp.zeros(self.d, self.covariance.dtype)
        error = random.multivariate_normal(
            noise, zero, self.covariance, shape=size, dtype=self.dataset.dtype
        )
        return self.dataset[:, at] + jnp.moveaxis(error, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """Not here: SciPy integrates numerically in compiled code."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not here: estimates do not change; make another one."""
        raise NotImplementedError(
            "dynamically changing the bandwidth method is not supported: make a new gaussian_kde "
            "with bw_method."
        )


__all__ = ["gaussian_kde"]
