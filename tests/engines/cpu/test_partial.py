"""What is read in part is computed in part: values are NumPy's, and kernels as small as that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as pnp
from primal.engines.cpu.plan import partial
from primal.engines.cpu.plan.schedule import Group
from tests.engines.cpu.lab import agree

DRAW = np.random.default_rng(0)
X = DRAW.random((6, 40, 8)).astype(np.float32)
ROW = DRAW.random(8).astype(np.float32)
CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "first ones": (lambda x, r: pnp.sin(x * 2)[:1], 320),
    "a column": (lambda x, r: (x + r)[:, :, 3], 240),
    "backwards, in steps": (lambda x, r: (x - r)[::-3, ::4, 1:3] * 2, 40),
    "of a transposition": (lambda x, r: (x * r).T[2, 5:9], 24),
    "of merged dimensions": (lambda x, r: (x * 3).reshape(-1)[40:46], 6),
    "twice": (lambda x, r: (lambda y: y[0] + y[5])(x * r - 1), 320),
    "next to each other": (lambda x, r: (lambda y: y[1:] + y[:-1])(x * r), 1920),
    "repeated": (lambda x, r: (x * x)[:, :1, :] + x, 1920),
    "a sum": (lambda x, r: (x * r)[:, :10].sum((1, 2)), 480),
    "all as well": (lambda x, r: (lambda y: y[0] + y.sum())(x + 1), 1920),
    "one by one": (lambda x, r: (lambda y: y[0, 0] + y[1, 1])(pnp.sin(x[0, :2] * r)), 16),
    "light ones one by one": (lambda x, r: (lambda y: y[0, 0] + y[1, 1])(x[0, :10] * r), 1),
    "across dimensions": (lambda x, r: (x + 1).reshape(-1)[4:20], 16),
    "across dimensions of what lies apart": (lambda x, r: (x + r).reshape(-1)[4:20], 1920),
    "halves across dimensions": (
        lambda x, r: (lambda y: pnp.concatenate([y[7:] * 2, -y[:7]]))((x * x).reshape(-1)), 1913,
    ),
    "steps of a stencil": (
        lambda x, r: functools.reduce(
            lambda y, _: pnp.sin(y[:, 1:-1] - y[:, 2:] * r + y[:, :-2]), range(6), x
        )[:2, 10:12, 3:5], 40,
    ),
    "halves that were joined": (
        lambda x, r: (lambda y: y[:6] * y[6:])(pnp.concatenate([x, x + r])), 1920,
    ),
    "columns that were stacked": (
        lambda x, r: (lambda y: y[..., 1] - y[..., 0])(pnp.stack([x * r, x], -1) * 2), 1920,
    ),
    "what is neither half alone": (
        lambda x, r: pnp.concatenate([x, x * r])[2:7] * 2, 1920,
    ),
    "every second one": (
        lambda x, r: (lambda y: pnp.maximum(y[..., 0], y[..., 1]))((x * x).reshape(-1, 2)), 960,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_sizes(name: str) -> None:
    f, most = CASES[name]
    made = agree(lambda x, r: [f(x, r)], X, ROW, within=8)
    sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
    assert max(sizes) == most


def test_light_words_are_computed_where_parts_of_them_are_read() -> None:
    """Nothing lies between a cotangent and the derivative of differences of whole rows."""
    x, y = DRAW.standard_normal((2, 300, 10)).astype(np.float32)
    f = primal.grad(lambda x, y: (pnp.gradient(x, axis=0) * y).sum())
    made = primal.jit(f).lower(x, y).compile()
    np.testing.assert_array_equal(made(x, y), f(x, y))
    assert " 0 bytes" in made.as_text()


READ_AT_PLACES: dict[str, Callable[..., Any]] = {
    "a chain": lambda x: (lambda y: y[2:] + y[1:-1] - y[:-2])(-(x * 2) + 1),
    "backwards": lambda x: (lambda y: y[::-1, :40] + y[1:2, :40] * y.T[:40].T)(x - 0.5),
    "squared": lambda x: (lambda y: y[1:] / y[:-1])(x * x),
    "put out too": lambda x: (lambda y: pnp.stack([y[1:], y[1:] - y[:-1]]))(3 * x),
    "repeated": lambda x: (lambda y: y[:, :1] + y[:1] + y[1:2, 5:6])(-x),
    "truths": lambda x: (lambda y: y[1:] & y[:-1] | ~y[1:])(x > 0),
    "under functions": lambda x: (lambda y: pnp.sin(y[1:]) * y[:-1])(pnp.sqrt(abs(x)) * 2),
    "stencils": lambda x: functools.reduce(
        lambda y, _: 0.5 * (-y[2:] + y[:-2]) + 2 * y[1:-1], range(5), x
    ),
}


@pytest.mark.parametrize("name", READ_AT_PLACES)
def test_parts_of_light_words(name: str) -> None:
    """NumPy's values; what several stencils in a row compute does not grow."""
    x = DRAW.standard_normal((60, 40)).astype(np.float32)
    made = agree(lambda x: [READ_AT_PLACES[name](x)], x, within=8)
    words = sum([len(s.nodes) for s in made.plan.steps if type(s) is Group])
    assert words <= 60


