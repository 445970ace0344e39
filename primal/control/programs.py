"""What the rooms of control flow share: masks around loops, and programs rearranged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from primal.ir.trace import Literal
from primal.transforms.dce import dce_jaxpr
from primal.transforms.memo import memo_on_jaxpr

Mask = tuple[bool, ...]


def settle(mask: Iterable[bool], grow: Callable[[Mask], Iterable[bool]]) -> Mask:
    """The least mask above the given one that a pass around the loop does not enlarge.

    `grow(mask)` says which carries a pass marks when it starts from `mask`. Masks only grow, so
    there are at most as many passes as carries, and nearly always one or two.
    """
    now = tuple(mask)
    while True:
        wider = tuple([a or b for a, b in zip(now, grow(now), strict=True)])
        if wider == now:
            return now
        now = wider


def split(items: Sequence[Any], *sizes: int) -> list[Sequence[Any]]:
    """Consecutive parts of the given sizes, and the rest."""
    parts = []
    at = 0
    for n in sizes:
        parts.append(items[at : at + n])
        at += n
    parts.append(items[at:])
    return parts


def pick(items: Sequence[Any], mask: Iterable[bool]) -> list[Any]:
    """The items that are marked."""
    return [x for x, m in zip(items, mask, strict=True) if m]


def unpick(mask: Iterable[bool], marked: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """One list again from the marked and the other items: the inverse of two `pick`s."""
    yes, no = iter(marked), iter(others)
    return [next(yes) if m else next(no) for m in mask]


def flip(mask: Iterable[bool]) -> list[bool]:
    """The complement of a mask."""
    return [not m for m in mask]


@memo_on_jaxpr
def rearrange(closed: ClosedJaxpr, ins: tuple[int, ...], outs: tuple[int, ...]) -> ClosedJaxpr:
    """The program with its inputs and outputs permuted; outputs may also be dropped or repeated.

    The equations are shared. Remembered, so that what is derived from the result is found again.
    """
    jaxpr = closed.jaxpr
    moved = jaxpr.replace(
        invars=[jaxpr.invars[i] for i in ins], outvars=[jaxpr.outvars[i] for i in outs]
    )
    return ClosedJaxpr(moved, closed.consts)


@memo_on_jaxpr
def trim(closed: ClosedJaxpr, used_outputs: Mask, keep: Mask) -> tuple[ClosedJaxpr, Mask]:
    """`dce_jaxpr` that also keeps the inputs marked in `keep`, used or not."""
    smaller, used = dce_jaxpr(closed, used_outputs)
    kept = tuple([u or k for u, k in zip(used, keep, strict=True)])
    jaxpr = smaller.jaxpr.replace(invars=pick(closed.jaxpr.invars, kept))
    return ClosedJaxpr(jaxpr, smaller.consts), kept


def computable(eqns: Sequence[Eqn], known: set[Any]) -> list[Eqn]:
    """The equations without effects that the `known` variables determine; their results join it."""
    found = []
    for eqn in eqns:
        if not eqn.effects and all(type(v) is Literal or v in known for v in eqn.invars):
            known.update(eqn.outvars)
            found.append(eqn)
    return found


def part_of(
    closed: ClosedJaxpr, invars: Sequence[Any], outvars: Sequence[Any], eqns: Sequence[Eqn]
) -> ClosedJaxpr:
    """What some equations of a program contribute to `outvars`, as a program of its own."""
    jaxpr = Jaxpr(closed.jaxpr.constvars, invars, outvars, eqns, None, closed.jaxpr.debug)
    whole = ClosedJaxpr(jaxpr, closed.consts)
    return trim(whole, (True,) * len(outvars), (True,) * len(invars))[0]


def same_type(a: Aval, b: Aval) -> bool:
    """Whether two avals have one shape and dtype; weak types may differ."""
    return a.shape == b.shape and a.dtype == b.dtype


def check_operands(name: str, what: str, avals: Sequence[Aval], wanted: Sequence[Aval]) -> None:
    """TypeError unless the operands have the types that a carried program declares."""
    if len(avals) != len(wanted):
        raise TypeError(f"[{name}] expected {len(wanted)} operands for {what}, got {len(avals)}.")
    for i, (a, w) in enumerate(zip(avals, wanted, strict=True)):
        if not same_type(a, w):
            raise TypeError(f"[{name}] expected {w.short()} for {what} {i}, got {a.short()}.")
