"""linear_call: a linear function with a transpose of its own.

out = callee(consts, residuals, x), linear in x; its transpose is `transposed(residuals, cts)`, a
Python function on flat lists, taken at its word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.control.custom import KEPT, BatchedBwd
from primal.control.programs import check_operands, pick, split
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.op import CONTROL, HigherOrder, Op, Splice, by_kind
from primal.ir.state import ambient, state
from primal.ir.trace import ZERO, aval_of
from primal.ops.shape import moveaxis
from primal.ops.spread import add_any
from primal.ops.types import is_linear
from primal.transforms.batch import batch_jaxpr
from primal.transforms.jvp import instantiate
from primal.transforms.linearize import linearize_jaxpr
from primal.transforms.stage import stage

Transposed = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def _type(*avals: Aval, callee: ClosedJaxpr, **params: Any) -> tuple[Aval, ...]:
    check_operands("linear_call", "operand", avals, callee.in_avals)
    return tuple(callee.out_avals)


def _impl(*args: Any, callee: ClosedJaxpr, **params: Any) -> list[Any]:
    return run_numpy(callee.jaxpr, callee.consts, args)


def _pushed(known: Any, primals: Any, tangents: Any, callee: ClosedJaxpr, params: Any) -> Any:
    """(outs, tangents): the call itself for x, the callee's derivative for everything else.

    `known` is where values are computed.
    """
    still = params["num_consts"] + params["num_res"]
    with ambient(known):
        outs = linear_call(*primals, callee=callee, **params)
    touts: list[Any] = [ZERO] * len(outs)
    moving = tangents[still:]
    if any(t is not ZERO for t in moving):
        ts = [instantiate(t, a) for t, a in zip(moving, callee.in_avals[still:], strict=True)]
        touts = linear_call(*primals[:still], *ts, callee=callee, **params)
    if any(t is not ZERO for t in tangents[:still]):
        active = tuple([t is not ZERO for t in tangents[:still]])
        halves = linearize_jaxpr(callee, (*active, *[False] * len(moving)))
        with ambient(known):
            residuals = eval_closed(halves.known, *primals)[len(outs) :]
        given = [primals[i] for i in halves.forwarded]
        more = iter(eval_closed(halves.linear, *given, *residuals, *pick(tangents[:still], active)))
        parts = [next(more) if a else ZERO for a in halves.out_active]
        touts = [
            b if a is ZERO else a if b is ZERO else add_any(a, b)
            for a, b in zip(touts, parts, strict=True)
        ]
    return outs, touts


def _jvp(primals: Any, tangents: Any, *, callee: ClosedJaxpr, **params: Any) -> Any:
    return _pushed(state.trace, primals, tangents, callee, params)


def _linearize(
    trace: Any, primals: Any, tangents: Any, *, callee: ClosedJaxpr, **params: Any
) -> Any:
    return _pushed(trace.parent, primals, tangents, callee, params)


def _transpose(
    cts: Any,
    *args: Any,
    callee: ClosedJaxpr,
    transposed: Transposed,
    num_consts: int,
    num_res: int,
) -> list[Any]:
    still = num_consts + num_res
    if any(is_linear(a) for a in args[:still]) or not all(is_linear(a) for a in args[still:]):
        raise NotImplementedError(
            "[linear_call] expected to be transposed with respect to its linear arguments, got "
            "others: the given transpose says nothing about residuals."
        )
    consts, residuals, _ = split(args, num_consts, num_res)
    cts = [instantiate(c, a) for c, a in zip(cts, callee.out_avals, strict=True)]
    res_avals = [aval_of(r) for r in residuals]
    ct_avals = [aval_of(c) for c in cts]
    wanted = callee.in_avals[still:]

    def backward(*xs: Any) -> list[Any]:
        results = transposed(xs[:num_res], xs[num_res:])
        return [instantiate(r, a) for r, a in zip(results, wanted, strict=True)]

    closed = stage(backward, [*res_avals, *ct_avals], "transpose")

    def forward(given: Sequence[Any], back: Sequence[Any]) -> list[Any]:
        return eval_closed(callee, *consts, *given, *back)

    results = linear_call(
        *closed.consts,
        *residuals,
        *cts,
        callee=ClosedJaxpr(hoist_consts(closed)),
        transposed=forward,
        num_consts=len(closed.consts),
        num_res=num_res,
    )
    return [*[None] * still, *results]


def _batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    callee: ClosedJaxpr,
    transposed: Transposed,
    num_consts: int,
    num_res: int,
) -> Any:
    moved = [a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    flags = tuple([d is not None for d in dims])
    program, _ = batch_jaxpr(callee, axis, flags, (True,) * len(callee.out_avals))
    _, res_flags, x_flags = split(flags, num_consts, num_res)
    outs = linear_call(
        *moved,
        callee=program,
        transposed=BatchedBwd(
            transposed, axis, tuple([0 if f else None for f in res_flags]), tuple(x_flags)
        ),
        num_consts=num_consts,
        num_res=num_res,
    )
    return outs, [0] * len(outs)


linear_call: Op = Op(
    name="linear_call",
    kind=CONTROL,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    shard=by_kind,
    hlo=Splice("callee"),
    kernel=Splice("callee"),
    higher=HigherOrder(linearize=_linearize, dce=KEPT),
    multiple=True,
    effects=lambda params: params["callee"].effects,
    show=lambda params: {
        "callee": params["callee"],
        "num_callee_consts": params["num_consts"],
        "num_res": params["num_res"],
    },
)
