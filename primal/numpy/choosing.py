"""Choice between values: where, select, clip, rounding, replacing nan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from primal.base import dtypes, errors
from primal.base.limits import finfo
from primal.ir.trace import Array, literal
from primal.numpy import direct
from primal.numpy.index_forms import known_values
from primal.numpy.nonzeros import nonzero
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    array_operand,
    broadcast_shapes,
    check_arraylike,
    convert,
    from_literal,
    operand,
    promote_args,
    promote_dtypes,
    to_shape,
    warn_of_parts,
)
from primal.numpy.reductions import check_out
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.ufuncs import as_bool
from primal.ops import elementwise as ops
from primal.ops.types import check_sequence, iterates, static_int
from primal.runtime.refusals import in_words


@overload
def where(
    condition: ArrayLike,
    x: None = ...,
    y: None = ...,
    /,
    *,
    size: int | None = ...,
    fill_value: Any = ...,
) -> tuple[Array, ...]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
@remembered_as(direct.where)
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """x where the condition is non-zero, else y; with the condition alone, `nonzero`.

    The three broadcast, x and y promote. Only the chosen branch gets a derivative; but a nan that
    the other one's derivative makes stays nan, so keep both finite. Raises ValueError for `size` or
    `fill_value` beside three operands.

    >>> jnp.where(jnp.array([True, False]), 1., jnp.array([2., 3.]))
    Array([1., 3.], dtype=float32)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    mask = as_bool(operand("where", condition))
    a, b = promote_dtypes("where", x, y)
    shape = broadcast_shapes(mask.aval.shape, a.aval.shape, b.aval.shape)
    return ops.select_n(to_shape(mask, shape), to_shape(b, shape), to_shape(a, shape))


@remembered
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """The choice of the first condition that holds, else the default.

    Raises ValueError without conditions, or unless there are as many choices, TypeError for what is
    no sequence. Conditions are arrays of booleans, or the rows of one; choices broadcast with them
    and promote.

    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x < 3], [x, 10 * x], -1)
    Array([ 0, 10, 20, -1], dtype=int32)
    """
    check_sequence("select", "arrays as condlist", condlist)
    check_sequence("select", "arrays as choicelist", choicelist)
    if len(condlist) != len(choicelist):
        raise ValueError(
            "condlist must have length equal to choicelist "
            f"({len(condlist)} vs {len(choicelist)})"
        )
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    *choices, out = promote_dtypes("select", *choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        out = where(condition, choice, out)
    return out


@in_words
def piecewise(
    x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any
) -> Array:
    """Functions of x where their conditions hold; the last condition that holds decides.

    One function more than conditions is the default, 0 without it. Values count as constant
    functions. All functions are evaluated everywhere. Conditions are a list, or an array with one
    condition along its first axis; scalars hold everywhere or nowhere. Raises ValueError unless
    there are as many functions as conditions, or one more.

    >>> x = jnp.array([-2., 0., 3.])
    >>> jnp.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: 10 * v])
    Array([ 2.,  0., 30.], dtype=float32)
    """
    x = array_operand("piecewise", x)
    if isinstance(condlist, tuple | list):
        conditions = [
            operand("piecewise", np.asarray(c) if isinstance(c, list) else c) for c in condlist
        ]
    else:
        given = array_operand("piecewise", condlist)
        conditions = [given[i] for i in range(given.shape[0])] if given.ndim else [given]
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    elif len(functions) != len(conditions) + 1:
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected; got {len(functions)}"
        )

    def value(f: Callable[..., Any] | Any) -> Any:
        out = operand("piecewise", f(x, *args, **kw) if callable(f) else f)
        warn_of_parts(out.aval.dtype, x.aval.dtype)
        return to_shape(convert(out, x.aval.dtype), x.aval.shape)

    out = value(functions[-1])
    for condition, f in zip(conditions, functions, strict=False):
        out = where(condition, value(f), out)
    return out


