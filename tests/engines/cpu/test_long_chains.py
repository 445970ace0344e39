"""Planning is linear: three times as many lines of a program take three times as many calls.

Chains of steps that share operands, move them or read parts of them stand before each kind of
movement, and are differentiated, batched, or the body of a loop. Words that were looked at by way
of each reader took 2 to as many steps (60 of x * x + x never came to an end), those computed for
each reader their third power. Calls are counted, and stopped, so that such a program fails here.
"""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.plan import partial
from tests.engines.cpu.programs import planned

Array = Any
Function = Callable[[Array], Array]
N = 60
X = np.ones((N, N), np.float32)
SHORT, TIMES = 12, 3
LONG = 1_100

STEPS: dict[str, Function] = {
    "shared": lambda x: x * x + x,
    "chosen": lambda x: jnp.where(x > 1, x * 2, x) + jnp.sin(x),
    "plain": lambda x: x * 1.0001,
    "padded": lambda x: x + jnp.pad(x[1:], ((0, 1), (0, 0))),
    "turned": lambda x: x.T * x.T + x.T,
    "sums": lambda x: x - x.sum(0) * x,
    "means": lambda x: x / jnp.sqrt((x * x).mean(1, keepdims=True)) + x,
    "joined": lambda x: jnp.concatenate([x[1:], x[:1]]) * x + x[::-1],
    "rolled": lambda x: jnp.roll(x, 1, 1) * x,
    "set": lambda x: x.at[1:3].set(x[2:4] * x[1:3]),
    "taken": lambda x: x[jnp.arange(N)[::-1]] * x,
    "complex": lambda x: ((x + 1j * x) * (x - 1j * x)).real + x,
    "stacked": lambda x: jnp.stack([x, x * 2]).sum(0),
    "outer": lambda x: x[0][:, None] * x[:, 0][None] + x,
    "stencil": lambda x: jnp.pad(x[1:-1] + x[2:] - x[:-2], ((1, 1), (0, 0))) * x,
}
SOURCES: dict[str, Function] = {
    "whole": lambda x: x,
    "column": lambda x: jnp.broadcast_to(x[:, :1], x.shape),
    "row": lambda x: jnp.broadcast_to(x[:1], x.shape),
    "one": lambda x: jnp.broadcast_to(x[0, 0], x.shape),
}
MOVES: dict[str, Function] = {
    "T": lambda x: x.T,
    "pad": lambda x: jnp.pad(x, 1),
    "edge": lambda x: jnp.pad(x, 1, mode="edge"),
    "concatenate": lambda x: jnp.concatenate([x, x[:3]]),
    "reverse": lambda x: x[::-1] + 1,
    "slice": lambda x: x[1:, ::2] + 1,
    "point": lambda x: x[30, 30],
    "block": lambda x: lax.dynamic_slice(x, (30, 30), (4, 4)),
    "write": lambda x: lax.dynamic_update_slice(x, x[:2, :2], (1, 1)),
    "take": lambda x: x[jnp.array([3, 1, 4])],
    "roll": lambda x: jnp.roll(x, 1, 0),
    "flat": lambda x: x.T.reshape(-1) + 1,
    "sum": lambda x: x.T.sum(0),
    "max": lambda x: x.max(),
    "argmax": lambda x: jnp.argmax(x, 0),
    "repeat": lambda x: jnp.repeat(x, 2, 1),
    "sort": lambda x: jnp.sort(x),
    "cumsum": lambda x: jnp.cumsum(x, 0),
    "product": lambda x: x @ x.T,
    "add": lambda x: x.at[:, 2].add(1.0),
    "diagonal": lambda x: jnp.diagonal(x) + 1,
    "stack": lambda x: jnp.stack([x, x], -1),
    "fft": lambda x: jnp.fft.rfft(x).real,
    "complex": lambda x: (x + 1j * x).T.real,
    "narrow": lambda x: x.astype(jnp.float16)[::-1].T,
    "solve": lambda x: jnp.linalg.solve(x + jnp.eye(N), x),
}
FORMS: dict[str, Callable[[Function, Function], Function]] = {
    "value": lambda chain, move: lambda x: move(chain(x)),
    "gradient": lambda chain, move: primal.grad(
        lambda x: jnp.sum(move(chain(x)).astype(jnp.float32))
    ),
    "batch": lambda chain, move: lambda x: primal.vmap(lambda y: move(chain(y)))(
        jnp.stack([x, x * 2])
    ),
    "loop": lambda chain, move: lambda x: move(
        lax.scan(lambda c, _: (chain(c), None), x, length=3)[0]
    ),
    "choice": lambda chain, move: lambda x: lax.cond(
        x[0, 0] > 0, lambda x: move(chain(x)), lambda x: move(x), x
    ),
}


class Calls:
    """Counts calls, of Python and of C, and stops beyond a number of them."""

    def __init__(self, most: int) -> None:
        self.count, self.most = 0, most

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            self.count += 1
            if self.count > self.most:
                sys.setprofile(None)
                raise AssertionError(f"more than {self.most} calls")


def calls(function: Function, most: int = sys.maxsize) -> int:
    """How many calls it takes to trace a program of one array, and to plan it."""
    counter = Calls(most)
    before = sys.getprofile()
    sys.setprofile(counter)
    try:
        planned(function, [X], "chain")
    finally:
        sys.setprofile(before)
    return counter.count


def is_linear(step: str, source: str, move: str, form: str) -> None:
    def program(length: int) -> Function:
        def chain(x: Array) -> Array:
            x = SOURCES[source](x)
            for _ in range(length):
                x = STEPS[step](x)
            return x

        return FORMS[form](chain, MOVES[move])

    # Twice as many, as what looks some steps ahead has its full length only in the longer one.
    calls(program(SHORT * TIMES), calls(program(SHORT)) * TIMES * 2)


@pytest.mark.parametrize("move", ["point", "block"])
@pytest.mark.parametrize("step", ["padded", "stencil"])
def test_what_few_elements_are_read_of(step: str, move: str) -> None:
    is_linear(step, "whole", move, "value")


def test_chains_that_grow_faster_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial, "_block", lambda *_: None)
    with pytest.raises(AssertionError, match="calls"):
        is_linear("padded", "whole", "block", "value")


@pytest.mark.parametrize("move, step", [*zip(MOVES, itertools.cycle(STEPS), strict=False)])
def test_chains(move: str, step: str) -> None:
    """Each movement and each step once; sources and forms are drawn."""
    number = zlib.crc32(f"{move} {step}".encode())
    is_linear(step, sorted(SOURCES)[number % 4], move, sorted(FORMS)[number // 4 % 5])


@pytest.mark.parametrize("form", ["gradient", "loop", "choice"])
def test_length_is_not_depth(form: str) -> None:
    """Nothing recurs along a program, which Python allows a thousand times."""
    assert sys.getrecursionlimit() <= LONG

    def chain(x: Array) -> Array:
        for _ in range(LONG):
            x = x * x - 0.5
        return x

    planned(FORMS[form](chain, lambda x: x), [X], "chain")
    if form == "gradient":  # op by op
        assert np.isfinite(primal.grad(chain)(0.1))


def test_jitted_functions_call_each_other_sixty_deep() -> None:
    def nested(x: Array) -> Array:
        return jnp.sin(x)

    for _ in range(60):
        nested = primal.jit(lambda x, inner=nested: inner(x) * 1.01)
    assert np.isclose(primal.grad(nested)(0.0), 1.01**60)
    planned(primal.vmap(primal.grad(nested)), [X[0]], "nested")
