"""Looking at programs: make_jaxpr, eval_shape; running without compiling: disable_jit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, overload

from primal.api.jit import JitFunction, LazyNames
from primal.api.operands import ShapeDtypeStruct, check_operands, flat_function, name_of, struct_of
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, flatten_args, unflatten
from primal.base.wrapping import check_callable, wraps
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.state import named_axis
from primal.ir.trace import Array
from primal.runtime.program_refs import tracing_refs
from primal.runtime.refs import Ref
from primal.transforms.stage import stage


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun` for its arguments instead of running it.

    Arguments may be arrays or ShapeDtypeStructs. With `return_shape`, a pair (jaxpr, shapes of the
    results). TypeError for what is no function.

    >>> make_jaxpr(lambda x: x * 2)(3)
    { lambda ; a:i32[]. let b:i32[] = mul a 2 in (b,) }
    """
    check_callable(fun)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @wraps(fun, "Jaxpr")
    @api_boundary
    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        fixed = {n % len(args) for n in numbers if -len(args) <= n < len(args)}
        dynamic = tuple([a for i, a in enumerate(args) if i not in fixed])
        leaves, spec = flatten_args(dynamic, kwargs)
        refs_at = tuple([i for i, x in enumerate(leaves) if isinstance(x, Ref)])
        leaves = [x[...] if isinstance(x, Ref) else x for x in leaves]
        avals = check_operands(name_of(fun), (dynamic, kwargs), leaves)

        def with_statics(*traced: Any, **traced_kwargs: Any) -> Any:
            rest = iter(traced)
            full = [args[i] if i in fixed else next(rest) for i in range(len(args))]
            return fun(*full, **traced_kwargs)

        with_statics.__name__ = name_of(fun)
        out: list[Any] = []
        flat = tracing_refs(flat_function(with_statics, spec, unflatten, out), [], refs_at)
        names = LazyNames(fun, args, kwargs, tuple(fixed))
        with contextlib.ExitStack() as stack:
            for name, size in axis_env or ():
                stack.enter_context(named_axis(name, size))
            closed: ClosedJaxpr = stage(flat, avals, name_of(fun), names)
        if return_shape:
            own = closed.out_avals[: out[0].num_leaves]
            return closed, unflatten(out[0], [struct_of(a) for a in own])
        return closed

    jaxpr_of.__name__ = f"make_jaxpr({name_of(fun)})"
    jaxpr_of.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', name_of(fun))})"
    jaxpr_of.__module__ = __name__.partition(".")[0]
    return jaxpr_of


@overload
def eval_shape(fun: Callable[..., Array], *args: Any, **kwargs: Any) -> ShapeDtypeStruct: ...
@overload
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of fun(*args, **kwargs), without computing anything.

    >>> eval_shape(lambda x: x.sum(), ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(), dtype=float32)

    ShapeDtypeStructs that `fun` returns are returned as they are.
    """
    if isinstance(fun, JitFunction):
        return fun.eval_shape(*args, **kwargs)  # which remembers, and returns arrays alone
    structs: dict[int, ShapeDtypeStruct] = {}
    arrays_of = _without_structs(fun, structs) if callable(fun) else fun
    shapes = make_jaxpr(arrays_of, return_shape=True)(*args, **kwargs)[1]
    if not structs:
        return shapes
    leaves, spec = flatten(shapes)
    return unflatten(spec, [structs.get(i, x) for i, x in enumerate(leaves)])


def _without_structs(
    fun: Callable[..., Any], structs: dict[int, ShapeDtypeStruct]
) -> Callable[..., Any]:
    """`fun` with zeros for the ShapeDtypeStructs among its results, which go to `structs`."""

    @wraps(fun)
    def arrays_of(*args: Any, **kwargs: Any) -> Any:
        out = fun(*args, **kwargs)
        leaves, spec = flatten(out)
        structs.update((i, x) for i, x in enumerate(leaves) if isinstance(x, ShapeDtypeStruct))
        if not structs:
            return out
        return unflatten(spec, [0 if i in structs else x for i, x in enumerate(leaves)])

    return arrays_of


__all__ = ["ShapeDtypeStruct", "eval_shape", "make_jaxpr"]
