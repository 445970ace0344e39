"""What derivatives ask of functions and their arguments: positions, dtypes, one number, aux."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.api.operands import check_outputs, name_of, operand
from primal.base import dtypes
from primal.base.pytree import flatten, flatten_with_path, keystr, unflatten
from primal.ir.avals import Aval
from primal.ir.state import state
from primal.ir.trace import Tracer, aval_of
from primal.runtime.refs import Ref
from primal.runtime.refusals import shown
from primal.transforms.jvp import JVPTrace
from primal.transforms.linearize import LinearizeTrace, Tape
from primal.transforms.stage import StageTrace

DIFFERENTIATING = (JVPTrace, LinearizeTrace, Tape)


def differentiated() -> bool:
    """Whether derivatives are being taken of what runs now, other than of a whole program."""
    trace = state.trace
    while trace is not None and not isinstance(trace, StageTrace):
        if type(trace) in DIFFERENTIATING:
            return True
        trace = trace.parent
    return False


def as_numbers(argnums: Any) -> tuple[int, ...]:
    """`argnums` as a tuple; TypeError for what is no int."""
    numbers = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)
    for n in numbers:
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise TypeError(f"[grad] expected argnums of ints, got {argnums!r}.")
    return tuple([n.__index__() for n in numbers])


def with_arguments(
    fun: Callable[..., Any], positions: Sequence[int], args: Any, kwargs: Any
) -> Callable[..., Any]:
    """The function of the arguments at `positions`; the others are those given here."""

    def partial(*dynamic: Any) -> Any:
        full = list(args)
        for i, x in zip(positions, dynamic, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return partial


def check_reduce_axes(name: str, reduce_axes: Any) -> None:
    """NotImplementedError for axes: the parameter is deprecated."""
    if reduce_axes:
        raise NotImplementedError(
            f"[{name}] expected no reduce_axes, which is deprecated, got {reduce_axes!r}. Use psum "
            "in the function."
        )


def positions_of(name: str, numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Which of `count` arguments the numbers name, negative ones from the end."""
    out = []
    for n in numbers:
        if n < -count:
            raise ValueError(
                f"[{name}] expected argnums of at least {-count} for {count} positional arguments, "
                f"got {n}."
            )
        if n >= count:
            raise TypeError(
                f"differentiating with respect to argnums={numbers if len(numbers) > 1 else n} "
                f"requires at least {n + 1} positional arguments to be passed by the caller, but "
                f"got only {count} positional arguments."
            )
        out.append(n % count)
    if len(set(out)) != len(out):
        raise TypeError(f"[{name}] expected distinct argnums, got {numbers}.")
    if not out:
        raise ValueError(f"[{name}] expected at least one of argnums, got none.")
    return tuple(out)


def differentiable(x: Any, tree: Any, i: int, holomorphic: bool, allow_int: bool) -> Any:
    """The i-th leaf of the arguments as an operand; an error where it has no derivatives."""
    if isinstance(x, Ref):
        raise ValueError(
            f"[grad] expected arrays to differentiate with respect to, got {x!r}: the gradient for "
            "a reference must be accumulated into one. Use vjp and bind it with `with_refs`."
        )
    try:
        aval = aval_of(x)
    except TypeError:
        path = keystr(flatten_with_path(tree)[0][i][0])
        raise TypeError(
            f"[grad] expected an array or a number at {path}, got {shown(x)}: Argument '{x}' of "
            f"type {type(x)} at path {path} is not a valid array type."
        ) from None
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                "grad with holomorphic=True requires inputs with complex dtype, but got "
                f"{dtype.name}."
            )
    elif dtypes.to_tangent_dtype(dtype) == dtypes.float0 and not allow_int:
        raise TypeError(
            "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype.name}. If you want to use Boolean- or integer-valued "
            "inputs, use vjp or set allow_int to True."
        )
    return operand(x)


def check_one(name: str, value: Any, has_aux: bool) -> None:
    """TypeError unless what the function `name` returns is one array, rather than a tree of some.

    A pair is what functions for `has_aux` return.
    """
    leaves, _ = flatten(value)
    if leaves and leaves[0] is value:
        return check_outputs(name, value, leaves)
    hint = ""
    if not has_aux and isinstance(value, tuple) and len(value) == 2:
        hint = " With has_aux=True it may return (value, aux)."
    raise TypeError(
        "Gradient only defined for scalar-output functions. Output was "
        f"{shown(value)}, from {name}.{hint}"
    )


def check_scalar(aval: Aval, holomorphic: bool) -> None:
    """TypeError unless a result is one number, real or, for holomorphic functions, complex."""
    if aval.shape != ():
        raise TypeError(
            "Gradient only defined for scalar-output functions. Output had shape: "
            f"{aval.shape}. Reduce it to a scalar, as with sum or mean, or use jacrev."
        )
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                "grad with holomorphic=True requires outputs with complex dtype, but got "
                f"{dtype.name}."
            )
    elif dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
            f"but got {dtype.name}. For holomorphic differentiation, pass holomorphic=True. For "
            "differentiation of non-holomorphic functions involving complex outputs, use vjp "
            "directly."
        )
    elif not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            "grad requires real- or complex-valued outputs (output dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype.name}. For differentiation of functions with integer "
            "outputs, use vjp directly."
        )


def taken_apart(aux: Any) -> tuple[list[Any], Any]:
    """The traced leaves of `aux`, and the rest of it, which may be anything: names, functions."""
    leaves, spec = flatten(aux)
    traced = [x for x in leaves if isinstance(x, Tracer)]
    return traced, (spec, [None if isinstance(x, Tracer) else (x,) for x in leaves])


def put_together(kept: Any, values: Sequence[Any]) -> Any:
    """`aux` with values in the places of what was traced."""
    spec, leaves = kept
    rest = iter(values)
    return unflatten(spec, [next(rest) if x is None else x[0] for x in leaves])


def flat_with_aux(
    fun: Callable[..., Any], spec: Any, found: list[Any], has_aux: bool, name: str
) -> Callable[..., list[Any]]:
    """`fun` on flat operands; (output spec, what aux keeps, number of outputs) goes to `found`."""

    def flat(*leaves: Any) -> list[Any]:
        result = fun(*unflatten(spec, leaves))
        aux: Any = ()
        if has_aux:
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    f"[{name}] expected a pair (value, aux) from the function because "
                    f"has_aux=True, got {type(result)}: expected function with aux output to "
                    "return a two-element tuple."
                )
            result, aux = result
        outs, out_spec = flatten(result)
        check_outputs(name_of(fun), result, outs)
        traced, kept = taken_apart(aux)
        found.append((out_spec, kept, len(outs)))
        return [*outs, *traced]

    return flat
