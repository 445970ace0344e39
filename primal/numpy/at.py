"""`x.at[index]`: updates that return a new array, and reads with a choice of out-of-bounds rules.

| expression                 | in place, in NumPy               |
|----------------------------|----------------------------------|
| `x.at[i].set(y)`           | `x[i] = y`                       |
| `x.at[i].add(y)`           | `np.add.at(x, i, y)`             |
| `x.at[i].subtract(y)`      | `np.subtract.at(x, i, y)`        |
| `x.at[i].multiply(y)`      | `np.multiply.at(x, i, y)`        |
| `x.at[i].divide(y)`        | `np.divide.at(x, i, y)`          |
| `x.at[i].power(y)`         | `np.power.at(x, i, y)`           |
| `x.at[i].min(y)`           | `np.minimum.at(x, i, y)`         |
| `x.at[i].max(y)`           | `np.maximum.at(x, i, y)`         |
| `x.at[i].apply(f)`         | `f.at(x, i)`                     |
| `x.at[i].get()`            | `x[i]`                           |

Inside `jit` an update whose operand is not used again happens in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.extrema import maximum, minimum
from primal.ir.trace import Array, Tracer, concrete_or_error
from primal.numpy import ufuncs
from primal.numpy.index_forms import parse
from primal.numpy.index_updates import apply, update, update_numpy
from primal.numpy.indexing import Hints, getitem, is_eager_array, read, read_numpy
from primal.ops.index.gather import scatter_add
from primal.ops.index.numbers import PROMISE_IN_BOUNDS, GatherScatterMode, static_fill
from primal.ops.index.scatter import scatter, scatter_max, scatter_min, scatter_mul, scatter_sub
from primal.ops.spread import full_like_aval
from primal.runtime import guards

Mode = str | GatherScatterMode | None


class IndexUpdateHelper:
    """What `x.at` is; `x.at[index]` names a part of x."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        if guards.ever:
            guards.as_index(index)
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """A part of an array, to be updated (in a copy) or read.

    Every method takes, by keyword:

    * `mode`: what happens to indices out of bounds. 'drop' or 'fill' (the default of updates):
      dropped; 'clip' (the default of `get`): moved to the nearest element; 'promise_in_bounds': the
      caller promises that there are none.
    * `unique_indices`, `indices_are_sorted`: promises about the indices, which engines may use.
    * `wrap_negative_indices`: whether negative indices count from the end (True) or are out of
      bounds.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x[index], with a choice of what comes from out of bounds.

        mode='fill' gives `fill_value` there (default: nan, the least signed or the greatest
        unsigned integer, True). Raises ValueError for an unknown mode.

        >>> jnp.arange(3.).at[7].get(mode='fill', fill_value=-1)
        Array(-1., dtype=float32)
        """
        _check_sharding("get", out_sharding)
        x = self.array
        fill = None if fill_value is None else _fill(fill_value, x)
        if mode is None and wrap_negative_indices:
            return getitem(x, self.index)
        if wrap_negative_indices and is_eager_array(x):
            found = read_numpy(x, self.index)  # in bounds all modes read the same
            if found is not None:
                GatherScatterMode.from_any(mode)
                return found
        chosen = PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
        hints = Hints(indices_are_sorted, unique_indices, chosen, wrap_negative_indices)
        form = parse(self.index, x.aval.shape)
        return read(x, form, hints, fill if hints.fills else None)

    def set(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] = values; where indices repeat, one of the values stays.

        Values broadcast to the part and take x's dtype. Raises ValueError for shapes that do not
        broadcast; warns (FutureWarning) where the cast loses the kind of the values.

        >>> jnp.arange(5).at[0].set(9)
        Array([9, 1, 2, 3, 4], dtype=int32)
        """
        return _changed(
            self, "set", scatter, None, values, indices_are_sorted, unique_indices, mode,
            out_sharding, wrap_negative_indices,
        )  # fmt: skip

    def add(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] += values; where indices repeat, all values are added.

        Values broadcast to the part and take x's dtype, as in `set`.

        >>> jnp.zeros(3).at[jnp.array([0, 0, 2])].add(1)
        Array([2., 0., 1.], dtype=float32)
        """
        return _changed(
            self, "add", scatter_add, np.add, values, indices_are_sorted, unique_indices, mode,
            out_sharding, wrap_negative_indices,
        )  # fmt: skip

    def subtract(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] -= values; where indices repeat, all are subtracted.

        >>> jnp.zeros(3).at[1:].subtract(jnp.array([1, 2]))
        Array([ 0., -1., -2.], dtype=float32)
        """
        return _changed(
            self, "subtract", scatter_sub, np.subtract, values, indices_are_sorted, unique_indices,
            mode, out_sharding, wrap_negative_indices,
        )  # fmt: skip

    def multiply(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] *= values; where indices repeat, by their product.

        >>> jnp.eye(2).at[:, -1].multiply(-3)
        Array([[ 1., -0.],
               [ 0., -3.]], dtype=float32)
        """
        return _changed(
            self, "multiply", scatter_mul, np.multiply, values, indices_are_sorted, unique_indices,
            mode, out_sharding, wrap_negative_indices,
        )  # fmt: skip

    mul = multiply

    def divide(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] /= values; where indices repeat, by their product.

        Integers become floats, as they do in `x / y`.

        >>> jnp.arange(3.).at[2].divide(4)
        Array([0. , 1. , 0.5], dtype=float32)
        """
        ones = IndexUpdateRef(full_like_aval(self.array.aval, 1), self.index)
        factors = _changed(
            ones, "divide", scatter_mul, np.multiply, values, indices_are_sorted, unique_indices,
            mode, out_sharding, wrap_negative_indices,
        )  # fmt: skip
        return ufuncs.true_divide(self.array, factors)

    def power(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] **= values; where indices repeat, by their product.

        >>> jnp.arange(4).at[2:].power(3)
        Array([ 0,  1,  8, 27], dtype=int32)
        """
        ones = IndexUpdateRef(full_like_aval(self.array.aval, 1), self.index)
        factors = _changed(
            ones, "power", scatter_mul, np.multiply, values, indices_are_sorted, unique_indices,
            mode, out_sharding, wrap_negative_indices,
        )  # fmt: skip
        return ufuncs.power(self.array, factors)

    def min(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] = minimum(x[index], values); nan wins.

        >>> jnp.arange(4).at[jnp.array([3, 3])].min(jnp.array([2, 1]))
        Array([0, 1, 2, 1], dtype=int32)
        """
        return _changed(
            self, "min", scatter_min, minimum, values, indices_are_sorted, unique_indices, mode,
            out_sharding, wrap_negative_indices,
        )  # fmt: skip

    def max(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] = maximum(x[index], values); nan wins.

        >>> jnp.arange(4).at[:2].max(5)
        Array([5, 5, 2, 3], dtype=int32)
        """
        return _changed(
            self, "max", scatter_max, maximum, values, indices_are_sorted, unique_indices, mode,
            out_sharding, wrap_negative_indices,
        )  # fmt: skip

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of x with x[index] = func(x[index]); where indices repeat, applied repeatedly.

        `func` maps a scalar of x's dtype to one; TypeError otherwise. Derivatives need indices
        that do not repeat: ints, slices, or unique_indices=True.

        >>> jnp.arange(4).at[2:].apply(lambda v: v * v)
        Array([0, 1, 4, 9], dtype=int32)
        """
        hints = Hints(
            indices_are_sorted, unique_indices, GatherScatterMode.from_any(mode),
            wrap_negative_indices,
        )  # fmt: skip
        return apply(self.array, self.index, func, hints)


def _changed(
    ref: IndexUpdateRef,
    name: str,
    op: Any,
    ufunc: Any,
    values: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Mode,
    out_sharding: Any,
    wrap: bool,
) -> Any:
    if guards.ever:
        guards.incoming(values)
    chosen = GatherScatterMode.from_any(mode)
    if wrap and out_sharding is None:  # in bounds, where NumPy answers, modes are one
        done = update_numpy(ref.array, ref.index, values, ufunc, name)
        if done is not None:
            return done
    _check_sharding(name, out_sharding)
    hints = Hints(indices_are_sorted, unique_indices, chosen, wrap)
    return update(ref.array, ref.index, values, op, name, hints)


def _check_sharding(name: str, out_sharding: Any) -> None:
    if out_sharding is not None:
        raise NotImplementedError(
            f"[at.{name}] expected out_sharding=None, got {out_sharding!r}: the result is placed "
            "as its operands are. Use primal.lax.with_sharding_constraint on it."
        )


def _fill(value: Any, x: Any) -> Any:
    if isinstance(value, Tracer):
        value = concrete_or_error(value, "item")
    return static_fill("at.get", value, x.aval.dtype)
