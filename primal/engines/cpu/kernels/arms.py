"""What only one arm of a choice needs, computed where some lane of the vector takes that arm.

`where(x < 2, series(x), fraction(x))` computes both arms for every vector of random numbers, but
one of them for most vectors of sorted ones, and a formula for rare arguments (a reflection, what
lies beyond the range of another) for none where there are none. A vector whose lanes disagree pays
for the tests.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from typing import Any

from primal.engines.cpu.code import SCALAR, Code
from primal.engines.cpu.functions import FLOAT

WORTH = 40
"""Instructions from which on an arm waits: a branch that is foreseen wrongly costs 20 cycles."""
FUNCTION, SLOW = 20, 8
"""What a mathematical function counts for, and a quotient or a root."""
_SLOW = ("div", "rem", "reciprocal", "sqrt", "rsqrt")
Item = tuple[str, tuple[str, ...], str, tuple[int, ...]]
"""(word, dtypes of operands, dtype, operands)"""
Arm = tuple[int, int]
"""(number of the choice, which of its operands)"""


def waiting(spec: Any) -> dict[Arm, list[int]]:
    """The items of a body that wait for an arm, in order; for the innermost, if for several."""
    body, first = spec.body, len(spec.operands)
    users: dict[int, list[Arm]] = {}
    for n, (_, _, _, refs) in enumerate(body, first):
        for k, r in enumerate(refs):
            users.setdefault(r, []).append((n, k))
    outside = {*spec.stores, *[r for _, r, _ in spec.reductions]}
    home: dict[int, Arm] = {}
    # A choice inside an arm of another comes before it.
    for n, (word, ins, _, refs) in reversed([*enumerate(body, first)]):
        if word != "select_n" or ins[0] != "b1" or len(refs) != 3:
            continue
        for k in (1, 2):
            found = _alone((n, k), refs[k], body, first, outside, users)
            if sum([_cost(body[m - first]) for m in found]) >= WORTH:
                home.update(dict.fromkeys(found, (n, k)))
    out: dict[Arm, list[int]] = {}
    for n in sorted(home):
        out.setdefault(home[n], []).append(n)
    return out


def _alone(
    arm: Arm, top: int, body: Sequence[Item], first: int, outside: Collection[int],
    users: dict[int, list[Arm]],
) -> set[int]:  # fmt: skip
    """The items that nothing reads but the arm, and items that are such themselves."""
    found: set[int] = set()
    queue = [-top]
    while queue:
        # The greatest number first: whoever reads an item has been looked at then.
        n = -heapq.heappop(queue)
        if n < first or n in found or n in outside:
            continue
        if all(u == arm or u[0] in found for u in users[n]):
            found.add(n)
            for r in body[n - first][3]:
                heapq.heappush(queue, -r)
    return found


def _cost(item: Item) -> int:
    word, _, dtype, _ = item
    return FUNCTION if word in FLOAT else SLOW if word in _SLOW and dtype[0] == "f" else 1


def evaluated(
    c: Code, body: Sequence[Item], operands: Sequence[str], arms: dict[Arm, list[int]],
    make: Callable[[Item, list[str]], str],
) -> list[str]:  # fmt: skip
    """The values of operands and items, those that wait behind a branch; `make` writes an item."""
    first = len(operands)
    values = [*operands, *[""] * len(body)]

    def written(n: int) -> None:
        item = body[n - first]
        refs = item[3]
        xs = [values[r] for r in refs]
        for k in (1, 2):
            if (n, k) in arms:
                xs[k] = _if_any(c, xs[0], k, item[2], lambda: arm((n, k), refs[k]))  # noqa: B023
        values[n] = make(item, xs)

    def arm(which: Arm, top: int) -> str:
        for n in arms[which]:
            written(n)
        return values[top]

    inside = {n for items in arms.values() for n in items}
    for n in range(first, len(values)):
        if n not in inside:
            written(n)
    return values


def _if_any(c: Code, which: str, arm: int, dtype: str, made: Callable[[], str]) -> str:
    """What `made` gives if a lane takes the arm; else zeros, which nobody reads."""
    if arm == 1:
        which = c.new(f"xor {c.vec('i1')} {which}, {c.const('i1', 'true')}")
    word = c.new(f"bitcast {c.vec('i1')} {which} to i{c.lanes}")
    some = c.new(f"icmp ne i{c.lanes} {word}, 0")
    (out,) = c.guarded(some, [(c.vec(SCALAR[dtype]), "zeroinitializer")], lambda: [made()])
    return out
