"""Effects inside loops and branches happen as often and in the order of a Python program."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import ShapeDtypeStruct, debug, lax
from primal.base.config import cpu_engine
from primal.experimental import io_callback

ENGINES = ("reference", "cpu", "xla")
SHAPE = ShapeDtypeStruct((), np.float32)

# A program is a tree: effects, and loops and branches of programs. Values are small integers, so
# that floats are exact.
leaves = st.sampled_from(["io", "print", "pure", "add"])
programs = st.recursive(
    leaves,
    lambda inner: st.tuples(
        st.sampled_from(["scan", "reverse", "while", "cond", "jit", "two"]),
        st.lists(inner, min_size=1, max_size=3),
        st.integers(0, 3),
    ),
    max_leaves=7,
)


class Log(list[Any]):
    def io(self, x: Any) -> Any:
        self.append(("io", float(x)))
        return np.float32(float(x) + 1)

    def note(self, x: Any) -> None:
        self.append(("print", float(x)))

    def pure(self, x: Any) -> Any:
        return np.float32(float(x) + 2)


def meaning(program: Any, x: float, log: Log) -> float:
    """The program in plain Python."""
    if program == "io":
        return float(log.io(x))
    if program == "print":
        log.note(x)
        return x
    if program == "pure":
        return x + 2
    if program == "add":
        return x + 3
    kind, parts, n = program

    def body(x: float) -> float:
        for part in parts:
            x = meaning(part, x, log)
        return x

    if kind in ("scan", "reverse"):
        for i in range(n):
            x = body(x + (n - 1 - i if kind == "reverse" else i))
        return x
    if kind == "while":
        for _ in range(n):
            x = body(x)
        return x
    if kind == "cond":
        return body(x) if x % 2 == n % 2 else x
    if kind == "two":
        return body(body(x))
    return body(x)


def staged(program: Any, x: Any, log: Log) -> Any:
    """The program in Primal."""
    if program == "io":
        return io_callback(log.io, SHAPE, x, ordered=True)
    if program == "print":
        debug.callback(log.note, x, ordered=True)
        return x
    if program == "pure":
        return primal.pure_callback(log.pure, SHAPE, x)
    if program == "add":
        return x + 3
    kind, parts, n = program

    def body(x: Any) -> Any:
        for part in parts:
            x = staged(part, x, log)
        return x

    if kind in ("scan", "reverse"):
        return lax.scan(
            lambda c, i: (body(c + i), i),
            x,
            jnp.arange(n, dtype=np.float32),
            reverse=kind == "reverse",
        )[0]
    if kind == "while":
        return lax.while_loop(lambda c: c[1] < n, lambda c: (body(c[0]), c[1] + 1), (x, 0))[0]
    if kind == "cond":
        return lax.cond(x % 2 == n % 2, body, lambda x: x, x)
    if kind == "two":
        f = primal.jit(body)
        return f(f(x))
    return primal.jit(body)(x)


@pytest.mark.parametrize("engine", ENGINES)
@hypothesis.settings(max_examples=12, deadline=None)
@hypothesis.given(programs, st.integers(0, 2))
def test_order(engine: str, program: Any, start: int) -> None:
    expected = Log()
    result = meaning(program, float(start), expected)
    log = Log()
    with cpu_engine(engine):
        out = primal.jit(lambda x: staged(program, x, log))(np.float32(start))
    assert float(out) == result
    assert log == expected


@hypothesis.settings(max_examples=10, deadline=None)
@hypothesis.given(programs, st.integers(0, 2))
def test_order_outside_of_programs(program: Any, start: int) -> None:
    expected = Log()
    result = meaning(program, float(start), expected)
    log = Log()
    assert float(staged(program, jnp.float32(start), log)) == result
    assert log == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_unordered_effects_happen_as_often(engine: str) -> None:
    log = Log()

    def body(c: Any, x: Any) -> Any:
        debug.callback(log.note, x)
        debug.callback(log.note, x)
        return lax.cond(x > 0, lambda c: io_callback(log.io, SHAPE, c), lambda c: c, c), None

    with cpu_engine(engine):
        primal.jit(lambda: lax.scan(body, jnp.float32(5), jnp.arange(3.0)))()
        primal.effects_barrier()
    expected = [("print", float(i)) for i in (0, 0, 1, 1, 2, 2)] + [("io", 5.0), ("io", 6.0)]
    assert sorted(log) == sorted(expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_derivatives_keep_effects_once(engine: str) -> None:
    log = Log()

    def f(a: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            debug.callback(log.note, x, ordered=True)
            return lax.cond(x > 1, lambda c: jnp.sin(c) * a, lambda c: c * x, c), None

        return lax.scan(body, a, jnp.arange(4.0))[0]

    with cpu_engine(engine):
        for wrap in (lambda g: g, primal.jit):
            log.clear()
            wrap(primal.grad(f))(2.0)
            assert log == [("print", float(i)) for i in range(4)]
            log.clear()
            wrap(lambda a: primal.jvp(f, (a,), (1.0,)))(2.0)
            assert log == [("print", float(i)) for i in range(4)]
