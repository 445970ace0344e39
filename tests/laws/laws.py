"""The laws that every op obeys, each a function of a row of the table.

A law raises AssertionError where it is broken. None of them knows an op by its name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import enable_x64
from primal.ir.check import check_closed
from primal.ir.op import Never
from primal.ir.trace import ZERO, aval_of
from primal.transforms.batch import Axis, batch_flat, batch_jaxpr, materialize
from primal.transforms.jvp import instantiate, jvp_jaxpr, push_forward
from primal.transforms.linearize import linearize_flat, linearize_jaxpr
from primal.transforms.stage import stage
from primal.transforms.transpose import transpose_jaxpr
from tests.cases.case import C64, C128, F32, F64, Case, X
from tests.laws.compare import (
    Flat,
    arrays,
    close,
    eager,
    engines,
    host,
    near_values,
    run_together,
    staged,
    width,
)

# ---- values


def law_of_types(case: Case) -> None:
    """The type rule says what the NumPy rule gives, for each dtype and shape of the row."""
    for dtype in case.dtypes:
        for xs in case.draws(dtype):
            with width([np.zeros(0, dtype), *xs]):
                f = case.function(dtype)
                closed = staged(f, xs)
                outs = eager(f, xs)
                for out, aval in zip(outs, closed.out_avals, strict=True):
                    got, want = (out.shape, out.dtype), (aval.shape, aval.dtype)
                    assert got == want, f"{case.id} of {dtype}: {got} for the type {want}"
                if case.around is None:
                    _type_of_impl(case, dtype, xs)


def _type_of_impl(case: Case, dtype: Any, xs: Sequence[Any]) -> None:
    """The NumPy rule itself, before an Array makes its result an ndarray."""
    op, params = case.record, case.parameters(dtype)
    given = [x.copy() for x in xs]
    with np.errstate(all="ignore"):
        raw = op.impl(*given, **params)
    want = op.infer(tuple([a.aval for a in arrays(xs)]), params)
    for r, aval in zip(raw if op.multiple else [raw], want if op.multiple else [want], strict=True):
        got = np.shape(r), np.asarray(r).dtype
        assert got == (aval.shape, aval.dtype), f"{case.id}: impl gives {got} for {aval!r}"
    for before, after in zip(xs, given, strict=True):
        np.testing.assert_array_equal(before, after, err_msg=f"{case.id}: impl wrote to an operand")


def law_of_all_dtypes(case: Case) -> None:
    """Of every dtype there is, an op refuses it in words or gives what its type rule says.

    Compiled here it gives the same; how close it comes is a matter of the row's own dtypes.
    """
    says = case.says or case.op.replace("-", "_")
    programs, wants = [], []
    with enable_x64(True):
        for dtype in dtypes.all_dtypes:
            try:
                f = case.function(dtype)
                xs = case.draws(dtype, also=False)[0]
                avals = [a.aval for a in arrays(xs)]
                closed = stage(f, avals, case.id)
            except (TypeError, ValueError) as e:
                assert re.search(rf"\[{re.escape(says)}\] expected", str(e)), (
                    f"{case.id} refuses {dtype} without words: {e!r}"
                )
                continue
            check_closed(closed)
            try:
                outs = eager(f, xs)
            except Exception as e:
                raise AssertionError(f"{case.id} accepts {dtype} and fails: {e!r}") from e
            for out, aval in zip(outs, closed.out_avals, strict=True):
                got, want = (out.shape, out.dtype), (aval.shape, aval.dtype)
                assert got == want, f"{case.id} of {dtype}: {got} for the type {want}"
            # Of the row's own dtypes these very operands are compiled by the law of engines.
            if case.around is None and not case.costly and dtype not in case.dtypes:
                rough = 1 if dtypes.itemsize_bits(dtype) <= 16 else 256
                programs.append((f"{case.id} of {dtype}", closed, xs))
                wants.append((outs, max(case.ulps, rough)))
        for (what, _, _), got, (want, ulps) in zip(
            programs, run_together(programs, "cpu"), wants, strict=True
        ):
            close(got, want, f"{what} on cpu", ulps, case.near)


def law_of_engines(case: Case, names: Sequence[str] | None = None) -> None:
    """Every engine gives what eager execution gives, for each dtype and shape of the row."""
    for wide in (False, True):
        found = [
            (dtype, xs)
            for dtype in case.dtypes
            for xs in case.draws(dtype, also=dtype == case.dtypes[0])
            if _is_wide(dtype, xs) == wide
        ]
        if not found:
            continue
        with enable_x64(wide):
            programs, wants = [], []
            for dtype, xs in found:
                f = case.function(dtype)
                programs.append((f"{case.id} of {dtype}", staged(f, xs), xs))
                wants.append(eager(f, xs))
            for engine in names or engines():
                for (what, _, _), got, want in zip(
                    programs, run_together(programs, engine), wants, strict=True
                ):
                    close(got, want, f"{what} on {engine}", case.ulps, case.near)


def _is_wide(dtype: Any, xs: Sequence[Any]) -> bool:
    return any(d in (np.dtype(w) for w in ("f8", "c16", "i8", "u8"))
               for d in [np.dtype(dtype), *[x.dtype for x in xs]])


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0]


def law_of_special_values(case: Case, names: Sequence[str] | None = None) -> None:
    """Engines agree on nan, infinities and zeros of both signs, in all combinations."""
    f = case.function(F32)
    given = case.draws(F32)[0]
    places = [i for i, x in enumerate(given) if dtypes.issubdtype(x.dtype, np.floating)]
    grid = np.array(list(itertools.product(SPECIAL, repeat=len(places))), np.float32).T
    if case.record.kind.elementwise:
        xs = [np.resize(x, grid.shape[1:]) for x in given]
        for row, i in zip(grid, places, strict=True):
            xs[i] = row
    else:
        xs = list(given)
        for i in places:
            xs[i] = np.resize(np.array(SPECIAL[1:4] + SPECIAL[:1] + SPECIAL[5:], np.float32),
                              given[i].shape)
    closed = staged(f, xs)
    want = eager(f, xs)
    for engine in names or engines():
        (got,) = run_together([(case.id, closed, xs)], engine)
        close(got, want, f"{case.id} of {xs} on {engine}", max(case.ulps, 4), case.near)


# ---- derivatives


def direction(rng: Any, x: Any, turn: complex = 1) -> Any:
    """A random tangent of x's dtype; `turn` is the complex direction it points in."""
    t = rng.standard_normal(np.shape(x))
    return np.asarray(t * turn if np.asarray(x).dtype.kind == "c" else t).astype(x.dtype)


