"""Functions that bring their own derivatives: custom_jvp_call, custom_vjp_call, custom_lin.

The program of the function runs everywhere but in differentiation, where the user's rule, a flat
Python function, takes its place. What the function closes over comes first among the operands
(`num_consts`); the rule says nothing about it, so differentiating with respect to it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base import dtypes
from primal.base.structures import structure
from primal.control.programs import Mask, check_operands, pick, unpick
from primal.ir.avals import Aval
from primal.ir.effects import RuleEffect
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.op import CONTROL, HigherOrder, Never, Op, Splice, by_kind
from primal.ir.state import ambient, state
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import mul
from primal.ops.shape import moveaxis
from primal.ops.spread import reduce_sum
from primal.ops.types import is_linear
from primal.transforms.batch import Axis, batch_flat, batch_jaxpr, materialize
from primal.transforms.jvp import instantiate
from primal.transforms.transpose import transpose_jaxpr

Flat = Callable[..., Any]

KEPT = Never("[custom derivative] expected the whole function, as its rule gives all outputs.")


def _check_consts(name: str, function: str, tangents: Sequence[Any]) -> None:
    if any(t is not ZERO for t in tangents):
        raise TypeError(
            f"[{name}] expected derivatives with respect to arguments only, got one with respect "
            f"to a value that {function} closes over: its rule does not say what that is. Pass the "
            "value as an argument of the function."
        )


def _call_type(*avals: Aval, call: ClosedJaxpr, **params: Any) -> tuple[Aval, ...]:
    check_operands("custom derivative", "operand", avals, call.in_avals)
    return tuple(call.out_avals)


def _call_impl(*args: Any, call: ClosedJaxpr, **params: Any) -> list[Any]:
    return run_numpy(call.jaxpr, call.consts, args)


def transpose_of_call(cts: Any, *args: Any, call: ClosedJaxpr, **params: Any) -> list[Any]:
    """The function itself is linear in these operands, and transposes as its program does."""
    linear = tuple([is_linear(a) for a in args])
    given = tuple([c is not ZERO for c in cts])
    backward = transpose_jaxpr(call, linear, given)
    results = eval_closed(backward, *[a for a in args if not is_linear(a)], *pick(cts, given))
    return unpick(linear, results, [None] * (len(args) - sum(linear)))


# Of calls whose rules use mutable references, which only a derivative outside of programs can do.
TOUCHES_REFS = RuleEffect("references")


def _call_effects(params: dict[str, Any]) -> Any:
    rule = _plain(params["fwd"] if "fwd" in params else params["jvp"])
    effects = params["call"].effects
    return effects | {TOUCHES_REFS} if getattr(rule, "touches_refs", False) else effects


def _over_examples(call: ClosedJaxpr, axis: Axis, args: Any, dims: Any) -> tuple[Any, list[Any]]:
    """The program with all outputs batched in front, and operands that fit it."""
    batched = tuple([d is not None for d in dims])
    everything = (True,) * len(call.out_avals)
    moved = [a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    return batch_jaxpr(call, axis, batched, everything)[0], moved


# custom_jvp_call: `jvp(primals, tangents)` -> (outs, tangents out), on flat lists with ZERO.


def _jvp_jvp(
    primals: Any, tangents: Any, *, jvp: Flat, name: str, num_consts: int, **params: Any
) -> Any:
    _check_consts("custom_jvp", name, tangents[:num_consts])
    return jvp(primals[num_consts:], tangents[num_consts:])


def _jvp_linearize(trace: Any, primals: Any, tangents: Any, **params: Any) -> Any:
    # Tangents are on the tape, which is ambient; values go on to the parent.
    tape = trace.tape
    before, tape.in_rule = tape.in_rule, True
    try:
        return _jvp_jvp(primals, tangents, **params)
    finally:
        tape.in_rule = before


def _jvp_batch(
    axis: Any, args: Any, dims: Any, *, call: ClosedJaxpr, jvp: Flat, num_consts: int, **params: Any
) -> Any:
    program, moved = _over_examples(call, axis, args, dims)
    batched = tuple([d is not None for d in dims[num_consts:]])
    outs = custom_jvp_call(
        *moved,
        call=program,
        jvp=_BatchedJvp(jvp, axis, batched),
        num_consts=num_consts,
        **params,
    )
    return outs, [0] * len(outs)


@structure
class _BatchedJvp:
    """A rule over examples: marked primals and their tangents carry the axis in front."""

    jvp: Flat
    axis: Axis
    batched: Mask

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        nonzero = [t is not ZERO for t in tangents]
        dims = [0 if b else None for b in self.batched]
        moving: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            ts = iter(args[len(primals) :])
            outs, touts = self.jvp(
                args[: len(primals)], [next(ts) if nz else ZERO for nz in nonzero]
            )
            moving.extend(t is not ZERO for t in touts)
            return [*outs, *[t for t in touts if t is not ZERO]]

        results, found = batch_flat(
            flat, self.axis, [*primals, *pick(tangents, nonzero)], [*dims, *pick(dims, nonzero)]
        )
        whole = [materialize(x, self.axis, d, 0) for x, d in zip(results, found, strict=True)]
        ts = iter(whole[len(moving) :])
        return whole[: len(moving)], [next(ts) if m else ZERO for m in moving]


def _jvp_show(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "call_jaxpr": params["call"],
        "jvp": _plain(params["jvp"]),
        "name": params["name"],
        "symbolic_zeros": params["symbolic_zeros"],
    }


custom_jvp_call = Op(
    name="custom_jvp_call",
    kind=CONTROL,
    type=_call_type,
    impl=_call_impl,
    jvp=_jvp_jvp,
    transpose=transpose_of_call,
    batch=_jvp_batch,
    shard=by_kind,
    hlo=Splice("call"),
    kernel=Splice("call"),
    higher=HigherOrder(linearize=_jvp_linearize, dce=KEPT),
    multiple=True,
    effects=_call_effects,
    show=_jvp_show,
)


# custom_vjp_call: `fwd(primals, perturbed)` -> (outs, residuals) and
# `bwd(residuals, cts)` -> one cotangent or ZERO per operand, on flat lists.

NO_FORWARD = (
    "[custom_vjp] expected reverse mode, got forward mode (jvp, jacfwd, or linearize and its "
    "function applied): can't apply forward-mode autodiff (jvp) to a custom_vjp function, whose "
    "rules say only how to pull cotangents back. Use grad, vjp or jacrev, or define the function "
    "with custom_jvp, which gives both modes."
)


def _vjp_linearize(trace: Any, primals: Any, tangents: Any, **params: Any) -> Any:
    return _vjp_push(trace.parent, primals, tangents, **params)


def _vjp_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # Only where the tangents are transposed later: `custom_lin` refuses to be evaluated.
    return _vjp_push(state.trace, primals, tangents, **params)


def _vjp_push(
    known: Any,
    primals: Any,
    tangents: Any,
    *,
    call: ClosedJaxpr | None,
    fwd: Flat,
    bwd: Flat,
    name: str,
    num_consts: int,
    **params: Any,
) -> Any:
    _check_consts("custom_vjp", name, tangents[:num_consts])
    tangents = tangents[num_consts:]
    active = tuple([t is not ZERO for t in tangents])
    with ambient(known):
        outs, residuals = fwd(primals[num_consts:], active)
    out_avals = [aval_of(o).tangent() for o in outs]
    differentiable = [a.dtype != dtypes.float0 for a in out_avals]
    moving = iter(
        custom_lin(
            *residuals,
            *pick(tangents, active),
            bwd=bwd,
            active=active,
            num_residuals=len(residuals),
            out_avals=tuple(pick(out_avals, differentiable)),
            differentiable=tuple(differentiable),
            name=name,
        )
    )
    return outs, [next(moving) if d else ZERO for d in differentiable]


def _vjp_batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    call: ClosedJaxpr,
    fwd: Flat,
    bwd: Flat,
    num_consts: int,
    **params: Any,
) -> Any:
    program, moved = _over_examples(call, axis, args, dims)
    batched = tuple([d is not None for d in dims[num_consts:]])
    outs = custom_vjp_call(
        *moved,
        call=program,
        fwd=_BatchedFwd(fwd, axis, batched),
        bwd=BatchedBwd(bwd, axis, None, batched),
        num_consts=num_consts,
        **params,
    )
    return outs, [0] * len(outs)


@structure
class _BatchedFwd:
    """fwd over examples; results and residuals all carry the axis in front."""

    fwd: Flat
    axis: Axis
    batched: Mask

    def __call__(self, primals: Sequence[Any], active: Mask) -> Any:
        counts: list[int] = []

        def flat(*args: Any) -> list[Any]:
            outs, residuals = self.fwd(args, active)
            counts.append(len(outs))
            return [*outs, *residuals]

        dims = [0 if b else None for b in self.batched]
        results, found = batch_flat(flat, self.axis, primals, dims)
        whole = [materialize(x, self.axis, d, 0) for x, d in zip(results, found, strict=True)]
        return whole[: counts[0]], whole[counts[0] :]


@structure
class BatchedBwd:
    """bwd over examples; operands that all examples share get the sum of their cotangents.

    `residual_dims` None: residuals and cotangents all carry the axis in front.
    """

    bwd: Flat
    axis: Axis
    residual_dims: tuple[int | None, ...] | None
    batched: Mask

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        given = [c is not ZERO for c in cts]
        dims = [0] * len(residuals) if self.residual_dims is None else [*self.residual_dims]
        moving: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            rest = iter(args[len(residuals) :])
            full = [next(rest) if g else ZERO for g in given]
            results = self.bwd(args[: len(residuals)], full)
            moving.extend(r is not ZERO for r in results)
            return [r for r in results if r is not ZERO]

        results, found = batch_flat(
            flat, self.axis, [*residuals, *pick(cts, given)], [*dims, *[0] * sum(given)]
        )
        rest = iter(zip(results, found, strict=True))
        return [
            self._placed(*next(rest), b) if m else ZERO
            for m, b in zip(moving, self.batched, strict=True)
        ]

    def _placed(self, ct: Any, dim: int | None, batched: bool) -> Any:
        if batched:
            return materialize(ct, self.axis, dim, 0)
        if dim is None:
            return mul(ct, literal(self.axis.size, aval_of(ct).dtype, False))
        return reduce_sum(ct, axes=(dim,))


def _plain(rule: Any) -> Any:
    """The user's rule below those that vmap made of it."""
    while True:
        if isinstance(rule, _BatchedJvp):
            rule = rule.jvp
        elif isinstance(rule, _BatchedFwd):
            rule = rule.fwd
        elif isinstance(rule, BatchedBwd):
            rule = rule.bwd
        else:
            return rule


