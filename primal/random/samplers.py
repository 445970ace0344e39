"""Uniform and normal numbers, random integers and signs: what other distributions are made of."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.base.limits import finfo, iinfo
from primal.ir.avals import canonical_shape
from primal.ir.trace import Array, aval_of, literal
from primal.lax import stop_gradient
from primal.numpy.creation import placed
from primal.numpy.remembered import remembered
from primal.ops.choose import bitcast_convert_type, convert_element_type, max
from primal.ops.elementwise import (
    add,
    bitwise_or,
    complex,
    div,
    mul,
    nextafter,
    rem,
    shift_right_logical,
    sub,
)
from primal.ops.special import erf, erf_inv
from primal.random.keys import draw, split_typed, typed_key

Shape = Sequence[int]


def float_dtype(name: str, dtype: Any, allow_complex: bool = False) -> Any:
    """The float (or complex) dtype asked for, canonical; None means the default."""
    found = dtypes.check_user_dtype_supported(float if dtype is None else dtype, name)
    found = dtypes.canonicalize_dtype(found)
    kinds = "fc" if allow_complex else "f"
    if dtypes.kind_of(found) not in kinds:
        raise ValueError(
            f"[random.{name}] expected a float{' or complex' if allow_complex else ''} dtype: "
            f"dtype argument to `{name}` must be a float{' or complex' if allow_complex else ''} "
            f"dtype, got {found.name}"
        )
    return found


def int_dtype(name: str, dtype: Any) -> Any:
    """The integer dtype asked for, canonical; None means the default."""
    found = dtypes.check_user_dtype_supported(int if dtype is None else dtype, name)
    found = dtypes.canonicalize_dtype(found)
    if dtypes.kind_of(found) not in "iu":
        raise ValueError(
            f"[random.{name}] expected an integer dtype: dtype argument to `{name}` must be an int "
            f"dtype, got {found.name}"
        )
    return found


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple; a number is that of a vector."""
    return canonical_shape((shape,) if isinstance(shape, int) else shape, name)


def shape_for(name: str, shape: Any, *params: Any) -> tuple[int, ...]:
    """The shape asked for, checked against the parameters' shapes; None means theirs."""
    theirs = np.broadcast_shapes(*[aval_of(p).shape for p in params])
    if shape is None:
        return theirs
    wanted = as_shape(name, shape)
    if np.broadcast_shapes(wanted, theirs) != wanted:
        raise ValueError(
            f"{name} parameter shapes must be broadcast-compatible with shape argument, and the "
            f"result of broadcasting the shapes must equal the shape argument, but got result "
            f"{np.broadcast_shapes(wanted, theirs)} for shape argument shape={wanted}"
        )
    return wanted


def param(name: str, x: Any, dtype: Any = None) -> Array:
    """A parameter as an array (of a dtype).

    TypeError for lists, which are no arrays, ValueError for None and for complex numbers where
    draws are real.
    """
    if not isinstance(x, Array | np.ndarray | np.generic | builtins.complex | float | int):
        if isinstance(x, list | tuple) or not hasattr(x, "__jax_array__"):
            kind = ValueError if x is None else TypeError
            raise kind(
                f"[random.{name}] expected an array or a number as a parameter, got {x!r} of type "
                f"{type(x).__name__}."
            )
    array = jnp.asarray(x)
    if dtype is None:
        return array
    if array.dtype.kind == "c" and dtypes.kind_of(dtype) != "c":
        raise ValueError(
            f"[random.{name}] expected real parameters, got {array.dtype.name}: cannot safely cast "
            f"them to {np.dtype(dtype).name}. Hand in x.real."
        )
    return convert_element_type(array, new_dtype=dtype, weak_type=False)


@remembered
def bits(key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Uniform random bits as unsigned integers: all values of the dtype are equally likely.

    `dtype` is uint32 by default, with 64-bit types enabled uint64; ValueError if it is not
    unsigned. Each of b bits has the value 1 with probability 1/2. Of threefry2x32 or Philox in
    counter mode (Salmon et al., 2011).

    >>> random.bits(random.key(0), (2,))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    typed = typed_key("bits", key)
    found = np.uint64 if dtype is None else dtypes.check_user_dtype_supported(dtype, "bits")
    found = dtypes.canonicalize_dtype(found)
    if dtypes.kind_of(found) != "u":
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {found.name}"
        )
    out = draw(typed, dtypes.itemsize_bits(found), as_shape("bits", shape))
    return placed(out, None, out_sharding)


