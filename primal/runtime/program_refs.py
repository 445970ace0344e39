"""References that programs touch: further inputs and outputs of what is traced.

`tracing_refs` is the side of the program, `settle_refs` the side of the operation that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.ir.state import state
from primal.runtime.refs import READ_ONLY, AbstractRef, Ref


def given_refs(flat: Callable[..., list[Any]], args: Sequence[int]) -> Callable[..., list[Any]]:
    """A flat function that gets references to its arguments at the positions `args`.

    It returns their last values after its own results.
    """

    def run(*leaves: Any) -> list[Any]:
        given = list(leaves)
        for i in args:
            given[i] = Ref(leaves[i])
        outs = flat(*given)
        return [*outs, *[given[i]._value for i in args]]

    return run


def only_reading(flat: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A flat function, to be staged, that may read references from outside, but not write them.

    What it reads is a constant of its program, so the program is for one use.
    """

    def run(*leaves: Any) -> list[Any]:
        program: Any = state.trace
        program.refs = READ_ONLY
        return flat(*leaves)

    return run


def tracing_refs(
    flat: Callable[..., list[Any]],
    touched: list[tuple[Ref, bool]],
    args: Sequence[int] = (),
) -> Callable[..., list[Any]]:
    """A flat function, to be staged, that takes and returns the references it touches.

    Those from outside become inputs after the others; those written become outputs after the
    others; `touched` gets (reference, written) of each. Arguments at the positions `args` arrive
    as references; of these, the last values are returned between the two.
    """

    def run(*leaves: Any) -> list[Any]:
        program: Any = state.trace
        program.refs = {}
        outs = given_refs(flat, args)(*leaves) if args else flat(*leaves)
        slots = list(program.refs.items())
        touched.extend((ref, slot.written) for ref, slot in slots)
        return [*outs, *[slot.value for _, slot in slots if slot.written]]

    return run


def values_of(refs: Sequence[tuple[Ref, bool]]) -> list[Any]:
    """What references hold, as operands of the operation that runs a program."""
    return [ref._current() for ref, _ in refs]


def settle_refs(refs: Sequence[tuple[Ref, bool]], values: Sequence[Any]) -> None:
    """Write what the operation returned for the references that its program wrote."""
    rest = iter(values)
    for ref, written in refs:
        if written:
            ref._replace(next(rest))


def check_distinct(
    name: str, given: Sequence[tuple[Ref, bool]], closed_over: Sequence[tuple[Ref, bool]]
) -> None:
    """ValueError where one reference reaches a program in two ways."""
    seen: set[Ref] = set()
    for ref, _ in given:
        if ref in seen:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, "
                f"but when tracing {name} the mutable array reference of type "
                f"{AbstractRef(ref._aval)} appeared at several places. Pass it once."
            )
        seen.add(ref)
    for ref, _ in closed_over:
        if ref in seen:
            raise ValueError(
                f"when tracing {name}, a mutable array reference of type {AbstractRef(ref._aval)} "
                "was both closed over and passed as an argument. Do one of the two."
            )


def check_no_refs(name: str, tree: Any, leaves: Sequence[Any]) -> None:
    """ValueError for references among results."""
    for x in leaves:
        if isinstance(x, Ref):
            raise ValueError(
                f"function {name} traced returned a mutable array reference of type {x!r}, but "
                "mutable array references cannot be returned. Return what it holds, ref[...]."
            )
