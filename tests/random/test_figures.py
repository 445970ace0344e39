"""Random numbers are those of JAX 0.10.2, for every distribution, generator and scheme.

What is made of integers, or decided by comparing, is equal; floats may differ by the roundings of
logarithms and other functions that libraries round differently.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primal
from primal import numpy as jnp
from primal import random
from tests.data.record_random import evaluate, setups

FIGURES = json.loads((Path(__file__).parents[1] / "data" / "random_figures.json").read_text())
TOLERANCE = {"float16": 3e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-11}
TOLERANCE |= {"complex64": 2e-5, "complex128": 1e-11}
# bits and uniform numbers involve no function that is rounded: equal to the last bit.
EXACT = ("bits", "uniform", "randint", "bernoulli", "rademacher", "permutation", "choice", "key")


def test_the_record_has_every_expression() -> None:
    rows = [(impl, new, wide, text) for impl, new, wide, text, _ in FIGURES]
    assert rows == [(i, n, w, t) for i, n, w, texts in setups() for t in texts]


@pytest.mark.parametrize("row", FIGURES, ids=lambda r: f"{r[0]}-{r[1]:d}{r[2]:d}-{r[3]}")
def test_same_numbers_as_jax(row: list[Any]) -> None:
    impl, new, wide, text, expected = row
    with primal.threefry_partitionable(new), primal.enable_x64(wide):
        found = evaluate(text, random, jnp, impl)
    if len(expected) == 1:
        assert found == expected
        return
    assert found[:2] == expected[:2]
    # Compilers may fuse a product and a sum, as of `minval`, into one rounding.
    exact = text.startswith(EXACT) and "minval" not in text
    tolerance = 0.0 if exact else TOLERANCE.get(found[0], 0.0)
    np.testing.assert_allclose(found[2], expected[2], rtol=tolerance, atol=tolerance / 10)
