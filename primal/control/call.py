"""jit as an op: a program called by another."""

from __future__ import annotations

from typing import Any

from primal.ir.evaluate import run_numpy
from primal.ir.jaxpr import ClosedJaxpr, Eqn
from primal.ir.op import CALL, HigherOrder, Op, Splice, by_kind
from primal.ir.state import ambient
from primal.ir.trace import ZERO, aval_of
from primal.ops.shape import moveaxis
from primal.ops.types import is_linear
from primal.transforms.batch import batch_jaxpr
from primal.transforms.dce import dce_jaxpr
from primal.transforms.jvp import jvp_jaxpr
from primal.transforms.linearize import linearize_jaxpr
from primal.transforms.transpose import linear_outputs, transpose_jaxpr


def _call_type(*avals: Any, jaxpr: ClosedJaxpr, name: str, inline: bool = False) -> Any:
    return tuple(jaxpr.out_avals)


def _call_impl(*args: Any, jaxpr: ClosedJaxpr, name: str, inline: bool = False) -> Any:
    return run_numpy(jaxpr.jaxpr, jaxpr.consts, args)


def _call_jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = tuple([t is not ZERO for t in tangents])
    pushed, mask = jvp_jaxpr(jaxpr, nonzero)
    given = [t for t in tangents if t is not ZERO]
    results = call(*primals, *given, jaxpr=pushed, **params)
    outs = results[: len(mask)]
    rest = iter(results[len(mask) :])
    return outs, [next(rest) if m else ZERO for m in mask]


def _call_linearize(
    trace: Any, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    active = tuple([t is not ZERO for t in tangents])
    split = linearize_jaxpr(jaxpr, active)
    with ambient(trace.parent):
        results = call(*primals, jaxpr=split.known, **params)
    num_outs = len(split.out_active)
    outs, residuals = results[:num_outs], results[num_outs:]
    operands = [
        *[primals[i] for i in split.forwarded],
        *residuals,
        *[t for t in tangents if t is not ZERO],
    ]
    pushed = iter(call(*operands, jaxpr=split.linear, **params) if any(split.out_active) else ())
    return outs, [next(pushed) if a else ZERO for a in split.out_active]


def _call_transpose(cts: Any, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    linear = tuple([is_linear(a) for a in args])
    given = tuple([c is not ZERO and aval_of(c) for c in cts])
    backward = transpose_jaxpr(jaxpr, linear, given)
    operands = [a for a in args if not is_linear(a)] + [c for c in cts if c is not ZERO]
    results = iter(call(*operands, jaxpr=backward, **params))
    return [next(results) if m else None for m in linear]


def _call_batch(axis: Any, args: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    from_front = [a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    batched = tuple([d is not None for d in dims])
    program, out_batched = batch_jaxpr(jaxpr, axis, batched)
    outs = call(*from_front, jaxpr=program, **params)
    return outs, [0 if b else None for b in out_batched]


def _call_dce(used: list[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    closed: ClosedJaxpr = eqn.params["jaxpr"]
    smaller, used_in = dce_jaxpr(closed, tuple(used))
    if not any(used) and not smaller.jaxpr.effects:
        return [False] * len(eqn.invars), None
    invars = [v for v, u in zip(eqn.invars, used_in, strict=True) if u]
    outvars = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    params = {**eqn.params, "jaxpr": smaller}
    return list(used_in), eqn.replace(invars=invars, outvars=outvars, params=params)


def _call_effects(params: dict[str, Any]) -> Any:
    return params["jaxpr"].effects


def _call_show(params: dict[str, Any]) -> dict[str, Any]:
    return {"jaxpr": params["jaxpr"], "name": params["name"]}


call: Op = Op(
    name="jit",
    kind=CALL,
    type=_call_type,
    impl=_call_impl,
    jvp=_call_jvp,
    transpose=_call_transpose,
    batch=_call_batch,
    shard=by_kind,
    hlo=Splice("jaxpr"),
    kernel=Splice("jaxpr"),
    higher=HigherOrder(
        linearize=_call_linearize,
        dce=_call_dce,
        mixes=lambda linear, *, jaxpr, **params: linear_outputs(jaxpr, tuple(linear)),
    ),
    multiple=True,
    effects=_call_effects,
    show=_call_show,
)
