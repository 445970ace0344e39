"""Laws that every op obeys, stated once over flat functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primal.runtime.programs  # noqa: F401  (installs what runs programs)
from primal.base.config import enable_x64
from primal.control.call import call
from primal.ir.trace import ZERO, aval_of
from primal.runtime.eager import as_array
from primal.transforms.batch import Axis, batch_flat, materialize
from primal.transforms.jvp import instantiate, push_forward
from primal.transforms.linearize import linearize_flat
from primal.transforms.stage import stage

Flat = Callable[..., Any]


def flat(f: Flat) -> Callable[..., list[Any]]:
    """f with a list of results."""

    def listed(*xs: Any) -> list[Any]:
        out = f(*xs)
        return list(out) if isinstance(out, tuple | list) else [out]

    return listed


def host(x: Any) -> np.ndarray[Any, Any]:
    """The NumPy array of a result."""
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


def eager(f: Flat, *xs: Any) -> list[np.ndarray[Any, Any]]:
    """The results, op by op on NumPy."""
    return [host(o) for o in flat(f)(*[as_array(np.asarray(x)) for x in xs])]


def compiled(f: Flat, *xs: Any) -> list[np.ndarray[Any, Any]]:
    """The results of f as one program on the engine of the settings."""
    arrays = [as_array(np.asarray(x)) for x in xs]
    closed = stage(flat(f), [x.aval for x in arrays], "law")
    return [host(o) for o in call(*arrays, jaxpr=closed, name="law", inline=False)]


def same(got: Sequence[Any], want: Sequence[Any], tol: float, what: str = "") -> None:
    """Equal shapes and dtypes, and values to a relative and absolute tolerance."""
    assert len(got) == len(want), what
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape, f"{what}: {g.shape} for {w.shape}"
        assert g.dtype == w.dtype, f"{what}: {g.dtype} for {w.dtype}"
        if g.dtype.kind not in "biufc":
            g, w = g.astype(np.float32), w.astype(np.float32)
        np.testing.assert_allclose(g, w, rtol=tol, atol=tol, err_msg=what)


def agree(f: Flat, *xs: Any, tol: float = 1e-5) -> list[np.ndarray[Any, Any]]:
    """Both engines give the same, and what the type rules said; the results."""
    arrays = [as_array(np.asarray(x)) for x in xs]
    closed = stage(flat(f), [x.aval for x in arrays], "law")
    one = eager(f, *xs)
    for o, aval in zip(one, closed.out_avals, strict=True):
        assert (o.shape, o.dtype) == (aval.shape, aval.dtype), f"{o.shape} {o.dtype} for {aval}"
    two = [host(o) for o in call(*arrays, jaxpr=closed, name="law", inline=False)]
    same(two, one, tol, "compiled against eager")
    return one


def direction(rng: Any, x: Any) -> np.ndarray[Any, Any]:
    """A random tangent of x's dtype."""
    t = rng.standard_normal(np.shape(x))
    if np.asarray(x).dtype.kind == "c":
        t = t + 1j * rng.standard_normal(np.shape(x))
    return np.asarray(t).astype(np.asarray(x).dtype)


def pairing(cts: Sequence[Any], ts: Sequence[Any]) -> float:
    """Re Σ ct·t, the pairing of cotangents and tangents in the C-linear convention."""
    return float(sum(np.sum(c * t).real for c, t in zip(cts, ts, strict=True)))


