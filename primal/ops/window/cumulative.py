"""Cumulative ops: out[k] combines x[0..k] along an axis, or x[k..] when `reverse`.

cumsum, cumprod, cummax, cummin, cumlogsumexp; `linear_recurrence`, which their derivatives are;
`prefix` is the scan of any associative function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.extrema import maximum, minimum
from primal.base.monoids import identity
from primal.base.native import empty, extension, narrowed, widened
from primal.ir.avals import Aval
from primal.ir.op import WINDOW, Expand, Op, Word, by_kind
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import (
    bitwise_and,
    convert_element_type,
    div,
    eq,
    exp,
    mul,
    select_n,
    sub,
)
from primal.ops.elementwise.choice import complex_extremum
from primal.ops.reduce import part
from primal.ops.shape import concatenate, iota, moveaxis, reshape, rev
from primal.ops.spread import add_any, broadcast_axis, full_like_aval, zeros_like_aval
from primal.ops.types import FLOATING, INEXACT, NOT_LINEAR, NUMERIC, check_dtype
from primal.ops.words import each_out

Arrays = Sequence[Any]


def prefix(
    combine: Callable[[Arrays, Arrays], Arrays],
    xs: Arrays,
    axes: int | Sequence[int],
    reverse: bool = False,
) -> list[Any]:
    """Results of combining the first k + 1 elements along an axis, for every k.

    `combine` maps two lists of arrays to one, elementwise along the axis, and is associative;
    `axes` may name one axis for each array. log2(n) levels: pairs are combined, the half as many
    results scanned, and the gaps filled.
    """
    at = (axes,) * len(xs) if isinstance(axes, int) else tuple(axes)

    def turned(xs: Arrays) -> list[Any]:
        return [rev(x, dimensions=(d,)) for x, d in zip(xs, at, strict=True)] if reverse else [*xs]

    def parts(xs: Arrays, start: int, stop: int, step: int = 1) -> list[Any]:
        return [part(x, start, stop, d, step) for x, d in zip(xs, at, strict=True)]

    def scanned(xs: Arrays, n: int) -> list[Any]:
        if n < 2:
            return list(xs)
        half = n // 2
        odd = scanned(combine(parts(xs, 0, n - 1, 2), parts(xs, 1, n, 2)), half)
        even = parts(xs, 0, 1)
        if n > 2:
            before = odd if n % 2 else parts(odd, 0, half - 1)
            rest = combine(before, parts(xs, 2, n, 2))
            even = [concatenate(*p, dimension=d) for *p, d in zip(even, rest, at, strict=True)]
        return [_interleaved(e, o, d, n, half) for e, o, d in zip(even, odd, at, strict=True)]

    return turned(scanned(turned(xs), aval_of(xs[0]).shape[at[0]]))


def _interleaved(even: Any, odd: Any, axis: int, n: int, half: int) -> Any:
    shape = aval_of(odd).shape
    placed = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    both = [reshape(part(even, 0, half, axis), shape=placed), reshape(odd, shape=placed)]
    joined = concatenate(*both, dimension=axis + 1)
    out = reshape(joined, shape=(*shape[:axis], 2 * half, *shape[axis + 1 :]))
    return concatenate(out, part(even, half, half + 1, axis), dimension=axis) if n % 2 else out


def _type(name: str, kinds: Any) -> Any:
    def rule(x: Aval, *, axis: int, reverse: bool) -> Aval:
        check_dtype(name, x, kinds)
        if not 0 <= axis < x.ndim:
            raise ValueError(
                f"[{name}] expected an axis of an array of shape {x.shape}, got {axis}: axis "
                f"{axis} is out of bounds for array of shape {x.shape}"
            )
        return x

    return rule


# Longer sums of float32 are taken in blocks, as the error of one running sum grows with its length.
_BLOCK = 1024


def _impl(ufunc: Any) -> Any:
    def impl(x: Any, *, axis: int, reverse: bool) -> Any:
        dtype = x.dtype
        narrow = dtypes.is_narrow_float(dtype)
        work = np.dtype(np.float32) if narrow else dtype
        # NumPy has no loops for all integers of less than a byte; sums wrap the same way.
        work = np.dtype(np.int8) if work.kind == "V" else work
        x = widened(x) if narrow else x.astype(work, copy=False)
        if reverse:
            turned = (*[slice(None)] * axis, slice(None, None, -1))  # without np.flip's questions
            x = x[turned]
        # Sums begin with 0, to which -0 adds nothing, as those of all other ops do.
        if ufunc is np.add and work.kind in "fc" and x.shape[axis] > 4 * _BLOCK:
            out = _blocked_sum(x, axis)
        else:
            out = ufunc.accumulate(x, axis, dtype=work)
            if ufunc in (np.add, np.logaddexp) and work.kind in "fc":
                out += 0
        out = out[turned] if reverse else out
        return narrowed(out, dtype) if narrow else out.astype(dtype, copy=False)

    return impl


def _blocked_sum(x: Any, axis: int) -> Any:
    x = np.moveaxis(x, axis, -1)
    if extension is not None:
        return np.moveaxis(extension.running_sums(x), -1, axis)
    n = x.shape[-1]
    blocks = -(-n // _BLOCK)
    padded = empty((*x.shape[:-1], blocks * _BLOCK), x.dtype)
    padded[..., :n], padded[..., n:] = x, 0
    split = padded.reshape((*x.shape[:-1], blocks, _BLOCK))
    np.cumsum(split, axis=-1, out=split)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    before = np.zeros(split.shape[:-1], wide)
    np.cumsum(split[..., :-1, -1], axis=-1, out=before[..., 1:])
    before += 0
    split += before[..., None].astype(x.dtype)
    return np.moveaxis(padded[..., :n], -1, axis)


def _window(x: Any, axis: int, reverse: bool) -> dict[str, Any]:
    n = x.shape[axis]
    edge = (0, n - 1) if reverse else (n - 1, 0)
    return {
        "window": tuple([n if i == axis else 1 for i in range(x.ndim)]),
        "padding": tuple([edge if i == axis else (0, 0) for i in range(x.ndim)]),
    }


def _hlo(monoid: str) -> Any:
    # XLA rewrites a window of this form into blocks. A scan of log2(n) levels runs as fast, but
    # takes 2 to 4 times as long to compile.
    def hlo(b: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        if 0 in x.shape:
            return x
        window = _window(x, axis, reverse)
        if x.dtype.kind == "c" and monoid in ("maximum", "minimum"):
            init, pick = b.constant(identity(monoid, x.dtype), x.dtype), complex_extremum(monoid)
            return b.reduce_window_with([x], [init], pick, **window)[0]
        return b.reduce_window(monoid, x, **window)

    return hlo


def _batch(op: Op) -> Any:
    def batch(axis_: Any, args: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (d,) = args, dims
        return op(x, axis=axis + (axis >= d), reverse=reverse), d

    return batch


def _cumulative(
    name: str,
    kinds: Any,
    ufunc: Any,
    jvp: Any,
    hlo: Any,
    word: str,
    transpose: Any = NOT_LINEAR,
) -> Op:
    return Op(
        name=name,
        kind=WINDOW,
        type=_type(name, kinds),
        impl=_impl(ufunc),
        jvp=jvp,
        transpose=transpose,
        batch=Word(_batch),
        shard=by_kind,
        hlo=hlo,
        kernel=lambda k, x, *, axis, reverse: k.cumulative(word, x, axis, reverse),
    )


# cumsum is linear, and its transpose runs the other way.


def _cumsum_jvp(primals: Arrays, tangents: Arrays, **params: Any) -> Any:
    (x,), (t,) = primals, tangents
    return cumsum(x, **params), cumsum(t, **params)


def _cumsum_transpose(ct: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    return (cumsum(ct, axis=axis, reverse=not reverse),)


cumsum = _cumulative("cumsum", NUMERIC, np.add, _cumsum_jvp, _hlo("add"), "add", _cumsum_transpose)


# What changes out[k] at place k adds to what out[k - 1] hands on: derivatives are recurrences.


def _type_of_recurrence(a: Aval, b: Aval, *, axis: int, reverse: bool, late: bool) -> Aval:
    name = "linear_recurrence"
    check_dtype(name, b, INEXACT)
    if a.shape != b.shape or a.dtype not in (b.dtype, np.dtype(bool)):
        raise TypeError(
            f"[{name}] expected factors of shape {b.shape} and dtype {b.dtype.name} or bool, "
            f"got {a.dtype.name}{list(a.shape)}."
        )
    if not 0 <= axis < b.ndim:
        raise ValueError(f"[{name}] expected an axis of an array of shape {b.shape}, got {axis}.")
    return b.strong()


def _recurrence_impl(a: Any, b: Any, *, axis: int, reverse: bool, late: bool) -> Any:
    dtype, kept = b.dtype, a.dtype.kind == "b"
    if dtypes.is_narrow_float(dtype):
        b, a = widened(b), a if kept else widened(a)
    a, b = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, -1) for x in (a, b)]
    if extension is not None:
        out = extension.recurrence(a, b, late)
    else:
        out = b.copy()
        for k in range(1, b.shape[-1]):
            factor, before = a[..., k - late], out[..., k - 1]
            out[..., k] += np.where(factor, before, 0) if kept else factor * before
    out = np.moveaxis(out, -1, axis)
    out = np.flip(out, axis) if reverse else out
    return narrowed(out, dtype) if dtypes.is_narrow_float(dtype) else out


def _before(x: Any, first: float, axis: int, reverse: bool) -> Any:
    """x[k - 1], or x[k + 1] when reversed; `first` where there is none."""
    n = aval_of(x).shape[axis]
    if not n:
        return x
    edge = full_like_aval(aval_of(part(x, 0, 1, axis)).strong(), first)
    parts = [part(x, 1, n, axis), edge] if reverse else [edge, part(x, 0, n - 1, axis)]
    return concatenate(*parts, dimension=axis)


def _by_factors(t: Any, out: Any, a: Any, b: Any, *, axis: int, reverse: bool, late: bool) -> Any:
    change = mul(t, out) if late else out
    change = _before(change, 0, axis, reverse)
    if not late:
        change = mul(t, change)
    return linear_recurrence(a, change, axis=axis, reverse=reverse, late=late)


def _by_terms(t: Any, out: Any, a: Any, b: Any, **params: Any) -> Any:
    return linear_recurrence(a, t, **params)


def _recurrence_transpose(
    ct: Any, a: Any, b: Any, *, axis: int, reverse: bool, late: bool
) -> Any:
    # out[k] reaches out[k + 1] by the factor of k + 1: in the other order the one before.
    return None, linear_recurrence(a, ct, axis=axis, reverse=not reverse, late=not late)


def _recurrence_batch(
    axis_: Any, args: Any, dims: Any, *, axis: int, reverse: bool, late: bool
) -> Any:
    (a, b), (d, e) = args, dims
    at = e if e is not None else d
    a = broadcast_axis(a, axis_.size, at) if d is None else moveaxis(a, d, at)
    b = broadcast_axis(b, axis_.size, at) if e is None else b
    return linear_recurrence(a, b, axis=axis + (axis >= at), reverse=reverse, late=late), at


def _recurrence_prefix(a: Any, b: Any, *, axis: int, reverse: bool, late: bool) -> Any:
    """The same as a scan of pairs, in log2(n) levels."""
    kept = aval_of(a).dtype.kind == "b"
    if late:
        a = _before(a, 1, axis, reverse)

    def combine(p: Arrays, q: Arrays) -> Arrays:
        (a, b), (c, d) = p, q
        if kept:
            zero = zeros_like_aval(aval_of(b).strong())
            return bitwise_and(a, c), add_any(select_n(c, zero, b), d)
        return mul(a, c), add_any(mul(b, c), d)

    return prefix(combine, (a, b), axis, reverse)[1]


linear_recurrence: Op = Op(
    name="linear_recurrence",
    kind=WINDOW,
    type=_type_of_recurrence,
    impl=_recurrence_impl,
    jvp=each_out(_by_factors, _by_terms),
    transpose=_recurrence_transpose,
    batch=_recurrence_batch,
    shard=by_kind,
    hlo=Expand(_recurrence_prefix),
    kernel=lambda k, a, b, **params: k.recurrence(a, b, **params),
)
"""out[k] = a[k]·out[k - 1] + b[k] along an axis, from b[0] on; in the other order when `reverse`.

