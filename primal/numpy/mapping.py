"""Functions of vectors or scalars carried over the other axes: vectorize, apply_along_axis."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from primal.api.operands import check_outputs, name_of, operand
from primal.api.vectorize import vmap
from primal.base.config import settings
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, unflatten
from primal.ir.trace import Array
from primal.numpy.creation import array, asarray
from primal.numpy.promotion import (
    array_operand,
    broadcast_shapes,
    check_arraylike,
    check_rank_promotion,
)
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered
from primal.numpy.shapes import expand_dims, squeeze
from primal.ops.types import iterates
from primal.runtime.refusals import in_words
from primal.transforms.batch import Axis, batch_flat, materialize

# vectorize

_NAME = r"\w+"
_DIMS = rf"(?:{_NAME}(?:,{_NAME})*)?"
_ARGUMENT = rf"\({_DIMS}\)"
_LIST = rf"{_ARGUMENT}(?:,{_ARGUMENT})*"
_SIGNATURE = re.compile(rf"^{_LIST}->{_LIST}$")

Core = tuple[str, ...]


def _parse_signature(text: str) -> tuple[list[Core], list[Core]]:
    if not _SIGNATURE.match(text.replace(" ", "")):
        raise ValueError(f"not a valid gufunc signature: {text}")
    inputs, outputs = text.replace(" ", "").split("->")

    def dims(part: str) -> list[Core]:
        return [tuple(re.findall(_NAME, a)) for a in re.findall(_ARGUMENT, part)]

    return dims(inputs), dims(outputs)


@in_words
def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Any = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of arrays that broadcasts over all axes but the core ones in its signature.

    The signature '(n),(n)->()' says that the function takes two vectors of one length and returns a
    scalar; without it, scalars. Arguments in `excluded` (positions and names) are passed whole.
    Raises ValueError for a bad signature and for shapes that do not fit it. Raises TypeError where
    `excluded` holds other than positions and names.

    >>> jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones((2, 3)), jnp.arange(3.))
    Array([3., 3.], dtype=float32)
    """
    if any(not isinstance(e, str | int) for e in excluded):
        raise TypeError(
            "jax.numpy.vectorize can only exclude integer or string arguments, but excluded="
            f"{excluded!r}"
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    cores = _parse_signature(signature) if signature is not None else None

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        fixed = {i: a for i, a in enumerate(args) if i in excluded or a is None}
        chosen = [i for i in range(len(args)) if i not in fixed]
        bound = {k: v for k, v in kwargs.items() if k in excluded}
        named = [k for k in kwargs if k not in excluded]

        def call(*values: Any) -> Any:
            if len(chosen) == len(args) and not kwargs:
                return pyfunc(*values)
            full_args: list[Any] = [fixed.get(i) for i in range(len(args))]
            for i, v in zip(chosen, values, strict=False):
                full_args[i] = v
            rest = dict(zip(named, values[len(chosen) :], strict=True))
            return pyfunc(*full_args, **bound, **rest)

        given = [args[i] for i in chosen] + [kwargs[k] for k in named]
        values = [asarray(v) for v in given]
        return _broadcasting(call, values, cores, signature, name_of(pyfunc))

    return api_boundary(wrapped, pyfunc)


def _broadcasting(
    call: Callable[..., Any], values: list[Any], cores: Any, signature: str | None, name: str
) -> Any:
    inputs = cores[0] if cores else [()] * len(values)
    if len(inputs) != len(values):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(inputs)}, got {len(values)} for "
            f"the signature {signature!r}."
        )
    sizes: dict[str, int] = {}
    leads = []
    for i, (x, core) in enumerate(zip(values, inputs, strict=True)):
        rank = x.ndim - len(core)
        if rank < 0:
            raise ValueError(
                f"input with shape {x.shape} does not have enough dimensions for all core "
                f"dimensions {core} of argument {i} in the signature {signature!r}."
            )
        _check_sizes(sizes, core, x.shape[rank:], signature)
        leads.append(x.shape[:rank])
    if settings().numpy_rank_promotion != "allow":
        check_rank_promotion("vectorize", [x.shape for x in values], leads)
    lead = broadcast_shapes(*leads) if leads else ()

    def checked(*inner: Any) -> Any:
        out = call(*inner)
        if cores:
            results = out if isinstance(out, tuple) else (out,)
            if len(results) != len(cores[1]):
                raise TypeError(
                    f"wrong number of output arguments: expected {len(cores[1])}, got "
                    f"{len(results)}."
                )
            for r, core in zip(results, cores[1], strict=True):
                have = array(r, copy=False).shape
                if len(have) != len(core):
                    raise ValueError(
                        f"output shape {have} does not match core dimensions {core} of the "
                        f"signature {signature!r}."
                    )
                _check_sizes(dict(sizes), core, have, signature)
        return out

    # From the last axis to the first, each maps the operands that have the axis; one that repeats
    # along it loses its axis of size 1 beforehand.
    levels: list[tuple[int, list[int | None]]] = []
    squeezed: list[list[int]] = [[] for _ in values]
    for back in range(1, len(lead) + 1):
        axes: list[int | None] = []
        for k, own in enumerate(leads):
            place = len(own) - back
            repeats = place >= 0 and own[place] == 1 and lead[len(lead) - back] != 1
            if repeats:
                squeezed[k].append(place)
            axes.append(None if place < 0 or repeats else 0)
        levels.append((lead[len(lead) - back], axes))
    values = [squeeze(x, tuple(s)) if s else x for x, s in zip(values, squeezed, strict=True)]
    return over_axes(checked, levels, values, name)


