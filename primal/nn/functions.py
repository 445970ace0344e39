"""Activations and the functions next to them."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal, overload

import numpy as np

import primal.numpy as jnp
from primal.api.control import custom_jvp
from primal.base.source import user_stacklevel
from primal.ir.trace import Array
from primal.lax import axis_index, axis_size, stop_gradient
from primal.numpy import direct, tanh
from primal.numpy.promotion import (
    convert,
    floating,
    from_literal,
    in_float32,
    promote_dtypes,
    promote_dtypes_inexact,
)
from primal.numpy.reductions import mask_operand, split_axes
from primal.numpy.remembered import remembered, remembered_as
from primal.ops.elementwise import expm1, logistic, rsqrt, sub
from primal.ops.special.normal import gauss, lower_normal
from primal.ops.types import canonical_axes, static_int


@custom_jvp
def relu(x: Any) -> Array:
    """max(x, 0), elementwise; its derivative at 0 is 0.

    Element by element, of the shape of x.

    >>> nn.relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return jnp.maximum(x, 0)


@relu.defjvp
def _relu_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return relu(x), jnp.where(x > 0, t, jnp.zeros_like(t))


relu = remembered(relu)


@custom_jvp
def relu6(x: Any) -> Array:
    """min(max(x, 0), 6); its derivative at 0 and at 6 is 0.

    Element by element, of the shape of x.

    >>> nn.relu6(jnp.array([-1.0, 2.0, 9.0]))
    Array([0., 2., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


@relu6.defjvp
def _relu6_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return relu6(x), jnp.where((x > 0) & (x < 6), t, jnp.zeros_like(t))


relu6 = remembered(relu6)


@remembered
def sigmoid(x: Any) -> Array:
    """1 / (1 + exp(-x)).

    Raises TypeError for integers.

    >>> nn.sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    array = as_number("sigmoid", x)
    if array.dtype.kind in "iub":
        raise TypeError(f"[nn.sigmoid] expected a float or complex array, got {array.dtype.name}.")
    return logistic(array)


@remembered_as(direct.softplus)
def softplus(x: Any) -> Array:
    """log(1 + exp(x)).

    Element by element, of the shape of x.

    >>> nn.softplus(jnp.array([0.0]))
    Array([0.6931472], dtype=float32)
    """
    return jnp.logaddexp(x, 0)


@remembered
def soft_sign(x: Any) -> Array:
    """x / (|x| + 1).

    Element by element, of the shape of x.

    >>> nn.soft_sign(jnp.array([1.0, -3.0]))
    Array([ 0.5 , -0.75], dtype=float32)
    """
    return in_float32(lambda x: x / (jnp.abs(x) + 1), as_number("soft_sign", x))


@remembered
def silu(x: Any) -> Array:
    """x·sigmoid(x), also called swish.

    Element by element, of the shape of x.

    >>> nn.silu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return in_float32(lambda x: x * sigmoid(x), as_number("silu", x))


swish = silu


@remembered_as(direct.log_sigmoid)
def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)) = -softplus(-x).

    Element by element, of the shape of x.

    >>> nn.log_sigmoid(jnp.array([0.0]))
    Array([-0.6931472], dtype=float32)
    """
    (array,) = promote_dtypes_inexact("log_sigmoid", _no_bools("log_sigmoid", x))
    return -softplus(-array)


@remembered_as(direct.hard_tanh)
def hard_tanh(x: Any) -> Array:
    """x clipped to [-1, 1].

    Element by element, of the shape of x. min(max(x, -1), 1) = out.

    >>> nn.hard_tanh(jnp.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    array = as_number("hard_tanh", x)
    return jnp.where(array > 1, 1, jnp.where(array < -1, -1, array))


@remembered_as(direct.elu)
def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x where positive, else alpha·(exp(x) - 1).

    Element by element, of the shape of x.

    >>> nn.elu(jnp.array([1.0, 0.0]))
    Array([1., 0.], dtype=float32)
    """
    array = as_number("elu", x)
    # The branch that is not taken must not overflow, or its derivative is nan.
    safe = jnp.where(array > 0, 0.0, array)
    return jnp.where(array > 0, array, alpha * expm1(safe))


@remembered
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """x where not negative, else negative_slope·x.

    Element by element, of the shape of x.

    >>> nn.leaky_relu(jnp.array([1.0, -1.0]))
    Array([ 1.  , -0.01], dtype=float32)
    """
    array = as_number("leaky_relu", x)
    return jnp.where(array >= 0, array, negative_slope * array)


