"""What is padded, joined or the sum of such, in the order that its readers want: NumPy's bits, and
no pass over the whole result that turns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.base.dtypes import bfloat16
from primal.engines.cpu.plan.schedule import Group
from tests.engines.cpu.lab import built
from tests.engines.cpu.test_edges import back, drawn, run

DTYPES = (np.float32, np.float64, np.complex64, bfloat16)
SHAPES = ((90, 80), (3, 700), (700, 3), (12, 70, 16))


def functions(shape: tuple[int, ...]) -> list[Callable[[Any], Any]]:
    """Functions of arrays of a shape whose derivatives pad and join."""
    found: list[Callable[[Any], Any]] = []
    for a, n in enumerate(shape):
        some = next(k for k in (2, 3, 5) if n % k == 0)
        edges = [(2 * (d == a), d == a) for d in range(len(shape))]
        found += [
            lambda x, a=a: jnp.diff(x, axis=a),
            lambda x, a=a, k=some: sum(jnp.split(x, k, a)),
            lambda x, a=a, k=some: jnp.multiply(*jnp.split(x, k, a)[:2]),
            lambda x, e=edges: jnp.pad(x, e) + 1,
            lambda x, a=a: jnp.roll(x, 2, a) * x,
            lambda x, a=a: x.at[(slice(None),) * a + (slice(1, None),)].multiply(2),
        ]
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_of_every_order(shape: tuple[int, ...], dtype: Any) -> None:
    for order in ((1, 0),) if len(shape) == 2 else ((2, 1, 0), (1, 2, 0)):
        x = drawn(shape, dtype)
        for f in functions(tuple([shape[d] for d in order])):
            aval = primal.eval_shape(lambda x, f=f, o=order: f(jnp.transpose(x, o)), x)
            w = drawn(aval.shape, dtype)
            run(lambda x, w, f=f, o=order: back(lambda x: f(jnp.transpose(x, o)), x, w), x, w)


def gradient(f: Callable[[Any], Any], x: Any) -> Any:
    """The steps of the program of a derivative of f of x, transposed."""
    w = np.zeros(primal.eval_shape(f, x.T).shape, x.dtype)
    return built(lambda x, w: list(primal.vjp(lambda x: f(x.T), x)[1](w)), x, w).plan.steps


def test_nothing_but_pieces_is_turned() -> None:
    """Rows a few elements apart are read so; of others what is at most half of the result is
    turned first, and else the sum as it is stored."""
    rows, square = np.zeros((3, 100000)), np.zeros((400, 300))
    for f in (
        lambda x: jnp.diff(x, axis=1),
        lambda x: sum(jnp.split(x, 3, 1)),
        lambda x: jnp.pad(x, ((0, 0), (1, 2))) * 2,
    ):
        (step,) = gradient(f, rows)
        assert type(step) is Group
    for axis in range(2):
        turn, whole = gradient(lambda x, a=axis: sum(jnp.split(x, 4, a)), square)
        assert turn.name == "transpose" and turn.outs[0].shape in ((400, 75), (100, 300))
        assert type(whole) is Group
        *_, last = gradient(lambda x, a=axis: jnp.diff(x, axis=a), square)
        assert type(last) is Group and last.squares


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(27000, 10), (20, 1100, 12), (30000, 9), (90, 10)], ids=str)
def test_columns_are_added_up_as_rows(shape: tuple[int, ...], dtype: Any) -> None:
    """Of what takes columns apart: they are written as rows, which are turned once."""
    x, w = drawn(shape, dtype), drawn(shape[:-1], dtype)
    for f in (
        lambda x: sum(jnp.unstack(x, axis=-1)),
        lambda x: sum([v * (i + 1) for i, v in enumerate(jnp.unstack(x, axis=-1))]),
    ):
        made = run(lambda x, w, f=f: back(f, x, w), x, w)
        if x.size > 1 << 18 and x.dtype.kind == "f":
            assert not any(s.padded for s in made.plan.steps if type(s) is Group)
            assert [s.name for s in made.plan.steps if type(s) is not Group] == ["transpose"]
