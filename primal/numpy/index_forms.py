"""What an indexing expression means for an array of a given shape.

`parse` turns every NumPy form (ints, slices, None, Ellipsis, masks, integer arrays, mixtures) into
one entry per dimension and the order of the result's dimensions; reading (`indexing`) and writing
(`at`) start from there.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes, errors
from primal.base.source import current_location, format_location
from primal.ir.trace import Array, Tracer, literal, not_numeric
from primal.numpy.creation import asarray
from primal.numpy.promotion import broadcast_shapes
from primal.ops.choose import convert_element_type, select_n
from primal.ops.choose import min as minimum
from primal.ops.elementwise import add, lt
from primal.ops.shape import concatenate
from primal.ops.spread import broadcast_in_dim
from primal.runtime.array import ArrayImpl

INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
NEW = -1
"""In `Form.order`: a new dimension of size 1, as None asks for."""


class Span:
    """What a slice names: `size` elements from `start`, `step > 0` apart, reversed if `flipped`."""

    __slots__ = ("start", "size", "step", "flipped")

    def __init__(self, start: int, size: int, step: int, flipped: bool) -> None:
        self.start = start
        self.size = size
        self.step = step
        self.flipped = flipped

    @property
    def extent(self) -> int:
        """The number of elements from the first to the last named, both included."""
        return (self.size - 1) * self.step + 1 if self.size else 0


class Form:
    """An indexing expression for one shape.

    `dims[i]` says what happens to dimension i: a Span, a Python int, or an integer array (NumPy's
    when its values are known here, else an array of ours or a tracer; of no dimensions for a
    traced scalar). `grown` are the dimensions of size 1 that boolean scalars index: the operand
    gets them before anything else. `order` lists, as written, dimension numbers and NEW.
    `advanced` are the dimensions indexed together: with a true array there, all ints and arrays;
    `apart` says that something else stands between them, be it an Ellipsis for no dimensions.
    """

    __slots__ = ("shape", "grown", "dims", "order", "advanced", "apart")

    def __init__(
        self,
        shape: tuple[int, ...],
        grown: tuple[int, ...],
        dims: tuple[Any, ...],
        order: tuple[int, ...],
        advanced: tuple[int, ...],
        apart: bool,
    ) -> None:
        self.shape = shape
        self.grown = grown
        self.dims = dims
        self.order = order
        self.advanced = advanced
        self.apart = apart

    @property
    def index_shape(self) -> tuple[int, ...]:
        """The common shape of the index arrays; ValueError when they do not broadcast."""
        return broadcast_shapes(*[d.shape for d in self.dims if is_array(d)])

    @property
    def spans(self) -> list[int]:
        """The dimensions that remain, in the operand's order."""
        return [i for i, d in enumerate(self.dims) if type(d) is Span]

    def layout(self) -> list[Any]:
        """The result's dimensions: numbers of operand dimensions, NEW, and "index" once.

        "index" stands for the dimensions of the index arrays: in place of the first of them where
        all stand next to each other, in front otherwise.
        """
        if not self.advanced:
            return [d for d in self.order if d == NEW or type(self.dims[d]) is Span]
        out: list[Any] = ["index"] if self.apart else []
        for d in self.order:
            if d not in self.advanced:
                out.append(d)
            elif "index" not in out:
                out.append("index")
        return out

    def result_shape(self) -> tuple[int, ...]:
        """The shape of the indexed array."""
        out: list[int] = []
        for entry in self.layout():
            if entry == "index":
                out.extend(self.index_shape)
            else:
                out.append(1 if entry == NEW else self.dims[entry].size)
        return tuple(out)


def is_array(entry: Any) -> bool:
    """Whether an entry of a Form is an integer array, known or traced."""
    return type(entry) is not int and type(entry) is not Span


# Parsing.


