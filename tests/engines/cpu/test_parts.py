"""Reductions of much to little: made in parts, so that threads share them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal.engines.cpu.plan.schedule import MAX_PARTS, MAX_RESULTS, PART, Group
from primal.ops import elementwise as e
from primal.ops.reduce import reduce_max, reduce_min, reduce_prod
from primal.ops.shape import transpose
from primal.ops.spread import reduce_sum
from tests.engines.cpu.lab import agree, built

MUCH = 3 * PART + 17


def parts_used(made: Any) -> list[int]:
    return [s.parts for s in made.plan.steps if type(s) is Group]


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((MUCH,), (0,)),
        ((MUCH // 10, 10), (0,)),
        ((MUCH // 100, 100), (0,)),
        ((3, MUCH // 3), (1,)),
        ((3, MUCH // 3), (0, 1)),
        ((50, 7, 400), (0, 2)),
        ((50, 40, 70), (0, 1)),
        ((MUCH // 2, 2), (0,)),
        ((MUCH // 2, 2), (1, 0)),
        ((7, 2, MUCH // 7), (0, 2)),
    ],
)
def test_parts_add_up(shape: Any, axes: Any) -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(-1000, 1000, shape).astype(np.int32)
    x = rng.standard_normal(shape, np.float32)
    for array in (whole, x):
        made = agree(lambda x: [reduce_max(x, axes=axes), reduce_min(x, axes=axes)], array)
        assert max(parts_used(made)) > 1
    agree(lambda x: [reduce_sum(x, axes=axes), reduce_prod(x, axes=axes)], whole)
    near = built(lambda x: [reduce_sum(e.mul(x, x), axes=axes)], x).execute([x])[0]
    exact = np.sum((x * x).astype(np.float64), axes)
    np.testing.assert_allclose(near, exact, rtol=2.0**-23)


@pytest.mark.parametrize("row", [5, 33, 63, 64, 65, 128])
@pytest.mark.parametrize("before", [(32,), (9, 7)])
def test_rows_too_short_for_parts_are_whole(row: int, before: Any) -> None:
    """What repeats along rows keeps these loops apart: of the longest, a row, parts were one."""
    shape = (64, *before, row)
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(np.int32)
    y = x[..., :1].copy()
    axes = tuple(range(1, len(shape)))

    def f(x: Any, y: Any) -> list[Any]:
        z = jnp.add(x, y)
        return [z, reduce_max(z, axes=axes), reduce_sum(z, axes=axes)]

    given = x.copy()
    agree(f, given, y)
    np.testing.assert_array_equal(given, x)


def test_sums_of_parts_are_rounded_once() -> None:
    x = np.full(4 * PART, 0.1, np.float32)
    x[0], x[-1] = 1e8, -1e8
    got = built(lambda x: [reduce_sum(x, axes=(0,))], x).execute([x])[0]
    assert got == np.float32(math.fsum(x.tolist()))


def test_what_a_reduction_in_parts_stores_is_whole() -> None:
    x = np.random.default_rng(1).standard_normal(MUCH, np.float32)
    made = agree(lambda x: [(y := e.abs(x)), reduce_max(y, axes=(0,))], x)
    assert max(parts_used(made)) > 1


def test_nan_is_found_in_any_part() -> None:
    x = np.zeros(MUCH, np.float32)
    for at in (0, PART, MUCH - 1):
        x[at] = np.nan
        for reduce in (reduce_max, reduce_sum):
            assert np.isnan(built(lambda x, r=reduce: [r(x, axes=(0,))], x).execute([x])[0])
        x[at] = 0


def test_parts_are_bounded() -> None:
    x = np.zeros((PART * (MAX_PARTS + 44), 1), np.int8)
    made = built(lambda x: [reduce_max(x, axes=(0,))], x)
    assert max(parts_used(made)) == MAX_PARTS
    y = np.zeros((1000, MAX_RESULTS + 1), np.float32)
    assert parts_used(built(lambda y: [reduce_sum(y, axes=(0,))], y)) == [1]


@pytest.mark.parametrize("columns", [2, 3, 6, 7])
def test_parts_of_points(columns: int) -> None:
    x, y = np.random.default_rng(2).standard_normal((2, 3 * PART + 11, columns), np.float32)
    made = agree(
        lambda x, y: [reduce_max(x, axes=(0,)), reduce_min(e.mul(x, y), axes=(0,))], x, y
    )
    assert max(parts_used(made)) > 1


def test_rows_of_a_transposed_array() -> None:
    x = np.random.default_rng(3).standard_normal((130, 70), np.float32)
    agree(lambda x: [reduce_max(transpose(x, permutation=(1, 0)), axes=(0,))], x)