def _vjp_show(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "bwd": _plain(params["bwd"]),
        "call_jaxpr": params["call"],
        "fwd": _plain(params["fwd"]),
        "name": params["name"],
        "symbolic_zeros": params["symbolic_zeros"],
    }


custom_vjp_call = Op(
    name="custom_vjp_call",
    kind=CONTROL,
    type=_call_type,
    impl=_call_impl,
    jvp=_vjp_jvp,
    transpose=transpose_of_call,
    batch=_vjp_batch,
    shard=by_kind,
    hlo=Splice("call"),
    kernel=Splice("call"),
    higher=HigherOrder(linearize=_vjp_linearize, dce=KEPT),
    multiple=True,
    effects=_call_effects,
    show=_vjp_show,
)


# custom_lin: the derivative of a custom_vjp function. A linear map known by its transpose only.


def _lin_transpose(
    cts: Any,
    *args: Any,
    bwd: Flat,
    active: Mask,
    num_residuals: int,
    out_avals: tuple[Aval, ...],
    differentiable: Mask,
    name: str,
) -> list[Any]:
    given = iter(cts)
    full = [next(given) if d else ZERO for d in differentiable]
    results = pick(bwd(args[:num_residuals], full), active)
    placed = [
        r if r is ZERO else instantiate(r, a.aval)
        for r, a in zip(results, args[num_residuals:], strict=True)
    ]
    return [*[None] * num_residuals, *[None if r is ZERO else r for r in placed]]


