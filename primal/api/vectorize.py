"""vmap: a function of one example as a function of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.api.operands import argument_path, check_outputs, name_of, operand
from primal.api.tangents import is_float0
from primal.base.errors import api_boundary
from primal.base.pytree import (
    PyTreeDef,
    flatten,
    flatten_args,
    flatten_axes,
    flatten_with_path,
    unflatten,
)
from primal.base.wrapping import P, R, Transformed, check_callable
from primal.ir.trace import aval_of
from primal.runtime.refs import MappedRef, Ref
from primal.transforms.batch import Axis, batch_flat, materialize


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Transformed[P, R]:
    """Map a function over an axis of its arguments, as one program and not as a loop.

    vmap(f)(x)[i] = f(x[i]). `in_axes` and `out_axes` are an int, None (not mapped) or trees of
    them, prefixes of the arguments and the result. `axis_name` names the axis for collectives;
    `axis_size` gives its size where no argument has it. ValueError for sizes that differ. TypeError
    for what is no function and for `in_axes` of another kind.

    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(np.arange(3), 2)
    Array([0, 2, 4], dtype=int32)
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, int | tuple)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}."
        )
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    whole = 0 if type(in_axes) is int and in_axes == 0 else (in_axes, 0)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got len(in_axes)={len(in_axes)}"
                f", len(args)={len(args)}."
            )
        leaves, spec = flatten_args(args, kwargs)
        axes = flatten_axes("vmap in_axes", PyTreeDef(spec), whole)
        vals = [_value(x, a) for x, a in zip(leaves, axes, strict=True)]
        size, dims = _axis_size(args, kwargs, vals, axes, axis_size)
        axis = Axis(axis_name, size)
        found: list[Any] = []

        refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref) and axes[i] is not None}

        def flat(*xs: Any) -> list[Any]:
            if refs:
                xs = tuple(
                    [MappedRef(refs[i], x, axis) if i in refs else x for i, x in enumerate(xs)]
                )
            flat_args, flat_kwargs = unflatten(spec, xs)
            result = fun(*flat_args, **flat_kwargs)
            outs, out_spec = flatten(result)
            check_outputs(name_of(fun), result, outs)
            found.append(out_spec)
            return outs

        outs, out_dims = batch_flat(flat, axis, vals, dims)
        out_spec = found[0]
        wanted = flatten_axes("vmap out_axes", PyTreeDef(out_spec), out_axes)
        placed = []
        for out, dim, to in zip(outs, out_dims, wanted, strict=True):
            if to is None:
                if dim is not None:
                    raise ValueError(
                        "vmap has mapped output but out_axes is None: the result differs between "
                        f"the examples (got axis spec None but output was batched on axis {dim}), "
                        "so it needs an axis. Give out_axes an int there, or reduce "
                        f"over the axis with a collective (axis_name is {axis_name!r})."
                    )
                placed.append(out)
                continue
            ndim = aval_of(out).ndim + (dim is None)
            if not -ndim <= to < ndim:
                raise ValueError(
                    f"axis {to} is out of bounds for array of dimension {ndim}: [vmap] expected "
                    f"out_axes in [{-ndim}, {ndim})."
                )
            value = out if is_float0(out) else operand(out)
            placed.append(materialize(value, axis, dim, to % ndim))
        return unflatten(out_spec, placed)

    return api_boundary(mapped, fun, "Map over an axis")


def _value(x: Any, axis: int | None) -> Any:
    """An argument as an operand. What is not mapped stays as it is, a function or a number say.

    NumPy's arrays become ours all the same: the function may use `.at` and indices out of bounds.
    """
    if axis is None and not isinstance(x, np.ndarray | np.generic):
        return x
    return x[...] if isinstance(x, Ref) else operand(x)


def _check_axes(name: str, axes: Any) -> None:
    if type(axes) is int:
        return
    for axis in flatten(axes)[0]:
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"vmap {name} must be int, None, or a tree of them, but got {axes}.")


def _axis_size(
    args: Any, kwargs: Any, vals: list[Any], axes: list[Any], given: int | None
) -> tuple[int, list[int | None]]:
    """The mapped size and, per operand, its mapped dimension."""
    dims: list[int | None] = []
    sizes: dict[int, list[int]] = {}
    for i, (x, axis) in enumerate(zip(vals, axes, strict=True)):
        if axis is None:
            dims.append(None)
            continue
        aval = aval_of(x)
        if aval.ndim == 0:
            raise ValueError(
                "vmap was requested to map its argument along axis "
                f"{axis}, which implies that its rank should be at least 1, but is only 0 (its "
                f"shape is ()): argument {_path(args, kwargs, i)}. Give it in_axes=None."
            )
        if not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"vmap was requested to map its argument along axis {axis}, which implies that its "
                f"rank should be at least {axis + 1 if axis >= 0 else -axis}, but is only "
                f"{aval.ndim} (its shape is {aval.shape}): argument {_path(args, kwargs, i)}."
            )
        dim = axis % aval.ndim
        dims.append(dim)
        sizes.setdefault(aval.shape[dim], []).append(i)
    if given is not None:
        sizes.setdefault(given, [])
    if not sizes:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes, or axis_size must be provided."
            if vals
            else "vmap wrapped function must be passed at least one argument containing an array, "
            f"got empty *args={args} and **kwargs={kwargs}."
        )
    if len(sizes) > 1:
        lines = []
        for size, where in sizes.items():
            if not where:
                lines.append(f"  * axis_size was given as {size}")
            for i in where:
                lines.append(
                    f"  * argument {_path(args, kwargs, i)} of shape {aval_of(vals[i]).shape} has "
                    f"size {size} along axis {axes[i]}"
                )
        raise ValueError(
            "vmap got inconsistent sizes for array axes to be mapped:\n" + "\n".join(lines)
        )
    return next(iter(sizes)), dims


def _path(args: Any, kwargs: Any, i: int) -> str:
    return argument_path(flatten_with_path((args, kwargs))[0][i][0])
