"""What every function does with its operands first: checks, one dtype, one rank.

An operand is an array, a tracer or a `Literal`: Python and NumPy scalars become Literals of the
promoted dtype, so that they print inline in jaxprs and cost no conversion.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from primal.base import dtypes, source
from primal.base.config import settings
from primal.base.dtype_table import KIND
from primal.base.limits import iinfo
from primal.ir.avals import Aval
from primal.ir.state import state
from primal.ir.trace import PYTHON_SCALARS, Array, Literal, not_numeric
from primal.ops.elementwise import convert_element_type
from primal.ops.elementwise.convert import number_as
from primal.ops.spread import broadcast_in_dim
from primal.ops.types import static_ints
from primal.runtime import guards
from primal.runtime.array import ArrayImpl
from primal.runtime.array import from_literal as from_literal
from primal.runtime.eager import as_array
from primal.runtime.refusals import shown

ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike: TypeAlias = Any
BOOL = np.dtype(np.bool_)


def is_arraylike(x: Any) -> bool:
    """Whether x is an array, a scalar, or converts itself with `__jax_array__`."""
    return isinstance(
        x, Array | np.ndarray | np.generic | bool | int | float | complex | Literal
    ) or hasattr(x, "__jax_array__")


def check_arraylike(name: str, *args: Any, emit_none_error: bool = False) -> None:
    """TypeError unless every operand is an array or a scalar; lists and tuples are neither.

    >>> check_arraylike("sum", [1.0, 2.0])
    Traceback (most recent call last):
    TypeError: [sum] expected an array or a scalar, got [1.0, 2.0]: sum requires ndarray...
    """
    for position, x in enumerate(args):
        if x.__class__ is not ArrayImpl and not is_arraylike(x):
            raise _not_arraylike(name, x, position)


def _not_arraylike(name: str, x: Any, position: int) -> TypeError:
    remedy = ""
    if isinstance(x, list | tuple):
        remedy = " Convert it first: primal.numpy.array(...)."
    return TypeError(
        f"[{name}] expected an array or a scalar, got {shown(x)}: {name} requires ndarray or "
        f"scalar arguments, got {type(x)} at position {position}."
        f"{remedy}"
    )


def check_out(name: str, out: Any) -> None:
    """NotImplementedError for an `out` argument: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(
            f"[{name}] expected no out, as arrays cannot be written, got {shown(out)}: "
            f"The 'out' argument to jnp.{name} is not supported."
        )


# Scalars.

_scalars: dict[tuple[Any, type, Any, bool], Literal] = {}


def scalar_literal(value: Any, dtype: Any, weak: bool = True) -> Literal:
    """A Python or NumPy scalar as a Literal of that dtype; remembered, since programs repeat them.

    Integers wrap into narrow dtypes; OverflowError where they fit neither int32 (int64 with the
    64-bit switch) nor the dtype.
    """
    # 0.0 == -0.0 and nan != nan: those are made anew, but for the common 0.0.
    kind = type(value)
    cacheable = value == value and (
        value != 0 or kind is int or (kind is float and math.copysign(1.0, value) > 0)
    )
    key = (value, kind, dtype, weak)
    if cacheable:
        found = _scalars.get(key)
        if found is not None:
            return found
    if isinstance(value, int) and dtype.kind in "iub":
        value = _wrapped(value, dtype)
    aval = Aval((), dtype, weak)
    with np.errstate(all="ignore"):
        if isinstance(value, complex | np.complexfloating) and dtype.kind != "c":
            value = value.real
        made = Literal(np.asarray(value).astype(dtype)[()], aval)
    if cacheable:
        if len(_scalars) > 4096:
            _scalars.clear()
        _scalars[key] = made
    return made


