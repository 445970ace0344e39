"""Statistics that sort or correlate: quantiles, medians, covariances."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.contraction import dot
from primal.numpy.creation import array, filled, placed
from primal.numpy.cumulative import cumsum
from primal.numpy.elementary import conjugate, isnan, sqrt
from primal.numpy.joining import concatenate
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    array_operand,
    convert,
    in_float32,
    operand,
    promote_dtypes_inexact,
    promoted_dtype,
    to_shape,
    with_rank,
)
from primal.numpy.reductions import any as any_true
from primal.numpy.reductions import as_axes, average
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import moveaxis
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.index import sort as orders
from primal.ops.index.gather import take_along
from primal.ops.types import static_flag

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@remembered_as(direct.quantile)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The values below which a share q of the elements over axes lies; nan if any is nan.

    Between two elements `method` decides: linear, lower, higher, midpoint, nearest; inverted_cdf is
    the first element up to which a share of at least q lies, and takes `weights`, of a's shape or
    of the length of the axis. The axes of q come first in the result, whose dtype is a's.

    >>> jnp.quantile(jnp.array([1., 2., 3., 4.]), 0.5)
    Array(2.5, dtype=float32)
    """
    return _checked("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


@remembered
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` of what is not nan.

    Axes, masks and dtypes as there.

    >>> jnp.nanquantile(jnp.array([1., jnp.nan, 3.]), 0.5)
    Array(2., dtype=float32)
    """
    return _checked(
        "nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, True
    )


@remembered_as(direct.percentile)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """`quantile` with q in per cent.

    Axes, masks and dtypes as there.

    >>> jnp.percentile(jnp.array([1., 2., 3.]), 50)
    Array(2., dtype=float32)
    """
    (share,) = promote_dtypes_inexact("percentile", operand("percentile", q, 1))
    share = ops.div(share, literal(100, share.aval.dtype, True))
    found = quantile(a, share, axis, out, overwrite_input, method, keepdims, weights=weights)
    return placed(found, None, out_sharding)


@remembered
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` of what is not nan.

    Axes, masks and dtypes as there.

    >>> jnp.nanpercentile(jnp.array([1., jnp.nan, 3.]), 50)
    Array(2., dtype=float32)
    """
    (share,) = promote_dtypes_inexact("nanpercentile", operand("nanpercentile", q, 1))
    share = ops.div(share, literal(100, share.aval.dtype, True))
    return nanquantile(a, share, axis, out, overwrite_input, method, keepdims, weights=weights)


@remembered_as(direct.median)
def median(
    a: ArrayLike,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element over axes, or the mean of the middle two; nan if any is nan.

    >>> jnp.median(jnp.array([3, 1, 2, 9]))
    Array(2.5, dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


@remembered_as(direct.nanmedian)
def nanmedian(
    a: ArrayLike,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """`median` of what is not nan.

    Axes, masks and dtypes as there.

    >>> jnp.nanmedian(jnp.array([3., jnp.nan, 1.]))
    Array(2., dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _checked(
    name: str, a: Any, q: Any, axis: Any, out: Any, overwrite: bool, method: str, keepdims: bool,
    weights: Any, skip: bool,
) -> Array:  # fmt: skip
    if static_flag(f"{name} overwrite_input", overwrite) or out is not None:
        raise ValueError(
            f"jax.numpy.{name} does not support overwrite_input=True or out != None: arrays are "
            "immutable."
        )
    if method not in METHODS:
        raise ValueError(f"method can only be one of {', '.join(METHODS)}, got {method!r}.")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"[{name}] expected method 'inverted_cdf' with weights, got {method!r}: {method} "
            "doesn't support weights."
        )
    (own,) = promote_dtypes_inexact(name, a)
    # Floats of 16 bits hold no positions beyond 256 or 2,048, and few shares.
    narrow = dtypes.is_narrow_float(own.aval.dtype)
    x, share = promote_dtypes_inexact(name, convert(own, dtypes.float32) if narrow else own, q)
    if x.aval.dtype.kind == "c":
        values = own.aval.dtype.kind == "c"
        raise (ValueError if values else TypeError)(
            f"[{name}] expected real {'values' if values else 'shares q'}: complex numbers have no "
            "order."
        )
    if name in ("quantile", "nanquantile") and operand(name, q).aval.dtype.kind in "biu":
        raise TypeError(f"[{name}] expected floats as shares q, got {q!r}.")
    if share.aval.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {share.aval.shape}")
    found = _quantile(x, share, axis, method, keepdims, skip, weights)
    return convert(found, own.aval.dtype, found.aval.weak_type)


def _quantile(
    x: Any, share: Any, axis: Any, method: str, keepdims: bool, skip: bool, weights: Any
) -> Array:
    have, dtype = x.aval.shape, x.aval.dtype
    axes = as_axes("quantile", axis, len(have))
    kept = [i for i in range(len(have)) if i not in axes]
    lead = tuple([have[i] for i in kept])
    x = shape_ops.transpose(x, permutation=(*kept, *axes))
    n = int(np.prod([have[i] for i in axes], dtype=int))
    if n == 0:
        raise ValueError("[quantile] expected at least one element, got an empty axis.")
    x, at = shape_ops.reshape(x, shape=(*lead, n)), len(lead)
    bad = isnan(x)
    w = None
    if weights is not None:
        w = _weights_along(weights, have, axes, (*kept, *axes), x.aval.dtype)
        w = shape_ops.reshape(w, shape=x.aval.shape)
        if skip:
            w = ops.select_n(bad, w, to_shape(literal(0, w.aval.dtype, False), w.aval.shape))
        x, w = orders.sort(x, w, dimension=at, is_stable=True, num_keys=1)
    else:
        (x,) = orders.sort(x, dimension=at, is_stable=True, num_keys=1)
    q = with_rank(share, 1)
    count = q.aval.size
    work = dtype
    # Positions in the sorted axis, one per (slice, q).
    if skip:
        there = total(convert(ops.bitwise_not(bad), work), -1, keepdims=True)
        top = ops.sub(there, literal(1, work, True))
        position = ops.mul(to_shape(top, (*lead, count)), to_shape(q, (*lead, count)))
        top = to_shape(ops.max(top, literal(0, work, True)), (*lead, count))
    else:
        top = to_shape(literal(n - 1, work, True), (*lead, count))
        position = ops.mul(top, to_shape(q, (*lead, count)))
    zero = literal(0, work, True)
    low = ops.min(ops.max(ops.floor(position), zero), top)
    high = ops.min(ops.max(ops.ceil(position), zero), top)
    if method == "inverted_cdf":
        found = _first_of_share(position, w, q)
        low = ops.min(ops.max(found, zero), top)
        method = "lower"
    below = take_along(x, convert(low, dtypes.int32), at)
    above = take_along(x, convert(high, dtypes.int32), at)
    value = _between(method, below, above, position, ops.floor(position))
    nan = to_shape(literal(np.nan, dtype, False), value.aval.shape)
    if skip:
        empty = to_shape(ops.le(there, zero), value.aval.shape)
    else:
        empty = to_shape(any_true(bad, -1, keepdims=True), value.aval.shape)
    if w is not None:
        wrong = any_true(ops.lt(w, literal(0, w.aval.dtype, True)), -1, keepdims=True)
        empty = ops.bitwise_or(empty, to_shape(wrong, value.aval.shape))
    value = ops.select_n(empty, value, nan)
    value = moveaxis(value, -1, 0)
    if keepdims:
        shape = tuple([1 if i in axes else n for i, n in enumerate(have)])
        value = shape_ops.reshape(value, shape=(count, *shape))
    return value if share.aval.ndim else shape_ops.squeeze(value, dimensions=(0,))


def _weights_along(
    weights: Any, have: tuple[int, ...], axes: Any, order: tuple[int, ...], dtype: Any
) -> Any:
    """Weights in the shape of the operand, its axes in this order."""
    w = convert(array_operand("quantile", weights), dtype)
    if w.aval.shape != have:
        (length,) = [have[i] for i in axes] if len(axes) == 1 else (None,)
        if w.aval.shape != (length,):
            raise ValueError(
                f"Weights shape {w.aval.shape} must match reduction axes "
                f"{tuple([have[i] for i in axes])} or the shape {have} of the operand."
            )
        lined = tuple([n if i == axes[0] else 1 for i, n in enumerate(have)])
        w = to_shape(shape_ops.reshape(w, shape=lined), have)
    return shape_ops.transpose(w, permutation=order)


def _first_of_share(position: Any, w: Any, q: Any) -> Any:
    """Indices of the first elements with a share of at least q up to and with them."""
    dtype = position.aval.dtype
    if w is None:
        # Of n elements ⌈q·n⌉ - 1; the position is q·(n - 1).
        upto = ops.add(position, to_shape(q, position.aval.shape))
        return ops.sub(ops.ceil(upto), literal(1, dtype, True))
    sums = cumsum(w, -1)
    whole = total(w, -1, keepdims=True)
    wide = (*sums.aval.shape, q.aval.size)
    wanted = ops.mul(to_shape(whole, position.aval.shape), to_shape(q, position.aval.shape))
    sums = to_shape(shape_ops.reshape(sums, shape=(*sums.aval.shape, 1)), wide)
    wanted = shape_ops.reshape(wanted, shape=(*wide[:-2], 1, wide[-1]))
    # An element without weight is never the answer.
    none = ops.le(sums, to_shape(literal(0, dtype, True), wide))
    short = ops.bitwise_or(ops.lt(sums, to_shape(wanted, wide)), none)
    return total(convert(short, dtype), -2)


def _between(method: str, below: Any, above: Any, position: Any, floor: Any) -> Any:
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "midpoint":
        half = literal(0.5, below.aval.dtype, True)
        total = ops.add(below, above)
        halves = ops.add(ops.mul(below, half), ops.mul(above, half))
        # Halves lose the last bit of subnormal numbers, sums of great ones are infinite.
        return ops.select_n(ops.is_finite(total), halves, ops.mul(total, half))
    weight = ops.sub(position, floor)
    if method == "nearest":
        # Halves go down, as JAX's do; NumPy's go to the even position.
        up = ops.gt(weight, literal(0.5, weight.aval.dtype, True))
        return ops.select_n(up, below, above)
    # Both products, so that inf stays inf where the weight of the other one is 0.
    rest = ops.sub(literal(1, weight.aval.dtype, True), weight)
    mixed = ops.add(ops.mul(below, rest), ops.mul(above, weight))
    # The weight of a share that is nan is nan.
    equal = ops.bitwise_and(ops.eq(below, above), ops.eq(weight, weight))
    value = ops.select_n(equal, mixed, below)
    # Equal numbers stay what they are, -0 too, and share the derivative as others do.
    level = ops.bitwise_and(equal, ops.is_finite(below))
    zero = to_shape(literal(0, below.aval.dtype, False), below.aval.shape)
    gap = ops.sub(ops.select_n(level, zero, below), ops.select_n(level, zero, above))
    return ops.select_n(level, value, ops.sub(below, ops.mul(weight, gap)))


# Covariance.


@remembered
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables in rows (or columns): C = Σ w (x - x̄)(x - x̄)ᴴ / norm.

    `fweights` count repetitions, `aweights` weigh observations. Raises ValueError beyond two
    dimensions, TypeError for `fweights` that are no integers.

    >>> jnp.cov(jnp.array([[0., 1., 2.], [2., 1., 0.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    x = _observations(m, y, rowvar, dtype)
    if not x.shape[0]:
        return filled((0, 0), 0, x.dtype)
    if ddof is None:
        ddof = 0 if static_flag("cov bias", bias) else 1
    weights = a = None
    if fweights is not None:
        f = _weights("fweights", fweights, x.shape[1])
        if not dtypes.issubdtype(f.dtype, np.integer):
            raise TypeError("fweights must be integer.")
        weights = f
    if aweights is not None:
        a = abs(_weights("aweights", aweights, x.shape[1]))
        weights = a if weights is None else weights * a
        x = convert(x, promoted_dtype([x, a])[0])
    return in_float32(lambda x: _covariance(x, ddof, weights, a), x)


def _observations(m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """The variables in rows."""
    if y is None:
        (x,) = promote_dtypes_inexact("cov", m)
    else:
        x, other = promote_dtypes_inexact("cov", m, y)
        if other.aval.ndim > 2:
            raise ValueError("y has more than 2 dimensions")
    if x.aval.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if dtype is not None:
        if not dtypes.issubdtype(dtypes.as_dtype(dtype), np.inexact):
            raise ValueError(f"cov: dtype must be a subclass of float or complex; got {dtype=}")
        target = dtypes.check_user_dtype_supported(dtype, "cov")
        x = convert(x, target)
    # As in NumPy from 2.2 on: a column of observations is told from a row by m's rank, not its
    # size, and y by its size.
    by_rows = static_flag("cov rowvar", rowvar)
    x = with_rank(x, 2).T if not by_rows and x.aval.ndim == 2 else with_rank(x, 2)
    if y is not None:
        other = with_rank(other, 2)
        if not by_rows and other.aval.shape[0] != 1:
            other = other.T
        if other.aval.shape[1] != x.aval.shape[1]:
            raise ValueError(
                f"[cov] expected as many observations in y as in m, got {other.aval.shape[1]} for "
                f"{x.aval.shape[1]}."
            )
        x = concatenate([x, convert(other, x.dtype)])
    return x


def _covariance(x: Any, ddof: Any, weights: Any, aweights: Any) -> Any:
    mean, norm_sum = average(x, axis=1, weights=weights, returned=True)
    norm_sum = norm_sum[0]
    if weights is None:
        norm: Any = array(float(x.shape[1] - ddof), x.dtype) if x.shape[1] > ddof else 0.0
    elif ddof == 0:
        norm = norm_sum
    elif aweights is None:
        norm = norm_sum - ddof
    else:
        norm = norm_sum - ddof * total(weights * aweights) / norm_sum
    x = x - mean[:, None]
    right = x if weights is None else x * convert(weights, x.dtype)[None]
    out = dot(x, conjugate(right).T) / norm
    return out[0, 0] if out.shape == (1, 1) else out


def _weights(name: str, w: Any, n: int) -> Any:
    x = array_operand("cov", w)
    if x.aval.ndim != 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if x.aval.shape[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    return x


@remembered
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """The correlation matrix: covariances over the products of standard deviations, in [-1, 1].

    >>> jnp.corrcoef(jnp.array([[0., 1., 2.], [2., 1., 0.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return in_float32(lambda x: _correlation(cov(x)), _observations(x, y, rowvar, dtype))


def _correlation(c: Any) -> Any:
    if c.ndim == 0:
        return c / c
    deviation = sqrt(c.diagonal().real)
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        return ops.complex(c.real.clip(-1, 1), c.imag.clip(-1, 1))
    return c.clip(-1, 1)