def _lin_batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    bwd: Flat,
    active: Mask,
    num_residuals: int,
    out_avals: tuple[Aval, ...],
    **params: Any,
) -> Any:
    moved = [a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    flags = [d is not None for d in dims]
    tangent_flags = iter(flags[num_residuals:])
    outs = custom_lin(
        *moved,
        bwd=BatchedBwd(
            bwd,
            axis,
            tuple([0 if f else None for f in flags[:num_residuals]]),
            tuple([next(tangent_flags) if a else False for a in active]),
        ),
        active=active,
        num_residuals=num_residuals,
        out_avals=tuple([Aval((axis.size, *a.shape), a.dtype) for a in out_avals]),
        **params,
    )
    return outs, [0] * len(outs)


_no_forward = Never(NO_FORWARD, TypeError)

custom_lin = Op(
    name="custom_lin",
    kind=CONTROL,
    type=lambda *avals, out_avals, **params: out_avals,
    impl=_no_forward,
    jvp=_no_forward,
    transpose=_lin_transpose,
    batch=_lin_batch,
    shard=by_kind,
    hlo=_no_forward,
    kernel=_no_forward,
    # Higher-order so that nothing is remembered by its rules, which are new for every call.
    higher=HigherOrder(linearize=_no_forward, dce=KEPT, by_rule=True),
    multiple=True,
    show=lambda params: {"bwd": _plain(params["bwd"]), "name": params["name"]},
)
