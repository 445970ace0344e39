"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from collections.abc import Callable

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike, convert
from primal.scipy.operands import inexact, real_inexact, rounded_once, strong
from primal.scipy.stats.supports import within


def _on_support(
    name: str, x: ArrayLike, loc: ArrayLike, scale: ArrayLike, value: Callable[[Array], Array],
    elsewhere: float,
) -> Array:
    """What the scale says on the support, in the dtype of the operands: computed once, not for each
    element, and not in float64 where the scale is weak."""
    x, loc, scale = real_inexact(name, x, loc, scale)
    outside = (x < loc) | (x > loc + scale)
    weak = x.weak_type and loc.weak_type and scale.weak_type
    inside = convert(value(scale), x.dtype, weak)
    return convert(jnp.where(outside, elsewhere, inside), x.dtype, weak)


@rounded_once
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density: -log scale on [loc, loc + scale], -inf elsewhere.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> logpdf(jnp.array([0.5, 2.0]), 0.0, 4.0)
    Array([-1.3862944, -1.3862944], dtype=float32)
    """
    return _on_support("uniform.logpdf", x, loc, scale, lambda s: -jnp.log(s), -jnp.inf)


@rounded_once
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density: 1/scale on [loc, loc + scale].

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> pdf(jnp.array([0.5, 2.0]), 0.0, 4.0)
    Array([0.25, 0.25], dtype=float32)
    """
    return _on_support("uniform.pdf", x, loc, scale, lambda s: 1 / s, 0.0)


@rounded_once
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """P(X ≤ x), the probability of values up to x.

    Operands broadcast; lists and complex numbers are TypeErrors.

    >>> cdf(jnp.array([-1.0, 0.25]))
    Array([0.  , 0.25], dtype=float32)
    """
    x, loc, scale = real_inexact("uniform.cdf", x, loc, scale)
    return strong(within((x - loc) / scale, 0, 1, lambda z: z, 0, 1))[0]


@rounded_once
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile, the inverse of `cdf`: P(X ≤ ppf(q)) = q; nan beyond [0, 1].

    Operands broadcast, complex ones too; lists are TypeErrors.

    >>> ppf(jnp.array([0.25, 0.5]), 0.0, 4.0)
    Array([1., 2.], dtype=float32)
    """
    q, loc, scale = inexact("uniform.ppf", q, loc, scale)
    inside = (q >= 0) & (q <= 1)
    return jnp.where(inside, loc + q * scale, jnp.nan)
