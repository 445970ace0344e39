"""Laws about the programs an op stands in: linear ones, ones of some results, ones on an axis."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from primal.base.config import enable_x64
from primal.ir.check import check_closed
from primal.ir.effects import keeps_alive
from primal.ir.evaluate import eval_closed
from primal.ir.op import Never
from primal.ir.trace import Literal, aval_of
from primal.numpy.phrases import phrase
from primal.ops.types import NOT_LINEAR
from primal.transforms.batch import Axis, batch_flat, materialize
from primal.transforms.dce import dce_jaxpr
from primal.transforms.stage import stage
from primal.transforms.transpose import transpose_jaxpr
from tests.cases.case import Case
from tests.laws.compare import Flat, arrays, close, eager, host, near_values, staged, width
from tests.laws.laws import direction, inexact, pairing, pulled, pushed, wide_draws


def law_of_dropped_results(case: Case) -> None:
    """The program of one of the results gives that result, and the program of none is empty."""
    dtype = case.dtypes[0]
    xs = case.draws(dtype, also=False)[0]
    with width([np.zeros(0, dtype), *xs]):
        f = case.function(dtype)
        closed, outs = staged(f, xs), eager(f, xs)
        n = len(outs)
        for used in [(False,) * n, *[tuple(j == i for j in range(n)) for i in range(n)]]:
            smaller, reads = dce_jaxpr(closed, used)
            check_closed(smaller)
            idle = [e for e in smaller.eqns if not (e.effects and keeps_alive(e.effects))]
            assert any(used) or not idle, f"{case.id}: nobody reads {idle}"
            given = [x for x, r in zip(arrays(xs), reads, strict=True) if r]
            want = [o for o, u in zip(outs, used, strict=True) if u]
            what = f"{case.id}, results {used}"
            close(eval_closed(smaller, *given), want, what, max(case.ulps, 2), case.near)


def law_of_written(case: Case) -> None:
    """The expression that a program in Python's source has for the op does what `impl` does.

    Also where scalars that arrays come with, such as starts, are known.
    """
    if case.around is not None:
        return
    for dtype in case.dtypes:
        for xs in case.draws(dtype):
            with width([np.zeros(0, dtype), *xs]):
                (eqn,) = staged(case.function(dtype), xs).eqns
                _written_as_impl(case, dtype, eqn, xs)
                places = zip(eqn.invars, xs, strict=True)
                known = [v if v.aval.ndim else Literal(x[()], v.aval) for v, x in places]
                if 0 < sum(type(v) is Literal for v in known) < len(known):
                    _written_as_impl(case, dtype, eqn.replace(invars=known), xs)


def _written_as_impl(case: Case, dtype: Any, eqn: Any, xs: Flat) -> None:
    names = [f"x{i}" for i in range(len(xs))]
    known: dict[str, Any] = dict(zip(names, xs, strict=True))

    def bound(value: Any) -> str:
        known[f"c{len(known)}"] = value
        return f"c{len(known) - 1}"

    text = phrase(eqn, names, bound)
    if text is None:
        return
    with np.errstate(all="ignore"):
        got, want = eval(text, known), case.record.impl(*xs, **eqn.params)
    close(
        [np.asarray(got)],
        [np.asarray(want)],
        f"{case.id} of {dtype} as {text}",
        case.ulps,
        case.near,
    )


def law_of_apart(case: Case) -> None:
    """The smaller ops that an op is taken apart into give what it gives."""
    rule = getattr(case.record, "apart", None)
    if rule is None or case.around is not None:
        return
    for dtype in case.dtypes:
        for xs in case.draws(dtype):
            with width([np.zeros(0, dtype), *xs]):
                found = rule(*arrays(xs), **case.parameters(dtype))
                outs = list(found) if case.record.multiple else [found]
                want = eager(case.function(dtype), xs)
                close(outs, want, f"{case.id} of {dtype} apart", max(case.ulps, 8), case.near)


def law_of_transposes(case: Case) -> None:
    """<ct, f(t)> = <fᵀ(ct), t> where f is linear: in each operand alone, in all together."""
    if isinstance(case.record.transpose, Never):
        return
    rng = np.random.default_rng(6)
    with enable_x64(True):
        for dtype, xs in wide_draws(case):
            active = case.active(xs)
            each = [tuple(j == i for j in range(len(xs))) for i, a in enumerate(active) if a]
            for mask in dict.fromkeys([tuple(active), *each]):
                if any(mask):
                    _transposed(case, case.function(dtype), xs, mask, rng)


def _transposed(case: Case, f: Flat, xs: Any, mask: Any, rng: Any) -> None:
    def at(scale: float) -> list[Any]:
        moved = [np.asarray(x * scale, x.dtype) if m else x for x, m in zip(xs, mask, strict=True)]
        return [o for o in eager(f, moved) if inexact(o)]

    along = [x for x, m in zip(xs, mask, strict=True) if m]
    outs = at(1.0)
    homogeneous = all(
        np.allclose(2 * o, t, rtol=1e-12, atol=1e-12) for o, t in zip(outs, at(2.0), strict=True)
    )
    if not homogeneous or not all(np.isfinite(x).all() for x in along):
        return
    closed = staged(f, xs)
    given = tuple([inexact(a) for a in closed.out_avals])
    cts = [direction(rng, o) + direction(rng, o, 1j) * (o.dtype.kind == "c") for o in outs]
    still = [x for x, m in zip(xs, mask, strict=True) if not m]
    try:
        back = transpose_jaxpr(closed, mask, given)
        found = [host(c) for c in eval_closed(back, *arrays([*still, *cts]))]
    except (TypeError, NotImplementedError) as e:
        # Products of nothing, and extremes, grow with their operands without being linear.
        assert str(e).startswith("[transpose] expected a linear"), e
        return
    check_closed(back)
    for c, x in zip(found, along, strict=True):
        assert (c.shape, c.dtype) == (x.shape, x.dtype), f"{case.id}: cotangent {c.shape} {c.dtype}"
    left, right = pairing(cts, outs), pairing(found, along)
    size = max([1.0, *[float(np.max(np.abs(o))) for o in outs if o.size]])
    bound = case.exact * size * max(1.0, sum(float(np.sum(np.abs(c))) for c in cts))
    assert abs(left - right) <= bound, f"{case.id}: <ct, f(x)> is {left}, <fᵀ(ct), x> is {right}"


def law_of_named_axes(case: Case) -> None:
    """Types, derivatives and examples are inside of a named axis what they are outside of it.

    For rows whose operands and results have the named axis in front.
    """
    around = case.around
    assert around is not None
    dtype = case.dtypes[0]
    raw, f = dataclasses.replace(case, around=None).function(dtype), case.function(dtype)
    rng = np.random.default_rng(8)

    def typed(*args: Any) -> list[Any]:
        closed = stage(raw, [aval_of(a) for a in args], "inside")
        outs = eval_closed(closed, *args)
        for out, aval in zip(outs, closed.out_avals, strict=True):
            got, want = (aval_of(out).shape, aval_of(out).dtype), (aval.shape, aval.dtype)
            assert got == want, f"{case.id}: {got} for the type {want}"
        return outs

    for xs in case.draws(dtype):
        outs = eager(f, xs)
        close(eager(around(typed), xs), outs, f"{case.id}: staged inside", case.ulps, case.near)
        if isinstance(case.record.transpose, Never) and case.record.transpose is not NOT_LINEAR:
            continue  # it has no operands
        n, active = len(xs), case.active(xs)
        ts, cts = [direction(rng, x) for x in xs], [direction(rng, o) for o in outs]
        ways = [] if isinstance(case.record.jvp, Never) else [(pushed, ts), (pulled, cts)]
        for way, more in ways:
            inside = eager(around(way(raw, n, active)), [*xs, *more])
            outside = eager(way(f, n, active), [*xs, *more])
            for g, w in zip(inside, outside, strict=True):
                near_values(g, w, 1e-5, 8.0, f"{case.id}: {way.__name__} inside")
        # Examples along a last dimension.
        given = [np.stack([x, 2 * x, -x], x.ndim) for x in xs]
        inside = [np.swapaxes(o, 0, 1) for o in eager(around(_over_last(raw)), given)]
        close(
            inside, eager(_over_last(f), given), f"{case.id}: examples inside", case.ulps, case.near
        )


def _over_last(g: Flat) -> Flat:
    axis = Axis(None, 3)

    def mapped(*args: Any) -> list[Any]:
        outs, dims = batch_flat(g, axis, args, [aval_of(a).ndim - 1 for a in args])
        return [materialize(o, axis, d, 0) for o, d in zip(outs, dims, strict=True)]

    return mapped
