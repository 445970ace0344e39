"""Windows over arrays: cumulative ops, reduce_window, and the sizes that padding by name gives."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.pytree import unflatten
from primal.ir.op import Op
from primal.ir.trace import Array, aval_of, literal
from primal.lax.reductions import COMBINE, elementwise_combine, read_monoid, read_reduction
from primal.numpy.remembered import remembered
from primal.ops.choose import as_dtype
from primal.ops.elementwise import (
    add,
    complex,
    eq,
    exp,
    floor,
    imag,
    log1p,
    lt,
    mul,
    ne,
    real,
    select_n,
    sub,
)
from primal.ops.reduce import part
from primal.ops.shape import pad
from primal.ops.spread import broadcast_to
from primal.ops.types import counted_axes, static_ints
from primal.ops.window import cumulative, pooling
from primal.ops.window.views import check_window, spread_and_padded
from primal.runtime.eager import as_array
from primal.runtime.refusals import in_words

BYTE = np.dtype(np.uint8)
Padding = str | Sequence[tuple[int, int]]


def _along(op: Op, operand: Any, axis: int, reverse: bool) -> Any:
    (axis,) = counted_axes(op.name, (axis,), aval_of(operand).ndim)
    return op(operand, axis=axis, reverse=bool(reverse))


@remembered
@in_words
def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """Running sums along an axis: out[k] = Σ(i <= k) x[i], or i >= k when `reverse`.

    Any number dtype, kept; TypeError for bool, ValueError for an axis that is not there.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _along(cumulative.cumsum, operand, axis, reverse)


@remembered
@in_words
def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """Running products along an axis: out[k] = Π(i <= k) x[i], or i >= k when `reverse`.

    Any number dtype, kept. The derivative is right at zeros too.

    >>> lax.cumprod(jnp.array([1, 2, 3]), reverse=True)
    Array([6, 6, 3], dtype=int32)
    """
    return _along(cumulative.cumprod, operand, axis, reverse)