def pairing(cts: Sequence[Any], ts: Sequence[Any]) -> float:
    """Re Σ ct·t: how cotangents and tangents meet in the C-linear convention."""
    return float(sum(np.sum(c * t).real for c, t in zip(cts, ts, strict=True)))


def pushed(f: Flat, n: int, active: Sequence[bool]) -> Flat:
    """(xs, tangents of the active ones) -> (results, tangents of the inexact ones)."""

    def jvp(*args: Any) -> list[Any]:
        rest = iter(args[n:])
        ts = [next(rest) if a else ZERO for a in active]
        outs, touts = push_forward(f, args[:n], ts)
        return [
            *outs,
            *[instantiate(t, aval_of(o)) for o, t in zip(outs, touts, strict=True) if inexact(o)],
        ]

    return jvp


def pulled(f: Flat, n: int, active: Sequence[bool]) -> Flat:
    """(xs, cotangents of the inexact results) -> cotangents of the active operands."""

    def vjp(*args: Any) -> list[Any]:
        outs, linear = linearize_flat(f, args[:n], active)
        rest = iter(args[n:])
        back = linear.transposed([next(rest) if inexact(o) else ZERO for o in outs])
        return [
            instantiate(c, aval_of(x))
            for c, x, a in zip(back, args[:n], active, strict=True)
            if a
        ]

    return vjp


def inexact(x: Any) -> bool:
    """Whether a value has a tangent."""
    return dtypes.issubdtype(x.dtype, np.inexact)


