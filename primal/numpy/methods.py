"""Methods and properties of arrays, installed once on the class that arrays and tracers share.

Methods are the functions of the same name: `x.sum(axis=0)` is `sum(x, axis=0)`. Installing them on
the common base keeps the classes of `ir` and `runtime` free of the layers above them. Those whose
modules few programs need are found with their first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.later import Later
from primal.ir.trace import Array
from primal.numpy import (
    contraction,
    creation,
    elementary,
    operators,
    promotion,
    reductions,
    shapes,
    ufuncs,
)
from primal.numpy.indexing import getitem
from primal.numpy.promotion import BOOL
from primal.numpy.remembered import remembered_as
from primal.ops import elementwise as ops
from primal.ops.choose import bitcast_convert_type
from primal.ops.types import iterates

choosing = Later("primal.numpy.choosing")
cumulative = Later("primal.numpy.cumulative")
diagonals = Later("primal.numpy.diagonals")
joining = Later("primal.numpy.joining")
nonzeros = Later("primal.numpy.nonzeros")
sorting = Later("primal.numpy.sorting")
taking = Later("primal.numpy.taking")
updates = Later("primal.numpy.at")


class First:
    """An attribute of a class that is made with its first use, and then takes this one's place."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __set_name__(self, cls: Any, name: str) -> None:
        self.cls, self.name = cls, name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        setattr(self.cls, self.name, self.make())
        return getattr(owner if instance is None else instance, self.name)


# Functions that are methods as they stand, with the array as first argument.
METHODS: dict[str, Any] = {
    "all": reductions.all,
    "any": reductions.any,
    "argmax": First(lambda: sorting.argmax),
    "argmin": First(lambda: sorting.argmin),
    "argpartition": First(lambda: sorting.argpartition),
    "argsort": First(lambda: sorting.argsort),
    "choose": First(lambda: choosing.choose),
    "clip": First(lambda: choosing.clip),
    "conj": elementary.conjugate,
    "conjugate": elementary.conjugate,
    "cumprod": First(lambda: cumulative.cumprod),
    "cumsum": First(lambda: cumulative.cumsum),
    "diagonal": First(lambda: diagonals.diagonal),
    "dot": contraction.dot,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "nonzero": First(lambda: nonzeros.nonzero),
    "partition": First(lambda: sorting.partition),
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": shapes.ravel,
    "repeat": First(lambda: joining.repeat),
    "round": First(lambda: choosing.round),
    "searchsorted": First(lambda: sorting.searchsorted),
    "sort": First(lambda: sorting.sort),
    "squeeze": shapes.squeeze,
    "std": reductions.std,
    "sum": reductions.sum,
    "swapaxes": shapes.swapaxes,
    "take": First(lambda: taking.take),
    "trace": First(lambda: diagonals.trace),
    "var": reductions.var,
}


def _reshape(self: Array, *args: Any, order: str = "C", **kwargs: Any) -> Array:
    """The elements in another shape, given as one tuple or as several sizes."""
    shape = args[0] if len(args) == 1 else args
    return shapes.reshape(self, shape, order, **kwargs)


def _transpose(self: Array, *args: Any) -> Array:
    """The axes in another order, given as one tuple or as several axes; reversed by default."""
    if not args or args == (None,):
        return shapes.transpose(self)
    return shapes.transpose(self, args[0] if len(args) == 1 and iterates(args[0]) else args)


def _astype(self: Array, dtype: Any, copy: bool = False, device: Any = None) -> Array:
    """The elements in another dtype."""
    return creation.astype(self, dtype, copy=copy, device=device)


def _contains(self: Array, item: Any) -> bool:
    value = promotion.operand("Array.__contains__", item)
    if self.ndim != 1:
        raise ValueError(
            "Array.__contains__: search array must be one-dimensional, got "
            f"arr.shape={self.shape}: (x == value).any() asks all elements."
        )
    if value.aval.ndim:
        raise ValueError(
            "Array.__contains__: query value must be a scalar, got "
            f"query.shape={value.aval.shape}."
        )
    return bool(reductions.any(ufuncs.equal(self, item)))


def _compress(self: Array, condition: Any, axis: int | None = None, **kwargs: Any) -> Array:
    """The slices along an axis where a condition holds."""
    return taking.compress(condition, self, axis, **kwargs)


def _copy(self: Array) -> Array:
    """The values in memory of their own."""
    return ops.copy(self)


