"""What is read in part is computed in part: values are NumPy's, and kernels as small as that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal.numpy as pnp
from primal.engines.cpu.schedule import Group
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
    "one by one": (lambda x, r: (lambda y: y[0, 0] + y[1, 1] * y[2, 2])(x[0, :10] * r), 80),
    "across dimensions": (lambda x, r: (x + 1).reshape(-1)[4:20], 1920),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_sizes(name: str) -> None:
    f, most = CASES[name]
    made = agree(lambda x, r: [f(x, r)], X, ROW, within=8)
    sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
    assert max(sizes) == most
