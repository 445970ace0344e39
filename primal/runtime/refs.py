"""Mutable references: a value that can be replaced, inside functional programs too.

A reference belongs to the program that is being traced where it is made, or to none. There it is a
Python object whose value is an array or a traced value, and writing replaces that. A program traced
inside (the body of a scan, a branch, a jitted function) that touches a reference from outside gets
its value as a further input, and returns the last value it wrote as a further output: what engines
and transformations see is pure. Both sides of that are in `program_refs`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from primal.base import dtypes, errors
from primal.base.source import current_location, format_location
from primal.ir.avals import Aval
from primal.ir.state import ambient, state
from primal.ir.trace import PYTHON_SCALARS, Array, Tracer, aval_of
from primal.runtime.eager import as_array
from primal.transforms.batch import Axis, BatchTrace, BatchTracer, materialize
from primal.transforms.jvp import as_weak
from primal.transforms.stage import StageTrace


class AbstractRef:
    """The type of a reference: that of the array it holds."""

    __slots__ = ("inner_aval",)

    def __init__(self, inner_aval: Aval) -> None:
        self.inner_aval = inner_aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.inner_aval.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and other.inner_aval is self.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_short()}}}"


class Slot:
    """A reference from outside, in a program that touched it: its value there, and if written."""

    __slots__ = ("value", "written")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.written = False


# In place of the slots of a program whose function may only read references.
READ_ONLY: dict[Any, Any] = {}


def innermost_program(trace: Any = None) -> StageTrace | None:
    """The program being traced, below transformations that trace none."""
    trace = state.trace if trace is None else trace
    while trace is not None:
        if isinstance(trace, StageTrace):
            return trace
        trace = trace.parent
    return None


class Ref:
    """A mutable array: read `ref[i]`, write `ref[i] = x`, add `ref[i] += x`; made by `new_ref`.

    Indices are those of arrays, with steps of at least 1. What is written has exactly the shape
    and dtype of what is replaced. Equal and hashed by identity.

    >>> r = primal.new_ref(jnp.zeros(2))
    >>> r[0] = 1.0
    >>> r[...]
    Array([1., 0.], dtype=float32)
    """

    __slots__ = ("_value", "_home", "_trace", "_aval", "_made", "__weakref__")

    def __init__(self, value: Any) -> None:
        self._value = value
        self._home = innermost_program()
        self._trace = state.trace
        aval = aval_of(value)
        self._aval = Aval(aval.shape, aval.dtype, aval.weak_type)
        self._made = current_location()

    def __reduce__(self) -> Any:
        return new_ref, (self[...],)

    @property
    def aval(self) -> AbstractRef:
        """The type: that of a reference to such an array."""
        return AbstractRef(self._aval)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to others in promotion."""
        return self._aval.weak_type

    @property
    def sharding(self) -> Any:
        """Where the array it holds lies."""
        return self._current().sharding

    @property
    def format(self) -> Any:
        """How the array it holds lies in memory, and on devices."""
        return self._current().format

    @property
    def committed(self) -> bool:
        """Whether computations with the array it holds must run on its device."""
        return bool(self._current().committed)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, idx: Any) -> Any:
        return _read(self._current(), _checked_index(self, idx))

    def __setitem__(self, idx: Any, value: Any) -> None:
        idx = _checked_index(self, idx)
        old = self._current()
        self._replace(_written(self, old, idx, value, "swap"))

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Add to a part, or to the whole: self[idx] += x, twice where an index occurs twice.

        >>> ref = new_ref(np.zeros(2, "float32"))
        >>> ref.addupdate(1.0, 0)
        >>> ref[...]
        Array([1., 0.], dtype=float32)
        """
        idx = _checked_index(self, Ellipsis if _is_whole(idx) else idx)
        self._replace(_written(self, self._current(), idx, x, "addupdate"))

    def __repr__(self) -> str:
        if self._home is not None or isinstance(self._value, Tracer):
            return repr(AbstractRef(self._aval))
        return f"Ref({repr(self._value).partition('(')[2]}"

    def ended(self) -> bool:
        """Whether the function that made it is traced no more."""
        return self._home is not None and not self._home.alive

    # The value, where the reference is used now.

    def _slot(self, writing: bool) -> Slot | None:
        """Its place in the program being traced; None in the one it belongs to."""
        program = innermost_program()
        while program is not self._home and program is not None and program.refs is READ_ONLY:
            if writing:
                raise NotImplementedError(
                    f"[ref] expected {program.name} to write no references from outside, got a "
                    f"write of {self!r}: it is part of an operation that computes values only. "
                    "Return the new value instead."
                )
            program = innermost_program(program.parent) if program.parent is not None else None
        if program is self._home:
            return None
        t: Any = program
        while t is not None and t is not self._home:
            t = t.parent
        if self._home is not None and t is None:
            raise errors.UnexpectedTracerError(
                f"[ref] expected a reference of the function being traced, got {self!r}, made at "
                f"{format_location(self._made)} in another one, {self._home.name}, that has ended. "
                "A reference lives as long as the function that makes it: return what it holds, "
                "ref[...]."
            )
        assert program is not None
        if program.refs is None:
            raise NotImplementedError(
                f"[ref] expected references from outside to be used in functions of jit, scan, "
                f"while_loop, cond, map or checkpoint, got {self!r} in {program.name}, which is "
                "traced for something else and could not write it back. Pass its value, ref[...], "
                "and return the new one."
            )
        slot = program.refs.get(self)
        if slot is None:
            slot = program.refs[self] = Slot(program.new_arg(self._aval))
        return slot

    def _current(self) -> Any:
        slot = self._slot(writing=False)
        return self._value if slot is None else slot.value

    def _replace(self, value: Any) -> None:
        slot = self._slot(writing=True)
        if isinstance(value, Tracer):
            _check_owner(self, value, self._trace if slot is None else innermost_program())
        if slot is None:
            self._value = value
        else:
            slot.value = value
            slot.written = True


class _View(Ref):
    """A reference to a part of another one, which holds the value."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Ref, part: Any) -> None:
        super().__init__(part)
        self._whole = whole
        self._value = None

    def __repr__(self) -> str:
        return repr(AbstractRef(self._aval))


