"""Quasi-Newton minimization with the whole estimate of the inverse Hessian, or a short history.

Nocedal and Wright, Numerical Optimization (2nd ed.): algorithm 6.1 (BFGS), 7.4 and 7.5 (L-BFGS).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import primal.numpy as jnp
from primal.api.autodiff import value_and_grad
from primal.api.control import fori_loop, while_loop
from primal.scipy.optimize.line_search import search
from primal.scipy.optimize.results import OptimizeResults

# In float32 a gradient may be rounding alone where it is not yet small: so many steps that neither
# lower the value nor any gradient before are taken to tell (Rosenbrock's function of 4 numbers ran
# 800 iterations with 7,698 evaluations at its minimum).
PATIENCE = 5


class State(NamedTuple):
    """`before` is the value one iteration ago, `memory` what the method knows of the curvature.

    `least` is the size of the smallest gradient, `idle` counts steps since anything fell.
    """

    done: Any
    status: Any
    turn: Any
    evaluations: Any
    x: Any
    value: Any
    grad: Any
    before: Any
    least: Any
    idle: Any
    memory: Any


class History(NamedTuple):
    """The last steps, the changes of the gradient over them, and 1 over their inner products.

    The latest come first; rows not yet filled have an inverse product of 0, which leaves them out.
    """

    steps: Any
    changes: Any
    inverses: Any
    scale: Any


class Estimate(NamedTuple):
    """An estimate of the inverse Hessian, `learnt` once a step has shown some curvature."""

    inverse: Any
    learnt: Any


def inner(a: Any, b: Any) -> Any:
    """⟨a, b⟩ as real vectors: complex numbers are pairs of real ones."""
    return jnp.real(jnp.vdot(a, b))


def descend(
    fun: Callable[[Any], Any],
    x0: Any,
    memory: Any,
    direction: Callable[[Any, Any], Any],
    learn: Callable[[Any, Any, Any, Any], Any],
    max_turns: int,
    norm: Any,
    gtol: float,
    ftol: float | None,
    max_evaluations: tuple[float, float],
    max_search: int,
    lost: tuple[int, int],
) -> tuple[State, Any]:
    """Search lines along `direction(memory, grad)` until the gradient is small; and whether it is.

    `lost` is the status of a failed line search with and without a known end of the descent.
    """

    def evaluate(x: Any) -> tuple[Any, Any]:
        value, grad = value_and_grad(fun)(x)
        # The derivative by a complex number is the conjugate of the direction of steepest ascent.
        return value, jnp.conj(grad)

    def small(grad: Any) -> Any:
        return jnp.linalg.norm(grad, ord=norm) < gtol

    value, grad = evaluate(x0)
    # As if the last step had had length 1: the first trial then has about that length.
    before = value + jnp.sqrt(inner(grad, grad)).astype(value.dtype) / 2
    size = jnp.sqrt(inner(grad, grad))
    start = State(small(grad), 0, 0, 1, x0, value, grad, before, size, 0, memory)

    def unfinished(s: State) -> Any:
        return ~s.done & (s.turn < max_turns) & (s.status == 0)

    def turn(s: State) -> State:
        p = direction(s.memory, s.grad)
        slope = inner(s.grad, p)
        # Nocedal and Wright (3.60): the step for the decrease of last time, at most Newton's.
        first = 2.02 * (s.value - s.before) / slope
        first = jnp.where((first > 0) & (first < 1), first, 1).astype(slope.dtype)
        found = search(evaluate, inner, s.x, p, s.value, s.grad, first, max_search)
        step = (found.step * p).astype(s.x.dtype)
        change = found.grad - s.grad
        product = inner(step, change)
        # A step that is too short still has shown some curvature, unless there is none.
        failed = ~(found.step > 0) | ~found.bracketed & ~(product > 0)
        done = small(found.grad)
        if ftol is not None:
            scale = jnp.maximum(jnp.maximum(abs(s.value), abs(found.value)), 1)
            done = done | ~failed & (s.value - found.value <= ftol * scale)
        evaluations = s.evaluations + found.evaluations
        status = 0
        for code, (limit, spent) in enumerate(
            zip(max_evaluations, (evaluations, evaluations), strict=True), 2
        ):
            if limit != jnp.inf:
                status = jnp.where((spent > limit) & (status == 0), code, status)
        size = jnp.sqrt(inner(found.grad, found.grad))
        idle = jnp.where((found.value < s.value) | (size < s.least), 0, s.idle + 1)
        status = jnp.where(idle >= PATIENCE, lost[0], status)
        status = jnp.where(failed, jnp.where(found.bracketed, *lost), status)
        learnt = learn(s.memory, step, change, product)
        return State(
            done & ~(failed & ~(found.step > 0)),
            jnp.where(done & (found.step > 0), 0, status),
            s.turn + 1,
            evaluations,
            s.x + step,
            found.value,
            found.grad,
            s.value,
            jnp.minimum(size, s.least),
            idle,
            learnt,
        )

    last = while_loop(unfinished, turn, start)
    status = jnp.where(last.done, 0, jnp.where(last.status == 0, 1, last.status))
    return last._replace(status=status), last.done


def results(last: State, success: Any, hess_inv: Any) -> OptimizeResults:
    """The end of a descent as users see it."""
    return OptimizeResults(
        x=last.x,
        success=success,
        status=last.status,
        fun=last.value,
        jac=jnp.conj(last.grad),
        hess_inv=hess_inv,
        nfev=last.evaluations,
        njev=last.evaluations,
        nit=last.turn,
    )


def minimize_bfgs(
    fun: Callable[[Any], Any],
    x0: Any,
    maxiter: int | None = None,
    norm: Any = jnp.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:
    """A minimum of `fun` near `x0`, with the estimate of the whole inverse Hessian.

    >>> minimize_bfgs(lambda x: jnp.sum((x - 1)**2), jnp.zeros(2)).x
    Array([1., 1.], dtype=float32)
    """

    def learn(memory: Estimate, step: Any, change: Any, product: Any) -> Estimate:
        known = product > 0
        part = 1 / jnp.where(known, product, 1)
        # In float32 no matrix holds 1 in one direction and 10^-8 in another, which is what starting
        # from the identity asks for (10^4 x)^2: it is scaled by the first curvature (Nocedal and
        # Wright, 6.20) as far as precision needs it. Always to scale is worse where it is uneven.
        square = jnp.dot(change, change)
        margin = jnp.sqrt(jnp.finfo(step.dtype).eps)
        scale = product / (jnp.where(square > 0, square, 1) * margin)
        old = jnp.where(memory.learnt, 1, jnp.where(scale < 1, scale, 1)) * memory.inverse
        # (1 - s y'/c) H (1 - y s'/c) + s s'/c, a side at a time: multiplied out, its terms cancel.
        half = old - part * jnp.outer(step, change @ old)
        new = half - part * jnp.outer(half @ change, step) + part * jnp.outer(step, step)
        known &= jnp.all(jnp.isfinite(new))
        return Estimate(jnp.where(known, new, memory.inverse), memory.learnt | known)

    last, success = descend(
        fun,
        x0,
        Estimate(jnp.eye(x0.shape[0], dtype=x0.dtype), jnp.asarray(False)),
        lambda memory, grad: -(memory.inverse @ grad),
        learn,
        x0.shape[0] * 200 if maxiter is None else maxiter,
        norm,
        gtol,
        None,
        (jnp.inf, jnp.inf),
        line_search_maxiter,
        (3, 5),
    )
    return results(last, success, last.memory.inverse)


def minimize_lbfgs(
    fun: Callable[[Any], Any],
    x0: Any,
    maxiter: float | None = None,
    norm: Any = jnp.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-5,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> OptimizeResults:
    """A minimum of `fun` near `x0`, remembering the last `maxcor` steps; x may be complex.

    >>> minimize_lbfgs(lambda x: jnp.sum((x - 1)**2), jnp.zeros(2)).x
    Array([1., 1.], dtype=float32)
    """
    n = x0.shape[0]
    real = jnp.real(x0).dtype
    memory = History(
        jnp.zeros((maxcor, n), x0.dtype),
        jnp.zeros((maxcor, n), x0.dtype),
        jnp.zeros(maxcor, real),
        jnp.ones((), real),
    )

    def direction(h: History, grad: Any) -> Any:
        def back(i: Any, state: Any) -> Any:
            q, parts = state
            part = h.inverses[i] * inner(h.steps[i], q)
            return q - part * h.changes[i], parts.at[i].set(part)

        def forth(j: Any, q: Any) -> Any:
            i = maxcor - 1 - j
            return q + (parts[i] - h.inverses[i] * inner(h.changes[i], q)) * h.steps[i]

        q, parts = fori_loop(0, maxcor, back, (grad, jnp.zeros(maxcor, real)))
        return -fori_loop(0, maxcor, forth, h.scale * q)

    def learn(h: History, step: Any, change: Any, product: Any) -> History:
        known = product > 0
        inverse = jnp.where(known, 1 / jnp.where(known, product, 1), 0)
        square = inner(change, change)
        return History(
            jnp.roll(h.steps, 1, 0).at[0].set(step),
            jnp.roll(h.changes, 1, 0).at[0].set(change),
            jnp.roll(h.inverses, 1, 0).at[0].set(inverse),
            jnp.where(known & (square > 0), product / jnp.where(square > 0, square, 1), h.scale),
        )

    infinite = maxiter is None or maxiter == jnp.inf
    last, success = descend(
        fun,
        x0,
        memory,
        direction,
        learn,
        jnp.iinfo(jnp.int32).max if infinite else int(maxiter or 0),
        norm,
        gtol,
        ftol,
        (jnp.inf if maxfun is None else maxfun, jnp.inf if maxgrad is None else maxgrad),
        maxls,
        (5, 5),
    )
    return results(last, success, None)
