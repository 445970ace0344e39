"""Ordinary differential equations: an adaptive Runge-Kutta method with an adjoint derivative.

The method is that of Dormand and Prince, of order 5(4) with dense output of order 4: Hairer,
Nørsett and Wanner, Solving Ordinary Differential Equations I, sections II.4 (the first step and
step size control) and II.6 (the dense output). The derivative integrates the adjoint equation
backwards in time (Pontryagin; Chen et al., Neural Ordinary Differential Equations, 2018).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api.autodiff import vjp
from primal.api.control.closures import closure_convert
from primal.api.control.custom import custom_vjp
from primal.api.control.loops import scan, while_loop
from primal.api.operands import operand
from primal.api.vectorize import vmap
from primal.base import dtypes
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, tree_map, unflatten
from primal.flatten_util import ravel_pytree

Tree = Any

# Stage s + 1 is at time NODES[s], from the slopes before it with the weights of row s.
NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (
    71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40,
)  # fmt: skip
DENSE = (
    -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
)  # fmt: skip
ORDER = 5
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0


@api_boundary
def odeint(
    func: Callable[..., Tree],
    y0: Tree,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Tree:
    """The solution y(t[i]) of dy/dt = func(y, t, *args) with y(t[0]) = y0, at increasing times.

    Steps are chosen so that the estimated error of each stays below atol + rtol·max|y|, in the
    root mean square over all components, and below `hmax`. y0 may be a tree of floating or complex
    arrays, `func` returns such a tree; results have an axis of len(t) in front. After `mxstep`
    steps between two times the solution counts as not found: nan.

    Derivatives in reverse mode, by y0, t, args and what `func` closes over, come from the adjoint
    equation da/dt = -aᵀ ∂func/∂y, integrated backwards with the same tolerances: memory does not
    grow with the number of steps. For forward mode TypeError is raised.

    TypeError for args that are no arrays, or for a `func` whose result is not like y0. ValueError
    unless t is a vector with elements.

    >>> t = jnp.linspace(0.0, 1.0, 3)
    >>> jnp.round(odeint(lambda y, t, rate: -rate * y, jnp.float32(1.0), t, 2.0), 4)
    Array([1.    , 0.3679, 0.1353], dtype=float32)
    """
    for x in flatten(args)[0]:
        try:
            operand(x)
        except TypeError:
            raise TypeError(
                f"[odeint] expected args of arrays and numbers, got {x!r} of type {type(x)}: "
                "close over other values with a lambda."
            ) from None
    times = jnp.asarray(t)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"[odeint] expected t of one dimension, got shape {times.shape}.")
    y, unravel = ravel_pytree(y0)
    if not dtypes.issubdtype(y.dtype, np.inexact):
        raise TypeError(f"[odeint] expected a floating y0, got dtype {y.dtype.name}.")
    times = times.astype(dtypes.to_inexact_dtype(times.dtype))

    def slope(y: Any, t: Any, *args: Any) -> Any:
        out, _ = ravel_pytree(func(unravel(y), t, *args))
        if out.shape != y.shape:
            raise TypeError(
                f"[odeint] expected func to return a tree like y0, of {y.size} components, got "
                f"{out.size}."
            )
        return out.astype(y.dtype)

    converted, consts = closure_convert(slope, y, times[0], *args)
    values, spec = flatten((args, tuple(consts)))

    def flat(y: Any, t: Any, *values: Any) -> Any:
        given, closed = unflatten(spec, values)
        return converted(y, t, *given, *closed)

    return _rows(unravel, _solve(flat, (rtol, atol, mxstep, hmax), y, times, values))


def _rows(unravel: Callable[[Any], Tree], rows: Any) -> Tree:
    """The tree that each row stands for, stacked."""
    return vmap(unravel)(rows)


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solve(slope: Callable[..., Any], limits: Any, y0: Any, ts: Any, values: Any) -> Any:
    rtol, atol, mxstep, hmax = limits

    def at(y: Any, t: Any) -> Any:
        return slope(y, t, *values)

    def norm(x: Any, scale: Any) -> Any:
        return jnp.sqrt(jnp.mean(jnp.abs(x / scale) ** 2))

    def first_step(y: Any, k: Any, t: Any) -> Any:
        scale = atol + rtol * jnp.abs(y)
        d0, d1 = norm(y, scale), norm(k, scale)
        small = jnp.logical_or(d0 < 1e-5, d1 < 1e-5)
        h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(small, 1.0, d1))
        d2 = norm(at(y + h0.astype(y.dtype) * k, t + h0.astype(ts.dtype)) - k, scale) / h0
        steepest = jnp.maximum(d1, d2)
        flat = steepest <= 1e-15
        h1 = jnp.where(
            flat,
            jnp.maximum(1e-6, h0 * 1e-3),
            (0.01 / jnp.where(flat, 1.0, steepest)) ** (1 / ORDER),
        )
        return jnp.minimum(jnp.minimum(100 * h0, h1), hmax).astype(ts.dtype)

    def step(state: Any) -> Any:
        count, y, k, t, h, last = state
        size = h.astype(y.dtype)
        slopes = [k]
        inner = y
        for node, weights in zip(NODES, STAGES, strict=True):
            inner = y + size * _sum(weights, slopes)
            slopes.append(at(inner, t + node * h))
        scale = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(inner))
        ratio = norm(size * _sum(ERROR, slopes), scale)
        good = ratio <= 1
        exact = ratio == 0
        factor = SAFETY * jnp.where(exact, 1.0, ratio) ** (-1 / ORDER)
        factor = jnp.clip(factor, SHRINK, jnp.where(good, GROW, 1.0))
        h_next = jnp.minimum(h * jnp.where(exact, GROW, factor).astype(h.dtype), hmax)
        dense = (t, h, y, *_dense(y, inner, size, slopes))
        # A step that does not move the clock would never end.
        stuck = jnp.logical_and(jnp.logical_not(good), t + h == t)
        h_next = jnp.where(stuck, jnp.nan, h_next)
        kept = (inner, slopes[-1], t + h, h_next, dense)
        other = (y, k, t, h_next, last)
        chosen = [
            jnp.where(good, a, b) for a, b in zip(flatten(kept)[0], flatten(other)[0], strict=True)
        ]
        y, k, t, h = chosen[:4]
        return count + 1, y, k, t, h, tuple(chosen[4:])

    def reach(state: Any, target: Any) -> Any:
        def going(state: Any) -> Any:
            count, _, _, t, h, _ = state
            return (t < target) & (h > 0) & (count < mxstep)

        state = while_loop(going, step, (jnp.asarray(0), *state))[1:]
        *_, t, h, (begin, length, y, *terms) = state
        theta = ((target - begin) / jnp.where(length == 0, 1, length)).astype(y.dtype)
        found = _between(theta, y, *terms)
        return state, jnp.where(t >= target, found, jnp.nan)

    k = at(y0, ts[0])
    still = (ts[0], jnp.zeros_like(ts[0]), y0, *[jnp.zeros_like(y0)] * 4)
    begin = (y0, k, ts[0], first_step(y0, k, ts[0]), still)
    _, rows = scan(reach, begin, ts[1:])
    return jnp.concatenate([y0[None], rows])


def _sum(weights: Any, slopes: Any) -> Any:
    terms = [w * k for w, k in zip(weights, slopes, strict=True) if w]
    return functools.reduce(jnp.add, terms)


def _dense(y: Any, end: Any, h: Any, slopes: Any) -> tuple[Any, Any, Any, Any]:
    """The coefficients of the solution within a step; `_between` evaluates them."""
    change = end - y
    bend = h * slopes[0] - change
    return change, bend, change - h * slopes[-1] - bend, h * _sum(DENSE, slopes)


def _between(theta: Any, y: Any, change: Any, bend: Any, twist: Any, rest: Any) -> Any:
    other = 1 - theta
    return y + theta * (change + other * (bend + theta * (twist + other * rest)))


def _solve_fwd(slope: Any, limits: Any, y0: Any, ts: Any, values: Any) -> Any:
    ys = _solve(slope, limits, y0, ts, values)
    return ys, (ys, ts, values)


def _solve_bwd(slope: Any, limits: Any, kept: Any, cts: Any) -> Any:
    ys, ts, values = kept
    rtol, atol, mxstep, hmax = limits
    places = [i for i, x in enumerate(values) if dtypes.issubdtype(x.dtype, np.inexact)]

    def with_floats(floats: Any) -> list[Any]:
        return [floats[places.index(i)] if i in places else x for i, x in enumerate(values)]

    def adjoint(state: Any, s: Any, *floats: Any) -> Any:
        """d/ds of y and of the derivatives by y, by the earlier time and by floats, for s = -t."""
        y, y_bar, _, _ = state
        dy, pull = vjp(lambda y, t, *xs: slope(y, t, *with_floats(xs)), y, -s, *floats)
        y_ct, t_ct, *float_cts = pull(y_bar)
        return -dy, y_ct, t_ct, tuple(float_cts)

    def piece(bars: Any, at: Any) -> Any:
        y_bar, t_bar, float_bars = bars
        y, before, t, ct = at
        by_end = jnp.sum(slope(y, t, *values) * ct).real.astype(ts.dtype)
        state = (y, y_bar + ct, t_bar - by_end, float_bars)
        span = jnp.stack([-t, -before])
        floats = [values[i] for i in places]
        found = odeint(
            adjoint, state, span, *floats, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax
        )
        _, *bars = tree_map(lambda x: x[1], found)
        return tuple(bars), by_end

    start = (
        jnp.zeros_like(ys[0]),
        jnp.zeros_like(ts[0]),
        tuple([jnp.zeros_like(values[i]) for i in places]),
    )
    (y_bar, t_bar, float_bars), by_ends = scan(
        piece, start, (ys[1:], ts[:-1], ts[1:], cts[1:]), reverse=True
    )
    by_values = [float_bars[places.index(i)] if i in places else None for i in range(len(values))]
    return y_bar + cts[0], jnp.concatenate([t_bar[None], by_ends]), by_values


_solve.defvjp(_solve_fwd, _solve_bwd)
