"""The neutral elements of monoids change nothing, and other names have none."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from primal.base.monoids import identity

COMBINE: dict[str, Any] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
NUMBERS = ("i1", "u4", "f4", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
BITS = ("?", "i1", "u4")


@pytest.mark.parametrize("monoid", COMBINE)
def test_an_identity_changes_nothing(monoid: str) -> None:
    for dtype in map(np.dtype, BITS if monoid in ("and", "or", "xor") else NUMBERS):
        x = np.array([0, 1, 1], dtype)
        neutral = identity(monoid, dtype)
        assert neutral.dtype == dtype
        np.testing.assert_array_equal(COMBINE[monoid](x, neutral), x)


@pytest.mark.parametrize("name", ["max", "mul", "sum", ""])
def test_other_names_have_none(name: str) -> None:
    with pytest.raises(KeyError):
        identity(name, np.dtype("f4"))
