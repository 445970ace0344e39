"""Laws of rows whose operands are sprinkled with the values that rules forget.

NaN, infinities and zeros of both signs among floats, the ends of their dtype among integers. Other
laws draw numbers of moderate size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import enable_x64
from primal.base.limits import iinfo
from tests.cases.case import BOOL, F32, I8, I32, I64, U8, U64, Case
from tests.laws.compare import close, eager, run_together, staged
from tests.laws.laws import SPECIAL, _over, direction, inexact, placements, pulled, pushed

Draw = Callable[[Any, Any], Any]
"""What stands in the place of an operand of these dtype and values."""

# The xla engine takes a quarter of an hour here; XLA computes some of these otherwise by design.
NAMES = ("reference", "cpu")


def sprinkled(rng: np.random.Generator, share: float) -> Draw:
    """Special floats in so many places."""

    def draw(x: Any, dtype: Any) -> Any:
        special = np.array(SPECIAL)[rng.integers(0, len(SPECIAL), x.shape)]
        return np.where(rng.random(x.shape) < share, special, x).astype(dtype)

    return draw


def extreme(rng: np.random.Generator) -> Draw:
    """Integers from both ends of the dtype, around 0 and around the width of words."""

    def draw(x: Any, dtype: Any) -> Any:
        if dtype == BOOL:
            return rng.integers(0, 2, x.shape).astype(bool)
        low, high = int(iinfo(dtype).min), int(iinfo(dtype).max)
        found = {low, low + 1, high - 1, high, high // 3, -2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 63, 64}
        pool = np.array(sorted(n for n in found if low <= n <= high), dtype)
        return pool[rng.integers(0, len(pool), x.shape)]

    return draw


def operands(case: Case, dtype: Any, draw: Draw, kind: type) -> Iterator[list[Any]]:
    """The row's operands of each shape; those it draws itself, if of that kind, are drawn anew."""
    rows = (case.operands, *case.also)
    for row, xs in zip(rows, case.draws(dtype), strict=True):
        yield [
            draw(x, dtype)
            if spec.dtype is None and spec.values is None and dtypes.issubdtype(x.dtype, kind)
            else x
            for spec, x in zip(row, xs, strict=True)
        ]


def law_of_integers(case: Case, names: Sequence[str] = NAMES) -> None:
    """Engines agree to the last bit on the ends of integer dtypes, sums that wrap among them."""
    for wide in (False, True):
        programs: list[Any] = []
        wants: list[Any] = []
        with enable_x64(wide):
            for dtype in (I64, U64) if wide else (I8, U8, I32, BOOL):
                kind = np.bool_ if dtype == BOOL else np.integer
                draw = extreme(np.random.default_rng(7))
                try:
                    f = case.function(dtype)
                    found = [(staged(f, xs), xs) for xs in operands(case, dtype, draw, kind)]
                except (TypeError, ValueError):
                    continue  # in words, as the law of all dtypes asks
                for closed, xs in found:
                    programs.append((f"{case.id} of {dtype}", closed, xs))
                    wants.append(eager(f, xs))
            _agree(case, programs, wants, names)


def law_of_special_batches(case: Case) -> None:
    """Over each axis of each operand vmap is a loop where there are special values, too."""
    rng = np.random.default_rng(5)
    draw = sprinkled(rng, 0.3)
    f = case.function(F32)
    row = case.operands
    for xs in list(operands(case, F32, draw, np.floating))[:1]:
        for dims in placements(xs):
            given = [
                x if d is None else
                np.stack([x, draw(x, F32) if spec.dtype is spec.values is None else x], d)
                for spec, x, d in zip(row, xs, dims, strict=True)
            ]  # fmt: skip
            loop = [
                eager(f, [x if d is None else np.take(x, i, d)
                          for x, d in zip(given, dims, strict=True)])
                for i in range(2)
            ]  # fmt: skip
            want = [np.stack(column) for column in zip(*loop, strict=True)]
            what = f"{case.id} {[x.shape for x in xs]} batched at {dims}"
            close(eager(_over(f, dims, 2), given), want, what, max(case.ulps, 16), case.near)


def law_of_special_slopes(case: Case, names: Sequence[str] = NAMES) -> None:
    """Engines agree on second derivatives where there are special values."""
    rng = np.random.default_rng(6)
    programs: list[Any] = []
    wants: list[Any] = []
    f = case.function(F32)
    for share in (0.2, 0.6):
        xs = next(operands(case, F32, sprinkled(rng, share), np.floating))
        active = case.active(xs)
        if not any(active):
            return
        cts = [direction(rng, o) for o in eager(f, xs) if inexact(o)]
        ts = [direction(rng, x) for x, a in zip(xs, active, strict=True) if a]
        still = [*active, *[False] * len(cts)]
        twice = pushed(pulled(f, len(xs), active), len(still), still)
        args = [*xs, *cts, *ts]
        programs.append((f"{case.id}: second derivative", staged(twice, args), args))
        wants.append(eager(twice, args))
    _agree(case, programs, wants, names, 1024, 1)


def _agree(
    case: Case, programs: Any, wants: Any, names: Sequence[str], ulps: float = 0, near: float = 0
) -> None:
    for engine in names if programs else ():
        outs = run_together(programs, engine)
        for (what, _, _), got, want in zip(programs, outs, wants, strict=True):
            what = f"{what} on {engine}"
            close(got, want, what, max(ulps, case.ulps), max(near, case.near))