A factor is a number, or a bool: False begins anew, whatever was before. `late` takes a[k - 1]
instead, the factor beside what it multiplies. As one op it goes down the rows once; a scan of pairs
reads and writes them log2(n) times, with arithmetic that may overflow where none of out does.
"""


# cumprod: out[k] = x[k]·out[k - 1], so zeros need no division.


def _cumprod_jvp(primals: Arrays, tangents: Arrays, *, axis: int, reverse: bool) -> Any:
    (x,), (t,) = primals, tangents
    out = cumprod(x, axis=axis, reverse=reverse)
    change = mul(t, _before(out, 1, axis, reverse))
    return out, linear_recurrence(x, change, axis=axis, reverse=reverse, late=False)


cumprod = _cumulative("cumprod", NUMERIC, np.multiply, _cumprod_jvp, _hlo("multiply"), "mul")


# cummax and cummin: those that attain the extremum so far share its derivative equally.


def _extremum_jvp(op: Op) -> Any:
    def jvp(primals: Arrays, tangents: Arrays, *, axis: int, reverse: bool) -> Any:
        (x,), (t,) = primals, tangents
        out = op(x, axis=axis, reverse=reverse)
        aval = aval_of(x).strong()
        last, mine = eq(out, _before(out, 0, axis, reverse)), eq(out, x)
        given = {"axis": axis, "reverse": reverse, "late": False}
        total = linear_recurrence(last, select_n(mine, zeros_like_aval(aval), t), **given)
        ones = convert_element_type(mine, new_dtype=aval.dtype, weak_type=False)
        count = linear_recurrence(last, ones, **given)
        return out, div(total, count)

    return jvp


cummax = _cumulative("cummax", NUMERIC, maximum, Word(_extremum_jvp), _hlo("maximum"), "max")
cummin = _cumulative("cummin", NUMERIC, minimum, Word(_extremum_jvp), _hlo("minimum"), "min")


# cumlogsumexp: log of the cumulative sum of exp, without overflow.


def _cumlogsumexp_jvp(primals: Arrays, tangents: Arrays, *, axis: int, reverse: bool) -> Any:
    (x,), (t,) = primals, tangents
    out = cumlogsumexp(x, axis=axis, reverse=reverse)
    # exp(p - out) are the weights; where out is -inf nothing has weight, where it is inf the
    # infinite have all of it, and where it is NaN there is none.
    dtype = aval_of(out).dtype
    zero = zeros_like_aval(aval_of(out).strong())
    anchor = select_n(eq(out, literal(-np.inf, dtype)), out, zero)

    def weight(p: Any) -> Any:
        return exp(select_n(eq(p, anchor), sub(p, anchor), zero))

    # The first of all is itself, whatever it is.
    shape = aval_of(x).shape
    places = iota(dtype=np.dtype(np.int32), shape=shape, dimension=axis)
    is_first = eq(places, literal(shape[axis] - 1 if reverse else 0, np.dtype(np.int32)))
    change = select_n(is_first, mul(t, weight(x)), t)
    last = weight(_before(out, 0, axis, reverse))
    return out, linear_recurrence(last, change, axis=axis, reverse=reverse, late=False)


# XLA's blocks of 16 apply the function 16 times per element, too dear for exponentials: a million
# elements took 0.8 s in windows, 0.03 s in a scan. Shorter ones would wait for the compiler.
_LONG = 1 << 14


def _hlo_logsumexp(b: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    if 0 in x.shape:
        return x

    def body(b: Any, p: Any, q: Any) -> Any:
        gap = b.subtract(p, q)
        tail = b.log_plus_one(b.exponential(b.negate(b.abs(gap))))
        out = b.add(b.maximum(p, q), tail)
        return b.select(b.compare(gap, gap, "NE"), b.add(p, q), out)

    if x.shape[axis] <= _LONG:
        init = b.constant(identity("maximum", x.dtype), x.dtype)
        return b.reduce_window_with([x], [init], body, **_window(x, axis, reverse))[0]
    x = b.reverse(x, (axis,)) if reverse else x
    out = _hlo_prefix(b, x, axis, body)
    return b.reverse(out, (axis,)) if reverse else out


def _hlo_prefix(b: Any, x: Any, axis: int, combine: Any) -> Any:
    """`prefix` in StableHLO."""
    n = x.shape[axis]
    if n < 2:
        return x

    def cut(x: Any, start: int, stop: int, step: int = 1) -> Any:
        lower, upper, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
        lower[axis], upper[axis], steps[axis] = start, stop, step
        return b.slice(x, lower, upper, steps)

    odd = _hlo_prefix(b, combine(b, cut(x, 0, n - 1, 2), cut(x, 1, n, 2)), axis, combine)
    even = cut(x, 0, 1)
    if n > 2:
        rest = combine(b, cut(odd, 0, (n - 1) // 2), cut(x, 2, n, 2))
        even = b.concatenate([even, rest], axis)
    half, shape = n // 2, odd.shape
    placed = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    both = [b.reshape(cut(even, 0, half), placed), b.reshape(odd, placed)]
    out = b.reshape(
        b.concatenate(both, axis + 1), (*shape[:axis], 2 * half, *shape[axis + 1 :])
    )
    return b.concatenate([out, cut(even, half, half + 1)], axis) if n % 2 else out


cumlogsumexp = _cumulative(
    "cumlogsumexp", FLOATING, np.logaddexp, _cumlogsumexp_jvp, _hlo_logsumexp, "logaddexp"
)
