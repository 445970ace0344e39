"""Writing elements: how values are cast, and updates at an index as scatters or slice updates."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from primal.base import dtypes, source
from primal.base.config import settings
from primal.base.extrema import maximum, minimum
from primal.base.native import BFLOAT16, FLOAT16, narrowed, widened
from primal.ir.evaluate import quietly
from primal.ir.state import state
from primal.ir.trace import PYTHON_SCALARS, Literal, Tracer, aval_of, literal
from primal.numpy.creation import asarray
from primal.numpy.index_forms import (
    BOOL,
    INT32,
    INT64,
    NEW,
    Form,
    Span,
    is_array,
    parse,
    start_indices,
    uniform_starts,
)
from primal.numpy.indexing import (
    BASIC,
    Hints,
    component,
    empty_axis,
    grow,
    numpy_index,
    read,
    watched,
)
from primal.numpy.promotion import convert, operand, scalar_literal, to_shape, warn_of_parts
from primal.ops.choose import convert_element_type, select_n
from primal.ops.elementwise import add, mul, sub
from primal.ops.index.dynamic import dynamic_update_slice
from primal.ops.index.gather import scatter_add
from primal.ops.index.numbers import CLIP, PROMISE_IN_BOUNDS, ScatterDimensionNumbers
from primal.ops.index.scatter import scatter, scatter_apply, scatter_mul, scatter_sub
from primal.ops.shape import iota, reshape, rev
from primal.ops.spread import full_like_aval
from primal.runtime.array import ArrayImpl
from primal.runtime.eager import EagerTrace
from primal.transforms.batch import Axis, batch_flat, materialize
from primal.transforms.stage import stage

# NumPy's own indexing, for concrete arrays.

_NATIVE = frozenset(np.dtype(k) for k in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 c8 c16".split())
_OF_TRUTHS = {BOOL: (maximum, minimum)}  # beside assignment, which all dtypes have
_CONCRETE = (ArrayImpl, np.ndarray)
_FITS: dict[tuple[type, Any], bool] = {}


def _rank_of(x: Any, index: Any) -> int:
    """The dimensions of x[index], without reading it where one array of integers is the index."""
    if index.__class__ is tuple and len(index) == 1 and index[0].__class__ is np.ndarray:
        if index[0].dtype.kind in "iu" and x.ndim:
            return index[0].ndim + x.ndim - 1
    return x[index].ndim


def _fitting(values: Any, dtype: Any, name: str) -> Any:
    """Values as an operand of a dtype that represents them; None where it does not."""
    if not isinstance(values, (*_CONCRETE, np.generic, list, tuple)):
        return None
    v = _given(values, name)
    if v.__class__ not in (ArrayImpl, Literal) or _common(dtype, v.aval) != dtype:
        return None
    return convert(v, dtype, False)


def update_numpy(x: Any, index: Any, values: Any, ufunc: Any, name: str) -> ArrayImpl | None:
    """The update by NumPy; None for what only the general path does, errors included."""
    if x.__class__ is not ArrayImpl or state.trace.__class__ is not EagerTrace or watched():
        return None
    host = x.host
    if host is None:
        if x.placement is not None:
            return None
        host = x.numpy()
    aval = x.aval
    dtype = aval.dtype
    kind = values.__class__
    rank = 0
    if kind in PYTHON_SCALARS:
        fits = _FITS.get((kind, dtype))
        if fits is None:
            fits = _FITS[kind, dtype] = dtypes.scalar_fits_kind(kind, dtype)
        if not fits:
            return None
    else:
        if kind not in _CONCRETE or values.dtype is not dtype:
            values = _fitting(values, dtype, name)
            kind = ArrayImpl
        if kind is ArrayImpl:
            if values is None or values.host is None:
                return None
            values = values.host
        rank = values.ndim
    items = index if index.__class__ is tuple else (index,)
    basic = True
    for item in items:
        if item.__class__ not in BASIC:
            basic = False
            index = numpy_index(items)
            if index is None:
                return None
            break
    out = host.copy()
    try:
        if ufunc is None:
            # NumPy also drops leading dimensions of size 1 from the values; we do not.
            if rank and _rank_of(out, index) < rank:
                return None
            if kind is ArrayImpl:  # of the same dtype: nothing that NumPy could warn of
                out[index] = values
            else:
                quietly(out.__setitem__, (index, values), {})
            return ArrayImpl(aval, out)
        if dtype not in _NATIVE and dtype != BFLOAT16 and ufunc not in _OF_TRUTHS.get(dtype, ()):
            return None
        if not basic:  # index arrays may repeat
            if rank and _rank_of(out, index) < rank:
                return None
            if dtype in (FLOAT16, BFLOAT16):  # in float32, as the general path
                wide, values = widened(out), quietly(np.asarray, (values, dtype), {})
                quietly(ufunc.at, (wide, index, widened(values)), {})
                return ArrayImpl(aval, quietly(narrowed, (wide, dtype), {}))
            if values.__class__ is not np.ndarray:
                values = quietly(np.asarray, (values, dtype), {})
            quietly(ufunc.at, (out, index, values), {})
        else:
            part = out[index]
            if part.__class__ is not np.ndarray:
                part = out[(*items, ...)]
            if part.ndim < rank:
                return None
            quietly(ufunc, (part, values), {"out": part})
    except Exception:
        return None
    return ArrayImpl(aval, out)


# The general path.


def _common(dtype: Any, have: Any) -> Any:
    """The dtype in which elements of one and values of an aval meet; None for keys and numbers."""
    if have.dtype == dtype:
        return dtype
    if any(isinstance(d, dtypes.KeyType) for d in (dtype, have.dtype)):
        return None
    return dtypes.promote_pair(dtype, False, have.dtype, have.weak_type)[0]


def _given(values: Any, name: str) -> Any:
    if isinstance(values, list | tuple) or values is None or isinstance(values, str):
        values = asarray(values)
    return operand(f"at[].{name}", values)


def _operand_of(x: Any, values: Any, name: str) -> tuple[Any, Any]:
    """(values as an operand, the common dtype of both); FutureWarning where that is not x's."""
    v = _given(values, name)
    dtype, have = aval_of(x).dtype, v.aval
    common = _common(dtype, have)
    if common is None:
        raise TypeError(
            f"[at.{name}] expected values of dtype {dtype.name}, got {have.dtype.name}: keys and "
            "numbers do not mix."
        )
    if common != dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={have.dtype.name} to dtype={dtype.name} with "
            f"numpy_dtype_promotion={settings().numpy_dtype_promotion}. In future releases this "
            "will result in an error. Convert the values first, with .astype.",
            FutureWarning,
            stacklevel=source.user_stacklevel(),
        )
        warn_of_parts(have.dtype, dtype)
    elif have.dtype != dtype and type(values) in PYTHON_SCALARS:
        # From the Python value, not from its default dtype: 0.1 in float64, say.
        v = scalar_literal(values, dtype, True)
    return v, common


