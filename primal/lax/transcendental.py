"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Operands have one dtype, which Python scalars adopt, and shapes that are equal, scalar, or of equal
rank with sizes equal or 1. TypeError for others; the functions of primal.numpy promote.

`accuracy`, where a function takes it, asks for more or less of it (`AccuracyMode`, `Tolerance`). It
reaches the program, and StableHLO as `result_accuracy`; CPUs have one implementation of each
function, and compute with that whatever is asked.
"""

from __future__ import annotations

from typing import Any

from primal.ir.trace import Array
from primal.lax.alike import alike
from primal.ops import elementwise as ops
from primal.ops.elementwise.accuracy import AccuracyMode as AccuracyMode
from primal.ops.elementwise.accuracy import Tolerance as Tolerance
from primal.ops.elementwise.accuracy import accurate

Accuracy = AccuracyMode | Tolerance | None


def _accurate(fun: Any, x: Any, accuracy: Any) -> Any:
    if not isinstance(accuracy, AccuracyMode | Tolerance):
        raise NotImplementedError(
            f"[accuracy] expected a lax.AccuracyMode or lax.Tolerance, got {accuracy!r}."
        )
    return accurate(x, fun=fun, accuracy=accuracy)


def exp(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The exponential, e^x.

    Floats and complex numbers; the dtype is kept.

    >>> lax.exp(jnp.array([0., 1.]))
    Array([1.      , 2.718282], dtype=float32)
    """
    return ops.exp(x) if accuracy is None else _accurate(ops.exp, x, accuracy)