class RowRef(_View):
    """A row of a reference, along the leading axis: what is written there is seen in the whole."""

    __slots__ = ("_row",)

    def __init__(self, whole: Ref, row: int) -> None:
        super().__init__(whole, whole[row])
        self._row = row

    def _current(self) -> Any:
        return self._whole[self._row]

    def _replace(self, value: Any) -> None:
        self._whole[self._row] = value


class MappedRef(_View):
    """What one example of a vmap sees of a reference that is mapped along a dimension.

    It serves the function and, later, the rules of `custom_vjp` in it, which run over the same
    axis again: the trace is looked up where the reference is used.
    """

    __slots__ = ("_axis", "_dim")

    def __init__(self, whole: Ref, example: BatchTracer, axis: Axis) -> None:
        super().__init__(whole, example)
        self._axis, self._dim = axis, example.dim

    def _mapping(self) -> BatchTrace:
        trace = state.trace
        while trace is not None:
            if isinstance(trace, BatchTrace) and trace.axis is self._axis:
                return trace
            trace = trace.parent
        raise errors.UnexpectedTracerError(
            f"[ref] expected a reference of a function being mapped, got {self!r}, made at "
            f"{format_location(self._made)} for the examples of a vmap that has ended. Use the "
            "reference that vmap was given."
        )

    def _current(self) -> Any:
        slot = self._slot(writing=False)
        if slot is not None:
            return slot.value
        trace = self._mapping()
        with ambient(trace.parent):
            return BatchTracer(trace, self._whole._current(), self._dim)

    def _replace(self, value: Any) -> None:
        slot = self._slot(writing=True)
        if slot is not None:
            super()._replace(value)
            return
        trace = self._mapping()
        if isinstance(value, Tracer):
            _check_owner(self, value, trace)
        value, dim = trace.split(value)
        with ambient(trace.parent):
            self._whole._replace(materialize(value, self._axis, dim, self._dim))


