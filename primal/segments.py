"""Reductions of rows by segment: public as `primal.ops`, under JAX's name for them.

The package `primal/ops` holds the op records, far below `primal.numpy`; the facade gives it these
names, so that neither layer moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.base.monoids import identity
from primal.ir.trace import Array
from primal.numpy.creation import placed
from primal.ops.types import static_int
from primal.runtime.refusals import in_words

NAMES = ("segment_max", "segment_min", "segment_prod", "segment_sum")


def _segments(
    name: str,
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: Any,
    mode: Any,
    reduce: Callable[..., Any],
) -> Any:
    for x in (data, segment_ids):
        if isinstance(x, list | tuple) or x is None:
            raise TypeError(
                f"[ops.{name}] expected arrays, got {x!r} of type {type(x).__name__}. Use "
                "primal.numpy.array."
            )
    rows, ids = jnp.asarray(data), jnp.asarray(segment_ids)
    if num_segments is None:
        # As many as the largest id asks for: known only outside of traces.
        num_segments = int(jnp.max(ids)) + 1 if ids.size else 0
    count = static_int(f"ops.{name} num_segments", num_segments)
    if count < 0:
        raise ValueError(f"[ops.{name}] expected num_segments of at least 0, got {count}.")
    fill = _fill(name, rows.dtype)
    shape = (count, *rows.shape[1:])
    how = {
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": mode,
        "wrap_negative_indices": False,
    }
    if bucket_size is None:
        start = jnp.full(shape, fill, rows.dtype)
        return getattr(start.at[ids], _METHODS[name])(rows, **how)
    # Each bucket of rows by itself, then the buckets: shorter sums lose fewer digits.
    bucket_size = static_int(f"ops.{name} bucket_size", bucket_size)
    buckets = max(1, math.ceil(ids.size / bucket_size))
    start = jnp.full((buckets, *shape), fill, rows.dtype)
    place = (np.arange(len(rows)) // bucket_size, ids)
    parts = getattr(start.at[place], _METHODS[name])(rows, **how)
    return reduce(parts, axis=0).astype(rows.dtype)


_METHODS = {
    "segment_sum": "add",
    "segment_prod": "multiply",
    "segment_max": "max",
    "segment_min": "min",
}
_MONOIDS = {**_METHODS, "segment_max": "maximum", "segment_min": "minimum"}


def _fill(name: str, dtype: Any) -> Any:
    """The identity, but inf as JAX has it where the dtype knows none or is complex."""
    monoid = _MONOIDS[name]
    if monoid in ("maximum", "minimum") and dtypes.issubdtype(dtype, np.inexact):
        return -np.inf if monoid == "maximum" else np.inf
    return identity(monoid, dtype)


@in_words
def segment_sum(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """out[j] = Σ data[i] over the rows i with segment_ids[i] = j: [num_segments, ...].

    Ids out of range, negative ones too, are dropped. `num_segments` is the largest
    id plus 1 by default, and has to be given while tracing.

    >>> primal.ops.segment_sum(jnp.arange(4), jnp.array([0, 0, 1, 1]))
    Array([1, 5], dtype=int32)
    """
    out = _segments(
        "segment_sum", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode, jnp.sum,
    )  # fmt: skip
    return placed(out, None, out_sharding)


@in_words
def segment_prod(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """out[j] = Π data[i] over the rows i with segment_ids[i] = j; 1 for segments without rows.

    >>> primal.ops.segment_prod(jnp.arange(4), jnp.array([0, 0, 1, 1]))
    Array([0, 6], dtype=int32)
    """
    out = _segments(
        "segment_prod", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode, jnp.prod,
    )  # fmt: skip
    return placed(out, None, out_sharding)


@in_words
def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """out[j] = max data[i] over the rows i with segment_ids[i] = j; the lowest value without rows.

    >>> primal.ops.segment_max(jnp.arange(4), jnp.array([0, 0, 1, 1]))
    Array([1, 3], dtype=int32)
    """
    out = _segments(
        "segment_max", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode, jnp.max,
    )  # fmt: skip
    return placed(out, None, out_sharding)


@in_words
def segment_min(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """out[j] = min data[i] over the rows i with segment_ids[i] = j; the highest value without rows.

    >>> primal.ops.segment_min(jnp.arange(4), jnp.array([0, 0, 1, 1]))
    Array([0, 2], dtype=int32)
    """
    out = _segments(
        "segment_min", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode, jnp.min,
    )  # fmt: skip
    return placed(out, None, out_sharding)
