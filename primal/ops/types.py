"""Type rules of families of ops, and checks that rooms share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from primal.base import dtypes
from primal.base.errors import TracedArgumentError, UnhashableArgumentError
from primal.ir.avals import Aval
from primal.ir.op import Never
from primal.ir.trace import Tracer, Undefined, concrete_or_error

Rule = Callable[..., Any]

NOT_LINEAR = Never("[transpose] expected a linear operation, got one that is not linear.")


def broadcast_shapes(name: str, avals: Sequence[Aval]) -> tuple[int, ...]:
    """The shape of elementwise operands: equal ranks with sizes equal or 1; scalars fit all."""
    shape = avals[0].shape
    for a in avals:
        if a.shape != shape:
            break
    else:
        return shape
    shapes = [a.shape for a in avals if a.shape]
    ranks = {len(s) for s in shapes}
    if len(ranks) != 1:
        raise TypeError(
            f"[{name}] expected operands of equal rank, or scalars, got shapes "
            f"{', '.join(str(a.shape) for a in avals)}: arrays must have the same number of "
            "dimensions. The function of that name in primal.numpy broadcasts over ranks."
        )
    out = []
    for sizes in zip(*shapes, strict=True):
        distinct = {n for n in sizes if n != 1}
        if len(distinct) > 1:
            raise TypeError(
                f"[{name}] expected shapes that broadcast, got "
                f"{', '.join(str(a.shape) for a in avals)}: incompatible shapes for broadcasting."
            )
        out.append(distinct.pop() if distinct else 1)
    return tuple(out)


def check_dtype(name: str, aval: Aval, kinds: tuple[Any, ...]) -> None:
    """TypeError unless the dtype is of one of the kinds (NumPy abstract types)."""
    if not any(dtypes.issubdtype(aval.dtype, k) for k in kinds):
        wanted = " or ".join(k.__name__ for k in kinds)
        article = "an" if wanted[0] in "aeiou" else "a"
        have = aval.dtype.name
        raise TypeError(
            f"[{name}] expected {article} {wanted} dtype, got {have}: {name} does not accept dtype "
            f"{have}. Convert with astype."
        )


def nary(name: str, *kinds: Any, out: Callable[[Any], Any] | None = None) -> Rule:
    """Type rule of elementwise ops: one dtype among `kinds`, shapes that broadcast.

    `out` maps the operand dtype to the result's (`None`: the same).
    """

    def type_rule(*avals: Aval) -> Aval:
        first = avals[0]
        weak = True
        for a in avals:
            if a.dtype != first.dtype:
                raise TypeError(
                    f"[{name}] expected operands of one dtype, got "
                    f"{', '.join(b.dtype.name for b in avals)}: lax.{name} requires arguments to "
                    "have the same dtypes. Convert first with convert_element_type, or call the "
                    "primal.numpy function, which promotes."
                )
            weak = weak and a.weak_type
        check_dtype(name, first, kinds)
        dtype = first.dtype if out is None else out(first.dtype)
        return Aval(broadcast_shapes(name, avals), dtype, weak)

    return type_rule


ANY: tuple[Any, ...] = (np.generic, dtypes.extended)
NUMERIC = (np.number,)
INEXACT = (np.inexact,)
FLOATING = (np.floating,)
INTEGRAL = (np.integer, np.bool_)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of any operand, Python scalars included."""
    try:
        return x.aval.shape  # type: ignore[no-any-return]
    except AttributeError:
        return np.shape(x)


def is_linear(x: Any) -> bool:
    """Whether an operand of a transpose rule is the place of a linear value."""
    return type(x) is Undefined


def static_int(use: str, value: Any) -> int:
    """A count or an axis known while tracing; TracedArgumentError names `use` if it is not.

    `use` is an op's name and what the number is for it. TypeError for what is no whole number.
    """
    if type(value) is int:
        return value
    if isinstance(value, Tracer):
        value = concrete_or_error(value, use, TracedArgumentError)
    try:
        return operator.index(value)
    except TypeError as e:
        name, _, what = use.partition(" ")
        text = f"[{name}] expected a whole number as {what}, got {value!r}: {e}."
        raise (TypeError if is_hashable(value) else UnhashableArgumentError)(text) from None


