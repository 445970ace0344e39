"""Mutable references in the functions of control flow: what is read and written, as operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.api.control.bodies import Body
from primal.control.programs import rearrange
from primal.control.while_ import while_ as while_op
from primal.ir.jaxpr import ClosedJaxpr, Var
from primal.runtime.refs import Ref, settle_refs, values_of

Touched = Sequence[tuple[Ref, bool]]


class Loop:
    """The operands and program of a scan whose body touches references.

    Those only read are constants of the loop, those written are carried.
    """

    def __init__(
        self,
        program: ClosedJaxpr,
        consts: Sequence[Any],
        init: Sequence[Any],
        refs: Touched,
        num_carry: int,
        num_x: int,
    ) -> None:
        self.program, self.consts, self.init, self.refs = program, list(consts), list(init), refs
        self.num_carry = num_carry
        if not refs:
            return
        n, whole = len(consts), len(consts) + num_carry
        values = values_of(refs)
        at = {ref: whole + num_x + i for i, (ref, _) in enumerate(refs)}
        read = [ref for ref, written in refs if not written]
        kept = [ref for ref, written in refs if written]
        ins = [
            *range(n), *[at[r] for r in read],
            *range(n, whole), *[at[r] for r in kept],
            *range(whole, whole + num_x),
        ]  # fmt: skip
        total = len(program.out_avals)
        outs = [
            *range(num_carry), *range(total - len(kept), total),
            *range(num_carry, total - len(kept)),
        ]  # fmt: skip
        self.program = rearrange(program, tuple(ins), tuple(outs))
        self.consts += [v for v, (_, written) in zip(values, refs, strict=True) if not written]
        self.init += [v for v, (_, written) in zip(values, refs, strict=True) if written]

    def settled(self, results: list[Any]) -> list[Any]:
        """The results of the body's own, after references got theirs."""
        start, stop = self.num_carry, len(self.init)
        settle_refs(self.refs, results[start:stop])
        return [*results[:start], *results[stop:]]


def union(bodies: Sequence[Body]) -> list[tuple[Ref, bool]]:
    """The references that any of the functions touches, and whether any writes them."""
    found: dict[Ref, bool] = {}
    for body in bodies:
        for ref, written in body.refs:
            found[ref] = found.get(ref, False) or written
    return list(found.items())


def taking_all(body: Body, num_args: int, refs: Touched, returning: Touched) -> ClosedJaxpr:
    """(consts, arguments, all `refs`) -> (results, values of those of `returning`).

    One that the function does not touch passes through.
    """
    jaxpr = body.program.jaxpr
    start = len(body.consts) + num_args
    own = {ref: v for (ref, _), v in zip(body.refs, jaxpr.invars[start:], strict=True)}
    written = [ref for ref, w in body.refs if w]
    total = len(jaxpr.outvars) - len(written)
    last = dict(zip(written, jaxpr.outvars[total:], strict=True))
    given = {ref: own.get(ref) or Var(ref._aval) for ref, _ in refs}
    return ClosedJaxpr(
        jaxpr.replace(
            invars=[*jaxpr.invars[:start], *[given[ref] for ref, _ in refs]],
            outvars=[*jaxpr.outvars[:total], *[last.get(r, given[r]) for r, _ in returning]],
        ),
        body.program.consts,
    )


def while_with_refs(condition: Body, body: Body, leaves: Sequence[Any]) -> list[Any]:
    """A while loop that carries the references its functions touch."""
    for ref, written in condition.refs:
        if written:
            raise NotImplementedError(
                f"[while_loop] expected a condition that writes no references, got one that "
                f"writes {ref!r}. Write it in the body."
            )
    refs = union([condition, body])
    count = len(leaves)
    results = while_op(
        *condition.consts,
        *body.consts,
        *leaves,
        *values_of(refs),
        cond_jaxpr=taking_all(condition, count, refs, ()),
        body_jaxpr=taking_all(body, count, refs, refs),
        cond_nconsts=len(condition.consts),
        body_nconsts=len(body.consts),
    )
    for (ref, written), value in zip(refs, results[count:], strict=True):
        if written:
            ref._replace(value)
    return results[:count]