def differences(f: Flat, xs: Sequence[Any], ts: Sequence[Any], step: float) -> list[Any]:
    """Central differences of the inexact results along ts (None: not moved)."""

    def moved(by: float) -> list[Any]:
        return eager(f, [x if t is None else x + by * t for x, t in zip(xs, ts, strict=True)])

    # Fourth order: the error of the quotient is then rounding alone, about 1e-16 / step.
    one, two = (moved(step), moved(-step)), (moved(2 * step), moved(-2 * step))
    with np.errstate(invalid="ignore"):
        return [
            np.asarray((8 * (a - b) - (c - d)) / (12 * step)).astype(a.dtype)
            for a, b, c, d in zip(*one, *two, strict=True)
            if inexact(a)
        ]


def wide_draws(case: Case) -> list[tuple[Any, list[Any]]]:
    """The operands for derivatives: 64-bit ones, real and complex as the row takes them."""
    found = []
    for narrow, dtype in ((F32, F64), (C64, C128)):
        if narrow in case.dtypes or dtype in case.dtypes:
            found.extend((dtype, xs) for xs in case.draws(dtype))
    return found


def compiling(case: Case) -> list[str]:
    """The engines that run what transformations make of a row.

    Of an elementwise op that is elementwise ops, each of which has rows of its own: our kernels are
    made of them together, but XLA, which compiles 20 kernels a second, is not asked again.
    """
    if case.costly:
        return ["reference"]
    return [e for e in engines() if e != "xla" or not case.record.kind.elementwise]


def law_of_derivatives(case: Case, names: Sequence[str] | None = None) -> None:
    """jvp is the limit of differences, vjp its transpose, linearize its linear part.

    Also: each operand alone gives its part of the whole; all programs are legal; engines agree.
    """
    rng = np.random.default_rng(1)
    programs: list[Any] = []
    wants: list[Any] = []
    compiled: dict[Any, int] = {}
    with enable_x64(True):
        for dtype, xs in wide_draws(case):
            f = case.function(dtype)
            active = case.active(xs)
            if not any(active):
                continue
            what = f"{case.id} of {dtype} {[x.shape for x in xs]}"
            for turn in (1, 1j) if any(x.dtype.kind == "c" for x in xs) else (1,):
                _first_order(case, f, xs, active, turn, rng, what, programs, wants)
                if compiled.setdefault(dtype, len(programs)) < len(programs):
                    # Engines run one shape per dtype: others differ in nothing that is new there.
                    del programs[compiled[dtype] :], wants[compiled[dtype] :]
        for engine in names or compiling(case):
            for (what, _, _), got, want in zip(
                programs, run_together(programs, engine), wants, strict=True
            ):
                scale = max([1.0, *[float(np.max(np.abs(w))) for w in want if w.size]])
                for g, w in zip(got, want, strict=True):
                    assert (g.shape, g.dtype) == (w.shape, w.dtype), f"{what} on {engine}"
                    if inexact(w):
                        near_values(g, w, case.exact, scale, f"{what} on {engine}")