def cast_values(x: Any, values: Any, name: str) -> Any:
    """Values as an operand of x's dtype; FutureWarning where x's dtype cannot represent them."""
    aval = aval_of(x)
    return convert(_operand_of(x, values, name)[0], aval.dtype, aval.weak_type)


def _check_fits(name: str, have: tuple[int, ...], target: tuple[int, ...]) -> None:
    if len(have) > len(target):
        raise ValueError(
            f"[at.{name}] expected values that broadcast to the indexed shape {target}, got shape "
            f"{have}: Cannot broadcast to shape with fewer dimensions: arr_shape={have} "
            f"shape={target}"
        )
    tail = target[len(target) - len(have) :]
    if any(n not in (1, m) for n, m in zip(have, tail, strict=True)):
        raise ValueError(
            f"[at.{name}] expected values that broadcast to the indexed shape {target}, got shape "
            f"{have}: Incompatible shapes for broadcasting."
        )


_ONCE = {scatter_add: add, scatter_sub: sub, scatter_mul: mul}
"""What scatters come to where no index repeats."""


def update(x: Any, index: Any, values: Any, op: Any, name: str, hints: Hints) -> Any:
    """x with the values combined in at the index, by a scatter op or a slice update."""
    form = parse(index, x.aval.shape)
    v, common = _operand_of(x, values, name)
    shape = form.result_shape()
    _check_fits(name, v.aval.shape, shape)
    if 0 in shape or 0 in form.shape:
        for d, (n, entry) in enumerate(zip(form.shape, form.dims, strict=True)):
            if n == 0 and type(entry) is int and not form.advanced:
                raise empty_axis(d)
        return x
    dtype, weak = x.aval.dtype, x.aval.weak_type
    if common == dtype or op is scatter:
        return write(x, form, convert(v, dtype, weak), op, hints)
    # Combined in the common dtype: 1 - 0.5 is 0 in an array of ints, and not 1.
    if op in _ONCE and (hints.unique or not form.advanced):
        part = convert(read(x, form, hints._replace(mode=CLIP)), common)
        both = _ONCE[op](part, to_shape(convert(v, common, False), shape))
        both = convert_element_type(both, new_dtype=dtype, weak_type=weak)
        return write(x, form, both, scatter, hints)
    wide = write(convert(x, common), form, convert(v, common, False), op, hints)
    # Elsewhere x stays exact, which a trip through the common dtype might not leave it.
    there = full_like_aval(x.aval.with_dtype(BOOL), False)
    there = write(there, form, literal(True, BOOL, False), scatter, hints)
    return select_n(there, x, convert_element_type(wide, new_dtype=dtype, weak_type=weak))


