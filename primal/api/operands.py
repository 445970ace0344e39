"""Where user values become operands: flattening, conversion, names of arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.pytree import flatten, flatten_with_path, keystr
from primal.ir.avals import Aval, canonical_shape, make_aval
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.trace import Array, Tracer, aval_of
from primal.runtime import guards
from primal.runtime.array import from_literal
from primal.runtime.eager import as_array
from primal.runtime.program_refs import check_no_refs
from primal.runtime.refs import Ref
from primal.runtime.refusals import shown
from primal.runtime.sharding import Format, Sharding


class ShapeDtypeStruct:
    """Shape and dtype of an array, without values; what `eval_shape` returns.

    Where it stands for an argument, 64-bit dtypes are what they are for arrays.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding")

    def __init__(
        self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        # Any sequence: a structure may describe what is no array, until it stands for one.
        self.shape = tuple(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.weak_type = weak_type
        if not (sharding is None or isinstance(sharding, Sharding | Format)):
            raise ValueError(
                f"[ShapeDtypeStruct] expected a Sharding, a Format or None as sharding, got "
                f"{sharding!r}."
            )
        self.sharding = sharding

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """That of an array, a number or what has a shape and a dtype; TypeError for others.

        With the sharding where the array was put somewhere on purpose.

        >>> ShapeDtypeStruct.like(jnp.ones((2, 3)))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        aval = abstract(x)
        # A traced value is nowhere yet.
        chosen = not isinstance(x, Tracer) and getattr(x, "committed", True)
        sharding = getattr(x, "sharding", None) if chosen else None
        return cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    @property
    def format(self) -> Format:
        """The sharding, with the layout if one was asked for."""
        return self.sharding if isinstance(self.sharding, Format) else Format(None, self.sharding)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__} | changes
        return ShapeDtypeStruct(fields.pop("shape"), fields.pop("dtype"), **fields)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.weak_type, self.sharding)

    def __repr__(self) -> str:
        place = "" if self.sharding is None else f", sharding={self.sharding}"
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{place}{weak})"


def struct_of(aval: Aval) -> ShapeDtypeStruct:
    """The ShapeDtypeStruct of an aval."""
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def abstract(x: Any) -> Aval:
    """The aval of a user's value; a TypeError for what cannot be an array."""
    if isinstance(x, ShapeDtypeStruct):
        return make_aval(canonical_shape(x.shape), x.dtype, x.weak_type)
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
        return Aval(x.shape, dtypes.float0)
    try:
        return aval_of(x)
    except TypeError:
        stands_for_array = hasattr(x, "shape") and hasattr(x, "dtype")
        if stands_for_array and not isinstance(x, Ref | np.ndarray | np.generic):
            return make_aval(x.shape, x.dtype)
        raise


def evaluated(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """The outputs of a program for a user's eyes: those that are literals are arrays."""
    return [from_literal(x) for x in eval_closed(closed, *args)]


def operand(x: Any) -> Any:
    """Arrays and tracers as they are; NumPy values and Python scalars as arrays."""
    if isinstance(x, Array):
        return x
    if guards.ever:
        guards.host_to_device(x)
    return as_array(x)


def check_operands(name: str, tree: Any, leaves: Sequence[Any], avals: bool = False) -> list[Aval]:
    """The avals of the leaves; a TypeError that names the path of one that is no array."""
    try:
        return [abstract(x) for x in leaves]
    except TypeError:
        paths, _ = flatten_with_path(tree)
        for path, x in paths:
            try:
                abstract(x)
            except TypeError:
                kind = f"{type(x)}{f' of {x.dtype}' if isinstance(x, np.ndarray) else ''}"
                raise TypeError(
                    f"[{name}] expected arrays and numbers, got {kind}: "
                    f"Error interpreting argument to {name} as an abstract array. The problematic "
                    f"value is of type {type(x)} and was passed to the function at path "
                    f"{argument_path(path)}.\nArrays, NumPy values and Python scalars can be "
                    "traced. Mark anything else static, with static_argnums or static_argnames."
                ) from None
        raise


def argument_path(path: Any) -> str:
    """A key path of (args, kwargs) in the user's words, as in `args[0]['w']`."""
    text = keystr(path)
    if text.startswith("[0]"):
        return "args" + text[3:]
    if text.startswith("[1]"):
        return "kwargs" + text[3:]
    return text


def check_outputs(name: str, tree: Any, leaves: Sequence[Any]) -> None:
    """TypeError for results that are no arrays, naming their place in the output."""
    for i, x in enumerate(leaves):
        try:
            aval_of(x)
        except TypeError:
            check_no_refs(name, tree, leaves)
            paths, _ = flatten_with_path(tree)
            where = keystr(paths[i][0])
            raise TypeError(
                f"[{name}] expected arrays, scalars, or trees of them as results, got {shown(x)}: "
                f"function {name} returned a value of type {type(x)}"
                f"{' at output component ' + where if where else ''}, which is not a valid array "
                "type."
            ) from None


def name_of(fun: Callable[..., Any]) -> str:
    """The name of a function, for jaxprs and messages."""
    for f in (fun, getattr(fun, "func", None)):
        name = getattr(f, "__name__", None)
        if name:
            return str(name)
    return type(fun).__name__


def look_like(wrapper: Any, fun: Callable[..., Any]) -> None:
    """`functools.update_wrapper` for an object: attributes of `fun` never hide the object's own.

    A callable object may well have attributes named as methods of ours: `trace`, `lower`, `jvp`.
    One without a name, as a partial, has that of its function or class.
    """
    wrapper.__name__ = wrapper.__qualname__ = name_of(fun)
    functools.update_wrapper(wrapper, fun, updated=())
    for name, value in getattr(fun, "__dict__", {}).items():
        if not hasattr(type(wrapper), name):
            wrapper.__dict__.setdefault(name, value)


def argument_names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], skip: Sequence[int] = ()
) -> list[str]:
    """One name per leaf of the dynamic arguments, as in `x` or `params['w']`."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        parameters = []
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "args")
    names: list[str] = []
    for i, arg in enumerate(args):
        if i in skip:
            continue
        base = positional[i].name if i < len(positional) else f"{rest}[{i - len(positional)}]"
        names.extend(base + keystr(path) for path, _ in flatten_with_path(arg)[0])
    for key in sorted(kwargs):
        names.extend(key + keystr(path) for path, _ in flatten_with_path(kwargs[key])[0])
    return names


def flat_function(
    fun: Callable[..., Any], in_spec: Any, unflatten: Callable[..., Any], out: list[Any]
) -> Callable[..., list[Any]]:
    """`fun` from flat operands to flat results; the output's spec is appended to `out`."""

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = unflatten(in_spec, leaves)
        result = fun(*args, **kwargs)
        results, spec = flatten(result)
        check_outputs(name_of(fun), result, results)
        out.append(spec)
        return results

    return flat
