"""Values that flow through programs, and the protocol between ops and transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from primal.base import dtypes, errors
from primal.base.limits import iinfo
from primal.base.source import current_location, format_location
from primal.ir.avals import Aval, Typed
from primal.ir.op import Op

# An array or a tree of arrays, of a class that checkers know for one: no number, and no union.
Arrays = TypeVar("Arrays", bound="Array | Mapping[str, Any] | Sequence[Any]")


if TYPE_CHECKING:  # `x.at[index].set(values)`, whose class lies above: `primal.numpy.at`

    class Places(Protocol):
        def __getitem__(self, index: Any) -> Update: ...

    class Update(Protocol):
        def __getattr__(self, method: str) -> Callable[..., Array]: ...


class Array(Typed):
    """Base of every array value: concrete arrays and tracers.

    Operators and methods are installed here once, by `primal.numpy.methods`.
    """

    __slots__ = ()
    __array_priority__ = 100

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "[Array] expected primal.numpy.array to make one: primal.Array is what arrays and "
            "traced values are instances of."
        )

    if TYPE_CHECKING:  # what type checkers are to know of the methods installed later

        def __add__(self, other: Any) -> Array: ...
        def __radd__(self, other: Any) -> Array: ...
        def __sub__(self, other: Any) -> Array: ...
        def __rsub__(self, other: Any) -> Array: ...
        def __mul__(self, other: Any) -> Array: ...
        def __rmul__(self, other: Any) -> Array: ...
        def __truediv__(self, other: Any) -> Array: ...
        def __rtruediv__(self, other: Any) -> Array: ...
        def __floordiv__(self, other: Any) -> Array: ...
        def __rfloordiv__(self, other: Any) -> Array: ...
        def __mod__(self, other: Any) -> Array: ...
        def __rmod__(self, other: Any) -> Array: ...
        def __divmod__(self, other: Any) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: Any) -> tuple[Array, Array]: ...
        def __pow__(self, other: Any) -> Array: ...
        def __rpow__(self, other: Any) -> Array: ...
        def __matmul__(self, other: Any) -> Array: ...
        def __rmatmul__(self, other: Any) -> Array: ...
        def __and__(self, other: Any) -> Array: ...
        def __rand__(self, other: Any) -> Array: ...
        def __or__(self, other: Any) -> Array: ...
        def __ror__(self, other: Any) -> Array: ...
        def __xor__(self, other: Any) -> Array: ...
        def __rxor__(self, other: Any) -> Array: ...
        def __lshift__(self, other: Any) -> Array: ...
        def __rlshift__(self, other: Any) -> Array: ...
        def __rshift__(self, other: Any) -> Array: ...
        def __rrshift__(self, other: Any) -> Array: ...
        def __lt__(self, other: Any) -> Array: ...
        def __le__(self, other: Any) -> Array: ...
        def __gt__(self, other: Any) -> Array: ...
        def __ge__(self, other: Any) -> Array: ...
        def __eq__(self, other: Any) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Array: ...  # type: ignore[override]
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __getitem__(self, index: Any) -> Array: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __index__(self) -> int: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...

        # Arguments and errors of the methods: `primal.numpy.<name>`.
        all: Callable[..., Array]
        any: Callable[..., Array]
        argmax: Callable[..., Array]
        argmin: Callable[..., Array]
        argpartition: Callable[..., Array]
        argsort: Callable[..., Array]
        astype: Callable[..., Array]
        choose: Callable[..., Array]
        clip: Callable[..., Array]
        compress: Callable[..., Array]
        conj: Callable[..., Array]
        conjugate: Callable[..., Array]
        copy: Callable[..., Array]
        cumprod: Callable[..., Array]
        cumsum: Callable[..., Array]
        diagonal: Callable[..., Array]
        dot: Callable[..., Array]
        flatten: Callable[..., Array]
        max: Callable[..., Array]
        mean: Callable[..., Array]
        min: Callable[..., Array]
        prod: Callable[..., Array]
        ptp: Callable[..., Array]
        ravel: Callable[..., Array]
        repeat: Callable[..., Array]
        reshape: Callable[..., Array]
        round: Callable[..., Array]
        searchsorted: Callable[..., Array]
        sort: Callable[..., Array]
        squeeze: Callable[..., Array]
        std: Callable[..., Array]
        sum: Callable[..., Array]
        swapaxes: Callable[..., Array]
        take: Callable[..., Array]
        trace: Callable[..., Array]
        transpose: Callable[..., Array]
        var: Callable[..., Array]
        view: Callable[..., Array]
        T: Array
        mT: Array
        real: Array
        imag: Array
        nonzero: Callable[..., tuple[Array, ...]]
        at: Places
        block_until_ready: Callable[[], Array]

        def __getattr__(self, name: str) -> Any: ...

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]


class Literal(Typed):
    """A scalar known while tracing; printed inline in jaxprs."""

    __slots__ = ("val", "host", "aval")

    def __init__(self, val: Any, aval: Aval) -> None:
        self.val = val
        self.host = val  # the name under which eager execution reads every operand
        self.aval = aval

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.short()}"


class Zero:
    """The symbolic zero of tangents and cotangents; its aval is that of its place."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"