def _first_order(
    case: Case, f: Flat, xs: Any, active: Any, turn: Any, rng: Any, what: str,
    programs: Any, wants: Any,
) -> None:  # fmt: skip
    n = len(xs)
    ts = [direction(rng, x, turn) if a else None for x, a in zip(xs, active, strict=True)]
    given = [t for t in ts if t is not None]
    jvp = pushed(f, n, active)
    outs = eager(f, xs)
    both = eager(jvp, [*xs, *given])
    close(both[: len(outs)], outs, f"{what}: values of jvp", case.ulps, case.near)
    got = both[len(outs) :]
    want = differences(f, xs, ts, case.step)
    assert len(got) == len(want), f"{what}: {len(got)} tangents for {len(want)}"
    for g, w, o in zip(got, want, filter(inexact, outs), strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype), f"{what}: tangent {g.shape} {g.dtype}"
        # The identity of an extremum, infinity, has no differences; its derivative is taken as 0.
        w = np.where(np.isinf(o) | np.isnan(o), 0, w)
        scale = max(1.0, float(np.max(np.abs(w)))) if w.size else 1.0
        near_values(g, w, case.tol, scale, f"{what}: jvp against differences")
    programs.append((f"{what}: jvp", staged(jvp, [*xs, *given]), [*xs, *given]))
    wants.append(both)
    _parts(case, f, xs, ts, active, got, what)
    closed = staged(f, xs)
    check_closed(jvp_jaxpr(closed, tuple(active))[0])
    if not case.reverse:
        return
    _, linear = linearize_flat(f, arrays(xs), active)
    forward = linear.pushed(arrays([0 if t is None else t for t in ts]))
    forward = [
        host(instantiate(t, aval_of(o)))
        for o, t in zip(outs, forward, strict=True)
        if inexact(o)
    ]
    near = max([1.0, *[float(np.max(np.abs(g))) for g in got if g.size]])
    for a, b in zip(forward, got, strict=True):
        near_values(a, b, case.exact, near, f"{what}: linearize against jvp")
    # Cotangents of both phases: a transpose may be wrong in the imaginary part alone.
    cts = [direction(rng, o, turn) + direction(rng, o, 1j) * (o.dtype.kind == "c")
           for o in outs if inexact(o)]
    vjp = pulled(f, n, active)
    back = eager(vjp, [*xs, *cts])
    for c, x in zip(back, [x for x, a in zip(xs, active, strict=True) if a], strict=True):
        assert (c.shape, c.dtype) == (x.shape, x.dtype), (
            f"{what}: cotangent {c.shape} {c.dtype} of an operand {x.shape} {x.dtype}"
        )
    left, right = pairing(cts, got), pairing(back, given)
    bound = case.exact * near * max(1.0, sum(float(np.sum(np.abs(c))) for c in cts))
    assert abs(left - right) <= bound, f"{what}: <ct, jvp> is {left}, <vjp, t> is {right}"
    programs.append((f"{what}: vjp", staged(vjp, [*xs, *cts]), [*xs, *cts]))
    wants.append(back)
    _parts_back(case, f, xs, cts, active, back, what)
    split = linearize_jaxpr(closed, tuple(active))
    check_closed(split.known)
    check_closed(split.linear)
    moving = len(split.linear.in_avals) - sum(active)
    mask = (False,) * moving + (True,) * sum(active)
    if any(split.out_active):
        given_ct = (True,) * len(split.linear.out_avals)
        check_closed(transpose_jaxpr(split.linear, mask, given_ct))


def _parts(case: Case, f: Flat, xs: Any, ts: Any, active: Any, whole: Any, what: str) -> None:
    """Tangents of one operand at a time add up to the whole: zeros are as good as absent."""
    if sum(active) < 2:
        return
    totals = [np.zeros_like(w) for w in whole]
    for i, a in enumerate(active):
        if a:
            alone = [j == i for j in range(len(xs))]
            outs = eager(pushed(f, len(xs), alone), [*xs, ts[i]])[-len(whole) or len(xs) :]
            totals = [t + o for t, o in zip(totals, outs, strict=True)]
    near = max([1.0, *[float(np.max(np.abs(w))) for w in whole if w.size]])
    for t, w in zip(totals, whole, strict=True):
        near_values(t, w, case.exact, near, f"{what}: jvp of one operand at a time")


def _parts_back(
    case: Case, f: Flat, xs: Any, cts: Any, active: Any, whole: Any, what: str
) -> None:  # fmt: skip
    """The cotangent of an operand is the same when it alone is asked for."""
    if sum(active) < 2:
        return
    places = [i for i, a in enumerate(active) if a]
    near = max([1.0, *[float(np.max(np.abs(w))) for w in whole if w.size]])
    for i, want in zip(places, whole, strict=True):
        alone = [j == i for j in range(len(xs))]
        (got,) = eager(pulled(f, len(xs), alone), [*xs, *cts])
        near_values(got, want, case.exact, near, f"{what}: vjp of operand {i} alone")


