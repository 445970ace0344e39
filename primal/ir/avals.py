"""Abstract values: what is known of an array while tracing, and nothing else."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from primal.base import dtypes


class Aval:
    """Shape, dtype, weak type and sharding of an array; interned, so equality is identity.

    Interning makes every cache key of the library (type rules, eager dispatch, jit signatures)
    a tuple of pointers. The table is never emptied: an entry costs about 200 bytes, and avals are
    held by cached programs anyway.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding", "ndim", "size", "mlir", "__weakref__")

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    sharding: Any
    ndim: int
    size: int
    mlir: str | None

    def __new__(
        cls, shape: tuple[int, ...], dtype: Any, weak_type: bool = False, sharding: Any = None
    ) -> Aval:
        key = (shape, dtype, weak_type, sharding)
        found = _interned.get(key)
        if found is not None:
            return found
        return _intern(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return make_aval, (self.shape, self.dtype, self.weak_type, self.sharding)

    def strong(self) -> Aval:
        """The same aval without weak type."""
        return Aval(self.shape, self.dtype, False, self.sharding) if self.weak_type else self

    def strip_weak_type(self) -> Aval:
        """`strong` under the name that JAX's users call."""
        return self.strong()

    def with_shape(self, shape: tuple[int, ...]) -> Aval:
        """The same dtype and weak type with another shape."""
        return Aval(shape, self.dtype, self.weak_type)

    def with_dtype(self, dtype: Any, weak_type: bool = False) -> Aval:
        """The same shape with another dtype."""
        return Aval(self.shape, dtype, weak_type, self.sharding)

    def tangent(self) -> Aval:
        """The aval of a tangent at this value: float0 where no derivative exists."""
        tangent_dtype = dtypes.to_tangent_dtype(self.dtype)
        if tangent_dtype == self.dtype:
            return self
        return Aval(self.shape, tangent_dtype)

    def update(self, **fields: Any) -> Aval:
        """The aval with other fields: shape, dtype, weak_type, sharding."""
        old = {name: getattr(self, name) for name in ("shape", "dtype", "weak_type", "sharding")}
        return make_aval(**{**old, **fields})

    def str_short(self, short_dtypes: bool = False) -> str:
        """The dtype and the shape, as in `float32[2,3]` or, with `short_dtypes`, `f32[2,3]`."""
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        return f"{name}[{','.join(map(str, self.shape))}]"

    def short(self) -> str:
        """The form used in jaxprs, as in `f32[2,3]`."""
        return self.str_short(short_dtypes=True)

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"


class Typed:
    """What has an aval and answers for it."""

    __slots__ = ()

    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to others in promotion."""
        return self.aval.weak_type


_interned: dict[tuple[Any, ...], Aval] = {}


def _intern(key: tuple[Any, ...]) -> Aval:
    shape, dtype, weak_type, sharding = key
    shape = canonical_shape(shape)
    aval = object.__new__(Aval)
    aval.shape, aval.weak_type, aval.sharding = shape, bool(weak_type), sharding
    aval.dtype = dtype if isinstance(dtype, dtypes.KeyType) else dtypes.as_dtype(dtype)
    aval.ndim = len(shape)
    size = 1
    for n in shape:
        size *= n
    aval.size = size
    aval.mlir = None
    return _interned.setdefault((shape, aval.dtype, aval.weak_type, sharding), aval)


def make_aval(
    shape: Iterable[Any], dtype: Any, weak_type: bool = False, sharding: Any = None
) -> Aval:
    """An aval from anything shape-like and dtype-like, checked and canonicalised."""
    dtype = dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True)
    return Aval(canonical_shape(shape), dtype, bool(weak_type), sharding)


def _remedy(shape: Any) -> str:
    """What to do about a dimension without a value, and where it comes from if it is traced."""
    for n in shape if isinstance(shape, list | tuple) else [shape]:
        if hasattr(n, "origin"):
            return (
                f"{n.origin()} Sizes are known where they come from x.shape, from Python or from "
                "NumPy; each value of an argument is traced anew if it is static, as in "
                "primal.jit(f, static_argnums=0).".lstrip()
            )
    return (
        "Compute them with numpy or Python integers, which are static under jit, not with "
        "primal.numpy."
    )


def canonical_shape(shape: Iterable[Any], context: str = "shape") -> tuple[int, ...]:
    """The shape as a tuple of non-negative ints; a TypeError says what is not one."""
    try:
        dims = tuple([operator.index(n) for n in shape])
    except TypeError:
        raise TypeError(
            f"[{context}] expected whole numbers that are known while tracing, got {shape!r}: "
            f"Shapes must be 1D sequences of concrete values of integer type. {_remedy(shape)}"
        ) from None
    for n in dims:
        if n < 0:
            raise TypeError(
                f"[{context}] expected non-negative dimensions, got {dims}: shape must have every "
                "element be nonnegative."
            )
    return dims