def _wrapped(value: int, dtype: Any) -> Any:
    if dtype == BOOL:
        return bool(value)
    default = dtypes.python_scalar_dtype(int)
    info, own = np.iinfo(default), iinfo(dtype)
    if int(own.min) <= value <= int(own.max):
        return value
    if not info.min <= value <= info.max:
        raise OverflowError(
            f"[array] expected an integer of {default.name}, got {value}: "
            f"Python int {value} too large to convert to {default.name}. Enable 64-bit dtypes "
            "(primal.config.update('enable_x64', True)) or make the value smaller."
        )
    return np.array(value, default)


# One operand.


def operand(name: str, x: Any, position: int = 0) -> Any:
    """x as an array, a tracer or a Literal of its own dtype; TypeError for anything else."""
    if isinstance(x, Array):
        return x
    kind = type(x)
    if kind in PYTHON_SCALARS:
        return scalar_literal(x, dtypes.python_scalar_dtype(kind), kind is not bool)
    if kind is Literal:
        return x
    if isinstance(x, np.ndarray):
        number_dtype(x)
        if guards.ever:
            guards.incoming(x)
        return as_array(x)
    if isinstance(x, np.generic):
        return scalar_literal(x, number_dtype(x), False)
    convert = getattr(x, "__jax_array__", None)
    if convert is not None:
        return operand(name, convert(), position)
    if isinstance(x, bool | int | float | complex):  # enumerations and other subclasses
        dtype = dtypes.python_scalar_dtype(x)
        return scalar_literal(dtypes.scalar_type_of(x)(x), dtype, not isinstance(x, bool))
    raise _not_arraylike(name, x, position)


def array_operand(name: str, x: Any, position: int = 0) -> Any:
    """`operand`, but never a Literal: what functions that return their operand need."""
    if isinstance(x, Array):
        return x
    x = operand(name, x, position)
    return from_literal(x) if type(x) is Literal else x


def number_dtype(x: Any) -> Any:
    """The canonical dtype of a NumPy value; TypeError for strings, objects, dates."""
    dtype = x.dtype
    if dtype not in KIND:
        raise not_numeric(x, dtype)
    return dtypes.canonicalize_dtype(dtype)


# Dtypes.


def convert(x: Any, dtype: Any, weak: bool = False) -> Any:
    """An operand in another dtype and weakness; a Literal stays one, converted as arrays are."""
    aval = x.aval
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    if type(x) is Literal:
        if KIND[aval.dtype] in "fc" and KIND[dtype] in "iu":
            return scalar_literal(number_as(x.val, dtype), dtype, weak)
        return scalar_literal(x.val, dtype, weak)
    known = state.trace.literal_of(x) if aval.shape == () else None
    if known is not None:
        return from_literal(convert(known, dtype, weak))
    return convert_element_type(x, new_dtype=dtype, weak_type=weak)


def in_float32(fun: Callable[..., Any], *xs: Any) -> Any:
    """fun(*xs), of floats of at most 16 bits in float32 and rounded once: each step of them would
    round, and what fun knows besides, π or log 2, has too few digits in them."""
    dtype = xs[0].aval.dtype
    if dtype.itemsize > 2 or not dtypes.issubdtype(dtype, np.floating):
        return fun(*xs)
    out = fun(*[convert(x, np.dtype(np.float32), x.aval.weak_type) for x in xs])
    if type(out) is tuple:
        return tuple([convert(x, dtype, x.aval.weak_type) for x in out])
    return convert(out, dtype, out.aval.weak_type)


def promoted_dtype(operands: Sequence[Any]) -> tuple[Any, bool]:
    """(dtype, weak) of an expression over the operands."""
    if len(operands) == 2:
        a, b = operands[0].aval, operands[1].aval
        return dtypes.promote_pair(a.dtype, a.weak_type, b.dtype, b.weak_type)
    return dtypes.lattice_result([(x.aval.dtype, x.aval.weak_type) for x in operands])


def _given(name: str, args: Sequence[Any]) -> list[Any]:
    if guards.ever:
        for x in args:
            guards.incoming(x)
    return [operand(name, x, i) for i, x in enumerate(args)]


