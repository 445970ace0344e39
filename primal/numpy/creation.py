"""Arrays from values and from nothing: array, zeros, arange, linspace and their like."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes, source
from primal.base.later import Later
from primal.base.native import extension
from primal.ir.avals import Aval, canonical_shape
from primal.ir.evaluate import quietly
from primal.ir.trace import PYTHON_SCALARS, Array, Literal, Tracer, literal, not_numeric
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    DTypeLike,
    array_operand,
    check_arraylike,
    convert,
    from_literal,
    number_dtype,
    operand,
    promote_dtypes,
    promoted_dtype,
    scalar_literal,
    to_shape,
    warn_of_parts,
    with_rank,
)
from primal.numpy.remembered import remembered
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.spread import broadcast_in_dim
from primal.runtime import guards
from primal.runtime.array import ArrayImpl, from_numpy
from primal.runtime.dlpack_codes import to_numpy
from primal.runtime.eager import as_array

Shape = Any  # an int or a sequence of ints


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape given as one integer or as a sequence; TypeError for traced or negative sizes."""
    if not isinstance(shape, tuple | list):
        single = not hasattr(shape, "__iter__") or getattr(shape, "ndim", None) == 0
        shape = (shape,) if single else tuple(shape)
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
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array from scalars, (nested) sequences, NumPy arrays, arrays, buffers.

    Without `dtype` it is that of the promoted elements, at most 32 bits a part unless the 64-bit
    switch is on. Raises TypeError for what holds no numbers, ValueError for ragged sequences,
    OverflowError for Python integers that do not fit. Raises NotImplementedError for an order other
    than 'K' and 'C'.

    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    if order not in ("K", "C", None):
        raise NotImplementedError("Only implemented for order='C' or order='K'.")
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "array")
    if guards.ever:
        guards.incoming(object)
    out = _from_anything(object, dtype)
    if copy and out is object:
        out = ops.copy(out)
    out = with_rank(out, ndmin)
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

    NumPy arrays are copied, because they can change. Raises ValueError with copy=False where a
    copy cannot be avoided.

    >>> x = jnp.ones(2)
    >>> jnp.asarray(x) is x
    True
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "asarray")
    if copy is False:
        needs = not isinstance(a, Array) or (dtype is not None and a.dtype != dtype)
        if needs and not hasattr(a, "__jax_array__"):
            raise ValueError(
                "[asarray] expected an array of the dtype asked for with copy=False, got "
                f"{type(a)}: a copy is needed. Leave copy out, or pass copy=None."
            )
    if type(a) is ArrayImpl and dtype is not None and a.aval.dtype.kind != "c":
        if copy is order is device is out_sharding is None:
            return astype(a, dtype)
    return array(a, dtype, bool(copy), order or "K", 0, device=device, out_sharding=out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """The values of an array in memory of their own.

    >>> jnp.copy(jnp.arange(2))
    Array([0, 1], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order or "K")


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


def cast(x: Any, dtype: Any) -> Any:
    """x in another dtype, its own if None: complex to bool is x != 0; not weak any more."""
    if dtype is None:
        return convert(x, x.aval.dtype)
    if dtype == BOOL and x.aval.dtype.kind == "c":
        return ops.ne(x, literal(0, x.aval.dtype, False))
    return convert(x, dtype)


def _from_anything(value: Any, dtype: Any) -> Array:
    """The array of a value; the value itself where it is an array of that dtype already."""
    if isinstance(value, Array):
        if dtype is None:
            return value
        warn_of_parts(value.aval.dtype, dtype)
        return cast(value, dtype)
    kind = type(value)
    if kind in PYTHON_SCALARS or kind is Literal:
        x = operand("array", value) if dtype is None else convert_scalar(value, dtype)
        return from_literal(x)
    if kind in (list, tuple):
        return _from_sequence(value, dtype)
    if value is None:
        raise ValueError("None is not a valid value for jnp.array")
    converter = getattr(value, "__jax_array__", None)
    if converter is not None:
        return _from_anything(converter(), dtype)
    if not isinstance(value, np.ndarray | np.generic):
        if isinstance(value, bool | int | float | complex):
            return from_literal(convert(operand("array", value), *_target(value, dtype)))
        value = np.asarray(value)
    return _from_host(value, dtype)


def _target(value: Any, dtype: Any) -> tuple[Any, bool]:
    if dtype is not None:
        return dtype, False
    return dtypes.python_scalar_dtype(value), not isinstance(value, bool)


def convert_scalar(value: Any, dtype: Any) -> Literal:
    """A Python scalar in the dtype asked for, from its own digits."""
    if type(value) is Literal:
        return convert(value, dtype)
    if type(value) is complex and dtype.kind != "c" and dtype != BOOL:
        raise _not_real(dtype)
    if type(value) is float and dtypes.issubdtype(dtype, np.integer):
        _check_finite(value, dtype)
    if dtypes.issubdtype(dtype, np.integer) and type(value) is not int:
        return convert(operand("array", value), dtype)
    if type(value) is int and dtypes.issubdtype(dtype, np.integer):
        if dtype not in _PLAIN:
            value = _narrowed(value, dtype)
        info = dtypes.iinfo(dtype)
        if not int(info.min) <= value <= int(info.max):
            raise OverflowError(f"Python integer {value} out of bounds for {dtype.name}")
    return literal(value, dtype, False)


def _check_finite(value: float, dtype: Any) -> None:
    """ValueError for nan, OverflowError for an infinity: Python's own of `int(value)`."""
    try:
        int(value)
    except (ValueError, OverflowError) as e:
        text = f"[array] expected whole numbers for {dtype.name}, got {value}: {e}."
        raise type(e)(text) from None


def _narrowed(value: int, dtype: Any) -> int:
    """An integer modulo the width of a dtype of fewer than 8 bits: these wrap, as in ml_dtypes."""
    width = dtypes.itemsize_bits(dtype)
    value %= 1 << width
    return value - (1 << width) if value > int(dtypes.iinfo(dtype).max) else value


def _from_host(value: Any, dtype: Any) -> Array:
    if dtype is not None and value.dtype.kind in "SU":
        try:
            value = value.astype(dtype)
        except ValueError as e:
            raise ValueError(f"[array] expected numbers, got {value!r}: {e}.") from None
    canonical = number_dtype(value)
    if dtype is None or dtype == canonical:
        return as_array(value)
    if canonical.kind == "c" and dtype.kind != "c":
        warn_of_parts(canonical, dtype)
        value = value != 0 if dtype == BOOL else value.real
    with np.errstate(all="ignore"):
        return from_numpy(np.array(value).astype(dtype, order="C"), Aval(value.shape, dtype))


_SEQUENCES = {list, tuple}
_PLAIN = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))