@remembered
def uniform(
    key: Any,
    shape: Shape = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform floats in [minval, maxval), of density 1 / (maxval - minval).

    The mantissa is filled with random bits to a number in [1, 2), from which 1 is subtracted.
    ValueError for a dtype that is no float.

    >>> print(random.uniform(random.PRNGKey(1337)))
    0.02251327
    """
    typed = typed_key("uniform", key)
    found = float_dtype("uniform", dtype)
    low, high = param("uniform", minval, found), param("uniform", maxval, found)
    wanted = shape_for("uniform", shape, low, high)
    return placed(uniform_of(typed, wanted, found, low, high), None, out_sharding)


def uniform_of(
    typed: Any, shape: tuple[int, ...], dtype: Any, low: Any = None, high: Any = None
) -> Array:
    """Uniform floats [*keys.shape, *shape] in [low, high), [0, 1) by default."""
    info = finfo(dtype)
    width, mantissa = info.bits, info.nmant
    drawn = width if mantissa >= 8 else 8
    raw = draw(typed, drawn, shape)
    uint = np.dtype(f"uint{width}")
    if drawn != width:
        raw = convert_element_type(raw, new_dtype=uint, weak_type=False)
    one = np.ones((), dtype).view(uint)
    shifted = shift_right_logical(raw, literal(drawn - mantissa, uint))
    filled = bitwise_or(shifted, literal(int(one), uint))
    unit = sub(bitcast_convert_type(filled, new_dtype=dtype), literal(1, dtype))
    if low is None:
        return unit
    whole = aval_of(unit).shape
    low, high = jnp.broadcast_to(low, whole), jnp.broadcast_to(high, whole)
    return max(low, add(mul(unit, sub(high, low)), low))


@remembered
def normal(key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Standard normal numbers: √2·erf⁻¹(u), u uniform in (-1, 1); complex ones of variance 1.

    >>> print(random.normal(random.PRNGKey(0), (2,)).round(4))
    [-0.7848  0.8564]
    """
    typed = typed_key("normal", key)
    found = float_dtype("normal", dtype, allow_complex=True)
    return placed(normal_of(typed, as_shape("normal", shape), found), None, out_sharding)


def normal_of(typed: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Standard normal numbers [*keys.shape, *shape], complex for complex dtypes."""
    if dtypes.kind_of(dtype) == "c":
        part = dtypes.to_real_dtype(dtype)
        both = split_typed(typed, 2)
        re, im = normal_of(both[0], shape, part), normal_of(both[1], shape, part)
        return div(complex(re, im), literal(np.sqrt(np.array(2, part)), dtype))
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    u = uniform_of(typed, shape, dtype, jnp.asarray(low), jnp.ones((), dtype))
    return mul(literal(np.sqrt(2), dtype), erf_inv(u))


@remembered
def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Standard normal numbers given that lower < x < upper.

    The inverse of the distribution function, of uniform numbers between its values at the ends.

    >>> x = random.truncated_normal(random.key(0), -1.0, 1.0, (9,))
    >>> bool((abs(x) < 1).all())
    True
    """
    typed = typed_key("truncated_normal", key)
    found = float_dtype("truncated_normal", dtype)
    low, high = [param("truncated_normal", x, found) for x in (lower, upper)]
    wanted = shape_for("truncated_normal", shape, low, high)
    root = literal(np.sqrt(2), found)
    a, b = erf(low / np.sqrt(2).astype(found)), erf(high / np.sqrt(2).astype(found))
    out = mul(root, erf_inv(uniform_of(typed, wanted, found, a, b)))
    inf = literal(np.inf, found, False)
    # The ends themselves are excluded; no derivative by them flows through the clipping.
    lowest = nextafter(stop_gradient(low), inf)
    highest = nextafter(stop_gradient(high), jnp.asarray(np.array(-np.inf, found)))
    return placed(jnp.clip(out, lowest, highest), None, out_sharding)


@remembered
def randint(
    key: Any,
    shape: Shape,
    minval: Any,
    maxval: Any,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform integers in [minval, maxval); minval where that is empty.

    Twice the width of random bits is reduced modulo the span, so that the bias is negligible.
    Raises TypeError for a dtype that is not of integers. Each has the probability 1 / (maxval -
    minval).

    >>> random.randint(random.PRNGKey(0), (3,), 0, 10).shape
    (3,)
    """
    typed = typed_key("randint", key)
    found = dtypes.check_user_dtype_supported(int if dtype is None else dtype, "randint")
    found = dtypes.canonicalize_dtype(found)
    if dtypes.kind_of(found) not in "iu":
        raise TypeError(f"randint only accepts integer dtypes, got {found.name}")
    lower, upper = param("randint", minval), param("randint", maxval)
    wanted = shape_for("randint", shape, lower, upper)
    # Floats are accepted where integers are meant, and truncated.
    lower, upper = [
        x if dtypes.kind_of(x.dtype) in "iub" else x.astype(int) for x in (lower, upper)
    ]
    return placed(_randint(typed, wanted, lower, upper, found), None, out_sharding)


def _randint(typed: Any, wanted: tuple[int, ...], lower: Any, upper: Any, found: Any) -> Any:
    info = iinfo(found)
    width = dtypes.itemsize_bits(found)
    if width < 32:
        # Narrow integers are drawn as wide ones, among which the end of the range has its place.
        first = jnp.clip(lower.astype(np.int32), int(info.min), int(info.max))
        last = jnp.clip(upper.astype(np.int32), int(info.min), int(info.max) + 1)
        return _randint(typed, wanted, first, last, np.dtype(np.int32)).astype(found)
    too_high = upper > int(info.max) if _holds(upper.dtype, int(info.max)) else False
    low, high = _clipped(lower, info, found), _clipped(upper, info, found)
    uint = np.dtype(f"uint{width}")
    parts = split_typed(typed, 2)
    higher = draw(parts[0], width, wanted)
    lower_bits = draw(parts[1], width, wanted)
    span = convert_element_type(high - low, new_dtype=uint, weak_type=False)
    # An empty range gives minval, and one that reaches past the largest integer includes it.
    span = jnp.where(high <= low, np.array(1, uint), span)
    if too_high is not False:
        span = jnp.where(too_high & (high > low), span + np.array(1, uint), span)
    span = jnp.broadcast_to(span, wanted)
    half = rem(jnp.full(wanted, 2 ** (width // 2), uint), span)
    multiplier = rem(mul(half, half), span)
    offset = add(mul(rem(higher, span), multiplier), rem(lower_bits, span))
    offset = rem(offset, span)
    return add(
        jnp.broadcast_to(low, wanted),
        convert_element_type(offset, new_dtype=found, weak_type=False),
    )


def _holds(dtype: Any, value: int) -> bool:
    info = iinfo(dtype) if dtypes.kind_of(dtype) != "b" else None
    return info is not None and int(info.max) > value


def _clipped(x: Any, info: Any, dtype: Any) -> Any:
    """x as the dtype, with values beyond it at its ends."""
    if dtypes.kind_of(x.dtype) != "b":
        own = iinfo(x.dtype)
        low = builtins.max(int(info.min), int(own.min))
        high = builtins.min(int(info.max), int(own.max))
        x = jnp.clip(x, np.array(low, x.dtype), np.array(high, x.dtype))
    return x.astype(dtype)


@remembered
def bernoulli(
    key: Any,
    p: Any = 0.5,
    shape: Any = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Array:
    """True with probability p: u < p. `mode='high'` draws twice the bits, for very small p.

    TypeError if p is no float, ValueError for other modes.

    >>> random.bernoulli(random.PRNGKey(0), 0.5, (3,)).dtype.name
    'bool'
    """
    if mode not in ("low", "high"):
        raise ValueError(f"[random.bernoulli] expected 'high' or 'low', got mode={mode!r}.")
    typed = typed_key("bernoulli", key)
    prob = param("bernoulli", p)
    if dtypes.kind_of(prob.dtype) != "f":
        raise TypeError(
            f"bernoulli probability `p` must have a floating dtype, got {prob.dtype.name}."
        )
    out = bernoulli_of(typed, prob, shape_for("bernoulli", shape, prob), mode)
    return placed(out, None, out_sharding)


def bernoulli_of(typed: Any, p: Any, shape: tuple[int, ...], mode: str = "low") -> Array:
    """Booleans of that shape from a typed key."""
    dtype = p.dtype
    if mode == "high":
        u = uniform_of(typed, (2, *shape), dtype)
        return u[1] * np.array(finfo(dtype).eps, dtype) < p - u[0]
    return uniform_of(typed, shape, dtype) < p


@remembered
def rademacher(
    key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Signs: -1 or 1 with equal probability.

    Integers of the shape and dtype asked for. P(-1) = P(1) = ½.

    >>> sorted(set(random.rademacher(random.key(0), (20,)).tolist()))
    [-1, 1]
    """
    typed = typed_key("rademacher", key)
    found = dtypes.check_user_dtype_supported(int if dtype is None else dtype, "rademacher")
    out = signs_of(typed, as_shape("rademacher", shape), dtypes.canonicalize_dtype(found))
    return placed(out, None, out_sharding)


def signs_of(typed: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Signs of that dtype from a typed key."""
    half = jnp.asarray(0.5, dtypes.canonicalize_dtype(float))
    work = dtypes.python_scalar_dtype(int) if dtypes.kind_of(dtype) == "b" else dtype
    positive = bernoulli_of(typed, half, shape).astype(work)
    return (literal(2, work) * positive - literal(1, work)).astype(dtype)