def write(x: Any, form: Form, v: Any, op: Any, hints: Hints) -> Any:
    """x with v, of its dtype and broadcasting to the indexed shape, combined in by a scatter op."""
    shape = x.aval.shape
    x = grow(x, form)
    corner = _corner(form, hints) if op is scatter else None
    if corner is None:
        x = _scatter(x, form, v, op, hints)
    else:
        sizes = tuple([d.size if type(d) is Span else 1 for d in form.dims])
        window = reshape_to(_in_operand_order(form, v, sizes), sizes)
        x = dynamic_update_slice(x, window, *uniform_starts(corner))
    return reshape_to(x, shape)


def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    """x in that shape, which has as many elements."""
    if type(x) is Literal:
        return to_shape(x, shape)
    return x if x.aval.shape == shape else reshape(x, shape=shape)


def _corner(form: Form, hints: Hints) -> list[Any] | None:
    """The start of the one window that is written, if a slice update writes just that.

    It clamps, so traced scalars must be meant to clip, and ints must lie in bounds.
    """
    clips = hints.mode is CLIP or hints.mode is PROMISE_IN_BOUNDS
    starts: list[Any] = []
    for n, entry in zip(form.shape, form.dims, strict=True):
        if type(entry) is Span:
            if entry.step != 1:
                return None
            starts.append(entry.start)
            continue
        if is_array(entry) and (np.ndim(entry) or not clips):
            return None
        at = component(entry, n, hints.wrap)
        if type(at) is int and not 0 <= at < n:
            return None
        starts.append(at)
    return starts


def _in_operand_order(form: Form, v: Any, scalar_shape: tuple[int, ...] | None) -> Any:
    """v broadcast to the result, its flipped dimensions turned back, without the new ones.

    A scalar is broadcast to `scalar_shape` where that is given, another shape of as many elements.
    """
    layout = form.layout()
    batch = form.index_shape
    target: list[int] = []
    flipped: list[int] = []
    kept: list[int] = []
    for entry in layout:
        if entry == "index":
            kept.extend(batch)
            target.extend(batch)
            continue
        size = 1 if entry == NEW else form.dims[entry].size
        if entry != NEW:
            kept.append(size)
            if form.dims[entry].flipped:
                flipped.append(len(target))
        target.append(size)
    if not v.aval.shape:
        shape = tuple(kept) if scalar_shape is None else scalar_shape
        return to_shape(v, shape) if shape else v
    v = to_shape(v, tuple(target))
    if flipped:
        v = rev(v, dimensions=tuple(flipped))
    return reshape_to(v, tuple(kept))


