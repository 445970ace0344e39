"""Integrals of polynomials of any order, beside NumPy's."""

import warnings

import numpy as np
import pytest

import primal
import primal.numpy as jnp


@pytest.mark.parametrize("order", [0, 1, 2, 5, 12])
@pytest.mark.parametrize(
    "p", [np.array([1.0, 2, 3], np.float32), np.array([2], np.int32), np.array([1 + 2j, 3])]
)
def test_integrals(p: np.ndarray, order: int) -> None:
    for k in (None, 3.0, np.arange(order) + 1.0):
        if np.size(k) == 0:
            continue
        want = np.polyint(p, order, k)
        np.testing.assert_allclose(jnp.polyint(p, order, k), want, rtol=1e-6)
        got = primal.jit(lambda p, k=k: jnp.polyint(p, order, k))(p)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_integrals_of_a_great_order() -> None:
    # m steps took m² time; what is divided by more than a float holds is 0.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = np.asarray(jnp.polyint(jnp.ones(3), 200_000, 2.0))
    assert got.shape == (200_003,) and not got[:-100].any()
    np.testing.assert_allclose(got[-4:], [2 / 6, 2 / 2, 2, 2], rtol=1e-6)
