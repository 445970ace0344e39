"""while: a body repeated as long as a condition on the carry holds.

The number of steps is known only at run time, so nothing can be stacked per step: forward mode
carries tangents along, reverse mode does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.control.check import CheckEffect
from primal.control.programs import (
    Mask,
    check_operands,
    flip,
    pick,
    rearrange,
    same_type,
    settle,
    split,
    trim,
    unpick,
)
from primal.control.scan import interleaved
from primal.ir.avals import Aval
from primal.ir.effects import is_io
from primal.ir.evaluate import eval_closed, run_numpy
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Var
from primal.ir.op import CONTROL, HigherOrder, Never, Op, by_kind
from primal.ir.state import ambient
from primal.ir.trace import ZERO, aval_of
from primal.ops.choose import select_n
from primal.ops.reduce import reduce_or
from primal.ops.shape import moveaxis
from primal.ops.spread import broadcast_axis, broadcast_in_dim
from primal.transforms.batch import batch_jaxpr
from primal.transforms.jvp import instantiate, jvp_jaxpr
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage


def _while_type(
    *avals: Aval,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[Aval, ...]:
    c_consts, b_consts, init = split(avals, cond_nconsts, body_nconsts)
    check_operands("while", "the condition's operand", [*c_consts, *init], cond_jaxpr.in_avals)
    check_operands("while", "the body's operand", [*b_consts, *init], body_jaxpr.in_avals)
    outs = body_jaxpr.out_avals
    for i, (a, b) in enumerate(zip(init, outs, strict=True)):
        if not same_type(a, b):
            raise TypeError(f"[while] expected {a.short()} as carry output {i}, got {b.short()}.")
    # A loop may end before its first step, so the result is as weak as both.
    return tuple(
        [b if a.weak_type or not b.weak_type else a for a, b in zip(init, outs, strict=True)]
    )


def _while_impl(
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> Sequence[Any]:
    c_consts, b_consts, carry = split(args, cond_nconsts, body_nconsts)
    cond, body = cond_jaxpr.jaxpr, body_jaxpr.jaxpr
    while run_numpy(cond, cond_jaxpr.consts, [*c_consts, *carry])[0]:
        carry = run_numpy(body, body_jaxpr.consts, [*b_consts, *carry])
    return carry


def _pushed(
    primals: Any,
    tangents: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[list[Any], Mask]:
    """The outputs of the loop that carries tangents along: values, then the tangents marked."""
    c_consts, b_consts, init = split(primals, cond_nconsts, body_nconsts)
    _, t_consts, t_init = split(tangents, cond_nconsts, body_nconsts)
    nz_consts = [t is not ZERO for t in t_consts]

    def both(nz: Mask) -> tuple[ClosedJaxpr, Mask]:
        return jvp_jaxpr(body_jaxpr, (*nz_consts, *nz), nz)

    nz_carry = settle([t is not ZERO for t in t_init], lambda nz: both(nz)[1])
    body, _ = both(nz_carry)
    counts = [body_nconsts, len(init), sum(nz_consts), sum(nz_carry)]
    body = rearrange(
        body, interleaved(counts, (0, 2, 1, 3)), tuple(range(len(body.out_avals)))
    )
    t_carry = [
        instantiate(t, aval_of(x)) for t, x, nz in zip(t_init, init, nz_carry, strict=True) if nz
    ]
    results = while_(
        *c_consts,
        *b_consts,
        *pick(t_consts, nz_consts),
        *init,
        *t_carry,
        cond_jaxpr=_with_spare(cond_jaxpr, tuple([aval_of(t) for t in t_carry])),
        body_jaxpr=body,
        cond_nconsts=cond_nconsts,
        body_nconsts=body_nconsts + sum(nz_consts),
    )
    return results, nz_carry


@memo_on_jaxpr
def _with_spare(closed: ClosedJaxpr, avals: tuple[Aval, ...]) -> ClosedJaxpr:
    """The program with further inputs that it does not read."""
    jaxpr = closed.jaxpr
    spare = [Var(a) for a in avals]
    return ClosedJaxpr(jaxpr.replace(invars=[*jaxpr.invars, *spare]), closed.consts)


def _while_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    results, nz = _pushed(primals, tangents, **params)
    count = len(nz)
    moving = iter(results[count:])
    return results[:count], [next(moving) if m else ZERO for m in nz]


def _while_linearize(trace: Any, primals: Any, tangents: Any, **params: Any) -> Any:
    # The tape gets the loop of values and tangents together: pushing tangents forward repeats the
    # values, as storing those of every step would need to know their number.
    with ambient(trace.parent):
        outs = while_(*primals, **params)
    consts = params["cond_nconsts"] + params["body_nconsts"]
    if all(t is ZERO for t in tangents[consts:]) and all(t is ZERO for t in tangents[:consts]):
        return outs, [ZERO] * len(outs)
    results, nz = _pushed(primals, tangents, **params)
    moving = iter(results[len(nz) :])
    return outs, [next(moving) if m else ZERO for m in nz]


def _handed_on(body: ClosedJaxpr, nconsts: int) -> list[bool]:
    """Which parts of the carry every step hands on unchanged."""
    given = body.jaxpr.invars[nconsts:]
    return [new is old for new, old in zip(body.jaxpr.outvars, given, strict=True)]


def _while_batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> Any:
    b_cond, b_body, b_init = split([d is not None for d in dims], cond_nconsts, body_nconsts)

    def pred_batched(mask: Mask) -> bool:
        return batch_jaxpr(cond_jaxpr, axis, (*b_cond, *mask))[1][0]

    handed_on = _handed_on(body_jaxpr, body_nconsts)

    def grow(mask: Mask) -> Sequence[bool]:
        if pred_batched(mask):
            # Examples end at their own steps, yet what no step changes is one value for all.
            return [m or not still for m, still in zip(mask, handed_on, strict=True)]
        return batch_jaxpr(body_jaxpr, axis, (*b_body, *mask), mask)[1]

    carried = settle(b_init, grow)
    body, _ = batch_jaxpr(body_jaxpr, axis, (*b_body, *carried), carried)
    cond, (each_own,) = batch_jaxpr(cond_jaxpr, axis, (*b_cond, *carried))
    operands = [
        moveaxis(a, d, 0)
        if d is not None
        else broadcast_axis(a, axis.size, 0)
        if i >= cond_nconsts + body_nconsts and carried[i - cond_nconsts - body_nconsts]
        else a
        for i, (a, d) in enumerate(zip(args, dims, strict=True))
    ]
    c_consts, b_consts, inits = split(operands, cond_nconsts, body_nconsts)
    outs = [0 if b else None for b in carried]
    if each_own:
        if any(is_io(e) for e in cond.effects | body.effects):
            raise NotImplementedError(
                "[while_loop] expected no IO effects under vmap with a condition that differs "
                "between examples, as all of them run until the last one ends: IO effects not "
                "supported in while_loop with batched predicate."
            )
        if CheckEffect() in body.effects | cond.effects:
            raise ValueError(
                "[while_loop] expected no checkify.check under vmap with a condition that differs "
                "between examples, as the check would also see examples that have ended: Checkify "
                "does not support batched while-loops. Use vmap(checkify(f)), not "
                "checkify(vmap(f))."
            )
        # Examples that have ended wait, unchanged, until the last one ends.
        inits = [*inits, *eval_closed(cond, *c_consts, *inits)]
        body = _body_where(cond, body, cond_nconsts, tuple(carried))
        cond = _any_goes(body)
        b_consts, c_consts = [*c_consts, *b_consts], []
    found = while_(
        *c_consts,
        *b_consts,
        *inits,
        cond_jaxpr=cond,
        body_jaxpr=body,
        cond_nconsts=len(c_consts),
        body_nconsts=len(b_consts),
    )
    return found[: len(outs)], outs


@memo_on_jaxpr
def _body_where(
    cond: ClosedJaxpr, body: ClosedJaxpr, cond_nconsts: int, own: Mask
) -> ClosedJaxpr:
    """(cond's consts, body's consts, carry, going) -> body(carry) where going, carry elsewhere.

    What is not every example's own is handed on.

    Whether an example goes on is part of the carry, so that it is computed once per turn, also
    where such loops are batched again.
    """
    body_nconsts = len(body.in_avals) - len(body.out_avals)

    def guarded(*args: Any) -> list[Any]:
        c_consts, b_consts, carry = split(args[:-1], cond_nconsts, body_nconsts)
        new = eval_closed(body, *b_consts, *carry)
        outs = []
        for old, out, each in zip(carry, new, own, strict=True):
            if not each:
                outs.append(old)
                continue
            mask = broadcast_in_dim(args[-1], shape=aval_of(old).shape, broadcast_dimensions=(0,))
            outs.append(select_n(mask, old, out))
        return [*outs, *eval_closed(cond, *c_consts, *outs)]

    avals = [*cond.in_avals[:cond_nconsts], *body.in_avals, *cond.out_avals]
    return stage(guarded, avals, f"where({body.jaxpr.debug})")


@memo_on_jaxpr
def _any_goes(body: ClosedJaxpr) -> ClosedJaxpr:
    return stage(lambda *carry: [reduce_or(carry[-1], axes=(0,))], body.out_avals, "any")


def _while_dce(used: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    cond: ClosedJaxpr = eqn.params["cond_jaxpr"]
    body: ClosedJaxpr = eqn.params["body_jaxpr"]
    n_cond, n_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    effects = cond.jaxpr.effects | body.jaxpr.effects
    if not any(used) and not effects:
        return [False] * len(eqn.invars), None
    _, read = trim(cond, (True,), (False,) * len(cond.in_avals))
    start = tuple([u or r for u, r in zip(used, read[n_cond:], strict=True)])

    def trimmed(mask: Mask) -> tuple[ClosedJaxpr, Mask]:
        return trim(body, mask, (*[False] * n_body, *mask))

    carry = settle(start, lambda mask: trimmed(mask)[1][n_body:])
    small_body, used_body = trimmed(carry)
    small_cond, used_cond = trim(cond, (True,), (*[False] * n_cond, *carry))
    used_in = [*used_cond[:n_cond], *used_body[:n_body], *carry]
    params = {
        "cond_jaxpr": small_cond,
        "body_jaxpr": small_body,
        "cond_nconsts": sum(used_cond[:n_cond]),
        "body_nconsts": sum(used_body[:n_body]),
    }
    new = eqn.replace(
        invars=pick(eqn.invars, used_in),
        outvars=pick(eqn.outvars, carry),
        params=params,
        effects=_while_effects(params),
    )
    return used_in, new


def _while_hlo(
    b: Any,
    *operands: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[Any]:
    c_consts, b_consts, init = split(operands, cond_nconsts, body_nconsts)
    if not init and not _while_effects({"cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr}):
        # A loop without a carry or effects ends at once or never.
        return []
    return b.while_(
        lambda b, *carry: b.inline(cond_jaxpr, *c_consts, *carry, part="while/cond"),
        lambda b, *carry: b.inline(body_jaxpr, *b_consts, *carry, part="while/body"),
        init,
    )


def _while_kernel(
    k: Any,
    *operands: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[Any]:
    c_consts, b_consts, init = split(operands, cond_nconsts, body_nconsts)
    # What every step hands on is no carry: it stays where it is.
    still = _handed_on(body_jaxpr, body_nconsts)

    def whole(carry: Sequence[Any]) -> list[Any]:
        return unpick(still, pick(init, still), carry)

    results = k.while_(
        lambda k, *carry: k.inline(cond_jaxpr, *c_consts, *whole(carry)),
        lambda k, *carry: pick(k.inline(body_jaxpr, *b_consts, *whole(carry)), flip(still)),
        pick(init, flip(still)),
    )
    return whole(results)


def _while_hoist(
    part: Any, operands: list[Any], params: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    c_consts, b_consts, init = split(
        operands, params["cond_nconsts"], params["body_nconsts"]
    )
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    handed_on = _handed_on(body, len(b_consts))
    still = [x if same else None for x, same in zip(init, handed_on, strict=True)]
    cond, c_more = part(cond, [*c_consts, *still])
    body, b_more = part(body, [*b_consts, *still])
    c_consts, b_consts = [*c_more, *c_consts], [*b_more, *b_consts]
    return [*c_consts, *b_consts, *init], {
        "cond_jaxpr": cond,
        "body_jaxpr": body,
        "cond_nconsts": len(c_consts),
        "body_nconsts": len(b_consts),
    }


def _while_effects(params: dict[str, Any]) -> Any:
    return params["cond_jaxpr"].effects | params["body_jaxpr"].effects


REVERSE_REMEDY = (
    "[while_loop] expected no reverse-mode differentiation, got grad or vjp of a while_loop, or of "
    "a fori_loop whose bounds are computed: the number of steps, all of which would have to be "
    "stored, is not known. Use scan; or fori_loop with bounds that are Python integers; or forward "
    "mode (jvp, jacfwd)."
)

while_ = Op(
    name="while",
    kind=CONTROL,
    type=_while_type,
    impl=_while_impl,
    jvp=_while_jvp,
    transpose=Never(REVERSE_REMEDY, ValueError),
    batch=_while_batch,
    shard=by_kind,
    hlo=_while_hlo,
    kernel=_while_kernel,
    higher=HigherOrder(
        linearize=_while_linearize,
        dce=_while_dce,
        hoist=_while_hoist,
        in_place=True,
    ),
    multiple=True,
    effects=_while_effects,
)