def law_of_second_order(case: Case) -> None:
    """jvp of vjp is the limit of differences of the gradient; vjp of vjp and of jvp agree with it.

    With the second derivative D²f as a form: <ct, D²f(s, t)> in each order of the two modes.
    """
    rng = np.random.default_rng(4)
    with enable_x64(True):
        for dtype, xs in wide_draws(case):
            active = case.active(xs)
            if any(active):
                what = f"{case.id} of {dtype} {[x.shape for x in xs]}"
                _second_order(case, case.function(dtype), xs, active, rng, what)


def _second_order(case: Case, f: Flat, xs: Any, active: Any, rng: Any, what: str) -> None:
    n = len(xs)
    cts = [direction(rng, o) for o in eager(f, xs) if inexact(o)]
    gradient = pulled(f, n, active)
    ts = [direction(rng, x) if a else None for x, a in zip(xs, active, strict=True)]
    args = [*xs, *cts]
    still = [*active, *[False] * len(cts)]
    given = [t for t in ts if t is not None]
    jvp = pushed(gradient, len(args), still)
    got = eager(jvp, [*args, *given])
    got = got[len(got) // 2 :]
    want = differences(gradient, args, [*ts, *[None] * len(cts)], case.step)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype), f"{what}: second order"
        scale = max(1.0, float(np.max(np.abs(w)))) if w.size else 1.0
        near_values(g, w, 10 * case.tol, scale, f"{what}: second order")
    staged(jvp, [*args, *given])
    ss = [direction(rng, x) for x, a in zip(xs, active, strict=True) if a]
    form = pairing(ss, got)
    size = sum(float(np.sum(np.abs(g) * np.abs(s))) for g, s in zip(got, ss, strict=True))
    back = eager(pulled(gradient, len(args), still), [*args, *ss])
    tangents = len(cts)

    def along(*args: Any) -> list[Any]:
        return pushed(f, n, active)(*args)[-tangents:]

    args, still = [*xs, *given], [*active, *[False] * len(given)]
    forth = eager(pulled(along, len(args), still), [*args, *cts])
    for way, value in (("vjp", pairing(back, given)), ("jvp", pairing(forth, ss))):
        off = abs(value - form)
        assert off <= 100 * case.exact * max(1.0, size), (
            f"{what}: vjp of {way} gives {value}, jvp of vjp {form}"
        )


def law_of_no_derivative(case: Case) -> None:
    """Where a derivative is refused, asking for it raises the reason."""
    jvp = case.record.jvp
    assert isinstance(jvp, Never), f"{case.id} has a derivative, but its row has none"
    xs = case.draws(case.dtypes[0])[0]
    active = case.active(xs)
    if not any(active):
        return
    ts = [x for x, a in zip(xs, active, strict=True) if a]
    try:
        eager(pushed(case.function(case.dtypes[0]), len(xs), active), [*xs, *ts])
    except jvp.error as e:
        assert str(e) == jvp.reason
    else:
        raise AssertionError(f"{case.id}: expected {jvp.error}, got a derivative")


# ---- batching


def law_of_batching(case: Case, size: int = 3, names: Sequence[str] | None = None) -> None:
    """Over each axis of each operand, alone and together, vmap is a loop."""
    rng = np.random.default_rng(2)
    dtype = case.dtypes[0]
    programs: list[Any] = []
    wants: list[Any] = []
    with enable_x64(_is_wide(dtype, case.draws(dtype)[0])):
        f = case.function(dtype)
        for number, xs in enumerate(case.draws(dtype)):
            for dims in placements(xs):
                what = f"{case.id} {[x.shape for x in xs]} batched at {dims}"
                _batched(case, f, xs, dims, size, rng, what, programs, wants)
            if not number:
                # What differs from here on are shapes, and XLA compiles 20 kernels a second.
                compiled = spread_out(len(programs), COMPILED)
            _batched_jaxpr(case, f, xs, size)
        programs = [programs[i] for i in compiled]
        wants = [wants[i] for i in compiled]
        for engine in names or compiling(case):
            for (what, _, _), got, want in zip(
                programs, run_together(programs, engine), wants, strict=True
            ):
                close(got, want, f"{what} on {engine}", max(case.ulps, 2), case.near)


COMPILED = 6