@remembered_as(direct.selu)
def selu(x: Any) -> Array:
    """Scaled elu whose constants keep mean 0 and variance 1 (Klambauer et al. 2017).

    Element by element, of the shape of x. 1.0507·x where x > 0, else 1.0507·1.6733·(exp(x) - 1).

    >>> nn.selu(jnp.array([1.0]))
    Array([1.050701], dtype=float32)
    """
    return in_float32(
        lambda x: direct.SELU_SCALE * elu(x, direct.SELU_ALPHA), as_number("selu", x)
    )


@remembered
def gelu(x: Any, approximate: bool = True) -> Array:
    """x·Φ(x), Φ the normal distribution function; `approximate`: through tanh.

    Hendrycks and Gimpel, 2016. Element by element, of the shape of x.

    >>> nn.gelu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return in_float32(_gelu_by_tanh if approximate else _gelu, floating(as_number("gelu", x)))


def _gelu_by_tanh(x: Any) -> Any:
    # The logistic function of 2u, which (1 + tanh(u)) / 2 is, has digits far below zero, where the
    # approximation has none, and takes a third longer.
    inner = np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * (x**3))
    return x * (0.5 * (1.0 + tanh(inner)))


def _normal_density(x: Any) -> Any:
    return gauss(x) * (1 / math.sqrt(2 * math.pi))


# Whose own derivative at 0 is that of |x| there.
_normal_share = custom_jvp(lower_normal)
_normal_share.defjvps(lambda t, out, x: t * _normal_density(x))


@custom_jvp
def _gelu(x: Any) -> Any:
    return x * lower_normal(x)


@_gelu.defjvp
def _gelu_jvp(primals: Any, tangents: Any) -> Any:
    # φ from one exponential of x²; through Φ it would take x/√2, which is rounded.
    (x,), (t,) = primals, tangents
    return _gelu(x), t * (_normal_share(x) + x * _normal_density(x))


def _no_bools(name: str, x: Any) -> Array:
    array = as_number(name, x)
    if array.dtype == np.bool_:
        raise TypeError(f"[nn.{name}] expected numbers, got bools.")
    return array


@remembered_as(direct.softmax)
def softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """exp(x) / Σ exp(x) along `axis`, without overflow.

    >>> nn.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    array = floating(_no_bools("softmax", x))
    split_axes("softmax", axis, array.ndim)
    if where is not None:
        where = mask_operand("softmax", where)
        array = jnp.where(where, array, -jnp.inf)
    if not array.size:
        return array
    out = in_float32(lambda x: _softmax(x, axis), array)
    return out if where is None else jnp.where(where, out, 0)


def _softmax(x: Any, axis: Any) -> Any:
    powers = jnp.exp(x - jnp.max(stop_gradient(x), axis, keepdims=True))
    return powers / jnp.sum(powers, axis, keepdims=True)


