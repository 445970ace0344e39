"""What every turn of a loop would compute alike: computed once, before it.

A value moves if reading it costs less than making it again: if it is no bigger than what it is made
of, or takes several operations an element. Repeating and rearranging are free in kernels, so they
stay. Loops and branches stay too: the first turn might not come, or not get that far.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.op import (
    BITS,
    CONTRACT,
    CONTROL,
    ELEMENTWISE,
    FFT,
    INDEX,
    LINALG,
    MIXED,
    REDUCTION,
    WINDOW,
)
from primal.ir.trace import Literal

OPERATIONS = 3
"""Operations per element from which on a value is read rather than made again."""
LARGEST = 1 << 24
"""Elements of a value that was not in memory before and may be put there."""
WORKS = frozenset((ELEMENTWISE, MIXED, REDUCTION, CONTRACT, WINDOW, LINALG, FFT, BITS, INDEX))
"""Kinds of ops that compute; others arrange what is there."""


def part(closed: ClosedJaxpr, known: Sequence[Any]) -> tuple[list[Eqn], list[Var], ClosedJaxpr]:
    """The equations that depend on known inputs alone, their results that are read, and the rest.

    `known` says which inputs are the same on every turn. The rest takes those results as further
    inputs, before its own.
    """
    jaxpr = closed.jaxpr
    sources = unchanging(jaxpr, known)
    works: dict[Any, int] = {}
    still = [eqn for eqn in jaxpr.eqns if eqn.outvars and eqn.outvars[0] in sources]
    if not still:
        return [], [], closed
    for eqn in still:
        work = _work(eqn) + sum([works.get(v, 0) for v in _variables(eqn.invars)])
        works.update(dict.fromkeys(eqn.outvars, work))

    def moves(v: Any) -> bool:
        size = _size(v.aval)
        if works[v] and size <= sum([_size(b.aval) for b in sources[v]]):
            return True
        return works[v] >= OPERATIONS * size and size <= LARGEST

    unmoved = set(still)
    wanted = set(_variables(jaxpr.outvars))
    for eqn in jaxpr.eqns:
        if eqn not in unmoved:
            wanted.update(_variables(eqn.invars))
    found: list[Var] = []
    stays: set[Eqn] = set()
    goes: set[Eqn] = set()
    needed: set[Any] = set()
    for eqn in reversed(still):
        read_here = [v for v in eqn.outvars if v in wanted]
        if read_here and all(map(moves, read_here)):
            found += read_here
            needed.update(read_here)
        elif read_here:
            stays.add(eqn)
            wanted.update(_variables(eqn.invars))
        if any(v in needed for v in eqn.outvars):
            goes.add(eqn)
            needed.update(_variables(eqn.invars))
    if not found:
        return [], [], closed
    rest = [eqn for eqn in jaxpr.eqns if eqn not in unmoved or eqn in stays]
    inner = jaxpr.replace(invars=[*found, *jaxpr.invars], eqns=rest)
    return [eqn for eqn in still if eqn in goes], found, ClosedJaxpr(inner, closed.consts)


def unchanging(jaxpr: Jaxpr, known: Sequence[Any]) -> dict[Any, frozenset[Any]]:
    """The variables that are the same on every turn, and the known ones that each depends on."""
    sources: dict[Any, frozenset[Any]] = {v: frozenset((v,)) for v in jaxpr.constvars}
    sources.update({v: frozenset((v,)) for v, k in zip(jaxpr.invars, known, strict=True) if k})
    for eqn in jaxpr.eqns:
        read = _variables(eqn.invars)
        if _may_move(eqn) and all(v in sources for v in read):
            base = frozenset().union(*[sources[v] for v in read])
            sources.update(dict.fromkeys(eqn.outvars, base))
    return sources


def _may_move(eqn: Eqn) -> bool:
    kind = eqn.op.kind
    return not (eqn.effects or kind.host or kind.collective or kind is CONTROL)


def _work(eqn: Eqn) -> int:
    """Operations, roughly: one per element of an elementwise op, more of others."""
    if eqn.op.kind not in WORKS:
        return 0
    size = sum([_size(v.aval) for v in eqn.outvars])
    if eqn.op.kind.elementwise:
        return size
    return OPERATIONS * (size + sum([_size(v.aval) for v in eqn.invars]))


def _size(aval: Aval) -> int:
    return math.prod(aval.shape)


def _variables(atoms: Iterable[Any]) -> list[Any]:
    return [v for v in atoms if type(v) is not Literal]
