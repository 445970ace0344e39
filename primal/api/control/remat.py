"""checkpoint: derivatives that compute inner values again; and what derivatives keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.api.control.bodies import check_callable, trace_body
from primal.api.control.with_refs import closing_over_refs
from primal.api.differentiable import differentiated
from primal.api.operands import argument_names, check_operands, name_of, operand
from primal.base import dtypes
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, flatten_args, tree_broadcast, tree_leaves, unflatten
from primal.base.source import format_location
from primal.base.wrapping import P, R, Transformed, wraps
from primal.control.call import call
from primal.control.custom import TOUCHES_REFS
from primal.control.remat import Offloadable, Policy, asked, inline_calls
from primal.control.remat import remat as remat_op
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Var
from primal.ir.trace import Literal, aval_of
from primal.ops.barrier import name_op
from primal.runtime.program_refs import settle_refs, values_of
from primal.runtime.refs import Ref
from primal.transforms.linearize import linearize_jaxpr
from primal.transforms.stage import stage

Tree = Any


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool | None = None,
) -> Transformed[P, R]:
    """`fun`, whose derivatives compute its inner values again instead of keeping them.

    Values and derivatives are those of `fun`. Reverse mode keeps the arguments, and of the inner
    values those that `policy` (one of `checkpoint_policies`) saves; the rest is computed a second
    time when cotangents arrive. `prevent_cse` keeps compilers from merging the two computations,
    which is not needed inside scan; a tree of flags says it per argument. Arguments at
    `static_argnums` are Python values; all others are traced.

    ValueError for static_argnums out of range. A function with a custom rule that writes mutable
    references keeps its inner values: computed twice, it would write twice. TypeError for a policy
    that is no function, NotImplementedError for `concrete`, which is gone.

    >>> f = checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> primal.grad(f)(2.0)
    Array(-0.2556391, dtype=float32, weak_type=True)
    """
    check_callable("checkpoint", fun=fun)
    if concrete is not None:
        raise NotImplementedError(
            "[checkpoint] expected no `concrete`, which was removed, got one. Name the arguments "
            "that are Python values in static_argnums."
        )
    if policy is not None and not callable(policy):
        raise TypeError(
            f"[checkpoint] expected a policy, as in checkpoint_policies, got {policy!r}."
        )
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static_names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    barred = prevent_cse if isinstance(prevent_cse, bool) else tuple(prevent_cse)

    @wraps(fun)
    @api_boundary
    def checkpointed(*args: Any, **kwargs: Any) -> Tree:
        count = len(args)
        if any(not -count <= n < count for n in numbers):
            raise ValueError(
                "the `static_argnums` argument to `checkpoint` can only take integer values "
                "greater than or equal to `-len(args)` and less than `len(args)`, but got "
                f"{numbers}, while `len(args)` = {count}"
            )
        fixed = {n % count for n in numbers}
        fixed_named = {k: v for k, v in kwargs.items() if k in static_names}
        given = tuple([a for i, a in enumerate(args) if i not in fixed])
        named = {k: v for k, v in kwargs.items() if k not in fixed_named}
        leaves, spec = flatten_args(given, named)

        def applied(both: Any) -> Tree:
            traced, traced_named = both
            rest = iter(traced)
            full = [args[i] if i in fixed else next(rest) for i in range(count)]
            return fun(*full, **traced_named, **fixed_named)

        applied.__name__ = name_of(fun)
        if any(isinstance(x, Ref) for x in leaves):
            (closed,), arrays = closing_over_refs(applied.__name__, (applied,), ((given, named),))
            return checkpoint(closed, prevent_cse=barred is not False, policy=policy)(*arrays)
        avals = check_operands(name_of(fun), (given, named), leaves)
        names = argument_names(fun, args, named, tuple(fixed))
        statics = (*[(i, args[i]) for i in sorted(fixed)], *sorted(fixed_named.items()))
        origin = (fun, "checkpoint", statics) if _hashable(statics) else (applied,)
        body = trace_body(applied, (spec,), avals, names, origin)
        if TOUCHES_REFS in body.program.effects and differentiated():
            return applied((given, named))
        cse: Any = barred
        if isinstance(barred, tuple):
            cse = (True,) * len(body.consts) + tuple(tree_leaves(tree_broadcast(barred, given)))
            cse += (True,) * (len(tree_leaves(named)) + len(body.refs))
        results = remat_op(
            *body.consts,
            *leaves,
            *values_of(body.refs),
            jaxpr=body.program,
            prevent_cse=cse,
            differentiated=False,
            policy=policy,
        )
        settle_refs(body.refs, results[len(body.out_avals) :])
        return unflatten(body.spec, results[: len(body.out_avals)])

    return checkpointed


remat = checkpoint


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def checkpoint_name(x: Tree, name: str) -> Tree:
    """x, under a name that policies such as `save_only_these_names` ask for.

    >>> checkpoint_name(jnp.sin(0.0), "sine")
    Array(0., dtype=float32, weak_type=True)
    """
    leaves, spec = flatten(x)
    return unflatten(spec, [name_op(operand(leaf), name=name) for leaf in leaves])


# What is kept.


@api_boundary
def saved_residuals(f: Callable[..., Tree], *args: Any, **kwargs: Any) -> list[tuple[Aval, str]]:
    """What reverse mode of f at these arguments keeps: (type, where it comes from) of each value.

    >>> for aval, source in saved_residuals(lambda x: x * jnp.sin(x), 1.0):
    ...     print(aval, source.split(" from <")[0])
    ~float32[] from the argument x
    ~float32[] output of sin
    ~float32[] output of cos
    """
    return [(aval, source) for aval, _, source in _residuals(f, args, kwargs)]


def _residuals(
    f: Callable[..., Tree], args: Any, kwargs: Any
) -> list[tuple[Aval, str, str]]:
    """(type, type as printed, where it comes from) of each value that is kept."""
    leaves, spec = flatten((args, kwargs))
    avals = check_operands(name_of(f), (args, kwargs), leaves)

    def flat(*operands: Any) -> list[Any]:
        given, named = unflatten(spec, operands)
        return flatten(f(*given, **named))[0]

    closed = stage(flat, avals, name_of(f))
    active = tuple([dtypes.to_tangent_dtype(a.dtype) != dtypes.float0 for a in avals])
    halves = linearize_jaxpr(closed, active)
    known = halves.known
    names = argument_names(f, args, kwargs)
    count = len(halves.out_active)
    made = {v: e for e in known.eqns for v in e.outvars}
    at = {v: i for i, v in enumerate(known.jaxpr.invars)}
    kept = [*[known.jaxpr.invars[i] for i in halves.forwarded], *known.jaxpr.outvars[count:]]
    kept = list(dict.fromkeys(v for v in kept if type(v) is not Literal))
    order = {v: i for i, v in enumerate(v for e in known.eqns for v in e.outvars)}
    inputs = sorted([v for v in kept if v in at], key=at.__getitem__)
    inner = sorted([v for v in kept if v in made], key=order.__getitem__)
    fixed = [v for v in kept if v not in at and v not in made]
    consts = [v.aval for v in fixed] + [aval_of(c) for c in halves.linear.consts]
    return [
        *[(a, a.short(), "from a constant") for a in consts],
        *[(v.aval, v.aval.short(), f"from the argument {names[at[v]]}") for v in inputs],
        *[(v.aval, *_origin(made[v], v)) for v in inner],
    ]


def _origin(eqn: Eqn, var: Var, policy: Policy | None = None) -> tuple[str, str]:
    """The type of a value that is kept, as it is printed, and where it comes from."""
    short = var.aval.short()
    where = format_location(eqn.source, full_path=True)
    made = _maker(eqn, var)
    if eqn.op is remat_op and made is not None:
        return _origin(*made, eqn.params["policy"])
    if policy is not None and isinstance(asked(policy, eqn), Offloadable):
        return _on_host(short), f"output of device_put from {where}"
    if eqn.op is call:
        return short, f"output of jitted function '{eqn.params['name']}' from {where}"
    while made is not None:  # stacked by a scan, say
        inner, out = made
        policy = inner.params.get("policy", policy)
        made = _maker(inner, out)
        if made is None and policy is not None and isinstance(asked(policy, inner), Offloadable):
            short = _on_host(short)
    if eqn.op is name_op:
        return short, f"named '{eqn.params['name']}' from {where}"
    return short, f"output of {eqn.title} from {where}"


def _maker(eqn: Eqn, var: Any) -> tuple[Eqn, Any] | None:
    """The equation in the program an equation carries whose result becomes `var`."""
    program = eqn.params.get("jaxpr")
    if not isinstance(program, ClosedJaxpr):
        return None
    inner = inline_calls(program).jaxpr
    out = inner.outvars[list(eqn.outvars).index(var)]
    for e in inner.eqns:
        if out in e.outvars:
            return e, out
    return None


def _on_host(short: str) -> str:
    dtype, bracket, shape = short.partition("[")
    return f"{dtype}<host>{bracket}{shape}"


def print_saved_residuals(f: Callable[..., Tree], *args: Any, **kwargs: Any) -> None:
    """Print `saved_residuals`, one value per line; `<host>` marks what a policy offloads.

    >>> print_saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), np.ones(3, "float32"))
    f32[3] from the argument x
    """
    for _, short, source in _residuals(f, args, kwargs):
        print(f"{short} {source}")


__all__ = ["checkpoint", "checkpoint_name", "print_saved_residuals", "remat", "saved_residuals"]
