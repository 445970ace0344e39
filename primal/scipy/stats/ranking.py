"""Statistics of samples: ranks, the most frequent value, the standard error."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import primal.numpy as jnp
from primal.api.vectorize import vmap
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike, check_arraylike, with_rank
from primal.ops.types import canonical_axes
from primal.runtime.refusals import in_words
from primal.scipy.operands import inexact

_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]  # SciPy named it, over tuple.count


def _check_policy(
    name: str, nan_policy: str, error: type[Exception] = NotImplementedError
) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"Illegal nan_policy value {nan_policy!r}; expected one of "
            "{'propagate', 'omit', 'raise'}"
        )
    if nan_policy == "raise":
        raise error(
            f"[{name}] expected nan_policy 'propagate' or 'omit', got 'raise': whether there are "
            "nans is not known when a function is traced."
        )


@in_words
def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent value along an axis, the least of them where several tie, and its count.

    axis: None counts the flattened array. ValueError for an unknown `nan_policy`. Raises
    NotImplementedError for nan_policy 'omit'. The count is the largest |{i: x[i] = v}| over values
    v.

    >>> mode(jnp.array([2, 4, 1, 1, 3, 4, 4, 2, 3]))
    ModeResult(mode=Array(4, dtype=int32), count=Array(3, dtype=int32))
    """
    check_arraylike("mode", a)
    _check_policy("mode", nan_policy)
    if nan_policy == "omit":
        raise NotImplementedError("[mode] expected nan_policy='propagate', got 'omit'.")
    x = jnp.atleast_1d(jnp.asarray(a))
    rank = x.ndim
    if axis is None:
        x, at = jnp.ravel(x), 0
    else:
        (at,) = canonical_axes("mode", (axis,), rank)
    x = jnp.moveaxis(x, at, -1)
    if x.shape[-1] == 0:
        x = jnp.full((*x.shape[:-1], 1), jnp.nan, dtype=float)
        length = 0
    else:
        length = x.shape[-1]
    ordered = jnp.sort(x, axis=-1)
    start = jnp.concatenate(
        [jnp.ones_like(ordered[..., :1], bool), ordered[..., 1:] != ordered[..., :-1]], axis=-1
    )
    # The length of each run, from the places where runs begin and the counts after them.
    place = with_rank(jnp.arange(x.shape[-1]), x.ndim)
    begun = jnp.maximum.accumulate(jnp.where(start, place, 0), axis=-1)
    length_so_far = place - begun + 1
    best = jnp.argmax(length_so_far, axis=-1, keepdims=True)
    values = jnp.take_along_axis(ordered, best, axis=-1)
    counts = jnp.take_along_axis(length_so_far, best, axis=-1) if length else jnp.zeros_like(x)
    if jnp.issubdtype(x.dtype, jnp.inexact) and length:
        missing = jnp.any(jnp.isnan(x), axis=-1, keepdims=True)
        values = jnp.where(missing, jnp.nan, values)
        counts = jnp.where(missing, jnp.sum(jnp.isnan(x), axis=-1, keepdims=True), counts)
    if keepdims:
        if axis is None:
            shape = (1,) * rank
            return ModeResult(values.reshape(shape), counts.reshape(shape))
        return ModeResult(jnp.moveaxis(values, -1, at), jnp.moveaxis(counts, -1, at))
    return ModeResult(values[..., 0], counts[..., 0])


@in_words
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """The ranks of values from 1, those of equal values by `method`.

    method: 'average', 'min', 'max' of the ranks they share, 'dense' without gaps, or 'ordinal' in
    order of appearance. axis: None ranks the flattened array. Raises NotImplementedError for a
    `nan_policy` other than 'propagate', ValueError for unknown methods. By 'min' the rank of v is 1
    + |{i: x[i] < v}|.

    >>> rankdata(jnp.array([10.0, 20.0, 10.0]))
    Array([1.5, 3. , 1.5], dtype=float32)
    """
    check_arraylike("rankdata", a)
    if nan_policy not in ("propagate", "omit", "raise"):
        _check_policy("rankdata", nan_policy)
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"Logic for `nan_policy` of {nan_policy} is not implemented; use 'propagate'."
        )
    if method not in _METHODS:
        raise ValueError(f"unknown method '{method}'; expected one of {', '.join(_METHODS)}")
    x = jnp.asarray(a)
    if axis is None:
        return _ranks(jnp.ravel(x), method)
    (axis,) = canonical_axes("rankdata", (axis,), x.ndim)
    moved = jnp.moveaxis(x, axis, -1)
    rows = moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])
    ranks = vmap(lambda row: _ranks(row, method))(rows).reshape(moved.shape)
    return jnp.moveaxis(ranks, -1, axis)


def _ranks(x: Any, method: str) -> Any:
    dtype = jnp.result_type(float)
    order = jnp.argsort(x)
    place = jnp.argsort(order)
    if method == "ordinal":
        return (place + 1).astype(dtype)
    ordered = x[order]
    changes = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])[: x.shape[0]]
    dense = jnp.cumsum(changes)[place]
    n = x.shape[0]
    # count[i]: how many values lie below the i-th distinct one.
    count = jnp.nonzero(changes, size=n + 1, fill_value=n)[0]
    ranks = {
        "dense": lambda: dense.astype(dtype),
        "max": lambda: count[dense].astype(dtype),
        "min": lambda: (count[dense - 1] + 1).astype(dtype),
        "average": lambda: (count[dense] + count[dense - 1] + 1).astype(dtype) / 2,
    }[method]()
    if jnp.issubdtype(x.dtype, jnp.inexact):
        ranks = jnp.where(jnp.any(jnp.isnan(x)), jnp.nan, ranks)
    return ranks


@in_words
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """The standard error of the mean, the deviation with `ddof` over √n.

    nan_policy 'omit' leaves nans out.

    >>> sem(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    (x,) = inexact("sem", a)
    _check_policy("sem", nan_policy, ValueError)
    if axis is None:
        shape = (-1, *(1,) * (x.ndim - 1 if keepdims else 0))
        x, axis, keepdims = jnp.reshape(x, shape), 0, keepdims and x.ndim > 0
    if nan_policy == "omit":
        n = jnp.sum(~jnp.isnan(x), axis=axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(n.astype(x.dtype))
    return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / x.shape[axis] ** 0.5
