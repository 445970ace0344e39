"""Bits from XLA's generators: recorded numbers, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
from primal import lax

# (state, dtype, next state, bits) of XLA's RngBitGenerator by threefry.
THREEFRY: list[tuple[list[int], str, list[int], Any]] = [
    ([1, 2, 3, 4], "uint32", [1, 2, 6, 4],
     [[1576285164, 740599976, 2436392515], [2249660814, 2425682526, 1497962777]]),
    ([1, 2, 4294967294, 4294967295], "uint32", [1, 2, 4, 0],
     [[4115258991, 3850963268, 629071667], [2695274985, 2619805951, 2343584484],
      [2271449651, 2527474599, 2392469163]]),
    ([1, 2, 3, 4], "uint8", [1, 2, 6, 4], [236, 142, 168, 94, 67]),
    ([1, 2, 3, 4], "uint64", [1, 2, 5, 4], [9662219624799024108, 10418227120389269672]),
    ([1, 2, 3, 4], "uint16", [1, 2, 4, 4], 13292),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("state, dtype, after, bits", THREEFRY)
def test_threefry_is_that_of_xla(
    state: Any, dtype: str, after: Any, bits: Any, wide: bool, compiled: bool, x64: None
) -> None:
    key, after = [np.array(v, np.uint32) for v in (state, after)]
    if wide:
        key, after = key.view("<u8"), after.view("<u8")

    def draw(key: Any) -> Any:
        return lax.rng_bit_generator(
            key, np.shape(bits), dtype, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY
        )

    found, got = (primal.jit(draw) if compiled else draw)(key)
    np.testing.assert_array_equal(found, after)
    np.testing.assert_array_equal(got, np.array(bits, dtype))
    assert got.dtype == dtype and found.dtype == key.dtype


def test_keys_and_algorithms_that_are_none() -> None:
    with pytest.raises(ValueError, match="uint32"):
        lax.rng_bit_generator(np.zeros(2, np.uint32), (2,))
    with pytest.raises(ValueError, match="RandomAlgorithm"):
        lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), algorithm=7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="positive"):
        lax.Tolerance()
