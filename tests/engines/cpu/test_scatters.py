"""Most of an array written at a known place is a piece of a concatenation: NumPy's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import grad, lax
from primal.engines.cpu.schedule import Group
from tests.engines.cpu.lab import built, numpy_run

DRAW = np.random.default_rng(0)


def add_rows(x: Any, start: int, mode: str) -> Any:
    """199 rows more from a row on, of 200."""
    rows = lax.ScatterDimensionNumbers((0, 1), (), (0,))
    return lax.scatter_add(x, lax.full((1,), start, jnp.int32), x[:199], rows, mode=mode)


CASES: dict[str, Any] = {
    "first row stays": lambda x: x.at[1:].multiply(2),
    "both ends stay": lambda x: x.at[2:-3].add(x[5:]),
    "last row stays": lambda x: x.at[:-1].add(x[1:]),
    "one line": lambda x: x.ravel().at[5:-1].max(2),
    "behind a single one": lambda x: x[None].at[0, 1:].min(x[:-1]),
    "the other dimension": lambda x: x.at[:, 1:].add(3),
    "both": lambda x: x.at[1:, 1:].add(3),
    "dropped": lambda x: add_rows(x, 2, "fill"),
    "clamped": lambda x: add_rows(x, 2, "clip"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "float64"])
def test_values(name: str, dtype: str) -> None:
    x = (DRAW.standard_normal((200, 130)) * 50).astype(jnp.dtype(dtype))
    x[::3, 5] = 0
    x[1::3, 7] = -np.float32(0)
    f = CASES[name]
    (got,) = built(lambda x: [f(x)], x).execute([x])
    (want,) = numpy_run(lambda x: [f(x)], x)
    np.testing.assert_array_equal(got, want)
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize(
    "name", ["first row stays", "both ends stay", "last row stays", "one line"]
)
def test_nothing_is_copied_first(name: str) -> None:
    x = np.ones((200, 130), np.float32)
    made = built(lambda x: [CASES[name](x)], x)
    names = [type(spec).__name__ for spec in made.plan.specs]
    assert "Scatter" not in names and "Rows" in names


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_derivative_of_reading_at_several_places_is_one_array(count: int, dtype: str) -> None:
    x = DRAW.integers(-4, 5, (60, 50)).astype(dtype)
    i = DRAW.integers(0, 50, 40)
    holomorphic = {"holomorphic": True} if x.dtype.kind == "c" else {}

    def total(x: Any, i: Any) -> Any:
        return sum((x[i * (n + 2) % 60, i] ** 2 * (n + 1)).sum() for n in range(count))

    f = grad(total, **holomorphic)
    made = built(lambda x, i: [f(x, i)], x, i)
    (got,), (want,) = made.execute([x, i]), numpy_run(lambda x, i: [f(x, i)], x, i)
    np.testing.assert_array_equal(got, want)
    if dtype == "float32":
        whole = [s for s in made.plan.steps if type(s) is Group and s.shape[:1] in ((60,), (3000,))]
        assert len(whole) == 1  # the zeros


def test_signs_of_zeros_of_what_windows_are_added_to() -> None:
    x, y = np.full((2, 300), -0.0, np.float32)
    i = np.array([3, 5])

    def f(x: Any, y: Any, i: Any) -> list[Any]:
        added = jnp.zeros(300, jnp.float32).at[i].add(1)
        twice = jnp.zeros(300, jnp.float32).at[i].add(-0.0)
        return [x + added, twice + y, added + twice, twice]

    for got, want in zip(built(f, x, y, i).execute([x, y, i]), numpy_run(f, x, y, i), strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
