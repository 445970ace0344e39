"""Programs drawn at random: every engine and transformation agrees with NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import primal
import primal.numpy as jnp
from primal.base.config import cpu_engine, enable_x64
from tests.laws.compare import engines, host, near_values

Array = Any
Step = tuple[str, Callable[[Any, list[Array]], Array]]

# Smooth, and bounded so that deep programs stay of order one.
UNARY: dict[str, Any] = {
    "sin": lambda xp, x: xp.sin(x),
    "tanh": lambda xp, x: xp.tanh(x),
    "negative": lambda xp, x: -x,
    "bell": lambda xp, x: xp.exp(-x * x),
    "root": lambda xp, x: xp.sqrt(1.0 + x * x),
    "half": lambda xp, x: 0.5 * x,
    "log": lambda xp, x: xp.log1p(x * x),
    "atan": lambda xp, x: xp.arctan(x),
    "stopped": lambda xp, x: xp.where(x == 7.0, 0.0, x),
}
BINARY: dict[str, Any] = {
    "add": lambda xp, x, y: x + y,
    "sub": lambda xp, x, y: x - y,
    "mul": lambda xp, x, y: xp.tanh(x) * xp.sin(y),
    "div": lambda xp, x, y: x / (1.0 + y * y),
    "where": lambda xp, x, y: xp.where(xp.sin(3.0 * x) > 0.0, x, xp.cos(y)),
    "max": lambda xp, x, y: xp.maximum(x, y + 0.123),
}


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A program: shapes of its inputs, and steps that each read earlier values."""

    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[str, tuple[int, ...], Any], ...]

    def __call__(self, xp: Any, *inputs: Array) -> Array:
        values = list(inputs)
        for name, reads, extra in self.steps:
            values.append(apply(xp, name, [values[i] for i in reads], extra))
        # Every value takes part in the result, so that no step is dead.
        return sum(xp.sum(xp.tanh(v)) for v in values[len(inputs) :]) + 0.0 * xp.sum(values[0])


def apply(xp: Any, name: str, xs: list[Array], extra: Any) -> Array:
    if name in UNARY:
        return UNARY[name](xp, xs[0])
    if name in BINARY:
        return BINARY[name](xp, *xs)
    if name == "sum":
        return xp.sum(xs[0], axis=extra)
    if name == "mean":
        return xp.mean(xs[0], axis=extra, keepdims=True)
    if name == "max over":
        return xp.max(xs[0], axis=extra)
    if name == "reshape":
        return xp.reshape(xs[0], extra)
    if name == "transpose":
        return xp.transpose(xs[0])
    if name == "broadcast":
        return xp.broadcast_to(xs[0], extra)
    if name == "dot":
        return xp.tensordot(xs[0], xs[1], axes=([xs[0].ndim - 1], [0]))
    if name == "join":
        return xp.concatenate([xs[0], xs[1]], axis=extra)
    if name == "slice":
        return xs[0][extra]
    if name == "flip":
        return xp.flip(xs[0], extra)
    assert name == "cumsum", name
    return xp.cumsum(xs[0], axis=extra)


@st.composite
def programs(draw: Any) -> Drawn:
    dims = st.integers(1, 3)
    shapes = draw(st.lists(st.lists(dims, max_size=3).map(tuple), min_size=1, max_size=2))
    have = list(shapes)
    steps: list[tuple[str, tuple[int, ...], Any]] = []
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, len(have) - 1))
        shape = have[at]
        options: list[tuple[str, tuple[int, ...], Any]] = [
            (draw(st.sampled_from(sorted(UNARY))), (at,), None)
        ]
        other = draw(st.integers(0, len(have) - 1))
        if _broadcasts(shape, have[other]):
            options.append((draw(st.sampled_from(sorted(BINARY))), (at, other), None))
        if shape:
            axis = draw(st.integers(0, len(shape) - 1))
            options += [(n, (at,), axis) for n in ("sum", "mean", "max over", "flip", "cumsum")]
            options.append(("slice", (at,), (slice(None),) * axis + (slice(0, None, 2),)))
            options.append(("join", (at, at), axis))
            if have[other] and shape[-1] == have[other][0]:
                options.append(("dot", (at, other), None))
        if len(shape) > 1:
            options.append(("transpose", (at,), None))
        options.append(("reshape", (at,), (int(np.prod(shape)), 1)))
        if len(shape) < 3:
            options.append(("broadcast", (at,), (2, *shape)))
        step = draw(st.sampled_from(options))
        zeros = [np.zeros(have[i]) for i in step[1]]
        out = np.shape(apply(np, step[0], zeros, step[2]))
        if int(np.prod(out)) > 200:
            continue
        steps.append(step)
        have.append(out)
    return Drawn(tuple(shapes), tuple(steps))


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def _inputs(program: Drawn, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1.5, 1.5, s) for s in program.shapes]


