"""What repeats is computed once: values are NumPy's, and no kernel is as large as the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal as pl
import primal.numpy as pnp
from primal import grad, lax
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.steps import Routine
from tests.engines.cpu.lab import HALF, agree

DRAW = np.random.default_rng(0)
V = DRAW.random(200).astype(np.float32)
I = DRAW.integers(-100, 100, 200).astype(np.int8)  # noqa: E741
SHAPE = (200, 300)


def down(x: Any) -> Any:
    return pnp.broadcast_to(x[:, None], SHAPE)


CASES: dict[str, tuple[Any, Callable[..., Any], int]] = {
    "a function": (V, lambda x: pnp.sin(down(x)) * 2, 60000),
    "a sum": (V, lambda x: (down(x) * down(x)).sum(1), 200),
    "a sum over others too": (V, lambda x: down(x * 3).sum(), 200),
    "the greatest": (V, lambda x: down(x).max(1) - x, 200),
    "a product": (V + 0.9, lambda x: down(x)[:, :20].prod(1), 4000),
    "integers": (I, lambda x: down(x).sum(1, dtype=np.int8), 200),
    "narrow": (V.astype(np.float16), lambda x: down(x).sum(1), 200),
    "mixed": (V, lambda x: (down(x) + pnp.arange(300.0, dtype=np.float32)).sum(0), 60000),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=HALF if n == "narrow" else ()) for n in CASES]
)
def test_values_and_sizes(name: str) -> None:
    x, f, most = CASES[name]
    made = agree(lambda x: [f(x)], x, within=40)
    groups = [s for s in made.plan.steps if type(s) is Group]
    assert max([int(np.prod(s.shape)) for s in groups], default=0) == most
    heavy = [s for s in groups if s.heavy]
    assert all(int(np.prod(s.shape)) == 200 for s in heavy)


@pytest.mark.parametrize("word", [pnp.cumsum, pnp.cumprod, lax.cummax])
def test_what_accumulates_along_others_is_computed_once(word: Callable[..., Any]) -> None:
    """As the cotangent of the sum of a running sum."""
    made = agree(
        lambda x: [word(down(x), axis=0), grad(lambda v: pnp.cumsum(v, 1).sum())(down(x))], V,
        within=8,
    )  # fmt: skip
    steps = [s for s in made.plan.steps if type(s) is Routine and s.name.startswith("cum")]
    assert sorted([s.outs[0].shape for s in steps]) == [(1, 300), (200, 1)]


def test_what_repeats_is_padded_once() -> None:
    """Numbers, rows and columns, by edges of any kind: values are those of the operations."""
    row, column = V[None, :40], V[:, None]
    for x, shape in ((V[0], (50, 40)), (row, (50, 40)), (column, (200, 30)), (V[:3], (2000, 3))):
        for config in (
            ((0, 0, 0), (3, 2, 0)), ((1, 0, 1), (0, 0, 0)), ((-1, 2, 0), (4, -2, 2)),
            ((0, 3, 0), (-70, 90, 1)), ((2, 2, 0), (0, 0, 0)), ((0, 1, 2), (1, 1, 0)),
        ):  # fmt: skip
            agree(
                lambda x, shape=shape, config=config: [
                    lax.pad(pnp.broadcast_to(x, shape), np.float32(value), config)
                    for value in (0, 7)
                ],
                x,
            )
            agree(
                lambda config=config: [lax.pad(pnp.full((50, 40), 5), 0, config).T],
            )


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect"])
def test_gradients_of_sums_read_a_row_and_a_column(mode: str) -> None:
    x = DRAW.random(SHAPE).astype(np.float32)

    def views(x: Any) -> Any:
        return [*pnp.gradient(x), x[::2], x[..., 0], pnp.pad(x[:, ::-3].T, 2, mode=mode)]

    for turned in (lambda x: x, lambda x: x.T):
        gradient = grad(lambda x, t=turned: sum([y.sum() for y in views(t(x))]))
        made = agree(lambda x, g=gradient: [g(x)], x, within=4)
        sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
        assert sizes.count(x.size) == 1
        assert sum(sizes) < 1.5 * x.size


def test_mirrored_transpositions_lie_as_they_did() -> None:
    x = DRAW.random((60, 300)).astype(np.float32)
    made = agree(lambda x: [pnp.rot90(pnp.rot90(x) * 2, -1), (x[:, 5:99].T + 1).T], x)
    shapes = [s.shape for s in made.plan.steps if type(s) is Group]
    assert set(shapes) <= {(60, 300), (60, 94), (18000,), (5640,)}


def test_complex_results_that_repeat_are_written() -> None:
    x = DRAW.random(200) + 1j
    agree(lambda x: [pnp.full(SHAPE, 2j), down(x) * 2, pnp.sin(down(x)).real], x, within=4)


@pytest.mark.parametrize("index", ["int8", "int32", "uint32", "int64"])
def test_more_numbers_than_places_have_room_for(index: str, x64: None) -> None:
    """Which are gathered where starts lie inside, whatever their dtype and the size."""
    at = np.array([0, 127, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32]).astype(index)
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    for n in (2**31 - 1, 2**31, 2**32 - 1, 2**40):

        def f(x: Any, at: Any, n: int = n) -> Any:
            many = pnp.broadcast_to(x, (n,))
            return lax.gather(many, at[:, None], numbers, (1,), mode="fill", fill_value=-1)

        got = pl.jit(f)(np.float32(2), at)
        np.testing.assert_array_equal(got, [2 if 0 <= int(i) < n else -1 for i in at])


def test_numbers_that_are_none_and_that_wrap_around() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, 3e38, -1.5], np.float32)
    z = np.array([complex(np.inf, 0), complex(1, -np.inf), complex(np.nan, 2), 1 - 2j])
    i = np.array([0, 1, -1, 100, -128], np.int8)

    def f(x: Any, z: Any, i: Any) -> list[Any]:
        x, z, i = [pnp.broadcast_to(v[:, None], (len(v), 300)) for v in (x, z, i)]
        sums = [x.sum(1), z.sum(1), i.sum(1, dtype=np.int8)]
        return [*sums, x.max(1), i.prod(1, dtype=np.int8), (i > 0).any(1), (i > 0).sum(1)]

    agree(f, x, z, i)


@pytest.mark.parametrize("dtype", ["float32", "float64", pytest.param("float16", marks=HALF)])
def test_functions_of_chosen_numbers_are_computed_once(dtype: str) -> None:
    x, p = DRAW.standard_normal(1000).astype(dtype), np.array([0.3, -0.0, 2.0]).astype(dtype)

    def f(x: Any, p: Any) -> list[Any]:
        two = pnp.where(x > 0, p[0], p[2])
        return [pnp.log(two), pnp.exp(pnp.where(x > 0, 1.0, p[1]))]

    made = agree(f, x, p, within=1)
    groups = [s for s in made.plan.steps if type(s) is Group]
    assert [(int(np.prod(s.shape)), s.heavy) for s in groups] == [(1, 4), (1000, 0)]
    agree(lambda x, p: [pnp.exp(pnp.where(x > 0, x, p))], x[:3], p, within=1)


@pytest.mark.parametrize("to", ["float32", "float16", "int8", "bool"])
def test_choices_of_known_numbers_are_made_narrow_before(to: str) -> None:
    x = DRAW.standard_normal(1000)

    def f(x: Any) -> list[Any]:
        pairs = (1.0, 0.0), (2.0, 5e-324), (float("nan"), -0.0), (1e300, 200.0), (1.00390625, 1.1)
        return [lax.select(x > 0, *[pnp.full(1000, n) for n in p]).astype(to) for p in pairs]

    agree(f, x)
    text = pl.jit(lambda x: f(x)[:1]).lower(x.astype(np.float32)).compile().as_text()
    assert text is not None and "x double>" not in text


def test_functions_of_one_choice_are_not_doubled() -> None:
    x = DRAW.standard_normal(9).astype(np.float32)

    def f(x: Any) -> list[Any]:
        number = x[0]
        for k in range(1, 9):
            number = pnp.where(x[k] > 0, number, pnp.where(x[k] < -1, number, x[k]))
        return [pnp.exp(number)]

    made = agree(f, x, within=1)
    assert sum([s.heavy for s in made.plan.steps if type(s) is Group]) == 1


def test_numbers_on_the_way_do_not_part_what_is_read_together() -> None:
    def f(x: Any, a: Any, b: Any) -> list[Any]:
        y = pnp.floor(x) * a
        return [y * pnp.sqrt(a * b) - y / (a + b), pnp.sum(y)]

    xs = V, np.float32(2.5), np.float32(1.5)
    made = agree(f, *xs, within=2000)
    groups = [s for s in made.plan.steps if type(s) is Group]
    assert [int(np.prod(s.shape)) for s in groups] == [1, 200]
