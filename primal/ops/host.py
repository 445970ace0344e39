"""Calls of Python functions on the host, from anywhere in a program.

A callback takes and returns NumPy arrays of the types that the program declares, and can be
`resized` to results of other shapes; what users wrote is wrapped by the layer above. There are
three families, by what a transformation may do with them:

* `pure_callback`: a function of its operands. It may run more than once, or never.
* `io_callback`: runs exactly once each time the program comes to it.
* `debug_callback`, `debug_print`: for people; no result, derivatives look through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import physical_dtype
from primal.base.structures import structure
from primal.ir.avals import Aval
from primal.ir.effects import DebugEffect, IOEffect, OrderedDebugEffect, OrderedIOEffect
from primal.ir.op import HOST, Never, Op, by_kind, library
from primal.ir.trace import aval_of
from primal.ops.shape import moveaxis, reshape
from primal.ops.spread import broadcast_axis

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
    None,
)


@structure
class OneByOne:
    """A callback called for one example after the other; its results are stacked."""

    callback: Callable[..., Sequence[Any]]
    batched: tuple[bool, ...]
    size: int
    result_avals: tuple[Aval, ...]

    def __call__(self, *arrays: Any) -> list[Any]:
        outs = [
            np.empty((self.size, *a.shape), physical_dtype(a.dtype)) for a in self.result_avals
        ]
        for i in range(self.size):
            one = [x[i] if b else x for x, b in zip(arrays, self.batched, strict=True)]
            for out, value in zip(outs, self.callback(*one), strict=True):
                out[i] = value
        return outs

    def __repr__(self) -> str:
        return f"OneByOne({self.callback!r}, size={self.size})"


def _grown(avals: Sequence[Aval], size: int) -> tuple[Aval, ...]:
    return tuple([Aval((size, *a.shape), a.dtype, a.weak_type) for a in avals])


def _in_front(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    return [a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]


def _one_by_one(callback: Any, dims: Sequence[int | None], size: int, avals: Any) -> OneByOne:
    return OneByOne(callback, tuple([d is not None for d in dims]), size, avals)


def _type(*avals: Aval, result_avals: tuple[Aval, ...], **params: Any) -> tuple[Aval, ...]:
    return result_avals


def _impl(*arrays: Any, callback: Any, **params: Any) -> Sequence[Any]:
    return callback(*arrays)  # type: ignore[no-any-return]


def _show(params: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in params.items() if v is not False}


# Pure functions.


def _pure_batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    callback: Any,
    result_avals: tuple[Aval, ...],
    sharding: Any,
    vmap_method: str | None,
) -> Any:
    if vmap_method is None:
        raise NotImplementedError(
            "[pure_callback] expected vmap_method to be given under vmap, got None: it says "
            "whether the function takes one example or all. Pass 'sequential' to call it once per "
            "example, 'expand_dims' or 'broadcast_all' to call it once with a leading axis."
        )
    moved = _in_front(args, dims)
    grown = _grown(result_avals, axis.size)
    if vmap_method.startswith("sequential"):
        callback = _one_by_one(callback, dims, axis.size, result_avals)
    else:
        callback = callback.resized(grown)
    if vmap_method == "expand_dims":
        moved = [
            reshape(a, shape=(1, *aval_of(a).shape)) if d is None else a
            for a, d in zip(moved, dims, strict=True)
        ]
    elif vmap_method == "broadcast_all":
        moved = [
            broadcast_axis(a, axis.size, 0) if d is None else a
            for a, d in zip(moved, dims, strict=True)
        ]
    outs = pure_callback(
        *moved,
        callback=callback,
        result_avals=grown,
        sharding=sharding,
        vmap_method=vmap_method,
    )
    return outs, [0] * len(outs)


def _pure_hlo(
    b: Any,
    *operands: Any,
    callback: Any,
    result_avals: tuple[Aval, ...],
    sharding: Any,
    vmap_method: Any,
) -> Any:
    return b.host_call(callback, operands, result_avals)


pure_callback = Op(
    name="pure_callback",
    kind=HOST,
    type=_type,
    impl=_impl,
    jvp=Never(
        "[pure_callback] expected no derivative through a Python function, got jvp or grad: Pure "
        "callbacks do not support JVP. Define the derivative with custom_jvp or custom_vjp.",
        ValueError,
    ),
    transpose=Never(
        "[pure_callback] expected no transposition of a Python function, got one: Pure callbacks "
        "do not support transpose. Say what it is with custom_vjp.",
        ValueError,
    ),
    batch=_pure_batch,
    shard=by_kind,
    hlo=_pure_hlo,
    kernel=library,
    multiple=True,
    show=_show,
)


# Functions with effects.


def _io_effects(params: dict[str, Any]) -> Any:
    return frozenset((OrderedIOEffect() if params["ordered"] else IOEffect(),))


def _io_batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    callback: Any,
    result_avals: tuple[Aval, ...],
    sharding: Any,
    ordered: bool,
) -> Any:
    if ordered:
        raise ValueError(
            "[io_callback] expected ordered=False under vmap, got ordered=True: Cannot `vmap` "
            "ordered IO callback, as the examples have no order. Loop with scan or lax.map, or "
            "pass ordered=False."
        )
    outs = io_callback(
        *_in_front(args, dims),
        callback=_one_by_one(callback, dims, axis.size, result_avals),
        result_avals=_grown(result_avals, axis.size),
        sharding=sharding,
        ordered=ordered,
    )
    return outs, [0] * len(outs)


def _io_hlo(
    b: Any,
    *operands: Any,
    callback: Any,
    result_avals: tuple[Aval, ...],
    sharding: Any,
    ordered: bool,
) -> Any:
    return b.host_call(callback, operands, result_avals, side_effect=True, ordered=ordered)


io_callback = Op(
    name="io_callback",
    kind=HOST,
    type=_type,
    impl=_impl,
    jvp=Never(
        "[io_callback] expected no derivative through a Python function, got jvp or grad: IO "
        "callbacks do not support JVP. Apply stop_gradient to its operands, or use "
        "debug.callback, which derivatives look through.",
        ValueError,
    ),
    transpose=Never(
        "[io_callback] expected no transposition of a Python function, got one: IO callbacks "
        "do not support transpose. Say what it is with custom_vjp.",
        ValueError,
    ),
    batch=_io_batch,
    shard=by_kind,
    hlo=_io_hlo,
    kernel=library,
    multiple=True,
    effects=_io_effects,
    show=_show,
)


# For people.


def _debug_type(*avals: Aval, **params: Any) -> tuple[Aval, ...]:
    return ()


def _debug_impl(*arrays: Any, callback: Any, **params: Any) -> Sequence[Any]:
    callback(*arrays)
    return ()


def _debug_effects(params: dict[str, Any]) -> Any:
    return frozenset((OrderedDebugEffect() if params["ordered"] else DebugEffect(),))


def _debug_hlo(b: Any, *operands: Any, callback: Any, ordered: bool, **params: Any) -> Any:
    return b.host_call(callback, operands, (), side_effect=True, ordered=ordered)


def _debug_op(name: str, show: Any) -> Op:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        return op(*primals, **params), []

    def batch(axis: Any, args: Any, dims: Any, *, callback: Any, **params: Any) -> Any:
        each = _one_by_one(callback, dims, axis.size, ())
        return op(*_in_front(args, dims), callback=each, **params), []

    op = Op(
        name=name,
        kind=HOST,
        type=_debug_type,
        impl=_debug_impl,
        jvp=jvp,
        transpose=Never(
            f"[{name}] expected no transposition, got one: debug callbacks do not support "
            "transpose.",
            ValueError,
        ),
        batch=batch,
        shard=by_kind,
        hlo=_debug_hlo,
        kernel=library,
        multiple=True,
        effects=_debug_effects,
        show=show,
    )
    return op


debug_callback = _debug_op("debug_callback", _show)
debug_print = _debug_op(
    "debug_print", lambda params: {k: v for k, v in _show(params).items() if k != "callback"}
)