@pytest.mark.parametrize(("by", "light"), [(3, True), (None, False)])
def test_shifts_are_light_by_a_known_number(by: int | None, light: bool) -> None:
    x = np.arange(3000, dtype=np.int32)
    made = agree(lambda x: (lambda y: [y[1:] * y[:-1]])(x << (x if by is None else by)), x)
    assert (len(made.plan.steps) == 1) == light


def test_views_of_views_make_few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further level of a scan pads slices of light words: it made twice as many as the last,
    and takes as many."""
    counts = []
    part = partial._part

    def counted(*args: Any) -> Any:
        counts[-1] += 1
        return part(*args)

    monkeypatch.setattr(partial, "_part", counted)
    for levels in (6, 8, 10, 12):
        counts.append(0)
        x = np.full(2**levels - 1, 1 + 1j, np.complex64)
        primal.jit(lambda x: primal.vjp(primal.lax.cumprod, x)[1](x)).lower(x).compile()
    assert counts[3] - counts[2] <= 1.5 * (counts[1] - counts[0])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("join", [pnp.stack, pnp.concatenate])
def test_the_derivative_by_a_piece_of_what_was_joined_reads_the_piece(join: Any, axis: int) -> None:
    """Nothing else is in memory, of complex numbers either."""
    x, y, z = DRAW.standard_normal((3, 30, 40, 2)).astype(np.float32).view(np.complex64)[..., 0]
    for a, b, c in ((x, y, z), (x.real.copy(), y.real.copy(), z.real.copy())):
        f = primal.grad(lambda a, b, c: (join([a, b, c * 2], axis) ** 2).sum().real)
        made = primal.jit(f).lower(a, b, c).compile()
        np.testing.assert_allclose(made(a, b, c), 2 * a, rtol=1e-6)
        assert " 0 bytes" in made.as_text()


@pytest.mark.parametrize("width", [2, ((0, 3), (1, 0)), ((0, 0), (4, 4))])
def test_the_derivative_of_padding_reads_what_was_padded(width: Any) -> None:
    real = DRAW.standard_normal((60, 80)).astype(np.float32)
    for x in (real, real.view(np.complex64)):
        f = primal.grad(lambda x: (pnp.pad(x, width) ** 2).sum().real)
        made = primal.jit(f).lower(x).compile()
        np.testing.assert_allclose(made(x), 2 * x, rtol=1e-6)
        assert " 0 bytes" in made.as_text()


@pytest.mark.parametrize("shape", [(1, 20), (20, 1), (1, 1, 20), (3, 20), (20, 3)])
def test_what_is_read_of_rolled_arrays_of_one_row(shape: tuple[int, ...]) -> None:
    """Dimensions of one element have steps too, but nothing is joined or padded along them."""
    x = DRAW.standard_normal(shape).astype(np.float32)
    for axis in range(len(shape)):
        width = [(2, 3) if d == axis else (0, 0) for d in range(len(shape))]
        roll = functools.partial(pnp.roll, shift=1, axis=axis)
        pad = functools.partial(pnp.pad, pad_width=width)
        flip = functools.partial(pnp.flip, axis=axis)
        for f in (
            lambda x, roll=roll, flip=flip: flip(roll(x))[-1:] * 2,
            lambda x, pad=pad: pad(x)[2:-1, 1:] * 2,
            primal.grad(lambda x, roll=roll: (roll(pnp.tile(x, 2)) ** 2).sum()),
        ):
            agree(lambda x, f=f: [f(x)], x)


def test_what_is_gathered_of_joined_arrays_lies_in_all_of_them() -> None:
    """What a group gathers it reads from where the array begins, whatever else is read of it."""
    x, y = DRAW.standard_normal((2, 1, 40)).astype(np.float32)
    for join in (pnp.stack, pnp.concatenate, lambda xs: pnp.pad(xs[0] * 2, ((0, 1), (0, 0)))):
        for name in ("argsort", "argmax"):
            def f(x: Any, y: Any, join: Any = join, name: str = name) -> list[Any]:
                joined = join([x, y]).reshape(2, -1)
                at = getattr(pnp, name)(joined, 0)
                return [pnp.take_along_axis(joined, at.reshape(-1, joined.shape[1]), 0) * 2]

            agree(f, x, y)