def _check_owner(ref: Ref, value: Tracer, trace: Any) -> None:
    """A reference outlives transformations that it was made outside of: their values must not."""
    while trace is not None:
        if trace is value._trace:
            return
        trace = trace.parent
    kind = "vmapped" if type(value) is BatchTracer else "differentiated"
    other = "unbatched" if kind == "vmapped" else "non-differentiated"
    raise Exception(
        f"performing a set/swap operation with a {kind} value on a {other} array reference of type "
        f"{AbstractRef(ref._aval)}. Move the array reference to be an argument of the {kind} "
        "function, or make it in there; or write lax.stop_gradient of the value."
    )


def _checked_index(ref: Ref, idx: Any) -> Any:
    items = idx if isinstance(idx, tuple) else (idx,)
    given = [i for i in items if i is not Ellipsis and i is not None]
    if len(given) > ref.ndim:
        raise ValueError(
            f"[ref] expected at most {ref.ndim} indices for {AbstractRef(ref._aval)}, got "
            f"{len(given)}: `indices` must not be longer than `shape`."
        )
    at = 0
    for i in items:
        if i is Ellipsis:
            at = ref.ndim - (len(items) - items.index(Ellipsis) - 1)
        elif isinstance(i, slice):
            if isinstance(i.step, int) and i.step < 1:
                raise ValueError(
                    f"[ref] expected slices with a step >= 1, got {i.step}. Reverse what is read."
                )
            at += 1
        elif isinstance(i, bool | np.bool_) or _is_mask(i):
            raise IndexError("[ref] expected integer indices, got booleans. Use where on ref[...].")
        elif i is not None:
            known = not isinstance(i, Tracer) and np.ndim(i) == 0
            if known and not -ref.shape[at] <= i < ref.shape[at]:
                raise ValueError(
                    f"[ref] expected an index below {ref.shape[at]} in dimension {at}, got "
                    f"{i}: Out of bound indexer: idx={i}, dim={ref.shape[at]}."
                )
            at += 1
    return idx


def _is_mask(i: Any) -> bool:
    return getattr(i, "dtype", None) == np.bool_


def _is_whole(idx: Any) -> bool:
    if type(idx) is tuple:
        return not idx or (len(idx) == 1 and idx[0] is Ellipsis)
    return idx is Ellipsis or idx is None


def _read(value: Any, idx: Any) -> Any:
    return value if idx is Ellipsis else value[idx]


def _written(ref: Ref, old: Any, idx: Any, value: Any, name: str) -> Any:
    """The array with a part replaced by, or (`addupdate`) increased by, a value."""
    new = value if isinstance(value, Array) else as_array(value)
    got = aval_of(new)
    part = ref._aval if idx is Ellipsis else _plain_part(ref, idx) or aval_of(old[idx])
    if got.shape != part.shape:
        raise ValueError(
            f"[ref] expected a value of the shape of what it replaces, {part.shape}, got "
            f"{got.shape}: Invalid shape for `{name}`. Ref shape: {ref.shape}. Broadcast it first."
        )
    if got.dtype != ref.dtype:
        kinds = got.dtype.kind, ref.dtype.kind
        weak = got.weak_type or type(value) in PYTHON_SCALARS
        if not (weak and (kinds[0] == kinds[1] or ref.dtype.kind == "V") and kinds[0] in "fV"):
            raise ValueError(
                f"[ref] expected a value of the dtype of the reference, got another: Invalid dtype "
                f"for `{name}`. Ref dtype: {ref.dtype.name}. Value dtype: {got.dtype.name}. "
                "Convert it with .astype."
            )
        new = new.astype(ref.dtype)
    if name == "addupdate":
        return old + new if idx is Ellipsis else old.at[idx].add(new)
    if idx is Ellipsis:
        # Of the reference's own type, weak or not, so that loops carry and jit meets one type.
        return as_weak(new, ref._aval)
    return old.at[idx].set(new)