ZERO = Zero()


class Undefined(Typed):
    """The place of a linear operand in a transpose rule: an aval and no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval


class Trace:
    """One transformation in progress. `parent` is ambient while its rules run."""

    __slots__ = ("parent", "alive", "name", "__weakref__")

    def __init__(self, parent: Trace | None, name: str = "") -> None:
        self.parent = parent
        self.alive = True
        self.name = name

    def process(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run or record one operation."""
        raise NotImplementedError(f"[{type(self).__name__}] expected a trace that processes ops.")

    def know(self, array: Any, literal: Literal) -> None:
        """Told of an array that was made of a number; programs being recorded remember it."""
        if self.parent is not None:
            self.parent.know(array, literal)

    def literal_of(self, array: Any) -> Literal | None:
        """The number that an array was made of while a program was recorded."""
        return None if self.parent is None else self.parent.literal_of(array)

    def owns(self, tracer: Tracer) -> bool:
        """Whether the tracer is a value of this transformation."""
        return tracer._trace is self


class Tracer(Array):
    """A value standing in for an array inside a transformation."""

    __slots__ = ("aval", "_trace", "__weakref__")

    def __init__(self, trace: Trace, aval: Aval) -> None:
        self._trace = trace
        self.aval = aval

    def origin(self) -> str:
        """Where the value came from, for error messages."""
        return ""

    def concrete(self) -> Any:
        """The concrete array this tracer carries, or None."""
        return None

    def varies(self) -> bool:
        """Whether a derivative is being taken with respect to the value."""
        return False

    def __repr__(self) -> str:
        return f"Traced<{self.aval!r}>with<{type(self._trace).__name__}>"

    # What no array of this type could be made of is said before the value is asked for.
    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(errors.NO_ONE_TRUTH if self.aval.size else errors.NO_TRUTH)
        return bool(concrete_or_error(self, "bool"))

    def __int__(self) -> int:
        return int(_scalar(self, "int"))

    def __float__(self) -> float:
        return float(_scalar(self, "float"))

    def __complex__(self) -> complex:
        return complex(_scalar(self, "complex"))

    def __index__(self) -> int:
        if self.aval.ndim or not dtypes.issubdtype(self.aval.dtype, np.integer):
            raise TypeError(
                "Only integer scalar arrays can be converted to a scalar index, got "
                f"{shown(self.aval)}."
            )
        return int(concrete_or_error(self, "index").__index__())

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return concrete_or_error(self, "array").__array__(*args, **kwargs)

    def tolist(self) -> Any:
        """Nested lists of a concrete value; an error while its value is not known."""
        return concrete_or_error(self, "tolist").tolist()

    def item(self, *args: Any) -> Any:
        """The Python scalar of a concrete value; an error while its value is not known."""
        return concrete_or_error(self, "item").item(*args)

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {type(self).__name__!r} ({self.aval!r})")

    def __iter__(self) -> Any:
        if self.aval.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.aval.shape[0])])

    def __reduce__(self) -> Any:
        return concrete_or_error(self, "pickle").__reduce__()

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __getattr__(self, name: str) -> Any:
        if name in _OF_VALUES:
            return getattr(concrete_or_error(self, name), name)
        if name in _METHODS_OF_VALUES:
            return lambda *args, **kwargs: getattr(concrete_or_error(self, name), name)(
                *args, **kwargs
            )
        if name in _OF_BUFFERS:
            hint = " primal.typeof(x) tells what is known of it." if name == "sharding" else ""
            raise AttributeError(
                f"The {name!r} attribute is not available on {shown(self.aval)}. Use it on the "
                f"results of the traced function.{hint}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


# Of values in memory. Libraries ask for the last group with `hasattr`, which is to say no.
_OF_VALUES = frozenset((
    "addressable_shards", "committed", "global_shards", "is_fully_addressable",
    "is_fully_replicated",
))  # fmt: skip
_METHODS_OF_VALUES = frozenset((
    "addressable_data", "delete", "devices", "is_deleted", "on_device_size_in_bytes", "tobytes",
    "unsafe_buffer_pointer", "__dlpack__", "__dlpack_device__",
))  # fmt: skip
_OF_BUFFERS = frozenset((
    "block_until_ready", "copy_to_host_async", "device", "is_ready", "sharding",
))  # fmt: skip


class _Declared:
    """What `Array` says its arrays have: libraries ask the class for `Array.item` and wrap it.

    Of a tracer such an attribute is missing, so that `Tracer.__getattr__` answers as ever.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __get__(self, x: Any, owner: Any = None) -> Any:
        if x is None:
            return self
        raise AttributeError(f"{type(x).__name__!r} object has no attribute {self.__name__!r}")

    def __call__(self, x: Array, *args: Any) -> Any:
        return getattr(x, self.__name__)(*args)


_ALWAYS = frozenset(("item", "tolist", "__copy__", "__deepcopy__"))
for _name in _ALWAYS | _OF_VALUES | _METHODS_OF_VALUES | _OF_BUFFERS:
    setattr(Array, _name, _Declared(_name))


def shown(aval: Aval) -> str:
    """An aval in the words of error messages."""
    return f"traced array with shape {aval.dtype.name}[{','.join(map(str, aval.shape))}]"


def _scalar(x: Tracer, use: str) -> Any:
    if x.aval.ndim:
        raise TypeError(
            f"Only scalar arrays can be converted to Python scalars; got arr.ndim={x.aval.ndim}: "
            f"[{use}] expected a scalar, got {shown(x.aval)}."
        )
    return concrete_or_error(x, use)


_CONVERSIONS: dict[str, tuple[type[Exception], str]] = {
    "bool": (errors.TracerBoolConversionError, errors.MSG_BOOL),
    "index": (errors.TracerIntegerConversionError, errors.MSG_INTEGER),
    "array": (errors.TracerArrayConversionError, errors.MSG_ARRAY),
}


def concrete_or_error(
    x: Any, use: str, error: type[Exception] = errors.ConcretizationTypeError
) -> Any:
    """The concrete array behind x (through the values transformations carry), or an error.

    `use` names the conversion asked for: bool, index, array, int, float, complex or item. Others
    raise `error`.
    """
    value = x
    while isinstance(value, Tracer):
        check_alive(value)
        inner = value.concrete()
        if inner is None or (use in _KEEPS_DERIVATIVE and value.varies()):
            raise _conversion_error(value, use, error)
        value = inner
    return value


# Conversions to numbers that a function could go on with; those to bool and int are steps.
_KEEPS_DERIVATIVE = frozenset(("float", "complex", "array", "tolist"))


def _conversion_error(value: Tracer, use: str, error: type[Exception]) -> Exception:
    cls, text = _CONVERSIONS.get(use, (error, errors.MSG_CONCRETE))
    if value.concrete() is not None:
        text = errors.MSG_TANGENT
    return cls(
        errors.explain(
            text,
            shown(value.aval),
            where=format_location(current_location()),
            origin=value.origin(),
            function=value._trace.name,
            what=use,
        )
    )


def leak_error(tracer: Tracer) -> Exception:
    """The error of using a tracer outside of the transformation that made it."""
    return errors.UnexpectedTracerError(
        errors.explain(
            errors.MSG_LEAK,
            shown(tracer.aval),
            where=format_location(current_location()),
            origin=tracer.origin(),
            function=tracer._trace.name,
        )
    )


def check_alive(tracer: Tracer) -> None:
    """Raise UnexpectedTracerError when the transformation that made the tracer has ended."""
    if not tracer._trace.alive:
        raise leak_error(tracer)


PYTHON_SCALARS = frozenset((bool, int, float, complex))


def aval_of(x: Any) -> Aval:
    """The aval of any operand: arrays, tracers, literals, NumPy values and Python scalars."""
    try:
        aval = x.aval
        if aval.__class__ is Aval:
            return aval
    except AttributeError:
        pass
    if type(x) in PYTHON_SCALARS:
        return Aval((), dtypes.python_scalar_dtype(type(x)), type(x) is not bool)
    if isinstance(x, np.ndarray | np.generic):
        if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
            _check_unmasked(x)
        dtype = x.dtype
        if dtype not in dtypes.KIND and dtype != dtypes.float0:
            raise not_numeric(x, dtype)
        return Aval(x.shape, dtypes.canonicalize_dtype(dtype))
    if isinstance(x, bool | int | float | complex):
        return Aval((), dtypes.python_scalar_dtype(x), not isinstance(x, bool))
    converted = as_array_operand(x)
    return converted.aval if hasattr(converted, "aval") else aval_of(converted)


def _check_unmasked(x: Any) -> None:
    """ValueError for masked arrays: numbers that are masked would count like others."""
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(
            "[operand] expected a plain array, got a masked one: numpy masked arrays are not "
            "supported as direct inputs. Say what stands in the gaps: x.filled(value)."
        )


def not_numeric(value: Any, dtype: Any) -> TypeError:
    """The error of a value that no array can hold."""
    text = str(value)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return TypeError(
        f"[operand] expected numbers, got {dtype}: Value '{shown}' with dtype {dtype} is not a "
        "valid JAX array type. Only arrays of numeric types are supported: booleans, integers, "
        "floats and complex numbers."
    )


def as_array_operand(x: Any) -> Any:
    """The array an object offers through `__jax_array__`; a TypeError for anything else."""
    convert = getattr(x, "__jax_array__", None)
    if convert is not None:
        return convert()
    if type(x) is Undefined:
        raise TypeError(
            "[transpose] expected a linear function, got one that multiplies, or otherwise "
            f"combines, two values that depend on its arguments (one of {shown(x.aval)})."
        )
    raise TypeError(
        f"[operand] expected an array, a tracer or a Python scalar, got {x!r} of type {type(x)}. "
        "Convert lists with primal.numpy.array first."
    )


def literal(value: Any, dtype: Any, weak_type: bool = True) -> Literal:
    """A scalar as a Literal of that dtype."""
    if value.__class__ is int:  # those of eager rules, a few microseconds each: 0, 1, 2
        key = (value, dtype, weak_type)
        found = _integers.get(key)
        if found is None:
            aval = Aval((), dtype, weak_type)
            host = np.asarray(value).astype(dtypes.physical_dtype(aval.dtype))
            found = Literal(host[()], aval)
            if len(_integers) < 4096:
                _integers[key] = found
        return found
    aval = Aval((), dtype, weak_type)
    # What fits float16 fits all, and np.errstate takes 2 µs; abs of the least integer overflows.
    if not isinstance(value, float) or abs(value) > 65504:
        with np.errstate(over="ignore"):
            return Literal(np.asarray(value).astype(aval.dtype)[()], aval)
    return Literal(np.asarray(value).astype(aval.dtype)[()], aval)


_integers: dict[Any, Literal] = {}
_literals: dict[Any, Literal] = {}


def _adopted(value: Any, dtype: Any, op: Op) -> Literal:
    """The Literal a Python scalar becomes beside operands of that dtype."""
    # 0.0 == -0.0 and nan != nan would make the cache return the wrong scalar.
    cacheable = value and (type(value) is not complex) and value == value
    key = (value, type(value), dtype)
    if cacheable:
        found = _literals.get(key)
        if found is not None:
            return found
    if not dtypes.scalar_fits_kind(type(value), dtype):
        raise TypeError(
            f"[{op.name}] expected operands of one dtype, got {dtype.name} and the Python "
            f"{type(value).__name__} {value!r}. Convert first, or call the primal.numpy function, "
            "which promotes."
        )
    check_range(value, dtype)
    made = literal(value, dtype)
    if cacheable:
        if len(_literals) > 4096:
            _literals.clear()
        _literals[key] = made
    return made


def check_range(value: Any, dtype: Any) -> None:
    """Raise OverflowError for a Python integer that the dtype cannot hold."""
    if type(value) is int and dtype.kind in "iu":
        info = iinfo(dtype)
        if not int(info.min) <= value <= int(info.max):
            raise OverflowError(
                f"[operand] expected an integer of {dtype.name}, got {value}: Python integer "
                f"{value} out of bounds for {dtype.name}"
            )


def adopt_scalars(op: Op, args: tuple[Any, ...]) -> list[Any]:
    """Python scalars as Literals: of the other operands' dtype where the kind says so."""
    dtype = None
    if op.kind.adopts_scalars:
        for a in args:
            if type(a) not in PYTHON_SCALARS:
                dtype = aval_of(a).dtype
                break
    out = []
    for a in args:
        if type(a) not in PYTHON_SCALARS:
            out.append(a)
        elif dtype is None:
            own = dtypes.python_scalar_dtype(type(a))
            check_range(a, own)
            out.append(literal(a, own, type(a) is not bool))
        else:
            out.append(_adopted(a, dtype, op))
    return out


def check_ancestor(trace: Trace | None, tracer: Tracer) -> None:
    """Raise when a tracer belongs to a trace that is no ancestor of `trace`."""
    t = trace
    while t is not None:
        if t.owns(tracer):
            return
        t = t.parent
    raise leak_error(tracer)