def _gather_leaf_types(value: Any, found: set[type]) -> None:
    kinds = set(map(type, value))
    for _ in range(64):  # NumPy's most dimensions
        if not kinds or not kinds <= _SEQUENCES:
            break
        value = list(itertools.chain.from_iterable(value))
        kinds = set(map(type, value))
    if not kinds <= PYTHON_SCALARS:
        for item in value:
            if type(item) in (list, tuple):
                _gather_leaf_types(item, found)
        kinds -= {list, tuple}
    found |= kinds


def _by_passes(value: Any) -> set[type]:
    found: set[type] = set()
    _gather_leaf_types(value, found)
    return found


_leaf_types: Callable[[Any], set[type]] = (
    _by_passes if extension is None else extension.leaf_types
)
"""The types of what nested lists and tuples hold."""


def _from_sequence(value: Sequence[Any], dtype: Any) -> Array:
    found = _leaf_types(value)
    if found <= PYTHON_SCALARS:
        return _from_python(value, dtype, found)
    aval = value[0].aval if found == {ArrayImpl} and type(value[0]) is ArrayImpl else None
    if dtype is None and aval is not None and aval.dtype in _PLAIN and not aval.weak_type:
        hosts = [x.host for x in value if type(x) is ArrayImpl and x.aval is aval]
        if len(hosts) == len(value) and all(h is not None for h in hosts):
            return from_numpy(np.array(hosts), Aval((len(hosts), *aval.shape), aval.dtype))
    if all(issubclass(t, np.ndarray | np.generic | bool | int | float | complex | ArrayImpl)
           for t in found):
        return _from_leaves(value, dtype)
    if any(issubclass(t, Tracer) or hasattr(t, "__jax_array__") for t in found):
        return cast(_stacked(value), dtype)
    for t in found:
        if t is type(None):
            raise ValueError("None is not a valid value for jnp.array")
    return _from_host(np.asarray(value), dtype)