def over_axes(
    fun: Callable[..., Any],
    levels: Sequence[tuple[int, list[int | None]]],
    values: Sequence[Any],
    name: str,
) -> Any:
    """A function mapped over axes in front, the last of them first: per axis its size and which
    operands have it.

    As nested `vmap`s, without what each asks about its arguments: 15 us of 25 for an axis.
    """
    found: list[Any] = []

    def flat(*xs: Any) -> Sequence[Any]:
        result = fun(*xs)
        outs, spec = flatten(result)
        check_outputs(name, result, outs)
        found.append(spec)
        return outs

    def along(inner: Callable[..., Any], size: int, dims: list[int | None]) -> Callable[..., Any]:
        axis = Axis(None, size)

        def mapped(*xs: Any) -> list[Any]:
            outs, placed = batch_flat(inner, axis, xs, dims)
            return [
                materialize(operand(x), axis, d, 0) for x, d in zip(outs, placed, strict=True)
            ]

        return mapped

    mapped: Callable[..., Any] = flat
    for size, dims in levels:
        mapped = along(mapped, size, dims)
    outs = mapped(*values)
    return unflatten(found[0], outs)


def _check_sizes(sizes: dict[str, int], core: Core, shape: Sequence[int], text: Any) -> None:
    for name, n in zip(core, shape, strict=True):
        want = sizes.setdefault(name, n)
        if want != n:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {n} vs {want} on vectorized "
                f"function with signature={text!r}"
            )


# Along axes.


@remembered
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Array:
    """A function of vectors applied to every vector along an axis.

    The axes of its result take the place of the axis.

    >>> jnp.apply_along_axis(jnp.sum, 0, jnp.ones((2, 3)))
    Array([2., 2., 2.], dtype=float32)
    """
    check_arraylike("apply_along_axis", arr)
    x = array_operand("apply_along_axis", arr)
    at = as_axis("apply_along_axis", axis, x.ndim)

    def one(v: Any) -> Any:
        return func1d(v, *args, **kwargs)

    mapped = one
    for k in range(1, x.ndim - at):
        mapped = vmap(mapped, k, -1)
    for _ in range(at):
        mapped = vmap(mapped, 0, 0)
    return mapped(x)


@in_words
def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Array:
    """A reduction applied along one axis after the other, each kept at size 1.

    Raises ValueError where a result has neither kept nor lost the one axis.
    Raises TypeError unless `axes` is a sequence.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))
    Array([[6.]], dtype=float32)
    """
    check_arraylike("apply_over_axes", a)
    x = array_operand("apply_over_axes", a)
    if not iterates(axes) or not callable(func):
        raise TypeError(
            f"[apply_over_axes] expected a function and a sequence of axes, got {func!r} and "
            f"{axes!r}."
        )
    for axis in axes:
        at = as_axis("apply_over_axes", axis, x.ndim)
        out = func(x, at)
        if out.ndim == x.ndim - 1:
            out = expand_dims(out, at)
        elif out.ndim != x.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        x = out
    return x