def tangents(f: Flat, xs: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
    """∂f(x)·t, zeros made arrays."""
    arrays = [as_array(x) for x in xs]
    outs, touts = push_forward(flat(f), arrays, [as_array(t) for t in ts])
    return [host(instantiate(t, aval_of(o))) for o, t in zip(outs, touts, strict=True)]


def check_derivatives(
    f: Flat,
    *xs: Any,
    tol: float = 1e-6,
    step: float = 1e-5,
    order: int = 2,
    seed: int = 0,
    reverse: bool = True,
    engines: bool = True,
) -> None:
    """jvp against finite differences in float64, vjp against jvp, in orders 1 and 2.

    Order 1 on both engines, unless `engines` is False.

    All operands and results must be floats or complex numbers.
    """
    rng = np.random.default_rng(seed)
    wide = {"f": np.float64, "c": np.complex128}
    with enable_x64(True):
        xs = tuple([np.asarray(x).astype(wide[np.asarray(x).dtype.kind]) for x in xs])
        _check_once(f, xs, tol, step, rng, reverse, engines)
        if order > 1:
            ts = [direction(rng, x) for x in xs]

            def derivative(*ys: Any) -> list[Any]:
                outs, touts = push_forward(flat(f), ys, [as_array(t) for t in ts])
                return [instantiate(t, aval_of(o)) for o, t in zip(outs, touts, strict=True)]

            # Compiling what is built of the same ops once more would double the time of the suite.
            _check_once(derivative, xs, 10 * tol, step, rng, reverse, False)


def _check_once(
    f: Flat, xs: Sequence[Any], tol: float, step: float, rng: Any, reverse: bool, engines: bool
) -> None:
    ts = [direction(rng, x) for x in xs]
    got = tangents(f, xs, ts)
    above = eager(f, *[x + step * t for x, t in zip(xs, ts, strict=True)])
    below = eager(f, *[x - step * t for x, t in zip(xs, ts, strict=True)])
    want = [(a - b) / (2 * step) for a, b in zip(above, below, strict=True)]
    scale = max([1.0, *[float(np.max(np.abs(w))) for w in want if w.size]])
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=0, atol=tol * scale, err_msg="jvp")

    def pushed(*args: Any) -> list[Any]:
        n = len(xs)
        outs, touts = push_forward(flat(f), args[:n], args[n:])
        return [instantiate(t, aval_of(o)) for o, t in zip(outs, touts, strict=True)]

    if engines:
        same(compiled(pushed, *xs, *ts), got, 1e-8 * scale, "compiled jvp")
    if not reverse:
        return
    arrays = [as_array(x) for x in xs]
    outs, lin = linearize_flat(flat(f), arrays, [True] * len(xs))
    cts = [direction(rng, host(o)) for o in outs]
    grads = [
        host(instantiate(g, aval_of(x)))
        for g, x in zip(lin.transposed([as_array(c) for c in cts]), arrays, strict=True)
    ]
    for g, x in zip(grads, xs, strict=True):
        assert (g.shape, g.dtype) == (x.shape, x.dtype), "cotangent of another type"
    left, right = pairing(cts, got), pairing(grads, ts)
    assert abs(left - right) <= 1e-8 * scale * max(1, sum(c.size for c in cts)), (left, right)

    def backward(*args: Any) -> list[Any]:
        n = len(xs)
        _, lin = linearize_flat(flat(f), args[:n], [True] * n)
        return [
            instantiate(g, aval_of(x)) for g, x in zip(lin.transposed(args[n:]), args, strict=False)
        ]

    if not engines:
        return
    largest = max([1.0, *[float(np.max(np.abs(g))) for g in grads if g.size]])
    same(compiled(backward, *xs, *cts), grads, 1e-8 * largest, "compiled vjp")


def check_batching(f: Flat, *xs: Any, size: int = 3, tol: float = 1e-5, seed: int = 0) -> None:
    """Batched over each axis of each operand, alone and all together, equals a loop."""
    rng = np.random.default_rng(seed)
    xs = tuple([np.asarray(x) for x in xs])
    choices: list[list[int | None]] = []
    for i, x in enumerate(xs):
        for d in range(x.ndim + 1):
            choices.append([d if j == i else None for j in range(len(xs))])
    if len(xs) > 1:
        choices.append([0] * len(xs))
        choices.append([x.ndim for x in xs])
        choices.append([x.ndim if i % 2 else 0 for i, x in enumerate(xs)])
    for dims in choices:
        batched = [
            x if d is None else np.stack([_varied(rng, x) for _ in range(size)], d)
            for x, d in zip(xs, dims, strict=True)
        ]

        def over(*args: Any, dims: Any = dims) -> list[Any]:
            axis = Axis(None, size)
            outs, out_dims = batch_flat(flat(f), axis, args, dims)
            return [materialize(o, axis, d, 0) for o, d in zip(outs, out_dims, strict=True)]

        rows = [
            eager(f, *[x if d is None else np.take(x, i, d)
                       for x, d in zip(batched, dims, strict=True)])
            for i in range(size)
        ]
        want = [np.stack(column) for column in zip(*rows, strict=True)]
        same(eager(over, *batched), want, tol, f"batched at {dims}")
        # Programs are built of ops that were compared already: two of them will do.
        if dims in (choices[0], choices[-1]):
            same(compiled(over, *batched), want, tol, f"compiled, batched at {dims}")


def _varied(rng: Any, x: Any) -> Any:
    """Another value like x: its elements in another order."""
    return rng.permutation(x.reshape(-1)).reshape(x.shape)


__all__ = ["ZERO", "agree", "check_batching", "check_derivatives", "compiled", "eager", "same"]
