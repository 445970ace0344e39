"""Sizes and NumPy views of windows, for the rooms beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def dilated(size: int, step: int) -> int:
    """The extent of `size` elements spread `step` apart."""
    return (size - 1) * step + 1 if size else 0


def windows_in(size: int, window: int, stride: int, edges: tuple[int, int], spread: int = 1,
               dilate: int = 1) -> int:  # fmt: skip
    """How many windows fit: floor((padded - dilated window) / stride) + 1, at least none."""
    free = sum(edges) + dilated(size, spread) - dilated(window, dilate)
    return 0 if free < 0 else free // stride + 1


def _count_rule(param: str) -> str:
    if param == "window_dimensions":
        return "the wrong number of window_dimensions for operand"
    return f"inconsistent {param} and window_dimensions"


def check_window(name: str, rank: int, **params: Sequence[Any]) -> None:
    """TypeError unless each parameter has `rank` entries, all of them positive."""
    for param, values in params.items():
        if len(values) != rank:
            raise TypeError(
                f"[{name}] expected {param} with {rank} entries, one per windowed dimension, got "
                f"{tuple(values)}: {name} got {_count_rule(param)}."
            )
        if any(not isinstance(v, tuple) and v < 1 for v in values):
            rule = "All dilations must be positive"
            if not param.endswith("dilation"):
                rule = f"{name} {param} must have every element be strictly positive"
            raise TypeError(
                f"[{name}] expected {param} of positive integers, got {tuple(values)}: {rule}."
            )


def spread_and_padded(x: Any, value: Any, padding: Pairs, spread: Ints, lead: int = 0) -> Any:
    """x with its last dimensions spread apart and padded by `value`; negative padding crops."""
    plain = all(p == (0, 0) for p in padding) and all(s == 1 for s in spread)
    if plain or not padding:
        return x
    shape = list(x.shape[:lead])
    source: list[Any] = [slice(None)] * lead
    target: list[Any] = [slice(None)] * lead
    for n, (lo, hi), step in zip(x.shape[lead:], padding, spread, strict=True):
        size = max(0, lo + hi + dilated(n, step))
        shape.append(size)
        first = -(lo // step) if lo < 0 else 0
        last = min(n, (size - 1 - lo) // step + 1) if size else 0
        source.append(slice(first, max(first, last)))
        start = lo + first * step
        target.append(slice(start, start + max(0, last - first) * step, step))
    out = np.full(shape, value, x.dtype)
    if all(s.stop is None or s.stop > s.start for s in source):
        out[tuple(target)] = x[tuple(source)]
    return out


def window_view(x: Any, sizes: Ints, window: Ints, strides: Ints, dilate: Ints, lead: int) -> Any:
    """A read-only view (lead…, windows…, inside window…) of x, `sizes` windows per dimension."""
    moves = x.strides[lead:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:lead], *sizes, *window),
        (
            *x.strides[:lead],
            *[m * s for m, s in zip(moves, strides, strict=True)],
            *[m * d for m, d in zip(moves, dilate, strict=True)],
        ),
        writeable=False,
    )


def adjoint_edges(
    size: int, outs: int, window: int, stride: int, lo: int, spread: int, dilate: int
) -> tuple[int, int]:
    """Padding of the cotangent whose windows, reversed, give the cotangent of the operand.

    out[p] reads x[q] where q·spread + lo = p·stride + k·dilate. So x[q] collects the cotangents,
    spread by stride, in a window that starts at q·spread + lo - (window - 1)·dilate.
    """
    before = (window - 1) * dilate - lo
    extent = (size - 1) * spread + dilated(window, dilate)
    return before, extent - before - dilated(outs, stride)
