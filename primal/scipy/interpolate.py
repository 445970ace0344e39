"""`primal.scipy.interpolate`: values between the points of a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike, check_arraylike
from primal.scipy.operands import in_floats
from primal.tree_util import register_pytree_node

__all__ = ["RegularGridInterpolator"]
_METHODS = "linear", "nearest"


class RegularGridInterpolator:
    """The values at any points, from those on a grid that is the product of its axes.

    'linear' weighs the 2ⁿ corners of the cell around a point x,
    f(x) = Σ_c f(c)·∏_d (1 - |x_d - c_d|/h_d), h the widths of the cell; 'nearest' takes the
    nearest corner, the lower of two equally near. `points` are the n axes, each strictly
    increasing; `values` have their lengths as the first n dimensions, others may follow. Outside of
    the grid the result is `fill_value`, or where that is None the outermost cell continues.

    ValueError for another method, other shapes, and a `fill_value` that `values` cannot hold,
    NotImplementedError for `bounds_error`. An interpolator is a tree, `jit` may take one.

    >>> grid = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0])
    >>> values = jnp.array([[10.0, 20.0], [40.0, 50.0], [70.0, 80.0]])
    >>> RegularGridInterpolator(grid, values)(jnp.array([[1.5, 4.5], [0.0, 4.0]]))
    Array([30., nan], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:
        _check_method(method)
        if bounds_error:
            raise NotImplementedError(
                "[RegularGridInterpolator] expected bounds_error=False, got True: values are not "
                "known under jit. Compare the points with the ends of the grid."
            )
        check_arraylike("RegularGridInterpolator", values, *points)
        values = in_floats(values)
        if len(points) > values.ndim:
            raise ValueError(
                f"[RegularGridInterpolator] expected values of at least {len(points)} dimensions, "
                f"one for each axis of the grid, got shape {values.shape}."
            )
        grid = tuple(jnp.asarray(axis) for axis in points)
        for axis, size in zip(grid, values.shape, strict=False):
            if axis.shape != (size,):
                raise ValueError(
                    "[RegularGridInterpolator] expected axes of one dimension with the lengths of "
                    f"the values' first {len(grid)}, got shapes {[x.shape for x in grid]} for "
                    f"values of {values.shape}."
                )
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            fill_value = jnp.asarray(fill_value)
            if not np.can_cast(fill_value.dtype, values.dtype, casting="same_kind"):
                raise ValueError(
                    "[RegularGridInterpolator] expected a fill_value that the values' dtype "
                    f"{values.dtype} holds, got one of {fill_value.dtype}."
                )
        self.grid = grid
        self.values = values
        self.method = method
        self.bounds_error: bool = bounds_error
        self.fill_value = fill_value

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at `xi`: an array (…, n), or n arrays that broadcast.

        >>> squares = RegularGridInterpolator((jnp.arange(3.0),), jnp.array([0.0, 1.0, 4.0]))
        >>> squares(jnp.array([1.5]))
        Array([2.5], dtype=float32)
        """
        chosen = self.method if method is None else method
        _check_method(chosen)
        n = len(self.grid)
        if isinstance(xi, tuple):
            check_arraylike("RegularGridInterpolator", *xi)
            xi = jnp.stack(jnp.broadcast_arrays(*xi), -1)
        else:
            check_arraylike("RegularGridInterpolator", xi)
            xi = jnp.asarray(xi)
            if xi.ndim == 1 and n == 1:
                xi = xi[:, None]
        if xi.ndim == 0 or xi.shape[-1] != n:
            raise ValueError(
                f"[RegularGridInterpolator] expected points of {n} coordinates, got points of "
                f"shape {xi.shape}."
            )
        # A point alone is a list of one, as in SciPy.
        shape = xi.shape[:-1] if xi.ndim > 1 else (1,)
        places = xi.reshape(-1, n).T
        out = self._between(places, chosen)
        # Comparisons that are false for nan mark it as outside of every grid.
        missing = jnp.any(jnp.isnan(places), 0)
        trailing = (1,) * (self.values.ndim - n)
        if self.fill_value is not None:
            outside = jnp.zeros(places.shape[1:], bool)
            for x, axis in zip(places, self.grid, strict=True):
                outside = outside | (x < axis[0]) | (x > axis[-1])
            fill = self.fill_value.astype(out.dtype)
            out = jnp.where(outside.reshape(-1, *trailing), fill, out)
        out = jnp.where(missing.reshape(-1, *trailing), jnp.nan, out)
        return out.reshape(*shape, *self.values.shape[n:])

    def _between(self, places: Any, method: str) -> Any:
        trailing = (1,) * (self.values.ndim - len(self.grid))
        corners = []
        for x, axis in zip(places, self.grid, strict=True):
            last = axis.shape[0] - 1
            low = jnp.clip(jnp.searchsorted(axis, x, side="right") - 1, 0, max(last - 1, 0))
            high = jnp.minimum(low + 1, last)
            width = axis[high] - axis[low]
            part = (x - axis[low]) / jnp.where(width == 0, 1, width)
            if method == "nearest":
                corners.append([(jnp.where(part <= 0.5, low, high), None)])
            else:
                corners.append(
                    [(i, w.reshape(-1, *trailing)) for i, w in ((low, 1 - part), (high, part))]
                )
        total: Any = None
        for corner in itertools.product(*corners):
            indices, weights = zip(*corner, strict=True)
            part = self.values[indices]
            for weight in weights:
                part = part if weight is None else part * weight
            total = part if total is None else total + part
        return total


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise ValueError(
            f"[RegularGridInterpolator] expected the method 'linear' or 'nearest', got {method!r}."
        )


def _flatten(f: RegularGridInterpolator) -> tuple[tuple[Any, ...], tuple[str, bool]]:
    return (f.grid, f.values, f.fill_value), (f.method, f.bounds_error)


def _unflatten(fixed: tuple[str, bool], parts: Sequence[Any]) -> RegularGridInterpolator:
    # Not by __init__: the leaves of a tree may be anything.
    f = object.__new__(RegularGridInterpolator)
    f.grid, f.values, f.fill_value = parts
    f.method, f.bounds_error = fixed
    return f


register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