def _scatter(x: Any, form: Form, v: Any, op: Any, hints: Hints, **params: Any) -> Any:
    index_shape = form.index_shape
    layout = [e for e in form.layout() if e != NEW]
    # Dimensions of the updates: those of windows, and those of the batch of index vectors, which
    # are the index arrays' and one per strided slice, since windows have no strides.
    batch: list[int] = []
    place: dict[Any, int] = {}
    window: list[int] = []
    at = 0
    for entry in layout:
        if entry == "index":
            batch.extend(index_shape)
            place["index"] = len(batch)
            at += len(index_shape)
        elif form.dims[entry].step != 1:
            batch.append(form.dims[entry].size)
            place[entry] = len(batch)
            at += 1
        else:
            window.append(at)
            at += 1
    components: list[Any] = []
    mapped: list[int] = []
    inserted: list[int] = []
    for d, (n, entry) in enumerate(zip(form.shape, form.dims, strict=True)):
        if type(entry) is Span and entry.step == 1:
            if entry.size != n:
                mapped.append(d)
                components.append(entry.start)
            continue
        mapped.append(d)
        inserted.append(d)
        if type(entry) is Span:
            components.append(_trailing(_steps(entry, n), len(batch) - place[d]))
        else:
            c = component(entry, n, hints.wrap)
            after = len(batch) - place.get("index", len(batch))
            components.append(_trailing(c, after) if np.ndim(c) else c)
    alone = "index" not in place
    strided = len(place) > (not alone)
    return op(
        x,
        start_indices(components, tuple(batch)),
        _in_operand_order(form, v, None),
        dimension_numbers=ScatterDimensionNumbers(
            tuple(window), tuple(inserted), tuple(mapped), (), ()
        ),
        indices_are_sorted=alone or (hints.sorted and not strided),
        unique_indices=alone or hints.unique,
        mode=hints.mode,
        **params,
    )


def _steps(span: Span, n: int) -> Any:
    """The positions that a strided slice of a dimension of size n names."""
    dtype = INT32 if n < 2**31 else INT64
    counted = iota(shape=(span.size,), dtype=dtype, dimension=0)
    spread = mul(counted, span.step)
    return add(spread, span.start) if span.start else spread


def _trailing(c: Any, count: int) -> Any:
    """c with `count` dimensions of size 1 after its own."""
    if not count:
        return c
    shape = (*np.shape(c), *(1,) * count)
    return c.reshape(shape) if isinstance(c, np.ndarray) else reshape(c, shape=shape)


# Functions.


def apply(x: Any, index: Any, func: Any, hints: Hints) -> Any:
    """x with func applied to the elements at the index, once per time an index names them."""
    form = parse(index, x.aval.shape)
    shape = form.result_shape()
    if 0 in shape or 0 in form.shape:
        return x
    if hints.unique or not form.advanced:
        part = read(x, form, hints._replace(mode=CLIP))
        return write(x, form, _map_scalars(func, part), scatter, hints)
    scalar = x.aval.with_shape(())
    jaxpr = stage(lambda v: [_checked_scalar(func(v), scalar)], [scalar], "apply")
    if any(isinstance(c, Tracer) for c in jaxpr.consts):
        raise NotImplementedError(
            "[at.apply] expected a function of its argument alone where indices may repeat, got "
            "one that also uses a traced value. Pass unique_indices=True if no index repeats."
        )
    like = full_like_aval(scalar, 0)
    out = _scatter(grow(x, form), form, like, scatter_apply, hints, jaxpr=jaxpr)
    return reshape_to(out, x.aval.shape)


def _map_scalars(func: Any, part: Any) -> Any:
    """func on every element of an array, which it sees one at a time."""
    aval = part.aval
    scalar = aval.with_shape(())
    size = math.prod(aval.shape)
    axis = Axis(None, size)
    outs, dims = batch_flat(
        lambda v: [_checked_scalar(func(v), scalar)], axis, [reshape(part, shape=(size,))], [0]
    )
    return reshape_to(materialize(outs[0], axis, dims[0], 0), aval.shape)


def _checked_scalar(out: Any, want: Any) -> Any:
    if type(out) in PYTHON_SCALARS:
        out = scalar_literal(out, want.dtype, want.weak_type)
    have = aval_of(out)
    if have.shape != () or have.dtype != want.dtype:
        raise TypeError(
            f"[at.apply] expected a function from {want.short()} to {want.short()}, got a result "
            f"{have.short()}. Convert it with .astype, or the array first."
        )
    return convert(out, want.dtype, want.weak_type) if have.weak_type != want.weak_type else out
