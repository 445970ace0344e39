"""Arrays from values and from nothing: array, zeros, full and their like."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from primal.base import dtypes, source
from primal.base.config import settings
from primal.base.later import Later
from primal.ir.avals import canonical_shape
from primal.ir.state import state
from primal.ir.trace import Array, Literal, literal, not_numeric
from primal.numpy.conversion import cast, from_anything, from_host, not_real, shared
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    DTypeLike,
    array_operand,
    check_arraylike,
    convert,
    operand,
    scalar_literal,
    to_shape,
    warn_of_parts,
    with_rank,
)
from primal.numpy.remembered import remembered, remembered_but_wide
from primal.ops import elementwise as ops
from primal.ops.elementwise.convert import number_as, whole_as
from primal.ops.spread import broadcast_in_dim
from primal.ops.types import iterates, static_int
from primal.runtime import devices, guards, watch
from primal.runtime.array import ArrayImpl
from primal.runtime.dlpack_codes import to_numpy
from primal.runtime.eager import as_array, root
from primal.runtime.refusals import in_words

Shape = Any  # an int or a sequence of ints


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape given as one integer or as a sequence; TypeError for traced or negative sizes."""
    if not isinstance(shape, tuple | list):
        shape = tuple(shape) if iterates(shape) else (shape,)
    try:
        return canonical_shape(shape)
    except ValueError as error:
        raise TypeError(
            f"{error} A shape must have every element be nonnegative, got {tuple(shape)}."
        ) from None


# With it come the transformations, a tenth of the time of `import primal`.
_placement = Later("primal.api.placement")
_bits = Later("primal.ops.bits")


def placed(x: Array, device: Any, out_sharding: Any = None) -> Array:
    """x where the user wants it; ValueError for what is no device, TypeError for no sharding."""
    if out_sharding is None:
        return x if device is None else _placement.device_put(x, device)
    try:
        return _placement.device_put(x, out_sharding)
    except ValueError as error:
        raise TypeError(str(error)) from None


# From values.


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array from scalars, (nested) sequences, NumPy arrays, arrays, buffers.

    Without `dtype` it is that of the promoted elements, at most 32 bits a part unless the 64-bit
    switch is on. Raises TypeError for what holds no numbers, ValueError for ragged sequences,
    OverflowError for Python integers that do not fit. Raises NotImplementedError for an order other
    than 'K' and 'C'. Copy, order and ndmin by position are deprecated.

    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    if args:
        if len(args) > 3:
            raise TypeError(
                f"[array] expected at most 5 arguments by position, got {2 + len(args)}."
            )
        warnings.warn(
            "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. "
            "Use keyword arguments instead.",
            DeprecationWarning,
            stacklevel=source.user_stacklevel(),
        )
        given: dict[str, Any] = {"copy": copy, "order": order, "ndmin": ndmin}
        given.update(zip(given, args, strict=False))
        copy, order, ndmin = given.values()
    if not (order is None or isinstance(order, str) and order in ("K", "C")):
        raise NotImplementedError(
            f"[array] expected the order 'K' or 'C', got {order!r}: Only implemented for order='C' "
            "or order='K'."
        )
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "array")
    if guards.ever:
        guards.incoming(object)
    if copy and isinstance(object, np.ndarray) and type(object) is not np.ndarray:
        object = np.asarray(object)  # A masked array's data too, as np.array gives them.
    out = from_anything(object, dtype)
    if watch.ever and watch.wanted(settings()) and out is not object and type(out) is ArrayImpl:
        if state.trace is root:
            watch.check_made(out)
    if copy and out is object:
        out = ops.copy(out)
    out = with_rank(out, ndmin if type(ndmin) is int else static_int("array ndmin", ndmin))
    return placed(out, device, out_sharding)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`array` that returns arrays of the right dtype as they are.

    NumPy arrays are copied, because they can change. With copy=False those of a canonical dtype
    in plain memory are shared on the CPU, and whoever writes to them changes the result; what must
    be converted is, as in JAX. On other devices host values raise ValueError then.

    >>> x = jnp.ones(2)
    >>> jnp.asarray(x) is x
    True
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "asarray")
    if copy is False and not isinstance(a, Array) and not hasattr(a, "__jax_array__"):
        if not devices.default_is_host() and device is out_sharding is None:
            raise ValueError(
                f"[asarray] expected an array of {devices.default()} with copy=False, got "
                f"{type(a)}: a copy is needed. Leave copy out, or pass copy=None."
            )
        a = shared(a, dtype)
    if type(a) is ArrayImpl and dtype is not None and a.aval.dtype.kind != "c":
        if copy is order is device is out_sharding is None:
            return astype(a, dtype)
    return array(
        a, dtype, copy=bool(copy), order=order or "K", device=device, out_sharding=out_sharding
    )


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """The values of an array in memory of their own.

    Raises NotImplementedError for orders other than 'K'.

    >>> jnp.copy(jnp.arange(2))
    Array([0, 1], dtype=int32)
    """
    check_arraylike("copy", a)
    if order not in (None, "K"):
        raise NotImplementedError(f"[copy] expected order='K', got {order!r}.")
    return array(a, copy=True)


