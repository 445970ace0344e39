"""Mutable references in the functions of control flow: what is read and written, as operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.api.control.bodies import Body
from primal.api.operands import name_of
from primal.base.pytree import flatten, unflatten
from primal.control.programs import rearrange
from primal.control.while_ import while_ as while_op
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr, Var
from primal.runtime.program_refs import check_distinct, settle_refs, values_of
from primal.runtime.refs import Ref
from primal.transforms.stage import stage

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


def interleaved(leaves: Sequence[Any], refs: dict[int, Ref]) -> Sequence[Any]:
    """The leaves with references at their places among them."""
    if not refs:
        return leaves
    rest = iter(leaves)
    return [refs[i] if i in refs else next(rest) for i in range(len(leaves) + len(refs))]


def closing_over_refs(
    name: str, functions: Sequence[Callable[..., Any]], args: tuple[Any, ...]
) -> tuple[Sequence[Callable[..., Any]], tuple[Any, ...]]:
    """(functions of the arrays among `args` which close over the references, those arrays)."""
    leaves, spec = flatten(args)
    refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
    if not refs:
        return functions, args
    check_distinct(name, [(ref, True) for ref in refs.values()], ())

    def closed(f: Callable[..., Any]) -> Callable[..., Any]:
        def of_arrays(*xs: Any) -> Any:
            return f(*unflatten(spec, interleaved(xs, refs)))

        of_arrays.__name__ = name_of(f)
        return of_arrays

    return [closed(f) for f in functions], tuple([x for x in leaves if not isinstance(x, Ref)])


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
    """A while loop that carries the references its functions touch.

    Where the condition writes some, it runs once before the loop and then at the end of every
    step, and what it said is carried too.
    """
    refs = union([condition, body])
    count = len(leaves)
    asks = any(written for _, written in condition.refs)
    test = taking_all(condition, count, refs, refs if asks else ())
    step = taking_all(body, count, refs, refs)
    n, m = len(condition.consts), len(body.consts)
    carry = [*leaves, *values_of(refs)]
    if asks:
        go_on, *values = eval_closed(test, *condition.consts, *carry)
        carry = [*leaves, *values, go_on]
        n, m = 0, n + m
        test, step = _asking_last(test, step, len(condition.consts), count)
    results = while_op(
        *condition.consts,
        *body.consts,
        *carry,
        cond_jaxpr=test,
        body_jaxpr=step,
        cond_nconsts=n,
        body_nconsts=m,
    )
    for (ref, written), value in zip(refs, results[count:], strict=False):
        if written:
            ref._replace(value)
    return results[:count]


def _asking_last(
    test: ClosedJaxpr, step: ClosedJaxpr, num_test_consts: int, count: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """(the condition, the body) of the loop whose carry ends with what `test` said."""
    consts = test.in_avals[:num_test_consts]
    answer = test.out_avals[0]

    def advance(*args: Any) -> list[Any]:
        mine, rest = args[:num_test_consts], args[num_test_consts:-1]
        state = eval_closed(step, *rest)
        go_on, *refs = eval_closed(test, *mine, *state)
        return [*state[:count], *refs, go_on]

    carry = test.in_avals[num_test_consts:]
    return (
        stage(lambda *args: [args[-1]], [*carry, answer], test.jaxpr.debug),
        stage(advance, [*consts, *step.in_avals, answer], step.jaxpr.debug),
    )