@remembered
@in_words
def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """Running maxima along an axis: out[k] = max(i <= k) x[i], or i >= k when `reverse`.

    Any number dtype, kept. Elements equal to the maximum so far share its derivative equally.

    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _along(cumulative.cummax, operand, axis, reverse)


@remembered
@in_words
def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """Running minima along an axis: out[k] = min(i <= k) x[i], or i >= k when `reverse`.

    Any number dtype, kept. Elements equal to the minimum so far share its derivative equally.

    >>> lax.cummin(jnp.array([2, 1, 3]))
    Array([2, 1, 1], dtype=int32)
    """
    return _along(cumulative.cummin, operand, axis, reverse)


@remembered
@in_words
def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """Running log-sums of exponentials: out[k] = log Σ(i <= k) exp x[i], without overflow.

    Floats and complex numbers, of which sums of two and more have imaginary parts in (-π, π].

    >>> lax.cumlogsumexp(jnp.array([0., 0.]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    if aval_of(operand).dtype.kind == "c":
        (axis,) = counted_axes("cumlogsumexp", (axis,), aval_of(operand).ndim)
        return cumulative.prefix(_complex_logaddexp, [operand], axis, bool(reverse))[0]
    return _along(cumulative.cumlogsumexp, operand, axis, reverse)


def _complex_logaddexp(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    (p,), (q,) = a, b
    less = lt(real(p), real(q))
    top, low = select_n(less, p, q), select_n(less, q, p)
    zero = broadcast_to(literal(0, aval_of(p).dtype, False), aval_of(p).shape)
    gap = select_n(eq(real(top), -np.inf), sub(low, top), zero)
    out = add(top, log1p(exp(gap)))
    # Of two empty sums the logarithm is that of either.
    out = select_n(eq(real(top), -np.inf), out, top)
    turns = floor(add(mul(imag(out), 0.5 / np.pi), 0.5))
    return [complex(real(out), sub(imag(out), mul(turns, 2 * np.pi)))]


@in_words
def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """(before, after) per dimension for 'VALID', 'SAME' or 'SAME_LOWER'.

    'SAME' pads so that there are ceil(size / stride) windows, an odd place after ('SAME_LOWER':
    before). RuntimeError for another name.

    >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    name = str(getattr(padding, "name", padding)).upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise (RuntimeError if isinstance(padding, str) else TypeError)(
            f"[padding] expected 'VALID', 'SAME', 'SAME_LOWER' or pairs of ints, got {padding!r}: "
            "Unrecognized padding type."
        )
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + window - size)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return pads


def explicit_padding(
    name: str,
    padding: Any,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> tuple[tuple[int, int], ...]:
    """Pairs of ints from a name or from pairs; ValueError when they do not fit the dimensions."""
    if isinstance(padding, str) or hasattr(padding, "name"):
        covered = [max(0, (k - 1) * d + 1) for k, d in zip(window, dilation, strict=True)]
        return tuple(padtype_to_pads(sizes, covered, strides, padding))
    try:
        pairs = tuple([(operator.index(lo), operator.index(hi)) for lo, hi in padding])
    except (TypeError, ValueError):
        raise ValueError(
            f"[{name}] expected padding as a name or {len(sizes)} pairs of whole numbers (low, "
            f"high), got {padding!r}: it should be a string or a sequence of (low, high) pairs."
        ) from None
    if len(pairs) != len(sizes):
        raise ValueError(
            f"[{name}] expected padding with {len(sizes)} pairs, one per windowed dimension, got "
            f"{len(pairs)}: Wrong number of explicit pads."
        )
    return pairs


def ints(use: str, values: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """A tuple of ints; ones where nothing is given. Errors name `use` as in `static_ints`."""
    return (1,) * rank if values is None else static_ints(use, values)


_WINDOWED: dict[str, Op] = {
    "add": pooling.reduce_window_sum,
    "maximum": pooling.reduce_window_max,
    "minimum": pooling.reduce_window_min,
}


@in_words
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements of each window combined by an associative function, starting from init_value.

    The window of out[p] covers x at p * stride + k * window_dilation - low, for k in the window,
    where x is spread by base_dilation. Places between and around its elements hold nothing: every
    window starts from init_value once. One entry per dimension in each parameter; padding is
    'VALID', 'SAME', 'SAME_LOWER' or pairs. `operand` and `init_value` may be trees, with
    `computation` as in `reduce`. TypeError or ValueError where these do not fit.

    >>> lax.reduce_window(jnp.arange(5.), -jnp.inf, lax.max, (2,), (2,))
    Array([1., 3.], dtype=float32)
    """
    geometry = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    single = read_monoid("reduce_window", operand, init_value, computation)
    if single is not None and operand.aval.ndim and _has_windows(single[0], operand.aval.dtype):
        monoid, init, _ = single
        return _windowed(operand, monoid, init, *geometry)
    read = read_reduction("reduce_window", operand, init_value, computation)
    window = _read_windows(aval_of(read.leaves[0]).shape, *geometry)
    first = aval_of(read.leaves[0])
    if read.monoid is not None and first.ndim and _has_windows(read.monoid, first.dtype):
        init = None if read.neutral else read.inits[0]
        out = [_windowed(read.leaves[0], read.monoid, init, *geometry)]
    else:
        out = _generic(read.combine, read.leaves, read.inits, window)
    return unflatten(read.spec, out)


@functools.cache
def _has_windows(monoid: str, dtype: Any) -> bool:
    # Extremes of complex numbers have a derivative pair by pair, and none as an op of windows.
    fits = dtypes.issubdtype(dtype, np.number) and (monoid == "add" or dtype.kind != "c")
    if dtype == np.bool_:
        fits = monoid != "add"
    return monoid in _WINDOWED and bool(fits)


@remembered
def _windowed(x: Any, monoid: str, init: Any, *geometry: Any) -> Array:
    """The windows of one array by a monoid, `init` None where it is neutral."""
    if aval_of(x).dtype == np.bool_:  # whose extrema are those of bytes
        pair = [None if v is None else as_dtype(v, BYTE) for v in (x, init)]
        return ne(_windowed(pair[0], monoid, pair[1], *geometry), literal(0, BYTE, False))
    out: Array = _WINDOWED[monoid](x, **_read_windows(aval_of(x).shape, *geometry))
    if init is not None:
        out = COMBINE[monoid](broadcast_to(init, aval_of(out).shape), out)
    return out


def _read_windows(
    shape: tuple[int, ...],
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any,
    window_dilation: Any,
) -> dict[str, Any]:
    """The windows over a shape, checked, as parameters of operations."""
    rank = len(shape)
    sizes = ints("reduce_window window_dimensions", window_dimensions, rank)
    strides = ints("reduce_window window_strides", window_strides, rank)
    spread = ints("reduce_window base_dilation", base_dilation, rank)
    dilation = ints("reduce_window window_dilation", window_dilation, rank)
    check_window(
        "reduce_window", rank, window_dimensions=sizes, window_strides=strides,
        base_dilation=spread, window_dilation=dilation,
    )  # fmt: skip
    return {
        "window_dimensions": sizes,
        "window_strides": strides,
        "padding": explicit_padding("reduce_window", padding, shape, sizes, strides, dilation),
        "base_dilation": spread,
        "window_dilation": dilation,
    }


def _padded(x: Any, init: Any, window: dict[str, Any]) -> Any:
    config = tuple(
        [(lo, hi, s - 1) for (lo, hi), s in zip(window["padding"], window["base_dilation"],
                                                strict=True)]
    )
    value = init if hasattr(init, "aval") else literal(init, aval_of(x).dtype, False)
    return pad(x, value, padding_config=config)


def _generic(
    combine: Any, leaves: Sequence[Any], inits: Sequence[Any], window: dict[str, Any]
) -> list[Any]:
    """Any associative function: dimension by dimension, as windows are products of intervals."""
    shape = aval_of(leaves[0]).shape
    counts = pooling.counts(shape, **window)
    starts = [broadcast_to(i, counts) for i in inits]
    if 0 in counts:
        return starts
    xs = [_padded(x, i, window) for x, i in zip(leaves, inits, strict=True)]
    here = spread_and_padded(
        np.ones(shape, bool), False, window["padding"], window["base_dilation"]
    )
    for axis in reversed(range(len(counts))):
        count, size = counts[axis], window["window_dimensions"][axis]
        stride, dilation = window["window_strides"][axis], window["window_dilation"][axis]
        found = []
        for k in range(size):
            first = k * dilation
            ends = slice(first, first + (count - 1) * stride + 1, stride)
            parts = [part(x, ends.start, ends.stop, axis, stride) for x in xs]
            found.append((parts, here[(slice(None),) * axis + (ends,)]))
        while len(found) > 1:
            pairs = [
                _met(combine, found[i], found[i + 1]) for i in range(0, len(found) - 1, 2)
            ]
            found = pairs + (found[-1:] if len(found) % 2 else [])
        xs, here = found[0]
    return _met(combine, (starts, np.ones(counts, bool)), (xs, here))[0]


def _met(combine: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two sets of elements combined where both are there; where one is not, the other's."""
    (xs, left), (ys, right) = a, b
    both = elementwise_combine(combine, xs, ys)
    if not left.all():
        both = [select_n(as_array(left), y, z) for y, z in zip(ys, both, strict=True)]
    if not right.all():
        both = [select_n(as_array(right), x, z) for x, z in zip(xs, both, strict=True)]
    return both, left | right
