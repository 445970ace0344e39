"""Custom derivatives that close over values: custom_gradient, closure_convert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.api.control.custom import custom_vjp
from primal.api.operands import evaluated, name_of
from primal.base import dtypes
from primal.base.pytree import PyTreeDef, flatten, register_pytree_node, unflatten
from primal.base.structures import structure
from primal.base.wrapping import wraps
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.trace import Tracer, aval_of
from primal.transforms.stage import stage

Tree = Any


@structure
class _Pullback:
    """A traced pullback as a residual: a tree of the values that it closes over."""

    program: ClosedJaxpr
    spec: Any
    consts: Sequence[Any]


register_pytree_node(
    _Pullback,
    lambda p: (tuple(p.consts), (p.program, p.spec)),
    lambda aux, consts: _Pullback(aux[0], aux[1], tuple(consts)),
)


def custom_gradient(fun: Callable[..., tuple[Tree, Callable[..., Any]]]) -> custom_vjp:
    """A function from one that returns (result, vjp): the pullback closes over what it needs.

    `fun(*args)` -> (result, vjp) with vjp(ct) -> one cotangent per argument (a tuple, or the
    cotangent itself for one argument).

    >>> f = custom_gradient(lambda x: (x**2, lambda ct: 3.0 * ct))
    >>> from primal.api.autodiff import grad
    >>> grad(f)(5.0)
    Array(3., dtype=float32, weak_type=True)
    """

    @wraps(fun)
    def value(*args: Any, **kwargs: Any) -> Tree:
        return fun(*args, **kwargs)[0]

    wrapped = custom_vjp(value)

    def fwd(*args: Any) -> Any:
        out, pullback = fun(*args)
        leaves, spec = flatten(out)
        avals = [aval_of(x).tangent() for x in leaves]
        found: list[Any] = []

        def flat(*cts: Any) -> list[Any]:
            result = pullback(unflatten(spec, cts))
            if len(args) == 1 and not isinstance(result, tuple):
                result = (result,)
            results, result_spec = flatten(tuple(result))
            found.append(result_spec)
            return results

        closed = stage(flat, avals, name_of(fun))
        return out, _Pullback(ClosedJaxpr(hoist_consts(closed)), found[0], closed.consts)

    def bwd(pullback: Any, ct: Any) -> Any:
        cts, _ = flatten(ct)
        return unflatten(pullback.spec, evaluated(pullback.program, *pullback.consts, *cts))

    wrapped.defvjp(fwd, bwd)
    return wrapped


def closure_convert(fun: Callable[..., Tree], *example_args: Any) -> tuple[Any, list[Any]]:
    """(g, consts) with g(*args, *consts) = fun(*args), where g closes over no traced float.

    For rules of custom derivatives, which must not close over values that are differentiated: hand
    the consts to them as arguments. `example_args` tell the types that fun is traced for. TypeError
    where g gets arguments of another structure than the examples.

    >>> x = np.float32(2)
    >>> g, consts = closure_convert(lambda y: x * y, 3.0)
    >>> g(4.0, *consts)
    Array(8., dtype=float32)
    """
    leaves, spec = flatten(example_args)
    found: list[Any] = []

    def flat(*args: Any) -> list[Any]:
        outs, out_spec = flatten(fun(*unflatten(spec, args)))
        found.append(out_spec)
        return outs

    closed = stage(flat, [aval_of(x) for x in leaves], name_of(fun))
    program, consts = ClosedJaxpr(hoist_consts(closed)), closed.consts
    moving = [isinstance(c, Tracer) and _is_float(c) for c in consts]
    hoisted = [c for c, m in zip(consts, moving, strict=True) if m]

    @wraps(fun)
    def converted(*args_and_consts: Any) -> Tree:
        count = len(args_and_consts) - len(hoisted)
        args, given = args_and_consts[:count], iter(args_and_consts[count:])
        operands, got = flatten(tuple(args))
        if got != spec:
            raise TypeError(
                "[closure_convert] expected arguments of the structure of the examples, "
                f"{PyTreeDef(spec)}, got {PyTreeDef(got)}."
            )
        full = [next(given) if m else c for c, m in zip(consts, moving, strict=True)]
        return unflatten(found[0], evaluated(program, *full, *operands))

    return converted, hoisted


def _is_float(x: Any) -> bool:
    return dtypes.to_tangent_dtype(x.dtype) != dtypes.float0