def _to_dtype(args: Sequence[Any], operands: Sequence[Any], dtype: Any, weak: bool) -> list[Any]:
    out = []
    for x, given in zip(operands, args, strict=True):
        if type(x) is Literal and type(given) in PYTHON_SCALARS:
            # From the Python value, not from its default dtype: 0.1 in float64, say.
            value = int(given) if type(given) is bool and dtype != BOOL else given
            out.append(scalar_literal(value, dtype, weak if type(given) is bool else dtype != BOOL))
        else:
            out.append(convert(x, dtype, weak))
    return out


def promote_dtypes(name: str, *args: Any) -> list[Any]:
    """Operands converted to their common dtype."""
    if len(args) == 2 and isinstance(args[0], Array):
        x, y = args
        kind = type(y)
        if isinstance(y, Array):
            if x.aval is y.aval:
                return [x, y]
        elif (kind is float or kind is int) and dtypes.scalar_fits_kind(kind, x.aval.dtype):
            if x.aval.dtype != BOOL:
                if guards.ever:
                    guards.incoming(y)
                return [x, scalar_literal(y, x.aval.dtype)]
    operands = _given(name, args)
    return _to_dtype(args, operands, *promoted_dtype(operands))


def promote_to_one_dtype(name: str, *args: Any) -> list[Any]:
    """`promote_dtypes` that leaves operands of one dtype weak or strong, as they are."""
    operands = _given(name, args)
    dtype, weak = promoted_dtype(operands)
    if all(x.aval.dtype == dtype for x in operands):
        return operands
    return _to_dtype(args, operands, dtype, weak)


def promote_dtypes_inexact(name: str, *args: Any) -> list[Any]:
    """Operands converted to their common dtype, which is made floating where it is not."""
    operands = _given(name, args)
    dtype, weak = promoted_dtype(operands)
    if isinstance(dtype, dtypes.KeyType):
        raise TypeError(f"[{name}] expected numbers, got keys of dtype {dtype.name}.")
    return _to_dtype(args, operands, dtypes.to_inexact_dtype(dtype), weak)


def promote_dtypes_numeric(name: str, *args: Any) -> list[Any]:
    """Operands converted to their common dtype, and bool to int32 (in 64 bits too, as in JAX)."""
    operands = _given(name, args)
    dtype, weak = promoted_dtype(operands)
    if dtype == BOOL:
        dtype, weak = np.dtype(np.int32), False
    return _to_dtype(args, operands, dtype, weak)


def warn_of_parts(have: Any, dtype: Any) -> None:
    """ComplexWarning where numbers of dtype `have` lose their imaginary parts."""
    if dtype is not None and have.kind == "c" and dtype.kind != "c":
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=source.user_stacklevel(),
        )


def asked_dtype(name: str, have: Any, dtype: Any) -> Any:
    """The dtype that a caller asks for, for numbers of dtype `have`; warns of what is lost."""
    target = dtypes.check_user_dtype_supported(dtype, name)
    warn_of_parts(have, target)
    return target


def floating(x: Any) -> Any:
    """An array as it is, but in the dtype of floating results where it is of integers or bools."""
    dtype = dtypes.to_inexact_dtype(x.dtype)
    return x if x.dtype == dtype else convert_element_type(x, new_dtype=dtype, weak_type=False)


