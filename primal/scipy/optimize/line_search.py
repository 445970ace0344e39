"""A step along a line that satisfies the strong Wolfe conditions.

Nocedal and Wright, Numerical Optimization (2nd ed.), algorithms 3.5 and 3.6, as one loop: while no
step too long is known, the far end of the bracket is at infinity, and the rules by which a trial
replaces an end are the same in both. So every turn evaluates the function once, which a batched
search profits from. A value that has not risen by more than rounding counts as lower if the slope
says so (Hager and Zhang 2005, the approximate Wolfe conditions); without it float32 cannot
approach a minimum more closely than the root of its precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import primal.numpy as jnp
from primal.api.control import while_loop

DECREASE, CURVATURE = 1e-4, 0.9
# Cubic interpolation may put a trial at an end of the bracket, which would then hardly shrink.
MARGIN = 0.05


class End(NamedTuple):
    """One end of the bracket: the step with the value, slope, and gradient there."""

    step: Any
    value: Any
    slope: Any
    grad: Any


class State(NamedTuple):
    """`near` satisfies the condition of decrease; an acceptable step lies between the two."""

    done: Any
    turn: Any
    trial: Any
    near: End
    far: End


class Found(NamedTuple):
    """The step (0 where none is lower), value and gradient there, and what it took."""

    step: Any
    value: Any
    grad: Any
    bracketed: Any
    evaluations: Any


def search(
    value_and_grad: Callable[[Any], tuple[Any, Any]],
    inner: Callable[[Any, Any], Any],
    x: Any,
    direction: Any,
    value: Any,
    grad: Any,
    first: Any,
    max_turns: int,
) -> Found:
    """A step t along p = `direction` with φ(t) ≤ φ(0) + c₁·t·φ'(0) and |φ'(t)| ≤ c₂·|φ'(0)|.

    φ(t) = f(x + t·p), and `first` is the first trial. After `max_turns` turns the best step with
    the first property is given.
    """
    slope = inner(grad, direction)
    rounding = 2 * jnp.finfo(value.dtype).eps * abs(value)
    infinity = jnp.full_like(slope, jnp.inf)
    start = State(
        jnp.asarray(False),
        0,
        first,
        End(jnp.zeros_like(slope), value, slope, grad),
        End(infinity, infinity.astype(value.dtype), infinity, grad),
    )

    def unfinished(s: State) -> Any:
        return ~s.done & (s.turn < max_turns)

    def turn(s: State) -> State:
        f, g = value_and_grad(x + (s.trial * direction).astype(x.dtype))
        trial = End(s.trial, f, inner(g, direction), g)
        decreased = f <= value + DECREASE * trial.step * slope
        flat = (f <= value + rounding) & (trial.slope <= (2 * DECREASE - 1) * slope)
        lower = (decreased | flat) & ((f < s.near.value) | (abs(f - s.near.value) <= rounding))
        # A value or slope that is no number is a step too long.
        lower &= jnp.isfinite(f) & jnp.isfinite(trial.slope)
        done = lower & (abs(trial.slope) <= -CURVATURE * slope)
        turned = trial.slope * (s.far.step - s.near.step) >= 0
        far = choose(~lower, trial, choose(turned & ~done, s.near, s.far))
        near = choose(lower, trial, s.near)
        return State(done, s.turn + 1, between(near, far, s.turn), near, far)

    last = while_loop(unfinished, turn, start)
    near = last.near
    return Found(near.step, near.value, near.grad, jnp.isfinite(last.far.step), last.turn)


def choose(which: Any, a: End, b: End) -> End:
    """`a` where `which`, else `b`."""
    return End(*(jnp.where(which, x, y) for x, y in zip(a, b, strict=True)))


def between(near: End, far: End, turn: Any) -> Any:
    """The next trial: the minimum of the cubic through both ends, or twice the step so far.

    Every third turn halves the bracket: interpolation alone may shrink it from one side only.
    """
    width = far.step - near.step
    chord = 3 * (near.value - far.value) / width + near.slope + far.slope
    root = jnp.sqrt(jnp.maximum(chord**2 - near.slope * far.slope, 0))
    root = jnp.where(width < 0, -root, root)
    part = 1 - (far.slope + root - chord) / (far.slope - near.slope + 2 * root)
    part = jnp.where(jnp.isfinite(part) & (turn % 3 != 2), part, 0.5)
    inside = near.step + jnp.clip(part, MARGIN, 1 - MARGIN) * width
    return jnp.where(jnp.isfinite(far.step), inside, 2 * near.step).astype(near.step.dtype)
