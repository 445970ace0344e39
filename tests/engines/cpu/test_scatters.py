"""Most of an array written at a known place is a piece of a concatenation: NumPy's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
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
