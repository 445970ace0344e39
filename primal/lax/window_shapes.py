"""The shapes that convolutions and windows have, by arithmetic alone.

A batch size of -1, for one that is not known, stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.lax.convolutions import conv_dimension_numbers
from primal.lax.windows import padtype_to_pads
from primal.ops.window.views import dilated
from primal.runtime.refusals import in_words

Pads = Sequence[tuple[int, int]]


def _windows(sizes: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> list[int]:
    """How often a window fits in each dimension."""
    return [
        max(0, (n - w) // s + 1) if n >= w else 0
        for n, w, s in zip(sizes, window, strides, strict=True)
    ]


@in_words
def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Pads | str,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of a convolution of (batch, feature, *space) with (out, in, *space).

    TypeError for other numbers of pads than dimensions in space.

    >>> lax.conv_shape_tuple((-1, 3, 8, 8), (5, 3, 3, 3), (1, 1), "SAME")
    (-1, 5, 8, 8)
    """
    space, window = lhs_shape[2:], rhs_shape[2:]
    if isinstance(pads, str):
        pads = padtype_to_pads(space, window, strides, pads)
    if len(pads) != len(space):
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(space)}, got "
            f"{len(pads)}."
        )
    padded = [n + lo + hi for n, (lo, hi) in zip(space, pads, strict=True)]
    batch = lhs_shape[0] if lhs_shape[0] < 0 else lhs_shape[0] // batch_group_count
    return (batch, rhs_shape[0], *_windows(padded, window, strides))


@in_words
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads | str,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """`conv_shape_tuple` for any layout of the dimensions.

    >>> layout = ("NCHW", "OIHW", "NCHW")
    >>> conv_general_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (1, 1), "VALID", layout)
    (1, 4, 6, 6)
    """
    spec = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs = [lhs_shape[i] for i in spec.lhs_spec]
    rhs = [rhs_shape[i] for i in spec.rhs_spec]
    out = conv_shape_tuple(lhs, rhs, window_strides, padding)
    return tuple([int(n) for n in np.take(out, np.argsort(spec.out_spec))])


@in_words
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads | str,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of a transposed convolution.

    >>> layout = ("NCHW", "OIHW", "NCHW")
    >>> conv_transpose_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), "SAME", layout)
    (1, 4, 16, 16)
    """
    spec = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs = [lhs_shape[i] for i in spec.lhs_spec]
    rhs = [rhs_shape[i] for i in spec.rhs_spec]
    space = []
    for i, (n, k, s) in enumerate(zip(lhs[2:], rhs[2:], window_strides, strict=True)):
        if isinstance(padding, str):
            extra = max(k - s, 0) if padding.upper() == "VALID" else 0
            space.append(n * s + extra)
        else:
            lo, hi = padding[i]
            space.append(dilated(n, s) + lo + hi - k + 1)
    out = (lhs[0], rhs[0], *space)
    return tuple([int(n) for n in np.take(out, np.argsort(spec.out_spec))])


@in_words
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of `reduce_window` with explicit padding.

    >>> reduce_window_shape_tuple((6, 6), (2, 2), (2, 2), [(0, 0), (0, 0)])
    (3, 3)
    """
    base = base_dilation or (1,) * len(operand_shape)
    inner = window_dilation or (1,) * len(operand_shape)
    sizes = [
        n if n < 0 else dilated(n, d) + lo + hi
        for n, d, (lo, hi) in zip(operand_shape, base, padding, strict=True)
    ]
    window = [dilated(n, d) for n, d in zip(window_dimensions, inner, strict=True)]
    return tuple(
        [
            n if n < 0 and w == 1 else c
            for n, w, c in zip(sizes, window, _windows(sizes, window, window_strides), strict=True)
        ]
    )