@remembered
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """x in another dtype; the imaginary part of complex numbers is dropped.

    Floats become integers by truncation, anything becomes bool by x != 0.

    >>> jnp.astype(jnp.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    x = array_operand("astype", x)
    if dtype is None:
        dtype = dtypes.python_scalar_dtype(float)
    dtype = dtypes.check_user_dtype_supported(dtype, "astype")
    if x.aval.dtype.kind == "c" and dtype.kind != "c" and dtype != BOOL:
        warnings.warn(
            "Casting from complex to real dtypes will discard the imaginary part. Use "
            "primal.numpy.real or imag to take a part.",
            DeprecationWarning,
            stacklevel=source.user_stacklevel(),
        )
    out = cast(x, dtype)
    return placed(ops.copy(out) if copy and out is x else out, device)


# Filled arrays.


def filled(shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
    """An array of one Python scalar; of keys, whose words all are it."""
    if isinstance(dtype, dtypes.KeyType):
        words = filled((*shape, _bits.word_count(dtype.impl)), value, dtypes.uint32)
        return _bits.random_wrap(words, impl=dtype.impl)
    fill = scalar_literal(value, dtype, False)
    return broadcast_in_dim(fill, shape=shape, broadcast_dimensions=())


@remembered
def zeros(
    shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of zeros; float32 by default.

    Raises TypeError for shapes that are not static integers.

    >>> jnp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    dtype = dtypes.check_user_dtype_supported(float if dtype is None else dtype, "zeros")
    return placed(filled(as_shape(shape), 0, dtype), device, out_sharding)


@remembered
def ones(
    shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of ones; float32 by default.

    >>> jnp.ones(3, dtype=int)
    Array([1, 1, 1], dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(float if dtype is None else dtype, "ones")
    return placed(filled(as_shape(shape), 1, dtype), device, out_sharding)


@remembered
def empty(
    shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """The same as `zeros`, of the same shape and dtype: there is no uninitialised memory here.

    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    dtype = dtypes.check_user_dtype_supported(float if dtype is None else dtype, "empty")
    return placed(filled(as_shape(shape), 0, dtype), device, out_sharding)


