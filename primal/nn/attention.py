"""Scaled dot-product attention (Vaswani et al., 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.base.limits import finfo
from primal.nn.functions import logsumexp, softmax
from primal.runtime.refusals import in_words


@in_words
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(scale·q·kᵀ + bias)·v over the positions that the masks allow.

    query [b, t, n, h], key and value [b, s, k, h], or all without b; n a multiple of k (each head
    of keys serves n/k of queries). bias and mask broadcast to [b, n, t, s]; `scale` is 1/√h by
    default. `is_causal` hides later positions, the lengths int32[b] those behind the end,
    `local_window_size` those further than (left, right) away. Logits and softmax have 32 bits at
    least. `return_residual` adds log Σ exp of the logits, [b, t, n]. ValueError for shapes that do
    not fit, masks that are not bool, and for 'cudnn', which only GPUs have. Raises RuntimeError for
    implementation 'cudnn'.

    >>> q = jnp.ones((1, 2, 1, 4))
    >>> nn.dot_product_attention(q, q, 3 * q, is_causal=True).shape
    (1, 2, 1, 4)
    """
    given = [jnp.asarray(x) for x in (query, key, value)]
    rank = given[0].ndim
    q, k, v = [x[None] if x.ndim == 3 else x for x in given]
    _check(q, k, v, given)
    batch, t, n, h = q.shape
    s, heads = k.shape[1:3]
    bias = _four("bias", bias, (batch, n, t, s))
    mask = _four("mask", mask, (batch, n, t, s))
    if mask is not None and mask.dtype != np.bool_:
        raise ValueError(
            f"[nn.dot_product_attention] expected a boolean mask, got {mask.dtype.name}."
        )
    lengths = [
        _lengths(name, x, batch)
        for name, x in (
            ("query_seq_lengths", query_seq_lengths),
            ("key_value_seq_lengths", key_value_seq_lengths),
        )
    ]
    if implementation not in (None, "xla"):
        if implementation == "cudnn":
            raise RuntimeError(
                "[nn.dot_product_attention] expected implementation 'xla' or None, got 'cudnn', "
                "which this backend does not have."
            )
        raise ValueError(
            f"[nn.dot_product_attention] expected implementation 'xla', 'cudnn' or None, got "
            f"{implementation!r}: unsupported implementation option."
        )
    if scale is None:
        scale = 1.0 / np.sqrt(h)
    # Query heads in groups, one for each head of keys.
    grouped = q.reshape(batch, t, heads, n // heads, h)
    wide = q.dtype.itemsize >= 4 and dtypes.issubdtype(q.dtype, np.inexact)
    accumulate = q.dtype if wide else np.dtype(np.float32)
    logits = jnp.einsum("btkgh,bskh->bkgts", grouped, k, preferred_element_type=accumulate)
    logits = logits.reshape(batch, n, t, s) * np.array(scale, logits.dtype)
    if bias is not None:
        logits = (logits + bias).astype(logits.dtype)
    allowed = _allowed(mask, t, s, is_causal, lengths, local_window_size)
    if allowed is not None:
        # Finite, so that rows without any position are means instead of nan.
        lowest = np.array(-0.7 * float(finfo(logits.dtype).max), logits.dtype)
        logits = jnp.where(allowed, logits, lowest)
    weights = softmax(logits.astype(np.float32), axis=-1).astype(k.dtype)
    weights = weights.reshape(batch, heads, n // heads, t, s)
    out = jnp.einsum("bkgts,bskh->btkgh", weights, v).reshape(batch, t, n, v.shape[-1])
    if lengths[0] is not None:
        inside = jnp.arange(t)[None, :, None, None] < lengths[0][:, None, None, None]
        out = jnp.where(inside, out, 0)
    out = out.reshape(given[0].shape[:-1] + v.shape[-1:]) if rank == 3 else out
    if not return_residual:
        return out
    residual = jnp.moveaxis(logsumexp(logits.astype(np.float32), axis=-1), 1, 2).astype(q.dtype)
    return out, residual[0] if rank == 3 else residual


def _check(q: Any, k: Any, v: Any, given: Any) -> None:
    ranks = [x.ndim for x in given]
    if len(set(ranks)) > 1 or ranks[0] not in (3, 4):
        raise ValueError(
            f"[nn.dot_product_attention] expected query, key and value of 3 or 4 dimensions each, "
            f"got shapes {[x.shape for x in given]}."
        )
    dtype = q.dtype
    if k.dtype != dtype or v.dtype != dtype:
        raise ValueError(
            f"[nn.dot_product_attention] expected query, key and value of one dtype, got "
            f"{[x.dtype.name for x in (q, k, v)]}."
        )
    if k.shape != v.shape or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ValueError(
            f"[nn.dot_product_attention] expected query [b, t, n, h] and key and value "
            f"[b, s, k, h], got shapes {[x.shape for x in (q, k, v)]}."
        )
    if q.shape[2] % k.shape[2]:
        raise ValueError(
            f"[nn.dot_product_attention] expected a number of query heads that is a multiple of "
            f"that of key heads, got {q.shape[2]} and {k.shape[2]}."
        )


def _four(name: str, x: Any, shape: tuple[int, ...]) -> Any:
    if x is None:
        return None
    array = jnp.asarray(x)
    if array.ndim < 4:
        array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    text = (
        f"[nn.dot_product_attention] expected a {name} that broadcasts to {shape}, got shape "
        f"{array.shape}."
    )
    if array.ndim != 4:
        raise ValueError(text)
    if not all(a in (1, b) for a, b in zip(array.shape, shape, strict=True)):
        raise TypeError(text)
    return array


def _lengths(name: str, x: Any, batch: int) -> Any:
    if x is None:
        return None
    array = jnp.asarray(x)
    if array.shape != (batch,) or array.dtype != np.int32:
        raise ValueError(
            f"[nn.dot_product_attention] expected {name} as int32[{batch}], got "
            f"{array.dtype.name}{list(array.shape)}."
        )
    return array


def _allowed(
    mask: Any,
    t: int,
    s: int,
    is_causal: bool,
    lengths: list[Any],
    window: int | tuple[int, int] | None,
) -> Any:
    """Where attention may go, as booleans that broadcast to [b, n, t, s]; None is everywhere."""
    row, column = jnp.arange(t)[:, None], jnp.arange(s)[None, :]
    parts = [] if mask is None else [mask]
    if is_causal:
        parts.append((column <= row)[None, None])
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        parts.append(((column >= row - left) & (column <= row + right))[None, None])
    for length, place in zip(lengths, (row, column), strict=True):
        if length is not None:
            parts.append(place[None, None] < length[:, None, None, None])
    out = None
    for part in parts:
        out = part if out is None else out & part
    return out
