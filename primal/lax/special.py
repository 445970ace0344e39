"""Special functions of floats: the error function, gamma, beta and Bessel functions.

Operands have one dtype, which Python scalars adopt, and shapes that are equal, scalar, or of equal
rank with sizes equal or 1. TypeError for others.
"""

from __future__ import annotations

from typing import Any

from primal.ir.trace import Array
from primal.lax.alike import alike
from primal.ops import special as ops


def erf(x: Any) -> Array:
    """The error function, 2/√π·∫₀ˣ exp(-s²) ds.

    Floats; the dtype is kept.

    >>> lax.erf(jnp.array([0., 1.]))
    Array([0.       , 0.8427008], dtype=float32)
    """
    return ops.erf(x)


def erfc(x: Any) -> Array:
    """The complementary error function, 1 - erf(x), accurate for large x.

    Floats; the dtype is kept.

    >>> lax.erfc(jnp.array([0., 1.]))
    Array([1.        , 0.15729919], dtype=float32)
    """
    return ops.erfc(x)


def erf_inv(x: Any) -> Array:
    """The inverse of erf, from (-1, 1); infinite at ±1 and NaN beyond.

    Floats; the dtype is kept.

    >>> lax.erf_inv(jnp.array([0., 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return ops.erf_inv(x)


def lgamma(x: Any) -> Array:
    """log |Γ(x)|; infinite at 0, -1, -2, ….

    Floats; the dtype is kept.

    >>> lax.lgamma(jnp.array([1., 5.]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    return ops.lgamma(x)


def digamma(x: Any) -> Array:
    """ψ(x), the derivative of log Γ(x); NaN at 0, -1, -2, ….

    Floats; the dtype is kept.

    >>> lax.digamma(jnp.array([1., 2.]))
    Array([-0.5772157 ,  0.42278433], dtype=float32)
    """
    return ops.digamma(x)


def polygamma(m: Any, x: Any) -> Array:
    """ψ⁽ᵐ⁾(x), the m-th derivative of digamma, for m = 0, 1, 2, …; NaN for other m.

    Floats of one dtype. ValueError if differentiated by m.

    >>> lax.polygamma(1., jnp.array([1., 2.]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return ops.polygamma(*alike("polygamma", m, x))


def zeta(x: Any, q: Any) -> Array:
    """The Hurwitz zeta function, Σₙ (n + q)^-x over n = 0, 1, …, for x > 1.

    Floats of one dtype; derivatives by x are given for q > 0, NaN elsewhere.

    >>> lax.zeta(2., jnp.array([1., 2.]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return ops.zeta(*alike("zeta", x, q))


def bessel_i0e(x: Any) -> Array:
    """e^-|x|·I₀(x), the scaled modified Bessel function of order 0.

    Floats; the dtype is kept.

    >>> lax.bessel_i0e(jnp.array([0., 1.]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return ops.bessel_i0e(x)


def bessel_i1e(x: Any) -> Array:
    """e^-|x|·I₁(x), the scaled modified Bessel function of order 1.

    Floats; the dtype is kept.

    >>> lax.bessel_i1e(jnp.array([0., 1.]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return ops.bessel_i1e(x)


def igamma(a: Any, x: Any) -> Array:
    """P(a, x) = 1/Γ(a)·∫₀ˣ s^(a-1)·e^-s ds, the lower incomplete gamma function.

    Floats of one dtype; NaN for negative a or x.

    >>> lax.igamma(2., jnp.array([1., 3.]))
    Array([0.26424113, 0.8008517 ], dtype=float32)
    """
    return ops.igamma(*alike("igamma", a, x))


def igammac(a: Any, x: Any) -> Array:
    """Q(a, x) = 1 - P(a, x), accurate where P is near 1.

    Floats of one dtype; NaN for negative a or x.

    >>> lax.igammac(2., jnp.array([1., 3.]))
    Array([0.7357589 , 0.19914827], dtype=float32)
    """
    return ops.igammac(*alike("igammac", a, x))


def igamma_grad_a(a: Any, x: Any) -> Array:
    """∂P(a, x)/∂a.

    Floats of one dtype; derivatives by both, of every order.

    >>> lax.igamma_grad_a(2., jnp.array([1., 3.]))
    Array([-0.27619603, -0.19742543], dtype=float32)
    """
    return ops.igamma_grad_a(*alike("igamma_grad_a", a, x))


def random_gamma_grad(a: Any, x: Any) -> Array:
    """dx/da of a gamma variate x of shape a, at fixed P(a, x).

    Floats of one dtype; derivatives by both, of every order.

    >>> lax.random_gamma_grad(2., jnp.array([1., 3.]))
    Array([0.7507787, 1.3217986], dtype=float32)
    """
    return ops.random_gamma_grad(*alike("random_gamma_grad", a, x))


def betainc(a: Any, b: Any, x: Any) -> Array:
    """I_x(a, b), the regularized incomplete beta function, for x in [0, 1].

    Floats of one dtype; NaN for x outside. Derivatives by all three.

    >>> lax.betainc(1., 2., jnp.array([0.25, 0.5]))
    Array([0.4375, 0.75  ], dtype=float32)
    """
    return ops.regularized_incomplete_beta(*alike("regularized_incomplete_beta", a, b, x))
