"""Branches of a choice per example, made safe to differentiate.

Where examples choose differently, every branch runs for all of them and results are selected. Zeros
come back to the examples that chose another branch, and a branch may turn zero into NaN: of
`where(x > 0, sqrt(x), 0)` at 0 the derivative is 0 * inf. So what a branch reads is guarded by
`select_n(mask, stop_gradient(x), x)`: the same value, whose derivative is zero where another
branch is chosen. Programs that nobody differentiates keep nothing of it: `simplify` drops a
selection among equals.

Operands that are the same for all examples (weights) are guarded twice. At the start, where no
example chose the branch: what is made of them alone gets zeros from all others. And where they meet
values per example, whose infinities make NaN of those zeros: an elementwise operation broadcasts
them anyway, gathers by indices only move zeros, and of a product with what differs the examples
that chose another branch read zeros instead. To broadcast all of them at the start was rejected:
W @ x would become a product per example. Scans are guarded inside; other programs do get them per
example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.control.call import call
from primal.control.programs import settle, split
from primal.control.scan import scan
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from primal.ir.op import INDEX
from primal.ir.state import state
from primal.ir.trace import Literal, Tracer, aval_of
from primal.ops.choose import select_n, stop_gradient
from primal.ops.contract import dot_general
from primal.ops.spread import zeros_like_aval
from primal.ops.window.convolution import conv_general_dilated
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage


def may_vary(operands: Sequence[Any]) -> bool:
    """Whether a derivative by one of the operands may be asked for: values of no trace are known
    to be constants."""
    return any(isinstance(x, Tracer) and _smooth(x) for x in operands)


@memo_on_jaxpr
def guarded(branch: ClosedJaxpr, batched: tuple[bool, ...]) -> ClosedJaxpr:
    """The program with two more operands in front: whether the example chose this branch, and
    whether any did.

    `batched` says which operands differ between examples.
    """

    def run(mask: Any, any_chose: Any, *operands: Any) -> list[Any]:
        guard, shared = _Guard(mask), _Guard(any_chose)
        operands = tuple(
            [(guard if b else shared).of(x) for x, b in zip(operands, batched, strict=True)]
        )
        outs, _ = guard.walk(branch.jaxpr, branch.consts, operands, batched)
        return outs

    flag = Aval((), np.dtype(bool))
    avals = [flag, flag, *branch.in_avals]
    return stage(run, avals, str(branch.jaxpr.debug))


_PRODUCTS = (dot_general, conv_general_dilated)


def _smooth(x: Any) -> bool:
    return dtypes.to_tangent_dtype(aval_of(x).dtype) != dtypes.float0


def _differing(jaxpr: Jaxpr, batched: Sequence[bool]) -> list[bool]:
    """Which outputs differ between examples."""
    differs = {v for v, b in zip(jaxpr.invars, batched, strict=True) if b}
    for eqn in jaxpr.eqns:
        if not differs.isdisjoint(eqn.invars):
            differs.update(eqn.outvars)
    return [v in differs for v in jaxpr.outvars]


class _Guard:
    """A walk over the equations of a branch, under a mask."""

    def __init__(self, mask: Any) -> None:
        self.mask = mask
        self.made: dict[int, tuple[Any, Any]] = {}

    def of(self, x: Any) -> Any:
        """x, guarded; once per value."""
        if type(x) is Literal or not _smooth(x):
            return x
        found = self.made.get(id(x))
        if found is None:
            # x is kept with what was made of it, so that no other value gets its id.
            found = self.made[id(x)] = (x, select_n(self.mask, stop_gradient(x), x))
        return found[1]

    def or_zero(self, x: Any) -> Any:
        """x where the example chose the branch; of the results of others nothing is used."""
        return select_n(self.mask, zeros_like_aval(aval_of(x)), x)

    def _moves(self, eqn: Eqn, vals: Sequence[Any], which: Sequence[bool]) -> bool:
        """Whether zeros that come back stay zeros: what differs only says where to read."""
        return eqn.op.kind is INDEX and not any(
            w and _smooth(x) for x, w in zip(vals, which, strict=True)
        )

    def loop(
        self, vals: Sequence[Any], which: Sequence[bool], *, jaxpr: ClosedJaxpr, **params: Any
    ) -> tuple[list[Any], list[bool]]:
        """A scan whose turns are guarded, and which of its outputs differ."""
        num_consts, num_carry = params.pop("num_consts"), params.pop("num_carry")
        consts, init, xs = split(list(which), num_consts, num_carry)
        carry = settle(
            init, lambda m: _differing(jaxpr.jaxpr, (*consts, *m, *xs))[:num_carry]
        )
        inside = (*consts, *carry, *xs)
        # Carries that differ after a turn get cotangents per example at the start.
        vals = [
            self.of(x) if b and not w else x for x, b, w in zip(vals, inside, which, strict=True)
        ]

        def turn(mask: Any, *operands: Any) -> list[Any]:
            return _Guard(mask).walk(jaxpr.jaxpr, jaxpr.consts, operands, inside)[0]

        avals = [Aval((), np.dtype(bool)), *jaxpr.in_avals]
        body = stage(turn, avals, str(jaxpr.jaxpr.debug))
        outs = scan(
            self.mask, *vals, jaxpr=body, num_consts=num_consts + 1, num_carry=num_carry, **params
        )
        return list(outs), _differing(jaxpr.jaxpr, inside)

    def walk(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], batched: Sequence[bool]
    ) -> tuple[list[Any], list[bool]]:
        """The values of the outputs, and which differ between examples."""
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))
        differs = {v for v, b in zip(jaxpr.invars, batched, strict=True) if b}
        for eqn in jaxpr.eqns:
            state.location = eqn.source
            vals = [v if type(v) is Literal else env[v] for v in eqn.invars]
            which = [v in differs for v in eqn.invars]
            if eqn.op is call:
                closed = eqn.params["jaxpr"]
                outs, out_differs = self.walk(closed.jaxpr, closed.consts, vals, which)
            elif eqn.op is scan and any(which) and not all(which):
                outs, out_differs = self.loop(vals, which, **eqn.params)
            else:
                late = False
                if any(which) and not all(which):
                    pairs = list(zip(vals, which, strict=True))
                    product = eqn.op in _PRODUCTS
                    late = product or self._moves(eqn, vals, which)
                    if product:
                        vals = [self.or_zero(x) if w else x for x, w in pairs]
                    elif not late:
                        vals = [x if w else self.of(x) for x, w in pairs]
                made = state.trace.process(eqn.op, vals, eqn.params)
                outs = list(made) if eqn.op.multiple else [made]
                if late:
                    outs = [self.of(x) for x in outs]
                out_differs = [any(which)] * len(outs)
            env.update(zip(eqn.outvars, outs, strict=True))
            differs.update([v for v, d in zip(eqn.outvars, out_differs, strict=True) if d])
        outs = [v if type(v) is Literal else env[v] for v in jaxpr.outvars]
        return outs, [v in differs for v in jaxpr.outvars]