def parse(index: Any, shape: tuple[int, ...]) -> Form:
    """The meaning of `x[index]` for x of that shape; IndexError or TypeError where it has none."""
    items = index if type(index) is tuple else _as_tuple(index)
    entries = [_entry(item, at) for at, item in enumerate(items)]
    used = sum([_consumed(e) for e in entries])
    if used > len(shape):
        raise IndexError(
            f"[index] expected at most {len(shape)} indices, got {used}. Too many indices: array "
            f"is {len(shape)}-dimensional, but {used} were indexed"
        )
    ellipses = [at for at, e in enumerate(entries) if e is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(
            "[index] expected at most one Ellipsis, got "
            f"{len(ellipses)}: an index can only have a single ellipsis ('...')"
        )
    if not ellipses:
        entries.append(Ellipsis)
    grown: list[int] = []
    sizes: list[int] = []
    dims: list[Any] = []
    order: list[int] = []
    origin: list[int] = []
    taken = 0
    for at, e in enumerate(entries):
        found: tuple[Any, ...]
        if e is None:
            order.append(NEW)
            continue
        if e is Ellipsis:
            count = len(shape) - used
            found = tuple([Span(0, n, 1, False) for n in shape[taken : taken + count]])
        elif type(e) is _Mask and e.value.ndim == 0:
            grown.append(len(sizes))
            order.append(len(sizes))
            origin.append(at)
            sizes.append(1)
            dims.append(np.zeros(int(e.value), INT32))
            continue
        elif type(e) is _Mask:
            found = e.nonzero(shape[taken : taken + e.value.ndim], taken)
        else:
            found = (_span(e, shape[taken]) if type(e) is slice else e,)
        for entry in found:
            order.append(len(sizes))
            origin.append(at)
            sizes.append(shape[taken])
            dims.append(entry)
            taken += 1
    advanced: list[int] = []
    apart = False
    if any(is_array(d) and d.ndim for d in dims):
        advanced = [i for i, d in enumerate(dims) if type(d) is not Span]
        places = {origin[i] for i in advanced}
        apart = max(places) - min(places) + 1 != len(places)
    return Form(tuple(sizes), tuple(grown), tuple(dims), tuple(order), tuple(advanced), apart)


class _Mask:
    """A boolean array whose values are known."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def nonzero(self, sizes: tuple[int, ...], first: int) -> tuple[Any, ...]:
        """Per dimension, the coordinates of the true elements."""
        if self.value.shape != sizes:
            raise IndexError(
                f"[index] expected a boolean index of shape {sizes} at dimension {first}, got "
                f"{self.value.shape}: boolean index did not match shape of indexed array"
            )
        return tuple([c.astype(INT32) for c in np.nonzero(self.value)])


def _consumed(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return entry.value.ndim if type(entry) is _Mask else 1


def _as_tuple(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, list):
        raise TypeError(
            f"[index] expected a tuple, an array or a scalar, got the list {index!r}. Using a "
            "non-tuple sequence for multidimensional indexing is not allowed; use "
            "`arr[array(seq)]` instead of `arr[seq]`."
        )
    return (index,)


def _entry(item: Any, at: int) -> Any:
    """One item of an index: None, Ellipsis, a slice of ints, an int, a mask or an array."""
    kind = type(item)
    if kind is int or item is None or item is Ellipsis:
        return item
    if kind is slice:
        return _static_slice(item, at)
    if kind is bool:
        return _Mask(np.asarray(item))
    if isinstance(item, Array):
        return _array_entry(item, at)
    if isinstance(item, np.ndarray | np.generic):
        return _numpy_entry(item)
    if isinstance(item, list | tuple):
        array = _as_index_array(item)
        return _array_entry(array, at) if isinstance(array, Array) else _numpy_entry(array)
    if isinstance(item, str):
        raise TypeError(
            f"[index] expected integers, slices or arrays, got {item!r}: string indexing is not "
            "supported. A structure of named arrays is a dict or a dataclass."
        )
    if isinstance(item, float | complex):
        raise _not_integer(np.asarray(item).dtype)
    convert = getattr(item, "__jax_array__", None)
    if convert is not None:
        return _array_entry(convert(), at)
    try:
        return operator.index(item)
    except TypeError:
        error = TypeError if isinstance(item, Sequence) else IndexError
        raise error(
            "[index] expected only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and "
            f"integer or boolean arrays as indices, got {item!r} of type {kind}."
        ) from None


def _not_integer(dtype: Any) -> TypeError:
    return TypeError(
        "[index] expected an integer or boolean index, got one of dtype "
        f"{dtype.name}. Indexer must have integer or boolean type, got indexer with type "
        f"{dtype.name}. Convert it first with .astype(int)."
    )


def _numpy_entry(item: Any) -> Any:
    dtype = item.dtype
    if dtype == BOOL:
        return _Mask(np.asarray(item))
    if dtype.kind in "OUSMm":
        raise not_numeric(item, dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise _not_integer(dtype)
    return int(item) if item.ndim == 0 else item


def _array_entry(item: Any, at: int) -> Any:
    dtype = item.aval.dtype
    if dtype == BOOL:
        return _Mask(known_mask(item))
    if not dtypes.issubdtype(dtype, np.integer):
        raise _not_integer(dtype)
    # Scalars stay dynamic even when known: a loop over x[i] then repeats one program.
    if type(item) is ArrayImpl and item.host is not None and item.aval.ndim:
        return item.host
    return item


def known_values(x: Any) -> Any:
    """The NumPy array of a value, through those that transformations carry; None if unknown."""
    while isinstance(x, Tracer):
        x = x.concrete()
    return None if x is None else x.numpy()


def known_mask(mask: Any) -> Any:
    """The values of a boolean array; NonConcreteBooleanIndexError while they are not known."""
    values = known_values(mask)
    if values is None:
        here = current_location()
        raise errors.NonConcreteBooleanIndexError(
            errors.explain(
                errors.MSG_MASK,
                f"a traced array with shape {mask.aval.short()}",
                where=format_location(here) if here else "",
                origin=mask.origin(),
            )
        )
    return values


def _static_slice(item: slice, at: int) -> slice:
    try:
        return slice(
            *[None if v is None else operator.index(v) for v in (item.start, item.stop, item.step)]
        )
    except errors.TracerIntegerConversionError:
        raise IndexError(
            f"[index] expected a slice of static integers, got {item} at position {at}: the shape "
            "of the result would depend on its values. Slice entries must be static integers. For "
            "a start known only at run time and a fixed size use\n"
            "    primal.lax.dynamic_slice(x, (start,), (size,))\n"
            "or select with primal.numpy.where and a mask."
        ) from None
    except TypeError as error:
        raise TypeError(
            f"[index] expected a slice of integers, got {item} at position {at}: {error}."
        ) from None


def _span(s: slice, n: int) -> Span:
    start, stop, step = s.indices(n)
    size = len(range(start, stop, step))
    if size <= 1:
        return Span(min(max(start, 0), n), size, 1, False)
    if step > 0:
        return Span(start, size, step, False)
    return Span(start + (size - 1) * step, size, -step, True)


def _as_index_array(item: Any) -> Any:
    """A nested sequence as one array: NumPy's, or ours where it holds arrays of ours."""
    if holds_arrays(item):
        return asarray(item)
    array = np.asarray(item)
    return array.astype(INT32) if array.size == 0 else array


def holds_arrays(item: Any) -> bool:
    """Whether a nested sequence holds arrays or tracers."""
    if isinstance(item, list | tuple):
        return any(holds_arrays(i) for i in item)
    return isinstance(item, Array)


# Index values.


# Indices farther out than this are as far out.
FAR = 2**31


def position(i: int, n: int, wrap: bool) -> int:
    """A static index counted from the front; out of bounds stays out of bounds."""
    return min(max(i + n if wrap and i < 0 else i, -FAR), max(n, FAR - 1))


def positions(values: Any, n: int, wrap: bool) -> Any:
    """Known indices as int32 (int64 for giants), counted from the front."""
    last = max(n, FAR - 1)
    dtype = INT32 if last < FAR else INT64
    if values.size and np.minimum.reduce(values, None) >= 0 and np.maximum.reduce(values, None) < n:
        return values.astype(dtype, copy=False)
    if values.dtype.kind == "u":
        values = np.minimum(values, np.uint64(2**62)) if values.dtype.itemsize == 8 else values
    values = values.astype(np.int64)
    if wrap:
        values = np.where(values < 0, values + n, values)
    return np.clip(values, -FAR, last).astype(dtype)


def dynamic_positions(values: Any, n: int, wrap: bool) -> Any:
    """Traced indices as int32 or int64, negative ones counted from the end.

    Values that the index dtype cannot hold stay out of bounds rather than wrapping into them.
    """
    dtype, bits = values.aval.dtype, dtypes.itemsize_bits(values.aval.dtype)
    least = INT32 if n < FAR else INT64
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        signed = INT64 if bits == 64 else least
        if bits >= 8 * signed.itemsize:
            top = np.asarray(np.iinfo(signed).max, dtype)[()]
            values = minimum(values, broadcast_in_dim(
                top, shape=values.aval.shape, broadcast_dimensions=()))
        return convert_element_type(values, new_dtype=signed, weak_type=False)
    if bits < 8 * least.itemsize:
        values = convert_element_type(values, new_dtype=least, weak_type=False)
    if not wrap:
        return values
    return select_n(lt(values, 0), values, add(values, n))


def uniform_starts(starts: Sequence[Any]) -> list[Any]:
    """Scalar starts, ints and traced ones, in one dtype."""
    wide = any(_is_wide(s) for s in starts)
    dtype = INT64 if wide else INT32
    out = []
    for s in starts:
        if isinstance(s, int):
            out.append(literal(s, dtype, False))
        elif s.aval.dtype != dtype:
            out.append(convert_element_type(s, new_dtype=dtype, weak_type=False))
        else:
            out.append(s)
    return out


def start_indices(components: Sequence[Any], batch: tuple[int, ...]) -> Any:
    """Index components, each broadcasting to `batch`, side by side along a new last dimension.

    Known arrays stay NumPy's. Ints alone become literals, which a program need not carry as
    constants and engines can see.
    """
    arrays = [c for c in components if not isinstance(c, int)]
    if (arrays and all(isinstance(c, np.ndarray) for c in arrays)) or not components:
        dtype = INT64 if any(_is_wide(c) for c in components) else INT32
        out = np.empty((*batch, len(components)), dtype)
        for k, c in enumerate(components):
            out[..., k] = c
        return out
    dtype = INT64 if any(_is_wide(c) for c in components) else INT32
    columns = []
    for c in components:
        if isinstance(c, int):
            c = literal(c, dtype, False)
        elif isinstance(c, np.ndarray):
            c = c.astype(dtype)
        elif c.aval.dtype != dtype:
            c = convert_element_type(c, new_dtype=dtype, weak_type=False)
        rank = c.aval.ndim if hasattr(c, "aval") else c.ndim
        first = len(batch) - rank
        columns.append(
            broadcast_in_dim(
                c, shape=(*batch, 1), broadcast_dimensions=tuple(range(first, len(batch)))
            )
        )
    return columns[0] if len(columns) == 1 else concatenate(*columns, dimension=len(batch))


def _is_wide(c: Any) -> bool:
    if isinstance(c, int):
        return c >= 2**31
    return (c if isinstance(c, np.ndarray) else c.aval).dtype == INT64