def _plain_part(ref: Ref, idx: Any) -> Aval | None:
    """The type of `ref[i]` for one integer, the index of loops, without reading it."""
    if type(idx) is int or (isinstance(idx, Tracer) and idx.ndim == 0):
        return Aval(ref.shape[1:], ref.dtype)
    return None


# Making, reading and writing by functions.


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A mutable reference to an array that starts as `init_val`.

    `memory_space` and `kind` are accepted; every device here has one memory.

    TypeError for what is no array or scalar.

    >>> ref = new_ref(jnp.zeros(3))
    >>> ref[1] += 5.0
    >>> ref[...]
    Array([0., 5., 0.], dtype=float32)
    """
    if isinstance(init_val, Ref):
        raise TypeError(f"[new_ref] expected an array, got {init_val!r}. Read it first: ref[...].")
    try:
        return Ref(init_val if isinstance(init_val, Array) else as_array(init_val))
    except TypeError:
        raise TypeError(
            "Error interpreting argument to new_ref as an array. The problematic value is of type "
            f"{type(init_val)}. Make one reference per array of a tree, with tree.map."
        ) from None


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference of the shape and dtype of `ty`, whose value is to be written before it is read.

    >>> empty_ref(primal.ShapeDtypeStruct((2,), "float32")).shape
    (2,)
    """
    dtype = dtypes.canonicalize_dtype(ty.dtype)
    return Ref(as_array(np.zeros(tuple(map(operator.index, ty.shape)), dtype)))


def freeze(ref: Ref) -> Any:
    """The value of a reference, which is not to be used after.

    >>> r = primal.new_ref(jnp.zeros(3))
    >>> r[0] = 1.0
    >>> primal.freeze(r)
    Array([1., 0., 0.], dtype=float32)
    """
    return _a_ref("freeze", ref)._current()


def free_ref(ref: Ref) -> None:
    """Let go of a reference, which is not to be used after.

    >>> r = primal.new_ref(jnp.zeros(3))
    >>> primal.free_ref(r)
    """
    _a_ref("free_ref", ref)


def get(ref: Ref, idx: Any = None) -> Any:
    """ref[idx]; the whole array without an index.

    >>> get(new_ref(np.arange(3)), 2)
    Array(2, dtype=int32)
    """
    return _a_ref("get", ref)[Ellipsis if _is_whole(idx) else idx]


def swap(ref: Ref, idx: Any, value: Any) -> Any:
    """Write ref[idx] = value and return what was there.

    >>> swap(new_ref(np.arange(3)), 2, 7)
    Array(2, dtype=int32)
    """
    idx = Ellipsis if _is_whole(idx) else idx
    old = _a_ref("swap", ref)[idx]
    ref[idx] = value
    return old


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Write ref[idx] = value.

    >>> r = primal.new_ref(jnp.zeros(3))
    >>> primal.ref.set(r, 0, 1.0)
    >>> r[...]
    Array([1., 0., 0.], dtype=float32)
    """
    _a_ref("set", ref)[Ellipsis if _is_whole(idx) else idx] = value


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to a part: ref[idx] += x, where an index that occurs twice is added to twice.

    >>> ref = new_ref(np.zeros(2, "float32"))
    >>> addupdate(ref, np.array([0, 0]), np.float32([1, 2]))
    >>> ref[0]
    Array(3., dtype=float32)
    """
    _a_ref("addupdate", ref).addupdate(x, idx)


def _a_ref(name: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise TypeError(f"[{name}] expected a reference, as made by new_ref, got {type(ref)}.")
    return ref
