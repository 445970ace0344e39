"""`primal.scipy.ndimage`: values of an array between its elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.numpy.remembered import remembered
from primal.ops.types import check_sequence
from primal.scipy.operands import in_floats

__all__ = ["map_coordinates"]


def _mirrored(i: Any, size: int) -> Any:
    # 0 1 2 3 2 1 | 0 1 2 3 ...: the ends are the mirrors.
    period = max(2 * (size - 1), 1)
    place = i % period
    return jnp.minimum(place, period - place) if size > 1 else place


def _reflected(i: Any, size: int) -> Any:
    # 0 1 2 3 3 2 1 0 | 0 1 ...: the mirrors lie half a step beyond the ends.
    place = i % (2 * size)
    return jnp.minimum(place, 2 * size - 1 - place)


# Where an index points to, given the length of the axis.
_MODES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, size: i,
    "nearest": lambda i, size: jnp.clip(i, 0, size - 1),
    "wrap": lambda i, size: i % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


@remembered
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """The values of `input` at fractional indices, by linear or nearest interpolation.

    out[p] = Σ_c input[c]·∏_d (1 - |coordinates[d][p] - c_d|) over the 2ⁿ corners c around the
    point for `order` 1; the nearest element for `order` 0, halves rounding away from zero. One
    array of coordinates for each dimension of `input`; the result has their common shape and the
    dtype of `input`, rounded where that is an integer type. Beyond the ends stands `cval` (mode
    'constant'), the last element ('nearest'), the array repeated ('wrap', SciPy's 'grid-wrap'), or
    its mirror image about the centre ('mirror') or the edge ('reflect') of the last element.

    ValueError for another number of coordinates, NotImplementedError for other orders and modes.
    Raises TypeError for a scalar.

    >>> map_coordinates(jnp.array([0.0, 10.0, 20.0]), [jnp.array([0.5, 1.75, 3.0])], order=1)
    Array([ 5. , 17.5,  0. ], dtype=float32)
    """
    values = jnp.asarray(input)
    check_sequence("map_coordinates", "arrays, one for each dimension", coordinates)
    places = [jnp.asarray(c) for c in coordinates]
    if len(places) != values.ndim:
        raise ValueError(
            "[map_coordinates] expected one array of coordinates for each dimension of the input, "
            f"got {len(places)} for shape {values.shape}."
        )
    if not places:
        raise TypeError(
            "[map_coordinates] expected an input of at least one dimension, got a scalar."
        )
    if not isinstance(mode, str) or mode not in _MODES:
        raise NotImplementedError(
            f"[map_coordinates] expected a mode of {', '.join(map(repr, _MODES))}, got {mode!r}."
        )
    if order not in (0, 1):
        raise NotImplementedError(
            f"[map_coordinates] expected order 0 or 1, got {order!r}. It requires order<=1: "
            "splines of higher order are not offered."
        )
    fill = jnp.asarray(cval, values.dtype)
    axes = []
    for place, size in zip(places, values.shape, strict=True):
        pairs = _nearest(place) if order == 0 else _around(place)
        axes.append([(_MODES[mode](i, size), weight) for i, weight in pairs])
    total: Any = None
    for corner in itertools.product(*axes):
        indices, weights = zip(*corner, strict=True)
        part: Any
        if mode == "constant":
            inside = math.prod(
                ((i >= 0) & (i < size) for i, size in zip(indices, values.shape, strict=True)),
                start=jnp.asarray(True),
            )
            bounded = tuple(
                jnp.clip(i, 0, max(size - 1, 0))
                for i, size in zip(indices, values.shape, strict=True)
            )
            part = jnp.where(inside, values[bounded], fill)
        else:
            part = values[indices]
        for weight in weights:
            part = part if weight is None else part * weight
        total = part if total is None else total + part
    if jnp.issubdtype(values.dtype, jnp.integer) and jnp.issubdtype(total.dtype, jnp.inexact):
        total = _rounded(total)
    return total.astype(values.dtype)


def _rounded(x: Any) -> Any:
    """The nearest integer, halves away from zero."""
    return jnp.sign(x) * jnp.floor(abs(x) + 0.5)


def _nearest(place: Any) -> list[tuple[Any, Any]]:
    """The index nearest to each place, with no weight."""
    if jnp.issubdtype(place.dtype, jnp.inexact):
        # floor refuses complex numbers with the error that names them.
        place = jnp.where(place < 0, -jnp.floor(0.5 - place), jnp.floor(place + 0.5))
    return [(place.astype(jnp.int32), None)]


def _around(place: Any) -> list[tuple[Any, Any]]:
    """The indices below and above each place, with their weights."""
    place = in_floats(place)
    below = jnp.floor(place)
    part = place - below
    low = below.astype(jnp.int32)
    return [(low, 1 - part), (low + 1, part)]