def is_hashable(value: Any) -> bool:
    """Whether a value can be a static argument."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def static(use: str, wanted: str, value: Any) -> Any:
    """The value, if it can be part of a program's key: UnhashableArgumentError for arrays, lists.

    For parameters of functions that are jitted in JAX. TracedArgumentError for traced values.
    """
    if isinstance(value, Tracer):
        concrete_or_error(value, use, TracedArgumentError)
    if not is_hashable(value):
        name, _, what = use.partition(" ")
        raise UnhashableArgumentError(f"[{name}] expected {wanted} as {what}, got {value!r}.")
    return value


def static_flag(use: str, value: Any) -> bool:
    """The truth of a flag such as `keepdims`; UnhashableArgumentError for arrays and lists."""
    return bool(static(use, "True or False", value))


def static_count(use: str, value: Any) -> int:
    """`static_int`, which takes 4.0 for 4, too."""
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if whole else static_int(use, value)


def static_whole(use: str, value: Any) -> int:
    """`static_int`, which takes what Python's `int` takes: 2.5 and "2" for 2, and np.True_."""
    if isinstance(value, Tracer):
        value = concrete_or_error(value, use, TracedArgumentError)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as e:
        name, _, what = use.partition(" ")
        text = f"[{name}] expected a whole number as {what}, got {value!r}: {e}."
        raise type(e)(text) from None


def static_ints(use: str, values: Any) -> tuple[int, ...]:
    """`static_int` of each of a sequence; TypeError for what is none."""
    try:
        values = tuple(values)
    except TypeError as e:
        name, _, what = use.partition(" ")
        text = f"[{name}] expected a sequence of whole numbers as {what}, got {values!r}: {e}."
        raise TypeError(text) from None
    return tuple([static_int(use, v) for v in values])


def axes_given(axis: Any) -> tuple[Any, ...]:
    """An axis argument as several: any sequence of axes, or one."""
    try:
        return tuple(axis)
    except TypeError:
        return (axis,)


def canonical_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes as distinct non-negative ints; AxisError (ValueError, IndexError) names a wrong one."""
    out = []
    for a in static_ints(f"{name} axis", axes):
        if not -ndim <= a < ndim:
            raise AxisError(
                f"[{name}] expected axes in [{-ndim}, {ndim}) for a {ndim}-dimensional array, "
                f"got {a}: axis {a} is out of bounds for array of dimension {ndim}"
            )
        out.append(a % ndim)
    if len(set(out)) != len(out):
        raise ValueError(
            f"[{name}] expected distinct axes, got {tuple(axes)}: duplicate value in 'axis'."
        )
    return tuple(out)


def check_sequence(name: str, what: str, given: Any) -> None:
    """TypeError unless it has a length, as lists, tuples and arrays do; `what` names its items."""
    if not hasattr(given, "__len__"):
        raise TypeError(f"[{name}] expected a sequence of {what}, got {given!r}.")


def iterates(given: Any) -> bool:
    """Whether it has items to go through: arrays have some where they have axes, and a class of the
    user's may have no more than `__len__` and `__getitem__`."""
    aval = getattr(given, "aval", None)
    return np.iterable(given) if aval is None else aval.ndim > 0


def counted_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from 0, as those of XLA's operations; ValueError for negative ones too."""
    for a in static_ints(f"{name} axis", axes):
        if a < 0:
            raise ValueError(
                f"[{name}] expected axes in [0, {ndim}), got {a}: Invalid axis {a} for operand, "
                "XLA operations do not allow negative axes. Count from 0, or use the function of "
                "primal.numpy."
            )
    return canonical_axes(name, axes, ndim)