def _from_python(value: Sequence[Any], dtype: Any, found: set[type]) -> Array:
    if dtype is None and len(found) == 1:
        (kind,) = found
        target = dtypes.python_scalar_dtype(kind)
        try:
            host = quietly(np.array, (value, target), {})
        except (OverflowError, ValueError):
            pass  # what is wrong is said below
        else:
            return from_numpy(host, Aval(host.shape, target))
    host = np.array(value)
    if not found:
        host = host.astype(np.float32)
    kind = max(found, key=(bool, int, float, complex).index, default=float)
    target = dtypes.python_scalar_dtype(kind) if dtype is None else dtype
    # Integers that no dtype of NumPy's holds are objects, or floats where some are negative.
    if host.dtype.kind == "O" or (host.dtype.kind == "f" and kind is int):
        if dtypes.issubdtype(target, np.integer):
            raise _int_overflow(value, target)
        host = host.astype(np.complex128 if complex in found else np.float64)
    if dtypes.issubdtype(target, np.integer) and kind is float:
        for x in host[~np.isfinite(host)][:1].tolist():
            _check_finite(x, target)
    if target in _PLAIN and host.dtype.kind in "iuO" and host.size and target.kind in "iu":
        info = dtypes.iinfo(target)
        if int(host.min()) < int(info.min) or int(host.max()) > int(info.max):
            raise _int_overflow(host, target)
    if host.dtype.kind == "c" and target.kind != "c" and target != BOOL:
        raise _not_real(target)
    with np.errstate(all="ignore"):
        return from_numpy(host.astype(target), Aval(host.shape, target))


def _not_real(dtype: Any) -> TypeError:
    return TypeError(
        f"[array] expected real numbers for dtype {dtype.name}, got complex ones. Take the real "
        "part first."
    )


def _int_overflow(values: Any, dtype: Any) -> OverflowError:
    info = dtypes.iinfo(dtype)
    flat = [int(v) for v in np.ravel(np.asarray(values, object))]
    first = next(v for v in flat if not int(info.min) <= v <= int(info.max))
    return OverflowError(f"Python integer {first} out of bounds for {dtype.name}")


def _from_leaves(value: Any, dtype: Any) -> Array:
    """From nested sequences of concrete arrays, NumPy values and scalars."""
    leaves: list[Any] = []

    def hosts(v: Any) -> Any:
        if type(v) in (list, tuple):
            return [hosts(item) for item in v]
        x = operand("array", v)
        leaves.append(x)
        return np.asarray(x.val) if type(x) is Literal else x.numpy()

    nested = hosts(value)
    if any(isinstance(x.aval.dtype, dtypes.KeyType) for x in leaves):
        return cast(_stacked(value), dtype)
    target = promoted_dtype(leaves)[0] if dtype is None else dtype
    shapes = {np.shape(h) for h in nested} if all(type(h) is np.ndarray for h in nested) else ()
    with np.errstate(all="ignore"):
        if len(shapes) == 1:
            host = np.stack([np.asarray(h).astype(target) for h in nested])
        elif shapes:
            raise TypeError(
                "Cannot concatenate arrays with different shapes: got "
                f"{', '.join(map(str, sorted(shapes)))}."
            )
        else:
            host = np.array(nested)
            if host.dtype == object:
                raise not_numeric(value, host.dtype)
            host = host.astype(target)
    return from_numpy(host, Aval(host.shape, target))


def _stacked(value: Any) -> Array:
    """From nested sequences with traced leaves: a concatenation of each level."""
    items = [
        _stacked(v) if type(v) in (list, tuple) and v else _leaf(v) for v in value
    ]
    items = promote_dtypes("array", *items)
    first = items[0].aval.shape
    for item in items:
        if item.aval.shape != first:
            raise ValueError(
                "setting an array element with a sequence. The requested array has an "
                f"inhomogeneous shape: elements have shapes {first} and {item.aval.shape}."
            )
    grown = [with_rank(x, len(first) + 1) for x in items]
    return shape_ops.concatenate(*grown, dimension=0)


def _leaf(v: Any) -> Any:
    return operand("array", np.asarray(v, np.float32) if type(v) in (list, tuple) else v)


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


@remembered
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
    if type(value) is int:
        return literal(quietly(np.asarray(value).astype, (dtype,), {})[()], dtype, False)
    x = operand(name, value, position)
    if type(x) is Literal and x.aval.dtype.kind != "c":
        own = value if type(value) is float else np.asarray(x.val).astype(dtype)[()]
        return literal(own, dtype, False)
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
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The same as `zeros_like`.

    The same shape and dtype, too.

    >>> jnp.empty_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return placed(_filled_like("empty_like", prototype, 0, dtype, shape), device, out_sharding)


@remembered
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

    The memory is copied, since its owner may write to it.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, Array):
        return placed(ops.copy(x) if copy else x, device)
    return placed(_from_host(to_numpy(x), None), device)


def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """The numbers in a buffer of bytes.

    >>> jnp.frombuffer(b"ab", dtype=jnp.uint8)
    Array([97, 98], dtype=uint8)
    """
    return _from_host(np.frombuffer(buffer, dtypes.as_dtype(dtype), count, offset), None)