@remembered_as(direct.clip)
def clip(
    arr: ArrayLike | None = None,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
) -> Array:
    """min(max(arr, min), max), element by element; None is no bound.

    Bounds broadcast and promote. Raises ValueError for complex numbers, which have no order.

    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    if arr is None:
        raise ValueError("At most one of min and max may be missing: give an array to clip.")
    x: Any = operand("clip", arr)
    bounds = [operand("clip", b, i) for i, b in ((1, min), (2, max)) if b is not None]
    if any(v.aval.dtype.kind == "c" for v in (x, *bounds)):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. "
            "Complex values have no ordering and cannot be clipped. Take real or imag first."
        )
    if min is not None:
        x = ops.max(*promote_args("clip", min, x))
    if max is not None:
        x = ops.min(*promote_args("clip", max, x))
    return from_literal(x)


@remembered
def round(
    a: ArrayLike, decimals: int = 0, out: None = None
) -> Array:
    """To the nearest multiple of 10**-decimals; halves go to the even one.

    Integers stay as they are; NotImplementedError for them with negative `decimals`.
    Raises ValueError for bools.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.345]), 1)
    Array([0.5, 1.5, 2.3], dtype=float32)
    """
    check_out("round", out)
    x = operand("round", a)
    places = static_int("round decimals", decimals)
    dtype = x.aval.dtype
    if dtype == BOOL:
        raise ValueError("[round] expected numbers, got bools: data type bool not inexact.")
    if dtypes.issubdtype(dtype, np.integer):
        if places < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return from_literal(x)
    if dtype.kind == "c":
        return ops.complex(round(ops.real(x), decimals), round(ops.imag(x), decimals))
    return _round_real(x, places)


def _round_real(x: Any, places: int) -> Any:
    if places == 0:
        return ops.round(x, rounding_method=ops.RoundingMethod.TO_NEAREST_EVEN)
    dtype = x.aval.dtype
    work = np.dtype(np.float32) if dtypes.is_narrow_float(dtype) else dtype
    weak = x.aval.weak_type
    if places > 0 and places > math.log10(np.finfo(work).max):  # more digits than numbers have
        return from_literal(x)
    factor = literal(10.0 ** abs(places), work, True)
    x = convert(x, work, weak)
    scaled = ops.mul(x, factor) if places > 0 else ops.div(x, factor)
    nearest = ops.round(scaled, rounding_method=ops.RoundingMethod.TO_NEAREST_EVEN)
    out = ops.div(nearest, factor) if places > 0 else ops.mul(nearest, factor)
    return convert(out, dtype, weak)


def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`round` under NumPy's older name.

    Shape and dtype stay.

    >>> jnp.around(jnp.array([1.5]))
    Array([2.], dtype=float32)
    """
    return round(a, decimals, out)


@remembered_as(direct.rint)
def rint(x: ArrayLike, /) -> Array:
    """The nearest integer, in floating point; halves go to the even one.

    >>> jnp.rint(jnp.array([0.5, 1.5]))
    Array([0., 2.], dtype=float32)
    """
    x = operand("rint", x)
    if dtypes.issubdtype(x.aval.dtype, np.integer) or x.aval.dtype == BOOL:
        return from_literal(convert(x, dtypes.python_scalar_dtype(float)))
    return round(x)


@remembered_as(direct.nan_to_num)
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """x with nan, inf and -inf replaced; by 0 and the largest finite numbers by default.

    `copy` changes nothing, as arrays are immutable; TypeError for what is no value at all.

    >>> jnp.nan_to_num(jnp.array([1., jnp.nan]))
    Array([1., 0.], dtype=float32)
    """
    x = operand("nan_to_num", x)
    if copy is not None and type(copy) is not bool:
        operand("nan_to_num", copy)
    dtype = x.aval.dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        return from_literal(x)
    if dtype.kind == "c":
        return ops.complex(
            nan_to_num(ops.real(x), nan=nan, posinf=posinf, neginf=neginf),
            nan_to_num(ops.imag(x), nan=nan, posinf=posinf, neginf=neginf),
        )
    limits = finfo(dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    big = literal(np.inf, dtype, True)

    def fill(value: Any) -> Any:
        return convert(operand("nan_to_num", value), dtype)

    out = where(ops.ne(x, x), fill(nan), x)
    out = where(ops.eq(out, big), fill(high), out)
    return where(ops.eq(out, ops.neg(big)), fill(low), out)


@remembered_as(direct.choose)
def choose(
    a: ArrayLike, choices: Any, out: None = None, mode: str = "raise"
) -> Array:
    """choices[a], element by element.

    mode 'wrap' or 'clip' brings a into bounds; 'raise' raises ValueError for what is beyond them,
    and ConcretizationTypeError for traced indices.

    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    check_out("choose", out)
    index = operand("choose", a)
    if not iterates(choices):
        check_sequence("choose", "arrays to choose from", choices)
    if not dtypes.issubdtype(index.aval.dtype, np.integer):
        raise ValueError("`a` array must be integer typed")
    if hasattr(choices, "aval") or isinstance(choices, np.ndarray):
        whole = array_operand("choose", choices)
        if not whole.shape:
            raise TypeError("[choose] expected a sequence of choices, got a scalar array.")
        choices = [whole[i] for i in range(whole.shape[0])]
    check_sequence("choose", "arrays to choose from", choices)
    count = len(choices)
    if mode == "raise":
        values = known_values(from_literal(index))
        if values is None:
            raise errors.ConcretizationTypeError(
                "[choose] expected concrete indices with mode='raise', got traced ones of shape "
                f"{index.aval.shape}. Use mode='wrap' or mode='clip'."
            )
        if values.size and not (0 <= values.min() and values.max() < count):
            raise ValueError(
                f"invalid entry in choice array: indices must be in [0, {count}). Use mode='wrap' "
                "or mode='clip' to bring them into bounds."
            )
    elif mode == "clip":
        index = clip(index, 0, count - 1)
    elif mode == "wrap":
        index = index % count
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    items = promote_dtypes("choose", *choices)
    shape = broadcast_shapes(index.aval.shape, *[c.aval.shape for c in items])
    which = to_shape(convert(index, np.dtype(np.int32)), shape)
    cases = [to_shape(c, shape) for c in items]
    out = cases[0] if len(cases) == 1 else ops.select_n(which, *cases)
    return convert(out, out.dtype)
