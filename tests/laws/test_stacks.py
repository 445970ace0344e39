"""Small programs under every stack of transformations up to three high.

A program is a function of (module, vector of 3) to a vector of 3, so that every transformation
gives such a function again. The reference is the same program on NumPy's longest floats, with loops
for vmap and nested central differences for derivatives.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine, enable_x64
from tests.laws.compare import engines, host, near_values

LONG = np.longdouble
Vector = Any
Function = Callable[[Vector], Vector]
Program = Callable[[Any, Vector], Vector]

MATRIX = np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]])
POINT = np.array([0.3, -0.7, 1.1])
DIRECTION = np.array([0.6, -0.5, 0.9])
WEIGHTS = np.array([1.0, -0.4, 0.8])
SCALES = np.array([1.0, 0.5, -0.8])


# ---- programs


def waves(xp: Any, x: Vector) -> Vector:
    return xp.sin(x) * xp.cos(2.0 * x)


def polynomial(xp: Any, x: Vector) -> Vector:
    return x**3 - 2.0 * x * x + 0.5


def quotient(xp: Any, x: Vector) -> Vector:
    return xp.exp(x) / (1.0 + x * x)


def network(xp: Any, x: Vector) -> Vector:
    return xp.tanh(MATRIX.astype(x.dtype) @ xp.tanh(MATRIX.astype(x.dtype) @ x) + x)


def softmax(xp: Any, x: Vector) -> Vector:
    e = xp.exp(x - xp.sum(x) / 3.0)
    return e / xp.sum(e)


def norm(xp: Any, x: Vector) -> Vector:
    return x * xp.sqrt(xp.sum(x * x) + 0.1)


def outer(xp: Any, x: Vector) -> Vector:
    return xp.sum(x[:, None] * xp.sin(x)[None, :], axis=0)


def moved(xp: Any, x: Vector) -> Vector:
    both = xp.concatenate([x[1:], x[:1] * x[2:]])
    return xp.reshape(xp.transpose(xp.reshape(xp.concatenate([both, x]), (2, 3))), (6,))[1:4]


def chosen(xp: Any, x: Vector) -> Vector:
    return xp.where(x > 0.0, xp.sin(x), x * x)


def running(xp: Any, x: Vector) -> Vector:
    return xp.cumsum(x * x) * x


def extremes(xp: Any, x: Vector) -> Vector:
    return xp.maximum(x, 0.5 * x[::-1]) * xp.max(x)


def constant(xp: Any, x: Vector) -> Vector:
    return xp.zeros(3, x.dtype) + 2.0


def steps(xp: Any, x: Vector) -> Vector:
    """A loop: NumPy's is Python's, ours is scan."""
    if xp is np:
        carry = x
        for i in range(4):
            carry = np.sin(carry) * x + 0.1 * i
        return carry

    def body(carry: Any, i: Any) -> Any:
        return jnp.sin(carry) * x + i, None

    return lax.scan(body, x, 0.1 * np.arange(4.0))[0]


def branches(xp: Any, x: Vector) -> Vector:
    if xp is np:
        return np.sin(x) * x if np.sum(x) > 0 else x
    return lax.cond(jnp.sum(x) > 0, lambda x: jnp.sin(x) * x, lambda x: x, x)


def indexed(xp: Any, x: Vector) -> Vector:
    at = np.array([2, 0, 2])
    return x[at] * x + xp.sum(x[np.array([0, 0])])


def nested(xp: Any, x: Vector) -> Vector:
    """A program with transformations inside of it."""
    if xp is np:
        return np.cos(x) * x + np.sin(x) * 2.0
    inner = primal.jit(primal.vmap(lambda a: jnp.sin(a) * a))
    d = primal.grad(lambda y: jnp.sum(inner(y)))
    return d(x) + primal.jit(jnp.sin)(x)


PROGRAMS: list[Program] = [
    waves, polynomial, quotient, network, softmax, norm, outer, moved, chosen, running, extremes,
    constant, steps, branches, indexed, nested,
]  # fmt: skip


# ---- transformations, each of functions of vectors


def jit(f: Function) -> Function:
    return primal.jit(f)


def vmap(f: Function) -> Function:
    return lambda x: jnp.sum(primal.vmap(f)(SCALES[:, None] * x), axis=0)


def grad(f: Function) -> Function:
    return primal.grad(lambda x: jnp.sum(f(x) * WEIGHTS))


def vjp(f: Function) -> Function:
    return lambda x: primal.vjp(f, x)[1](jnp.asarray(WEIGHTS))[0]


def jvp(f: Function) -> Function:
    return lambda x: primal.jvp(f, (x,), (jnp.asarray(DIRECTION),))[1]


def linearize(f: Function) -> Function:
    return lambda x: primal.linearize(f, x)[1](jnp.asarray(DIRECTION))


# ---- the same by loops and differences

STEP = LONG(2e-3)


def loop(f: Function) -> Function:
    return lambda x: sum(f(LONG(c) * x) for c in SCALES)


def along(f: Function, x: Vector, v: Vector) -> Vector:
    """The derivative along v: sixth order, so nesting three of them leaves eight digits."""
    terms = ((45, 1), (-9, 2), (1, 3))
    return sum(
        LONG(c) * (f(x + k * STEP * v) - f(x - k * STEP * v)) for c, k in terms
    ) / (60 * STEP)


def pulled(f: Function) -> Function:
    return lambda x: np.stack(
        [np.sum(WEIGHTS * along(f, x, e)) for e in np.eye(3, dtype=LONG)]
    )


def pushed(f: Function) -> Function:
    return lambda x: along(f, x, DIRECTION.astype(LONG))


# grad and vjp are one map, as are jvp and linearize; jit is none.
MEANING: dict[Any, Any] = {
    jit: None, vmap: loop, grad: pulled, vjp: pulled, jvp: pushed, linearize: pushed
}  # fmt: skip
STACKS = [s for depth in (1, 2, 3) for s in itertools.product(MEANING, repeat=depth)]


@functools.cache
def reference(program: Program, meaning: tuple[Any, ...]) -> Vector:
    f: Function = functools.partial(program, np)
    for transform in meaning:
        f = transform(f)
    return f(POINT.astype(LONG)).astype(np.float64)


def check(program: Program, stack: tuple[Any, ...], engine: str) -> None:
    f: Function = functools.partial(program, jnp)
    for transform in stack:
        f = transform(f)
    want = reference(program, tuple(MEANING[t] for t in stack if MEANING[t] is not None))
    with cpu_engine(engine):
        got = host(f(jnp.asarray(POINT)))
    what = f"{' of '.join(t.__name__ for t in reversed(stack))} of {program.__name__} on {engine}"
    assert (got.shape, got.dtype) == (want.shape, want.dtype), what
    near_values(got, want, 1e-6, max(1.0, float(np.max(np.abs(want)))), what)


SHARE = {"reference": 4, "cpu": 8, "xla": 32}
"""One in so many stacks of three is run; XLA is given what the cpu engine is, op by op."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_stacks(program: Program) -> None:
    """All stacks up to two high; of those three high, each is run with some of the programs."""
    own = PROGRAMS.index(program)
    with enable_x64(True):
        for number, stack in enumerate(STACKS):
            for engine in engines():
                if engine != "reference" and jit not in stack:
                    continue  # the same eager run
                every = 1 if len(stack) < 3 else SHARE[engine]
                if (number + own) % every == 0:
                    check(program, stack, engine)


def lying(xp: Any, x: Vector) -> Vector:
    """Right in value at the point, wrong in its slope for one of the two modules."""
    return x * x if xp is np else x * x + 1e-4 * jnp.sin(x - jnp.asarray(POINT))


@pytest.mark.parametrize("stack", [(grad,), (jit, jvp), (vmap, jit), (vjp, vmap, linearize)])
def test_a_wrong_slope_is_caught(stack: tuple[Any, ...]) -> None:
    with enable_x64(True), pytest.raises(AssertionError, match="lying"):
        check(lying, stack, "reference")