def _flatten(self: Array, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one dimension."""
    return shapes.ravel(self, order, out_sharding=out_sharding)


def _set_item(self: Array, index: Any, value: Any) -> None:
    raise TypeError(
        f"'{type(self)}' object does not support item assignment. Arrays are immutable. Instead of "
        "``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method: add, multiply, min, "
        "max and so on."
    )


def _del_item(self: Array, index: Any) -> None:
    raise TypeError(
        f"'{type(self)}' object does not support item deletion. Arrays are immutable: use "
        "primal.numpy.delete, which returns a new array."
    )


def _in_place(name: str) -> property:
    def refuse(self: Array) -> Any:
        raise NotImplementedError(
            f"Arrays do not implement the arr.{name} property: consider arr.flatten() instead."
        )

    return property(refuse, doc=f"Not offered: `{name}` of NumPy gives a writable view.")


_PARTS = frozenset(map(np.dtype, "bhiBHIefd"))


def _view_of_parts(x: Any, dtype: Any = None, type: None = None) -> Any:
    """Of complex numbers and booleans the memory itself, which the operations would write anew."""
    target = None if dtype is None else np.dtype(dtype)
    if x.dtype == BOOL and target in (dtypes.uint8, dtypes.int8):
        return lambda host: host.view(target)
    if x.dtype.kind != "c" or target not in _PARTS or target.itemsize > x.dtype.itemsize // 2:
        return None
    return lambda host: np.ascontiguousarray(host).view(target)


@remembered_as(_view_of_parts)
def _view(self: Array, dtype: Any = None, type: None = None) -> Array:
    """The same bits as another dtype; a narrower or wider one changes the last axis."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    target = dtypes.check_user_dtype_supported(dtype, "view")
    old, new = _bit_count(self.dtype), _bit_count(target)
    if self.ndim == 0 and old != new:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if self.ndim and self.shape[-1] * old % new:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in "
            f"bytes of the last axis of the array, got shape {self.shape} of {self.dtype.name}."
        )
    row = shapes.reshape(self, (1,)) if self.ndim == 0 else self
    out = _as_dtype(_regrouped(_as_numbers(row), _number_dtype(target)), target)
    return shapes.reshape(out, ()) if self.ndim == 0 else out


def _bit_count(dtype: Any) -> int:
    return 8 if dtype == BOOL else dtypes.itemsize_bits(dtype)


def _number_dtype(dtype: Any) -> Any:
    """The dtype of real numbers in which `_as_numbers` writes a dtype."""
    return dtypes.uint8 if dtype == BOOL else dtypes.to_real_dtype(dtype)


def _as_numbers(x: Array) -> Array:
    """Booleans as bytes, complex numbers as twice as many real ones along the last axis."""
    if x.dtype == BOOL:
        return x.astype(dtypes.uint8)
    if x.dtype.kind != "c":
        return x
    pairs = joining.stack([elementary.real(x), elementary.imag(x)], -1)
    return shapes.reshape(pairs, (*x.shape[:-1], 2 * x.shape[-1]))


def _as_dtype(x: Array, dtype: Any) -> Array:
    """`_as_numbers` undone."""
    if dtype == BOOL:
        return x != 0
    return ops.complex(x[..., ::2], x[..., 1::2]) if dtype.kind == "c" else x


def _regrouped(x: Array, target: Any) -> Array:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(target)
    if old < new:
        x = shapes.reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
    out = x if x.dtype == target else bitcast_convert_type(x, new_dtype=target)
    return shapes.reshape(out, (*x.shape[:-1], x.shape[-1] * (old // new))) if old > new else out


def _byteswap(self: Array) -> Array:
    """The numbers with their bytes in the opposite order; of complex ones each part."""
    if self.dtype.kind == "c":
        return ops.complex(_byteswap(elementary.real(self)), _byteswap(elementary.imag(self)))
    if _bit_count(self.dtype) <= 8:
        return self
    parts = bitcast_convert_type(self, new_dtype=dtypes.uint8)
    return bitcast_convert_type(shapes.flip(parts, -1), new_dtype=self.dtype)


def _to_device(self: Array, device: Any, *, stream: Any = None) -> Array:
    """The array on another device."""
    return creation.placed(self, device)


PROPERTIES: dict[str, Any] = {
    "T": property(lambda self: shapes.transpose(self), doc="The axes reversed."),
    "mT": property(lambda self: shapes.matrix_transpose(self), doc="The last two axes swapped."),
    "real": property(lambda self: elementary.real(self), doc="The real part."),
    "imag": property(lambda self: elementary.imag(self), doc="The imaginary part."),
    "at": First(
        lambda: property(
            updates.IndexUpdateHelper, doc="Updates of parts: `x.at[index].set(y)` and so on."
        )
    ),
    "itemsize": property(lambda self: _itemsize(self), doc="The bytes of one element."),
    "nbytes": property(lambda self: self.aval.size * _itemsize(self), doc="The bytes of all."),
    "flat": _in_place("flat"),
}


def _itemsize(x: Array) -> int:
    return dtypes.physical_dtype(x.aval.dtype).itemsize


def install_methods(cls: Any, namespace: Any) -> None:
    """Give the class of arrays its operators, methods and properties.

    `namespace` is the module that `__array_namespace__` answers, as the array API asks.
    """

    def array_namespace(self: Any, *, api_version: str | None = None) -> Any:
        if api_version not in (None, "2024.12"):
            raise ValueError(f"api_version={api_version!r} is not available; '2024.12' is.")
        return namespace

    operators.install(cls)
    own = {
        "__contains__": _contains,
        "__getitem__": getitem,
        "__setitem__": _set_item,
        "__delitem__": _del_item,
        "__array_namespace__": array_namespace,
        "reshape": _reshape,
        "transpose": _transpose,
        "astype": _astype,
        "byteswap": _byteswap,
        "compress": _compress,
        "copy": _copy,
        "flatten": _flatten,
        "to_device": _to_device,
        "view": _view,
    }
    for name, method in {**METHODS, **own, **PROPERTIES}.items():
        setattr(cls, name, method)
        if type(method) is First:
            method.__set_name__(cls, name)