# Shapes.


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that operands of these shapes broadcast to.

    ValueError when they do not, TypeError for negative sizes.

    >>> broadcast_shapes((3, 1), (4,), ())
    (3, 4)
    """
    given = [
        (s,) if isinstance(s, int | np.integer) else static_ints("broadcast_shapes shape", s)
        for s in shapes
    ]
    rank = max([len(s) for s in given], default=0)
    out = [1] * rank
    for shape in given:
        for i, n in enumerate(shape, rank - len(shape)):
            if n == out[i] or n == 1:
                continue
            if n < 0:
                raise TypeError(f"[broadcast_shapes] expected no negative sizes, got {shape}.")
            if out[i] != 1:
                raise ValueError(
                    f"[broadcast_shapes] expected shapes that broadcast, got {[*given]}: "
                    f"Incompatible shapes for broadcasting: shapes={[*given]}. Dimensions are "
                    "aligned from the last, and must be equal or 1."
                )
            out[i] = int(n)
    return tuple(out)


def common_shape(name: str, *operands: Any) -> tuple[int, ...]:
    """What operands broadcast to; errors of the classes that a single operation gives.

    TypeError where sizes differ, ValueError where ranks do as well.
    """
    shapes = [x.aval.shape for x in operands]
    if settings().numpy_rank_promotion != "allow":
        check_rank_promotion(name, shapes, shapes)
    try:
        return broadcast_shapes(*shapes)
    except ValueError as error:
        if len({len(shape) for shape in shapes if shape}) > 1:
            raise
        raise TypeError(f"[{name}] expected shapes that broadcast. {error}") from None


def promote_shapes(name: str, operands: list[Any]) -> list[Any]:
    """Operands of one rank, scalars excepted: lower ranks get leading dimensions of size 1."""
    first = operands[0].aval.shape
    ranks = set()
    same = True
    for x in operands:
        shape = x.aval.shape
        if shape != first:
            same = False
        if shape:
            ranks.add(len(shape))
    if same:
        return operands
    if settings().numpy_rank_promotion != "allow":
        shapes = [x.aval.shape for x in operands]
        check_rank_promotion(name, shapes, shapes)
    if len(ranks) < 2:
        return operands
    broadcast_shapes(*[x.aval.shape for x in operands])
    rank = max(ranks)
    return [with_rank(x, rank) if x.aval.shape else x for x in operands]


def check_rank_promotion(
    name: str, shapes: Sequence[tuple[int, ...]], leads: Sequence[tuple[int, ...]]
) -> None:
    """Refuse, or warn of, operands that are no scalars and whose `leads`, the parts of their
    shapes that are broadcast, differ in rank."""
    if len({len(lead) for s, lead in zip(shapes, leads, strict=True) if s}) < 2:
        return
    text = (
        f"Operands could not be broadcast together for {name} on shapes "
        f"{' '.join(map(str, shapes))} and with the config option "
    )
    if settings().numpy_rank_promotion == "raise":
        raise ValueError(
            f"{text}numpy_rank_promotion='raise'. Reshape the operands to one rank, or set "
            "numpy_rank_promotion='allow'."
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes "
        f"{' '.join(map(str, shapes))}. Set the config option numpy_rank_promotion to 'allow' to "
        "disable this warning.",
        UserWarning,
        stacklevel=source.user_stacklevel(),
    )


def with_rank(x: Any, rank: int) -> Any:
    """x with leading dimensions of size 1 up to the rank."""
    shape = x.aval.shape
    missing = rank - len(shape)
    if missing <= 0:
        return x
    return broadcast_in_dim(
        x, shape=(1,) * missing + shape, broadcast_dimensions=tuple(range(missing, rank))
    )


def to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """x broadcast to a shape by NumPy's rule; the caller knows that it fits."""
    have = x.aval.shape
    if have == shape and type(x) is not Literal:
        return x
    first = len(shape) - len(have)
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(first, len(shape))))


# Both.


def promote_args(name: str, *args: Any) -> list[Any]:
    """Operands checked, of one dtype and one rank (scalars excepted)."""
    return promote_shapes(name, promote_dtypes(name, *args))


def promote_args_inexact(name: str, *args: Any) -> list[Any]:
    """`promote_args` to a floating or complex dtype."""
    return promote_shapes(name, promote_dtypes_inexact(name, *args))


def promote_args_numeric(name: str, *args: Any) -> list[Any]:
    """`promote_args` to a dtype that is not bool."""
    return promote_shapes(name, promote_dtypes_numeric(name, *args))
