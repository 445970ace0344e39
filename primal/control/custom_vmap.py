"""custom_vmap_call: a program that brings its own rule for many examples.

`rule(axis_size, in_batched, args)` -> (outs, out_batched), on flat lists with the axis in front; it
takes the place of the program under vmap, and nowhere else. What the function closes over comes
first among the operands (`num_consts`) and must be the same for all examples, as the rule does not
get it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base.structures import structure
from primal.control.custom import KEPT, transpose_of_call
from primal.control.programs import Mask, check_operands, pick, rearrange, split, unpick
from primal.control.scan import interleaved
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.op import CONTROL, HigherOrder, Op, Splice, by_kind
from primal.ir.state import ambient
from primal.ir.trace import ZERO, aval_of
from primal.ops.shape import moveaxis
from primal.ops.spread import broadcast_axis
from primal.transforms.jvp import instantiate, jvp_jaxpr, push_forward
from primal.transforms.linearize import linearize_jaxpr

Rule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[Sequence[Any], Sequence[bool]]]


def _type(*avals: Aval, call: ClosedJaxpr, **params: Any) -> tuple[Aval, ...]:
    check_operands("custom_vmap", "operand", avals, call.in_avals)
    return tuple(call.out_avals)


def _impl(*args: Any, call: ClosedJaxpr, **params: Any) -> list[Any]:
    return run_numpy(call.jaxpr, call.consts, args)


def _jvp(
    primals: Any, tangents: Any, *, call: ClosedJaxpr, rule: Rule, num_consts: int, **params: Any
) -> Any:
    nonzero = tuple([t is not ZERO for t in tangents])
    count = len(call.out_avals)
    pushed, _ = jvp_jaxpr(call, nonzero, (True,) * count)
    of_consts, of_args = split(nonzero, num_consts)
    counts = [num_consts, len(primals) - num_consts, sum(of_consts), sum(of_args)]
    order = interleaved(counts, (0, 2, 1, 3))
    operands = [*primals, *pick(tangents, nonzero)]
    results = custom_vmap_call(
        *[operands[i] for i in order],
        call=rearrange(pushed, order, tuple(range(2 * count))),
        rule=_JvpRule(rule, tuple(of_args)),
        num_consts=num_consts + sum(of_consts),
        **params,
    )
    return results[:count], results[count:]


@structure
class _JvpRule:
    """A rule for values and tangents, from that for values."""

    rule: Rule
    nonzero: Mask

    def __call__(
        self, axis_size: int, in_batched: Sequence[bool], args: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[bool]]:
        n = len(self.nonzero)
        of_tangents = unpick(self.nonzero, in_batched[n:], [False] * n)
        both = [a or b for a, b in zip(in_batched[:n], of_tangents, strict=True)]
        whole = [*both, *pick(both, self.nonzero)]
        args = [
            broadcast_axis(x, axis_size, 0) if want and not is_batched else x
            for x, want, is_batched in zip(args, whole, in_batched, strict=True)
        ]
        tangents = unpick(self.nonzero, args[n:], [ZERO] * n)
        found: list[Sequence[bool]] = []

        def run(*xs: Any) -> Sequence[Any]:
            outs, out_batched = self.rule(axis_size, both, xs)
            found.append(out_batched)
            return outs

        outs, touts = push_forward(run, args[:n], tangents)
        moved = [instantiate(t, aval_of(o)) for o, t in zip(outs, touts, strict=True)]
        return [*outs, *moved], [*found[0], *found[0]]


def _linearize(
    trace: Any,
    primals: Any,
    tangents: Any,
    *,
    call: ClosedJaxpr,
    rule: Rule,
    num_consts: int,
    **params: Any,
) -> Any:
    # Values keep the rule. Derivatives are those of the function, mapped as any other program.
    active = tuple([t is not ZERO for t in tangents])
    halves = linearize_jaxpr(call, active)
    with ambient(trace.parent):
        outs = custom_vmap_call(*primals, call=call, rule=rule, num_consts=num_consts, **params)
        residuals = eval_closed(halves.known, *primals)[len(outs) :]
    given = [primals[i] for i in halves.forwarded]
    moving = iter(eval_closed(halves.linear, *given, *residuals, *pick(tangents, active)))
    return outs, [next(moving) if a else ZERO for a in halves.out_active]


def _batch(
    axis: Any, args: Any, dims: Any, *, call: ClosedJaxpr, rule: Rule, num_consts: int, name: str
) -> Any:
    if any(d is not None for d in dims[:num_consts]):
        raise TypeError(
            f"[custom_vmap] expected {name} to close over values that are the same for all "
            "examples, got one that vmap maps: its rule does not get it. Pass it as an argument."
        )
    moved = [
        a if d is None else moveaxis(a, d, 0)
        for a, d in zip(args[num_consts:], dims[num_consts:], strict=True)
    ]
    outs, batched = rule(axis.size, [d is not None for d in dims[num_consts:]], moved)
    return list(outs), [0 if b else None for b in batched]


custom_vmap_call: Op = Op(
    name="custom_vmap_call",
    kind=CONTROL,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=transpose_of_call,
    batch=_batch,
    shard=by_kind,
    hlo=Splice("call"),
    kernel=Splice("call"),
    higher=HigherOrder(linearize=_linearize, dce=KEPT),
    multiple=True,
    effects=lambda params: params["call"].effects,
    show=lambda params: {"call": params["call"], "name": params["name"]},
)
