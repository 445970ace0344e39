"""Derivatives of functions of trees: grad, jvp, vjp, linearize, linear_transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, overload

from primal.api.differentiable import (
    as_numbers,
    check_one,
    check_reduce_axes,
    check_scalar,
    differentiable,
    flat_with_aux,
    positions_of,
    put_together,
    taken_apart,
    with_arguments,
)
from primal.api.jit import jit
from primal.api.linear_maps import VJP, Pushforward
from primal.api.operands import abstract, name_of, operand
from primal.api.tangents import (
    active,
    cotangent_of,
    cotangent_operand,
    tangent_of,
    tangent_operand,
)
from primal.base import dtypes
from primal.base.errors import api_boundary
from primal.base.pytree import (
    Partial,
    PyTreeDef,
    flatten,
    unflatten,
)
from primal.base.wrapping import P, R, Transformed, check_callable
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.trace import ZERO, Arrays, aval_of, literal
from primal.ops.spread import zeros_like_aval
from primal.runtime.program_refs import check_distinct, given_refs, only_reading, settle_refs
from primal.runtime.refs import Ref
from primal.transforms.jvp import push_forward
from primal.transforms.linearize import Linearization, linearize_flat
from primal.transforms.stage import stage
from primal.transforms.transpose import backward_pass

# To type checkers: the derivative by the first argument is of its type if that is an array or tree
# of arrays. Python numbers and unions have derivatives that are arrays, so these are Any, as is
# what becomes of functions without types.


@overload
def grad(
    fun: Callable[Concatenate[Arrays, P], tuple[Any, R]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Transformed[Concatenate[Arrays, P], tuple[Arrays, R]]: ...
@overload
def grad(
    fun: Callable[Concatenate[Arrays, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Transformed[Concatenate[Arrays, P], Arrays]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Transformed[P, Any]: ...
@overload
def grad(  # type: ignore[overload-cannot-match]  # it does, for a lambda in another call
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Transformed[..., Any]: ...
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Any:
    """The gradient of a scalar-valued function with respect to the arguments `argnums`.

    grad(f)(x) = ∂f/∂x, of the structure of x; for complex x the C-linear convention, so conjugate
    it for steepest descent. With `has_aux`, f returns (value, aux) and grad(f) (gradient, aux).
    TypeError if f(x) is not a real scalar, or x not real or complex.

    >>> grad(lambda x: x**4)(2.0)
    Array(32., dtype=float32, weak_type=True)
    """
    value_and = _with_gradient(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = value_and(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return api_boundary(gradient, fun, "Gradient")


@overload
def value_and_grad(
    fun: Callable[Concatenate[Arrays, P], R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Transformed[Concatenate[Arrays, P], tuple[R, Arrays]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Transformed[P, tuple[R, Any]]: ...
@overload
def value_and_grad(  # type: ignore[overload-cannot-match]
    fun: Callable[..., R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Transformed[..., tuple[R, Any]]: ...
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Any:
    """`grad` together with the value: f(x), ∂f/∂x in one evaluation.

    TypeError where the value is no real scalar, an argument no float, or, with has_aux, the result
    no pair.

    >>> value_and_grad(lambda x: x**2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    value_and = _with_gradient(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    return api_boundary(value_and, fun, "Value and gradient")


def _with_gradient(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    reduce_axes: Sequence[Any],
) -> Callable[..., Any]:
    """What `grad` and `value_and_grad` are before they look like the function."""
    check_callable(fun)
    check_reduce_axes("grad", reduce_axes)
    numbers = as_numbers(argnums)
    single = not isinstance(argnums, Sequence)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("grad", numbers, len(args))
        wanted = tuple([args[i] for i in positions])
        leaves, spec = flatten(wanted)
        xs = [differentiable(x, wanted, i, holomorphic, allow_int) for i, x in enumerate(leaves)]
        found: list[Any] = []

        def flat(*flat_args: Any) -> list[Any]:
            full = list(args)
            for i, part in zip(positions, unflatten(spec, flat_args), strict=True):
                full[i] = part
            result: Any = fun(*full, **kwargs)
            if not has_aux:
                value, aux = result, ()
            else:
                try:
                    value, aux = result
                except (TypeError, ValueError):
                    raise TypeError(
                        "[grad] expected a pair (value, aux) from the function because "
                        f"has_aux=True, got {type(result)}: expected function with aux output to "
                        "return a two-element tuple."
                    ) from None
            traced, kept = taken_apart(aux)
            check_one(name_of(fun), value, has_aux)
            found.append(kept)
            return [value, *traced]

        active = [dtypes.to_tangent_dtype(aval_of(x).dtype) != dtypes.float0 for x in xs]
        outs, lin = linearize_flat(flat, xs, active)
        value = outs[0]
        aval = lin.out_avals[0]
        check_scalar(aval, holomorphic)
        one = literal(1, aval.dtype, aval.weak_type)
        cts = lin.transposed([one, *[ZERO] * (len(outs) - 1)])
        grads = [cotangent_of(ct, a) for ct, a in zip(cts, lin.in_avals, strict=True)]
        tree = unflatten(spec, grads)
        g = tree[0] if single else tree
        value = operand(value)
        return ((value, put_together(found[0], outs[1:])), g) if has_aux else (value, g)

    return value_and_gradient


@overload
def jvp(
    fun: Callable[..., Arrays], primals: Any, tangents: Any, has_aux: Literal[False] = False
) -> tuple[Arrays, Arrays]: ...
@overload
def jvp(
    fun: Callable[..., tuple[Arrays, R]], primals: Any, tangents: Any, has_aux: Literal[True]
) -> tuple[Arrays, Arrays, R]: ...
@overload
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any: ...
@api_boundary
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """f(x) and its derivative in a direction: (f(x), ∂f(x)·v), by forward mode.

    `tangents` has the structure, shapes and dtypes of `primals` (float0 for integers). With
    `has_aux`, f returns (value, aux) and jvp (value, tangent, aux). TypeError where they differ.

    >>> jvp(lambda x: x**2, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    if not isinstance(primals, list | tuple) or not isinstance(tangents, list | tuple):
        raise TypeError(
            "primal and tangent arguments to jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    check_callable(fun)
    leaves, spec = flatten(primals)
    tangent_leaves, tangent_spec = flatten(tangents)
    if spec != tangent_spec:
        raise TypeError(
            "primal and tangent arguments to jvp must have the same tree structure; primals have "
            f"tree structure {PyTreeDef(spec)} whereas tangents have tree structure "
            f"{PyTreeDef(tangent_spec)}."
        )
    xs = [operand(x) for x in leaves]
    ts = [tangent_operand(t, aval_of(x)) for x, t in zip(xs, tangent_leaves, strict=True)]
    found: list[Any] = []
    flat = flat_with_aux(fun, spec, found, has_aux, "jvp")
    outs, touts = push_forward(flat, xs, ts)
    out_spec, kept, count = found[0]
    value = unflatten(out_spec, [operand(o) for o in outs[:count]])
    tangent = unflatten(
        out_spec,
        [tangent_of(t, aval_of(o)) for o, t in zip(outs[:count], touts[:count], strict=True)],
    )
    if has_aux:
        return value, tangent, put_together(kept, outs[count:])
    return value, tangent


@overload
def vjp(
    fun: Callable[..., Arrays],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Any = (),
) -> tuple[Arrays, VJP]: ...
@overload
def vjp(
    fun: Callable[..., tuple[Arrays, R]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Any = (),
) -> tuple[Arrays, VJP, R]: ...
@overload
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Any = ()
) -> Any: ...
@api_boundary
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Any = ()
) -> Any:
    """f(x) and the function of cotangents ct -> (ctᵀ·∂f(x)), one result per argument.

    With `has_aux`, f returns (value, aux) and vjp (value, pullback, aux). The pullback raises
    TypeError/ValueError for a cotangent of another structure, shape or dtype than f(x). An
    argument may be a mutable reference; its gradient, with respect to what it held at first, goes
    to a reference that `pullback.with_refs` names.

    >>> y, pullback = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pullback(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_reduce_axes("vjp", reduce_axes)
    check_callable(fun)
    leaves, spec = flatten(primals)
    refs = [(i, x) for i, x in enumerate(leaves) if isinstance(x, Ref)]
    xs = [operand(x[...] if isinstance(x, Ref) else x) for x in leaves]
    found: list[Any] = []
    flat = flat_with_aux(fun, spec, found, has_aux, "vjp")
    if refs:
        check_distinct("vjp", [(x, True) for _, x in refs], ())
        flat = given_refs(flat, [i for i, _ in refs])
    outs, lin = linearize_flat(flat, xs, active(xs))
    out_spec, kept, count = found[0]
    pullback = VJP(lin, spec, out_spec, count)
    pullback.given = tuple(map(id, xs))
    if refs:
        pullback.ref_args = tuple([i for i, _ in refs])
        settle_refs([(x, True) for _, x in refs], outs[-len(refs) :])
    value = unflatten(out_spec, [operand(o) for o in outs[:count]])
    if has_aux:
        return value, pullback, put_together(kept, outs[count : len(outs) - len(refs)])
    return value, pullback


@overload
def linearize(
    fun: Callable[..., Arrays], *primals: Any, has_aux: Literal[False] = False
) -> tuple[Arrays, Callable[..., Arrays]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[Arrays, R]], *primals: Any, has_aux: Literal[True]
) -> tuple[Arrays, Callable[..., Arrays], R]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any: ...
@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """f(x) and the linear function v -> ∂f(x)·v, evaluated without repeating f.

    >>> y, push = linearize(lambda x: x**3, 2.0)
    >>> push(1.0)
    Array(12., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    leaves, spec = flatten(primals)
    xs = [operand(x) for x in leaves]
    found: list[Any] = []
    flat = flat_with_aux(fun, spec, found, has_aux, "linearize")
    outs, lin = linearize_flat(flat, xs, active(xs))
    out_spec, kept, count = found[0]
    push = Pushforward(lin, spec, out_spec, count)
    value = unflatten(out_spec, [operand(o) for o in outs[:count]])
    if has_aux:
        return value, push, put_together(kept, outs[count:])
    return value, push


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both passes of reverse mode as functions: fwd(*args) -> (f(*args), res), bwd(res, ct).

    `bwd` gives the cotangents of the arguments `argnums` (a tuple for a sequence). With `has_aux`,
    f returns (value, aux) and fwd (value, res, aux). `jitted` compiles both.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> y, res = fwd(2.0, 3.0)
    >>> bwd(res, 1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    numbers = as_numbers(argnums)
    single = not isinstance(argnums, Sequence)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("fwd_and_bwd", numbers, len(args))
        partial = with_arguments(fun, positions, args, kwargs)
        return vjp(partial, *[args[i] for i in positions], has_aux=has_aux)

    def bwd(res: VJP, ct: Any) -> Any:
        cts = res(ct)
        return cts[0] if single else cts

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Any:
    """The transpose of a linear function: ct -> fᵀ(ct), for arguments of these shapes.

    `primals` may be arrays or ShapeDtypeStructs; their values do not matter. TypeError where f
    is not linear.

    >>> transposed = linear_transpose(lambda x: 3 * x, np.float32(0))
    >>> transposed(2.0)
    (Array(6., dtype=float32),)

    The function is a tree of the values f closes over, so that jit and vmap may return it.
    """
    check_reduce_axes("linear_transpose", reduce_axes)
    check_callable(fun)
    leaves, spec = flatten(primals)
    avals = [abstract(x) for x in leaves]
    found: list[Any] = []
    flat = flat_with_aux(fun, spec, found, False, "linear_transpose")
    closed = stage(only_reading(flat), avals, name_of(fun))
    kinds = [{a.dtype.kind in "biu" for a in some} for some in (avals, closed.out_avals)]
    integers = {True} in kinds
    if {True, False} in kinds or (integers and {False} in kinds):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer "
            f"-> integer functions, but got input dtypes {[str(a.dtype) for a in avals]} and "
            f"output dtypes {[str(a.dtype) for a in closed.out_avals]}."
        )
    out_spec = found[0][0]
    program = ClosedJaxpr(hoist_consts(closed))
    linear = [False] * len(closed.consts) + [True] * len(avals)

    @api_boundary
    def transposed(consts: list[Any], ct: Any) -> Any:
        ct_leaves, ct_spec = flatten(ct)
        if ct_spec != out_spec:
            raise TypeError(
                "cotangent tree does not match function output, expected "
                f"{PyTreeDef(out_spec)} but got {PyTreeDef(ct_spec)}."
            )
        cts = [
            cotangent_operand(c, a, a if integers else None, TypeError)
            for c, a in zip(ct_leaves, closed.out_avals, strict=True)
        ]
        results = backward_pass(program, linear, [*consts, *[None] * len(avals)], cts)
        if integers:
            return unflatten(
                spec,
                [
                    zeros_like_aval(a) if c is ZERO else operand(c)
                    for c, a in zip(results, avals, strict=True)
                ],
            )
        return unflatten(spec, [cotangent_of(c, a) for c, a in zip(results, avals, strict=True)])

    return Partial(transposed, closed.consts)


__all__ = [
    "Linearization",
    "fwd_and_bwd",
    "grad",
    "jvp",
    "linear_transpose",
    "linearize",
    "value_and_grad",
    "vjp",
]
