"""Activations and the functions next to them."""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.base.dtypes import to_inexact_dtype
from primal.lax import stop_gradient
from primal.numpy import tanh
from primal.ops.elementwise import expm1, logistic
from primal.ops.special import erf


@custom_jvp
def relu(x: Any) -> Any:
    """max(x, 0), elementwise; its derivative at 0 is 0.

    >>> nn.relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return jnp.maximum(x, 0)


@relu.defjvp
def _relu_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return relu(x), jnp.where(x > 0, t, jnp.zeros_like(t))


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6)."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> nn.sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return logistic(_inexact(x))


def _inexact(x: Any) -> Any:
    array = jnp.asarray(x)
    return array if array.dtype.kind in "fcV" else array.astype(to_inexact_dtype(array.dtype))


def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return jnp.logaddexp(x, 0)


def soft_sign(x: Any) -> Any:
    """x / (|x| + 1)."""
    array = jnp.asarray(x)
    return array / (jnp.abs(array) + 1)


def silu(x: Any) -> Any:
    """x·sigmoid(x), also called swish."""
    array = _inexact(x)
    return array * sigmoid(array)


swish = silu


def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)) = -softplus(-x)."""
    return -softplus(-_inexact(x))


def hard_tanh(x: Any) -> Any:
    """x clipped to [-1, 1]."""
    array = jnp.asarray(x)
    return jnp.where(array > 1, 1, jnp.where(array < -1, -1, array))


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x where positive, else alpha·(exp(x) - 1)."""
    array = _inexact(x)
    # The branch that is not taken must not overflow, or its derivative is nan.
    safe = jnp.where(array > 0, 0.0, array)
    return jnp.where(array > 0, array, alpha * expm1(safe))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x where not negative, else negative_slope·x."""
    array = _inexact(x)
    return jnp.where(array >= 0, array, negative_slope * array)


def selu(x: Any) -> Any:
    """Scaled elu whose constants keep mean 0 and variance 1 (Klambauer et al. 2017)."""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


def gelu(x: Any, approximate: bool = True) -> Any:
    """x·Φ(x), Φ the normal distribution function; `approximate`: through tanh.

    Hendrycks and Gimpel, 2016.
    """
    array = _inexact(x)
    if approximate:
        inner = np.sqrt(2 / np.pi).astype(array.dtype) * (array + 0.044715 * (array**3))
        return array * (0.5 * (1.0 + tanh(inner)))
    root = np.sqrt(0.5).astype(array.dtype)
    return 0.5 * array * (1.0 + erf(array * root))


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """exp(x) / Σ exp(x) along `axis`, without overflow.

    >>> nn.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    array = _inexact(x)
    if where is not None:
        array = jnp.where(where, array, -jnp.inf)
    top = stop_gradient(jnp.max(array, axis, keepdims=True))
    powers = jnp.exp(array - top)
    out = powers / jnp.sum(powers, axis, keepdims=True)
    return out if where is None else jnp.where(where, out, 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """x - log(Σ exp(x)) along `axis`, without overflow."""
    array = _inexact(x)
    if where is not None:
        array = jnp.where(where, array, -jnp.inf)
    shifted = array - stop_gradient(jnp.max(array, axis, keepdims=True))
    out = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, keepdims=True))
    return out if where is None else jnp.where(where, out, -jnp.inf)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """log(Σ b·exp(a)) along `axis`, without overflow; `return_sign`: of its absolute value.

    >>> nn.logsumexp(jnp.array([0.0, 0.0]))
    Array(0.6931472, dtype=float32)
    """
    array = _inexact(a)
    if b is not None:
        weights = jnp.asarray(b)
        array = jnp.where(weights != 0, array, -jnp.inf)
    if where is not None:
        array = jnp.where(where, array, -jnp.inf)
    top = jnp.max(array.real if array.dtype.kind == "c" else array, axis, keepdims=True)
    top = stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    terms = jnp.exp(array - top)
    if b is not None:
        terms = jnp.where(weights != 0, weights * terms, 0)
    total = jnp.sum(terms, axis, keepdims=True)
    signs = jnp.sign(total)
    if return_sign or b is not None:
        size = jnp.abs(total)
        out = jnp.log(size) + top
        if not return_sign:
            out = jnp.where(signs < 0, jnp.nan, out)
    else:
        out = jnp.log(total) + top
    if not keepdims:
        out, signs = _squeezed(out, axis), _squeezed(signs, axis)
    return (out, signs) if return_sign else out


def _squeezed(x: Any, axis: Any) -> Any:
    return x.reshape(()) if axis is None else jnp.squeeze(x, axis)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Any:
    """Vectors with a one at the index x, zeros where x is out of range.

    >>> nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    index = jnp.asarray(x)
    at = axis % (index.ndim + 1)
    shape = [1] * (index.ndim + 1)
    shape[at] = num_classes
    classes = jnp.arange(num_classes, dtype=index.dtype).reshape(shape)
    return (jnp.expand_dims(index, at) == classes).astype(float if dtype is None else dtype)
