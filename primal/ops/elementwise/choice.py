"""Choosing between values element by element: select_n, clamp, max, min."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import extrema
from primal.base.extrema import Extremum, maximum, minimum
from primal.base.native import FLOAT16, chosen
from primal.ir.avals import Aval
from primal.ir.op import MIXED, Bound, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise.arithmetic import BOOL, ORDERED, eq, lt, mul, ne
from primal.ops.elementwise.bitwise import bitwise_and
from primal.ops.elementwise.make import binary, keeps_dtype2
from primal.ops.spread import add_any, broadcast_to
from primal.ops.types import NOT_LINEAR, broadcast_shapes, is_linear
from primal.ops.words import each_out, unbroadcast

# select_n: cases[which]; `which` is bool for two cases, int32 for more, and indices beyond the ends
# choose the last or the first case. Every operand broadcasts, as those of all elementwise ops do,
# so that zeros of derivatives stay scalars; `lax.select_n` asks users for equal shapes.


def _select_type(which: Aval, *cases: Aval) -> Aval:
    if not cases:
        raise TypeError("[select_n] expected at least one case, got none.")
    if which.dtype != BOOL and which.dtype != np.int32:
        raise TypeError(
            f"[select_n] expected `which` of bool or int32, got {which.dtype.name}: `which` must "
            "be boolean or integer type."
        )
    if which.dtype == BOOL and len(cases) > 2:
        raise TypeError(
            f"[select_n] expected at most 2 cases for bool, got {len(cases)}: select with boolean "
            "`which` cannot have > 2 cases."
        )
    first = cases[0]
    for c in cases:
        if c.dtype != first.dtype:
            raise TypeError(
                f"[select_n] expected cases of one dtype, got {', '.join(c.short() for c in cases)}"
                ": lax.select requires arguments to have the same dtypes. primal.numpy.where "
                "promotes them."
            )
    weak = all(c.weak_type for c in cases)
    return Aval(broadcast_shapes("select_n", (which, *cases)), first.dtype, weak)


def _where(dtype: Any) -> Any:
    return chosen if isinstance(dtype, np.dtype) and dtype.isbuiltin == 1 else np.where


def _select_halves(which: Any, x: Any, y: Any) -> Any:
    """x or y, where `which` is true, of float16: by their bits, for which there are vectors (25 µs
    for 100,000 where np.where takes 940). Operands may have sizes of 1: see `phrases.lazily`."""
    bits, mask = x.view(np.int16), np.negative(which.view(np.int8), dtype=np.int16)
    return (bits ^ (mask & (bits ^ y.view(np.int16)))).view(FLOAT16)


def _select_impl(which: Any, *cases: Any) -> Any:
    if len(cases) == 2:
        where = _where(cases[0].dtype)
        return where(which if which.dtype == BOOL else which > 0, cases[1], cases[0])
    if len(cases) == 1:
        return np.broadcast_arrays(which, cases[0])[1].copy()
    index = np.clip(which, 0, len(cases) - 1)
    # np.choose is limited to 32 cases and knows no dtype of ml_dtypes.
    out = np.where(index == 0, cases[0], cases[1])
    for i in range(2, len(cases)):
        out = np.where(index == i, cases[i], out)
    return out


def _select_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    which, *cases = primals
    out = select_n(which, *cases)
    ts = tangents[1:]
    if all(t is ZERO for t in ts):
        return out, ZERO
    ts = [_zero_like(c) if t is ZERO else t for c, t in zip(cases, ts, strict=True)]
    # A scalar in every case would lose the result's shape where `which` is scalar too.
    return out, _shaped(select_n(which, *ts), out)


def _zero_like(x: Any) -> Any:
    """A zero as strong as x."""
    aval = aval_of(x)
    return literal(0, aval.dtype, aval.weak_type)


def _shaped(t: Any, out: Any) -> Any:
    return t if aval_of(t).shape == aval_of(out).shape else broadcast_to(t, aval_of(out).shape)


def _select_transpose(ct: Any, which: Any, *cases: Any) -> Any:
    zero = _zero_like(ct)
    results: list[Any] = [None]
    for i, c in enumerate(cases):
        if is_linear(c):
            part = select_n(which, *[ct if j == i else zero for j in range(len(cases))])
            results.append(unbroadcast(part, c.shape))
        else:
            results.append(None)
    return results


def _select_hlo(b: Any, which: Any, *cases: Any) -> Any:
    shape = b.outs[0].shape
    cases = tuple([b.broadcast_to(c, shape) for c in cases])
    return b.select_n(b.broadcast_to(which, shape) if which.shape else which, *cases)


def _select_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    if len(names) != 3 or eqn.invars[0].aval.dtype != BOOL:
        return None
    shapes = {v.aval.shape for v in eqn.invars}
    halves = eqn.outvars[0].aval.dtype == FLOAT16 and chosen is np.where
    if halves and len(shapes) == 1 and () not in shapes:
        return f"{bound(_select_halves)}({', '.join(names)})"
    where = bound(_where(eqn.outvars[0].aval.dtype))
    return f"{where}({names[0]}, {names[2]}, {names[1]})"


select_n = Op(
    name="select_n",
    kind=MIXED,
    type=_select_type,
    impl=_select_impl,
    jvp=_select_jvp,
    transpose=_select_transpose,
    batch=by_kind,
    shard=by_kind,
    hlo=_select_hlo,
    kernel=lambda k, which, *cases: k.select_n(which, *cases),
    word="select_n",
    written=_select_written,
)


# clamp: min(max(x, low), high). Inside the bounds x moves the result, outside the bound does, and
# on a bound nothing.


def _clamp_type(low: Aval, x: Aval, high: Aval) -> Aval:
    if not low.dtype == x.dtype == high.dtype:
        raise TypeError(
            f"[clamp] expected operands of one dtype, got {low.dtype.name}, {x.dtype.name}, "
            f"{high.dtype.name}."
        )
    weak = x.weak_type and low.weak_type and high.weak_type
    return Aval(broadcast_shapes("clamp", (x, low, high)), x.dtype, weak)


def _clamp_impl(low: Any, x: Any, high: Any) -> Any:
    out = extrema.clamp(low, x, high)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def _less(x: Any, y: Any) -> Any:
    """x < y in the order of max and min: complex numbers by real, then by imaginary parts."""
    if aval_of(x).dtype.kind != "c":
        return lt(x, y)
    return bitwise_and(eq(min(x, y), x), ne(x, y))


def _clamp_jvp(primals: Any, tangents: Any) -> Any:
    low, x, high = primals
    out = clamp(low, x, high)
    total: Any = ZERO
    for i, t in enumerate(tangents):
        if t is not ZERO:
            mask = (
                bitwise_and(_less(x, low), _less(low, high))
                if i == 0
                else bitwise_and(_less(low, x), _less(x, high))
                if i == 1
                else _less(high, max(x, low))  # also where the bounds cross
            )
            part = _shaped(select_n(mask, _zero_like(out), t), out)
            total = part if total is ZERO else add_any(total, part)
    return out, total


def _clamp_hlo(b: Any, low: Any, x: Any, high: Any) -> Any:
    shape = b.outs[0].shape
    low, high = [v if v.shape == () else b.broadcast_to(v, shape) for v in (low, high)]
    x = b.broadcast_to(x, shape)
    if x.dtype.kind != "c":
        return b.clamp(low, x, high)
    low, high = b.broadcast_to(low, shape), b.broadcast_to(high, shape)
    return complex_extremum("minimum")(b, complex_extremum("maximum")(b, x, low), high)


clamp = Op(
    name="clamp",
    kind=MIXED,
    type=_clamp_type,
    impl=_clamp_impl,
    jvp=_clamp_jvp,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=_clamp_hlo,
    kernel=lambda k, low, x, high: k.clamp(low, x, high),
)


# max and min: NaN if an operand is; at ties the derivative is shared equally.


def _extremum_jvp(op: Op) -> Any:
    def share(t: Any, mine: Any, other: Any, out: Any) -> Any:
        aval = aval_of(out)
        zero, one, half = [literal(v, aval.dtype, aval.weak_type) for v in (0, 1, 0.5)]
        # No quotient of 1 and the number of winners: complex ones take thirty operations.
        weight = select_n(eq(other, out), one, half)
        return mul(t, select_n(eq(mine, out), zero, weight))

    return each_out(
        lambda t, out, x, y: share(t, x, y, out), lambda t, out, x, y: share(t, y, x, out)
    ).of(op)


def complex_extremum(monoid: str) -> Any:
    """XLA's maximum or minimum of two complex numbers: by real, then imaginary part; nan wins.

    NumPy's order. XLA has a word for it that not all of its emitters know.
    """
    direction = "G" if monoid == "maximum" else "L"

    def pick(b: Any, x: Any, y: Any) -> Any:
        (xr, xi), (yr, yi) = (b.real(x), b.imag(x)), (b.real(y), b.imag(y))
        tied = b.and_(b.compare(xr, yr, "EQ"), b.compare(xi, yi, direction + "E"))
        first = b.or_(b.compare(xr, yr, direction + "T"), tied)
        first = b.and_(first, b.compare(y, y, "EQ"))
        return b.select(b.or_(first, b.compare(x, x, "NE")), x, y)

    return pick


def _extremum_hlo(monoid: str) -> Any:
    def hlo(b: Any, x: Any, y: Any) -> Any:
        if x.dtype.kind != "c":
            return b.binary(monoid, x, y)
        shape = b.outs[0].shape
        return complex_extremum(monoid)(b, b.broadcast_to(x, shape), b.broadcast_to(y, shape))

    return hlo


EXTREMA = (*ORDERED, np.complexfloating)


def _extremum_written(extremum: Extremum) -> Any:
    def written(eqn: Any, names: Sequence[str], bound: Bound) -> str:
        return f"{bound(extremum.of(eqn.invars[0].aval.dtype))}({', '.join(names)})"

    return written


def _extremum(name: str, extremum: Extremum) -> Op:
    return binary(
        name, EXTREMA, keeps_dtype2(extremum), Word(_extremum_jvp),
        _extremum_hlo(extremum.ufunc.__name__), written=_extremum_written(extremum),
    )  # fmt: skip


max = _extremum("max", maximum)
min = _extremum("min", minimum)