def exp2(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The power of two, 2^x.

    Floats and complex numbers; the dtype is kept.

    >>> lax.exp2(jnp.array([0., 3.]))
    Array([1., 8.], dtype=float32)
    """
    return ops.exp2(x) if accuracy is None else _accurate(ops.exp2, x, accuracy)


def expm1(x: Any, *, accuracy: Accuracy = None) -> Array:
    """e^x - 1, accurate near 0.

    Floats and complex numbers; the dtype is kept.

    >>> lax.expm1(jnp.array([0., 1e-6]))
    Array([0.0000000e+00, 1.0000005e-06], dtype=float32)
    """
    return ops.expm1(x) if accuracy is None else _accurate(ops.expm1, x, accuracy)


def log(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm.

    Floats and complex numbers; the dtype is kept. NaN of negative floats, -inf of 0.

    >>> lax.log(jnp.array([1., 2.]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return ops.log(x) if accuracy is None else _accurate(ops.log, x, accuracy)


def log1p(x: Any, *, accuracy: Accuracy = None) -> Array:
    """log(1 + x), accurate near 0.

    Floats and complex numbers; the dtype is kept.

    >>> lax.log1p(jnp.array([0., 1e-6]))
    Array([0.000000e+00, 9.999995e-07], dtype=float32)
    """
    return ops.log1p(x) if accuracy is None else _accurate(ops.log1p, x, accuracy)


def logistic(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The logistic function, 1/(1 + e^-x).

    Floats and complex numbers; the dtype is kept.

    >>> lax.logistic(jnp.array([0., 2.]))
    Array([0.5     , 0.880797], dtype=float32)
    """
    return ops.logistic(x) if accuracy is None else _accurate(ops.logistic, x, accuracy)


def sqrt(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The square root.

    Floats and complex numbers; the dtype is kept. NaN of negative floats.

    >>> lax.sqrt(jnp.array([4., 2.]))
    Array([2.       , 1.4142135], dtype=float32)
    """
    return ops.sqrt(x) if accuracy is None else _accurate(ops.sqrt, x, accuracy)


def rsqrt(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The reciprocal square root, 1/√x.

    Floats and complex numbers; the dtype is kept.

    >>> lax.rsqrt(jnp.array([4., 1.]))
    Array([0.5, 1. ], dtype=float32)
    """
    return ops.rsqrt(x) if accuracy is None else _accurate(ops.rsqrt, x, accuracy)


def cbrt(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The real cube root.

    Floats; the dtype is kept.

    >>> lax.cbrt(jnp.array([8., -27.]))
    Array([ 2.       , -2.9999998], dtype=float32)
    """
    return ops.cbrt(x) if accuracy is None else _accurate(ops.cbrt, x, accuracy)


def sin(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The sine.

    Floats and complex numbers; the dtype is kept.

    >>> lax.sin(jnp.array([0., 1.]))
    Array([0.      , 0.841471], dtype=float32)
    """
    return ops.sin(x) if accuracy is None else _accurate(ops.sin, x, accuracy)


def cos(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The cosine.

    Floats and complex numbers; the dtype is kept.

    >>> lax.cos(jnp.array([0., 1.]))
    Array([1.       , 0.5403023], dtype=float32)
    """
    return ops.cos(x) if accuracy is None else _accurate(ops.cos, x, accuracy)


def tan(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The tangent.

    Floats and complex numbers; the dtype is kept.

    >>> lax.tan(jnp.array([0., 1.]))
    Array([0.       , 1.5574077], dtype=float32)
    """
    return ops.tan(x) if accuracy is None else _accurate(ops.tan, x, accuracy)


def asin(x: Any) -> Array:
    """The inverse sine, in [-π/2, π/2].

    Floats and complex numbers; the dtype is kept. NaN of floats beyond ±1.

    >>> lax.asin(jnp.array([0., 1.]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return ops.asin(x)


def acos(x: Any) -> Array:
    """The inverse cosine, in [0, π].

    Floats and complex numbers; the dtype is kept. NaN of floats beyond ±1.

    >>> lax.acos(jnp.array([0., 1.]))
    Array([1.5707964, 0.       ], dtype=float32)
    """
    return ops.acos(x)


def atan(x: Any) -> Array:
    """The inverse tangent, in (-π/2, π/2).

    Floats and complex numbers; the dtype is kept.

    >>> lax.atan(jnp.array([0., 1.]))
    Array([0.       , 0.7853982], dtype=float32)
    """
    return ops.atan(x)


def atan2(x: Any, y: Any) -> Array:
    """The angle of the point (y, x), whose tangent is x/y, in [-π, π].

    Floats and complex numbers; the dtype is kept.

    >>> lax.atan2(jnp.array([1., 1.]), jnp.array([1., -1.]))
    Array([0.7853981, 2.3561945], dtype=float32)
    """
    return ops.atan2(*alike("atan2", x, y))


def sinh(x: Any) -> Array:
    """The hyperbolic sine, (e^x - e^-x)/2.

    Floats and complex numbers; the dtype is kept.

    >>> lax.sinh(jnp.array([0., 1.]))
    Array([0.       , 1.1752012], dtype=float32)
    """
    return ops.sinh(x)


def cosh(x: Any) -> Array:
    """The hyperbolic cosine, (e^x + e^-x)/2.

    Floats and complex numbers; the dtype is kept.

    >>> lax.cosh(jnp.array([0., 1.]))
    Array([1.       , 1.5430807], dtype=float32)
    """
    return ops.cosh(x)


def tanh(x: Any, *, accuracy: Accuracy = None) -> Array:
    """The hyperbolic tangent, sinh(x)/cosh(x).

    Floats and complex numbers; the dtype is kept.

    >>> lax.tanh(jnp.array([0., 1.]))
    Array([0.       , 0.7615942], dtype=float32)
    """
    return ops.tanh(x) if accuracy is None else _accurate(ops.tanh, x, accuracy)


def asinh(x: Any) -> Array:
    """The inverse hyperbolic sine.

    Floats and complex numbers; the dtype is kept.

    >>> lax.asinh(jnp.array([0., 1.]))
    Array([0.       , 0.8813736], dtype=float32)
    """
    return ops.asinh(x)


def acosh(x: Any) -> Array:
    """The inverse hyperbolic cosine, not negative.

    Floats and complex numbers; the dtype is kept. NaN of floats below 1.

    >>> lax.acosh(jnp.array([1., 2.]))
    Array([0.      , 1.316958], dtype=float32)
    """
    return ops.acosh(x)


def atanh(x: Any) -> Array:
    """The inverse hyperbolic tangent.

    Floats and complex numbers; the dtype is kept. NaN of floats beyond ±1.

    >>> lax.atanh(jnp.array([0., 0.5]))
    Array([0.        , 0.54930615], dtype=float32)
    """
    return ops.atanh(x)
