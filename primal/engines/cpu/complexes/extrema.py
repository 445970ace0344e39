"""Greatest and least complex numbers: by real, then by imaginary part; of equals the first, and the
first with NaN before all.

They are found as NumPy's loops find them, whose result is one of the numbers, with the signs of
its zeros. Kernels hold parts, so each is asked for in turn: the best real part, the best imaginary
part beside it, the first place that has both, and what lies there. That is one kernel of four
passes over a row; halves against each other would be a kernel for every power of two, and would
not keep the first of equals. A few numbers to a row are compared one after another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.engines.cpu.complexes import folds
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.kernels import turned_rows
from primal.engines.cpu.kernels.takes import INT32
from primal.engines.cpu.lanes import COMBINE
from primal.engines.cpu.routines.scans import WIDEST
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

LONGEST, MOST = 128, 4096
"""Numbers of a row, and of all, of which one has to be more for NumPy to be as fast as a loop."""


def reduced(k: Any, monoid: str, x: Value, axes: Sequence[int]) -> Value:
    """The greatest ('maximum') or least number over axes."""
    count = size_of([x.shape[d] for d in axes])
    if count >= WIDEST:
        raise Unsupported("places beyond 32 bits")
    if count == 1:
        return k.reshape(x, tuple([n for d, n in enumerate(x.shape) if d not in axes]))
    order = _as_one(k, x, axes) if count <= turned_rows.LONGEST else None
    if order is not None:
        return folds.by_runs(k, x, axes, order, lambda x: folds.fold(k, COMBINE[monoid], x))
    kept = [d for d in range(x.ndim) if d not in axes]
    re, im = k.parts(x)
    worst = k.literal(-math.inf if monoid == "maximum" else math.inf, re.dtype)

    def best(how: str, v: Value) -> Value:
        return k.reduce(how, v, axes)

    def along(v: Value) -> Value:
        return k.broadcast_in_dim(v, x.shape, kept)

    # Where some number is missing, which has the best parts is not asked.
    missing = k.binary("ne", x, x)
    some = along(best("or", missing))
    top = k.binary("eq", re, along(best(monoid, re)))
    beside = along(best(monoid, k.select_n(top, worst, im)))
    found = k.select_n(some, k.binary("and", top, k.binary("eq", im, beside)), missing)
    place = _places(k, x.shape, axes)
    first = best("minimum", k.select_n(found, k.literal(count, INT32), place))
    here = k.binary("eq", place, along(first))
    whole = np.dtype(f"i{re.dtype.itemsize}")
    none = k.literal(0, whole)
    bits = [best("or", k.select_n(here, none, k.bitcast(p, whole))) for p in (re, im)]
    return k.pair(*[k.bitcast(p, re.dtype) for p in bits], x.dtype)


def _as_one(k: Any, x: Value, axes: Sequence[int]) -> Sequence[int] | None:
    """The dimensions as numbers lie, if there the axes are side by side and in order."""
    order = folds.order_of(k, x)
    begin = order.index(axes[0])
    return order if [*order[begin : begin + len(axes)]] == [*axes] else None


def _places(k: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Value:
    """The number of each element among those that are reduced to one."""
    place: Value = k.literal(0, INT32)
    step = 1
    for d in reversed(axes):
        along = k.iota(shape, INT32, d)
        if step > 1:
            along = k.binary("mul", along, k.literal(step, INT32))
        place = along if step == 1 else k.binary("add", place, along)
        step *= shape[d]
    return place


def cumulative(k: Any, word: str, x: Value, axis: int, reverse: bool) -> Value:
    """Running 'max' or 'min' along an axis: a loop, whose body is the word for all rows at once.

    Many long rows are NumPy's, a row after the other: 1000 x 1000 complex128 take it 2 ms, a loop
    over columns 8, and 100,000 in one row 0.2 ms and 0.5.
    """
    if axis == x.ndim - 1 and x.shape[axis] > LONGEST and x.size > MOST:
        raise Unsupported("running extrema of long rows of complex numbers")
    front = [axis, *[d for d in range(x.ndim) if d != axis]]
    rows = k.transpose(x, front)
    n, *rest = rows.shape
    first = n - 1 if reverse else 0
    begin = k.slice(rows, (first, *[0] * len(rest)), (first + 1, *rest), (1,) * x.ndim)
    begin = k.reshape(begin, tuple(rest))

    def body(k: Any, best: Value, row: Value) -> list[Value]:
        best = k.binary(word, best, row)
        return [best, best]

    _, out = k.scan(body, [begin], [rows], [Aval(rows.shape, x.dtype)], n, reverse)
    return k.transpose(out, [front.index(d) for d in range(x.ndim)])
