"""Values of all kinds as arrays: scalars, nested sequences, what NumPy makes of the rest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.dtype_table import KIND
from primal.base.limits import iinfo
from primal.base.native import BFLOAT16, extension
from primal.ir.avals import Aval
from primal.ir.evaluate import quietly
from primal.ir.trace import (
    PYTHON_SCALARS,
    Array,
    Literal,
    Tracer,
    aval_of,
    check_range,
    literal,
)
from primal.numpy.promotion import (
    BOOL,
    convert,
    from_literal,
    number_dtype,
    operand,
    promote_dtypes,
    promoted_dtype,
    warn_of_parts,
    with_rank,
)
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.runtime import devices
from primal.runtime.array import ArrayImpl, from_numpy
from primal.runtime.eager import as_array
from primal.runtime.refusals import shown

NO_ARRAY = "[array] expected numbers, got None: None is not a valid value for jnp.array"


def cast(x: Any, dtype: Any) -> Any:
    """x in another dtype, its own if None: complex to bool is x != 0; not weak any more."""
    if dtype is None:
        return convert(x, x.aval.dtype)
    if dtype == BOOL and x.aval.dtype.kind == "c":
        return ops.ne(x, literal(0, x.aval.dtype, False))
    return convert(x, dtype)


def from_anything(value: Any, dtype: Any) -> Array:
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
        raise ValueError(NO_ARRAY)
    converter = getattr(value, "__jax_array__", None)
    if converter is not None:
        return from_anything(converter(), dtype)
    if not isinstance(value, np.ndarray | np.generic):
        if isinstance(value, bool | int | float | complex):
            return from_literal(convert(operand("array", value), *_target(value, dtype)))
        value = np.asarray(value)
    if dtype is not None and value.dtype.byteorder not in "=|":
        value = value.astype(value.dtype.newbyteorder("="))
    return from_host(value, dtype)


def _target(value: Any, dtype: Any) -> tuple[Any, bool]:
    if dtype is not None:
        return dtype, False
    return dtypes.python_scalar_dtype(value), not isinstance(value, bool)


def convert_scalar(value: Any, dtype: Any) -> Literal:
    """A Python scalar in the dtype asked for, from its own digits."""
    if type(value) is Literal:
        return convert(value, dtype)
    if type(value) is complex and dtype.kind != "c" and dtype != BOOL:
        raise not_real(dtype)
    if type(value) is float and dtypes.issubdtype(dtype, np.integer):
        _check_finite(value, dtype)
        value = int(value)
    if dtypes.issubdtype(dtype, np.integer) and type(value) is not int:
        return convert(operand("array", value), dtype)
    if type(value) is int and dtypes.issubdtype(dtype, np.integer):
        if dtype not in _PLAIN:
            value = _narrowed(value, dtype)
        check_range(value, dtype)
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
    return value - (1 << width) if value > int(iinfo(dtype).max) else value


def from_host(value: Any, dtype: Any) -> Array:
    """The array of a NumPy array or scalar."""
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


def shared(value: Any, dtype: Any) -> Any:
    """An array over the memory of a host value, where that is plain; otherwise the value itself."""
    host = value
    if not isinstance(value, np.ndarray | np.generic | list | tuple | bool | int | float | complex):
        try:
            host = np.asarray(memoryview(value))
        except TypeError:
            return value
    if type(host) is not np.ndarray or host.dtype not in KIND or not devices.default_is_host():
        return value
    aval = aval_of(host)
    as_it_is = host.dtype.isnative and aval.dtype == host.dtype and dtype in (None, host.dtype)
    plain = host.flags.c_contiguous and host.flags.aligned
    return from_numpy(host.view(), aval) if as_it_is and plain else value


_SEQUENCES = {list, tuple}
_PLAIN = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))
_STACKED = _PLAIN | {BFLOAT16}


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
    if dtype is None and aval is not None and aval.dtype in _STACKED and not aval.weak_type:
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
            raise ValueError(NO_ARRAY)
    return from_host(np.asarray(value), dtype)


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
    try:
        host = np.array(value)
    except ValueError as e:
        raise ValueError(f"[array] expected rows of one length, got {shown(value)}: {e}") from None
    if not found:
        host = host.astype(np.float32)
    kind = max(found, key=(bool, int, float, complex).index, default=float)
    target = dtypes.python_scalar_dtype(kind) if dtype is None else dtype
    # Integers that no dtype of NumPy's holds are objects, or floats where others are int64.
    if host.dtype.kind == "f" and kind is int:
        host = np.array(value, object)
    if host.dtype.kind == "O" and not (kind is int and dtypes.issubdtype(target, np.integer)):
        host = host.astype(np.complex128 if complex in found else np.float64)
    if dtypes.issubdtype(target, np.integer) and kind is not complex:
        if kind is float:
            for x in host[~np.isfinite(host)][:1].tolist():
                _check_finite(x, target)
        if target in _PLAIN and host.size:
            for end in (host.min(), host.max()):
                check_range(int(end), target)
    if host.dtype.kind == "c" and target.kind != "c" and target != BOOL:
        raise not_real(target)
    with np.errstate(all="ignore"):
        return from_numpy(host.astype(target), Aval(host.shape, target))


def not_real(dtype: Any) -> TypeError:
    """The error of a complex number where a dtype has no imaginary parts."""
    return TypeError(
        f"[array] expected real numbers for dtype {dtype.name}, got complex ones. Take the real "
        "part first."
    )


def _from_leaves(value: Any, dtype: Any) -> Array:
    """From nested sequences of concrete arrays, NumPy values and scalars."""
    leaves: list[Any] = []

    def hosts(v: Any) -> Any:
        if type(v) in (list, tuple):
            return [hosts(item) for item in v]
        if dtype is not None and type(v) in PYTHON_SCALARS:
            return v
        # Any int will do for the type; its own digits may be more than int32 has.
        x = operand("array", 0 if type(v) is int else v)
        leaves.append(x)
        return x.numpy() if isinstance(v, ArrayImpl) else v  # as wide as it came

    nested = hosts(value)
    if any(isinstance(x.aval.dtype, dtypes.KeyType) for x in leaves):
        return cast(_stacked(value), dtype)
    target = promoted_dtype(leaves)[0] if dtype is None else dtype
    shapes = {np.shape(h) for h in nested} if all(type(h) is np.ndarray for h in nested) else ()
    with np.errstate(all="ignore"):
        if len(shapes) == 1:
            host = np.stack([np.asarray(h).astype(target) for h in nested])
        elif shapes:
            have = ", ".join(map(str, sorted(shapes)))
            raise TypeError(
                f"[array] expected arrays of one shape, got {have}: Cannot concatenate arrays with "
                f"different shapes: got {have}."
            )
        else:
            # Narrow floats of ml_dtypes are made of no int that needs more than 63 bits.
            wide = np.dtype(np.float64) if dtypes.is_narrow_float(target) else target
            try:
                host = np.array(nested, wide).astype(target, copy=False)
            except OverflowError as e:
                raise OverflowError(
                    f"[array] expected numbers within dtype {target.name}, got others ({e}). Name "
                    "a wider dtype, or none."
                ) from None
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