@remembered_as(direct.log_softmax)
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """x - log(Σ exp(x)) along `axis`, without overflow.

    >>> nn.log_softmax(jnp.array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    array = floating(_no_bools("log_softmax", x))
    split_axes("log_softmax", axis, array.ndim)
    if where is not None:
        where = mask_operand("log_softmax", where)
        array = jnp.where(where, array, -jnp.inf)
    if not array.size:
        return array
    out = in_float32(lambda x: _log_softmax(x, axis), array)
    return out if where is None else jnp.where(where, out, -jnp.inf)


def _log_softmax(x: Any, axis: Any) -> Any:
    shifted = x - jnp.max(stop_gradient(x), axis, keepdims=True)
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, keepdims=True))


@overload
def logsumexp(
    a: Any, axis: Any = ..., b: Any = ..., keepdims: bool = ...,
    return_sign: Literal[False] = ..., where: Any = ...,
) -> Array: ...  # fmt: skip
@overload
def logsumexp(
    a: Any, axis: Any = ..., b: Any = ..., keepdims: bool = ...,
    *, return_sign: Literal[True], where: Any = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@remembered_as(direct.logsumexp)
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
    array = floating(as_number("logsumexp", a))
    if b is not None:
        weights = jnp.asarray(b)
        array = jnp.where(weights != 0, array, -jnp.inf)
    if where is not None:
        where = mask_operand("logsumexp", where)
        array = jnp.where(where, array, -jnp.inf)
    real = array.real if array.dtype.kind == "c" else array
    top = jnp.max(stop_gradient(real), axis, keepdims=True, initial=-jnp.inf)
    top = jnp.where(jnp.isfinite(top), top, 0)
    # Without promotion: the slope of a weakly typed array is not, as in JAX.
    terms = jnp.exp(sub(array, convert(top, array.dtype, top.weak_type)))
    if b is not None:
        terms = jnp.where(weights != 0, weights * terms, 0)
    total = jnp.sum(terms, axis, keepdims=True)
    signs = jnp.sign(total)
    if return_sign or (b is not None and total.dtype.kind != "c"):
        out = jnp.log(jnp.abs(total)) + top
        if not return_sign:
            out = jnp.where(signs < 0, jnp.nan, out)
    else:
        out = jnp.log(total) + convert(top, total.dtype, top.weak_type)
    if not keepdims:
        out, signs = _squeezed(out, axis), _squeezed(signs, axis)
    return (out, signs) if return_sign else out


def _squeezed(x: Any, axis: Any) -> Any:
    return jnp.squeeze(x, split_axes("logsumexp", axis, x.ndim)[0])


@remembered
def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Array:
    """Vectors with a one at the index x, zeros where x is out of range.

    out[..., k] = 1 where x = k, else 0. The classes lie along `axis`, which may be the name of a
    vmap's. Raises ValueError for an axis beyond the result's, TypeError for fewer than no classes
    and for booleans, which are no indices.

    >>> nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    index = jnp.asarray(x)
    if jnp.issubdtype(index.dtype, np.floating):
        warnings.warn(
            f"[nn.one_hot] expected integers, got dtype {index.dtype.name}: input should be "
            "integer-typed. Convert it with astype(int).",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
    num_classes = static_int("nn.one_hot num_classes", num_classes)
    if isinstance(axis, str):
        if axis_size(axis) != num_classes:
            raise ValueError(
                f"[nn.one_hot] expected num_classes to match the size of axis {axis!r}, got "
                f"{num_classes} != {axis_size(axis)}."
            )
        return (index == axis_index(axis)).astype(float if dtype is None else dtype)
    axis = static_int("nn.one_hot axis", axis)
    if not -index.ndim - 1 <= axis <= index.ndim:
        raise ValueError(
            f"[nn.one_hot] expected an axis of {index.ndim + 1} dimensions, got {axis}: axis is "
            "out of bounds."
        )
    if num_classes < 0 or index.dtype == bool:
        got = f"num_classes={num_classes}" if num_classes < 0 else "booleans"
        raise TypeError(
            f"[nn.one_hot] expected indices of num_classes >= 0, got {got}. Convert booleans with "
            "astype(int)."
        )
    at = axis % (index.ndim + 1)
    shape = [1] * (index.ndim + 1)
    shape[at] = num_classes
    classes = jnp.arange(num_classes, dtype=index.dtype).reshape(shape)
    return (jnp.expand_dims(index, at) == classes).astype(float if dtype is None else dtype)


@remembered
def sparse_plus(x: Any) -> Array:
    """0 up to -1, (x + 1)²/4 between -1 and 1, x from there: softplus that is 0 and x outside.

    Element by element, of the shape of x.

    >>> nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    array = as_number("sparse_plus", x)
    # The square of a great number would make nan of the slope it does not have.
    curve = in_float32(lambda x: (jnp.clip(x, -1, 1) + 1.0) ** 2 / 4, array)
    return jnp.where(array <= -1, 0.0, jnp.where(array >= 1, array, curve))


@remembered
def sparse_sigmoid(x: Any) -> Array:
    """(clip(x, -1, 1) + 1) / 2, the derivative of `sparse_plus`.

    Element by element, of the shape of x.

    >>> nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    array = as_number("sparse_sigmoid", x)
    return 0.5 * jnp.clip(array + 1, 0, 2)


@remembered
def celu(x: Any, alpha: Any = 1.0) -> Array:
    """x where positive, else alpha·(exp(x / alpha) - 1) (Barron, 2017).

    Element by element, of the shape of x.

    >>> nn.celu(jnp.array([1.0]))
    Array([1.], dtype=float32)
    """
    array = as_number("celu", x)
    return jnp.maximum(array, 0.0) + alpha * jnp.expm1(jnp.minimum(array, 0.0) / alpha)


@remembered_as(direct.mish)
def mish(x: Any) -> Array:
    """x·tanh(softplus(x)) (Misra, 2019).

    Element by element, of the shape of x.

    >>> nn.mish(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return in_float32(lambda x: x * tanh(softplus(x)), as_number("mish", x))


@remembered
def hard_sigmoid(x: Any) -> Array:
    """relu6(x + 3) / 6.

    Element by element, of the shape of x.

    >>> nn.hard_sigmoid(jnp.array([-3.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return in_float32(lambda x: relu6(x + 3.0) / 6.0, as_number("hard_sigmoid", x))


@remembered
def hard_silu(x: Any) -> Array:
    """x·hard_sigmoid(x), also called hard swish.

    Element by element, of the shape of x.

    >>> nn.hard_silu(jnp.array([-3.0, 3.0]))
    Array([-0.,  3.], dtype=float32)
    """
    return in_float32(lambda x: x * hard_sigmoid(x), as_number("hard_silu", x))


hard_swish = hard_silu


@remembered
def glu(x: Any, axis: int = -1) -> Array:
    """The first half of x along `axis` times the sigmoid of the second (Dauphin et al., 2017).

    ValueError if the axis cannot be halved. out = a·sigmoid(b) of the halves a and b.

    >>> nn.glu(jnp.array([2.0, 0.0]))
    Array([1.], dtype=float32)
    """
    array = as_number("glu", x)
    (axis,) = canonical_axes("nn.glu", (axis,), array.ndim)
    size = array.shape[axis]
    if size % 2:
        raise ValueError(f"[nn.glu] expected an axis of even size, got size {size}.")
    first, second = jnp.split(array, 2, axis)
    return in_float32(lambda a, b: a * sigmoid(b), first, second)


def identity(x: Any) -> Array:
    """x itself, as an array.

    >>> nn.identity(jnp.array([2.0]))
    Array([2.], dtype=float32)
    """
    return as_number("identity", x)


@remembered_as(direct.log1mexp)
def log1mexp(x: Any) -> Array:
    """log(1 - exp(-x)) for x > 0, exact near 0 and far from it; nan for negative x.

    Through expm1 up to log 2 and through log1p beyond (Mächler, 2012). Element by element, of the
    shape of x.

    >>> nn.log1mexp(jnp.array([0.6931472]))
    Array([-0.6931472], dtype=float32)
    """
    (array,) = promote_dtypes_inexact("log1mexp", _no_bools("log1mexp", x))
    return _log1mexp(array)


@custom_jvp
def _log1mexp(x: Array) -> Array:
    return jnp.where(x < math.log(2), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


# Of either branch, whose own slope at -inf would be inf/inf.
_log1mexp.defjvps(lambda t, out, x: t / jnp.expm1(x))


@remembered_as(direct.logmeanexp)
def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) along `axis`, without overflow.

    >>> nn.logmeanexp(jnp.array([1.0, 1.0]))
    Array(1., dtype=float32)
    """
    if where is not None:
        where = jnp.broadcast_to(mask_operand("logmeanexp", where), jnp.shape(x))
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    count: Any = jnp.ones_like(jnp.asarray(x), dtype=total.dtype)
    count = jnp.sum(count, axis, where=where, keepdims=keepdims)
    return total - jnp.log(count)


@remembered
def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / √(variance + epsilon), both taken along `axis` where they are not given.

    `algorithm='fast'` takes the variance as the mean square minus the squared mean, in one pass;
    'stable' as the mean square of what is left without the mean. Raises ValueError for unknown
    algorithms.

    >>> nn.standardize(jnp.array([1.0, 3.0])).round(3)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(
            f"[nn.standardize] expected algorithm 'fast' or 'stable', got {algorithm!r}."
        )
    array = floating(as_number("standardize", x))
    given = [(name, m) for name, m in (("mean", mean), ("variance", variance)) if m is not None]

    def of(x: Any, epsilon: Any, *moments: Any) -> Any:
        known = {name: moment for (name, _), moment in zip(given, moments, strict=True)}
        return _standardized(x, epsilon, axis, where, algorithm == "stable", **known)

    operands = promote_dtypes("standardize", array, epsilon, *[m for _, m in given])
    return in_float32(of, *map(from_literal, operands))


def _standardized(
    x: Any,
    epsilon: Any,
    axis: Any,
    where: Any,
    stable: bool,
    mean: Any = None,
    variance: Any = None,
) -> Any:
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and stable:
        variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    elif variance is None:
        squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
        # Rounding must not make it negative.
        variance = jnp.maximum(squares - jnp.square(mean), 0)
    return (x - mean) * rsqrt(variance + epsilon)


def as_number(name: str, x: Any) -> Any:
    """x as an array; TypeError for lists, which JAX does not take for arrays."""
    if isinstance(x, list | tuple | str | range) or x is None:
        raise TypeError(
            f"[nn.{name}] expected an array or a number, got {x!r} of type {type(x).__name__}. Use "
            "primal.numpy.array."
        )
    return jnp.asarray(x)