def spread_out(count: int, most: int) -> list[int]:
    """At most so many of the numbers below `count`, the last one among them."""
    step = max(1, -(-count // most))
    return sorted({count - 1 - i for i in range(0, count, step)}) if count else []


def placements(xs: Sequence[Any]) -> list[tuple[int | None, ...]]:
    """Each axis of each operand alone; all in front, all at the end, both in turn; pairs."""
    n = len(xs)
    found: list[tuple[int | None, ...]] = []
    for i, x in enumerate(xs):
        for d in range(x.ndim + 1):
            found.append(tuple(d if j == i else None for j in range(n)))
    if n > 1:
        found.append((0,) * n)
        found.append(tuple(x.ndim for x in xs))
        found.append(tuple(x.ndim if i % 2 else 0 for i, x in enumerate(xs)))
    if n > 2:
        found.extend(tuple(None if j == i else 0 for j in range(n)) for i in range(n))
    return list(dict.fromkeys(found))


def _over(f: Flat, dims: Any, size: int) -> Flat:
    axis = Axis(None, size)

    def over(*args: Any) -> list[Any]:
        outs, out_dims = batch_flat(f, axis, args, dims)
        return [materialize(o, axis, d, 0) for o, d in zip(outs, out_dims, strict=True)]

    return over


def _batched(
    case: Case, f: Flat, xs: Any, dims: Any, size: int, rng: Any, what: str,
    programs: Any, wants: Any,
) -> None:  # fmt: skip
    given = [
        x if d is None else np.stack([varied(rng, x) for _ in range(size)], d)
        for x, d in zip(xs, dims, strict=True)
    ]
    rows = [
        eager(f, [x if d is None else np.take(x, i, d) for x, d in zip(given, dims, strict=True)])
        for i in range(size)
    ]
    want = [np.stack(column) for column in zip(*rows, strict=True)]
    over = _over(f, dims, size)
    close(eager(over, given), want, what, max(case.ulps, 2), case.near)
    programs.append((what, staged(over, given), given))
    wants.append(want)
    one = [x if d is None else np.take(x, [0], d) for x, d in zip(given, dims, strict=True)]
    close(eager(_over(f, dims, 1), one), [w[:1] for w in want], f"{what}, one example",
          max(case.ulps, 2), case.near)


def varied(rng: Any, x: Any) -> Any:
    """Another value like x: its elements in another order."""
    return rng.permutation(x.reshape(-1)).reshape(x.shape)


def _batched_jaxpr(case: Case, f: Flat, xs: Any, size: int) -> None:
    closed = staged(f, xs)
    for mask in {(True,) * len(xs), *[tuple(j == i for j in range(len(xs)))
                                      for i in range(len(xs))]}:
        if any(mask):
            check_closed(batch_jaxpr(closed, Axis(None, size), mask)[0])


# ---- errors


def law_of_errors(case: Case) -> None:
    """What the row calls wrong raises its error in words: `[op] expected …, got …`."""
    rng = np.random.default_rng(3)
    says = case.says or case.op.replace("-", "_")
    for wrong in case.errors:
        xs = [x.draw(rng, wrong.dtype) for x in wrong.operands]
        base = case.parameters(wrong.dtype)
        params = {**base, **(wrong.params or {})}

        def call(*args: Any, params: Any = params) -> Any:
            out = case.record(*args, **params)
            return list(out) if case.record.multiple else [out]

        f = case.around(call) if case.around is not None else call
        for how in ("eager", "staged"):
            with width(xs):
                try:
                    if how == "eager":
                        f(*arrays(xs))
                    else:
                        stage(f, [a.aval for a in arrays(xs)], "wrong")
                except wrong.error as e:
                    text = str(e)
                    assert re.search(rf"\[{re.escape(says)}\] expected .*got", text, re.S), text
                    assert re.search(wrong.match, text, re.S), f"{text!r} lacks {wrong.match!r}"
                else:
                    shapes = [(x.shape, x.dtype.name) for x in xs]
                    raise AssertionError(f"{case.id} of {shapes} {params}: no error ({how})")


__all__ = ["X"]