@settings(max_examples=40)
@given(programs(), st.integers(0, 99))
def test_drawn_programs(program: Drawn, seed: int) -> None:
    inputs = _inputs(program, seed)
    rng = np.random.default_rng(seed + 1)
    ts = [rng.standard_normal(x.shape) for x in inputs]
    every = tuple(range(len(inputs)))
    want = program(np, *inputs)

    def f(*xs: Array) -> Array:
        return program(jnp, *xs)

    def loss_along(*args: Array) -> Array:
        return primal.jvp(f, args[: len(inputs)], args[len(inputs) :])[1]

    with enable_x64(True):
        xs = [jnp.asarray(x) for x in inputs]
        near_values(host(f(*xs)), want, 1e-12, 1.0, "eager")
        slope = host(loss_along(*xs, *[jnp.asarray(t) for t in ts]))
        _against_differences(program, inputs, ts, slope)
        grads = [host(g) for g in primal.grad(f, every)(*xs)]
        total = sum(float(np.sum(g * t)) for g, t in zip(grads, ts, strict=True))
        near_values(np.array(total), slope, 1e-10, 1.0, "grad against jvp")
        examples = [np.stack([x, 0.5 * x, -x]) for x in inputs]
        rows = np.array([program(np, *[e[i] for e in examples]) for i in range(3)])
        whole = primal.vmap(f)(*[jnp.asarray(e) for e in examples])
        near_values(host(whole), rows, 1e-12, 1.0, "vmap")
        per_example = primal.vmap(primal.grad(f, every))(*[jnp.asarray(e) for e in examples])
        for g, one in zip(per_example, grads, strict=True):
            near_values(host(g)[0], one, 1e-10, 1.0, "vmap of grad")

        def everything(*xs: Array) -> Any:
            return f(*xs), primal.grad(f, every)(*xs)

        for engine in engines():
            with cpu_engine(engine):
                value, compiled = primal.jit(everything)(*xs)
                near_values(host(value), want, 1e-11, 1.0, f"jit on {engine}")
                for g, one in zip(compiled, grads, strict=True):
                    near_values(host(g), one, 1e-9, 1.0, f"grad under jit on {engine}")
                inside = primal.grad(primal.jit(f), every)(*xs)
                for g, one in zip(inside, grads, strict=True):
                    near_values(host(g), one, 1e-9, 1.0, f"grad of jit on {engine}")
        with cpu_engine(engines()[-1]):
            mapped = primal.jit(primal.vmap(f))(*[jnp.asarray(e) for e in examples])
            near_values(host(mapped), rows, 1e-11, 1.0, "jit of vmap")


def _against_differences(program: Drawn, xs: list[Array], ts: list[Array], slope: Array) -> None:
    """One-sided limits differ at kinks: there nothing is asked."""

    def at(h: float) -> float:
        return float(program(np, *[x + h * t for x, t in zip(xs, ts, strict=True)]))

    h = 1e-4
    wide, close = [(at(s) - at(-s)) / (2 * s) for s in (h, h / 2)]
    if abs(wide - close) < 1e-6:
        near_values(slope, np.array((4 * close - wide) / 3), 1e-6, 1.0, "jvp")


@settings(max_examples=15)
@given(programs(), st.integers(0, 99))
def test_drawn_programs_in_float32(program: Drawn, seed: int) -> None:
    inputs = [x.astype(np.float32) for x in _inputs(program, seed)]

    def f(*xs: Array) -> Array:
        return program(jnp, *xs)

    eager = host(f(*[jnp.asarray(x) for x in inputs]))
    assert eager.dtype == np.float32
    for engine in engines():
        with cpu_engine(engine):
            got = host(primal.jit(f)(*[jnp.asarray(x) for x in inputs]))
            near_values(got, eager, 1e-4, 1.0, f"float32 on {engine}")