@remembered_but_wide
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with a value, which may be an array that broadcasts to the shape.

    >>> jnp.full((2, 2), jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if guards.ever:
        guards.incoming(fill_value)
    if dtype is None:
        x = operand("full", fill_value)
    else:
        dtype = dtypes.check_user_dtype_supported(dtype, "full")
        x = _converted_fill("full", fill_value, dtype)
    return placed(_broadcast_fill("full", x, as_shape(shape)), device, out_sharding)


def _converted_fill(name: str, value: Any, dtype: Any, position: int = 0) -> Any:
    """A fill value in the dtype asked for; whole numbers wrap, from their own digits."""
    whole = whole_as(value, dtype)
    if whole is not None:
        return as_array(whole) if whole.ndim else literal(whole[()], dtype, False)
    x = operand(name, value, position)
    if type(value) is complex and dtype.kind not in "cb":
        raise not_real(dtype)
    if type(x) is Literal and x.aval.dtype.kind != "c":
        return literal(number_as(value if type(value) is float else x.val, dtype), dtype, False)
    warn_of_parts(x.aval.dtype, dtype)
    return cast(x, dtype)


def _broadcast_fill(name: str, x: Any, shape: tuple[int, ...]) -> Array:
    have = x.aval.shape
    tail = shape[len(shape) - len(have):] if have else ()
    if len(have) > len(shape) or any(n not in (1, m) for n, m in zip(have, tail, strict=True)):
        raise ValueError(
            f"[{name}] Incompatible shapes for broadcasting: expected a fill value that broadcasts "
            f"to {shape}, got shape {have}."
        )
    return to_shape(x, shape)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[tuple[int, ...], Any, bool]:
    """(shape, dtype, weak) of the result of a *_like function."""
    if hasattr(a, "shape") and hasattr(a, "dtype") and not isinstance(a, Array):
        have, own, weak = tuple(a.shape), dtypes.canonicalize_dtype(a.dtype, True), False
        if not (own in dtypes.KIND or isinstance(own, dtypes.KeyType) or own == dtypes.float0):
            raise not_numeric(a, own)
    else:
        aval = operand(name, a).aval
        have, own, weak = aval.shape, aval.dtype, aval.weak_type
    if dtype is not None:
        own, weak = dtypes.check_user_dtype_supported(dtype, name), False
    return have if shape is None else as_shape(shape), own, weak


def _filled_like(name: str, a: Any, value: Any, dtype: Any, shape: Any) -> Array:
    size, dtype, weak = _like(name, a, dtype, shape)
    if isinstance(dtype, dtypes.KeyType):
        return filled(size, value, dtype)
    return broadcast_in_dim(literal(value, dtype, weak), shape=size, broadcast_dimensions=())


@remembered
def zeros_like(
    a: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Zeros with the shape and dtype of `a`, an array or anything with those two attributes.

    >>> jnp.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return placed(_filled_like("zeros_like", a, 0, dtype, shape), device, out_sharding)


@remembered
def ones_like(
    a: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Ones with the shape and dtype of `a`.

    >>> jnp.ones_like(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return placed(_filled_like("ones_like", a, 1, dtype, shape), device, out_sharding)


@remembered
def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None
) -> Array:
    """The same as `zeros_like`.

    The same shape and dtype, too.

    >>> jnp.empty_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return placed(_filled_like("empty_like", prototype, 0, dtype, shape), device)


@remembered_but_wide
def full_like(
    a: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *,
    device: Any = None, out_sharding: Any = None,
) -> Array:
    """An array of one value with the shape and dtype of `a`.

    >>> jnp.full_like(jnp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    if guards.ever:
        guards.incoming(fill_value)
    size, dtype, weak = _like("full_like", a, dtype, shape)
    x = _converted_fill("full_like", fill_value, dtype, 1)
    if not x.aval.shape:
        x = convert(x, dtype, weak)
    return placed(_broadcast_fill("full_like", x, size), device, out_sharding)


# From other memory.


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """The array of an object with the DLPack protocol.

    The memory is copied, since its owner may write to it. TypeError for other objects, traced
    arrays too, which have no memory.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, ArrayImpl):
        return placed(ops.copy(x) if copy else x, device)
    if isinstance(x, Array):
        raise TypeError(
            "[from_dlpack] expected an array in memory, got a traced array: its memory, where it "
            "has any, is not known to the transformation. Use jnp.asarray or jnp.array."
        )
    return placed(from_host(to_numpy(x), None), device)


@in_words
def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """The numbers in a buffer of bytes.

    >>> jnp.frombuffer(b"ab", dtype=jnp.uint8)
    Array([97, 98], dtype=uint8)
    """
    return from_host(np.frombuffer(buffer, dtypes.as_dtype(dtype), count, offset), None)
